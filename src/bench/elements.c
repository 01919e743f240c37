/* elements.c - time of reading the elements of each visible window of $DISPLAY, and tokens of their text.
 *
 * The first read of a window is "cold": by a new reader, of a program that may not have been read before.
 * Tokens are those of the model's tokenizer if --model is given, else a third of the bytes. */
#include "atspi/elements.h"
#include "bench/bench.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOWS_MAX = 32, READS_MAX = 101, READ_MS = 5000, TEXT_BYTES = 4 << 20 };

struct titles {
    char *title[WINDOWS_MAX];
    int n;
};

static bool add_title(void *arg, const char *title, const char *class)
{
    struct titles *t = arg;
    (void)class;
    for (int i = 0; i < t->n; i++)
        if (!strcmp(t->title[i], title))
            return false;
    if (*title && t->n < WINDOWS_MAX)
        t->title[t->n++] = xstrdup(title);
    return false;
}

/* Returns the number of tokens of the snapshot's text. */
static double count_tokens(const struct tokenizer *t, const struct snapshot *s, bool places)
{
    struct tokens ids = {0};
    autobuf text = buf_of(TEXT_BYTES);
    elements_text(s, places, &text);
    double n = (double)text.len / 3;
    if (t && text.len) {
        tokenizer_encode(t, text.data, text.len, false, &ids);
        n = (double)ids.n;
    }
    tokens_free(&ids);
    return n;
}

static void print_row(const struct bench *k, const char *title, const struct snapshot *s, double cold,
                      struct timing warm, double plain, double placed)
{
    static const char *const ends[] = {"whole", "nothing", "cut", "silent"};
    autobuf name = buf_of(4096);
    if (k->json) {
        buf_put_json(&name, title, strlen(title));
        printf("{\"section\": \"elements\", \"window\": %s, \"nodes\": %d, \"shown\": %d, \"calls\": %d, "
               "\"cold_ms\": %.2f, \"median_ms\": %.2f, \"min_ms\": %.2f, \"runs\": %d, \"tokens\": %.0f, "
               "\"tokens_with_places\": %.0f, \"end\": \"%s\"}\n",
               name.data, s->nodes, s->n, s->calls, cold, warm.median, warm.min, warm.runs, plain, placed,
               ends[s->end]);
    } else {
        printf("%-40.40s %6d %6d %6d %8.1f %8.1f %8.1f %7.0f %7.0f  %s\n", title, s->nodes, s->n, s->calls,
               cold, warm.median, warm.min, plain, placed, ends[s->end]);
    }
}

static int measure_window(const struct bench *k, const char *title, const struct tokenizer *t, struct err *e)
{
    const struct elements_scope scope = {.window = title};
    const struct snapshot *s;
    double ms[READS_MAX], cold = 0;
    int n = k->repeat < READS_MAX ? k->repeat : READS_MAX - 1;
    struct elements *x = elements_open(NULL);
    int rc = elements_snapshot(x, &scope, READ_MS, &s, e);
    cold = rc ? 0 : s->ms;
    for (int i = 0; i < n && rc == 0; i++) {
        rc = elements_snapshot(x, &scope, READ_MS, &s, e);
        ms[i] = rc ? 0 : s->ms;
    }
    if (rc == 0)
        print_row(k, title, s, cold, bench_timing(ms, n), count_tokens(t, s, false),
                  count_tokens(t, s, true));
    elements_close(x);
    return rc;
}

int bench_elements(const struct bench *k, struct err *e)
{
    struct titles titles = {.n = 0};
    struct tokenizer *t = k->model ? tokenizer_open(k->model, e) : NULL;
    struct screen *screen = k->model && !t ? NULL : screen_open(&(struct screen_options){0}, e);
    int rc = screen && screen_each_window(screen, add_title, &titles, e) >= 0 ? 0 : -1;
    screen_close(screen);
    if (rc == 0 && !k->json)
        printf("%-40s %6s %6s %6s %8s %8s %8s %7s %7s\n", "window", "nodes", "shown", "calls", "cold ms",
               "median", "min ms", "tokens", "+places");
    for (int i = 0; i < titles.n; i++) {
        rc = rc ? -1 : measure_window(k, titles.title[i], t, e);
        free(titles.title[i]);
    }
    tokenizer_free(t);
    return rc;
}
