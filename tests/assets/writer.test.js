// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Pages as pyebpf writes them (tests/browser/pages.c, whose contents are known) against model.js and
// stats.js: what C put in is what the scripts get out, and both say the same of a comparison.
"use strict";
const test = require("node:test");
const assert = require("node:assert");
const {execFileSync} = require("node:child_process");
const {createHash} = require("node:crypto");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const {inflateSync} = require("node:zlib");
require("../../assets/model.js");
require("../../assets/noise.js");
require("../../assets/stats.js");
const page = globalThis.pyebpf;

const PAGES = process.env.PAGES || path.join(__dirname, "../../build/tests/pages");
const EMPTY_BYTES_MAX = 126 * 1024; // 4 KB of it are parts (group.js), the table and the menu of them
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "pyebpf-pages-"));
process.on("exit", () => fs.rmSync(folder, {recursive: true, force: true}));

function makePage(kind, nodes = "") {
  const file = path.join(folder, `${kind}${nodes}.html`);
  execFileSync(PAGES, [kind, file, nodes]);
  const html = fs.readFileSync(file, "utf8");
  const [, before, data, behind] =
    /^(.*<script id="pyebpf-data" type="application\/octet-stream">)([^<]*)(<\/script>.*)$/s.exec(html);
  return {file, html, before, data, behind,
    report: page.decode(inflateSync(Buffer.from(data, "base64")))};
}

const EMPTY = makePage("empty"), HOSTILE = makePage("hostile");

test("nothing of a recording stands in the page but in base64", () => {
  assert.equal(HOSTILE.before, EMPTY.before);
  assert.equal(HOSTILE.behind, EMPTY.behind);
  assert.match(HOSTILE.data, /^[A-Za-z0-9+/]+={0,2}$/);
});

test("the policy has the hashes of the script and the style", () => {
  const [, policy] = /<meta http-equiv="Content-Security-Policy" content="([^"]*)">/.exec(EMPTY.html);
  const hash = (tag) => {
    const [, text] = new RegExp(`<${tag}>(.*?)</${tag}>`, "s").exec(EMPTY.html);
    return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  };

  assert.equal(policy, `default-src 'none'; script-src ${hash("script")}; style-src ${
    hash("style")}; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; ` +
    "trusted-types 'none'");
  assert.doesNotMatch(EMPTY.html, / (src|href|style|on[a-z]+)=/);
});

test("an empty page is small", () => {
  assert.ok(EMPTY.html.length <= EMPTY_BYTES_MAX, `${EMPTY.html.length} bytes`);
  assert.equal(EMPTY.report.nodes.count, 1);
  assert.equal(EMPTY.report.rows.count, 0);
});

// Arrays as lists: how wide their items are is the reader's affair.
const listed = (part) => Object.fromEntries(Object.entries(part)
  .map(([key, value]) => [key, ArrayBuffer.isView(value) ? [...value] : value]));

test("one sample: all of the blob", () => {
  const {report} = makePage("one"), {meta} = report;
  const parts = ["functions", "nodes", "self", "sites", "rows"].map((key) => [key, listed(report[key])]);

  assert.deepEqual({...report, ...Object.fromEntries(parts), meta: Object.keys(meta),
    strings: [...Array(report.strings.count).keys()].map(report.strings.get)}, {
    meta: ["schema", "kind", "title", "blocks", "scale", "runs", "processes", "threads", "counters", "tags"],
    strings: ["", "main", "/srv/app.py", "app"],
    functions: {count: 2, name: [0, 1], file: [0, 2], module: [0, 3], origin: [6, 0], line: [0, 10],
      renamedFrom: [0, 0]},
    nodes: {count: 2, parent: [-1, 0], depth: [0, 1], end: [2, 2], func: [0, 1], line: null,
      key: [0, 1]},
    self: {current: [0, 1], base: null, waits: null},
    sites: {count: 2, first: [0, 1, 2], node: [0, 1], parent: [-1, 0], line: [0, 12]},
    rows: {count: 1, site: [1], tag: [0], slot: [0], ticks: [1], opcode: null},
    idle: undefined,
    classes: null,
    sources: new Map([[2, {status: "unknown", parts: []}]]),
  });
  assert.deepEqual(meta.processes, [{pid: 412, name: "app", command_line: "app", python: "3.14.1"}]);
  assert.deepEqual(meta.threads, [{process: 0, tid: 412, name: "MainThread"}]);
  assert.deepEqual(meta.runs, [{side: 1, file: "<i>page</i>.pyebpf", blocks: 1, interval_ns: 1e6,
    block_ns: 1e9 / meta.blocks, duration_ns: 6e10, start: 1767348671, rate_hz: 1000, ticks: 1,
    lost: 3, host: "<b>web1</b>", target: "</script><b>target", mode: "cpu"}]);
});

