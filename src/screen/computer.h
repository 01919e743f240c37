/* computer.h - a machine behind an address in the place of an X display.
 *
 * screen_open() is given these functions; src/computer has those of OSWorld's machine.  Each
 * waits for the machine's answer and ends early when *stop becomes non-zero; -1 is ERR_STOPPED then, ERR_ENV
 * when the machine cannot be used, and ERR_FAILED when only this request failed.  One thread at a time.
 *
 * Before a click its target is compared in a new screenshot with the last one that was observed (observed.h);
 * windows and the keyboard's focus are not.
 *
 * What a display has and a machine has not: no other program's input is noticed (no Escape twice, no pause
 * for a person), there are no views but the whole screen, and nothing keeps a second agent away.
 */
#ifndef HOLORUN_SCREEN_COMPUTER_H
#define HOLORUN_SCREEN_COMPUTER_H

#include "screen/screen.h"

enum computer_event_kind {
    COMPUTER_MOVE, /* x, y */
    COMPUTER_DOWN, /* button 1 to 3 */
    COMPUTER_UP,
    COMPUTER_KEY_DOWN, /* keysym */
    COMPUTER_KEY_UP,
    COMPUTER_TEXT,  /* text[len] */
    COMPUTER_WHEEL, /* x, y clicks to the right and down */
    COMPUTER_PAUSE, /* ms */
};

struct computer_event {
    enum computer_event_kind kind;
    int x, y, button;
    uint32_t keysym;
    const char *text; /* UTF-8 */
    size_t len;
    double ms;
};

struct computer {
    const char *name; /* for messages and records: its address */
    /* Allocates or reuses out, whose size is the screen's. */
    int (*capture)(void *arg, const volatile int *stop, struct image *out, struct err *e);
    /* All of them in order, before it returns. */
    int (*perform)(void *arg, const volatile int *stop, const struct computer_event *v, int n, struct err *e);
    /* The window at x, y (x < 0: the one that has the keyboard); an empty one when it is not known. */
    void (*window)(void *arg, const volatile int *stop, int x, int y, struct screen_window *out);
    void *arg;
};

#endif
