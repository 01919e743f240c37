/* suite.c - see suite.h and, for its parts, private.h.
 *
 * Of a test are read, in this order: its matrix, seed, id, variables (each may use those before it), task or spec, and all
 * other keys.
 */
#include "qa/suite/private.h"

#include "base/file.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct doc_node nothing = {.kind = DOC_MAP, .line = 1};

/* ---- variables ---------------------------------------------------------------------------------------------- */

static int set_variable(struct suite_reading *g)
{
    const char *value = NULL;
    int rc = value_text(g, g->n, VALUE_STRICT | VALUE_EMPTY, &value);
    if (rc)
        return rc < 0 ? -1 : 0; /* a draft that waits for another */
    if (vars_set(&g->vars, texts_keep(g->s->texts, g->n->key, strlen(g->n->key)), value))
        return doc_fault(g->y, g->n, g->e, "expected at most %d variables", SUITE_MAX_VARS);
    return 0;
}

static int check_names(struct suite_reading *g, const struct doc_node *vars)
{
    g->n = vars;
    if (vars->kind != DOC_MAP)
        return doc_fault(g->y, vars, g->e,
                         "expected names with their values, as { base: \"http://localhost:5173\" }");
    for (g->n = vars->child; g->n; g->n = g->n->next)
        if (!vars_name(g->n->key) || !strcmp(g->n->key, "id") || !strcmp(g->n->key, "dir") ||
            !strcmp(g->n->key, "seed"))
            return doc_fault(
                g->y, g->n, g->e,
                "expected the name of a variable: small letters, digits and _, not id, seed or dir");
    return 0;
}

/* Those of the suite, with the test's value where it has one, then the test's others.  A matrix comes before both. */
static int read_vars(struct suite_reading *g, const struct doc_node *suite, const struct doc_node *test)
{
    const struct doc_node *all = doc_get(suite, "vars"), *own = doc_get(test, "vars");
    const struct doc_node *matrix = doc_get(test, "matrix");
    if ((all && check_names(g, all)) || (own && check_names(g, own)))
        return -1;
    for (const struct doc_node *n = all ? all->child : NULL; n; n = n->next) {
        g->n = own ? doc_get(own, n->key) : NULL;
        g->n = g->n ? g->n : n;
        if (!(matrix && doc_get(matrix, n->key)) && set_variable(g))
            return -1;
    }
    for (g->n = own ? own->child : NULL; g->n; g->n = g->n->next) {
        if (matrix && doc_get(matrix, g->n->key))
            return doc_fault(g->y, g->n, g->e, "stands in the matrix of this test, too");
        if (!(all && doc_get(all, g->n->key)) && set_variable(g))
            return -1;
    }
    return 0;
}

static int read_seed(struct suite_reading *g, const struct doc_node *suite, const struct doc_node *test)
{
    g->n = doc_get(suite, "seed");
    if (g->n && value_seed(g, &g->t->seed))
        return -1;
    g->n = doc_get(test, "seed");
    return g->n && value_seed(g, &g->t->seed) ? -1 : 0;
}

/* A reading of the next test, or of none: what every one begins with. */
static void begin(struct suite_reading *g, struct test *t)
{
    static const char *const none[] = {NULL};
    *t = (struct test){.suite = g->s->name,
                       .display = "xvfb:1280x720",
                       .dir = g->s->dir,
                       .setup = none,
                       .teardown = none,
                       .start_seconds = 30,
                       .retries = -1,
                       .chosen = true};
    g->t = t;
    g->vars.n = 0;
    g->n_env = g->n_secrets = g->n_tags = 0;
    g->draft = false;
    vars_set(&g->vars, "dir", g->s->dir);
}

static void set_seed(struct suite_reading *g)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)g->t->seed);
    vars_set(&g->vars, "seed", texts_keep(g->s->texts, text, strlen(text)));
}

/* ---- one test ----------------------------------------------------------------------------------------------- */

