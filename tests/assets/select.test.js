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
require("../../assets/select.js");
const page = globalThis.pyebpf;

const PAGES = process.env.PAGES || path.join(__dirname, "../../build/tests/pages");
const PYEBPF = path.join(path.dirname(PAGES), "../pyebpf");
const VECTORS = JSON.parse(fs.readFileSync(path.join(__dirname, "../vectors/select.json"), "utf8"));
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "pyebpf-select-"));
process.on("exit", () => fs.rmSync(folder, {recursive: true, force: true}));

const text = path.join(folder, "samples.txt");
fs.writeFileSync(text, VECTORS.samples.join("\n") + "\n");

function makePage() {
  const file = path.join(folder, "page.html");
  execFileSync(PYEBPF, ["report", "-q", "-o", file, text]);
  const [, data] = /<script id="pyebpf-data"[^>]*>([^<]*)</.exec(fs.readFileSync(file, "utf8"));
  return page.decode(inflateSync(Buffer.from(data, "base64")));
}

const report = makePage();

// The shell takes a text apart as it would at a prompt.
function program(selection, ...options) {
  const done = spawnSync("/bin/sh", ["-c", `exec "$0" export -q -f collapsed --fold-imports ${options.join(" ")} ${
    selection} "$1"`, PYEBPF, text], {encoding: "utf8"});

  assert.ok([0, 3].includes(done.status), selection + ": " + done.stderr);
  return done.stdout.split("\n").filter(Boolean).map((line) => {
    const [, frames, ticks] = /^(.*) (\d+)$/.exec(line);
    return {leaf: frames.split(";").at(-1).replace(/ \([^()]*\)$/, ""), ticks: Number(ticks)};
  });
}

const sum = (list) => list.reduce((all, {ticks}) => all + ticks, 0);

test("what is left, of the program and of the page", () => {
  for (const {text: select, left} of VECTORS.cases) {
    const {current} = page.activeData(report, {select});

    assert.equal(page.selectionOf(report, select).error, "", select);
    assert.equal(sum(program(select)), left, `the program: ${select}`);
    assert.equal(current.total[0], left, `the page: ${select}`);
  }
});

test("hidden functions: what they did is their callers'", () => {
  for (const {text: select, self} of VECTORS.hidden) {
    const {hidden} = page.selectionOf(report, select);
    const {tree, current} = page.activeData(report, {select, hidden});
    const found = {}, ofProgram = {};

    for (let i = 1; i < tree.count; i++)
      if (current.self[i])
        found[page.functionName(report, tree.func[i])] =
          (found[page.functionName(report, tree.func[i])] ?? 0) + current.self[i];
    for (const {leaf, ticks} of program(select, "--no-lines"))
      ofProgram[leaf] = (ofProgram[leaf] ?? 0) + ticks;
    assert.deepEqual(found, self, `the page: ${select}`);
    assert.deepEqual(ofProgram, self, `the program: ${select}`);
  }
});

test("what is wrong is said, and selects nothing out", () => {
  for (const select of VECTORS.wrong) {
    assert.notEqual(page.selectionOf(report, select).error, "", select);
    assert.equal(page.activeData(report, {select}).current.total[0], 63, select);
  }
});

test("rows of the timeline are those that are selected", () => {
  const ticks = page.timeline(report, {select: "--focus run --focus decode"}, "thread");

  assert.deepEqual(ticks.map(({key, sum: all}) => [key, all]).sort(), [["pool-1 (413)", 4], ["pool-2 (414)", 8]]);
});
