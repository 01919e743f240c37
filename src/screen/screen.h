/* screen.h - one X11 display: screenshots, windows, keyboard and pointer input.
 *
 * Coordinates are pixels of the root window. A `struct screen` owns one Display connection and is used
 * from one thread; a process may open many. X errors never end the process: each is trapped around the
 * call that causes it. If the connection is lost, every later call on that screen fails with ERR_ENV
 * "display ':1' was lost".
 *
 * Input checks the stop flag before every event (screen_stop_flag). Each press is recorded in memory and
 * in a file before it is sent, so every key and button is released, if necessary by the next process that
 * opens the display. Only one process at a time may send input to a display; in all others input fails
 * with the number of that process. */
#pragma once

#include "base/err.h"
#include "base/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct screen;

struct screen_options {
    const char *display; /* NULL: $DISPLAY */
    const char *view;    /* NULL or "all": whole root; monitor name or number; "window:ID"; "active" */
    bool cursor;         /* draw the pointer into screenshots */
    bool no_shm;         /* do not use MIT-SHM, only XGetImage */
    /* ms after each character, if own_key_delay is set; else none if the program confirms that it has read
     * its keys, and 5 ms if it does not */
    double key_delay_ms;
    bool own_key_delay;
    double keymap_settle_ms; /* after each change of the keyboard map; 0: 50 ms */
    bool pause_on_user;      /* user input interrupts an action; see screen_user_input() */
    bool corner_stop; /* stop the run when the user leaves the pointer in the top left corner for 1 s */
};

/* Opens a display. Returns NULL with e if DISPLAY is not set, the session is Wayland, the server lacks
 * XTEST or XKEYBOARD, or the view does not exist. */
struct screen *screen_open(const struct screen_options *o, struct err *e);
/* Releases keys and buttons, restores the keyboard map and closes the display. NULL is allowed. */
void screen_close(struct screen *s);

struct screen_rect {
    int x, y, w, h;
};
/* Returns the intersection of two rectangles; w or h is 0 if they do not overlap. */
struct screen_rect screen_rect_intersect(struct screen_rect a, struct screen_rect b);
/* Returns the smallest rectangle around both. */
struct screen_rect screen_rect_join(struct screen_rect a, struct screen_rect b);
bool screen_rect_contains(struct screen_rect r, int x, int y);
struct screen_rect screen_view(const struct screen *s); /* what captures show, in root pixels */
/* Re-reads the view rectangle, because windows move and monitors change. Returns -1 with e if the viewed
 * window or monitor no longer exists. */
int screen_view_now(struct screen *s, struct screen_rect *out, struct err *e);
/* Returns whether the last screenshot shows the screen at its pixel x, y. The view "active" paints over
 * all pixels outside the window and its popups. */
bool screen_shows(const struct screen *s, int x, int y);
struct screen_rect screen_root(const struct screen *s); /* Returns the rectangle of the root window. */
/* Returns whether the point is on a monitor, not in a gap between monitors. */
bool screen_visible(const struct screen *s, int x, int y);
/* Returns the display name, for example ":1"; owned by s. */
const char *screen_name(const struct screen *s);

/* Appends one "key: value" line per fact, for example "xtest: 2.2" or "shm: yes", for doctor and run.json. */
struct buf;
void screen_describe(struct screen *s, struct buf *out);

/* ---- screenshots and windows ---------------------------------------------------------------------- */

/* Takes a screenshot; allocates *out or reuses it. */
int screen_capture(struct screen *s, struct image *out, struct err *e);

struct settle {
    /* Milliseconds; negative or NAN selects the default: 300 for quiet; 150 for min, and quiet if that is
     * less; 3000 for max, and 2700 more than quiet if that is more. */
    double min_ms, quiet_ms, max_ms;
    /* Returns whether a screenshot of the view, which it may change, shows the screen that the caller waits
     * for. Then the wait ends at once (settle.c). NULL: no screen is expected. */
    bool (*known)(void *arg, struct image *frame);
    void *arg;
};
/* Returns *p with the defaults in place of negative values and NAN; NULL: only defaults. */
struct settle settle_limits(const struct settle *p);
struct settled {
    double ms;
    const char *why; /* "known", "quiet", "stable", "timeout" or "stopped"; "early": the wait continues */
};
/* Waits until the screen stops changing (settle.c). After a stop returns -1 with ERR_STOPPED, and *out is
 * still filled ("stopped"). */
