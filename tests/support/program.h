/* program.h - the whole program as a process: what it was told, what it said, how it ended.
 *
 *     struct outcome o = {0};
 *     program_run(&x, &o, WORDS("run", "Press Save", "--display", ":987"));
 *     ONE_LINE(&o, ERR_ENV, "cannot open display ':987'");
 *     outcome_free(&o);
 */
#ifndef HOLORUN_TESTS_PROGRAM_H
#define HOLORUN_TESTS_PROGRAM_H

#include "xvfb.h"

struct outcome {
    int code; /* -1: ended by a signal, or never */
    char *out, *err;
};
void outcome_free(struct outcome *o);

/* The program under test: a folder above the test's own, or ./holorun of the source tree; static. */
const char *program_path(void);

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* `words` after the program's name; stdin is empty, stdout and stderr go to files in x's folder. */
pid_t program_start(const struct xvfb *x, const char *const *words);
pid_t program_start_into(const struct xvfb *x, const char *out, const char *const *words);
/* To its end; one that does not come to it is killed after 20 s. An earlier outcome is freed. */
void program_finish(const struct xvfb *x, pid_t pid, struct outcome *o);
void program_run(const struct xvfb *x, struct outcome *o, const char *const *words);

/* Fails the test unless it ended with this code and one line on stderr, which names all of these. */
void one_line(const struct outcome *o, int code, const char *const *names);
#define ONE_LINE(o, code, ...) one_line(o, code, WORDS(__VA_ARGS__))

char *xvfb_place(const struct xvfb *x, const char *name); /* path in its folder; the caller frees it */
char *xvfb_put(const struct xvfb *x, const char *name, const char *text); /* writes a file there; its path */

#endif
