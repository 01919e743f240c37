/* private.h - the state of one run, split by lifetime, and the functions shared by the files of agent/.
 * Private to agent/.
 */
#pragma once

#include "agent/agent.h"
#include "agent/context.h"
#include "agent/deeds.h"
#include "llm/prompt.h"
#include "screen/exec.h"

enum { AGENT_TEXT_MAX = 4 << 20 };

enum attempt { ATTEMPT_FAILED = -1, ATTEMPT_READ, ATTEMPT_UNREADABLE, ATTEMPT_OUT_OF_TIME };

/* One reply of the model: the current one, or in oversee.c one of several. */
struct agent_reply {
    enum attempt status;
    struct step step; /* parsed */
    enum action_fault fault;
    struct err why; /* reason for the fault */
    char *text;     /* as kept in the history */
    bool as_said;   /* verbatim: the session holds the same bytes as the history */
    struct generated raw;
    int resample; /* index of the sample of this step, from 0 */
    float temperature;
};

struct window_name { /* active window when the frame was taken */
    char title[256], class[128];
};

/* The current step; begin_step() (agent.c) resets all of it. */
struct agent_step {
    int number;
    struct image frame; /* screenshot that the model read */
    int frame_number;
    struct window_name window;
    struct view_transform place; /* position of the frame on the display */
    int from;                    /* step whose recorded frame is used; 0: the frame was captured */
    struct image decided_on;     /* screen when an overseer decided; empty: use the frame */
    enum agent_status budget;    /* the budget that is used up, or RUNNING */
    bool beyond_budget;          /* a budget is used up: only an answer is requested; not a step */
    double answer_until;    /* agent_seconds() by which the answer must be complete; 0: not yet requested */
    bool confirmed;         /* the user saw the step and allowed it */
    bool edited;            /* the user changed its actions */
    char *veto;             /* reason for the user's refusal, or NULL */
    bool cut_off;           /* a reply of this step exceeded the token limit */
    int resamples;          /* number of the last sample */
    const char *begins;     /* forced prefix of the next reply; NULL: none */
    int generated, forced;  /* tokens of all replies of the step */
    int proposed, accepted; /* speculated tokens */
    struct context_cost cost;
    struct agent_server server; /* usage of all replies of the step */
    double ms[PHASES];
};

/* The result of the last step: the report for the next prompt, and counters of steps without progress. */
struct agent_outcome {
    char *lead;       /* text before the next screenshot: the task, then the result of the last step */
    char *signature;  /* actions of the last step in canonical form; NULL: none */
    char *result;     /* output or error of the tool */
    char *dropped;    /* further actions of the reply, which were not performed; NULL: none */
    const char *tool; /* the tool that the reply called */
    bool failed;      /* result is an error */
    bool is_stale;    /* ... because the screen had changed */
    bool expects_change;
    int repeats, errors; /* repetitions of an action without effect; consecutive failed steps */
    int stale;           /* consecutive steps not performed because the screen had changed */
    int still;           /* consecutive actions that should have changed the screen but did not */
    double tiles;        /* changed share of the screen, 0 to 1; -1: not known */
    /* the step was one press of a button, at this position of its screenshot */
    bool pressed;
    int pressed_x, pressed_y;
    bool may_load; /* an action of the step, not just typing, may have replaced what the screen shows */
};

/* The state restored by rewinding to a step. */
struct agent_saved {
    int turn; /* turn of the conversation */
    struct agent_outcome outcome;
    struct window_name window;
};

struct history { /* parallel arrays of n entries; the last is the current step */
    struct history_step *steps;
    struct agent_saved *saved;
    int n, cap;
};

struct agent_run {
    struct context *context;
    char *task;       /* the current task as the model reads it, owned */
    int steps_before; /* number of the last step of earlier tasks */
    int turns_before; /* conversation turns of earlier tasks */
    int64_t start;
    int64_t paused_ns;       /* clock pauses: decisions, user input, next task */
    int64_t paused_seen_ns;  /* ... part of it in which the monitor ignored input */
    volatile int cancel;     /* stops generation: set by a user or by the clock */
    struct image before;     /* the screen before the actions of the last step */
    struct emptied *emptied; /* earlier screens */
    struct window_name window_before;
    struct deeds deeds; /* actions of the current task */
    struct history history;
    int rewind_to;              /* step at which the next one starts again; 0: none */
    enum agent_status exceeded; /* budget that an action would have exceeded, or RUNNING */
    int64_t *acted_at;          /* [max_rate] times of the last actions, a ring buffer */

