/* Runs one episode of a MiniWoB++ page and reports it in the window's title.
 *
 * This script is added to every page after the page's own scripts.  The seed in the URL determines the task (the pages use
 * Math.random for everything), the episode starts by itself, the test's time limit replaces the page's ten seconds, and the
 * title is
 *     MINIWOB click-button reward=0 done=0 utterance=Click on the "ok" button.
 * At the end of the episode the title stays, and the cover that would start the next one does nothing:
 *     MINIWOB click-button reward=1 done=1 outcome=full utterance=Click on the "ok" button.
 * The reward is the raw one, without a deduction for time.  The outcome is full at 1, partial above 0, else failed.
 * `beginEpisode(seed)` starts another episode in the same document, ten times faster than loading it; tests do not use it.
 */
(function () {
  "use strict";
  const query = new URLSearchParams(location.search), seed = query.get("seed") || "1000000";
  const task = location.pathname.replace(/.*\/|\.html$/g, "");
  let over = false;

  function utterance() {
    const said = core.getUtterance();
    return (typeof said === "string" ? said : said.utterance).replace(/\s+/g, " ").trim();
  }

  /* Pages that measure a distance in whole pixels reach 1 only by chance, so a neighbouring point is accepted as well. */
  const FULL = { "circle-center": 0.9, "find-midpoint": 0.9, "right-angle": 0.9, "bisect-angle": 0.9, "use-colorwheel-2": 0.99 };

  let asked = "";
  function tell() {
    const reward = WOB_RAW_REWARD_GLOBAL, outcome = reward >= (FULL[task] || 1) ? "full" : reward > 0 ? "partial" : "failed";
    document.title = `MINIWOB ${task} reward=${reward} done=${over ? `1 outcome=${outcome}` : 0} utterance=${asked}`;
  }

  const end = core.endEpisode;
  core.endEpisode = function (reward, proportional, reason) {
    if (over) return;
    end(reward, proportional, reason);
    if (!WOB_DONE_GLOBAL) return;
    over = true;
    core.cover_div.onclick = null;
    core.cover_div.innerHTML = "DONE";
    tell();
  };

  /* Shows only the published area of 160 x 210, without the counters beside it. */
  const style = document.createElement("style");
  style.textContent = "html { overflow: hidden } #reward-display, #click-canvas { display: none !important }";
  document.head.append(style);

  window.beginEpisode = function (number) {
    over = false;
    Math.seedrandom(String(number));
    core.startEpisodeReal();
    asked = utterance();
    tell();
  };

  Math.seedrandom(seed);
  window.addEventListener("load", () => {
    core.EPISODE_MAX_TIME = 3600000;
    beginEpisode(seed);
  });
})();
