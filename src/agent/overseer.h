/* overseer.h - who looks at each step before it happens.
 *
 *     observe -> think -> DECIDE -> act
 *
 * With an overseer the loop shows each step that the model wants (struct proposal) and does what it is told (struct
 * decision): run it, run something else in its place, refuse it with a reason that the model reads, let the model think
 * again, go back to an earlier step, try several replies and take one, stop.  Without one the loop is what it was.
 *
 * Everything in a proposal belongs to the loop and is good until decide() returns.  What was decided by a person is on
 * record as an event "human"; the clock of the run stands still while decide() takes its time.
 *
 * Step numbers only grow.  Going back to step 3 while step 7 is shown makes a step 8 that begins where step 3 stood:
 * same conversation, same recorded screen, same dice.
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

/* One way in which a part of the reply could have gone on. */
struct alternative {
    char text[64]; /* what it says: "click_desktop", "412,96"; cut to size */
    double p;      /* of the model, after the grammar; of all that could stand here */
    int32_t x, y;  /* SLOT_POINT: where that is in the frame, else ACTION_ABSENT */
};

/* One reply of several to the same screen. */
struct proposed_reply {
    const struct step *step; /* its actions; none when it cannot be read */
    enum action_fault fault; /* what is wrong with it */
    const char *message;     /* ... in words, "" when nothing is */
    const char *reply;       /* the text as it came */
    const struct generated *generated;
    struct slot slots[SLOTS_MAX]; /* of the reply: where it made up its mind */
    int n_slots;
    double confidence; /* least probability with which a token of them was sampled; -1: not known */
    int resample;      /* which throw of the dice */
    float temperature;
};

/* A step that lies behind; oldest first. */
struct history_step {
    int number;
    int frame;            /* frames/%06d.png below proposal.dir */
    bool recorded;        /* it was decided on a recorded screen */
    int from;             /* ... that of this step */
    char *what, *thought; /* "click \"Save\" at 312,240" */
    bool ran, failed;     /* its actions were performed; one of them could not be */
    bool judged, changed; /* whether it had an effect, as soon as that is known */
    double tiles;         /* share of the screen that it changed */
    bool reachable;       /* one can go back to it */
    bool left;            /* the run went back to before it: it is no part of the conversation */
    double ms[PHASES];
};

struct proposal {
    int number, max_steps; /* of this step, from 1 */
    const char *task, *dir;
    volatile int *stop; /* the flag of the run: who asks a person looks at it meanwhile, and may set it */
    bool beyond;        /* no step: a budget is used up and an answer was asked for */
    double seconds;

    /* the screen */
    const struct image *frame; /* what the model saw */
    int frame_number;
    struct view_transform place;   /* root = o + image * s: the very numbers the executor will use */
    const char *title, *class; /* of the active window when the frame was taken */
    bool recorded;             /* the frame is not the screen of now but that of step `from` */
    int from;
    double moved_on; /* share of the screen that is different by now; -1: not known */
    bool moved;      /* asked again: what is looked at was moved meanwhile, `place` is new */

    /* what the model read and wants */
    const char *lead; /* its turn's text before the screenshot */
    struct proposed_reply now;
    const struct proposed_reply *forks; /* [n_forks]: others to choose from, after a decision to fork */
    int n_forks, taken;                 /* which of them `now` is, -1: none */
    const char *gate;                   /* the rule that asks or forbids: "deny: console"; NULL: none */
    bool irreversible;                  /* the rules would ask about it */

    /* what it took */
    int64_t reused, prefilled; /* tokens */
    int sampled, forced, images;
    double ms[PHASES];

    /* what came before */
    bool judged, changed; /* whether the last step had an effect; a first step is not judged */
    double tiles;
    bool expected; /* it should have had */
    const struct history_step *history;
    int n_history;

    /* Other ways in which a part of the reply could have gone: at most max, the likeliest first.  The number of them,
     * 0 when nothing is known (a script, a dialect without slots, a reply that was not held to a grammar).  Runs the
     * model; the conversation stays as it is. */
    int (*beam_search)(const struct proposal *p, const struct slot *slot, struct alternative *out, int max);
    void *searcher;
};

enum verdict {
    VERDICT_RUN,
    VERDICT_EDIT,   /* run decision.edited in its place */
    VERDICT_VETO,   /* do not; the model reads decision.reason */
    VERDICT_AGAIN,  /* another reply to the same screen, with other dice */
    VERDICT_REWIND, /* decide again from step decision.to */
    VERDICT_FORK,   /* decision.n more replies to the same screen, to choose from; then decide() again */
    VERDICT_TAKE,   /* number decision.to of proposal.forks is the reply; then decide() again */
    VERDICT_STOP,
};
const char *verdict_name(enum verdict v); /* "rewind" */

struct decision { /* zeroed before decide() */
    enum verdict verdict;
    const char *by; /* who: "terminal"; NULL: nobody was asked, and nothing is written down */
    bool seen;      /* a person has looked at the step: rules that would ask about it need not ask again */
    struct step edited; /* owned; only its actions count */
    char *reason;       /* of a veto, a stop; owned */
    int to, n;
};

struct overseer { /* the first member of each */
    /* -1 ends the run with the error. */
    int (*decide)(struct overseer *o, const struct proposal *p, struct decision *d, struct err *e);
    int alternatives; /* of each sampled token, in attempt.generated; 0: none */
};

#endif
