/* held.h - what is pressed, so that it can always be released.
 *
 * XTEST keys stay down after their client is gone: a program killed in the middle of ctrl+c would
 * leave Control pressed for everybody.  So each key, button and borrowed keycode is written down
 * before it is used, and each lock of the person's before it is taken off, in memory and in a small file next to the lock of its display:
 *
 *   release by the owner           held_release(), at the end of an action, on failure, at close
 *   release by the watching thread held_lift(): at once after a stop, whatever the owner does just then
 *   release by another thread      held_emergency(): through a connection of its own, for die(), a
 *                                  second Ctrl-C, exit() without close
 *   release by another process     held_undo_file(): guard.h, when this one hangs
 *   release by the next start      held_open() finds the file of a process that is gone
 *
 * The file is also the lock: whoever holds flock() on it drives this display's keyboard and pointer.
 *
 * Within the process an event is looked at, noted and sent under held_lock(): after a stop and a lift no
 * press can follow that had been allowed before.
 */
#ifndef HOLORUN_SCREEN_HELD_H
#define HOLORUN_SCREEN_HELD_H

#include "base/err.h"
#include "screen/event_origin.h"

#include <X11/Xlib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { HELD_KEYS = 256, HELD_BUTTONS = 32 };

struct held {
    char *display, *path;
    struct held *next;                 /* of this process */
    struct ours ours;                  /* what of the events to come is known to be ours */
    pthread_mutex_t lock;              /* one event at a time */
    int fd;                            /* locked file; -1: not ours, no hands allowed */
    int owner;                         /* process that has the lock when we have not, 0 unknown */
    bool memory_only;                  /* no place for the file: what we hold dies with us */
    atomic_bool key[HELD_KEYS];        /* by keycode */
    atomic_bool button[HELD_BUTTONS];  /* by physical button */
    _Atomic uint32_t spare[HELD_KEYS]; /* keysym we put on a free keycode, 0 none */
    _Atomic unsigned locks;            /* locked modifiers that we took off for as long as we type */
};

/* Takes the lock; releases on dpy what a dead process left.  Never fails: without the lock
 * held_own() says why.  same: dpy is older than that death, so it is the same server whose locks were taken off. */
void held_open(struct held *h, Display *dpy, const char *display, bool same);
void held_close(struct held *h);                           /* gives the lock back; release first */
int held_own(struct held *h, Display *dpy, struct err *e); /* 0: ours to press; tries the lock again */

/* Write down (on) before the press, take off after the release. */
void held_set_key(struct held *h, int keycode, bool on);
void held_set_button(struct held *h, int button, bool on);
void held_set_spare(struct held *h, int keycode,
                    uint32_t keysym);               /* 0: given back; call held_store() after */
void held_set_locks(struct held *h, unsigned mods); /* 0: they are on again */
void held_store(struct held *h);

void held_lock(struct held *h);
void held_unlock(struct held *h);

bool held_any(const struct held *h);
void held_release(struct held *h,
                  Display *dpy); /* keys and buttons up, scratch keycodes empty again, locks on */

/* Keys and buttons up; what is typed keeps its keycodes until the owner gives them back.  Takes the lock, but does not
 * wait for an owner who hangs, nor for a server that does. */
void held_lift(struct held *h, Display *dpy);

/* What the file of a process that has the lock, and hangs, says: up; the file stays.  How many keys, buttons,
 * keycodes and locks that were. */
int held_undo_file(const char *path, Display *dpy);

/* All displays of this process on which something is held, through fresh connections and all at the same time; those
 * whose server does not answer are left after 1.5 s.  Not for signal handlers. */
void held_emergency(void);

#endif
