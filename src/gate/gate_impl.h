/* gate_impl.h - a gate in memory.  Private to gate/gate.c and gate/type.c. */
#ifndef HOLORUN_GATE_GATE_IMPL_H
#define HOLORUN_GATE_GATE_IMPL_H

#include "gate/gate.h"
#include "gate/goals.h"
#include "gate/redact.h"
#include "gate/subject.h"

struct gate {
    struct gate_options o;
    struct screen *screen;
    char *dir;
    struct redact *redact;          /* NULL: nothing is taken out */
    unsigned long window;           /* of the action that has passed last */
    struct subject subject;         /* of the action at hand; large */
    const char *named[SECRETS_MAX]; /* secrets it would type */
    uint32_t held[POLICY_MAX_KEYS];
    int n_held, questions;
    bool told_nobody;
    struct goals *goals; /* NULL: there is no task */
    struct policy_spent spent;
};

#endif
