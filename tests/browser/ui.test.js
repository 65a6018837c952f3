// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The page in a browser: what a reader does, and what they then see.
"use strict";
const test = require("node:test");
const assert = require("node:assert");
const {execFileSync} = require("node:child_process");
const fs = require("node:fs");
const {start, stop, writePage, open, settle, screenshot, axeSource, emptyPage} =
  require("./browser.js");
require("../../assets/model.js");
require("../../assets/noise.js");
require("../../assets/stats.js");
require("../../assets/state.js");
const {readState, writeState} = globalThis.pyebpf;

test.before(start);
test.after(stop);

const RUN = {interval_ns: 1e7, block_ns: 1e9, duration_ns: 4e10, rate_hz: 100, lost: 0};
const META = {
  title: "shop", processes: [{pid: 1, name: "web"}, {pid: 2, name: "worker"}],
  threads: [{process: 0, tid: 1, name: "MainThread"}, {process: 1, tid: 2, name: "pool"}],
  runs: [{...RUN, side: 1, file: "now.pyebpf", target: "python3 app.py"}],
};

// 100 ticks of 10 ms: main 10 itself; handle 70 (parse 40 of it), render 20.
const PLAIN = {
  meta: META,
  samples: [
    {stack: "main (/srv/app.py:3)", ticks: 10, block: 0},
    {stack: "main (/srv/app.py:4);handle (/srv/app.py:12)", ticks: 30, block: 5},
    {stack: "main (/srv/app.py:4);handle (/srv/app.py:13);parse (/srv/lib.py:7)", ticks: 40,
      block: 20, thread: 1},
    {stack: "main (/srv/app.py:5);render (/srv/app.py:21)", ticks: 20, block: 39},
  ],
  sources: [{file: "/srv/app.py", status: 0, parts: [{line: 1, text: Array.from({length: 24},
    (_, i) => `line ${i + 1} of app`).join("\n")}]}],
};

const manyBlocks = (stack, run, ticks) => Array.from({length: 40},
  (_, block) => ({stack, run, block, ticks}));

// parse doubles, render halves, audit is new, legacy is gone; 40 even blocks a side.
const DIFF = {
  meta: {...META, kind: "diff", runs: [{...RUN, side: 0, file: "before.pyebpf"}, ...META.runs]},
  samples: [
    ...manyBlocks("main (/srv/app.py:3);parse (/srv/lib.py:7)", 0, 10),
    ...manyBlocks("main (/srv/app.py:3);parse (/srv/lib.py:7)", 1, 20),
    ...manyBlocks("main (/srv/app.py:4);render (/srv/app.py:21)", 0, 20),
    ...manyBlocks("main (/srv/app.py:4);render (/srv/app.py:21)", 1, 10),
    ...manyBlocks("main (/srv/app.py:5);legacy (/srv/app.py:30)", 0, 8),
    ...manyBlocks("main (/srv/app.py:6);audit (/srv/app.py:40)", 1, 8),
  ],
};

const plain = () => writePage(PLAIN);
const diff = () => writePage(DIFF);

// A test of one page; act(page).
async function onPage(file, options, act) {
  const opened = await open(file, options);

  try {
    await act(opened.page);
  } finally {
    await opened.close();
  }
}

const text = (page, selector) => page.locator(selector).innerText();
const hash = (page) => page.evaluate(() => location.hash);
const state = (page) => settle(page).then(async () => readState(await hash(page)));

// The point of row (0: all samples) at a share of the width, on the canvas.
async function pointAt(page, row, share) {
  const box = await page.locator("#flame0").boundingBox();
  const height = await page.evaluate(() => {
    const css = getComputedStyle(document.documentElement);

    return Math.round(parseFloat(css.getPropertyValue("--row")) * parseFloat(css.fontSize));
  });

  return {x: box.x + box.width * share, y: box.y + (row + 0.5) * height};
}

async function clickAt(page, row, share) {
  const {x, y} = await pointAt(page, row, share);

  await page.mouse.click(x, y);
  await settle(page);
}

// What is drawn, as pixels.
const picture = (page, id = "flame0") =>
  page.evaluate((i) => document.getElementById(i).toDataURL(), id);

async function functionRows(page) {
  const rows = await page.locator("#table tbody tr:not(.spacer)").all();

  return Promise.all(rows.map(async (row) =>
    (await row.locator("td").allInnerTexts()).map((t) => t.split("\n")[0].trim())));
}

test("what was lost is told as a share of what should be there", async () => {
  const runs = (lost) => [{...META.runs[0], ticks: 75, lost}, {...META.runs[0], ticks: 25}];

  for (const [lost, want, isMuch] of [[25, /Lost\s*25 \(20\.0%\)/, true], [1, /Lost\s*1 \(0\.99%\)/, false]])
    await onPage(writePage({...PLAIN, meta: {...META, runs: runs(lost)}}), {}, async (page) => {
      assert.match(await text(page, ".head"), want);
      assert.equal(await page.locator(".head .lost").count(), Number(isMuch));
    });
});

test("a click zooms and shows the figures, a second one steps out", async () => {
  await onPage(plain(), {}, async (page) => {
    assert.equal(await page.title(), "shop – pyebpf");
    assert.match(await text(page, ".head"), /python3 app\.py[\s\S]*Samples\s*100[\s\S]*Lost\s*nothing/);
    const whole = await picture(page);

    await clickAt(page, 2, 0.3);
    assert.match(await text(page, "#details-body"), /^handle/);
    assert.match(await text(page, "#details-body"), /Time\s+300 ms\s+700 ms/);
    assert.match(await text(page, "#details-body"), /Of all\s+30\.0%\s+70\.0%/);
    assert.match(await text(page, "#trail"), /all samples\s›\smain\s›\shandle/);
    assert.ok(await picture(page) !== whole, "nothing was zoomed");
    await clickAt(page, 3, 0.2);
    assert.match(await text(page, "#details-body"), /Of all\s+40\.0%\s+40\.0%[\s\S]*Share of the zoomed box\s+100%/);
    await clickAt(page, 0, 0.5);
    assert.equal(await text(page, "#trail"), "all samples");
  });
});

// main spends 60 ticks on line 3 and 40, whose instruction nobody knows, on line 4.
const OPCODES = {
  meta: {...META, opcodes: ["", "LOAD_FAST", "BINARY_OP_ADD_INT"]},
  samples: [{stack: "main (/srv/app.py:3)", ticks: 45, opcode: "BINARY_OP_ADD_INT"},
    {stack: "main (/srv/app.py:3)", ticks: 15, opcode: "LOAD_FAST"},
    {stack: "main (/srv/app.py:4)", ticks: 40}],
};

async function opcodesOf(page) {
  await clickAt(page, 1, 0.3);
  await page.locator(".sourcebox").waitFor();
  const lists = [];
  for (const list of await page.locator(".ops").all()) {
    await list.locator("summary").click();
    lists.push((await list.locator("tr").allInnerTexts()).map((row) => row.trim().split(/\s+/).join(" ")));
  }
  return lists;
}

test("source lines unfold into their opcodes", async () => {
  for (const sources of [PLAIN.sources, []]) {
    await onPage(writePage({...OPCODES, sources}), {}, async (page) => {
      assert.deepEqual(await opcodesOf(page), [
        ["of line of all", "75.0% 45.0% BINARY_OP_ADD_INT", "25.0% 15.0% LOAD_FAST"],
        ["of line of all", "100% 40.0% unknown"]]);
      assert.equal(await page.locator(".ops summary").first().innerText(), "BINARY_OP_ADD_INT");
    });
  }
});

