/* key.c - see private.h.
 *
 * One table has every key: where it may stand, who reads it, into what.  A key of a suite is for all its tests; what a test
 * says itself takes its place, or is added to it (env, secrets, tags, checks).
 */
#include "qa/suite/private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUITE = 1, TEST = 2, ADDS = 4, FIRST = 8 /* read by suite.c, before the others */ };

struct key {
    const char *name;
    unsigned where;
    int (*read)(struct suite_reading *g, const struct key *k);
    size_t at;
    double min, max;
};

static void *place(const struct suite_reading *g, const struct key *k)
{
    return (char *)g->t + k->at;
}

static int read_int(struct suite_reading *g, const struct key *k)
{
    double v;
    int rc = value_number(g, k->min, k->max, true, &v);
    if (!rc)
        *(int *)place(g, k) = (int)v;
    return rc;
}

static int read_seconds(struct suite_reading *g, const struct key *k)
{
    return value_number(g, k->min, k->max, false, place(g, k));
}

static int read_yes(struct suite_reading *g, const struct key *k)
{
    return value_yes(g, place(g, k));
}

/* 64 to 16384 */
static bool is_size(const char *s, const char **end)
{
    size_t n = strspn(s, "0123456789");
    long v = n && n < 6 ? strtol(s, NULL, 10) : 0;
    *end = s + n;
    return v >= 64 && v <= 16384;
}

/* "xvfb:1280x720" or ":0" */
static bool is_display(const char *s)
{
    size_t n = strlen(s);
    if (*s == ':')
        return n < 12 && isdigit((unsigned char)s[1]) && strspn(s + 1, "0123456789.") == n - 1;
    return !strncmp(s, "xvfb:", 5) && is_size(s + 5, &s) && *s == 'x' && is_size(s + 1, &s) && !*s;
}

static int read_display(struct suite_reading *g, const struct key *k)
{
    int rc = value_text(g, g->n, VALUE_STRICT | VALUE_LINE, place(g, k));
    if (!rc && !is_display(g->t->display))
        rc = doc_fault(g->y, g->n, g->e,
                       "expected xvfb:WIDTHxHEIGHT (64 to 16384 pixels) or a display that is there as "
                       "\":0\", not '%.40s'",
                       g->t->display);
    return rc;
}

/* A file or folder beside the suite; a setup of the suite may yet make it. */
static int read_path(struct suite_reading *g, const struct key *k)
{
    const char **path = place(g, k);
    int rc = value_text(g, g->n, VALUE_STRICT | VALUE_LINE | VALUE_EMPTY, path);
    if (rc)
        return rc;
    *path = **path ? texts_path(g->s->texts, g->s->dir, *path) : NULL;
    if (*path && !*g->s->setup && access(*path, R_OK))
        return doc_fault(g->y, g->n, g->e, "expected what can be read; '%.200s' cannot", *path);
    return 0;
}

static int read_command(struct suite_reading *g, const struct key *k)
{
    return value_text(g, g->n, VALUE_SHELL | VALUE_EMPTY, place(g, k));
}

static int read_start(struct suite_reading *g, const struct key *k)
{
    int rc = read_command(g, k);
    if (!rc && !*g->t->start)
        g->t->start = NULL;
    return rc;
}

static int read_window(struct suite_reading *g, const struct key *k)
{
    if (g->n->kind == DOC_SCALAR && !*g->n->text) {
        g->t->window = NULL;
        return 0;
    }
    return value_pattern(g, place(g, k));
}

/* ---- lists ------------------------------------------------------------------------------------------------ */

