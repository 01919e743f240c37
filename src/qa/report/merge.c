/* merge.c - merges the results of several shards of a suite.
 *
 * The first file determines the suite and the number of shards; every other file must match. Files without a
 * shard are allowed: only the presence of each test, exactly once, is checked. */
#include "qa/report/merge.h"

#include "qa/report/identity.h"

#include <stdlib.h>
#include <string.h>

static const char fault_id[] = "(results)"; /* for rows that are not tests; test ids contain no parentheses */

void merge_fault(struct merged *m, const char *text)
{
    m->faults = xrealloc(m->faults, (unsigned long)m->n_faults + 1, sizeof *m->faults);
    m->faults[m->n_faults++] = xstrdup(text);
}

#define FAULT(m, ...)                                                                                        \
    do {                                                                                                     \
        char *fault_ = xasprintf(__VA_ARGS__);                                                               \
        merge_fault(m, fault_);                                                                              \
        free(fault_);                                                                                        \
    } while (0)

/* ---- selection of files -------------------------------------------------------------------------- */

static bool is_of_suite(struct merged *m, const struct results_file *first, const struct results_file *f)
{
    autofree char *difference = identity_difference(first->results.identity, f->results.identity);
    bool same = !difference && !strcmp(f->suite.name, first->suite.name) &&
                f->suite.shard.of == first->suite.shard.of;
    if (strcmp(f->suite.name, first->suite.name) != 0)
        FAULT(m, "%s belongs to suite '%.100s', %s to '%.100s'", f->path, f->suite.name, first->path,
              first->suite.name);
    else if (f->suite.shard.of != first->suite.shard.of)
        FAULT(m, "%s belongs to a run with %d shards, %s to one with %d", f->path, f->suite.shard.of,
              first->path, first->suite.shard.of);
    else if (difference)
        FAULT(m, "%s and %s differ in %s", first->path, f->path, difference);
    return same;
}

/* Returns the first file with this shard; NULL: none. */
static const struct results_file *find_shard(const struct results_file *files, int n, const bool *counts,
                                             int which)
{
    for (int i = 0; i < n; i++)
        if (counts[i] && files[i].suite.shard.which == which)
            return &files[i];
    return NULL;
}

static void check_files(struct merged *m, const struct results_file *files, int n, bool *counts)
{
    int of = files[0].suite.shard.of;
    for (int i = 0; i < n; i++) {
        const struct results_file *f = &files[i], *twice = NULL;
        if (i && !is_of_suite(m, &files[0], f))
            continue;
        if (of && (twice = find_shard(files, i, counts, f->suite.shard.which))) {
            FAULT(m, "shard %d of %d occurs twice: %s and %s", f->suite.shard.which, of, twice->path,
                  f->path);
            continue;
        }
        counts[i] = true;
        int left = 0;
        for (int k = 0; k < f->results.n; k++)
            left += f->results.results[k].outcome == OUTCOME_SKIPPED && !f->results.results[k].excused;
        if (!f->results.complete && left)
            FAULT(m, "%s was cut off: %d of its %d tests have no result", f->path, left, f->results.n);
        else if (!f->results.complete)
            FAULT(m, "%s was cut off after the last of its tests", f->path);
    }
    for (int which = 1; which <= of; which++)
        if (!find_shard(files, n, counts, which))
            FAULT(m, "shard %d of %d is missing", which, of);
}

/* ---- rows ---------------------------------------------------------------------------------------- */

struct row {
    struct result result;
    int index;
    const struct results_file *from;
};

static int by_index(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return x->index != y->index ? (x->index > y->index) - (x->index < y->index)
                                : (x->from > y->from) - (x->from < y->from);
}

/* Collects the rows in the order of the suite; for a test that occurs twice, the first row. Returns their
 * number. */
