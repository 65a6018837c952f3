// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"use strict";
const test = require("node:test");
const assert = require("node:assert");
require("../../assets/model.js");
require("../../assets/noise.js");
require("../../assets/stats.js");
const {encode} = require("./fixture.js");
const page = globalThis.pyebpf;

// Reference values: C's erfc(), closed forms of t (df = 3), tables of R.
for (const [name, got, want] of [
  ["erfc(0.5)", page.erfc(0.5), 0.47950012218695346],
  ["erfc(1.99)", page.erfc(1.99), 0.004888586800383003],
  ["erfc(2)", page.erfc(2), 0.0046777349810472658],
  ["erfc(5)", page.erfc(5), 1.5374597944280348e-12],
  ["normal, z = 1.96", page.normalTwoSided(1.96), 0.049995790296440868],
  ["t = 2, df = 10", page.studentTwoSided(2, 10), 0.073388034770740365],
  ["t = 8, df = 3", page.studentTwoSided(8, 3), 0.004076577587785457],
  ["t beyond 5 %, df = 5", page.studentBeyond(0.05, 5), 2.5705818356363147],
  ["t beyond 5 %, df = infinity", page.studentBeyond(0.05, Infinity), 1.9599639845400542],
  ["trigamma(0.5)", page.trigamma(0.5), 4.9348022005446793],
])
  test(name, () => {
    assert.ok(Math.abs(got - want) <= 1e-9 * Math.abs(want), `${got}, not ${want}`);
  });

test("largestFound: what makes one of larger chances sure makes those below it sure", () => {
  const chances = [0.004, 0.0001, 0.009, 0.0035], alike = [1, 1, 1, 1];

  assert.equal(page.largestFound(chances, alike, 4), 0.009);
  assert.equal(page.largestFound(chances, alike, 7), 0.004); // 0.009 * 7 / 4
  assert.equal(page.largestFound(chances, alike, 50), 0.0001);
  assert.equal(page.largestFound([0.004], [1], 50), undefined);
});

test("largestFound: ten boxes in one another are one finding", () => {
  const chances = [...Array(10).fill(0.0001), 0.004];

  assert.equal(page.largestFound(chances, [...Array(9).fill(0.001), 1, 1], 6), 0.0001);
  assert.equal(page.largestFound(chances, Array(11).fill(1), 6), 0.004);
});

const META = {kind: "diff", blocks: 40, diff: {normalize: "absolute", centre: 1}};
const RUN = {blocks: 40, block_ns: 1e9, duration_ns: 4e10, interval_ns: 1e7};

// What stacks have in each of 40 blocks: [stack, base, current]; wave: how far blocks differ.
function twoRuns(rows, wave = 0, meta = {}) {
  const samples = [];
  for (const [stack, ...ticks] of rows)
    for (let block = 0; block < 40; block++)
      ticks.forEach((count, run) => {
        const own = Math.round(count * (1 + (block & 2 ? wave : -wave)));
        if (own)
          samples.push({stack, run, block, ticks: own});
      });
  return page.decode(encode({samples,
    meta: {...META, runs: [{...RUN, side: 0}, {...RUN, side: 1}], ...meta}}));
}

function classesByName(report, state = {}, marks = null) {
  const active = page.activeData(report, {view: "diff", ...state});
  const {total} = page.classify(active, {marks});
  const out = {};
  for (let i = 1; i < active.tree.count; i++)
    out[page.functionName(report, active.tree.func[i])] = page.CLASSES[total[i]];
  return out;
}

test("classify: steady blocks tell changes of 30 %, and what is new and gone", () => {
  assert.deepEqual(classesByName(twoRuns([["same (a.py:1)", 50, 50], ["slower (a.py:2)", 40, 52],
    ["half (a.py:3)", 40, 15], ["new (a.py:4)", 0, 10], ["gone (a.py:5)", 10, 0]])),
  {same: "unchanged", slower: "slower2", half: "faster4", new: "new", gone: "removed"});
});

test("classify: the same counts in bursts tell nothing", () => {
  assert.deepEqual(classesByName(twoRuns([["slower (a.py:2)", 40, 44], ["half (a.py:3)", 40, 36]],
    0.9)), {slower: "undetermined", half: "undetermined"});
});

