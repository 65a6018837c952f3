// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What export writes for speedscope, by its JSON schema and as speedscope itself reads it: what it
// saves again has the same profiles, units, totals and functions' shares.
"use strict";
const test = require("node:test");
const assert = require("node:assert");
const {execFileSync} = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const {PYEBPF, folder, modules, open, start, stop} = require("./browser.js");
const Ajv = require(path.join(modules, "ajv"));

const RELEASE = path.join(modules, "speedscope", "dist", "release");
const WAITS = process.env.WAITS_RECORDING;
const SUMMED = "main (app.py:1);load (app.py:5) 300\nmain (app.py:1);\\x3c/b\\x3e (a b.py:9) 500\n";

test.before(start);
test.after(stop);

function exported(name, source, ...options) {
  const file = path.join(folder, `${name}.speedscope.json`);

  execFileSync(PYEBPF, ["export", "-q", "-f", "speedscope", ...options, "-o", file, source],
    {stdio: "pipe"});
  return file;
}

function recording() {
  const file = path.join(folder, "waits.pyebpf");

  if (!fs.existsSync(file))
    execFileSync(WAITS, [file], {stdio: "pipe"});
  return file;
}

function summed() {
  const file = path.join(folder, "summed.txt");

  fs.writeFileSync(file, SUMMED);
  return file;
}

// {thread and kind: {total, unit, self: {function: value}}} of a file in speedscope's format.
function totals(text) {
  const {profiles, shared} = JSON.parse(text), found = {};

  for (const profile of profiles) {
    const self = {};
    let last = profile.startValue, total = 0;
    const add = (stack, value) => {
      const name = shared.frames[stack.at(-1)].name;

      self[name] = (self[name] || 0) + value;
      total += value;
    };

    if (profile.type === "sampled")
      profile.samples.forEach((stack, i) => add(stack, profile.weights[i]));
    const stack = [];
    for (const {type, frame, at} of profile.events || []) {
      if (stack.length && at > last)
        add(stack, at - last);
      last = at;
      if (type === "O")
        stack.push(frame);
      else
        assert.equal(stack.pop(), frame);
    }
    assert.equal(stack.length, 0);
    found[profile.name] = {total, unit: profile.unit, self};
  }
  return found;
}

// What pyebpf's own samples say of the same.
function told(source) {
  const found = {}, all = execFileSync(PYEBPF, ["export", "-q", "-f", "jsonl", source],
    {encoding: "utf8"});
  const samples = all.trim().split("\n").map((line) => JSON.parse(line));
  const isTime = (kind) => kind === "cpu" || kind === "off-cpu";

  for (const {pid, tid, process, thread, kind, value, stack} of samples) {
    const name = `${process} (${pid}) ${thread} (${tid}): ${isTime(kind) ? "wall" : kind}`;
    const of = found[name] ??= {total: 0, self: {}};
    const leaf = stack.at(-1)[0];

    of.total += value;
    of.self[leaf] = (of.self[leaf] || 0) + value;
  }
  return found;
}

// What speedscope makes of a file, as it saves it.
async function reread(file) {
  const name = path.basename(file), data = path.join(folder, `${name}.js`);
  const text = fs.readFileSync(file).toString("base64");

  fs.writeFileSync(data, `speedscope.loadFileFromBase64(${JSON.stringify(name)}, "${text}")`);
  const opened = await open(path.join(RELEASE, "index.html"),
    {hash: `localProfilePath=${data}&view=sandwich`, isReady: () => document.querySelector("td")});

  try {
    return await opened.page.evaluate(() => new Promise((done) => {
      const create = URL.createObjectURL;

      URL.createObjectURL = (blob) => {
        blob.text().then(done);
        return create(blob);
      };
      window.dispatchEvent(new KeyboardEvent("keydown", {key: "s", ctrlKey: true}));
    }));
  } finally {
    await opened.close();
  }
}

test("fits the schema", () => {
  const ajv = new Ajv({schemaId: "auto"});
  const fits = ajv.compile(JSON.parse(
    fs.readFileSync(path.join(RELEASE, "file-format-schema.json"), "utf8")));

  for (const file of [exported("schema", recording()), exported("text", summed())])
    assert.ok(fits(JSON.parse(fs.readFileSync(file, "utf8"))), JSON.stringify(fits.errors));
});

test("threads and kinds have the totals of their samples, also in speedscope", async () => {
  const file = exported("all", recording()), wanted = told(recording());
  const found = totals(fs.readFileSync(file, "utf8"));

  assert.deepEqual(Object.keys(found).sort(), Object.keys(wanted).sort());
  for (const [name, {total, self}] of Object.entries(wanted)) {
    assert.equal(found[name].total, total, name);
    assert.deepEqual(found[name].self, self, name);
  }
  const again = totals(await reread(file));

  for (const [name, {total, unit, self}] of Object.entries(found)) {
    assert.equal(again[name].unit, unit, name);
    assert.ok(Math.abs(again[name].total - total) <= 1e-9 * total, name);
    for (const [leaf, value] of Object.entries(self))
      assert.ok(Math.abs(again[name].self[leaf] - value) <= 1e-9 * total + 1, `${name} ${leaf}`);
  }
});

test("what has no times is samples", async () => {
  const again = totals(await reread(exported("summed", summed())));
  const [profile] = Object.values(again);

  assert.equal(profile.unit, "none");
  assert.equal(profile.total, 800);
  assert.deepEqual(profile.self, {load: 300, "</b>": 500});
});
