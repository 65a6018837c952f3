// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What stands in the table of functions: columns of each view, which rows, how they are marked. No DOM.
(function (ns) {
  "use strict";

  // Columns as tableView() takes them. table: functionTable()'s figures with all, allBase, scale, removed,
  // allRemoved; amount(ticks) and facts(func) have the texts; isSorted: by the reader, so changes are
  // in order with their signs. part: rows are parts (group.js), by what; they have no time of their own.
  function tableColumns({table: t, view, rows, facts, amount, isSorted, part}) {
    const isBase = view === "base", total = isBase ? t.baseTotal : t.total;
    const columns = functionColumns(t, {view, rows, facts, amount, isSorted, title: part ?? "Function"});
    const sum = {key: "sum", title: "Amount", hint: "In all", value: (f) => total[f], text: (f) => amount(total[f])};

    return part === undefined ? columns
      : [...columns.filter(({key}) => !/self/.test(key)), ...["base", "head"].includes(view) ? [sum] : []];
  }

  function functionColumns(t, {view, rows, facts, amount, isSorted, title: ofWhat}) {
    const isBase = view === "base";
    const name = {key: "name", title: ofWhat, hint: "Sort by name",
      value: (f) => facts(f).name.toLowerCase(), text: (f) => facts(f).name,
      sub: (f) => facts(f).module || facts(f).place};
    const self = isBase ? t.baseSelf : t.self, total = isBase ? t.baseTotal : t.total;
    const removed = view === "elided" ? t.removed : null;
    const all = (isBase ? t.allBase : t.all) || 1;
    const share = (key, title, hint, of) => ({key, title, hint, value: (f) => of[f],
      text: (f) => ns.percent(of[f] / all), bar: (f) => of[f] / all});

    if (removed) {
      const time = (key, title, hint, of) => ({key, title, hint, value: (f) => of[f],
        text: (f) => amount(of[f]), bar: (f) => of[f] / (t.allRemoved || 1)});

      return [name, time("self", "Self", "Removed time in the function itself", removed.self),
        time("total", "Total", "Removed time with the functions it called", removed.total)];
    }
    if (view !== "diff")
      return [name, share("self", "Self", "Share of the time in the function itself", self),
        share("total", "Total", "Share of the time with the functions it calls", total)];
    const delta = (key, title, hint, now, before) => {
      const value = (f) => now[f] - before[f] * t.scale;
      const most = rows.reduce((max, f) => Math.max(max, Math.abs(value(f))), 1e-9);

      return {key, title, hint, value: (f) => isSorted ? value(f) : Math.abs(value(f)),
        text: (f) => ns.signed(amount(value(f)), value(f)), bar: (f) => value(f) / most};
    };

    return [name,
      delta("dtotal", "Δ total", "Change of its time with callees", t.total, t.baseTotal),
      {key: "ratio", title: "Change", hint: "Change of the total in per cent of the baseline",
        value: (f) => t.baseTotal[f] ? t.total[f] / (t.baseTotal[f] * t.scale) : Infinity,
        text: (f) => ns.changeText({current: {total: t.total[f]}, base: {total: t.baseTotal[f]},
          scale: t.scale})},
      delta("dself", "Δ self", "Change of its own time", t.self, t.baseSelf),
      share("total", "Total", "Share of the current time with the functions it calls", t.total),
      share("self", "Self", "Share of the current time in the function itself", t.self)];
  }

  // Of who waited for the GIL, and who held it meanwhile: rows are indices of the facts' list.
  function gilColumns(gil) {
    const whole = gil.reduce((sum, [,,,, seconds]) => sum + seconds, 0);
    const name = (row, at) => (ns.visible(gil[row][at]) || "not known") + (gil[row][at + 1] &&
      ` (${ns.visible(gil[row][at + 1]).replace(/.*\//, "")})`);
    const number = (key, title, hint, at, text, bar) => ({key, title, hint, text: (row) => text(gil[row][at]),
      value: (row) => gil[row][at], bar: bar && ((row) => gil[row][at] / whole)});

    return [{key: "name", title: "Waited for the GIL in", hint: "Sort by name", value: (row) => name(row, 0),
      text: (row) => name(row, 0), sub: (row) => "held by " + name(row, 2)},
    number("waited", "Waited", "How long", 4, (seconds) => ns.duration(seconds * 1e3), true),
    number("episodes", "Times", "How often waiting began meanwhile", 5, (times) => ns.count(Math.round(times)))];
  }

  // Functions that the view has anything of; matched: 1 where a search finds them, null: there is none.
  function rowsToShow({total, baseTotal, removed}, view, matched) {
    const rows = [];
    const isThere = {
      base: (f) => baseTotal[f] > 0,
      head: (f) => total[f] > 0,
      diff: (f) => total[f] > 0 || baseTotal[f] > 0,
      elided: (f) => removed.total[f] > 0,
    }[view];

    for (let f = 1; f < total.length; f++)
      if (isThere(f) && (!matched || matched[f]))
        rows.push(f);
    return rows;
  }

  // The rows' class names in the style sheet.
  function accentsOf({verdicts}) {
    const accents = ns.CLASSES.map(ns.family)
      .map((name) => ["slower", "faster", "new", "removed"].includes(name) ? name : "");

    return (f) => verdicts ? accents[verdicts[f]] : "";
  }

  Object.assign(ns, {tableColumns, gilColumns, rowsToShow, accentsOf});
})(globalThis.pyebpf ??= {});
