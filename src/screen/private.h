/* private.h - what the files of this folder share: struct screen and the verbs between them.
 *
 *   screen.c    open, close, facts          pointer.c   move, press, drag, wheel
 *   monitors.c  root, view, RandR           keyboard.c  keysym -> keycode, chords, modifiers
 *   capture.c   pixels (pixels.c)           spare_keycodes.c   borrowed keycodes for unmapped characters
 *   settle.c    damage, waiting             typing.c    text
 *   window.c    titles, activation          paste.c     text without any free keycode
 *   watch.c     a person at the display     held.c      what is pressed
 *   guard.c     help from outside
 *   event_origin.c      which events are not hers   stopfile.c  the stop files
 *   stop.c      who is to stop              xtrap.c     errors, lost connections
 *   hit_test.c     windows, their programs     cpu_wait.c   programs that wait for a processor
 */
#ifndef HOLORUN_SCREEN_PRIVATE_H
#define HOLORUN_SCREEN_PRIVATE_H

#include "screen/held.h"
#include "screen/screen.h"
#include "screen/stop.h"
#include "screen/xtrap.h"

#include <X11/XKBlib.h>
#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/extensions/XShm.h>
#include <X11/extensions/Xdamage.h>
#include <xdo.h>

/* libxdo (3.20160805) never frees some of what it reads from the server: not leaks of ours. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#define xdo_leaks_begin() __lsan_disable()
#define xdo_leaks_end()   __lsan_enable()
#else
#define xdo_leaks_begin()
#define xdo_leaks_end()
#endif

enum { MAX_MONITORS = 32, MAX_BLINKERS = 16, MAX_SPARE = 32, MAX_DOWN = 16 };

struct monitor {
    char name[64];
    struct screen_rect rect;
    bool primary;
};

struct blinker { /* a small area that is redrawn again and again: a text caret */
    struct screen_rect rect;
    int times;
    int64_t last_ns;
};

struct key_down { /* a press by screen_key(), so that the same keys go up again */
    uint32_t keysym;
    int code, shift_code, group;
};

struct spare { /* a free keycode, and what we have put on it */
    uint8_t code;
    uint32_t keysym; /* 0: empty */
    unsigned since;  /* spare_clock at binding: the oldest is taken again first */
};

struct screen {
    Display *dpy;
    char *name;
    Window root;
    Visual *visual;
    int depth;
    struct stop *stop;
    atomic_bool
        lost; /* the connection is gone: set by Xlib's exit handler, or the watch has given the server up */
    struct screen_options options;
    char *view_name;

    /* extensions: event base or 0 */
    int xtest_major, xtest_minor;
    bool shm, xfixes, xinput, xkb;
    int damage_event, randr_event;

    struct screen_rect root_rect, view;
    struct monitor monitors[MAX_MONITORS];
    int n_monitors;
    Window view_window; /* view "window:ID" */
    bool view_gone;     /* the monitors have changed, and that of the view is none of them */

    /* capture.c */
    XImage *image;
    XShmSegmentInfo segment;
    const char *shm_why; /* why not, when not */

    /* settle.c */
    Damage damage;
    bool damage_waiting; /* told, not yet read */
    struct blinker blinkers[MAX_BLINKERS];

    /* keyboard.c */
    XkbDescPtr map;
    bool map_stale;
    int keyboard_id; /* XInput id of the XTEST keyboard, 0 when unknown */
    xdo_t *xdo;      /* made at first use: libxdo reads the whole keymap then */
    struct key_down down[MAX_DOWN];

    /* spare_keycodes.c */
    struct spare spare[MAX_SPARE];
    int n_spare;
    unsigned spare_clock;

    /* paste.c */
    Window paste_window;
    char *offered; /* what the clipboard gives, owned; NULL: nothing is ours */
    int offers_taken;

    struct watch *watch; /* watch.c: NULL until screen_watch() */

    struct held held;
    int64_t events;
};

/* ---- screen.c ---------------------------------------------------------------------------------- */

/* Whether there is an XInput.  To be asked before its version: libXi reads what a server has not answered when that dies
 * during the first question about the version; this question it may leave unanswered. */
bool screen_xinput_answers(Display *dpy);
/* 0, or -1 with "display ':1' was lost". To be asked before and after talking to the server. */
int screen_alive(struct screen *s, struct err *e);
/* Alive, ours to drive, and not asked to stop: the look before each event. */
int screen_may_act(struct screen *s, struct err *e);
/* Around one event.  Begin: -1 when there must be none.  A release needs no leave: held_lock() begins it. */
int hands_begin(struct screen *s, struct err *e);
int hands_end(struct screen *s, struct err *e); /* counts it; -1: the display is lost */
void screen_pump(struct screen *s);             /* reads waiting events: keymap, monitors, damage */
xdo_t *screen_xdo(struct screen *s);

