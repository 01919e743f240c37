/* agent.h - the loop: observe, think, act, record.
 *
 * One task on one screen with one model, until the model answers or something ends the run.  Each step is on
 * disk before it happens; the model reads its result with the next screenshot.
 */
#ifndef HOLORUN_AGENT_AGENT_H
#define HOLORUN_AGENT_AGENT_H

#include "agent/overseer.h"
#include "agent/progress.h"
#include "gate/gate.h"
#include "llm/llm.h"
#include "screen/screen.h"
#include "trace/status.h"
#include "trace/trace.h"

const char *agent_status_name(enum agent_status s);    /* "loop", for programs */
const char *agent_status_meaning(enum agent_status s); /* "went in circles", for people */
bool agent_status_own(enum agent_status s);            /* the agent ended the run itself, by an answer */
int agent_exit_code(enum agent_status s, const struct err *e);

/* A second model checks an answer before it counts.
 *
 * It is shown the task, the answer and the last screenshots, and must confirm `passes` times in a row
 * that the task was carried out.  NO or UNKNOWN goes back to the agent with the reason, and the run goes
 * on; after `most` rejected answers it ends as unvalidated.  The answer that a task cannot be done is
 * not checked, nor is one that was asked for because a budget is used up. */
enum { VALIDATOR_FRAMES = 3 };
struct validator { /* pointers are borrowed */
    int passes, most;
    /* A new model session for one question, which the caller frees; NULL with e.  The system text is the
     * dialect's "validator", else our own. */
    struct llm *(*open)(void *arg, struct err *e);
    void *arg;
};

struct agent_result;

struct agent_options {
    const char *task;
    const struct dialect *dialect;
    struct llm *llm;
    struct screen *screen;
    struct trace *trace;
    const struct progress *progress;
    const struct secrets *secrets; /* the model reads their names; NULL: none */
    struct gate *gate;             /* decides about each action; NULL: everything passes */
    enum window_policy window;
    int max_images;
    struct sampling sampling; /* of one reply */
    bool warm_up;             /* a higher temperature after an action without effect */
    int max_steps;
    double max_seconds;
    int64_t max_tokens;    /* generated in the whole run; 0: no limit */
    int64_t max_typed;     /* characters in the whole run (action_characters); 0: no limit */
    int max_rate;          /* actions that touch the screen, in any minute; 0: no limit */
    bool force_answer;     /* ask for an answer when a budget is used up */
    double answer_seconds; /* which is given up after that time */
    int max_errors;        /* steps in a row that fail; 0: no limit */
    int max_repeats;       /* of one action without effect; 0: no limit */
    int max_still;         /* actions in a row that should change the screen and do not; 0: no limit */
    bool dry_run;          /* press nothing */
    bool recorded;         /* replies are recorded actions, whose effects nobody has to see */
    double
        human_quiet_ms; /* how long a person must be quiet before the run goes on; see screen_user_input() */
    bool log_tokens;
    struct settle settle;
    const struct resume *resume; /* an interrupted run to continue, or NULL */
    struct overseer *overseer;   /* reviews each step before it happens; NULL: none */
    struct assist *assist;       /* corrects replies (assist.h); NULL: none */
    struct llm *localizer;       /* finds the elements that replies name; NULL: replies hold points */
    int reads_side; /* pixels of a side that the model reads as they are; 0: pictures of any size */
    const struct validator *validator; /* checks its answer; NULL: none */
    /* When a task has ended: the next one, which the conversation goes on with; owned by the caller.  Its
     * budgets begin anew, and the clock stands still meanwhile.  NULL: the run is over. */
    char *(*next_task)(void *arg, const struct agent_result *r);
    void *next_arg;
};

struct agent_server { /* what an endpoint says that replies took; all zeros: there is none */
    int replies;
    int64_t prompt, cached; /* tokens */
    bool counted, says_cached;
    double cost;          /* by the price list */
    const char *currency; /* "": no price list */
};

struct agent_result {
    enum agent_status status;
    /* NULL when there is none.  If the run is refused, interrupted or unverified, the program words the
     * answer accordingly, and `said` has the model's words. */
    char *answer, *said;
    /* The actions in one line, "pressed 'Save'; the window did not change", and all of them as a JSON list
     * (deeds.h).  NULL: the run did not begin. */
    char *did, *deeds;
    int steps;
    double seconds;
    double ms[PHASES];
    int64_t generated, forced, prefilled, reused;
    struct agent_server server;
    int64_t typed; /* characters */
    int acted;     /* actions that touched the screen */
    /* The option of the limit that ended it, "max-steps", and its value; NULL: none did. */
    const char *limit;
    double allowed;
};

/* A run that continues an interrupted one.  The conversation is repeated without its screenshots,
 * because they show a desktop that has changed since.  The model is told that the run was interrupted;
 * its next turn has a new screenshot.  Steps, tokens and time count on. */
struct resume_turn {
    char *lead, *history; /* before the screenshot; the reply as history holds it */
};
struct resume {
    const char *parent; /* the run's folder */
    const char *system; /* its system text */
    struct resume_turn *turns;
    int n;
    const char *task;           /* a further task; NULL: the run was interrupted in the middle of its own */
    const char *lead;           /* of a last turn without a reply; NULL: there is none */
    int number;                 /* of the last step */
    struct agent_result so_far; /* only the totals: steps that count, seconds, tokens, ... */
};

/* 0 when the run ended normally (see status), -1 when it broke off (status STOPPED, FAILED or UNPARSABLE,
 * with the reason in e).  The caller calls agent_result_free(). */
int agent_run(const struct agent_options *o, struct agent_result *r, struct err *e);
/* Frees the texts of a result, and forgets them. */
void agent_result_free(struct agent_result *r);

#endif
