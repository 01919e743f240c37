/* Oracles of pages with clicks on named elements: buttons, links, boxes, tabs, menus, dialogs.
 *
 * The target is looked up among the visible elements; of several with the same name the first is taken. Elements behind
 * tabs, sections and folders are searched in order from the open one. Boxes are ticked in the order of the sentence,
 * after wrong ones are cleared.
 */
(function() {
"use strict";
const {all, one, text, withText, visible, click, hover, wait, missing, first, submit, clickAt, rectangle} =
  oracles;
const quoted = s => s.said.match(/"(.*)"/)[1];

const namedButton = name =>
  (withText("#area button", name) ? click(withText("#area button", name)) : missing(name));

/* ---- ticks and choices ---- */

const boxes = () => all("#area input[type=checkbox], #area input[type=radio]")
                      .map(input => ({input, name: text(input.closest("label"))}));

/* same(name, wanted): returns whether a box is meant by the sentence. */
function ticks(s, same) {
  const list = s.said.match(/^Select (?:words similar to )?(.*) and click Submit\.$/)[1];
  const wanted = list === "nothing" ? [] : list.split(", ");
  const found = boxes(), meant = new Set();
  for (const name of wanted) {
    const box = found.find(b => !meant.has(b) && same(b.name, name));
    if (!box) return missing(name);
    meant.add(box);
  }
  const wrong = found.find(b => b.input.checked && !meant.has(b));
  const due = [...meant].find(b => !b.input.checked);
  const next = wrong || due;
  return next ? click(next.input, next.name) : submit();
}

const alike = (a, b) => SYNONYMS.some(group => group.includes(a) && group.includes(b));

function option(s) {
  const name = s.said.match(/^Select (.*) and click Submit\.$/)[1];
  const named = boxes().filter(b => b.name === name);
  if (!named.length) return missing(name);
  return named.some(b => b.input.checked) ? submit() : click(named[0].input, name);
}

/* ---- links behind tabs, sections and folders ---- */

const shownLink = name => all(".alink").find(e => text(e) === name && visible(e));

function sections(s) {
  const link = shownLink(quoted(s)), heads = all("#area h3");
  if (link) return click(link);
  const open = heads.findIndex(h => h.classList.contains("ui-state-active"));
  return click(heads[(open + 1) % heads.length], undefined, "section");
}

const unfold = () =>
  visible(one("#area .ui-accordion-content")) ? submit() : click("#area h3", undefined, "section");

function tabs(s) {
  const link = shownLink(quoted(s)), heads = all("#area .ui-tabs-nav a");
  if (link) return click(link);
  if (heads.length === 1) return missing(quoted(s));
  const open = heads.findIndex(h => h.closest("li").classList.contains("ui-tabs-active"));
  return click(heads[(open + 1) % heads.length], undefined, "tab");
}

/* Opens closed folders from the top, each once, while no visible element has the name. */
function tree(s) {
  const named = all("#tree span").find(e => text(e) === quoted(s) && visible(e));
  if (named) return click(named);
  const closed = all("#tree li.expandable > span").find(visible);
  return closed ? click(closed, undefined, "folder") : missing(quoted(s));
}

/* ---- menus ---- */

/* Follows a path of names: hovering opens a submenu, only the last item is clicked. */
function menu(s) {
  const path = s.said.match(/^Select (.*)$/)[1].split(">");
  let list = one("#menu");
  for (const [k, name] of path.entries()) {
    const item = [...list.children].find(li => text(li.firstElementChild) === name);
    if (!item) return missing(name);
    if (k === path.length - 1) return click(item.firstElementChild, name, "menu item");
    list = item.querySelector("ul");
    if (!visible(list.firstElementChild)) return hover(item.firstElementChild, name, "menu item");
  }
}

function iconMenu(s) {
  const icon = one("#query .ui-icon");
  const name = icon ? null : s.said.match(/labeled "(.*)"/)[1];
  const item = all("#menu li")
                 .filter(li => !li.querySelector("ul"))
                 .find(li => (icon ? li.querySelector("." + icon.classList[1]) : text(li) === name));
  if (!item) return missing(name);
  if (!visible(one("#menu"))) return click("#open-menu");
  const above = item.parentElement.closest("li");
  if (above && !visible(item))
    return hover(above.firstElementChild, text(above.firstElementChild), "menu item");
  return click(item.firstElementChild, text(item), "menu item");
}

/* ---- a wheel of letters that opens ---- */

function pie(s) {
  const name = quoted(s), wide = e => e.getBoundingClientRect().width > 4;
  const open = all("#divWheel [id*=-slice-]").some(wide);
  const title = all("#divWheel [id*=-title-]").find(e => text(e) === name);
  if (open) return title ? click(title, name, "slice") : missing(name);
  const centre = all("#divWheel [id*=spreader]").find(e => wide(e) && visible(e));
  return centre ? click(centre, "+", "button") : wait(0.1);
}

function dialog(s) {
  const name = quoted(s);
  if (name === "x") return click(".ui-dialog-titlebar-close", "x", "button");
  const button = withText(".ui-dialog-buttonset button", name);
  return button ? click(button) : missing(name);
}

function sequence() { return buttonsPushed.length === 0 ? click("#subbtn") : click("#subbtn2"); }

function colour(s) {
  const name = s.said.match(/^Click on the (.*) colored box/)[1];
  const found = all("#area .color").find(e => e.dataset.color === name);
  return found ? click(found, name, "box") : missing(name);
}

function widget(s) {
  const found = all("#area [data-type]").find(e => e.dataset.type === quoted(s) && visible(e));
  return found ? click(found, quoted(s)) : missing(quoted(s));
}

oracles.add({
  "click-test": {steps: 1, next: () => click("#subbtn")},
  "click-test-2": {steps: 1, next: s => namedButton(s.said.match(/button (\w+)/)[1])},
  "click-test-transfer": {steps: 1, next: s => namedButton(s.said.match(/button (\w+)/)[1])},
  "click-button": {steps: 1, next: s => namedButton(quoted(s))},
  "click-button-sequence": {steps: 2, next: sequence},
  "click-checkboxes": {steps: 7, next: s => ticks(s, (a, b) => a === b)},
  "click-checkboxes-large": {steps: 13, next: s => ticks(s, (a, b) => a === b)},
  "click-checkboxes-transfer": {steps: 7, next: s => ticks(s, (a, b) => a === b)},
  "click-checkboxes-soft": {steps: 6, next: s => ticks(s, alike)},
  "click-option": {steps: 2, next: option},
  "click-collapsible": {steps: 2, next: unfold},
  "click-collapsible-2": {steps: 4, next: sections},
  "click-color": {steps: 1, next: colour},
  "click-dialog": {steps: 1, next: () => click(".ui-dialog-titlebar-close", "x", "button")},
  "click-dialog-2": {steps: 1, next: dialog},
  "click-link":
    {steps: 1, next: s => (shownLink(quoted(s)) ? click(shownLink(quoted(s))) : missing(quoted(s)))},
  "click-menu": {steps: 3, settle: 0.45, next: menu},
  "click-menu-2": {steps: 3, settle: 0.45, next: iconMenu},
  "click-pie": {steps: 2, settle: 1.6, next: pie},
  "click-tab": {
    steps: 1,
    next: s => click(withText("#area .ui-tabs-nav a", s.said.match(/(Tab #\d)/)[1]), undefined, "tab")
  },
  "click-tab-2": {steps: 3, next: tabs},
  "click-tab-2-easy": {steps: 1, next: tabs},
  "click-tab-2-medium": {steps: 2, next: tabs},
  "click-tab-2-hard": {steps: 6, next: tabs},
  "click-widget": {steps: 1, next: widget},
  "navigate-tree": {steps: 6, next: tree},
  "focus-text": {steps: 1, next: () => click("#tt", "textbox")},
  "focus-text-2": {
    steps: 1,
    next: s => {
      const n = +s.said.match(/the (\d)/)[1];
      return click(all("#area input")[n - 1], `${s.said.match(/\d\w\w/)[0]} textbox`);
    }
  },
});
})();
