/* private.h - the files of this room that know each other.
 *
 *   suite.c     the file: its suite, its tests, the combinations of a matrix, ids
 *   key.c       keys of suite and tests: a table that knows where each may stand and who reads it
 *   checks.c    keys of checks, by kind
 *   value.c     values: texts with variables in place, numbers, lists, patterns
 *   vars.c      variables and texts with {name}
 *   matrix.c    axes of a matrix and their combinations
 *   spec.c      a test as a Markdown file
 *   texts.c     memory of all texts
 *   select.c, print.c, help.c   public functions of their own
 *
 * A test is read anew for each combination of its matrix, as every value may hold variables.  Before, the values of the suite
 * are read once for no test at all (`draft`), so that what no test uses is no less looked at.
 */
#ifndef HOLORUN_QA_SUITE_PRIVATE_H
#define HOLORUN_QA_SUITE_PRIVATE_H

#include "base/buf.h"
#include "base/doc.h"
#include "qa/suite/suite.h"

enum {
    SUITE_MAX_VARS = 64,
    SUITE_MAX_NAME = 32, /* of a variable */
    SUITE_MAX_ENV = 64,
    SUITE_MAX_SECRETS = 16,
    SUITE_MAX_VALUE = 2000, /* bytes of one in a matrix */
    SUITE_MAX_AXES = 6,
    SUITE_MAX_ALL = 128 << 20, /* bytes of all tests together */
};

/* ---- texts.c: what is kept until suite_free() ---------------------------------------------------------- */

struct suite_texts *texts_new(void);
void texts_free(struct suite_texts *t);
void *texts_alloc(struct suite_texts *t, size_t size); /* zeros */
const char *texts_keep(struct suite_texts *t, const char *s, size_t len);
const char *const *texts_list(struct suite_texts *t, const char *const *list, int n); /* with its NULL */
size_t texts_size(const struct suite_texts *t);
/* path itself when it is absolute, else dir/path */
const char *texts_path(struct suite_texts *t, const char *dir, const char *path);

/* ---- vars.c -------------------------------------------------------------------------------------------- */

struct suite_vars { /* borrowed texts */
    const char *names[SUITE_MAX_VARS], *values[SUITE_MAX_VARS];
    int n;
};
const char *vars_get(const struct suite_vars *v, const char *name, size_t len);
int vars_set(struct suite_vars *v, const char *name, const char *value); /* -1: too many */
bool vars_name(const char *name);                                        /* can be one */

enum { FILL_STRICT = 1, FILL_SHELL = 2 };
struct filled {
    char unknown[SUITE_MAX_NAME + 1]; /* the first name that is no variable; "": none */
    int line;                         /* of the text, from 1, where it stands */
};
/* Appends text to out with values for {name}; {{name}} gives {name}; other braces stay.  A name that is no variable stays as
 * it is; FILL_STRICT: and is worth knowing about, so {{name}} gives {name} whatever it names; FILL_SHELL: ${name} stays. */
void vars_fill(const struct suite_vars *v, const char *text, unsigned how, struct buf *out, struct filled *f);

/* ---- value.c ------------------------------------------------------------------------------------------- */

struct suite_reading {
    struct suite *s;
    const struct doc *y;
    const struct doc_node *n; /* the member that is being read: its key is in messages */
    struct err *e;
    struct suite_vars vars;
    bool draft; /* no test yet: names that are no variables may become some */
    bool again; /* another combination of the same entry: patterns without variables are known to be right */
    struct test *t;

    /* of the test, put together from its own and its suite's */
    const char *env[SUITE_MAX_ENV + SUITE_MAX_VARS + 1], *secrets[SUITE_MAX_SECRETS + 1];
    int n_env, n_secrets, n_tags;
};

enum {
    VALUE_STRICT = FILL_STRICT,
    VALUE_SHELL = FILL_SHELL,
    VALUE_EMPTY = 4, /* "" is a value, too */
    VALUE_LINE = 8,  /* of one line */
};
/* These read g->n, or a scalar `n` of it: 0, -1 with a message, or VALUE_OPEN: a draft that waits for variables. */
enum { VALUE_OPEN = 1 };
int value_text(struct suite_reading *g, const struct doc_node *n, unsigned how, const char **out);
int value_number(struct suite_reading *g, double min, double max, bool whole, double *out);
int value_seed(struct suite_reading *g, uint64_t *out);
int value_yes(struct suite_reading *g, bool *out);
int value_pattern(struct suite_reading *g, const char **out); /* PCRE2 */
/* A scalar or a list of them: each goes to take(). */
int value_each(struct suite_reading *g, const char *what, int most,
               int (*take)(struct suite_reading *g, const struct doc_node *n));
bool value_word(const char *s); /* an id, a tag: letters, digits, . _ - */
/* "no such key", with the nearest of names and all of them; what: "a test has" */
int value_unknown(struct suite_reading *g, const char *what, const char *const *names, int n);

/* ---- key.c, checks.c ------------------------------------------------------------------------------ */

/* The suite's own values, then as a draft those it has for tests. */
int keys_suite(struct suite_reading *g, const struct doc_node *suite);
/* The name of each key is one of a test. */
int keys_known(struct suite_reading *g, const struct doc_node *test);
/* All of a test but id, vars, matrix, task and spec.  test NULL: only what the suite says. */
int keys_test(struct suite_reading *g, const struct doc_node *suite, const struct doc_node *test);
/* env and the like into the test */
void keys_finish(struct suite_reading *g);

int check_read(struct suite_reading *g, const struct doc_node *n, struct check *c);

/* ---- matrix.c ------------------------------------------------------------------------------------------ */

struct suite_matrix {
    struct axis {
        const char *name;
        const char **values;
        int n, room;
    } axes[SUITE_MAX_AXES];
    int n;
    long combinations; /* 1 without axes */
};
int matrix_read(struct suite_reading *g, const struct doc_node *n, struct suite_matrix *m); /* n NULL: none */
void matrix_free(struct suite_matrix *m);
/* Values of one combination: as variables, and as t->matrix. */
void matrix_set(const struct suite_matrix *m, long which, struct suite_reading *g);

/* ---- spec.c -------------------------------------------------------------------------------------------- */

struct spec {                           /* texts of the suite's */
    const char *path, *id, *url, *task; /* NULL: not said; task: variables not yet in place */
    double seconds;
    int width, height; /* 0: not said */
    const char *credentials[SUITE_MAX_SECRETS];
    int n_credentials;
};
/* With g's variables; errors name the spec's file and line. */
int spec_read(struct suite_reading *g, const char *path, struct spec *p);
int spec_parse(struct suite_reading *g, const char *text, size_t len, const char *path, struct spec *p);

#endif
