/* words.h - what reports say of a result: the same words on the terminal, in XML, JSON, Markdown and on the page.
 *
 * Texts of programs, screens and models may hold anything.  words_clean() is the one gate: what comes out of it is valid
 * UTF-8 without control characters, which every format can hold once its own few characters are escaped.
 */
#ifndef HOLORUN_QA_REPORT_WORDS_H
#define HOLORUN_QA_REPORT_WORDS_H

#include "qa/report/result.h"
#include "trace/story.h"

#include <stddef.h>

/* A copy, owned by the caller, of at most about `most` bytes (the end is kept, with a line about what is left out): broken
 * bytes are U+FFFD; terminal sequences, control characters but \n and \t, characters that XML forbids and those that turn
 * the direction of writing are gone.  NULL is "". */
char *words_clean(const char *s, size_t most);
/* The same in one line; the beginning is kept, and "..." */
char *words_line(const char *s, size_t most);

/* The attempt that decided; NULL when there was none. */
const struct attempt *words_last(const struct result *r);
const char *words_answer(enum answer a); /* "yes", "no", "unknown", "error", "not asked" */
/* The first check with this answer, NULL. */
const struct check_result *words_check(const struct attempt *a, enum answer answer);

/* Why it is not passed, or passed with a reservation, in one clean line; "" of a test that simply passed.  Owned. */
char *words_why(const struct result *r);
/* What it is a matter of, for machines: "check:shell", "display", "claimed" ...; "" of a test that passed. Owned. */
char *words_kind(const struct result *r);

/* Whether it is one to look at: neither passed nor skipped. */
bool words_wants_a_look(const struct result *r);
/* Results with those first that want a look, else in order; owned.  [r->n] */
const struct result **words_worst_first(const struct results *r);

/* `path` as seen from folder `from`: relative when it is below, else absolute; owned. */
char *words_path(const char *from, const char *path);
/* The folder of a file; owned. */
char *words_folder(const char *path);

/* Indices of the steps at which the last `most` different screenshots of a run were seen, oldest first.  How many. */
int words_last_steps(const struct story *s, int *steps, int most);
/* ... and the numbers of those screenshots; 0 when there is no run to read. */
int words_last_frames(const char *run_dir, int *numbers, int most);
char *words_frame_path(const char *run_dir, int number); /* owned */

#endif
