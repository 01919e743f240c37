/* status.c - the table of ways in which a run can end; see status.h. */
#include "trace/status.h"

#include "base/err.h"

#include <string.h>

static const struct status_row rows[AGENT_STATUSES] = {
    [AGENT_RUNNING] = {"running", "was interrupted before its end", 0, STATUS_RED, STATUS_BREAKS, false,
                       true},
    [AGENT_ANSWERED] = {"answered", "answered", 0, STATUS_GREEN, STATUS_SAYS_DONE, true, false},
    [AGENT_UNVERIFIED] = {"unverified", "reports success, but nothing confirms it", ERR_UNVERIFIED,
                          STATUS_AMBER, STATUS_UNCONFIRMED, true, false},
    [AGENT_REFUSED] = {"refused", "its last action was not done", ERR_FAILED, STATUS_AMBER, STATUS_NOT_DONE,
                       true, false},
    [AGENT_INTERRUPTED] = {"interrupted", "was interrupted by the user or another program", ERR_UNSURE,
                           STATUS_AMBER, STATUS_NOT_DONE, true, true},
    [AGENT_INFEASIBLE] = {"infeasible", "cannot be done", ERR_FAILED, STATUS_AMBER, STATUS_SAYS_INFEASIBLE,
                          true, false},
    [AGENT_UNCLEAR] = {"unclear", "was not understood, or not surely enough to act", ERR_UNCLEAR,
                       STATUS_AMBER, STATUS_NOT_DONE, true, false},
    [AGENT_UNVALIDATED] = {"unvalidated", "answered, but the validator did not accept it", ERR_FAILED,
                           STATUS_RED, STATUS_REJECTED, true, false},
    [AGENT_DRY_RUN] = {"dry-run", "decided, but executed nothing", 0, STATUS_AMBER, STATUS_UNFINISHED, false,
                       false},
    [AGENT_STEPS] = {"steps", "used up its steps", ERR_STEPS, STATUS_AMBER, STATUS_UNFINISHED, false, true},
    [AGENT_TOKENS] = {"tokens", "used up its tokens", ERR_STEPS, STATUS_AMBER, STATUS_UNFINISHED, false,
                      true},
    [AGENT_TIME] = {"time", "used up its time", ERR_TIME, STATUS_AMBER, STATUS_UNFINISHED, false, true},
    [AGENT_TYPED] = {"typed", "used up its typed characters", ERR_STEPS, STATUS_AMBER, STATUS_UNFINISHED,
                     false, true},
    [AGENT_RATE] = {"rate", "exceeded its actions per minute", ERR_STEPS, STATUS_RED, STATUS_UNFINISHED,
                    false, true},
    [AGENT_LOOP] = {"loop", "repeated itself without progress", ERR_UNSURE, STATUS_RED, STATUS_UNFINISHED,
                    false, true},
    [AGENT_ERRORS] = {"errors", "had too many consecutive errors", ERR_UNSURE, STATUS_RED, STATUS_UNFINISHED,
                      false, true},
    [AGENT_UNPARSABLE] = {"unparsable", "got no usable reply after several attempts", ERR_MODEL, STATUS_RED,
                          STATUS_UNFINISHED, false, true},
    [AGENT_STOPPED] = {"stopped", "was stopped", ERR_STOPPED, STATUS_RED, STATUS_STOPS, false, true},
    [AGENT_FAILED] = {"failed", "failed", ERR_ENV, STATUS_RED, STATUS_BREAKS, false, true},
};

const struct status_row *status_row(enum agent_status s)
{
    return &rows[s];
}

const struct status_row *status_find(const char *name)
{
    if (!name || !*name)
        return &rows[AGENT_RUNNING];
    for (int i = 0; i < AGENT_STATUSES; i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    return NULL;
}

const char *status_class(enum status_colour c)
{
    static const char *const names[] = {
        [STATUS_GREEN] = "good", [STATUS_AMBER] = "unsure", [STATUS_RED] = "bad"};
    return names[c];
}
