// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"use strict";
const test = require("node:test");
const assert = require("node:assert");
require("../../assets/model.js");
require("../../assets/names.js");
require("../../assets/select.js");
const {encode, pack} = require("./fixture.js");
const model = globalThis.pyebpf;

// 10 ticks: main 1 itself, a 2 + 3 in b below it, b 4 directly below main.
const SAMPLES = [
  {stack: "main (app.py:3)", ticks: 1, block: 0},
  {stack: "main (app.py:4);a (app.py:11)", ticks: 2, block: 1},
  {stack: "main (app.py:4);a (app.py:12);b (app.py:21)", ticks: 3, block: 2, thread: 1},
  {stack: "main (app.py:5);b (app.py:22)", ticks: 4, block: 39, thread: 1},
];
const META = {
  processes: [{pid: 1, name: "web", pod: "shop-1"}, {pid: 2, name: "worker"}],
  threads: [{process: 0, tid: 1, name: "MainThread"}, {process: 1, tid: 2, name: "pool"},
    {process: 1, tid: 3, name: "pool"}],
};
const REPORT = model.decode(encode({samples: SAMPLES, meta: META}));

// "main/a" -> [self, total] of the current side, or of the one named.
function figures(report, active, side = "current") {
  const out = {};
  for (let i = 0; i < active.tree.count; i++) {
    const names = [];
    for (let n = i; n > 0; n = active.tree.parent[n]) {
      const line = active.tree.line ? `:${active.tree.line[n]}` : "";
      names.unshift(model.functionName(report, active.tree.func[n]) + line);
    }
    out[names.join("/")] = [active[side].self[i], active[side].total[i]];
  }
  return out;
}

// A second of computing and two of waiting, one in each thread, beside 5 bytes; or ticks of 10 ms.
const KINDS = [{name: "cpu", unit: "ns", period: 1}, {name: "off-cpu", unit: "ns", period: 1},
  {name: "memory", unit: "bytes", period: 1}];
const WAITS = [
  {stack: "main (app.py:3)", ticks: 1e9, block: 0},
  {stack: "main (app.py:4);<sleep>", ticks: 2 ** 53 - 1, block: 1, thread: 1},
  {stack: "main (app.py:5);<lock>", ticks: 1e9, block: 1, thread: 2},
  {stack: "main (app.py:6)", ticks: 5, block: 39, thread: 3},
];
const waitsReport = (facts, samples = WAITS) => model.decode(encode({samples, meta: {...META, ...facts,
  tags: [[0, 0, 0], [0, 0, 1], [1, 0, 1], [1, 0, 2]]}}));

test("kinds: wall time first, what waiting, and each by itself", () => {
  const report = waitsReport({kinds: KINDS, shown: "wall"});
  const sums = (select, more = {}) => {
    const {current, waits} = model.activeData(report, {select, ...more});

    return [current.total[0], waits && waits.total[0]];
  };
  const waited = 2 ** 53 - 1 + 1e9;

  for (const by of ["function", "line"])
    for (const [select, want] of [["", [waited + 1e9, waited]], ["--kind wall", [waited + 1e9, waited]],
      ["--kind cpu", [1e9, null]], ["--kind off-cpu", [waited, waited]], ["--kind memory", [5, null]]])
      assert.deepEqual(sums(select, {by}), want, select);
  assert.deepEqual(sums("", {thread: ["pool"]}), [1e9, 1e9]);
  assert.deepEqual(sums("", {range: [0, 1]}), [1e9, 0]);
  assert.deepEqual(sums("", {baseRange: [0, 1]}), [waited + 1e9, null], "a comparison does not tell it");
  assert.match(model.selectionOf(report, {select: "--kind gil"}).error, /wall, cpu, off-cpu, memory/);
  assert.deepEqual(model.kindWords(report.meta), ["wall", "cpu", "off-cpu", "memory"]);
  assert.equal(model.kindOf(report.meta, "memory").unit, "bytes");
  assert.deepEqual(figures(report, model.activeData(report, {shape: "inverted"}), "waits")["<lock>"], [1e9, 1e9], "too light for a caller");
});

test("kinds: where there are ticks they come first, in wall time they are of ns", () => {
  const report = waitsReport({kinds: [{...KINDS[0], period: 1e7}, ...KINDS.slice(1)], shown: "cpu"},
    [{...WAITS[0], ticks: 100}, {...WAITS[1], ticks: 3e9}, ...WAITS.slice(2)]);
  const total = (select) => model.activeData(report, {select}).current.total[0];

  assert.deepEqual(["", "--kind cpu", "--kind wall", "--kind off-cpu"].map(total), [100, 100, 5e9, 4e9]);
  assert.deepEqual(model.kindWords(report.meta), ["cpu", "wall", "off-cpu", "memory"]);
  assert.equal(model.kindOf(report.meta, "wall").period, 1);
  assert.equal(model.filterChoices(report).thread[0].ticks, 100);
});

