// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Flame graphs in SVG, in a browser: a click zooms, a search says how much it found, the address
// keeps both; names are text whatever they hold; without scripts there is the picture.
"use strict";
const test = require("node:test");
const assert = require("node:assert");
const {execFileSync} = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const {PYEBPF, folder, open, screenshot, settle, start, stop} = require("./browser.js");

test.before(start);
test.after(stop);

const STACKS = {
  before: "main (app.py:1);load (app.py:5);<read: file> 300\nmain (app.py:1);parse (app.py:9) 500\n" +
    "main (app.py:1);parse (app.py:9);leaf_名前 (lib.py:3) 200\n",
  after: "main (app.py:1);load (app.py:5);<read: file> 300\nmain (app.py:1);parse (app.py:9) 500\n" +
    "main (app.py:1);parse (app.py:9);leaf_名前 (lib.py:3) 1200\n",
  hostile: "</title><script>pwned = 1</script> (a&b<c.py:1);]]><svg onload=pwned=1> (\"'.py:2) 7\n" +
    "&lt script&gt (&#60.py:3) 3\n",
};

function write(name) {
  const text = path.join(folder, `${name}.txt`);

  fs.writeFileSync(text, STACKS[name]);
  return text;
}

function makeGraph(name) {
  const svg = path.join(folder, `${name}.svg`);

  execFileSync(PYEBPF, ["export", "-q", "-f", "svg", "-o", svg, write(name)], {stdio: "pipe"});
  return svg;
}

async function onGraph(file, options, act) {
  const opened = await open(file, {...options,
    isReady: () => document.documentElement.classList.contains("alive")});

  try {
    await act(opened.page);
  } finally {
    await opened.close();
  }
}

// [name as drawn, x, width] of what is seen.
const drawn = (page) => page.evaluate(() => [...document.querySelectorAll("#graph g")]
  .filter((g) => g.style.display !== "none")
  .map((g) => [g.querySelector("text")?.textContent,
    ...["x", "width"].map((name) => +g.querySelector("rect").getAttribute(name))]));
const found = (page) => page.evaluate(() => document.getElementById("found").textContent);
const box = (page, name) => page.locator("#graph g", {hasText: name}).first();

async function searchFor(page, text) {
  page.once("dialog", (dialog) => dialog.accept(text));
  await page.keyboard.press("/");
  await settle(page);
}

test("widths are shares", async () => {
  for (const theme of ["light", "dark"])
    await onGraph(makeGraph("before"), {theme}, async (page) => {
      assert.deepEqual(await drawn(page), [["all", 0, 1180], ["main", 0, 1180], ["parse", 0, 826],
        ["leaf_名前", 0, 236], ["load", 826, 354], ["<read: file>", 826, 354]]);
      await screenshot(page, `svg-${theme}`);
    });
});

test("a click zooms, Escape leaves, the address keeps it", async () => {
  await onGraph(makeGraph("before"), {}, async (page) => {
    await box(page, "load").click();
    assert.deepEqual(await drawn(page), [["all", 0, 1180], ["main", 0, 1180], ["load", 0, 1180],
      ["<read: file>", 0, 1180]]);
    const hash = await page.evaluate(() => location.hash.slice(1));

    await onGraph(makeGraph("before"), {hash}, async (same) =>
      assert.deepEqual(await drawn(same), await drawn(page)));
    await page.keyboard.press("Escape");
    assert.equal((await drawn(page)).length, 6);
    assert.equal(await page.evaluate(() => location.hash), "");
  });
});

test("a search says how much it found, callers and callees once", async () => {
  await onGraph(makeGraph("before"), {}, async (page) => {
    for (const [text, says] of [["parse|leaf", "70.0%"], ["lib\\.py", "20.0%"], ["LOAD", "30.0%"],
      ["main|parse|load", "100.0%"], ["nothing", "0.0%"]]) {
      await searchFor(page, text);
      assert.equal(await found(page), `${says} matches ${text}`);
    }
    await searchFor(page, "(");
    assert.match(await found(page), /not a regular expression/);
    await searchFor(page, "load");
    const hash = await page.evaluate(() => location.hash.slice(1));

    await onGraph(makeGraph("before"), {hash}, async (same) =>
      assert.equal(await found(same), "30.0% matches load"));
  });
});

test("names are text", async () => {
  await onGraph(makeGraph("hostile"), {}, async (page) => {
    const titles = await page.evaluate(() => [...document.querySelectorAll("#graph title")]
      .map((title) => title.textContent.split("\n").slice(0, 2).join("|")));

    assert.deepEqual(titles, ["all|10, 100.0%", "</title><script>pwned = 1</script>|a&b<c.py:1",
      "]]><svg onload=pwned=1>|\"'.py:2", "&lt script&gt|&#60.py:3"]);
    assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
  });
});

test("a comparison has its colours, and says what it cannot show", async () => {
  const svg = path.join(folder, "change.svg");

  execFileSync(PYEBPF, ["diff", "-q", "-o", svg, write("before"), write("after")], {stdio: "pipe"});
  await onGraph(svg, {}, async (page) => {
    const title = await box(page, "leaf").locator("title").textContent();

    assert.match(title, /slower$/);
    const words = await page.evaluate(() => [...document.querySelectorAll("svg > g > .small")]
      .map((word) => [word.textContent, getComputedStyle(word).fill]));

    assert.equal(words.length, 5);
    assert.equal(new Set(words.map(([, colour]) => colour)).size, 1, words.join(" "));
    await screenshot(page, "svg-diff");
  });
  execFileSync(PYEBPF, ["diff", "-q", "-o", svg, write("after"), write("hostile")], {stdio: "pipe"});
  await onGraph(svg, {}, async (page) =>
    assert.match(await page.locator("svg > text").nth(1).textContent(), /not drawn, as it is gone/));
});
