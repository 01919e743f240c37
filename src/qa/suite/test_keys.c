/* test_keys.c - reads the keys of suites and tests.
 *
 * A suite's key applies to all its tests; a test's own key overrides it, or adds to it (env, secrets, tags,
 * checks). */
#include "qa/suite/private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SUITE = 1, /* also as a default for the tests */
    TEST = 2,
    ADDS = 4,
    FIRST = 8, /* read by suite.c, before the others */
    OWN = 16,  /* of the suite itself, not a default for its tests */
};

/* Returns whether a text is a display: "xvfb:1280x720" or ":0". */
static bool is_display(const char *s)
{
    int w = 0, h = 0, end = 0;
    size_t n = strlen(s);
    if (*s == ':')
        return n < 12 && isdigit((unsigned char)s[1]) && strspn(s + 1, "0123456789.") == n - 1;
    return !strncmp(s, "xvfb:", 5) && strspn(s + 5, "0123456789x") == n - 5 &&
           sscanf(s + 5, "%5dx%5d%n", &w, &h, &end) == 2 && !s[5 + end] && w >= 64 && w <= 16384 && h >= 64 &&
           h <= 16384;
}

static int read_display(struct suite_reader *r, const struct key *k, void *member)
{
    const char **display = member;
    int rc = key_line(r, k, member);
    if (!rc && !is_display(*display))
        rc = fault(
            r,
            "expected xvfb:WIDTHxHEIGHT (64 to 16384 pixels) or an existing display as \":0\", not '%.40s'",
            *display);
    return rc;
}

/* Reads a path relative to the suite, of a file or directory that the suite's setup may still create. */
static int read_path(struct suite_reader *r, const struct key *k, void *member)
{
    const char **path = member;
    int rc = value_text(r, r->n, VALUE_STRICT | VALUE_ONE_LINE | VALUE_EMPTY, path);
    if (rc)
        return rc;
    *path = **path ? arena_path(r->s->arena, r->s->dir, *path) : NULL;
    if (*path && !*r->s->setup && access(*path, R_OK))
        return fault(r, "cannot read '%.200s'", *path);
    return 0;
}

static int read_wm(struct suite_reader *r, const struct key *k, void *member)
{
    return value_text(r, r->n, VALUE_SHELL | VALUE_EMPTY, member);
}

static int read_start(struct suite_reader *r, const struct key *k, void *member)
{
    const char **start = member;
    int rc = read_wm(r, k, member);
    if (!rc && !**start)
        *start = NULL;
    return rc;
}

static int read_window(struct suite_reader *r, const struct key *k, void *member)
{
    if (r->n->kind == DOC_SCALAR && !*r->n->text) {
        *(const char **)member = NULL;
        return 0;
    }
    return key_pattern(r, k, member);
}

/* ---- lists --------------------------------------------------------------------------------------- */

static int add_command(struct suite_reader *r, const struct doc_node *n)
{
    int rc = value_text(r, n, VALUE_SHELL, &r->commands[r->n_commands]);
    r->n_commands += rc == 0;
    return rc;
}

static int read_commands(struct suite_reader *r, const struct key *k, void *member)
{
    r->n_commands = 0;
    if (value_each(r, "a shell command, or a list of them", SUITE_MAX_COMMANDS, add_command) < 0)
        return -1;
    *(const char *const **)member = arena_list(r->s->arena, r->commands, r->n_commands);
    return 0;
}

static bool env_name(const char *s)
{
    size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    return n && !s[n] && !isdigit((unsigned char)*s) && n <= 100;
}

/* Adds a variable, replacing an earlier value of the same name. */
static int put_env(struct suite_reader *r, const char *name, const char *value)
{
    int at = value_find_name(r->env, r->n_env, name, strlen(name));
    if (at == SUITE_MOST_ENV)
        return -1;
    r->env[at] = arena_take(r->s->arena, xasprintf("%s=%s", name, value));
    r->n_env += at == r->n_env;
    return 0;
}

