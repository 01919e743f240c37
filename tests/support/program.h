/* program.h - runs the whole program as a process: arguments, output, exit code.
 *
 *     OUTCOME(o);
 *     program_run(&x, &o, WORDS("run", "Press Save", "--display", ":987"));
 *     ONE_LINE(&o, ERR_ENV, "cannot open display ':987'");
 */
#pragma once

#include "xvfb.h"

struct outcome {
    int code; /* -1: killed by a signal, or did not end */
    char *out, *err;
};
void outcome_free(struct outcome *o);
/* Declares an outcome, freed at the end of the block. */
#define OUTCOME(o) __attribute__((cleanup(outcome_free))) struct outcome o = {0}

/* Returns the program under test: in the folder above the test's, or ./holorun of the source tree. Static. */
const char *program_path(void);

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Starts the program with `words` as arguments, stdin empty, stdout and stderr in files of x's folder. */
pid_t program_start(const struct xvfb *x, const char *const *words);
pid_t program_start_into(const struct xvfb *x, const char *out, const char *const *words);
/* Waits for the end; kills the program after 20 s. Frees an earlier outcome. */
void program_finish(const struct xvfb *x, pid_t pid, struct outcome *o);
void program_run(const struct xvfb *x, struct outcome *o, const char *const *words);

/* Fails the test unless it ended with this code and one line on stderr that contains all names. */
void one_line(const struct outcome *o, int code, const char *const *names);
#define ONE_LINE(o, code, ...) one_line(o, code, WORDS(__VA_ARGS__))

char *xvfb_place(const struct xvfb *x, const char *name); /* path in its folder; the caller frees it */
/* writes a file there; returns its path */
char *xvfb_put(const struct xvfb *x, const char *name, const char *text);
