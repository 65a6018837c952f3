// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Which colour a frame has, in numbers and strings only: no DOM, no canvas.
//
// A palette is {fills, texts, hatch, strength, waits}, all indexed by a colour number; strength null: no
// colour is stronger than another; waits: the colour of what waits there, hatched and cool; null: it
// has none. Differential palettes number the classes as model.js does
// (CLASSES), and one more, NEW_BELOW: new, as its caller is already. Plain palettes number hues; 0
// is the grey of what has no colour of its own.
(function (ns) {
  "use strict";

  // slower4 ... slower1, unchanged, faster1 ... faster4, new, removed. Chosen so that the worst
  // CIEDE2000 distance over normal, protan, deutan and tritan vision stays large.
  const DIFFERENTIAL = {
    light: ["#b2182b", "#d6604d", "#f4a582", "#fddbc7", "#d4d4d4", "#c6e2f2", "#8ec3e2",
      "#4393c3", "#2166ac", "#3f1a66", "#be99ff"],
    dark: ["#ff7a6b", "#db5a4e", "#a8423c", "#6b3431", "#474d55", "#2d4f75", "#2f6cab",
      "#3f92dd", "#7cc0ff", "#efe2ff", "#2a1250"],
    colourblind: ["#a6480a", "#d9751e", "#f5a95b", "#fdd9b0", "#d4d4d4", "#c6dff5", "#86bbe6",
      "#4a90cc", "#1b5a96", "#3b1440", "#c299bb"],
  };

  // Classes drawn with diagonal lines over their colour, so that no meaning hangs on hue alone.
  const HATCHED = new Set(["undetermined", "rare", "removed"]);

  // A run of boxes narrower than a pixel shows its strongest class, so that a significant change
  // is never lost among grey. New and removed count as the strongest change.
  const STRENGTH = {
    unchanged: 0, undetermined: 1, rare: 2,
    slower1: 3, faster1: 3, slower2: 4, faster2: 4,
    slower3: 5, faster3: 5, slower4: 6, faster4: 6, new: 7, removed: 7,
  };

  const NEW_BELOW = 13;
  const HUES = 24; // of the plain palette: more could not be told apart
  const SHADES = 3; // of a hue, so that neighbours of one module differ
  const COOL_STEP = 3; // hues that what waits has one for
  const HEAT_STEPS = 12; // of the self-time ramp
  const HEAT_LOW = (1.5 / HEAT_STEPS) ** 2; // shares below are of step 1

  // A palette's plain colours are 1 + hue * SHADES + shade, libraries' HUES * SHADES further on.
  const LIBRARY = HUES * SHADES;

  function parseHex(hex) {
    const n = parseInt(hex.slice(1), 16);

    return [n >> 16 & 255, n >> 8 & 255, n & 255];
  }

  function toHex(rgb) {
    return "#" + rgb.map((v) => Math.round(Math.min(255, Math.max(0, v)))
      .toString(16).padStart(2, "0")).join("");
  }

  // Part t of the way from hex colour a to b, in sRGB: how a frame fades when it does not match.
  function mix(a, b, t) {
    const x = parseHex(a), y = parseHex(b);

    return toHex(x.map((v, i) => v + (y[i] - v) * t));
  }

  // Relative luminance of WCAG 2.2, 0 to 1.
  function luminance(hex) {
    const [r, g, b] = parseHex(hex).map((v) => {
      const s = v / 255;

      return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });

    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }

  // Contrast ratio of WCAG 2.2, 1 to 21.
  function contrast(a, b) {
    const x = luminance(a), y = luminance(b);

    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  }

  const INK = "#07080a", PAPER = "#ffffff";

  // The text colour that reads better on fill.
  function textOn(fill) {
    return contrast(fill, INK) >= contrast(fill, PAPER) ? INK : PAPER;
  }

  // The lines of a hatching on a fill that bears text of this colour.
  function hatchOn(text) {
    return text === PAPER ? "rgba(255, 255, 255, 0.3)" : "rgba(7, 8, 10, 0.28)";
  }

  // OKLCH to sRGB hex (Ottosson's Oklab): equal lightness looks equally light at every hue.
  function oklch(lightness, chroma, degrees) {
    const h = degrees * Math.PI / 180;
    const a = chroma * Math.cos(h), b = chroma * Math.sin(h);
    const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3;

    return toHex([
      4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
      -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
      -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s,
    ].map((v) => 255 * (v <= 0.0031308 ? 12.92 * v : 1.055 * Math.max(v, 0) ** (1 / 2.4) - 0.055)));
  }

  // cool: further fills, of what waits; waits: by colour which of them.
  function finish(fills, strength, hatch, cool = [], waits = null) {
    const all = [...fills, ...cool];

    return {fills: all, texts: all.map(textOn), strength: strength && Uint8Array.from(strength),
      hatch: Uint8Array.from([...hatch, ...cool.map(() => 1)]),
      waits: waits?.map((c) => fills.length + c)};
  }

  function differential(name) {
    const c = DIFFERENTIAL[name];
    const fills = [c[4], c[4], c[4], c[3], c[2], c[1], c[0], c[5], c[6], c[7], c[8], c[9], c[10],
      mix(c[9], c[4], 0.5)];

    return finish(fills, [...ns.CLASSES.map((k) => STRENGTH[k]), STRENGTH.slower4],
      [...ns.CLASSES.map((k) => Number(HATCHED.has(k))), 0]);
  }

  // Own code in full colour, libraries paler: the eye finds first what its owner can change. Where
  // there is waiting it alone is blue, and nothing else near it: who does not see red and green apart
  // sees blue and yellow.
  function modules(dark, hasWaits) {
    const grey = DIFFERENTIAL[dark ? "dark" : "light"][4];
    const fills = [grey], cool = [mix(grey, "#4a90cc", 0.25)], waits = [0];
    const light = (shade) => (dark ? 0.46 : 0.83) + 0.03 * shade;

    for (const chroma of dark ? [0.085, 0.035] : [0.095, 0.035]) {
      const first = cool.length;

      for (let i = 0; i < HUES * SHADES; i++) {
        const hue = Math.floor(i / SHADES), shade = i % SHADES;

        fills.push(oklch(light(shade), chroma, (hasWaits ? 100 : 360) * hue / HUES + 20));
        waits.push(first + Math.floor(hue / COOL_STEP) * SHADES + shade);
        if (hue % COOL_STEP === 0)
          cool.push(oklch(light(shade) - 0.04, chroma * 1.3, 225 + 60 * hue / HUES));
      }
    }
    return finish(fills, null, fills.map(() => 0), ...hasWaits ? [cool, waits] : []);
  }

  // Colour 0 is no self time, HEAT_STEPS all of it: lightness alone orders the steps, so the ramp
  // survives every kind of colour blindness and a grey printer.
  function heat(dark, hasWaits) {
    const fills = [DIFFERENTIAL[dark ? "dark" : "light"][4]], cool = [fills[0]];

    for (let i = 1; i <= HEAT_STEPS; i++) {
      const t = i / HEAT_STEPS;
      const step = (of, hue) => of.push(dark ? oklch(0.40 + 0.45 * t, 0.05 + 0.11 * t, hue + 50 * t)
        : oklch(0.93 - 0.45 * t, 0.05 + 0.13 * t, hue + 50 - 60 * t));

      step(fills, 40);
      step(cool, 210);
    }
    return finish(fills, hasWaits ? null : fills.map((_, i) => i), fills.map(() => 0),
      ...hasWaits ? [cool, fills.map((_, i) => i)] : []);
  }

  // theme: "light" or "dark"; scheme: "diff", "colourblind", "modules", "heat"; hasWaits: of a page that
  // knows what waits.
  function palette(scheme, theme, hasWaits) {
    const dark = theme === "dark";

    if (scheme === "modules")
      return modules(dark, hasWaits);
    if (scheme === "heat")
      return heat(dark, hasWaits);
    if (scheme === "colourblind")
      return differential("colourblind");
    return differential(dark ? "dark" : "light");
  }

  // FNV-1a, 32 bits, over UTF-16 units.
  function hash(text) {
    let h = 0x811c9dc5;

    for (let i = 0; i < text.length; i++)
      h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
    return h >>> 0;
  }

  // Colour number in the "modules" palette: the hue says the module, the shade the function.
  function moduleColour(module, name, isOwn) {
    if (!module)
      return 0;
    return 1 + (isOwn ? 0 : LIBRARY) + hash(module) % HUES * SHADES + hash(name) % SHADES;
  }

  // Colour number in the "heat" palette of a share from 0 to 1. The square root spreads the small
  // shares, where most functions are.
  function heatColour(share) {
    return share > 0 ? share < HEAT_LOW ? 1 : Math.round(Math.sqrt(Math.min(1, share)) * HEAT_STEPS) : 0;
  }

  // --- colour numbers of a tree's boxes --------------------------------------------------------

  // colour(func): that of a function.
  function colourByFunction(report, tree, colour) {
    const ofFunction = new Int16Array(report.functions.count).fill(-1);
    const out = new Uint8Array(tree.count);

    for (let i = 0; i < tree.count; i++) {
      const f = tree.func[i];

      if (ofFunction[f] < 0)
        ofFunction[f] = colour(f);
      out[i] = ofFunction[f];
    }
    return out;
  }

  // Where the view is of what is gone.
  function elidedColours(active) {
    const out = new Uint8Array(active.tree.count), removed = ns.CLASSES.indexOf("removed");

    for (let i = 1; i < out.length; i++)
      if (ns.isGone(active, i))
        out[i] = removed;
    return out;
  }

  // Only the topmost new box of a path is strong: what it calls is new as a matter of course.
  function softenNew({count, parent}, colour) {
    const isNew = ns.CLASSES.indexOf("new");

    for (let i = count - 1; i > 0; i--)
      if (colour[i] === isNew && colour[parent[i]] === isNew)
        colour[i] = ns.NEW_BELOW;
  }

  // Steps of a change measured against the whole, where a change is coloured by impact.
  const IMPACT_STEPS = [0.001, 0.005, 0.02, 0.05];

  // The step of a significant change by its share of the whole, not of itself.
  function colourByImpact({current, base, scale}, measure, colour) {
    const root = current.total[0] || base.total[0] * scale || 1;
    const slower = ns.CLASSES.indexOf("slower1"), faster = ns.CLASSES.indexOf("faster1");

    for (let i = 0; i < colour.length; i++) {
      if (colour[i] < slower || colour[i] >= faster + 4)
        continue;
      const impact = Math.abs(current[measure][i] - base[measure][i] * scale) / root;
      const step = IMPACT_STEPS.findLastIndex((mark) => impact >= mark);

      colour[i] = step < 0 ? 0 : (colour[i] < faster ? slower : faster) + step;
    }
  }

  // fills faded towards the background, for what does not match a search.
  function faded(fills, background) {
    return fills.map((fill) => mix(fill, background, 0.86));
  }

  Object.assign(ns, {NEW_BELOW, HEAT_STEPS, LIBRARY, palette, moduleColour, heatColour, faded, mix,
    contrast, hatchOn, colourByFunction, elidedColours, softenNew, colourByImpact});
})(globalThis.pyebpf ??= {});
