/* private.h - struct screen and the functions shared by the files of this directory.
 *
 *   screen.c    open, close, facts          pointer.c         move, press, drag, wheel
 *   monitors.c  root, view, RandR           keyboard.c        keyboard map, single keys
 *   capture.c   screenshots (pixels.c)      modifiers.c       modifiers and locks of the user
 *   settle.c    damage, waiting             chords.c          single keys and chords
 *   window.c    titles, classes             typing.c          text
 *   hit_test.c  windows, their programs     spare_keycodes.c  borrowed keycodes for unmapped characters
 *   held.c      pressed keys and buttons    key_delivery.c    whether a program has consumed its keys
 *   paste.c     text through the clipboard  overwrite.c       replaces the text of a field and reads it back
 *   watch.c     input monitor: the user     cpu_wait.c        programs that wait for a CPU
 *   input_method.c  ibus and fcitx
 *   grabs.c     keyboard and pointer grabs of other programs
 *   event_target.c  selections, overlays, terminals
 *   input_owner.c   which process may send input to a display
 *   stop.c      stop flags                  stopfile.c        stop files
 *   guard.c     watchdog process            xtrap.c           X errors, lost connections
 *   observed.c  whether the screen has changed since the screenshot (observed_busy.c, observed_pixels.c) */
#ifndef HOLORUN_SCREEN_PRIVATE_H
#define HOLORUN_SCREEN_PRIVATE_H

#include "screen/held.h"
#include "screen/input_owner.h"
#include "screen/observed.h"
#include "screen/screen.h"
#include "screen/stop.h"
#include "screen/xtrap.h"

#include <X11/XKBlib.h>
#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/extensions/XShm.h>
#include <X11/extensions/Xdamage.h>
#include <X11/extensions/record.h>
#include <xdo.h>

enum {
    MAX_MONITORS = 32,
    MAX_BLINKERS = 16,
    MAX_SPARE = 32,
    MAX_DOWN = 16,
    HIT_TEST_DEPTH = 32,
    ACTIVE_SHOWN = 16,
    GRAB_CLIENTS = 16,
};

struct monitor {
    char name[64];
    struct screen_rect rect;
    bool primary;
};

struct blinker { /* a small area that is redrawn repeatedly: a text caret */
    struct screen_rect rect;
    int times;
    int64_t last_ns;
};

struct key_down { /* a press by screen_key(); its release must use the same keycodes */
    uint32_t keysym;
    int code, shift_code, group;
};

struct spare { /* a free keycode and the keysyms bound to it */
    uint8_t code;
    uint32_t keysym, shifted; /* without and with Shift; 0: none */
    unsigned since;           /* spare_clock at binding: the oldest binding is replaced first */
};

struct key_target {     /* the program that receives our keys */
    Window focus, ping; /* window with the focus; window of that program that answers _NET_WM_PING, or None */
    int pid;            /* used without ping; 0: unknown or on another machine */
    bool no_listener;   /* no window has the focus, or the focused window does not select key events */
};

struct screen {
    Display *dpy;
    char *name;
    Window root;
    Visual *visual;
    int depth;
    struct stop *stop;
    /* window that owns the selection _HOLORUN_DRIVER (input_owner.h); 0: not acquired */
    Window owner_window;
    atomic_bool lost, hung; /* the connection is lost; the input monitor has declared the server hung */
    struct screen_options options;
    char *view_name;

    /* first event numbers of the extensions, or 0 */
    int xtest_major, xtest_minor;
    bool shm, xfixes, xinput;
    int damage_event, randr_event, xkb_event;

    struct screen_rect root_rect, view;
    struct monitor monitors[MAX_MONITORS];
    int n_monitors;
    Window view_window; /* view "window:ID" */
    bool view_gone;     /* the view's monitor has been removed */
    struct active_view {
        Window window; /* 0: the whole root is shown */
        struct screen_rect rect;
        struct screen_rect shown[ACTIVE_SHOWN]; /* the window and its popups, relative to the view */
        int n_shown;
    } active; /* view "active" */

    /* capture.c */
    XImage *image;
    XShmSegmentInfo segment;
    const char *shm_why; /* why shm is false */

    /* settle.c */
    Damage damage;
    bool damage_waiting; /* XDamageNotify received, damage not yet fetched */
    struct blinker blinkers[MAX_BLINKERS];

