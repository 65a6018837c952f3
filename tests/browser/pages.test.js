// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Pages as pyebpf writes them (pages.c) in a browser: they open without a request, an error or a
// violated policy, whatever the names are; the policy holds; a link opens the same picture.
"use strict";
const test = require("node:test");
const assert = require("node:assert");
const {execFileSync} = require("node:child_process");
const path = require("node:path");
const {folder, open, settle, start, stop} = require("./browser.js");

const PAGES = process.env.PAGES || path.join(__dirname, "../../build/tests/pages");

test.before(start);
test.after(stop);

function makePage(kind) {
  const file = path.join(folder, `real-${kind}.html`);
  execFileSync(PAGES, [kind, file]);
  return file;
}

async function onPage(kind, options, act) {
  const opened = await open(makePage(kind), options);
  try {
    await act(opened.page);
  } finally {
    await opened.close();
  }
}

const TITLES = {empty: "</script><b>target", one: "app", deep: "deep", hostile: "</script><b>target",
  tree: "</script><b>target", waits: "</script><b>target", diff: "before.pyebpf → after.pyebpf"};

for (const [kind, title] of Object.entries(TITLES)) {
  test(`${kind}: opens, and nothing in it runs`, async () => {
    for (const hash of ["", "shape=inverted", "by=line", "shape=sandwich&func=1"]) {
      await onPage(kind, {hash, theme: hash ? "dark" : "light"}, async (page) => {
        assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
        assert.equal(await page.title(), `${title} – pyebpf`);
        assert.equal(await page.locator("#failure").isVisible(), false);
        assert.equal(await page.locator("img, iframe, script[src], a[href^=javascript]").count(), 0);
      });
    }
  });
}

test("tree: filtered by the pod, as by the one process that is in it", async () => {
  await onPage("tree", {}, async (page) => {
    await page.click("#filters summary >> text=Runs in");
    await page.click("#filters .sheet label:has-text('prod/web-7d9f') input");
    await settle(page);
    const shown = await page.locator(".facts").innerText();

    assert.match(page.url(), /pod=prod/);
    await onPage("tree", {hash: "process=web"}, async (same) =>
      assert.equal(await same.locator(".facts").innerText(), shown));
    await onPage("tree", {hash: "process=worker"}, async (other) =>
      assert.notEqual(await other.locator(".facts").innerText(), shown));
  });
});

test("the policy refuses markup, inline scripts, requests", async () => {
  const opened = await open(makePage("one"));
  const caught = await opened.page.evaluate(async () => {
    // a debugger may eval() whatever the policy says, a timer may not
    const later = () => new Promise((done) => setTimeout(done));
    const fails = async (act) => {
      await later();
      try {
        await act();
        return false;
      } catch {
        return true;
      }
    };

    return [await fails(() => {
      document.body.innerHTML = "<b>x</b>";
    }), await fails(() => {
      document.createElement("script").text = "globalThis.pwned = 1";
    }), await fails(() => globalThis.eval("1")), await fails(() => fetch("file:///etc/hostname"))];
  });

  assert.deepEqual(caught, [true, true, true, true]);
  assert.equal(await opened.page.evaluate(() => globalThis.pwned), undefined);
  await assert.rejects(opened.close(), /policy/); // and the watch that the other tests rely on works
});

test("a link opens the same picture", async () => {
  let hash;
  await onPage("tree", {}, async (page) => {
    await page.locator("#query").fill("method_1");
    await page.keyboard.press("i");
    await page.locator("#query").blur();
    await page.keyboard.press("i");
    await page.waitForFunction(() => location.hash.includes("q=method_1"));
    await settle(page);
    hash = await page.evaluate(() => location.hash.slice(1));
  });
  await onPage("tree", {hash}, async (page) => {
    assert.equal(await page.locator("#query").inputValue(), new URLSearchParams(hash).get("q"));
    assert.equal(await page.evaluate(() => location.hash.slice(1)), hash);
  });
});
