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

struct history { /* [n] beside each other; the last is the step at hand */
    struct history_step *steps;
    struct saved *saved;
    int n, cap;
};

struct history_step *history_add(struct history *p, const struct history_step *step,
                                 const struct saved *saved); /* takes both over */
int history_find(const struct history *p, int number); /* index of a step that can be gone back to; -1 */
void history_leave(struct history *p,
                   int turn); /* steps from this turn on are no part of the conversation any more */
void history_free(struct history *p);

#endif
