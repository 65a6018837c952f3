// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A sortable table of many thousand rows, of which only those on screen are in the document.
(function (ns) {
  "use strict";

  const MARGIN = 8; // rows kept above and below the screen

  function cell(tag, className, text) {
    const e = ns.element(tag);

    e.className = className;
    if (text !== undefined)
      e.textContent = text;
    return e;
  }

  // dom: {scroller, table}. columns: [{key, title, hint, value(row), text(row), bar(row)}], the
  // first is the name: {..., sub(row)} gives its second line. value sorts, numbers largest first;
  // bar: 0 to 1, or null. on: {sort(key), pick(row), open(row)}. rowHeight() in pixels.
  function tableView(dom, on, rowHeight) {
    const head = dom.table.createTHead(), body = dom.table.createTBody();
    let columns = [], rows = [], picked = -1, first = -1, last = -1, accents = () => "";
    let stop = -1; // the row that the Tab key reaches

    function drawHead(sort) {
      const [, sign, key] = /^([-+]?)(.*)/.exec(sort);
      const line = ns.element("tr");

      for (const column of columns) {
        const th = cell("th", column === columns[0] ? "name" : "num");
        const button = cell("button", "sort", column.title);

        th.scope = "col";
        button.type = "button";
        button.title = column.hint;
        if (column.key === key) {
          th.setAttribute("aria-sort", {"-": "ascending", "+": "other"}[sign] || "descending");
          button.append(cell("span", "arrow", {"-": " ▲", "+": " ±"}[sign] || " ▼"));
        }
        button.onclick = () => on.sort(column.key === sort ? "-" + key : column.key);
        th.append(button);
        line.append(th);
      }
      ns.refill(head, line);
    }

    function drawRow(index) {
      const row = rows[index], tr = ns.element("tr");

      tr.setAttribute("aria-rowindex", index + 2);
      tr.className = accents(row);
      columns.forEach((column, i) => {
        const td = cell("td", i ? "num" : "name");

        if (i === 0) {
          const button = cell("button", "pick"), name = cell("bdi", "", column.text(row));

          button.type = "button";
          button.title = column.text(row) + "\n" + column.sub(row);
          button.dataset.row = row;
          button.append(name, cell("bdi", "sub", column.sub(row)));
          td.append(button);
        } else {
          const bar = column.bar ? column.bar(row) : null;

          if (bar !== null) {
            const fill = cell("span", "bar" + (bar < 0 ? " less" : ""));

            fill.style.width = Math.min(100, Math.abs(bar) * 100) + "%";
            td.append(fill);
          }
          td.append(cell("span", "value", column.text(row)));
        }
        tr.append(td);
      });
      return tr;
    }

    function spacer(count) {
      const tr = cell("tr", "spacer"), td = ns.element("td");

      tr.setAttribute("aria-hidden", "true");
      td.colSpan = columns.length;
      td.style.height = count * rowHeight() + "px";
      tr.append(td);
      return tr;
    }

    function draw(isForced) {
      const height = rowHeight(), top = Math.floor(dom.scroller.scrollTop / height);
      const from = Math.max(0, top - MARGIN);
      const to = Math.min(rows.length,
        top + Math.ceil((dom.scroller.clientHeight || 600) / height) + MARGIN);

      if (!isForced && from === first && to === last)
        return;
      first = from;
      last = to;
      const focused = body.contains(document.activeElement) ? document.activeElement.dataset.row : null;
      const lines = [];

      if (from > 0)
        lines.push(spacer(from));
      for (let i = from; i < to; i++)
        lines.push(drawRow(i));
      if (to < rows.length)
        lines.push(spacer(rows.length - to));
      body.replaceChildren(...lines);
      mark();
      if (focused)
        buttonOf(focused)?.focus({preventScroll: true});
    }

    const buttonOf = (row) => body.querySelector(`[data-row="${row}"]`);

    // Which of the rows in the document is the chosen one, and which the Tab key's only one.
    function mark() {
      const one = buttonOf(stop) || body.querySelector("button");

      for (const button of body.querySelectorAll("button")) {
        const isPicked = Number(button.dataset.row) === picked;

        button.tabIndex = button === one ? 0 : -1;
        button.setAttribute("aria-pressed", String(isPicked));
        button.closest("tr").classList.toggle("picked", isPicked);
      }
    }

    function reveal(index) {
      const height = rowHeight(), y = index * height, top = dom.scroller.scrollTop;

      if (y < top || y + 2 * height > top + dom.scroller.clientHeight)
        dom.scroller.scrollTop = Math.max(0, y - dom.scroller.clientHeight / 3);
      draw(false);
    }

    function sorted(list, sort) {
      const key = sort.replace(/^[-+]/, ""), sign = sort.startsWith("-") ? -1 : 1;
      const column = columns.find((c) => c.key === key) || columns[columns.length - 1];

      if (column === columns[0])
        return list.sort((a, b) => sign * (column.value(a) < column.value(b) ? -1 : 1));
      return list.sort((a, b) => sign * (column.value(b) - column.value(a)) || a - b);
    }

    const rowOf = (e) => e.target.closest("tr").querySelector("button")?.dataset.row;

    dom.scroller.onscroll = () => draw(false);
    for (const [type, act] of [["click", on.pick], ["dblclick", on.open]])
      body.addEventListener(type, (e) => rowOf(e) && act(Number(rowOf(e))));
    body.addEventListener("focusin", (e) => {
      stop = rowOf(e);
      mark();
    });
    body.onkeydown = (e) => {
      const at = rows.indexOf(Number(rowOf(e)));
      const to = {ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: rows.length - 1}[e.key];

      if (to === undefined)
        return;
      e.preventDefault();
      if (to in rows) {
        reveal(to);
        buttonOf(rows[to]).focus({preventScroll: true});
      }
    };
    return {
      // list: the rows, any numbers; sort: a column's key, "-" in front for smallest first, "+"
      // where value is a size and the next click is to sort by the column itself;
      // accent(row): a class name for a row.
      show(next, list, sort, accent) {
        columns = next;
        accents = accent;
        rows = sorted(list, sort);
        dom.table.setAttribute("aria-rowcount", rows.length + 1);
        dom.table.classList.toggle("wide", columns.length > 3);
        drawHead(sort);
        draw(true);
      },
      // Marks a row, -1 none, and shows it.
      pick(row) {
        const at = rows.indexOf(row);

        if (row === picked)
          return;
        picked = row;
        if (at >= 0) {
          stop = row;
          reveal(at);
        }
        mark();
      },
      resize: () => draw(true),
      get rows() { return rows; },
    };
  }

  Object.assign(ns, {tableView});
})(globalThis.pyebpf ??= {});
