/* lab.h - operations of two backends side by side, on random shapes and numbers.
 *
 * Tolerances.  In f32 two orders of summation over n terms differ by about sqrt(n) roundings of 6e-8 of
 * the largest partial sum: 2e-5 relative to the largest output covers n up to 5000 with room.  With
 * bf16 outputs one rounding step is 2^-8 to 2^-7 of the value; a sum that falls to the other side of
 * a rounding boundary differs by one step: 1 % of the value plus the f32 term, and twice that where an
 * epilogue squares.  Attention may round its weights to bf16 before they meet the values (as flash
 * attention on a GPU does): each weight is off by up to 2^-9 of itself, so the sum may be off by
 * 0.5 % of the largest value.  Likewise a scan of bf16: of every term one factor may be rounded, so a sum
 * may be off by 2^-8 of what the magnitudes of its terms sum to.
 */
#ifndef HOLORUN_TESTS_LAB_H
#define HOLORUN_TESTS_LAB_H

#include "ops/ops.h"

struct lab {
    struct backend *ref, *fast;
    struct backend *mem; /* whose memory both read, and the host too */
    enum dtype act;
    bool small; /* lab_attend_sizes, lab_each_sizes: keys and values in rows of 8 bits */
};

/* Each draws a shape and numbers, runs both, and returns the largest difference as a multiple of the
 * tolerance. */
typedef double lab_case(const struct lab *l);
lab_case lab_linear, lab_norms, lab_conv, lab_ssm, lab_attend, lab_tiles;

/* The reference beside the device; fails the test where there is no device. */
struct lab lab_open(enum dtype act);
void lab_close(struct lab *l);

/* That many rounds of a case in f32 and in bf16, within the tolerance. */
void lab_compare(struct lab *l, lab_case *fn, int rounds);

/* Numbers come from here: set it first. */
extern uint64_t lab_random;
double lab_uniform(double lo, double hi);
int lab_between(int lo, int hi); /* both included */

/* Calls fn with a backend of each instruction set of this CPU. */
void lab_each_isa(void (*fn)(struct backend *b));

/* Tensors that the host can read. */
float lab_at(struct tensor t, int64_t r, int64_t c);
void lab_fill(struct tensor t, double lo, double hi);
struct tensor lab_make(struct backend *b, enum dtype d, int64_t rows, int64_t cols, double lo, double hi);
struct tensor lab_twin(struct backend *b, struct tensor t);
void lab_poison(struct tensor t); /* NaN */
void lab_drop(struct backend *b, int n, struct tensor *const t[]);
double lab_largest(struct tensor t);

/* Largest difference as a multiple of the tolerance; 1 is the limit.  slack: further tolerance, for what
 * was rounded to bf16 before it could cancel: it has to do with the terms, not with the result. */
double lab_worst(struct tensor have, struct tensor want);
double lab_worst_within(struct tensor have, struct tensor want, double slack);

/* The same with a tensor of terms, of each number what it is made of: it may be off by this share of them. */
double lab_worst_beside(struct tensor have, struct tensor want, double slack, struct tensor terms,
                        double share);

/* Weights (lab_weights.c) as a file would hold ones that end in this form: e4m3 by turns codes with one scale,
 * and other numbers.  Packed by a backend they are kept in this form, or as `kept` where it is none. */
struct lab_weights {
    struct quant_source source;
    void *data;
    uint8_t *groups;
};
struct lab_weights lab_weights_make(enum quant_format format, int64_t rows, int64_t cols);
void lab_weights_drop(struct lab_weights *m);
struct weight *lab_weights_pack(struct backend *b, enum quant_format format, const struct lab_weights *m,
                                enum dtype kept);

/* Attention with given sizes (lab_attend.c): queries of so many heads * group heads of d numbers, each at
 * most `score`, over keys and values of at most 1; result as of lab_case. */
struct lab_attention {
    int queries, past, heads, group, d;
    double score;
    bool loose; /* rows at any addresses */
};
double lab_attend_sizes(const struct lab *l, struct lab_attention s);
double lab_tiles_sizes(const struct lab *l, int heads, int d, int tiles, int n, bool loose);

/* Query t over keys[t] keys; NAN if a session alone, by attend_batch or attend, has not the same bits. */
double lab_each_sizes(const struct lab *l, struct lab_attention s, const int *keys);

/* A Mamba-2 layer of random shape. */
struct lab_ssm {
    struct ssm_shape s;
    struct ssm_const c;
    struct tensor a, dt_bias, d, v, dt, state;
    int T, inner;
};
void lab_ssm_make(struct lab_ssm *k, struct backend *b, enum dtype act, int T, int P, int N);
void lab_ssm_of(struct lab_ssm *k, struct backend *b, enum dtype act, int T, int G, int H, int P, int N);
void lab_ssm_drop(struct lab_ssm *k, struct backend *b);

/* The scan of rows [first, first + n), or the step of row `first`, with these outputs, state and key. */
void lab_ssm_run(const struct lab_ssm *k, struct backend *b, bool step, struct tensor y, int64_t first,
                 int64_t n, struct tensor state, uint32_t key);

/* States in f16 next to states in f32 that start with the same values (lab_stochastic_round.c): outputs
 * must have the same bits, and the former end as stochastic_round_f16 makes them of the latter;
 * otherwise the test fails.  A step is one token of each of T sessions, a scan T tokens of one. */
struct lab_stochastic {
    enum dtype act;
    int T, G, H, P, N;
    int wide; /* columns of the matrices that states lie in, beside their own */
};
void lab_stochastic_step(struct backend *b, struct lab_stochastic s);
void lab_stochastic_scan(struct backend *b, struct lab_stochastic s);

/* A state becomes exactly the given numbers, of any kind, in f32 before it is rounded: N of them, as two
 * rows. */
void lab_stochastic_numbers(struct backend *b, const float *v, int N);

#endif