    /* keyboard.c */
    XkbDescPtr map;
    bool map_stale;
    XkbStateRec state; /* as of keyboard_read() */
    uint64_t layout;   /* hash of the map without borrowed keycodes */
    unsigned layouts;  /* number of layout changes by other clients */
    int keyboard_id;   /* XInput id of the XTEST keyboard; 0: unknown */
    xdo_t *xdo;        /* NULL until first use, because libxdo then reads the whole keymap */
    struct key_down down[MAX_DOWN];

    /* spare_keycodes.c */
    struct spare spare[MAX_SPARE];
    int n_spare;
    unsigned spare_clock;

    /* key_delivery.c */
    struct key_target target;
    int ping, pong; /* number of the last ping sent, of the last ping answered */

    /* pointer.c */
    /* where this program last moved the pointer; -1: nowhere, or the user has moved it since */
    int put_x, put_y;

    struct grabs {     /* grabs.c */
        Window window; /* unmapped; None: not created yet */
        struct grab_record {
            Display *data;
            atomic_bool lost;
            XRecordContext context;
            bool on;
            int xinput; /* major opcode */
            XID clients[GRAB_CLIENTS];
            int n;
        } record;
        Window under[HIT_TEST_DEPTH]; /* windows that may receive the click */
        int n_under;
        bool granted; /* the last click reached its target although the pointer was grabbed */
    } grab;

    /* paste.c */
    Window paste_window;
    char *offered; /* our clipboard text; NULL: another client owns the clipboard */
    int offers_taken, offers_asked;

    struct watch *watch; /* input monitor; NULL until screen_watch() */

    struct held held;
    int64_t events;
    unsigned opened;                        /* override-redirect windows mapped so far */
    int (*check)(void *arg, struct err *e); /* screen_set_check() */
    void *check_arg;

    struct observed *observed; /* NULL: the screen is not compared (observed.c) */
};

/* ---- screen.c ---------------------------------------------------------------------------------- */

/* Returns whether the server has XInput. Call it before XIQueryVersion(): if the server dies during that
 * call, libXi reads a reply that was never received; XGetExtensionVersion() is safe. */
bool screen_xinput_answers(Display *dpy);
/* Returns 0, or -1 with "display ':1' was lost". Call it before and after requests to the server. */
int screen_alive(struct screen *s, struct err *e);
/* Returns 0 if the display is alive, the run is not stopped, the user is idle and this process holds the
 * input lock; otherwise -1 with e. Called before each event. */
int screen_may_act(struct screen *s, struct err *e);
/* Enclose one event. input_begin() returns -1 with e if the event must not be sent; releases are always
 * allowed. */
int input_begin(struct screen *s, bool down, struct err *e);
/* Counts the event; returns -1 with e if the display is lost. */
int input_end(struct screen *s, struct err *e);
/* Handles pending events: keyboard map, monitors, damage, selections. */
void screen_pump(struct screen *s);

/* ---- monitors.c -------------------------------------------------------------------------------- */

bool view_is_active(const struct screen *s); /* Returns whether the view is "active". */
void active_view_pick(struct screen *s);     /* Makes the focused window the view. */
void active_view_follow(struct screen *s);   /* Moves the view to the current position of that window. */
/* Paints over the pixels of a screenshot outside that window and its popups. */
void active_view_pad(const struct screen *s, struct image *im);
/* Re-reads the root size, the monitors and the view. Returns -1 with e if the view does not exist. */
int monitors_update(struct screen *s, struct err *e);

/* ---- capture.c --------------------------------------------------------------------------------- */

void capture_close(struct screen *s);
/* Captures an area of the root as rgb [h][w][3]. The area must lie inside the root. */
int capture_area(struct screen *s, struct screen_rect r, uint8_t *rgb, struct err *e);

/* ---- pixels.c ---------------------------------------------------------------------------------- */

/* Converts the upper left w x h pixels of `from` to rgb [h][w][3]. Accepts 16, 24 and 32 bits per pixel in
 * either byte order, with channels of any width. Returns -1 with e for other formats. */
int pixels_to_rgb(const XImage *from, uint8_t *rgb, int w, int h, struct err *e);
/* Blends a premultiplied ARGB image onto `to` and clips it. One pixel per long, as XFixes returns it. */
void pixels_blend(struct image *to, const unsigned long *argb, int x, int y, int w, int h);