/* ---- monitors.c -------------------------------------------------------------------------------- */

int monitors_update(struct screen *s, struct err *e); /* re-reads root size, monitors, view */

/* ---- capture.c --------------------------------------------------------------------------------- */

void capture_close(struct screen *s);

/* ---- settle.c ---------------------------------------------------------------------------------- */

void settle_open(struct screen *s);
void settle_close(struct screen *s);
void settle_note_damage(struct screen *s);

/* ---- cpu_wait.c --------------------------------------------------------------------------------- */

enum { CPU_WAIT_MAX = 3 };

struct cpu_wait {
    struct starving {
        int pid, stat, sched; /* files of it, -1: none */
        double ran;           /* ms */
    } of[CPU_WAIT_MAX];
    int n;
    int64_t last;
};

void cpu_wait_begin(struct cpu_wait *v, struct screen *s);
/* ms since the last look in which one of them waited for a processor */
double cpu_wait_look(struct cpu_wait *v);
void cpu_wait_end(struct cpu_wait *v);

/* ---- hit_test.c ----------------------------------------------------------------------------------- */

/* Processes of the window that has the keyboard and of the one under the pointer, as far as they are of this machine; their
 * number. */
int under_pids(struct screen *s, int pids[2]);

/* ---- window.c ---------------------------------------------------------------------------------- */

/* Properties of any window, also one that is gone inside a trap: "" when there is none. */
void window_text(struct screen *s, Window w, const char *property, char *out, size_t size);
void window_title(struct screen *s, Window w, char *out, size_t size);
void window_class(struct screen *s, Window w, char *out, size_t size);
void window_manager_name(struct screen *s, char *out, size_t size); /* "" when there is none */

/* ---- keyboard.c -------------------------------------------------------------------------------- */

struct keypress { /* how to make a keysym with the keyboard as it is */
    int code;
    bool shift;
    int group;
};

void keyboard_open(struct screen *s);
void keyboard_close(struct screen *s);
int keyboard_read(struct screen *s, struct err *e); /* reads the map again when it is stale */
/* In the active group; any_group: in the others too. Borrowed keycodes are not looked at. */
bool keyboard_find(struct screen *s, uint32_t keysym, bool any_group, struct keypress *out);
int keyboard_free_codes(struct screen *s, uint8_t *codes, int max); /* without any keysym or modifier */
int keyboard_let_go(struct screen *s, struct err *e); /* waits until nobody else holds a modifier */
/* Before the first key: the same, and makes the XTEST keyboard the one whose map clients use. */
int keyboard_ready(struct screen *s, struct err *e);
/* Takes locks off that would make something else of keys (Caps Lock, a sticky Control); returns what was on. */
unsigned keyboard_unlock(struct screen *s);
void keyboard_relock(struct screen *s, unsigned locked);             /* and puts it back */
int key_event(struct screen *s, int code, bool down, struct err *e); /* one XTEST request */
int key_tap(struct screen *s, int code, struct err *e);              /* down and up in one write */

/* ---- spare_keycodes.c --------------------------------------------------------------------------------- */

int scratch_room(struct screen *s);                /* how many keysyms can be bound at once */
int spare_code(struct screen *s, uint32_t keysym); /* where it is bound now, or 0 */
/* Puts the keysyms on free keycodes and waits until clients know.  What was bound before stays as
 * long as there is room, the oldest goes first. */
int spare_bind(struct screen *s, const uint32_t *keysyms, int n, struct err *e);
bool spare_bound(const struct screen *s); /* is anything bound */
void spare_restore(struct screen *s);     /* all borrowed keycodes are empty again */

/* ---- paste.c ----------------------------------------------------------------------------------- */

int paste_text(struct screen *s, const char *utf8, size_t len, struct err *e);
void paste_answer(struct screen *s, const XSelectionRequestEvent *rq);
void paste_close(struct screen *s);

/* ---- watch.c ----------------------------------------------------------------------------------- */

void watch_hurry(
    struct screen *s); /* the screen is about to be closed: a server that hangs is given up soon */
void watch_close(struct screen *s);

/* ---- stopfile.c -------------------------------------------------------------------------------- */

struct stopfile; /* a screen that listens for the files that stop it */
struct stopfile *stopfile_open(struct stop *stop, struct err *e);
void stopfile_close(struct stopfile *f); /* NULL is fine */

#endif