test("kinds: a page of one", () => {
  const one = (name, unit) => model.decode(encode({samples: SAMPLES, meta: {...META, kinds: [{name, unit, period: 1}]}}));

  assert.equal(model.activeData(one("off-cpu", "ns"), {}).waits.total[0], 10);
  assert.equal(model.activeData(one("memory", "bytes"), {}).waits, null);
  assert.equal(model.kindOf(one("memory", "bytes").meta, "wall"), undefined);
  assert.equal(model.kindOf(REPORT.meta, "off-cpu"), undefined);
});

test("timeline: what waits, apart", () => {
  const report = waitsReport({kinds: KINDS, shown: "wall"});
  const [first, second] = model.timeline(report, {}, "process");

  assert.deepEqual([first.label, [...first.ticks.subarray(0, 2)], [...first.waits.subarray(0, 2)]],
    ["web", [1e9, 2 ** 53 - 1], [0, 2 ** 53 - 1]]);
  assert.deepEqual([second.sum, second.ticks[1], second.waits[1]], [1e9, 1e9, 1e9]);
  assert.equal(Math.max(...model.timeline(REPORT, {})[0].waits), 0);
});

test("decode: what was written is what is read", () => {
  assert.deepEqual(figures(REPORT, model.activeData(REPORT, {})),
    {"": [0, 10], "main": [1, 10], "main/a": [2, 5], "main/a/b": [3, 3], "main/b": [4, 4]});
  assert.deepEqual([...REPORT.sites.line], [0, 3, 4, 5, 11, 12, 21, 22]);
});

test("activeData: by line, nodes of one function stand apart", () => {
  assert.deepEqual(figures(REPORT, model.activeData(REPORT, {by: "line"})), {
    "": [0, 10], "main:3": [1, 1], "main:4": [0, 5], "main:4/a:11": [2, 2], "main:4/a:12": [0, 3],
    "main:4/a:12/b:21": [3, 3], "main:5": [0, 4], "main:5/b:22": [4, 4],
  });
});

test("activeData: inverted paths add each leaf's own ticks", () => {
  assert.deepEqual(figures(REPORT, model.activeData(REPORT, {shape: "inverted"})), {
    "": [0, 10], "b": [0, 7], "b/main": [4, 4], "b/a": [0, 3], "b/a/main": [3, 3], "a": [0, 2],
    "a/main": [2, 2], "main": [1, 1],
  });
});

test("activeData: a sandwich counts callers and callees of one function", () => {
  const b = [...Array(REPORT.functions.count).keys()]
    .find((f) => model.functionName(REPORT, f) === "b");
  const a = [...Array(REPORT.functions.count).keys()]
    .find((f) => model.functionName(REPORT, f) === "a");

  assert.deepEqual(figures(REPORT, model.activeData(REPORT, {shape: "callers", func: b})), {
    "": [0, 7], "b": [0, 7], "b/main": [4, 4], "b/a": [0, 3], "b/a/main": [3, 3],
  });
  assert.deepEqual(figures(REPORT, model.activeData(REPORT, {shape: "callees", func: a})),
    {"": [0, 5], "a": [2, 5], "a/b": [3, 3]});
});

test("activeData: hidden functions leave their ticks to their callers", () => {
  const hidden = Uint8Array.from({length: REPORT.functions.count},
    (_, f) => Number(model.functionName(REPORT, f) === "a"));

  assert.deepEqual(figures(REPORT, model.activeData(REPORT, {hidden})),
    {"": [0, 10], "main": [3, 10], "main/b": [7, 7]});
});

// --- invariants: whatever is asked for, nothing gets lost ---------------------------------------

function checkSums(tree, {self, total}) {
  const below = new Float64Array(tree.count);
  for (let i = tree.count - 1; i > 0; i--)
    below[tree.parent[i]] += total[i];
  for (let i = 0; i < tree.count; i++)
    assert.equal(self[i] + below[i], total[i]);
}

function checkPreorder({count, parent, depth, end}) {
  assert.equal(parent[0], -1);
  assert.equal(end[0], count);
  for (let i = 1; i < count; i++) {
    assert.ok(parent[i] < i && i < end[parent[i]] && end[i] <= end[parent[i]]);
    assert.equal(depth[i], depth[parent[i]] + 1);
  }
}

