/* print.c - lists the tests of a suite, and warns of weak ones. */
#include "qa/suite/private.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WARNINGS = 20, WIDE = 40, LINE = 100 };

/* The best outcome a test can have: 2 passed, 1 judged, 0 claimed. */
static int best_evidence(const struct test *t)
{
    int best = 0;
    for (int i = 0; i < t->n_checks; i++) {
        enum check_kind k = t->checks[i].kind;
        int evidence = check_asks_model(k) ? 1 : k == CHECK_ANSWER ? 0 : 2;
        best = evidence > best ? evidence : best;
    }
    return best;
}

void suite_warn(const struct suite *s)
{
    static const char *const why[] = {"no check but the agent's own answer: it can be claimed, not passed",
                                      "no check but by a model: if it passes it is marked as judged"};
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        const struct test *t = &s->tests[i];
        int best = t->selected ? best_evidence(t) : 2;
        if (best < 2 && ++n <= WARNINGS)
            warn("%s:%d: test '%s' has %s", s->path, t->line, t->id, why[best]);
    }
    if (n > WARNINGS)
        warn("%s: %d more tests like these", s->path, n - WARNINGS);
}

static void put_json(FILE *f, const struct suite *s)
{
    struct buf b;
    buf_init(&b, SUITE_MAX_ALL);
    buf_puts(&b, "{\"suite\": ");
    buf_put_json(&b, s->name, strlen(s->name));
    buf_put_member(&b, "path", s->path);
    buf_puts(&b, ", \"tests\": [");
    fputs(b.data, f);
    const char *comma = "";
    for (int i = 0; i < s->n; i++) {
        const struct test *t = &s->tests[i];
        if (!t->selected)
            continue;
        buf_clear(&b);
        buf_printf(&b, "%s\n{\"id\": ", comma);
        buf_put_json(&b, t->id, strlen(t->id));
        buf_printf(&b, ", \"line\": %d, \"seed\": %llu, \"checks\": %d, \"tags\": [", t->line,
                   (unsigned long long)t->seed, t->n_checks);
        for (int k = 0; t->tags[k]; k++) {
            buf_puts(&b, k ? ", " : "");
            buf_put_json(&b, t->tags[k], strlen(t->tags[k]));
        }
        buf_puts(&b, "]");
        buf_put_member(&b, "spec", t->spec);
        buf_put_member(&b, "task", t->task);
        buf_puts(&b, "}");
        fputs(b.data, f);
        comma = ",";
    }
    fputs("]}\n", f);
    buf_free(&b);
}

/* The first line of the task; of a spec its path, since their texts all start the same. */
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
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    bool color = isatty(fileno(f)) && (!no || !*no) && term && strcmp(term, "dumb") != 0;
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
