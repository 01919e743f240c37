/* live.c - see live.h.
 *
 * All that is shown is put together in memory and written with one call under one lock, so that lines of tests that end at
 * once stay whole.  The bar is taken away before a line and drawn again after it.
 */
#include "qa/report/live.h"

#include "base/bar.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "qa/report/words.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MAX_WORKERS = 4096, ID = 120, WHY = 240, LISTED = 100 };

struct live {
    pthread_mutex_t lock;
    struct bar bar;
    bool quiet, color;
    int total, done, jobs;
    char **running; /* [jobs] ids; NULL: nothing */
};

/* ---- words in colour ------------------------------------------------------------------------------------------------ */

static const char *ink(enum outcome o)
{
    switch (o) {
    case OUTCOME_PASSED:
        return "\033[32m";
    case OUTCOME_FAILED:
    case OUTCOME_ERROR:
        return "\033[31m";
    case OUTCOME_CLAIMED:
    case OUTCOME_INCONCLUSIVE:
        return "\033[33m";
    default:
        return "\033[2m";
    }
}

static void put(FILE *f, const char *text, size_t most)
{
    char *line = words_line(text, most);
    utf8_print(f, line, strlen(line));
    free(line);
}

static void put_mark(const struct live *l, FILE *f, enum outcome o, const char *word)
{
    if (l->color)
        fprintf(f, "%s%-12s\033[0m", ink(o), word);
    else
        fprintf(f, "%-12s", word);
}

/* "passed         12.3 s  auth-gating" and, after a dash, why it did not simply pass */
static void put_result(const struct live *l, FILE *f, const struct result *r)
{
    char *why = words_why(r);
    put_mark(l, f, r->outcome, outcome_name(r->outcome));
    fprintf(f, " %7.1f s  ", r->seconds);
    put(f, r->test->id, ID);
    if (*why) {
        fputs(" - ", f);
        put(f, why, WHY);
    }
    fputc('\n', f);
    free(why);
}

/* ---- while it runs -------------------------------------------------------------------------------------------------- */

struct live *live_begin(int total, int jobs, bool quiet)
{
    struct live *l = xcalloc(1, sizeof *l);
    pthread_mutex_init(&l->lock, NULL);
    l->jobs = jobs < 1 ? 1 : jobs > MAX_WORKERS ? MAX_WORKERS : jobs;
    l->running = xcalloc((unsigned long)l->jobs, sizeof *l->running);
    l->total = total;
    l->quiet = quiet;
    l->color = bar_colors(stderr);
    bar_begin(&l->bar, total, 0, quiet);
    return l;
}

/* What is running, as much of it as a line has room for beside bar, numbers and time. */
static void running_words(const struct live *l, char *out, size_t size)
{
    struct winsize w;
    int columns = ioctl(2, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80,
        room = columns - 34 - 16 - 20;
    size_t n = 0, limit = !l->bar.terminal      ? size
                          : room < 12           ? 12
                          : (size_t)room < size ? (size_t)room
                                                : size;
    int left = 0;
    out[0] = 0;
    for (int i = 0; i < l->jobs; i++) {
        if (!l->running[i])
            continue;
        size_t len = strlen(l->running[i]);
        if (n + len + 10 > limit) {
            left++;
            continue;
        }
        n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "", l->running[i]);
    }
    if (left)
        snprintf(out + n, size - n, n ? " +%d" : "%d running", left);
    else if (!n)
        snprintf(out, size, "waiting");
}

static void show_bar(struct live *l, bool at_once)
{
    char words[400];
    running_words(l, words, sizeof words);
    if (at_once)
        l->bar.shown = 0;
    if (l->bar.terminal || !at_once)
        bar_show(&l->bar, l->done, words);
}

/* A worker's id, printable. */
static void set_running(struct live *l, int worker, const char *id)
{
    if (worker < 0 || worker >= l->jobs)
        return;
    free(l->running[worker]);
    l->running[worker] = NULL;
    if (!id)
        return;
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    put(f, id, 60);
    fclose(f);
    l->running[worker] = text;
}

void live_start(struct live *l, const struct test *t, int worker)
{
    pthread_mutex_lock(&l->lock);
    set_running(l, worker, t->id);
    if (!l->quiet && l->bar.terminal)
        show_bar(l, true);
    pthread_mutex_unlock(&l->lock);
}