int screen_settle(struct screen *s, const struct settle *p, struct settled *out, struct err *e);

/* The same wait in parts; between them the caller may use the screen. */
struct settle_run;
struct settle_run *settle_begin(struct screen *s, const struct settle *p);
/* Waits until the wait is over, or nothing was redrawn for quiet_ms (0: only that) except in areas that
 * change by themselves. Returns -1 with e. */
int settle_pause(struct settle_run *w, double quiet_ms, struct err *e);
/* Checks once for redraws. Returns the ms to sleep before the next call, or -1 with e. */
double settle_look(struct settle_run *w, struct err *e);
/* Returns whether the wait is over, and its result in *out. */
bool settle_over(const struct settle_run *w, struct settled *out);
/* Continues a wait that ended "quiet" or "stable" until the screen changes, for up to ms; then the usual
 * limits apply again. Returns false, without effect, after another end. */
bool settle_await_change(struct settle_run *w, double ms);
const struct image *settle_shown(const struct settle_run *w); /* The view at the last check, borrowed. */
/* Returns the smallest rectangle around all redraws in the view since the last call, without known carets; w
 * is 0 if there were none. */
struct screen_rect settle_redrawn(struct settle_run *w);
void settle_end(struct settle_run *w); /* NULL is allowed. */
/* Returns whether all that differs between two screenshots is how the element at (x, y) shows that it was
 * pressed: its colour and border. A text cursor or another shape in it counts as more (feedback.c). */
bool screen_only_feedback(const struct image *before, const struct image *now, int x, int y);

/* Reads the title and class of the active window, or without a window manager of the window under the
 * pointer. UTF-8, truncated to the buffer sizes. Returns -1 if none was found or the display is lost. */
int screen_active_window(struct screen *s, char *title, size_t title_size, char *wm_class, size_t class_size);
/* Calls visit for each visible window with a title or class, topmost first. Returns 1 as soon as visit
 * returns true, 0 after all windows, -1 with e if the display is lost. visit must not make X requests. */
int screen_each_window(struct screen *s, bool (*visit)(void *arg, const char *title, const char *class),
                       void *arg, struct err *e);
/* Returns whether a window manager is running. Maps a 1x1 window for up to 150 ms to find out. */
bool screen_has_window_manager(struct screen *s);
int screen_pointer(struct screen *s, int *x, int *y);

struct screen_window { /* an application window without the window manager's frame; texts are UTF-8 */
    unsigned long id;  /* 0: no window; all other members are then empty */
    char title[512], class[128];
    char program[256]; /* executable of the process that the window names; "": unknown or remote */
    int pid;           /* process id; 0: unknown */
    bool dialog;
    struct screen_rect rect;
};
/* Finds the window that would receive a pointer event at this point, or the window with the keyboard
 * focus. Returns -1 if the display is lost. */
int screen_window_at(struct screen *s, int x, int y, struct screen_window *out);
int screen_focused_window(struct screen *s, struct screen_window *out);
/* Finds the topmost visible window of this class; windows with this title come first. Returns -1 if there
 * is none. */
int screen_find_window(struct screen *s, const char *class, const char *title, struct screen_window *out);
/* Reads the window's rectangle in root pixels. Returns -1 if the window no longer exists. */
int screen_window_rect(struct screen *s, unsigned long id, struct screen_rect *out);
/* Returns the innermost descendant of window `id` at the centre of r that contains all of r (root pixels),
 * or `id` if there is none. */
unsigned long screen_window_around(struct screen *s, unsigned long id, struct screen_rect r);
/* Returns whether the window exists and is the visible one at this point. */
bool screen_window_covers(struct screen *s, unsigned long id, int x, int y);

