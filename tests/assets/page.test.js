// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"use strict";
const test = require("node:test");
const assert = require("node:assert");
for (const name of ["model", "noise", "stats", "names", "state", "layout", "search", "palette", "export", "flamegraph"])
  require(`../../assets/${name}.js`);
const page = globalThis.pyebpf;

// root 10: a 6 (b 4 (d 1), c 1), e 3; 1 of the root's own
const TREE = {count: 6, parent: [-1, 0, 1, 2, 1, 0], depth: [0, 1, 2, 3, 2, 1], end: [6, 5, 4, 4, 5, 6],
  func: [0, 1, 2, 3, 2, 4]};
const OWN = [1, 1, 3, 1, 1, 3];
const TOTAL = page.totals(TREE, OWN);
const BOXES = page.layout(TREE, TOTAL);
const NO_STRENGTH = new Uint8Array(1), GREY = new Uint8Array(6);

test("totals: each node has its own and its children's weight", () => {
  assert.deepEqual([...TOTAL], [10, 6, 4, 1, 1, 3]);
});

test("layout: siblings stand side by side, below their caller", () => {
  const place = (node) => ["x0", "x1"].map((key) => BOXES[key][page.boxOf(BOXES, TREE, node)]);

  assert.deepEqual([0, 1, 2, 3, 4, 5].map(place),
    [[0, 10], [0, 6], [0, 4], [0, 1], [4, 5], [6, 9]]);
  assert.deepEqual([...BOXES.start], [0, 1, 3, 5, 6]);
});

test("layout: nodes without width have no box", () => {
  const boxes = page.layout(TREE, [10, 6, 0, 0, 1, 3]);

  assert.deepEqual([1, 2, 3, 4, -1].map((node) => page.boxOf(boxes, TREE, node)), [1, -1, -1, 3, -1]);
  assert.equal(boxes.rows, 3);
  assert.equal(page.layout(TREE, new Float64Array(6)).rows, 0);
});

test("boxAt: the box under a point, none beside or below", () => {
  const at = (row, x) => {
    const box = page.boxAt(BOXES, row, x);

    return box < 0 ? -1 : BOXES.node[box];
  };

  assert.deepEqual([at(0, 9.9), at(1, 5.99), at(1, 6), at(1, 9), at(2, 4), at(3, 2), at(4, 0),
    at(-1, 0)], [0, 1, 5, -1, 4, -1, -1, -1]);
});

test("onScreen: boxes of a pixel or more stand for themselves, cut at the edges", () => {
  const seen = page.onScreen(BOXES, {from: 3, to: 8, size: 100, top: 1, bottom: 3}, GREY,
    NO_STRENGTH);
  const list = [...Array(seen.n).keys()].map((i) => [BOXES.node[seen.box[i]], seen.row[i],
    seen.x[i], seen.width[i], seen.run[i]]);

  assert.deepEqual(list, [[1, 1, 0, 60, 1], [5, 1, 60, 40, 1], [2, 2, 0, 20, 1], [4, 2, 20, 20, 1]]);
});

function manyNarrow(count) {
  return {count: count + 1, parent: Int32Array.from({length: count + 1}, (_, i) => i ? 0 : -1),
    depth: Uint32Array.from({length: count + 1}, (_, i) => i ? 1 : 0)};
}

test("onScreen: a run of narrow boxes shows its strongest, at least a pixel wide", () => {
  const tree = manyNarrow(1000), own = new Float64Array(1001).fill(1);
  const colour = new Uint8Array(1001);

  own[0] = 0;
  colour[500] = 2;
  const boxes = page.layout(tree, page.totals(tree, own));
  const seen = page.onScreen(boxes, {from: 0, to: 1000, size: 100, top: 1, bottom: 2}, colour,
    Uint8Array.of(0, 0, 5));
  const strong = [...Array(seen.n).keys()].filter((i) => boxes.node[seen.box[i]] === 500);

  assert.equal(strong.length, 1);
  assert.ok(seen.width[strong[0]] >= 1);
  assert.ok(seen.n >= 90 && seen.n <= 110, `${seen.n} runs in 100 pixels`);
  assert.equal([...seen.run.subarray(0, seen.n)].reduce((a, b) => a + b), 1000);
});

