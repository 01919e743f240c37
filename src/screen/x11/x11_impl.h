/* x11_impl.h - the X11 implementation of screen_ops.h.
 *
 *   x11.c       open, close, facts          keyboard.c        keyboard map, single key events
 *   outputs.c   root, monitors (RandR)      modifiers.c       modifiers and locks of the user
 *   capture.c   MIT-SHM, damage (pixels.c)  chords.c          keys that stay down
 *   pointer.c   motion, buttons (XTEST)     text.c            text
 *   window.c    titles, classes             spare_keycodes.c  borrowed keycodes for unmapped characters
 *   hit_test.c  windows, their programs     key_delivery.c    whether a program has consumed its keys
 *   selection.c reads selections            input_method.c    ibus and fcitx
 *   paste.c     text through the clipboard  grabs.c           keyboard and pointer grabs of other programs
 *   held.c      pressed keys and buttons    watch.c           input monitor: the user
 *   guard.c     watchdog process            input_owner.c     which process may send input to a display
 *   displays.c  displays of this machine    xtrap.c           X errors, lost connections
 *   clicked.c   when a click was processed */
#pragma once

#include "screen/private.h"
#include "screen/x11/held.h"
#include "screen/x11/xtrap.h"

#include <X11/XKBlib.h>
#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/extensions/XShm.h>
#include <X11/extensions/Xdamage.h>
#include <X11/extensions/record.h>
#include <xdo.h>

enum { MAX_SPARE = 32, GRAB_CLIENTS = 16 };

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

struct x11 {
    Display *dpy;
    Window root;
    Visual *visual;
    int depth;
    bool complete; /* open() has succeeded */
    /* window that owns the selection _HOLORUN_DRIVER (input_owner.h); 0: not acquired */
    Window owner_window;
    atomic_bool hung; /* the input monitor has declared the server hung */

    /* first event numbers of the extensions, or 0 */
    int xtest_major, xtest_minor;
    bool xfixes, xinput;
    int damage_event, randr_event, xkb_event;

    /* capture.c */
    XShmSegmentInfo segment;
    size_t segment_bytes; /* 0: no segment */
    XImage *last;         /* pixels of the last capture; in the segment if there is one */
    const char *shm_why;  /* why shared memory is not used; NULL: it is, or was not tried yet */
    Damage damage;
    bool damage_waiting; /* XDamageNotify received, damage not yet fetched */

    /* pointer.c */
    bool elsewhere; /* the pointer was on another screen when it was last queried */

    /* keyboard.c */
    XkbDescPtr map;
    XkbStateRec state; /* as of keyboard_read() */
    unsigned controls; /* those of XkbControlsEnabledMask that are on */
    int source;        /* XInput id of the keyboard whose map the core keyboard has */
    /* to be read again: an event has reported a change, or nothing is known yet */
    bool map_stale, state_stale, controls_stale, source_stale;
    uint64_t layout;  /* hash of the map without borrowed keycodes */
    unsigned layouts; /* number of layout changes by other clients */
    int keyboard_id;  /* XInput id of the XTEST keyboard; 0: unknown */
    xdo_t *xdo;       /* NULL until first use, because libxdo then reads the whole keymap */
    struct key_down down[MAX_DOWN];

    /* spare_keycodes.c */
    struct spare spare[MAX_SPARE];
    int n_spare;
    unsigned spare_clock;

    /* key_delivery.c */
    struct key_target target, asked; /* of delivery_begin() and delivery_confirms() */
    int ping, pong;                  /* number of the last ping sent, of the last ping answered */

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
        Window under[WINDOW_DEPTH]; /* windows that may receive the click */
        int n_under;
        bool granted; /* the last click reached its target although the pointer was grabbed */
    } grab;

    /* paste.c, selection.c */
    Window paste_window;
    char *offered; /* our clipboard text; NULL: another client owns the clipboard */
    int offers_taken, offers_asked;
    Window primary_window; /* takes PRIMARY with nothing to offer */

    struct watch *watch; /* input monitor; NULL until screen_watch() */

    struct held held;
    unsigned opened; /* override-redirect windows mapped so far */
};

/* ---- x11.c ------------------------------------------------------------------------------------- */

