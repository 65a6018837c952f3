// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Which samples are looked at, in the words of report, diff and export: "--focus 'parse*' --thread main".
// As user/profile/select.c has it, which tests/assets/select.test.js holds this against. Pure.
(function (ns) {
  "use strict";

  const OF_FRAMES = ["focus", "ignore", "hide", "module", "file"];
  const LISTS = [...OF_FRAMES, "thread", "process", "container", "label"];
  const FLAGS = ["collapse-stdlib", "no-idle", "fold-imports", "no-fold-imports"];
  const WORDS = [...LISTS, "time-range", "kind", "merge", ...FLAGS];
  const SELECTION_HELP = `--${WORDS.join(", --")}: as of pyebpf report`;

  // As a shell takes a line apart: '...', "...", \x.
  function wordsOf(text) {
    const words = text.match(/(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+|\S/g) ?? [];

    return words.map((word) => word.replace(/'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)|['"]/g, (all, one, two, c) => {
      if (/^['"]$/.test(all))
        throw Error(all + " is not closed");
      return one ?? two?.replace(/\\(.)/g, "$1") ?? c;
    }));
  }

  // {focus: [pattern...], ..., kind: text, "collapse-stdlib": true...} of a text; throws what is wrong
  // with it, in a sentence.
  function parseSelection(text) {
    const query = Object.fromEntries(LISTS.map((key) => [key, []]));
    const words = wordsOf(text);

    while (words.length) {
      const [, key, own] = /^--([\w-]+)(?:=([^]*))?$/.exec(words.shift()) ?? [];
      const isFlag = FLAGS.includes(key), value = isFlag ? own === undefined : own ?? words.shift();

      if (!WORDS.includes(key) || !value && value !== "")
        throw Error(SELECTION_HELP);
      if (LISTS.includes(key))
        query[key].push(value);
      else
        query[key] = value;
    }
    return query;
  }

  // --- patterns ------------------------------------------------------------------------------

  const quoted = (c) => c.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

  // A test of whole texts, as fnmatch() is.
  function glob(pattern) {
    const source = pattern.replace(/\\([^])|\[([!^]?)(\]?(?:\\[^]|[^\]\\])*)\]|[^]/g, (c, escaped, not, set) =>
      escaped ? quoted(escaped) : set ? `[${not && "^"}${set.replace(/[[\]^]/g, "\\$&")}]`
        : c === "*" ? "[^]*" : c === "?" ? "[^]" : quoted(c));

    const expression = new RegExp(`^${source}$`);

    return (text) => expression.test(text);
  }

  // The text, or what is behind one of its slashes.
  const matchesEnd = (matches, path) =>
    path.split("/").some((_, i, parts) => matches(parts.slice(i).join("/")));

  function functionTest(pattern) {
    const [, path, part] = /^([^]*[^:]):([^:]*)$/.exec(pattern) ?? [];
    const test = (of) => {
      const matches = glob(of);

      return (name) => matches(name) ||
        !name.startsWith("import ") && name.includes(".") && matches(name.replace(/^[^]*\./, ""));
    };
    const whole = test(pattern), last = path && test(part), file = path && glob(path);

    return (f) => whole(f.name) || path && matchesEnd(file, f.file) && last(f.name);
  }

  // A module and the packages it is in; of own code, whose root no sample knows, with and without
  // the folders in front.
  function moduleNames({file, module, origin}) {
    const isOwn = origin === "own" && !file.startsWith("<");
    const parts = (isOwn ? file.replace(/^\/|\.pyc?$|\/__init__\.py$/g, "").replace(/\//g, ".") : module).split(".");
    const names = [];

    for (let from = isOwn ? parts.length - 1 : 0; from >= 0; from--)
      for (let to = from + 1; to <= parts.length; to++)
        names.push(parts.slice(from, to).join("."));
    return names;
  }

  function frameTest(key, pattern) {
    const matches = glob(pattern);

    return key === "module" ? (f) => f.file && moduleNames(f).some(matches)
      : key === "file" ? (f) => f.file && matchesEnd(matches, f.file) : functionTest(pattern);
  }

  // --- a report's ----------------------------------------------------------------------------

  // By function: a bit for each key of OF_FRAMES.
  function judgeFunctions(report, query) {
    const tests = OF_FRAMES.map((key) => query[key].map((pattern) => frameTest(key, pattern)));

    return Uint8Array.from({length: report.functions.count}, (_, f) => {
      const facts = {name: ns.functionName(report, f), file: ns.functionFile(report, f),
        module: report.strings.get(report.functions.module[f]),
        origin: ns.ORIGINS[report.functions.origin[f]]};

      return f && !ns.isPart(report, f) && tests.reduce((bits, of, k) => bits | of.some((test) => test(facts)) << k, 0);
    });
  }

  // By site: 1 where its stack is selected. Callers come before callees.
  function judgeSites({sites, nodes}, query, bits) {
    const all = new Uint8Array(sites.count), kept = new Uint8Array(sites.count);
    const bit = (key) => 1 << OF_FRAMES.indexOf(key);
    const wanted = ["focus", "module", "file"].filter((key) => query[key].length).map(bit);

    for (let s = 0; s < sites.count; s++) {
      all[s] = bits[nodes.func[sites.node[s]]] | (s ? all[sites.parent[s]] : 0);
      kept[s] = Number(!(all[s] & bit("ignore")) && wanted.every((one) => all[s] & one));
    }
    return kept;
  }

  // A test of sets of labels, by number: NAME=VALUE, or NAME, of one of its labels; behind a !, of none.
  function labelTest({labels = []}, patterns) {
    const tests = patterns.map((pattern) => {
      const [, not, wanted, value] = /^(!?)([^=]*)=?([^]*)$/.exec(pattern), matches = glob(value), has = [];

      labels.forEach(([without, name, text], set) => {
        has[set] = set > 0 && (has[without] || name === wanted && (!pattern.includes("=") || matches(text)));
      });
      return (set) => Boolean(has[set]) === !not;
    });

    return (set) => !tests.length || tests.some((test) => test(set));
  }

  // What is asked for of the page's kinds; one that was chosen when it was written is the only one.
  function findKind(meta, name) {
    const kind = ns.kindOf(meta, name);

    if (!kind)
      throw Error(`--kind: this page has ${ns.kindWords(meta).join(", ")}`);
    return kind;
  }

  // By tag of the rows: what a value of 1 counts, 0: nothing.
  function judgeTags({meta}, query, {factors}) {
    const passes = (key) => {
      const tests = query[key].map((pattern) => [glob(pattern), pattern]);

      return (name, ...ids) => !tests.length || tests.some(([matches, pattern]) =>
        name !== undefined && matches(name) || ids.some((id) => pattern === String(id)));
    };
    const ofThread = passes("thread"), ofProcess = passes("process"), ofPlace = passes("container");
    const ofLabels = labelTest(meta, query.label);
    const isContainer = (id) => query.container.some((start) => id?.startsWith(start));

    return meta.tags.map((tag) => {
      const {name, pid, own_pid, pod, container} = meta.processes[tag.process];

      return ofThread(tag.name, tag.tid) && ofProcess(name, pid, own_pid) &&
        (ofPlace(pod) || isContainer(container)) && ofLabels(tag.labels ?? 0) ? factors[tag.kind ?? 0] : 0;
    });
  }

  // --- time ----------------------------------------------------------------------------------

  const TIMES = {"": 1e9, s: 1e9, ms: 1e6, us: 1e3, ns: 1, m: 6e10, min: 6e10, h: 3.6e12, d: 8.64e13};

  // In ns; NaN: it is none.
  function timeOf(text, open) {
    const [, number, unit] = /^(\d+(?:\.\d+)?)([a-z]*)$/i.exec(text) ?? [];

    return text ? Math.round(number * TIMES[unit?.toLowerCase()]) : open;
  }

  // {slots: 1 where the range is, time: of base and current, ns; note}. All that a page knows of a time
  // is its block: the range's ends count whole, which the note says.
  function judgeTime({meta: {runs, blocks}}, text) {
    const [, start, end] = /^([^]*?)\.\.([^]*)$/.exec(text) ?? [];
    const from = timeOf(start, 0), to = timeOf(end, Infinity);
    const range = {slots: new Uint8Array(runs.length * blocks), time: [0, 0], note: ""};

    if (start === undefined || !(from < to))
      throw Error("--time-range: 10s..20s, ..5s, 1m..");
    runs.forEach(({ticks, dealt, block_ns: length, duration_ns: lasted, side}, r) => {
      if (ticks && (!length || dealt))
        throw Error("--time-range: of samples that have no times");
      const begin = (block) => Math.ceil(block * length - 1e-3); // the first ns that is in it
      let first = Math.min(Math.floor(from / length), blocks), last = first;

      first += Number(begin(first + 1) <= from && first < blocks);
      for (last = first; last < blocks && begin(last) < to; last++)
        range.slots[r * blocks + last] = 1;
      const isExact = first >= blocks || begin(first) === from && (last === blocks || begin(last) === to);

      range.time[side] += Math.max(0, Math.min(lasted ?? Infinity, begin(last)) - begin(first));
      if (!isExact)
        range.note = `Whole parts of the time, ${ns.duration(length / 1e6)} each: ${
          ns.duration(begin(first) / 1e6)} – ${ns.duration(begin(last) / 1e6)}`;
    });
    return range;
  }

  // --- what a frame stands for ---------------------------------------------------------------

  const ROOTS = [/^.*\/site-packages\//, /^.*\/dist-packages\//,
    /^.*\/lib(64)?\/python[\d.t]*(zip)?\//];

  const libraryRoot = (path) => ROOTS.reduce((found, root) => found || root.exec(path)?.[0], "") ?? "";

  const dotted = (path) => path.replace(/\.pyc?$/, "").replace(/\/__init__$/, "").replaceAll("/", ".");

  // Of json/decoder.py below a library's root "json.decoder", or the path; of one's own file its name.
  function mergedName(path, root, by) {
    const short = root ? path.slice(root.length) : path.replace(/^.*\//, "");
    const frozen = /^<frozen (.*)>$/.exec(path)?.[1];

    if (by === "file" || path.startsWith("<") && !frozen)
      return short;
    return frozen ?? dotted(root || path.startsWith("/") ? short : path);
  }

  // By function the one that stands for it, groups, and what that is called: the first of a file; of a
  // library's module, wherever it is installed.
  function groupFunctions(report, by) {
    const first = new Map(), names = [];
    const groups = Uint32Array.from({length: report.functions.count}, (_, f) => {
      const path = ns.functionFile(report, f), root = libraryRoot(path);

      if (!path)
        return f;
      const name = mergedName(path, root, by), key = (root ? "" : path) + "\0" + name;

      if (!first.has(key)) {
        first.set(key, f);
        names[f] = name;
      }
      return first.get(key);
    });

    return {groups, names};
  }

  const isStandard = ({functions}, f) => ["stdlib", "import"].includes(ns.ORIGINS[functions.origin[f]]);

  // {by: of a state, groups, names, library: 1 for functions that a library's caller takes in}
  function mergeOf(report, query) {
    const merge = query.merge, isGrouped = ["module", "file"].includes(merge);

    if (merge !== undefined && !isGrouped && !["line", "function"].includes(merge))
      throw Error("--merge line, function, file, module");
    return {by: merge && (merge === "line" ? merge : "function"),
      ...isGrouped && groupFunctions(report, merge),
      library: query["collapse-stdlib"] &&
        Uint8Array.from({length: report.functions.count}, (_, f) => Number(isStandard(report, f)))};
  }

  const MACHINERY = /[/ ](importlib[./]_bootstrap(_external)?|zipimport)(>|\.py)$/;

  // Frames of imports were folded, or were not, by who wrote the page.
  function checkImports(report, {"fold-imports": folds, "no-fold-imports": keeps}) {
    const has = (textOf, pattern) => report.functions.name.some((_, f) =>
      !ns.isPart(report, f) && pattern.test(textOf(report, f)));

    if (folds && keeps)
      throw Error("--fold-imports and --no-fold-imports cannot be combined");
    if (folds && has(ns.functionFile, MACHINERY) || keeps && has(ns.functionName, /^import( |$)/))
      throw Error("Imports are folded, or not, when the page is written");
  }

  // --- all of it -----------------------------------------------------------------------------

  function select(report, text) {
    const query = parseSelection(text), bits = judgeFunctions(report, query);
    const kind = findKind(report.meta, query.kind), hide = OF_FRAMES.indexOf("hide");

    checkImports(report, query);
    return {sites: judgeSites(report, query, bits), tags: judgeTags(report, query, kind), kind,
      isBusy: query["no-idle"],
      hidden: query.hide.length && bits.map((b) => b >> hide & 1),
      ...query["time-range"] !== undefined && judgeTime(report, query["time-range"]),
      ...mergeOf(report, query)};
  }

  const known = new WeakMap(); // report -> {text, selection}: the one that was asked for last

  // Of a state; all parts are optional, and missing where nothing is asked for:
  //   sites, slots  1 where they are selected; tags  what a value of 1 counts, 0: they are not
  //   kind      kindOf() it
  //   isBusy    waits for work are left out: idleSums() of model.js
  //   hidden    1 for functions that are not shown
  //   groups, names, library, by  what a frame stands for: groupFunctions(), mergeOf()
  //   time, note  of a range: judgeTime()
  //   error     what is wrong with the text; the rest is not there then
  function selectionOf(report, {select: text}) {
    const last = known.get(report);

    if (!text || last?.text === text)
      return text ? last.selection : {};
    let selection;

    try {
      selection = select(report, text);
    } catch (e) {
      selection = {error: e.message};
    }
    known.set(report, {text, selection});
    return selection;
  }

  Object.assign(ns, {SELECTION_HELP, selectionOf});
})(globalThis.pyebpf ??= {});