test("a comparison has the opcodes of both sides", async () => {
  const side = (run, tops) => tops.map(([opcode, ticks]) =>
    ({stack: "main (/srv/app.py:3)", run, opcode, ticks}));
  const file = writePage({meta: {...OPCODES.meta, kind: "diff", runs: DIFF.meta.runs},
    samples: [...side(0, [["LOAD_FAST", 10], ["BINARY_OP_ADD_INT", 30]]),
      ...side(1, [["LOAD_FAST", 20], ["BINARY_OP_ADD_INT", 20]])]});

  await onPage(file, {}, async (page) => {
    const [[head, ...rows]] = await opcodesOf(page);

    assert.equal(head, "base of line of all");
    assert.deepEqual(rows.sort(), ["25.0% 50.0% 50.0% LOAD_FAST",
      "75.0% 50.0% 50.0% BINARY_OP_ADD_INT"]);
  });
});

test("no opcodes where none were recorded", async () => {
  await onPage(plain(), {}, async (page) => {
    assert.deepEqual(await opcodesOf(page), []);
  });
});

test("source lines carry their heat", async () => {
  await onPage(plain(), {}, async (page) => {
    await clickAt(page, 2, 0.3);
    await page.locator(".sourcebox").waitFor();
    const source = await text(page, ".sourcebox");

    assert.match(source, /12\s+30\.0%\s+line 12 of app/);
    assert.match(source, /13\s+40\.0%\s+line 13 of app/);
    assert.doesNotMatch(source, /line 21/);
    await page.click(".actions button:nth-child(2)"); // shares stay those of all samples
    await settle(page);
    await clickAt(page, 1, 0.3);
    await page.locator(".sourcebox").waitFor();
    assert.equal(await text(page, ".sourcebox"), source);
  });
});

test("the table lists every function; self adds up to all", async () => {
  await onPage(plain(), {}, async (page) => {
    assert.deepEqual(await functionRows(page), [["parse", "40.0%", "40.0%"],
      ["handle", "30.0%", "70.0%"], ["render", "20.0%", "20.0%"], ["main", "10.0%", "100%"]]);
    await page.click("#table th:nth-child(3) button");
    assert.deepEqual((await functionRows(page)).map((r) => r[0]), ["main", "handle", "parse", "render"]);
    await page.click("#table th:nth-child(3) button");
    assert.equal((await functionRows(page))[0][0], "render");
    assert.equal(await page.getAttribute("#table th:nth-child(3)", "aria-sort"), "ascending");
    await page.click("#table th:nth-child(1) button");
    assert.deepEqual((await functionRows(page)).map((r) => r[0]), ["handle", "main", "parse", "render"]);
    await page.click("#table tbody tr:nth-child(3) button");
    assert.match(await text(page, "#details-body"), /^parse/);
  });
});

test("search: share of the matches, n and N, Escape", async () => {
  await onPage(plain(), {}, async (page) => {
    await page.keyboard.press("/");
    await page.keyboard.type("^(parse|render)$");
    await settle(page);
    assert.equal(await text(page, "#matched"), "60.0% in 2");
    assert.deepEqual((await functionRows(page)).map((r) => r[0]), ["parse", "render"]);
    await page.keyboard.press("Enter");
    assert.match(await text(page, "#details-body"), /^parse/);
    await page.locator("#flame0").focus();
    await page.keyboard.press("n");
    assert.match(await text(page, "#details-body"), /^render/);
    await page.keyboard.press("N");
    assert.match(await text(page, "#details-body"), /^parse/);
    await page.fill("#query", "^(handle|parse)$");
    await settle(page);
    assert.equal(await text(page, "#matched"), "70.0% in 2");
    await page.locator("#flame0").focus();
    for (const name of ["handle", "parse", "handle"]) {
      await page.keyboard.press("n");
      assert.equal((await text(page, "#details-body")).split("\n")[0], name);
    }
    await page.keyboard.press("/");
    await page.fill("#query", "nothing(");
    await settle(page);
    assert.equal(await text(page, "#matched"), "taken as text: no match");
    await page.keyboard.press("Escape");
    await settle(page);
    assert.equal((await functionRows(page)).length, 4);
  });
});

test("keys walk, zoom, turn, and step back", async () => {
  await onPage(plain(), {}, async (page) => {
    const selected = () => page.evaluate(() => {
      const canvas = document.getElementById("flame0");
      const item = document.getElementById(canvas.getAttribute("aria-activedescendant"));

      return [item.getAttribute("role"), item.getAttribute("aria-level"), item.textContent];
    });

    await page.locator("#flame0").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    assert.deepEqual(await selected(), ["treeitem", "3", "handle, 70.0%"]);
    await page.keyboard.press("ArrowRight");
    assert.deepEqual(await selected(), ["treeitem", "3", "render, 20.0%"]);
    await page.keyboard.press("Enter");
    await settle(page);
    assert.match(await text(page, "#trail"), /render$/);
    await page.keyboard.press("Escape");
    await settle(page);
    assert.equal(await text(page, "#trail"), "all samples");
    await page.keyboard.press("ArrowUp");
    assert.deepEqual(await selected(), ["treeitem", "2", "main, 100%"]);
    await page.keyboard.press("i");
    await settle(page);
    assert.equal((await state(page)).shape, "inverted");
    await clickAt(page, 1, 0.1);
    assert.match(await text(page, "#details-body"), /^parse/);
    await page.keyboard.press("s");
    await settle(page);
    assert.match(await text(page, "#panes"), /Callers of parse[\s\S]*Called by parse/);
    await page.keyboard.press("Escape");
    await settle(page);
    assert.equal((await state(page)).shape, "call");
    await page.keyboard.press("?");
    assert.ok(await page.locator("#help-dialog").isVisible());
    await page.keyboard.press("Escape");
    assert.ok(!await page.locator("#help-dialog").isVisible());
  });
});

// What has the focus: its tag, and its text or name.
const focused = (page) => page.evaluate(() => {
  const e = document.activeElement;

  return [e.tagName, e.id || e.querySelector("bdi")?.textContent || e.textContent.trim()].join(" ");
});

test("the table: one tab stop, keys move, it and the graph follow each other", async () => {
  const stacks = Array.from({length: 500}, (_, i) => ({stack: `main (/srv/app.py:1);f${i} (/srv/app.py:2)`,
    ticks: 1000 - i}));
  const picked = (page) => page.evaluate(() =>
    [...document.querySelectorAll("tr.picked bdi:not(.sub)")].map((e) => e.textContent));

  await onPage(writePage({...PLAIN, samples: stacks}), {}, async (page) => {
    await page.locator("#table th button").last().focus();
    await page.keyboard.press("Tab");
    assert.equal(await focused(page), "BUTTON f0");
    for (const [key, name] of [["ArrowDown", "f1"], ["End", "main"], ["ArrowDown", "main"],
      ["ArrowUp", "f499"], ["Home", "f0"], ["ArrowUp", "f0"], ["ArrowDown", "f1"]]) {
      await page.keyboard.press(key);
      assert.equal(await focused(page), `BUTTON ${name}`, key);
    }
    await page.keyboard.press("Enter");
    await settle(page);
    assert.equal(await focused(page), "BUTTON f1");
    assert.match(await text(page, "#details-body"), /^f1\n/);
    assert.deepEqual(await picked(page), ["f1"]);
    await page.keyboard.press("Tab");
    assert.notEqual((await focused(page)).slice(0, 8), "BUTTON f");
    await clickAt(page, 1, 0.5);
    assert.deepEqual(await picked(page), ["main"]);
    await page.locator("#table td button").nth(3).dblclick();
    await settle(page);
    assert.match(await text(page, "#panes"), /^Callers of/);
  });
  await onPage(plain(), {hash: "sel=1.2.3"}, async (page) =>
    assert.deepEqual(await picked(page), ["parse"]));
});

