/* measure.c - timing, rows, and the limits of the machine: see bench.h. */
#include "bench/bench.h"

#include "base/clock.h"
#include "capacity/memory.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_RUNS = 2000, LEAST_MS = 250, MOST_MS = 2000, LIMIT_RUNS = 5 };

bool bench_has_section(const struct bench *k, const char *section)
{
    return !strcmp(k->section, "all") || !strcmp(k->section, section);
}

bool bench_wants(const struct bench *k, const char *name)
{
    return !k->only || strstr(name, k->only);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Returns whether n runs suffice: `repeat` runs and a quarter of a second, or two runs and two seconds. */
static bool enough(const struct bench *k, int n, double total)
{
    if (n == MAX_RUNS || (n >= k->repeat && (total >= LEAST_MS || k->repeat == 1 || k->brief)))
        return true;
    return n > 1 && total > MOST_MS;
}

bool bench_on_gpu(const struct bench *k)
{
    return k->b->ops->synchronize;
}

static void wait(const struct bench *k)
{
    if (bench_on_gpu(k))
        k->b->ops->synchronize(k->b);
}

static double run_once(const struct bench *k, void (*fn)(void *), void *arg)
{
    int64_t start = clock_ns();
    fn(arg);
    wait(k);
    return clock_ms_since(start);
}

struct timing bench_timing(double *ms, int n)
{
    qsort(ms, (size_t)n, sizeof *ms, by_value);
    return (struct timing){(ms[(n - 1) / 2] + ms[n / 2]) / 2, ms[0], n};
}

struct timing bench_measure(const struct bench *k, void (*fn)(void *), void *arg)
{
    double ms[MAX_RUNS] = {run_once(k, fn, arg)}, total = ms[0];
    int n = 1;
    if (k->repeat > 1 && ms[0] < MOST_MS) { /* the first run was a warm-up */
        n = 0;
        total = 0;
    }
    while (!enough(k, n, total))
        total += ms[n++] = run_once(k, fn, arg);
    return bench_timing(ms, n);
}

/* ---- rows ------------------------------------------------------------------------------------------ */

const char *bench_name(const char *fmt, ...)
{
    static _Thread_local char name[128];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    return name;
}

void bench_heading(const struct bench *k)
{
    if (!k->json)
        printf("%s, %d threads\n%-8s %-44s %9s %9s\n", k->b->ops->name, pool_threads(k->pool), "section", "",
               "median ms", "min ms");
}

static void row_json(const struct bench *k, const char *section, const char *name, struct timing t,
                     double gflops, double gbytes, double peak, double count, const char *unit)
{
    printf("{\"section\": \"%s\", \"name\": \"%s\", \"isa\": \"%s\", \"threads\": %d, \"runs\": %d, "
           "\"median_ms\": %.5f, \"min_ms\": %.5f",
           section, name, k->b->ops->name, pool_threads(k->pool), t.runs, t.median, t.min);
    if (gflops > 0)
        printf(", \"gflop_s\": %.2f", gflops);
    if (gflops > 0 && peak > 0)
        printf(", \"of_peak\": %.4f", gflops / peak);
    if (gbytes > 0)
        printf(", \"gb_s\": %.2f", gbytes);
    if (gbytes > 0 && k->memory > 0)
        printf(", \"of_memory\": %.4f", gbytes / k->memory);
    if (count > 0)
        printf(", \"rate\": %.6g, \"unit\": \"%s/s\"", count, unit);
    puts("}");
}

void bench_row(const struct bench *k, const char *section, const char *name, struct timing t, struct rate r)
{
    double ms = r.limit ? t.min : t.median, per_ms = ms > 0 ? 1 / ms : 0;
    double gflops = r.flop * per_ms * 1e-6, gbytes = r.bytes * per_ms * 1e-6, count = r.count * per_ms * 1e3;
    double peak = r.factor == DT_BF16 ? k->peak_bf16 : k->peak_f32;
    if (k->json) {
        row_json(k, section, name, t, gflops, gbytes, peak, count, r.unit);
    } else {
        printf("%-8s %-44s %9.3f %9.3f", section, name, t.median, t.min);
        if (count > 0)
            printf(" %9.1f %s/s", count, r.unit);
        if (gflops > 0)
            printf(" %8.1f GFLOP/s", gflops);
        if (gflops > 0 && peak > 0)
            printf(" %3.0f %% of peak", 100 * gflops / peak);
        if (gbytes > 0)
            printf(" %7.1f GB/s", gbytes);
        if (gbytes > 0 && k->memory > 0)
            printf(" %3.0f %% of memory", 100 * gbytes / k->memory);
        putchar('\n');
    }
    fflush(stdout);
}

void bench_value(const struct bench *k, const char *section, const char *name, double value, const char *unit)
{
    char number[32] = "null"; /* JSON has no infinity */
    if (isfinite(value))
        snprintf(number, sizeof number, "%.6g", value);
    if (k->json)
        printf("{\"section\": \"%s\", \"name\": \"%s\", \"isa\": \"%s\", \"threads\": %d, \"value\": %s, "
               "\"unit\": \"%s\"}\n",
               section, name, k->b->ops->name, pool_threads(k->pool), number, unit);
    else
        printf("%-8s %-44s %19.6g %s\n", section, name, value, unit);
    fflush(stdout);
}

void bench_skip(const struct bench *k, const char *section, const char *name)
{
    if (k->json)
        fprintf(stderr, "%s: %s: not enough memory\n", section, name);
    else
        printf("%-8s %-44s   not enough memory\n", section, name);
    fflush(stdout);
}

/* ---- memory ------------------------------------------------------------------------------------------ */

double bench_memory_free(const struct bench *k)
{
    return k->b->ops->memory_left ? (double)k->b->ops->memory_left(k->b) : (double)memory_available();
}

/* ---- temporary files ---------------------------------------------------------------------------------- */

enum { MOST_PATHS = 16, PATH_BYTES = 512 };

static char paths[MOST_PATHS][PATH_BYTES];
static volatile sig_atomic_t n_paths;

static void on_signal(int sig)
{
    for (int i = n_paths; i-- > 0;)
        if (unlink(paths[i]))
            rmdir(paths[i]);
    signal(sig, SIG_DFL);
    raise(sig); /* delivered when this handler returns */
}

void bench_temp_file(const char *path)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction sa = {.sa_handler = on_signal}, old;
    if (n_paths == MOST_PATHS || strlen(path) >= PATH_BYTES)
        return;
    snprintf(paths[n_paths], PATH_BYTES, "%s", path);
    n_paths++;
    for (int i = 0; i < 3; i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(signals[i], &sa, NULL); /* an ignored signal, as under nohup, stays ignored */
}

/* ---- limits ------------------------------------------------------------------------------------------ */

struct arithmetic {
    struct backend *b;
    enum dtype type;
    double flop;
};

static void run_arithmetic(void *arg)
{
    struct arithmetic *a = arg;
    a->flop = a->b->ops->probe(a->b, a->type, 20000);
}

struct reading {
    struct pool *pool;
    const uint64_t *data;
    int64_t words;
    uint64_t sums[256]; /* sums of each thread, so that the reads are not optimized away */
};

static void read_range(void *arg, int64_t begin, int64_t end, int thread)
{
    struct reading *r = arg;
    uint64_t lane[16] = {0};
    for (int64_t i = begin; i + 16 <= end; i += 16)
        for (int j = 0; j < 16; j++)
            lane[j] += r->data[i + j];
    for (int j = 0; j < 16; j++)
        r->sums[thread] += lane[j];
}

static void run_reading(void *arg)
{
    struct reading *r = arg;
    pool_for(r->pool, r->words, 1 << 16, read_range, r);
}

struct copying {
    struct backend *b;
    struct tensor to, from;
};

enum { COPIES = 8 };

static void run_copying(void *arg)
{
    struct copying *c = arg;
    for (int i = 0; i < COPIES; i++)
        c->b->ops->copy(c->b, c->to, c->from);
}

/* Measures a GPU's memory bandwidth by copying 1 GiB, more than any cache, within its memory. */
static void copying_limit(struct bench *k, const struct bench *often, bool show)
{
    int64_t bytes = k->brief || k->repeat == 1 ? 64 << 20 : 1 << 30;
    struct copying c = {k->b, k->b->ops->alloc(k->b, DT_U8, 1, bytes),
                        k->b->ops->alloc(k->b, DT_U8, 1, bytes)};
    struct timing t = bench_measure(often, run_copying, &c);
    k->b->ops->free(k->b, &c.to);
    k->b->ops->free(k->b, &c.from);
    double moved = 2.0 * COPIES * (double)bytes;
    if (show)
        bench_row(k, "peak", bench_name("copying %lld MiB on the device", (long long)bytes >> 20), t,
                  (struct rate){.bytes = moved, .limit = true});
    k->memory = moved / t.min * 1e-6;
}

/* Measures the limits, each as the fastest of several runs. */
void bench_peak(struct bench *k)
{
    struct bench often = *k;
    often.repeat = k->repeat > LIMIT_RUNS ? k->repeat : LIMIT_RUNS;
    const char *const names[] = {"arithmetic in registers, f32",
                                 bench_on_gpu(k) ? "matrix products, bf16" : "arithmetic in registers, bf16"};
    bool show = bench_has_section(k, "peak") || !strcmp(k->section, "fleet");
    for (int i = 0; i < 2; i++) {
        struct arithmetic a = {k->b, i ? DT_BF16 : DT_F32, 0};
        struct timing t = bench_measure(&often, run_arithmetic, &a);
        if (show)
            bench_row(k, "peak", names[i], t, (struct rate){.flop = a.flop, .factor = a.type, .limit = true});
        *(i ? &k->peak_bf16 : &k->peak_f32) = a.flop / t.min * 1e-6;
    }
    if (bench_on_gpu(k)) {
        copying_limit(k, &often, show);
        return;
    }
    enum { BYTES = 256 << 20 };
    autofree uint64_t *data = xmalloc(BYTES, 1);
    memset(data, 1, BYTES);
    struct reading r = {.pool = k->pool, .data = data, .words = BYTES / 8};
    struct timing t = bench_measure(&often, run_reading, &r);
    if (show)
        bench_row(k, "peak", "reading 256 MiB of memory", t, (struct rate){.bytes = BYTES, .limit = true});
    k->memory = BYTES / t.min * 1e-6;
}

int bench_rates(int threads, double *bandwidth, double *flops, struct err *e)
{
    struct bench k = {.section = "", .repeat = 1, .brief = true};
    if (*bandwidth > 0 && *flops > 0)
        return 0;
    k.pool = pool_new(threads);
    k.b = backend_cpu(NULL, k.pool, e);
    int rc = k.b ? 0 : -1;
    if (k.b) {
        bench_peak(&k);
        *bandwidth = *bandwidth > 0 ? *bandwidth : k.memory * 1e9;
        *flops = *flops > 0 ? *flops : (k.peak_bf16 > k.peak_f32 ? k.peak_bf16 : k.peak_f32) * 1e9;
    }
    backend_free(k.b);
    pool_free(k.pool);
    return rc;
}