// A row of boxes, most of them far below a pixel; widths and colours by a fixed sequence.
test("onScreen: many boxes show what they would one by one", () => {
  const count = 120000, tree = manyNarrow(count), own = new Float64Array(count + 1);
  const colour = new Uint8Array(count + 1), strength = Uint8Array.of(0, 1, 7);
  let random = 1;

  for (let i = 1; i <= count; i++) {
    random = random * 48271 % 2147483647;
    own[i] = random % 5000 === 0 ? 20000 : 1 + random % 7;
    colour[i] = random % 9001 === 0 ? 2 : Number(random % 5 === 0);
  }
  const boxes = page.layout(tree, page.totals(tree, own)), whole = boxes.x1[0];
  const counted = (seen) => [...seen.run.subarray(0, seen.n)].reduce((a, b) => a + b, 0);
  const strong = [...colour.keys()].filter((i) => colour[i] === 2);
  const all = {from: 0, to: whole, size: 300, top: 1, bottom: 2};

  assert.equal(counted(page.onScreen(boxes, {...all, isLast: true}, colour, strength)), count);
  assert.equal(counted(page.onScreen(boxes, all, colour, strength)), count);
  assert.ok(!boxes.overview, "one look does without");
  for (const size of [300, 1000, 4000]) {
    const pixel = whole / size, view = {from: 0, to: whole, size, top: 1, bottom: 2};
    const seen = page.onScreen(boxes, view, colour, strength);
    const shown = [...Array(seen.n).keys()];
    const wide = shown.filter((i) => seen.width[i] * pixel >= pixel && seen.run[i] === 1)
      .map((i) => boxes.node[seen.box[i]]);

    assert.ok(boxes.overview.start[2] < count / 10);
    assert.equal(counted(seen), count, `${size} pixels: each box stands for itself or in a run`);
    assert.deepEqual(wide.filter((node) => own[node] === 20000),
      [...own.keys()].filter((node) => own[node] === 20000), `${size} pixels: wide boxes`);
    for (const i of shown)
      assert.ok(i === 0 || seen.x[i] >= seen.x[i - 1], `${size} pixels: from left to right`);
    for (const node of strong) {
      const x = boxes.x0[node] / pixel;

      assert.ok(shown.some((i) => colour[boxes.node[seen.box[i]]] === 2 && seen.width[i] >= 0.999 &&
        Math.abs(seen.x[i] - x) <= 2), `${size} pixels: the strong box ${node} is seen`);
    }
  }
  const near = page.onScreen(boxes, {from: 0, to: whole / 100, size: 1000, top: 1, bottom: 2}, colour,
    strength);

  assert.equal(counted(near), page.firstBox(boxes, 1, whole / 100) + 1 - boxes.start[1]);
  const other = new Uint8Array(count + 1);

  other[77777] = 2;
  for (const look of ["first", "second"]) {
    const seen = page.onScreen(boxes, all, other, strength);

    assert.ok(seen.box.subarray(0, seen.n).includes(77777), `${look} look: other colours`);
  }
  page.onScreen(boxes, all, colour, null);
  const plain = page.onScreen(boxes, all, colour, null), {overview} = boxes, shown = plain.box.slice(0, plain.n);

  assert.equal(counted(plain), count);
  assert.deepEqual(page.onScreen(boxes, all, other, null).box.subarray(0, shown.length), shown,
    "without strength all colours are one");
  assert.equal(boxes.overview, overview);
});

test("onScreen: more boxes than the first buffer holds", () => {
  const tree = manyNarrow(20000), own = new Float64Array(20001).fill(1);

  own[0] = 0;
  const boxes = page.layout(tree, page.totals(tree, own));
  const seen = page.onScreen(boxes, {from: 0, to: 20000, size: 40000, top: 0, bottom: 2},
    new Uint8Array(20001), NO_STRENGTH);

  assert.equal(seen.n, 20001);
  assert.equal(boxes.node[seen.box[20000]], 20000);
});