/* Returns the mistake in a variable's name, or NULL. */
static const char *env_fault(const char *name)
{
    if (!env_name(name) || !strncmp(name, "HOLORUN_", 8))
        return "expected the name of an environment variable, not HOLORUN_...";
    bool own = !strcmp(name, "HOME") || !strcmp(name, "DISPLAY") || !strcmp(name, "XAUTHORITY");
    return own ? "each test has its own: see the keys home and display" : NULL;
}

static int read_env(struct suite_reader *r, const struct key *k, void *member)
{
    const struct doc_node *map = r->n;
    if (map->kind != DOC_MAP)
        return fault_at(r, map, "expected names and values, as { LANG: C.UTF-8 }");
    for (r->n = map->child; r->n; r->n = r->n->next) {
        const char *value;
        const char *wrong = env_fault(r->n->key);
        if (wrong) {
            if (part_read(r, fault(r, "%s", wrong)))
                return -1;
            continue;
        }
        int rc = value_text(r, r->n, VALUE_SHELL | VALUE_EMPTY, &value);
        if (part_read(r, rc))
            return -1;
        if (!rc && (r->n_env == SUITE_MAX_ENV || put_env(r, r->n->key, value)))
            return fault(r, "expected at most %d variables", SUITE_MAX_ENV);
    }
    r->n = map;
    return 0;
}

/* Adds NAME=env:VARIABLE or NAME=file:PATH. A message never shows any other value, because it may be the
 * secret itself. */
static int add_secret(struct suite_reader *r, const struct doc_node *n)
{
    const char *text;
    int rc = value_text(r, n, VALUE_STRICT | VALUE_ONE_LINE, &text);
    if (rc)
        return rc;
    size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    const char *from = text + len;
    bool env = !strncmp(from, "=env:", 5), file = !strncmp(from, "=file:", 6);
    if (!len || len > 32 || !isupper((unsigned char)*text) || !(env ? env_name(from + 5) : file && from[6]))
        return fault(
            r,
            "expected NAME=env:VARIABLE or NAME=file:PATH, NAME of up to 32 capital letters, digits and _; "
            "never the secret itself");
    int at = value_find_name(r->secrets, r->n_secrets, text, len);
    if (at == SUITE_MAX_SECRETS)
        return fault(r, "expected at most %d secrets", SUITE_MAX_SECRETS);
    if (file && from[6] != '/')
        text = arena_take(r->s->arena, xasprintf("%.*s=file:%s/%s", (int)len, text, r->s->dir, from + 6));
    r->secrets[at] = text;
    r->n_secrets += at == r->n_secrets;
    return 0;
}

static int read_secrets(struct suite_reader *r, const struct key *k, void *member)
{
    return value_each(r, "NAME=env:VARIABLE, or a list of them", SUITE_MAX_SECRETS, add_secret);
}

static int add_tag(struct suite_reader *r, const struct doc_node *n)
{
    const char *tag;
    int rc = value_text(r, n, VALUE_STRICT, &tag);
    if (rc)
        return rc;
    if (!value_is_word(tag))
        return fault(r, "expected a word of letters, digits and . _ -, not '%.40s'", tag);
    for (int i = 0; i < r->n_tags; i++)
        if (!strcmp(r->t->tags[i], tag))
            return 0;
    if (r->n_tags == SUITE_MAX_TAGS)
        return fault(r, "expected at most %d tags", SUITE_MAX_TAGS);
    r->t->tags[r->n_tags++] = tag;
    return 0;
}

static int read_tags(struct suite_reader *r, const struct key *k, void *member)
{
    return value_each(r, "a tag, or a list of them", SUITE_MAX_TAGS, add_tag);
}

/* Reads yes or no, or how the model gets the text of the elements. */
static int read_elements(struct suite_reader *r, const struct key *k, void *member)
{
    static const char *const ways[] = {NULL, "text", "only"};
    for (int i = 1; r->n->text && i < 3; i++)
        if (!strcmp(r->n->text, ways[i])) {
            *(bool *)member = true;
            r->t->elements_text = i;
            return 0;
        }
    return key_bool(r, k, member);
}

