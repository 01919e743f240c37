/* select.c - selects the tests of a suite to run: by id or tag, by the outcomes of an earlier run, by shard
 * (shard.c). */
#include "qa/suite/private.h"

#include "base/buf.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* ---- by name ------------------------------------------------------------------------------------- */

/* Matches a pattern with * and ?; ids contain no backslashes or brackets. */
static bool matches(const char *pattern, const char *word)
{
    return !strpbrk(pattern, "[\\") && fnmatch(pattern, word, 0) == 0;
}

static bool test_matches(const struct test *t, const char *pattern)
{
    if (strncmp(pattern, "tag:", 4) != 0)
        return matches(pattern, t->id);
    for (const char *const *tag = t->tags; *tag; tag++)
        if (matches(pattern + 4, *tag))
            return true;
    return false;
}

static int no_match(const struct suite *s, const char *pattern, struct err *e)
{
    bool tag = !strncmp(pattern, "tag:", 4);
    const char **names = xmalloc((unsigned long)s->n * (SUITE_MAX_TAGS + 1), sizeof *names);
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        if (!tag)
            names[n++] = s->tests[i].id;
        for (const char *const *word = s->tests[i].tags; tag && *word; word++)
            names[n++] = *word;
    }
    const char *near = nearest_word(pattern + (tag ? 4 : 0), names, n);
    err_set(e, ERR_USAGE, "%s: no test has the %s '%.100s'%s%s%s; holorun qa --list shows all", s->path,
            tag ? "tag" : "id", pattern + (tag ? 4 : 0), near ? "; did you mean '" : "", near ? near : "",
            near ? "'?" : "");
    free(names);
    return -1;
}

static int by_name(struct suite *s, const char *const *only, struct err *e)
{
    bool *matched = xcalloc((unsigned long)s->n + 1, sizeof *matched);
    int rc = 0;
    for (; !rc && *only; only++) {
        int found = 0;
        for (int i = 0; i < s->n; i++)
            if (test_matches(&s->tests[i], *only))
                matched[i] = ++found;
        rc = found ? 0 : no_match(s, *only, e);
    }
    for (int i = 0; !rc && i < s->n; i++)
        s->tests[i].selected &= matched[i];
    free(matched);
    return rc;
}

/* ---- by an earlier run --------------------------------------------------------------------------- */

static int by_failure(struct suite *s, const char *path, struct err *e)
{
    struct earlier p;
    int known = 0, rc = earlier_read(path, &p, e);
    for (int i = 0; i < s->n && rc == 0; i++) {
        struct earlier_test before = earlier_find(&p, s->name, s->tests[i].id);
        known += before.known;
        s->tests[i].selected &= before.known && !before.passed;
    }
    earlier_free(&p);
    if (rc == 0 && !known)
        return err_set(e, ERR_USAGE, "'%s' has none of the tests of %s (suite '%s')", path, s->path, s->name);
    return rc;
}

int suite_select(struct suite *s, const struct suite_selection *c, struct err *e)
{
    int n = 0;
    if ((c->only && *c->only && by_name(s, c->only, e)) ||
        (c->rerun_failed && by_failure(s, c->rerun_failed, e)))
        return -1;
    s->n_selected = 0;
    for (int i = 0; i < s->n; i++)
        s->n_selected += s->tests[i].selected;
    suite_hash_selection(s);
    if (c->shard && select_by_shard(s, c, e))
        return -1;
    for (int i = 0; i < s->n; i++) {
        struct test *t = &s->tests[i];
        bool sentence = false;
        for (int k = 0; k < t->n_script; k++)
            sentence = sentence || t->script[k].of;
        t->selected &= sentence || !c->sentences;
        n += t->selected;
    }
    return n;
}
