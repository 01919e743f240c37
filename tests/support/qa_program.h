/* qa_program.h - `holorun qa` as a process, with suites and replies written by a test.
 *
 *     struct qa_program q;
 *     qa_program_open(&q);                                  skips where there is no Xvfb
 *     qa_program_suite(&q, "tests:\n  - id: a\n ...");     tests in YAML; the suite starts the client
 *     qa_program_reply(&q, "a", CLICK(500, 500) ANSWER);    what the agent of test `a` says
 *     qa_program_run(&q, WORDS("--jobs", "2"));             q.o.code, q.results
 *     assert_string_equal(qa_program_outcome(&q, "a"), "passed");
 *     qa_program_close(&q);
 *
 * The program under test is xclient, whose window writes what reaches it to events.jsonl in its HOME.
 */
#ifndef HOLORUN_TESTS_QA_PROGRAM_H
#define HOLORUN_TESTS_QA_PROGRAM_H

#include "driven.h"
#include "program.h"

#include <jansson.h>

struct qa_program {
    struct xvfb x;     /* a private folder; no server of its own */
    const char *model; /* its directory; NULL: the replies that were written for each test */
    struct outcome o;
    json_t *results; /* of the last run; NULL: it left none */
};

void qa_program_open(struct qa_program *q);
void qa_program_close(struct qa_program *q);

void qa_program_suite(struct qa_program *q, const char *tests);
void qa_program_reply(struct qa_program *q, const char *id, const char *replies);

/* `holorun qa` with the suite, the replies and a folder for results; with more options. */
pid_t qa_program_start(struct qa_program *q, const char *const *more);
void qa_program_finish(struct qa_program *q, pid_t pid);
void qa_program_run(struct qa_program *q, const char *const *more);

/* The object of a test in the results; the test fails if there is none. */
const json_t *qa_program_test(const struct qa_program *q, const char *id);
const char *qa_program_outcome(const struct qa_program *q, const char *id);

/* Processes of this test by the name of their program; returns how many went to pids. */
int qa_program_processes(const struct qa_program *q, const char *comm, pid_t *pids, int max);

/* Leftovers of desks of programs that have ended: processes, locks, sockets, folders.  Waits a while for
 * them to go, prints what stays and returns how many. */
int qa_program_remains(const struct qa_program *q);

#endif
