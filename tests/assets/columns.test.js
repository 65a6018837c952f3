// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"use strict";
const test = require("node:test");
const assert = require("node:assert");
for (const name of ["model", "names", "stats", "details", "columns"])
  require(`../../assets/${name}.js`);
const {tableColumns, rowsToShow, accentsOf, CLASSES} = globalThis.pyebpf;

// Functions 1: grew from 10 to 30; 2: new, 10; 3: gone, 20; 4: of neither side.
const TABLE = {
  self: [0, 30, 10, 0, 0], total: [40, 30, 10, 0, 0], baseSelf: [0, 10, 0, 20, 0], baseTotal: [30, 10, 0, 20, 0],
  all: 40, allBase: 30, scale: 1, allRemoved: 20, removed: {self: [0, 0, 0, 20, 0], total: [20, 0, 0, 20, 0]},
};
const facts = (f) => ({name: "f" + f, module: f === 1 ? "shop" : "", place: `f.py:${f}`});

test("rowsToShow: functions that the view has anything of, and the search finds", () => {
  for (const [view, matched, want] of [["head", null, [1, 2]], ["base", null, [1, 3]], ["diff", null, [1, 2, 3]],
    ["elided", null, [3]], ["diff", [0, 0, 1, 1, 1], [2, 3]]])
    assert.deepEqual(rowsToShow(TABLE, view, matched), want, view);
});

test("tableColumns: what each view has in a row", () => {
  for (const [view, f, want] of [
    ["head", 1, "f1 75.0% 75.0%"], ["base", 3, "f3 66.7% 66.7%"], ["elided", 3, "f3 20 20"],
    ["diff", 1, "f1 +20 +200% +20 75.0% 75.0%"], ["diff", 3, "f3 -20 −100% -20 0% 0%"],
    ["diff", 2, "f2 +10 new +10 25.0% 25.0%"]]) {
    const columns = tableColumns({table: TABLE, view, rows: [1, 2, 3], facts, amount: String, isSorted: false});

    assert.equal(columns.map(({text}) => text(f)).join(" "), want, view);
  }
});

test("tableColumns: changes stand by their size, by their sign where the reader sorts", () => {
  for (const [isSorted, want] of [[false, 20], [true, -20]]) {
    const [, change] = tableColumns({table: TABLE, view: "diff", rows: [1, 3], facts, amount: String, isSorted});

    assert.equal(change.value(3), want);
  }
});

test("accentsOf: a change's family; nothing where there are no verdicts", () => {
  const of = accentsOf({verdicts: ["slower2", "unchanged", "new"].map((name) => CLASSES.indexOf(name))});

  assert.deepEqual([0, 1, 2].map(of), ["slower", "", "new"]);
  assert.equal(accentsOf({verdicts: null})(0), "");
});
