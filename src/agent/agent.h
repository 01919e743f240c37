/* agent.h - the main loop of a run: observe, think, act, record.
 *
 * A run performs one task on one screen with one model, until the model answers or something else ends the
 * run. Each step is on disk before it is performed; the model reads its result with the next screenshot.
 */
#pragma once

#include "agent/overseer.h"
#include "agent/progress.h"
#include "gate/gate.h"
#include "llm/llm.h"
#include "screen/screen.h"
#include "trace/status.h"
#include "trace/trace.h"

const char *agent_status_name(enum agent_status s);    /* "loop", for programs */
const char *agent_status_meaning(enum agent_status s); /* "went in circles", for people */
bool agent_status_own(enum agent_status s);            /* the agent ended the run by an answer */
int agent_exit_code(enum agent_status s, const struct err *e);

/* Checks an answer with a second model before the run accepts it.
 *
 * The validator sees the task, the answer and the last screenshots, and must confirm `passes` times in
 * sequence that the task was carried out. After NO or UNKNOWN the agent reads the reason and the run
 * continues; after `most` rejected answers it ends as unvalidated. Two kinds of answer are not checked: that
 * a task cannot be done, and an answer requested because a budget is used up. */
enum { VALIDATOR_FRAMES = 3 };
struct validator { /* pointers are borrowed */
    int passes, most;
    /* Opens a model session for one question; the caller frees it. Returns NULL with e. The system text is
     * the dialect's "validator", or else the default one (validate.c). */
    struct llm *(*open)(void *arg, struct err *e);
    void *arg;
};

/* The elements of the active window, as text in each observation (elements.c).  Their refs may stand for
 * places in replies. */
struct agent_elements {
    /* Appends the text of the elements now, or nothing if they cannot be read. */
    void (*read)(void *arg, struct buf *out);
    /* Finds the element of a ref in that text, as it is now.  Sets its middle in root pixels and its name.
     * Returns -1 with e, a message for the model, if it is gone, or is another one now. */
    int (*find)(void *arg, uint32_t ref, int *x, int *y, char *name, size_t size, struct err *e);
    void *arg;
    bool only; /* the model gets no screenshots */
};

struct agent_result;

/* Whether the model begins to think before the screen has settled (early.c). */
enum think_early { THINK_EARLY_AUTO, THINK_EARLY_YES, THINK_EARLY_NO };

/* The actions and checks of a task that is understood completely; 0: unknown. */
struct agent_demand {
    int actions; /* at least */
    int checks;  /* conditions to check on the screen */
};

struct agent_options {
    const char *task;
    const struct dialect *dialect;
    struct llm *llm;
    struct screen *screen;
    struct trace *trace;
    const struct progress *progress;
    const struct secrets *secrets; /* the model reads only their names; NULL: none */
    struct gate *gate;             /* rules for each action; NULL: allows all */
    enum window_policy window;
    int max_images;
    struct sampling sampling; /* for each reply */
    bool warm_up;             /* raises the temperature after an action without effect */
    int max_steps;
    double max_seconds;
    int64_t max_tokens;    /* tokens generated in the whole run; 0: no limit */
    int64_t max_typed;     /* characters in the whole run (action_characters()); 0: no limit */
    int max_rate;          /* actions per minute that touch the screen; 0: no limit */
    bool force_answer;     /* requests an answer when a budget is used up */
    double answer_seconds; /* time limit for that answer */
    int max_errors;        /* failed steps in sequence; 0: no limit */
    int max_repeats;       /* repetitions of one action without effect; 0: no limit */
    int max_still;         /* consecutive actions that should change the screen but do not; 0: no limit */
    bool dry_run;          /* sends no input */
    bool recorded;         /* replies are recorded actions: effects need no confirmation */
    const bool *idle;      /* NULL, or whether a press of the user's own steps changed no element: then the
                            * screen must have changed */
    struct agent_demand demand;
    const bool *unclear;   /* NULL, or whether "infeasible" means that the task was not understood */
    double human_quiet_ms; /* quiet time before the run continues after user input; see screen_user_input() */
    bool log_tokens;
    struct settle settle;
    /* returns whether the screen of settle.known is expected now, and is to be waited for; arg: settle.arg.
     * NULL: settle.known only ends waits */
    bool (*expects)(void *arg);
    /* returns whether recorded replies are repeated, so that no turn may be undone; arg: settle.arg. NULL:
     * none is */
    bool (*follows)(void *arg);
    enum think_early think_early;
    const struct resume *resume;           /* an interrupted run to continue, or NULL */
    struct overseer *overseer;             /* reviews each step before it is performed; NULL: none */
    struct assist *assist;                 /* corrects replies (assist.h); NULL: none */
    const struct agent_elements *elements; /* NULL: none */
    struct llm *localizer; /* finds the elements that replies name; NULL: replies contain points */
    int reads_side;        /* largest image side that the model reads unscaled; 0: any */
    const struct validator *validator; /* checks the answer; NULL: none */
    /* Called when a task has ended: returns the next task of the conversation, owned by the caller. Budgets
     * start again, and the clock is paused during the call. Returns NULL if the run is over. */
    char *(*next_task)(void *arg, const struct agent_result *r);
    void *next_arg;
};

struct agent_server { /* usage that an endpoint reports; all zeros: no endpoint */
    int replies;
    int64_t prompt, cached; /* tokens */
    bool counted, says_cached;
    double cost;          /* from the price list */
    const char *currency; /* "": no price list */
};

struct agent_result {
    enum agent_status status;
    /* NULL if the run has no answer. If the run is refused, interrupted or unverified, `answer` is reworded
     * accordingly and `said` has the model's words. */
    char *answer, *said;
    /* The actions in one line, "pressed 'Save'; the window did not change", and all of them as a JSON list
     * (deeds.h). NULL: the run did not begin. */
    char *did, *deeds;
    int steps;
    double seconds;
    double ms[PHASES];
    int64_t generated, forced, prefilled, reused;
    struct agent_cancelled {
        int turns;
        int64_t tokens; /* generated in them, and counted nowhere else */
    } cancelled;        /* because the screen changed */
    struct agent_server server;
    int64_t typed; /* characters */
    int acted;     /* actions that touched the screen */
    /* Option of the limit that ended the run, "max-steps", and its value; NULL: no limit did. */
    const char *limit;
    double allowed;
};

/* Continuation of an interrupted run. The conversation is repeated without its screenshots, because they
 * show a desktop that has changed since. The model reads that the run was interrupted; its next turn has a
 * new screenshot. Steps, tokens and time count on from the totals. */
struct resume_turn {
    char *lead, *history; /* text before the screenshot; the reply as kept in the history */
};
struct resume {
    const char *parent; /* directory of the interrupted run */
    const char *system; /* system text of that run */
    struct resume_turn *turns;
    int n;
    const char *task;           /* a further task; NULL: the run was interrupted during its own */
    const char *lead;           /* text of a last turn without a reply; NULL: none */
    int number;                 /* number of the last step */
    struct agent_result so_far; /* only the totals: counted steps, seconds, tokens, ... */
};

/* Runs the task. Returns 0 if the run ended normally (see status), -1 with e if it broke off (status
 * STOPPED, FAILED or UNPARSABLE). The caller calls agent_result_free() in both cases. */
int agent_run(const struct agent_options *o, struct agent_result *r, struct err *e);
/* Frees the texts of a result and sets them to NULL. */
void agent_result_free(struct agent_result *r);
