/* screen_ops.h - the interface of a display system; X11 is the only implementation (x11/x11.c).
 *
 * Above this table are views, settling, the comparison with the observed screen, the pauses of clicks and
 * drags, chords, stop flags and deadlines. Below it are the connection, pixels, events, windows and
 * selections. Coordinates are root pixels; window ids are those of struct screen_window.
 *
 * An implementation keeps its state behind a pointer of its own in struct screen. It sets screen.lost when
 * the connection is lost; the callers check that before and after each call. */
#pragma once

#include "screen/screen.h"

enum { SCREEN_TOPS = 256 };

struct screen_top { /* a visible top-level window, with its frame */
    unsigned long id;
    struct screen_rect rect;
    bool popup; /* bypasses the window manager: a menu, a launcher */
};

struct screen_pointer {
    int x, y;
    unsigned long top; /* top-level window under the pointer; 0: none */
    unsigned others;   /* buttons that somebody else holds, bit 0 for button 1 */
};

/* whether the focused program has consumed the keys sent to it; NOBODY: no window accepts keys */
enum delivery { DELIVERY_DONE, DELIVERY_UNKNOWN, DELIVERY_NOBODY, DELIVERY_BEHIND };

struct screen_text { /* to be typed */
    const char *utf8;
    size_t len;
    const uint32_t *keysyms;
    size_t n;
    bool secret; /* never on a selection, and no character of it in an error message */
};

struct screen_ops {
    const char *name;

    /* ---- process ---- */

    void (*init)(void); /* Prepares for several threads; call it before the first open(). */
    /* Releases everything on all displays of this process. Waits at most 1.5 s for servers to respond. Not
     * for signal handlers. */
    void (*emergency)(void);

    /* ---- connection ---- */

    /* Connects; sets screen.name and screen.fd. After a failure close() is called. */
    int (*open)(struct screen *s, const char *display, struct err *e);
    /* Releases and restores everything, and disconnects. */
    void (*close)(struct screen *s);
    void (*describe)(struct screen *s, struct buf *out); /* see screen_describe() */
    bool (*pump)(struct screen *s); /* Handles pending events. Returns whether there were any. */
    /* Reads screen.root_rect and screen.monitors. Returns -1 if the system does not report them. */
    int (*outputs)(struct screen *s);
    int (*acquire)(struct screen *s, struct err *e); /* see screen_acquire_input() */
    int (*watch)(struct screen *s, struct err *e);   /* see screen_watch(); calls screen_note_user() */
    int (*watch_check)(struct screen *s, struct err *e);

    /* ---- pixels ---- */

    /* Captures an area of the root as rgb [h][w][3]. The area must lie inside the root. */
    int (*capture)(struct screen *s, struct screen_rect r, uint8_t *rgb, struct err *e);
    /* Converts the pixels of the last capture() again, without a request to the server. Returns false if it
     * was not an area of w x h pixels. */
    bool (*recall)(struct screen *s, int w, int h, uint8_t *rgb);
    /* Draws the pointer into an image of the view. */
    void (*draw_cursor)(struct screen *s, struct image *im);
    /* Lists areas that were redrawn since the last call; the last one covers all further areas. Returns their
     * number, at most max; -1: redraws are not reported. */
    int (*redrawn)(struct screen *s, struct screen_rect *out, int max);
    /* Lists local processes that draw: the server, and those of the windows with the keyboard and under the
     * pointer. Returns their number. */
    int (*drawing_pids)(struct screen *s, int pids[3]);

    /* ---- pointer ---- */

    /* Returns false if the pointer is on another screen; then only `others` is valid. */
    bool (*pointer)(struct screen *s, struct screen_pointer *out);
    bool (*user_holds_button)(struct screen *s); /* Returns whether a device of the user holds any button. */
    /* Returns the number of a logical button for the functions below (4 to 7: the wheel); 0: none. */
    int (*find_button)(struct screen *s, int button);
    /* Send one event, between input_begin() and input_end(). */
    void (*motion)(struct screen *s, int x, int y);
    void (*button)(struct screen *s, int number, bool down);
    /* Enclose a press and its release. Return -1 with e if another program would receive or received it. */
    int (*press_begin)(struct screen *s, struct err *e);
    int (*press_end)(struct screen *s, struct err *e);
    /* Waits until nobody else holds a modifier or button, and clears settings of the user that change
     * clicks. */
    int (*prepare)(struct screen *s, struct err *e);
    /* Restores these settings once none of our keys or buttons is down. */
    void (*restore)(struct screen *s);

