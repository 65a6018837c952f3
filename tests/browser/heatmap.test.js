// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The folder of export -f heatmap, in a browser: lines and modules by heat, links between callers and
// callees, what is kept from page to page; names are text whatever they hold.
"use strict";
const test = require("node:test");
const assert = require("node:assert");
const {execFileSync} = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const {PYEBPF, axeSource, folder, open, screenshot, start, stop} = require("./browser.js");

test.before(start);
test.after(stop);

const STACKS = {
  plain: "main (app.py:1);load (app.py:5) 300\nmain (app.py:1);parse (lib.py:9) 500\n" +
    "main (app.py:2);parse (lib.py:9);leaf (lib.py:30) 200\n",
  hostile: "</title><script>pwned = 1</script> (a&b<c.py:1);\"><img src=x onerror=pwned=1> (\"'.py:2) 7\n",
};

function makeHeatmap(name) {
  const text = path.join(folder, `${name}.heat.txt`), made = path.join(folder, `${name}.heatmap`);

  fs.writeFileSync(text, STACKS[name]);
  execFileSync(PYEBPF, ["export", "-q", "-o", made, text], {stdio: "pipe"});
  return made;
}

async function onPage(file, options, act) {
  const opened = await open(file, {...options,
    isReady: () => !document.querySelector(".tools").hidden});

  try {
    await act(opened.page);
  } finally {
    await opened.close();
  }
}

const cells = (page, rows) => page.locator(rows).evaluateAll((found) => found
  .filter((row) => row.checkVisibility())
  .map((row) => [...row.cells].slice(0, 3).map((cell) => cell.textContent)));

test("modules by their own or by their total, which pages keep", async () => {
  const made = makeHeatmap("plain");

  await onPage(path.join(made, "index.html"), {}, async (page) => {
    const modules = () => page.locator(".modules td a").allTextContents();

    assert.deepEqual(await modules(), ["lib", "app"]);
    await page.getByRole("button", {name: "Total"}).click();
    assert.deepEqual(await modules(), ["app", "lib"]);
    await page.getByRole("link", {name: "app", exact: true}).click();
    await page.waitForURL(/app\.html$/);
    assert.equal(await page.getByRole("button", {name: "Total"}).getAttribute("aria-pressed"), "true");
    assert.match(await page.locator(".said").textContent(), /not shown/);
  });
});

test("hot lines, keys and links", async () => {
  await onPage(path.join(makeHeatmap("plain"), "app.html"), {}, async (page) => {
    assert.deepEqual(await cells(page, ".code tbody tr"),
      [["1", "", "80.0%"], ["2", "", "20.0%"], ["5", "30.0%", "30.0%"]]);
    await page.keyboard.press("h");
    assert.deepEqual(await cells(page, ".code tbody tr"), [["5", "30.0%", "30.0%"]]);
    await page.keyboard.press("n");
    assert.equal(await page.evaluate(() => location.hash), "#line-5");
    await page.keyboard.press("t");
    assert.equal((await cells(page, ".code tbody tr")).length, 3);
    assert.equal(await page.locator(".map a").count(), 3);
    await page.locator("#line-1 summary").click();
    assert.deepEqual(await page.locator("#line-1 li").allTextContents(),
      ["50.0%parse lib:9", "30.0%load app:5"]);
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("details[open]").count(), 0);
  });
});

test("names are text", async () => {
  const made = makeHeatmap("hostile");

  for (const name of fs.readdirSync(made).filter((file) => file.endsWith(".html")))
    await onPage(path.join(made, name), {}, async (page) => {
      assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
      assert.equal(await page.locator("img").count(), 0);
      assert.equal(await page.locator("script").count(), 1);
    });
});

test("nothing is wrong for those who see or hear otherwise, in both themes", async () => {
  const made = makeHeatmap("plain");

  for (const theme of ["light", "dark"])
    for (const name of ["index", "lib"])
      await onPage(path.join(made, `${name}.html`), {theme, bypass: true}, async (page) => {
        await screenshot(page, `heatmap-${name}-${theme}`);
        await page.evaluate(axeSource());
        const found = await page.evaluate(() => axe.run(document, {resultTypes: ["violations"]}));
        const serious = found.violations.filter((v) => ["serious", "critical"].includes(v.impact))
          .map((v) => `${v.id}: ${v.nodes[0].html}`);

        assert.deepEqual(serious, [], `${name} ${theme}`);
      });
});
