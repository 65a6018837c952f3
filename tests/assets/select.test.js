// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Vectors of the selection language, tests/vectors/select.json: the program and the page, of the same
// samples, have the same left of them.
"use strict";
const test = require("node:test");
const assert = require("node:assert");
const {execFileSync, spawnSync} = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const {inflateSync} = require("node:zlib");
require("../../assets/model.js");
require("../../assets/names.js");
require("../../assets/select.js");
const page = globalThis.pyebpf;

const PAGES = process.env.PAGES || path.join(__dirname, "../../build/tests/pages");
const PYEBPF = path.join(path.dirname(PAGES), "../pyebpf");
const VECTORS = JSON.parse(fs.readFileSync(path.join(__dirname, "../vectors/select.json"), "utf8"));
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "pyebpf-select-"));
process.on("exit", () => fs.rmSync(folder, {recursive: true, force: true}));

function writeText(name, samples) {
  const file = path.join(folder, name);
  fs.writeFileSync(file, samples.join("\n") + "\n");
  return file;
}

function makeRecording(name) {
  const file = path.join(folder, `${name}.pyebpf`);
  execFileSync(path.join(path.dirname(PAGES), `${name}_recording`), [file]);
  return file;
}

function readPage(...operands) {
  const file = path.join(folder, "page.html");
  execFileSync(PYEBPF, ["report", "-q", "-o", file, ...operands]);
  const [, data] = /<script id="pyebpf-data"[^>]*>([^<]*)</.exec(fs.readFileSync(file, "utf8"));
  return page.decode(inflateSync(Buffer.from(data, "base64")));
}

const text = writeText("samples.txt", VECTORS.samples), merged = writeText("merged.txt", VECTORS.merged.samples);
const recording = makeRecording("kinds"), waits = makeRecording("waits");
const report = readPage(text);

// The shell takes a text apart as it would at a prompt.
function program(file, selection, ...options) {
  const done = spawnSync("/bin/sh", ["-c", `exec "$0" export -q -f collapsed ${options.join(" ")} ${
    selection} "$1"`, PYEBPF, file], {encoding: "utf8"});

  assert.ok([0, 3].includes(done.status), selection + ": " + done.stderr);
  return done.stdout.split("\n").filter(Boolean).map((line) => {
    const [, frames, ticks] = /^(.*) (\d+)$/.exec(line);
    return {frames: frames.split(";").map((frame) => frame.replace(/ \([^()]*\)$/, "")), ticks: Number(ticks)};
  });
}

const sum = (list) => list.reduce((all, {ticks}) => all + ticks, 0);

test("what is left, of the program and of the page", () => {
  for (const {text: select, left} of VECTORS.cases) {
    const {current} = page.activeData(report, {select});

    assert.equal(page.selectionOf(report, {select}).error, undefined, select);
    assert.equal(sum(program(text, select, "--fold-imports")), left, `the program: ${select}`);
    assert.equal(current.total[0], left, `the page: ${select}`);
  }
});

test("hidden functions: what they did is their callers'", () => {
  for (const {text: select, self} of VECTORS.hidden) {
    const {hidden} = page.selectionOf(report, {select});
    const {tree, current} = page.activeData(report, {select, hidden});
    const found = {}, ofProgram = {};

    for (let i = 1; i < tree.count; i++)
      if (current.self[i])
        found[page.functionName(report, tree.func[i])] =
          (found[page.functionName(report, tree.func[i])] ?? 0) + current.self[i];
    for (const {frames, ticks} of program(text, select, "--no-lines", "--fold-imports"))
      ofProgram[frames.at(-1)] = (ofProgram[frames.at(-1)] ?? 0) + ticks;
    assert.deepEqual(found, self, `the page: ${select}`);
    assert.deepEqual(ofProgram, self, `the program: ${select}`);
  }
});

test("kinds, labels, containers, parts of the time", () => {
  const kinds = readPage(recording);

  assert.equal(page.activeData(kinds, {}).current.total[0], 1000);
  for (const {text: select, left} of VECTORS.recording.cases) {
    const {error, note} = page.selectionOf(kinds, {select});

    assert.equal(sum(program(recording, select)), left, `the program: ${select}`);
    assert.equal(page.activeData(kinds, {select}).current.total[0], left, `the page: ${select}`);
    assert.ok(!error && !note, `${select}: ${error} ${note}`);
  }
});

test("waits, and what is looked at by default", () => {
  const wall = readPage(waits);

  for (const {text: select, left} of VECTORS.waits.cases) {
    assert.equal(sum(program(waits, select)), left, `the program: ${select}`);
    assert.equal(page.activeData(wall, {select}).current.total[0], left, `the page: ${select}`);
  }
});

test("parts of the time add up", () => {
  const kinds = readPage(recording), [{block_ns: length}] = kinds.meta.runs, at = (block) => `${Math.ceil(block * length)}ns`;

  for (const [from, to] of [[0, 64], [64, 65], [65, 500], [500, 639]])
    for (const kind of ["cpu", "off-cpu"]) {
      const select = `--time-range ${at(from)}..${at(to)} --kind ${kind}`, {current} = page.activeData(kinds, {select});

      assert.equal(current.total[0], sum(program(recording, select)), select);
      assert.equal(page.selectionOf(kinds, {select}).note, "", select);
    }
});

