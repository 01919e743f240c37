/* screen.h - one X11 display: captures, windows, keyboard and pointer input.
 *
 * Coordinates are root-window pixels.  A `struct screen` owns one Display connection and is used from one
 * thread; a process may open many.  X errors never end the process: they are trapped around the exact call;
 * a lost connection makes every later call on that screen fail with ERR_ENV "display ':1' was lost".
 *
 * Input checks the stop flag before every single event (screen_stop_flag), and records what it presses in
 * memory and in a file before it presses it: what was pressed is always released, if need be by the next
 * start.  One process at a time sends input to a display; in others input fails with the number of that
 * process.
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
    const char *view;    /* NULL or "all": whole root; monitor name or number; "window:ID"; "active" */
    bool cursor;         /* draw the pointer into captures */
    bool no_shm;         /* XGetImage only */
    double key_delay_ms, keymap_settle_ms; /* 0: defaults 5, 50 */
    bool heed_person;                      /* a person's input breaks off an action; see screen_person() */
    bool corner_stop; /* a person who rests the pointer in the top left corner stops the run */
};

/* NULL with the reason: no DISPLAY, a Wayland session, no XTEST, no such view. */
struct screen *screen_open(const struct screen_options *o, struct err *e);
void screen_close(struct screen *s); /* releases keys and buttons, restores the keymap; NULL is fine */

struct screen_rect {
    int x, y, w, h;
};
/* The common part; w or h is 0 when there is none. */
struct screen_rect screen_rect_intersect(struct screen_rect a, struct screen_rect b);
/* Returns the smallest rectangle around both. */
struct screen_rect screen_rect_join(struct screen_rect a, struct screen_rect b);
bool screen_rect_contains(struct screen_rect r, int x, int y);
struct screen_rect screen_view(const struct screen *s); /* what captures show, in root pixels */
/* The same, read again: windows move, monitors come and go.  -1: it is gone. */
int screen_view_now(struct screen *s, struct screen_rect *out, struct err *e);
/* Returns whether the last capture shows the screen at its pixel x, y; the view "active"
 * paints over all pixels outside the window and its popups. */
bool screen_shows(const struct screen *s, int x, int y);
struct screen_rect screen_root(const struct screen *s);    /* the whole root window */
bool screen_visible(const struct screen *s, int x, int y); /* on some monitor, not in a gap between them */
const char *screen_name(const struct screen *s);           /* ":1" */

/* Facts for doctor and run.json, one "key: value" per line, e.g. "xtest: 2.2", "shm: yes". */
struct buf;
void screen_describe(struct screen *s, struct buf *out);

/* ---- capture and windows --------------------------------------------------------------------- */

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

/* Active window (or the one under the pointer without a window manager): title and class, UTF-8, cut to
 * size. */
int screen_active_window(struct screen *s, char *title, size_t title_size, char *wm_class, size_t class_size);
/* Calls visit for each visible window that has a title or a class, topmost first, until it returns true: 1;
 * 0: for all; -1: the display is lost.  visit makes no X request. */
int screen_each_window(struct screen *s, bool (*visit)(void *arg, const char *title, const char *class),
                       void *arg, struct err *e);
/* Whether a window manager runs; maps a tiny window for a moment.  Takes up to 150 ms. */
bool screen_has_window_manager(struct screen *s);
int screen_pointer(struct screen *s, int *x, int *y);

struct screen_window { /* a program's window, without the window manager's frame; texts are UTF-8 */
    unsigned long id;  /* 0: none, and all else is empty */
    char title[512], class[128];
    char program
        [256]; /* executable of the process it claims to belong to; "": unknown or on another machine */
    int pid;   /* of that process; 0: unknown */
    bool dialog;
    struct screen_rect rect;
};
/* The window that an event at this point would reach, and the one that has the keyboard.  -1: the display
 * is lost. */
int screen_window_at(struct screen *s, int x, int y, struct screen_window *out);
int screen_focused_window(struct screen *s, struct screen_window *out);
/* The topmost visible window of this class, one with this title before others.  -1: there is none. */
int screen_find_window(struct screen *s, const char *class, const char *title, struct screen_window *out);
/* The window's rectangle in root pixels; -1: it is gone. */
int screen_window_rect(struct screen *s, unsigned long id, struct screen_rect *out);
/* The innermost window that contains the rectangle (root pixels), within the window `id`, as seen at the
 * rectangle's centre; `id` itself when there is none. */
unsigned long screen_window_around(struct screen *s, unsigned long id, struct screen_rect r);
/* Whether the window exists and is the visible one at this point. */
bool screen_window_covers(struct screen *s, unsigned long id, int x, int y);

/* ---- what is written, and what gets it (receiver.c) -------------------------------------------- */

/* The text that the middle button (primary) or Ctrl+V would paste, owned by the caller; "" when there is
 * none. -1: not known, as its owner does not answer within 0.3 s, or it is no text. */
int screen_selection(struct screen *s, bool primary, char **text);
/* Visible windows that the window manager does not manage and that have a class, topmost first: menus, and
 * launchers, which take the keyboard without having the focus.  Returns how many. */
int screen_overlays(struct screen *s, struct screen_window *out, int max);
/* Whether the window's process has a child on a pseudo-terminal: a terminal, or an editor with one. */
bool screen_has_shell(const struct screen_window *w);
/* The window with the focus, as the server has it; 0: the one under the pointer, or none.  *opened: how
 * many windows of the kind of screen_overlays() have opened so far.  One request. */
unsigned long screen_focus(struct screen *s, unsigned *opened);
/* Called before each event until it is set to NULL; -1 refuses the event. */
void screen_set_check(struct screen *s, int (*check)(void *arg, struct err *e), void *arg);

