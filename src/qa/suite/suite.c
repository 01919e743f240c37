/* suite.c - reads a suite file: the suite, its tests, combinations and ids.
 *
 * The keys of a test are read in this order: matrix, seed, id, vars (each may use earlier ones), task or
 * spec, the rest. A task is a text, or a list of steps (steps.c). */
#include "qa/suite/private.h"

#include "base/file.h"
#include "base/secret.h"

#include <ctype.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct doc_node empty_map = {.kind = DOC_MAP, .line = 1};

/* ---- variables ----------------------------------------------------------------------------------- */

static int set_variable(struct suite_reader *r)
{
    const char *value = NULL;
    int rc = value_text(r, r->n, VALUE_STRICT | VALUE_EMPTY, &value);
    if (rc > 0)
        return 0; /* unresolved in a draft */
    if (vars_set(&r->vars, arena_strdup(r->s->arena, r->n->key), rc ? "" : value) && !rc)
        return fault(r, "expected at most %d variables", SUITE_MAX_VARS);
    return rc;
}

static int check_names(struct suite_reader *r, const struct doc_node *vars)
{
    r->n = vars;
    if (vars->kind != DOC_MAP)
        return fault_at(r, vars, "expected names and values, as { base: \"http://localhost:5173\" }");
    for (r->n = vars->child; r->n; r->n = r->n->next)
        if (!vars_is_name(r->n->key) || !strcmp(r->n->key, "id") || !strcmp(r->n->key, "dir") ||
            !strcmp(r->n->key, "seed"))
            return fault(r,
                         "expected a variable's name: lower-case letters, digits and _, not id, seed or dir");
    return 0;
}

/* Sets the suite's variables in their order, overridden by the test's, then the test's others. Axes are
 * already set. */
static int read_vars(struct suite_reader *r, const struct doc_node *suite, const struct doc_node *test)
{
    const struct doc_node *all = doc_get(suite, "vars"), *own = doc_get(test, "vars");
    const struct doc_node *matrix = doc_get(test, "matrix");
    if ((all && check_names(r, all)) || (own && check_names(r, own)))
        return -1;
    for (const struct doc_node *n = all ? all->child : NULL; n; n = n->next) {
        r->n = own ? doc_get(own, n->key) : NULL;
        r->n = r->n ? r->n : n;
        if (!(matrix && doc_get(matrix, n->key)) && part_read(r, set_variable(r)))
            return -1;
    }
    for (r->n = own ? own->child : NULL; r->n; r->n = r->n->next) {
        if (matrix && doc_get(matrix, r->n->key))
            return fault(r, "is an axis of this test's matrix, too");
        if (!(all && doc_get(all, r->n->key)) && part_read(r, set_variable(r)))
            return -1;
    }
    return 0;
}

static int read_seed(struct suite_reader *r, const struct doc_node *suite, const struct doc_node *test)
{
    r->n = doc_get(test, "seed");
    r->n = r->n ? r->n : doc_get(suite, "seed");
    return r->n ? value_seed(r, &r->t->seed) : 0;
}

/* Starts the next test, or a draft, with its defaults. */
static void test_begin(struct suite_reader *r, struct test *t)
{
    static const char *const none[] = {NULL};
    *t = (struct test){.suite = r->s->name,
                       .display = "xvfb:1280x720",
                       .dir = r->s->dir,
                       .setup = none,
                       .teardown = none,
                       .start_timeout = 30,
                       .elements = true,
                       .retries = -1,
                       .settle_quiet = NAN,
                       .settle_min = NAN,
                       .key_delay = NAN,
                       .selected = true};
    r->t = t;
    r->vars.n = 0;
    r->n_env = r->n_secrets = r->n_tags = 0;
    r->draft = false;
    vars_set(&r->vars, "dir", r->s->dir);
}

static void set_seed(struct suite_reader *r)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)r->t->seed);
    vars_set(&r->vars, "seed", arena_strdup(r->s->arena, text));
}

/* ---- one test ------------------------------------------------------------------------------------ */

static int set_id(struct suite_reader *r, const struct doc_node *n, const char *id)
{
    if (!value_is_word(id))
        return fault_at(r, n, "expected an id of at most %d letters, digits and . _ -, not '%.40s'",
                        SUITE_MAX_ID, id);
    r->t->id = id;
    vars_set(&r->vars, "id", id); /* never too many at this point */
    return 0;
}

/* Reads an id. With a matrix and no variable in the id, it is numbered: ID-1, ID-2 ... */
static int read_id(struct suite_reader *r, const struct doc_node *test, const char *id, long which)
{
    const struct doc_node *n = doc_get(test, "id"), *matrix = doc_get(test, "matrix");
    r->n = n ? n : test;
    if (n && value_text(r, n, VALUE_STRICT | VALUE_ONE_LINE, &id))
        return -1;
    if (matrix && !(n && strchr(n->text, '{')))
        id = arena_take(r->s->arena, xasprintf("%s-%ld", id, which + 1));
    return set_id(r, r->n, id);
}

