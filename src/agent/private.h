/* private.h - one run of the loop: what its parts share.  Private to agent/. */
#ifndef HOLORUN_AGENT_PRIVATE_H
#define HOLORUN_AGENT_PRIVATE_H

#include "agent/agent.h"
#include "agent/context.h"
#include "agent/history.h"
#include "agent/prompt.h"

enum { AGENT_TEXT_MAX = 4 << 20 };

struct agent {
    const struct agent_options *o;
    struct agent_result *r;
    struct context *context;
    int64_t start;
    volatile int cancel; /* generation stops when it is set: by a person or by the clock */

    /* the step at hand */
    int number;
    struct image frame;
    int frame_number;
    char title[256], class[128]; /* of the active window when it was taken */
    struct view_transform place;     /* of the frame on the display; decided on */
    enum agent_status budget;    /* the one that is used up, or RUNNING */
    enum agent_status spent;     /* the one that an action would have gone beyond, or RUNNING */
    bool beyond;                 /* it is used up: only an answer is asked for, and that is no step */
    bool seen;                   /* a person has looked at it and let it run */
    struct step step;
    enum action_fault fault; /* of reading the reply */
    struct err unread;       /* what was wrong with it */
    bool longer;             /* a reply of this step was cut off */
    char *reply;             /* as history holds it */
    struct context_cost cost;
    double ms[PHASES];
    int generated, forced;
    bool as_said;               /* the reply in the session is byte for byte what history holds */
    struct generated raw_reply; /* the reply as it came */
    int resample, resamples;    /* its throw of the dice; the last one of this step */
    float temperature;

    /* what an overseer decided about the step (oversee.c) */
    struct history history;
    int from, back;       /* the frame is that of this step; the next step begins again there; 0: no */
    struct image at_hand; /* the screen when it was decided; empty: the frame */
    char *veto;           /* why it is not to be done, else NULL */
    bool edited;
    int64_t waited; /* nanoseconds that the run stood still for a decision */
    int64_t heard;  /* of them, when what a person did was last forgotten */

    /* the conversation as tokens.bin has it: of the next reply only what is new goes there */
    int32_t *kept;
    int64_t n_kept;
    bool spelled; /* the conversation has a secret in it: the model has seen it somewhere */

    /* for a validator */
    struct image recent[VALIDATOR_FRAMES]; /* what was seen last, the newest at the end; empty: nothing yet */
    int validations;                       /* answers that were looked at */

    /* from one step to the next */
    char *lead;          /* opens the next turn: the task, then what came of the last step */
    struct image before; /* the screen before the last step's actions */
    char *signature;     /* the last step's actions in canonical form */
    const char *tool;    /* what the last step called */
    char *result;        /* what it gave, or its error */
    bool failed;         /* it is an error */
    bool expects_change;
    int repeats, errors;
    int still;         /* actions that should have changed the screen and did not */
    int64_t *acted_at; /* [max_rate] when the last actions were done, a ring */
    double tiles;      /* that the last step changed; -1: not known */
};

/* Three of the four parts of a step (the last is in agent.c); -1 when the run breaks off. */
int agent_observe(struct agent *a, struct err *e);
int agent_think(struct agent *a, struct err *e);
int agent_act(struct agent *a, struct err *e);
int agent_record_observation(struct agent *a, const struct settled *settled, struct err *e);
int agent_record_prompt(struct agent *a, struct err *e);

/* Budgets (budget.c): the one that is used up before a step; whether an action is within those that actions use up, if
 * not a->result says why; what it uses up; the limit that ended the run, for the result. */
enum agent_status agent_budget(const struct agent *a);
bool agent_affords(struct agent *a, const struct action *action);
void agent_spend(struct agent *a, const struct action *action);
void agent_tell_spent(const struct agent *a); /* the rules, before they are asked */
void agent_name_limit(struct agent *a);

/* One reply; with other dice, the greater `reroll`. */
enum attempted { ATTEMPT_FAILED = -1, ATTEMPT_READ, ATTEMPT_UNREADABLE, ATTEMPT_OUT_OF_TIME };
enum attempted agent_attempt(struct agent *a, int resample, float temperature, struct err *e);

/* Asks the overseer about the reply that was read until it is to be run, refused, or left.  What is left has a->back. */
enum attempted agent_oversee(struct agent *a, enum attempted got, struct err *e);
void agent_history_begin(struct agent *a);          /* the step at hand can be gone back to */
void agent_history_done(struct agent *a, bool ran); /* what it did is known, and how it went */
void agent_history_judged(struct agent *a);         /* ... and what it changed */
int agent_recall(struct agent *a, struct err *e); /* in place of agent_observe: the screen of step a->back */
int agent_place(const struct agent *a, struct view_transform *out,
                struct err *e); /* of the frame, on the display as it is */

/* What makes a step repeatable (keep.c): who was told what, and each reply with all that it came from. */
int agent_keep_start(struct agent *a, const char *system, struct err *e);
int agent_keep_reply(struct agent *a, const struct llm_request *r, const struct generated *g, struct err *e);

/* Whether an answer is accepted (validate.c); if not, a->result says why.  see: the frame of the step at hand. */
void agent_validate_see(struct agent *a);
int agent_validate(struct agent *a, const char *answer, bool *accepted, struct err *e);

/* Where the elements are that the step at hand names, from o->localizer (localize.c). */
int agent_localize(struct agent *a, struct err *e);

/* Says an earlier run again. */
int agent_resume(struct agent *a, const struct resume *p, struct err *e);

/* When a person uses the display: says so, waits until she is quiet, and writes it down (wait_for_human.c). */
int agent_yield(struct agent *a, struct err *e);
/* Answering a question is no use of the display that the run should mind. */
int agent_forget_answers(struct agent *a, struct err *e);

double agent_seconds(const struct agent *a); /* since the start */
void agent_set_text(char **at, char *text);  /* frees what was there */
/* Prints what went wrong and writes it down. */
int agent_record_fault(struct agent *a, const char *kind, const char *code, const char *message,
                       struct err *e);

#endif
