// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"use strict";
const test = require("node:test");
const assert = require("node:assert");
require("../../assets/model.js");
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
