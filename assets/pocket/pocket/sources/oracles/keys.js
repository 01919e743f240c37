/* Oracles of pages with keyboard shortcuts: copying, a text editor, a terminal, completion.
 *
 * The content of the clipboard is not on the page; it follows from the earlier actions, which a model receives too.
 */
(function() {
"use strict";
const {all, one, text, visible, click, write, append, key, submit} = oracles;

/* ---- copying ---- */

function copyFrom(source, s, label) {
  const field = one("#answer-input"), wanted = source.value;
  if (field.value === wanted) return submit();
  const copied = s.history.some(a => a.keys === "ctrl+c"), active = document.activeElement;
  if (copied) return active === field ? key("ctrl+v") : click(field, "text field");
  if (active !== source) return click(source, label, "field");
  const all = source.selectionStart === 0 && source.selectionEnd === wanted.length;
  return all ? key("ctrl+c") : key("ctrl+a");
}

/* ---- an editor ---- */

const TOOLS = {
  bold: "bold",
  italics: "italic",
  underlined: "underline",
  colored: "color"
};
const COLOURS = {
  red: "#e60000",
  orange: "#ff9900",
  yellow: "#ffff00",
  green: "#008a00",
  blue: "#0066cc",
  purple: "#9933ff"
};

/* Returns whether exactly these words have the style. */
function styled(words, style, value) {
  const parts = editor.getContents().ops.filter(p => p.insert.trim());
  return parts.every(p => {
    const has = p.attributes && p.attributes[style] === value && Object.keys(p.attributes).length === 1;
    return (p.insert.replace(/\s/g, "") === words.replace(/\s/g, "")) === !!has;
  }) &&
    parts.some(p => p.attributes);
}

function edit(s) {
  const [, single, style] =
    s.said.match(/(?:give the text (.*)|(?:give|make) everything) the (?:style|color) (\w+)/);
  const colour = COLOURS[style], tool = colour ? "color" : TOOLS[style], value = colour || true;
  const whole = editor.getText().trim(), words = single || whole;
  if (styled(words, tool, value)) return submit();
  const panel = one(".ql-color-picker");
  if (panel && panel.classList.contains("ql-expanded"))
    return click(`.ql-picker-item[data-value="${colour}"]`, style, "colour");
  if (oracles.marked() === words.replace(/\s/g, ""))
    return colour ? click(".ql-picker-label", "color", "button") : click(`button.ql-${tool}`, tool, "button");
  if (!single)
    return one(".ql-editor") === document.activeElement ? key("ctrl+a") :
                                                          click(".ql-editor", "editor", "field");
  const at = whole.search(new RegExp(`(^|\\s)${single.replace(/[.,]/g, "\\$&")}(\\s|$)`));
  const from = at + (whole[at] === " " ? 1 : 0);
  return oracles.mark(one(".ql-editor"), single, from, from + single.length);
}

/* ---- a terminal ---- */

/* Typed text appears in a line of the page; a hidden field below it receives the keys. */
function terminal(s) {
  const typed = one("#active-input").textContent, lines = all(".terminal-output").map(text);
  const ending = s.said.match(/extension \.(\S+)$/),
        listed = all(".command:not(#active-input)").some(e => text(e) === "ls");
  const isListing = line => line.split(" ").every(f => currentFiles.includes(f));
  const files = listed ? [...lines].reverse().find(isListing) : "";
  const fits = f => (ending ? f.endsWith("." + ending[1]) : !f.includes("."));
  const sure = f => fits(f) && (!ending || f.indexOf(ending[1]) + ending[1].length === f.length);
  const names = (files || "").split(" "), file = names.find(sure) || names.find(fits);
  const command = listed ? `rm ${file}` : "ls";
  if (typed === command) return key("enter");
  return typed === "" ? append("#terminal", command, "terminal") : key("backspace");
}

/* ---- completion ---- */

function complete(s) {
  const [, start, end] = s.said.match(/^Enter an item that starts with "(.*?)"(?: and ends with "(.*)")?\.$/);
  const fits = t => t.startsWith(start) && (!end || t.endsWith(end)), field = one("#tags");
  const offers = all(".ui-autocomplete .ui-menu-item").filter(visible),
        offer = offers.find(e => fits(text(e)));
  if (offer) return click(offer, text(offer), "menu item");
  if (fits(field.value) && ITEMS.includes(field.value)) return submit();
  if (field.value !== start) return write(field, start, "Tags");
  return write(field, ITEMS.find(fits), "Tags");
}

/* ---- colours ---- */

oracles.add({
  "copy-paste": {steps: 6, next: s => copyFrom(one("#to-copy"), s, "text area")},
  "copy-paste-2": {
    steps: 6,
    next: s => {
      const n = s.said.match(/(\d)\w\w text area/);
      return copyFrom(one(`#text-${n[1]}`), s, n[0]);
    }
  },
  "text-editor": {steps: 5, settle: 0.1, next: edit},
  "terminal": {steps: 4, settle: 0.3, next: terminal},
  "use-autocomplete": {steps: 4, settle: 0.45, next: complete},
});
})();