static int set_id(struct suite_reading *g, const struct doc_node *n, const char *id)
{
    if (!value_word(id))
        return doc_fault(g->y, n, g->e, "expected an id of at most %d letters, digits and . _ -, not '%.40s'",
                         SUITE_MAX_ID, id);
    g->t->id = id;
    vars_set(&g->vars, "id", id); /* before the variables: there is room */
    return 0;
}

/* With a matrix and no variable in it: ID-1, ID-2 ... */
static int read_id(struct suite_reading *g, const struct doc_node *test, const char *id, long which)
{
    const struct doc_node *n = doc_get(test, "id"), *matrix = doc_get(test, "matrix");
    g->n = n ? n : test;
    if (n && value_text(g, n, VALUE_STRICT | VALUE_LINE, &id))
        return -1;
    if (matrix && !(n && strchr(n->text, '{'))) {
        char *numbered = xasprintf("%s-%ld", id, which + 1);
        id = texts_keep(g->s->texts, numbered, strlen(numbered));
        free(numbered);
    }
    return set_id(g, g->n, id);
}

static int read_spec(struct suite_reading *g, const struct doc_node *test, struct spec *p)
{
    const char *path;
    g->n = doc_get(test, "spec");
    if (value_text(g, g->n, VALUE_STRICT | VALUE_LINE, &path))
        return -1;
    g->t->spec = texts_path(g->s->texts, g->s->dir, path);
    struct err why = ERR_INIT, *e = g->e;
    g->e = &why;
    int rc = spec_read(g, g->t->spec, p);
    g->e = e;
    if (rc)
        return err_set(e, ERR_USAGE, "%.*s (the spec of %s:%d)", ERR_TEXT - 120, why.text, doc_name(g->y),
                       test->line);
    if (!doc_get(test, "id") && !p->id)
        return doc_fault(g->y, test, g->e, "expected the key id, in this test or in its spec");
    return 0;
}

/* Task, display and the like from a spec, where the test itself does not say. */
static int use_spec(struct suite_reading *g, const struct doc_node *test, const struct spec *p)
{
    struct test *t = g->t;
    struct buf b;
    struct filled f;
    char text[64];
    buf_init(&b, SUITE_MAX_TEXT);
    vars_fill(&g->vars, p->task, 0, &b, &f);
    t->task = texts_keep(g->s->texts, b.data, b.len);
    bool full = b.full;
    buf_free(&b);
    if (full)
        return doc_fault(g->y, g->n, g->e, "expected at most %d bytes of text", SUITE_MAX_TEXT);
    if (p->seconds > 0 && !doc_get(test, "timeout_s"))
        t->seconds = p->seconds;
    if (p->width && !doc_get(test, "display")) {
        snprintf(text, sizeof text, "xvfb:%dx%d", p->width, p->height);
        t->display = texts_keep(g->s->texts, text, strlen(text));
    }
    for (int i = 0; i < p->n_credentials; i++) {
        const char *name = p->credentials[i];
        int at = 0;
        while (at < g->n_secrets &&
               (strncmp(g->secrets[at], name, strlen(name)) != 0 || g->secrets[at][strlen(name)] != '='))
            at++;
        if (at == SUITE_MAX_SECRETS)
            return doc_fault(g->y, test, g->e, "expected at most %d secrets, those of its spec included",
                             SUITE_MAX_SECRETS);
        if (at < g->n_secrets)
            continue;
        char *whole = xasprintf("%s=env:%s", name, name);
        g->secrets[g->n_secrets++] = texts_keep(g->s->texts, whole, strlen(whole));
        free(whole);
    }
    if (t->n_checks == SUITE_MAX_CHECKS)
        return doc_fault(g->y, test, g->e, "expected at most %d checks, that of its spec included",
                         SUITE_MAX_CHECKS);
    t->checks[t->n_checks++] = (struct check){.kind = CHECK_ANSWER,
                                              .line = test->line,
                                              .name = "answer: the tester's verdict",
                                              .text = "\\AVERDICT: PASSED[ \\t]*(?:\\R|\\z)"};
    return 0;
}