test("hostile names come through as they are, bytes that are no UTF-8 as U+FFFD", () => {
  const {report} = HOSTILE;
  const names = new Set([...report.functions.name].map(report.strings.get));

  for (const name of ["</script><script>globalThis.pwned=1</script>", "__proto__", "nul\0inside",
    "line\u2028separator\u2029here", "not utf-8 \ufffd\ufffd", "x".repeat(10000)])
    assert.ok(names.has(name), name);
  assert.equal(report.meta.processes[0].name, "</title><script>globalThis.pwned=5</script>");
});

test("where processes run: the pod by its names, else the container by the start of its id", () => {
  const {report} = makePage("tree");

  assert.deepEqual(report.meta.processes.map(({name, pod}) => [name, pod]),
    [["web", "prod/web-7d9f"], ["worker", "container fedcba987654"], ["cron", undefined]]);
  assert.deepEqual(page.filterChoices(report).pod.map(({key}) => key).sort(),
    ["(none)", "container fedcba987654", "prod/web-7d9f"]);
});

test("a stack of 3,000 frames", () => {
  const {report} = makePage("deep");
  const active = page.activeData(report, {}), inverted = page.activeData(report, {shape: "inverted"});

  assert.equal(report.nodes.count, 3001);
  assert.equal(report.nodes.depth[3000], 3000);
  assert.equal(active.current.self[3000], 100);
  assert.equal(inverted.current.total[0], active.current.total[0]);
  assert.equal(page.functionTable(active).total[1], 106);
});

test("a tree of 5,000 paths: every shape has all of its ticks", () => {
  const {report} = makePage("tree", "5000");
  const all = report.meta.runs[0].ticks;
  const ticks = (state) => page.activeData(report, state).current.total[0];

  assert.ok(report.nodes.count > 5000);
  for (const state of [{}, {by: "line"}, {shape: "inverted"}, {shape: "inverted", by: "line"}])
    assert.equal(ticks(state), all);
  for (const dimension of ["process", "thread"]) {
    const names = page.filterChoices(report)[dimension].filter(({key}) => !/ \(\d+\)$/.test(key));
    assert.ok(names.length > 1);
    assert.equal(names.reduce((sum, {key}) => sum + ticks({[dimension]: [key]}), 0), all);
  }
  const middle = report.meta.blocks / 2;
  assert.equal(ticks({range: [0, middle]}) + ticks({range: [middle, 2 * middle]}), all);
  assert.equal(page.timeline(report, {}, "thread").reduce((sum, row) => sum + row.sum, 0), all);
});

test("wall time: every shape has all of it, and what waits", () => {
  const {report} = makePage("waits", "5000");
  const sums = (state) => {
    const {current, waits} = page.activeData(report, state);
    return [current.total[0], waits.total[0]];
  };
  const want = sums({}), all = report.meta.runs[0].ticks;

  assert.equal(want[0], all);
  assert.ok(want[1] > 0 && want[1] < all);
  for (const state of [{by: "line"}, {shape: "inverted"}, {shape: "inverted", by: "line"}])
    assert.deepEqual(sums(state), want);
  const {blocks} = report.meta, series = page.timeline(report, {}, "thread");
  const add = (key) => series.reduce((sum, row) => sum + row[key].reduce((a, b) => a + b), 0);

  assert.deepEqual([add("ticks"), add("waits")], want);
  assert.deepEqual([0, 100, 101, 640].slice(1).map((to, i) => sums({range: [[0, 100, 101][i], Math.min(to, blocks)]}))
    .reduce(([a, b], [c, d]) => [a + c, b + d]), want);
});