test("onScreen: rows beyond 65,536 are where they are", () => {
  const count = 66000, depth = Uint32Array.from({length: count}, (_, i) => i);
  const tree = {count, depth, parent: depth.map((d) => d - 1), end: depth.map(() => count)};
  const boxes = page.layout(tree, new Uint8Array(count).fill(1));
  const seen = page.onScreen(boxes, {from: 0, to: 1, size: 100, top: 65600, bottom: 65602},
    new Uint8Array(count), null);

  assert.deepEqual([...seen.row.subarray(0, seen.n)], [65600, 65601]);
});

test("neighbour: callers, widest callees and neighbours in the row", () => {
  const go = (from, direction) => page.neighbour(TREE, BOXES, from, direction);

  assert.deepEqual([go(2, "up"), go(0, "up"), go(0, "down"), go(1, "down"), go(3, "down"),
    go(1, "right"), go(5, "right"), go(4, "left"), go(1, "left")], [1, 0, 1, 2, 3, 5, 5, 2, 1]);
});

test("compile: capitals make case matter, broken patterns are text", () => {
  const cases = [
    ["json", "JSONEncoder", true], ["JSON", "json", false], ["^a.c$", "abc", true],
    ["a.c", "a-c", true], ["foo(", "call foo(x)", true], ["foo(", "foo", false],
    ["[", "a[0]", true], ["\\W", "a", false], ["\\W", "-", true],
  ];

  for (const [pattern, text, want] of cases)
    assert.equal(page.compile(pattern).test(text), want, `${pattern} in ${text}`);
  assert.equal(page.compile(""), null);
  assert.notEqual(page.compile("(").error, "");
  assert.equal(page.compile("a|b").error, "");
});

test("covered: a match under a match counts once", () => {
  const matched = page.matchFunctions(page.compile("^[bc]$"), 5, (f) => ["", "a", "b", "c", "e"][f]
    ? [["", "a", "b", "c", "e"][f]] : []);

  assert.deepEqual([...matched], [0, 0, 1, 1, 0]);
  assert.deepEqual(page.covered(TREE, TOTAL, matched), {nodes: 3, weight: 5});
});

test("nextMatch: goes round, both ways, from anywhere, also to a match under a match", () => {
  const matched = [0, 0, 1, 1, 0], next = (node, step) => page.nextMatch(TREE, TOTAL, matched, node, step);
  const matches = [...TREE.func.keys()].filter((i) => matched[TREE.func[i]]);

  assert.equal(matches.length, page.covered(TREE, TOTAL, matched).nodes);
  assert.deepEqual(matches.map((m) => next(m, 1)), [...matches.slice(1), matches[0]]);
  assert.deepEqual(matches.map((m) => next(m, -1)), [matches[2], ...matches.slice(0, 2)]);
  assert.deepEqual([next(0, 1), next(0, -1)], [matches[0], matches[2]]);
});

test("visible: nothing hides, reorders or breaks", () => {
  const cases = [
    ["plain", "plain"], ["\u202eevil", "\\u{202e}evil"], ["a\u2028b", "a\\u{2028}b"],
    ["\ud800x", "\\u{d800}x"], ["tab\t", "tab\\u{9}"], ["zero\u200bwidth", "zero\\u{200b}width"],
    ["\u{e0041}", "\\u{e0041}"], ["größe 函数 \u{1f600}", "größe 函数 \u{1f600}"],
    ["\u2066iso\u2069", "\\u{2066}iso\\u{2069}"], ["\ufffe\ufdd0\u{1ffff}", "\\u{fffe}\\u{fdd0}\\u{1ffff}"],
  ];

  for (const [text, want] of cases)
    assert.equal(page.visible(text), want);
  assert.equal(page.visible("x".repeat(10000)).length, 401);
});

