/* Oracles of pages that need search: tic-tac-toe, guessing and generating numbers.
 *
 * Hidden state is inferred from the earlier actions. Tic-tac-toe searches all games to their end against the page's own
 * strategy: random with a fixed probability, else a winning move, else a blocking move.
 */
(function() {
"use strict";
const {all, one, text, click, write, fill, submit} = oracles;

/* ---- tic-tac-toe ---- */

const LINES = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]];
const won = (b, v) => LINES.some(l => l.every(k => b[k] === v));
const free = b => b.map((v, k) => (v ? -1 : k)).filter(k => k >= 0);
const put = (b, k, v) => b.map((x, i) => (i === k ? v : x));

/* Returns the page's own best move; its functions read the global `gameState`. */
function clever(board) {
  const kept = gameState;
  gameState = board;
  const move = determineSpace(-1, 1);
  gameState = kept;
  return move === undefined || move === false ? null : move;
}

const seen = new Map();

/* Returns the probability of winning when it is our move, and the best move. */
function ours(board) {
  const name = board.join("");
  if (!seen.has(name)) {
    let top = {chance: -1, move: null};
    for (const k of [4, 0, 2, 6, 8, 1, 3, 5, 7].filter(i => !board[i])) {
      const chance = theirs(put(board, k, 1));
      if (chance > top.chance + 1e-9) top = {chance, move: k};
    }
    seen.set(name, top);
  }
  return seen.get(name);
}

function theirs(board) {
  if (won(board, 1)) return 1;
  const places = free(board);
  if (!places.length) return 0;
  const after = k =>
    (won(put(board, k, -1), -1) ? 0 :
       places.length === 1      ? 0 :
                                  ours(put(board, k, -1)).chance);
  const random = places.reduce((sum, k) => sum + after(k), 0) / places.length, sharp = clever(board);
  const share = RANDOM_CHANCE / 100;
  return share * random + (1 - share) * (sharp === null ? random : after(sharp));
}

function ticTacToe() {
  const board = all(".ttt-row span").map(e => ({"mark-x": 1, "mark-o": -1}[e.className] || 0));
  const names =
    ["top left", "top", "top right", "left", "centre", "right", "bottom left", "bottom", "bottom right"];
  const {move} = ours(board);
  return click(`#ttt-${move}`, names[move], "field");
}

/* ---- trial and error ---- */

/* Bisects the remaining range; the side of an earlier guess follows from the guess after it. */
function guess(s) {
  const tried = s.history.filter(a => a.verb === "write").map(a => +a.text);
  const now = one("#higher:not(.hide)") ? 1 : one("#lower:not(.hide)") ? -1 : 0;
  let low = 0, high = 9;
  tried.forEach((g, k) => {
    const side = k + 1 < tried.length ? Math.sign(tried[k + 1] - g) : g === answered() ? now : 0;
    if (side > 0) low = Math.max(low, g + 1);
    if (side < 0) high = Math.min(high, g - 1);
  });
  return fill("#tt", Math.floor((low + high) / 2), "number") || submit();
}

const answered = () => {
  const said = one("#higher:not(.hide) span, #lower:not(.hide) span");
  return said ? +text(said) : NaN;
};

function generate(s) {
  const n = parseInt(text(one("#display-number")), 10);
  const [, than, limit] = s.said.match(/(less|greater) than (\d+)/) || [], odd = /odd/.test(s.said);
  const fits = than ? (than === "less" ? n < limit : n > limit) : Math.abs(n % 2) === (odd ? 1 : 0);
  return Number.isNaN(n) || !fits ? click("#generate") : submit();
}

function oddOrEven() {
  for (const row of all("#numbers .row")) {
    const side = Math.abs(+text(row.querySelector(".display-number")) % 2) ? "odd" : "even";
    const button = row.querySelector("." + side);
    if (!button.classList.contains("selected"))
      return click(button, `${text(button)} for ${text(row.querySelector(".display-number"))}`);
  }
  return submit();
}

oracles.add({
  "tic-tac-toe": {steps: 5, next: ticTacToe},
  "guess-number": {steps: 8, next: guess},
  "generate-number": {steps: 30, next: generate},
  "odd-or-even": {steps: 4, next: oddOrEven},
});
})();