/* Shell commands, one or a list. */
static int read_list(struct suite_reading *g, const char *const **out)
{
    const char *list[SUITE_MAX_COMMANDS];
    int n = 0;
    const struct doc_node *one = g->n->kind == DOC_LIST ? g->n->child : g->n;
    for (; one; one = g->n->kind == DOC_LIST ? one->next : NULL) {
        if (one->kind != DOC_SCALAR || !*one->text)
            return doc_fault(g->y, g->n, g->e, "expected a shell command, or a list of such");
        if (n == SUITE_MAX_COMMANDS)
            return doc_fault(g->y, g->n, g->e, "expected at most %d commands", SUITE_MAX_COMMANDS);
        int rc = value_text(g, one, VALUE_SHELL, &list[n]);
        if (rc < 0)
            return rc;
        n += rc == 0;
    }
    *out = texts_list(g->s->texts, list, n);
    return 0;
}

static int read_commands(struct suite_reading *g, const struct key *k)
{
    return read_list(g, place(g, k));
}

static bool env_name(const char *s)
{
    size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    return n && !s[n] && !isdigit((unsigned char)*s) && n <= 100;
}

/* The same name again takes the place of the former. */
static int put_env(struct suite_reading *g, const char *name, const char *value)
{
    char *text = xasprintf("%s=%s", name, value);
    size_t n = strlen(name) + 1;
    int at = 0;
    while (at < g->n_env && strncmp(g->env[at], text, n) != 0)
        at++;
    bool room = at < SUITE_MAX_ENV + SUITE_MAX_VARS;
    if (room) {
        g->env[at] = texts_keep(g->s->texts, text, strlen(text));
        g->n_env += at == g->n_env;
    }
    free(text);
    return room ? 0 : -1;
}

static int read_env(struct suite_reading *g, const struct key *k)
{
    (void)k;
    const struct doc_node *map = g->n;
    if (map->kind != DOC_MAP)
        return doc_fault(g->y, map, g->e, "expected names with their values, as { LANG: C.UTF-8 }");
    for (g->n = map->child; g->n; g->n = g->n->next) {
        const char *value;
        if (!env_name(g->n->key) || !strncmp(g->n->key, "HOLORUN_", 8))
            return doc_fault(g->y, g->n, g->e,
                             "expected the name of an environment variable, not HOLORUN_...");
        if (!strcmp(g->n->key, "HOME") || !strcmp(g->n->key, "DISPLAY") || !strcmp(g->n->key, "XAUTHORITY"))
            return doc_fault(g->y, g->n, g->e, "each test has its own; see the keys home and display");
        int rc = value_text(g, g->n, VALUE_SHELL | VALUE_EMPTY, &value);
        if (rc < 0)
            return rc;
        if (!rc && (g->n_env == SUITE_MAX_ENV || put_env(g, g->n->key, value)))
            return doc_fault(g->y, g->n, g->e, "expected at most %d variables", SUITE_MAX_ENV);
    }
    g->n = map;
    return 0;
}

/* NAME=env:VARIABLE or NAME=file:PATH.  Whatever else stands there may be a secret itself: it is not shown. */
static int take_secret(struct suite_reading *g, const struct doc_node *n)
{
    const char *text;
    int rc = value_text(g, n, VALUE_STRICT | VALUE_LINE, &text);
    if (rc)
        return rc;
    size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    const char *from = text + len;
    bool env = !strncmp(from, "=env:", 5), file = !strncmp(from, "=file:", 6);
    if (!len || len > 32 || !isupper((unsigned char)*text) || !(env ? env_name(from + 5) : file && from[6]))
        return doc_fault(
            g->y, g->n, g->e,
            "expected NAME=env:VARIABLE or NAME=file:PATH, NAME of up to 32 capital letters, digits and _; "
            "never the secret itself");
    int at = 0;
    while (at < g->n_secrets && strncmp(g->secrets[at], text, len + 1) != 0)
        at++;
    if (at == SUITE_MAX_SECRETS)
        return doc_fault(g->y, g->n, g->e, "expected at most %d secrets", SUITE_MAX_SECRETS);
    if (file && from[6] != '/') {
        char *whole = xasprintf("%.*s=file:%s/%s", (int)len, text, g->s->dir, from + 6);
        text = texts_keep(g->s->texts, whole, strlen(whole));
        free(whole);
    }
    g->secrets[at] = text;
    g->n_secrets += at == g->n_secrets;
    return 0;
}