static int read_spec(struct suite_reader *r, const struct doc_node *test, struct spec *p)
{
    const char *path;
    r->n = doc_get(test, "spec");
    if (value_text(r, r->n, VALUE_STRICT | VALUE_ONE_LINE, &path))
        return -1;
    r->t->spec = arena_path(r->s->arena, r->s->dir, path);
    struct err why = ERR_INIT, *e = r->e;
    r->e = &why;
    int rc = spec_read(r, r->t->spec, p);
    r->e = e;
    if (rc)
        return err_set(e, ERR_USAGE, "%.*s (the spec of %s:%d)", ERR_TEXT - 120, why.text, doc_name(r->y),
                       test->line);
    if (!doc_get(test, "id") && !p->id)
        return fault_at(r, test, "expected the key id, in this test or in its spec");
    return 0;
}

/* Copies task, timeout, display and secrets from a spec; the test's own keys override them. */
static int use_spec(struct suite_reader *r, const struct doc_node *test, const struct spec *p)
{
    struct test *t = r->t;
    struct buf b;
    struct expansion x;
    char text[64];
    buf_init(&b, SUITE_MAX_TEXT);
    vars_expand(&r->vars, p->task, 0, &b, &x);
    t->task = arena_strndup(r->s->arena, b.data, b.len);
    bool full = b.full;
    buf_free(&b);
    if (full)
        return fault(r, "expected at most %d bytes of text", SUITE_MAX_TEXT);
    if (p->seconds > 0 && !doc_get(test, "timeout_s"))
        t->timeout = p->seconds;
    if (p->width && !doc_get(test, "display")) {
        snprintf(text, sizeof text, "xvfb:%dx%d", p->width, p->height);
        t->display = arena_strdup(r->s->arena, text);
    }
    for (int i = 0; i < p->n_credentials; i++) {
        const char *name = p->credentials[i];
        int at = value_find_name(r->secrets, r->n_secrets, name, strlen(name));
        if (at == SUITE_MAX_SECRETS)
            return fault_at(r, test, "expected at most %d secrets, those of its spec included",
                            SUITE_MAX_SECRETS);
        if (at < r->n_secrets)
            continue;
        r->secrets[r->n_secrets++] = arena_take(r->s->arena, xasprintf("%s=env:%s", name, name));
    }
    if (t->n_checks == SUITE_MAX_CHECKS)
        return fault_at(r, test, "expected at most %d checks, that of its spec included", SUITE_MAX_CHECKS);
    t->checks[t->n_checks++] = (struct check){.kind = CHECK_ANSWER,
                                              .line = test->line,
                                              .name = "answer: the tester's verdict",
                                              .text = "\\AVERDICT: PASSED[ \\t]*(?:\\R|\\z)"};
    return 0;
}

/* Checks that every {{NAME}} in the task is one of the test's secrets; any other would be typed literally. */
static int check_secret_names(struct suite_reader *r, const struct doc_node *at, const char *task)
{
    static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    for (const char *p = task; (p = strstr(p, "{{")); p += 2) {
        size_t n = strspn(p + 2, capitals);
        if (!n || n > SECRET_NAME || isdigit((unsigned char)p[2]) || strncmp(p + 2 + n, "}}", 2) != 0 ||
            value_find_name(r->secrets, r->n_secrets, p + 2, n) < r->n_secrets)
            continue;
        return fault_at(r, at, "no secret %.*s for {{%.*s}}: give it with secrets: [%.*s=env:VARIABLE]",
                        (int)n, p + 2, (int)n, p + 2, (int)n, p + 2);
    }
    return 0;
}

/* Checks the secrets that a task names, and keys that steps on named elements do not allow. */
static int check_task(struct suite_reader *r, const struct doc_node *test, const struct doc_node *task)
{
    const struct test *t = r->t;
    if (!t->n_script) {
        const char *says = task && task->kind == DOC_SCALAR ? task->text : t->task;
        return says ? part_read(r, check_secret_names(r, task ? task : doc_get(test, "spec"), says)) : 0;
    }
    for (int i = 0; i < t->n_script; i++) {
        const struct doc_node at = {.line = t->script[i].line};
        if (part_read(r, check_secret_names(r, &at, t->script[i].text)))
            return -1;
    }
    const char *odd = t->recording ? "recording" : t->expect_infeasible ? "expect: infeasible" : NULL;
    return odd ? part_read(r, fault_at(r, test, "expected a task as text, not steps, with %s", odd)) : 0;
}

/* Checks that a program that is kept open between tests can be reset, and that nothing of a test that must be
 * its own remains in it. */