/* ---- clipboard and input target -------------------------------------------------------------------- */

/* Reads the text that the middle button (primary) or Ctrl+V would paste; the caller frees it. "" if nothing
 * is selected. Returns -1 if its owner does not answer within 0.3 s or the selection is not text. */
int screen_selection(struct screen *s, bool primary, char **text);
/* Lists visible windows that bypass the window manager and have a class, topmost first: menus, and
 * launchers, which take the keyboard without having the focus. Returns their number, at most max. */
int screen_overlays(struct screen *s, struct screen_window *out, int max);
/* Returns whether the window's process has a child on a pseudo-terminal: a terminal emulator, or an editor
 * that contains one. */
bool screen_has_shell(const struct screen_window *w);
/* Returns the X input focus; 0: the window under the pointer, or none. *opened: number of
 * override-redirect windows mapped so far (see screen_overlays()). Costs one request. */
unsigned long screen_focus(struct screen *s, unsigned *opened);
/* Sets a function that is called before each event; if it returns -1, the event is not sent. NULL removes
 * it. */
void screen_set_check(struct screen *s, int (*check)(void *arg, struct err *e), void *arg);
/* Sets a function that returns whether the focused element of the window with this title is a text field, as
 * far as the program describes it. It is called before a text is replaced in a program with a terminal, like
 * an editor's search field. */
void screen_set_is_field(struct screen *s, bool (*is_field)(void *arg, const char *title), void *arg);

/* ---- input: returns 0, or -1 with e (ERR_STOPPED if the stop flag is set) ------------------------- */

/* Locks this display's input. Returns -1 with e, which names the process that holds the lock. */
int screen_acquire_input(struct screen *s, struct err *e);

int screen_move(struct screen *s, int x, int y, struct err *e);
int screen_button(struct screen *s, int button, bool down, struct err *e);
int screen_click(struct screen *s, int x, int y, int button, int count,
                 struct err *e); /* x < 0: at the current position */
/* Waits after a click until the program and the window manager have processed it: then a dialog that it opens
 * has the keyboard. Takes at most 4 s, and 120 ms if their state cannot be known. */
int screen_click_done(struct screen *s, struct err *e);
/* Drags along n points x0 y0 x1 y1 ... in ms (0: 500) plus pauses at both ends. */
int screen_drag(struct screen *s, const int *xy, int n, int button, int ms, struct err *e);
/* Turns the wheel at the pointer by dx, dy clicks. */
int screen_scroll(struct screen *s, int dx, int dy, struct err *e);
int screen_key(struct screen *s, uint32_t keysym, bool down, struct err *e);
/* Presses the keys in order and releases them in reverse. Keys that were held before stay held. */
int screen_chord(struct screen *s, const uint32_t *keysyms, int n, struct err *e);
/* Waits until the focused program has read all keys, but at most max_ms; max_ms if it does not answer
 * pings. */
int screen_keys_read(struct screen *s, double max_ms, struct err *e);
/* Types valid UTF-8. Newline is Return and tab is Tab; other control characters fail with ERR_USAGE. */
int screen_type(struct screen *s, const char *utf8, size_t len, struct err *e);
/* Types a secret with keys only, never through the clipboard. Error messages do not contain its
 * characters. */
int screen_type_secret(struct screen *s, const char *utf8, size_t len, struct err *e);
/* Replaces the text of the focused field and reads the field back. *confirmed: the field contains this
 * text, up to the first line end or tab. It is false if the field cannot be read, like a password field,
 * or if the field was to be emptied and may have been empty already. Fails if the field contains another
 * text; in terminals, modal editors and spreadsheets it fails without pressing a key. Secrets are not read
 * back. */
int screen_overwrite(struct screen *s, const char *utf8, size_t len, bool secret, bool *confirmed,
                     struct err *e);
/* Writes the index-th chord that selects the text of a field. Returns its number of keys, or 0 after the
 * last chord. */
