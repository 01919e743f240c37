/* elements.h - names of the elements on the screen, as reported by programs through AT-SPI, the interface of
 * screen readers.
 *
 * A child process asks through libatspi, which is loaded at run time: if a program does not answer or the
 * library is missing, an answer is missing, within the time limit, and this process contains no D-Bus code.
 * The child is killed when an answer is overdue, and started again for the next question, with at most three
 * starts in total.
 *
 * Names are hints chosen by other programs: bounded, without control characters, and used only to find a
 * position again and as words for rules and users.
 */
#ifndef HOLORUN_ATSPI_ELEMENTS_H
#define HOLORUN_ATSPI_ELEMENTS_H

#include "screen/screen.h"

#include <stdbool.h>
#include <stdint.h>

enum { ELEMENT_NAME = 256, ELEMENT_ROLE = 64, ELEMENTS_MATCHES = 8 };

struct element {
    char name[ELEMENT_NAME], role[ELEMENT_ROLE]; /* role "push button"; "": no element */
    struct screen_rect rect;                     /* root pixels */
    bool password;                               /* typed text is not shown */
};

struct elements; /* used by one thread */

/* Starts the child process. Returns NULL if no accessibility bus can be expected (none is started for
 * this). */
struct elements *elements_open(void);
void elements_close(struct elements *x); /* all functions accept NULL */

/* Requests the element at a point in the window of this title ("": any), without waiting for the answer. */
void elements_ask_at(struct elements *x, int px, int py, const char *window);
/* Reads the answer to the newest question, if that was about a position within 3 px of px, py; waits at most
 * ms. Returns false without an element. */
bool elements_answer_at(struct elements *x, int px, int py, double ms, struct element *out);
/* Finds visible elements of this name and role, in windows of this title first. Waits at most ms; returns
 * their number. */
int elements_find(struct elements *x, const char *name, const char *role, const char *window, double ms,
                  struct element out[ELEMENTS_MATCHES]);
/* Finds the element that Enter, or else space, would press in the window of this title, as far as programs
 * report it: the element with the keyboard focus, or a default button; name "": none. Returns false without
 * an answer within ms. */
bool elements_pressed(struct elements *x, bool enter, const char *window, double ms, struct element *out);

struct element_field { /* the focused element */
    bool in_page;      /* part of a web page */
    bool tools;        /* ... of a browser's developer tools */
    bool editable;     /* contains editable text */
    char text[4096];
};
/* Reads the focused element in the window of this title. Returns false without an answer within ms. */
bool elements_field(struct elements *x, const char *window, double ms, struct element_field *out);
/* Reads the text of the dialog around the element at a point, or around the focused element if px is -1.
 * Returns 1 with the text ("" without a dialog), 0 if no program reports it, -1 without an answer within
 * ms. */
int elements_dialog(struct elements *x, int px, int py, const char *window, double ms, char *text,
                    size_t size);

/* Reads the messages that have arrived. elements_fd() returns the file descriptor to poll for them, -1:
 * none. */
void elements_pump(struct elements *x);
int elements_fd(const struct elements *x);
/* Returns whether a program has reported a focus change, or the initial focus, since `since` (clock_ns()). */
bool elements_focus_since(const struct elements *x, int64_t since);
/* Returns whether an element that hides typed text had or got the keyboard between two times (clock_ns());
 * *out is that element. */
bool elements_password_between(const struct elements *x, int64_t since, int64_t until, struct element *out);

/* ---- elements_serve.c: the child ------------------------------------------------------------------ */

_Noreturn void elements_serve(int in, int out);

#endif
