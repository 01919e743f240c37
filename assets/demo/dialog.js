/* Generates dialogs and small forms.
 *
 * Parameters (lists are separated by `|`):
 *   kind     buttons | ticks | options | fields
 *   labels   button names, check boxes, options, or the labels of text fields
 *   buttons  the buttons below (for kind=buttons only the labels)
 *   title, text   a heading and a sentence, both optional
 *   on       numbers of the initially ticked boxes (of the chosen option), values: field contents
 *   seed     determines the layout
 * The state has members with the same names, and {pressed, focus}. The document's title reports the result:
 *     DIALOG pressed=Save;ticked=A,B;chosen=C;Name=Ana
 * Ticked, chosen and the field labels appear for the kinds that have them.
 */
"use strict";
const Dialog = (() => {
  /* Returns the style of a seed; higher `dense` makes a dialog smaller until it fits. */
  function style(s, dense) {
    const r = stream(s.seed, "dialog"), st = {
      band: r.pick([1, 1, 2, 3]), titleCol: r.from(1, 6), top: r.from(0, 2), col: r.from(1, 5),
      pitch: r.from(1, 3), shape: r.pick(["stack", "stack", "bar", "grid"]), wide: r.from(0, 4), equal: r.next() < 0.6,
      main: r.pick(["first", "none", "all"]), form: r.pick(["left", "left", "above"]), room: r.from(14, 18),
      side: r.pick(["left", "middle", "right"]), prose: true,
    };
    if (dense > 0) st.top = 0;
    if (dense > 1) st.pitch = Math.min(st.pitch, 2);
    if (dense > 2) st.band = 1;
    if (dense > 3) st.prose = false;
    if (dense > 4) st.pitch = 1;
    return st;
  }

  function heading(st, s) {
    if (!s.title) return [[], 1];
    if (st.band === 2) return [[Item.text(1, st.titleCol, s.title, "accent")], 3];
    return [Item.band(0, st.titleCol, s.title, st.band), st.band + 1];
  }

  /* Returns the sentence in lines of at most 30 characters, broken at spaces. */
  function sentence(st, s, row) {
    const out = [];
    let line = "";
    for (const word of st.prose ? (s.text || "").split(" ").filter(w => w) : []) {
      if (line && line.length + 1 + word.length > 30) { out.push(line); line = word; }
      else line = line ? line + " " + word : word;
    }
    if (line) out.push(line);
    return [out.slice(0, 2).map((t, k) => Item.text(row + k, 1, t)), row + (out.length ? Math.min(out.length, 2) + 1 : 0)];
  }

  const button = (st, s, row, col, len, label, k) =>
    Item.button(row, col, len, label, { pressed: s.pressed === label,
                look: st.main === "all" || (st.main === "first" && k === 0) ? "main" : "" });

  /* Places buttons below each other, in two columns, or side by side with line breaks. */
  function stack(st, s, labels, row) {
    const most = Math.max(...labels.map(l => l.length)) + st.wide;
    const pitch = Math.max(2, st.pitch);
    const col = { left: st.col + 1, middle: (COLS - most) >> 1, right: COLS - 2 - most }[st.side];
    return labels.map((l, k) => button(st, s, row + k * pitch, col, st.equal ? most : l.length + (st.wide & ~1), l, k));
  }
  function grid(st, s, labels, row) {
    const pitch = Math.max(2, st.pitch);
    return labels.map((l, k) => button(st, s, row + (k >> 1) * pitch, k & 1 ? 18 : 2, st.equal ? 12 : l.length, l, k));
  }
  function bar(st, s, labels, row) {
    const out = [], pitch = Math.max(2, st.pitch);
    const start = st.side === "left" ? 1 : st.col;
    let col = start;
    labels.forEach((l, k) => {
      const len = l.length + (st.wide > 2 ? 2 : 0);
      if (col + len + 2 > COLS && col > start) { col = start; row += pitch; }
      out.push(button(st, s, row, col + 1, len, l, k));
      col += len + 3;
    });
    return out;
  }

  /* Places the closing buttons of a form: side by side, or below each other if they do not fit. */
  function closing(st, s, row) {
    const labels = s.buttons || [], pad = st.wide & ~1;
    const total = labels.reduce((n, l) => n + l.length + pad + 3, -1);
    if (total > COLS) return labels.map((l, k) => button(st, s, row + 2 * k, st.col + 1, l.length + pad, l, k));
    const most = COLS - total - (total < COLS);
    let col = { left: Math.min(st.col, most), middle: (COLS - total) >> 1, right: most }[st.side];
    return labels.map((l, k) => {
      const b = button(st, s, row, col + 1, l.length + pad, l, k);
      col += l.length + pad + 3;
      return b;
    });
  }

  function marks(st, s, kind, row) {
    const out = s.labels.map((l, k) => Item.mark(kind, row + k * st.pitch, st.col, l, (s.on || []).includes(k)));
    return [out, row + (s.labels.length - 1) * st.pitch + 2];
  }

  function fields(st, s, row) {
    const out = [], longest = Math.max(...s.labels.map(l => l.length));
    const above = st.form === "above" || st.col + longest + 2 + 14 > COLS - 1;
    s.labels.forEach((l, k) => {
      const col = above ? st.col : st.col + longest + 2;
      out.push(...Item.field(row, st.col, above ? row + 1 : row, col, Math.min(st.room, COLS - 1 - col), l, (s.values || [])[k] || "",
                          { index: k, snug: above, focus: s.focus === k }));
      row += above ? 3 : Math.max(2, st.pitch);
    });
    return [out, row];
  }

  function compose(st, s) {
    const [head, r0] = heading(st, s), [prose, r1] = sentence(st, s, r0), row = r1 + st.top;
    const shape = s.labels.length > 5 && st.shape === "stack" ? "grid" : st.shape;
    if (s.kind === "buttons") return [...head, ...prose, ...{ stack, grid, bar }[shape](st, s, s.labels, row)];
    const [body, end] = s.kind === "fields" ? fields(st, s, row)
                                            : marks(st, s, s.kind === "ticks" ? "tick" : "option", row);
    return [...head, ...prose, ...body, ...closing(st, s, end)];
  }

  /* The last row reports a press. */
  function items(s) {
    let out, dense = 0;
    do out = compose(style(s, dense), s); while (dense++ < 5 && out.some(it => it.row > ROWS - 2));
    return s.pressed ? [...out, Item.text(ROWS - 1, 1, `Pressed ${s.pressed}`, "accent")] : out;
  }

  function press(s, it) {
    if (it.kind === "button") s.pressed = it.label;
    const k = s.labels.indexOf(it.label);
    if (it.kind === "tick") s.on = s.on.includes(k) ? s.on.filter(i => i !== k) : [...s.on, k];
    if (it.kind === "option") s.on = [k];
    s.focus = -1;
  }

  function verdict(s) {
    const out = [`pressed=${s.pressed}`], on = s.labels.filter((_, k) => s.on.includes(k));
    if (s.kind === "ticks") out.push(`ticked=${on.join(",")}`);
    if (s.kind === "options") out.push(`chosen=${on.join(",")}`);
    if (s.kind === "fields") s.labels.forEach((l, k) => out.push(`${l}=${s.values[k] || ""}`));
    return "DIALOG " + out.join(";");
  }

  function run(query) {
    const list = name => (query.get(name) || "").split("|").filter(x => x);
    const s = { seed: Number(query.get("seed") || 1), kind: query.get("kind") || "buttons",
                title: query.get("title") || "", text: query.get("text") || "",
                labels: list("labels"), buttons: list("buttons"), on: list("on").map(Number),
                values: (query.get("values") || "").split("|"), pressed: "", focus: -1 };
    if (!s.labels.length) s.labels = ["Save", "Discard", "Cancel"];
    const show = () => { Kiosk.draw(items(s), on); document.title = verdict(s); };
    const on = {
      press(it) { press(s, it); show(); },
      type(it, value) { s.values[it.index] = value; document.title = verdict(s); },
      focus(it) { s.focus = it.index; },
    };
    show();
  }

  return { items, run };
})();
