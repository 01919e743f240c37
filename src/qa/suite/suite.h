/* suite.h - reads a test suite from a YAML file and selects the tests to run.
 *
 *     struct suite *s = suite_read("suite.yaml", &e);      "suite.yaml:12: key 'kind': expected ..., not 'x'"
 *     suite_select(s, &selection, &e);
 *     for (int i = 0; i < s->n; i++)
 *         if (s->tests[i].selected) ...
 *
 * Tests inherit keys from their suite, variables {name} are expanded, and an entry with a matrix becomes one
 * test for each combination. All texts belong to the suite until suite_free(). suite_keys_help documents the
 * keys. */
#pragma once

#include "base/err.h"
#include "plain/plain.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    SUITE_MAX_TESTS = 50000,
    SUITE_MAX_CHECKS = 32,
    SUITE_MAX_WAITS = 8,
    SUITE_MAX_TAGS = 16,
    SUITE_MAX_COMMANDS = 32,
    SUITE_MAX_STEPS = 200, /* in the task of one test */
    SUITE_HASH = 17,
};
enum { SUITE_MOST_ENV = 128 /* variables of a test, including those of its vars */ };
enum { SUITE_MAX_FRAMES = 8 /* frames that a judge sees */ };
enum { SUITE_MAX_BYTES = 1 << 20, SUITE_MAX_NODES = 100000, SUITE_MAX_TEXT = 64 << 10, SUITE_MAX_ID = 100 };

enum check_kind {
    CHECK_SHELL,     /* run: exit code 0; with HOLORUN_DIR, HOLORUN_HOME, HOLORUN_ANSWER in its environment */
    CHECK_ANSWER,    /* match: PCRE2 on the final answer */
    CHECK_WINDOW,    /* title, class or both: PCRE2 */
    CHECK_FILE,      /* path (relative to HOME) exists; match: PCRE2 on its content; sha256 */
    CHECK_PROCESS,   /* name: PCRE2 on command lines of the desk */
    CHECK_PORT,      /* port of 127.0.0.1 accepts connections */
    CHECK_REGION,    /* png, area [x, y, w, h], max_diff, tolerance */
    CHECK_CLIPBOARD, /* match: PCRE2 on the text that can be pasted */
    CHECK_ELEMENT,   /* of the accessibility tree: name, role, window, content, state; PCRE2 */
    CHECK_TEXT,      /* text: is visible, as answered by a model, or read by the embedded one */
    CHECK_JUDGE,     /* ask: answered by a model in a session of its own; passes, frames */
};
const char *check_kind_name(enum check_kind k); /* "shell" */
/* How strong the evidence is: the agent's own words confirm nothing, a model may be wrong. */
enum evidence { BY_CLAIM, BY_MODEL, BY_PROOF };
enum evidence check_evidence(enum check_kind k);

struct check {
    enum check_kind kind;
    int line;
    const char *name; /* its label, or "shell: curl -sf ..." */
    const char *text,
        *text2; /* run, match, title, path, name, png, text, ask; class, match of a file, role */
    const char *window, *content, *state; /* of an element; or NULL */
    const char *sha256;                   /* of a file, 64 lower-case hex digits; or NULL */
    int area[4], port;                    /* of a region; w 0: the whole screen */
    double max_diff;                      /* fraction of pixels; 0.01 */
    /* Seconds to retry, or the time limit. Default: window, file, process, port, region 5; text, judge 600;
     * shell, answer 0 (run once). */
    double seconds;
    int tolerance;      /* per colour channel; 16 */
    int passes, frames; /* of a judge; default 1 and 1 */
    bool absent;        /* inverts the check: window, file, process, port, text */
    bool primary;       /* of a clipboard: the selection that the middle button pastes */
    bool reading;       /* of a text: read by the embedded model, without asking a model */
    bool always;        /* when: always; false: runs only if the agent finished without being stopped */
};

struct test_step { /* a step of a task that is a list */
    int line;
    const char *text; /* the step as a sentence */
    int plain;        /* index in `plain` of the test; -1: `text` is a task for a model */
    const char *of;   /* sentence of the `do` that this step performs, without variables; NULL: none */
    int of_line;      /* its line */
    bool stale;       /* steps_of belongs to another sentence */
};

enum reuse {
    REUSE_NO,
    REUSE_RUN,    /* a run that passed is repeated while the screens agree */
    REUSE_PROGRAM /* desktop and program of a test before are used again; the setup resets the program */
};

struct test {
    const char *id, *suite; /* unique in the suite; the suite's name */
    int line;
    const char *task;         /* expanded; for a spec: its sections; for a list of steps: a line for each */
    struct test_step *script; /* the steps of the task; n_script 0: the task is a text */
    int n_script;
    struct plain_steps plain;              /* what `script` performs without a model */
    int stale;                             /* line of steps_of that belongs to another sentence; 0: none */
    const char *stale_hash;                /* the hash of that sentence today */
    const char *spec;                      /* path, or NULL */
    const char *display, *wm, *home, *dir; /* see desk.h; absolute, or NULL */
    const char *const *env, *const *setup, *const *teardown; /* ended by NULL; "NAME=value"; shell commands */
    const char *const *matrix;  /* "page=click-test": its combination; ended by NULL */
    const char *start, *window; /* command of the program under test, and the title to wait for; or NULL */
    double start_timeout;       /* seconds */
    int steps, retries, attempts, validator; /* 0: from the command line or the dialect; retries: -1 */
    double timeout;                          /* seconds for the agent; 0: from the command line */
    /* ms, as the options of these names; NAN: from the command line */
    double settle_quiet, settle_min, key_delay;
    uint64_t seed;
    enum reuse reuse;
    /* file of `holorun record`, replayed instead of a model; NULL: none */
    const char *recording;
    const char *policy, *const *secrets; /* as in `run`; policy NULL: none; secrets NULL-terminated */
    const char *tags[SUITE_MAX_TAGS + 1];
    bool expect_fail, expect_infeasible;
    bool elements;     /* the desktop has an accessibility bus, and rules use names of elements */
    int elements_text; /* enum job_elements; 0: as on the command line */
    struct check checks[SUITE_MAX_CHECKS];
    int n_checks;
    struct check waits[SUITE_MAX_WAITS]; /* must hold before the agent starts */
    int n_waits;
    bool selected; /* set by suite_select(); before that all tests are selected */
};

