// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What the page says of its recordings: the line below the title, and Info.
(function (ns) {
  "use strict";

  const LOST_MUCH = 0.01; // share of lost samples from which they are pointed out

  const rateOf = (r) => r.rate_hz || (r.interval_ns ? Math.round(1e9 / r.interval_ns) : 0);
  const lostShare = ({lost = 0, ticks = 0}) => lost && lost / (lost + ticks);
  const lostText = (r) => r.lost ? `${ns.count(r.lost)} (${ns.percent(lostShare(r))})` : "nothing";
  const rateText = (r) => rateOf(r) ? `${ns.count(rateOf(r))} Hz` : "";
  const bdi = (text) => ns.element("bdi", {}, text);

  const NORMALIZE = {share: "by share of the run", second: "per second", absolute: "in all",
    work: "per unit of work"};

  // Of the facts; current: a run of that side; side: the one that is shown, all: what it has in the unit.
  function headFacts(meta, current, {side, all, waits, unit, amount, isRange}) {
    const list = [], runs = meta.runs.filter((r) => r.side === side);
    const sum = (of) => runs.reduce((whole, r) => whole + (of(r) || 0), 0);
    const time = sum((r) => r.duration_ns), losses = {lost: sum((r) => r.lost), ticks: sum((r) => r.ticks)};
    const each = (of, from, separator) => [...new Set(from.map(of).filter(Boolean))].join(separator);
    const fact = (key, foreign, className = "") => {
      const text = ns.visible(foreign);

      if (text)
        list.push(ns.element("div" + className, {title: text}, ns.element("dt", {}, key),
          ns.element("dd", {}, bdi(text))));
    };

    fact(unit.name, unit.isTick ? ns.count(all) : amount(all));
    if (all > waits && waits > 0) {
      fact("CPU", amount(all - waits));
      fact("Waiting", amount(waits));
    }
    fact("Over", time && !isRange ? ns.duration(time / 1e6) : "");
    if (unit.isTick) {
      fact("Lost", lostText(losses), lostShare(losses) >= LOST_MUCH ? ".lost" : "");
      fact("Rate", rateText(current));
    }
    fact("Python", each((p) => p.python, meta.processes, ", "));
    fact("Host", current.host ?? "");
    fact("Compared", NORMALIZE[meta.diff?.normalize] ?? meta.diff?.normalize ?? "");
    fact("Command", meta.runs.some((r) => r.side === ns.SIDE_BASE) ? each((r) => r.command, meta.runs, " → ") : "");
    return list;
  }

  function runFacts(r, hasKinds) {
    const rows = [];
    const row = (key, value) => {
      if (value !== undefined && value !== null && value !== "")
        rows.push(ns.element("dt", {}, key), ns.element("dd", {}, bdi(ns.visible(String(value)))));
    };

    row("File", r.file);
    row("Command", r.command);
    row("Target", r.target);
    row("Started", r.start ? new Date(r.start * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC" : "");
    row("Lasted", r.duration_ns ? ns.duration(r.duration_ns / 1e6) : "");
    row("Samples", r.ticks === undefined || hasKinds ? "" : ns.count(r.ticks));
    row("Lost", lostText(r));
    row("Rate", rateText(r));
    row("Mode", r.mode);
    row("Event", r.event);
    row("Host", r.host);
    row("Kernel", r.kernel);
    row("pyebpf", r.version);
    row("Imported from", r.source);
    return ns.element("dl.about", {}, ...rows);
  }

  // The content of Info.
  function aboutContent({runs, notes = [], counters = [], shown}) {
    const isDiff = runs.some((r) => r.side === ns.SIDE_BASE);
    const counted = counters.filter(([, ...values]) => values.some(Boolean));

    return [
      ...runs.flatMap((r) => [ns.element("h2", {}, !isDiff ? "Recording"
        : r.side === ns.SIDE_BASE ? "Baseline" : "Current"), runFacts(r, shown)]),
      ...notes.map((note) => ns.element("p.said", {}, bdi(ns.visible(note)))),
      ...counted.length ? [ns.element("details", {}, ns.element("summary", {}, "Counters of the recorder"),
        ns.element("dl.about", {}, ...counted.flatMap(([name, ...values]) => [ns.element("dt", {}, name),
          ns.element("dd", {}, values.map(ns.count).join(" → "))])))] : [],
    ];
  }

  Object.assign(ns, {headFacts, aboutContent});
})(globalThis.pyebpf ??= {});
