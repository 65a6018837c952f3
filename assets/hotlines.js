// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What pages of source lines do in a browser: heat by the lines' own or by their total, hot lines alone,
// a map of them at the right edge, keys. Both choices hold for all pages of the folder.
(function () {
  "use strict";

  // As many marks as there are pixels; paler than this none is seen.
  const MAP_LINES = 2000, MAP_LEVEL = 4;
  const body = document.body;
  const rows = [...document.querySelectorAll(".code tbody tr")];
  const buttons = [...document.querySelectorAll(".tools button")];
  const map = document.createElement("nav");

  // A browser may refuse to keep anything for a page from disk.
  function kept(key, value) {
    try {
      if (value !== undefined)
        sessionStorage.setItem(`pyebpf-${key}`, value);
      return sessionStorage.getItem(`pyebpf-${key}`);
    } catch {
      return null;
    }
  }

  const measure = () => body.classList.contains("total") ? "t" : "s";
  const heat = (row) => +(row.dataset[measure()] || 0);
  const hottest = () => rows.filter(heat);

  function drawMap() {
    map.replaceChildren(...hottest().sort((a, b) => heat(b) - heat(a)).slice(0, MAP_LINES)
      .map((row) => {
        const mark = document.createElement("a");

        mark.href = `#${row.id}`;
        mark.title = `line ${row.id.slice(5)}`;
        mark.tabIndex = -1;
        mark.style.top = `${100 * rows.indexOf(row) / rows.length}%`;
        mark.style.background = `var(--h${Math.max(heat(row), MAP_LEVEL)})`;
        return mark;
      }));
    map.hidden = !map.children.length;
  }

  function sortModules() {
    for (const list of document.querySelectorAll(".modules tbody")) {
      const column = measure() === "s" ? "self" : "sum";

      list.append(...[...list.querySelectorAll("tr")].sort((a, b) => b.dataset[column] - a.dataset[column]));
    }
  }

  function show(total, hot) {
    body.classList.toggle("self", !total);
    body.classList.toggle("total", total);
    body.classList.toggle("hot", hot);
    for (const button of buttons)
      button.setAttribute("aria-pressed", body.classList.contains(button.value));
    kept("total", +total);
    kept("hot", +hot);
    drawMap();
    sortModules();
  }

  const acts = {
    self: () => show(false, body.classList.contains("hot")),
    total: () => show(true, body.classList.contains("hot")),
    hot: () => show(measure() === "t", !body.classList.contains("hot")),
  };

  // The next or the one before, of lines that are hot, as seen from the middle of the window.
  function step(by) {
    const middle = innerHeight / 2, lines = hottest();
    const at = lines.findIndex((row) => `#${row.id}` === location.hash);
    const beyond = lines.findIndex((row) => row.getBoundingClientRect().top > middle);
    const here = by > 0 ? Math.max(beyond, 0) : (beyond < 0 ? lines.length : beyond) - 1;
    const next = at < 0 ? here : at + by;

    if (lines[next])
      location.hash = lines[next].id;
  }

  const keys = {n: () => step(1), p: () => step(-1), h: acts.hot, s: acts.self, t: acts.total,
    i: () => {
      location.href = "index.html";
    },
    Escape: () => close()};

  function close(but) {
    for (const list of document.querySelectorAll("details[open]"))
      if (list !== but)
        list.open = false;
  }

  document.addEventListener("click", (event) => close(event.target.closest("details")));
  document.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey && Object.hasOwn(keys, event.key))
      keys[event.key]();
  });
  for (const button of buttons)
    button.addEventListener("click", acts[button.value]);
  for (const tools of document.querySelectorAll(".tools"))
    tools.hidden = false;
  map.className = "map";
  map.setAttribute("aria-label", "hot lines");
  if (rows.length)
    body.prepend(map);
  show(kept("total") === "1", kept("hot") === "1");
})();