test("the focus stays on the control that was used", async () => {
  await onPage(plain(), {}, async (page) => {
    const press = async (selector, key = "Enter") => {
      await page.locator(selector).focus();
      await page.keyboard.press(key);
      await settle(page);
      return focused(page);
    };

    assert.match(await press("#table th:nth-child(3) button"), /^BUTTON Total/);
    assert.equal(await press("#flame0", "i"), "CANVAS flame0");
    await clickAt(page, 1, 0.2);
    assert.equal(await press(".actions button:nth-child(3)"), "BUTTON Find all");
    assert.equal(await press("#trail button:nth-child(1)"), "BUTTON all samples");
    assert.equal(await press("#hide-left"), "BUTTON show-left");
    await page.click("summary:text('Show')");
    assert.match(await press("#shown label:nth-child(2) input", "Space"), /^INPUT/);
    assert.equal(await page.isChecked("#shown label:nth-child(2) input:focus"), false);
    await page.click("#filters summary >> text=Thread");
    assert.match(await press("#filters details:nth-last-child(2) label:nth-child(2) input", "Space"), /^INPUT/);
    assert.ok(await page.isChecked("#filters details:nth-last-child(2) label:nth-child(2) input:focus"));
  });
});

test("the tooltip goes when the graph moves under the pointer", async () => {
  const stack = Array.from({length: 300}, (_, i) => `f${i} (/srv/deep.py:${i + 1})`).join(";");

  await onPage(writePage({samples: [{stack, ticks: 5}], meta: META}), {}, async (page) => {
    const {x, y} = await pointAt(page, 5, 0.3);

    for (const move of [() => page.mouse.wheel(0, 300), () => page.keyboard.press("i")]) {
      await page.mouse.move(x, y);
      await page.mouse.move(x + 5, y);
      assert.ok(await page.locator("#tip").isVisible());
      await move();
      await settle(page);
      assert.ok(!await page.locator("#tip").isVisible());
    }
  });
});

test("filters by name leave the rest out", async () => {
  await onPage(plain(), {}, async (page) => {
    await page.click("#filters summary >> text=Thread");
    await page.click("#filters .sheet label:has-text('pool') input");
    await settle(page);
    assert.match(await text(page, ".facts"), /Samples\s*40/);
    assert.deepEqual((await functionRows(page))[0], ["parse", "100%", "100%"]);
    assert.deepEqual((await state(page)).thread, ["pool"]);
  });
  await onPage(plain(), {hash: "thread=nobody"}, async (page) => {
    assert.match(await text(page, "#empty"), /No samples match/);
    await page.click("#empty button");
    await settle(page);
    assert.ok(!await page.locator("#empty").isVisible());
  });
});

// Drags over the heatmap from one share of the time to another. Left of it stand the rows' names.
async function dragTime(page, from, to, key) {
  const box = await page.locator("#heatmap").boundingBox();
  const left = Math.min(7 * 14, box.width / 5);
  const x = (share) => box.x + left + (box.width - left) * share;

  if (key)
    await page.keyboard.down(key);
  await page.mouse.move(x(from), box.y + 8);
  await page.mouse.down();
  await page.mouse.move(x((from + to) / 2), box.y + 8);
  await page.mouse.move(x(to), box.y + 8);
  await page.mouse.up();
  if (key)
    await page.keyboard.up(key);
  await settle(page);
}

test("a range of time counts alone, and is compared with another", async () => {
  await onPage(plain(), {}, async (page) => {
    await dragTime(page, 0.41, 0.61);
    assert.match(await text(page, ".facts"), /Samples\s*40/);
    assert.deepEqual((await state(page)).range, [16, 25]);
    assert.ok(!await page.locator("#views").isVisible());
    await dragTime(page, 0.99, 0.7, "Control");
    assert.ok(await page.locator("#views").isVisible());
    assert.match(await text(page, "#time-note"), /compared with/);
    assert.match(await text(page, "#views"), /Elided\s*1/);
    await page.click("#time-note button");
    await settle(page);
    assert.equal((await state(page)).range, null);
    assert.ok(!await page.locator("#views").isVisible());
  });
});

test("a difference: views, figures, removed paths", async () => {
  await onPage(diff(), {}, async (page) => {
    assert.match(await text(page, "#views"), /Base\s*Head\s*Diff\s*Elided\s*1/);
    assert.match(await text(page, "#change"), /0%[\s\S]*15\.2 s → 15\.2 s/);
    const rows = Object.fromEntries((await functionRows(page)).map((r) => [r[0], r.slice(1, 4)]));

    assert.deepEqual(rows.parse, ["+4.00 s", "+100%", "+4.00 s"]);
    assert.deepEqual(rows.render, ["−4.00 s", "−50.0%", "−4.00 s"]);
    assert.deepEqual(rows.audit, ["+3.20 s", "new", "+3.20 s"]);
    assert.deepEqual(rows.legacy, ["−3.20 s", "−100%", "−3.20 s"]);
    const sorted = async () => {
      await page.click("#table th:nth-child(2) button");
      return (await functionRows(page)).map((r) => r[0]).filter((name) => name !== "main");
    };

    assert.deepEqual(await sorted(), ["parse", "audit", "legacy", "render"]); // slower first
    assert.deepEqual(await sorted(), ["render", "legacy", "audit", "parse"]);
    await page.locator("#flame0").focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowRight"])
      await page.keyboard.press(key);
    assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll("#flame0 [aria-level='3']")]
      .map((e) => [e.textContent, e.ariaPosInSet, e.ariaSetSize].join(" "))), [
      "parse, 52.6%, slower, +100% 1 3", "render, 26.3%, faster, −50.0% 2 3", "audit, 21.1%, new, new 3 3"]);
    await page.keyboard.press("Escape");
    await settle(page);
    const views = {diff: await picture(page)};

    for (const key of ["b", "h", "e"]) {
      await page.keyboard.press(key);
      await settle(page);
      const {view} = await state(page);

      views[view] = await picture(page);
      await screenshot(page, `diff-${view}`);
    }
    assert.deepEqual(Object.keys(views), ["diff", "base", "head", "elided"]);
    assert.equal(new Set(Object.values(views)).size, 4);
    assert.deepEqual(await functionRows(page), [["legacy", "3.20 s", "3.20 s"], ["main", "0", "3.20 s"]]);
    await clickAt(page, 2, 0.5);
    assert.match(await text(page, "#details-body"), /^legacy[\s\S]*Removed\s+3\.20 s\s+3\.20 s\s+Of all\s+21\.1%/);
    assert.match(await text(page, "#details-body"), /Change, samples\s+−320\s+−320/);
    await page.locator(".sourcebox").waitFor();
    assert.match(await text(page, ".source"), /Lines of the baseline's file[\s\S]*21\.1%/);
  });
});

test("the violet corner opens what is missing below", async () => {
  await onPage(diff(), {}, async (page) => {
    const box = await page.locator("#flame0").boundingBox(), {y} = await pointAt(page, 1, 0);
    const below = await pointAt(page, 2, 0);

    await page.mouse.click(box.x + box.width - 3, y + (below.y - y) / 2 - 3);
    await settle(page);
    assert.equal((await state(page)).view, "elided");
    assert.match(await text(page, "#trail"), /main$/);
  });
});

// gone has no time of its own: legacy, below it, has all of it.
const REMOVED = {...DIFF, samples: [...DIFF.samples,
  ...manyBlocks("main (/srv/app.py:7);gone (/srv/app.py:50);old (/srv/app.py:60)", 0, 8)]};

