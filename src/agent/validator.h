/* validator.h - somebody else looks at an answer before it counts.
 *
 * When the agent answers, a partner of its own is shown the task, the answer and the last screenshots, and says whether
 * the task was carried out, `passes` times in a row.  A no, or not knowing, goes back to the agent with its reason, as
 * what came of its answer, and it goes on; after `most` answers that were not accepted the run ends as unvalidated.  An
 * answer that something cannot be done is taken as it is, and so is one that was asked for because a budget is used up.
 */
#ifndef HOLORUN_AGENT_VALIDATOR_H
#define HOLORUN_AGENT_VALIDATOR_H

#include "agent/llm.h"

enum { VALIDATOR_FRAMES = 3 };

struct validator { /* all borrowed */
    int passes, most;
    /* Whom to ask one question, freed afterwards; NULL with e.  The dialect's "validator" is the system text, else ours. */
    struct llm *(*partner)(void *arg, struct err *e);
    void *arg;
};

#endif
