/* elements.h - the elements on a display, as programs describe them through AT-SPI, the interface of screen
 * readers.
 *
 * A child process reads: if a program does not answer, or the display has no accessibility bus, an answer is
 * missing within the time limit, and this process contains no D-Bus connection. The child is killed when an
 * answer is overdue, and started again for the next question, with at most three starts in total.
 *
 * It connects to the bus of the display that it reads (root property AT_SPI_BUS, else the session bus) and
 * reads the program of one window with many calls in flight, so that a stopped program elsewhere costs
 * nothing.
 *
 * Names are hints chosen by other programs: bounded, without control characters, and used only to find a
 * position again and as words for rules and users. */
#pragma once

#include "base/buf.h"
#include "screen/screen.h"

#include <stdbool.h>
#include <stdint.h>

enum { ELEMENTS_MATCHES = 8 };

enum place_trust {
    PLACE_SURE,
    PLACE_SHIFTED,  /* corrected by the X window */
    PLACE_APART,    /* drawn by a page outside its parent */
    PLACE_DOUBTFUL, /* outside its parent: not to be clicked */
    PLACE_NONE,     /* the program reports no place */
};

struct element {                     /* texts are never NULL and belong to the snapshot */
    uint32_t ref;                    /* number of the object, the same in all snapshots; never reused */
    const char *role, *name, *value; /* role: "push button" */
    const char *label;               /* text beside an element without a name */
    uint64_t states;                 /* bits STATE_* of roles.h */
    struct screen_rect rect;         /* root pixels */
    enum place_trust trust;
    double least, most; /* of sliders, dials and spin buttons; least >= most: unknown */
    double number; /* ... their number, which spin buttons change when they take a text over; NAN: unknown */
    int parent, depth;    /* parent: index, -1: a window */
    int children;         /* number of its children if only those on the screen were read, else 0 */
    unsigned long window; /* X window; 0: unknown */
};

enum snapshot_end {
    SNAPSHOT_WHOLE,
    SNAPSHOT_NOTHING, /* the program describes nothing */
    SNAPSHOT_CUT,     /* a limit of time, depth or number was reached */
    SNAPSHOT_SILENT,  /* a program does not answer; it is not asked for 5 s, or until it sends something */
};

struct snapshot { /* visible elements in reading order: parents first, siblings by rows */
    struct element *e;
    int n;
    enum snapshot_end end;
    int hit;              /* element at the point of the scope, as the program says; -1: none */
    unsigned long window; /* X window there; 0: unknown */
    int calls, nodes;     /* calls made and objects read */
    double ms;            /* time of reading */
    int64_t read;         /* clock_ns() when reading ended; 0: unknown */
    void *memory;
};

struct elements_scope {
    const char
        *window;   /* the program of the window of this title; NULL, "" or not found: of the active window */
    bool at_point; /* the program of the window at x, y */
    int x, y;
    bool all;    /* all programs, that of the active window first */
    bool closed; /* also items of closed menus and lists, and tabs' pages behind the front one; they have
                  * PLACE_NONE */
    bool beyond; /* also elements of web pages that are scrolled out of sight; they lack STATE_SHOWING */
};

struct elements; /* used by one thread */

/* Starts the child process for a display; NULL: $DISPLAY. Returns NULL if HOLORUN_ELEMENTS is "no". */
struct elements *elements_open(const char *display);
void elements_close(struct elements *x); /* all functions accept NULL */
/* Allows three more starts of the child, after a failure whose cause may be over. */
void elements_retry(struct elements *x);

/* Reads the elements of a scope within ms. *out belongs to x and is valid until the next question. Returns
 * -1 with ERR_ENV without a bus, or ERR_TIME without an answer. */
int elements_snapshot(struct elements *x, const struct elements_scope *s, double ms,
                      const struct snapshot **out, struct err *e);

/* Returns whether the child found no accessibility bus for the display. */
bool elements_no_bus(const struct elements *x);
/* Returns whether another question is useless: the display has no bus, or no program has registered with it.
 * Programs register at their start, so one that has just started counts as registered. */
bool elements_nobody(const struct elements *x);

/* ---- questions: search a snapshot (query.c) ---- */

/* Requests the element at a point, without waiting for the answer. */
void elements_ask_at(struct elements *x, int px, int py);
/* Reads the answer to the newest question, if that was about a position within 3 px of px, py; waits at most
 * ms. *other: the element of the program's hit test, if that differs and neither contains the
 * other; role "": none. Returns false without an element. */
bool elements_answer_at(struct elements *x, int px, int py, double ms, struct element *out,
                        struct element *other);
/* As elements_answer_at(), but returns the whole snapshot, valid until the next question, or NULL; *at: the
 * element at the point, -1: none. */
const struct snapshot *elements_answer(struct elements *x, int px, int py, double ms, int *at);
/* Moves the snapshot of the newest answer to *out, which then stays valid; free it with snapshot_free(). */
void elements_take(struct elements *x, struct snapshot *out);
void snapshot_free(struct snapshot *s);
/* Returns the innermost element at a point, -1: none. Elements of the X window at the point come first. */
int snapshot_at(const struct snapshot *s, int x, int y);
/* Finds visible elements of this name and role, in windows of this title first. Waits at most ms; returns
 * their number. */
int elements_find(struct elements *x, const char *name, const char *role, const char *window, double ms,
                  struct element out[ELEMENTS_MATCHES]);
/* Finds the element that Enter, or else space, would press in the window of this title, as far as programs
 * report it: the element with the keyboard focus, or a default button; name "": none. Returns false without
 * an answer within ms. */
bool elements_pressed(struct elements *x, bool enter, const char *window, double ms, struct element *out);

/* Asks for the element with the keyboard in the window of this title, without waiting for the answer. */
void elements_ask_focus(struct elements *x, const char *window);
/* Returns the snapshot that answers the newest question, if that was about a window, valid until the next
 * question, or NULL if it has not arrived within ms; *at: the element with the keyboard, -1: none. */
const struct snapshot *elements_answer_focus(struct elements *x, const char *window, double ms, int *at);

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
bool element_is_password(const struct element *e); /* typed text is not shown */

/* ---- focus ---- */

/* Reads the messages that have arrived. elements_fd() returns the file descriptor to poll for them, -1:
 * none. */
void elements_pump(struct elements *x);
int elements_fd(const struct elements *x);
/* Returns whether a program has reported a focus change, or the initial focus, since `since` (clock_ns()). */
bool elements_focus_since(const struct elements *x, int64_t since);
/* Returns whether an element that hides typed text had or got the keyboard between two times (clock_ns()). */
bool elements_password_between(const struct elements *x, int64_t since, int64_t until);

/* ---- text.c ---- */

/* Appends the elements in compact form, a line each. places: with the middle of each element that can be
 * used. */
void elements_text(const struct snapshot *s, bool places, struct buf *out);
/* Returns the word that the compact form has for a role that can be acted on ("button" for "push button");
 * NULL: the role cannot be acted on. */
const char *element_word(const char *role);

/* ---- serve.c: the child ---- */

_Noreturn void elements_serve(int wire, const char *display);