/* Returns whether it runs on a private desktop; false: on an existing display. */
bool test_owns_desktop(const struct test *t);
/* Returns whether a model performs the task or a part of it, or answers a check of a task in steps. */
bool test_needs_model(const struct test *t);
/* Returns whether a step verifies the result: a check or wait after the first step that acts, or any if none
 * acts. */
bool test_step_proves(const struct test *t, int i);

/* Returns whether the steps of a sentence are planned: it has none, or they belong to another sentence. */
bool test_step_is_planned(const struct test_step *s);

/* ---- writing planned steps back (freeze.c) ----------------------------------------------------------- */

struct frozen {
    int line;          /* of the `do` */
    const char *of;    /* its sentence */
    const char *steps; /* plain sentences, a line each */
};
/* Copies the text of a suite with the steps of n sentences, which are in the order of their lines, and
 * appends the changed lines to diff, with - and + before them.  Returns -1 with e if a `do` is not on a line
 * of its own. */
int suite_freeze(const char *text, const struct frozen *f, int n, struct buf *out, struct buf *diff,
                 struct err *e);

/* Writes the hash of a sentence, which does not depend on white space, for the key steps_of. */
void suite_sentence_hash(const char *sentence, char out[SUITE_HASH]);

struct shard {
    int which, of;    /* from 1; number of shards, 0: the whole suite */
    const char *from; /* the scheduler that determined it; NULL: the command line */
};

struct suite {
    const char *name, *path, *dir; /* dir: directory of the file, in which commands run */
    const char *const *setup, *const *teardown, *const *env; /* run once, without a display */
    int flaky_max; /* more flaky tests than this cause exit code 5; SUITE_MAX_TESTS: no limit */
    struct test *tests;
    int n;
    struct shard shard;         /* set by suite_select() */
    int n_selected;             /* number of tests selected in all shards together */
    char selection[SUITE_HASH]; /* hash of their ids */
    struct arena *arena;        /* owns all texts */
};

/* Reads a suite. path "-": stdin, as if it were a file in the current directory. */
struct suite *suite_read(const char *path, struct err *e);
/* Reads a suite and continues after mistakes, which become keys of `faults`. Returns NULL if nothing could be
 * read. */
struct suite *suite_check(const char *path, json_t *faults);
/* Parses a suite. Relative paths, also in specs, are relative to the directory of `path`. */
struct suite *suite_parse(const char *text, size_t len, const char *path, struct err *e);
struct suite *suite_parse_all(const char *text, size_t len, const char *path, json_t *faults, struct err *e);
void suite_free(struct suite *s); /* s may be NULL */

/* The conditions that selected tests meet, all of them. */
struct suite_selection {
    const char *const *only; /* ids (with * and ?) or "tag:NAME", NULL-terminated: any of them; NULL: all */
    /* "2/5", from 1: FNV-1a (64 bits) of the id modulo 5 is 1; "auto", "auto/5": from a scheduler's variables
     * (shard.c). */
    const char *shard;
    /* results.json of an earlier run: makes shards of equal duration by assigning each test, the longest
     * first, to the shard with the least time; NULL: by hash. */
    const char *shard_times;
    const char *rerun_failed; /* results.json of an earlier run: selects only tests that did not pass in it */
    bool sentences;           /* only tests with a step for --freeze */
};
/* Selects tests. Returns their number, possibly 0; -1 for an invalid selection. */
int suite_select(struct suite *s, const struct suite_selection *c, struct err *e);

/* Returns a hash for each group of keys, over all tests: {"task": "8f00...", "checks": ...}. Results of two
 * runs belong together only if all are equal. Reads the files that the suite names. */
json_t *suite_identity(const struct suite *s);

/* Writes a hash of everything in a suite that can change the outcome of one test. */
void suite_test_identity(const struct suite *s, const struct test *t, char out[SUITE_HASH]);

/* Warns on stderr about tests that only a model or the agent itself decides. */
void suite_warn(const struct suite *s);

/* Lists the selected tests: one line each, or one JSON object. */
void suite_print(FILE *f, const struct suite *s, bool json);

/* Lists the keys of `faults` (suite_check) by line, and their number; s may be NULL. Returns the number. */
int suite_print_mistakes(json_t *faults, const char *path, const struct suite *s, bool json);

/* The documentation of the keys, formatted as the `details` of a command (help.c). */
extern const char suite_keys_help[];
/* The documentation of tasks in steps, with an example. */
extern const char suite_steps_help[];