test("a removed call is told of where it is missing, and drawn as removed with what it called", async () => {
  await onPage(writePage(REMOVED), {}, async (page) => {
    const {x: left, y: top} = await pointAt(page, 1, 0.5);

    await page.mouse.move(left, top);
    assert.match(await text(page, "#tip"), /Removed below[^\d]+6\.40 s/);
    await page.click("#table button.pick:has-text(\"gone\")");
    await settle(page);
    assert.equal((await state(page)).view, "elided");
    assert.match(await text(page, "#details-body"), /^gone\s+\S+\s+Removed/);
    const colours = await Promise.all([2, 3].map(async (row) => {
      const {x, y} = await pointAt(page, row, 0.99), box = await page.locator("#flame0").boundingBox();

      return page.evaluate(([a, b]) => [...document.getElementById("flame0").getContext("2d")
        .getImageData(a, b, 1, 1).data].slice(0, 3), [x - box.x - 12, y - box.y]);
    }));
    for (const [, green, blue] of colours)
      assert.ok(blue > green + 60, `${colours}: both are violet`);
  });
});

test("a sandwich tells of the whole program in the head, and of shares of it", async () => {
  await onPage(diff(), {}, async (page) => {
    const before = await text(page, "#change"), samples = await text(page, "#facts");

    await page.click("#shapes button:nth-child(3)");
    await settle(page);
    assert.ok((await state(page)).func > 0, "of the function on top of the table, as none was chosen");
    assert.equal(await text(page, "#change"), before);
    assert.equal(await text(page, "#facts"), samples);
    assert.match(await text(page, "#details-body"), /Of all\s+0%\s+52\.6%/);
  });
});

test("what only the baseline has is said to be removed, not missing", async () => {
  await onPage(diff(), {hash: "q=legacy"}, async (page) => {
    assert.equal(await text(page, "#matched"), "only removed");
  });
  await onPage(writePage({...DIFF, samples: DIFF.samples.filter((s) => s.run === 0)}), {}, async (page) => {
    assert.match(await text(page, "#empty"), /Nothing is left/);
  });
});

test("the handles of the steps follow the pointer, the keys and the address", async () => {
  await onPage(diff(), {}, async (page) => {
    const handle = page.locator(".marks [role=slider]").nth(3), {x, y, width, height} =
      await handle.boundingBox();

    await page.mouse.move(x + width / 2, y + height / 2);
    await page.mouse.down();
    for (let i = 1; i <= 8; i++) {
      await page.mouse.move(x + width / 2 + 10 * i, y + height / 2);
      await settle(page);
    }
    await page.mouse.up();
    const moved = await handle.boundingBox(), value = (await state(page)).marks[3];

    assert.ok(Math.abs(moved.x - x - 80) < 3, `${moved.x - x} pixels`);
    await handle.focus();
    for (let i = 0; i < 3; i++) {
      await page.keyboard.press("ArrowLeft");
      await settle(page);
    }
    assert.ok((await state(page)).marks[3] < value);
    assert.ok((await handle.boundingBox()).x < moved.x - 10, "three steps, not one");
    await page.evaluate(() => {
      location.hash = "marks=1.2-1.6-2-3";
    });
    await settle(page);
    assert.equal(await page.locator(".marks [role=slider]").nth(3).getAttribute("aria-valuenow"), "3.00");
  });
});

test("a zoom by the wheel is in the link, and Escape takes it back", async () => {
  const file = plain();
  let url = "", pixels = "";

  await onPage(file, {}, async (page) => {
    const {x, y} = await pointAt(page, 1, 0.2), whole = await picture(page);

    await page.mouse.move(x, y);
    await page.keyboard.down("Control");
    for (let i = 0; i < 5; i++)
      await page.mouse.wheel(0, -100);
    await page.keyboard.up("Control");
    await settle(page);
    url = (await hash(page)).slice(1);
    pixels = await picture(page);
    assert.match(url, /span=/);
    await page.keyboard.press("Escape");
    await settle(page);
    assert.equal(await hash(page), "");
    assert.ok(await picture(page) === whole, "all of it again");
  });
  await onPage(file, {hash: url}, async (page) => {
    assert.ok(await picture(page) === pixels, "the link shows the same");
  });
});

test("Escape in a menu closes the menu alone", async () => {
  await onPage(plain(), {hash: "q=parse"}, async (page) => {
    await page.click("summary:has-text(\"Show\")");
    await page.locator("#shown input").first().focus();
    await page.keyboard.press("Escape");
    await settle(page);
    assert.equal((await state(page)).q, "parse");
    assert.equal(await page.locator("details.menu[open]").count(), 0);
  });
});

// 6000 calls beside each other, a tenth of a pixel each, of which one has become five times as slow.
test("a change far below a pixel is not painted over", async () => {
  const samples = Array.from({length: 6000}, (_, i) => [0, 1].map((run) =>
    ({stack: `main (a.py:1);f${i} (a.py:2)`, run, ticks: run && i === 0 ? 1500 : 300}))).flat();
  const classes = {total: Array(6002).fill(0), self: Array(6002).fill(0), match: Array(6002).fill(1)};

  classes.total[2] = classes.self[2] = 6; // slower4
  await onPage(writePage({meta: {...DIFF.meta, title: "narrow"}, samples, classes}), {}, async (page) => {
    const {y} = await pointAt(page, 2, 0), box = await page.locator("#flame0").boundingBox();
    const red = ([id, at]) => {
      const canvas = document.getElementById(id), ctx = canvas.getContext("2d");
      const {data} = ctx.getImageData(0, at ?? 0, canvas.width, at === undefined ? canvas.height : 1);

      return Array.from({length: data.length / 4}, (_, i) => data[4 * i] > data[4 * i + 1] + 60)
        .filter(Boolean).length;
    };

    assert.ok(await page.evaluate(red, ["flame0", Math.round(y - box.y)]) >= 1);
    assert.ok(await page.evaluate(red, ["minimap"]) >= 1);
  });
});

test("widths, marks, palettes and what counts change the picture, and come back by the link", async () => {
  const file = diff();
  const hashes = ["basis=union", "basis=delta", "basis=baseline", "palette=colourblind",
    "measure=self", "palette=heat", "palette=modules", "marks=1.1-1.25-2.5-3", "by=line",
    "shape=inverted", "q=parse", "theme=dark", "effect=impact", "label=file"];
  const seen = new Map();

  await onPage(file, {}, async (page) => {
    for (const hash of ["", ...hashes, ""]) {
      await page.evaluate((h) => {
        location.hash = h;
      }, hash);
      await settle(page);
      const pixels = await picture(page);

      if (hash || !seen.size)
        for (const [other, known] of seen)
          assert.ok(pixels !== known, `${hash} looks like ${other || "the default"}`);
      else
        assert.ok(pixels === seen.get(""), "the default does not come back");
      seen.set(hash, pixels);
    }
  });
});

test("a deep link opens the same picture", async () => {
  const file = diff();
  let url = "", pixels = "";

  await onPage(file, {}, async (page) => {
    await page.selectOption("#basis", "union");
    await page.click("#measures button:nth-child(2)");
    await page.fill("#query", "a");
    await page.click("#theme");
    await clickAt(page, 2, 0.2);
    await settle(page);
    url = await page.evaluate(() => location.hash.slice(1));
    pixels = await picture(page);
  });
  await onPage(file, {hash: url}, async (page) => {
    assert.ok(await picture(page) === pixels, "the picture differs");
    assert.equal((await hash(page)).slice(1), url);
    assert.equal(writeState(readState(await hash(page))), url);
  });
});

test("the browser's back button takes a zoom back, not how the page looks", async () => {
  await onPage(plain(), {}, async (page) => {
    const whole = await picture(page);

    await clickAt(page, 2, 0.3);
    await page.goBack();
    await settle(page);
    assert.equal(await text(page, "#trail"), "all samples");
    assert.ok(await picture(page) === whole, "the picture differs");
    await clickAt(page, 2, 0.3);
    await page.click("#theme");
    await settle(page);
    await page.goBack();
    await settle(page);
    assert.equal(await text(page, "#trail"), "all samples");
    assert.equal((await state(page)).theme, "dark");
  });
});

