// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Which samples are looked at, in the words of report, diff and export: "--focus 'parse*' --thread main".
// As user/profile/select.c has it, which tests/assets/select.test.js holds this against. Pure.
(function (ns) {
  "use strict";

  const OF_FRAMES = ["focus", "ignore", "hide", "module", "file"], OF_THREADS = ["thread", "process"];
  const KEYS = [...OF_FRAMES, ...OF_THREADS];
  const SELECTION_HELP = `--${KEYS.join(", --")}: each with a pattern, as of pyebpf report`;

  // As a shell takes a line apart: '...', "...", \x.
  function wordsOf(text) {
    const words = text.match(/(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+|\S/g) ?? [];

    return words.map((word) => word.replace(/'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)|['"]/g, (all, one, two, c) => {
      if (/^['"]$/.test(all))
        throw Error(all + " is not closed");
      return one ?? two?.replace(/\\(.)/g, "$1") ?? c;
    }));
  }

  // {focus: [pattern...], ...} of a text; throws what is wrong with it, in a sentence.
  function parseSelection(text) {
    const query = Object.fromEntries(KEYS.map((key) => [key, []]));
    const words = wordsOf(text);

    while (words.length) {
      const [, key, value = words.shift()] = /^--(\w+)(?:=([^]*))?$/.exec(words.shift()) ?? [];

      if (!query[key] || value === undefined)
        throw Error(SELECTION_HELP);
      query[key].push(value);
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

      return f && tests.reduce((bits, of, k) => bits | of.some((test) => test(facts)) << k, 0);
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

  function judgeThreads({meta}, query) {
    const passes = (key) => {
      const tests = query[key].map((pattern) => [glob(pattern), pattern]);

      return (name, id) => !tests.length ||
        tests.some(([matches, pattern]) => matches(name) || pattern === String(id));
    };
    const ofThread = passes("thread"), ofProcess = passes("process");

    return meta.threads.map(({name, tid, process}) => {
      const {name: processName, pid} = meta.processes[process];

      return ofThread(name, tid) && ofProcess(processName, pid);
    });
  }

  const known = new WeakMap(); // report -> {text, selection}: the one that was asked for last

  // {sites, threads: 1 where they are selected, hidden: 1 for functions that are not shown; error};
  // error: what is wrong with the text, the rest is null then.
  function selectionOf(report, text) {
    const last = known.get(report);

    if (last?.text === text)
      return last.selection;
    const selection = {sites: null, threads: null, hidden: null, error: ""};

    try {
      const query = parseSelection(text), bits = judgeFunctions(report, query);

      selection.sites = judgeSites(report, query, bits);
      selection.threads = judgeThreads(report, query);
      if (query.hide.length)
        selection.hidden = bits.map((b) => b >> OF_FRAMES.indexOf("hide") & 1);
    } catch (e) {
      selection.error = e.message;
    }
    known.set(report, {text, selection});
    return selection;
  }

  Object.assign(ns, {SELECTION_HELP, selectionOf});
})(globalThis.pyebpf ??= {});
