/* private.h - internal interface of the suite reader.
 *
 *   suite.c       the file: suite, tests, combinations, ids
 *   test_keys.c   the table of the keys of suite and test
 *   check_keys.c  the table of the keys of checks, by kind
 *   value.c       values: texts with variables, numbers, patterns
 *   vars.c        variables and their expansion
 *   matrix.c      the axes of a matrix and their combinations
 *   spec.c        a test as a Markdown file
 *   steps.c       a task as a list of steps
 *   arena.c       memory of all texts
 *   identity.c    hashes of all values
 *   select.c, shard.c, earlier.c, print.c, help.c   the rest of suite.h
 *
 * A test is read again for each combination of its matrix, because any value may contain variables. The
 * suite's own keys are first read once without a test (`draft`), so that they are checked even if every test
 * overrides them. */
#pragma once

#include "base/buf.h"
#include "base/doc.h"
#include "qa/suite/suite.h"

#include <string.h>

enum {
    SUITE_MAX_VARS = 64,
    SUITE_MAX_NAME = 32, /* length of a variable's name */
    SUITE_MAX_ENV = 64,
    SUITE_MAX_SECRETS = 16,
    SUITE_MAX_VALUE = 2000, /* bytes of a value in a matrix */
    SUITE_MAX_AXES = 6,
    SUITE_MAX_ALL = 128 << 20, /* bytes of all tests together */
};

/* ---- arena.c: texts that live until suite_free() ------------------------------------------------- */

struct arena *arena_new(void);
void arena_free(struct arena *t);
const char *arena_strndup(struct arena *t, const char *s, size_t len);
const char *arena_strdup(struct arena *t, const char *s);
/* Copies a text that was allocated with malloc into the arena, and frees it. */
const char *arena_take(struct arena *t, char *s);
const char *const *arena_list(struct arena *t, const char *const *list, int n); /* NULL-terminated */
size_t arena_size(struct arena *t);
/* Returns path if it is absolute, else dir/path. */
const char *arena_path(struct arena *t, const char *dir, const char *path);

/* ---- vars.c -------------------------------------------------------------------------------------- */

struct suite_vars { /* borrowed texts */
    const char *names[SUITE_MAX_VARS], *values[SUITE_MAX_VARS];
    int n;
};
const char *vars_get(const struct suite_vars *v, const char *name, size_t len);
int vars_set(struct suite_vars *v, const char *name, const char *value); /* -1: too many */
bool vars_is_name(const char *name);

enum { EXPAND_STRICT = 1, EXPAND_SHELL = 2 };
struct expansion {
    char unknown[SUITE_MAX_NAME + 1]; /* the first unknown variable; "": none */
    int line;                         /* its line in the text, from 1; 0: none */
};
/* Appends text to out with {name} replaced by its value and {{name}} by {name}; other braces and unknown
 * names stay. EXPAND_STRICT: {{name}} becomes {name} even if the variable does not exist. EXPAND_SHELL:
 * ${name} stays. */
void vars_expand(const struct suite_vars *v, const char *text, unsigned how, struct buf *out,
                 struct expansion *x);

/* ---- value.c ------------------------------------------------------------------------------------- */

struct suite_reader {
    struct suite *s;
    const struct doc *y;
    const struct doc_node *n; /* the member being read: messages name its key */
    struct err *e;
    struct suite_vars vars;
    bool draft;     /* read without a test: unknown names may become variables later */
    bool again;     /* a further combination of an entry: patterns without variables have been checked */
    json_t *faults; /* collects all mistakes as its keys; NULL: the first one ends reading */
    struct test *t;
    struct spec *spec; /* whose credentials are being read */

    /* lists of the test, merged from its own keys and the suite's */
    const char *env[SUITE_MOST_ENV + 1], *secrets[SUITE_MAX_SECRETS + 1];
    const char *commands[SUITE_MAX_COMMANDS];
    int n_env, n_secrets, n_tags, n_commands;
    int n_steps; /* of all tests so far */
};

/* Returns the rc of a part of the suite. While all mistakes are collected, stores a mistake and returns 0, so
 * that reading continues. */
int part_read(struct suite_reader *r, int rc);

/* Reports a mistake in r->n or another node; returns -1. */
#define fault(r, ...)          doc_fault((r)->y, (r)->n, (r)->e, __VA_ARGS__)
#define fault_at(r, node, ...) doc_fault((r)->y, node, (r)->e, __VA_ARGS__)

enum {
    VALUE_STRICT = EXPAND_STRICT,
    VALUE_SHELL = EXPAND_SHELL,
    VALUE_EMPTY = 4, /* "" is allowed */
    VALUE_ONE_LINE = 8,
};
/* The functions below read r->n, or the scalar `n` in it. They return 0, -1 with a message, or
 * VALUE_UNRESOLVED: a draft with unknown variables. */
enum { VALUE_UNRESOLVED = 1 };
int value_text(struct suite_reader *r, const struct doc_node *n, unsigned how, const char **out);
int value_number(struct suite_reader *r, double min, double max, bool whole, double *out);
int value_seed(struct suite_reader *r, uint64_t *out);
/* Iterates over the items of a list; a single value counts as a list with one item. */
static inline const struct doc_node *each_first(const struct doc_node *list)
{
    return list->kind == DOC_LIST ? list->child : list;
}
static inline const struct doc_node *each_next(const struct doc_node *list, const struct doc_node *n)
{
    return list->kind == DOC_LIST ? n->next : NULL;
}
/* Passes a scalar, or each item of a list of scalars, to add(). In messages, `what` names the expected value
 * ("a tag, or a list of them"). */
