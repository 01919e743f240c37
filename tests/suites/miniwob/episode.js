/* One episode of a MiniWoB++ page, told in the window's title.
 *
 * Goes into every page behind its own scripts.  The seed of the URL decides what is asked (the pages draw everything from
 * Math.random), the episode begins by itself, its clock is the test's and not the page's ten seconds, and the title says
 *     MINIWOB click-button reward=0 done=0 utterance=Click on the "ok" button.
 * When the episode is over its title stays, and the cover that would start the next one does nothing:
 *     MINIWOB click-button reward=1 done=1 outcome=full utterance=Click on the "ok" button.
 * Reward is the raw one, without a deduction for time.  The outcome is full at 1, partial between 0 and that, else failed.
 * `beginEpisode(seed)` begins another one in the same document, which costs a tenth of loading it; tests never call it.
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

  /* Pages that measure a distance in whole pixels reach 1 only by luck: there a point beside the best one is as good. */
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

  /* Only what the published size of 160 x 210 shows: not the counters beside it. */
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
