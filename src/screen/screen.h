/* screen.h - one X11 display: what is on it (eyes) and what is done to it (hands).
 *
 * Everything here speaks root-window pixels.  A `struct screen` owns one Display connection and is
 * used from one thread; many may be open, each on its own display, and none knows of the others.  X errors never end the
 * process: they are trapped around the exact call; a lost connection makes every later call on that screen fail with
 * ERR_ENV "display ':1' was lost".
 *
 * Hands look at the stop flag before every single event (screen_stop_flag), and write down what they
 * press in a held-list, in memory and in a file, before they press it: whatever happens, what was
 * pressed is released, if need be by the next start.  One process at a time has hands on a display;
 * others may look, and their hands fail with the number of the process that has them.
 */
#ifndef HOLORUN_SCREEN_SCREEN_H
#define HOLORUN_SCREEN_SCREEN_H

#include "base/err.h"
#include "base/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct screen;

struct screen_options {
    const char *display; /* NULL: $DISPLAY */
    const char *view;    /* NULL or "all": whole root; monitor name or number; "window:ID" */
    bool cursor;         /* draw the pointer into captures */
    bool no_shm;         /* XGetImage only */
    double key_delay_ms, keymap_settle_ms; /* 0: defaults 5, 50 */
    bool heed_person;                      /* what a person does breaks off an action; see screen_person() */
    bool corner_stop; /* a person who rests the pointer in the top left corner stops the run */
};

/* NULL with the reason: no DISPLAY, a Wayland session, no XTEST, no such view. */
struct screen *screen_open(const struct screen_options *o, struct err *e);
void screen_close(struct screen *s); /* releases what is held, restores the keymap; NULL is fine */

struct screen_rect {
    int x, y, w, h;
};
struct screen_rect screen_view(const struct screen *s); /* what captures show, in root pixels */
/* The same, looked up again: windows move, monitors come and go.  -1: it is gone. */
int screen_view_now(struct screen *s, struct screen_rect *out, struct err *e);
struct screen_rect screen_root(const struct screen *s);    /* the whole root window */
bool screen_visible(const struct screen *s, int x, int y); /* on some monitor, not in a gap between them */
const char *screen_name(const struct screen *s);           /* ":1" */

/* Facts for doctor and run.json, one "key: value" per line, e.g. "xtest: 2.2", "shm: yes". */
struct buf;
void screen_describe(struct screen *s, struct buf *out);

/* ---- eyes ------------------------------------------------------------------------------------ */

int screen_capture(struct screen *s, struct image *out, struct err *e); /* allocates or reuses out */

struct settle {
    double min_ms, quiet_ms, max_ms; /* zeros: 150, 300, 3000 */
};
struct settled {
    double ms;
    const char *why; /* "quiet" "stable" "timeout" "stopped" */
};
/* Waits until the screen rests.  A stop fills *out ("stopped") and is ERR_STOPPED all the same. */
int screen_settle(struct screen *s, const struct settle *p, struct settled *out, struct err *e);

/* Active window (or the one under the pointer without a window manager): title and class, UTF-8, cut to size. */
int screen_active_window(struct screen *s, char *title, size_t title_size, char *wm_class, size_t class_size);
/* First window whose title matches the PCRE2 pattern; fills title when wanted. 1 found, 0 not, -1 error. */
int screen_find_window(struct screen *s, const char *pattern, char *title, size_t title_size, struct err *e);
/* Each window that is seen and has a title or a class, topmost first, until visit says that it has seen enough: 1; 0: they
 * were all; -1: the display is lost.  visit makes no X request. */
int screen_each_window(struct screen *s, bool (*visit)(void *arg, const char *title, const char *class),
                       void *arg, struct err *e);
/* Whether a window manager is at work: it shows a tiny window of ours for a moment.  Takes up to 150 ms. */
bool screen_managed(struct screen *s);
int screen_pointer(struct screen *s, int *x, int *y);

struct screen_window { /* of a program, inside what the window manager puts around it; texts are UTF-8 */
    unsigned long id;  /* 0: none, and all else is empty */
    char title[512], class[128];
    char program[256]; /* file of the process that it says it belongs to, when that is on this machine */
    struct screen_rect rect;
};
/* What an event at this place of the root window would reach, and what has the keyboard.  0; -1: the display
 * is lost. */
int screen_window_at(struct screen *s, int x, int y, struct screen_window *out);
int screen_window_with_keys(struct screen *s, struct screen_window *out);
/* Where a window is on the root window; -1: it is gone. */
int screen_window_rect(struct screen *s, unsigned long id, struct screen_rect *out);
/* Whether the window is there and seen at this place of the root window. */
bool screen_window_covers(struct screen *s, unsigned long id, int x, int y);

