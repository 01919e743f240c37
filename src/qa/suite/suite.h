/* suite.h - a suite of tests as somebody wrote it: YAML in, tests out, every value in place.
 *
 *     struct suite *s = suite_read("suite.yaml", &e);      "suite.yaml:12: key 'kind': expected ..., not 'x'"
 *     suite_select(s, &choice, &e);
 *     for (int i = 0; i < s->n; i++) ... s->tests[i]
 *
 * What a test does not say comes from its suite; variables {name} are filled in; one entry with a matrix is one test for each
 * combination.  All texts belong to the suite, and stay until suite_free().  suite_keys_help has the keys.
 */
#ifndef HOLORUN_QA_SUITE_SUITE_H
#define HOLORUN_QA_SUITE_SUITE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SUITE_MAX_TESTS = 10000, SUITE_MAX_CHECKS = 32, SUITE_MAX_TAGS = 16, SUITE_MAX_COMMANDS = 32 };
enum { SUITE_MAX_BYTES = 1 << 20, SUITE_MAX_NODES = 100000, SUITE_MAX_TEXT = 64 << 10, SUITE_MAX_ID = 100 };

enum check_kind {
    CHECK_SHELL,   /* run: exit code 0; HOLORUN_DIR, HOLORUN_ANSWER are set */
    CHECK_ANSWER,  /* match: PCRE2 on the final answer */
    CHECK_WINDOW,  /* title and/or class: PCRE2, of a window that is there (or absent: yes) */
    CHECK_FILE,    /* path (of HOME when relative), exists; match: PCRE2 on its content; sha256 */
    CHECK_PROCESS, /* name: PCRE2 on command lines of the desk */
    CHECK_PORT,    /* port on 127.0.0.1 accepts */
    CHECK_REGION,  /* png, area [x, y, w, h], max_diff, tolerance */
    CHECK_TEXT,    /* text: the model is asked whether it is to be seen */
    CHECK_JUDGE,   /* ask: the model, in a session of its own; passes, frames */
};
const char *check_kind_name(enum check_kind k); /* "shell" */
/* Whether what says yes is a model that is asked.  (An answer is the agent's own word: its yes confirms nothing.) */
bool check_by_model(enum check_kind k);

struct check {
    enum check_kind kind;
    int line;
    const char *name;         /* for people: "shell: curl -sf ..." or what the suite calls it */
    const char *text, *text2; /* run, match, title, path, name, png, text, ask; and class, match of a file */
    const char *sha256;       /* of a file, 64 small hex digits; NULL: not looked at */
    int area[4], port;        /* region (w 0: all of the screen) */
    double max_diff;          /* fraction of pixels; 0.01 */
    /* How long to look again for a yes, and to wait for an answer: window, file, process, port, region 5; text, judge
     * 600; shell, answer 0 (once). */
    double seconds;
    int tolerance;      /* of a channel; 16 */
    int passes, frames; /* judge: 1 and 1 */
    bool absent;        /* yes means no: window, file, process, port, text */
    bool always;        /* when: always; else only when the agent came to an end of its own */
};

struct test {
    const char *id, *suite; /* unique in the suite; the suite's name */
    int line;
    const char *task;                      /* filled in; of a spec: what stands in it, put together */
    const char *spec;                      /* path, or NULL */
    const char *display, *wm, *home, *dir; /* desk.h; absolute, NULL where not said */
    const char *const *env, *const *setup, *const *teardown; /* ended by NULL; "NAME=value"; shell commands */
    const char *const *matrix;  /* "page=click-test": what sets it apart in its entry; ended by NULL */
    const char *start, *window; /* program under test and the title to wait for; NULL: none, any */
    double start_seconds;
    int steps, retries, attempts,
        validator;  /* 0: as the command line or the dialect says; retries -1: not said */
    double seconds; /* timeout_s, of the agent; 0: not said */
    uint64_t seed;
    const char *policy, *const *secrets; /* as `run` has them; policy NULL: not said; secrets ended by NULL */
    const char *tags[SUITE_MAX_TAGS + 1];
    bool expect_fail;
    struct check checks[SUITE_MAX_CHECKS];
    int n_checks;
    bool chosen; /* by suite_select; all of them before */
};

/* Whether its desktop is made for it and thrown away, or one that is there. */
bool test_owns_desktop(const struct test *t);

struct suite {
    const char *name, *path, *dir;                           /* dir: of the file, in which commands run */
    const char *const *setup, *const *teardown, *const *env; /* once, without a display */
    int flaky_max; /* tests that may be flaky without exit code 5; SUITE_MAX_TESTS: not said */
    struct test *tests;
    int n;
    struct suite_texts *texts; /* what all texts are kept in */
};

/* path "-": stdin, as if it were a file of the current folder. */
struct suite *suite_read(const char *path, struct err *e);
/* Paths, and specs that are named, are those of the folder of `path`. */
struct suite *suite_parse(const char *text, size_t len, const char *path, struct err *e);
void suite_free(struct suite *s); /* NULL is fine */

/* Which tests run.  Each narrows what is left. */
struct suite_choice {
    const char *const *only; /* ids (with * and ?), "tag:NAME"; ended by NULL: one of them; NULL: all */
    const char *shard;       /* "2/5", from 1: FNV-1a (64 bits) of the id modulo 5 is 1 */
    /* results.json of an earlier run: shards of equal duration instead, each test, longest first, going into the
     * shard with the least time; NULL: by hash. */
    const char *shard_times;
    const char *rerun_failed; /* results.json of an earlier run: only tests that did not pass in it */
};
/* The number of them, which may be 0 where a shard is empty or all had passed; -1: the choice is wrong. */
int suite_select(struct suite *s, const struct suite_choice *c, struct err *e);

/* Tests nothing but a model's word can pass: a warning for each on stderr, and one for the rest when they are many. */
void suite_warn(const struct suite *s);

/* The tests that are chosen: a line for each, or one JSON object. */
void suite_print(FILE *f, const struct suite *s, bool json);

/* What can stand in a suite, for people: paragraphs and lists as in `details` of a command (help.c). */
extern const char suite_keys_help[];

#endif