static int read_secrets(struct suite_reading *g, const struct key *k)
{
    (void)k;
    return value_each(g, "NAME=env:VARIABLE", SUITE_MAX_SECRETS, take_secret);
}

static int take_tag(struct suite_reading *g, const struct doc_node *n)
{
    const char *tag;
    int rc = value_text(g, n, VALUE_STRICT, &tag);
    if (rc)
        return rc;
    if (!value_word(tag))
        return doc_fault(g->y, g->n, g->e, "expected a word of letters, digits and . _ -, not '%.40s'", tag);
    for (int i = 0; i < g->n_tags; i++)
        if (!strcmp(g->t->tags[i], tag))
            return 0;
    if (g->n_tags == SUITE_MAX_TAGS)
        return doc_fault(g->y, g->n, g->e, "expected at most %d tags", SUITE_MAX_TAGS);
    g->t->tags[g->n_tags++] = tag;
    return 0;
}

static int read_tags(struct suite_reading *g, const struct key *k)
{
    (void)k;
    return value_each(g, "a tag", SUITE_MAX_TAGS, take_tag);
}

static int read_checks(struct suite_reading *g, const struct key *k)
{
    (void)k;
    const struct doc_node *list = g->n;
    if (list->kind != DOC_LIST)
        return doc_fault(g->y, list, g->e,
                         "expected a list of checks, as \"- { kind: file, path: out.txt }\"");
    for (const struct doc_node *one = list->child; one; one = one->next) {
        g->n = list;
        if (g->t->n_checks == SUITE_MAX_CHECKS)
            return doc_fault(g->y, one, g->e,
                             "expected at most %d checks of a test, those of its suite included",
                             SUITE_MAX_CHECKS);
        if (check_read(g, one, &g->t->checks[g->t->n_checks++]))
            return -1;
    }
    return 0;
}

/* ---- the table -------------------------------------------------------------------------------------------- */

#define AT(member) offsetof(struct test, member)

static const struct key keys[] = {
    {"name", SUITE | FIRST, NULL, 0, 0, 0},
    {"flaky_max", SUITE | FIRST, NULL, 0, 0, 0},
    {"id", TEST | FIRST, NULL, 0, 0, 0},
    {"task", TEST | FIRST, NULL, 0, 0, 0},
    {"spec", TEST | FIRST, NULL, 0, 0, 0},
    {"matrix", TEST | FIRST, NULL, 0, 0, 0},
    {"vars", SUITE | TEST | FIRST, NULL, 0, 0, 0},
    {"seed", SUITE | TEST | FIRST, NULL, 0, 0, 0},
    {"display", SUITE | TEST, read_display, AT(display), 0, 0},
    {"wm", SUITE | TEST, read_command, AT(wm), 0, 0},
    {"home", SUITE | TEST, read_path, AT(home), 0, 0},
    {"env", SUITE | TEST | ADDS, read_env, 0, 0, 0},
    {"setup", TEST, read_commands, AT(setup), 0, 0},
    {"teardown", TEST, read_commands, AT(teardown), 0, 0},
    {"start", SUITE | TEST, read_start, AT(start), 0, 0},
    {"window", SUITE | TEST, read_window, AT(window), 0, 0},
    {"start_timeout_s", SUITE | TEST, read_seconds, AT(start_seconds), 0.1, 3600},
    {"steps", SUITE | TEST, read_int, AT(steps), 1, 100000},
    {"timeout_s", SUITE | TEST, read_seconds, AT(seconds), 0.1, 1e6},
    {"retries", SUITE | TEST, read_int, AT(retries), 0, 20},
    {"attempts", SUITE | TEST, read_int, AT(attempts), 1, 20},
    {"validator", SUITE | TEST, read_int, AT(validator), 0, 20},
    {"policy", SUITE | TEST, read_path, AT(policy), 0, 0},
    {"secrets", SUITE | TEST | ADDS, read_secrets, 0, 0, 0},
    {"tags", SUITE | TEST | ADDS, read_tags, 0, 0, 0},
    {"expect_fail", TEST, read_yes, AT(expect_fail), 0, 0},
    {"checks", SUITE | TEST | ADDS, read_checks, 0, 0, 0},
};
enum { N_KEYS = sizeof keys / sizeof *keys };

