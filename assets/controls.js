// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The page's small parts: elements, groups of buttons, menus, the legend and its marks.
(function (ns) {
  "use strict";

  const rectOf = (e) => e.getBoundingClientRect();

  // element("button.class", {title, ...properties}, ...children): text becomes text nodes.
  function element(kind, properties, ...children) {
    const [tag, className] = kind.split("."), e = document.createElement(tag);

    if (className)
      e.className = className;
    for (const [key, value] of Object.entries(properties || {})) {
      if (key.startsWith("aria-") || key.startsWith("data-") || key === "role")
        e.setAttribute(key, value);
      else
        e[key] = value;
    }
    e.append(...children);
    return e;
  }

  // Replaces what is in a box; the focus goes to the control in the place of the one that had it.
  function refill(box, ...children) {
    const controls = () => [...box.querySelectorAll("button, input, select, summary")];
    const at = controls().indexOf(document.activeElement);

    box.replaceChildren(...children);
    const now = controls();

    now[Math.min(at, now.length - 1)]?.focus({preventScroll: true});
  }

  const button = (text, title, click) =>
    element("button", {type: "button", title, onclick: click}, text);

  // One of several: choices [[value, text, title]...]; pick(value).
  function segments(box, choices, pick) {
    box.replaceChildren(...choices.map(([value, text, title]) =>
      element("button", {type: "button", title, "data-value": value, onclick: () => pick(value)},
        text)));
    return (chosen) => {
      for (const b of box.children)
        b.setAttribute("aria-pressed", String(b.dataset.value === chosen));
    };
  }

  function options(select, choices, chosen) {
    select.replaceChildren(...choices.map(([value, text]) => element("option", {value}, text)));
    select.value = chosen;
  }

  // A checkbox for each of choices [[key, text, note, checked]...]; change(keys checked).
  function checkboxes(sheet, choices, change) {
    const boxes = choices.map(([key, text, note, checked]) => {
      const input = element("input", {type: "checkbox", checked, value: key});

      return element("label", {}, input, element("bdi", {title: text}, text),
        element("span.faint", {}, note));
    });
    const listen = () => change(boxes.map((b) => b.firstChild).filter((i) => i.checked)
      .map((i) => i.value));

    for (const b of boxes)
      b.firstChild.onchange = listen;
    sheet.replaceChildren(...boxes);
  }

  // Menus close on Escape, on a click elsewhere and on one of their buttons.
  function menus(root) {
    root.addEventListener("click", (e) => {
      const isDone = e.target.closest(".sheet button");

      for (const menu of root.querySelectorAll("details.menu[open]"))
        if (isDone || !menu.contains(e.target))
          menu.open = false;
      isDone?.closest("details").firstChild.focus();
    });
    root.addEventListener("keydown", (e) => {
      const menu = e.key === "Escape" && e.target.closest?.("details.menu[open]");

      if (menu) {
        menu.open = false;
        menu.querySelector("summary").focus();
        e.preventDefault();
      }
    });
  }

  // A piece of colour with its hatching, as the graph draws it.
  function swatch(palette, colour, text) {
    const canvas = element("canvas", {width: 48, height: 26, "aria-hidden": "true"});
    const ctx = canvas.getContext("2d");

    ctx.fillStyle = palette.fills[colour];
    ctx.fillRect(0, 0, 48, 26);
    if (palette.hatch[colour]) {
      ctx.fillStyle = ns.hatching(ctx, ns.hatchOn(palette.texts[colour]), 2);
      ctx.scale(2, 2);
      ctx.fillRect(0, 0, 24, 13);
    }
    return element("span.swatch", {}, canvas, text);
  }

  const MARKS_TOP = 4; // times: the slider's right end

  // Where a ratio stands on the slider, 0 to 1, and back. The root of the logarithm gives small
  // changes, where marks stand close, more room.
  const toPosition = (ratio) => Math.sqrt(Math.log(ratio) / Math.log(MARKS_TOP));
  const toRatio = (position) => MARKS_TOP ** (position * position);

  const marksText = (ratio) => "×" + Number(ratio.toFixed(ratio < 2 ? 2 : 1));

  // The slider with a handle for each step of change. change(marks) while it moves. fills: the
  // colours of no change and of the steps.
  function marksSlider(marks, fills, change) {
    const track = element("div.track", {"aria-hidden": "true"});
    const box = element("div.marks", {role: "group",
      "aria-label": "Where the steps of a change begin"}, track);
    const now = marks.slice();
    const parts = marks.map((_, i) => ({
      handle: element("button", {type: "button", role: "slider", "aria-valuemin": 1,
        "aria-valuemax": MARKS_TOP, "aria-label": `Step ${i + 1} begins at`}),
      text: element("span", {"aria-hidden": "true"}),
    }));

    function place() {
      const at = (i) => 100 * Math.min(1, toPosition(now[i]));

      parts.forEach(({handle, text}, i) => {
        const css = `calc(0.6rem + (100% - 1.2rem) * ${at(i) / 100})`;

        handle.style.left = text.style.left = css;
        text.textContent = marksText(now[i]);
        handle.setAttribute("aria-valuenow", now[i].toFixed(2));
        handle.setAttribute("aria-valuetext", `${now[i].toFixed(2)} times`);
      });
      track.replaceChildren(...fills.map((fill, i) => {
        const e = element("i");

        e.style.background = fill;
        e.style.width = (i < now.length ? at(i) : 100) - (i ? at(i - 1) : 0) + "%";
        return e;
      }));
    }

    // Handles keep their order: one pushes at its neighbours' positions.
    function move(i, position) {
      const gap = 0.02;
      const low = i ? toPosition(now[i - 1]) + gap : gap;
      const high = i < now.length - 1 ? toPosition(now[i + 1]) - gap : 1;

      now[i] = Number(toRatio(Math.min(high, Math.max(low, position))).toFixed(3));
      place();
      change(now.slice());
    }

    parts.forEach(({handle, text}, i) => {
      handle.onpointerdown = (e) => handle.setPointerCapture(e.pointerId);
      handle.onpointermove = (e) => {
        const r = rectOf(track);

        if (handle.hasPointerCapture(e.pointerId))
          move(i, (e.clientX - r.left) / r.width);
      };
      handle.addEventListener("keydown", (e) => {
        const step = {ArrowLeft: -0.02, ArrowDown: -0.02, ArrowRight: 0.02, ArrowUp: 0.02}[e.key];

        if (!step)
          return;
        e.preventDefault();
        e.stopPropagation();
        move(i, toPosition(now[i]) + step);
      });
      box.append(handle, text);
    });
    place();
    return box;
  }

  Object.assign(ns, {element, rectOf, refill, button, segments, options, checkboxes, menus, swatch,
    marksSlider});
})(globalThis.pyebpf ??= {});
