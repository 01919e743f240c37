/* Oracles of pages whose answer is read or computed: tables, paragraphs, sums, counted drawings.
 *
 * The answer comes from the document or the SVG, never from a hidden variable of the page. One exception: the strokes of a
 * canvas are counted while it is drawn.
 */
(function() {
"use strict";
const {all, one, text, clean, withText, click, write, fill, submit, missing, scroll, reach, append, key} =
  oracles;

const answer = (field, value, label) => fill(field, value, label || "text field") || submit();

const cell = name => {
  const row = all("#tab tr").find(r => text(r.cells[0]) === name);
  return row && text(row.cells[1]);
};

function table(s) {
  const name = s.said.match(/^Enter the value of (.*) into/)[1], value = cell(name);
  return value === undefined ? missing(name) : answer("#tt", value);
}

function twoCells() {
  for (const k of [1, 2]) {
    const name = text(one(`#ll${k}`)).replace(/:$/, ""), due = fill(`#tt${k}`, cell(name), name);
    if (due) return due;
  }
  return submit();
}

function nthWord(s) {
  const n = +s.said.match(/Find the (\d+)/)[1];
  return answer("#answer-input", text(one("#area p")).split(" ")[n - 1].replace(/[^a-zA-Z]/g, ""));
}

function arithmetic() {
  const [, a, sign, b] = text(one("#math-problem")).match(/(\d+) ([-+x]) (\d+)/);
  return answer("#math-answer", {"+": +a + +b, "-": a - b, x: a * b}[sign], "answer");
}

/* x + a = b, x - a = b, a + x = b or a - x = b. */
function algebra() {
  const [, left, sign, right, sum] = text(one("#math-problem")).match(/(\w+) ([-+]) (\w+) = (-?\d+)/);
  const a = +(left === "x" ? right : left);
  const x = sign === "+" ? sum - a : left === "x" ? +sum + a : a - sum;
  return answer("#math-answer", x, "x");
}

/* ---- texts longer than their frame ---- */

const ends = view =>
  ({top: view.scrollTop < 10, bottom: view.scrollHeight - view.scrollTop - view.clientHeight < 10});

function lastWord() {
  const view = one("#text-area"), word = view.value.trim().split(/\s+/).pop().replace(/[^a-zA-Z0-9]/g, "");
  if (one("#answer-input").value === word) return submit();
  return ends(view).bottom ? write("#answer-input", word, "text field") :
                             scroll(view, "down", 3, "text area");
}

function toEnd(s) {
  const view = one("#text-area"), end = s.said.match(/(bottom|top)/)[1];
  return ends(view)[end] ? submit() : scroll(view, end === "top" ? "up" : "down", 3, "text area");
}

function agreement(s) {
  const view = one("#text-area"), sign = s.said.match(/name "(.*)" then press "(.*)"/);
  if (!sign) return click("#cancel");
  if (one("#name").disabled) return scroll(view, "down", 3, "text area");
  return fill("#name", sign[1], "Name") || click(withText("#area button", sign[2]));
}

/* ---- drawings ---- */

/* A canvas has no record of its lines, so they are counted from the first drawing call. */
let strokes = 0;
const line = CanvasRenderingContext2D.prototype.lineTo, move = CanvasRenderingContext2D.prototype.moveTo;
CanvasRenderingContext2D.prototype.moveTo = function(...at) {
  strokes = 0;
  return move.apply(this, at);
};
CanvasRenderingContext2D.prototype.lineTo = function(...at) {
  strokes++;
  return line.apply(this, at);
};

const blocks = id => all(`${id} .addition-block`).length;

oracles.add({
  "read-table": {steps: 2, next: table},
  "read-table-2": {steps: 3, next: twoCells},
  "find-word": {steps: 2, next: nthWord},
  "simple-arithmetic": {steps: 2, next: arithmetic},
  "simple-algebra": {steps: 2, next: algebra},
  "visual-addition":
    {steps: 2, next: () => answer("#math-answer", blocks("#visual-1") + blocks("#visual-2"), "answer")},
  "count-sides": {steps: 1, next: () => click(withText("#form button", String(strokes)))},
  "scroll-text": {steps: 9, next: lastWord},
  "scroll-text-2": {steps: 6, next: toEnd},
  "sign-agreement": {steps: 14, next: agreement},
});
})();
