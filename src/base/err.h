/* err.h - errors as one line of text: failed operation, place, remedy.
 *
 * A function that can fail takes a `struct err *` as its last parameter and returns -1 (or NULL); `return
 * err_set(e, ERR_MODEL, "cannot open '%s': %s", path, strerror(errno));` does both. The kind is the exit
 * code of the program if the error is not handled. A NULL `struct err *` is always allowed and ignored.
 *
 * Messages are lower case, start with the failed operation, quote the value, and have no full stop:
 *
 *     err_set  for the caller to handle        warn  a problem that does not stop the program
 *     die      ends the program: the fault of the user or the machine
 *     bug      aborts the program: a broken invariant */
#pragma once

#include <stdarg.h>
#include <stdbool.h>

/* Exit codes of the program; every error has one. */
enum err_kind {
    ERR_NONE = 0,
    ERR_FAILED = 1,     /* task infeasible, last action denied, or a check failed */
    ERR_USAGE = 2,      /* invalid options, suite or dialect file */
    ERR_ENV = 3,        /* no display, missing extension, disk full */
    ERR_MODEL = 4,      /* model directory missing or rejected */
    ERR_UNSURE = 5,     /* inconclusive */
    ERR_STEPS = 6,      /* step budget used up */
    ERR_UNVERIFIED = 7, /* the model reports success, but nothing confirms it */
    ERR_UNCLEAR = 8,    /* the planner does not understand the task, or is not sure enough to act */
    ERR_TIME = 124,     /* time budget used up */
    ERR_STOPPED = 130,  /* stopped by the user */
};

enum { ERR_TEXT = 512 };

struct err {
    enum err_kind kind;
    char text[ERR_TEXT]; /* one line without newline; truncated with "..." */
};

#define ERR_INIT                                                                                             \
    {                                                                                                        \
        ERR_NONE, ""                                                                                         \
    }
#define PRINTF_LIKE(a, b) __attribute__((format(printf, a, b)))

/* Sets kind and text; returns -1. Control characters in the text become '?'. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...) PRINTF_LIKE(3, 4);

int err_vset(struct err *e, enum err_kind kind, const char *fmt, va_list args);

/* Inserts "context: " before the text; returns -1. */
int err_prefix(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

void warn(const char *fmt, ...) PRINTF_LIKE(1, 2);                                         /* stderr */
_Noreturn void die(enum err_kind kind, const char *fmt, ...) PRINTF_LIKE(2, 3);            /* exit(kind) */
_Noreturn void bug_at(const char *file, int line, const char *fmt, ...) PRINTF_LIKE(3, 4); /* abort() */
#define bug(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)

/* Registers fn to run before die() and bug() end the process, to release keys. One function only. */
void err_on_exit(void (*fn)(void));

/* Allocate memory or end the process if there is none; n * size is checked for overflow. */
void *xmalloc(unsigned long n, unsigned long size);
void *xcalloc(unsigned long n, unsigned long size);
void *xrealloc(void *p, unsigned long n, unsigned long size);
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Frees the memory of a local pointer when its scope ends: `autofree char *name = xstrdup(s);`. For JSON,
 * jansson has json_auto_t. */
#define autofree __attribute__((cleanup(err_free_at)))
void err_free_at(void *pointer);
