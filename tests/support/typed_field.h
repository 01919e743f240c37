/* typed_field.h - real programs with one text field each, which report its content.
 *
 * A program writes the text of its field into a file (tests/typed), or its page sets it as the title.
 */
#ifndef HOLORUN_TESTS_TYPED_FIELD_H
#define HOLORUN_TESTS_TYPED_FIELD_H

#include "xvfb.h"

#include "screen/screen.h"

enum { ARRIVE_MS = 12000 };

struct program {
    const char *name, *needs;     /* needs: an executable */
    const char *check;            /* a command that says whether it can run; NULL: it can */
    bool page, terminal, no_loop; /* no_loop: it stalls as a stopped process only */
    const char *argv[14];         /* @ stands for the folder */
};

struct field { /* a program that runs */
    const struct program *program;
    struct xvfb x;
    pid_t pid;
    struct screen *s;
    int line; /* of the terminal */
};

/* Starts the program of this name on a display of its own and gives it the keyboard; skips the test when it is
 * not installed. */
void typed_open(struct field *f, const char *name);
/* The same; prepare starts something on the display before the program. */
void typed_open_with(struct field *f, const char *name, void (*prepare)(struct xvfb *x));
void typed_close(struct field *f);
/* The text in the field now; the caller frees it. */
char *typed_text(const struct field *f);
/* Waits until the field has this text, at most ARRIVE_MS; its text then.  The caller frees it. */
char *typed_wait(const struct field *f, const char *want);
/* Gives the program a command: "clear", or "stall MS". */
void typed_tell(const struct field *f, const char *what);
/* Waits until the program has read it. */
void typed_told(const struct field *f);
/* Loads a keyboard layout, "us" or "us(dvorak)" say. */
void typed_layout(const char *layout);

#endif
