/* bench.h - measured speed, next to the limit of the machine.
 *
 * A figure is the median of several runs in one process, with the minimum.  The limits are measured by the
 * same program: arithmetic in registers, and memory bandwidth.  Each row says which one it is compared with.
 */
#ifndef HOLORUN_BENCH_BENCH_H
#define HOLORUN_BENCH_BENCH_H

#include "base/err.h"
#include "ops/ops.h"

#include <stdbool.h>

struct bench {
    const char *model, *device, *isa; /* NULL: the one that comes with holorun, the best */
    const char *random;               /* a published size with synthetic weights (random.h); NULL: `model` */
    const char *section;              /* "all" or one of them */
    /* enum weights_in, weight_storage, activation_rounding, state_storage, kv_storage */
    int weights_in, weights, tower, activations, state, kv, speculate;
    bool weight_cache, f32;
    size_t state_memory;        /* 0: what the weights leave */
    int threads, repeat;        /* repeat: least number of runs of each figure */
    int min_pixels, max_pixels; /* of a picture; 0: what the files say */
    /* of a comparison on real text (rounding.c); text NULL: drift on random text */
    const char *text, *choices;
    int from, windows, window;
    bool json;
    bool brief; /* measure the limits to some percent, in a quarter of a second */
    /* of an endpoint (endpoint.c) */
    const char *base_url, *key, *profile, *dialect;
    int api, provider, agents;    /* agents: the most that are tried */
    double bound, pause, seconds; /* of a step's p95; between steps; for each number of agents */
    struct pool *pool;
    struct backend *b;
    double peak_f32, peak_bf16, memory; /* GFLOP/s, GFLOP/s, GB/s */
};

struct timing {
    double median, min; /* ms for one call */
    int runs;
};

struct rate { /* of one call; 0: does not apply */
    double flop, bytes, count;
    const char *unit;  /* of count: "tok", "shots" */
    enum dtype factor; /* type of the arithmetic: selects the peak */
    bool limit;        /* the row is a limit itself: the rate of its fastest run */
};

bool bench_has_section(const struct bench *k, const char *section);

/* Whether the backend is a GPU, whose operations return before they are done. */
bool bench_on_gpu(const struct bench *k);

/* Bytes of memory that are free, of the GPU or the host. */
double bench_memory_free(const struct bench *k);

/* The timing of n runs; sorts ms. */
struct timing bench_timing(double *ms, int n);

/* Runs fn to its end, after one run to warm up, at least `repeat` times and for a quarter of a second.
 * Measurements that take seconds run twice, and with a repeat of 1 everything runs once. */
struct timing bench_measure(const struct bench *k, void (*fn)(void *), void *arg);

void bench_heading(const struct bench *k);
void bench_row(const struct bench *k, const char *section, const char *name, struct timing t, struct rate r);

/* A name made of its parts; valid until the same thread asks for the next one. */
const char *bench_name(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* A value that is not a time. */
void bench_value(const struct bench *k, const char *section, const char *name, double value,
                 const char *unit);

/* A row that is skipped because memory does not suffice. */
void bench_skip(const struct bench *k, const char *section, const char *name);

/* A temporary file, or a folder, which is added before the files in it; it need not exist.  Those that are
 * left are removed when SIGINT, SIGTERM or SIGHUP ends the process. */
void bench_temp_file(const char *path);

void bench_peak(struct bench *k);
/* Measures those of the two that are 0, briefly: bytes and operations a second. */
int bench_rates(int threads, double *bandwidth, double *flops, struct err *e);
void bench_kernels(const struct bench *k);
int bench_model(const struct bench *k, struct err *e); /* vision, prefill, decode, session, step, drift */

/* Compares the options of rounding on the text of a file: section drift with --text. */
int bench_rounding(const struct bench *k, struct err *e);

/* How many agents a model behind an address carries. */
struct endpoint_options;
int bench_endpoint(const struct bench *k, const struct endpoint_options *o, struct err *e);

#endif
