/* Oracles of pages with forms: fields, sliders, dates, dropdown lists.
 *
 * A form is a list of conditions in reading order; the first that does not hold determines the next action, and when all
 * hold the form is submitted. Date fields are entered at the month. A slider is dragged, and the arrow keys correct the
 * rest.
 */
(function() {
"use strict";
const {
  all, one, text, clean, withText, visible, click, write, key, drag, first, fill, submit, spot,
  rectangle, target
} = oracles;

/* ---- fields ---- */

const simple = (said, answer) => s => fill("#tt", answer(s.said.match(said)), "text field") || submit();

function login(s) {
  const cancel = one("#popup-cancel");
  if (cancel) return click(cancel);
  const [, user, password] = s.said.match(/"(.*)" and the password "(.*)" into/);
  return fill("#username", user, "Username") || fill("#password", password, "Password") || submit();
}

function password(s) {
  const word = s.said.match(/password "(.*)" into/)[1];
  return fill("#password", word, "Password") || fill("#verify", word, "Verify password") || submit();
}

/* Clicks the first part of a date or time field, at its left edge; typed digits advance to the next part. */
function dated(value, typed, label) {
  const field = one("#tt");
  if (field.value === value) return submit();
  const r = rectangle(field), left = spot(r.left + 8, r.top + r.height / 2, label, "field");
  return {verb: "write", ...left, box: [r.left, r.top, r.width, r.height], text: typed};
}

function date(s) {
  const [, month, day, year] = s.said.match(/(\d\d)\/(\d\d)\/(\d{4})/);
  return dated(`${year}-${month}-${day}`, `${month}/${day}/${year}`, "date");
}

function time(s) {
  const [, hour, minute, half] = s.said.match(/(\d+):(\d\d) ([AP]M)/);
  const hours = (hour % 12) + (half === "PM" ? 12 : 0), two = n => String(n).padStart(2, "0");
  return dated(`${two(hours)}:${minute}`, `${hour}:${minute}${half}`, "time");
}

/* A form about a film; its labels depend on the layout. */
function film(s) {
  const [, genre, name, year] = s.said.match(/^Search for (.*) movies directed by (.*) from year (\d+)\.$/);
  const wanted = [[/Genre/, genre], [/Director/, name], [/Year|Date/, year]];
  for (const field of all("#area input[type=text]")) {
    const row = field.closest("p, .row, tr, .field, .ui-entry"), label = text(row).replace(/:$/, "");
    const value = wanted.find(([sign]) => sign.test(label))[1];
    if (field.value.toLowerCase() !== value.toLowerCase()) return write(field, value, label);
  }
  return click(one("#area button, #area .final, #area .ui-submit"), undefined, "button");
}

/* ---- sliders, spinners ---- */

/* Returns null if the slider is at n. */
function slide(selector, n, label) {
  const slider = $(selector), value = slider.slider("value");
  if (value === n) return null;
  const handle = one(`${selector} .ui-slider-handle`),
        upright = slider.slider("option", "orientation") === "vertical";
  if (document.activeElement === handle && Math.abs(value - n) <= 3) return key(value < n ? "right" : "left");
  const [low, high] = [slider.slider("option", "min"), slider.slider("option", "max")];
  const r = slider[0].getBoundingClientRect(), part = (n - low) / (high - low);
  const from = target(handle, label, "slider");
  const x = upright ? from.x : r.left + part * r.width, y = upright ? r.bottom - part * r.height : from.y;
  return drag(from, spot(x, y, String(n)));
}

function sliders(s) {
  const wanted = s.said.match(/-?\d+/g).map(Number);
  return first(...wanted.map((n, k) => () => slide(`#slider-${k + 1}`, n, `slider ${k + 1}`))) || submit();
}

function spinner(s) {
  const n = +s.said.match(/Select (-?\d+)/)[1], now = +one("#spinner").value;
  if (now === n) return submit();
  return now < n ? click(".ui-spinner-up", "up", "button") : click(".ui-spinner-down", "down", "button");
}

/* ---- several kinds in turn ---- */

function sliderAndTick(s) {
  const [, n, which] = s.said.match(/Select (-?\d+) with the slider, click the (\d)\w\w checkbox/);
  const ticks = all("#area input[type=checkbox]"), name = k => ["1st", "2nd", "3rd"][k] + " checkbox";
  const off = ticks.findIndex((t, k) => t.checked !== (k === which - 1));
  return slide("#slider", +n, "slider") || (off >= 0 && click(ticks[off], name(off))) || submit();
}

function radioAndField(s) {
  const [, radio, n, box] =
    s.said.match(/the (\d)\w\w radio button .* number "(-?\d+)" into the (\d)\w\w textbox/);
  const choice = all("#area input[type=radio]")[radio - 1], fields = all("#area input[type=text]");
  const ordinal = k => ["1st", "2nd", "3rd"][k];
  return first(
    () => !choice.checked && click(choice, `${ordinal(radio - 1)} radio button`),
    ...fields.map((f, k) => () => fill(f, k === box - 1 ? n : "", `${ordinal(k)} textbox`)), submit);
}

/* A list that the page draws itself; a click opens it. */
function dropdown(s) {
  const [, item, button] =
    s.said.match(/^Choose (.*) from the dropdown, then click the button labeled "(.*)"\.$/);
  if (one("#dropdown").value === item) return click(withText("#buttons button", button));
  if (!one(".selectric-wrapper").classList.contains("selectric-open"))
    return click(".selectric", "dropdown", "list");
  const entry = withText(".selectric-items li", item);
  return oracles.reach(entry, ".selectric-scroll", e => click(e, item, "option"));
}

/* ---- a calendar that opens ---- */

const MONTHS = [
  "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
  "November", "December"
];

/* Returns null if the field has the date (MM/DD/YYYY). */
function calendar(field, wanted) {
  const open = one("#ui-datepicker-div"), [month, day, year] = wanted.split("/").map(Number);
  if (!visible(open)) return one(field).value === wanted ? null : click(field, "date", "field");
  const shown = 12 * +text(one(".ui-datepicker-year")) + MONTHS.indexOf(text(one(".ui-datepicker-month")));
  const goal = 12 * year + month - 1;
  if (shown > goal) return click(".ui-datepicker-prev", "Prev", "button");
  if (shown < goal) return click(".ui-datepicker-next", "Next", "button");
  return click(withText("#ui-datepicker-div td a", String(day)), String(day), "day");
}

const pickDate = s => calendar("#datepicker", s.said.match(/\d\d\/\d\d\/\d{4}/)[0]) || submit();

oracles.calendar = calendar;
oracles.slide = slide;
oracles.add({
  "enter-text": {steps: 2, next: simple(/^Enter "(.*)" into/, m => m[1])},
  "enter-text-dynamic": {steps: 2, next: simple(/^Enter "(.*)" into/, m => m[1])},
  "enter-text-2": {
    steps: 2,
    next: simple(
      /^Type "(.*)" in all (upper|lower)/, m => (m[2] === "upper" ? m[1].toUpperCase() : m[1].toLowerCase()))
  },
  "text-transform":
    {steps: 2, next: () => fill("#tt", clean(one("#captcha").textContent), "text field") || submit()},
  "enter-password": {steps: 3, next: password},
  "login-user": {steps: 3, next: login},
  "login-user-popup": {steps: 5, next: login},
  "enter-date": {steps: 2, next: date},
  "enter-time": {steps: 2, next: time},
  "multi-orderings": {steps: 4, next: film},
  "multi-layouts": {steps: 4, next: film},
  "use-slider":
    {steps: 5, next: s => slide("#slider", +s.said.match(/Select (-?\d+)/)[1], "slider") || submit()},
  "use-slider-2": {steps: 10, next: sliders},
  "use-spinner": {steps: 11, next: spinner},
  "form-sequence": {steps: 7, next: sliderAndTick},
  "form-sequence-2": {steps: 3, next: radioAndField},
  "form-sequence-3": {steps: 7, next: dropdown},
  "choose-date": {steps: 14, next: pickDate},
  "choose-date-medium": {steps: 4, next: pickDate},
  "choose-date-easy": {steps: 3, next: pickDate},
});
})();
