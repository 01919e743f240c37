/* print.c - lists the tests of a suite and its mistakes, and warns about weak tests. */
#include "qa/suite/private.h"

#include "base/bar.h"
#include "base/json.h"
#include "base/utf8.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { WARNINGS = 20, WIDE = 40, LINE = 100 };

static enum evidence best_evidence(const struct test *t)
{
    enum evidence best = BY_CLAIM;
    for (int i = 0; i < t->n_checks; i++)
        if (check_evidence(t->checks[i].kind) > best)
            best = check_evidence(t->checks[i].kind);
    for (int i = 0; i < t->n_script; i++)
        best = test_step_proves(t, i) ? BY_PROOF : best;
    return best;
}

void suite_warn(const struct suite *s)
{
    static const char *const why[] = {
        [BY_CLAIM] = "no check but the agent's own answer: it can be claimed, not passed",
        [BY_MODEL] = "no check but by a model: if it passes it is marked as judged"};
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        const struct test *t = &s->tests[i];
        enum evidence best = t->selected ? best_evidence(t) : BY_PROOF;
        if (best < BY_PROOF && ++n <= WARNINGS)
            warn("%s:%d: test '%s' has %s", s->path, t->line, t->id,
                 best == BY_CLAIM && t->n_script
                     ? "no check, neither in its steps nor in checks: it can be claimed, not "
                       "passed"
                     : why[best]);
    }
    if (n > WARNINGS)
        warn("%s: %d more tests like these", s->path, n - WARNINGS);
}

static void put_json(FILE *f, const struct suite *s)
{
    json_t *tests = json_array();
    for (int i = 0; i < s->n; i++) {
        const struct test *t = &s->tests[i];
        if (!t->selected)
            continue;
        json_t *tags = json_array();
        for (int k = 0; t->tags[k]; k++)
            json_array_append_new(tags, json_string(t->tags[k]));
        json_array_append_new(tests, json_pack("{s:s, s:i, s:o, s:i, s:o, s:o?, s:s}", "id", t->id, "line",
                                               t->line, "seed", json_seed(t->seed), "checks", t->n_checks,
                                               "tags", tags, "spec", json_string(t->spec), "task", t->task));
    }
    json_auto_t *all = json_pack("{s:o?, s:o?, s:o}", "suite", json_string(s->name), "path",
                                 json_string(s->path), "tests", tests);
    json_print(all, f, 0);
    putc('\n', f);
}

/* Prints the first line of the task, or the path of a spec, because the texts of specs begin alike. */
static void put_task(FILE *f, const struct test *t)
{
    const char *p = t->spec ? t->spec : t->task + strspn(t->task, " \n");
    size_t n = strcspn(p, "\n"), most = n > LINE ? utf8_valid_prefix(p, LINE) : n;
    utf8_print(f, p, most);
    fputs(most < n ? "...\n" : "\n", f);
}

static int width_of_tags(const struct test *t)
{
    int n = 0;
    for (int k = 0; t->tags[k]; k++)
        n += (int)strlen(t->tags[k]) + (k > 0);
    return n;
}

void suite_print(FILE *f, const struct suite *s, bool json)
{
    if (json) {
        put_json(f, s);
        return;
    }
    bool color = bar_colors(f);
    int wide = 0, tags = 0;
    for (int i = 0; i < s->n; i++) {
        const struct test *t = &s->tests[i];
        int n = (int)strlen(t->id), m = width_of_tags(t);
        wide = t->selected && n > wide ? n : wide;
        tags = t->selected && m > tags ? m : tags;
    }
    wide = wide > WIDE ? WIDE : wide;
    tags = tags > WIDE ? WIDE : tags;
    for (int i = 0; i < s->n; i++) {
        const struct test *t = &s->tests[i];
        if (!t->selected)
            continue;
        fprintf(f, "%s%-*s%s  %s", color ? "\033[1m" : "", wide, t->id, color ? "\033[0m" : "",
                color && tags ? "\033[36m" : "");
        for (int k = 0; t->tags[k]; k++)
            fprintf(f, "%s%s", k ? "," : "", t->tags[k]);
        int left = tags ? tags + 2 - width_of_tags(t) : 0;
        fprintf(f, "%*s%s", left > 2 ? left : tags ? 2 : 0, "", color && tags ? "\033[0m" : "");
        put_task(f, t);
    }
}

/* ---- mistakes ------------------------------------------------------------------------------------ */

struct mistake {
    const char *text;
    int line, order;
};

/* Returns the line of a mistake in the suite file; mistakes in other files come last. */
static int line_of(const char *text, const char *path)
{
    size_t n = strlen(path);
    int line = !strncmp(text, path, n) && text[n] == ':' ? atoi(text + n + 1) : 0;
    return line > 0 ? line : INT_MAX;
}

static int by_line(const void *a, const void *b)
{
    const struct mistake *x = a, *y = b;
    return x->line != y->line ? (x->line > y->line) - (x->line < y->line) : x->order - y->order;
}

static void print_list(const struct mistake *list, int n, const char *path, int tests, bool json)
{
    json_auto_t *texts = json_array();
    for (int i = 0; i < n; i++) {
        json_array_append_new(texts, json_clean_string(list[i].text));
        if (!json)
            fprintf(stderr, "%s\n", list[i].text);
    }
    if (json) {
        printf("{\"tests\": %d, \"mistakes\": ", tests);
        json_print(texts, stdout, 0);
        puts("}");
    } else {
        fprintf(n ? stderr : stdout, "%s: %d test%s, %d mistake%s\n", path, tests, tests == 1 ? "" : "s", n,
                n == 1 ? "" : "s");
    }
}

int suite_print_mistakes(json_t *faults, const char *path, const struct suite *s, bool json)
{
    autofree struct mistake *list = xcalloc(json_object_size(faults) + 1, sizeof *list);
    const char *text;
    json_t *unused;
    int n = 0;
    json_object_foreach(faults, text, unused)
    {
        list[n] = (struct mistake){text, line_of(text, strcmp(path, "-") ? path : "stdin"), n};
        n++;
    }
    qsort(list, (size_t)n, sizeof *list, by_line);
    print_list(list, n, path, s ? s->n : 0, json);
    return n;
}
