/* One episode of a MiniWoB++ page, told in the window's title.
 *
 * Goes into every page behind its own scripts.  The seed of the URL decides what is asked (the pages draw everything from
 * Math.random), the episode begins by itself, its clock is the test's and not the page's ten seconds, and the title says
 *     MINIWOB click-button reward=0 done=0 utterance=Click on the "ok" button.
 * When the episode is over its title stays, and the cover that would start the next one does nothing.  Reward is the raw one:
 * without a deduction for time.  `beginEpisode(seed)` begins another one in the same document, which costs a tenth of loading
 * it; tests never call it.
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

  let asked = "";
  function tell() {
    document.title = `MINIWOB ${task} reward=${WOB_RAW_REWARD_GLOBAL} done=${over ? 1 : 0} utterance=${asked}`;
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
