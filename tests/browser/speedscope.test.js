// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What export writes for speedscope, by its JSON schema and as speedscope itself reads it: what it
// saves again has the same profiles, units, totals and functions' shares.
"use strict";
const test = require("node:test");
const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");
const {folder, modules, open, start, stop} = require("./browser.js");
const {exported, recording, summed, told} = require("./exported.js");
const Ajv = require(path.join(modules, "ajv"));

const RELEASE = path.join(modules, "speedscope", "dist", "release");

test.before(start);
test.after(stop);

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

  for (const file of [exported("speedscope", "schema", recording()), exported("speedscope", "text", summed())])
    assert.ok(fits(JSON.parse(fs.readFileSync(file, "utf8"))), JSON.stringify(fits.errors));
});

test("threads and kinds have the totals of their samples, also in speedscope", async () => {
  const file = exported("speedscope", "all", recording());
  const wanted = told(recording(), ({process, pid, thread, tid, kind}) =>
    `${process} (${pid}) ${thread} (${tid}): ${kind === "time" ? "wall" : kind}`);
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
  const again = totals(await reread(exported("speedscope", "summed", summed())));
  const [profile] = Object.values(again);

  assert.equal(profile.unit, "none");
  assert.equal(profile.total, 800);
  assert.deepEqual(profile.self, {load: 300, "</b>": 500});
});