/* ---- input: 0 done, -1 failed (e->kind ERR_STOPPED when the stop flag is set) ------------------ */

/* Takes the lock on this display's input; -1 with the number of the process that has it. */
int screen_acquire_input(struct screen *s, struct err *e);

int screen_move(struct screen *s, int x, int y, struct err *e);
int screen_button(struct screen *s, int button, bool down, struct err *e);
int screen_click(struct screen *s, int x, int y, int button, int count, struct err *e); /* x < 0: in place */
/* Along n points x0 y0 x1 y1 ..., in ms (0: 500) plus pauses at both ends. */
int screen_drag(struct screen *s, const int *xy, int n, int button, int ms, struct err *e);
int screen_scroll(struct screen *s, int dx, int dy, struct err *e); /* wheel clicks at the pointer */
int screen_key(struct screen *s, uint32_t keysym, bool down, struct err *e);
/* Presses in order, releases in reverse; keys held before stay held. */
int screen_chord(struct screen *s, const uint32_t *keysyms, int n, struct err *e);
/* Any valid UTF-8 without control characters; newline is Return, tab is Tab (else ERR_USAGE). */
int screen_type(struct screen *s, const char *utf8, size_t len, struct err *e);
/* With keys only, never through the clipboard; no message mentions its characters. */
int screen_type_secret(struct screen *s, const char *utf8, size_t len, struct err *e);
/* Replaces the text of the field that has the keyboard, and reads it back.  *confirmed: the field has this
 * text up to its first line end or tab; false: it cannot be read, as a password field, or may have been empty
 * before it was to be emptied.  Fails when the field reads otherwise, and in terminals, modal editors and
 * spreadsheets, where nothing is pressed.  A secret is not read back. */
int screen_overwrite(struct screen *s, const char *utf8, size_t len, bool secret, bool *confirmed,
                     struct err *e);
/* The chords with which it selects, in order: how many keys; 0: no more. */
int screen_overwrite_keys(int index, uint32_t keys[3]);
extern const char screen_terminal_classes[]; /* a pattern for window classes and programs, of any case */
int screen_wait(struct screen *s, double ms, struct err *e); /* sleeps, checking the stop flag */
/* The keysym that the key of this one gives while Shift is down, on the keyboard of now; 0: not known. */
uint32_t screen_shifted(struct screen *s, uint32_t keysym);
int screen_release_all(struct screen *s); /* safe at any time; 1 when something was held */
int64_t screen_events_sent(const struct screen *s);

/* ---- stopping -------------------------------------------------------------------------------- */

/* The flag of a screen, checked by input, waits and generation.  0: go on, else the reason: a signal
 * number, or STOP_* below.  Anybody may write it, also a signal handler.  The pointer is valid while the
 * screen is open.  NULL: the process's flag, for work without a screen. */
enum { STOP_FILE = 1000, STOP_HUMAN, STOP_CORNER, STOP_HANG, STOP_GUARD, STOP_HOST };
volatile int *screen_stop_flag(const struct screen *s);

/* Sets the process's flag and those of all screens, also of those opened later.  0 resets them.
 * Async-signal-safe. */
void screen_stop_all(int why);

/* Stops this one, from any thread, and wakes what waits for it.  The screen must stay open meanwhile. */
void screen_stop(struct screen *s, int why);

/* From 1 in the order of opening: the N of the file "stop-PID-N". */
int screen_number(const struct screen *s);

/* From this time on (clock_ns()) input and waits fail with ERR_TIME, even in the middle of an action; 0:
 * never. */
void screen_deadline(struct screen *s, int64_t ns);

/* From now on a person stops the run with Escape twice within 0.6 s on this display (our own key events do
 * not count), or with a file in the runtime folder: "stop" for all runs, "stop-PID" for those of this
 * process, "stop-PID-N" for this one (screen_number()).  Keys and buttons then go up at once, whatever this
 * process is busy with.  Ends with screen_close().  -1 with the reason when this is not possible;
 * everything else still works.
 *
 * With a watch a server that hangs is treated as lost: after 30 s, or after 2 s once the screen is stopped,
 * past its deadline or being closed.  Without a watch calls wait for such a server forever. */
int screen_watch(struct screen *s, struct err *e);

/* Sends the release of an unmapped key and waits until the watch has seen it: -1 when this server does not
 * report key events, so that Escape twice has no effect.  Needs screen_acquire_input(). */
int screen_watch_check(struct screen *s, struct err *e);

/* Properties of the root window of a desktop that viewers watch: the first is there as long as they may, and
 * a run then heeds persons unasked; the second changes when a viewer hands the desktop back. */
#define SCREEN_VIEWED    "_HOLORUN_VIEWED"
#define SCREEN_HAND_BACK "_HOLORUN_HAND_BACK"

/* With screen_options.heed_person and a watch: what a person has used since the last
 * screen_wait_for_person(), "keyboard" or "pointer"; NULL: nothing.  Until then input fails with
 * ERR_FAILED. */
const char *screen_person(const struct screen *s);
/* Waits until that person has done nothing for quiet_ms.  -1: stopped. */
int screen_wait_for_person(struct screen *s, double quiet_ms, struct err *e);

/* Starts the watchdog process (guard.h) that releases keys and buttons when this one is killed, stopped, or
 * hangs for 2 s during an action.  Call it before any thread is started and after XAUTHORITY is set, the
 * end after the last screen_close(). */
int screen_guard(struct err *e);
void screen_guard_end(void);
void screen_set_acting(struct screen *s, bool yes); /* an action begins, or is over */

/* SIGINT, SIGTERM, SIGHUP, SIGUSR1 stop all screens (a second one ends the process after releasing keys);
 * die() and bug() release keys and buttons. */
void screen_install_signals(void);

#endif