static int read_expect(struct suite_reader *r, const struct key *k, void *member)
{
    bool *infeasible = member;
    *infeasible = r->n->text && !strcmp(r->n->text, "infeasible");
    if (!*infeasible && (!r->n->text || strcmp(r->n->text, "done") != 0))
        return fault(r, "expected done, or infeasible if the agent is to say that it cannot be done");
    return 0;
}

static int read_reuse(struct suite_reader *r, const struct key *k, void *member)
{
    static const char *const names[] = {[REUSE_NO] = "no", [REUSE_RUN] = "run", [REUSE_PROGRAM] = "program"};
    for (int i = 0; r->n->text && i < (int)(sizeof names / sizeof *names); i++)
        if (!strcmp(r->n->text, names[i])) {
            *(enum reuse *)member = (enum reuse)i;
            return 0;
        }
    return fault(r, "expected run, to repeat the last run that passed, program, to keep it open between "
                    "tests, or no");
}

/* Adds a check that must hold before the agent starts. A check by a model or of the answer is not allowed;
 * default 30 s. */
static int add_wait(struct suite_reader *r, const struct doc_node *one)
{
    struct check *c = &r->t->waits[r->t->n_waits];
    if (keys_read_check(r, one, c))
        return -1;
    if (c->kind == CHECK_ANSWER || c->kind == CHECK_JUDGE || (c->kind == CHECK_TEXT && !c->reading))
        return fault_at(r, one, "expected a check that can pass before the agent starts, not %s",
                        check_kind_name(c->kind));
    if (!doc_get(one, "seconds"))
        c->seconds = 30;
    r->t->n_waits++;
    return 0;
}

static int read_waits(struct suite_reader *r, const struct key *k, void *member)
{
    const struct doc_node *list = r->n;
    r->t->n_waits = 0; /* a test's own list replaces the suite's */
    for (const struct doc_node *one = each_first(list); one; one = each_next(list, one)) {
        r->n = list;
        if (r->t->n_waits == SUITE_MAX_WAITS)
            return fault_at(r, one, "expected at most %d of them", SUITE_MAX_WAITS);
        if (part_read(r, add_wait(r, one)))
            return -1;
    }
    return 0;
}

static int read_checks(struct suite_reader *r, const struct key *k, void *member)
{
    const struct doc_node *list = r->n;
    if (list->kind != DOC_LIST)
        return fault_at(r, list, "expected a list of checks, as \"- { kind: file, path: out.txt }\"");
    for (const struct doc_node *one = list->child; one; one = one->next) {
        r->n = list;
        if (r->t->n_checks == SUITE_MAX_CHECKS)
            return fault_at(r, one, "expected at most %d checks of a test, those of its suite included",
                            SUITE_MAX_CHECKS);
        if (part_read(r, keys_read_check(r, one, &r->t->checks[r->t->n_checks++])))
            return -1;
    }
    return 0;
}

/* ---- the table ----------------------------------------------------------------------------------- */

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
    {"wm", SUITE | TEST, read_wm, AT(wm), 0, 0},
    {"home", SUITE | TEST, read_path, AT(home), 0, 0},
    {"elements", SUITE | TEST, read_elements, AT(elements), 0, 0},
    {"env", SUITE | TEST | ADDS, read_env, 0, 0, 0},
    {"setup", TEST | OWN, read_commands, AT(setup), 0, 0},
    {"teardown", TEST | OWN, read_commands, AT(teardown), 0, 0},
    {"start", SUITE | TEST, read_start, AT(start), 0, 0},
    {"window", SUITE | TEST, read_window, AT(window), 0, 0},
    {"wait_until", SUITE | TEST, read_waits, 0, 0, 0},
    {"start_timeout_s", SUITE | TEST, key_number, AT(start_timeout), 0.1, 3600},
    {"steps", SUITE | TEST, key_int, AT(steps), 1, 100000},
    {"timeout_s", SUITE | TEST, key_number, AT(timeout), 0.1, 1e6},
    {"settle_quiet_ms", SUITE | TEST, key_number, AT(settle_quiet), 0, 60000},
    {"settle_min_ms", SUITE | TEST, key_number, AT(settle_min), 0, 60000},
    {"key_delay_ms", SUITE | TEST, key_number, AT(key_delay), 0, 1000},
    {"retries", SUITE | TEST, key_int, AT(retries), 0, 20},
    {"attempts", SUITE | TEST, key_int, AT(attempts), 1, 20},
    {"validator", SUITE | TEST, key_int, AT(validator), 0, 20},
    {"reuse", SUITE | TEST, read_reuse, AT(reuse), 0, 0},
    {"policy", SUITE | TEST, read_path, AT(policy), 0, 0},
    {"recording", TEST, read_path, AT(recording), 0, 0},
    {"secrets", SUITE | TEST | ADDS, read_secrets, 0, 0, 0},
    {"tags", SUITE | TEST | ADDS, read_tags, 0, 0, 0},
    {"expect", SUITE | TEST, read_expect, AT(expect_infeasible), 0, 0},
    {"expect_fail", TEST, key_bool, AT(expect_fail), 0, 0},
    {"checks", SUITE | TEST | ADDS, read_checks, 0, 0, 0},
    {0},
};

