/* The flight kiosk: search form, offers, passenger, confirmation.
 *
 * The state holds the visitor's input so far, {seed, page, from, to, date, name, offer, message, focus}.
 * `Flight.items(state)` is the page for it; each page is drawn from there, whether a visitor reached it or
 * the state was given. The seed determines the rest through the streams "layout" (order, spacing, wording),
 * "offers" (departure times) and "airlines" (carriers and prices). Tests and training repeat the "offers"
 * stream to know the times of a seed, so `times` documents its draws.
 *
 * Typed text is kept verbatim. After confirmation the document's title is
 *     BOOKED {from}>{to}|{date}|{time}|{name}
 */
"use strict";
const Flight = (() => {
  const DEMO_SEED = 1000102;
  const CARRIERS = ["Aerlin", "Northair", "Skyways", "Blue Jet", "Condora", "Meridian", "Swift", "Albatros",
                    "Coastal", "Polar Air", "Sunwing", "Delfin", "Astra", "Lakeside"];
  const WORDS = {
    title: ["Flights", "Book a flight", "Flight search", "Travel desk", "Where to?"],
    from: ["From", "Origin", "Leaving from", "Departure"],
    to: ["To", "Destination", "Going to", "Arrival"],
    date: ["Date", "Day", "Travel date", "When"],
    search: ["Search", "Find flights", "Show flights"],
    offers: ["Choose a flight", "Flights found", "Offers", "Pick a departure"],
    passenger: ["Passenger", "Your details", "Who is flying?", "Traveller"],
    name: ["Name", "Full name", "Passenger", "Traveller"],
    confirm: ["Confirm", "Book", "Book flight", "Confirm booking"],
    missing: ["Please fill in every field", "Some fields are empty", "All fields are needed"],
    noname: ["Please give a name", "The name is missing", "A name is needed"],
    booked: ["Booked", "Your flight is booked", "Thank you, booked"],
    note: ["", "", "All fields are needed.", "One way, one person.", "Prices in euro."],
  };

  /* Returns the departure times of a seed, h:mm. Draws: one for the number (4 or 5); then until there are
   * enough distinct ones: one draw "near or fresh" (after the first); near: which earlier time (one draw),
   * which shift (one draw); fresh: hour 5..22 (one), minute in fives (one). A last draw decides whether they
   * are sorted. */
  function times(seed) {
    const r = stream(seed, "offers"), n = r.from(4, 5), at = [];
    while (at.length < n) {
      let t;
      if (at.length && r.next() < 0.35) t = r.pick(at) + r.pick([5, -5, 10, 600, -600]);
      else t = r.from(5, 22) * 60 + r.from(0, 11) * 5;
      if (t >= 300 && t < 1435 && !at.includes(t)) at.push(t);
    }
    if (r.next() < 0.7) at.sort((a, b) => a - b);
    return at.map(t => `${Math.floor(t / 60)}:${String(t % 60).padStart(2, "0")}`);
  }

  function offers(s) {
    const r = stream(s.seed, "airlines");
    return times(s.seed).map((time, k) => {
      const carrier = r.pick(CARRIERS), price = String(r.from(39, 480));
      return { time, carrier: (s.carriers && s.carriers[k]) || carrier, price };
    });
  }

  /* Returns the style of a seed. The draws have the same order for all pages. */
  function style(seed) {
    const r = stream(seed, "layout"), st = { say: {} };
    for (const key of Object.keys(WORDS)) st.say[key] = r.pick(WORDS[key]);
    st.order = r.pick([["from", "to", "date"], ["from", "to", "date"], ["to", "from", "date"], ["date", "from", "to"],
                       ["from", "date", "to"], ["date", "to", "from"], ["to", "date", "from"]]);
    st.form = r.pick(["left", "left", "above", "pairs"]);
    st.band = r.pick([1, 1, 2, 3]);                /* rows of the title band; 2 = plain title, no band */
    st.titleCol = r.from(1, 6);
    st.pitch = r.from(2, 3);
    st.top = r.from(0, 1);
    st.col = r.from(1, 3);
    st.wide = r.from(12, 15);
    st.side = r.pick(["left", "field", "right"]);
    st.buttonWide = r.pick([0, 2, 4]);
    st.columns = r.pick([["time", "carrier", "price"], ["time", "carrier", "price"], ["carrier", "time", "price"],
                         ["time", "price", "carrier"], ["price", "carrier", "time"]]);
    st.quiet = r.next() < 0.3;                      /* buttons without the accent */
    return st;
  }

  const heading = (st, text) =>
    st.band === 2 ? [Item.text(1, st.titleCol, text, "accent")] : Item.band(0, st.titleCol, text, st.band);
  const below = st => (st.band === 1 ? 2 : st.band === 2 ? 3 : 4) + st.top;

  /* Places fields with their labels from row `row`; returns the items and the first free row. */
  function fields(st, s, keys, row, form) {
    const out = [], gap = keys.length > 2 && row > 3 ? 2 : st.pitch;
    const place = (key, at, r, col, len, snug) =>
      out.push(...Item.field(...at, r, col, len, st.say[key], s[key], { key, snug, focus: s.focus === key }));
    if (form === "left") {
      const labels = Math.max(...keys.map(k => st.say[k].length)), col = st.col + labels + 2;
      for (const key of keys) {
        place(key, [row, st.col], row, col, Math.min(st.wide + (key === "name" ? 6 : 0), COLS - 1 - col), false);
        row += gap;
      }
    } else {
      keys.forEach((key, k) => {
        const second = form === "pairs" && k === 1, col = second ? 17 : st.col, r = second ? row - 3 : row;
        place(key, [r, col], r + 1, col, form === "pairs" ? 12 : st.wide + 6, true);
        if (!second) row += 3;
      });
    }
    return [out, row];
  }

  function button(st, s, key, row, fieldCol) {
    const len = st.say[key].length + st.buttonWide;
    const col = { left: st.col + 1, field: Math.min(fieldCol, COLS - 2 - len), right: COLS - 3 - len }[st.side];
    return Item.button(row, col, len, st.say[key], { key, look: st.quiet ? "" : "main" });
  }

  function searchPage(st, s) {
    const [rows, free] = fields(st, s, st.order, below(st) - (st.form === "above" ? 1 : 0), st.form);
    const row = Math.min(free, 13), foot = row >= 13 ? 15 : row + 2;
    const out = [...heading(st, st.say.title), ...rows, button(st, s, "search", row, rows[1].col + 1)];
    if (s.message) out.push(Item.text(foot, st.col, s.message, "alarm"));
    else if (st.say.note && foot < 15) out.push(Item.text(foot, st.col, st.say.note));
    return out;
  }

  function offersPage(st, s) {
    const out = heading(st, st.say.offers), list = offers(s);
    let row = below(st);
    if (row + 2 * list.length <= 14) {
      out.push(Item.text(row, st.col, `${s.from} to ${s.to}`));
      row += 2;
    }
    list.forEach((o, k) => {
      let col = 2;
      const parts = st.columns.map(c => {
        const at = col;
        col += { time: 7, carrier: 14, price: 6 }[c];
        return [at, o[c]];
      });
      out.push({ kind: "offer", row: row + 2 * k, col: 2, len: 28, label: o.time, parts, index: k });
    });
    return out;
  }

  function passengerPage(st, s) {
    const o = offers(s)[s.offer], top = below(st);
    const [rows, free] = fields(st, s, ["name"], top + 4, st.form === "pairs" ? "left" : st.form);
    const out = [...heading(st, st.say.passenger),
                 Item.text(top, st.col, `${s.from} to ${s.to}`),
                 Item.text(top + 1, st.col, `${s.date} at ${o.time}`),
                 Item.text(top + 2, st.col, `${o.carrier}, ${o.price} euro`),
                 ...rows, button(st, s, "confirm", free, rows[1].col + 1)];
    if (s.message) out.push(Item.text(free + 2, st.col, s.message, "alarm"));
    return out;
  }

  function donePage(st, s) {
    const o = offers(s)[s.offer], top = below(st), gap = st.pitch - 1;
    return [...heading(st, st.say.booked),
            Item.text(top, st.col, `${s.from} to ${s.to}`),
            Item.text(top + gap, st.col, `${s.date} at ${o.time}`),
            Item.text(top + 2 * gap, st.col, `${o.carrier}, ${o.price} euro`),
            Item.text(top + 3 * gap, st.col, s.name)];
  }

  const PAGES = { search: searchPage, offers: offersPage, passenger: passengerPage, done: donePage };
  const items = s => PAGES[s.page](style(s.seed), s);

  /* Changes the state for a press. */
  function press(s, it) {
    const say = style(s.seed).say;
    s.focus = "";
    s.message = "";
    if (it.kind === "offer") { s.offer = it.index; s.page = "passenger"; return; }
    if (it.key === "search") {
      if (s.from.trim() && s.to.trim() && s.date.trim()) s.page = "offers";
      else s.message = say.missing;
    } else if (it.key === "confirm") {
      if (s.name.trim()) s.page = "done";
      else s.message = say.noname;
    }
  }

  function run(query) {
    const s = { seed: Number(query.get("seed") || DEMO_SEED), page: "search",
                from: "", to: "", date: "", name: "", offer: -1, message: "", focus: "" };
    const show = () => {
      Kiosk.draw(items(s), on);
      if (s.page === "done")
        document.title = `BOOKED ${s.from}>${s.to}|${s.date}|${times(s.seed)[s.offer]}|${s.name}`;
    };
    const on = {
      press(it) { press(s, it); show(); },
      type(it, value) { s[it.key] = value; },
      focus(it) { s.focus = it.key; },
    };
    show();
  }

  return { items, times, offers, style, run };
})();
