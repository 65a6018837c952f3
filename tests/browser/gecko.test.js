// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What export writes for Firefox Profiler, as Mozilla's own profiler-cli reads it: threads, names, CPU
// time, the time of each function, a marker for each wait.
"use strict";
const test = require("node:test");
const assert = require("node:assert");
const {execFileSync} = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const {folder, modules} = require("./browser.js");
const {exported, recording, samples, summed, told} = require("./exported.js");

const CLI = path.join(modules, "@firefox-devtools", "profiler-cli", "dist", "profiler-cli.js");
const MS = 1e6, STARTS = 20; // it gives its own server half a second each time

function cli(...words) {
  return execFileSync(process.execPath, [CLI, ...words], {encoding: "utf8",
    env: {...process.env, PROFILER_CLI_SESSION_DIR: path.join(folder, "sessions")},
    stdio: ["ignore", "pipe", "pipe"]});
}

const ask = (session, ...words) => JSON.parse(cli(...words, "--json", "--session", session));

// A session in which the file is open; asks until it is.
function load(file, session) {
  for (let left = STARTS; ; left--) {
    try {
      if (left === STARTS)
        cli("load", file, "--session", session);
      return ask(session, "thread", "list").threads;
    } catch (error) {
      if (!left)
        throw error;
    }
  }
}

test.after(() => cli("stop", "--all"));

test("threads, functions and CPU time are those of the samples", () => {
  const threads = load(exported("gecko", "all", recording()), "all");
  const wanted = told(recording(), ({tid, thread, kind}) =>
    `${tid} ${thread}${kind === "time" ? "" : ` (${kind})`}`);

  assert.deepEqual(threads.map(({tid, name}) => `${tid} ${name}`).sort(),
    Object.keys(wanted).sort());
  for (const {threadHandle, tid, name} of threads) {
    const of = wanted[`${tid} ${name}`];
    const scale = name.endsWith("(memory)") ? 1 : MS;
    const {functions} = ask("all", "thread", "functions", "--include-idle", "--thread",
      threadHandle);
    const found = {};

    for (const {name: called, selfSamples} of functions)
      if (selfSamples)
        found[called] = (found[called] || 0) + selfSamples * scale;
    assert.deepEqual(Object.keys(found).sort(), Object.keys(of.self).sort(), name);
    for (const [leaf, value] of Object.entries(of.self))
      assert.ok(Math.abs(found[leaf] - value) < 1e-6 * of.total + 1, `${name} ${leaf}`);
  }
});

test("each wait is a marker, with its reason and length", () => {
  const threads = load(exported("gecko", "waits", recording()), "waits");
  const waits = samples(recording()).filter(({kind, duration, stack}) =>
    kind === "time" && duration && stack[0][0] !== "<not sampled>");

  let seen = 0;

  for (const {threadHandle, tid, name} of threads.filter((t) => !t.name.includes("("))) {
    const own = waits.filter((wait) => wait.tid === tid && wait.thread === name);
    const {flatMarkers, totalMarkerCount} = ask("waits", "thread", "markers", "--list", "--thread",
      threadHandle);
    const lengths = flatMarkers.filter((m) => m.markerType !== "GC")
      .map((m) => Math.round(m.duration * 1000)).sort((a, b) => a - b);

    seen += lengths.length;
    assert.ok(totalMarkerCount >= own.length, name);
    assert.deepEqual(lengths, own.map((wait) => Math.round(wait.duration * 1e6))
      .sort((a, b) => a - b), name);
  }
  assert.ok(seen > 5 && seen === waits.length, `${seen} of ${waits.length}`);
});

// Else it would open with memory alone, and hide who waits.
test("it opens with the threads over time, the busiest selected", () => {
  const {meta, threads} = JSON.parse(fs.readFileSync(exported("gecko", "opened", recording()), "utf8"));
  const shown = meta.initialVisibleThreads, cpu = (i) =>
    threads[i].samples.threadCPUDelta.reduce((sum, ns) => sum + ns, 0);

  assert.deepEqual([...shown].sort((a, b) => a - b),
    threads.flatMap((t, i) => t.samples.threadCPUDelta ? [i] : []));
  assert.deepEqual(shown.map(cpu), shown.map(cpu).sort((a, b) => b - a));
  assert.deepEqual(meta.initialSelectedThreads, shown.slice(0, 1));
});

// It counts the lines of perf script as samples, whatever they stand for. One thread is asked: each
// question starts a program.
test("export -f script has the same threads, samples and functions", () => {
  const wanted = {}, counts = {};

  for (const {tid, stack} of samples(recording())) {
    const of = wanted[tid] ??= {};

    of[stack.at(-1)[0]] = (of[stack.at(-1)[0]] || 0) + 1;
    counts[tid] = (counts[tid] || 0) + 1;
  }
  const threads = load(exported("script", "lines", recording()), "lines");
  const most = [...threads].sort((a, b) => counts[b.tid] - counts[a.tid])[0];
  const {functions} = ask("lines", "thread", "functions", "--include-idle", "--thread", most.threadHandle);

  assert.deepEqual(threads.map(({tid}) => `${tid}`).sort(), Object.keys(wanted).sort());
  assert.deepEqual(Object.fromEntries(functions.filter((f) => f.selfSamples)
    .map((f) => [f.name, f.selfSamples])), wanted[most.tid]);
});

test("what has no times is samples", () => {
  const [{threadHandle}] = load(exported("gecko", "summed", summed()), "summed");
  const {functions, weightType} = ask("summed", "thread", "functions", "--include-idle", "--thread",
    threadHandle);

  assert.equal(weightType, "samples");
  assert.deepEqual(Object.fromEntries(functions.map((f) => [f.name, f.selfSamples])),
    {main: 0, load: 300, "</b>": 500});
});