/* ---- settle.c ---------------------------------------------------------------------------------- */

void settle_open(struct screen *s);
void settle_close(struct screen *s);

/* ---- observed.c --------------------------------------------------------------------------------- */

/* Compares the position with the observation before the pointer moves there. A difference refuses the next
 * press there, not the motion. Returns -1 with e if stopped or the display is lost. */
int observed_aim(struct screen *s, int x, int y, struct err *e);
/* Return -1 with ERR_FAILED if the target has changed since the observation, or a press there or a key is
 * refused. wheel: a difference of pixels is accepted. */
int observed_check_place(struct screen *s, int x, int y, struct err *e);
int observed_may_press(struct screen *s, bool wheel, struct err *e);
int observed_may_type(struct screen *s, struct err *e);
/* Learns from two screenshots of the view taken while it settles: cells that change repeatedly become
 * busy. at_rest: the wait ended with these two, so every cell that differs between them becomes busy. */
void observed_learn(struct screen *s, const struct image *a, const struct image *b, bool at_rest);

enum { OBSERVED_REACH_X = 480, OBSERVED_REACH_Y = 44 }; /* compared pixels to each side of a target */

struct observed_area {
    const uint8_t *was, *is; /* rgb [h][w][3] */
    const uint8_t *skip;     /* [h][w], 1: ignored */
    int w, h, x, y;          /* x, y: the target */
    const struct image *frame;
    int x0, y0;   /* position of `was` in frame */
    bool hovered; /* the pointer is at the target now: only lost shapes and scrolling count */
};
/* Returns whether the area shows something else (observed_pixels.c). Sets where [h][w] to 1 for pixels
 * that differ. */
bool observed_area_changed(const struct observed_area *a, uint8_t *where);
/* Returns whether two RGB pixels differ by at most 24 in every channel. */
bool observed_same_colour(const uint8_t *p, const uint8_t *q);
/* Returns the length of the run at the start of p and q (at most n pixels) in which one solid colour was
 * replaced by another; 0 if the first pixels look the same. */
int observed_solid_run(const uint8_t *p, const uint8_t *q, int n);

/* ---- cpu_wait.c --------------------------------------------------------------------------------- */

enum { CPU_WAIT_MAX = 3 };

struct cpu_wait {
    struct cpu_wait_process {
        int pid, stat, sched; /* file descriptors of /proc/PID/stat and schedstat; -1: none */
        double ran;           /* run time, ms */
    } of[CPU_WAIT_MAX];
    int n;
    int64_t last;
};

void cpu_wait_begin(struct cpu_wait *v, struct screen *s);
/* Returns the ms since the last sample in which a sampled process waited for a CPU (the longest wait). */
double cpu_wait_sample(struct cpu_wait *v);
void cpu_wait_end(struct cpu_wait *v);
/* Returns whether the main thread of a process sleeps: state S, neither runnable nor stopped. */
bool cpu_wait_asleep(int pid);

/* ---- hit_test.c ----------------------------------------------------------------------------------- */

/* Fills *out; call it inside a trap. */
void hit_test_describe(struct screen *s, Window w, struct screen_window *out);
/* Lists the ancestors of the focused window from a child of the root down to the window itself. Returns
 * their number. */
int hit_test_focus(struct screen *s, Window chain[HIT_TEST_DEPTH]);
/* Returns whether the focused window belongs to a Java program. */
bool hit_test_java(struct screen *s);
/* Returns the local process that the window names as its own; 0: none. */
int hit_test_pid(struct screen *s, Window w);
/* Lists the local processes of the focused window and of the window under the pointer. Returns their
 * number. */
int hit_test_pids(struct screen *s, int pids[2]);
/* Lists the windows at this point from a child of the root down. Returns their number. */
int hit_test_chain(struct screen *s, int x, int y, Window chain[HIT_TEST_DEPTH]);

/* ---- window.c ---------------------------------------------------------------------------------- */

/* Reads a text property of a window; "" if it has none or (inside a trap) the window does not exist. */
void window_text(struct screen *s, Window w, const char *property, char *out, size_t size);
/* Returns the value of a property with exactly one 32-bit element; 0: none. */
unsigned long window_property(struct screen *s, Window w, const char *name, Atom type);
void window_title(struct screen *s, Window w, char *out, size_t size);
void window_class(struct screen *s, Window w, char *out, size_t size);
/* Writes "" if no window manager is running. */
void window_manager_name(struct screen *s, char *out, size_t size);

