/* story.h - the events of a run, grouped by step. Texts and fields belong to the record. */
#pragma once

#include "trace/read.h"

enum phase { PHASE_SETTLE, PHASE_SEE, PHASE_READ, PHASE_WRITE, PHASE_ACT, PHASES };

enum {
    STORY_MAX_STEPS = 5000,
    STORY_MAX_ACTIONS = 8,
    STORY_MAX_HUMAN = 16,
    STORY_MAX_CORRECTIONS = 8,
};

struct story_action {
    const json_t *action; /* canonical form: kind, x, y, ... */
    const char *what;     /* description for users */
    const char *failure;  /* "" if it was done */
    const json_t *gate;   /* the rule that decided, and who confirmed; NULL: no gate event */
};

struct story_correction {   /* correction of a reply by the program (event assist) */
    bool resampled;         /* it replaced another reply and had to begin with `to` */
    const char *element;    /* the named element, whose position was corrected; "": a text was */
    char from[88], to[128]; /* "": none */
};

struct story_step {
    int number;
    int frame; /* -1: none */
    /* Events of the step by kind: the last one of each, or NULL. */
    const json_t *observe, *prompt, *generate, *step, *effect, *output, *error, *stale;
    struct story_action actions[STORY_MAX_ACTIONS];
    int nactions, attempts;
    int cancelled;                        /* turns before the one that became the step */
    const json_t *human[STORY_MAX_HUMAN]; /* decisions of users about the step, in order */
    int nhuman;
    struct story_correction corrections[STORY_MAX_CORRECTIONS]; /* corrections of the accepted reply */
    int ncorrections, of_reply; /* entries from of_reply on belong to the last reply */
    int from;                   /* decided on the recorded screen of that step; 0: on its own */
    bool beyond_budget;         /* not a step: the final answer after a budget was used up */
    double ms[PHASES];
};

struct story {
    struct story_step *steps; /* ordered by number */
    int n, cap;
    int counted;       /* without those beyond a budget */
    const json_t *end; /* NULL: the run was interrupted */
    double ms[PHASES]; /* sums */
};

void story_make(struct story *s, const struct record *r);
void story_free(struct story *s);