test("the theme follows the system, and can be chosen", async () => {
  const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);

  await onPage(plain(), {theme: "dark"}, async (page) => {
    assert.equal(await background(page), "rgb(21, 24, 29)");
    await page.emulateMedia({colorScheme: "light"});
    await settle(page);
    assert.equal(await background(page), "rgb(255, 255, 255)");
    await page.keyboard.press("t");
    await settle(page);
    assert.equal(await background(page), "rgb(21, 24, 29)");
    assert.equal((await state(page)).theme, "dark");
  });
});

async function download(page, name) {
  await page.click("text=Export");
  const [file] = await Promise.all([page.waitForEvent("download"), page.click(`#exports >> text=${name}`)]);

  return {name: file.suggestedFilename(), bytes: fs.readFileSync(await file.path())};
}

test("export: an image, a drawing, the stack, the link", async () => {
  await onPage(diff(), {}, async (page) => {
    const png = await download(page, "Image");

    assert.equal(png.name, "shop.png");
    assert.equal(png.bytes.toString("latin1", 1, 4), "PNG");
    assert.equal(png.bytes.readUInt32BE(16), 3200);
    assert.ok(!await page.locator("#exports").isVisible());
    assert.equal(await focused(page), "SUMMARY Export");
    const svg = await download(page, "Drawing");

    assert.equal(svg.name, "shop.svg");
    assert.deepEqual(labelsOf(svg.bytes), ["all samples", "0%", "main", "0%", "+ parse", "+100%",
      "− render", "−50.0%", "+ audit", "new"].sort());
    const drawing = svg.bytes.toString();

    assert.match(drawing, /<title>parse, 52\.6%, slower, \+100%<\/title>/);
    assert.match(drawing, /<rect [^>]*fill="none" stroke="#1a1e24"/); // the outline of what is new
    assert.match(drawing, /<path d="M[^"]*" fill="#7634c9"/); // the corner of what is missing
    await page.fill("#query", "parse");
    await settle(page);
    const faded = await download(page, "Drawing");

    assert.match(faded.bytes.toString(), /fill="#5a6370">main</);
    await page.fill("#query", "");
    await settle(page);
    await clickAt(page, 2, 0.2);
    await page.keyboard.press("c");
    await page.locator("#status:text('Stack copied')").waitFor();
    assert.equal(await page.evaluate(() => getComputedStyle(document.getElementById("status")).opacity), "1");
    assert.match(await page.evaluate(() => navigator.clipboard.readText()),
      /^main \(\/srv\/app\.py:1\)\nparse \(\/srv\/lib\.py:1\)\n$/);
  });
});

// Labels of an SVG file's boxes, read by another parser than the browser's.
function labelsOf(bytes) {
  const script = "import sys, xml.etree.ElementTree as e\n" +
    "t = e.fromstring(sys.stdin.buffer.read())\n" +
    "n = '{http://www.w3.org/2000/svg}'\n" +
    "print('\\n'.join(sorted(x.text for x in t.findall(n + 'g/' + n + 'text'))))";

  return execFileSync("python3", ["-c", script], {input: bytes}).toString().trim().split("\n").sort();
}

const HOSTILE = [
  "</script><script>window.hacked=1</script>", "<img src=x onerror=window.hacked=1>",
  "a\u2028b\u2029c", "\u202egpj.exe\u202c", "\u2066isolate", "x".repeat(10000),
  "\"'`${window.hacked=1}`", "<style>*{display:none}</style>", "javascript:window.hacked=1", "\u0000\u0007\u009b",
];

test("hostile names, files and sources are inert", async () => {
  const file = writePage({
    meta: {...META, title: HOSTILE[0] + HOSTILE[3], runs: [{...META.runs[0], target: HOSTILE[1] + HOSTILE[3],
      command: HOSTILE[0], host: HOSTILE[1]}], threads: HOSTILE.map((name, i) => ({process: 0, tid: i, name})),
    processes: [{pid: 1, name: HOSTILE[0]}], notes: HOSTILE},
    samples: HOSTILE.map((name, i) => ({stack: `${name.replace(/;/g, "")} (/srv/<img src=x onerror=hacked=1>.py:${i + 1})`,
      thread: i, ticks: 10})),
    sources: [{file: "/srv/<img src=x onerror=hacked=1>.py", status: 0,
      parts: [{line: 1, text: HOSTILE.join("\n")}]}],
  });

  for (const hash of ["", "label=file&q=%3Cimg", "shape=inverted", "q=(a%2B)%2B%24"])
    await onPage(file, {hash}, async (page) => {
      for (let i = 0; i < HOSTILE.length; i++) {
        await clickAt(page, 1, 0.05);
        await page.keyboard.press("ArrowRight");
      }
      await page.locator(".sourcebox").waitFor();
      await page.click("#about");
      await settle(page);
      const found = await page.evaluate(() => ({hacked: window.hacked,
        images: document.querySelectorAll("img").length, scripts: document.scripts.length,
        text: document.body.innerText + document.title}));

      assert.equal(found.hacked, undefined);
      assert.equal(found.images, 0);
      assert.equal(found.scripts, 2);
      assert.doesNotMatch(found.text, /[\u2028\u2029\u202a-\u202e\u2066-\u2069]/);
      assert.match(found.text, /\\u\{202e\}/);
    });
});

test("deep stacks scroll to their end", async () => {
  const stack = Array.from({length: 3000}, (_, i) => `f${i} (/srv/deep.py:${i + 1})`).join(";");

  await onPage(writePage({samples: [{stack, ticks: 5}], meta: META}), {}, async (page) => {
    const before = await picture(page);

    await page.evaluate(() => {
      const scroller = document.querySelector(".scroller");

      scroller.scrollTop = scroller.scrollHeight;
    });
    await settle(page);
    assert.ok(await picture(page) !== before, "nothing was scrolled");
    assert.ok(await page.evaluate(() => document.getElementById("flame0").height) < 4000);
    const box = await page.locator(".scroller").boundingBox();

    await page.mouse.click(box.x + 300, box.y + box.height - 8);
    await settle(page);
    assert.match(await text(page, "#details-body"), /^f2999/);
  });
});

test("an empty recording and damaged data say so", async () => {
  await onPage(writePage({samples: [], meta: META}), {}, async (page) => {
    assert.match(await text(page, "#empty"), /No samples/);
  });
  await onPage(writePage("AAAA"), {}, async (page) => {
    assert.match(await text(page, "#failure"), /damaged/);
    assert.ok(!await page.locator("#page").isVisible());
  });
});

test("a browser without DecompressionStream gets a sentence", async () => {
  const opened = await open(plain(), {isOwn: true});

  await opened.page.addInitScript(() => delete globalThis.DecompressionStream);
  await opened.page.reload();
  await opened.page.locator("#failure:not([hidden])").waitFor();
  assert.match(await text(opened.page, "#failure"), /too old[\s\S]*Firefox 113/);
  await opened.close();
});

const SIZES = [["phone", 390, 844, true], ["tablet", 820, 1180, true], ["laptop", 1280, 800, false],
  ["4k", 3840, 2160, false]];

test("every width: nothing sticks out, all panels can be reached", async () => {
  const file = diff();

  for (const [name, width, height, touch] of SIZES)
    for (const theme of ["light", "dark"])
      await onPage(file, {width, height, touch, theme}, async (page) => {
        await screenshot(page, `${name}-${theme}`);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), name);
        const visible = (id) => page.locator(id).isVisible();
        const isNarrow = await visible("#tabs");

        assert.equal(isNarrow, width < 940);
        for (const [tab, id] of [["Functions", "#table"], ["Details", "#details-body"], ["Graph", "#flame0"]]) {
          if (isNarrow)
            await page.click(`#tabs >> text=${tab}`);
          await settle(page);
          assert.ok(await visible(id), `${name}: ${id}`);
        }
      });
});