/* ---- keyboard.c -------------------------------------------------------------------------------- */

struct keypress { /* how to type a keysym with the current keyboard map */
    int code;
    bool shift;
    int group;
};

void keyboard_open(struct screen *s);
void keyboard_close(struct screen *s);
/* Returns the device id of the XTEST keyboard, 0 if unknown. *source: the device whose map the core
 * keyboard currently has. */
int keyboard_xtest_id(struct screen *s, int *source);
/* Reads the keyboard state, and the map if it has changed. Call it before each key. Returns -1 with e. */
int keyboard_read(struct screen *s, struct err *e);
/* Finds the key of a keysym in the active group, then with any_group in the others. Ignores borrowed
 * keycodes. Returns whether it was found. */
bool keyboard_find(struct screen *s, uint32_t keysym, bool any_group, struct keypress *out);
/* Lists keycodes without a keysym or modifier. Returns their number, at most max. */
int keyboard_free_codes(struct screen *s, uint8_t *codes, int max);
int key_event(struct screen *s, int code, bool down, struct err *e); /* Sends one XTEST key event. */
/* Sends press and release in one write. */
int key_tap(struct screen *s, int code, struct err *e);
/* Enclose an XTEST request that another library makes. */
int key_begin(struct screen *s, int code, bool down, struct err *e);
int key_end(struct screen *s, int code, bool down, struct err *e);

/* ---- pointer.c --------------------------------------------------------------------------------- */

/* Waits up to 1 s until nobody else holds a mouse button; call it before an event. Returns -1 with e if a
 * button is still held, the run is stopped or the display is lost. */
int pointer_wait_for_buttons(struct screen *s, struct err *e);
/* Forgets the pointer position, because the user may have moved the pointer. */
void pointer_forget_place(struct screen *s);

/* ---- modifiers.c ------------------------------------------------------------------------------- */

unsigned keyboard_our_modifiers(const struct screen *s);
/* Returns the modifiers held by others, as of keyboard_read(). */
unsigned keyboard_foreign_modifiers(const struct screen *s);
/* Prepares the keyboard for our keys; call before the first key. Waits until nobody else holds a modifier
 * or mouse button, clears the user's settings that would change our keys (except the locks in `leave`),
 * and makes clients use the map of the XTEST keyboard. Returns -1 with e. */
int keyboard_begin(struct screen *s, unsigned leave, struct err *e);
/* Does the same except for the keyboard map and the check for grabs; for clicks. */
int keyboard_begin_pointer(struct screen *s, unsigned leave, struct err *e);
/* Restores the cleared settings once none of our keys or buttons is down. */
void keyboard_end(struct screen *s);

/* ---- spare_keycodes.c -------------------------------------------------------------------------- */

/* Returns a spare with this keysym on both levels. */
struct spare spare_of(uint32_t keysym);
/* Returns a spare with the lower-case and the upper-case letter. */
struct spare spare_with_case(uint32_t keysym);
/* Returns the number of keycodes that can be bound at the same time. */
int spare_capacity(struct screen *s);
/* Returns the borrowed keycode that has these keysyms; 0: none. */
int spare_code(struct screen *s, const struct spare *want);
/* Binds n spares to free keycodes and waits until the program has read the new map. Older bindings stay
 * while keycodes are free; the oldest is replaced first, after the program has consumed its keys. Returns
 * -1 with e. */
int spare_bind(struct screen *s, const struct spare *want, int n, struct err *e);
bool spare_bound(const struct screen *s); /* Returns whether any keycode is borrowed. */
/* Forgets bindings that another layout has removed. Returns whether there were any. */
bool spare_forget_lost(struct screen *s);
void spare_restore(struct screen *s); /* Removes the keysyms from all borrowed keycodes. */

/* ---- key_delivery.c ------------------------------------------------------------------------------ */

enum { READ_MS = 8000 }; /* longest time for a program to consume its keys */
enum delivery { DELIVERY_DONE, DELIVERY_UNKNOWN, DELIVERY_NOBODY, DELIVERY_BEHIND };

/* Finds the client that receives key events; call before the first key. Waits up to FOCUS_MS (1 s) for a
 * window that accepts keys. Returns -1 with e if stopped or the display is lost. */
