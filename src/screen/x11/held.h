/* held.h - records pressed keys and buttons, so that they are always released.
 *
 * XTEST keys stay pressed after their client exits: a program killed during ctrl+c would leave Control
 * pressed. Therefore each key, button and borrowed keycode is recorded before it is used, and each setting of
 * the user (Caps Lock, sticky keys) before it is cleared, in memory and in a small file, which is removed at
 * the end:
 *
 *   released by the owner          screen_release_all(): at the end of an action, on failure, at close
 *   by the input monitor thread    held_release_pressed(): at once after a stop, even if the owner is busy
 *   by another thread              held_emergency(): through its own connection, for die(), a second Ctrl-C,
 *                                  exit() without close
 *   by the guard                   held_release_file(): when this process hangs (guard.h)
 *   by the next start              held_acquire() finds the file of a process that no longer exists
 *
 * The file is also the lock: the process that holds flock() on it sends input to this display.
 *
 * A button that is released for any of these reasons is first moved to where it was pressed: a drag that was
 * refused, stopped or killed must not end as a drop on whatever is under the pointer.
 *
 * held_lock() covers the stop check, the record and the sending of one event, so that no press can follow a
 * stop and its release. */
#pragma once

#include "base/err.h"

#include <X11/Xlib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { HELD_KEYS = 256, HELD_BUTTONS = 32, HELD_SERVER = 17 };

/* Distinguishes events sent by this program from user input. XTEST events have the XTEST keyboard or pointer
 * as their source, but so do events of a VNC user. So each event is noted before it is sent. An event of an
 * XTEST device that matches a note of the last 2 s is ours and consumes the note; every other event is user
 * input. */
enum { ORIGIN_NOTES = 256 };
enum event_origin_kind { ORIGIN_KEY, ORIGIN_BUTTON, ORIGIN_MOTION };

struct event_origin { /* of one display */
    pthread_mutex_t lock;
    unsigned next;
    struct event_origin_note {
        enum event_origin_kind kind;
        int detail; /* keycode or button */
        bool down;
        int64_t at; /* clock_ns(); 0: consumed */
    } notes[ORIGIN_NOTES];
};

/* Notes an event; call it before the event is sent. */
void event_origin_add(struct event_origin *o, enum event_origin_kind kind, int detail, bool down);
/* Returns whether this event of an XTEST device was sent by this program; consumes its note. */
bool event_origin_match(struct event_origin *o, enum event_origin_kind kind, int detail, bool down);

struct held {
    char *display, *path, server[HELD_SERVER]; /* server: random id of the X server */
    struct held *next;                         /* list of the displays of this process */
    struct event_origin origin;
    pthread_mutex_t lock;             /* held while one event is sent */
    int fd;                           /* locked file; -1: another process has the lock */
    int owner;                        /* pid of that process; 0: unknown */
    bool memory_only;                 /* the file could not be created */
    atomic_bool key[HELD_KEYS];       /* by keycode */
    atomic_bool button[HELD_BUTTONS]; /* by physical button */
    atomic_int press_x, press_y;      /* where the first button went down; -1: unknown */
    /* release sent but not confirmed: a hung server may never read it */
    atomic_bool key_sent[HELD_KEYS], button_sent[HELD_BUTTONS];
    _Atomic uint32_t spare[HELD_KEYS];     /* keysym bound to a borrowed keycode; 0: none */
    struct held_settings {                 /* settings of the user that are cleared while we type */
        unsigned locks, latches, controls; /* modifier masks; XkbStickyKeysMask and related controls */
    } settings;
};

void held_open(struct held *h, const char *display);
void held_close(struct held *h); /* Unlocks the file and frees h. Release everything first. */
/* Acquires the input lock of the display; releases on dpy everything that a dead process left. Returns 0 if
 * this process has the lock, -1 with e, which names the process that has it. */
int held_acquire(struct held *h, Display *dpy, struct err *e);

/* Records a key or button. Call with on before the press, without after the release. */
void held_set_key(struct held *h, int keycode, bool on);
void held_set_button(struct held *h, int button, bool on);
/* Records the pointer position; call before the press of a first button. */
void held_set_press(struct held *h, int x, int y);
/* Records a borrowed keycode; keysym 0: returned. Call held_store() afterwards. */
void held_set_spare(struct held *h, int keycode, uint32_t keysym);
void held_store(struct held *h);

void held_lock(struct held *h);
void held_unlock(struct held *h);

bool held_any(const struct held *h);
bool held_any_button(const struct held *h);
/* Returns whether a key or button is down for which no release was sent. */
bool held_pressed(const struct held *h);
void held_restore_settings(struct held *h, Display *dpy); /* Restores the user's settings. */
/* Releases keys and buttons, frees borrowed keycodes and restores settings through a new connection, after
 * the old one was lost. */
void held_release_anew(struct held *h);

/* Sends the release of keys and buttons only: text that the program has not consumed yet still needs its
 * keycodes. Waits at most 20 ms for held_lock() and does not wait for a server that hangs. at_once: 10 ms
 * instead of 40 ms for programs to process each motion that moves a drag back. */
void held_release_pressed(struct held *h, Display *dpy, bool at_once);
/* Marks sent releases as done, because the server has read them. */
void held_confirm_released(struct held *h);

/* Returns now plus ms on CLOCK_MONOTONIC, for timed waits. */
struct timespec held_deadline(int ms);

/* Releases everything that the file of a hung process lists; the file stays. Returns the number of keys,
 * buttons, keycodes and changed settings. */
int held_release_file(const char *path, Display *dpy);

/* Releases everything on all displays of this process, through new connections and in parallel. Waits at most
 * 1.5 s for servers to respond. Not for signal handlers. */
void held_emergency(void);
