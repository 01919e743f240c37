/* held.h - keys and buttons that are down, so that they are always released.
 *
 * XTEST keys stay down after their client is gone: a program killed during ctrl+c would leave Control
 * pressed.  So each key, button and borrowed keycode is recorded before it is used, and each setting of a
 * person (Caps Lock, sticky keys) before it is taken off, in memory and in a small file, which is removed
 * at the end:
 *
 *   released by the owner          screen_release_all(): at the end of an action, on failure, at close
 *   by the thread that watches     held_release_pressed(): at once after a stop, even while the owner is busy
 *   by another thread              held_emergency(): through its own connection, for die(), a second Ctrl-C,
 *                                  exit() without close
 *   by the guard                   held_release_file(): when this process hangs (guard.h)
 *   by the next start              held_open() finds the file of a process that is gone
 *
 * The file is also the lock: the process that holds flock() on it drives this display's keyboard and
 * pointer.
 *
 * A button that is released for any of these reasons goes back to where it was pressed first: a drag that was
 * refused, stopped or killed on its way must not end as a drop on what lies under the pointer.
 *
 * Checking for a stop, recording and sending one event happen under held_lock(): no press can follow a stop
 * and its release.
 */
#ifndef HOLORUN_SCREEN_HELD_H
#define HOLORUN_SCREEN_HELD_H

#include "base/err.h"

#include <X11/Xlib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { HELD_KEYS = 256, HELD_BUTTONS = 32, HELD_SERVER = 17 };

/* Tells the events that this program sent from those of a person.  XTEST events carry the XTEST keyboard
 * or pointer as their source, but so do the events of a person who uses VNC.  So each event is noted
 * before it is sent.  An event of an XTEST device that matches a note of the last 2 s is ours and uses
 * the note up; every other event is a person's. */
enum { ORIGIN_NOTES = 256 };
enum event_origin_kind { ORIGIN_KEY, ORIGIN_BUTTON, ORIGIN_MOTION };

struct event_origin { /* of one display */
    pthread_mutex_t lock;
    unsigned next;
    struct event_origin_note {
        enum event_origin_kind kind;
        int detail; /* keycode or button */
        bool down;
        int64_t at; /* clock_ns(); 0: used up */
    } notes[ORIGIN_NOTES];
};

/* To be called before each event is sent. */
void event_origin_add(struct event_origin *o, enum event_origin_kind kind, int detail, bool down);
/* Whether this event of an XTEST device is ours; uses its note up. */
bool event_origin_match(struct event_origin *o, enum event_origin_kind kind, int detail, bool down);

struct held {
    char *display, *path, server[HELD_SERVER]; /* server: its name for itself */
    struct held *next;                         /* in this process */
    struct event_origin origin;
    pthread_mutex_t lock;             /* one event at a time */
    int fd;                           /* locked file; -1: another process drives the display */
    int owner;                        /* pid of that process, 0 unknown */
    bool memory_only;                 /* the file could not be made */
    atomic_bool key[HELD_KEYS];       /* by keycode */
    atomic_bool button[HELD_BUTTONS]; /* by physical button */
    atomic_int press_x, press_y;      /* where the first of them went down; -1: not known */
    /* Released, but the server has not answered since: one that hangs may never read it. */
    atomic_bool key_sent[HELD_KEYS], button_sent[HELD_BUTTONS];
    _Atomic uint32_t spare[HELD_KEYS];     /* keysym we put on a free keycode, 0 none */
    struct held_settings {                 /* what a person has set, and we took off for as long as we type */
        unsigned locks, latches, controls; /* modifiers; XkbStickyKeysMask and its kin */
    } settings;
};

void held_open(struct held *h, const char *display);
void held_close(struct held *h); /* gives the lock back; release first */
/* 0 when this process has the lock, or takes it now; then what a dead process left is released on dpy. */
int held_acquire(struct held *h, Display *dpy, struct err *e);

/* on: before the press; off: after the release. */
void held_set_key(struct held *h, int keycode, bool on);
void held_set_button(struct held *h, int button, bool on);
/* Before the press of a first button: where the pointer is. */
void held_set_press(struct held *h, int x, int y);
/* keysym 0: given back.  Call held_store() afterwards. */
void held_set_spare(struct held *h, int keycode, uint32_t keysym);
void held_store(struct held *h);

void held_lock(struct held *h);
void held_unlock(struct held *h);

bool held_any(const struct held *h);
bool held_any_button(const struct held *h);
bool held_pressed(const struct held *h); /* a key or button, not counting those of which a release was sent */
void held_restore_settings(struct held *h, Display *dpy); /* puts them back */
/* After a lost connection: releases keys and buttons, empties borrowed keycodes, puts settings back through
 * a new connection. */
void held_release_anew(struct held *h);

/* Sends the release of keys and buttons only: text on its way still needs its keycodes.  Takes held_lock(),
 * but waits neither for an owner that hangs nor for a server that does.  at_once: programs get less time to
 * see that a drag is taken back. */
void held_release_pressed(struct held *h, Display *dpy, bool at_once);
void held_confirm_released(struct held *h); /* the server has read what that has sent */

/* Now plus ms on CLOCK_MONOTONIC, for waits that must end. */
struct timespec held_deadline(int ms);

/* Releases what the file of a hung process lists; the file stays.  Returns the number of keys, buttons,
 * keycodes and locks. */
int held_release_file(const char *path, Display *dpy);

/* Releases on all displays of this process, through new connections and in parallel; servers that do not
 * answer are given up after 1.5 s.  Not for signal handlers. */
void held_emergency(void);

#endif