// Pages of a PDF file.
const pagesOf = (pdf) => pdf.toString("latin1").match(/\/Type\s*\/Page\b/g).length;

test("the table of a comparison can be pulled wider, up to all of its columns", async () => {
  await onPage(diff(), {}, async (page) => {
    const {x, y, width, height} = await page.locator("#functions").boundingBox();
    const hidden = () => page.evaluate(() => {
      const box = document.getElementById("table-scroller");

      return box.scrollWidth - box.clientWidth;
    });

    assert.ok(await hidden() > 100);
    await page.mouse.move(x + width - 4, y + height - 4);
    await page.mouse.down();
    await page.mouse.move(x + width + 100, y + height - 4);
    await page.mouse.move(x + width + 240, y + height - 4);
    await page.mouse.up();
    await settle(page);
    assert.equal(await hidden(), 0);
    assert.ok(await page.evaluate(() => document.getElementById("flame0").clientWidth ===
      document.querySelector(".scroller").clientWidth));
  });
});

test("where there is room, the table of a comparison has all of its columns", async () => {
  await onPage(diff(), {width: 1600}, async (page) => {
    assert.equal(await page.evaluate(() => {
      const box = document.getElementById("table-scroller");

      return box.scrollWidth - box.clientWidth;
    }), 0);
    assert.equal(await page.locator("#table thead th").count(), 6);
  });
});

// 40 blocks of 1 s a run, two runs a side, 10 ms a tick: parse takes 4 s, then 8 s of each.
const RUNS = (normalize) => writePage({...DIFF, meta: {...DIFF.meta,
  diff: {normalize, centre: 1, marks: [1.1, 1.25, 1.5, 2]},
  runs: [0, 0, 1, 1].map((side, i) => ({...RUN, side, file: `${i}.pyebpf`, work: 50}))},
samples: [0, 1, 2, 3].flatMap((run) =>
  manyBlocks("main (/srv/app.py:3);parse (/srv/lib.py:7)", run, run < 2 ? 10 : 20))});

for (const [normalize, before, after] of [["absolute", "4.00 s", "8.00 s"], ["work", "80.0 ms", "160 ms"],
  ["second", "100 ms/s", "200 ms/s"]])
  test(`several runs: amounts are ${normalize}, as in the terminal`, async () => {
    await onPage(RUNS(normalize), {}, async (page) => {
      const figures = await text(page, "#details-body .figures");

      assert.match(figures, new RegExp(`Current\\s+0\\S*\\s+${after}\\s`));
      assert.match(figures, new RegExp(`Baseline\\s+0\\S*\\s+${before}\\s`));
    });
  });

test("the time of the baseline is its own", async () => {
  const page = writePage({...DIFF, meta: {...DIFF.meta,
    runs: [{...RUN, block_ns: 152e6, blocks: 40, side: 0}, {...RUN, blocks: 40, side: 1}]}});

  for (const [view, want] of [["base", "1.52 s – 3.04 s"], ["head", "10.0 s – 20.0 s"]])
    await onPage(page, {hash: `view=${view}&range=10-20`}, async (opened) =>
      assert.match(await text(opened, "#time-note"), new RegExp(want)));
});

test("a filter for what has no name is in the link", async () => {
  const page = writePage({...PLAIN, meta: {...META, threads: [{process: 0, tid: 1, name: "MainThread"},
    {process: 1, tid: 2, name: ""}]}});
  let url = "";

  await onPage(page, {}, async (opened) => {
    await opened.click("#filters summary >> text=Thread");
    await opened.click("#filters .sheet label:has-text('(no name)') input");
    await settle(opened);
    await opened.waitForTimeout(200);
    url = (await hash(opened)).slice(1);
  });
  await onPage(page, {hash: url}, async (opened) =>
    assert.deepEqual((await state(opened)).thread, [""]));
});

test("a selection is typed as on the command line", async () => {
  await onPage(plain(), {}, async (page) => {
    const choose = async (words) => {
      await page.fill("#filters .selection", words);
      await page.keyboard.press("Enter");
      await settle(page);
      await page.waitForTimeout(200);
    };
    const names = async () => (await functionRows(page)).map(([name]) => name);

    await page.click("#filters summary >> text=Select");
    await choose("--focus handle --ignore parse");
    assert.match(await text(page, ".head"), /Samples\s*30\b/);
    assert.deepEqual((await names()).sort(), ["handle", "main"]);
    assert.equal((await state(page)).select, "--focus handle --ignore parse");
    assert.equal(await page.locator("#filters .menu.chosen .selection").count(), 1);
    await choose("--hide 'h*' --thread pool");
    assert.match(await text(page, ".head"), /Samples\s*40\b/);
    assert.deepEqual((await names()).sort(), ["main", "parse"]);
    await choose("--nosuch x");
    assert.match(await text(page, "#filters .wrong"), /^--focus, /);
    assert.match(await text(page, ".head"), /Samples\s*100\b/);
    await choose("--focus nosuch");
    assert.match(await text(page, "#empty"), /No samples match/);
    await page.click("text=Clear filters");
    await settle(page);
    assert.match(await text(page, ".head"), /Samples\s*100\b/);
    assert.equal(await page.inputValue("#filters .selection"), "");
  });
});

// 100 ticks, and 500 ms of waiting.
const KINDS = {...PLAIN,
  meta: {...META, tags: [[0, 0, 0], [1, 1, 0], [0, 0, 1]], labels: [[0, "", ""], [0, "route", "/pay"]],
    kinds: [{name: "cpu", unit: "ns", period: 1e7}, {name: "off-cpu", unit: "ns", period: 1}]},
  samples: [...PLAIN.samples, {stack: "main (/srv/app.py:5);wait (/srv/app.py:22)", ticks: 5e8, block: 7, thread: 2}],
};

test("a selection of a kind, a label, a part of the time; of files for functions", async () => {
  await onPage(writePage(KINDS), {}, async (page) => {
    const choose = async (words) => {
      if (!await page.isVisible("#filters .selection"))
        await page.click("#filters summary >> text=Select");
      await page.fill("#filters .selection", words);
      await page.keyboard.press("Enter");
      await settle(page);
    };
    const names = async () => (await functionRows(page)).map(([name]) => name).sort();

    assert.match(await text(page, ".head"), /Samples\s*100\b/);
    assert.deepEqual(await page.locator("#kinds button").allInnerTexts(), ["CPU", "Wall", "Waiting"]);
    assert.deepEqual(await names(), ["handle", "main", "parse", "render"]);
    await choose("--kind off-cpu");
    assert.match(await text(page, ".head"), /Waiting\s*500 ms\b/);
    assert.doesNotMatch(await text(page, ".head"), /Lost|Rate/);
    assert.deepEqual(await names(), ["main", "wait"]);
    assert.match(await text(page, "#details-body"), /Time\s*0\s*500 ms/);
    await screenshot(page, "kind");
    await choose("--label route=/pay");
    assert.match(await text(page, ".head"), /Samples\s*40\b/);
    await choose("--merge file --time-range 4.5s..21s");
    assert.deepEqual(await names(), ["app.py", "lib.py"]);
    assert.match(await text(page, ".head"), /Samples\s*70\b/);
    assert.match(await text(page, "#time-note"), /^Whole parts of the time, 1\.00 s each: 4\.00 s – 21\.0 s$/);
    await screenshot(page, "merged");
    await choose("--kind nosuch");
    assert.match(await text(page, "#filters .wrong"), /this page has cpu, wall, off-cpu/);
  });
});

