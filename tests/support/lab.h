/* lab.h - compares operations of two backends on random shapes and numbers.
 *
 * Tolerances. In f32 two orders of summation over n terms differ by about sqrt(n) roundings of 6e-8 of the
 * largest partial sum: 2e-5 relative to the largest output is enough for n up to 5000. With bf16 outputs one
 * rounding step is 2^-8 to 2^-7 of the value, and a sum on the other side of a rounding boundary differs by
 * one step: 1 % of the value plus the f32 term, and twice that where an epilogue squares. Attention may round
 * its weights to bf16 before the product with the values (as flash attention on a GPU does): each weight is
 * off by up to 2^-9 of itself, so the sum may be off by 0.5 % of the largest value. In a bf16 scan one factor
 * of each term may be rounded, so a sum may be off by 2^-8 of the sum of the terms' magnitudes.
 */
#pragma once

#include "ops/ops.h"

struct lab {
    struct backend *ref, *fast;
    struct backend *mem; /* its memory is readable by both backends and the host */
    enum dtype act;
    bool small; /* lab_attend_sizes, lab_each_sizes: 8-bit keys and values */
};

/* Each draws a shape and numbers, runs both backends, and returns the largest difference as a multiple of the
 * tolerance. */
typedef double lab_case(const struct lab *l);
lab_case lab_linear, lab_norms, lab_conv, lab_ssm, lab_attend, lab_tiles;

/* Opens the GPU; ends the program without one. */
struct backend *lab_gpu(void);
/* Opens the reference and the GPU. */
struct lab lab_open(enum dtype act);
void lab_close(struct lab *l);

/* Runs a case `rounds` times in f32 and in bf16; fails the test above the tolerance. */
void lab_compare(struct lab *l, lab_case *fn, int rounds);

/* State of the random generator; set it first. */
extern uint64_t lab_random;
double lab_uniform(double lo, double hi);
int lab_between(int lo, int hi); /* both included */

/* Calls fn with a backend of each instruction set of this CPU. */
void lab_each_isa(void (*fn)(struct backend *b));
/* Calls fn for each instruction set other than the reference, whose backend has so many threads. */
void lab_each_fast(int threads, void (*fn)(const char *isa, struct backend *ref, struct backend *fast));
/* Calls fn for each instruction set, with a backend without threads and one with so many. */
void lab_each_threads(int threads, void (*fn)(struct backend *one, struct backend *many));

/* Tensors in memory that the host can read. */
float lab_at(struct tensor t, int64_t r, int64_t c);
void lab_fill(struct tensor t, double lo, double hi);
struct tensor lab_make(struct backend *b, enum dtype d, int64_t rows, int64_t cols, double lo, double hi);
struct tensor lab_twin(struct backend *b, struct tensor t);
void lab_poison(struct tensor t); /* sets all to NaN */
void lab_drop(struct backend *b, int n, struct tensor *const t[]);
double lab_largest(struct tensor t);

/* Returns the largest difference as a multiple of the tolerance; 1 is the limit. slack: additional tolerance,
 * for terms that were rounded to bf16 before they could cancel. */
double lab_worst(struct tensor have, struct tensor want);
double lab_worst_within(struct tensor have, struct tensor want, double slack);

/* Also allows the fraction `share` of `terms`, the sum of each number's terms in magnitude. */
double lab_worst_beside(struct tensor have, struct tensor want, double slack, struct tensor terms,
                        double share);

/* Makes weights in a quantized format as in a file: e4m3 alternates between one scale for all and other
 * scales. A backend packs them in this format, or as `kept` if it is none. */
struct lab_weights {
    struct quant_source source;
    void *data;
    uint8_t *groups;
};
struct lab_weights lab_weights_make(enum quant_format format, int64_t rows, int64_t cols);
void lab_weights_drop(struct lab_weights *m);
struct weight *lab_weights_pack(struct backend *b, enum quant_format format, const struct lab_weights *m,
                                enum dtype kept);

/* Returns a weight of the reference with its values [N, K] rounded to bf16; frees w. */
struct weight *lab_rounded(const struct lab *l, struct weight *w, int64_t N, int64_t K);

/* Attention of given sizes (lab_attend.c): queries of heads * group heads of d numbers, each at most `score`,
 * over keys and values of at most 1. Returns as a lab_case does. */
struct lab_attention {
    int queries, past, heads, group, d;
    double score;
    bool loose; /* rows at any address */
};
double lab_attend_sizes(const struct lab *l, struct lab_attention s);
double lab_tiles_sizes(const struct lab *l, int heads, int d, int tiles, int n, bool loose);

/* Query t has keys[t] keys. Returns NAN if attend_batch or attend of a single session gives other bits. */
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

/* Runs the scan of rows [first, first + n), or the step of row `first`, with these outputs, state and key. */
void lab_ssm_run(const struct lab_ssm *k, struct backend *b, bool step, struct tensor y, int64_t first,
                 int64_t n, struct tensor state, uint32_t key);

/* Compares f16 states with f32 states of equal initial values (lab_stochastic_round.c). Fails the test unless
 * the outputs are bit-identical and the f16 states are stochastic_round_f16 of the f32 ones. A step is one
 * token of each of T sessions, a scan T tokens of one. */
struct lab_stochastic {
    enum dtype act;
    int T, G, H, P, N;
    int wide; /* extra columns of the matrices that contain the states */
};
void lab_stochastic_step(struct backend *b, struct lab_stochastic s);
void lab_stochastic_scan(struct backend *b, struct lab_stochastic s);

/* Rounds the given N numbers, of any kind, through a state that holds exactly them in f32, as two rows. */
void lab_stochastic_numbers(struct backend *b, const float *v, int N);