test("numbers read as people write them", () => {
  const cases = [
    [page.percent(0.12345), "12.3%"], [page.percent(0), "0%"], [page.percent(1), "100%"],
    [page.percent(0.00312), "0.31%"], [page.percent(0.00001), "<0.01%"], [page.percent(0 / 0), "–"],
    [page.ratio(2.1), "+110%"], [page.ratio(0.5), "−50.0%"], [page.ratio(12.34), "12.3×"],
    [page.ratio(Infinity), "–"], [page.count(1234567), "1\u2009234\u2009567"], [page.count(0.5), "0.5"],
    [page.duration(0), "0"], [page.duration(1237), "1.24 s"], [page.duration(-96.4), "−96.4 ms"],
    [page.duration(0.25), "250 µs"], [page.duration(5400e3), "1.50 h"],
  ];

  for (const [got, want] of cases)
    assert.equal(got, want);
});

test("fitOne: the first name that fits whole, else the last one cut", () => {
  const fit = (width) => page.fitOne(["Shop.render", page.lastPart("Shop.render")], width, () => 1);

  assert.deepEqual([fit(11), fit(10), fit(6), fit(5)], ["Shop.render", "render", "render", "rend…"]);
  assert.deepEqual(["f", "a.<locals>.<lambda>", "odd."].map(page.lastPart), ["f", "<lambda>", "odd."]);
});

test("fit: whole if it fits, else cut with an ellipsis, else nothing", () => {
  const fit = (text, width) => page.fit(text, width, () => 1);

  assert.deepEqual([fit("handle", 6), fit("handle", 5), fit("handle", 3), fit("handle", 2),
    fit("\u{1f600}\u{1f600}\u{1f600}\u{1f600}", 3)],
  ["handle", "hand…", "ha…", "", "\u{1f600}\u{1f600}…"]);
});

test("writeState, readState: every field comes back", () => {
  const state = {...page.defaultState(), view: "elided", basis: "delta", by: "line",
    shape: "sandwich", func: 12, process: ["web (1)", "a,b=c&d", "%41"], thread: ["Thread-1"],
    pod: ["größe"], range: [3, 17], baseRange: [0, 3], measure: "self", effect: "impact",
    marks: [1.2, 1.3, 2, 3.5], palette: "colourblind", theme: "dark", label: "module",
    imports: false, libraries: false, list: "gil", group: "label:a&b=c", q: "a|b&c=d#%", select: "--focus 'a&b'", sort: "-self", zoom: [4, 0, 9], span: [0.25, 0.75], sel: [1]};
  const defaults = page.defaultState();

  for (const key of Object.keys(state))
    assert.notDeepEqual(state[key], defaults[key], `${key} is not tried`);
  assert.deepEqual(page.readState("#" + page.writeState(state)), state);
  assert.equal(page.writeState(defaults), "");
});

test("writeState, readState: what has no name is a name", () => {
  for (const thread of [[""], ["", "a"], ["a", ""], ["a,b", "", "c"], []]) {
    const hash = page.writeState({...page.defaultState(), thread});

    assert.deepEqual(page.readState("#" + hash).thread, thread, hash);
  }
});

test("readState: what cannot be keeps the default", () => {
  const hashes = ["#view=x", "#range=9-3", "#range=a", "#marks=1-2-3", "#marks=2-1.5-1.2-1.1",
    "#zoom=1..2", "#constructor=1", "#__proto__=1", "#q", "#=", "#q=%E0%A4%A", "#func=-1",
    "#thread=%25zz", "#&&&", "#imports=yes", "#span=0.5-0.2", "#span=x", "#span=0-2"];

  for (const hash of hashes)
    assert.deepEqual(page.readState(hash), page.defaultState(), hash);
});

const SCHEMES = ["diff", "colourblind", "modules", "heat"];

test("palette: text reads on every fill", () => {
  for (const scheme of SCHEMES)
    for (const theme of ["light", "dark"]) {
      const {fills, texts} = page.palette(scheme, theme);

      fills.forEach((fill, i) => assert.ok(page.contrast(fill, texts[i]) >= 4.5,
        `${scheme} ${theme} ${fill} ${texts[i]}: ${page.contrast(fill, texts[i])}`));
    }
});

