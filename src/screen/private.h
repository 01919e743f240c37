/* private.h - what the files of this folder share: struct screen and the functions between them.
 *
 *   screen.c    open, close, facts          pointer.c         move, press, drag, wheel
 *   monitors.c  root, view, RandR           keyboard.c        keyboard map, single keys
 *   capture.c   pixels (pixels.c)           modifiers.c       what a person has set or holds
 *   settle.c    damage, waiting             chords.c          keys one by one, chords
 *   window.c    titles, classes             typing.c          text
 *   hit_test.c  windows, their programs     spare_keycodes.c  borrowed keycodes for unmapped characters
 *   held.c      keys and buttons down       reader.c          whether a program has read its keys
 *   paste.c     text without any keycode    overwrite.c       the text of a field, replaced and read back
 *   watch.c     a person at the display     cpu_wait.c        programs that wait for a CPU
 *   input_method.c  ibus and fcitx
 *   grabs.c     keyboard and pointer that another program has grabbed
 *   receiver.c  what is written into what
 *   stop.c      stop flags                  stopfile.c        stop files
 *   guard.c     watchdog process            xtrap.c           X errors, lost connections
 *   observed.c  whether the screen is still the one that was decided on (observed_busy.c, observed_pixels.c)
 */
#ifndef HOLORUN_SCREEN_PRIVATE_H
#define HOLORUN_SCREEN_PRIVATE_H

#include "screen/driver.h"
#include "screen/held.h"
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

struct key_down { /* a press by screen_key(): its release must use the same keycodes */
    uint32_t keysym;
    int code, shift_code, group;
};

struct spare { /* a free keycode and the keysyms bound to it */
    uint8_t code;
    uint32_t keysym, shifted; /* without and with Shift; 0: none */
    unsigned since;           /* spare_clock at binding: the oldest is reused first */
};

struct reader { /* the program that gets our keys */
    Window focus,
        ping; /* the window that has the keyboard; one of the program's that answers pings, None: none does */
    int pid;  /* without ping; 0: unknown or on another machine */
    bool deaf; /* nobody has the keyboard, or a window that asks for no keys */
};

struct screen {
    Display *dpy;
    char *name;
    Window root;
    Visual *visual;
    int depth;
    struct stop *stop;
    Window driver;          /* owner of the selection that says who drives the display; 0: not us */
    atomic_bool lost, hung; /* the connection is gone; the watch has given the server up */
    struct screen_options options;
    char *view_name;

    /* extensions: event base or 0 */
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
    bool damage_waiting; /* notified, not yet read */
    struct blinker blinkers[MAX_BLINKERS];

    /* keyboard.c */
    XkbDescPtr map;
    bool map_stale;
    XkbStateRec state; /* as of keyboard_read() */
    uint64_t layout;   /* hash of the map without borrowed keycodes */
    unsigned layouts;  /* how often somebody else has changed it */
    int keyboard_id;   /* XInput id of the XTEST keyboard, 0 when unknown */
    xdo_t *xdo;        /* NULL until first use: libxdo then reads the whole keymap */
    struct key_down down[MAX_DOWN];

    /* spare_keycodes.c */
    struct spare spare[MAX_SPARE];
    int n_spare;
    unsigned spare_clock;

    /* reader.c */
    struct reader reader;
    int ping, pong; /* the last one sent, the last one answered */

    /* pointer.c */
    int put_x, put_y; /* where this program last put the pointer; -1: nowhere, or a person had a turn since */

    struct grabs {     /* grabs.c */
        Window window; /* unmapped; None: not yet */
        struct grab_record {
            Display *data;
            atomic_bool lost;
            XRecordContext context;
            bool on;
            int xinput; /* major opcode */
            XID clients[GRAB_CLIENTS];
            int n;
        } record;
        Window under[HIT_TEST_DEPTH]; /* windows that a click may go to */
        int n_under;
        bool granted; /* the last click went to its target although the pointer was grabbed */
    } grab;

    /* paste.c */
    Window paste_window;
    char *offered; /* our clipboard text; NULL: we do not own the clipboard */
    int offers_taken, offers_asked;

    struct watch *watch; /* watch.c: NULL until screen_watch() */

    struct held held;
    int64_t events;
    unsigned opened;                        /* windows that no window manager manages, so far */
    int (*check)(void *arg, struct err *e); /* screen_set_check() */
    void *check_arg;

