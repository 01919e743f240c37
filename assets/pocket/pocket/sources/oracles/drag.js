/* Oracles of pages with drags: boxes, shapes, list entries, edges, lines, selected text.
 *
 * A drag is one action with two places, from the centre of the element to the wanted centre. Elements in their place are
 * not moved, so every state has a next action; lists are sorted from the top.
 */
(function() {
"use strict";
const {all, one, text, click, drag, spot, target, submit, missing, place} = oracles;

const middle = r => ({x: r.left + r.width / 2, y: r.top + r.height / 2});

/* ---- marking text ---- */

/* Returns the range from the first to the last visible character of a node or of part of it. */
function ends(node, from, to) {
  const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT), rects = [];
  let seen = 0;
  for (let t = walk.nextNode(); t; t = walk.nextNode())
    for (let k = 0; k < t.data.length; k++, seen++) {
      if (/\s/.test(t.data[k]) || (from !== undefined && (seen < from || seen >= to))) continue;
      const range = document.createRange();
      range.setStart(t, k);
      range.setEnd(t, k + 1);
      rects.push(range.getBoundingClientRect());
    }
  const a = rects[0], b = rects[rects.length - 1];
  return {from: {x: a.left + 0.2, y: a.top + a.height / 2}, to: {x: b.right + 0.6, y: b.top + b.height / 2}};
}

const marked = () => window.getSelection().toString().replace(/\s/g, "");

function mark(node, label, from, to) {
  const e = ends(node, from, to);
  return drag(spot(e.from.x, e.from.y, label, "text"), spot(e.to.x, e.to.y, "end of " + label, "text"));
}

function highlight(node, label) {
  return marked() === node.textContent.replace(/\s/g, "") ? submit() : mark(node, label);
}

/* ---- boxes and shapes ---- */

function smallInLarge() {
  const small = one("#draggableSmall"), large = one("#draggableLarge"), at = e => [e.offsetLeft, e.offsetTop];
  const [dx, dy] = at(small).map((v, k) => v - at(large)[k]);
  if (dx > 2 && dx < 28 && dy > 2 && dy < 28) return submit();
  const from = target(small, "small box", "box");
  return drag(from, spot(from.x + 15 - dx, from.y + 15 - dy, "large box", "box"));
}

const WAYS = {
  left: [-1, 0],
  right: [1, 0],
  up: [0, -1],
  down: [0, 1]
};

/* The page compares the shape's original box with its current position. */
function shift(s) {
  const way = s.said.match(/(left|right|up|down)/)[1], shape = one("#area svg > *"),
        name = text(one("#query"));
  const now = shapes.gridCoords(shape), was = shape.getBBox(), [dx, dy] = WAYS[way];
  if (dx * (now.x - was.x) + dy * (now.y - was.y) > 2) return submit();
  const from = target(shape, /circle/.test(name) ? "circle" : "item", "shape");
  return drag(from, spot(from.x + 35 * dx, from.y + (dy < 0 ? 35 : 30) * dy, way));
}

const PLURALS = {
  rectangles: "rect",
  circles: "circle",
  triangles: "polygon"
};
const loose = () => all("#area_svg > *").filter(e => e.id !== "shape-container");
const frames = () => all("#shape-container").map(e => e.getBoundingClientRect());

/* Returns whether the page counts the shape as inside the box: by the corner of its drawing. */
const within = (e, box) => {
  const r = e.getBoundingClientRect();
  return r.left > box.left + 1 && r.left < box.right - 1 && r.top > box.top + 1 && r.top < box.bottom - 1;
};

/* Returns a free place in the box, so that no shape covers another. */
function slot(box, shapes) {
  const here = shapes.filter(e => within(e, box)).map(e => middle(e.getBoundingClientRect()));
  const step = 20, spots = [];
  for (let y = box.top + 15; y < box.bottom - 7; y += step)
    for (let x = box.left + 15; x < box.right - 7; x += step) spots.push({x, y});
  const room = p => Math.min(99, ...here.map(q => Math.hypot(p.x - q.x, p.y - q.y)));
  return spots.reduce((p, q) => (room(q) > room(p) + 1 ? q : p));
}

/* Drags every shape into its box; home(e) returns the box of a shape, or null if it must be outside. */
function sort(home, boxes) {
  const list = loose(),
        wrong = list.filter(e => (home(e) ? !within(e, home(e)) : boxes.some(b => within(e, b))));
  const e = wrong.find(x => place(x));
  if (!e) return submit();
  const from =
    target(e, `${e.getAttribute("fill")} ${{rect: "rectangle", polygon: "triangle"}[e.tagName] || "circle"}`);
  const box = home(e), to = box ? slot(box, list) : {x: 20, y: 175};
  return drag(from, spot(to.x, to.y, box ? "box" : "", "box"));
}

function intoBox(s) {
  const tag = PLURALS[s.said.match(/^Drag all (\w+) into/)[1]], [box] = frames();
  return sort(e => (e.tagName === tag ? box : null), [box]);
}

function intoTwo(s) {
  const [, what] = s.said.match(/^Drag all (\w+)(?: shapes)? into the left box/), [left, right] = frames();
  return sort(
    e => (e.tagName === PLURALS[what] || e.getAttribute("fill") === what ? left : right), [left, right]);
}

/* ---- lists ---- */

/* An entry must be released past the centre of the entry that it replaces. */
function toPlace(items, from, to, label) {
  const start = target(items[from], label, "list item"), end = items[to].getBoundingClientRect();
  const past = to > from ? 0.75 : 0.25;
  const y = from === to ? start.y : end.top + end.height * past;
  return drag(start, spot(end.left + end.width / 2, y, text(items[to]), "list item"));
}

function moveItem(s) {
  const [, name, where] = s.said.match(/^Drag (\S+(?: \S+)?) (to the .*|up .*|down .*)\.$/);
  const items = all("#sortable li"), from = items.findIndex(e => text(e) === name);
  if (from < 0) return missing(name);
  const to = /top/.test(where) ? 0 :
    /bottom/.test(where)       ? items.length - 1 :
    /^up/.test(where)          ? from - 1 :
    /^down/.test(where)        ? from + 1 :
                                 +where.match(/\d/)[0] - 1;
  return toPlace(items, from, to, name);
}

const PLACES = {
  "top left": 0,
  "top center": 1,
  "top right": 2,
  "center left": 3,
  center: 4,
  "center right": 5,
  "bottom left": 6,
  "bottom center": 7,
  "bottom right": 8
};
const SHIFTS = {
  up: -3,
  down: 3,
  left: -1,
  right: 1
};

function moveInGrid(s) {
  const [, name, where] = s.said.match(/^Drag (\S+(?: \S+)?) (to the .*|(?:up|down|left|right) by one)\.$/);
  const items = all("#sortable li"), from = items.findIndex(e => text(e) === name);
  if (from < 0) return missing(name);
  const to = /^to the/.test(where) ? PLACES[where.slice(7)] : from + SHIFTS[where.split(" ")[0]];
  const start = target(items[from], name, "list item"), cell = items[to].getBoundingClientRect(),
        end = middle(cell);
  const [right, down] = [Math.sign(Math.round(end.x - start.x)), Math.sign(Math.round(end.y - start.y))];
  /* On the way up to the right the entry is put behind the left neighbour of its new place, so the drag ends
   * between the two: past the middle it would be put behind the entry whose place it is to take. */
  const across = right > 0 && down < 0, x = across ? cell.left - 4 : end.x + 9 * right;
  return drag(start, spot(x, across ? end.y : end.y + 9 * down, text(items[to]), "list item"));
}

function sortNumbers() {
  const items = all("#sortable li"), now = items.map(e => +text(e)), goal = [...now].sort((a, b) => a - b);
  const k = now.findIndex((v, i) => v !== goal[i]);
  return k < 0 ? submit() : toPlace(items, now.lastIndexOf(goal[k]), k, String(goal[k]));
}

/* ---- edges and lines ---- */

function resize(s) {
  const [, side, way] = s.said.match(/the (width|height) is (smaller|larger)/), area = $("#tt"),
                 key = "first-" + side;
  const sign = way === "larger" ? 1 : -1, was = parseFloat(one("#tt").dataset[side] || 0) || initial(side);
  if (sign * (area[side]() - was) > 0) return submit();
  const from = target(".ui-resizable-se", "corner", "handle");
  const [dx, dy] = side === "width" ? [20 * sign, 0] : [0, 20 * sign];
  return drag(from, spot(from.x + dx, from.y + dy, way));
}

/* Returns the initial size. The area's own style keeps it until the first drag, so it is stored on the first call. */
function initial(side) {
  const area = one("#tt");
  for (const k of ["width", "height"]) area.dataset[k] = $(area)[k]();
  return +area.dataset[side];
}

function drawLine(s) {
  if (one("svg path")) return click("#controls button");
  const c = middle(one("#circ").getBoundingClientRect()), r = one("svg").getBoundingClientRect();
  const flat = /horizontal/.test(s.said);
  return flat ? drag(spot(r.left + 12, c.y, "line"), spot(r.right - 12, c.y, "line")) :
                drag(spot(c.x, r.top + 8, "line"), spot(c.x, r.bottom - 8, "line"));
}

oracles.mark = mark;
oracles.marked = marked;
oracles.add({
  "highlight-text": {steps: 2, next: () => highlight(one("#randomText"), "paragraph")},
  "highlight-text-2": {
    steps: 2,
    next: s => {
      const n = s.said.match(/(\d)\w\w paragraph/);
      return highlight(all("#randomText p")[n[1] - 1], n[0]);
    }
  },
  "drag-box": {steps: 2, next: smallInLarge},
  "drag-circle": {steps: 2, next: shift},
  "drag-single-shape": {steps: 2, next: shift},
  "drag-shapes": {steps: 5, next: intoBox},
  "drag-shapes-2": {steps: 6, next: intoTwo},
  "drag-items": {steps: 1, next: moveItem},
  "drag-items-grid": {steps: 1, next: moveInGrid},
  "drag-sort-numbers": {steps: 4, next: sortNumbers},
  "resize-textarea": {steps: 2, next: resize},
  "draw-line": {steps: 2, next: drawLine},
});
})();
