// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Samples over time: a row for each process, thread or run, a column for each time block. Dragging
// chooses the range that counts, Ctrl-dragging the range it is compared with.
(function (ns) {
  "use strict";

  // Sizes in parts of the page's font size.
  const LABEL = 7; // left of the columns
  const AXIS = 1.15; // below the rows
  const LONE_ROW = 2.2, ROWS = 6.9; // height of an only row; of several together: labels fit
  const ROWS_MAX = 8;
  const COLUMN_MIN = 4; // pixels

  // dom: {canvas}; on: {range(range), baseRange(range)}, range null or [first, end) in blocks;
  // look(): {ink, faint, background, cell, wait, hatch, accent, violet, font, rem}.
  function heatmap(dom, on, look) {
    const {canvas} = dom, ctx = canvas.getContext("2d");
    let series = [], blocks = 1, timeAt = String, range = null, baseRange = null, drag = null;

    const rowCount = () => Math.max(1, Math.min(ROWS_MAX, series.length));
    const axisHeight = () => AXIS * look().rem;
    const rowHeight = () => look().rem * (rowCount() === 1 ? LONE_ROW
      : Math.min(LONE_ROW / 2, ROWS / rowCount()));
    const labelWidth = () => rowCount() === 1 ? 0
      : Math.min(LABEL * look().rem, canvas.clientWidth / 5);

    function resize() {
      canvas.style.height = rowCount() * rowHeight() + axisHeight() + "px";
      draw();
    }

    function draw() {
      const style = look(), ratio = devicePixelRatio || 1;
      const width = canvas.clientWidth, height = rowCount() * rowHeight() + axisHeight();

      canvas.width = Math.max(1, Math.round(width * ratio));
      canvas.height = Math.max(1, Math.round(height * ratio));
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      ctx.fillStyle = style.background;
      ctx.fillRect(0, 0, width, height);
      if (!width || !series.length)
        return;
      const left = labelWidth(), column = (width - left) / blocks;
      const group = Math.max(1, Math.ceil(COLUMN_MIN / column));
      const shown = series.slice(0, ROWS_MAX).map((s) => columnsOf(s.ticks, group));
      const most = Math.max(...shown.map((sums) => Math.max(...sums)));
      const stripes = ns.hatching(ctx, style.hatch, ratio);

      shown.forEach((sums, row) => drawSeries(sums, columnsOf(series[row].waits, group), series[row].text, row,
        most, left, column * group, style, stripes));
      drawAxis(left, column, style);
      drawRange(range, left, column, style.accent, false);
      drawRange(baseRange, left, column, style.violet, true);
    }

    // Sums of as many blocks as make a column wide enough to see.
    function columnsOf(ticks, group) {
      const sums = new Float64Array(Math.ceil(blocks / group));

      for (let b = 0; b < blocks; b++)
        sums[Math.floor(b / group)] += ticks[b];
      return sums;
    }

    // Waiting stands on what was on a CPU.
    function drawSeries(sums, waits, text, row, most, left, column, style, stripes) {
      const h = rowHeight() - (rowCount() > 1), y = row * rowHeight(), gap = column > 4 ? 1 : 0;
      const isBars = rowCount() === 1 || series.some((s) => s.waits.some(Boolean));

      sums.forEach((sum, i) => {
        const share = most ? sum / most : 0, x = left + i * column, cpu = h * (sum - waits[i]) / most;
        const bar = (fill, from, to) => {
          ctx.fillStyle = fill;
          ctx.fillRect(x, y + h - to, column - gap, to - from);
        };

        ctx.fillStyle = style.cell;
        if (share && isBars) {
          ctx.globalAlpha = 0.85;
          bar(style.cell, 0, cpu);
          for (const fill of waits[i] ? [style.wait, stripes] : [])
            bar(fill, cpu, h * share);
        } else if (share) {
          ctx.globalAlpha = 0.08 + 0.92 * share;
          ctx.fillRect(x, y, column - gap, h);
        }
      });
      ctx.globalAlpha = 1;
      if (left) {
        ctx.font = style.font;
        ctx.fillStyle = style.faint;
        ctx.textBaseline = "middle";
        ctx.fillText(ns.fit(text, left - 8, (c) => ctx.measureText(c).width), 0, y + h / 2);
      }
    }

    function drawAxis(left, column, style) {
      const y = rowCount() * rowHeight() + axisHeight() / 2 + 1, width = column * blocks;
      const parts = width > 500 ? 4 : 2;

      ctx.font = style.font;
      ctx.fillStyle = style.faint;
      ctx.textBaseline = "middle";
      for (let i = 0; i <= parts; i++) {
        ctx.textAlign = i === 0 ? "left" : i === parts ? "right" : "center";
        ctx.fillText(timeAt(blocks * i / parts), left + width * i / parts, y);
      }
      ctx.textAlign = "left";
    }

    // What is outside a range is veiled; a baseline range is dashed.
    function drawRange(r, left, column, colour, isDashed) {
      if (!r)
        return;
      const h = rowCount() * rowHeight(), x = left + r[0] * column, w = (r[1] - r[0]) * column;

      ctx.globalAlpha = 0.14;
      ctx.fillStyle = colour;
      ctx.fillRect(x, 0, w, h);
      ctx.globalAlpha = 1;
      ctx.strokeStyle = colour;
      ctx.lineWidth = 2;
      ctx.setLineDash(isDashed ? [4, 3] : []);
      ctx.strokeRect(x + 1, 1, Math.max(2, w - 2), h - 2);
      ctx.setLineDash([]);
    }

    function blockAt(event) {
      const r = ns.rectOf(canvas), left = labelWidth();

      return Math.max(0, Math.min(blocks - 1,
        Math.floor((event.clientX - r.left - left) / (r.width - left) * blocks)));
    }

    function choose(isBase, a, b) {
      const next = [Math.min(a, b), Math.max(a, b) + 1];

      (isBase ? on.baseRange : on.range)(next[0] === 0 && next[1] === blocks ? null : next);
    }

    canvas.onpointerdown = (e) => {
      if (e.button !== 0)
        return;
      drag = {from: blockAt(e), isBase: e.ctrlKey || e.metaKey, isMoved: false, x: e.clientX};
      canvas.setPointerCapture(e.pointerId);
    };
    canvas.onpointermove = (e) => {
      if (!drag || !drag.isMoved && Math.abs(e.clientX - drag.x) < 4)
        return;
      drag.isMoved = true;
      choose(drag.isBase, drag.from, blockAt(e));
    };
    canvas.onpointerup = (e) => {
      if (drag && !drag.isMoved)
        (drag.isBase ? on.baseRange : on.range)(null);
      drag = null;
    };
    canvas.oncontextmenu = (e) => {
      if (e.ctrlKey)
        e.preventDefault(); // a Ctrl-drag on macOS
    };
    // Arrows move the range by a block, Shift-arrows its end; with Ctrl the baseline range.
    canvas.onkeydown = (e) => {
      const step = {ArrowLeft: -1, ArrowRight: 1}[e.key], isBase = e.ctrlKey || e.metaKey;

      if (!step)
        return;
      e.preventDefault();
      e.stopPropagation();
      const [a, b] = (isBase ? baseRange : range) || (step > 0 ? [-1, 0] : [blocks, blocks + 1]);
      const from = e.shiftKey ? Math.max(0, a) : a + step, end = b + step;

      if (from >= 0 && end <= blocks && end > from)
        choose(isBase, from, end - 1);
    };
    return {
      // list: [{text, ticks, waits}], heaviest first; text: what time it is after so many blocks.
      show(list, blockCount, text, chosen, chosenBase) {
        series = list;
        blocks = blockCount;
        timeAt = text;
        range = chosen;
        baseRange = chosenBase;
        resize();
      },
      resize,
    };
  }

  Object.assign(ns, {heatmap});
})(globalThis.pyebpf ??= {});