    int32_t *ids; /* the conversation as recorded in tokens.bin */
    int64_t n_ids;
    int64_t kept_least;  /* smallest `kept` of the replies of this turn */
    bool secret_spelled; /* the model has written a secret: no more tokens are recorded */
    double thought_ms;   /* time that the model needed for the last turn; 0: none yet */

    struct image recent[VALIDATOR_FRAMES]; /* last screenshots, the newest at the end; empty: none yet */
    int validations;
    bool told_large; /* the user was warned of a screenshot larger than the model reads */
};

struct early; /* early.c */

struct agent {
    struct early *early; /* the watch over the current turn; NULL: none */
    const struct agent_options *o;
    struct agent_result *r;
    struct agent_run run;
    struct agent_outcome outcome;
    struct agent_step step;
    struct agent_reply reply;
};

/* Resets a->step. budget: the one that is used up, or RUNNING. */
void agent_begin_step(struct agent *a, int number, enum agent_status budget);

/* Execute the parts of a step. Each returns -1 with e if the run breaks off.
 *
 *   agent_turn()    observes and thinks, again if the screen changes meanwhile (early.c):
 *     agent_wait_for_human()   until a user of the display is quiet
 *     agent_see()              captures the screen and judges the effect of the last step
 *     agent_show()             shows the screenshot to the model
 *     agent_think()            samples a reply
 *   agent_take()    lets the overseer decide about the reply, and keeps it
 *   agent_act()     performs its actions */
int agent_turn(struct agent *a, struct err *e);
int agent_wait_for_human(struct agent *a, struct err *e);
int agent_see(struct agent *a, const struct settled *settled, struct err *e);
int agent_show(struct agent *a, struct err *e);
int agent_think(struct agent *a, struct err *e);
int agent_take(struct agent *a, struct err *e);
int agent_act(struct agent *a, struct err *e);

/* Enclose the work of the model for a turn, during which the screen is watched (early.c). agent_unwatch()
 * returns -1 with e if the screen has changed since the screenshot; the turn is then cancelled. */
void agent_watch(struct agent *a);
int agent_unwatch(struct agent *a, struct err *e);

int agent_record_observation(struct agent *a, const struct settled *settled, struct err *e);
int agent_record_prompt(struct agent *a, struct err *e);
int agent_place(
    const struct agent *a, struct view_transform *out,
    struct err *e); /* Finds the current position of the frame on the display. Returns -1 with e. */

/* Budgets (budget.c). agent_budget() returns the budget that is used up before a step, or RUNNING;
 * agent_affords() returns whether an action fits (otherwise outcome.result gives the reason); agent_spend()
 * counts an action; agent_tell_spent() passes the totals to the rules; agent_name_limit() names the limit
 * that ended the run. */
enum agent_status agent_budget(const struct agent *a);
bool agent_affords(struct agent *a, const struct action *action);
void agent_spend(struct agent *a, const struct action *action);
void agent_tell_spent(const struct agent *a);
void agent_name_limit(struct agent *a);

/* Samples one reply into a->reply and parses it; returns its status. With resample > 0 the random numbers
 * differ. */
enum attempt agent_attempt(struct agent *a, int resample, float temperature, struct err *e);
/* Records that a->reply could not be parsed. */
int agent_record_unreadable(struct agent *a, struct err *e);
void agent_reply_free(struct agent_reply *r);

/* Asks the overseer about a->reply until it is run, refused, or abandoned (run.rewind_to is set). Returns -1
 * with e. */
int agent_oversee(struct agent *a, struct err *e);

/* Add to the list of actions (conclude.c): an action, with `why` if it was not performed; an action stopped
 * by a ruling; the first action of a step that the user refused; a failed action; a reply with a mistake. */
void agent_deed(struct agent *a, const struct action *action, enum deed_end end, const char *why);
void agent_deed_ruled(struct agent *a, const struct action *action, const struct gate_ruling *r);
void agent_deed_vetoed(struct agent *a);
void agent_deed_failed(struct agent *a, const struct action *action, enum action_fault fault,
                       const char *why);
