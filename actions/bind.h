/* bind.h - what bind.c and bind_values.c share: a tool call that is being turned into an action. */
#ifndef HOLORUN_ACTIONS_BIND_H
#define HOLORUN_ACTIONS_BIND_H

#include "actions/parse.h"

struct binding {
    struct parse *p;
    const struct tool *tool;
    struct action *a;
    double n[4];          /* x y x2 y2 as the model wrote them */
    bool has[4], real[4]; /* real: written with a decimal point */
    char direction;       /* u d l r, 0 none */
    int amount;
    bool failure; /* status: the task was not done */
};

/* Reads one value into the action, or into the binding when its meaning depends on other values. */
enum action_fault bind_arg(struct binding *c, const struct tool_arg *arg, json_t *v);

#endif
