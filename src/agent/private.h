/* private.h - the state of one run, split by lifetime, and the functions that its parts share.  Private
 * to agent/. */
#ifndef HOLORUN_AGENT_PRIVATE_H
#define HOLORUN_AGENT_PRIVATE_H

#include "agent/agent.h"
#include "agent/context.h"
#include "agent/deeds.h"
#include "llm/prompt.h"

enum { AGENT_TEXT_MAX = 4 << 20 };

enum attempt { ATTEMPT_FAILED = -1, ATTEMPT_READ, ATTEMPT_UNREADABLE, ATTEMPT_OUT_OF_TIME };

/* One reply of the model: the one at hand, or in oversee.c one of several. */
struct agent_reply {
    enum attempt status;
    struct step step; /* parsed */
    enum action_fault fault;
    struct err why; /* of the fault */
    char *text;     /* as history holds it */
    bool as_said;   /* the session holds byte for byte what history holds */
    struct generated raw;
    int resample; /* which sample of this step, from 0 */
    float temperature;
};

struct window_name { /* of the active window when the frame was taken */
    char title[256], class[128];
};

/* The step at hand; begin_step() (agent.c) resets all of it. */
struct agent_step {
    int number;
    struct image frame; /* what the model saw */
    int frame_number;
    struct window_name window;
    struct view_transform place; /* of the frame on the display */
    int from;                    /* the frame is the recorded one of that step; 0: it was captured */
    struct image decided_on;     /* the screen when an overseer decided; empty: the frame */
    enum agent_status budget;    /* the one that is used up, or RUNNING */
    bool beyond_budget;          /* a budget is used up: only an answer is wanted, and this is no step */
    double answer_until;         /* agent_seconds() at which the answer must be there; 0: not asked for yet */
    bool confirmed;              /* a person saw the step and let it run */
    bool edited;                 /* a person changed its actions */
    char *veto;                  /* why a person refused it, else NULL */
    bool cut_off;                /* a reply of this step was too long */
    int resamples;               /* the last sample's number */
    const char *begins;          /* text that the next reply has to begin with; NULL: none */
    int generated, forced;       /* tokens of all its replies */
    int proposed, accepted;      /* guesses of speculation */
    struct context_cost cost;
    struct agent_server server; /* of all its replies */
    double ms[PHASES];
};

/* The result of the last step: what the next prompt says about it, and how long the run has been without
 * progress. */
struct agent_outcome {
    char *lead;       /* text before the next screenshot: the task, then the result of the last step */
    char *signature;  /* the last step's actions in canonical form; NULL: none */
    char *result;     /* output or error of its tool */
    char *dropped;    /* further actions of its reply, which were not executed; NULL: none */
    const char *tool; /* the tool that it called */
    bool failed;      /* result is an error */
    bool is_stale;    /* ... because the screen had changed */
    bool expects_change;
    int repeats, errors; /* the same action without effect; failed steps in a row */
    int stale;           /* steps in a row that were not done because the screen had changed */
    int still;           /* actions that should have changed the screen and did not */
    double tiles;        /* share of the screen that it changed; -1: not known */
};

/* The state that rewinding to a step restores. */
struct agent_saved {
    int turn; /* of the conversation */
    struct agent_outcome outcome;
    struct window_name window;
};

struct history { /* [n] side by side; the last is the step at hand */
    struct history_step *steps;
    struct agent_saved *saved;
    int n, cap;
};

struct agent_run {
    struct context *context;
    char *task;       /* the current task as the model reads it, owned */
    int steps_before; /* number of the last step of the tasks before it */
    int turns_before; /* of the conversation, likewise */
    int64_t start;
    int64_t paused_ns;      /* the clock of the run stood still so long, for decisions of people */
    int64_t paused_seen_ns; /* ... of that, what the input monitor has been told to ignore */
    volatile int cancel;    /* stops generation: set by a person or by the clock */
    struct image before;    /* the screen before the last step's actions */
    struct window_name window_before;
    struct deeds deeds; /* of the current task */
    struct history history;
    int rewind_to;              /* the next step begins again at that one; 0: no */
    enum agent_status exceeded; /* the budget that an action would have exceeded, or RUNNING */
    int64_t *acted_at;          /* [max_rate] times of the last actions, a ring */

    int32_t *ids; /* the conversation as tokens.bin has it */
    int64_t n_ids;
    bool secret_spelled; /* the model has written a secret: no more tokens are recorded */

    struct image recent[VALIDATOR_FRAMES]; /* the last screenshots, newest at the end; empty: none yet */
    int validations;
    bool told_large; /* a picture was larger than the model reads, and the person got the warning */
};

struct agent {
    const struct agent_options *o;
    struct agent_result *r;
    struct agent_run run;
    struct agent_outcome outcome;
    struct agent_step step;
    struct agent_reply reply;
};

