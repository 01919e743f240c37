/* bench.h - measuring speed beside the limit that bounds it.
 *
 * A figure is the median of several runs in one process, with the minimum beside it, on this machine and
 * now.  Limits are measured by the same program: arithmetic in registers, and reading of memory.  What a
 * figure is compared with stands in its row.
 */
#ifndef HOLORUN_BENCH_BENCH_H
#define HOLORUN_BENCH_BENCH_H

#include "base/err.h"
#include "ops/ops.h"

#include <stdbool.h>

struct bench {
    const char *model, *device, *isa; /* NULL: the one that comes with holorun, the best */
    const char *random;  /* sizes of a model whose weights are made (bench/random.h); NULL: `model` */
    const char *section; /* "all" or one of them */
    int weights_in, weights, state, kv; /* enum weights_in, weight_storage, state_storage, kv_storage */
    bool weight_cache, f32;
    size_t state_memory; /* 0: what the weights leave */
    int threads, repeat; /* repeat: at least so many runs of each figure */
    bool json;
    bool brief; /* limits to within some percent, in a quarter of a second */
    struct pool *pool;
    struct backend *b;
    double peak_f32, peak_bf16, memory; /* GFLOP/s, GFLOP/s, GB/s */
};

struct timing {
    double median, least; /* ms for one call */
    int runs;
};

struct rate { /* of one call; 0: does not apply */
    double flop, bytes, count;
    const char *unit;  /* of count: "tok", "shots" */
    enum dtype factor; /* of the arithmetic: which peak it is compared with */
    bool limit;        /* the row is itself a limit: the rate of its fastest run */
};

bool bench_wants(const struct bench *k, const char *section);

/* The operations are a GPU's: they return before they are done.  Memory there, or of the host: bytes that could be
 * used, and bytes in use from a point of their own. */
bool bench_on_gpu(const struct bench *k);
double bench_room(const struct bench *k);
double bench_used(const struct bench *k);

/* Calls fn, and waits for what it began, until there were `repeat` runs and a quarter of a second, after one that is not counted.  What
 * takes seconds is run twice, and with a repeat of 1 everything once. */
struct timing bench_measure(const struct bench *k, void (*fn)(void *), void *arg);

void bench_heading(const struct bench *k);
void bench_row(const struct bench *k, const char *section, const char *name, struct timing t, struct rate r);
/* A value that is not a time. */
void bench_value(const struct bench *k, const char *section, const char *name, double value,
                 const char *unit);

/* A row for which there is no room. */
void bench_left_out(const struct bench *k, const char *section, const char *name);

void bench_peak(struct bench *k);
void bench_kernels(const struct bench *k);
int bench_model(const struct bench *k, struct err *e); /* vision, prefill, decode, session, step, drift */

#endif
