/* progress.c - prints the progress of a suite on the terminal.
 *
 * Each line is composed in memory and written with one call under a lock, so that lines of tests that end at
 * the same time are not mixed. The progress bar is erased before a line and drawn again after it. */
#include "qa/report/report.h"

#include "base/bar.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/utf8.h"
#include "qa/report/summary.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_WORKERS = 4096, ID = 120, WHY = 240, LISTED = 100 };

struct progress {
    pthread_mutex_t lock;
    struct bar bar;
    bool quiet, color;
    int total, done, jobs;
    char **running; /* [jobs] id of each worker's current test; or NULL */
};

/* ---- result lines -------------------------------------------------------------------------------- */

/* in the order of the groups of summary.h */
static const char *const colors[SUMMARY_GROUPS] = {"\033[31m", "\033[31m", "\033[33m", "\033[33m", "\033[33m",
                                                   "\033[33m", "\033[36m", "\033[2m",  "\033[32m"};

static void put(FILE *f, const char *text, size_t most)
{
    autofree char *line = clean_line(text, most);
    utf8_print(f, line, strlen(line));
}

static void put_mark(const struct progress *p, FILE *f, int group, const char *word)
{
    if (p->color)
        fprintf(f, "%s%-12s\033[0m", colors[group], word);
    else
        fprintf(f, "%-12s", word);
}

/* Prints a line such as "failed 12.3 s auth-gating - why". */
static void put_result(const struct progress *p, FILE *f, const struct result *r)
{
    autofree char *why = summary_reason(r);
    put_mark(p, f, summary_group(r), outcome_name(r->outcome));
    fprintf(f, " %7.1f s  ", r->seconds);
    put(f, r->test->id, ID);
    if (*why) {
        fputs(" - ", f);
        put(f, why, WHY);
    }
    fputc('\n', f);
}

/* ---- running tests ------------------------------------------------------------------------------- */

struct progress *progress_begin(int total, int jobs, bool quiet)
{
    struct progress *p = xcalloc(1, sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    p->jobs = jobs < 1 ? 1 : jobs > MAX_WORKERS ? MAX_WORKERS : jobs;
    p->running = xcalloc((unsigned long)p->jobs, sizeof *p->running);
    p->total = total;
    p->quiet = quiet;
    p->color = bar_colors(stderr);
    bar_begin(&p->bar, total, 0, quiet);
    return p;
}

/* Lists the ids of the running tests, as many as fit next to bar, counts and time; then "+3". */
static void list_running(const struct progress *p, char *out, size_t size)
{
    int room = bar_columns(80) - 34 - 16 - 20, left = 0;
    size_t n = 0, limit = p->bar.terminal && room < (int)size ? (size_t)(room < 12 ? 12 : room) : size;
    out[0] = 0;
    for (int i = 0; i < p->jobs; i++) {
        if (!p->running[i])
            continue;
        size_t len = strlen(p->running[i]);
        if (n + len + 10 > limit) {
            left++;
            continue;
        }
        n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "", p->running[i]);
    }
    if (left)
        snprintf(out + n, size - n, n ? " +%d" : "%d running", left);
    else if (!n)
        snprintf(out, size, "waiting");
}

static void show_bar(struct progress *p, bool at_once)
{
    char words[400];
    list_running(p, words, sizeof words);
    if (at_once)
        p->bar.shown = 0;
    if (p->bar.terminal || !at_once)
        bar_show(&p->bar, p->done, words);
}

static void set_running(struct progress *p, int worker, const char *id)
{
    if (worker < 0 || worker >= p->jobs)
        return;
    free(p->running[worker]);
    p->running[worker] = NULL;
    if (!id)
        return;
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    put(f, id, 60);
    fclose(f);
    p->running[worker] = text;
}

void progress_start(struct progress *p, const struct test *t, int worker)
{
    LOCKED(&p->lock);
    set_running(p, worker, t->id);
    if (!p->quiet && p->bar.terminal)
        show_bar(p, true);
}

