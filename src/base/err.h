/* err.h - errors as one line of text: what failed, where, what to do.
 *
 * A function that can fail takes a `struct err *` as its last parameter and returns -1 (or NULL); `return
 * err_set(e, ERR_MODEL, "cannot open '%s': %s", path, strerror(errno));` does both.  The kind becomes the
 * program's exit code when nobody handles the error.  A NULL `struct err *` is always allowed and ignored.
 *
 * Messages are lower case, say first what failed, quote the subject, and have no full stop:
 *   err_set  for the caller to handle        warn  a problem that does not stop the program
 *   die      the user or the machine is at fault, cannot go on
 *   bug      the program is at fault (an invariant is broken), cannot go on
 */
#ifndef HOLORUN_BASE_ERR_H
#define HOLORUN_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>

/* Exit codes of the program; every error carries one. */
enum err_kind {
    ERR_NONE = 0,
    ERR_FAILED = 1,     /* answered infeasible, its last action was refused, a check said no */
    ERR_USAGE = 2,      /* wrong options, wrong suite or dialect file */
    ERR_ENV = 3,        /* no display, extension missing, disk full */
    ERR_MODEL = 4,      /* model directory missing or refused */
    ERR_UNSURE = 5,     /* inconclusive */
    ERR_STEPS = 6,      /* step budget used up */
    ERR_UNVERIFIED = 7, /* the model says that it is done, and nothing confirms it */
    ERR_TIME = 124,     /* time budget used up */
    ERR_STOPPED = 130,  /* stopped by a person */
};

enum { ERR_TEXT = 512 };

struct err {
    enum err_kind kind;
    char text[ERR_TEXT]; /* one line without newline; cut with "..." */
};

#define ERR_INIT                                                                                             \
    {                                                                                                        \
        ERR_NONE, ""                                                                                         \
    }
#define PRINTF_LIKE(a, b) __attribute__((format(printf, a, b)))

/* Sets kind and text; returns -1. Control characters in the text become '?'. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...) PRINTF_LIKE(3, 4);

int err_vset(struct err *e, enum err_kind kind, const char *fmt, va_list args);

/* Puts "context: " before the text; returns -1. */
int err_prefix(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

void warn(const char *fmt, ...) PRINTF_LIKE(1, 2);                                         /* stderr */
_Noreturn void die(enum err_kind kind, const char *fmt, ...) PRINTF_LIKE(2, 3);            /* exit(kind) */
_Noreturn void bug_at(const char *file, int line, const char *fmt, ...) PRINTF_LIKE(3, 4); /* abort() */
#define bug(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)

/* fn runs before die() and bug() end the process, to release keys.  One slot. */
void err_on_exit(void (*fn)(void));

/* End the process when out of memory; n * size is checked for overflow. */
void *xmalloc(unsigned long n, unsigned long size);
void *xcalloc(unsigned long n, unsigned long size);
void *xrealloc(void *p, unsigned long n, unsigned long size);
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2);

#endif
