// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What the reader has chosen: one flat object, its defaults, and its spelling in the address, so
// that a link opens the same picture. No DOM.
(function (ns) {
  "use strict";

  const one = (...values) => ({
    default: values[0],
    read: (text) => values.includes(text) ? text : undefined,
    write: String,
  });
  const text = {default: "", read: String, write: String};
  const flag = (on) => ({
    default: on,
    read: (t) => t === "1" ? true : t === "0" ? false : undefined,
    write: (v) => v ? "1" : "0",
  });
  const index = {
    default: 0,
    read: (t) => /^\d{1,9}$/.test(t) ? Number(t) : undefined,
    write: String,
  };
  // A box by the keys on its path (pathOf() in model.js); null: none.
  const path = {
    default: null,
    read: (t) => /^\d{1,9}(\.\d{1,9})*$/.test(t) ? t.split(".").map(Number) : undefined,
    write: (v) => v.join("."),
  };
  // Names that a filter lets through; none: all of them. What has no name is "", which alone is
  // written twice, as nothing at all is no name at all.
  const names = {
    default: [],
    read: (t) => t ? [...new Set(t.split(",").map(decodeURIComponent))] : [],
    write: (v) => String(v) || !v.length ? v.map(encodeURIComponent).join(",") : ",",
  };
  // null: all of the time; else [first, end) in time blocks.
  const range = {
    default: null,
    read: (t) => {
      const m = /^(\d{1,5})-(\d{1,5})$/.exec(t);

      return m && Number(m[1]) < Number(m[2]) ? [Number(m[1]), Number(m[2])] : undefined;
    },
    write: (v) => v.join("-"),
  };
  // The part of the width that is shown, where that is no box; null: the box `zoom`.
  const span = {
    default: null,
    read: (t) => {
      const [from, to] = t.split("-").map(Number);

      return from >= 0 && from < to && to <= 1 ? [from, to] : undefined;
    },
    write: (v) => v.map((x) => x.toFixed(9)).join("-"),
  };
  const marks = {
    default: ns.MARKS, // ratios where the steps of a change begin
    read: (t) => {
      const m = t.split("-").map(Number);

      return m.length === ns.MARKS.length && m.every((v, i) => v > (i ? m[i - 1] : 1) && v <= 100)
        ? m : undefined;
    },
    write: (v) => v.map((x) => Number(x.toFixed(3))).join("-"),
  };

  // Each field: how it is read and written, and its default. view .. baseRange are activeData()'s.
  const FIELDS = {
    view: one("auto", "base", "head", "diff", "elided"),
    basis: one("current", "baseline", "union", "delta"),
    by: one("function", "line"),
    shape: one("call", "inverted", "sandwich"),
    func: index, // function that the sandwich is about
    process: names,
    thread: names,
    pod: names,
    range,
    baseRange: range, // one recording compared with itself
    measure: one("total", "self"), // what colours tell about
    effect: one("ratio", "impact"), // a change relative to itself, or to the whole
    marks,
    palette: one("auto", "diff", "colourblind", "modules", "heat"),
    theme: one("auto", "light", "dark"),
    label: one("function", "module", "file"),
    imports: flag(true),
    libraries: flag(true),
    q: text,
    select: text, // which samples: select.js
    group: text, // what stands below the root: group.js
    list: one("functions", "parts", "gil"), // what stands in the table
    sort: text, // column of the table, "-" in front: smallest first
    zoom: path,
    span,
    sel: path,
  };

  function defaultState() {
    const state = {};

    for (const [key, field] of Object.entries(FIELDS))
      state[key] = field.default;
    return state;
  }

  // Only what differs from the defaults, in FIELDS' order; "" if nothing does.
  function writeState(state) {
    const parts = [];

    for (const [key, field] of Object.entries(FIELDS)) {
      const spell = (value) => value === null ? "" : field.write(value);

      if (spell(state[key]) !== spell(field.default))
        parts.push(key + "=" + encodeURIComponent(spell(state[key])));
    }
    return parts.join("&");
  }

  // The address is typed by anyone: unknown keys and impossible values keep the default.
  function readState(hash) {
    const state = defaultState();

    for (const part of hash.replace(/^#/, "").split("&")) {
      const at = part.indexOf("="), key = part.slice(0, at);
      let value;

      if (at < 0 || !Object.hasOwn(FIELDS, key))
        continue;
      try {
        value = FIELDS[key].read(decodeURIComponent(part.slice(at + 1)));
      } catch {
        continue;
      }
      if (value !== undefined)
        state[key] = value;
    }
    return state;
  }

  Object.assign(ns, {defaultState, writeState, readState});
})(globalThis.pyebpf ??= {});
