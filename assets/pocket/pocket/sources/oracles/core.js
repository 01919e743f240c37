/* Oracles: the next action of a user on a page of MiniWoB++.
 *
 * An oracle is a pure function from the state of the running page to the next action. It reads the document, its SVG, the
 * globals of the page and the sentence, so it also labels states that a model has reached by mistakes. Where a page hides
 * the target (tabs, folders, closed sections, pages of results), the oracle uses the visible elements only and searches in
 * a fixed order: the label of a picture must follow from the picture, the sentence and the earlier actions.
 *
 *     oracles.add({ "click-test": { steps: 1, next: s => click("#subbtn") } });
 *     oracles.advise(said, history)  ->  { verb, x, y, box, label, kind, ... }
 *
 * `s` has `said` (the sentence), `history` (earlier actions, oldest first) and `last` (the newest of them). `steps` is the
 * largest number of actions that the page needs. Verbs, with coordinates in CSS pixels of the page:
 *
 *     click     once, `hold`: with a modifier key held        double, hover
 *     write     click, select all, type `text`
 *     append    click, move the caret to the end, type `text`
 *     key       press `keys` ("ctrl+c", "enter")
 *     scroll    turn the wheel at x, y: `direction`, `amount` in notches
 *     drag      press at x, y, move to `to`, release
 *     wait      `seconds`, or until the page has settled
 *     done      the task is complete
 *     missing   the target of the sentence is not on the page
 *
 * `label` is the visible name of the target, `box` its rectangle [x, y, width, height].
 */
