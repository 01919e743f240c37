/* Oracles of pages with results, posts, products, and lists that scroll.
 *
 * The target is looked up in the document but used only while it is visible: the view is scrolled first, and pages of
 * results are turned in sequence.
 */
(function() {
"use strict";
const {
  all, one, text, clean, withText, visible, click, write, reach, scroll, missing, first, submit
} = oracles;

/* ---- turning pages ---- */

function phoneBook(s) {
  const [, name, what] = s.said.match(/^Find (.*) in the contact book and click on their (\w+)/);
  if (text(one("#contact .name")) === name) return click(`#contact .${what}`, what);
  const back = s.last && s.last.label === "<", ways = all("#pagination a").filter(visible);
  const forth = ways.find(e => text(e) === ">"), other = ways.find(e => text(e) === "<");
  return click((!back && forth) || other || forth);
}

function search(s) {
  const [, words, n] = s.said.match(/enter "(.*)" and press "Search", then find and click the (\d+)/);
  if (one("#search-text").value !== words) return write("#search-text", words, "search");
  const results = all("#page-content a"), page = Math.ceil(n / 3);
  if (!results.length || results[0].dataset.result === "-1") return click("#search");
  const found = results.find(e => +e.dataset.result === n - 1);
  return found ? click(found) : click(withText("#pagination a", String(page)));
}

/* ---- posts ---- */

const posts = user => all("#area .media").filter(m => text(m.querySelector(".username")) === user);
const author = e => text(e.closest(".media").querySelector(".username"));
const icon = (post, name) =>
  reach(post.querySelector("." + name), "#area", e => click(e, `${name} of ${author(e)}`, "icon"));

function post(s) {
  const [, user, action] = s.said.match(/^For the user (.*), click on the "(.*)" button\.$/),
                 mine = posts(user);
  if (!mine.length) return missing(user);
  if (["Reply", "Retweet", "Like"].includes(action)) {
    const near = mine.find(m => visible(m.querySelector("." + action.toLowerCase()))) || mine[0];
    return icon(near, action.toLowerCase());
  }
  const open = mine.find(m => !m.querySelector("ul").classList.contains("hide"));
  if (!open) return icon(mine.find(m => visible(m.querySelector(".more"))) || mine[0], "more");
  const entry =
    all("li", open)
      .find(e => text(e).startsWith(action) && !(action === "Mute" && e.className !== "menu-user"));
  return reach(entry, "#area", e => click(e, text(e), "menu item"));
}

/* Selects `amount` posts of the user, or all, and no others. */
function manyPosts(s) {
  const [, action, amount, user] =
    s.said.match(/^Click the "(.*)" button on (?:all|(\d+)) posts? by (.*) and then/);
  const name = action.toLowerCase(), mine = posts(user);
  const on = all("#area .controls .active"),
        wrong = on.find(e => !mine.some(m => m.contains(e)) || !e.classList.contains(name));
  if (wrong) return reach(wrong, "#area", e => click(e, e.classList[0], "icon"));
  const wanted = amount ? +amount : mine.length;
  if (on.length > wanted) return reach(on[on.length - 1], "#area", e => click(e, name, "icon"));
  if (on.length < wanted)
    return icon(mine.find(m => !m.querySelector("." + name).classList.contains("active")), name);
  return reach(one("#submitRow button"), "#area", e => click(e));
}

/* ---- buying ---- */

function ticket(s) {
  const wish = s.said.match(/with the (.*)\.$/)[1], flights = all(".flight");
  const price = f => +f.querySelector(".buy-ticket").dataset.price;
  const time = f => +f.querySelector(".time-duration").dataset.duration;
  const least = {
    "cheapest cost": price,
    "shortest duration": time,
    "longest duration": f => -time(f),
    "most expensive cost": f => -price(f)
  }[wish];
  return click(flights.reduce((a, b) => (least(b) < least(a) ? b : a)).querySelector("button"));
}

/* Takes one of each named item, or a number of one kind: more of the first item of that kind. */
function food(s) {
  const names = s.said.match(/^Order one of each item: (.*)$/),
        kind = s.said.match(/^Order (\d) items that are (.*)$/);
  const items = all(".food-item").map(e => ({
                                        e,
                                        name: text(e.querySelector(".item-name")),
                                        n: +e.dataset.quantity,
                                        kinds: all("img", e).map(i => i.alt)
                                      }));
  const wanted = names ? names[1].split(", ").map(clean) : [],
        right = items.filter(i => i.kinds.includes(kind && kind[2]));
  const due = i => (names ? +wanted.includes(i.name) : i === right[0] ? +kind[1] : 0);
  const wrong = items.find(i => i.n > due(i)) || items.find(i => i.n < due(i));
  if (!wrong) return reach(one("#submit-order button"), "#area", e => click(e));
  const more = wrong.n < due(wrong);
  return reach(
    wrong.e.querySelector(more ? ".add" : ".remove"), "#area",
    e => click(e, `${more ? "+" : "-"} for ${wrong.name}`, "button"));
}

/* ---- a day with its hours ---- */

const HOURS = {
  "8AM and 12PM": 16,
  "12PM and 4PM": 24,
  "4PM and 8PM": 32
};
const LENGTHS = {
  "30 mins": 1,
  "0.5 hours": 1,
  "60 mins": 2,
  "1 hour": 2,
  "90 mins": 3,
  "1.5 hours": 3
};

/* Returns the half hours from `start` at which an event of `length` half hours fits. */
function gaps(start, length) {
  const taken = all(".event:not(#newEvent)").map(e => e.getBoundingClientRect());
  const clear = k => {
    const r = one(`#hh-${k}`).getBoundingClientRect(), y = r.top + r.height / 2;
    return !taken.some(t => y > t.top - 1 && y < t.bottom + 1);
  };
  const begins = [...Array(9 - length).keys()].map(i => start + i);
  return begins.filter(k => [...Array(length).keys()].every(i => clear(k + i)));
}

/* Drags the event from its first to its last half hour, at a position where all of it is visible. */
function calendar(s) {
  const [, time, name, when] = s.said.match(/^Create a (.*) event named "(.*)", between (.*)\.$/),
                       n = LENGTHS[time];
  const field = one("#event-name");
  if (field && field.value !== name) return reach(field, "#area", e => write(e, name, "Event name"));
  if (field) return reach(one("#controls .create"), "#area", e => click(e));
  const cells = gaps(HOURS[when], n).map(k => [one(`#hh-${k}`), one(`#hh-${k + n - 1}`)]);
  const ends = ([top, last]) => [top.getBoundingClientRect(), last.getBoundingClientRect()];
  const view = one("#area").getBoundingClientRect(), bottom = Math.min(view.bottom, innerHeight);
  const seen = cells.find(c => ends(c)[0].top >= view.top && ends(c)[1].bottom <= bottom);
  if (!seen) return scroll("#area", ends(cells[0])[0].top < view.top ? "up" : "down", 1, "calendar");
  const [a, b] = ends(seen), from = oracles.target(seen[0], "half hour", "cell");
  return oracles.drag({...from, y: a.top + 6}, oracles.spot(from.x, b.top + 14, "half hour", "cell"));
}

oracles.add({
  "phone-book": {steps: 6, next: phoneBook},
  "search-engine": {steps: 4, next: search},
  "social-media": {steps: 9, next: post},
  "social-media-all": {steps: 22, next: manyPosts},
  "social-media-some": {steps: 22, next: manyPosts},
  "buy-ticket": {steps: 1, next: ticket},
  "order-food": {steps: 14, next: food},
  "daily-calendar": {steps: 12, next: calendar},
});
})();