// 60 ticks in task web, 30 in task "it's [b]", 10 in none; of task time 4 s, 1 s and 5 s.
const TASKS = {...PLAIN,
  meta: {...META, tags: [[0, 1, 0], [1, 2, 0], [0, 0, 0], [0, 1, 1], [0, 2, 1], [0, 0, 1]],
    labels: [[0, "", ""], [0, "task", "web"], [0, "task", "it's [b]"]],
    kinds: [{name: "cpu", unit: "ns", period: 1e7}, {name: "task", unit: "ns", period: 1}]},
  samples: [
    {stack: "main (/srv/app.py:3);handle (/srv/app.py:12)", ticks: 60, block: 1, thread: 0},
    {stack: "main (/srv/app.py:4)", ticks: 30, block: 2, thread: 1},
    {stack: "loop (/srv/lib.py:4)", ticks: 10, block: 2, thread: 2},
    {stack: "main (/srv/app.py:5)", ticks: 4e9, block: 3, thread: 3},
    {stack: "main (/srv/app.py:5)", ticks: 1e9, block: 4, thread: 4},
    {stack: "loop (/srv/lib.py:5)", ticks: 5e9, block: 4, thread: 5},
  ]};

test("by a label: what each value has, in the unit of the kind; a click selects one, another one all", async () => {
  const tableRows = (page) => page.locator("#table tbody tr").allInnerTexts()
    .then((rows) => rows.map((row) => row.split(/\s*[\n\t]\s*/).filter(Boolean)));
  const hash = "group=label:task&list=parts";

  for (const [theme, width] of [["light", 1280], ["dark", 1280], ["dark", 390]])
    await onPage(writePage(TASKS), {theme, width, hash}, (page) => screenshot(page, `parts-${theme}-${width}`));
  await onPage(writePage(TASKS), {}, async (page) => {
    const choose = async (selector) => {
      await page.click(selector);
      await settle(page);
    };

    assert.deepEqual(await page.locator("#group option").allInnerTexts(), ["functions", "task", "process", "thread"]);
    assert.equal(await page.isVisible("#lists"), false);
    await page.selectOption("#group", "label:task");
    await settle(page);
    assert.deepEqual(await page.locator("#lists button").allInnerTexts(), ["Functions", "task"]);
    assert.deepEqual(await tableRows(page), [["web", "60.0%", "600 ms"], ["it's [b]", "30.0%", "300 ms"],
      ["(none)", "10.0%", "100 ms"]]);
    await choose("#kinds >> text=Task time");
    assert.deepEqual(await tableRows(page), [["(none)", "50.0%", "5.00 s"], ["web", "40.0%", "4.00 s"],
      ["it's [b]", "10.0%", "1.00 s"]]);
    await choose("#table >> text=it's [b]");
    assert.equal((await state(page)).select, `--kind task --label 'task=it'"'"'s \\[b]'`);
    assert.deepEqual(await tableRows(page), [["it's [b]", "100%", "1.00 s"]]);
    assert.match(await text(page, ".head"), /Task time\s*1\.00 s/);
    await choose("#lists >> text=Functions");
    assert.deepEqual(await tableRows(page), [["main", "app", "100%", "100%"]]);
    await choose("#lists >> text=task");
    await choose("#table >> text=it's [b]");
    assert.equal((await state(page)).select, "--kind task");
    await choose("#table >> text=(none)");
    assert.equal((await state(page)).select, "--kind task --label '!task'");
    assert.deepEqual(await tableRows(page), [["(none)", "100%", "5.00 s"]]);
    await choose("#table >> text=(none)");
    await page.keyboard.press("i");
    await settle(page);
    assert.equal((await tableRows(page)).length, 3);
    await page.fill("#query", "^web$");
    await settle(page);
    assert.deepEqual((await tableRows(page)).map(([name]) => name), ["web"]);
    await page.goBack();
    await page.selectOption("#group", "");
    await settle(page);
    assert.equal(await page.isVisible("#lists"), false);
  });
  await onPage(writePage(TASKS), {hash: "group=label:nosuch&list=parts"}, async (page) => {
    assert.deepEqual((await functionRows(page)).map(([name]) => name).sort(), ["handle", "loop", "main"]);
    assert.equal(await page.inputValue("#group"), "");
  });
  await onPage(writePage({samples: [{stack: "main (/srv/app.py:3)"}]}), {}, async (page) => {
    assert.equal(await page.isVisible("#group"), false);
  });
});

// Wall time: main 1 s on a CPU, handle waits for a lock 2 s, 1 of which is idle, and for the GIL 3 s; and memory.
const WALL = {...PLAIN,
  meta: {...META, tags: [[0, 0, 0], [0, 0, 1], [1, 0, 1], [1, 0, 2]], shown: "wall", idle: ["pool worker"],
    kinds: [{name: "cpu", unit: "ns", period: 1}, {name: "off-cpu", unit: "ns", period: 1},
      {name: "memory", unit: "bytes", period: 1}],
    gil: [["handle", "/srv/app.py", "main", "/srv/app.py", 2.5, 4], ["handle", "/srv/app.py", "", "", 0.5, 0]]},
  samples: [
    {stack: "main (/srv/app.py:3)", ticks: 1e9, block: 0},
    {stack: "main (/srv/app.py:4);handle (/srv/app.py:12);<lock>", ticks: 1e9, block: 5, thread: 1},
    {stack: "main (/srv/app.py:4);get (/srv/app.py:19);<lock>", ticks: 1e9, block: 6, thread: 2, idle: 1},
    {stack: "main (/srv/app.py:4);handle (/srv/app.py:12);<GIL>", ticks: 3e9, block: 7, thread: 2},
    {stack: "main (/srv/app.py:4)", ticks: 3 * 2 ** 20, block: 8, thread: 3},
  ]};

test("wall time: kinds, waiting by what for, who held the GIL, waits for work", async () => {
  for (const [theme, width] of [["light", 1280], ["dark", 1280], ["dark", 390]])
    await onPage(writePage(WALL), {theme, width}, (page) => screenshot(page, `wall-${theme}-${width}`));
  await onPage(writePage(WALL), {}, async (page) => {
    const choose = async (selector) => {
      await page.click(selector);
      await settle(page);
    };
    const whole = await picture(page), time = await picture(page, "heatmap");

    assert.match(await text(page, ".head"), /Wall\s*6\.00 s\s*CPU\s*1\.00 s\s*Waiting\s*5\.00 s/);
    assert.match(await text(page, "#details-body"), /on a CPU\s*1\.00 s\s*waiting\s*5\.00 s\s*<GIL>\s*3\.00 s\s*<lock>\s*2\.00 s/);
    assert.match(await text(page, "#legend"), /waiting/);
    await choose("#kinds >> text=CPU");
    assert.match(await text(page, ".head"), /CPU\s*1\.00 s/);
    assert.equal((await state(page)).select, "--kind cpu");
    assert.ok(await picture(page) !== whole && await picture(page, "heatmap") !== time);
    assert.doesNotMatch(await text(page, "#legend"), /waiting/);
    await choose("#kinds >> text=Memory");
    assert.match(await text(page, ".head"), /Memory\s*3 MiB/);
    await choose("#kinds >> text=Wall");
    assert.equal((await state(page)).select, "");
    await page.click("summary >> text=Show");
    await choose("#shown label:has-text('Waits for work') input");
    assert.match(await text(page, ".head"), /Wall\s*5\.00 s/);
    assert.match(await text(page, "#time-note"), /idle left out: pool worker 1\.00 s/);
    await choose("#shown label:has-text('Waits for work') input");
    assert.match(await text(page, ".head"), /Wall\s*6\.00 s/);
    const byProcess = await picture(page, "heatmap");

    await page.click("#filters summary >> text=Process");
    await choose("#filters .sheet label:has-text('worker') input");
    assert.ok(await picture(page, "heatmap") !== byProcess);
    await choose("#filters .sheet label:has-text('worker') input");
    await page.keyboard.press("Escape");
    await choose("#lists >> text=GIL");
    const rows = await page.locator("#table tbody tr").allInnerTexts();

    assert.match(rows[0], /handle \(app\.py\)\s*held by main \(app\.py\)\s*2\.50 s\s*4/);
    assert.match(rows[1], /held by not known\s*500 ms\s*0/);
    await choose("#table tbody tr:nth-child(1) button");
    assert.match(await text(page, "#details-body"), /^handle/);
    assert.equal((await state(page)).list, "gil");
  });
  await onPage(plain(), {}, async (page) => {
    assert.equal(await page.isVisible("#kinds") || await page.isVisible("#lists"), false);
  });
});

