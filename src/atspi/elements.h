/* elements.h - names of what is on the screen, as programs tell them through AT-SPI (screen readers use
 * it).
 *
 * A child process asks, through libatspi, which is loaded at run time: a program that does not answer, or a
 * missing library, costs an answer, never more than the time limit, and nothing of D-Bus is in this
 * process.  The child is killed when an answer is overdue, and started again for the next question, three
 * times.
 *
 * Names are hints that other programs make up: bounded, without control characters, and used only to find a
 * place again and as words for rules and people.
 */
#ifndef HOLORUN_ATSPI_ELEMENTS_H
#define HOLORUN_ATSPI_ELEMENTS_H

#include "screen/screen.h"

#include <stdbool.h>
#include <stdint.h>

enum { ELEMENT_NAME = 256, ELEMENT_ROLE = 64, ELEMENTS_MATCHES = 8 };

struct element {
    char name[ELEMENT_NAME], role[ELEMENT_ROLE]; /* role "push button"; "": there is none */
    struct screen_rect rect;                     /* root pixels */
    bool password;                               /* what is typed here is not shown */
};

struct elements; /* used by one thread */

/* NULL: no accessibility bus is to be expected (none is started for this). */
struct elements *elements_open(void);
void elements_close(struct elements *x); /* NULL is fine, here and below */

/* Asks for the element at a point in the window of this title (""; any), without waiting for the answer. */
void elements_ask_at(struct elements *x, int px, int py, const char *window);
/* The answer to the newest question, if it was about a place within 3 px of this one; waits at most ms for
 * it. */
bool elements_answer_at(struct elements *x, int px, int py, double ms, struct element *out);
/* Elements of this name and role that show, in windows of this title first; returns how many. */
int elements_find(struct elements *x, const char *name, const char *role, const char *window, double ms,
                  struct element out[ELEMENTS_MATCHES]);
/* The element that Enter, or else space, would press in the window of this title, as far as programs
 * tell: the element that has the keyboard, or a default button; name "": nothing.  false: no answer
 * within ms. */
bool elements_pressed(struct elements *x, bool enter, const char *window, double ms, struct element *out);

struct element_field { /* the focused element */
    bool in_page;      /* it is part of a web page */
    bool tools;        /* ... of a browser's developer tools */
    bool editable;     /* it holds text */
    char text[4096];
};
/* Reads the focused element in the window of this title.  Returns false without an answer within ms. */
bool elements_field(struct elements *x, const char *window, double ms, struct element_field *out);
/* Reads the text of the dialog around the element at a point, or around the focused one if px is -1.
 * Returns 1 with the text ("" without a dialog), 0 if no program reports it, -1 without an answer within
 * ms. */
int elements_dialog(struct elements *x, int px, int py, const char *window, double ms, char *text,
                    size_t size);

/* Reads what has arrived; the file descriptor to poll for it, -1: none. */
void elements_pump(struct elements *x);
int elements_fd(const struct elements *x);
/* Whether a program has told since then that the keyboard moved, or was at the start. */
bool elements_focus_since(const struct elements *x, int64_t since);
/* Whether an element that hides what is typed had, or got, the keyboard between two times (clock_ns()). */
bool elements_password_between(const struct elements *x, int64_t since, int64_t until, struct element *out);

/* ---- elements_serve.c: the child ------------------------------------------------------------------ */

_Noreturn void elements_serve(int in, int out);

#endif
