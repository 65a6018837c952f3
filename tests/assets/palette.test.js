// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Colours that mean different things must look different, to everyone: CIEDE2000 over normal vision
// and full protanopia, deuteranopia and tritanopia (Machado, Oliveira, Fernandes 2009, severity 1).
"use strict";
const test = require("node:test");
const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");
for (const name of ["model", "palette"])
  require(`../../assets/${name}.js`);
const {palette, faded, contrast, CLASSES} = globalThis.pyebpf;

const VISIONS = {
  normal: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  protan: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  deutan: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881],
  tritan: [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900],
};

const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);

function labOf(hex, matrix) {
  const rgb = [1, 3, 5].map((i) => linear(parseInt(hex.slice(i, i + 2), 16) / 255));
  const [r, g, b] = [0, 3, 6].map((i) => Math.min(1, Math.max(0,
    matrix[i] * rgb[0] + matrix[i + 1] * rgb[1] + matrix[i + 2] * rgb[2])));
  const f = (t) => (t > (6 / 29) ** 3 ? Math.cbrt(t) : t / (3 * (6 / 29) ** 2) + 4 / 29);
  const x = f((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047);
  const y = f(0.2126729 * r + 0.7151522 * g + 0.0721750 * b);
  const z = f((0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883);

  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

const DEGREE = Math.PI / 180;

// CIE 142-2001.
function ciede2000([l1, a1, b1], [l2, a2, b2]) {
  const meanC = (Math.hypot(a1, b1) + Math.hypot(a2, b2)) / 2;
  const g = 0.5 * (1 - Math.sqrt(meanC ** 7 / (meanC ** 7 + 25 ** 7)));
  const c1 = Math.hypot(a1 * (1 + g), b1), c2 = Math.hypot(a2 * (1 + g), b2);
  const hue = (a, b) => (a || b ? (Math.atan2(b, a * (1 + g)) / DEGREE + 360) % 360 : 0);
  const h1 = hue(a1, b1), h2 = hue(a2, b2);
  let dh = c1 * c2 ? h2 - h1 : 0, h = h1 + h2;

  if (Math.abs(dh) > 180)
    dh -= 360 * Math.sign(dh);
  if (c1 * c2)
    h = (Math.abs(h1 - h2) > 180 ? h + (h < 360 ? 360 : -360) : h) / 2;
  const l = (l1 + l2) / 2, c = (c1 + c2) / 2;
  const t = 1 - 0.17 * Math.cos((h - 30) * DEGREE) + 0.24 * Math.cos(2 * h * DEGREE) +
    0.32 * Math.cos((3 * h + 6) * DEGREE) - 0.20 * Math.cos((4 * h - 63) * DEGREE);
  const dl = (l2 - l1) / (1 + 0.015 * (l - 50) ** 2 / Math.sqrt(20 + (l - 50) ** 2));
  const dc = (c2 - c1) / (1 + 0.045 * c);
  const dH = 2 * Math.sqrt(c1 * c2) * Math.sin(dh / 2 * DEGREE) / (1 + 0.015 * c * t);
  const turn = -2 * Math.sqrt(c ** 7 / (c ** 7 + 25 ** 7)) *
    Math.sin(60 * Math.exp(-(((h - 275) / 25) ** 2)) * DEGREE);

  return Math.sqrt(dl * dl + dc * dc + dH * dH + turn * dc * dH);
}

test("ciede2000: pairs published with the formula (Sharma, Wu, Dalal 2005)", () => {
  const pairs = [
    [[50, 2.6772, -79.7751], [50, 0, -82.7485], 2.0425],
    [[50, -1, 2], [50, 0, 0], 2.3669],
    [[50, 2.5, 0], [73, 25, -18], 27.1492],
    [[60.2574, -34.0099, 36.2677], [60.4626, -34.1751, 39.4387], 1.2644],
    [[2.0776, 0.0795, -1.1350], [0.9033, -0.0636, -0.5514], 0.9082],
  ];

  for (const [a, b, want] of pairs)
    assert.ok(Math.abs(ciede2000(a, b) - want) < 1e-4, `${ciede2000(a, b)} for ${want}`);
});

// Opposite and special meanings; neighbouring steps of one direction may be closer.
const APART = [["slower", "faster"], ["slower", "new"], ["faster", "new"], ["slower", "removed"],
  ["new", "removed"], ["unchanged", "new"]];

const APART_MIN = 13, NEIGHBOURS_MIN = 7.5; // 1 is what a trained eye just sees, side by side

function worst(fills, pairs) {
  let least = {distance: Infinity};

  for (const [name, matrix] of Object.entries(VISIONS))
    for (const [a, b] of pairs) {
      const distance = ciede2000(labOf(fills[CLASSES.indexOf(a)], matrix),
        labOf(fills[CLASSES.indexOf(b)], matrix));

      if (distance < least.distance)
        least = {distance, name, a, b};
    }
  return least;
}

const steps = (name) => CLASSES.filter((c) => c.replace(/\d$/, "") === name);
const apart = APART.flatMap(([x, y]) => steps(x).flatMap((a) => steps(y).map((b) => [a, b])));
const neighbours = ["slower", "faster"].flatMap((name) => [1, 2, 3]
  .map((i) => [name + i, name + (i + 1)]).concat([["unchanged", name + 1]]));

for (const [scheme, theme] of [["diff", "light"], ["diff", "dark"], ["colourblind", "light"]])
  test(`${scheme}, ${theme}: no two meanings look alike`, () => {
    const {fills} = palette(scheme, theme);

    for (const [pairs, least] of [[apart, APART_MIN], [neighbours, NEIGHBOURS_MIN]]) {
      const found = worst(fills, pairs);

      assert.ok(found.distance >= least, JSON.stringify(found));
    }
  });

// The page's own inks, by theme.
function inksOf(theme) {
  const css = fs.readFileSync(path.join(__dirname, "../../assets/report.css"), "utf8");
  const block = css.slice(css.indexOf(theme === "dark" ? "[data-theme=\"dark\"]" : ":root"));
  const value = (name) => new RegExp(`--${name}: (#[0-9a-f]{6})`).exec(block)[1];

  return {faint: value("faint"), background: value("background")};
}

test("names read on every fill, also where a search fades them", () => {
  for (const theme of ["light", "dark"])
    for (const scheme of ["diff", "colourblind", "modules", "heat"]) {
      const {fills, texts} = palette(scheme, theme), {faint, background} = inksOf(theme);

      fills.forEach((fill, i) => assert.ok(contrast(fill, texts[i]) >= 4.5, `${scheme} ${fill}`));
      for (const fill of faded(fills, background))
        assert.ok(contrast(fill, faint) >= 4.5, `${scheme}, ${theme}, faded: ${fill}`);
    }
});

const WAITS_MIN = 9; // it is hatched besides

test("what waits is cool and hatched, and looks like nothing that is on a CPU", () => {
  for (const theme of ["light", "dark"])
    for (const scheme of ["modules", "heat"]) {
      const {fills, texts, hatch, waits} = palette(scheme, theme, true), first = waits[0];

      assert.ok(fills.length <= 256 && waits.length === first, `${fills.length} colours`);
      assert.deepEqual(fills.map((_, i) => hatch[i]), fills.map((_, i) => Number(i >= first)));
      waits.forEach((cool, i) => {
        for (const [name, matrix] of Object.entries(VISIONS)) {
          const distance = ciede2000(labOf(fills[i], matrix), labOf(fills[cool], matrix));

          assert.ok(!i || distance >= WAITS_MIN, `${scheme}, ${theme}, ${name}: ${i}: ${distance}`);
        }
        assert.ok(contrast(fills[cool], texts[cool]) >= 4.5 && contrast(fills[cool], texts[i]) >= 4,
          `${scheme}, ${theme}: ${fills[cool]}`);
      });
    }
  assert.equal(palette("modules", "light").waits, null);
});