const SHAPES = [{}, {by: "line"}, {shape: "inverted"}, {shape: "inverted", by: "line"},
  {shape: "callers", func: 2}, {shape: "callees", func: 2}];

for (const shape of SHAPES) {
  test(`activeData: children + self = total: ${JSON.stringify(shape)}`, () => {
    for (const filter of [{}, {thread: ["pool"]}, {range: [1, 3]}, {process: ["nobody"]},
      {range: [2, 40], baseRange: [0, 2]}]) {
      const active = model.activeData(REPORT, {...shape, ...filter, view: "diff"});
      checkPreorder(active.tree);
      checkSums(active.tree, active.current);
      if (active.base)
        checkSums(active.tree, active.base);
      for (const basis of ["current", "baseline", "union", "delta"]) {
        const state = {...shape, ...filter, view: "diff", basis};
        const {tree, width} = model.activeData(REPORT, state);
        checkSums(tree, width);
      }
    }
  });
}

test("filters partition the total", () => {
  const ticks = (state) => model.activeData(REPORT, state).current.total[0];
  const choices = model.filterChoices(REPORT);

  for (const dimension of ["process", "thread"]) {
    const names = choices[dimension].filter(({key}) => !/ \(\d+\)$/.test(key));
    assert.equal(names.reduce((sum, {key}) => sum + ticks({[dimension]: [key]}), 0), 10);
  }
  assert.equal(ticks({range: [0, 2]}) + ticks({range: [2, 40]}), 10);
});

test("filterChoices: names, and numbers only where several have one name", () => {
  assert.deepEqual(model.filterChoices(REPORT), {
    process: [{key: "worker", label: "worker", ticks: 7}, {key: "web", label: "web", ticks: 3}],
    thread: [{key: "pool", label: "pool", ticks: 7}, {key: "pool (2)", label: "pool (2)", ticks: 7},
      {key: "MainThread", label: "MainThread", ticks: 3}, {key: "pool (3)", label: "pool (3)", ticks: 0}],
    pod: [{key: "(none)", label: "(none)", ticks: 7}, {key: "shop-1", label: "shop-1", ticks: 3}],
  });
});

test("filterChoices, timeline: numbers of one side alone are no choice; a few have rows of their own", () => {
  const runs = [0, 1].map((side) => ({side, file: String(side), interval_ns: 1e6, block_ns: 1e8}));
  const report = model.decode(encode({meta: {runs, processes: [1, 2, 3].map((pid) => ({pid, name: "web"})),
    threads: [0, 1, 2].map((process) => ({process, tid: process + 1, name: "main"}))},
  samples: [{stack: "f (a.py:1)", run: 0, thread: 0}, {stack: "f (a.py:1)", run: 1, thread: 1},
    {stack: "f (a.py:1)", run: 0, thread: 2}, {stack: "f (a.py:1)", run: 1, thread: 2}]}));
  const keys = (list) => list.map(({key}) => key);

  assert.deepEqual(keys(model.filterChoices(report).process), ["web", "web (3)"]);
  assert.deepEqual(model.timeline(report, {}, "process").map(({label, side}) => `${side} ${label}`).sort(),
    ["0 1 web", "0 3 web", "1 2 web", "1 3 web"]);
  assert.deepEqual(model.timeline(REPORT, {}, "process").map(({label}) => label), ["worker", "web"]);
});

test("baseRange: one recording against itself, scaled by time", () => {
  const active = model.activeData(REPORT, {range: [2, 40], baseRange: [0, 2]});

  assert.equal(active.base.total[0], 3);
  assert.equal(active.current.total[0], 7);
  assert.equal(active.scale, 19);
});

// --- tables -------------------------------------------------------------------------------------

test("functionTable: a recursive function counts once", () => {
  const report = model.decode(encode({samples: [{stack: "f (a.py:1);g (a.py:2);f (a.py:1)", ticks: 3},
    {stack: "f (a.py:1)", ticks: 2}]}));
  const table = model.functionTable(model.activeData(report, {}));

  assert.deepEqual([...table.self], [0, 5, 0]);
  assert.deepEqual([...table.total], [0, 5, 3]);
});

