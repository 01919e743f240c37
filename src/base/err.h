/* err.h - failure in one line: what, where, what to do.
 *
 * A function that can fail takes a `struct err *` as its last parameter and returns -1 (or NULL);
 * `return err_set(e, ERR_MODEL, "cannot open '%s': %s", path, strerror(errno));` does both.
 * The kind is the exit code of the program when nobody handles the error, so that the outcome is
 * decided where the cause is known.  A NULL `struct err *` is allowed everywhere and ignored.
 *
 * Four voices, one grammar (lower case, what failed first, subject in quotes, no full stop):
 *   err_set  for the caller to handle        warn  something odd, going on
 *   die      the user or the machine is at fault, cannot go on
 *   bug      we are at fault (an invariant is broken), cannot go on
 */
#ifndef HOLORUN_BASE_ERR_H
#define HOLORUN_BASE_ERR_H

#include <stdbool.h>

/* Exit codes of the program; every error carries one. */
enum err_kind {
    ERR_NONE = 0,
    ERR_FAILED = 1,    /* answered infeasible, a check said no */
    ERR_USAGE = 2,     /* wrong options, wrong suite or dialect file */
    ERR_ENV = 3,       /* no display, extension missing, disk full */
    ERR_MODEL = 4,     /* model directory missing or refused */
    ERR_UNSURE = 5,    /* inconclusive */
    ERR_STEPS = 6,     /* step budget used up */
    ERR_TIME = 124,    /* time budget used up */
    ERR_STOPPED = 130, /* stopped by a person */
};

enum { ERR_TEXT = 512 };

struct err {
    enum err_kind kind;
    char text[ERR_TEXT]; /* one line, no newline; long text is cut with "..." */
};

#define ERR_INIT                                                                                             \
    {                                                                                                        \
        ERR_NONE, ""                                                                                         \
    }
#define PRINTF_LIKE(a, b) __attribute__((format(printf, a, b)))

/* Sets kind and text; returns -1. Control characters in the text become '?'. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Puts "context: " before the text that is there; returns -1. */
int err_prefix(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

void warn(const char *fmt, ...) PRINTF_LIKE(1, 2);                                         /* stderr */
_Noreturn void die(enum err_kind kind, const char *fmt, ...) PRINTF_LIKE(2, 3);            /* exit(kind) */
_Noreturn void bug_at(const char *file, int line, const char *fmt, ...) PRINTF_LIKE(3, 4); /* abort() */
#define bug(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)

/* Calls fn before die() and bug() end the process: the place to release keys. One slot. */
void err_on_exit(void (*fn)(void));

/* malloc, realloc, strdup that end the process when memory is gone; n * size is checked for overflow. */
void *xmalloc(unsigned long n, unsigned long size);
void *xcalloc(unsigned long n, unsigned long size);
void *xrealloc(void *p, unsigned long n, unsigned long size);
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2);

#endif