static int read_test(struct suite_reading *g, const struct doc_node *suite, const struct doc_node *test,
                     const struct suite_matrix *m, long which, struct test *t)
{
    const struct doc_node *task = doc_get(test, "task"), *id = doc_get(test, "id");
    struct spec spec = {.path = NULL};
    begin(g, t);
    g->again = which > 0;
    if (read_seed(g, suite, test))
        return -1;
    matrix_set(m, which, g);
    set_seed(g);
    if ((id && read_id(g, test, NULL, which)) || read_vars(g, suite, test))
        return -1;
    if (!task && read_spec(g, test, &spec))
        return -1;
    if (!id && read_id(g, test, spec.id, which))
        return -1;
    if (spec.url && !vars_get(&g->vars, "url", 3) && vars_set(&g->vars, "url", spec.url))
        return doc_fault(g->y, test, g->e, "expected at most %d variables", SUITE_MAX_VARS);
    g->n = task;
    if (task && value_text(g, task, VALUE_STRICT, &t->task))
        return -1;
    if (keys_test(g, suite, test) || (!task && use_spec(g, test, &spec)))
        return -1;
    t->line = test->line;
    keys_finish(g);
    if (texts_size(g->s->texts) > SUITE_MAX_ALL)
        return doc_fault(g->y, test, g->e, "the tests up to this one have more than %d MiB of text",
                         SUITE_MAX_ALL >> 20);
    return 0;
}

static int read_entry(struct suite_reading *g, const struct doc_node *suite, const struct doc_node *test,
                      int *room)
{
    struct suite *s = g->s;
    struct suite_matrix m = {.combinations = 0};
    bool task = test->kind == DOC_MAP && doc_get(test, "task"),
         spec = test->kind == DOC_MAP && doc_get(test, "spec");
    if (test->kind != DOC_MAP)
        return doc_fault(g->y, test, g->e, "expected a test, as \"- id: its-name\" and keys below it");
    if (keys_known(g, test))
        return -1;
    if (task == spec)
        return doc_fault(g->y, test, g->e,
                         task ? "expected task or spec in a test, not both"
                              : "expected the key task or spec in a test");
    if (task && !doc_get(test, "id"))
        return doc_fault(g->y, test, g->e, "expected the key id in a test");
    int rc = matrix_read(g, doc_get(test, "matrix"), &m);
    if (!rc && s->n + m.combinations > SUITE_MAX_TESTS)
        rc = doc_fault(g->y, test, g->e, "expected at most %d tests in a suite", SUITE_MAX_TESTS);
    for (long i = 0; !rc && i < m.combinations; i++) {
        if (s->n == *room)
            s->tests = xrealloc(s->tests, (unsigned long)(*room = *room ? 2 * *room : 16), sizeof *s->tests);
        rc = read_test(g, suite, test, &m, i, &s->tests[s->n]);
        s->n += !rc;
    }
    matrix_free(&m);
    return rc;
}

/* ---- the file ----------------------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    const struct test *x = *(const struct test *const *)a, *y = *(const struct test *const *)b;
    int order = strcmp(x->id, y->id);
    return order ? order : (x > y) - (x < y);
}

static int unique(const struct suite_reading *g)
{
    const struct suite *s = g->s;
    const struct test **sorted = xmalloc((unsigned long)s->n, sizeof *sorted), *twice = NULL, *first = NULL;
    for (int i = 0; i < s->n; i++)
        sorted[i] = &s->tests[i];
    qsort(sorted, (size_t)s->n, sizeof *sorted, by_id);
    for (int i = 1; i < s->n; i++) {
        if (!strcmp(sorted[i]->id, sorted[i - 1]->id) && (!twice || sorted[i] < twice)) {
            twice = sorted[i];
            first = sorted[i - 1];
        }
    }
    free(sorted);
    if (!twice)
        return 0;
    struct doc_node at = {.key = (char[]){"id"}, .line = twice->line};
    return doc_fault(g->y, &at, g->e, "expected another than '%s': a test on line %d has it already%s",
                     twice->id, first->line,
                     *twice->matrix ? "; with a matrix, as id: \"{page}-{seed}\"" : "");
}

/* The values of the suite, and what it says for its tests once over. */
static int read_suite(struct suite_reading *g, const struct doc_node *suite)
{
    struct test *draft = xmalloc(1, sizeof *draft);
    begin(g, draft);
    int rc = read_seed(g, suite, &nothing);
    set_seed(g);
    g->draft = true;
    rc = rc ? rc : read_vars(g, suite, &nothing);
    g->draft = false;
    rc = rc ? rc : keys_suite(g, suite);
    free(draft);
    return rc;
}

