// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Pure geometry: no DOM, no canvas. A box is [x0, x1) in weight units, in the row of its depth.
//
// A tree is {count, parent, depth, end}: parallel arrays in preorder, node 0 the root (parent -1,
// depth 0), the subtree of i up to end[i]. Boxes are kept row by row and sorted by x, so that a
// screen is found by binary search and read in memory order; of very many boxes what is far below
// a pixel is joined beforehand.
(function (ns) {
  "use strict";

  // width: inclusive weight of each node, never smaller than the sum of its children's.
  // Returns {rows, start, node, x0, x1}: row d holds the boxes start[d] .. start[d + 1]; node, x0,
  // x1 are indexed by box, nodes rise in a row. Nodes without width have no box. Siblings keep
  // their order; a node's own share lies to the right of its children.
  function layout({count, depth}, width) {
    const sizes = []; // of rows; callers have width where callees have, so they come one by one

    for (let i = 0; i < count; i++)
      if (width[i] > 0 && depth[i] === sizes.length)
        sizes.push(1);
      else if (width[i] > 0)
        sizes[depth[i]]++;
    const rows = sizes.length, start = new Uint32Array(rows + 1);

    sizes.forEach((size, row) => {
      start[row + 1] = start[row] + size;
    });
    const boxes = start[rows], next = start.slice(), node = new Uint32Array(boxes);
    const x0 = new Float64Array(boxes), x1 = new Float64Array(boxes);
    const left = new Float64Array(rows + 1); // where the next box of each row begins

    for (let i = 0; i < count; i++) {
      if (!(width[i] > 0))
        continue;
      const row = depth[i], box = next[row]++;

      node[box] = i;
      x0[box] = left[row + 1] = left[row];
      x1[box] = left[row] += width[i];
    }
    return {rows, start, node, x0, x1};
  }

  // First box of a row whose node is not before this one; the row's end if none is.
  function boxFrom({start, node}, row, of) {
    let low = start[row], high = start[row + 1];

    while (low < high) {
      const middle = low + high >>> 1;

      if (node[middle] < of)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  // The box of a node, -1: it has none.
  function boxOf(boxes, {depth}, of) {
    const row = depth[of];

    if (!(row < boxes.rows)) // also of what is no node
      return -1;
    const box = boxFrom(boxes, row, of);

    return box < boxes.start[row + 1] && boxes.node[box] === of ? box : -1;
  }

  // First box of a row that ends after x; the row's end if none does.
  function firstBox({start, x1}, row, x) {
    let low = start[row], high = start[row + 1];

    while (low < high) {
      const middle = low + high >>> 1;

      if (x1[middle] > x)
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }

  // The box at x in a row, or -1.
  function boxAt(boxes, row, x) {
    if (row < 0 || row >= boxes.rows)
      return -1;
    const box = firstBox(boxes, row, x);

    return box < boxes.start[row + 1] && boxes.x0[box] <= x ? box : -1;
  }

  // What a screen of size pixels shows of [from, to) in rows [top, bottom): {n, box, x, width,
  // row, run}, parallel arrays of n entries, boxes in rows from left to right, x in pixels. A box
  // of a pixel or more stands for itself (run 1). Narrower neighbours are joined into runs of
  // about a pixel (run = how many), each standing for its strongest box, the widest of equally
  // strong ones: strength[colour[node]], see palette.js. A run with any strength is at least a
  // pixel wide: a significant change is never too thin to see. isLast: nobody will look again.
  // What is returned holds until these boxes are looked at again.
  function onScreen(boxes, {from, to, size, top, bottom, isLast = false}, colour, strength) {
    const out = boxes.screen ??= screenBuffer(), pixel = (to - from) / size;
    const items = boxes.node.length > MANY && pixel >= boxes.x1[0] / CELLS
      ? overview(boxes, colour, strength, isLast) : boxes;

    out.n = 0;
    for (let row = top; row < Math.min(bottom, boxes.rows); row++)
      scanRow(boxes, items, row, {from, to, pixel, scale: 1 / pixel, least: pixel}, colour,
        strength, out);
    return out;
  }

  const MANY = 50000; // boxes that are not looked at one by one while all of them are on screen
  const CELLS = 4096; // pixels of an overview

  // The boxes as a screen so wide would show them, x0 and x1 in weight units: what narrower ones
  // show is read off it. Kept with the boxes until colours with a strength change, and made for the
  // second look only, when it begins to pay: until then, the boxes themselves.
  function overview(boxes, colour, strength, isLast) {
    const key = strength && colour, isSecond = boxes.looked === key;
    if (boxes.overview?.key === key)
      return boxes.overview;
    if (!isLast)
      boxes.looked = key;
    if (isLast || !isSecond)
      return boxes;
    const out = screenBuffer(), start = new Uint32Array(boxes.rows + 1);

    for (let row = 0; row < boxes.rows; row++) {
      scanRow(boxes, boxes, row, {from: 0, to: Infinity, pixel: boxes.x1[0] / CELLS, scale: 1,
        least: 0}, colour, strength, out);
      start[row + 1] = out.n;
    }
    return boxes.overview = {key, start, box: out.box, run: out.run, x0: out.x,
      x1: out.x.map((x, i) => x + out.width[i])};
  }

  function screenBuffer() {
    const room = 1 << 14;

    return {n: 0, box: new Uint32Array(room), x: new Float64Array(room),
      width: new Float64Array(room), row: new Uint32Array(room), run: new Uint32Array(room)};
  }

  function grow(out) {
    for (const key of ["box", "x", "width", "row", "run"]) {
      const larger = new out[key].constructor(2 * out[key].length);

      larger.set(out[key]);
      out[key] = larger;
    }
  }

  function put(out, box, x, width, row, run) {
    if (out.n === out.box.length)
      grow(out);
    out.box[out.n] = box;
    out.x[out.n] = x;
    out.width[out.n] = width;
    out.row[out.n] = row;
    out.run[out.n++] = run;
  }

  // items: the boxes themselves, or their overview. pixel, least: in weight units, the least width
  // of what stands for itself, and of a run with strength.
  function scanRow(boxes, items, row, {from, to, pixel, scale, least}, colour, strength, out) {
    const {node} = boxes, {x0, x1, box, run: counts} = items, end = items.start[row + 1];
    let left = 0, right = 0, best = 0, bestStrength = 0, bestWidth = 0, run = 0;
    const show = (which, a, b, count) => put(out, which, (a - from) * scale, (b - a) * scale, row,
      count);
    const runEnd = (a, b, strong) => strong ? Math.max(b, a + least) : b;

    for (let i = firstBox(items, row, from); i < end && x0[i] < to; i++) {
      const a = x0[i], b = x1[i], isWide = b - a >= pixel;
      const own = box ? box[i] : i, count = counts ? counts[i] : 1;

      if (run && (isWide || b - left > pixel)) {
        show(best, left, runEnd(left, right, bestStrength), run);
        run = 0;
      }
      if (isWide) {
        show(own, Math.max(a, from), Math.min(b, to), count);
        continue;
      }
      const s = strength ? strength[colour[node[own]]] : 0;
      const width = box ? boxes.x1[own] - boxes.x0[own] : b - a;

      if (!run || s > bestStrength || s === bestStrength && width > bestWidth) {
        best = own;
        bestStrength = s;
        bestWidth = width;
      }
      if (!run)
        left = a;
      right = b;
      run += count;
    }
    if (run)
      show(best, left, runEnd(left, right, bestStrength), run);
  }

  // The box beside one, for the keyboard: "up" the caller, "down" the widest callee, "left" and
  // "right" the neighbours in the row. Returns the node, or node itself where there is none.
  function neighbour(tree, boxes, from, direction) {
    const box = boxOf(boxes, tree, from), row = tree.depth[from];

    if (box < 0)
      return from;
    if (direction === "up")
      return tree.parent[from] >= 0 ? tree.parent[from] : from;
    if (direction === "down")
      return widestChild(boxes, tree, from);
    const to = box + (direction === "left" ? -1 : 1);

    return to >= boxes.start[row] && to < boxes.start[row + 1] ? boxes.node[to] : from;
  }

  // Boxes of the children of a node: [first, end) in the next row.
  function childBoxes(boxes, {depth, end}, of) {
    const row = depth[of] + 1;

    return row < boxes.rows ? [boxFrom(boxes, row, of), boxFrom(boxes, row, end[of])] : [0, 0];
  }

  function widestChild(boxes, tree, of) {
    const [first, end] = childBoxes(boxes, tree, of);
    let best = of, width = 0;

    for (let i = first; i < end; i++)
      if (boxes.x1[i] - boxes.x0[i] > width) {
        width = boxes.x1[i] - boxes.x0[i];
        best = boxes.node[i];
      }
    return best;
  }

  Object.assign(ns, {layout, put, firstBox, boxAt, boxOf, onScreen, neighbour, childBoxes});
})(globalThis.pyebpf ??= {});
