/* gate_impl.h - struct gate.  Private to gate/gate.c and gate/type.c. */
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
    struct redact *redact;          /* NULL: nothing to cover */
    unsigned long window;           /* of the last action that passed */
    struct subject subject;         /* of the current action; large */
    const char *named[SECRETS_MAX]; /* secrets that it would type */
    uint32_t held[POLICY_MAX_KEYS];
    int n_held, questions;
    bool warned_nobody;
    struct goals *goals; /* NULL: no task */
    struct policy_spent spent;
};

#endif
