// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Parts of a report, by labels, threads, processes, places: each has the stacks that the program has
// left of the same recording when it is asked for that part alone, and --by has its shares.
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
require("../../assets/group.js");
const {encode} = require("./fixture.js");
const page = globalThis.pyebpf;

const PAGES = process.env.PAGES || path.join(__dirname, "../../build/tests/pages");
const PYEBPF = path.join(path.dirname(PAGES), "../pyebpf");
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "pyebpf-group-"));
process.on("exit", () => fs.rmSync(folder, {recursive: true, force: true}));

function makeRecording(name, ...operands) {
  const file = path.join(folder, `${name}.pyebpf`);
  execFileSync(path.join(path.dirname(PAGES), `${name}_recording`), [file, ...operands]);
  return file;
}

function readPage(...operands) {
  const file = path.join(folder, "page.html");
  execFileSync(PYEBPF, operands[0] === "diff" ? [...operands, "-q", "-o", file] : ["report", "-q", "-o", file, ...operands]);
  const [, data] = /<script id="pyebpf-data"[^>]*>([^<]*)</.exec(fs.readFileSync(file, "utf8"));
  return page.decode(inflateSync(Buffer.from(data, "base64")));
}

const FILES = {kinds: makeRecording("kinds", "100", "50"), waits: makeRecording("waits")};
const REPORTS = {kinds: readPage(FILES.kinds), waits: readPage(FILES.waits)};

// The shell takes the words apart, as it would at a prompt.
function program(command, words, file) {
  const done = spawnSync("/bin/sh", ["-c", `exec "$0" ${command} ${words} "$1"`, PYEBPF, file], {encoding: "utf8"});

  assert.ok([0, 3].includes(done.status), words + ": " + done.stderr);
  return done.stdout.split("\n").filter(Boolean);
}

// {"main;work": ticks} of the program.
function exported(file, words) {
  return Object.fromEntries(program("export -q -f collapsed --no-lines --fold-imports", words, file).map((line) => {
    const [, frames, ticks] = /^(.*) (\d+)$/.exec(line);
    return [frames.split(";").map((frame) => frame.replace(/ \([^()]*\)$/, "")).join(";"), Number(ticks)];
  }));
}

// {part: {total, stacks: as exported() has them, word}} of what the page draws.
function parts(report, state) {
  const {tree, current} = page.activeData(report, state), found = {};
  const name = (i) => page.functionName(report, tree.func[i]);

  for (let i = 1; i < tree.count; i = tree.end[i]) {
    const stacks = {}, paths = {[i]: []};

    assert.ok(page.isPart(report, tree.func[i]) && tree.parent[i] === 0);
    for (let k = i; k < tree.end[i]; k++) {
      if (k > i)
        paths[k] = [...paths[tree.parent[k]], name(k)];
      if (current.self[k])
        stacks[paths[k].join(";")] = current.self[k];
    }
    assert.ok(!Object.hasOwn(found, name(i)), name(i));
    found[name(i)] = {total: current.total[i], stacks, word: report.partWord(tree.func[i])};
  }
  return found;
}

const totals = (found) => Object.fromEntries(Object.entries(found).filter(([, {total}]) => total)
  .map(([name, {total}]) => [name, total]));

test("what a report can be grouped by", () => {
  assert.deepEqual(page.groupChoices(REPORTS.kinds), [["label:route", "route"], ["label:task", "task"],
    ["label:user", "user"], ["thread", "thread"]]);
  assert.deepEqual(page.groupChoices(REPORTS.waits), [["label:wait", "wait"], ["process", "process"], ["thread", "thread"]]);
  assert.deepEqual(page.groupChoices(page.decode(encode({samples: [{stack: "f"}]}))), []);
  for (const by of ["", "label:nothing", "pod", "__proto__", "label:__proto__", "constructor"])
    assert.equal(page.groupReport(REPORTS.kinds, by), REPORTS.kinds, by);
});

