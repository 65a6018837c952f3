// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Paints a flame graph and its minimap on canvases, and says what lies under the pointer.
//
// A scene is what is drawn, all of it prepared by app.js:
//   tree      {count, parent, depth, frame}, see layout.js
//   boxes     layout() of the tree
//   colour    Uint8Array, colour number of each node
//   palette   palette.js: {fills, texts, hatch, strength, waits}
//   waits     by node what of `weight` waits, with all below it; or null
//   weight    by node what boxes are as wide as
//   labels    node -> texts of its box: the first that fits is shown
//   note      node -> short text at the right end of a wide box, or ""
//   matched   Uint8Array by function, 0: drawn faded; or null
//   mark      node -> 1: outlined, 2: outlined faintly, 0: not; or null
//   own       node -> whether it is underlined where its own share lies; or null
//   notch     Float64Array by node, > 0: something below is missing here; or null
//   describe  node -> one line for screen readers
//   isUpward  the root stands at the bottom
(function (ns) {
  "use strict";

  const PAD = 5; // pixels between a box's edge and its text
  const MIN_TEXT = 22; // boxes narrower than this carry no text
  const MIN_NOTE = 120; // boxes narrower than this have no room for a second text
  const OWN_MIN = 8; // pixels: narrower boxes carry no line for their own share
  const NOTCH = 7; // pixels of the corner that tells of missing calls
  const ZOOM_MS = 170;

  // Advance widths of a font, measured once a character: measureText() a label would take longer
  // than drawing it.
  function ruler(ctx, font) {
    const known = new Map();

    return (c) => {
      let width = known.get(c);

      if (width === undefined) {
        ctx.font = font;
        known.set(c, width = ctx.measureText(c).width);
      }
      return width;
    };
  }

  // Diagonal lines in ink, as a repeating pattern; a drawing (export.js) has its own.
  function hatching(ctx, ink, ratio) {
    if (ctx.hatching)
      return ctx.hatching;
    const tile = ns.element("canvas"), size = Math.round(6 * ratio);
    const t = tile.getContext("2d");

    tile.width = tile.height = size;
    t.strokeStyle = ink;
    t.lineWidth = ratio;
    t.beginPath();
    for (const shift of [-size, 0, size]) {
      t.moveTo(shift - 1, size + 1);
      t.lineTo(shift + size + 1, -1);
    }
    t.stroke();
    const pattern = ctx.createPattern(tile, "repeat");

    pattern.setTransform(new DOMMatrix([1 / ratio, 0, 0, 1 / ratio, 0, 0]));
    return pattern;
  }

  // A fill as a pixel of image data, whose bytes are red, green, blue, alpha.
  function pixelOf(hex) {
    const n = parseInt(hex.slice(1), 16);

    return (0xff000000 | (n & 255) << 16 | n & 0xff00 | n >> 16) >>> 0;
  }

  const isFaded = ({matched, tree}, node) => matched !== null && !matched[tree.func[node]];

  const NARROW = 3; // pixels: narrower boxes go into a strip instead of being filled one by one

  const MIXED = 0.01; // shares of waiting that are told from none and from all

  // By entry of a screen 1 where it waits. A box that does so in part gets a further one of as much of its
  // width, on the left: callees are there, its own time on a CPU is right of them. Narrow ones are what
  // most of them is.
  function splitWaits(seen, scene, {from, to, size}) {
    const {boxes, waits, weight} = scene, count = seen.n, isCool = new Uint8Array(2 * count);

    for (let i = 0; waits && i < count; i++) {
      const box = seen.box[i], node = boxes.node[box], share = waits[node] / weight[node];
      const isWide = seen.run[i] === 1 && seen.width[i] >= 2 * NARROW;

      isCool[i] = share > (isWide ? 1 - MIXED : 0.5);
      if (!isWide || isCool[i] || share < MIXED)
        continue;
      const end = (boxes.x0[box] + waits[node] - from) / (to - from) * size;
      const width = Math.min(seen.width[i], Math.max(0, end - seen.x[i]));

      isCool[seen.n] = 1;
      ns.put(seen, box, seen.x[i], width, seen.row[i], 2);
    }
    return isCool;
  }

  // What a screen shows by fill: [{k, entries}...], faded fills (those from the palette's length on)
  // first, then from weak to strong: each is set once, and what tells most is not painted over.
  function byFill(seen, scene, isCool) {
    const {boxes, palette, colour} = scene, fills = palette.fills.length;
    const key = new Uint16Array(seen.n);
    const start = new Uint32Array(2 * fills + 1), order = new Uint32Array(seen.n);

    for (let i = 0; i < seen.n; i++) {
      const node = boxes.node[seen.box[i]];

      key[i] = (isCool[i] ? palette.waits[colour[node]] : colour[node]) + (isFaded(scene, node) ? fills : 0);
      start[key[i] + 1]++;
    }
    for (let k = 0; k < 2 * fills; k++)
      start[k + 1] += start[k];
    const next = start.slice(), strength = palette.strength ?? [];

    for (let i = 0; i < seen.n; i++)
      order[next[key[i]]++] = i;
    return Array.from(next, (_, k) => ({k, entries: order.subarray(start[k], start[k + 1])}))
      .filter(({entries}) => entries.length)
      .sort((a, b) => (b.k >= fills) - (a.k >= fills) ||
        (strength[a.k % fills] ?? 0) - (strength[b.k % fills] ?? 0));
  }

  let strip = null; // of paintNarrow(), for all frames

  // Narrow boxes, tens of thousands where all of a large profile is on screen: a pixel each in an
  // image one pixel high a row, which is then stretched to the rows' height.
  function paintNarrow(ctx, scene, seen, groups, pixels, view, look) {
    const width = Math.max(1, Math.round(view.size * look.ratio)), rows = view.bottom - view.top;

    if (rows <= 0 || ctx.hatching)
      return;
    const image = ctx.createImageData(width, rows), used = new Uint8Array(rows);
    const data = new Uint32Array(image.data.buffer);

    for (const {k, entries} of groups)
      for (const i of entries) {
        if (seen.width[i] >= NARROW)
          continue;
        const row = seen.row[i] - view.top, from = Math.floor(seen.x[i] * look.ratio);
        const to = Math.max(from + 1, Math.round((seen.x[i] + seen.width[i]) * look.ratio));

        used[row] = 1;
        data.fill(pixels[k], row * width + from, row * width + Math.min(width, to));
      }
    if (!used.includes(1))
      return;
    strip ??= ns.element("canvas");
    strip.width = width;
    strip.height = rows;
    strip.getContext("2d").putImageData(image, 0, 0);
    ctx.imageSmoothingEnabled = false;
    used.forEach((isUsed, row) => {
      const y = (lineOf(scene, row + view.top) - view.line) * look.row;

      if (isUsed)
        ctx.drawImage(strip, 0, row, width, 1, 0, y, view.size, look.row - 1);
    });
  }

  // The line a row is drawn on; the first line is at the top.
  function lineOf({boxes, isUpward}, row) {
    return isUpward ? boxes.rows - 1 - row : row;
  }

  // Paints rows [top, bottom) of scene into ctx; line view.line stands at y = 0. look: {row, font,
  // ink, faint, background, violet, accent, ratio, advance}.
  function paint(ctx, scene, view, look) {
    const {boxes, palette} = scene;
    const seen = ns.onScreen(boxes, view, scene.colour, palette.strength);
    const fills = palette.fills.concat(ns.faded(palette.fills, look.background));
    const isCool = splitWaits(seen, scene, view), groups = byFill(seen, scene, isCool);
    const snap = (v) => Math.round(v * look.ratio) / look.ratio;

    for (const {k, entries} of groups) {
      const c = k % palette.fills.length;
      const hatch = palette.hatch[c] ? hatching(ctx, ns.hatchOn(palette.texts[c]), look.ratio) : null;

      for (const style of [fills[k], hatch]) {
        if (!style)
          continue;
        ctx.fillStyle = style;
        for (const i of entries) {
          const x = snap(seen.x[i]), w = snap(seen.x[i] + seen.width[i]) - x;

          if (seen.width[i] >= NARROW || ctx.hatching)
            ctx.fillRect(x, (lineOf(scene, seen.row[i]) - view.line) * look.row,
              w - (w >= NARROW), look.row - 1);
        }
      }
    }
    paintNarrow(ctx, scene, seen, groups, fills.map(pixelOf), view, look);
    paintMarks(ctx, scene, seen, view, look);
    paintLabels(ctx, scene, seen, view, look, isCool);
  }

  function paintLabels(ctx, scene, seen, view, look, isCool) {
    const {boxes, palette, colour} = scene;

    ctx.font = look.font;
    ctx.textBaseline = "middle";
    for (let i = 0; i < seen.n; i++) {
      const width = seen.width[i];

      if (width < MIN_TEXT || seen.run[i] > 1)
        continue;
      const node = boxes.node[seen.box[i]], y = (lineOf(scene, seen.row[i]) - view.line + 0.5) * look.row;
      let room = width - 2 * PAD;
      const note = width >= MIN_NOTE ? scene.note(node) : "";

      ctx.fillStyle = isFaded(scene, node) ? look.faint
        : palette.texts[isCool[i] ? palette.waits[colour[node]] : colour[node]];
      if (note) {
        const noteWidth = textWidth(note, look.advance);

        if (noteWidth < room / 3.5) {
          ctx.fillText(note, seen.x[i] + width - PAD - noteWidth, y);
          room -= noteWidth + 2 * PAD;
        }
      }
      const text = ns.fitOne(scene.labels(node), room, look.advance);

      if (text)
        ctx.fillText(text, seen.x[i] + PAD, y);
    }
  }

  function textWidth(text, advance) {
    let width = 0;

    for (const c of text)
      width += advance(c);
    return width;
  }

  // A line under a box's own share, which lies right of its callees.
  function paintOwn(ctx, {boxes, tree, palette, colour}, seen, i, y, view, look) {
    const node = boxes.node[seen.box[i]], [first, end] = ns.childBoxes(boxes, tree, node);
    const from = first < end ? boxes.x1[end - 1] : boxes.x0[seen.box[i]];
    const x = (from - view.from) / (view.to - view.from) * view.size;
    const right = seen.x[i] + seen.width[i] - 2;
    const left = Math.max(seen.x[i] + 1, Math.min(x, right - OWN_MIN + 3));

    ctx.fillStyle = palette.texts[colour[node]];
    ctx.fillRect(left, y + look.row - 4, right - left, 2.5);
  }

  // Outlines, and a violet corner where calls of the baseline are missing.
  function paintMarks(ctx, scene, seen, view, look) {
    const {boxes, mark, notch, own} = scene;

    if (!mark && !notch && !own)
      return;
    for (let i = 0; i < seen.n; i++) {
      const node = boxes.node[seen.box[i]];
      const y = (lineOf(scene, seen.row[i]) - view.line) * look.row, w = seen.width[i];

      const line = mark && w >= 3 ? mark(node) : 0;

      if (line) {
        ctx.strokeStyle = line === 1 ? look.ink : look.hatch;
        ctx.lineWidth = line === 1 ? 1.5 : 1;
        ctx.strokeRect(seen.x[i] + 0.75, y + 0.75, w - 2.5, look.row - 2.5);
      }
      if (own && w >= OWN_MIN && own(node))
        paintOwn(ctx, scene, seen, i, y, view, look);
      if (notch && notch[node] > 0 && w >= NOTCH) {
        const right = seen.x[i] + w - (w > 3 ? 1 : 0), bottom = y + look.row - 1;

        ctx.fillStyle = look.violet;
        ctx.beginPath();
        ctx.moveTo(right, bottom);
        ctx.lineTo(right - NOTCH, bottom);
        ctx.lineTo(right, bottom - NOTCH);
        ctx.fill();
      }
    }
  }

  // The graph on screen. dom: {canvas, overlay, scroller, spacer}; on: {select(node), hover(node,
  // event), view()}, hover(-1) when the pointer left; look(): as for paint(), without advance.
  function flameGraph(dom, on, look) {
    const ctx = dom.canvas.getContext("2d"), over = dom.overlay.getContext("2d");
    let scene = null, style = null, view = {from: 0, to: 1}, width = 0, height = 0, ratio = 1;
    let hovered = -1, selected = -1, frame = 0, animation = null, isOverUsed = false;

    function fitCanvas() {
      width = dom.scroller.clientWidth;
      height = dom.scroller.clientHeight;
      ratio = devicePixelRatio || 1;
      for (const canvas of [dom.canvas, dom.overlay]) {
        canvas.width = Math.max(1, Math.round(width * ratio));
        canvas.height = Math.max(1, Math.round(height * ratio));
        canvas.style.width = width + "px";
        canvas.style.height = height + "px";
      }
      restyle();
    }

    function isFitted() {
      const {row, font} = look();

      return style !== null && width === dom.scroller.clientWidth && height === dom.scroller.clientHeight &&
        ratio === (devicePixelRatio || 1) && style.row === row && style.font === font;
    }

    function restyle() {
      style = look();
      style.ratio = ratio;
      style.advance = ruler(ctx, style.font);
    }

    // A graph that grows upward stands on the bottom of its box.
    function offset() {
      return scene.isUpward ? Math.max(0, height - scene.boxes.rows * style.row) : 0;
    }

    // The lines on screen, or as many as asked for, after those to skip.
    function lines(skip = 0, count = Math.ceil(height / style.row) + 1) {
      const line = Math.floor(dom.scroller.scrollTop / style.row) + skip, {rows} = scene.boxes;
      const end = Math.min(rows, line + count);

      return scene.isUpward ? {line, top: rows - end, bottom: rows - line}
        : {line, top: line, bottom: end};
    }

    function draw() {
      cancelAnimationFrame(frame); // drawn before its time
      frame = 0;
      if (!scene || !width)
        return;
      const shift = dom.scroller.scrollTop % style.row;

      step();
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      ctx.fillStyle = style.background;
      ctx.fillRect(0, 0, width, height);
      ctx.translate(0, offset() - shift);
      paint(ctx, scene, {...view, size: width, ...lines()}, style);
      drawOver();
      on.view(view);
    }

    // Boxes the pointer and the keyboard are on; apart, so that hovering repaints nothing else. A
    // canvas that nothing was ever drawn on costs nothing.
    function drawOver() {
      if (hovered < 0 && selected < 0 && !isOverUsed)
        return;
      isOverUsed = true;
      over.setTransform(ratio, 0, 0, ratio, 0, 0);
      over.clearRect(0, 0, width, height);
      outline(hovered, style.ink, 1);
      outline(selected, style.accent, 2.5);
    }

    function outline(node, colour, line) {
      const r = node < 0 || !scene ? null : place(node);

      if (!r || r.y + r.height < 0 || r.y > height)
        return;
      over.strokeStyle = colour;
      over.lineWidth = line;
      over.strokeRect(r.x + line / 2, r.y + line / 2, Math.max(1, r.width - line - 1),
        r.height - line - 1);
    }

    // Where a node is on screen, in pixels of the scroller; null if it has no box or is left or
    // right of the screen.
    function place(node) {
      const {boxes, tree} = scene, box = ns.boxOf(boxes, tree, node);

      if (box < 0)
        return null;
      const scale = width / (view.to - view.from);
      const x = Math.max(0, (boxes.x0[box] - view.from) * scale);
      const right = Math.min(width, (boxes.x1[box] - view.from) * scale);

      return right < 0 || x > width ? null : {x, width: right - x,
        y: lineOf(scene, tree.depth[node]) * style.row + offset() - dom.scroller.scrollTop,
        height: style.row};
    }

    function request() {
      frame ||= requestAnimationFrame(draw);
    }

    function step() {
      if (!animation)
        return;
      const t = Math.min(1, (performance.now() - animation.start) / ZOOM_MS);
      const eased = 1 - (1 - t) ** 3;
      const {a, b} = animation;

      view = {from: a.from + (b.from - a.from) * eased, to: a.to + (b.to - a.to) * eased};
      if (t < 1)
        request();
      else
        animation = null;
    }

    // Shows [from, to); animated unless the reader asked for less motion.
    function zoom(from, to, animate = true) {
      const end = scene.boxes.x1[0] || 1;
      const size = Math.min(end, Math.max(to - from, end * 1e-9));

      from = Math.min(Math.max(0, from), end - size);
      const goal = {from, to: from + size};

      if (animate && !matchMedia("(prefers-reduced-motion: reduce)").matches) {
        animation = {a: view, b: goal, start: performance.now()};
      } else {
        animation = null;
        view = goal;
      }
      leave();
      request();
    }

    // Nothing is under the pointer any more, or something else.
    function leave() {
      hovered = -1;
      drawOver();
      on.hover(-1);
    }

    function zoomTo(node, animate) {
      const box = ns.boxOf(scene.boxes, scene.tree, node);

      if (box < 0)
        return zoom(0, scene.boxes.x1[0] || 1, animate);
      zoom(scene.boxes.x0[box], scene.boxes.x1[box], animate);
      reveal(node);
    }

    // Scrolls so that the node's row is on screen.
    function reveal(node) {
      const y = lineOf(scene, scene.tree.depth[node]) * style.row, top = dom.scroller.scrollTop;

      if (y < top || y + 2 * style.row > top + height)
        dom.scroller.scrollTop = Math.max(0, y - height / 3);
    }

    // The node at a point of the scroller's box, or -1; corner: whether it is on its notch.
    function hit(x, y) {
      if (!scene || !width)
        return {node: -1, corner: false};
      const line = Math.floor((y + dom.scroller.scrollTop - offset()) / style.row);
      const box = ns.boxAt(scene.boxes, lineOf(scene, line), view.from + x / width * (view.to - view.from));

      if (box < 0)
        return {node: -1, corner: false};
      const node = scene.boxes.node[box], r = place(node);

      return {node, corner: Boolean(scene.notch && scene.notch[node] > 0 && r.width >= NOTCH &&
        x > r.x + r.width - NOTCH - 3 && y > r.y + r.height - NOTCH - 3)};
    }

    function at(event) {
      const r = ns.rectOf(dom.scroller);

      return hit(event.clientX - r.left, event.clientY - r.top);
    }

    function listen() {
      const held = new Map(); // where pointers that are down stand, by their id
      let down = null, isMoved = false;

      // Middle of the pointers, and how far apart they are.
      const grip = () => {
        const left = Math.min(...held.values()), right = Math.max(...held.values());

        return [(left + right) / 2 - ns.rectOf(dom.scroller).left, right - left];
      };

      // What was below the pointers stays there: one moves the view, two also stretch it.
      const drag = (e) => {
        const [x, apart] = grip(), unit = (view.to - view.from) / width;

        held.set(e.pointerId, e.clientX);
        const [nextX, nextApart] = grip(), next = apart * nextApart ? unit * apart / nextApart : unit;
        const from = view.from + x * unit - nextX * next;

        zoom(from, from + width * next, false);
        if (e.pointerType === "mouse")
          dom.scroller.scrollTop = down.top - (e.clientY - down.y);
      };

      dom.scroller.onscroll = () => {
        leave();
        request();
      };
      dom.canvas.onpointermove = (e) => {
        if (held.has(e.pointerId)) {
          isMoved ||= held.size > 1 || Math.hypot(e.clientX - down.x, e.clientY - down.y) > 4;
          if (isMoved)
            drag(e);
          return;
        }
        const {node} = at(e);

        if (node !== hovered) {
          hovered = node;
          drawOver();
        }
        on.hover(node, e);
      };
      dom.canvas.onpointerleave = leave;
      dom.canvas.onpointerdown = (e) => {
        if (e.button !== 0)
          return;
        isMoved &&= held.size > 0;
        down = {x: e.clientX, y: e.clientY, top: dom.scroller.scrollTop};
        held.set(e.pointerId, e.clientX);
        dom.canvas.setPointerCapture(e.pointerId);
      };
      dom.canvas.onpointerup = dom.canvas.onpointercancel = (e) => {
        held.delete(e.pointerId);
      };
      dom.canvas.onclick = (e) => {
        if (isMoved)
          return;
        const {node, corner} = at(e);

        if (node >= 0)
          on.select(node, corner, e);
      };
      dom.canvas.onwheel = (e) => {
        if (!scene || !(e.ctrlKey || e.metaKey || e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)))
          return;
        e.preventDefault();
        const x = (e.clientX - ns.rectOf(dom.scroller).left) / width;
        const size = view.to - view.from, pivot = view.from + x * size;

        if (e.ctrlKey || e.metaKey) {
          const factor = Math.exp(Math.max(-1, Math.min(1, e.deltaY / 200)));

          zoom(pivot - x * size * factor, pivot + (1 - x) * size * factor, false);
        } else {
          const by = (e.deltaX || e.deltaY) / width * size;

          zoom(view.from + by, view.to + by, false);
        }
      };
    }

    listen();
    return {
      // keep: the view stays where it is, as far as there is something to see.
      show(next, keep) {
        scene = next;
        hovered = -1;
        if (!style)
          fitCanvas();
        dom.spacer.style.height = scene.boxes.rows * style.row + "px";
        if (!keep) {
          zoom(0, scene.boxes.x1[0] || 1, false);
          dom.scroller.scrollTop = scene.isUpward ? dom.scroller.scrollHeight : 0;
        }
        request();
      },
      // Nothing is drawn anew where nothing changed: a million boxes take a while.
      resize() {
        if (isFitted())
          return;
        fitCanvas();
        if (scene)
          dom.spacer.style.height = scene.boxes.rows * style.row + "px";
        draw();
      },
      // The theme changed.
      restyle() {
        restyle();
        request();
      },
      select(node) {
        selected = node;
        if (!scene)
          return;
        drawOver();
        mirror(dom.canvas, scene, node < 0 ? 0 : node);
      },
      // What of the scene is on screen, or will be: see lines() and paint().
      view: (skip, count) => ({...animation ? animation.b : view, ...lines(skip, count)}),
      zoom, zoomTo, reveal, place, hit, request,
    };
  }

  const MIRROR_MAX = 40; // boxes of a kind that a screen reader is offered at once

  // What a screen reader walks: the path to a node, its siblings and its callees, as tree items
  // inside the canvas.
  function mirror(canvas, scene, node) {
    const {tree, boxes} = scene, path = [];
    const nodes = (of) => {
      const [first, end] = ns.childBoxes(boxes, tree, of);

      return Array.from(boxes.node.subarray(first, end));
    };
    const item = (of) => {
      const children = ns.childBoxes(boxes, tree, of);
      const [first, end] = of ? ns.childBoxes(boxes, tree, tree.parent[of]) : [0, 1];

      return ns.element("span", {id: `${canvas.id}-${of}`, role: "treeitem",
        textContent: scene.describe(of), "aria-level": tree.depth[of] + 1,
        "aria-posinset": Math.max(0, ns.boxOf(boxes, tree, of) - first) + 1,
        "aria-setsize": end - first, "aria-selected": of === node,
        ...children[0] < children[1] ? {"aria-expanded": path.includes(of)} : {}});
    };

    for (let i = node; i >= 0; i = tree.parent[i])
      path.push(i);
    const above = path.slice(1, MIRROR_MAX).reverse(), callees = nodes(node);
    const peers = node > 0 ? nodes(tree.parent[node]) : [0];
    const from = Math.max(0, peers.indexOf(node) - MIRROR_MAX / 2);
    const items = above.map(item);

    for (const n of peers.slice(from, from + MIRROR_MAX)) {
      items.push(item(n));
      if (n === node)
        items.push(...callees.slice(0, MIRROR_MAX).map(item));
    }
    canvas.replaceChildren(...items);
    canvas.setAttribute("aria-activedescendant", `${canvas.id}-${node}`);
  }

  const MINIMAP_ROW = 4; // pixels a row takes at most

  // The whole graph as image data: tens of thousands of specks, for which fillRect() is too slow.
  function speckle(ctx, scene, background, width, height) {
    const image = ctx.createImageData(width, height), pixels = new Uint32Array(image.data.buffer);
    const {boxes, palette, colour} = scene, rows = Math.max(1, boxes.rows);
    const step = Math.min(MINIMAP_ROW * (devicePixelRatio || 1), height / rows);
    const view = {from: 0, to: boxes.x1[0] || 1, size: width, top: 0, bottom: rows, isLast: true};
    const seen = ns.onScreen(boxes, view, colour, palette.strength);
    const fills = palette.fills.concat(ns.faded(palette.fills, background)).map(pixelOf);

    pixels.fill(pixelOf(background));
    for (const {k, entries} of byFill(seen, scene, splitWaits(seen, scene, view)))
      for (const i of entries) {
        const top = Math.floor(lineOf(scene, seen.row[i]) * step);
        const bottom = Math.max(top + 1, Math.floor((lineOf(scene, seen.row[i]) + 1) * step));
        const from = Math.floor(seen.x[i]);
        const to = Math.min(width, Math.max(from + 1, Math.round(seen.x[i] + seen.width[i])));

        for (let y = top; y < bottom && y < height; y++)
          pixels.fill(fills[k], y * width + from, y * width + to);
      }
    return image;
  }

  // The whole graph in one strip; the part on screen is framed. on: {zoom(from, to)}; look(): as
  // for paint().
  function minimap(canvas, on, look) {
    const ctx = canvas.getContext("2d");
    let scene = null, view = {from: 0, to: 1}, image = null;

    const sizeInPixels = () => ["clientWidth", "clientHeight"]
      .map((key) => Math.max(1, Math.round(canvas[key] * (devicePixelRatio || 1))));

    function paintImage() {
      [canvas.width, canvas.height] = sizeInPixels();
      image = scene && speckle(ctx, scene, look().background, canvas.width, canvas.height);
    }

    function draw() {
      const ratio = devicePixelRatio || 1, {width, height} = canvas, style = look();

      if (!image)
        return;
      ctx.putImageData(image, 0, 0);
      const end = scene.boxes.x1[0] || 1, x0 = view.from / end * width, x1 = view.to / end * width;

      if (x1 - x0 > width - 1)
        return;
      ctx.globalAlpha = 0.6;
      ctx.fillStyle = style.background;
      ctx.fillRect(0, 0, x0, height);
      ctx.fillRect(x1, 0, width - x1, height);
      ctx.globalAlpha = 1;
      ctx.strokeStyle = style.accent;
      ctx.lineWidth = 2 * ratio;
      ctx.strokeRect(x0 + ratio, ratio, Math.max(2, x1 - x0 - 2 * ratio), height - 2 * ratio);
    }

    function listen() {
      let down = null;
      const x = (e) => Math.min(1, Math.max(0,
        (e.clientX - ns.rectOf(canvas).left) / canvas.clientWidth));
      const isDrag = (e) => Math.abs(x(e) - down) * canvas.clientWidth >= 4;

      canvas.onpointerdown = (e) => {
        down = x(e);
        canvas.setPointerCapture(e.pointerId);
      };
      canvas.onpointermove = (e) => {
        const end = scene?.boxes.x1[0] || 1;

        if (down !== null && isDrag(e))
          on.zoom(Math.min(down, x(e)) * end, Math.max(down, x(e)) * end);
      };
      canvas.onpointerup = (e) => {
        const end = scene?.boxes.x1[0] || 1, half = (view.to - view.from) / 2;

        if (down !== null && !isDrag(e))
          on.zoom(x(e) * end - half, x(e) * end + half);
        down = null;
      };
    }

    listen();
    return {
      show(next) {
        scene = next;
        paintImage();
        draw();
      },
      view(next) {
        if (next.from === view.from && next.to === view.to)
          return;
        view = next;
        draw();
      },
      resize() {
        const [width, height] = sizeInPixels();

        if (width !== canvas.width || height !== canvas.height)
          this.restyle();
      },
      // The theme changed.
      restyle() {
        paintImage();
        draw();
      },
    };
  }

  const TITLE = 34; // pixels above an exported graph

  // The rows of a view as a canvas of its own, for PNG export and print; title: text above, or "".
  function picture(scene, view, look, scale, title) {
    const canvas = ns.element("canvas"), ctx = canvas.getContext("2d");
    const head = title ? TITLE : 0, height = head + (view.bottom - view.top) * look.row;

    canvas.width = Math.round(view.size * scale);
    canvas.height = Math.round(height * scale);
    ctx.scale(scale, scale);
    ctx.fillStyle = look.background;
    ctx.fillRect(0, 0, view.size, height);
    ctx.fillStyle = look.ink;
    ctx.font = look.font;
    ctx.fillText(title, 8, 21);
    ctx.translate(0, head);
    paint(ctx, scene, view, {...look, ratio: scale, advance: ruler(ctx, look.font)});
    return canvas;
  }

  Object.assign(ns, {hatching, flameGraph, minimap, picture, paint, lineOf, TITLE});
})(globalThis.pyebpf ??= {});