int keys_check_names(struct suite_reader *r, const struct doc_node *map, bool suite)
{
    for (r->n = map->child; r->n; r->n = r->n->next)
        if (!key_find(r, keys, suite ? SUITE | OWN : TEST, suite ? "a suite has" : "a test has") &&
            part_read(r, -1))
            return -1;
    return 0;
}

static int read_key(struct suite_reader *r, const struct key *k, const struct doc_node *n)
{
    r->n = n;
    return n ? part_read(r, k->read(r, k, (char *)r->t + k->at)) : 0;
}

int keys_read_test(struct suite_reader *r, const struct doc_node *suite, const struct doc_node *test)
{
    for (const struct key *k = keys; k->name; k++) {
        if (k->where & FIRST)
            continue;
        const struct doc_node *all = k->where & SUITE ? doc_get(suite, k->name) : NULL;
        const struct doc_node *own = test ? doc_get(test, k->name) : NULL;
        if ((!own || k->where & ADDS) && read_key(r, k, all))
            return -1;
        if (read_key(r, k, own))
            return -1;
    }
    return 0;
}

static int read_name(struct suite_reader *r)
{
    if (value_text(r, r->n, VALUE_STRICT | VALUE_ONE_LINE, &r->s->name))
        return -1;
    return strlen(r->s->name) <= 200 ? 0 : fault(r, "expected at most 200 bytes");
}

int keys_read_suite(struct suite_reader *r, const struct doc_node *suite)
{
    double flaky_max = SUITE_MAX_TESTS;
    if (keys_check_names(r, suite, true))
        return -1;
    struct suite *s = r->s;
    if ((r->n = doc_get(suite, "name")) && part_read(r, read_name(r)))
        return -1;
    if ((r->n = doc_get(suite, "flaky_max")) &&
        part_read(r, value_number(r, 0, SUITE_MAX_TESTS, true, &flaky_max)))
        return -1;
    s->flaky_max = (int)flaky_max;
    if ((r->n = doc_get(suite, "setup")) && part_read(r, read_commands(r, NULL, &s->setup)))
        return -1;
    if ((r->n = doc_get(suite, "teardown")) && part_read(r, read_commands(r, NULL, &s->teardown)))
        return -1;
    if ((r->n = doc_get(suite, "env")) && part_read(r, read_env(r, NULL, NULL)))
        return -1;
    r->t->env = NULL;
    keys_finish(r);
    s->env = r->t->env;
    r->draft = true;
    return keys_read_test(r, suite, NULL);
}

void keys_finish(struct suite_reader *r)
{
    for (int i = 0; i < r->vars.n; i++) {
        char name[SUITE_MAX_NAME + 16] = "HOLORUN_VAR_";
        size_t at = strlen(name);
        for (const char *p = r->vars.names[i]; *p; p++)
            name[at++] = (char)toupper((unsigned char)*p);
        put_env(r, name, r->vars.values[i]); /* never too many */
    }
    r->t->env = arena_list(r->s->arena, r->env, r->n_env);
    r->t->secrets = arena_list(r->s->arena, r->secrets, r->n_secrets);
}