/* setup and teardown of a suite are another thing than those of a test, so their keys are not SUITE | TEST. */
static bool may_stand(const struct key *k, unsigned where)
{
    return k->where & where || (where == SUITE && k->read == read_commands);
}

static int known(struct suite_reading *g, const struct doc_node *map, unsigned where, const char *what)
{
    const char *names[N_KEYS];
    int n = 0;
    for (int i = 0; i < N_KEYS; i++)
        if (may_stand(&keys[i], where))
            names[n++] = keys[i].name;
    for (g->n = map->child; g->n; g->n = g->n->next) {
        int i = 0;
        while (i < n && strcmp(names[i], g->n->key) != 0)
            i++;
        if (i == n)
            return value_unknown(g, what, names, n);
    }
    return 0;
}

int keys_known(struct suite_reading *g, const struct doc_node *test)
{
    return known(g, test, TEST, "a test has");
}

static int apply(struct suite_reading *g, const struct key *k, const struct doc_node *n)
{
    g->n = n;
    return n && k->read(g, k) < 0 ? -1 : 0;
}

int keys_test(struct suite_reading *g, const struct doc_node *suite, const struct doc_node *test)
{
    for (int i = 0; i < N_KEYS; i++) {
        const struct key *k = &keys[i];
        if (k->where & FIRST)
            continue;
        const struct doc_node *all = k->where & SUITE ? doc_get(suite, k->name) : NULL;
        const struct doc_node *own = test ? doc_get(test, k->name) : NULL;
        if ((!own || k->where & ADDS) && apply(g, k, all))
            return -1;
        if (apply(g, k, own))
            return -1;
    }
    return 0;
}

static int read_name(struct suite_reading *g)
{
    if (value_text(g, g->n, VALUE_STRICT | VALUE_LINE, &g->s->name))
        return -1;
    return strlen(g->s->name) <= 200 ? 0 : doc_fault(g->y, g->n, g->e, "expected at most 200 bytes");
}

int keys_suite(struct suite_reading *g, const struct doc_node *suite)
{
    double most = SUITE_MAX_TESTS;
    if (known(g, suite, SUITE, "a suite has"))
        return -1;
    struct suite *s = g->s;
    if ((g->n = doc_get(suite, "name")) && read_name(g))
        return -1;
    if ((g->n = doc_get(suite, "flaky_max")) && value_number(g, 0, SUITE_MAX_TESTS, true, &most) < 0)
        return -1;
    s->flaky_max = (int)most;
    if ((g->n = doc_get(suite, "setup")) && read_list(g, &s->setup))
        return -1;
    if ((g->n = doc_get(suite, "teardown")) && read_list(g, &s->teardown))
        return -1;
    if ((g->n = doc_get(suite, "env")) && read_env(g, NULL))
        return -1;
    g->t->env = NULL;
    keys_finish(g);
    s->env = g->t->env;
    g->draft = true;
    return keys_test(g, suite, NULL);
}

void keys_finish(struct suite_reading *g)
{
    for (int i = 0; i < g->vars.n; i++) {
        char name[SUITE_MAX_NAME + 16] = "HOLORUN_VAR_";
        size_t at = strlen(name);
        for (const char *p = g->vars.names[i]; *p; p++)
            name[at++] = (char)toupper((unsigned char)*p);
        put_env(g, name, g->vars.values[i]); /* there is room for all */
    }
    g->t->env = texts_list(g->s->texts, g->env, g->n_env);
    g->t->secrets = texts_list(g->s->texts, g->secrets, g->n_secrets);
}