// --- comparisons --------------------------------------------------------------------------------

function isNear(got, want) {
  return Object.is(got, want) || Math.abs(got - want) <= 1e-4 * Math.abs(want);
}

const numberOf = (text) => text === "inf" ? Infinity : /nan/.test(text) ? NaN : Number(text);

// By Benjamini and Hochberg, of all but the root, which is one test of its own: among those above
// the floor of either side, and among the rest. A box counts for what its largest callee leaves.
function falseDiscoveryRates(chances, {tree, base, current, scale}) {
  const q = [...chances], weights = q.map((_, i) => {
    const ticks = (k) => base.total[k] * scale + current.total[k], callees = q.map((_, k) => k)
      .filter((k) => tree.parent[k] === i && k > i && k < tree.end[i]);
    return 1 - Math.max(0, ...callees.map(ticks)) / ticks(i);
  });
  const isTested = (i) => i && !Number.isNaN(chances[i]);
  const isLarge = (i) => base.total[i] > 0.005 * base.total[0] ||
    current.total[i] > 0.005 * current.total[0];

  const families = new Set(q.map((p, i) => i).filter(isTested).map(isLarge)).size;
  for (const large of [true, false]) {
    const tested = q.map((p, i) => i).filter((i) => isTested(i) && isLarge(i) === large)
      .sort((i, k) => chances[i] - chances[k]);
    const all = tested.reduce((sum, i) => sum + weights[i], 0);
    let least = 1, below = all;

    for (let n = tested.length; n > 0; n--) {
      const i = tested[n - 1];
      least = Math.min(least, below > 0 ? chances[i] * all / below : 1);
      q[i] = Math.min(least * families, 1);
      below -= weights[i];
    }
  }
  return q;
}

for (const [kind, nodes] of [["diff", ""], ["diff", "3000"], ["shares", ""], ["shares", "3000"]]) {
  test(`a comparison is classified as by user/diff (${kind}, ${nodes || "few"} paths)`, () => {
    const {file, report} = makePage(kind, nodes);
    const lines = fs.readFileSync(`${file}.measures`, "utf8").trim().split("\n");
    const active = page.activeData(report, {view: "diff"});
    // as if something had been chosen: worked out anew
    const found = page.classify({...active, report: {...report, classes: null}});
    const measures = lines.map((_, i) => found.measures(i));
    const q = falseDiscoveryRates(measures.map(({chance}) => chance), active);

    assert.equal(lines.length, report.nodes.count);
    lines.forEach((line, i) => {
      const want = line.split(" ").map(numberOf);
      const {ratio, low, high} = measures[i], got = [ratio, low, high, Math.fround(q[i])];

      for (let k = 0; k < 4; k++)
        assert.ok(isNear(got[k], want[k]), `node ${i}: ${got} against ${line}`);
      assert.deepEqual([found.total[i], found.self[i]], want.slice(4), `node ${i}`);
      assert.deepEqual([report.classes.total[i], report.classes.self[i]], want.slice(4));
    });
    assert.equal(page.elided(active).count, report.meta.diff.elided_count);
    assert.equal(page.findReplicates(active).by, report.meta.diff.dispersion);
  });
}

test("a comparison: what was changed is what is shown", () => {
  const {report} = makePage("diff");
  const families = {};

  for (let i = 1; i < report.nodes.count; i++)
    if (report.nodes.depth[i] === 3)
      families[page.functionName(report, report.nodes.func[i])] =
        page.CLASSES[report.classes.total[i]].replace(/\d$/, "");
  assert.deepEqual(families, {steady: "unchanged", slower_by_30_percent: "slower",
    twice_as_slow: "slower", twice_as_fast: "faster", new_function: "new",
    removed_function: "removed", rare: "rare", renamed_function: families.renamed_function});
  assert.match(families.renamed_function, /^un/);
  const renamed = [...report.functions.renamedFrom].filter(Boolean);
  assert.deepEqual(renamed.map((f) => page.functionName(report, f)), ["old_name"]);
});