int value_each(struct suite_reader *r, const char *what, int most,
               int (*add)(struct suite_reader *r, const struct doc_node *n));
/* Returns the position of the entry NAME=... in a list of n, else n. */
int value_find_name(const char *const *list, int n, const char *name, size_t len);
bool value_is_word(const char *s); /* for ids and tags: letters, digits, . _ - */
/* A key of the tables: where it is allowed, and how r->n is read into the member at offset `at` of a test or
 * check. */
struct key {
    const char *name;
    unsigned where;
    int (*read)(struct suite_reader *r, const struct key *k, void *member);
    size_t at;
    double min, max;
};
typedef int key_reader(struct suite_reader *r, const struct key *k, void *member);
key_reader key_int, key_number, key_bool, key_pattern, key_line, key_text, key_command;

/* Finds r->n's key in a table (ended by an entry without a name) among entries that share a bit of `where`.
 * Returns NULL with "no such key", the nearest name and all names. The list of names begins with `what`, such
 * as "a test has". */
const struct key *key_find(struct suite_reader *r, const struct key *table, unsigned where, const char *what);
/* Reads all members of a mapping into `to`, with the table's keys. */
int keys_read(struct suite_reader *r, const struct doc_node *map, const struct key *table, unsigned where,
              const char *what, void *to);

/* ---- test_keys.c, check_keys.c ------------------------------------------------------------------- */

/* Reads the suite's own values, then the defaults for its tests as a draft. */
int keys_read_suite(struct suite_reader *r, const struct doc_node *suite);
/* Checks that all keys are keys of a suite or a test. */
int keys_check_names(struct suite_reader *r, const struct doc_node *map, bool suite);
/* Reads all keys of a test except id, vars, matrix, task and spec. test NULL: only the suite's keys. */
int keys_read_test(struct suite_reader *r, const struct doc_node *suite, const struct doc_node *test);
/* Moves env and secrets into the test. */
void keys_finish(struct suite_reader *r);

int keys_read_check(struct suite_reader *r, const struct doc_node *n, struct check *c);

/* ---- matrix.c ------------------------------------------------------------------------------------ */

struct suite_matrix {
    struct axis {
        const char *name;
        const char **values;
        int n, capacity;
    } axes[SUITE_MAX_AXES];
    int n;
    long combinations; /* 1 without axes */
};
/* Reads a matrix. n NULL: the test has none. */
int matrix_read(struct suite_reader *r, const struct doc_node *n, struct suite_matrix *m);
void matrix_free(struct suite_matrix *m);
/* Sets the values of one combination as variables and as t->matrix. */
void matrix_set(const struct suite_matrix *m, long which, struct suite_reader *r);

/* ---- spec.c -------------------------------------------------------------------------------------- */

struct spec {                           /* texts belong to the suite */
    const char *path, *id, *url, *task; /* or NULL; task: not expanded yet */
    double seconds;
    int width, height; /* 0: not given */
    const char *credentials[SUITE_MAX_SECRETS];
    int n_credentials;
};
/* Reads a spec with the reader's variables; errors name its file and line. */
int spec_read(struct suite_reader *r, const char *path, struct spec *p);
int spec_parse(struct suite_reader *r, const char *text, size_t len, const char *path, struct spec *p);

/* ---- steps.c ------------------------------------------------------------------------------------- */

/* Reads the task of r->t from a list of steps. */
int steps_read(struct suite_reader *r, const struct doc_node *list);
void test_free(struct test *t); /* frees its steps; everything else belongs to the suite */

/* ---- shard.c ------------------------------------------------------------------------------------- */

int select_by_shard(struct suite *s, const struct suite_selection *c, struct err *e);
uint64_t suite_hash_text(const char *text); /* FNV-1a */
void suite_hash_selection(struct suite *s); /* sets s->selection */

/* ---- earlier.c: the outcomes and durations of an earlier run --------------------------------------
 *
 * Needed: {"tests": [{"id": "...", "outcome": "passed", "seconds": 1.5}]}.  The file may come from elsewhere:
 * sizes are bounded, and every other key is ignored.
 */

enum { EARLIER_MAX_BYTES = 64 << 20, EARLIER_MAX_TESTS = 100000, EARLIER_MAX_NAME = 1000 };

struct earlier {
    const char *suite;           /* name of its suite; NULL: unknown */
    struct json_t *json, *tests; /* the file; its tests by id, the last of several with the same id */
};

/* Reads results.json. ERR_USAGE: unreadable, not a results.json, or too large. path: for messages. The caller
 * calls earlier_free() in any case. */
int earlier_read(const char *path, struct earlier *p, struct err *e);
int earlier_parse(const char *text, size_t len, const char *path, struct earlier *p, struct err *e);
void earlier_free(struct earlier *p);

struct earlier_test {
    bool known; /* false: that run was of another suite or had no such test */
    bool passed;
    double seconds; /* -1: unknown */
};
struct earlier_test earlier_find(const struct earlier *p, const char *suite, const char *id);