int screen_overwrite_keys(int index, uint32_t keys[3]);
/* regular expression, case-insensitive, for window classes and program names */
extern const char screen_terminal_classes[];
/* Sleeps for ms. A stop or the loss of the connection ends the sleep at once. */
int screen_wait(struct screen *s, double ms, struct err *e);
/* Returns the keysym that the key of `keysym` produces with Shift on the current keyboard map; 0: unknown. */
uint32_t screen_shifted(struct screen *s, uint32_t keysym);
/* Releases all keys and buttons; may be called at any time. Returns 1 if any was held. */
int screen_release_all(struct screen *s);
int64_t screen_events_sent(const struct screen *s);

/* ---- stopping -------------------------------------------------------------------------------- */

/* Returns the stop flag of a screen, which input, waits and generation check. 0: continue; otherwise the
 * reason, a signal number or STOP_*. Any thread or signal handler may write it. Valid while the screen is
 * open. NULL: the flag of the process, for work without a screen. */
enum { STOP_FILE = 1000, STOP_HUMAN, STOP_CORNER, STOP_HANG, STOP_GUARD, STOP_HOST };
volatile int *screen_stop_flag(const struct screen *s);

/* Sets the flag of the process and of all screens, including those opened later; 0 resets them.
 * Async-signal-safe. */
void screen_stop_all(int why);

/* Stops one screen, from any thread, and wakes its input monitor. The screen must stay open during the
 * call. */
void screen_stop(struct screen *s, int why);

/* Returns the N of the file "stop-PID-N": 1 for the first screen opened. */
int screen_number(const struct screen *s);

/* Sets the time (clock_ns()) from which input and waits fail with ERR_TIME, even within an action; 0:
 * never. */
void screen_deadline(struct screen *s, int64_t ns);

/* Starts the input monitor of this screen (watch.c). The user can then stop the run with Escape twice
 * within 0.6 s on this display (our own key events do not count), or with a file in the runtime directory:
 * "stop" for all runs, "stop-PID" for those of this process, "stop-PID-N" for this screen
 * (screen_number()). Keys and buttons are released at once, even if this process is busy. Ends with
 * screen_close(). Returns -1 with e if this is not possible; all other functions still work.
 *
 * With an input monitor, an unresponsive server is treated as lost after 30 s, or after 2 s if the screen
 * is stopped, past its deadline or closing. Without one, calls wait for such a server indefinitely. */
int screen_watch(struct screen *s, struct err *e);

/* Sends the release of an unmapped key and waits until the input monitor has seen it. Returns -1 with e if
 * this server does not report key events, so that Escape twice has no effect. Needs
 * screen_acquire_input(). */
int screen_watch_check(struct screen *s, struct err *e);

/* Root window properties of a desktop with VNC viewers. The first is set while viewers may connect; a run
 * then pauses on user input without being asked. The second changes when a viewer returns control. */
#define SCREEN_VIEWED    "_HOLORUN_VIEWED"
#define SCREEN_HAND_BACK "_HOLORUN_HAND_BACK"

/* Returns "keyboard" or "pointer", the device that the user has used since the last
 * screen_wait_for_user(), or NULL. Needs screen_options.pause_on_user and an input monitor. While it is
 * not NULL, input fails with ERR_FAILED. */
const char *screen_user_input(const struct screen *s);
/* Waits until the user has sent no input for quiet_ms. Returns -1 with e if stopped. */
int screen_wait_for_user(struct screen *s, double quiet_ms, struct err *e);

/* Starts the watchdog process (guard.h) that releases keys and buttons when this process is killed,
 * stopped, or hangs for 2 s during an action. Call it before any thread is started and after XAUTHORITY is
 * set; call screen_guard_end() after the last screen_close(). */
int screen_guard(struct err *e);
void screen_guard_end(void);
void screen_set_acting(struct screen *s, bool yes); /* Marks the begin or the end of an action. */

/* Installs handlers: SIGINT, SIGTERM, SIGHUP and SIGUSR1 stop all screens (a second one ends the process
 * after releasing keys); die() and bug() release keys and buttons. */
void screen_install_signals(void);
