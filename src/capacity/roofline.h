/* roofline.h - predicted GPU times of a decode step, a screenshot, and a step of an agent.
 *
 * The limits of cost.h cannot be beaten. Here every part of a row has the rate or latency that its kernels
 * are expected to reach (roofline.c: `reach`), some of them measured on an H200, so that a measurement on a
 * GPU shows which of them are wrong. The parts of a prediction are printed with it. */
#pragma once

#include "capacity/cost.h"

struct roofline_card {
    const char *name, *words; /* "h100", "H100 SXM, 80 GB" */
    double memory;            /* bytes */
    double copy;              /* bytes per second reached by a copy, read plus written */
    double flops;             /* bf16 products of large matrices, per second */
    int processors;
    double clock;     /* cycles per second under load */
    bool overlap;     /* a kernel may start before the previous one has ended */
    double fp8;       /* rate of fp8 products in multiples of `flops`; 0: not supported */
    const char *seen; /* day of a measurement on this GPU; NULL: none */
};

/* Return the GPU with this name, or number i; NULL if there is none. */
const struct roofline_card *roofline_card(const char *name);
const struct roofline_card *roofline_card_at(int i);

struct roofline_model {
    const struct model_config *config;
    struct state_types types; /* with the ring of a GPU */
    int vocab;
    double number; /* bytes per weight of the language model's matrices */
    int prefix;    /* rows of the vision encoder's prefix */
    bool fp8;      /* activations of prompts are rounded to fp8 (cuda/fp8.cu) */
};

enum roofline_part {
    ROOFLINE_WEIGHTS,  /* read by the products, at their rate */
    ROOFLINE_STATES,   /* recurrent states, read and written; with many sessions written only every few
                        * tokens */
    ROOFLINE_KEYS,     /* keys and values */
    ROOFLINE_LATENCY,  /* begin and end of products, norms: independent of the number of bytes */
    ROOFLINE_LAUNCHES, /* gaps between kernels of a graph, and kernels that dequantize parts */
    ROOFLINE_HOST,     /* sampling, comparing the graph */
    ROOFLINE_TOWER,
    ROOFLINE_PROMPT, /* products of prefilled tokens */
    ROOFLINE_SCAN,
    ROOFLINE_PARTS
};
const char *roofline_part_name(enum roofline_part p);

struct roofline_row {
    char name[96];
    double ms, limit_ms; /* limit: the time of the bytes that the kernels move at the rate of a copy, and of
                          * the products at the GPU's rate */
    double part[ROOFLINE_PARTS];
    double count; /* units produced in these ms */
    const char *unit;
};

/* Predicts decoding one token of each of n sessions after `past` others. */
struct roofline_row roofline_decode(const struct roofline_model *m, const struct roofline_card *g, int n,
                                    int64_t past);

/* Predicts prefilling a screenshot of w x h pixels after `past` tokens; *tokens may be NULL. */
struct roofline_row roofline_screen(const struct roofline_model *m, const struct roofline_card *g, int w,
                                    int h, int64_t past, int64_t *tokens);

/* Predicts a screenshot for each of n sessions in sequence, then a reply of `reply` tokens; a
 * grammar forces `forced` of them. With few sessions the forced tokens are in runs of ROOFLINE_RUN, which are
 * prefilled together with the token before them. */
enum { ROOFLINE_RUN = 7 };
struct roofline_row roofline_step(const struct roofline_model *m, const struct roofline_card *g, int n, int w,
                                  int h, int64_t past, int reply, int forced);
