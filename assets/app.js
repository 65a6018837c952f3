// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Wires the page: state -> active data -> layout -> graph, table, heatmap, details. Controls change
// the state only, through set(); everything on screen follows from it.
(function (ns) {
  "use strict";

  const $ = (id) => document.getElementById(id);

  const VIEWS = [
    ["base", "Base", "The baseline alone (b)"],
    ["head", "Head", "The current side alone (h)"],
    ["diff", "Diff", "The current side, coloured by what changed (d)"],
    ["elided", "Elided", "Call paths that are gone from the current side (e)"],
  ];
  const SHAPES = [
    ["call", "Calls", "From the program down to what it calls"],
    ["inverted", "Callers", "From where the time goes up to who called it (i)"],
    ["sandwich", "Sandwich", "Callers and callees of the chosen function (s)"],
  ];
  const MEASURES = [
    ["total", "Total", "Colours and source lines show total time (with callees)"],
    ["self", "Self", "Colours and source lines tell about a function's own time"],
  ];
  const BASES = [["current", "current time"], ["baseline", "baseline time"],
    ["union", "the larger of both"], ["delta", "size of the change"]];
  const PALETTES = {
    auto: "automatic", diff: "change, red to blue", colourblind: "change, orange to blue",
    modules: "by module", heat: "by share of time",
  };
  const KEYS = [
    ["← ↑ ↓ →", "walk the graph"], ["Enter", "zoom to the chosen box"],
    ["Esc", "back: clear search, zoom, selection"], ["/", "search by regular expression"],
    ["n  N", "next, previous match"], ["i", "callers first, and back"],
    ["s", "sandwich of the chosen function"], ["d  b  h  e", "diff, base, head, elided"],
    ["c", "copy the chosen stack"], ["t", "light or dark"], ["?", "this list"],
    ["Ctrl + wheel", "zoom at the pointer"], ["Shift + wheel, drag", "move sideways"],
    ["Drag over time", "count that range only"],
    ["Ctrl + drag over time", "compare with that range"],
  ];
  // Fields whose change needs the active data anew; the rest only repaints or moves.
  const DATA_FIELDS = ["view", "basis", "by", "shape", "func", "process", "thread", "pod", "select", "group",
    "range", "baseRange", "imports", "libraries"];
  const COLOUR_FIELDS = ["measure", "effect", "marks", "palette", "theme"];
  const SCENE_FIELDS = ["q", "label"];
  const WAITS = /^<(?!native|GC|not )/; // markers of what is waited for
  const NOWHERE = {zoom: null, span: null, sel: null}; // places are of one tree
  const JUDGED_AT_ONCE = 100000; // boxes

  const KINDS = {wall: ["Wall", "CPU time plus waiting time"], cpu: ["CPU", "Time on a CPU"],
    "off-cpu": ["Waiting", "Time that threads were not on a CPU, by what for"],
    "gil-contention": ["GIL", "Time other threads waited for the GIL, by holder"],
    memory: ["Memory", "Growth of resident memory"], task: ["Task time", "How long tasks waited, each by itself"]};

  const ORIGINS = {own: "", import: "import machinery", library: "installed package",
    stdlib: "standard library", native: "native code", kernel: "kernel", marker: "", task: "", part: ""};

  // --- names of functions, worked out when first needed ------------------------------------------

  // merged: names of those that stand for a whole file or module; null: none do.
  function functionFacts(report, merged) {
    const facts = new Array(report.functions.count);

    return (func) => facts[func] ??= factsOf(report, func, merged?.[func]);
  }

  function factsOf(report, func, merged) {
    const rawName = merged ?? ns.functionName(report, func), rawFile = ns.functionFile(report, func);
    const line = merged ? 0 : report.functions.line[func], file = ns.visible(rawFile);
    const origin = ns.ORIGINS[report.functions.origin[func]];
    const name = func === 0 ? "all samples" : ns.visible(rawName) || "(no name)";

    return {name, file, line, origin, module: ns.visible(report.strings.get(report.functions.module[func])),
      place: file && file !== "~" ? file + (line ? ":" + line : "") : ORIGINS[origin] || ""};
  }

  // --- the page ----------------------------------------------------------------------------------

  function startPage(whole) {
    let report = whole; // by parts, if these are asked for: see select()
    const run = (side) => report.meta.runs.find((r) => r.side === side);
    const isDiffReport = Boolean(run(ns.SIDE_BASE));
    const current = run(ns.SIDE_CURRENT) || report.meta.runs[0] || {};
    let state = ns.readState(location.hash), theme = "light", style = null;
    let panes = [], search = null, found = null, matched = null, table = null, legendOf = "";
    let series = null, plain = null, idles = null, sumsOf = ""; // see forgetSums()
    let choices = null; // see choicesOf()
    let selection = {}, unit = null, merged = null, grouped = "", facts = functionFacts(report); // see select()

    // Of what is shown: see ns.kindOf().
    const kindOf = () => selection.kind ?? ns.kindOf(report.meta);
    const kindName = ({name}) => KINDS[name]?.[0] ?? ns.visible(name);
    const hasWaits = report.meta.kinds?.some(ns.isWaiting);

    // What a tick is of: a comparison is of an average run, of a second or of a unit of work. name: of
    // what is counted.
    function unitOf() {
      const {diff, runs} = report.meta, kind = kindOf(), now = runs.filter((r) => r.side === ns.SIDE_CURRENT);
      const sum = (of) => now.reduce((all, r) => all + (of(r) || 0), 0);
      const isRate = diff?.normalize === "second";
      const many = !diff ? 1 : isRate ? sum((r) => r.duration_ns / 1e9)
        : diff.normalize === "work" ? sum((r) => r.work) : now.length;

      const {unit: of, period = current.interval_ns || 0} = kind, lasts = !of || of === "ns" ? period : 0; // ns
      const isTick = !of || lasts > 1;

      return {ms: lasts / 1e6 / (many || 1), each: (of && period) / (many || 1) || 1, isBytes: of === "bytes",
        per: isRate ? "/s" : "", name: isTick ? "Samples" : kindName(kind), isTick, hasTicks: isTick && lasts > 0};
    }

    // Puts a word in Select in the place of what is there.
    function setWord(pattern, word) {
      set({select: [word, state.select.replace(pattern, "").trim()].filter(Boolean).join(" ")}, true);
    }

    // What is worked out of the words in Select, for all that is drawn.
    function select() {
      const isOther = grouped !== state.group;

      if (isOther)
        report = ns.groupReport(whole, grouped = state.group);
      selection = ns.selectionOf(report, state);
      unit = unitOf();
      if (merged !== selection.names || isOther)
        facts = functionFacts(report, merged = selection.names);
    }

    const comparing = () => ns.isComparing(report, state);

    function viewOf() {
      if (!comparing())
        return "head";
      return state.view === "auto" ? "diff" : state.view;
    }

    function paletteOf() {
      const isDiff = viewOf() === "diff" || viewOf() === "elided";

      if (state.palette === "auto" || !isDiff && ["diff", "colourblind"].includes(state.palette))
        return isDiff ? "diff" : "modules";
      return state.palette;
    }

    const isDifferential = () => ["diff", "colourblind"].includes(paletteOf());

    // Not before the graph is on screen: it takes a pass over the rows.
    const choicesOf = () => choices ??= ns.filterChoices(report);

    // --- state -> active data

    function hiddenFunctions() {
      const hide = {import: !state.imports, library: !state.libraries, stdlib: !state.libraries};

      const {hidden} = selection;

      if (state.imports && state.libraries)
        return hidden ?? null;
      return Uint8Array.from({length: report.functions.count},
        (_, f) => Number(f > 0 && Boolean(hide[facts(f).origin]) || Boolean(hidden?.[f])));
    }

    function queryOf(shape) {
      const {basis, by, func, process, thread, pod, select, range, baseRange} = state;

      return {view: viewOf(), basis, by: selection.by ?? by, shape, func, process, thread, pod, select, range, baseRange,
        hidden: hiddenFunctions()};
    }

    function shapesShown() {
      if (state.shape === "sandwich")
        return state.func > 0 && state.func < report.functions.count ? ["callers", "callees"]
          : ["call"];
      return [state.shape];
    }

    // What one pane shows; see flamegraph.js for the scene.
    function derive(pane) {
      const active = pane.active = ns.activeData(report, queryOf(pane.shape));
      const {tree, width} = active, all = wholeOf(active);

      pane.boxes = ns.layout(tree, width.total);
      pane.verdicts = null;
      pane.isJudged = tree.count < JUDGED_AT_ONCE || Boolean(report.classes && !active.map &&
        ns.isWhole(report, state));
      pane.side = {base: active.base, elided: width}[viewOf()] || active.current;
      pane.root = (viewOf() === "base" ? all.base.total[0]
        : all.current.total[0] || width.total[0]) || 1;
      pane.missing = viewOf() === "diff" ? missingBelow(active) : null;
    }

    // Null while there is nothing to judge by, or not yet: see judge().
    function verdictsOf(pane) {
      if (!pane.active.base || !pane.isJudged)
        return null;
      return pane.verdicts ??= ns.classify(pane.active, {marks: state.marks});
    }

    // Baseline time of removed callees, in current ticks, at the node they are missing from.
    function missingBelow(active) {
      if (!active.base)
        return null;
      const {tree, base, current, scale} = active, missing = new Float32Array(tree.count);

      for (let i = 1; i < tree.count; i++)
        if (ns.isGone(active, i) && current.total[tree.parent[i]] > 0)
          missing[tree.parent[i]] += base.total[i] * scale;
      return missing;
    }

    // --- colours

    function coloursOf(pane) {
      const scheme = paletteOf(), {tree} = pane.active;

      if (scheme === "modules")
        return ns.colourByFunction(report, tree, (f) => {
          const {module, name, origin} = facts(f), isNamed = origin === "part" || hasWaits && WAITS.test(name);

          return ns.moduleColour(module || (isNamed ? name : ["marker", "task"].includes(origin) ? "" : origin), name,
            isNamed || origin === "own");
        });
      if (scheme === "heat") {
        const {root, side: {[state.measure]: weight}} = pane;
        const out = new Uint8Array(tree.count);

        for (let i = 0; i < out.length; i++)
          out[i] = ns.heatColour(weight[i] / root);
        return out;
      }
      return viewOf() === "elided" ? ns.elidedColours(pane.active) : changeColours(pane);
    }

    function changeColours(pane) {
      const verdicts = verdictsOf(pane);

      if (!verdicts)
        return new Uint8Array(pane.active.tree.count);
      const classes = verdicts[state.measure].slice();

      if (state.effect === "impact")
        ns.colourByImpact(pane.active, state.measure, classes);
      ns.softenNew(pane.active.tree, classes);
      return classes;
    }

    // Outlined: the topmost new box of a path; in Elided, callers that are still there.
    function marksOf(pane) {
      const isNew = ns.CLASSES.indexOf("new"), {active, colour} = pane;

      if (!isDifferential())
        return null;
      return viewOf() === "elided" ? (node) => node && !ns.isGone(active, node) ? 2 : 0
        : (node) => Number(colour[node] === isNew);
    }

    // Underlined: boxes whose own time changed for sure, where colours tell of the total.
    function ownMarks(pane) {
      if (!isDifferential() || viewOf() !== "diff" || state.measure === "self")
        return null;
      const last = ns.CLASSES.indexOf("rare"), own = verdictsOf(pane)?.self;

      return own ? (node) => own[node] > last : null;
    }

    // --- texts of boxes

    const GLYPHS = [...ns.CLASSES, "new"].map((name) =>
      ({slower: "+ ", faster: "− ", new: "+ ", removed: "− "})[ns.family(name)] || "");

    function nameOf(tree, node) {
      const {name, module, file} = facts(tree.func[node]);
      const line = tree.line && tree.line[node] ? ":" + tree.line[node] : "";

      if (!node && state.shape === "sandwich" && state.func)
        return "samples with " + facts(state.func).name;
      if (!node || state.label === "function")
        return name + line;
      if (state.label === "module")
        return (module ? module + "." : "") + name + line;
      return `${name} (${file}${line})`;
    }

    // For boxes too narrow for the whole name.
    function shortNames(tree, node) {
      const {name, origin} = facts(tree.func[node]);

      return !node || ["native", "kernel", "marker", "task", "part"].includes(origin) ? [] : [ns.lastPart(name)];
    }

    function sceneOf(pane) {
      const {tree, waits, width} = pane.active, palette = ns.palette(paletteOf(), theme, hasWaits);
      const glyphs = isDifferential(), {side} = pane;

      return {tree, boxes: pane.boxes, colour: pane.colour, palette, matched,
        waits: palette.waits && waits?.total, weight: width.total,
        mark: pane.mark, own: pane.own, notch: state.basis === "current" ? pane.missing : null,
        isUpward: pane.shape === "callers",
        labels: (node) => [nameOf(tree, node), ...shortNames(tree, node)]
          .map((name) => (glyphs ? GLYPHS[pane.colour[node]] : "") + name),
        note: (node) => noteOf(pane, node),
        describe: (node) => [nameOf(tree, node), ns.percent(side.total[node] / pane.root),
          ...pane.active.base && viewOf() === "diff" ? [
            ns.WORDS[ns.family(ns.CLASSES[classAt(pane, node)])].toLowerCase(),
            changeAt(pane, node)] : []].join(", "),
      };
    }

    function noteOf(pane, node) {
      const {active, side} = pane;

      if (viewOf() !== "diff" || !active.base)
        return ns.percent(side.total[node] / pane.root);
      return ns.CLASSES[classAt(pane, node)] === "undetermined" ? "" : changeAt(pane, node);
    }

    const changeAt = ({active: {current: now, base, scale}}, node) => ns.changeText(
      {current: {total: now.total[node]}, base: {total: base.total[node]}, scale});

    // "slower", "faster" or, where nothing is sure, "".
    const leaning = (c) => ({slower: "slower", new: "slower", faster: "faster", removed: "faster"})[
      ns.family(ns.CLASSES[c ?? 0])] || "";

    const classAt = (pane, node) => verdictsOf(pane)?.total[node] ?? 0;

    // Everything that is said about a box: details.js.
    function figuresOf(pane, node) {
      const {active, side} = pane, {tree, base, scale} = active, func = tree.func[node];
      const {place, file, line, origin} = facts(func), verdicts = verdictsOf(pane);
      const view = viewOf(), zoomed = pane.zoom < 0 ? 0 : pane.zoom;
      const sideName = view === "base" ? "base" : "current";
      const of = (s) => ({self: s.self[node], total: s.total[node]});

      return {node, name: nameOf(tree, node), place, file, defined: line, line: tree.line ? tree.line[node] : 0,
        origin: ORIGINS[origin], unit, scale, measure: state.measure,
        waits: active.waits && of(active.waits), get reasons() { return reasonsOf(pane, node); },
        current: of(active[sideName]), base: base && sideName === "current" ? of(base) : null,
        removed: view === "elided" ? of(active.width) : null,
        root: pane.root,
        selection: zoomed ? side.total[zoomed] || pane.root : pane.root,
        change: ns.CLASSES[classAt(pane, node)],
        verdict: {self: leaning(verdicts?.self[node]), total: leaning(verdicts?.total[node])},
        // only when asked for: of a page as it was written the first interval takes a while
        get low() { return verdicts?.measures(node).low; },
        get high() { return verdicts?.measures(node).high; },
        missing: pane.missing ? pane.missing[node] : 0,
        get notes() {
          return [renamedNote(func), matchNote(pane, node),
            ...node ? [] : [...certaintyNotes(verdicts), ...report.meta.notes || []]]
            .filter(Boolean).map(ns.visible);
        }};
    }

    // [name, ticks] of what is waited for in and below a box, the longest first; of the other way round
    // nothing, nor of more boxes than a pointer has time for.
    function reasonsOf({active: {tree, waits}, shape}, node) {
      const sums = {}, {end, func} = tree;

      if (waits && shape.startsWith("call") && shape !== "callers" && end[node] - node < JUDGED_AT_ONCE)
        for (let i = node; i < end[node]; i++)
          if (waits.self[i])
            sums[facts(func[i]).name] = (sums[facts(func[i]).name] ?? 0) + waits.self[i];
      return Object.entries(sums).sort((a, b) => b[1] - a[1]);
    }

    function matchNote({active}, node) {
      const match = active.map || !report.classes ? "" : ns.MATCHES[report.classes.match[node]];

      const how = {inserted: "inserted", deleted: "removed"}[match];

      return how ? `This call was ${how} between two calls that exist on both sides; the calls below it are compared.`
        : "";
    }

    // What the reader must know of all verdicts.
    function certaintyNotes(verdicts) {
      if (!verdicts)
        return [];
      return [
        queryOf().by === "line" && !state.baseRange
          ? "Lines are compared by number: moved code reads as changed." : "",
        Math.abs(Math.log(verdicts.centre)) > 0.005 ? "Changes are relative to the typical function: " +
          `function did: ${ns.ratio(verdicts.centre)}.` : "",
      ];
    }

    function renamedNote(func) {
      const from = report.functions.renamedFrom[func];

      return from ? `In the baseline: ${facts(from).name} (${facts(from).place})` : "";
    }

    // --- panes

    function makePane(shape, index, count) {
      const canvas = ns.element("canvas", {id: "flame" + index, tabIndex: 0, role: "tree",
        "aria-label": shape === "callers" ? "Flame graph of callers" : "Flame graph"});
      const overlay = ns.element("canvas.overlay", {"aria-hidden": "true"});
      const spacer = ns.element("div");
      const scroller = ns.element("div.scroller", {},
        ns.element("div.stage", {}, canvas, overlay), spacer);
      const box = ns.element("div.pane");
      const pane = {shape, box, canvas, zoom: -1, selected: -1};

      if (count > 1)
        box.append(ns.element("h3", {}, shape === "callers" ? "Callers of " : "Called by ",
          ns.element("bdi", {}, facts(state.func).name)));
      box.append(scroller);
      pane.graph = ns.flameGraph({canvas, overlay, scroller, spacer}, {
        select: (node, corner, event) => corner ? openElided(pane, node) : pick(pane, node, event),
        hover: (node, event) => hover(pane, node, event),
        view: (view) => {
          if (pane === mainPane()) {
            minimap.view(view);
            keepSpan(pane);
          }
        },
      }, () => style);
      canvas.onfocus = () => {
        if (pane.selected < 0)
          choose(pane, pane.zoom < 0 ? 0 : pane.zoom);
      };
      return pane;
    }

    // Callers take the height they need, up to a half.
    function fitPanes() {
      const [callers, callees] = panes;

      if (callees)
        callers.box.style.flex = `0 1 ${callers.boxes.rows * style.row + 2 * style.rem}px`;
    }

    const mainPane = () => panes[panes.length - 1];

    function makePanes() {
      const shapes = shapesShown();

      if (panes.map((p) => p.shape).join() === shapes.join() && state.shape !== "sandwich")
        return;
      panes = shapes.map((shape, i) => makePane(shape, i, shapes.length));
      $("panes").replaceChildren(...panes.map((p) => p.box));
    }

    function openElided(pane, node) {
      set({view: "elided", zoom: ns.pathOf(pane.active.tree, node),
        sel: ns.pathOf(pane.active.tree, node)}, true);
    }

    // A click: chooses and zooms; on the zoomed box itself, one step out.
    function pick(pane, node, event) {
      const isAgain = node === pane.zoom && node === pane.selected;
      const zoom = event?.altKey ? pane.zoom : isAgain ? pane.active.tree.parent[node] : node;

      choose(pane, node);
      zoomPane(pane, zoom);
      pane.canvas.focus({preventScroll: true});
    }

    function choose(pane, node) {
      for (const other of panes)
        if (other !== pane) {
          other.selected = -1;
          other.graph.select(-1);
        }
      pane.selected = node;
      pane.graph.select(node);
      if (pane === mainPane())
        set({sel: node > 0 ? ns.pathOf(pane.active.tree, node) : null});
      drawDetails();
    }

    // What the wheel or the minimap came to belongs to the state as the box zoomed to does.
    function keepSpan({graph, boxes, active: {tree}, zoom}) {
      const {from, to} = graph.view(), whole = boxes.x1[0];
      const box = ns.boxOf(boxes, tree, Math.max(0, zoom));
      const isNear = (a, b) => Math.abs(a - b) < whole * 1e-9;
      const isBox = box < 0 || isNear(from, boxes.x0[box]) && isNear(to, boxes.x1[box]);

      set({span: isBox ? null : [from, to].map((x) => Number((x / whole).toFixed(9)))});
    }

    function zoomPane(pane, node) {
      pane.zoom = node > 0 ? node : -1;
      if (pane === mainPane())
        set({zoom: node > 0 ? ns.pathOf(pane.active.tree, node) : null}, true);
      pane.graph.zoomTo(Math.max(0, node), true);
      drawTrail();
      drawDetails();
    }

    // --- drawing the parts

    function drawData() {
      const isFocused = $("panes").contains(document.activeElement);

      select();
      $("tip").hidden = true;
      makePanes();
      forgetSums();
      for (const pane of panes)
        derive(pane);
      fitPanes();
      heats.clear();
      siteSums = null;
      drawColours(false);
      restorePlaces();
      drawEmpty();
      if (isFocused)
        mainPane().canvas.focus({preventScroll: true});
    }

    // Large trees are shown in grey first: what is sure of a million boxes takes a second.
    function judge() {
      const waiting = panes.filter((p) => p.active.base && !p.isJudged);

      for (const pane of waiting)
        pane.isJudged = true;
      if (waiting.length)
        drawColours();
    }

    // Soon: after the frame that shows the graph (it is painted by other threads, which want the
    // CPUs), and once however often it is asked for. What needs intervals of every function comes
    // last.
    const SOON = [
      () => {
        drawHead();
        drawLegend();
        minimap.show(sceneOf(mainPane()));
        drawHeatmap();
        drawFilters();
      },
      () => {
        drawTable();
        drawDetails();
      },
      judge,
    ];
    let soonFrame = 0, soonTimer = 0;

    function drawSoon() {
      const step = (i) => {
        SOON[i]();
        if (i + 1 < SOON.length)
          soonTimer = setTimeout(step, 0, i + 1);
      };

      cancelAnimationFrame(soonFrame);
      clearTimeout(soonTimer);
      soonFrame = requestAnimationFrame(() => {
        soonFrame = requestAnimationFrame(() => {
          soonTimer = setTimeout(step, 0, 0);
        });
      });
    }

    // Of a large report, the table and the timeline take as long as the graph: they are kept while
    // only the graph's shape changes.
    function forgetSums() {
      const key = JSON.stringify([viewOf(), DATA_FIELDS.map((field) =>
        !["shape", "func"].includes(field) && state[field])]);

      if (key === sumsOf)
        return;
      sumsOf = key;
      table = series = plain = idles = null;
    }

    // The table is of all that is active, whatever the shape.
    function mainTable() {
      const shown = panes.find((p) => p.shape === "call");

      return shown ? shown.active : plain ??= ns.activeData(report, queryOf("call"));
    }

    // With the whole at its root: a sandwich has the samples of one function there.
    const wholeOf = (active) => state.shape === "sandwich" ? mainTable() : active;

    function functionRows(active) {
      const figures = ns.functionTable(active);

      return {...figures, scale: active.scale,
        removed: viewOf() === "elided"
          ? ns.functionTable({...active, current: active.width, base: null}) : null,
        allRemoved: active.width.total[0],
        all: active.current.total[0], allBase: active.base ? active.base.total[0] : 0,
        verdicts: active.base && viewOf() === "diff" && ns.classifyFunctions
          ? ns.classifyFunctions(active, figures, {marks: state.marks}) : null};
    }

    function drawColours(isKept = true) {
      for (const pane of panes) {
        pane.colour = coloursOf(pane);
        pane.mark = marksOf(pane);
        pane.own = ownMarks(pane);
      }
      drawScenes(isKept);
    }

    function drawScenes(isKept = true) {
      drawSearch();
      for (const pane of panes) {
        pane.graph.show(sceneOf(pane), isKept);
      }
      drawSoon();
    }

    function drawSearch() {
      let none = "";

      search = ns.compile(state.q);
      found = matched = null;
      if (search) {
        const {tree, width, base} = mainPane().active;
        const texts = (f) => f ? [facts(f).name, facts(f).file] : [];

        matched = ns.matchFunctions(search, report.functions.count, texts);
        found = ns.covered(tree, width.total, matched);
        none = !found.nodes && base?.total.some((ticks, i) => ticks && matched[tree.func[i]])
          ? "only removed" : "no match";
      }
      const whole = mainPane().active.width.total[0] || 1;

      $("matched").textContent = found
        ? (search.error && "taken as text: ") + (found.nodes
          ? `${ns.percent(found.weight / whole)} in ${ns.count(found.nodes)}` : none)
        : "";
      $("matched").title = search?.error || "Share of the time that the matches cover, each sample once";
      $("matched").classList.toggle("none", Boolean(found && !found.nodes));
      $("next").hidden = $("previous").hidden = !(found && found.nodes);
      if ($("query").value !== state.q)
        $("query").value = state.q;
    }

    function restorePlaces() {
      const pane = mainPane(), {tree} = pane.active;
      const find = (path) => path && path.length ? ns.nodeAt(tree, path) : -1;

      pane.zoom = find(state.zoom);
      pane.selected = find(state.sel);
      pane.graph.zoomTo(Math.max(0, pane.zoom), false);
      if (state.span)
        pane.graph.zoom(...state.span.map((x) => x * pane.boxes.x1[0]), false);
      pane.graph.select(pane.selected);
      drawTrail();
    }

    function drawTrail() {
      const pane = mainPane(), {tree} = pane.active, path = [];

      for (let i = Math.max(0, pane.zoom); i >= 0; i = tree.parent[i])
        path.unshift(i);
      const shown = path.length > 5 ? [path[0], -1, ...path.slice(-3)] : path;
      const parts = shown.map((node) => node < 0 ? ns.element("span", {}, "…")
        : ns.element("button", {type: "button", title: nameOf(tree, node),
          onclick: () => zoomPane(pane, node)}, ns.element("bdi", {}, nameOf(tree, node))));

      ns.refill($("trail"), ...parts.flatMap((p, i) => i ? [" › ", p] : [p]));
    }

    function drawDetails() {
      const pane = panes.find((p) => p.selected > 0) || mainPane();
      const node = pane.selected > 0 ? pane.selected : Math.max(0, pane.zoom);
      const subject = figuresOf(pane, node), {tree} = pane.active, path = [];

      for (let i = node; i > 0; i = tree.parent[i])
        path.unshift({node: i, name: nameOf(tree, i)});
      subject.path = path;
      subject.go = (n) => pick(pane, n);
      const func = tree.func[node], file = report.functions.file[func];
      const isSourced = node > 0 && subject.file && subject.file !== "~";

      const source = ns.element("div.source");

      functions.pick(node && !isGil() ? func : -1);
      ns.refill($("details-body"), ...ns.detailsContent(subject, source, node > 0 ? [
        ["Copy stack", "Copy the stack as text (c)", () => copyStack(pane, node)],
        ["Sandwich", "All callers and callees of this function (s)", () => sandwich(func)],
        ["Find all", "Search for this function", () => set({q: exactly(facts(func).name)})],
      ] : []));
      clearTimeout(sourceTimer);
      if (isSourced)
        sourceTimer = setTimeout(() => source.append(...sourceOf(subject, func, file)), SOURCE_MS);
    }

    // Source lines need a pass over the whole report: not while a zoom is under way.
    const SOURCE_MS = 220, heats = new Map();
    let sourceTimer = 0, siteSums = null;

    // Of a file's lines those that ran in one function. The text is of the current side's file:
    // lines of the baseline, and of what it alone has, are others.
    function sourceOf(subject, func, file) {
      const isBase = viewOf() === "base";

      if (!heats.has(file))
        heats.set(file, ns.lineHeat(report, siteSums ??= ns.siteSums(report, queryOf("call")), file));
      const {all, allBase, lines} = heats.get(file), own = linesOf(func, lines);
      const isGone = !isBase && Boolean(subject.base) && (own.size
        ? ![...own.values()].some((row) => row.total) : !subject.current.total);

      const side = isBase || isGone ? ns.SIDE_BASE : ns.SIDE_CURRENT;
      const opcodes = ns.lineOpcodes(report, queryOf("call"), func, side);
      for (const [number, row] of own)
        row.opcodes = opcodes.get(number);
      subject.all = (side === ns.SIDE_BASE ? allBase : all) || 1;
      if (side)
        return ns.sourceBox(subject, ns.sourceLines(report, file), own);
      for (const row of own.values())
        Object.assign(row, {self: row.baseSelf, total: row.baseTotal});
      return ns.sourceBox(Object.create(subject, {base: {value: null}}),
        {status: "baseline", lines: new Map()}, own);
    }

    // Map of line -> figures of its own, those of the lines that ran in a function.
    function linesOf(func, lines) {
      const {sites, nodes} = report, own = new Map();

      const isOf = (f) => (selection.groups?.[f] ?? f) === func;

      for (let s = 1; s < sites.count; s++)
        if (isOf(nodes.func[sites.node[s]]) && lines.has(sites.line[s]) && !own.has(sites.line[s]))
          own.set(sites.line[s], {...lines.get(sites.line[s])});
      return own;
    }

    const exactly = (name) => "^" + name.replace(/[$()*+.?[\\\]^{|}/]/g, "\\$&") + "$";

    function sandwich(func) {
      set({shape: "sandwich", func, ...NOWHERE}, true);
    }

    function drawHeatmap() {
      const {meta} = report, {process, thread} = choicesOf();
      const by = process.length > 1 && state.process.length !== 1 ? "process" : thread.length > 1 ? "thread" : "run";
      const side = viewOf() === "base" && isDiffReport ? ns.SIDE_BASE : ns.SIDE_CURRENT;

      series ??= ns.timeline(report, queryOf("call"), by).filter((s) => s.side === side)
        .map(({label, ticks, waits}) => ({text: ns.visible(label), ticks, waits}));
      const {blocks, text, hasTime} = ns.timeScale(meta, side), texts = [];
      const time = (r) => `${text(r[0])} – ${text(r[1])}`;

      $("graph").classList.toggle("timeless", !hasTime);
      heat.show(series, blocks, text, state.range, state.baseRange);
      if (state.range)
        texts.push(time(state.range));
      if (state.baseRange)
        texts.push(`compared with ${time(state.baseRange)}`);
      if (selection.note)
        texts.push(selection.note);
      if (selection.isBusy)
        texts.push("idle left out: " + ((idles ??= ns.idleSums(report, queryOf("call")))
          .map(([what, ticks]) => `${what} ${amount(ticks)}`).join(", ") || "none"));
      $("time-note").replaceChildren(texts.join(", "), ...state.range || state.baseRange
        ? [ns.button("Clear", "Count all of the time", () => set({range: null, baseRange: null}))] : []);
      $("heatmap").setAttribute("aria-valuemax", blocks);
      $("heatmap").setAttribute("aria-valuenow", state.range ? state.range[0] : 0);
      $("heatmap").setAttribute("aria-valuetext", texts.join(", ") || "all of the time");
    }

    // --- table

    const amount = (ticks) => ns.amountText(ticks, unit);

    // Of a name and a file; 0: the page has none.
    const functionOf = (name, file) => report.functions.name.findIndex((_, f) =>
      f && ns.functionName(report, f) === name && ns.functionFile(report, f) === file);

    const isGil = () => Boolean(report.meta.gil && state.list === "gil");
    const isGrouped = () => report !== whole, isParts = () => isGrouped() && state.list === "parts";
    const groups = ns.groupChoices(whole).map(([by, name]) => [by, ns.visible(name)]);
    const groupName = () => groups.find(([by]) => by === state.group)?.[1];
    let showList = null, listsOf = null;

    function drawLists() {
      const lists = [["functions", "Functions", "All functions"],
        ...isGrouped() ? [["parts", groupName(), "What each has; a click selects it, another one all"]] : [],
        ...report.meta.gil ? [["gil", "GIL waits", "Who waited for the GIL, and who held it"]] : []];

      if (listsOf !== grouped)
        showList = ns.segments($("lists"), lists, (list) => set({list}));
      listsOf = grouped;
      $("lists").hidden = lists.length < 2;
      $("list-title").hidden = lists.length > 1;
      showList(isParts() || isGil() ? state.list : "functions");
      ns.options($("group"), [["", "functions"], ...groups], isGrouped() ? grouped : "");
    }

    function drawGil() {
      const {gil} = report.meta;

      $("function-count").textContent = ns.count(gil.length);
      functions.show(ns.gilColumns(gil), [...gil.keys()],
        /^-?(name|waited|episodes)$/.test(state.sort) ? state.sort : "waited", () => "");
    }

    function drawTable() {
      drawLists();
      if (isGil()) {
        drawGil();
        return;
      }
      table ??= functionRows(mainTable());
      const view = viewOf(), rowsOf = (found) => ns.rowsToShow(table, view, found)
        .filter((f) => ns.isPart(report, f) === isParts());
      const found = rowsOf(matched), rows = found.length || !isParts() ? found : rowsOf(null);
      const fallback = view === "diff" ? "+dtotal" : isParts() ? "total" : "self"; // +: by size, of either sign
      const shown = ns.tableColumns({table, view, rows, facts, amount, isSorted: Boolean(state.sort),
        part: isParts() ? groupName() : undefined});
      const sort = shown.some((c) => c.key === state.sort.replace(/^-/, "")) ? state.sort : fallback;

      $("function-count").textContent = ns.count(rows.length);
      functions.show(shown, rows, sort, ns.accentsOf(table));
    }

    // --- head, legend, menus

    function drawHead() {
      const {meta} = report, active = wholeOf(mainPane().active), isBase = viewOf() === "base";
      const all = (isBase ? active.base : active.current).total[0];

      document.title = ns.visible(meta.title || "profile") + " – pyebpf";
      $("title").textContent = ns.visible(current.target || meta.title || "profile");
      $("title").title = $("title").textContent;
      $("facts").replaceChildren(...ns.headFacts(meta, current, {all, waits: active.waits?.total[0], unit, amount,
        side: isBase && isDiffReport ? ns.SIDE_BASE : ns.SIDE_CURRENT, isRange: state.range || selection.slots}));
      drawChange(active);
      $("views").hidden = !comparing();
      showView(viewOf());
      showKind(kindOf().name);
      showShape(state.shape);
      showMeasure(state.measure);
      const count = comparing() ? ns.elided(active).count : 0;
      const elidedButton = $("views").querySelector("[data-value=elided]");

      elidedButton.disabled = !count;
      elidedButton.replaceChildren("Elided", ...count
        ? [" ", ns.element("span.count", {}, ns.count(count))] : []);
      $("page").classList.toggle("differs", comparing());
      $("basis-label").hidden = viewOf() !== "diff";
      ns.options($("basis"), BASES, state.basis);
    }

    function drawChange({base, current: now, scale}) {
      const box = $("change");

      box.hidden = !base || !base.total[0];
      if (box.hidden)
        return;
      const before = base.total[0] * scale, after = now.total[0], d = report.meta.diff?.total;
      const isAll = d && ns.isWhole(report, state) && Number.isFinite(d.low) && Number.isFinite(d.high);
      const name = state.shape === "sandwich" ? isAll && d.class || ""
        : ns.CLASSES[classAt(mainPane(), 0)];

      box.className = "change " + ns.family(name);
      box.replaceChildren(ns.element("strong", {}, ns.ratio(after / before)),
        "total time, ", isAll ? `${ns.ratio(d.low)} … ${ns.ratio(d.high)}`
          : `${amount(before)} → ${amount(after)}`);
      box.title = `All of the time: ${amount(before)} in the baseline, ${amount(after)} now` +
        (isAll ? "; below, the 95% interval" : "");
    }

    function drawLegend() {
      const scheme = paletteOf(), palette = ns.palette(scheme, theme, hasWaits), box = $("legend");
      const waits = palette.waits && mainPane().active.waits;
      const subject = [scheme, theme, viewOf(), state.effect, state.measure, Boolean(waits)].join();

      if (subject === legendOf) // the slider may be in somebody's hand
        return;
      legendOf = subject;
      const sw = (colour, text) => ns.swatch(palette, colour, text);
      const parts = [], at = (name) => ns.CLASSES.indexOf(name);

      if (isDifferential() && viewOf() === "diff") {
        parts.push(ns.element("span.keys-of", {}, sw(at("faster4"), "− faster"),
          sw(at("unchanged"), "unchanged"), sw(at("undetermined"), "cannot tell"),
          sw(at("slower4"), "+ slower"), sw(at("new"), "+ new"), sw(at("removed"), "− removed"),
          ns.element("span.swatch", {}, ns.element("i.corner-of"),
            "removed calls below"),
          ...state.measure === "total" ? [ns.element("span.swatch", {},
            ns.element("i.ownline"), "own time changed")] : []));
        if (state.effect === "ratio") {
          parts.push(ns.element("span.steps", {}, "Steps of a change"),
            ns.marksSlider(state.marks, ["unchanged", "slower1", "slower2", "slower3",
              "slower4"].map((n) => palette.fills[at(n)]), (marks) => set({marks})));
        } else {
          parts.push(ns.element("span", {}, "Steps: 0.1, 0.5, 2 and 5% of the total"));
        }
      } else if (isDifferential()) {
        parts.push(sw(at("removed"), "− only in the baseline"),
          sw(0, "still there, outlined"));
      } else if (scheme === "heat") {
        parts.push(ns.element("span.keys-of", {}, sw(1, "little"),
          sw(6, ""), sw(ns.HEAT_STEPS, `much ${state.measure} time`)));
      } else {
        parts.push(ns.element("span.keys-of", {}, sw(1, ""), sw(1 + 24, ""),
          sw(1 + 48, "your code, a hue for each module"),
          sw(ns.LIBRARY + 1, ""), sw(ns.LIBRARY + 1 + 48, "libraries"), sw(0, "other")));
      }
      if (waits)
        parts.push(sw(palette.waits[1], ""), sw(palette.waits[palette.waits.length - 1], "waiting"));
      box.replaceChildren(...parts);
      document.documentElement.dataset.palette = scheme;
    }

    function drawEmpty() {
      const isEmpty = !(mainPane().active.width.total[0] > 0), box = $("empty");

      box.hidden = !isEmpty;
      if (!isEmpty)
        return;
      const isFiltered = !ns.isWhole(report, state) || !state.imports || !state.libraries;
      const [title, text] = viewOf() === "diff" && mainPane().active.base.total[0]
        ? ["Nothing is left", "Only the baseline has samples here: open the Elided view."]
        : isFiltered ? ["No samples match", "The filters or the time range leave nothing over."]
          : viewOf() === "elided"
            ? ["Nothing was removed", "Every call path of the baseline is still there."]
            : ["No samples", "The recording holds no Python stacks. Was the program running, on " +
              "a CPU?"];

      box.replaceChildren(ns.element("strong", {}, title), text, ns.element("br"),
        ...isFiltered ? [ns.button("Clear filters", "", () => set({process: [], thread: [], pod: [],
          select: "", range: null, baseRange: null, imports: true, libraries: true}))] : []);
    }

    // Samples by their functions, in the words of the command line.
    function selectionMenu() {
      const {error} = selection;
      const input = ns.element("input", {type: "text", className: "selection", value: state.select,
        placeholder: "--focus 'parse*'", spellcheck: false, ariaLabel: "Selection",
        onchange: () => set({select: input.value.trim()}, true)});
      const hint = ns.element("p", {className: error ? "wrong" : ""}, error || ns.SELECTION_HELP);
      const menu = ns.element("details.menu", {}, ns.element("summary", {}, "Select"),
        ns.element("div.sheet", {}, input, hint));

      if (state.select)
        menu.classList.add("chosen");
      return menu;
    }

    function drawFilters() {
      const titles = {process: "Process", thread: "Thread", pod: "Runs in"}, parts = [];
      const choices = choicesOf(), whole = choices.process
        .reduce((sum, {key, ticks}) => ns.withoutNumber(key) === key ? sum + ticks : sum, 0);

      for (const [dimension, title] of Object.entries(titles)) {
        if (choices[dimension].length < 2)
          continue;
        const sheet = ns.element("div.sheet"), chosen = state[dimension];
        const menu = ns.element("details.menu", {}, ns.element("summary", {},
          title + (chosen.length ? `: ${ns.count(chosen.length)}` : "")), sheet);

        if (chosen.length)
          menu.classList.add("chosen");
        ns.checkboxes(sheet, choices[dimension].slice(0, 500).map(({key, label, ticks}) =>
          [key, ns.visible(label), ns.percent(ticks / (whole || 1)), chosen.includes(key)]),
        (keys) => set({[dimension]: keys}, true));
        parts.push(menu);
      }
      parts.push(selectionMenu());
      const open = [...$("filters").children].findIndex((m) => m.open);

      if (parts[open])
        parts[open].open = true;
      ns.refill($("filters"), ...parts);
    }

    function drawShown() {
      const sheet = $("shown"), box = (key, text, checked, change) => {
        const input = ns.element("input", {type: "checkbox", checked, onchange: () => change(input.checked)});

        return ns.element("label", {}, input, text);
      };
      const select = (text, key, list) => {
        const s = ns.element("select", {onchange: () => set({[key]: s.value})});

        ns.options(s, list, state[key]);
        return ns.element("label", {}, ns.element("span.faint", {}, text), s);
      };

      ns.refill(sheet,
        box("imports", "Import machinery", state.imports, (imports) => set({imports})),
        box("libraries", "Libraries", state.libraries, (libraries) => set({libraries})),
        ...report.idle ? [box("idle", "Waits for work", !selection.isBusy,
          (on) => setWord(/(^|\s)--no-idle\b/, on ? "" : "--no-idle"))] : [],
        box("by", "A box for each line", state.by === "line",
          (on) => set({by: on ? "line" : "function", ...NOWHERE})),
        select("Names", "label", [["function", "function"], ["module", "module.function"],
          ["file", "function (file)"]]),
        ...comparing() ? [select("A change is", "effect", [["ratio", "relative to itself"],
          ["impact", "relative to all"]])] : []);
    }

    function drawPalettes() {
      const isDiff = viewOf() === "diff" || viewOf() === "elided";

      ns.options($("palette"), Object.entries(PALETTES)
        .filter(([key]) => isDiff || !["diff", "colourblind"].includes(key)), state.palette);
    }

    // --- what the reader does

    function set(patch, isStep = false) {
      const changed = Object.keys(patch)
        .filter((key) => JSON.stringify(patch[key]) !== JSON.stringify(state[key]));

      if (!changed.length)
        return;
      state = {...state, ...patch};
      if ("func" in patch || "shape" in patch)
        panes = changed.includes("func") && state.shape === "sandwich" ? [] : panes;
      writeAddress(isStep, patch.span ? 500 : 120);
      update(changed);
    }

    function update(changed) {
      const has = (fields) => changed.some((key) => fields.includes(key));

      if (has(["theme"]))
        applyTheme();
      if (has(["marks"]))
        for (const pane of panes)
          pane.verdicts = null;
      if (has(DATA_FIELDS))
        drawData();
      else if (has(COLOUR_FIELDS)) {
        if (has(["marks"]))
          table = null;
        drawColours();
      } else if (has(SCENE_FIELDS))
        drawScenes();
      else if (has(["sort", "list"]))
        drawTable();
      if (has(["view", "process", "thread", "pod", "baseRange"]))
        drawPalettes();
      if (has(["view", "baseRange", "effect", "by", "imports", "libraries", "label", "select"]))
        drawShown();
    }

    let addressTimer = 0;

    // Steps can be taken back with the browser's button; the rest replaces the address, not more
    // often than browsers bear, and not between two turns of the wheel.
    function writeAddress(isStep, ms) {
      const hash = "#" + ns.writeState(state);

      clearTimeout(addressTimer);
      if (isStep && hash !== location.hash)
        history.pushState(true, "", hash);
      else
        addressTimer = setTimeout(() => history.replaceState(true, "", hash), ms);
    }

    // isBack: to a step of before; how it looked then is no part of it.
    function readAddress(isBack) {
      const before = state, {theme, palette} = state;

      state = {...ns.readState(location.hash), ...isBack ? {theme, palette} : {}};
      if (isBack)
        history.replaceState(true, "", "#" + ns.writeState(state));
      const changed = Object.keys(state)
        .filter((key) => JSON.stringify(state[key]) !== JSON.stringify(before[key]));

      if (changed.includes("func"))
        panes = [];
      if (changed.includes("marks"))
        legendOf = "";
      if (!changed.length)
        return;
      update(changed);
      if (!changed.some((key) => DATA_FIELDS.includes(key))) {
        restorePlaces();
        drawDetails();
      }
    }

    function applyTheme(isPaper) {
      theme = isPaper ? "light" : state.theme !== "auto" ? state.theme
        : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
      document.documentElement.dataset.theme = theme;
      $("theme").textContent = theme === "dark" ? "☀" : "☾";
      $("theme").setAttribute("aria-label", theme === "dark" ? "Light theme" : "Dark theme");
      readStyle();
      for (const pane of panes)
        pane.graph.restyle();
      minimap.restyle();
      heat.resize();
    }

    // Canvases take their look from the style sheet, so that each colour stands in one place.
    function readStyle() {
      const css = getComputedStyle(document.documentElement), rem = parseFloat(css.fontSize);
      const value = (name) => css.getPropertyValue("--" + name).trim();

      style = {rem, row: Math.round(parseFloat(value("row")) * rem),
        font: `${Math.round(rem * 0.86)}px ${value("sans")}`};
      for (const name of ["ink", "faint", "background", "hatch", "violet", "accent", "cell", "wait"])
        style[name] = value(name);
    }

    function hover(pane, node, event) {
      const tip = $("tip");

      tip.hidden = node < 0 || !event || event.pointerType === "touch";
      if (tip.hidden)
        return;
      if (tip.dataset.node !== pane.shape + node) {
        tip.dataset.node = pane.shape + node;
        tip.replaceChildren(...ns.tipContent(figuresOf(pane, node)));
      }
      const x = event.clientX + 14, y = event.clientY + 18;
      const left = x + tip.offsetWidth > innerWidth - 8 ? event.clientX - tip.offsetWidth - 10 : x;
      const top = y + tip.offsetHeight > innerHeight - 8 ? event.clientY - tip.offsetHeight - 12 : y;

      tip.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
    }

    function stackText({active: {tree}}, node) {
      const lines = [];

      for (let i = node; i > 0; i = tree.parent[i]) {
        const {name, place} = facts(tree.func[i]);

        lines.unshift(place ? `${name} (${place})` : name);
      }
      return lines.join("\n") + "\n";
    }

    const SAY_MS = 3000;
    let sayTimer = 0;

    function say(text) {
      $("status").textContent = text;
      clearTimeout(sayTimer);
      sayTimer = setTimeout(() => $("status").replaceChildren(), SAY_MS);
    }

    async function copyStack(pane, node) {
      const text = stackText(pane, node);

      try {
        await navigator.clipboard.writeText(text);
      } catch {
        const area = ns.element("textarea", {value: text});

        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
      }
      say("Stack copied");
    }

    function download(blob, suffix) {
      const url = URL.createObjectURL(blob);
      const name = (report.meta.title || "profile").replace(/[^\w.-]+/g, "_").slice(0, 80);

      ns.element("a", {href: url, download: `${name}.${suffix}`}).click();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
    }

    const EXPORT_WIDTH = 1600, exportTitle = () => ns.visible(report.meta.title || "profile");

    function exportView() {
      return {...mainPane().graph.view(), size: EXPORT_WIDTH};
    }

    function exportPng() {
      ns.picture(sceneOf(mainPane()), exportView(), style, 2, exportTitle())
        .toBlob((blob) => download(blob, "png"));
    }

    // Paper is light, and as wide as it is: pictures stand in for the canvases, cut between rows so
    // that a page may end there.
    const PAPER_WIDTH = 1000, PAPER_ROWS = 60, PAPER_PART = 10;

    function toPaper() {
      applyTheme(true);
      drawLegend();
      for (const pane of panes) {
        const scene = sceneOf(pane), {rows} = scene.boxes, parts = [];
        let left = rows;

        for (let i = 0; i < PAPER_ROWS && left; i += PAPER_PART) {
          const view = {...pane.graph.view(i, PAPER_PART), size: PAPER_WIDTH};

          left = rows - view.line - (view.bottom - view.top);
          parts.push(ns.picture(scene, view, style, 2, ""));
        }
        pane.box.append(ns.element("div.paper", {}, ...parts,
          left ? `${ns.count(left)} rows more` : ""));
      }
    }

    function fromPaper() {
      document.querySelectorAll(".paper").forEach((e) => e.remove());
      applyTheme();
      drawLegend();
    }

    function exportSvg() {
      const ctx = ns.element("canvas").getContext("2d");

      ctx.font = "12px system-ui, sans-serif";
      download(new Blob([ns.svgPicture(sceneOf(mainPane()), exportView(), style, exportTitle(),
        (c) => ctx.measureText(c).width)], {type: "image/svg+xml"}),
      "svg");
    }

    function showAbout() {
      $("about-body").replaceChildren(...ns.aboutContent(report.meta));
      $("about-dialog").showModal();
    }

    function step(direction) {
      const pane = mainPane(), {tree, width} = pane.active;

      if (!found?.nodes)
        return;
      const node = ns.nextMatch(tree, width.total, matched, Math.max(0, pane.selected), direction);

      choose(pane, node);
      if (!isInView(pane, node))
        zoomPane(pane, pane.active.tree.parent[node]);
      pane.graph.reveal(node);
    }

    function isInView(pane, node) {
      const place = pane.graph.place(node);

      return Boolean(place) && place.width >= 4;
    }

    function walk(direction) {
      const pane = panes.find((p) => p.selected >= 0) || mainPane();
      const {tree} = pane.active;
      const turned = pane.shape === "callers" ? {up: "down", down: "up"}[direction] || direction : direction;
      const from = pane.selected < 0 ? Math.max(0, pane.zoom) : pane.selected;
      const node = ns.neighbour(tree, pane.boxes, from, turned);

      choose(pane, node);
      if (!isInView(pane, node))
        pane.graph.zoomTo(turned === "up" ? node : tree.parent[node], true);
      pane.graph.reveal(node);
    }

    function stepBack() {
      const pane = mainPane();

      if (state.q)
        set({q: ""});
      else if (pane.zoom > 0 || state.span)
        zoomPane(pane, -1);
      else if (state.shape === "sandwich")
        set({shape: "call", ...NOWHERE}, true);
      else
        choose(pane, -1);
    }

    function toggleView(view) {
      if (comparing())
        set({view: viewOf() === view && view !== "diff" ? "diff" : view}, true);
    }

    const selectedPane = () => panes.find((p) => p.selected > 0);

    const ACTIONS = {
      "/": () => {
        showTab("graph");
        $("query").focus();
        $("query").select();
      },
      n: () => step(1), N: () => step(-1),
      i: () => set({shape: state.shape === "inverted" ? "call" : "inverted", ...NOWHERE}, true),
      d: () => toggleView("diff"), e: () => toggleView("elided"),
      b: () => toggleView("base"), h: () => toggleView("head"),
      s: () => selectedPane() && sandwich(selectedPane().active.tree.func[selectedPane().selected]),
      c: () => selectedPane() && copyStack(selectedPane(), selectedPane().selected),
      t: () => set({theme: theme === "dark" ? "light" : "dark"}),
      "?": () => $("help-dialog").showModal(),
      Escape: stepBack,
      Enter: () => selectedPane() && zoomPane(selectedPane(), selectedPane().selected),
      ArrowUp: () => walk("up"), ArrowDown: () => walk("down"),
      ArrowLeft: () => walk("left"), ArrowRight: () => walk("right"),
    };

    function onKey(e) {
      const isTyping = e.target.matches?.("input:not([type=checkbox]), select, textarea");
      const isControl = e.target.matches?.("button, summary, a, .tablebox, .detailsbody, .sourcebox");

      if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey ||
          document.querySelector("dialog[open]"))
        return;
      if (isTyping) {
        if (e.target === $("query") && e.key === "Enter")
          step(e.shiftKey ? -1 : 1);
        if (e.target === $("query") && e.key === "Escape") {
          set({q: ""});
          mainPane().canvas.focus();
        }
        return;
      }
      if (isControl && /^(Enter|Arrow)/.test(e.key) || !Object.hasOwn(ACTIONS, e.key))
        return;
      e.preventDefault();
      ACTIONS[e.key]();
    }

    function showTab(tab) {
      $("page").dataset.tab = tab;
      for (const b of $("tabs").children)
        b.setAttribute("aria-pressed", String(b.dataset.value === tab));
      resize();
    }

    function resize() {
      readStyle();
      for (const pane of panes)
        pane.graph.resize();
      minimap.resize();
      heat.resize();
      functions.resize();
    }

    function listen() {
      $("query").oninput = () => set({q: $("query").value});
      $("next").onclick = () => step(1);
      $("previous").onclick = () => step(-1);
      $("group").onchange = ({target: {value: group}}) =>
        set({group, list: group ? "parts" : "functions", ...NOWHERE}, true);
      $("palette").onchange = () => set({palette: $("palette").value});
      $("basis").onchange = () => set({basis: $("basis").value});
      $("theme").onclick = ACTIONS.t;
      $("help").onclick = ACTIONS["?"];
      $("about").onclick = showAbout;
      for (const side of ["left", "right"]) {
        const panel = side === "left" ? $("functions") : $("details");
        const show = (on) => {
          panel.hidden = !on;
          $("show-" + side).hidden = on;
          $((on ? "hide-" : "show-") + side).focus();
          resize();
        };

        $("hide-" + side).onclick = () => show(false);
        $("show-" + side).onclick = () => show(true);
      }
      $("exports").replaceChildren(ns.button("Image (PNG)", "The graph as shown, as an image", exportPng),
        ns.button("Drawing (SVG)", "The graph as shown, as an SVG file", exportSvg),
        ns.button("Copy link", "The address of what is shown", () => navigator.clipboard
          .writeText(location.href).then(() => say("Link copied"), () => say("The browser forbids copying"))),
        ns.button("Print", "", () => print()));
      $("keys").replaceChildren(...KEYS.flatMap(([keys, text]) => [
        ns.element("dt", {}, ns.element("kbd", {}, keys)), ns.element("dd", {}, text)]));
      ns.menus(document);
      document.onkeydown = onKey;
      history.replaceState(true, ""); // a mark: who comes back to it has not typed an address
      addEventListener("popstate", (e) => readAddress(e.state));
      addEventListener("hashchange", () => readAddress(false));
      matchMedia("(prefers-color-scheme: dark)").onchange = () => {
        if (state.theme === "auto")
          update(["theme"]);
      };
      const observer = new ResizeObserver(resize);

      for (const id of ["graph", "panes"]) // what stands above the panes may come and go by itself
        observer.observe($(id));
      addEventListener("beforeprint", toPaper);
      addEventListener("afterprint", fromPaper);
    }

    const minimap = ns.minimap($("minimap"), {
      zoom: (from, to) => mainPane().graph.zoom(from, to, false),
    }, () => style);
    const heat = ns.heatmap({canvas: $("heatmap")}, {
      range: (range) => set({range}),
      baseRange: (baseRange) => set({baseRange}),
    }, () => style);
    const functions = ns.tableView({scroller: $("table-scroller"), table: $("table")}, {
      sort: (sort) => set({sort}),
      pick: (func) => {
        if ($("page").dataset.tab !== "graph") // rows drawn anew get no double click
          showTab("graph");
        if (isParts())
          selectPart(func);
        else
          pickFunction(listed(func));
      },
      open: (func) => isParts() || sandwich(listed(func)),
    }, () => {
      const css = getComputedStyle(document.documentElement);

      return parseFloat(css.getPropertyValue("--tablerow")) * parseFloat(css.fontSize);
    });

    // The function that a row is of: of who waited.
    function listed(row) {
      return isGil() ? functionOf(...report.meta.gil[row]) : row;
    }

    // It alone, and all again; what no word selects becomes the chosen box.
    function selectPart(func) {
      const word = report.partWord(func), {select} = state;

      if (!word)
        pickFunction(func);
      else
        set({select: `${select} `.includes(word + " ") ? `${select} `.replace(word + " ", "").trim()
          : `${select} ${word}`.trim()}, true);
    }

    // The widest box of a function becomes the chosen one; all of them show by the search. What was
    // removed has its boxes in Elided.
    function pickFunction(func) {
      const pane = mainPane(), {tree, width} = pane.active;
      let best = -1;

      for (let i = 1; i < tree.count; i++)
        if (tree.func[i] === func && width.total[i] > (best < 0 ? 0 : width.total[best]))
          best = i;
      if (best < 0 && viewOf() === "diff") {
        set({view: "elided"}, true);
        pickFunction(func);
      }
      if (best < 0)
        return;
      choose(pane, best);
      if (!isInView(pane, best))
        zoomPane(pane, best);
      pane.graph.reveal(best);
    }

    const showView = ns.segments($("views"), VIEWS, (view) => set({view}, true));
    const kindWords = ns.kindWords(report.meta);
    const showKind = ns.segments($("kinds"), kindWords.map((name) => [name, kindName({name}), KINDS[name]?.[1] ?? ""]),
      (name) => {
        setWord(/(^|\s)--kind[=\s]\s*('[^']*'|\S+)/, name === kindWords[0] ? ""
          : "--kind " + (/[^\w:.-]/.test(name) ? `'${name}'` : name));
      });

    $("group-label").hidden = !groups.length;
    $("kinds").hidden = kindWords.length < 2;
    const showShape = ns.segments($("shapes"), SHAPES, (shape) => {
      const chosen = selectedPane();

      if (shape === "sandwich")
        sandwich(chosen ? chosen.active.tree.func[chosen.selected]
          : state.func || listed(functions.rows[0]) || 0);
      else
        set({shape, ...NOWHERE}, true);
    });
    const showMeasure = ns.segments($("measures"), MEASURES, (measure) => set({measure}));

    ns.segments($("tabs"), [["graph", "Graph", ""], ["functions", "Functions", ""],
      ["details", "Details", ""]], showTab);
    $("page").hidden = false;
    applyTheme();
    drawData();
    drawPalettes();
    drawShown();
    listen();
    showTab("graph");
  }

  function showError(error) {
    const box = $("failure");

    box.textContent = error instanceof ns.PageError ? error.message
      : `This page failed: ${error.message}`;
    box.hidden = false;
    if (!(error instanceof ns.PageError))
      console.error(error);
  }

  addEventListener("error", ({error}) => error && showError(error)); // some is decoded later
  ns.inflate($("pyebpf-data").textContent)
    .then((bytes) => startPage(ns.decode(bytes))).catch(showError);
})(globalThis.pyebpf ??= {});