/* ---- hands: 0 done, -1 failed (e->kind ERR_STOPPED when the stop flag was seen) ---------------- */

/* Whether they are ours to move: -1 with the number of the process that has them. */
int screen_hands(struct screen *s, struct err *e);

int screen_move(struct screen *s, int x, int y, struct err *e);
int screen_button(struct screen *s, int button, bool down, struct err *e);
int screen_click(struct screen *s, int x, int y, int button, int count, struct err *e); /* x < 0: in place */
/* Along n points x0 y0 x1 y1 ..., in ms (0: 500) plus rests at both ends. */
int screen_drag(struct screen *s, const int *xy, int n, int button, int ms, struct err *e);
int screen_scroll(struct screen *s, int dx, int dy, struct err *e); /* wheel clicks at the pointer */
int screen_key(struct screen *s, uint32_t keysym, bool down, struct err *e);
/* Down in order, up in reverse; what was held before stays held. */
int screen_chord(struct screen *s, const uint32_t *keysyms, int n, struct err *e);
/* Any valid UTF-8 without control characters; newline is Return, tab is Tab (else ERR_USAGE). */
int screen_type(struct screen *s, const char *utf8, size_t len, struct err *e);
/* With keys only, never through the clipboard; no message tells of its characters. */
int screen_type_secret(struct screen *s, const char *utf8, size_t len, struct err *e);
int screen_wait(struct screen *s, double ms, struct err *e); /* sleeps, watching the stop flag */
int screen_release_all(struct screen *s); /* all we hold, safe at any time; 1 when there was something */
int screen_activate_window(struct screen *s, unsigned long id, struct err *e); /* through libxdo */
int64_t screen_events_sent(const struct screen *s);

/* ---- stopping -------------------------------------------------------------------------------- */

/* The flag of a screen: hands and waits look at it, and so does everything that is done for its run (generation).  0 go
 * on, else why: a signal number, or STOP_* below.  Whoever wants this run to end writes it; a signal handler may.
 * The pointer is good for as long as the screen is open.  NULL: that of the process, for where there is no screen. */
enum { STOP_FILE = 1000, STOP_HUMAN = 1001, STOP_CORNER = 1002, STOP_HANG = 1003 };
volatile int *screen_stop_flag(const struct screen *s);

/* Sets the process's flag and those of all screens, also of those that are opened later.  0 takes it back.  A signal
 * handler may call it, and ours does. */
void screen_stop_all(int why);

/* From 1 on in the order of opening, the N of the file "stop-PID-N". */
int screen_number(const struct screen *s);

/* From this time on (clock_ns()) hands and waits fail with ERR_TIME, in the middle of what they do; 0: never. */
void screen_deadline(struct screen *s, int64_t ns);

/* From now on a person stops the run with Escape twice within 0.6 s on this display (what we press does
 * not count), or by writing a file into the runtime folder: "stop" for all runs, "stop-PID" for those of this process, "stop-PID-N"
 * for this one (N: screen_number()).  What is pressed then goes up at once, whatever this process is busy with.  Ends with
 * screen_close().  -1 with the reason when nobody can listen here; everything else works all the same.
 *
 * With a watch a server that hangs is given up, as if it were lost: after 30 s, and after 2 s once the screen is to stop,
 * is past its deadline, or is being closed.  Without one calls wait for such a server for ever. */
int screen_watch(struct screen *s, struct err *e);

/* Presses and releases a key that means nothing and waits until the watch has seen it: -1 when this server keeps
 * from us what others press, so that Escape twice would do nothing.  Needs the hands. */
int screen_watch_check(struct screen *s, struct err *e);

/* With screen_options.heed_person and a watch: what a person did since the last screen_yield(), "keyboard" or "pointer",
 * NULL: nothing.  Until then hands fail with ERR_FAILED. */
const char *screen_person(const struct screen *s);
/* Waits until that person has been quiet for so long, or max_ms are over.  -1: stopped. */
int screen_yield(struct screen *s, double quiet_ms, double max_ms, struct err *e);

/* A process beside this one that releases what is pressed when this one is killed, stopped or hangs for 2 s in the
 * middle of an action, on each display for itself: before any thread is started (and after XAUTHORITY is what it shall
 * be), and the end after the last screen_close().  guard.h. */
int screen_guard(struct err *e);
void screen_guard_end(void);
void screen_acting(struct screen *s, bool yes); /* an action begins, or is over */

/* SIGINT, SIGTERM, SIGHUP, SIGUSR1 stop all screens (a second one ends the process after releasing keys);
 * die() and bug() release what is held. */
void screen_install_signals(void);

#endif
