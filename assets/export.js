// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The graph as an SVG file's text. Pure: the page hands it to the reader as a download.
(function (ns) {
  "use strict";

  const XML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "'": "&#39;"};

  const escapeXml = (text) => ns.visible(text).replace(/[&<>"']/g, (c) => XML[c]);

  // scene, view {from, to, size}, look {row, background, ink}: as for flamegraph.js's
  // paint(). title: text above. advance(character): width of the font at 12 pixels.
  function svgPicture(scene, view, look, title, advance) {
    const {boxes, palette, colour} = scene, head = 34;
    const seen = ns.onScreen(boxes, {...view, top: 0, bottom: boxes.rows}, colour, palette.strength);
    const height = head + boxes.rows * look.row + 6;
    const out = [`<svg xmlns="http://www.w3.org/2000/svg" width="${view.size}" height="${height}" ` +
      `viewBox="0 0 ${view.size} ${height}" font-family="system-ui, sans-serif" font-size="12">`,
      "<defs><pattern id=\"h\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">" +
      "<path d=\"M-1 7L7 -1M-1 1L1 -1M5 7L7 5\" stroke=\"#777\"/></pattern></defs>",
      `<rect width="100%" height="100%" fill="${look.background}"/>`,
      `<text x="8" y="21" font-size="14" font-weight="600" fill="${look.ink}">${
        escapeXml(title)}</text>`];
    const fixed = (v) => Number(v.toFixed(2));

    for (let i = 0; i < seen.n; i++) {
      const node = boxes.node[seen.box[i]], w = fixed(seen.width[i]), c = colour[node];
      const row = scene.isUpward ? boxes.rows - 1 - seen.row[i] : seen.row[i];
      const y = head + row * look.row, x = fixed(seen.x[i]);
      const frame = `x="${x}" y="${y}" width="${w > 3 ? fixed(w - 1) : w}" height="${look.row - 1}"`;
      const text = w > 22 ? ns.fitOne(scene.labels(node), w - 10, advance) : "";
      const hatch = palette.hatch[c] ? `<rect ${frame} fill="url(#h)"/>` : "";
      const label = text ? `<text x="${x + 5}" y="${y + look.row / 2 + 4}" fill="${
        palette.texts[c]}">${escapeXml(text)}</text>` : "";

      out.push(`<g><title>${escapeXml(scene.describe(node))}</title><rect ${frame} fill="${
        palette.fills[c]}"/>${hatch}${label}</g>`);
    }
    return out.join("\n") + "\n</svg>\n";
  }

  Object.assign(ns, {svgPicture});
})(globalThis.pyebpf ??= {});
