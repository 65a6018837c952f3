// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The graph as an SVG file's text. Pure: the page hands it to the reader as a download.
(function (ns) {
  "use strict";

  const XML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "'": "&#39;"};

  const escapeXml = (text) => ns.visible(text).replace(/[&<>"']/g, (c) => XML[c]);

  const fixed = (v) => Number(v.toFixed(2));

  // As much of a canvas's context as paint() needs of one with `hatching`: writes elements to out.
  function svgContext(out) {
    let path = "";

    return {
      hatching: "url(#h)",
      rect: (x, y, w, h, style, content = "") => out.push(`<rect x="${fixed(x)}" y="${fixed(y)}" width="${
        fixed(Math.max(0.3, w))}" height="${fixed(h)}" ${style}>${content}</rect>`),
      fillRect(...box) {
        this.rect(...box, `fill="${this.fillStyle}"`);
      },
      strokeRect(...box) {
        this.rect(...box, `fill="none" stroke="${this.strokeStyle}"`);
      },
      fillText(text, x, y) {
        out.push(`<text x="${fixed(x)}" y="${y + 4}" fill="${this.fillStyle}">${escapeXml(text)}</text>`);
      },
      beginPath() {
        path = "M";
      },
      moveTo: (x, y) => path += `${fixed(x)} ${y}`,
      lineTo: (x, y) => path += ` ${fixed(x)} ${y}`,
      fill() {
        out.push(`<path d="${path}" fill="${this.fillStyle}"/>`);
      },
    };
  }

  // scene, view, look: as for flamegraph.js's paint(). title: text above. advance(character): width of
  // the font at 12 pixels.
  function svgPicture(scene, view, look, title, advance) {
    const height = ns.TITLE + (view.bottom - view.top) * look.row + 6;
    const out = [`<svg xmlns="http://www.w3.org/2000/svg" width="${view.size}" height="${height}" ` +
      `viewBox="0 0 ${view.size} ${height}" font-family="system-ui, sans-serif" font-size="12">`,
      "<defs><pattern id=\"h\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">" +
      "<path d=\"M-1 7L7 -1M-1 1L1 -1M5 7L7 5\" stroke=\"#777\"/></pattern></defs>",
      `<rect width="100%" height="100%" fill="${look.background}"/>`,
      `<text x="8" y="21" font-size="14" font-weight="600" fill="${look.ink}">${
        escapeXml(title)}</text>`, `<g transform="translate(0 ${ns.TITLE})">`], ctx = svgContext(out);

    ns.paint(ctx, scene, view, {...look, ratio: 100, advance});
    const seen = ns.onScreen(scene.boxes, view, scene.colour, scene.palette.strength);

    // What a box says when pointed at.
    for (let i = 0; i < seen.n; i++)
      ctx.rect(seen.x[i], (ns.lineOf(scene, seen.row[i]) - view.line) * look.row, seen.width[i], look.row,
        "fill-opacity=\"0\"", `<title>${escapeXml(scene.describe(scene.boxes.node[seen.box[i]]))}</title>`);
    return out.join("\n") + "\n</g></svg>\n";
  }

  Object.assign(ns, {svgPicture});
})(globalThis.pyebpf ??= {});