int delivery_begin(struct screen *s, struct err *e);
/* Returns whether keys now go to another client than at delivery_begin(). Costs a few requests. */
bool delivery_target_changed(struct screen *s);
/* Waits until the client has consumed all keys sent so far. *out: DELIVERY_DONE (also if its window was
 * closed), DELIVERY_BEHIND (not within max_ms), DELIVERY_NOBODY (no window accepts keys), DELIVERY_UNKNOWN
 * (cannot be determined). Returns -1 with e if stopped or the display is lost. */
int delivery_wait(struct screen *s, double max_ms, enum delivery *out, struct err *e);
/* Waits for the client after a change of the keyboard map, then keymap_settle_ms more for it to fetch the
 * new map. */
int delivery_settle(struct screen *s, struct err *e);
/* Pings the focused program and waits up to max_ms for the answer. *late: no answer, or only after 60 ms.
 * A program that does not support pings counts as idle. Returns -1 with e if stopped or the display is
 * lost. */
int delivery_ping(struct screen *s, double max_ms, bool *late, struct err *e);
void delivery_note_pong(struct screen *s, const XClientMessageEvent *ev);

/* Returns the local process of the client that owns this resource; 0: unknown. */
int client_pid(struct screen *s, XID resource);
bool same_client(struct screen *s, XID a, XID b); /* Returns whether two resources belong to one client. */

/* ---- input_method.c ---------------------------------------------------------------------------- */

/* Returns whether an input method converts the keys of the focused program into other text, and writes the
 * name of its engine. Runs the input method's command for up to 1.5 s; call it after delivery_begin(). */
bool input_method_active(struct screen *s, char *name, size_t size);

/* ---- grabs.c ----------------------------------------------------------------------------------- */

/* Checks before the first key who receives it. Returns -1 with e, which names the program, if the keyboard
 * is grabbed by a program that is neither the focused one nor shows a menu or a launcher. */
int grab_check_keyboard(struct screen *s, struct err *e);
/* Returns whether another client has grabbed the keyboard now.  One request. */
bool grab_keyboard_taken(struct screen *s);
/* Returns whether another client has grabbed one of these keys on the root window; *which: its index. */
bool grab_key_taken(struct screen *s, const uint8_t *codes, const bool *shift, int n, int *which);
/* Enclose a button press and its release. Return -1 with e if another program has grabbed the pointer and
 * received the click. Wait up to 2 s, before and after, for a window manager to release the pointer. */
int grab_before_press(struct screen *s, struct err *e);
int grab_after_release(struct screen *s, struct err *e);
void grab_close(struct screen *s);

/* ---- held.c, held_file.c ------------------------------------------------------------------------ */

struct pressed { /* a snapshot of struct held */
    bool key[HELD_KEYS], button[HELD_BUTTONS];
    int press_x, press_y; /* where buttons are released; -1: at the current pointer position */
    uint32_t spare[HELD_KEYS];
    struct held_settings settings;
};
/* Releases and restores everything in *p. origin: NULL if no thread of this process monitors the display. */
void held_undo(Display *dpy, const struct pressed *p, struct event_origin *origin);
bool held_any_settings(const struct held_settings *t);
void held_unlock_file(struct held *h); /* Unlocks the held file, and removes it if nothing is held. */

/* ---- paste.c ----------------------------------------------------------------------------------- */

int paste_text(struct screen *s, const char *utf8, size_t len, struct err *e);
void paste_answer(struct screen *s, const XSelectionRequestEvent *rq);
void paste_close(struct screen *s);

/* ---- watch.c ----------------------------------------------------------------------------------- */

/* Tells the input monitor that the screen is closing, which shortens its timeout for an unresponsive
 * server. */
void watch_closing(struct screen *s);
void watch_close(struct screen *s);

/* ---- stopfile.c -------------------------------------------------------------------------------- */

struct stopfile; /* stop files of one screen */
/* Starts to check the stop files of a screen. check(arg), unless NULL, is called at least once a second by
 * the thread that checks the files of all screens, until stopfile_close() has returned; it must not block.
 * Returns NULL with e. */
struct stopfile *stopfile_open(struct stop *stop, void (*check)(void *), void *arg, struct err *e);
void stopfile_close(struct stopfile *f); /* NULL is allowed. */

#endif
