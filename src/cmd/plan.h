/* plan.h - what cmd/plan.c collects and cmd/plan_print.c prints. */
#ifndef HOLORUN_CMD_PLAN_H
#define HOLORUN_CMD_PLAN_H

#include "capacity/plan.h"
#include "capacity/roofline.h"
#include "model/config.h"

#include <jansson.h>
#include <stdbool.h>

struct plan_settings {
    const char *model, *screen, *gpu_words;
    size_t gpu, memory, state_memory;
    const struct roofline_card *card; /* that --gpu names, or NULL */
    int weights_in, weights, tower, activations, state, kv, sessions, context, generated, threads;
    double bandwidth, flops;
    bool json;
};

struct planning {
    const struct plan_settings *set;
    char *dir;
    struct model_config c;
    struct plan p;
    size_t memory, usable; /* of the machine, and what may be used */
    size_t files;          /* pages of the program and its libraries */
    int screen_w, screen_h;
    int64_t context;
    double bandwidth, flops; /* per second; 0: not known */
    json_t *root;            /* everything that is known, in bytes */
};

static inline double planning_gib(size_t bytes)
{
    return (double)bytes / (1 << 30);
}

void planning_print(const struct planning *g); /* as tables, on stdout */

#endif