test("lineHeat: lines of a file, a stack once a line", () => {
  const report = model.decode(encode({samples: [{stack: "f (a.py:5);f (a.py:5)", ticks: 3},
    {stack: "f (a.py:6)", ticks: 2}, {stack: "h (b.py:5)", ticks: 9}]}));
  const file = report.functions.file[1], {lines, all, allBase} = model.lineHeat(report,
    model.siteSums(report, {}), file);

  assert.deepEqual([all, allBase], [14, 0]);
  assert.deepEqual([...lines], [
    [5, {self: 3, total: 3, baseSelf: 0, baseTotal: 0}],
    [6, {self: 2, total: 2, baseSelf: 0, baseTotal: 0}],
  ]);
});

const OPCODES = {opcodes: ["", "LOAD_FAST", "BINARY_OP"], runs: [{side: 0}, {side: 1}],
  threads: [{process: 0, tid: 1, name: "a"}, {process: 0, tid: 2, name: "b"}]};

test("lineOpcodes: what a function itself was at, by line and side", () => {
  const report = model.decode(encode({meta: OPCODES, samples: [
    {stack: "f (a.py:5)", run: 1, ticks: 3, opcode: "LOAD_FAST"},
    {stack: "f (a.py:5)", run: 1, block: 7, ticks: 4, opcode: "BINARY_OP"},
    {stack: "f (a.py:5)", run: 1, thread: 1, ticks: 2, opcode: "BINARY_OP"},
    {stack: "f (a.py:5)", run: 0, ticks: 5, opcode: "LOAD_FAST"},
    {stack: "f (a.py:6);f (a.py:6)", run: 1, ticks: 1},
    {stack: "f (a.py:5);g (a.py:9)", run: 1, ticks: 9, opcode: "LOAD_FAST"}]}));

  assert.deepEqual([...model.lineOpcodes(report, {}, 1, model.SIDE_CURRENT)], [
    [5, [{name: "BINARY_OP", current: 6, base: 0}, {name: "LOAD_FAST", current: 3, base: 5}]],
    [6, [{name: "unknown", current: 1, base: 0}]],
  ]);
  assert.deepEqual([...model.lineOpcodes(report, {thread: ["b"]}, 1, model.SIDE_CURRENT)],
    [[5, [{name: "BINARY_OP", current: 2, base: 0}]]]);
  assert.deepEqual(model.lineOpcodes(report, {}, 1, model.SIDE_BASE).get(5),
    [{name: "LOAD_FAST", current: 5, base: 5}, {name: "BINARY_OP", current: 0, base: 0}]);
});

test("opcodes: totals are those of the same samples without", () => {
  const samples = Array.from({length: 60}, (_, i) => ({stack: `f (a.py:${i % 3})`, block: i % 7,
    run: i % 2, ticks: i + 1, opcode: OPCODES.opcodes[i % 3]}));
  const totals = (meta) => {
    const active = model.activeData(model.decode(encode({meta, samples})), {by: "line"});
    return [[...active.current.self], [...active.base.self]];
  };

  assert.deepEqual(totals(OPCODES), totals({...OPCODES, opcodes: undefined}));
  assert.equal(model.lineOpcodes(REPORT, {}, 1, model.SIDE_CURRENT).size, 0);
});

test("pathOf, nodeAt: a link finds its box", () => {
  for (const state of SHAPES) {
    const {tree} = model.activeData(REPORT, state);
    for (let i = 0; i < tree.count; i++)
      assert.equal(model.nodeAt(tree, model.pathOf(tree, i)), i);
    assert.equal(model.nodeAt(tree, [999]), -1);
  }
});

test("elided: what is counted is what is drawn", () => {
  const report = model.decode(encode({
    meta: {runs: [{side: 0}, {side: 1}]},
    samples: [{stack: "main (a.py:1);gone (a.py:2);deep (a.py:3)", run: 0, ticks: 4},
      {stack: "main (a.py:1);gone (a.py:2)", run: 0, ticks: 2},
      {stack: "main (a.py:1)", run: 0, ticks: 1}, {stack: "main (a.py:1)", run: 1, ticks: 8}],
  }));
  const active = model.activeData(report, {view: "elided"});
  const {count, self, nodes} = model.elided(active);

  assert.deepEqual([count, self, [...nodes]], [2, 6, [0, 0, 1, 1]]);
  assert.deepEqual([...active.width.total], [6, 6, 6, 4]);
  assert.equal(model.elided(model.activeData(report, {view: "elided", thread: ["x"]})).count, 0);
});

// --- damage -------------------------------------------------------------------------------------

const BLOB = encode({samples: SAMPLES, meta: META,
  sources: [{file: "app.py", parts: [{line: 1, text: "a\nb\n"}]}]});

