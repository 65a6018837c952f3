// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// node tests/bench/page.js [--json] [[KIND:]NODES]...: what pages of so many call paths cost (10000
// 100000 1000000 diff:1000000). KIND: tree, a plain page; diff, a comparison of two such.
//
// Pages are made by tests/browser/pages.c and opened in a headless Chromium. Of what a reader does
// the CPU time of the scripts on the main thread is told (Chromium's ScriptDuration in thread ticks:
// other work on the machine is not counted, though it makes memory slower), until all is drawn, the
// median of several. zoom: a step of the wheel, which is a frame. choose: a double click, the box, its
// caller and their lines. first paint, and it alone, is by the clock: from the start of navigation,
// in a window that is open, to the first contentful paint, which is the graph's; median of several
// windows. memory: the renderer's private pages after all of it, garbage collected. Prints a table
// in Markdown, or {columns, rows} for run.py.
"use strict";
const {execFileSync} = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const {folder, open, settle, start, stop} = require("../browser/browser.js");

const PAGES = process.env.PAGES || path.join(__dirname, "../../build/tests/pages");
const ROUNDS = 15, WINDOWS = 5;
const WINDOW_MS = 1000; // until a new window has loaded what is its own
const TARGETS = {"first paint": "250 ms at 100k, 700 ms at 1M", "zoom, p95": "12 ms", hover: "2 ms",
  choose: "", search: "50 ms", recolour: "50 ms", filter: "200 ms", invert: "200 ms", memory: "250 MB", file: "8 MB at 1M"};

const at = (list, share) => [...list].sort((a, b) => a - b)[
  Math.min(Math.floor(list.length * share), list.length - 1)];
const ms = (seconds) => `${(seconds * 1000).toFixed(1)} ms`;

async function scriptTime(page, cdp, act) {
  const read = async () => (await cdp.send("Performance.getMetrics")).metrics
    .find(({name}) => name === "ScriptDuration").value;
  const before = await read();

  await act();
  await settle(page);
  return await read() - before;
}

async function several(count, page, cdp, act) {
  const times = [];
  for (let i = 0; i < count; i++)
    times.push(await scriptTime(page, cdp, () => act(i)));
  return times;
}

const setHash = (page, hash) => page.evaluate((text) => {
  location.hash = text;
}, hash);

// Of all processes of this Chromium that show pages: ours is the only one with a page in it.
async function rendererMemory(page) {
  const cdp = await page.context().browser().newBrowserCDPSession();
  const {processInfo} = await cdp.send("SystemInfo.getProcessInfo");
  const bytes = processInfo.filter(({type}) => type === "renderer").map(({id}) => {
    const text = fs.readFileSync(`/proc/${id}/smaps_rollup`, "utf8");
    return [...text.matchAll(/^Private_\w+: +(\d+) kB/gm)]
      .reduce((sum, [, kb]) => sum + Number(kb) * 1024, 0);
  });

  return Math.max(...bytes);
}

const firstPaint = (page) => page.evaluate(() =>
  performance.getEntriesByName("first-contentful-paint")[0].startTime);

async function measure({kind, nodes}) {
  const file = path.join(folder, `${kind}${nodes}.html`);
  execFileSync(PAGES, [kind, file, String(nodes)]);
  const paint = [];
  for (let i = 1; i < WINDOWS; i++) {
    const other = await open(file, {rest: WINDOW_MS});
    paint.push(await firstPaint(other.page));
    await other.close();
  }
  const {page, close} = await open(file, {rest: WINDOW_MS});
  paint.push(await firstPaint(page));
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable", {timeDomain: "threadTicks"});
  const box = await page.locator("#panes canvas").first().boundingBox();
  const over = (i, row) => [box.x + box.width * (0.1 + 0.8 * (i % 7) / 7), box.y + 10 + 20 * row];

  const hover = await several(ROUNDS, page, cdp, (i) => page.mouse.move(...over(i, 1 + i % 5)));
  await page.mouse.move(...over(3, 2));
  await page.keyboard.down("Control");
  const zoom = await several(2 * ROUNDS, page, cdp, (i) => page.mouse.wheel(0, i % 10 < 5 ? -60 : 60));
  await page.keyboard.up("Control");
  const choose = [];
  for (let i = 0; i < ROUNDS; i++) {
    choose.push(await scriptTime(page, cdp, () => page.mouse.dblclick(...over(i, 1 + i % 3))));
    await page.keyboard.press("Escape");
    await setHash(page, "");
    await settle(page);
  }
  const search = await several(ROUNDS, page, cdp,
    (i) => page.locator("#query").fill(i % 2 ? "method_1" : "Class3"));
  await page.locator("#query").fill("");
  await settle(page);
  const there = async (hash) => (await several(6, page, cdp, (i) => setHash(page, i % 2 ? "" : hash)))
    .filter((_, i) => i % 2 === 0);
  const recolour = await there("palette=heat"), filter = await there("process=web");
  const invert = await there("shape=inverted");
  await cdp.send("HeapProfiler.collectGarbage");
  const row = {
    "first paint": `${at(paint, 0.5).toFixed(0)} ms`, "zoom, p95": ms(at(zoom, 0.95)),
    hover: ms(at(hover, 0.5)), choose: ms(at(choose, 0.5)), search: ms(at(search, 0.5)),
    recolour: ms(at(recolour, 0.5)), filter: ms(at(filter, 0.5)), invert: ms(at(invert, 0.5)),
    memory: `${((await rendererMemory(page)) / 1e6).toFixed(0)} MB`,
    file: `${(fs.statSync(file).size / 1e6).toFixed(2)} MB`,
  };

  await close();
  return row;
}

async function main(sizes) {
  const rows = [];

  await start();
  for (const nodes of sizes)
    rows.push(await measure(nodes));
  await stop();
  const columns = [...sizes.map(({kind, nodes}) => nodes.toLocaleString("en") +
    (kind === "diff" ? ", compared" : "")), "target"];
  const table = Object.entries(TARGETS)
    .map(([name, target]) => [name, ...rows.map((row) => row[name]), target]);

  if (isJson)
    console.log(JSON.stringify({columns, rows: table}));
  else
    printMarkdown(columns, table);
}

function printMarkdown(columns, rows) {
  const line = (cells) => console.log(`| ${cells.join(" | ")} |`);

  line(["", ...columns]);
  line(["---", ...columns.map(() => "---:")]);
  rows.forEach(line);
}

const isJson = process.argv.includes("--json");
const words = process.argv.slice(2).filter((word) => word !== "--json");
const sizes = (words.length ? words : ["10000", "100000", "1000000", "diff:1000000"])
  .map((word) => word.split(":").reverse())
  .map(([nodes, kind = "tree"]) => ({kind, nodes: Number(nodes)}));

main(sizes);