void progress_end(struct progress *p, const struct result *r)
{
    autofree char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    put_result(p, f, r);
    fclose(f);
    pthread_mutex_lock(&p->lock);
    p->done++;
    set_running(p, r->worker, NULL);
    if (!p->quiet) {
        int digits = snprintf(NULL, 0, "%d", p->total);
        fprintf(stderr, "%s[%*d/%d] %s", p->bar.terminal ? "\r\033[K" : "", digits, p->done, p->total, text);
        if (p->bar.terminal && p->done < p->total)
            show_bar(p, true);
        p->bar.shown = clock_ns();
        fflush(stderr);
    }
    pthread_mutex_unlock(&p->lock);
}

void progress_tick(struct progress *p)
{
    LOCKED(&p->lock);
    if (!p->quiet && p->done < p->total)
        show_bar(p, false);
}

/* ---- summary ------------------------------------------------------------------------------------- */

/* Prints the reason why the suite has not passed. */
static void put_verdict(const struct progress *p, FILE *f, const struct results *r)
{
    static const char *const as[] = {"errors", "failures", "skipped"};
    int undecided = 0;
    for (int i = 0; i < r->n; i++) {
        enum ci ci = results_ci(r, &r->results[i]);
        bool decided = r->results[i].outcome == OUTCOME_FAILED || r->results[i].outcome == OUTCOME_ERROR;
        undecided += (ci == CI_ERROR || ci == CI_FAILURE) && !decided;
    }
    put_mark(p, f, 0, "not passed");
    fprintf(f, " exit code %d", results_exit_code(r));
    if (undecided)
        fprintf(f, "; %d of the tests undecided: %s to CI", undecided, as[r->undecided]);
    fputc('\n', f);
}

/* Prints a line such as "1 failed, 1 flaky, 37 passed in 3 min 20 s". */
static void put_counts(const struct progress *p, FILE *f, const struct results *r)
{
    const char *comma = "";
    char took[32];
    for (int g = 0; g < SUMMARY_GROUPS; g++) {
        int n = summary_count(r, g);
        if (n)
            fprintf(f, "%s%s%d %s%s", comma, p->color ? colors[g] : "", n, summary_group_name(g),
                    p->color ? "\033[0m" : "");
        comma = n ? ", " : comma;
    }
    bar_time(r->seconds, took);
    fprintf(f, "%s in %s\n", r->n ? "" : "no tests ran", took);
    if (results_exit_code(r))
        put_verdict(p, f, r);
}

static void put_list(const struct progress *p, FILE *f, const struct results *r)
{
    const struct result **list = summary_worst_first(r);
    int shown = 0, left = 0;
    for (int i = 0; i < r->n; i++) {
        const struct result *x = list[i];
        if (!summary_needs_attention(x) && x->flaky == FLAKY_NOT)
            continue;
        if (shown == LISTED) {
            left++;
            continue;
        }
        shown++;
        autofree char *why = summary_reason(x);
        put_mark(p, f, summary_group(x), summary_group_name(summary_group(x)));
        fputc(' ', f);
        put(f, x->test->id, ID);
        fputs(*why ? " - " : "", f);
        put(f, why, WHY);
        fputc('\n', f);
    }
    if (left)
        fprintf(f, "... and %d more\n", left);
    free(list);
}

void progress_summary(struct progress *p, const struct results *r, const char *report)
{
    autofree char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    fputc('\n', f);
    put_list(p, f, r);
    put_counts(p, f, r);
    if (report) {
        fprintf(f, "%-12s ", "report");
        put(f, report, 4096);
        fputc('\n', f);
    }
    if (r->memory_peak)
        fprintf(f, "%-12s peak %.0f MiB: weights %.0f, session states %.1f\n", "memory", mib(r->memory_peak),
                mib(r->memory_weights), mib(r->memory_state));
    fclose(f);
    pthread_mutex_lock(&p->lock);
    bar_end(&p->bar);
    fputs(text, stderr);
    fflush(stderr);
    pthread_mutex_unlock(&p->lock);
}

void progress_free(struct progress *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->jobs; i++)
        free(p->running[i]);
    free(p->running);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
