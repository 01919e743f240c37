/* overseer.h - reviews each step before it happens.
 *
 *     observe -> think -> DECIDE -> act
 *
 * The loop shows the overseer each step that the model proposes (struct proposal) and does what it
 * decides (struct decision): run it, run an edited step, refuse it with a reason that the model reads,
 * resample, rewind to an earlier step, fork into several replies and take one, stop.
 *
 * Everything in a proposal belongs to the loop and is valid until decide() returns.  What a person decides is
 * recorded as an event "human"; the clock of the run stands still during decide().
 *
 * Step numbers only grow.  Rewinding to step 3 while step 7 is shown makes a step 8 that begins where
 * step 3 did: same conversation, same recorded screen, same state of the random number generator.
 */
#ifndef HOLORUN_AGENT_OVERSEER_H
#define HOLORUN_AGENT_OVERSEER_H

#include "actions/action.h"
#include "actions/slots.h"
#include "base/image.h"
#include "screen/screen.h"
#include "session/generate.h"
#include "trace/story.h"

enum { OVERSEER_FORKS = 8, OVERSEER_MARKS = 12 };

/* One candidate for a slot of the reply. */
struct alternative {
    char text[64]; /* "click_desktop", "412,96"; cut to size */
    double p;      /* its share of all that the grammar allows here */
    int32_t x, y;  /* SLOT_POINT: the point in the frame, else ACTION_ABSENT */
};

/* One of several replies to the same screen. */
struct proposed_reply {
    const struct step *step; /* no actions when it cannot be read */
    enum action_fault fault; /* what is wrong with it */
    const char *message;     /* ... in words, "" when nothing is */
    const char *reply;       /* the text as it came */
    const struct generated *generated;
    struct slot slots[SLOTS_MAX]; /* verb and places in the reply */
    int n_slots;
    double confidence; /* least probability of a token sampled in a slot; -1: not known */
    int resample;      /* which sample, from 0 */
    float temperature;
};

/* A step before the one at hand. */
struct history_step {
    int number;
    int frame;            /* frames/%06d.png below proposal.dir */
    bool recorded;        /* it was decided on a recorded screen, */
    int from;             /* ... the one of this step */
    char *what, *thought; /* "click \"Save\" at 312,240" */
    char *window;         /* title of the active one */
    int32_t x, y, x2, y2; /* targets of its first action in the frame, or ACTION_ABSENT */
    bool edited, refused; /* by a person */
    double confidence;    /* as in proposed_reply */
    /* what was chosen for verb and places, with its probability */
    struct alternative chosen[SLOTS_MAX];
    int n_chosen;
    bool ran, failed;     /* its actions were performed; one of them could not be */
    bool judged, changed; /* whether it had an effect, once that is known */
    double tiles;         /* share of the screen that it changed */
    bool reachable;       /* the run can rewind to it */
    bool left;            /* the run rewound past it: no longer part of the conversation */
    double ms[PHASES];
};

struct proposal {
    int number, max_steps; /* of this step, from 1 */
    const char *task, *dir;
    volatile int *stop; /* the run's stop flag: decide() checks it while it waits, and may set it */
    bool beyond_budget; /* no step: the final answer, asked for because a budget is used up */
    double seconds;

    /* the screen */
    const struct image *frame; /* what the model saw */
    int frame_number;
    struct view_transform place; /* root = o + image * s: what the executor will use */
    const char *title, *class;   /* of the active window when the frame was taken */
    bool recorded;               /* the frame is the recorded one of step `from` */
    int from;
    double moved_on;    /* share of the screen that has changed since; -1: not known */
    bool moved;         /* asked again because the view has moved; `place` is new */
    bool changed_since; /* asked again because what was approved has changed; `frame` is the present screen */

    /* prompt and replies */
    const char *lead; /* text of the prompt before the screenshot */
    struct proposed_reply now;
    const struct proposed_reply *forks; /* [n_forks] to choose from, after a fork */
    int n_forks, taken;                 /* index of `now` among them, -1: no forks */
    const char *gate;                   /* the first rule that asks or forbids: "deny: console"; NULL: none */
    bool irreversible;                  /* the rules would ask about it */
    const char *where;                  /* ... the window that it would touch, or "" */

    /* cost */
    int64_t reused, prefilled; /* tokens */
    int sampled, forced, images;
    double ms[PHASES];

    /* the steps before */
    bool judged, changed; /* whether the last step had an effect; not judged before the first */
    double tiles;
    bool expected; /* it should have had one */
    const struct history_step *history;
    int n_history;

    /* The candidates of a slot by beam search: at most max, the likeliest first.  Returns their number, 0
     * when there are none (a script, a dialect without slots).  Runs the model; the conversation stays as
     * it is. */
    int (*beam_search)(const struct proposal *p, const struct slot *slot, struct alternative *out, int max);
    void *searcher;
};

enum verdict {
    VERDICT_RUN,
    VERDICT_EDIT,   /* run decision.edited in its place */
    VERDICT_VETO,   /* refuse; the model reads decision.reason */
    VERDICT_AGAIN,  /* resample: another reply to the same screen */
    VERDICT_REWIND, /* begin again at step decision.to */
    VERDICT_FORK,   /* decision.n more replies to the same screen, to choose from; then decide() again */
    VERDICT_TAKE,   /* number decision.to of proposal.forks is the reply; then decide() again */
    VERDICT_STOP,
};

struct decision { /* zeroed before decide() */
    enum verdict verdict;
    const char *by;     /* front end: "terminal"; NULL: nobody was asked, and nothing is recorded */
    bool confirmed;     /* a person saw the step: rules that would ask about it need not ask again */
    struct step edited; /* owned; only its actions are used */
    char *reason;       /* of a veto, a stop; owned */
    int to, n;
};

struct overseer { /* the first member of each implementation */
    /* -1 ends the run with the error. */
    int (*decide)(struct overseer *o, const struct proposal *p, struct decision *d, struct err *e);
    int alternatives; /* of each sampled token, in generated.choices; 0: none */
};

#endif
