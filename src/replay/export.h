/* export.h - exports a run in the formats of other programs.
 *
 *   osworld   DIR/traj.jsonl, one object per action; step_0.png, step_N_TIME.png after action N;
 *             instruction.txt, runtime.log; result.txt if there is a reward. Actions are pyautogui calls.
 *   rl        DIR/trajectory.jsonl, one object per reply that became a step: token ids of prompt and
 *             completion, which of them were sampled, log-probabilities before and after the logit mask,
 *             images and the ranges of their rows in the prompt's ids; DIR/frames/.
 *   verl      DIR/outputs.jsonl, one object with the fields of verl's AgentLoopOutput for each part of the
 *             conversation in which text was only appended; DIR/frames/.
 *   atif      DIR/trajectory.json in the Agent Trajectory Interchange Format; DIR/frames/.
 *
 * Files have mode 0600 and are written atomically; directories have mode 0700. */
#pragma once

#include "replay/timeline.h"
#include "trace/story.h"

enum export_format { EXPORT_OSWORLD, EXPORT_RL, EXPORT_VERL, EXPORT_ATIF };

struct export_options {
    const struct record *record;
    const char *to; /* output directory */
    bool has_reward;
    double reward; /* reward of the whole run */
};

int export_run(enum export_format f, const struct export_options *o, struct err *e);

/* ---- shared by the formats: private to export*.c --------------------------------------------- */

typedef int export_fn(const struct export_options *o, const struct story *s, struct err *e);
export_fn export_osworld, export_rl, export_verl, export_atif;

/* Writes `object` as one line and frees it. */
int export_line(FILE *f, json_t *object, struct err *e);
/* Copies a screenshot to `name` in the output directory. */
int export_frame(const struct export_options *o, int frame, const char *name, struct err *e);

/* Returns an action as one line of pyautogui calls, or WAIT, DONE, FAIL. The caller frees it. */
char *export_python(const json_t *action);
