/* err.c - error messages, warnings, and checked allocation (err.h). */
#include "base/attempt.h"
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void (*exit_hook)(void);

void err_on_exit(void (*fn)(void))
{
    exit_hook = fn;
}

static void format_text(char text[ERR_TEXT], const char *fmt, va_list ap)
{
    int n = vsnprintf(text, ERR_TEXT, fmt, ap);
    if (n >= ERR_TEXT)
        memcpy(text + ERR_TEXT - 4, "...", 4);
    utf8_make_printable(text); /* file names and server replies may contain anything */
}

int err_vset(struct err *e, enum err_kind kind, const char *fmt, va_list args)
{
    if (!e)
        return -1;
    char text[ERR_TEXT]; /* an argument may be e->text itself */
    format_text(text, fmt, args);
    e->kind = kind;
    memcpy(e->text, text, sizeof text);
    return -1;
}

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    err_vset(e, kind, fmt, args);
    va_end(args);
    return -1;
}

int err_prefix(struct err *e, const char *fmt, ...)
{
    if (!e)
        return -1;
    char head[ERR_TEXT], old[ERR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    format_text(head, fmt, ap);
    va_end(ap);
    memcpy(old, e->text, sizeof old);
    return err_set(e, e->kind, "%s: %s", head, old);
}

static void print_message(const char *voice, const char *fmt, va_list ap)
{
    char text[ERR_TEXT];
    format_text(text, fmt, ap);
    fprintf(stderr, "holorun: %s%s\n", voice, text);
}

void warn(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print_message("warning: ", fmt, ap);
    va_end(ap);
}

/* Runs the exit hook once; releasing keys may itself run out of memory. */
static void run_exit_hook(void)
{
    void (*hook)(void) = exit_hook;
    exit_hook = NULL;
    if (hook)
        hook();
}

struct attempt {
    jmp_buf back;
    struct err *e;
    struct attempt *outer;
};

static _Thread_local struct attempt *attempted; /* attempt running in this thread; NULL: none */

int err_attempt(void (*fn)(void *arg), void *arg, struct err *e)
{
    struct attempt a = {.e = e, .outer = attempted};
    if (setjmp(a.back)) {
        attempted = attempted->outer;
        return -1;
    }
    attempted = &a;
    fn(arg);
    attempted = a.outer;
    return 0;
}

void die(enum err_kind kind, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (attempted) {
        char text[ERR_TEXT];
        format_text(text, fmt, ap);
        err_set(attempted->e, kind, "%s", text);
        longjmp(attempted->back, 1);
    }
    print_message("", fmt, ap);
    va_end(ap);
    run_exit_hook();
    exit(kind);
}

void bug_at(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "holorun: bug at %s:%d: ", file, line);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    run_exit_hook();
    abort();
}

static size_t checked_size(size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size)
        die(ERR_ENV, "out of memory: %zu x %zu bytes requested", n, size);
    size_t bytes = n * size;
    return bytes > 0 ? bytes : 1;
}

static void *allocated(void *p, size_t bytes)
{
    if (!p)
        die(ERR_ENV, "out of memory: %zu bytes requested", bytes);
    return p;
}

void err_free_at(void *pointer)
{
    free(*(void **)pointer);
}

void *xmalloc(unsigned long n, unsigned long size)
{
    return allocated(malloc(checked_size(n, size)), n * size);
}

void *xcalloc(unsigned long n, unsigned long size)
{
    return allocated(calloc(1, checked_size(n, size)), n * size);
}

void *xrealloc(void *old, unsigned long n, unsigned long size)
{
    return allocated(realloc(old, checked_size(n, size)), n * size);
}

char *xstrdup(const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(xmalloc(n, 1), s, n);
}

char *xasprintf(const char *fmt, ...)
{
    char *s;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        die(ERR_ENV, "out of memory");
    va_end(ap);
    return s;
}