test("wall time: what the program shows first, and what waiting in any part of the time", () => {
  const wall = readPage(waits), [{block_ns: length}] = wall.meta.runs;
  const total = (select) => page.activeData(wall, {select}).current.total[0];

  assert.equal(total(""), 50e9);
  assert.deepEqual(page.kindWords(wall.meta), ["wall", "cpu", "off-cpu", "gil-contention", "memory"]);
  for (const select of ["", "--kind wall", "--kind cpu", "--kind off-cpu", "--kind gil-contention", "--kind memory",
    "--thread pool", "--label wait=GIL", "--focus work --kind off-cpu",
    "--no-idle", "--no-idle --kind off-cpu", "--kind gil-contention --no-idle", "--thread worker --no-idle",
    `--time-range ${Math.ceil(100 * length)}ns..${Math.ceil(203 * length)}ns`])
    assert.equal(total(select), sum(program(waits, select)), select);
  assert.deepEqual(page.idleSums(wall, {select: "--no-idle --process shop"}), [["pool worker", 13.5e9]]);
  assert.deepEqual(page.idleSums(wall, {select: "--kind cpu --no-idle"}), []);
  assert.deepEqual(wall.meta.gil[0], ["work", "/srv/shop.py", "compute", "/srv/shop.py", 4, 4]);
  assert.equal(readPage("--kind", "cpu", waits).meta.kinds[0].name, "cpu");
  assert.equal(page.activeData(readPage("--kind", "wall", recording), {}).current.total[0], 2.25e9, "ticks in ns");
  assert.equal(page.activeData(readPage("--kind", "wall", waits), {}).waits.total[0], total("--kind off-cpu"));
});

test("a page of one kind has no other", () => {
  const kind = readPage("--kind", "off-cpu", recording);

  assert.equal(page.activeData(kind, {select: "--kind off-cpu"}).current.total[0], 1250000000);
  assert.match(page.selectionOf(kind, {select: "--kind cpu"}).error, /this page has off-cpu/);
  assert.match(page.selectionOf(report, {select: "--kind off-cpu"}).error, /this page has cpu/);
  assert.equal(page.selectionOf(report, {select: "--kind cpu"}).error, undefined);
});

test("times within a part of the time: it counts whole, which is said", () => {
  const kinds = readPage(recording), inside = page.selectionOf(kinds, {select: "--time-range 250.1ms..251ms"});

  assert.match(inside.note, /1\.56 ms each: 250 ms – 251 ms/);
  assert.equal(inside.slots.reduce((all, one) => all + one), 1);
  assert.match(page.selectionOf(report, {select: "--time-range ..1s"}).error, /no times/);
});

// What the page draws, {"root;leaf": its own ticks}.
function stacksOf(merges, select) {
  const {hidden, names = [], by} = page.selectionOf(merges, {select}), found = {}, paths = [];
  const {tree, current} = page.activeData(merges, {select, hidden, by});

  for (let i = 1; i < tree.count; i++) {
    const name = names[tree.func[i]] ?? page.functionName(merges, tree.func[i]);

    paths[i] = [...paths[tree.parent[i]] ?? [], name];
    if (current.self[i])
      found[paths[i].join(";")] = (found[paths[i].join(";")] ?? 0) + current.self[i];
  }
  return found;
}

test("what a frame stands for", () => {
  const merges = readPage(merged);

  for (const {text: select, stacks} of VECTORS.merged.cases) {
    const ofProgram = {};

    for (const {frames, ticks} of program(merged, select, "--no-lines"))
      ofProgram[frames.join(";")] = (ofProgram[frames.join(";")] ?? 0) + ticks;
    assert.deepEqual(ofProgram, stacks, `the program: ${select}`);
    assert.deepEqual(stacksOf(merges, select), stacks, `the page: ${select}`);
  }
});

test("imports are folded when a page is written", () => {
  const imports = writeText("imports.txt", ["<module> (/srv/main.py:1);_find_and_load (<frozen importlib._bootstrap>:9);" +
    "<module> (/srv/shop.py:1) 1"]);

  for (const [option, select, isKept] of [["--fold-imports", "--fold-imports", true],
    ["--fold-imports", "--no-fold-imports", false], ["--no-fold-imports", "--no-fold-imports", true],
    ["--no-fold-imports", "--fold-imports", false]])
    assert.equal(!page.selectionOf(readPage(option, imports), {select}).error, isKept, `${option}: ${select}`);
  for (const select of ["--fold-imports", "--no-fold-imports"]) // there are none
    assert.equal(page.selectionOf(readPage(merged), {select}).error, undefined, select);
});

test("what is wrong is said, and selects nothing out", () => {
  for (const select of VECTORS.wrong) {
    assert.notEqual(page.selectionOf(report, {select}).error, undefined, select);
    assert.equal(page.activeData(report, {select}).current.total[0], 63, select);
  }
});

test("rows of the timeline are those that are selected", () => {
  const ticks = page.timeline(report, {select: "--focus run --focus decode"}, "thread");

  assert.deepEqual(ticks.map(({key, sum: all}) => [key, all]).sort(), [["pool-1 (413)", 4], ["pool-2 (414)", 8]]);
});