    struct observed *observed; /* observed.c: NULL: nothing is compared */
};

/* ---- screen.c ---------------------------------------------------------------------------------- */

/* Whether the server has XInput.  To be called before XIQueryVersion(): if the server dies during that,
 * libXi reads a reply that never came; in XGetExtensionVersion() it does not. */
bool screen_xinput_answers(Display *dpy);
/* 0, or -1 with "display ':1' was lost".  To be called before and after requests to the server. */
int screen_alive(struct screen *s, struct err *e);
/* 0: alive, not stopped, no person, and this process has the lock.  Checked before each event. */
int screen_may_act(struct screen *s, struct err *e);
/* Around one event; input_begin() is -1 when there must be none.  A release is always allowed. */
int input_begin(struct screen *s, bool down, struct err *e);
int input_end(struct screen *s, struct err *e); /* counts the event; -1: the display is lost */
void screen_pump(struct screen *s);             /* reads waiting events: keymap, monitors, damage */

/* ---- monitors.c -------------------------------------------------------------------------------- */

bool view_is_active(const struct screen *s); /* view "active" */
void active_view_pick(struct screen *s);     /* the window that has the keyboard becomes the view */
void active_view_follow(struct screen *s);   /* where that window is now */
/* Paints over the pixels of a capture outside that window and its popups. */
void active_view_pad(const struct screen *s, struct image *im);
int monitors_update(struct screen *s, struct err *e); /* re-reads root size, monitors, view */

/* ---- capture.c --------------------------------------------------------------------------------- */

void capture_close(struct screen *s);
/* A part of the root as rgb [h][w][3]; it must lie inside. */
int capture_area(struct screen *s, struct screen_rect r, uint8_t *rgb, struct err *e);

/* ---- pixels.c ---------------------------------------------------------------------------------- */

/* rgb [h][w][3] of the upper left w x h of `from`: 16, 24, 30 and 32 bits a pixel in either byte order. */
int pixels_to_rgb(const XImage *from, uint8_t *rgb, int w, int h, struct err *e);
/* Blends a premultiplied ARGB picture onto the image, clipped.  One pixel per long, as XFixes returns it. */
void pixels_blend(struct image *to, const unsigned long *argb, int x, int y, int w, int h);

/* ---- settle.c ---------------------------------------------------------------------------------- */

void settle_open(struct screen *s);
void settle_close(struct screen *s);

/* ---- observed.c --------------------------------------------------------------------------------- */

/* Before the pointer is sent to a place: compares it with the observation.  A difference refuses the next
 * press there, not the motion.  -1: stopped, or the display is lost. */
int observed_aim(struct screen *s, int x, int y, struct err *e);
/* -1 with ERR_FAILED: the place is another one than was observed, or a press there, or a key, is refused. */
int observed_check_place(struct screen *s, int x, int y, struct err *e);
int observed_may_press(struct screen *s, bool wheel, struct err *e);
int observed_may_type(struct screen *s, struct err *e);
/* Two captures of the view taken while it settles: places that change repeatedly become busy.  at_rest: the
 * wait ends with them, so that any change between them is one of these. */
void observed_learn(struct screen *s, const struct image *a, const struct image *b, bool at_rest);

enum { OBSERVED_REACH_X = 480, OBSERVED_REACH_Y = 44 }; /* pixels around a target that are compared */

struct observed_area {
    const uint8_t *was, *is; /* rgb [h][w][3] */
    const uint8_t *skip;     /* [h][w], 1: does not count */
    int w, h, x, y;          /* x, y: the target */
    const struct image *frame;
    int x0, y0;   /* where `was` lies in it */
    bool hovered; /* the pointer is there now: only lost shapes and scrolling count */
};
/* observed_pixels.c: whether it shows something else; where [h][w]: pixels that differ. */
bool observed_area_changed(const struct observed_area *a, uint8_t *where);
/* Whether two RGB pixels look the same. */
bool observed_same_colour(const uint8_t *p, const uint8_t *q);
/* Returns how many pixels from p and q on, of at most n, differ with the same two colours. */
int observed_solid_run(const uint8_t *p, const uint8_t *q, int n);

/* ---- cpu_wait.c --------------------------------------------------------------------------------- */