test("palette: every class has a colour; undetermined, rare and removed are hatched", () => {
  for (const [scheme, theme] of [["diff", "light"], ["diff", "dark"], ["colourblind", "light"]]) {
    const {fills, hatch, strength} = page.palette(scheme, theme);

    assert.equal(fills.length, page.CLASSES.length + 1);
    assert.equal(page.NEW_BELOW, page.CLASSES.length);
    assert.deepEqual(page.CLASSES.filter((_, i) => hatch[i]), ["undetermined", "rare", "removed"]);
    assert.ok(strength[page.CLASSES.indexOf("new")] > strength[page.CLASSES.indexOf("slower4")]);
  }
  assert.equal(page.palette("diff", "light").fills[page.CLASSES.indexOf("slower4")], "#b2182b");
  assert.equal(page.palette("diff", "dark").fills[page.CLASSES.indexOf("faster4")], "#7cc0ff");
  assert.equal(page.palette("colourblind", "light").fills[page.CLASSES.indexOf("removed")], "#c299bb");
});

test("moduleColour, heatColour: numbers within their palettes", () => {
  const modules = page.palette("modules", "light").fills.length;

  for (const name of ["a", "orders", "json.decoder", "日本"])
    for (const isOwn of [true, false]) {
      const colour = page.moduleColour(name, "f", isOwn);

      assert.ok(colour > 0 && colour < modules);
      assert.equal(colour >= page.LIBRARY + 1, !isOwn);
    }
  assert.equal(page.moduleColour("", "f", true), 0);
  assert.deepEqual([0, 1e-9, 0.25, 1, 2].map(page.heatColour), [0, 1, 6, 12, 12]);
});

test("paint: what waits of a box is hatched, on the left of it", () => {
  const colour = Uint8Array.of(0, 1, 40, 1, 80, 100), waits = Float64Array.of(5, 3, 3, 0, 0, 3);
  const palette = page.palette("modules", "light", true);
  const svg = page.svgPicture({tree: TREE, boxes: BOXES, colour, palette, waits, weight: TOTAL,
    matched: null, note: () => "", labels: () => ["x"], describe: () => ""},
  {from: 2, to: 10, size: 800, line: 0, top: 0, bottom: 4},
  {row: 20, background: "#ffffff", ink: "#000000", hatch: "#888888"}, "", () => 6);
  const rects = (fill) => [...svg.matchAll(/x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="19" fill="([^"]*)"/g)]
    .filter((match) => match[4] === fill).map((match) => match.slice(1, 4).map(Number));

  // of main's 10 half, from 2 on; of a's 6 three, of b's 4 three; all of e's
  assert.deepEqual(rects("url(#h)").sort(), [[0, 0, 299], [0, 20, 99], [0, 40, 99], [400, 20, 299]]);
  assert.deepEqual(rects(palette.fills[palette.waits[100]]), [[400, 20, 299]]);
  assert.deepEqual(rects(palette.fills[100]), [], "what waits only is of no other colour");
  assert.deepEqual(rects(palette.fills[80]), [[200, 40, 99]]);
});

test("bytes: three figures of what suits", () => {
  assert.deepEqual([0, 1, 1023, 1024, 12 << 20, 1536 * 2 ** 20, 2 ** 45, -2048].map(page.bytes),
    ["0 B", "1 B", "1\u2009023 B", "1 KiB", "12 MiB", "1.5 GiB", "32 TiB", "−2 KiB"]);
});

test("svgPicture: names are text, whatever they hold", () => {
  const scene = {tree: TREE, boxes: BOXES, colour: GREY, palette: page.palette("diff", "light"),
    matched: null, note: () => "<b>", labels: () => ["</text><script>alert(1)</script>"],
    describe: () => "\"&<>\u202e"};
  const svg = page.svgPicture(scene, {from: 0, to: 10, size: 800, line: 0, top: 0, bottom: 4},
    {row: 20, background: "#ffffff", ink: "#000000", hatch: "#888888"}, "a & b", () => 6);

  assert.ok(!svg.includes("<script"));
  assert.ok(svg.includes("&lt;/text&gt;&lt;script&gt;"));
  assert.ok(svg.includes("&quot;&amp;&lt;&gt;\\u{202e}"));
  assert.ok(svg.includes(">&lt;b&gt;</text>"));
  assert.equal(svg.match(/<title>/g).length, 6);
});