static int read_root(struct suite_reading *g)
{
    static const char *const names[] = {"suite", "tests"};
    const struct doc_node *root = doc_root(g->y), *suite, *tests;
    int room = 0;
    if (root->kind != DOC_MAP)
        return doc_fault(g->y, root, g->e, "expected the keys suite and tests");
    for (g->n = root->child; g->n; g->n = g->n->next)
        if (strcmp(g->n->key, "suite") != 0 && strcmp(g->n->key, "tests") != 0)
            return value_unknown(g, "a file has", names, 2);
    suite = doc_get(root, "suite");
    tests = doc_get(root, "tests");
    if (suite && suite->kind != DOC_MAP)
        return doc_fault(g->y, suite, g->e, "expected keys, as name and display");
    if (!tests || tests->kind != DOC_LIST || !tests->child)
        return doc_fault(g->y, tests ? tests : root, g->e, "expected %s",
                         tests ? "a list of tests" : "the key tests with a list of tests");
    suite = suite ? suite : &nothing;
    if (read_suite(g, suite))
        return -1;
    for (const struct doc_node *n = tests->child; n; n = n->next)
        if (read_entry(g, suite, n, &room))
            return -1;
    return unique(g);
}

/* Path, folder (absolute, as commands run elsewhere) and the name that it gives. */
static void place(struct suite *s, const char *path)
{
    static const char *const none[] = {NULL};
    char *copy = xstrdup(path), real[PATH_MAX];
    const char *dir = dirname(copy);
    dir = realpath(dir, real) ? real : dir;
    s->dir = texts_keep(s->texts, dir, strlen(dir));
    free(copy);
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const char *dot = strrchr(base, '.');
    s->name = texts_keep(s->texts, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
    s->path = texts_keep(s->texts, path, strlen(path));
    s->setup = s->teardown = s->env = none;
}

struct suite *suite_parse(const char *text, size_t len, const char *path, struct err *e)
{
    struct err own = ERR_INIT;
    struct suite_reading g = {.e = e ? e : &own};
    struct doc *y =
        doc_parse_within(text, len, path, (struct doc_limits){SUITE_MAX_BYTES, SUITE_MAX_NODES}, g.e);
    if (!y)
        return NULL;
    struct suite *s = xcalloc(1, sizeof *s);
    s->texts = texts_new();
    place(s, path);
    g.s = s;
    g.y = y;
    int rc = read_root(&g);
    doc_free(y);
    if (!rc)
        return s;
    suite_free(s);
    return NULL;
}

bool test_owns_desktop(const struct test *t)
{
    return !strncmp(t->display, "xvfb", 4);
}

struct suite *suite_read(const char *path, struct err *e)
{
    char *text;
    size_t len;
    bool in = !strcmp(path, "-");
    if (file_read(in ? "/dev/stdin" : path, SUITE_MAX_BYTES, &text, &len, e)) {
        if (e)
            e->kind = ERR_USAGE;
        return NULL;
    }
    struct suite *s = suite_parse(text, len, in ? "stdin" : path, e); /* a name in the current folder */
    free(text);
    return s;
}

void suite_free(struct suite *s)
{
    if (!s)
        return;
    free(s->tests);
    texts_free(s->texts);
    free(s);
}
