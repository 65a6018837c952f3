// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Opens pages in a headless Chromium, on file://, and keeps watch: a request that leaves the page, a
// violated policy, an exception or an error on the console fails the test that caused it.
"use strict";
const {execFileSync} = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const {encode, pack} = require("../assets/fixture.js");
const {packageFolder} = require("./packages.js");

const CHROMIUMS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const PYEBPF = process.env.PYEBPF || path.join(__dirname, "../../build/pyebpf");
const LATER_MS = 1000; // what comes then takes away a message or an address: nothing waits for it
const RESULTS = path.join(path.dirname(PYEBPF), "test-results", "page");

function skip(reason) {
  console.log(`SKIPPED: ${reason}`);
  process.exit(77);
}

const chromium = CHROMIUMS.find((file) => fs.existsSync(file)) || skip("no Chromium: make deps");
const modules = packageFolder();
const playwright = require(path.join(modules, "playwright-core"));
const axeSource = () => fs.readFileSync(path.join(modules, "axe-core", "axe.min.js"), "utf8");

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "pyebpf-page-"));
const idle = new Map(); // windows that tests gave back, by their options
let browser = null, template = "", pages = 0;

process.on("exit", () => fs.rmSync(folder, {recursive: true, force: true}));

async function start() {
  browser = await playwright.chromium.launch({executablePath: chromium,
    args: ["--no-sandbox", "--disable-gpu"]});
}

async function stop() {
  await browser.close();
}

// A page as pyebpf writes it.
function emptyPage() {
  const text = path.join(folder, "one.collapsed"), html = path.join(folder, "one.html");

  fs.writeFileSync(text, "main (app.py:1) 1\n");
  execFileSync(PYEBPF, ["report", "-o", html, text], {stdio: "pipe"});
  return fs.readFileSync(html, "utf8");
}

// The page with other data in it: as fixture.js's encode() takes it, or packed text.
function writePage(data) {
  const file = path.join(folder, `page-${pages++}.html`);

  template ||= emptyPage();
  const mark = /(<script id="pyebpf-data" type="application\/octet-stream">)[^<]*/;

  fs.writeFileSync(file, template.replace(mark,
    (_, tag) => tag + (typeof data === "string" ? data : pack(encode(data)))));
  return file;
}

// Runs in the page.
const isShown = () => !document.getElementById("page").hidden ||
  !document.getElementById("failure").hidden;

// Opens a file; options: {hash, width, height, theme, touch, bypass, rest, isOwn}. bypass: without the
// policy, for tools that bring scripts of their own. rest: milliseconds for the window, which loads
// pages of its own; isReady: of what is no page; isOwn: no other test has the window. Returns {page,
// problems, close()}; close() throws if there were problems.
async function open(file, {hash = "", width = 1280, height = 800, theme = "light", touch = false,
  bypass = false, rest = 0, isReady = isShown, isOwn = rest > 0} = {}) {
  const kept = await pageOf({viewport: {width, height}, colorScheme: theme, hasTouch: touch, bypassCSP: bypass}, isOwn);
  const {page, problems} = kept;

  problems.length = 0;
  if (rest)
    await page.waitForTimeout(rest);
  await page.goto(`file://${file}${hash && "#" + hash}`);
  await page.waitForFunction(isReady);
  await settle(page);
  return {
    page, problems,
    async close() {
      await giveBack(kept);
      if (problems.length)
        throw new Error(problems.join("\n"));
    },
  };
}

// A window that shows nothing; options: those of its context. A new one takes three times the CPU time of a page.
async function pageOf(options, isOwn) {
  const key = JSON.stringify(options), found = idle.get(key);

  if (found && !isOwn) {
    idle.delete(key);
    return found;
  }
  const context = await browser.newContext({...options, reducedMotion: "reduce", acceptDownloads: true,
    permissions: ["clipboard-read", "clipboard-write"]});
  const page = await context.newPage(), problems = [];

  page.on("console", (m) => m.type() === "error" && problems.push(`console: ${m.text()}`));
  page.on("pageerror", (e) => problems.push(`exception: ${e.stack}`));
  page.on("request", (r) => /^(file|blob):/.test(r.url()) || problems.push(`request: ${r.url()}`));
  await page.addInitScript(() => document.addEventListener("securitypolicyviolation",
    (e) => console.error(`policy: ${e.violatedDirective} ${e.sample}`)));
  await page.addInitScript(countTasks, LATER_MS);
  return {key, options, isOwn, context, page, problems};
}

// The next test of such a window finds it as new, or there is a new one.
async function giveBack(kept) {
  const {key, options, isOwn, context, page} = kept;

  if (isOwn || idle.has(key) || context.pages().length !== 1 || page.isClosed()) {
    await context.close();
    return;
  }
  await page.evaluate(() => [localStorage, sessionStorage].forEach((storage) => storage.clear()));
  await page.goto("about:blank");
  await page.setViewportSize(options.viewport);
  await page.emulateMedia({media: null, colorScheme: options.colorScheme, reducedMotion: "reduce", forcedColors: null});
  await page.mouse.move(0, 0);
  idle.set(key, kept);
}

// Runs in the page, before its scripts: notes what they have still to do.
function countTasks(laterMs) {
  const {requestAnimationFrame: frame, cancelAnimationFrame: noFrame, setTimeout: timer,
    clearTimeout: noTimer} = window;
  const frames = new Set(), timers = new Set();

  window.requestAnimationFrame = (act) => {
    const id = frame((time) => {
      frames.delete(id);
      act(time);
    });

    frames.add(id);
    return id;
  };
  window.cancelAnimationFrame = (id) => {
    frames.delete(id);
    noFrame(id);
  };
  window.setTimeout = (act, ms = 0, ...rest) => {
    const id = timer(() => {
      timers.delete(id);
      act(...rest);
    }, ms);

    if (ms < laterMs)
      timers.add(id);
    return id;
  };
  window.clearTimeout = (id) => {
    timers.delete(id);
    noTimer(id);
  };
  // The layout of a frame may ask for another one: three in a row with nothing to do are the end.
  window.settled = async () => {
    for (let idle = 0; idle < 3; idle = frames.size + timers.size ? 0 : idle + 1)
      await new Promise((done) => frame(() => timer(done)));
  };
}

// Until what was asked for is on screen and in the address: the page draws in frames, its tables in
// tasks after them, and writes the address when nothing has changed for a while.
const settle = (page) => page.evaluate(() => window.settled());

async function screenshot(page, name) {
  fs.mkdirSync(RESULTS, {recursive: true});
  await page.screenshot({path: path.join(RESULTS, `${name}.png`)});
}

module.exports = {PYEBPF, folder, modules, start, stop, writePage, open, settle, screenshot, axeSource,
  emptyPage};
