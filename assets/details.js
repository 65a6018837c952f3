// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What is said about one box: in the tooltip, and in full beside the graph.
//
// Both take a subject, prepared by figuresOf() in app.js:
//   node, name, place, file, defined, line, origin   what the box is; line 0: of all its lines
//   unit, scale      of amounts, see amount(); one base tick in current ticks
//   waits, reasons   {self, total} of current that is waiting, null: nothing; [[what for, ticks]...]
//   current, base    {self, total} ticks; base null where nothing is compared
//   removed          {self, total} current ticks, in the elided view only
//   root, selection  ticks of all, and of the zoomed box
//   measure          "self" or "total": what source lines show
//   change, verdict, low, high   class, {self, total}: "slower", "faster" or "", interval of the ratio
//   all              ticks of all, for source lines
//   missing          current ticks of removed calls below; notes: sentences
//   path, go(node)   the stack, root first: [{node, name}...]
(function (ns) {
  "use strict";

  const CONTEXT = 4; // source lines shown around a line that has samples
  const REASONS_MAX = 8; // of waiting
  const LINES_MAX = 400; // source lines shown at most

  const WORDS = {
    unchanged: "Unchanged", undetermined: "Undetermined", rare: "Possibly rare", new: "New",
    removed: "Removed", slower: "Slower", faster: "Faster",
  };

  const SENTENCES = {
    unchanged: "The change is smaller than the first colour step.",
    undetermined: "Inconclusive: the 95% interval is too wide to tell whether this changed.",
    likely: "Probably changed, but not with enough certainty, or by less than one step.",
    rare: "Seen on one side only, with too few samples to call it new or removed.",
    new: "The baseline has no such call path.",
    removed: "Only the baseline has this call path.",
    slower: "Slower than the baseline, by more than the noise explains.",
    faster: "Less time than in the baseline, beyond what chance explains.",
  };

  // "slower3" -> "slower".
  const family = (name) => name.replace(/\d$/, "");

  function line(tag, text, className) {
    return ns.element(tag, {className: className || "", textContent: text});
  }

  // Ticks as time, of a run, a unit of work or a second: {ms, per}: of a tick, 0: unknown; what
  // stands behind. Of no time: what each is of, in bytes or a count.
  function amountText(ticks, {ms, per, each, isBytes}) {
    return ms ? ns.duration(ticks * ms) + per : isBytes ? ns.bytes(ticks * each) : ns.count(ticks * each);
  }

  const amount = (ticks, {unit}) => amountText(ticks, unit);

  function signedAmount(value, subject) {
    return ns.signed(amount(value, subject), value);
  }

  function changeText({current, base, scale}, key = "total") {
    const before = base[key] * scale, after = current[key];

    return before > 0 ? ns.ratio(after / before) : after > 0 ? "new" : "–";
  }

  // The tooltip's content.
  function tipContent(subject) {
    const {current, base, root} = subject, rows = [];
    const row = (key, text) => rows.push(line("dt", key), line("dd", text));

    const part = (key, title) => {
      row(title, `${amount(current[key], subject)}  ·  ${ns.percent(current[key] / root)}`);
      if (!base)
        return;
      row("  baseline", amount(base[key] * subject.scale, subject));
      row("  change", `${signedAmount(current[key] - base[key] * subject.scale, subject)}  ·  ` +
        changeText(subject, key));
    };

    part("total", "Total");
    for (const [name, read] of waitRows(subject))
      row(name, amount(read("total"), subject));
    if (base)
      row("  verdict", WORDS[family(subject.change)] + intervalText(subject));
    part("self", "Self");
    if (subject.removed)
      row("Removed", amount(subject.removed.total, subject));
    if (subject.missing > 0)
      row("Removed below", `${amount(subject.missing, subject)} (click the violet corner)`);
    return [ns.element("div.name", {}, line("bdi", subject.name)),
      ns.element("div.place", {}, line("bdi", subject.place)),
      ns.element("dl", {}, ...rows)];
  }

  function intervalText({low, high}) {
    return low === undefined || !(high > 0) || !Number.isFinite(high) ? ""
      : ` (${ns.ratio(low)} to ${ns.ratio(high)})`;
  }

  // [name, key -> ticks]: on a CPU, waiting, and for what.
  function waitRows({waits, current, reasons}) {
    return waits?.total && waits.self < current.total ? [
      ...waits.total < current.total ? [["  on a CPU", (k) => current[k] - waits[k]]] : [],
      ["  waiting", (k) => waits[k]], ...reasons.slice(0, REASONS_MAX).map(([name, ticks]) => ["    " + name, (k) => k === "total" && ticks])] : [];
  }

  function figuresTable(subject) {
    const {current, base, root, selection, scale} = subject;
    const head = ns.element("tr", {}, ns.element("td"), ...["Self", "Total"]
      .map((text) => ns.element("th", {scope: "col"}, text)));
    const rows = [];
    const row = (name, read, className) => {
      rows.push(ns.element("tr", {}, ns.element("th", {scope: "row"}, name),
        ...["self", "total"].map((key) => {
          const text = read(key);

          return ns.element("td", {textContent: text,
            className: className ? className(key) : ""});
        })));
    };
    const side = (key) => base ? current[key] - base[key] * scale : 0;

    row(base ? "Current" : subject.unit.ms ? "Time" : subject.unit.name, (k) => amount(current[k], subject));
    for (const [name, read] of waitRows(subject))
      row(name, (k) => read(k) ? amount(read(k), subject) : "");
    if (subject.unit.hasTicks)
      row(base ? "Current samples" : "Samples", (k) => ns.count(current[k]));
    if (base) {
      row("Baseline", (k) => amount(base[k] * scale, subject));
      if (subject.unit.hasTicks)
        row("Baseline samples", (k) => ns.count(base[k]));
      row("Change", (k) => signedAmount(side(k), subject),
        (k) => subject.verdict[k]);
      if (subject.unit.hasTicks)
        row("Change, samples", (k) => ns.signed(ns.count(Math.round(side(k))), Math.round(side(k))));
      row("Change, %", (k) => changeText(subject, k));
    }
    if (subject.removed)
      row("Removed", (k) => amount(subject.removed[k], subject));
    const whole = subject.removed || current;

    row("Of all", (k) => ns.percent(whole[k] / root));
    if (selection !== root)
      row("Share of the zoomed box", (k) => ns.percent(whole[k] / selection));
    return ns.element("table.figures", {}, ns.element("thead", {}, head),
      ns.element("tbody", {}, ...rows));
  }

  const UNAVAILABLE = {
    changed: "The file on disk is no longer the recorded one, so its lines are not shown.",
    missing: "Source file not found on the machine that wrote this report.",
    unknown: "The recording does not have this file's digest, so its lines are not shown. " +
      "--source-root DIR shows files below DIR.",
    "too large": "The file is too large to be embedded.",
    baseline: "Lines of the baseline's file, which may have changed since.",
  };

  // Numbers of the lines worth showing: the function's own that have samples, and its def, with
  // CONTEXT around.
  function linesToShow(lines, heat, subject) {
    const wanted = new Set();

    for (const center of [...heat.keys(), subject.defined])
      for (let n = center - CONTEXT; n <= center + CONTEXT; n++)
        if (lines.has(n))
          wanted.add(n);
    return [...wanted].sort((a, b) => a - b);
  }

  function sourceLine(number, text, row, most, subject) {
    const weight = row ? row[subject.measure] : 0;
    const li = ns.element("li", {}, line("span", String(number), "no"),
      line("span", weight ? ns.percent(weight / subject.all) : "", "share"),
      line("bdi", text));

    if (weight)
      li.style.background = `color-mix(in srgb, var(--cell) ${Math.round(4 + 46 * weight / most)}%, transparent)`;
    if (number === subject.line)
      li.className = "here";
    if (row && subject.base)
      li.title = `current ${amount(row.total, subject)}, baseline ${
        amount(row.baseTotal * subject.scale, subject)}`;
    return li;
  }

  // The instructions of a line: the heaviest one; opened all, by their parts of the line and of all.
  function opcodeList({opcodes}, {base, all}) {
    const sum = (key) => opcodes.reduce((n, one) => n + one[key], 0) || 1;
    const parts = [["of line", "current", sum("current")], ["of all", "current", all]];
    const row = (name, text) => ns.element("tr", {}, ...parts.map((part) => line("td", text(part))),
      line("td", name));

    if (base)
      parts.unshift(["base", "base", sum("base")]);
    return ns.element("li.ops", {}, ns.element("details", {},
      line("summary", opcodes[0].name),
      ns.element("table", {}, row("", ([title]) => title), ...opcodes.map((one) =>
        row(one.name, ([, key, whole]) => ns.percent(one[key] / whole))))));
  }

  // A line, and below it the instructions it was at, where they were recorded.
  function sourceRows(number, text, row, most, subject) {
    const rows = [sourceLine(number, text, row, most, subject)];

    if (row?.opcodes && row.self + row.baseSelf > 0)
      rows.push(opcodeList(row, subject));
    return rows;
  }

  // source: {status, lines: Map}, heat: Map of line -> {self, total, ...}.
  function sourceBox(subject, {status, lines}, heat) {
    const head = line("h2", "Source", "stackhead");

    if (!lines.size)
      return [head, line("p", UNAVAILABLE[status] || UNAVAILABLE.unknown, "said faint"),
        ...heatOnly(subject, heat)];
    const shown = linesToShow(lines, heat, subject).slice(0, LINES_MAX);
    const most = Math.max(...[...heat.values()].map((row) => row[subject.measure]), 1e-9);
    const list = ns.element("ol");

    shown.forEach((number, i) => {
      if (i && number !== shown[i - 1] + 1)
        list.append(line("li", "⋯", "gap"));
      list.append(...sourceRows(number, ns.visible(lines.get(number)), heat.get(number), most, subject));
    });
    return [head, ns.element("div.sourcebox", {tabIndex: 0, role: "region",
      "aria-label": "Source lines"}, list)];
  }

  // Without the text, the line numbers still tell where the time goes.
  function heatOnly(subject, heat) {
    const rows = [...heat].filter(([, row]) => row[subject.measure] > 0)
      .sort((a, b) => b[1][subject.measure] - a[1][subject.measure]).slice(0, 12);

    if (!rows.length)
      return [];
    const most = rows[0][1][subject.measure];

    return [ns.element("div.sourcebox", {}, ns.element("ol", {},
      ...rows.flatMap(([number, row]) => sourceRows(number, "", row, most, subject))))];
  }

  // source: where sourceBox()'s will stand; actions: [[text, title, act]...].
  function detailsContent(subject, source, actions) {
    const verdict = subject.base ? family(subject.change) : "";
    const isLikely = verdict === "undetermined" && (subject.low > 1 || subject.high < 1);
    const parts = [
      ns.element("p.name", {}, line("bdi", subject.name)),
      ns.element("p.place", {}, line("bdi", subject.place)),
    ];

    if (verdict)
      parts.push(ns.element("span.badge", {}, WORDS[verdict]));
    if (subject.origin)
      parts.push(ns.element("span.badge", {}, subject.origin));
    if (verdict)
      parts.push(line("p", SENTENCES[isLikely ? "likely" : verdict], "said faint"));
    if (!subject.node)
      parts.push(line("p", "Click a box to zoom into it, for its figures and source. " +
        "Press ? for the keys.", "said faint"));
    if (subject.base && intervalText(subject))
      parts.push(line("p", "With 95% confidence: " + intervalText(subject).slice(2, -1), "said"));
    for (const note of subject.notes || [])
      parts.push(ns.element("p.said faint", {}, line("bdi", note)));
    parts.push(figuresTable(subject));
    parts.push(ns.element("div.actions", {},
      ...actions.map(([text, title, act]) => ns.button(text, title, act))));
    parts.push(source);
    if (subject.path.length > 1)
      parts.push(line("h2", "Stack", "stackhead"), stackList(subject));
    return parts;
  }

  const STACK_MAX = 200;

  function stackList({path, go}) {
    const hidden = Math.max(0, path.length - STACK_MAX);
    const list = ns.element("ol.path");

    if (hidden)
      list.append(line("li", `${ns.count(hidden)} callers further out`, "faint"));
    for (const {node, name} of path.slice(hidden)) {
      const b = ns.element("button", {type: "button", title: name, onclick: () => go(node)},
        line("bdi", name));

      list.append(ns.element("li", {}, b));
    }
    return list;
  }

  Object.assign(ns, {WORDS, family, changeText, amountText, tipContent, detailsContent, sourceBox});
})(globalThis.pyebpf ??= {});
