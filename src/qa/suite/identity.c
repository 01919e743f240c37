/* identity.c - hashes everything in a suite that can change an outcome.
 *
 * Each key of the suite gets a hash of its values in all tests, so that a message can name the keys that
 * differ. Values count after inheritance and expansion of variables. Paths in the directory of the suite
 * count as relative, since another machine may have it elsewhere. Contents of files count unless the suite
 * has a setup, which may create them. Values of secrets, comments, line numbers and the order of keys do not
 * count. */
#include "qa/suite/private.h"

#include "base/err.h"

#include <ctype.h>
#include <dirent.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

enum { MOST_DEPTH = 32, PIECE = 64 << 10 };

struct hasher {
    const struct suite *s;
    XXH3_state_t *state;
};

/* ---- values -------------------------------------------------------------------------------------- */

static void put_bytes(struct hasher *h, const void *data, size_t n)
{
    XXH3_64bits_update(h->state, data, n);
}

/* Returns whether a byte after a path makes it another path. */
static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_-.+~", c)) || (unsigned char)c > 127;
}

/* Adds a text with the suite's directory as ".". NULL differs from "". */
static void put_text(struct hasher *h, const char *text)
{
    const char *dir = h->s->dir;
    size_t len = dir && *dir == '/' && dir[1] ? strlen(dir) : 0;
    put_bytes(h, text ? "t" : "n", 1);
    for (const char *at; text && len && (at = strstr(text, dir)); text = at + len) {
        put_bytes(h, text, (size_t)(at - text));
        put_bytes(h, is_name_byte(at[len]) ? dir : ".", is_name_byte(at[len]) ? len : 1);
    }
    put_bytes(h, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void put_list(struct hasher *h, const char *const *list)
{
    for (; list && *list; list++)
        put_text(h, *list);
    put_text(h, NULL);
}

static void put_number(struct hasher *h, double v)
{
    char text[32];
    snprintf(text, sizeof text, "%.17g", v);
    put_text(h, text);
}

/* Adds the names and contents of a file, or of all files in a directory. */
static void put_file(struct hasher *h, const char *path, int depth)
{
    struct stat st;
    if (lstat(path, &st) || depth > MOST_DEPTH)
        return;
    if (S_ISDIR(st.st_mode)) {
        struct dirent **names = NULL;
        int n = scandir(path, &names, NULL, alphasort);
        for (int i = 0; i < n; i++) {
            if (strcmp(names[i]->d_name, ".") != 0 && strcmp(names[i]->d_name, "..") != 0) {
                char *inner = xasprintf("%s/%s", path, names[i]->d_name);
                put_text(h, names[i]->d_name);
                put_file(h, inner, depth + 1);
                free(inner);
            }
            free(names[i]);
        }
        free(names);
    } else if (S_ISREG(st.st_mode) || (S_ISLNK(st.st_mode) && !stat(path, &st) && S_ISREG(st.st_mode))) {
        char piece[PIECE];
        FILE *f = fopen(path, "rbe");
        for (size_t n; f && (n = fread(piece, 1, sizeof piece, f));)
            put_bytes(h, piece, n);
        if (f)
            fclose(f);
    }
}

static void put_path(struct hasher *h, const char *path)
{
    put_text(h, path);
    if (!path || (h->s->setup && *h->s->setup))
        return;
    autofree char *whole = *path == '/' ? xstrdup(path) : xasprintf("%s/%s", h->s->dir, path);
    put_file(h, whole, 0);
}

/* ---- the keys ------------------------------------------------------------------------------------ */

static void put_check(struct hasher *h, const struct check *c)
{
    put_number(h, c->kind);
    put_text(h, c->name);
    if (c->kind == CHECK_REGION)
        put_path(h, c->text);
    else
        put_text(h, c->text);
    const char *const texts[] = {c->text2, c->window, c->content, c->state, c->sha256};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        put_text(h, texts[i]);
    const double numbers[] = {c->area[0],  c->area[1], c->area[2],   c->area[3], c->port,
                              c->max_diff, c->seconds, c->tolerance, c->passes,  c->frames,
                              c->absent,   c->primary, c->reading,   c->always};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put_number(h, numbers[i]);
}

static void put_checks(struct hasher *h, const struct test *t)
{
    for (int i = 0; i < t->n_checks; i++)
        put_check(h, &t->checks[i]);
}

static void put_waits(struct hasher *h, const struct test *t)
{
    for (int i = 0; i < t->n_waits; i++)
        put_check(h, &t->waits[i]);
}

static void put_task(struct hasher *h, const struct test *t)
{
    put_text(h, t->task);
    for (int i = 0; i < t->n_script; i++)
        put_number(h, t->script[i].plain < 0); /* performed by a model */
}

static void put_expect(struct hasher *h, const struct test *t)
{
    put_number(h, t->expect_infeasible);
    put_number(h, t->expect_fail);
}

static void put_limits(struct hasher *h, const struct test *t)
{
    const double all[] = {t->steps,     t->timeout,      t->start_timeout, t->retries,   t->attempts,
                          t->validator, t->settle_quiet, t->settle_min,    t->key_delay, t->reuse};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        put_number(h, all[i]);
}

static void put_elements(struct hasher *h, const struct test *t)
{
    put_number(h, t->elements);
    put_number(h, t->elements_text);
}

static void put_seed(struct hasher *h, const struct test *t)
{
    put_bytes(h, &t->seed, sizeof t->seed);
}

static void put_tags(struct hasher *h, const struct test *t)
{
    put_list(h, t->tags);
}

enum value_kind { TEXT, LIST, PATH };

/* Adds a member of a test. */
static void put_value(struct hasher *h, const struct test *t, enum value_kind kind, size_t at)
{
    const char *const *value = (const char *const *)(const void *)((const char *)t + at);
    if (kind == TEXT)
        put_text(h, *value);
    else if (kind == PATH)
        put_path(h, *value);
    else
        put_list(h, *(const char *const *const *)(const void *)value);
}

#define VALUE(member) offsetof(struct test, member)

static const struct part {
    const char *keys; /* as in the suite file, for messages */
    void (*put)(struct hasher *h, const struct test *t);
    enum value_kind kind; /* without `put`: of these n members */
    int n;
    size_t at[2];
} parts[] = {
    {"id", NULL, TEXT, 1, {VALUE(id)}},
    {"task", put_task, 0, 0, {0}},
    {"checks", put_checks, 0, 0, {0}},
    {"expect, expect_fail", put_expect, 0, 0, {0}},
    {"start, window", NULL, TEXT, 2, {VALUE(start), VALUE(window)}},
    {"wait_until", put_waits, 0, 0, {0}},
    {"setup, teardown", NULL, LIST, 2, {VALUE(setup), VALUE(teardown)}},
    {"env, vars", NULL, LIST, 1, {VALUE(env)}},
    {"display, wm", NULL, TEXT, 2, {VALUE(display), VALUE(wm)}},
    {"home", NULL, PATH, 1, {VALUE(home)}},
    {"elements", put_elements, 0, 0, {0}},
    {"steps, timeouts, retries, attempts, validator, settle, key_delay_ms, reuse", put_limits, 0, 0, {0}},
    {"seed", put_seed, 0, 0, {0}},
    {"policy", NULL, PATH, 1, {VALUE(policy)}},
    {"recording", NULL, PATH, 1, {VALUE(recording)}},
    {"secrets", NULL, LIST, 1, {VALUE(secrets)}},
    {"tags", put_tags, 0, 0, {0}},
};

static void put_part(struct hasher *h, const struct part *p, const struct test *t)
{
    if (p->put)
        p->put(h, t);
    for (int i = 0; i < p->n; i++)
        put_value(h, t, p->kind, p->at[i]);
}

/* Writes the hash of the bytes so far. */
static void digest(const struct hasher *h, char out[SUITE_HASH])
{
    snprintf(out, SUITE_HASH, "%016llx", (unsigned long long)XXH3_64bits_digest(h->state));
}

static void set_digest(json_t *all, const char *key, const struct hasher *h)
{
    char digits[SUITE_HASH];
    digest(h, digits);
    json_object_set_new(all, key, json_string(digits));
}

void suite_hash_selection(struct suite *s)
{
    struct hasher h = {s, XXH3_createState()};
    XXH3_64bits_reset(h.state);
    for (int i = 0; i < s->n; i++)
        if (s->tests[i].selected)
            put_text(&h, s->tests[i].id);
    digest(&h, s->selection);
    XXH3_freeState(h.state);
}

static void put_suite(struct hasher *h)
{
    put_list(h, h->s->setup);
    put_list(h, h->s->teardown);
    put_list(h, h->s->env);
}

void suite_test_identity(const struct suite *s, const struct test *t, char out[SUITE_HASH])
{
    struct hasher h = {s, XXH3_createState()};
    XXH3_64bits_reset(h.state);
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        put_part(&h, &parts[k], t);
    put_suite(&h);
    digest(&h, out);
    XXH3_freeState(h.state);
}

json_t *suite_identity(const struct suite *s)
{
    json_t *all = json_object();
    struct hasher h = {s, XXH3_createState()};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        XXH3_64bits_reset(h.state);
        for (int i = 0; i < s->n; i++) {
            put_number(&h, i);
            put_part(&h, &parts[k], &s->tests[i]);
        }
        set_digest(all, parts[k].keys, &h);
    }
    XXH3_64bits_reset(h.state);
    put_suite(&h);
    put_number(&h, s->flaky_max);
    set_digest(all, "setup, teardown, env, flaky_max of the suite", &h);
    XXH3_freeState(h.state);
    return all;
}
