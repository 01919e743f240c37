/* qa_freeze.c - `holorun qa --freeze`: writes the planned steps of tests that passed twice into the suite. */
#include "cmd/commands.h"

#include "base/file.h"
#include "qa/report/result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SUITE_BYTES = 1 << 20 };

struct list {
    struct frozen *f;
    int n;
};

static int by_line(const void *a, const void *b)
{
    return ((const struct frozen *)a)->line - ((const struct frozen *)b)->line;
}

/* Adds the steps of a sentence.  Tests of a matrix share its line.  Returns -1 with e if they differ. */
static int add(struct list *l, const struct test_step *s, const char *steps, struct err *e)
{
    for (int i = 0; i < l->n; i++)
        if (l->f[i].line == s->of_line)
            return strcmp(l->f[i].steps, steps)
                       ? err_set(e, ERR_USAGE, "line %d: two tests need different steps for it", s->of_line)
                       : 0;
    l->f = xrealloc(l->f, (unsigned long)l->n + 1, sizeof *l->f);
    l->f[l->n++] = (struct frozen){s->of_line, s->of, steps};
    return 0;
}

/* Collects the steps of tests that passed when they were planned, and again when they were given. */
static int collect(const struct results *r, bool quiet, struct list *l, struct err *e)
{
    for (int i = 0; i < r->n; i++) {
        const struct result *t = &r->results[i];
        const struct attempt *a = t->n > 1 && t->outcome == OUTCOME_PASSED ? &t->attempts[t->n - 1] : NULL;
        for (int k = 0; a && k < a->n_script; k++) {
            const struct test_step *s = &t->test->script[k];
            if (!a->script[k].planned)
                continue;
            if (add(l, s, a->script[k].planned, e))
                return -1;
            if (!quiet)
                fprintf(stderr, "%-12s %s, line %d\n", s->plain < 0 ? "planned" : "re-planned", t->test->id,
                        s->of_line);
        }
    }
    if (l->n)
        qsort(l->f, (size_t)l->n, sizeof *l->f, by_line);
    return 0;
}

/* Returns whether two tests have the same steps, apart from those of sentences whose steps are new. */
static bool same_steps(const struct test *a, const struct test *b, const struct list *l)
{
    int i = 0, k = 0;
    while (i < a->n_script && k < b->n_script) {
        const struct test_step *s = &a->script[i], *t = &b->script[k];
        bool frozen = false;
        for (int n = 0; n < l->n; n++)
            frozen = frozen || (s->of && s->of_line == l->f[n].line);
        if (!frozen && (strcmp(s->text, t->text) != 0 || (s->of != NULL) != (t->of != NULL)))
            return false;
        if (s->of && strcmp(s->of, t->of ? t->of : "") != 0)
            return false;
        for (int line = s->of_line; i++, frozen && i < a->n_script && a->script[i].of_line == line;)
            ;
        for (int line = t->of_line; k++, frozen && k < b->n_script && b->script[k].of_line == line;)
            ;
    }
    return i == a->n_script && k == b->n_script && (a->n_script || !strcmp(a->task, b->task));
}

/* Returns 0 if the new text is the same suite with other steps, -1 with e. */
static int verify(const struct buf *text, const struct results *r, const char *path, const struct list *l,
                  struct err *e)
{
    struct suite *s = suite_parse(text->data, text->len, path, e);
    json_auto_t *old = suite_identity(r->suite), *new = s ? suite_identity(s) : NULL;
    json_object_del(old, "task");
    json_object_del(new, "task");
    bool same = s && s->n == r->suite->n && json_equal(old, new);
    for (int i = 0; same && i < s->n; i++)
        same = same_steps(&r->suite->tests[i], &s->tests[i], l);
    if (s && !same)
        err_set(e, ERR_USAGE, "the steps cannot be written into '%s': the suite would have other tests",
                path);
    suite_free(s);
    return same ? 0 : -1;
}

/* Replaces the file, or the one that a symbolic link leads to, by one with the same mode. */
static int replace(const char *path, const struct buf *text, struct err *e)
{
    struct stat st;
    autofree char *real = realpath(path, NULL);
    if (!real || stat(real, &st))
        return err_set(e, ERR_ENV, "cannot write '%s': %s", path, strerror(errno));
    int rc = file_write(real, text->data, text->len, e);
    if (rc == 0 && chmod(real, st.st_mode & 0777))
        rc = err_set(e, ERR_ENV, "cannot set the mode of '%s': %s", path, strerror(errno));
    return rc;
}

int qa_freeze(const struct results *r, const char *path, bool only_diff, bool quiet, struct err *e)
{
    struct list l = {0};
    struct buf out, diff;
    autofree char *text = NULL;
    size_t n;
    buf_init(&out, 2 * SUITE_BYTES);
    buf_init(&diff, 2 * SUITE_BYTES);
    int rc = collect(r, quiet, &l, e);
    if (rc == 0 && l.n)
        rc = !strcmp(path, "-") ? err_set(e, ERR_USAGE, "--freeze needs a file, not stdin")
             : file_read(path, SUITE_BYTES, &text, &n, e) || suite_freeze(text, l.f, l.n, &out, &diff, e) ||
                     verify(&out, r, path, &l, e)
                 ? -1
                 : 0;
    if (rc == 0 && l.n && only_diff)
        fputs(diff.data, stdout);
    else if (rc == 0 && l.n)
        rc = replace(path, &out, e);
    int found = l.n;
    free(l.f);
    buf_free(&out);
    buf_free(&diff);
    return rc ? -1 : found;
}
