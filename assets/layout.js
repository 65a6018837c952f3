// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Pure geometry: no DOM, no canvas. A box is [x0, x1) in weight units, in the row of its depth.
//
// A tree is {count, parent, depth}: parallel arrays in preorder, node 0 the root (parent -1,
// depth 0). Boxes are kept row by row and sorted by x, so that a screen is found by binary search
// and read in memory order: a million boxes are scanned in a few milliseconds.
(function (ns) {
  "use strict";

  // Inclusive weights from own ones (index = node, any sign). Children follow their parent in
  // preorder, so one backward pass adds every subtree up.
  function inclusive({count, parent}, own) {
    const total = Float64Array.from(own);

    for (let i = count - 1; i > 0; i--)
      total[parent[i]] += total[i];
    return total;
  }

  // width: inclusive weight of each node, never smaller than the sum of its children's.
  // Returns {rows, start, node, x0, x1, slot}: row d holds the boxes start[d] .. start[d + 1];
  // node, x0, x1 are indexed by box; slot is the box of a node, -1 where it has no width.
  // Siblings keep their order; a node's own share lies to the right of its children.
  function layout({count, parent, depth}, width) {
    const left = new Float64Array(count), cursor = new Float64Array(count);
    let rows = 0;

    for (let i = 0; i < count; i++)
      if (width[i] > 0 && depth[i] >= rows)
        rows = depth[i] + 1;
    const start = new Uint32Array(rows + 1);

    for (let i = 0; i < count; i++)
      if (width[i] > 0)
        start[depth[i] + 1]++;
    for (let d = 0; d < rows; d++)
      start[d + 1] += start[d];

    const boxes = start[rows], next = start.slice();
    const node = new Uint32Array(boxes), x0 = new Float64Array(boxes);
    const x1 = new Float64Array(boxes), slot = new Int32Array(count).fill(-1);

    for (let i = 0; i < count; i++) {
      if (!(width[i] > 0))
        continue;
      if (i > 0) {
        left[i] = left[parent[i]] + cursor[parent[i]];
        cursor[parent[i]] += width[i];
      }
      const box = next[depth[i]]++;

      node[box] = i;
      x0[box] = left[i];
      x1[box] = left[i] + width[i];
      slot[i] = box;
    }
    return {rows, start, node, x0, x1, slot};
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
  // pixel wide: a significant change is never too thin to see.
  function onScreen(boxes, {from, to, size, top, bottom}, colour, strength) {
    const out = screenBuffer();

    for (let row = top; row < Math.min(bottom, boxes.rows); row++)
      scanRow(boxes, row, {from, to, size}, colour, strength, out);
    return out;
  }

  function screenBuffer() {
    const room = 4096;

    return {n: 0, box: new Uint32Array(room), x: new Float32Array(room),
      width: new Float32Array(room), row: new Uint16Array(room), run: new Uint32Array(room)};
  }

  function grow(out) {
    for (const key of ["box", "x", "width", "row", "run"]) {
      const larger = new out[key].constructor(2 * out[key].length);

      larger.set(out[key]);
      out[key] = larger;
    }
  }

  function put(out, box, left, right, row, run) {
    if (out.n === out.box.length)
      grow(out);
    out.box[out.n] = box;
    out.x[out.n] = left;
    out.width[out.n] = right - left;
    out.row[out.n] = row;
    out.run[out.n++] = run;
  }

  function scanRow(boxes, row, {from, to, size}, colour, strength, out) {
    const {start, node, x0, x1} = boxes;
    const scale = size / (to - from), end = start[row + 1];
    let left = 0, right = 0, best = 0, bestStrength = 0, bestWidth = 0, run = 0;
    const flush = () => {
      if (run)
        put(out, best, left, bestStrength && right < left + 1 ? left + 1 : right, row, run);
      run = 0;
    };

    for (let i = firstBox(boxes, row, from); i < end && x0[i] < to; i++) {
      const a = (x0[i] - from) * scale, b = (x1[i] - from) * scale;

      if (b - a >= 1) {
        flush();
        put(out, i, a < 0 ? 0 : a, b > size ? size : b, row, 1);
        continue;
      }
      if (run && b - left > 1)
        flush();
      const s = strength[colour[node[i]]];

      if (!run) {
        left = a;
        bestStrength = -1;
      }
      if (s > bestStrength || s === bestStrength && b - a > bestWidth) {
        best = i;
        bestStrength = s;
        bestWidth = b - a;
      }
      right = b;
      run++;
    }
    flush();
  }

  // The box beside one, for the keyboard: "up" the caller, "down" the widest callee, "left" and
  // "right" the neighbours in the row. Returns the node, or node itself where there is none.
  function neighbour({parent}, boxes, from, direction) {
    const box = boxes.slot[from];

    if (box < 0)
      return from;
    if (direction === "up")
      return parent[from] >= 0 ? parent[from] : from;
    if (direction === "down")
      return widestChild(boxes, parent, from);
    const to = box + (direction === "left" ? -1 : 1);
    const row = rowOf(boxes, box);

    return to >= boxes.start[row] && to < boxes.start[row + 1] ? boxes.node[to] : from;
  }

  function rowOf({start, rows}, box) {
    let low = 0, high = rows;

    while (low < high - 1) {
      const middle = low + high >>> 1;

      if (start[middle] <= box)
        low = middle;
      else
        high = middle;
    }
    return low;
  }

  // Boxes of the children of a node: [first, end) in the next row.
  function childBoxes(boxes, parent, of) {
    const box = boxes.slot[of], row = box < 0 ? boxes.rows : rowOf(boxes, box) + 1;

    if (row >= boxes.rows)
      return [0, 0];
    let first = firstBox(boxes, row, boxes.x0[box]), end = boxes.start[row + 1];
    let last = first;

    while (last < end && parent[boxes.node[last]] === of)
      last++;
    return [first, last];
  }

  function widestChild(boxes, parent, of) {
    const [first, end] = childBoxes(boxes, parent, of);
    let best = of, width = 0;

    for (let i = first; i < end; i++)
      if (boxes.x1[i] - boxes.x0[i] > width) {
        width = boxes.x1[i] - boxes.x0[i];
        best = boxes.node[i];
      }
    return best;
  }

  Object.assign(ns, {inclusive, layout, firstBox, boxAt, onScreen, neighbour, childBoxes, rowOf});
})(globalThis.pyebpf ??= {});
