/* plan.h - data that cmd/plan.c collects and cmd/plan_print.c prints. */
#pragma once

#include "capacity/plan.h"
#include "capacity/roofline.h"
#include "model/config.h"

#include <jansson.h>
#include <stdbool.h>

struct plan_settings {
    const char *model, *screen, *gpu_words;
    size_t gpu, memory, state_memory;
    const struct roofline_card *card; /* the GPU that --gpu names, or NULL */
    int weights_in, weights, tower, activations, state, kv, sessions, context, generated, threads;
    double bandwidth, flops;
    bool json;
};

struct planning {
    const struct plan_settings *set;
    char *dir;
    struct model_config c;
    struct plan p;
    /* memory: of the machine or the GPU, in bytes; usable: the part of it that may be used */
    size_t memory, usable;
    size_t files; /* bytes of the pages of the program and its libraries */
    int screen_w, screen_h;
    int64_t context;
    double bandwidth, flops; /* bytes and flop per second; 0: unknown */
    json_t *root;            /* all results, in bytes */
};

static inline double planning_gib(size_t bytes)
{
    return (double)bytes / (1 << 30);
}

void planning_print(const struct planning *g); /* prints the results as tables on stdout */
