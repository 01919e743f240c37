/* typed_field.h - real programs with one text field each, which report its content.
 *
 * A program writes the text of its field into a file (tests/typed), or its page sets it as the title.
 */
#pragma once

#include "xvfb.h"

#include "screen/screen.h"

enum { ARRIVE_MS = 12000 };

struct program {
    const char *name, *needs;     /* needs: an executable */
    const char *check;            /* a command that succeeds if the program can run; NULL: it can */
    bool page, terminal, no_loop; /* no_loop: it stalls only as a stopped process */
    const char *argv[14];         /* @ stands for the folder */
};

struct field { /* a running program */
    const struct program *program;
    struct xvfb x;
    pid_t pid;
    struct screen *s;
    int line; /* line number in the terminal */
};

/* Starts a program on a private display and gives it the focus; skips the test if it is not installed. */
void typed_open(struct field *f, const char *name);
/* Does the same; prepare() starts something on the display before the program. */
void typed_open_with(struct field *f, const char *name, void (*prepare)(struct xvfb *x));
void typed_close(struct field *f);
/* Returns the text in the field; the caller frees it. */
char *typed_text(const struct field *f);
/* Waits up to ARRIVE_MS for this text; returns the text at the end. The caller frees it. */
char *typed_wait(const struct field *f, const char *want);
/* Gives the program a command: "clear", or "stall MS". */
void typed_tell(const struct field *f, const char *what);
/* Waits until the program has read it. */
void typed_told(const struct field *f);
/* Loads a keyboard layout such as "us" or "us(dvorak)". */
void typed_layout(const char *layout);
