// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// How names and numbers read. Names come from profiled processes and are hostile: whatever could
// hide, reorder or break text is spelled out. No DOM.
(function (ns) {
  "use strict";

  const LONGEST = 400; // characters of one name that are ever shown

  // All of base/utf8.h's utf8_is_control(), and zero-width characters, tags and lone surrogates.
  const UNSAFE = new RegExp("[\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200b-\\u200f\\u2028-\\u202e" +
    "\\u2060-\\u206f\\ufeff\\u{e0000}-\\u{e007f}]|\\p{Surrogate}|\\p{Noncharacter_Code_Point}", "gu");

  function spell(c) {
    return "\\u{" + c.codePointAt(0).toString(16) + "}";
  }

  // text with everything unsafe spelled out as \u{HEX}, cut at LONGEST.
  function visible(text) {
    const short = text.length > LONGEST ? text.slice(0, LONGEST) + "…" : text;

    return short.replace(UNSAFE, spell);
  }

  // 0.1234 -> "12.3%". Enough digits to tell small shares apart, never more than three figures.
  function percent(share) {
    const p = 100 * share;

    if (!Number.isFinite(p))
      return "–";
    if (p === 0)
      return "0%";
    if (Math.abs(p) < 0.01)
      return p < 0 ? "−0.01%" : "<0.01%";
    const digits = Math.abs(p) < 1 ? 2 : Math.abs(p) < 99.95 ? 1 : 0;

    return p.toFixed(digits).replace("-", "−") + "%";
  }

  function signed(text, value) {
    return value > 0 ? "+" + text : text;
  }

  // A change as a share: "+12.3%", "−4.0%", "0.0%".
  function change(share) {
    return signed(percent(share), share);
  }

  // A ratio of current to baseline as a change: 2.1 -> "+110%", 0 -> "−100%"; beyond ten times
  // "12×".
  function ratio(value) {
    if (!(value >= 0) || !Number.isFinite(value))
      return "–";
    return value >= 10 ? value.toFixed(value < 100 ? 1 : 0) + "×" : change(value - 1);
  }

  const THIN = "\u2009";

  // 1234567 -> "1 234 567" (thin spaces); fractions only below 100.
  function count(value) {
    const digits = Number.isInteger(value) || Math.abs(value) >= 100 ? 0 : 1;

    return value.toFixed(digits).replace("-", "−").replace(/\B(?=(\d{3})+(?!\d))/g, THIN);
  }

  const UNITS = [[3600e3, "h"], [60e3, "min"], [1e3, "s"], [1, "ms"], [1e-3, "µs"]];

  // Milliseconds to three figures in the unit that suits: "1.24 s".
  function duration(ms) {
    const size = Math.abs(ms);

    if (size === 0)
      return "0";
    const [unit, name] = UNITS.find(([u]) => size >= u) || UNITS[UNITS.length - 1];
    const value = ms / unit;
    const digits = Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2;

    return value.toFixed(digits).replace("-", "−") + " " + name;
  }

  // "12.3 MiB"
  function bytes(value) {
    const power = Math.min(4, Math.max(0, Math.floor(Math.log2(Math.abs(value)) / 10)));

    return ns.count(Number((value / 1024 ** power).toPrecision(power ? 3 : 15))) + " " +
      (power ? "KMGT"[power - 1] + "iB" : "B");
  }

  // text cut to what fits in width, with an ellipsis; "" if not even three characters do.
  // advance(character) -> its width in the same unit.
  function fit(text, width, advance) {
    const dots = advance("…");
    let used = 0, cut = 0, at = 0;

    for (const c of text) {
      used += advance(c);
      if (used > width)
        return cut >= 2 ? text.slice(0, cut) + "…" : "";
      at += c.length;
      if (used + dots <= width)
        cut = at;
    }
    return text;
  }

  // The first of texts that fits whole, else what fits of the last.
  function fitOne(texts, width, advance) {
    let fitted = "";

    for (const text of texts) {
      fitted = fit(text, width, advance);
      if (fitted === text)
        break;
    }
    return fitted;
  }

  // "Shop.parse.<locals>.<listcomp>" -> "<listcomp>": what tells it from its neighbours.
  function lastPart(name) {
    return name.slice(name.lastIndexOf(".") + 1) || name;
  }

  Object.assign(ns, {visible, percent, change, ratio, count, bytes, duration, signed,
    fit, fitOne, lastPart});
})(globalThis.pyebpf ??= {});