test("touch: a finger moves the graph, two stretch it, a function leads to its box", async () => {
  await onPage(diff(), {width: 390, height: 844, touch: true}, async (page) => {
    const touch = await page.context().newCDPSession(page), {y} = await pointAt(page, 2, 0);
    const send = (type, ...xs) => touch.send("Input.dispatchTouchEvent",
      {type, touchPoints: xs.map((x, id) => ({x, y, id}))});
    const whole = await picture(page);
    // Until the picture is as wanted: what a browser on a busy machine does not take in time, it drops.
    const gesture = async (isWanted, ...steps) => {
      let seen;

      for (let i = 0; i < 5 && !isWanted(seen = await picture(page)); i++) {
        await send("touchStart", ...steps[0]);
        for (const xs of steps)
          await send("touchMove", ...xs);
        await send("touchEnd");
        await settle(page);
      }
      seen = await picture(page);
      assert.ok(isWanted(seen), JSON.stringify(steps));
      return seen;
    };

    const stretched = await gesture((seen) => seen !== whole,
      [150, 200], [130, 220], [100, 250], [50, 300]);

    await gesture((seen) => seen !== whole && seen !== stretched, [200], [190], [150], [100]);
    await gesture((seen) => seen === whole, [50, 300], [100, 250], [150, 200], [170, 180]);
    assert.equal((await state(page)).sel, null);
    await page.click("#tabs >> text=Functions");
    const graph = page.locator("#flame0");

    for (let i = 0; i < 5 && !await graph.isVisible(); i++) {
      await page.tap("#table button.pick");
      await settle(page);
      await page.waitForTimeout(200);
    }
    assert.ok(await graph.isVisible());
    assert.notEqual((await state(page)).sel, null);
  });
});

test("small heights: the page scrolls, the graph keeps its room", async () => {
  for (const [width, height] of [[320, 256], [844, 390], [640, 400]])
    await onPage(diff(), {width, height}, async (page) => {
      const box = await page.locator(".scroller").boundingBox();

      assert.ok(box.height > 120, `${box.height} of ${height}`);
      await page.locator(".scroller").hover();
      await page.locator("#tabs").scrollIntoViewIfNeeded();
      assert.ok(await page.evaluate(() => scrollY) > 0);
    });
});

test("the head is not cut", async () => {
  const runs = DIFF.meta.runs.map((r, i) => ({...r, host: "a-host", command: `python3 app.py ${i}`}));

  for (const [width, height] of [[1280, 800], [390, 844]])
    await onPage(writePage({...DIFF, meta: {...DIFF.meta, runs, diff: {normalize: "work"}}}),
      {width, height}, async (page) => {
        const {bottom, texts} = await page.evaluate(() => ({
          bottom: document.querySelector(".tools").getBoundingClientRect().top,
          texts: [...document.querySelectorAll("#facts div")].map((e) => {
            const r = e.getBoundingClientRect(), t = e.lastChild.getBoundingClientRect();

            return {text: e.innerText, title: e.title, bottom: r.bottom, isWhole: t.right <= r.right + 1 && r.right <= innerWidth};
          })}));

        assert.equal(texts.at(-1).title, "python3 app.py 0 → python3 app.py 1");
        for (const {text: t, isWhole, bottom: y} of texts) // a long command may have an ellipsis
          assert.ok((isWhole || t.startsWith("Command")) && y <= bottom, t);
      });
});

test("print: the graph first, on light paper, as wide as it is; no tools, no blank pages", async () => {
  const stack = Array.from({length: 3000}, (_, i) => `f${i} (/srv/deep.py:${i + 1})`).join(";");

  for (const data of [PLAIN, DIFF, {samples: [{stack, ticks: 5}], meta: META}])
    await onPage(writePage(data), {theme: "dark", width: 794, height: 1123}, async (page) => {
      const theme = () => page.evaluate(() => document.documentElement.dataset.theme);

      assert.ok(pagesOf(await page.pdf({format: "A4"})) <= 3);
      assert.equal(await theme(), "dark");
      await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
      await page.emulateMedia({media: "print"});
      await settle(page);
      assert.equal(await theme(), "light");
      assert.ok(!await page.locator(".tools").isVisible());
      const graph = await page.locator(".paper canvas").first().boundingBox();
      const pixel = await page.evaluate(() => [...document.querySelector(".paper canvas")
        .getContext("2d").getImageData(1990, 2, 1, 1).data]);

      assert.ok(graph.width > 760, `${graph.width} wide`);
      if (data === DIFF)
        assert.deepEqual(pixel, [212, 212, 212, 255]);
      assert.equal(await page.locator(".paper canvas").count(), data === PLAIN || data === DIFF ? 1 : 6);
      if (await page.locator("#table").isVisible())
        assert.ok(graph.y < (await page.locator("#table").boundingBox()).y);
      assert.ok(await page.evaluate(() => document.documentElement.scrollHeight) < 3 * 1123);
      await page.evaluate(() => dispatchEvent(new Event("afterprint")));
      assert.equal(await page.locator(".paper").count(), 0);
    });
});

const isFull = process.env.PYEBPF_TIER === "all";
const STATES = ["", "view=elided", "view=base", "shape=inverted", "q=parse", "palette=heat",
  "shape=sandwich&func=2", "thread=nobody", "sel=1.3&zoom=1.3", "sel=1.3&measure=self"];

test("axe finds nothing serious in any view", async () => {
  const compared = writePage({...DIFF, sources: PLAIN.sources}), wall = writePage(WALL);
  const states = [...STATES.map((hash) => [compared, hash]), [wall, ""], [wall, "list=gil&sel=1"],
    [writePage(TASKS), "group=label:task&list=parts&sel=6.1"]];

  for (const [i, [file, hash]] of states.entries())
    for (const theme of isFull ? ["light", "dark"] : [["light", "dark"][i % 2]])
      await onPage(file, {hash, theme, bypass: true}, async (page) => {
        if (hash.startsWith("sel") && file === compared)
          await page.locator(".sourcebox .no").first().scrollIntoViewIfNeeded();
        await page.evaluate(axeSource());
        const found = await page.evaluate(() => axe.run(document, {resultTypes: ["violations"]}));
        const serious = found.violations.filter((v) => ["serious", "critical"].includes(v.impact))
          .map((v) => `${v.id}: ${v.nodes[0].html}`);

        assert.ok(found.passes.length > 10);
        assert.deepEqual(serious, [], `${hash} ${theme}`);
      });
});

test("the empty page is small and asks for nothing", () => {
  const html = emptyPage();

  assert.ok(Buffer.byteLength(html) <= 128 * 1024, `${Buffer.byteLength(html)} bytes`);
  assert.doesNotMatch(html, /https?:\/\/(?!www\.w3\.org\/2000\/svg)/);
  assert.doesNotMatch(html, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(/);
});