void agent_deed_mistaken(struct agent *a);
/* Records for the actions of that step whether the current screenshot shows a change. */
void agent_deeds_judge(struct agent *a, int step, bool changed);
struct settle agent_patience(const struct agent *a); /* limits for settling within the time budget */
/* Sets the status of a run that ends with an answer, result->answer, and words the answer accordingly.
 * validated: a validator has accepted the answer. Returns -1 with e if the screen cannot be captured. */
int agent_conclude(struct agent *a, const struct action *answer, bool validated, struct err *e);

/* Fills the result's texts about the actions of the current task. */
void agent_list_deeds(struct agent *a);

/* Copies verb and positions of the current reply, with their probabilities. */
void agent_show_chosen(const struct agent *a, struct history_step *to);

/* History of the steps (history.c), kept only for an overseer. history_find() returns the index of a step to
 * which the run can rewind, or -1. */
int history_find(const struct history *h, int number); /* index of a step that can be rewound to; -1 */
void history_free(struct history *h);
void agent_history_begin(struct agent *a);          /* adds the current step */
void agent_history_done(struct agent *a, bool ran); /* after its actions */
void agent_history_judged(struct agent *a);         /* once its effect is known */
/* Loads the screen of run.rewind_to, instead of agent_see() and agent_show(). */
int agent_rewind(struct agent *a, struct err *e);
void agent_outcome_free(struct agent_outcome *o);
struct agent_outcome agent_outcome_copy(const struct agent_outcome *o);

/* Record the start event, and each reply with all data to reproduce it (record.c). */
int agent_record_start(struct agent *a, const char *system, struct err *e);
int agent_record_reply(struct agent *a, const struct llm_request *r, const struct generated *g,
                       struct err *e);
/* Prints an error and records it. */
int agent_record_fault(struct agent *a, const char *kind, const char *code, const char *message,
                       struct err *e);

/* agent_validate() sets *accepted to whether the validator accepts the answer (validate.c); otherwise
 * outcome.result gives the reason. agent_validate_see() adds the frame of the current step to the
 * screenshots for it. */
void agent_validate_see(struct agent *a);
int agent_validate(struct agent *a, const char *answer, bool *accepted, struct err *e);

/* elements.c: agent_tell_elements() appends the text of the elements to the lead of the next turn.
 * agent_resolve_refs() replaces refs in a->reply by places, and returns a bit for each action that had a ref;
 * a reply with a ref that cannot be used becomes a mistake, which the model reads about.
 * agent_without_elements() returns a lead without that text, for turns whose screenshot is no longer in view;
 * the caller frees it. */
void agent_tell_elements(struct agent *a);
unsigned agent_resolve_refs(struct agent *a);
char *agent_without_elements(const char *lead);

/* Corrects the positions of the elements that a->reply names (localize.c). */
int agent_localize(struct agent *a, struct err *e);

/* Calls to the assist (assist.c): agent_correct_reply() may replace a->reply; agent_correct_action()
 * corrects one of its actions; agent_restore_secrets() restores the names of secrets in it;
 * agent_record_assist() records a correction. */
struct assist_note;
int agent_correct_reply(struct agent *a, struct err *e);
int agent_correct_action(struct agent *a, int index, struct err *e);
void agent_restore_secrets(struct agent *a);
int agent_record_assist(struct agent *a, const struct assist_note *n, double ms, struct err *e);

/* Repeats the conversation of an earlier run (resume.c). */
int agent_resume(struct agent *a, const struct resume *p, struct err *e);

/* Returns whether there is a further task after one has ended; the run then continues with it. */
bool agent_next_task(struct agent *a, struct err *e);

/* Sets *stale to whether an action failed because the screen differs from the observed one (stale.c). In
 * that case the rest of the step is skipped, the event "stale" is recorded, and outcome.result informs the
 * model. presses: observed_presses() before the action. Returns -1 with e. */
int agent_check_stale(struct agent *a, int index, int presses, bool *stale, struct err *e);

/* Excludes input that answered a question of holorun from the detection of user input. */
int agent_ignore_answers(struct agent *a, struct err *e);

double agent_seconds(const struct agent *a); /* time since the start, without pauses */
/* Starts this task: sets a->run.task and the lead of the first turn. */
void agent_set_task(struct agent *a, const char *task);
void agent_set_text(char **at, char *text); /* frees the old text, takes ownership of the new one */
