/* Oracles of the mail pages: answer, forward, delete or mark the mail of one sender.
 *
 * Plain pages state the task in a fixed sentence; pages with sentences by people have the meaning in fields beside the
 * sentence. The inbox is scrolled until the mail is visible; icons in its row need no opening.
 */
(function() {
"use strict";
const {all, one, text, visible, click, fill, reach, missing} = oracles;

function wish(s) {
  const said = core.getUtterance(), f = said.fields;
  if (f) return {name: f.by, act: f.task || "forward", to: f.to, message: f.message};
  const name = s.said.match(/email by (.*?) and /)[1];
  const reply = s.said.match(/with the text "(.*)"\.$/),
        forward = s.said.match(/forward that email to (.*)\.$/);
  return {
    name,
    act: reply             ? "reply" :
      forward              ? "forward" :
      /trash/.test(s.said) ? "delete" :
                             "star",
    to: forward && forward[1],
    message: reply && reply[1]
  };
}

const thread = name => all("#main .email-thread").find(e => text(e.querySelector(".email-sender")) === name);

function inbox(w) {
  const row = thread(w.name);
  if (!row) return missing(w.name);
  const icon = {delete: "trash", star: "star"}[w.act];
  if (icon)
    return reach(row.querySelector("." + icon), "#main", e => click(e, `${icon} of ${w.name}`, "icon"));
  return reach(row.querySelector(".email-sender"), "#main", e => click(e, w.name, "mail"));
}

function opened(w) {
  if (text(one("#email .email-sender")) !== w.name) return click("#close-email", "back", "icon");
  const name = {reply: "Reply", forward: "Forward", delete: "trash", star: "star"}[w.act];
  const selector =
    {reply: ".email-reply .icon", forward: ".email-forward .icon", delete: ".trash", star: ".star"}[w.act];
  return click(`#email ${selector}`, name, "icon");
}

function mail(s) {
  const w = wish(s), reply = one("#reply"), forward = one("#forward");
  if (reply)
    return w.act !== "reply" ? click("#close-reply", "back", "icon") :
                               fill("#reply-text", w.message, "text") || click("#send-reply", "send", "icon");
  if (forward)
    return w.act !== "forward" ?
      click("#close-forward", "back", "icon") :
      fill(".forward-sender", w.to, "to") || click("#send-forward", "send", "icon");
  if (one("#email")) return opened(w);
  if (visible(one("#search-cancel"))) return click("#search-cancel", "back", "icon");
  return inbox(w);
}

const few = {
  steps: 5,
  next: mail
},
      many = {
        steps: 12,
        next: mail
      };
oracles.add({
  "email-inbox": many,
  "email-inbox-nl-turk": many,
  "email-inbox-delete": few,
  "email-inbox-forward": few,
  "email-inbox-forward-nl": few,
  "email-inbox-forward-nl-turk": many,
  "email-inbox-important": few,
  "email-inbox-noscroll": few,
  "email-inbox-reply": few,
  "email-inbox-star-reply": few,
});
})();