const oracles = (function() {
  "use strict";
  const pages = {};
  const add = more => Object.assign(pages, more);

  /* ---- finding elements ---- */

  const all = (selector, root) => [...(root || document).querySelectorAll(selector)];
  const one = selector => (typeof selector === "string" ? document.querySelector(selector) : selector);
  const clean = text => text.replace(/\s+/g, " ").trim();
  const text = e => clean(e.textContent);
  const withText = (selector, wanted, root) => all(selector, root).find(e => text(e) === wanted);

  /* Returns the rectangle to point at: for text over several lines the first line. */
  function rectangle(e) {
    const lines = [...e.getClientRects()].filter(r => r.width > 0 && r.height > 0);
    return lines.length ? lines[0] : e.getBoundingClientRect();
  }

  const inside = (x, y) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;

  /* Returns whether a click at this position reaches the element; a label passes its clicks to its control. */
  function reaches(e, x, y) {
    const hit = inside(x, y) && document.elementFromPoint(x, y);
    return !!hit && (hit === e || e.contains(hit) || (hit.control && hit.control === e));
  }

  /* Returns an uncovered position on the element: its centre, or the free position nearest to it; null if
   * none. */
  function place(e) {
    const r = rectangle(e);
    if (!(r.width > 0 && r.height > 0) || getComputedStyle(e).visibility === "hidden") return null;
    const spots = [];
    for (let i = -4; i <= 4; i++)
      for (let j = -4; j <= 4; j++)
        spots.push([r.left + r.width * (0.5 + i / 10), r.top + r.height * (0.5 + j / 10), i * i + j * j]);
    spots.sort((a, b) => a[2] - b[2]);
    const free = spots.find(([x, y]) => reaches(e, x, y));
    return free ? {x: free[0], y: free[1]} : null;
  }

  const visible = e => !!e && !!place(e);

  /* ---- naming elements ---- */

  function kindOf(e) {
    const tag = e.tagName.toLowerCase(), type = (e.type || "").toLowerCase();
    if (tag === "button" || type === "submit" || type === "button") return "button";
    if (type === "checkbox") return "checkbox";
    if (type === "radio") return "radio";
    if (tag === "input" || tag === "textarea") return "field";
    if (tag === "select") return "list";
    if (tag === "a" || e.classList.contains("alink")) return "link";
    return e instanceof SVGElement ? "shape" : "element";
  }

  function nameOf(e) {
    if (e.labels && e.labels.length) return text(e.labels[0]).replace(/:$/, "");
    return text(e) || e.getAttribute("placeholder") || e.value || e.getAttribute("title") || "";
  }

  /* ---- actions ---- */

  const round = v => Math.round(v * 100) / 100;

  function target(selector, label, kind) {
    const e = one(selector), spot = e && place(e);
    if (!spot) return null;
    const r = rectangle(e);
    return {
      x: round(spot.x),
      y: round(spot.y),
      box: [r.left, r.top, r.width, r.height].map(round),
      label: label === undefined ? nameOf(e).slice(0, 60) : label,
      kind: kind || kindOf(e)
    };
  }

  const aim = (verb, e, more, label, kind) => {
    const t = target(e, label, kind);
    return t && {verb, ...t, ...more};
  };
  const click = (e, label, kind) => aim("click", e, {}, label, kind);
  const hover = (e, label, kind) => aim("hover", e, {}, label, kind);
  const write = (e, text, label) => aim("write", e, {text: String(text)}, label, "field");
  const append = (e, text, label) => aim("append", e, {text: String(text)}, label, "field");
  const key = keys => ({verb: "key", keys});
  const wait = seconds => ({verb: "wait", seconds});
  const missing = label => ({verb: "missing", label: label || ""});

  /* Returns a position that is not an element: a point of a drawing, an edge of a word. */
  const spot = (x, y, label, kind, size) => {
    const half = (size || 8) / 2;
    return {
      x: round(x),
      y: round(y),
      box: [x - half, y - half, 2 * half, 2 * half].map(round),
      label,
      kind: kind || "point"
    };
  };
  const clickAt = (x, y, label, kind) => ({verb: "click", ...spot(x, y, label, kind)});
  const drag = (from, to) => from && to && {verb: "drag", ...from, to};

  /* Turns the wheel over `view` by so few notches that a part of the old view stays visible. */
  function scroll(view, direction, amount, label) {
    const e = one(view), r = e.getBoundingClientRect();
    const x = r.left + r.width / 2, y = r.top + Math.min(r.height, innerHeight - r.top) / 2;
    return {
      verb: "scroll",
      ...spot(x, y, label || "", "view"),
      box: [r.left, r.top, r.width, r.height].map(round),
      direction,
      amount: amount || 1
    };
  }

  /* Names of scrolled views by selector; others are called "list". */
  const VIEWS = {"#area": "page", "#main": "inbox"};

  /* Returns `act` on an element in a scrolled view, or a turn of the wheel towards it. */
  function reach(e, view, act) {
    const action = act(e);
    const v = one(view).getBoundingClientRect(), r = e.getBoundingClientRect();
    const top = Math.max(v.top, 0), bottom = Math.min(v.bottom, innerHeight), middle = r.top + r.height / 2;
    if (action && middle >= top && middle <= bottom) return action;
    return scroll(view, middle > (top + bottom) / 2 ? "down" : "up", 1, VIEWS[view] || "list");
  }

  /* Returns null if the field holds the text, else the action that types it. */
  const fill = (e, text, label) => (one(e).value === String(text) ? null : write(e, text, label));

  /* Returns the first pending action of several steps, which may be functions; null: the step is done. */
  const first = (...steps) => {
    for (const step of steps) {
      const action = typeof step === "function" ? step() : step;
      if (action) return action;
    }
    return null;
  };

  const submit = label =>
    click(one("#subbtn") || one("#submit") || withText("#area button", label || "Submit"), undefined);

  /* ---- the next action ---- */

  let scrolled = 0, heard = 0; /* times of the last scroll and of the last input */
  addEventListener("scroll", () => {
    scrolled = performance.now();
  }, true);
  for (const kind of ["mouseup", "keyup", "wheel"])
    addEventListener(kind, () => {
      heard = performance.now();
    }, true);

  /* Returns whether the page still moves by itself: an animation of jQuery or of a style that ends, or a view
   * after a turn of the wheel. */
  const busy = () => (window.jQuery && jQuery.timers.length > 0) || performance.now() - scrolled < 100 ||
    performance.now() - heard < 30 ||
    document.getAnimations().some(
      a => a.playState === "running" && a.effect.getComputedTiming().endTime < 3000);

  const task = () => location.pathname.replace(/.*\/|\.html$/g, "");

  function advise(said, history) {
    if (WOB_DONE_GLOBAL) return {verb: "done"};
    if (busy()) return wait(0.05);
    const past = history || [], page = pages[task()];
    if (!page) throw new Error("no oracle for " + task());
    const state = {said, history: past, last: past[past.length - 1]};
    return page.next(state) || {verb: "stuck"};
  }

  /* Returns the outcome for checks of the oracles. */
  const verdict = () => ({
    over: WOB_DONE_GLOBAL,
    reward: WOB_RAW_REWARD_GLOBAL,
    outcome: (document.title.match(/ outcome=(\w+)/) || [])[1]
  });

  return {
    add,
    pages,
    advise,
    verdict,
    task,
    all,
    one,
    text,
    clean,
    withText,
    rectangle,
    place,
    reaches,
    visible,
    target,
    aim,
    click,
    hover,
    write,
    append,
    key,
    wait,
    missing,
    spot,
    clickAt,
    drag,
    scroll,
    reach,
    fill,
    first,
    submit
  };
})();
window.oracles = oracles;