test("decode: a blob cut anywhere, or with more behind it, is refused with a sentence", () => {
  for (let length = 0; length < BLOB.length; length++)
    assert.throws(() => model.decode(BLOB.subarray(0, length)).rows, model.PageError);
  assert.throws(() => model.decode(Buffer.concat([BLOB, Buffer.of(0)])).rows, model.PageError);
});

test("decode: what the graph is drawn by does not wait for the rows", () => {
  const rows = BLOB.length - 40, report = model.decode(BLOB.subarray(0, rows));

  checkSums(report.nodes, model.activeData(report, {}).current);
  assert.throws(() => report.rows, model.PageError);
  assert.throws(() => report.rows, model.PageError, "and again");
});

test("decode: tags, labels and processes that are not there are refused", () => {
  for (const meta of [{tags: [[3, 0, 0]]}, {tags: [[0, 0, 0]], labels: [[0, "", ""], [1, "a", "b"]]},
    {threads: [{process: 2, tid: 1, name: "x"}]}])
    assert.throws(() => model.decode(encode({meta: {...META, ...meta}})), model.PageError, JSON.stringify(meta));
});

// The decoder itself has to find what is wrong.
test("decode: hostile numbers are refused, or give a whole report", () => {
  let random = 12345;
  const next = () => (random = Math.imul(random, 1103515245) + 12345 >>> 0) >>> 8;

  for (let round = 0; round < 3000; round++) {
    const changed = Buffer.from(BLOB);
    for (let k = next() % 3; k >= 0; k--)
      changed[14 + next() % (BLOB.length - 14)] = next() & 255;
    try {
      const report = model.decode(changed);
      report.rows;
      checkPreorder(report.nodes);
      for (const shape of SHAPES)
        if ((shape.func ?? 0) < report.functions.count)
          checkSums(...(({tree, current}) => [tree, current])(model.activeData(report, shape)));
    } catch (error) {
      assert.ok(error instanceof model.PageError, error.stack);
    }
  }
});

test("inflate: what is written is what is read, and damage is told", async () => {
  const text = pack(BLOB), packed = Buffer.from(text, "base64");

  assert.deepEqual(Buffer.from(await model.inflate(text)), BLOB);
  await assert.rejects(model.inflate(text.slice(0, 40)), model.PageError);
  await assert.rejects(model.inflate("<b>" + text), model.PageError);
  for (let i = 0; i < packed.length; i++) {
    const changed = Buffer.from(packed);
    changed[i] ^= 0x41;
    await assert.rejects(model.inflate(changed.toString("base64")), model.PageError);
  }
});

test("inflate: a browser that cannot unpack gets a sentence", async () => {
  const kept = globalThis.DecompressionStream;

  for (const none of [undefined, class { constructor() { throw new TypeError("format"); } }]) {
    globalThis.DecompressionStream = none;
    await assert.rejects(model.inflate(pack(BLOB)), /too old.*Chrome 103/s);
  }
  globalThis.DecompressionStream = kept;
});

test("timeScale: of the side that is shown, as long as its runs are", () => {
  const runs = [{side: 0, blocks: 40, block_ns: 152e6}, {side: 1, blocks: 40, block_ns: 50.75e6}];
  const meta = {runs, blocks: 79}, more = {...meta, runs: [...runs,
    {side: 1, blocks: 60, block_ns: 50.8e6}]};
  const ends = (facts, side) => {
    const {blocks, text, hasTime} = model.timeScale(facts, side);
    return [blocks, text(0), text(blocks), hasTime];
  };

  assert.deepEqual(ends(meta, 0), [40, "0", "6.08 s", true]);
  assert.deepEqual(ends(meta, 1), [40, "0", "2.03 s", true]);
  assert.deepEqual(ends(more, 1), [60, "0", "3.05 s", true]);
});

test("timeScale: runs of several lengths have their parts in common, and no time", () => {
  const runs = [1e8, 1.1e8].map((block_ns) => ({side: 1, blocks: 40, block_ns}));
  const {text, hasTime} = model.timeScale({runs, blocks: 40}, 1);

  assert.deepEqual([text(0), text(20), text(40), hasTime], ["0%", "50.0%", "100%", true]);
});

test("timeScale: blocks that samples were dealt out to are no time, nor are texts'", () => {
  for (const run of [{side: 1, blocks: 40, block_ns: 1e6, dealt: true}, {side: 1, blocks: 1}])
    assert.equal(model.timeScale({runs: [run], blocks: 40}, 1).hasTime, false);
});