/* Returns whether the server has XInput. Call it before XIQueryVersion(): if the server dies during that
 * call, libXi reads a reply that was never received; XGetExtensionVersion() is safe. */
bool x11_xinput_answers(Display *dpy);
int x11_server_pid(struct screen *s); /* Returns the pid of the X server; 0 if it runs on another machine. */

/* ---- input_owner.c ----------------------------------------------------------------------------- */

/* Acquires the display for this connection and sets *own to the owner window. Does nothing if *own is set.
 * Returns -1 with e if another process has it. */
int input_owner_acquire(Display *dpy, const char *display, Window *own, struct err *e);

/* ---- outputs.c --------------------------------------------------------------------------------- */

int x11_outputs(struct screen *s);

/* ---- capture.c --------------------------------------------------------------------------------- */

void capture_open(struct screen *s);
void capture_close(struct screen *s);
int x11_capture(struct screen *s, struct screen_rect r, uint8_t *rgb, struct err *e);
bool x11_recall(struct screen *s, int w, int h, uint8_t *rgb);
void x11_draw_cursor(struct screen *s, struct image *im);
int x11_redrawn(struct screen *s, struct screen_rect *out, int max);

/* ---- pixels.c ---------------------------------------------------------------------------------- */

/* Converts the upper left w x h pixels of `from` to rgb [h][w][3]. Accepts 16, 24 and 32 bits per pixel in
 * either byte order, with channels of any width. Returns -1 with e for other formats. */
int pixels_to_rgb(const XImage *from, uint8_t *rgb, int w, int h, struct err *e);
/* Blends a premultiplied ARGB image onto `to` and clips it. One pixel per long, as XFixes returns it. */
void pixels_blend(struct image *to, const unsigned long *argb, int x, int y, int w, int h);

/* ---- hit_test.c ----------------------------------------------------------------------------------- */

/* Fills *out; call it inside a trap. */
void hit_test_describe(struct screen *s, Window w, struct screen_window *out);
/* Lists the ancestors of the focused window from a child of the root down to the window itself. Returns
 * their number. */
int hit_test_focus(struct screen *s, Window chain[WINDOW_DEPTH]);
/* Returns whether the focused window belongs to a Java program. */
bool hit_test_java(struct screen *s);
/* Returns the local process that the window names as its own; 0: none. */
int hit_test_pid(struct screen *s, Window w);
/* Lists the local processes of the focused window and of the window under the pointer. Returns their
 * number. */
int hit_test_pids(struct screen *s, int pids[2]);
/* Lists the windows at this point from a child of the root down; call it inside a trap. Returns their
 * number, at most max. */
int hit_test_chain(struct screen *s, int x, int y, Window *chain, int max);
/* members of screen_x11 */
int hit_test_tops(struct screen *s, struct screen_top out[SCREEN_TOPS]);
int hit_test_at_point(struct screen *s, int x, int y, unsigned long *out, int max);
int hit_test_window(struct screen *s, unsigned long id, struct screen_window *out);
void hit_test_window_at(struct screen *s, int x, int y, struct screen_window *out);
void hit_test_focused(struct screen *s, struct screen_window *out);
int hit_test_find(struct screen *s, const char *class, const char *title, struct screen_window *out);
int hit_test_rect(struct screen *s, unsigned long id, struct screen_rect *out, bool *visible);
unsigned long hit_test_input_focus(struct screen *s, unsigned *opened);
unsigned long hit_test_focus_top(struct screen *s);

/* ---- window.c ---------------------------------------------------------------------------------- */

/* Reads a text property of a window; "" if it has none or (inside a trap) the window does not exist. */
void window_text(struct screen *s, Window w, const char *property, char *out, size_t size);
/* Returns the value of a property with exactly one 32-bit element; 0: none. */
unsigned long window_property(struct screen *s, Window w, const char *name, Atom type);
void window_title(struct screen *s, Window w, char *out, size_t size);
void window_class(struct screen *s, Window w, char *out, size_t size);
/* Writes "" if no window manager is running. */
void window_manager_name(struct screen *s, char *out, size_t size);
/* members of screen_x11 */
struct screen_rect window_without_shadow(struct screen *s, const struct screen_window *w);
int window_active(struct screen *s, char *title, size_t title_size, char *class, size_t class_size);
int window_each(struct screen *s, bool (*visit)(void *arg, const char *title, const char *class), void *arg);
bool window_manager_runs(struct screen *s);
/* Returns whether a client redirects the windows of the root, as window managers do. */
bool window_manager_redirects(struct screen *s);

