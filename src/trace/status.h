/* status.h - how a run can end: one table of names, meanings, exit codes and colours, for all front ends.
 *
 * Only AGENT_ANSWERED is a success: the agent says that the task is done, and an effect on the screen, a
 * validator or, for a question, the answer itself confirms it.
 */
#ifndef HOLORUN_TRACE_STATUS_H
#define HOLORUN_TRACE_STATUS_H

#include <stdbool.h>

enum agent_status {
    AGENT_RUNNING,
    AGENT_ANSWERED,
    AGENT_UNVERIFIED,  /* the agent says that it is done, and nothing confirms it */
    AGENT_REFUSED,     /* its last action was refused or failed, and was not done afterwards */
    AGENT_INTERRUPTED, /* a person or another program got between, and the action was not done afterwards */
    AGENT_INFEASIBLE,  /* the model answered that it cannot be done */
    AGENT_UNVALIDATED, /* none of its answers was accepted */
    AGENT_DRY_RUN,     /* --dry-run: it decided, and nothing was performed */
    AGENT_STEPS,       /* a budget was used up; there may still be an answer */
    AGENT_TOKENS,
    AGENT_TIME,
    AGENT_TYPED,
    AGENT_RATE,       /* too many actions a minute */
    AGENT_LOOP,       /* the same action repeatedly without effect, or many of any kind */
    AGENT_ERRORS,     /* too many errors in a row */
    AGENT_UNPARSABLE, /* no usable reply after several attempts */
    AGENT_STOPPED,    /* by a person */
    AGENT_FAILED,     /* display lost, disk full, ... */
};
enum { AGENT_STATUSES = AGENT_FAILED + 1 };

enum status_colour { STATUS_GREEN, STATUS_AMBER, STATUS_RED };

/* What an end means for a test of a suite, before its checks are looked at (qa/report/result.c). */
enum status_verdict {
    STATUS_SAYS_DONE,
    STATUS_UNCONFIRMED, /* says that it is done: checks alone decide */
    STATUS_SAYS_INFEASIBLE,
    STATUS_REJECTED,   /* by its validator */
    STATUS_UNFINISHED, /* checks alone decide */
    STATUS_NOT_DONE,   /* no check can make it pass */
    STATUS_STOPS,      /* a person stopped it */
    STATUS_BREAKS,     /* no verdict on the program under test */
};

struct status_row {
    const char *name;    /* "loop", for programs */
    const char *meaning; /* "went in circles", for people */
    int exit;            /* exit code of the program; a failed run has that of its error */
    enum status_colour colour;
    enum status_verdict verdict;
    bool own;       /* the agent ended the run itself, by an answer: checks are run */
    bool resumable; /* `holorun resume` can continue its task */
};

const struct status_row *status_row(enum agent_status s);
/* Returns the row of this name, of AGENT_RUNNING for a run that has no end on record (NULL or "").  NULL: the
 * name is unknown. */
const struct status_row *status_find(const char *name);
/* Returns the class of the colour in style sheets: "good", "unsure" or "bad". */
const char *status_class(enum status_colour c);

#endif
