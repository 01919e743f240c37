/* bench.h - measured speed, compared with the limits of the machine.
 *
 * Each result is the median of several runs in one process, with the minimum.  The limits are measured by the
 * same program: arithmetic in registers, and memory bandwidth.  Each row states the limit with which it is
 * compared. */
#pragma once

#include "base/err.h"
#include "ops/ops.h"

#include <stdbool.h>

struct bench {
    const char *model, *device, *isa; /* NULL: the embedded model, the best device and instruction set */
    const char *random;               /* a published size with synthetic weights (random.h); NULL: `model` */
    const char *section;              /* "all" or the name of a section */
    const char *only;                 /* part of the names of the rows to measure; NULL: all */
    /* enum weights_in, weight_storage, activation_rounding, state_storage, kv_storage */
    int weights_in, weights, tower, activations, state, kv, speculate;
    bool weight_cache, f32;
    size_t state_memory;        /* bytes; 0: all memory that the weights leave */
    int threads, repeat;        /* repeat: minimum number of runs per result */
    int min_pixels, max_pixels; /* limits of an image; 0: those of the model's files */
    /* for a comparison on real text (rounding.c); text NULL: drift on random text */
    const char *text, *choices;
    int from, windows, window;
    bool json;
    bool brief; /* measure the limits with an error of several percent, in a quarter of a second */
    /* for an endpoint (endpoint.c) */
    const char *base_url, *key, *profile, *dialect;
    int api, provider, agents; /* agents: the maximum number that is tried */
    /* in seconds: limit of a step's p95; pause between steps; time per number of agents */
    double bound, pause, seconds;
    struct pool *pool;
    struct backend *b;
    double peak_f32, peak_bf16, memory; /* measured limits: GFLOP/s, GFLOP/s, GB/s */
};

struct timing {
    double median, min; /* ms per call */
    int runs;
};

struct rate { /* work of one call; 0: does not apply */
    double flop, bytes, count;
    const char *unit;  /* unit of count: "tok", "shots" */
    enum dtype factor; /* type of the arithmetic: selects the limit */
    bool limit;        /* the row is a limit itself: its rate is that of the fastest run */
};

bool bench_has_section(const struct bench *k, const char *section);
bool bench_wants(const struct bench *k, const char *name);

/* Returns whether the backend is a GPU, whose operations return before they are complete. */
bool bench_on_gpu(const struct bench *k);

/* Returns the bytes of free memory of the GPU or the host. */
double bench_memory_free(const struct bench *k);

/* Returns the timing of n runs; sorts ms. */
struct timing bench_timing(double *ms, int n);

/* Runs fn at least `repeat` times and for a quarter of a second, after one warm-up run.  Measurements that
 * take more than two seconds run twice; with a repeat of 1 everything runs once. */
struct timing bench_measure(const struct bench *k, void (*fn)(void *), void *arg);

void bench_heading(const struct bench *k);
void bench_row(const struct bench *k, const char *section, const char *name, struct timing t, struct rate r);

/* Formats a name; the result is valid until the next call in the same thread. */
const char *bench_name(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Prints a value that is not a time. */
void bench_value(const struct bench *k, const char *section, const char *name, double value,
                 const char *unit);

/* Prints a row that is skipped for lack of memory. */
void bench_skip(const struct bench *k, const char *section, const char *name);

/* Registers a temporary file, or a directory, which must be registered before its files; it need not exist.
 * Registered paths that still exist are removed when SIGINT, SIGTERM or SIGHUP ends the process. */
void bench_temp_file(const char *path);

void bench_peak(struct bench *k);
/* Measures those of the two rates that are 0, in a short time: bytes and flop per second.  Returns -1 with
 * e. */
int bench_rates(int threads, double *bandwidth, double *flops, struct err *e);
void bench_kernels(const struct bench *k);
/* vision, prefill, decode, session, step, drift and other sections; returns -1 with e */
int bench_model(const struct bench *k, struct err *e);

/* Compares options of rounding on the text of a file: section drift with --text.  Returns -1 with e. */
int bench_rounding(const struct bench *k, struct err *e);

/* Measures reading the elements of the visible windows of $DISPLAY (elements.c). Returns -1 with e. */
int bench_elements(const struct bench *k, struct err *e);

/* Measures runs of eight steps with scripted replies, with a browser on private desktops (loop.c). Returns -1
 * with e. */
int bench_loop(const struct bench *k, struct err *e);

/* Measures the number of agents that an endpoint supports (endpoint.c).  Returns -1 with e. */
struct endpoint_options;
int bench_endpoint(const struct bench *k, const struct endpoint_options *o, struct err *e);