test("known parts, of each kind in its unit", () => {
  const tasks = {fetch: 3e8, "it's [*?] \\ $x": 1e8, "(none)": 1e8};

  for (const [by, select, want] of [
    ["label:route", "", {"/pay": 500, "/list": 500}], ["label:user", "", {u1: 500, "(none)": 500}],
    ["label:task", "", {"(none)": 1000}], ["label:task", "--kind task", tasks],
    ["label:task", "--kind task --focus wait", {fetch: 3e8, "it's [*?] \\ $x": 1e8}],
    ["label:route", "--kind off-cpu", {"(none)": 1.25e9}],
    ["thread", "", {"MainThread (412)": 500, "pool (413)": 500}],
  ])
    assert.deepEqual(totals(parts(page.groupReport(REPORTS.kinds, by), {select})), want, `${by} ${select}`);
});

test("a part has the stacks that the program has of it alone", () => {
  for (const [name, by, ...kinds] of [["kinds", "label:route", "cpu"], ["kinds", "label:task", "task"],
    ["kinds", "thread", "cpu", "off-cpu"], ["waits", "label:wait", "off-cpu", "wall"],
    ["waits", "process", "wall", "gil-contention", "memory"], ["waits", "thread", "wall", "cpu"]]) {
    const report = page.groupReport(REPORTS[name], by);

    for (const kind of kinds) {
      const found = parts(report, {select: `--kind ${kind}`}), all = exported(FILES[name], `--kind ${kind}`);
      const sum = (list) => Object.values(list).reduce((a, b) => a + b, 0);

      assert.equal(sum(totals(found)), sum(all), `${by} ${kind}`);
      for (const {stacks, word} of Object.values(found))
        if (word)
          assert.deepEqual(stacks, exported(FILES[name], `--kind ${kind} ${word}`), `${by} ${kind} ${word}`);
    }
  }
});

test("shares are those of report --by", () => {
  for (const [name, by, kind] of [["kinds", "label:user", "cpu"], ["kinds", "label:task", "task"],
    ["waits", "label:wait", "wall"], ["waits", "thread", "wall"], ["waits", "process", "cpu"]]) {
    const found = totals(parts(page.groupReport(REPORTS[name], by), {select: `--kind ${kind}`}));
    const whole = Object.values(found).reduce((a, b) => a + b, 0);
    const lines = program(`report --limit 0 --by ${by}`, `--kind ${kind}`, FILES[name]).filter((line) => /^ *[\d.]+%/.test(line));
    const shares = lines.map((line) => /^ *([\d.]+)%  +[\d.]+ [a-z]+  ([^]*?)( of .*)?$/.exec(line));

    assert.deepEqual(shares.map(([, share, text]) => [text, share]).sort(),
      Object.entries(found).map(([text, total]) => [text, (100 * total / whole).toFixed(1)]).sort(), `${by} ${kind}`);
  }
});

test("where a word selects a part, the part alone is left, and words add up", () => {
  for (const [name, by, kind] of [["kinds", "label:task", "task"], ["waits", "thread", "wall"], ["waits", "process", "cpu"]]) {
    const report = page.groupReport(REPORTS[name], by), before = totals(parts(report, {select: `--kind ${kind}`}));

    for (const [part, {word, total}] of Object.entries(parts(report, {select: `--kind ${kind}`})))
      assert.deepEqual(totals(parts(report, {select: `--kind ${kind} ${word}`})),
        !word ? before : total ? {[part]: total} : {}, `${part}: ${word}`);
  }
});

