// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Recordings that are exported for other programs, and what pyebpf itself says of them.
"use strict";
const {execFileSync} = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const {PYEBPF, folder} = require("./browser.js");

const SUMMED = "main (app.py:1);load (app.py:5) 300\nmain (app.py:1);\\x3c/b\\x3e (a b.py:9) 500\n";

// A file of this format; its suffix is .FORMAT.json.
function exported(format, name, source, ...options) {
  const file = path.join(folder, `${name}.${format}.json`);

  execFileSync(PYEBPF, ["export", "-q", "-f", format, ...options, "-o", file, source],
    {stdio: "pipe"});
  return file;
}

// Of wall time, with memory and contention: golden/waits_recording.c.
function recording() {
  const file = path.join(folder, "waits.pyebpf");

  if (!fs.existsSync(file))
    execFileSync(process.env.WAITS_RECORDING, [file], {stdio: "pipe"});
  return file;
}

function summed() {
  const file = path.join(folder, "summed.txt");

  fs.writeFileSync(file, SUMMED);
  return file;
}

// The samples, as objects; a kind that is a thread's time is "time".
function samples(source) {
  const all = execFileSync(PYEBPF, ["export", "-q", "-f", "jsonl", source], {encoding: "utf8"});

  return all.trim().split("\n").map((line) => JSON.parse(line))
    .map((sample) => ({...sample,
      kind: ["cpu", "off-cpu"].includes(sample.kind) ? "time" : sample.kind}));
}

// {name(sample): {total, self: {function: value}}}.
function told(source, name) {
  const found = {};

  for (const sample of samples(source)) {
    const of = found[name(sample)] ??= {total: 0, self: {}}, leaf = sample.stack.at(-1)[0];

    of.total += sample.value;
    of.self[leaf] = (of.self[leaf] || 0) + sample.value;
  }
  return found;
}

module.exports = {exported, recording, summed, samples, told};
