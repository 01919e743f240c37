/* roofline.h - what a GPU is expected to take for a decode step, a screenshot, a step of an agent.
 *
 * The limits of cost.h say what nothing can beat.  Here every part of a row has the rate or the latency
 * that its kernels are expected to reach (roofline.c: `reach`), some of them measured on an H200, so that a
 * run on a card says which of these is wrong there. A prediction is its parts: they are printed with it.
 */
#ifndef HOLORUN_CAPACITY_ROOFLINE_H
#define HOLORUN_CAPACITY_ROOFLINE_H

#include "capacity/cost.h"

struct roofline_card {
    const char *name, *words; /* "h100", "H100 SXM, 80 GB" */
    double memory;            /* bytes */
    double copy;              /* bytes a second that a copy reaches, read and written */
    double flops;             /* bf16 products of large matrices */
    int processors;
    double clock;     /* cycles a second under load */
    double mma;       /* of `flops`, what one warp's instructions (mma.sync) reach */
    bool overlap;     /* a kernel may start before the one before it has ended */
    double fp8;       /* rate of products of fp8, in multiples of `flops`; 0: it has none */
    const char *seen; /* the day a run on it was measured; NULL: none was */
};

/* The card of this name, or number i; NULL: there is none. */
const struct roofline_card *roofline_card(const char *name);
const struct roofline_card *roofline_card_at(int i);

struct roofline_model {
    const struct model_config *config;
    struct state_types types;
    int vocab;
    double number; /* bytes per weight of the language model's matrices */
    int prefix;    /* of the tower */
    bool fp8;      /* prompts' activations are rounded to fp8 (cuda/fp8.cu) */
};

enum roofline_part {
    ROOFLINE_WEIGHTS,  /* read by the products, at their rate */
    ROOFLINE_STATES,   /* recurrent states, read and written; of many sessions written seldom */
    ROOFLINE_KEYS,     /* keys and values */
    ROOFLINE_LATENCY,  /* beginnings and ends of products, norms: what does not grow with bytes */
    ROOFLINE_LAUNCHES, /* gaps between kernels of a graph */
    ROOFLINE_HOST,     /* sampling, comparing the graph */
    ROOFLINE_TOWER,
    ROOFLINE_PROMPT, /* products of tokens that are read */
    ROOFLINE_SCAN,
    ROOFLINE_PARTS
};
const char *roofline_part_name(enum roofline_part p);

struct roofline_row {
    char name[96];
    double ms, limit_ms; /* limit: of bytes at the rate of a copy, and of products at the card's; states
                            read and written by every token, which steps of many sessions need not do */
    double part[ROOFLINE_PARTS];
    double count; /* of `unit` in these ms */
    const char *unit;
};

/* One token of each of n sessions after `past` others. */
struct roofline_row roofline_decode(const struct roofline_model *m, const struct roofline_card *g, int n,
                                    int64_t past);

/* A screenshot of w x h pixels read after `past` tokens; *tokens may be NULL. */
struct roofline_row roofline_screen(const struct roofline_model *m, const struct roofline_card *g, int w,
                                    int h, int64_t past, int64_t *tokens);

/* A screenshot for each of n sessions one after the other, then a reply of so many tokens, of which a
 * grammar forces `forced`: of few sessions in runs of ROOFLINE_RUN that are read together with the token
 * before them. */
enum { ROOFLINE_RUN = 7 };
struct roofline_row roofline_step(const struct roofline_model *m, const struct roofline_card *g, int n, int w,
                                  int h, int64_t past, int reply, int forced);

#endif
