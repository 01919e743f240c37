/* export.h - exports a run in other formats.
 *
 *   osworld   DIR/traj.jsonl, an object for each action; step_0.png, step_N_TIME.png after action N;
 *             instruction.txt, runtime.log; result.txt with a reward.  Actions are pyautogui calls.
 *   rl        DIR/trajectory.jsonl, an object for each reply that became a step: token ids of prompt and
 *             completion, which of them were sampled, log-probabilities before and after the logit mask,
 *             images and the spans of their rows among the prompt's ids; DIR/frames/.
 *   verl   DIR/outputs.jsonl, an object with the fields of verl's AgentLoopOutput for each part of the
 *             conversation that only grew; DIR/frames/.
 *   atif   DIR/trajectory.json in the Agent Trajectory Interchange Format; DIR/frames/.
 *
 * Files are 0600, folders 0700, and written atomically.
 */
#ifndef HOLORUN_REPLAY_EXPORT_H
#define HOLORUN_REPLAY_EXPORT_H

#include "replay/timeline.h"
#include "trace/story.h"

enum export_format { EXPORT_OSWORLD, EXPORT_RL, EXPORT_VERL, EXPORT_ATIF };

struct export_options {
    const struct record *record;
    const char *to; /* a folder */
    bool has_reward;
    double reward; /* of the whole run */
};

int export_run(enum export_format f, const struct export_options *o, struct err *e);

/* ---- shared by the formats: private to export*.c --------------------------------------------- */

typedef int export_fn(const struct export_options *o, const struct story *s, struct err *e);
export_fn export_osworld, export_rl, export_verl, export_atif;

/* Writes `object` as a line and frees it. */
int export_line(FILE *f, json_t *object, struct err *e);
/* Copies a screenshot to `name` below the folder. */
int export_frame(const struct export_options *o, int frame, const char *name, struct err *e);

/* An action as one line of pyautogui calls, or WAIT, DONE, FAIL; the caller frees it. */
char *export_python(const json_t *action);

#endif
