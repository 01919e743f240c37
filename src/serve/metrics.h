/* metrics.h - server metrics in the Prometheus text format. */
#pragma once

#include "base/buf.h"

#include <stdatomic.h>
#include <stdint.h>

enum { METRICS_BUCKETS = 12, METRICS_STATUSES = 12 };

struct histogram { /* in seconds */
    atomic_llong buckets[METRICS_BUCKETS + 1];
    atomic_llong microseconds, n;
};

struct metrics { /* zero-initialised */
    struct {
        atomic_int status; /* HTTP status; 0: unused */
        atomic_llong n;
    } replies[METRICS_STATUSES];
    atomic_llong prompt_tokens, cached_tokens, generated_tokens, pictures, cancelled;
    atomic_int running;
    struct histogram first_token, whole;
};

void metrics_reply(struct metrics *m, int status);
void metrics_observe(struct histogram *h, double seconds);

struct metric_gauge {
    const char *name, *help;
    double value;
};
/* Prints all metrics. gauges: values from the caller, terminated by a NULL name. */
void metrics_print(struct metrics *m, const struct metric_gauge *gauges, struct buf *out);