test("every shape has all of it; functions, lines and times are as without parts", () => {
  for (const plain of Object.values(REPORTS))
    for (const [by] of page.groupChoices(plain)) {
      const report = page.groupReport(plain, by);

      for (const shape of ["call", "inverted"])
        for (const lines of ["function", "line"]) {
          const state = {shape, by: lines}, {tree, current, waits} = page.activeData(report, state);
          const other = page.activeData(plain, state), left = Float64Array.from(current.self);

          assert.equal(current.total[0], other.current.total[0]);
          assert.equal(waits?.total[0], other.waits?.total[0]);
          for (let i = tree.count - 1; i > 0; i--) {
            assert.ok(tree.parent[i] < i && tree.end[i] <= tree.end[tree.parent[i]]);
            assert.equal(tree.depth[i], tree.depth[tree.parent[i]] + 1);
            left[tree.parent[i]] += left[i];
          }
          assert.deepEqual(left, current.total);
        }
      const now = page.functionTable(page.activeData(report, {})), before = page.functionTable(page.activeData(plain, {}));
      for (let f = 1; f < plain.functions.count; f++)
        assert.deepEqual([now.self[f], now.total[f]], [before.self[f], before.total[f]]);
      const heat = (of) => page.lineHeat(of, page.siteSums(of, {}), plain.functions.file[1]);
      assert.deepEqual(heat(report), heat(plain));
      assert.deepEqual(page.timeline(report, {}, "thread"), page.timeline(plain, {}, "thread"));
      assert.deepEqual(page.idleSums(report, {select: "--no-idle"}), page.idleSums(plain, {select: "--no-idle"}));
    }
});

test("what a selection says of functions says nothing of parts", () => {
  const samples = [{stack: "f (a.py:1)", thread: 1}, {stack: "work (a.py:2)", thread: 0}];
  const meta = {threads: [{process: 0, tid: 1, name: "work"}], tags: [[0, 1, 0], [0, 2, 0], [0, 0, 0]],
    labels: [[0, "", ""], [0, "task", "work"], [0, "task", "import <b>"]]};
  const report = page.groupReport(page.decode(encode({samples, meta})), "label:task");

  for (const [select, want] of [["--focus work", {work: 1}], ["--ignore work", {"import <b>": 1}], ["--focus 'import*'", {}],
    ["--hide work", {work: 1, "import <b>": 1}], ["--merge module", {work: 1, "import <b>": 1}],
    ["--no-fold-imports", {work: 1, "import <b>": 1}]]) {
    const {error, hidden} = page.selectionOf(report, {select});

    assert.equal(error, undefined, select);
    assert.deepEqual(totals(parts(report, {select, hidden})), want, select);
  }
});

test("of many parts the heaviest are told apart, the others are one; trees of any size", () => {
  const many = 1500, labels = [[0, "", ""]], tags = [], samples = [];

  for (let i = 1; i <= many; i++) {
    labels.push([0, "trace_id", `t${i}`]);
    tags.push([0, i, 0]);
    samples.push({stack: `main (a.py:${i % 7 + 1});f (a.py:9)`, thread: i - 1, ticks: i});
  }
  const plain = page.decode(encode({samples, meta: {tags, labels, runs: [{side: 1, ticks: many * many}]}}));
  const found = parts(page.groupReport(plain, "label:trace_id"), {});

  assert.equal(Object.keys(found).length, 1001);
  assert.deepEqual([found.t1500, found.t501, found.t500].map((part) => part?.total), [1500, 501, undefined]);
  assert.deepEqual([found["(500 more)"].total, found["(500 more)"].word], [500 * 501 / 2, ""]);
  const file = path.join(folder, "large.html");
  execFileSync(PAGES, ["tree", file, "150000"]);
  const [, data] = /<script id="pyebpf-data"[^>]*>([^<]*)</.exec(fs.readFileSync(file, "utf8"));
  const large = page.decode(inflateSync(Buffer.from(data, "base64"))), by = page.groupReport(large, "process");

  assert.ok(by.nodes.count > large.nodes.count);
  assert.equal(page.activeData(by, {}).current.total[0], page.activeData(large, {}).current.total[0]);
});

test("a comparison by parts has both sides of each", () => {
  const other = makeRecording("kinds", "10", "20"), plain = readPage("diff", FILES.kinds, other);
  const report = page.groupReport(plain, "label:route"), {tree, current, base} = page.activeData(report, {view: "diff"});
  const found = {};

  for (let i = 1; i < tree.count; i = tree.end[i])
    found[page.functionName(report, tree.func[i])] = [base.total[i], current.total[i]];
  assert.deepEqual(found, {"/pay": [500, 500], "/list": [500, 500]});
});