enum { CPU_WAIT_MAX = 3 };

struct cpu_wait {
    struct cpu_wait_process {
        int pid, stat, sched; /* files of it, -1: none */
        double ran;           /* ms */
    } of[CPU_WAIT_MAX];
    int n;
    int64_t last;
};

void cpu_wait_begin(struct cpu_wait *v, struct screen *s);
/* ms since the last sample in which one of them waited for a CPU */
double cpu_wait_sample(struct cpu_wait *v);
void cpu_wait_end(struct cpu_wait *v);
bool cpu_wait_asleep(int pid); /* its main thread waits for something: neither busy nor stopped */

/* ---- hit_test.c ----------------------------------------------------------------------------------- */

/* Fills *out; inside a trap. */
void hit_test_describe(struct screen *s, Window w, struct screen_window *out);
/* The focused window's ancestors from a child of the root down to itself; returns how many. */
int hit_test_focus(struct screen *s, Window chain[HIT_TEST_DEPTH]);
bool hit_test_java(struct screen *s);         /* the focused window is a Java program's */
int hit_test_pid(struct screen *s, Window w); /* the local process it claims to belong to; 0: none */
/* Local processes of the focused window and of the one under the pointer; returns how many. */
int hit_test_pids(struct screen *s, int pids[2]);
/* The windows at this point, from a child of the root down; returns how many. */
int hit_test_chain(struct screen *s, int x, int y, Window chain[HIT_TEST_DEPTH]);

/* ---- window.c ---------------------------------------------------------------------------------- */

/* Properties of any window; "" when there is none, or (inside a trap) no such window. */
void window_text(struct screen *s, Window w, const char *property, char *out, size_t size);
/* The only 32-bit element of a property; 0: none. */
unsigned long window_property(struct screen *s, Window w, const char *name, Atom type);
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
/* Id of the XTEST keyboard; *source: the device whose map the core keyboard shows now. */
int keyboard_xtest_id(struct screen *s, int *source);
/* Reads the state, and the map when it has changed.  Before each key. */
int keyboard_read(struct screen *s, struct err *e);
/* In the active group, then with any_group in the others.  Ignores borrowed keycodes. */
bool keyboard_find(struct screen *s, uint32_t keysym, bool any_group, struct keypress *out);
int keyboard_free_codes(struct screen *s, uint8_t *codes, int max);  /* without any keysym or modifier */
int key_event(struct screen *s, int code, bool down, struct err *e); /* one XTEST request */
int key_tap(struct screen *s, int code, struct err *e);              /* down and up in one write */
/* Around an XTEST request that another library makes. */
int key_begin(struct screen *s, int code, bool down, struct err *e);
int key_end(struct screen *s, int code, bool down, struct err *e);

/* ---- pointer.c --------------------------------------------------------------------------------- */

/* Before an event: waits up to 1 s until nobody else holds a mouse button.  -1: somebody still does. */
int pointer_wait_for_buttons(struct screen *s, struct err *e);
void pointer_forget_place(struct screen *s); /* the pointer may be anywhere: a person had a turn */

/* ---- modifiers.c ------------------------------------------------------------------------------- */

unsigned keyboard_our_modifiers(const struct screen *s);
unsigned
keyboard_foreign_modifiers(const struct screen *s); /* that somebody else holds, as of keyboard_read() */
/* Before the first key: waits until nobody else holds a modifier or a mouse button, takes off what would
 * change our keys but the locks in `leave`, and makes clients use the XTEST keyboard's map. */
int keyboard_begin(struct screen *s, unsigned leave, struct err *e);
int keyboard_begin_pointer(struct screen *s, unsigned leave, struct err *e); /* all but the last */
void keyboard_end(struct screen *s); /* puts back what was taken off, once nothing of ours is down */

/* ---- spare_keycodes.c -------------------------------------------------------------------------- */

struct spare spare_of(uint32_t keysym);                     /* the same with and without Shift */
struct spare spare_with_case(uint32_t keysym);              /* a letter and its capital */
int spare_capacity(struct screen *s);                       /* how many can be bound at once */
int spare_code(struct screen *s, const struct spare *want); /* its borrowed keycode, 0: none */
/* Binds them to free keycodes and waits until the program knows.  Older bindings stay while there are
 * keycodes; the oldest is replaced first, once the program has read its keys. */
