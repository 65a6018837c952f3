// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What a flame graph in SVG does in a browser: a click makes a box as wide as the picture, a search
// marks boxes and says how much of the picture they are. Both are kept in the address, behind its #.
(function () {
  "use strict";

  // CLOSE: less than the narrowest box, more than figures are rounded by.
  const CHARACTER = 7.25, NARROWEST = 0.1, CLOSE = 0.05, WIDE = 0x1100;
  const svg = document.documentElement;
  const graph = document.getElementById("graph");
  const whole = graph.getBBox().width;
  const boxes = [...graph.children].map((group) => {
    const rects = [...group.querySelectorAll("rect")]; // a second one is its hatching
    const place = (name) => +rects[0].getAttribute(name);

    return {group, rects, text: group.querySelector("text"),
      title: group.firstElementChild.textContent, x: place("x"), y: place("y"), width: place("width")};
  });
  let zoomed = 0, pattern = null;

  const byId = (id) => document.getElementById(id);
  const columns = (s) => [...s].reduce((n, c) => n + 1 + (c.codePointAt(0) >= WIDE), 0);

  // What of a name stands in so many columns, as the picture itself has it.
  function shortened(name, room) {
    if (columns(name) <= room)
      return name;
    if (room < 3)
      return "";
    let left = room - 2, out = "";

    for (const c of name) {
      left -= columns(c);
      if (left < 0)
        break;
      out += c;
    }
    return out + "..";
  }

  function place(box, x, width, isCaller) {
    const isShown = width >= NARROWEST;

    box.group.style.display = isShown ? "" : "none";
    if (!isShown)
      return;
    for (const rect of box.rects) {
      rect.setAttribute("x", x);
      rect.setAttribute("width", width);
    }
    box.group.style.opacity = isCaller ? 0.5 : "";
    const name = shortened(box.title.split("\n")[0], Math.floor((width - 5) / CHARACTER));

    if (!box.text && name) {
      box.text = document.createElementNS("http://www.w3.org/2000/svg", "text");
      box.text.setAttribute("y", box.y + 12);
      box.group.append(box.text);
    }
    if (box.text) {
      box.text.setAttribute("x", x + 3);
      box.text.textContent = name;
    }
  }

  function zoom(i) {
    const to = boxes[i], end = to.x + to.width, scale = whole / to.width;

    zoomed = i;
    for (const box of boxes) {
      const isCaller = box.y < to.y && box.x <= to.x + CLOSE && box.x + box.width >= end - CLOSE;
      const isWithin = box.y >= to.y && box.x >= to.x - CLOSE && box.x + box.width <= end + CLOSE;

      if (isCaller)
        place(box, 0, whole, true);
      else
        place(box, (box.x - to.x) * scale, isWithin ? box.width * scale : 0, false);
    }
    byId("reset").style.display = i ? "" : "none";
    keep();
  }

  // The boxes stand in preorder: what is inside of a box that is marked counts with it.
  function search(text) {
    let end = -1, sum = 0;

    try {
      pattern = text ? new RegExp(text, "i") : null;
    } catch (e) {
      byId("found").textContent = "not a regular expression: " + text;
      return;
    }
    for (const box of boxes) {
      const isFound = pattern && pattern.test(box.title.split("\n").slice(0, 2).join(" "));

      box.group.classList.toggle("found", Boolean(isFound));
      if (isFound && box.x >= end - CLOSE) {
        sum += box.width;
        end = box.x + box.width;
      }
    }
    byId("found").textContent = pattern ? (100 * sum / whole).toFixed(1) + "% matches " + text : "";
    keep();
  }

  function ask() {
    const text = prompt("Search functions and files (regular expression):",
      pattern ? pattern.source : "");

    if (text !== null)
      search(text);
  }

  function keep() {
    const words = new URLSearchParams();

    if (zoomed)
      words.set("zoom", zoomed);
    if (pattern)
      words.set("search", pattern.source);
    const hash = "#" + words;

    if (location.hash !== hash && (location.hash || hash !== "#"))
      history.replaceState(null, "", hash);
  }

  function restore() {
    const words = new URLSearchParams(location.hash.slice(1));
    const to = Number(words.get("zoom")), text = words.get("search") || "";

    zoom(boxes[to] ? to : 0);
    search(text);
  }

  graph.addEventListener("click", (e) => {
    const i = boxes.findIndex((box) => box.group === e.target.closest("g"));

    if (i >= 0)
      zoom(i);
  });
  graph.addEventListener("mouseover", (e) => {
    const box = e.target.closest("g")?.querySelector("title");

    byId("details").textContent = box ? box.textContent.replace(/\n/g, "  ") : "";
  });
  byId("reset").addEventListener("click", () => zoom(0));
  byId("search").addEventListener("click", ask);
  addEventListener("keydown", (e) => {
    if (e.key === "Escape") {
      search("");
      zoom(0);
    } else if (e.key === "/" || e.key === "F3" || ((e.ctrlKey || e.metaKey) && e.key === "f")) {
      e.preventDefault();
      ask();
    }
  });
  addEventListener("hashchange", restore);
  svg.classList.add("alive");
  restore();
})();