void live_end(struct live *l, const struct result *r)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    put_result(l, f, r);
    fclose(f);
    pthread_mutex_lock(&l->lock);
    l->done++;
    set_running(l, r->worker, NULL);
    if (!l->quiet) {
        int digits = snprintf(NULL, 0, "%d", l->total);
        fprintf(stderr, "%s[%*d/%d] %s", l->bar.terminal ? "\r\033[K" : "", digits, l->done, l->total, text);
        if (l->bar.terminal && l->done < l->total)
            show_bar(l, true);
        l->bar.shown = clock_ns();
        fflush(stderr);
    }
    pthread_mutex_unlock(&l->lock);
    free(text);
}

void live_tick(struct live *l)
{
    pthread_mutex_lock(&l->lock);
    if (!l->quiet && l->done < l->total)
        show_bar(l, false);
    pthread_mutex_unlock(&l->lock);
}

/* ---- how it went ---------------------------------------------------------------------------------------------------- */

/* "38 passed, 1 failed, 1 claimed in 3 min 20 s" */
static void put_counts(const struct live *l, FILE *f, const struct results *r)
{
    bool any = false;
    int flaky = 0;
    char took[32];
    for (int i = 0; i < r->n; i++)
        flaky += r->results[i].flaky != FLAKY_NOT;
    for (int o = 0; o < OUTCOMES; o++) {
        int n = results_count(r, (enum outcome)o);
        if (!n)
            continue;
        fprintf(f, "%s%s%d %s%s", any ? ", " : "", l->color ? ink((enum outcome)o) : "", n,
                outcome_name((enum outcome)o), l->color ? "\033[0m" : "");
        if (o == OUTCOME_PASSED && flaky)
            fprintf(f, " (%d flaky)", flaky);
        any = true;
    }
    bar_time(r->seconds, took);
    fprintf(f, "%s in %s\n", any ? "" : "no test has run", took);
}

static bool is_listed(const struct result *r)
{
    return words_wants_a_look(r) || r->flaky != FLAKY_NOT;
}

static void put_list(const struct live *l, FILE *f, const struct results *r)
{
    const struct result **list = words_worst_first(r);
    int shown = 0, left = 0;
    for (int i = 0; i < r->n; i++) {
        if (!is_listed(list[i]))
            continue;
        if (shown == LISTED) {
            left++;
            continue;
        }
        shown++;
        char *why = words_why(list[i]);
        put_mark(l, f, list[i]->outcome,
                 list[i]->outcome == OUTCOME_PASSED ? "flaky" : outcome_name(list[i]->outcome));
        fputc(' ', f);
        put(f, list[i]->test->id, ID);
        fputs(*why ? " - " : "", f);
        put(f, why, WHY);
        fputc('\n', f);
        free(why);
    }
    if (left)
        fprintf(f, "... and %d more\n", left);
    free(list);
}

/* One set of weights, and a state for each conversation. */
static void put_memory(FILE *f, const struct results *r)
{
    const double mib = 1 << 20;
    if (r->memory_most && r->memory_weights)
        fprintf(f,
                "%-12s %.0f MiB at most, of that %.0f with the weights before the first test, %.1f states of "
                "conversations\n",
                "memory", (double)r->memory_most / mib, (double)r->memory_weights / mib,
                (double)r->memory_state / mib);
}

void live_summary(struct live *l, const struct results *r, const char *report)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    fputc('\n', f);
    put_list(l, f, r);
    put_counts(l, f, r);
    if (report) {
        fprintf(f, "%-12s ", "report");
        put(f, report, 4096);
        fputc('\n', f);
    }
    put_memory(f, r);
    fclose(f);
    pthread_mutex_lock(&l->lock);
    bar_end(&l->bar);
    fputs(text, stderr);
    fflush(stderr);
    pthread_mutex_unlock(&l->lock);
    free(text);
}

void live_free(struct live *l)
{
    if (!l)
        return;
    for (int i = 0; i < l->jobs; i++)
        free(l->running[i]);
    free(l->running);
    pthread_mutex_destroy(&l->lock);
    free(l);
}
