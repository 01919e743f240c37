/* export.h - a run in the layouts of others.
 *
 *   osworld   DIR/traj.jsonl, an object for each action; step_0.png, step_N_TIME.png after action N; instruction.txt,
 *             runtime.log; result.txt when a reward is given.  Actions are pyautogui calls.
 *   holo      DIR/events.jsonl, lines {"ts", "event": {"kind", ...}}: message, observation (the PNG in base64), policy,
 *             tool_result, error, answer.
 *   uitars    one JSON object: instruction, conversations of screenshots and "Thought: ...\nAction: ...".
 *   rl        DIR/trajectory.jsonl, an object for each reply that became a step: ids of prompt and completion, which of
 *             them were sampled, log-probabilities before and after the grammar's mask, images and where their rows lie
 *             among the prompt's ids; DIR/frames/.
 *
 * Files are 0600, folders 0700, and each file is in its place only when it is whole.
 */
#ifndef HOLORUN_REPLAY_EXPORT_H
#define HOLORUN_REPLAY_EXPORT_H

#include "replay/timeline.h"
#include "trace/story.h"

enum export_format { EXPORT_OSWORLD, EXPORT_HOLO, EXPORT_UITARS, EXPORT_RL };

struct export_options {
    const struct record *record;
    const char *to; /* a folder; of uitars a file */
    bool has_reward;
    double reward; /* of the whole run */
};

int export_run(enum export_format f, const struct export_options *o, struct err *e);

/* ---- shared by the formats: private to export*.c --------------------------------------------- */

typedef int export_fn(const struct export_options *o, const struct story *s, struct err *e);
export_fn export_osworld, export_holo, export_uitars, export_rl;

/* A line of JSON, or an error; drops `object`. */
int export_line(FILE *f, json_t *object, struct err *e);
/* Copies a screenshot to a path below the folder. */
int export_frame(const struct export_options *o, int frame, const char *name, struct err *e);
char *export_base64(const struct record *r, int frame); /* NULL: it is missing; the caller frees it */

/* An action as one line of pyautogui, or WAIT, DONE, FAIL; the caller frees it. */
char *export_python(const json_t *action);
/* ... as UI-TARS writes it; and its parts. */
char *export_uitars_action(const json_t *action, const char **type, json_t **inputs);

#endif
