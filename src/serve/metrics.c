/* metrics.c - collects and prints metrics; see metrics.h. */
#include "serve/metrics.h"

static const double bounds[METRICS_BUCKETS] = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120};

/* Counts a reply. The first reply with a status occupies a slot permanently. */
void metrics_reply(struct metrics *m, int status)
{
    for (int i = 0; i < METRICS_STATUSES; i++) {
        int none = 0;
        if (atomic_load(&m->replies[i].status) == status ||
            atomic_compare_exchange_strong(&m->replies[i].status, &none, status) || none == status) {
            atomic_fetch_add(&m->replies[i].n, 1);
            return;
        }
    }
}

void metrics_observe(struct histogram *h, double seconds)
{
    int i = 0;
    while (i < METRICS_BUCKETS && seconds > bounds[i])
        i++;
    atomic_fetch_add(&h->buckets[i], 1);
    atomic_fetch_add(&h->microseconds, (long long)(seconds * 1e6));
    atomic_fetch_add(&h->n, 1);
}

static void print_head(struct buf *out, const char *name, const char *help, const char *type)
{
    buf_printf(out, "# HELP holorun_%s %s\n# TYPE holorun_%s %s\n", name, help, name, type);
}

static void print_counter(struct buf *out, const char *name, const char *help, atomic_llong *value)
{
    print_head(out, name, help, "counter");
    buf_printf(out, "holorun_%s %lld\n", name, (long long)atomic_load(value));
}

static void print_histogram(struct buf *out, const char *name, const char *help, struct histogram *h)
{
    long long sum = 0;
    print_head(out, name, help, "histogram");
    for (int i = 0; i <= METRICS_BUCKETS; i++) {
        sum += atomic_load(&h->buckets[i]);
        if (i < METRICS_BUCKETS)
            buf_printf(out, "holorun_%s_bucket{le=\"%g\"} %lld\n", name, bounds[i], sum);
        else
            buf_printf(out, "holorun_%s_bucket{le=\"+Inf\"} %lld\n", name, sum);
    }
    buf_printf(out, "holorun_%s_sum %.6f\nholorun_%s_count %lld\n", name,
               (double)atomic_load(&h->microseconds) / 1e6, name, sum);
}

void metrics_print(struct metrics *m, const struct metric_gauge *gauges, struct buf *out)
{
    print_head(out, "replies_total", "replies by HTTP status", "counter");
    for (int i = 0; i < METRICS_STATUSES && atomic_load(&m->replies[i].status); i++)
        buf_printf(out, "holorun_replies_total{status=\"%d\"} %lld\n", atomic_load(&m->replies[i].status),
                   (long long)atomic_load(&m->replies[i].n));
    print_counter(out, "prompt_tokens_total", "tokens of all prompts", &m->prompt_tokens);
    print_counter(out, "cached_tokens_total", "prompt tokens found in the cache", &m->cached_tokens);
    print_counter(out, "generated_tokens_total", "tokens of all replies", &m->generated_tokens);
    print_counter(out, "pictures_total", "images processed by the vision encoder", &m->pictures);
    print_counter(out, "cancelled_total", "requests whose client disconnected", &m->cancelled);
    print_histogram(out, "first_token_seconds", "time from the request to the first token", &m->first_token);
    print_histogram(out, "request_seconds", "time from the request to the last token", &m->whole);
    for (; gauges->name; gauges++) {
        print_head(out, gauges->name, gauges->help, "gauge");
        buf_printf(out, "holorun_%s %.17g\n", gauges->name, gauges->value);
    }
}
