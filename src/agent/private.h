/* private.h - one run of the loop: what its parts share.  Private to agent/. */
#ifndef HOLORUN_AGENT_PRIVATE_H
#define HOLORUN_AGENT_PRIVATE_H

#include "agent/agent.h"
#include "agent/context.h"
#include "agent/wording.h"

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
    enum agent_status budget; /* the one that is used up, or RUNNING */
    bool beyond;              /* it is used up: only an answer is asked for, and that is no step */
    struct step step;
    enum action_fault fault; /* of reading the reply */
    struct err unread;       /* what was wrong with it */
    bool longer;             /* a reply of this step was cut off */
    char *reply;             /* as history holds it */
    struct context_cost cost;
    double ms[PHASES];
    int generated, forced;
    bool as_said; /* the reply in the session is byte for byte what history holds */

    /* the conversation as tokens.bin has it: of the next reply only what is new goes there */
    int32_t *kept;
    int64_t n_kept;

    /* from one step to the next */
    char *lead;          /* opens the next turn: the task, then what came of the last step */
    struct image before; /* the screen before the last step's actions */
    char *signature;     /* the last step's actions in canonical form */
    const char *tool;    /* what the last step called */
    char *result;        /* what it gave, or its error */
    bool failed;         /* it is an error */
    bool expects_change;
    int repeats, errors;
    int still; /* actions that should have changed the screen and did not */
};

/* Three of the four parts of a step (the last is in agent.c); -1 when the run breaks off. */
int agent_observe(struct agent *a, struct err *e);
int agent_think(struct agent *a, struct err *e);
int agent_act(struct agent *a, struct err *e);

/* What makes a step repeatable (keep.c): who was told what, and each reply with all that it came from. */
int agent_keep_start(struct agent *a, const char *system, struct err *e);
int agent_keep_reply(struct agent *a, const struct mind_request *r, const struct generated *g, struct err *e);

double agent_seconds(const struct agent *a); /* since the start */
void agent_set_text(char **at, char *text);  /* frees what was there */
/* Prints what went wrong and writes it down. */
int agent_record_fault(struct agent *a, const char *kind, const char *code, const char *message,
                       struct err *e);

#endif