/* ---- keyboard.c -------------------------------------------------------------------------------- */

struct keypress { /* how to type a keysym with the current keyboard map */
    int code;
    bool shift;
    int group;
};

void keyboard_open(struct screen *s);
void keyboard_close(struct screen *s);
/* Notes that the map, the state or the source of the keyboard has changed. */
void keyboard_note_event(struct screen *s, const XEvent *ev);
/* Returns the device id of the XTEST keyboard, 0 if unknown. *source: the device whose map the core
 * keyboard currently has. */
int keyboard_xtest_id(struct screen *s, int *source);
/* Reads the keyboard state and the map if they have changed. Call it before each key. Returns -1 with e. */
int keyboard_read(struct screen *s, struct err *e);
uint32_t keyboard_shifted(struct screen *s, uint32_t keysym); /* see screen_shifted() */
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

/* ---- chords.c, text.c -------------------------------------------------------------------------- */

/* Presses or releases a key through libxdo; screen_ops.key and holds_key. */
int chords_key(struct screen *s, uint32_t keysym, bool down, bool leave_locks, struct err *e);
bool chords_hold(const struct screen *s, uint32_t keysym);
int text_type(struct screen *s, const struct screen_text *t, struct err *e);

/* ---- pointer.c --------------------------------------------------------------------------------- */

bool x11_pointer(struct screen *s, struct screen_pointer *out);
bool x11_user_holds_button(struct screen *s);
int x11_find_button(struct screen *s, int button);
void x11_motion(struct screen *s, int x, int y);
void x11_button(struct screen *s, int number, bool down);
int x11_prepare(struct screen *s, struct err *e);

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
/* Returns whether the focused program answers pings. */
bool delivery_confirms(struct screen *s);
/* Waits like delivery_wait(), but only for the program found by delivery_begin(), in the middle of a text. */
int delivery_keep_up(struct screen *s, enum delivery *out, struct err *e);
/* Returns a window that answers pings of the client that has the last window of the chain, or None. */
Window delivery_ping_window(struct screen *s, const Window *chain, int n);
int delivery_ping_once(struct screen *s, Window w, double max_ms, enum delivery *out, struct err *e);
void delivery_note_pong(struct screen *s, const XClientMessageEvent *ev);

/* Returns the local process of the client that owns this resource; 0: unknown. */
int client_pid(struct screen *s, XID resource);
bool same_client(struct screen *s, XID a, XID b); /* Returns whether two resources belong to one client. */

/* ---- clicked.c ----------------------------------------------------------------------------------- */

/* see screen_ops.hover, screen_ops.clicked and screen_ops.keys_rest */
int clicked_hover(struct screen *s, double max_ms, bool *answered, struct err *e);
int clicked_wait(struct screen *s, double max_ms, bool *processed, struct err *e);
int clicked_keys_rest(struct screen *s, double max_ms, bool *rests, struct err *e);

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

/* ---- selection.c ------------------------------------------------------------------------------- */

int selection_read(struct screen *s, bool primary, char **text);
void selection_take_primary(struct screen *s, bool on);
bool selection_primary_taken(struct screen *s);
void selection_close(struct screen *s);

/* ---- paste.c ----------------------------------------------------------------------------------- */

int paste_text(struct screen *s, const char *utf8, size_t len, struct err *e);
void paste_answer(struct screen *s, const XSelectionRequestEvent *rq);
void paste_close(struct screen *s);

/* ---- watch.c ----------------------------------------------------------------------------------- */

int watch_open(struct screen *s, struct err *e);
int watch_check(struct screen *s, struct err *e);
/* Tells the input monitor that the screen is closing, which shortens its timeout for an unresponsive
 * server. */
void watch_closing(struct screen *s);
void watch_close(struct screen *s);