/* Three of the four parts of a step (the last is in agent.c); -1 when the run breaks off. */
int agent_observe(struct agent *a, struct err *e);
int agent_think(struct agent *a, struct err *e);
int agent_act(struct agent *a, struct err *e);
int agent_record_observation(struct agent *a, const struct settled *settled, struct err *e);
int agent_record_prompt(struct agent *a, struct err *e);
int agent_place(const struct agent *a, struct view_transform *out, struct err *e); /* of the frame, now */

/* Budgets (budget.c): the one that is used up before a step; whether an action fits (if not, outcome.result
 * says why); counting an action; telling the rules what was spent; naming the limit that ended the run. */
enum agent_status agent_budget(const struct agent *a);
bool agent_affords(struct agent *a, const struct action *action);
void agent_spend(struct agent *a, const struct action *action);
void agent_tell_spent(const struct agent *a);
void agent_name_limit(struct agent *a);

/* Samples one reply into a->reply and parses it; returns its status.  resample > 0 samples with other
 * random numbers. */
enum attempt agent_attempt(struct agent *a, int resample, float temperature, struct err *e);
/* Records that a->reply cannot be read. */
int agent_record_unreadable(struct agent *a, struct err *e);
void agent_reply_free(struct agent_reply *r);

/* Asks the overseer about a->reply until it is run, refused, or left (run.rewind_to is set).  -1 with e. */
int agent_oversee(struct agent *a, struct err *e);

/* Add to the list of actions (conclude.c): an action, with why if it was not done; one that a ruling stopped;
 * the first of a step that a person refused; one that failed; a reply with a mistake. */
void agent_deed(struct agent *a, const struct action *action, enum deed_end end, const char *why);
void agent_deed_ruled(struct agent *a, const struct action *action, const struct gate_ruling *r);
void agent_deed_vetoed(struct agent *a);
void agent_deed_failed(struct agent *a, const struct action *action, enum action_fault fault,
                       const char *why);
void agent_deed_mistaken(struct agent *a);
/* Notes whether the current screenshot shows a change after the actions of that step. */
void agent_deeds_judge(struct agent *a, int step, bool changed);
/* Sets the status of a run that ends with an answer, result->answer, and words the answer accordingly.
 * validated: a validator has accepted it.  -1 when the screen cannot be looked at. */
int agent_conclude(struct agent *a, const struct action *answer, bool validated, struct err *e);

/* Fills the result's texts about the actions of the current task. */
void agent_list_deeds(struct agent *a);

/* Verb and places of the reply at hand, with their probabilities. */
void agent_show_chosen(const struct agent *a, struct history_step *to);

/* History of the steps (history.c), kept only for an overseer. */
int history_find(const struct history *h, int number); /* index of a step that can be rewound to; -1 */
void history_free(struct history *h);
void agent_history_begin(struct agent *a);          /* the step at hand can be rewound to */
void agent_history_done(struct agent *a, bool ran); /* after its actions */
void agent_history_judged(struct agent *a);         /* its effect is known */
int agent_rewind(struct agent *a, struct err *e); /* in place of agent_observe: the screen of run.rewind_to */
void agent_outcome_free(struct agent_outcome *o);

/* The start event, and each reply with all that reproduces it (record.c). */
int agent_record_start(struct agent *a, const char *system, struct err *e);
int agent_record_reply(struct agent *a, const struct llm_request *r, const struct generated *g,
                       struct err *e);
/* Prints an error and records it. */
int agent_record_fault(struct agent *a, const char *kind, const char *code, const char *message,
                       struct err *e);

/* Whether an answer is accepted (validate.c); if not, outcome.result says why.  see: the frame of the
 * step at hand. */
void agent_validate_see(struct agent *a);
int agent_validate(struct agent *a, const char *answer, bool *accepted, struct err *e);

/* Corrects the positions of the elements that a->reply names (localize.c). */
int agent_localize(struct agent *a, struct err *e);

/* The assist (assist.c): may replace a->reply; corrects one of its actions; restores the names of secrets in
 * it; records a correction. */
struct assist_note;
int agent_correct_reply(struct agent *a, struct err *e);
int agent_correct_action(struct agent *a, int index, struct err *e);
void agent_restore_secrets(struct agent *a);
int agent_record_assist(struct agent *a, const struct assist_note *n, double ms, struct err *e);

/* Repeats the conversation of an earlier run (resume.c). */
int agent_resume(struct agent *a, const struct resume *p, struct err *e);

/* After a task has ended: whether there is a further one, which the run goes on with. */
bool agent_next_task(struct agent *a, struct err *e);

/* Whether an action failed because the screen is no longer the one that was observed (stale.c): then the rest
 * of the step is left out, the event "stale" is recorded, and outcome.result tells the model.  presses:
 * observed_presses() before the action.  -1 with e. */
int agent_check_stale(struct agent *a, int index, int presses, bool *stale, struct err *e);

/* Input that answered a question of ours does not count as use of the display. */
int agent_ignore_answers(struct agent *a, struct err *e);

double agent_seconds(const struct agent *a); /* since the start, without pauses */
/* Begins with this task: a->run.task and the lead of the first turn. */
void agent_set_task(struct agent *a, const char *task);
void agent_set_text(char **at, char *text); /* frees the old text, takes over the new one */

#endif
