/* overseer.h - reviews each step before it is performed.
 *
 *     observe -> think -> DECIDE -> act
 *
 * The loop shows the overseer each step that the model proposes (struct proposal) and follows its decision
 * (struct decision): run the step, run an edited step, refuse it with a reason that the model reads,
 * resample, rewind to an earlier step, fork into several replies and take one, stop.
 *
 * Everything in a proposal belongs to the loop and is valid until decide() returns. A decision of the user
 * is recorded as an event "human"; the clock of the run is paused during decide().
 *
 * Step numbers only increase. Rewinding to step 3 while step 7 is shown makes a step 8 that begins in the
 * state of step 3: same conversation, same recorded screen, same state of the random number generator.
 */
#pragma once

#include "actions/slots.h"
#include "base/image.h"
#include "screen/exec.h"
#include "session/generate.h"
#include "trace/story.h"

enum { OVERSEER_FORKS = 8, OVERSEER_MARKS = 12 };

/* One candidate for a slot of the reply. */
struct alternative {
    char text[64]; /* "click_desktop", "412,96"; truncated to fit */
    double p;      /* probability among all texts that the grammar allows here */
    int32_t x, y;  /* SLOT_POINT: the point in the frame, else ACTION_ABSENT */
};

/* One of several replies to the same screen. */
struct proposed_reply {
    const struct step *step; /* without actions if the reply cannot be parsed */
    enum action_fault fault; /* defect of the reply, or FAULT_NONE */
    const char *message;     /* ... in words, "" if there is none */
    const char *reply;       /* the generated text, unchanged */
    const struct generated *generated;
    struct slot slots[SLOTS_MAX]; /* verb and positions in the reply */
    int n_slots;
    double confidence; /* lowest probability of a token sampled in a slot; -1: not known */
    int resample;      /* index of the sample, from 0 */
    float temperature;
};

/* A step before the current one. */
struct history_step {
    int number;
    int frame;            /* frames/%06d.png below proposal.dir */
    bool recorded;        /* it was decided on a recorded screen, */
    int from;             /* ... the screen of this step */
    char *what, *thought; /* "click \"Save\" at 312,240" */
    char *window;         /* title of the active window */
    int32_t x, y, x2, y2; /* targets of its first action in the frame, or ACTION_ABSENT */
    bool edited, refused; /* edited, refused by a user */
    double confidence;    /* as in proposed_reply */
    /* chosen verb and positions, with their probabilities */
    struct alternative chosen[SLOTS_MAX];
    int n_chosen;
    bool ran, failed;     /* its actions were performed; an action failed */
    bool judged, changed; /* its effect is known; it had one */
    double tiles;         /* share of the screen that it changed */
    bool reachable;       /* the run can rewind to it */
    bool left;            /* the run rewound past it: no longer part of the conversation */
    double ms[PHASES];
};

struct proposal {
    int number, max_steps; /* number of this step, from 1 */
    const char *task, *dir;
    volatile int *stop; /* the run's stop flag: decide() polls it while waiting, and may set it */
    bool beyond_budget; /* not a step: the final answer, requested because a budget is used up */
    double seconds;

    /* the screen */
    const struct image *frame; /* screenshot that the model read */
    int frame_number;
    struct view_transform place; /* root = o + image * s: as used by the executor */
    const char *title, *class;   /* active window when the frame was taken */
    bool recorded;               /* the frame was recorded at step `from` */
    int from;
    double moved_on;    /* share of the screen that has changed since; -1: not known */
    bool moved;         /* asked again because the view has moved; `place` is new */
    bool changed_since; /* asked again because an approved area has changed; `frame` is the current screen */

    /* prompt and replies */
    const char *lead; /* text of the prompt before the screenshot */
    struct proposed_reply now;
    const struct proposed_reply *forks; /* [n_forks] to choose from, after a fork */
    int n_forks, taken;                 /* index of `now` among them, -1: no forks */
    const char *gate;                   /* first rule that asks or forbids: "deny: console"; NULL: none */
    bool irreversible;                  /* the rules would ask about the action */
    const char *where;                  /* ... the window that it would touch, or "" */

    /* cost */
    int64_t reused, prefilled; /* tokens */
    int sampled, forced, images;
    double ms[PHASES];

    /* the steps before */
    bool judged, changed; /* effect of the last step; judged is false before the first */
    double tiles;
    bool expected; /* the last step should have had an effect */
    const struct history_step *history;
    int n_history;

    /* Finds the candidates of a slot by beam search: at most max, the most probable first. Returns their
     * number, 0 if there are none (a script, a dialect without slots). Runs the model; the conversation is
     * unchanged. */
    int (*beam_search)(const struct proposal *p, const struct slot *slot, struct alternative *out, int max);
    void *searcher;
};

enum verdict {
    VERDICT_RUN,
    VERDICT_EDIT,   /* run decision.edited instead */
    VERDICT_VETO,   /* refuse; the model reads decision.reason */
    VERDICT_AGAIN,  /* resample: another reply to the same screen */
    VERDICT_REWIND, /* start again at step decision.to */
    VERDICT_FORK,   /* sample decision.n more replies to the same screen; then decide() again */
    VERDICT_TAKE,   /* proposal.forks[decision.to] becomes the reply; then decide() again */
    VERDICT_STOP,
};

struct decision { /* zeroed before decide() */
    enum verdict verdict;
    const char *by;     /* front end: "terminal"; NULL: no user was asked, nothing is recorded */
    bool confirmed;     /* the user saw the step: rules need not ask about it again */
    struct step edited; /* owned; only its actions are used */
    char *reason;       /* reason for a veto or a stop; owned */
    int to, n;
};

struct overseer { /* first member of each implementation */
    /* Decides about the step. -1 ends the run with the error e. */
    int (*decide)(struct overseer *o, const struct proposal *p, struct decision *d, struct err *e);
    int alternatives; /* recorded per sampled token, in generated.choices; 0: none */
};
