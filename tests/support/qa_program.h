/* qa_program.h - `holorun qa` as a process, with suites and replies written by a test.
 *
 *     struct qa_program q;
 *     qa_program_open(&q);                                 skips without Xvfb
 *     qa_program_suite(&q, "tests:\n  - id: a\n ...");     tests in YAML; the suite starts the client
 *     qa_program_reply(&q, "a", CLICK(500, 500) ANSWER);   replies of the agent in test `a`
 *     qa_program_run(&q, WORDS("--jobs", "2"));            q.o.code, q.results
 *     assert_string_equal(qa_program_outcome(&q, "a"), "passed");
 *     qa_program_close(&q);
 *
 * The tested application is xclient, whose window writes its events to events.jsonl in its HOME.
 */
#pragma once

#include "driven.h"
#include "program.h"

#include <jansson.h>

struct qa_program {
    struct xvfb x;     /* a private folder without a server */
    const char *model; /* model directory; NULL: the replies written for each test */
    struct outcome o;
    json_t *results; /* of the last run; NULL: none written */
};

void qa_program_open(struct qa_program *q);
void qa_program_close(struct qa_program *q);

void qa_program_suite(struct qa_program *q, const char *tests);
void qa_program_reply(struct qa_program *q, const char *id, const char *replies);

/* Starts `holorun qa` with the suite, the replies and a folder for results; `more` are further options. */
pid_t qa_program_start(struct qa_program *q, const char *const *more);
void qa_program_finish(struct qa_program *q, pid_t pid);
void qa_program_run(struct qa_program *q, const char *const *more);

/* Returns the object of a test in the results; fails the test if it is missing. */
const json_t *qa_program_test(const struct qa_program *q, const char *id);
const char *qa_program_outcome(const struct qa_program *q, const char *id);

/* Finds processes of this test by program name; returns how many went to pids. */
int qa_program_processes(const struct qa_program *q, const char *comm, pid_t *pids, int max);

/* Counts leftovers of desktops of ended programs: processes, locks, sockets, folders. Waits for them to
 * disappear, prints the rest and returns its number. */
int qa_program_remains(const struct qa_program *q);
