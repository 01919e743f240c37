/* validator.h - a second model checks an answer before it counts.
 *
 * It is shown the task, the answer and the last screenshots, and must confirm `passes` times in a row
 * that the task was carried out.  NO or UNKNOWN goes back to the agent with the reason, and the run goes
 * on; after `most` rejected answers it ends as unvalidated.  The answer that a task cannot be done is not
 * checked, nor is one that was asked for because a budget is used up.
 */
#ifndef HOLORUN_AGENT_VALIDATOR_H
#define HOLORUN_AGENT_VALIDATOR_H

#include "agent/llm.h"

enum { VALIDATOR_FRAMES = 3 };

struct validator { /* pointers are borrowed */
    int passes, most;
    /* A new model session for one question, which the caller frees; NULL with e.  The system text is the
     * dialect's "validator", else our own. */
    struct llm *(*open)(void *arg, struct err *e);
    void *arg;
};

#endif