static int check_reuse(struct suite_reader *r, const struct doc_node *test)
{
    const struct test *t = r->t;
    const char *odd = !test_owns_desktop(t)               ? "an existing display"
                      : t->home                           ? "home"
                      : *t->secrets                       ? "secrets"
                      : t->retries > 0 || t->attempts > 1 ? "retries or attempts"
                                                          : NULL;
    if (t->reuse != REUSE_PROGRAM)
        return 0;
    if (odd)
        return part_read(r, fault_at(r, test, "reuse: program is not possible with %s", odd));
    if (!t->start || !*t->setup || !t->n_waits)
        return part_read(r, fault_at(r, test,
                                     "expected start, setup and wait_until with reuse: program; the setup "
                                     "resets the program before each test, wait_until waits for that"));
    return 0;
}

static int read_test(struct suite_reader *r, const struct doc_node *suite, const struct doc_node *test,
                     const struct suite_matrix *m, long which, struct test *t)
{
    const struct doc_node *task = doc_get(test, "task"), *id = doc_get(test, "id");
    struct spec spec = {.path = NULL};
    test_begin(r, t);
    t->line = test->line;
    r->again = which > 0;
    if (part_read(r, read_seed(r, suite, test)))
        return -1;
    matrix_set(m, which, r);
    set_seed(r);
    if ((id && part_read(r, read_id(r, test, NULL, which))) || part_read(r, read_vars(r, suite, test)))
        return -1;
    if (!task && doc_get(test, "spec") && part_read(r, read_spec(r, test, &spec)))
        return -1;
    if (!id && spec.id && part_read(r, read_id(r, test, spec.id, which)))
        return -1;
    if (spec.url && !vars_get(&r->vars, "url", 3) && vars_set(&r->vars, "url", spec.url))
        return fault_at(r, test, "expected at most %d variables", SUITE_MAX_VARS);
    if (!t->id)
        vars_set(&r->vars, "id", ""); /* its mistake is already recorded */
    r->n = task;
    bool steps = task && task->kind == DOC_LIST;
    if (task && part_read(r, steps ? steps_read(r, task) : value_text(r, task, VALUE_STRICT, &t->task)))
        return -1;
    if (keys_read_test(r, suite, test) || (spec.task && part_read(r, use_spec(r, test, &spec))))
        return -1;
    keys_finish(r);
    if (check_task(r, test, task) || check_reuse(r, test))
        return -1;
    if (arena_size(r->s->arena) > SUITE_MAX_ALL)
        return fault_at(r, test, "the tests up to this one have more than %d MiB of text",
                        SUITE_MAX_ALL >> 20);
    return 0;
}

static int read_entry(struct suite_reader *r, const struct doc_node *suite, const struct doc_node *test,
                      int *capacity)
{
    struct suite *s = r->s;
    struct suite_matrix m = {.combinations = 0};
    bool task = test->kind == DOC_MAP && doc_get(test, "task"),
         spec = test->kind == DOC_MAP && doc_get(test, "spec");
    if (test->kind != DOC_MAP)
        return fault_at(r, test, "expected a test, as \"- id: its-name\" and its keys");
    if (keys_check_names(r, test, false))
        return -1;
    const struct doc_node *steps = doc_get(test, "steps");
    const char *missing = steps && steps->kind == DOC_LIST
                              ? "the key steps is a limit; write the list of steps as the key task"
                              : "expected the key task or spec in a test";
    if (task == spec &&
        part_read(r, fault_at(r, test, "%s", task ? "expected task or spec in a test, not both" : missing)))
        return -1;
    if (!spec && !doc_get(test, "id") && part_read(r, fault_at(r, test, "expected the key id in a test")))
        return -1;
    int rc = matrix_read(r, doc_get(test, "matrix"), &m);
    if (!rc && s->n + m.combinations > SUITE_MAX_TESTS)
        rc = fault_at(r, test, "expected at most %d tests in a suite", SUITE_MAX_TESTS);
    for (long i = 0; !rc && i < m.combinations; i++) {
        if (s->n == *capacity)
            s->tests = xrealloc(s->tests, (unsigned long)(*capacity = *capacity ? 2 * *capacity : 16),
                                sizeof *s->tests);
        rc = read_test(r, suite, test, &m, i, &s->tests[s->n]);
        bool read = !rc && s->tests[s->n].id && s->tests[s->n].task;
        if (!read)
            test_free(&s->tests[s->n]);
        s->n += read;
    }
    matrix_free(&m);
    return rc;
}

/* ---- the file ------------------------------------------------------------------------------------ */