static int collect(struct merged *m, const struct results_file *files, int n, const bool *counts,
                   struct row *rows)
{
    int all = 0, kept = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; counts[i] && k < files[i].results.n; k++)
            rows[all++] = (struct row){files[i].results.results[k], files[i].index[k], &files[i]};
    qsort(rows, (size_t)all, sizeof *rows, by_index);
    for (int i = 0; i < all; i++) {
        const struct row *last = kept ? &rows[kept - 1] : NULL;
        if (last && last->index == rows[i].index && !strcmp(last->result.test->id, rows[i].result.test->id))
            FAULT(m, "test '%s' occurs twice: %s and %s", last->result.test->id, last->from->path,
                  rows[i].from->path);
        else
            rows[kept++] = rows[i];
    }
    return kept;
}

/* Combines the heads of several reports: times, memory, settings. */
static void merge_heads(struct results *r, const struct results_file *files, int n, const bool *counts)
{
    r->complete = true;
    r->accept_claims = files[0].results.accept_claims;
    r->undecided = files[0].results.undecided;
    for (int i = 0; i < n; i++) {
        const struct results *f = &files[i].results;
        if (!counts[i])
            continue;
        r->time_over = r->time_over || f->time_over;
        r->jobs += f->jobs;
        r->seconds = f->seconds > r->seconds ? f->seconds : r->seconds;
        r->memory_peak = f->memory_peak > r->memory_peak ? f->memory_peak : r->memory_peak;
        r->memory_weights = f->memory_weights > r->memory_weights ? f->memory_weights : r->memory_weights;
        r->memory_state = f->memory_state > r->memory_state ? f->memory_state : r->memory_state;
        if (!*r->started || (*f->started && strcmp(f->started, r->started) < 0))
            memcpy(r->started, f->started, sizeof r->started);
    }
}

static void put_rows(struct merged *m, const struct row *rows, int n)
{
    m->suite.tests = xcalloc((unsigned long)(n + m->n_faults) + 1, sizeof *m->suite.tests);
    m->results.results = xcalloc((unsigned long)(n + m->n_faults) + 1, sizeof *m->results.results);
    for (int i = 0; i < n; i++) {
        m->suite.tests[i] = *rows[i].result.test;
        m->results.results[i] = rows[i].result;
    }
    for (int i = 0; i < m->n_faults; i++) {
        m->suite.tests[n + i] = (struct test){.id = fault_id,
                                              .suite = m->suite.name,
                                              .task = "A result for each test of the suite",
                                              .display = "",
                                              .selected = true};
        m->results.results[n + i] =
            (struct result){.outcome = OUTCOME_INCONCLUSIVE, .reason = m->faults[i], .lacking = true};
    }
    m->suite.n = m->results.n = n + m->n_faults;
    for (int i = 0; i < m->suite.n; i++)
        m->results.results[i].test = &m->suite.tests[i];
}

void merge(struct results_file *files, int n, struct merged *m)
{
    const struct results_file *first = &files[0];
    bool *counts = xcalloc((unsigned long)n, sizeof *counts);
    size_t all = 0;
    for (int i = 0; i < n; i++)
        all += (size_t)files[i].results.n;
    autofree struct row *rows = xcalloc(all + 1, sizeof *rows);
    check_files(m, files, n, counts);
    int kept = collect(m, files, n, counts, rows), before = m->n_faults;
    m->suite.name = first->suite.name;
    m->suite.path = first->suite.path;
    m->suite.flaky_max = first->suite.flaky_max;
    if (kept < first->suite.n_selected && before == 0)
        FAULT(m, "%d of the %d selected tests have no result", first->suite.n_selected - kept,
              first->suite.n_selected);
    m->suite.n_selected = first->suite.n_selected;
    m->results.suite = &m->suite;
    m->results.identity = first->results.identity;
    m->results.model = first->results.model;
    m->results.dialect = first->results.dialect;
    m->results.version = first->results.version;
    m->results.host = first->results.host;
    merge_heads(&m->results, files, n, counts);
    put_rows(m, rows, kept);
    free(counts);
}

void merged_free(struct merged *m)
{
    for (int i = 0; i < m->n_faults; i++)
        free(m->faults[i]);
    free(m->faults);
    free(m->suite.tests);
    free(m->results.results);
    *m = (struct merged){0};
}