test("classify: few ticks tell nothing, but where marks are far apart", () => {
  const samples = [];
  for (let block = 0; block < 40; block++)
    for (const run of [0, 1]) {
      samples.push({stack: "many (a.py:1)", run, block, ticks: 50});
      if (block % 13 === 0)
        samples.push({stack: "few (a.py:2)", run, block}); // 4 a side
    }
  const report = page.decode(encode({samples,
    meta: {...META, runs: [{...RUN, side: 0}, {...RUN, side: 1}]}}));
  const active = page.activeData(report, {view: "diff"});
  const {low, high} = page.classify(active).measures(2);

  assert.ok(high > 3 && high < 10 && Math.abs(low * high - 1) < 1e-12);
  for (const [mark, few] of [[1.1, "undetermined"], [high * 0.999, "undetermined"],
    [high * 1.001, "unchanged"]])
    assert.deepEqual(classesByName(report, {}, [mark, 20, 30, 40]), {many: "unchanged", few});
});

test("classify: by line and callers first, paths of one function, as by function", () => {
  const report = twoRuns([["same (a.py:1)", 50, 50], ["slower (a.py:2)", 40, 52],
    ["half (a.py:3)", 40, 15], ["new (a.py:4)", 0, 10], ["rest (a.py:5)", 7, 8]], 0.1);
  const measured = (state) => {
    const active = page.activeData(report, {view: "diff", ...state});
    const {total, self, measures} = page.classify(active), of = {};
    for (let i = 1; i < active.tree.count; i++)
      of[page.functionName(report, active.tree.func[i])] = [total[i], self[i], measures(i)];
    return of;
  };
  const plain = measured({});

  assert.equal(Object.keys(plain).length, 5);
  for (const state of [{by: "line"}, {shape: "inverted"}, {by: "line", shape: "inverted"}])
    assert.deepEqual(measured(state), plain);
});

test("classifyFunctions: a function of one path has the class of its box", () => {
  const report = twoRuns([["same (a.py:1)", 50, 50], ["slower (a.py:2)", 40, 52],
    ["half (a.py:3)", 40, 15], ["new (a.py:4)", 0, 10], ["gone (a.py:5)", 10, 0]]);
  const active = page.activeData(report, {view: "diff"}), table = page.functionTable(active);
  const boxes = page.classify(active);

  for (const measure of ["total", "self"]) {
    const classes = page.classifyFunctions(active, table, {measure});
    for (let i = 1; i < active.tree.count; i++)
      assert.equal(classes[active.tree.func[i]], boxes[measure][i]);
  }
});

test("classify: a filter leaves nothing to compare: nothing is told", () => {
  assert.deepEqual(classesByName(twoRuns([["slower (a.py:2)", 40, 80]]), {thread: ["nobody"]}),
    {slower: "unchanged"});
});

test("classify: two ranges of one recording", () => {
  const samples = [];
  for (let block = 0; block < 40; block++) {
    samples.push({stack: "steady (a.py:1)", block, ticks: 100});
    samples.push({stack: "phase (a.py:2)", block, ticks: block < 20 ? 20 : 60});
  }
  const report = page.decode(encode({samples, meta: {runs: [{...RUN, side: 1}]}}));

  assert.deepEqual(classesByName(report, {range: [20, 40], baseRange: [0, 20]}),
    {steady: "unchanged", phase: "slower4"});
  assert.deepEqual(classesByName(report, {range: [0, 20], baseRange: [20, 40]}),
    {steady: "unchanged", phase: "faster4"});
});

test("findReplicates: blocks are joined to twenty parts of a run", () => {
  const report = page.decode(encode({samples: [{stack: "f (a.py:1)"}],
    meta: {blocks: 640, runs: [{...RUN, blocks: 640, block_ns: 1e6, side: 1}]}}));
  const active = page.activeData(report, {range: [0, 320], baseRange: [320, 400]});
  const {by, sides} = page.findReplicates(active);

  assert.equal(by, "blocks");
  assert.deepEqual(sides.map((list) => list.length), [20, 20]);
  for (const list of sides)
    assert.ok(Math.abs(list.reduce((sum, {exposure}) => sum + exposure, 0) - 1) < 1e-12);
});
