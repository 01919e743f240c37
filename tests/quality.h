/* quality.h - `holorun qa` as a process, with suites and replies written by a test.
 *
 *     struct quality q;
 *     quality_open(&q);                                  skips where there is no Xvfb
 *     quality_suite(&q, "tests:\n  - id: a\n ...");     tests in YAML, below a suite that starts the client
 *     quality_reply(&q, "a", CLICK(500, 500) ANSWER);    what the agent of test `a` says
 *     quality_run(&q, WORDS("--jobs", "2"));             q.o.code, q.results
 *     assert_string_equal(quality_outcome(&q, "a"), "passed");
 *     quality_close(&q);
 *
 * The program under test is xclient, whose window writes what reaches it to events.jsonl in its HOME.
 */
#ifndef HOLORUN_TESTS_QUALITY_H
#define HOLORUN_TESTS_QUALITY_H

#include "driven.h"
#include "program.h"

#include <jansson.h>

struct quality {
    struct xvfb x; /* a private folder; no server of its own */
    struct outcome o;
    json_t *results; /* of the last run; NULL: it left none */
    int litter;      /* of others, in /tmp */
};

void quality_open(struct quality *q);
void quality_close(struct quality *q);

void quality_suite(struct quality *q, const char *tests);
void quality_reply(struct quality *q, const char *id, const char *replies);

/* `holorun qa` with the suite, the replies and a folder for results; with more options. */
pid_t quality_start(struct quality *q, const char *const *more);
void quality_finish(struct quality *q, pid_t pid);
void quality_run(struct quality *q, const char *const *more);

/* The object of a test in the results; fails when there is none. */
const json_t *quality_test(const struct quality *q, const char *id);
const char *quality_outcome(const struct quality *q, const char *id);

/* Processes of this test by the name of their program; the number of those that were put into pids. */
int quality_processes(const struct quality *q, const char *comm, pid_t *pids, int max);

/* What desks of programs that have ended have left: processes, locks, sockets, folders.  Waits a while for it to go; prints
 * what stays and returns its number. */
int quality_remains(const struct quality *q);

#endif