    /* ---- keys and buttons that are down ---- */

    void (*lock)(struct screen *s, bool on); /* While locked, no other thread releases keys or buttons. */
    bool (*release)(struct screen *s);       /* see screen_release_all() */
    /* Returns whether this program holds a button (0: any). */
    bool (*holds_button)(const struct screen *s, int number);
    bool (*holds_key)(const struct screen *s, uint32_t keysym);
    int (*count_keys)(const struct screen *s); /* Returns the number of keys that this program holds. */

    /* ---- keys and text ---- */

    /* Presses or releases a key. leave_locks: Caps Lock and the like stay on. */
    int (*key)(struct screen *s, uint32_t keysym, bool down, bool leave_locks, struct err *e);
    int (*type)(struct screen *s, const struct screen_text *t, struct err *e);
    uint32_t (*shifted)(struct screen *s, uint32_t keysym); /* see screen_shifted() */
    /* Finds the program that receives keys; call it before the first key of those that keys_wait() is about.
     * Returns -1 with e if stopped or the display is lost. */
    int (*keys_begin)(struct screen *s, struct err *e);
    /* Waits until that program has consumed all keys sent so far; DELIVERY_BEHIND: not within max_ms. */
    int (*keys_wait)(struct screen *s, double max_ms, enum delivery *out, struct err *e);
    /* Asks the focused program for a sign of life. *late: none, or only after 60 ms. */
    int (*ping)(struct screen *s, double max_ms, bool *late, struct err *e);
    bool (*confirms)(struct screen *s); /* Returns whether the focused program answers pings. */
    /* Waits up to max_ms until the program under the pointer has read all events so far. *answered: it
     * has. */
    int (*hover)(struct screen *s, double max_ms, bool *answered, struct err *e);
    /* Waits until that program and the window manager have processed a click: up to 2 s for its answer, then
     * until they have worked for max_ms, or for 2 s in which they are stopped or wait for a CPU.
     * *processed: it is known that they have. Both return -1 with e if stopped or the display is lost. */
    int (*clicked)(struct screen *s, double max_ms, bool *processed, struct err *e);
    /* Waits until the program that receives keys is at rest, or has worked for max_ms. Returns at once if its
     * process is unknown. *rests: it is at rest. Returns -1 with e if stopped or the display is lost. */
    int (*keys_rest)(struct screen *s, double max_ms, bool *rests, struct err *e);

    /* ---- windows ---- */

    /* Lists the visible top-level windows, topmost first. Returns their number. */
    int (*tops)(struct screen *s, struct screen_top out[SCREEN_TOPS]);
    /* Lists the windows at a point from the top-level window down. Returns their number, at most max. */
    int (*chain)(struct screen *s, int x, int y, unsigned long *out, int max);
    /* Describe the window with this id (-1: gone), at a point, with the keyboard, of a class (-1: none). */
    int (*window)(struct screen *s, unsigned long id, struct screen_window *out);
    void (*window_at)(struct screen *s, int x, int y, struct screen_window *out);
    void (*focused)(struct screen *s, struct screen_window *out);
    int (*find_window)(struct screen *s, const char *class, const char *title, struct screen_window *out);
    int (*window_rect)(struct screen *s, unsigned long id, struct screen_rect *out, bool *visible);
    /* Removes the shadow that a program draws around its own frame. */
    struct screen_rect (*without_shadow)(struct screen *s, const struct screen_window *w);
    unsigned long (*focus)(struct screen *s, unsigned *opened); /* see screen_focus() */
    unsigned long (*focus_top)(struct screen *s); /* Returns the top-level window that receives keys, or 0. */
    int (*active_window)(struct screen *s, char *title, size_t title_size, char *class, size_t class_size);
    int (*each_window)(struct screen *s, bool (*visit)(void *arg, const char *title, const char *class),
                       void *arg);
    bool (*has_window_manager)(struct screen *s);

    /* ---- selections ---- */

    int (*selection)(struct screen *s, bool primary, char **text); /* see screen_selection() */
    /* Takes the primary selection with nothing to offer, or gives it up. */
    void (*take_primary)(struct screen *s, bool on);
    bool (*primary_taken)(struct screen *s); /* Returns whether a program has taken it over. */
};

extern const struct screen_ops screen_x11;