static int check_unique_ids(struct suite_reader *r)
{
    json_auto_t *taken = json_object();
    int rc = 0;
    for (int i = 0; i < r->s->n && rc == 0; i++) {
        const struct test *t = &r->s->tests[i];
        const json_t *line = json_object_get(taken, t->id);
        struct doc_node at = {.key = (char[]){"id"}, .line = t->line};
        if (line)
            rc = part_read(r, fault_at(r, &at, "the id '%s' is already used by the test on line %d%s", t->id,
                                       (int)json_integer_value(line),
                                       *t->matrix ? "; a matrix needs an id such as \"{page}-{seed}\"" : ""));
        json_object_set_new(taken, t->id, json_integer(t->line));
    }
    return rc;
}

/* Reads the suite's own keys, and its keys for tests as a draft. */
static int read_suite(struct suite_reader *r, const struct doc_node *suite)
{
    autofree struct test *draft = xmalloc(1, sizeof *draft);
    test_begin(r, draft);
    int rc = part_read(r, read_seed(r, suite, &empty_map));
    set_seed(r);
    r->draft = true;
    rc = rc ? rc : part_read(r, read_vars(r, suite, &empty_map));
    r->draft = false;
    rc = rc ? rc : keys_read_suite(r, suite);
    return rc;
}

static int read_root(struct suite_reader *r)
{
    static const struct key names[] = {{.name = "suite", .where = 1}, {.name = "tests", .where = 1}, {0}};
    const struct doc_node *root = doc_root(r->y), *suite, *tests;
    int capacity = 0;
    if (root->kind != DOC_MAP)
        return fault_at(r, root, "expected the keys suite and tests");
    if (keys_read(r, root, names, 1, "a file has", NULL))
        return -1;
    suite = doc_get(root, "suite");
    tests = doc_get(root, "tests");
    if (suite && suite->kind != DOC_MAP) {
        if (part_read(r, fault_at(r, suite, "expected keys, as name and display")))
            return -1;
        suite = NULL;
    }
    if (!tests || tests->kind != DOC_LIST || !tests->child)
        return fault_at(r, tests ? tests : root, "expected %s",
                        tests ? "a list of tests" : "the key tests with a list of tests");
    suite = suite ? suite : &empty_map;
    if (read_suite(r, suite))
        return -1;
    for (const struct doc_node *n = tests->child; n; n = n->next)
        if (part_read(r, read_entry(r, suite, n, &capacity)))
            return -1;
    return check_unique_ids(r);
}

/* Sets path, directory (absolute, because commands run in others) and default name. */
static void set_path(struct suite *s, const char *path)
{
    static const char *const none[] = {NULL};
    char *copy = xstrdup(path), real[PATH_MAX];
    const char *dir = dirname(copy);
    dir = realpath(dir, real) ? real : dir;
    s->dir = arena_strdup(s->arena, dir);
    free(copy);
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const char *dot = strrchr(base, '.');
    s->name = arena_strndup(s->arena, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
    s->path = arena_strdup(s->arena, path);
    s->setup = s->teardown = s->env = none;
}

struct suite *suite_parse_all(const char *text, size_t len, const char *path, json_t *faults, struct err *e)
{
    struct err own = ERR_INIT;
    struct suite_reader r = {.e = e ? e : &own, .faults = faults};
    struct doc *y =
        doc_parse_within(text, len, path, (struct doc_limits){SUITE_MAX_BYTES, SUITE_MAX_NODES}, r.e);
    if (!y)
        return NULL;
    struct suite *s = xcalloc(1, sizeof *s);
    s->arena = arena_new();
    set_path(s, path);
    r.s = s;
    r.y = y;
    int rc = read_root(&r);
    doc_free(y);
    if (!rc)
        return s;
    suite_free(s);
    return NULL;
}

struct suite *suite_parse(const char *text, size_t len, const char *path, struct err *e)
{
    return suite_parse_all(text, len, path, NULL, e);
}

bool test_owns_desktop(const struct test *t)
{
    return !strncmp(t->display, "xvfb", 4);
}

static struct suite *read_file(const char *path, json_t *faults, struct err *e)
{
    autofree char *text = NULL;
    size_t len;
    bool in = !strcmp(path, "-");
    if (file_read(in ? "/dev/stdin" : path, SUITE_MAX_BYTES, &text, &len, e)) {
        if (e)
            e->kind = ERR_USAGE;
        return NULL;
    }
    /* for stdin, a file name in the current directory */
    return suite_parse_all(text, len, in ? "stdin" : path, faults, e);
}

struct suite *suite_read(const char *path, struct err *e)
{
    return read_file(path, NULL, e);
}

struct suite *suite_check(const char *path, json_t *faults)
{
    struct err e = ERR_INIT;
    struct suite *s = read_file(path, faults, &e);
    if (e.kind)
        json_object_set_new_nocheck(faults, e.text, json_null());
    return s;
}

void suite_free(struct suite *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n; i++)
        test_free(&s->tests[i]);
    free(s->tests);
    arena_free(s->arena);
    free(s);
}
