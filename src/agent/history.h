/* history.h - the steps that lie behind, as an overseer sees them and as they are gone back to.  Private to agent/. */
#ifndef HOLORUN_AGENT_HISTORY_H
#define HOLORUN_AGENT_HISTORY_H

#include "agent/context.h"
#include "agent/overseer.h"

struct saved { /* the loop's own state when a step had been observed */
    int turn;  /* of the conversation */
    char *lead, *signature, *result;
    const char *tool;
    bool failed, expects_change;
    int repeats, errors, still;
    double tiles;
    char title[256], class[128];
};

struct past { /* [n] beside each other; the last is the step at hand */
    struct past_step *steps;
    struct saved *saved;
    int n, cap;
};

struct past_step *past_add(struct past *p, const struct past_step *step,
                           const struct saved *saved); /* takes both over */
int past_find(const struct past *p, int number);       /* index of a step that can be gone back to; -1 */
void past_leave(struct past *p,
                int turn); /* steps from this turn on are no part of the conversation any more */
void past_free(struct past *p);

#endif
