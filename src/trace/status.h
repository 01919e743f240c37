/* status.h - the ways in which a run can end: one table of names, meanings, exit codes and colours for all
 * front ends.
 *
 * Only AGENT_ANSWERED is a success: the agent reports that the task is done, and an effect on the screen, a
 * validator or, for a question, the answer itself confirms it. */
#pragma once

#include <stdbool.h>

enum agent_status {
    AGENT_RUNNING,
    AGENT_ANSWERED,
    AGENT_UNVERIFIED,  /* the agent reports success, and nothing confirms it */
    AGENT_REFUSED,     /* its last action was refused or failed, and was not done afterwards */
    AGENT_INTERRUPTED, /* the user or another program interfered, and the action was not done afterwards */
    AGENT_INFEASIBLE,  /* the model answered that the task is infeasible */
    AGENT_UNCLEAR,     /* the planner did not understand the task, or the next part of it */
    AGENT_UNVALIDATED, /* the validator accepted none of its answers */
    AGENT_DRY_RUN,     /* --dry-run: it decided, and nothing was executed */
    AGENT_STEPS,       /* a budget was used up; there may still be an answer */
    AGENT_TOKENS,
    AGENT_TIME,
    AGENT_TYPED,
    AGENT_RATE,       /* too many actions per minute */
    AGENT_LOOP,       /* the same action repeatedly without effect, or many different ones */
    AGENT_ERRORS,     /* too many consecutive errors */
    AGENT_UNPARSABLE, /* no usable reply after several attempts */
    AGENT_STOPPED,    /* stopped by the user */
    AGENT_FAILED,     /* display lost, disk full, ... */
};
enum { AGENT_STATUSES = AGENT_FAILED + 1 };

enum status_colour { STATUS_GREEN, STATUS_AMBER, STATUS_RED };

/* meaning of an end for a test of a suite, before its checks are evaluated (qa/report/result.c) */
enum status_verdict {
    STATUS_SAYS_DONE,
    STATUS_UNCONFIRMED, /* reports success: only checks decide */
    STATUS_SAYS_INFEASIBLE,
    STATUS_REJECTED,   /* rejected by its validator */
    STATUS_UNFINISHED, /* only checks decide */
    STATUS_NOT_DONE,   /* no check can make it pass */
    STATUS_STOPS,      /* stopped by the user */
    STATUS_BREAKS,     /* no verdict on the program under test */
};

struct status_row {
    const char *name;    /* "loop", for programs */
    const char *meaning; /* for users */
    int exit;            /* exit code of the program; a failed run has that of its error */
    enum status_colour colour;
    enum status_verdict verdict;
    bool own;       /* the agent ended the run itself, by an answer: checks are run */
    bool resumable; /* `holorun resume` can continue its task */
};

const struct status_row *status_row(enum agent_status s);
/* Returns the row with this name; that of AGENT_RUNNING for a run without a recorded end (NULL or ""); NULL
 * for an unknown name. */
const struct status_row *status_find(const char *name);
/* Returns the style sheet class of the colour: "good", "unsure" or "bad". */
const char *status_class(enum status_colour c);
