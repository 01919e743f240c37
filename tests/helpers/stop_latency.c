/* stop_latency.c - measures the time to stop a run at random moments.
 *
 *   stop_latency MOMENTS SESSIONS [SEED]
 *
 * SESSIONS runs work at the same time, each on its own X server; in turn, each is stopped at a random
 * moment and replaced by a new run.  Prints a line for each kind of activity, and one for all.  Exits with
 * 1 if a key or button stayed pressed, a record is incomplete, or the 99th percentile is above 50 ms.
 */
#include "moments.h"

#include "base/clock.h"
#include "base/err.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_SESSIONS = 64, MAX_MOMENTS = 10000, WAIT_MS = 1500, LIMIT_MS = 50 };

static struct moments sessions[MAX_SESSIONS];

struct figures {
    double silence[MAX_MOMENTS], end[MAX_MOMENTS];
    int n;
};
static struct figures each[DOINGS], all;

static void put(struct figures *f, const struct moment *m)
{
    f->silence[f->n] = m->silence_ms;
    f->end[f->n++] = m->end_ms;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double percentile(double *v, int n, double p)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    int i = (int)ceil(p * n) - 1;
    return n ? v[i < 0 ? 0 : i] : 0;
}

static void print(const char *name, struct figures *f)
{
    double last = percentile(f->silence, f->n, 1), end = percentile(f->end, f->n, 1);
    if (f->n)
        printf("%-9s %5d  %6.0f %6.0f %6.0f  %8.0f %8.0f %8.0f\n", name, f->n,
               percentile(f->silence, f->n, 0.5), percentile(f->silence, f->n, 0.99), last,
               percentile(f->end, f->n, 0.5), percentile(f->end, f->n, 0.99), end);
}

/* Tests the k-th moment; returns 0 if it passed. */
static int one(int k, int n)
{
    struct moments *m = &sessions[k % n];
    enum doing doing = (enum doing)(lrand48() % DOINGS);
    enum gesture how = k % 5 < 3 ? GESTURE_ESCAPE : k % 5 == 3 ? GESTURE_SIGNAL : GESTURE_FILE;
    struct moment got;
    doing = m->run ? m->doing : doing;
    for (;;) {
        if (!m->run)
            moments_start(m, doing);
        if (moments_stop(m, how, drand48() * WAIT_MS, &got) == 0)
            break;
    }
    put(&each[m->doing], &got);
    put(&all, &got);
    if (*got.wrong)
        printf("moment %d, %s: %s\n", k, doing_names[m->doing], got.wrong);
    if (got.silence_ms > LIMIT_MS)
        printf("moment %d, %s, gesture %d: %.0f ms\n", k, doing_names[m->doing], how, got.silence_ms);
    moments_start(m, (enum doing)(lrand48() % DOINGS));
    return *got.wrong != 0;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 0, n = argc > 2 ? atoi(argv[2]) : 0, wrong = 0, open = 0;
    if (count < 1 || count > MAX_MOMENTS || n < 1 || n > MAX_SESSIONS) {
        fprintf(stderr, "usage: stop_latency MOMENTS SESSIONS [SEED]\n");
        return ERR_USAGE;
    }
    srand48(argc > 3 ? atol(argv[3]) : (long)clock_ns());
    for (; open < n && moments_open(&sessions[open]) == 0; open++)
        moments_start(&sessions[open], (enum doing)(open % DOINGS));
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int k = 0; k < count && open == n; k++)
        wrong += one(k, n);
    printf("%d session%s          silence, ms (p50 p99 max)       end, ms (p50 p99 max)\n", n,
           n == 1 ? "" : "s");
    for (int d = 0; d < DOINGS; d++)
        print(doing_names[d], &each[d]);
    print("all", &all);
    double p99 = percentile(all.silence, all.n, 0.99);
    printf("%d wrong; 99 of 100 within %.0f ms\n", wrong, p99);
    while (open > 0)
        moments_close(&sessions[--open]);
    return wrong || all.n != count || p99 > LIMIT_MS;
}
