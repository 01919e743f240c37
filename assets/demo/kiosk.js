/* The grid and the widgets of all kiosk pages.
 *
 * A page is a pure function from its state to a list of items, which `Kiosk.draw` displays. An item has a
 * kind, a position in cells (row, col, len) and its text. `Kiosk.box` returns its pixels, `Kiosk.handle` the
 * area to point at, and `Kiosk.probe` reads the displayed items from the document. The geometry of a page
 * that is not displayed follows from its items and their boxes.
 *
 * Variations of pages are drawn from named streams of one seed, so that an additional choice in one stream
 * does not change another, and a second implementation can repeat a single stream.
 */
"use strict";
const COLS = 32, ROWS = 16, CELL_W = 20, CELL_H = 30;

/* Returns a generator of numbers in [0,1): FNV-1a of the name mixed with the seed starts a mulberry32. */
function stream(seed, name) {
  let h = 0x811c9dc5;
  for (const c of name) h = Math.imul(h ^ c.charCodeAt(0), 0x01000193);
  let a = (h ^ Math.imul(seed + 1, 0x9e3779b1)) >>> 0;
  const next = () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const below = n => Math.floor(next() * n);
  return { next, below, from: (lo, hi) => lo + below(hi - lo + 1), pick: list => list[below(list.length)] };
}

const Kiosk = {
  /* Returns the pixels of an item: the area that a click hits and whose centre counts. */
  box(it) {
    const x = it.col * CELL_W, y = it.row * CELL_H, w = it.len * CELL_W;
    switch (it.kind) {
      case "field":  return it.snug ? [x - 10, y, w + 20, 30] : [x - 10, y - 5, w + 20, 40];
      case "offer":  return [x - 10, y - 5, w + 20, 40];
      case "button": return [x - 20, y - 5, w + 40, 40];
      case "tick":
      case "option": return [x, y, w + 3 * CELL_W, 30];      /* mark in two cells, one free, label */
      case "band":   return [x, y, w, 30 * (it.rows || 1)];
      default:       return [x, y, w, 30];
    }
  },

  /* Displays the items; `on` = {press(item), type(item, value), focus(item)} makes the page interactive. */
  draw(items, on) {
    const screen = document.getElementById("screen");
    screen.replaceChildren(...items.map(it => Kiosk.element(it, on)));
  },

  element(it, on) {
    const el = document.createElement(it.kind === "field" ? "input" : "div");
    const [x, y, w, h] = Kiosk.box(it);
    el.style.cssText = `left:${x}px;top:${y}px;width:${w}px;height:${h}px`;
    el.className = it.kind + (it.look ? " " + it.look : "");
    el.dataset.kind = it.kind;
    if (it.label !== undefined) el.dataset.label = it.label;
    if (it.key) el.dataset.key = it.key;
    if (it.said) el.dataset.handle = JSON.stringify(Kiosk.handle(it));
    if (it.on) el.classList.add("on");
    if (it.pressed) el.classList.add("pressed");
    if (it.kind === "field") Kiosk.field(el, it, on);
    else if (it.kind === "text") el.textContent = it.text;
    else Kiosk.parts(el, it, x, y);
    if (on && it.names) el.addEventListener("click", () => Kiosk.enter(it.names));
    if (on && !["field", "text", "band"].includes(it.kind)) el.addEventListener("click", () => on.press(it));
    return el;
  },

  /* A click on a field's label focuses the field. */
  enter(label) {
    const field = [...document.querySelectorAll("input")].find(el => el.dataset.label === label);
    field.focus();
    field.select();
  },

  /* Returns the area to point at: a field's label, or the element. */
  handle(it) {
    return it.said ? [it.said[1] * CELL_W, it.said[0] * CELL_H, it.said[2] * CELL_W, CELL_H] : Kiosk.box(it);
  },

  /* A text field. Focus is a class, not :focus, so that it can be drawn without the real focus. */
  field(el, it, on) {
    const mark = focused => el.classList.toggle("focus", focused);
    el.type = "text"; el.autocomplete = "off"; el.spellcheck = false; el.value = it.value || "";
    mark(!!it.focus);
    if (!on) return;
    el.addEventListener("focus", () => { mark(true); on.focus(it); });
    el.addEventListener("blur", () => mark(false));
    el.addEventListener("click", () => el.select());
    el.addEventListener("input", () => on.type(it, el.value));
  },

  /* The screen's grid positions text in a frame, not the frame. */
  parts(el, it, x, y) {
    if (it.kind === "tick" || it.kind === "option") el.append(document.createElement("i"));
    for (const [col, text] of it.parts || []) {
      const span = document.createElement("span");
      span.style.left = `${col * CELL_W - x}px`;
      span.style.top = `${it.row * CELL_H - y}px`;
      span.textContent = text;
      el.append(span);
    }
  },

  /* Returns the document's content: 16 rows of 32 characters, and all elements with an action. */
  probe() {
    const cells = Array.from({ length: ROWS }, () => Array(COLS).fill(" "));
    const write = (left, middle, text) => {
      const col = left / CELL_W, row = Math.floor(middle / CELL_H);
      if (Math.abs(col - Math.round(col)) > 0.01) throw Error(`off the grid: ${text} at ${left}`);
      [...text].forEach((c, k) => {
        const at = Math.round(col) + k;
        if (!cells[row] || at < 0 || at >= COLS || cells[row][at] !== " ")
          throw Error(`no room for ${text} in row ${row + 1}`);
        cells[row][at] = c;
      });
    };
    const elements = [];
    for (const el of document.getElementById("screen").children) {
      const r = el.getBoundingClientRect(), kind = el.dataset.kind;
      if (kind === "field") {
        const room = Math.floor((r.width - 20) / CELL_W);
        write(r.left + 10, r.top + r.height / 2, el.value.slice(0, room));
      } else {
        for (const part of kind === "text" ? [el] : el.querySelectorAll("span")) {
          const p = part.getBoundingClientRect();
          write(p.left, p.top + p.height / 2, part.textContent);
        }
      }
      if (el.dataset.label === undefined) continue;
      const drawn = [r.left, r.top, r.width, r.height];
      const box = el.dataset.handle ? JSON.parse(el.dataset.handle) : drawn;
      elements.push({ kind, label: el.dataset.label, key: el.dataset.key || "", box, drawn,
                      value: kind === "field" ? el.value : el.classList.contains("on") });
    }
    return { cells: cells.map(r => r.join("")), elements };
  },
};

/* Makers of items. Text is cut at the right edge, never wrapped. */
const cut = (text, col) => text.slice(0, Math.max(0, COLS - col));
const Item = {
  text: (row, col, text, look) => ({ kind: "text", row, col, len: cut(text, col).length, text: cut(text, col), look }),
  band: (row, col, text, rows = 1) => [{ kind: "band", row, col: 0, len: COLS, rows },
                                       Item.text(row + (rows >> 1), col, text, "light")],
  /* A field and its label at (r, c). */
  field: (r, c, row, col, len, label, value, more) =>
    [{ ...Item.text(r, c, label), names: label },
     { kind: "field", row, col, len, label, value, said: [r, c, cut(label, c).length], ...more }],
  button: (row, col, len, label, more) =>
    ({ kind: "button", row, col, len, label, parts: [[col + ((len - label.length) >> 1), label]], ...more }),
  mark: (kind, row, col, label, on) =>
    ({ kind, row, col, len: label.length, label, on, parts: [[col + 3, label]] }),
};
