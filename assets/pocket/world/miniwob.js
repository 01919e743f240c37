/* Goes into every page of MiniWoB++ behind its own scripts: begins it anew in place, with any seed.
 *
 * begin(seed, family, mess): the page's problem for this seed, drawn in `family` ("" as the page says), its
 * clock stopped, and with `mess` > 0 its fields filled and boxes ticked by chance, as they are in the middle
 * of an episode.  Gives what the page asks for.  Seeds from 1000000 up are sealed.
 */
(function() {
'use strict';
const style = document.createElement('style'), face = document.createElement('style');
style.textContent =
    'html { overflow: hidden } #reward-display, #click-canvas, #attention-canvas { display: none !important }';
document.head.append(style, face);
const timers = window.setTimeout;

function chance(seed) {
  let s = (seed * 2654435761) >>> 0;
  return () => ((s = (s * 1664525 + 1013904223) >>> 0) / 4294967296);
}

const WORDS =
    'amber Kofi 42 delta grue XZ9 blum.Tor river 07:30 a@b.co quince Yew pack lime, Jove 1/2 sift hex mind'
        .split(' ');

function messUp(rnd, share) {
  for (const e of document.querySelectorAll('#area input, #area textarea, #area select')) {
    if (rnd() > share || e.disabled) continue;
    if (e.type === 'checkbox' || e.type === 'radio')
      e.checked = !e.checked;
    else if (e.tagName === 'SELECT')
      e.selectedIndex = Math.floor(rnd() * e.options.length);
    else if (/^(text|password|search|tel|email|textarea)$/.test(e.type)) {
      let text = '';
      for (let k = 0; k < 1 + rnd() * 3; k++)
        text += (text && rnd() < 0.7 ? ' ' : '') + WORDS[Math.floor(rnd() * WORDS.length)];
      e.value = text;
    }
  }
  const all = document.querySelectorAll('#area input, #area textarea, #area button');
  if (all.length && rnd() < 0.3) all[Math.floor(rnd() * all.length)].focus({preventScroll: true});
  for (const e of document.querySelectorAll('#area div, #area select'))
    if (e.scrollHeight > e.clientHeight + 8 && /auto|scroll/.test(getComputedStyle(e).overflowY) &&
        rnd() < 0.5)
      e.scrollTop = rnd() * (e.scrollHeight - e.clientHeight);
}

window.begin = function(seed, family, mess) {
  if (seed >= 1000000) throw new Error('sealed seed ' + seed);
  face.textContent = family ? `* { font-family: "${family}" !important }` : '';
  if (document.activeElement && document.activeElement !== document.body) document.activeElement.blur();
  core.EPISODE_MAX_TIME = 3600000;
  Math.seedrandom(String(seed));
  core.startEpisodeReal();
  if (core.EP_TIMER) clearTimeout(core.EP_TIMER);
  if (mess) messUp(chance(seed), mess);
  const said = core.getUtterance();
  return (typeof said === 'string' ? said : said.utterance).replace(/\s+/g, ' ').trim();
};
})();