int spare_bind(struct screen *s, const struct spare *want, int n, struct err *e);
bool spare_bound(const struct screen *s); /* is anything bound */
bool spare_forget_lost(
    struct screen *s);                /* those that another layout has taken away; whether there were any */
void spare_restore(struct screen *s); /* empties all borrowed keycodes */

/* ---- reader.c ---------------------------------------------------------------------------------- */

enum { READ_MS = 8000 }; /* longest that a program may take to read its keys */
enum reading { READING_DONE, READING_UNKNOWN, READING_NOBODY, READING_BEHIND };

/* Before the first key: who gets them.  Waits a little while nobody does. */
int reader_begin(struct screen *s, struct err *e);
/* Whether the keys go to another program since then; one request. */
bool reader_changed(struct screen *s);
/* Waits until it has read all keys so far; READING_BEHIND: not within max_ms. */
int reader_wait(struct screen *s, double max_ms, enum reading *out, struct err *e);
/* The same after a change of the map, then a pause in which it fetches the new one. */
int reader_settle(struct screen *s, struct err *e);
/* Asks the program that has the keyboard whether it reads its events; waits up to max_ms.  late: it was busy.
 * A program that answers no pings is taken for idle. */
int reader_answers(struct screen *s, double max_ms, bool *late, struct err *e);
void reader_note_pong(struct screen *s, const XClientMessageEvent *ev);

/* The local process of a client, by any resource of it; 0: unknown. */
int reader_client_pid(struct screen *s, XID resource);
bool reader_same_client(struct screen *s, XID a, XID b); /* both belong to one client */

/* ---- input_method.c ---------------------------------------------------------------------------- */

/* Returns whether an input method turns the keys of the focused program into other text, and the name of its
 * engine.  Runs its command, for up to 1.5 s; call it after reader_begin(). */
bool input_method_active(struct screen *s, char *name, size_t size);

/* ---- grabs.c ----------------------------------------------------------------------------------- */

/* Before the first key: -1 with the program's name when another program than the focused one, a menu or a
 * launcher has grabbed the keyboard. */
int grab_check_keyboard(struct screen *s, struct err *e);
/* Returns whether another client has grabbed the keyboard now.  One request. */
bool grab_keyboard_taken(struct screen *s);
/* Returns whether another client has grabbed one of these keys on the root window; *which: its index. */
bool grab_key_taken(struct screen *s, const uint8_t *codes, const bool *shift, int n, int *which);
/* Around a button's press and release: -1 when another program has grabbed the pointer and took the click.
 * Waits up to 2 s for a window manager that holds the pointer, before and after. */
int grab_before_press(struct screen *s, struct err *e);
int grab_after_release(struct screen *s, struct err *e);
void grab_close(struct screen *s);

/* ---- held.c, held_file.c ------------------------------------------------------------------------ */

struct pressed { /* a snapshot of struct held */
    bool key[HELD_KEYS], button[HELD_BUTTONS];
    int press_x, press_y; /* where buttons are released; -1: where the pointer is */
    uint32_t spare[HELD_KEYS];
    struct held_settings settings;
};
/* origin: NULL when no thread of this process watches the display. */
void held_undo(Display *dpy, const struct pressed *p, struct event_origin *origin);
bool held_any_settings(const struct held_settings *t);
void held_unlock_file(struct held *h); /* removes the file when nothing is held */

/* ---- paste.c ----------------------------------------------------------------------------------- */

int paste_text(struct screen *s, const char *utf8, size_t len, struct err *e);
void paste_answer(struct screen *s, const XSelectionRequestEvent *rq);
void paste_close(struct screen *s);

/* ---- watch.c ----------------------------------------------------------------------------------- */

void watch_closing(struct screen *s); /* before closing: a server that hangs is given up sooner */
void watch_close(struct screen *s);

/* ---- stopfile.c -------------------------------------------------------------------------------- */

struct stopfile; /* one screen's stop files */
/* look(arg), unless NULL, is called from the thread that checks the files of all screens, at least once a
 * second, until stopfile_close() has returned; it must not wait for anything. */
struct stopfile *stopfile_open(struct stop *stop, void (*look)(void *), void *arg, struct err *e);
void stopfile_close(struct stopfile *f); /* NULL is fine */

#endif
