/* Oracles of pages with shapes, colours and points.
 *
 * Shapes are read from their SVG: kind from the tag, size from the extent, colour from the fill. Where the page measures a
 * point in whole pixels, the best whole pixel near the ideal point is taken. Pages draw the point two pixels beside the
 * pointer, so the ideal is the page's.
 */
(function() {
"use strict";
const {all, one, text, withText, visible, click, clickAt, submit, missing} = oracles;

const KINDS = {
  rect: "rectangle",
  circle: "circle",
  polygon: "triangle"
};

function shapesOf(svg) {
  return all(`${svg} > *`).map(e => {
    const tag = e.tagName, letter = tag === "text" ? text(e) : "";
    const size = letter ? parseFloat(e.getAttribute("font-size")) : e.getBBox().width;
    const type = letter ? (/\d/.test(letter) ? "digit" : "letter") : "shape";
    return {
      e,
      type,
      name: letter || KINDS[tag],
      colour: e.getAttribute("fill"),
      size: size > 15 ? "large" : "small"
    };
  });
}

/* [large|small] [colour] NAME, a type, or "item" for any. */
function meets(shape, words) {
  const what = words[words.length - 1];
  return words.slice(0, -1).every(w => w === shape.size || w === shape.colour) &&
    (what === "item" || what === shape.name || what === shape.type);
}

const describe = s => `${s.size} ${s.colour} ${s.name}`;

function clickShape(s) {
  const words = s.said.match(/^Click on a (.*)$/)[1].split(" ");
  const found = shapesOf("#area_svg").filter(x => meets(x, words) && visible(x.e));
  found.sort((a, b) => a.e.getBoundingClientRect().top - b.e.getBoundingClientRect().top);
  return found.length ? click(found[0].e, words.join(" "), "shape") : missing(words.join(" "));
}

function countShapes(s) {
  const words = s.said.match(/^How many (.*)s are there\?$/)[1].split(" ");
  return click(
    withText("#count-buttons button", String(shapesOf("#area_svg").filter(x => meets(x, words)).length)));
}

function identify() {
  const [shape] = shapesOf("#area_svg");
  const name = shape.type === "shape" ? shape.name : shape.type;
  return click(all("#area-buttons button").find(b => b.dataset.type === name));
}

function shades(s) {
  const colour = s.said.match(/shades of (\w+)/)[1];
  const wrong =
    all("#area span").find(e => (e.dataset.color === colour) !== e.classList.contains("selected"));
  return wrong ? click(wrong, colour, "colour") : click("#submit");
}

const coordinate = s => {
  const name = s.said.match(/\(-?\d,-?\d\)/)[0];
  return click(document.getElementById(name), name, "point");
};

/* Copies the digit of the example row by row; wrongly ticked cells are cleared on the way. */
function digit(s) {
  const pattern = PATTERNS[+s.said.match(/number "(\d)"/)[1]].flat(), ticks = all("#checkboxes input");
  const k = ticks.findIndex((t, i) => t.checked !== !!pattern[i]);
  return k < 0 ? submit() : click(ticks[k], `row ${Math.floor(k / 4) + 1}, column ${k % 4 + 1}`);
}

/* ---- points of a plane ---- */

const TOP = 50; /* what the pages take off the height of a click */
const corner = e => {
  const b = e.getBBox();
  return {x: b.x, y: b.y, r: b.width / 2};
};
const distance = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);

function angle(a, b, vertex) {
  const [va, vb, ab] = [distance(vertex, a), distance(vertex, b), distance(a, b)];
  return Math.acos((vb * vb + va * va - ab * ab) / (2 * vb * va)) * 180 / Math.PI;
}

/* Returns the whole pixels around the ideal point, with the page's value of a circle of that radius. */
function best(ideal, around, radius, score) {
  let top = null;
  for (let x = Math.round(ideal.x) - around; x <= Math.round(ideal.x) + around; x++)
    for (let y = Math.round(ideal.y) - around; y <= Math.round(ideal.y) + around; y++) {
      if (x < 4 || y < 5 || x > 148 || y > 128 || !oracles.reaches(one("svg"), x, y + TOP)) continue;
      const value = score({x: x - radius, y: y - radius}) - 1e-4 * Math.hypot(x - ideal.x, y - ideal.y);
      if (!top || value > top.value) top = {x, y, value};
    }
  return top;
}

/* Clicks the place, or submits if the present point is as good. */
function plot(ideal, around, radius, score, label) {
  const goal = best(ideal, around, radius, score), blue = one("#blue-circle");
  if (blue && score(corner(blue)) >= goal.value - 0.03) return submit();
  return clickAt(
    goal.x + 0.5, goal.y + TOP + 0.5, label); /* the page takes the whole pixel that this lies in */
}

function centre() {
  const circle = one(".black-circle"), c = {x: +circle.getAttribute("cx"), y: +circle.getAttribute("cy")};
  const r = +circle.getAttribute("r");
  return plot(c, 2, 3.5, p => (r - distance(p, {x: c.x - 3, y: c.y - 3})) / r, "centre");
}

function midpoint() {
  const [a, b] = all(".black-circle").map(corner), mid = {x: (a.x + b.x) / 2, y: (a.y + b.y) / 2};
  return plot({x: mid.x + 3.5, y: mid.y + 3.5}, 1, 3.5, p => (30 - distance(p, mid)) / 30, "midpoint");
}

/* Returns a place at this distance from the vertex inside the drawing, on the nearer of two sides. */
function ray(vertex, directions, length) {
  const margin = p => Math.min(p.x - 8, p.y - 8, 142 - p.x, 122 - p.y);
  const ends = directions.map(([dx, dy]) => ({x: vertex.x + dx * length, y: vertex.y + dy * length}));
  return ends.reduce((p, q) => (margin(q) > margin(p) ? q : p));
}

function rightAngle() {
  const a = corner(one("#init-black")), v = corner(one("#init-blue")), l = distance(a, v);
  const side = [-(a.y - v.y) / l, (a.x - v.x) / l];
  const end = length => ray({x: v.x + v.r, y: v.y + v.r}, [side, [-side[0], -side[1]]], length);
  const score = p => 1 - Math.abs(90 - angle(a, p, v)) / 90,
        room = [45, 35, 25, 18].find(l => best(end(l), 3, 3, score));
  return plot(end(room || 18), 4, 3, score, "right angle");
}

function bisect() {
  const [a, b] = all(".init-black").map(corner), v = corner(one(".init-blue")), whole = angle(a, b, v);
  const unit = p => [(p.x - v.x) / distance(p, v), (p.y - v.y) / distance(p, v)];
  const [ua, ub] = [unit(a), unit(b)], sum = [ua[0] + ub[0], ua[1] + ub[1]], l = Math.hypot(...sum) || 1;
  const score = p => {
    const larger = Math.max(angle(a, p, v), angle(b, p, v));
    return larger > whole ? -1 : (whole - larger) / (whole / 2);
  };
  const end = length => ray({x: v.x + v.r, y: v.y + v.r}, [[sum[0] / l, sum[1] / l]], length);
  const good = length =>
    (best(end(length), 8, 3.5, score) || {value: -1}).value; /* of a narrow angle: farther out */
  const length = good(40) > 0.97 ? 40 : [40, 60, 80, 100].reduce((a, b) => (good(b) > good(a) ? b : a));
  return plot(end(length), 8, 3.5, score, "bisector");
}

oracles.shapesOf = shapesOf;
oracles.add({
  "click-shape": {steps: 1, next: clickShape},
  "click-shades": {steps: 10, next: shades},
  "count-shape": {steps: 1, next: countShapes},
  "identify-shape": {steps: 1, next: identify},
  "grid-coordinate": {steps: 1, next: coordinate},
  "number-checkboxes": {steps: 20, next: digit},
  "circle-center": {steps: 2, next: centre},
  "find-midpoint": {steps: 2, next: midpoint},
  "right-angle": {steps: 2, next: rightAngle},
  "bisect-angle": {steps: 2, next: bisect},
});
})();
