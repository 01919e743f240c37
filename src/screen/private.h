/* private.h - struct screen and the functions shared by the files of this directory.
 *
 *   screen.c     open, close, limits         pointer.c    move, click, drag, wheel
 *   monitors.c   root, monitors, view        keys.c       single keys, chords
 *   capture.c    screenshots                 typing.c     text
 *   settle.c     waiting for a still screen  overwrite.c  replaces the text of a field and reads it back
 *   windows.c    titles, classes, overlays   cpu_wait.c   programs that wait for a CPU
 *   active_view.c  the focused window as the view
 *   seen.c       redraws that only repeat    at_rest.c    whether programs have nothing left to do
 *   terminal.c   whether a window is a terminal
 *   stop.c       stop flags                  stopfile.c   stop files
 *   observed.c   whether the screen has changed since the screenshot (observed_busy.c, observed_pixels.c,
 *                observed_view.c)
 *   feedback.c   whether a press has changed only the pressed element
 *   emptied.c    whether an action has emptied much of the view
 *   exec.c       actions
 *
 * None of them includes a header of X11: screen_ops.h is the interface of the display system, which is in
 * x11/ (x11/x11_impl.h lists its files). */
#pragma once

#include "screen/observed.h"
#include "screen/screen_ops.h"
#include "screen/stop.h"

#include <stdatomic.h>

enum {
    MAX_MONITORS = 32,
    MAX_BLINKERS = 16,
    MAX_DOWN = 16, /* keys held at once */
    ACTIVE_SHOWN = 16,
    WINDOW_DEPTH = 32,
    READ_MS = 8000, /* longest time for a program to consume its keys */
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

struct screen {
    const struct screen_ops *ops;
    struct x11 *x11; /* state of screen_x11 */
    char *name;
    int fd; /* socket of the connection; -1: none */
    struct stop *stop;
    atomic_bool lost; /* the connection is lost */
    struct screen_options options;
    char *view_name;

    struct screen_rect root_rect, view;
    struct monitor monitors[MAX_MONITORS];
    int n_monitors;
    unsigned long view_window; /* view "window:ID" */
    bool view_gone;            /* the view's monitor has been removed */
    struct active_view {
        unsigned long window; /* 0: the whole root is shown */
        struct screen_rect rect;
        struct screen_rect shown[ACTIVE_SHOWN]; /* the window and its popups, relative to the view */
        int n_shown;
    } active; /* view "active" */

    struct blinker blinkers[MAX_BLINKERS]; /* settle.c */

    /* pointer.c */
    /* where this program last moved the pointer; -1: nowhere, or the user has moved it since */
    int put_x, put_y;

    struct { /* screen_note_user() */
        /* clock_ns() of the user's last event; 0: none since screen_wait_for_user(); 1: the user is done */
        _Atomic int64_t at;
        _Atomic(const char *) device;
    } user;

    int64_t events;
    int (*check)(void *arg, struct err *e); /* screen_set_check() */
    void *check_arg;
    bool (*is_field)(void *arg, const char *title); /* screen_set_is_field() */
    void *is_field_arg;

    struct observed *observed; /* NULL: the screen is not compared (observed.c) */
};

/* ---- screen.c ---------------------------------------------------------------------------------- */

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
/* Waits like screen_wait(), at most until an event of the display has been handled. */
int screen_wait_event(struct screen *s, double ms, struct err *e);
/* Notes input of the user, for screen_user_input(). Any thread may call it. */
void screen_note_user(struct screen *s, const char *device);

/* ---- monitors.c -------------------------------------------------------------------------------- */

bool view_is_active(const struct screen *s); /* Returns whether the view is "active". */
void active_view_pick(struct screen *s);     /* Makes the focused window the view. */
void active_view_follow(struct screen *s);   /* Moves the view to the current position of that window. */
/* Paints over the pixels of a screenshot outside that window and its popups. */
void active_view_pad(const struct screen *s, struct image *im);
/* Re-reads the root size, the monitors and the view. Returns -1 with e if the view does not exist. */
int monitors_update(struct screen *s, struct err *e);
/* Prints monitors and view, for screen_describe(). */
void monitors_describe(const struct screen *s, struct buf *out);

/* ---- observed.c --------------------------------------------------------------------------------- */

/* Compares the position with the observation before the pointer moves there. A difference refuses the next
 * press there, not the motion. Returns -1 with e if stopped or the display is lost. */
int observed_aim(struct screen *s, int x, int y, struct err *e);
/* Return -1 with ERR_FAILED if the target has changed since the observation, or a press there or a key is
 * refused. wheel: a difference of pixels is accepted. */
int observed_check_place(struct screen *s, int x, int y, struct err *e);
int observed_may_press(struct screen *s, bool wheel, struct err *e);
int observed_may_type(struct screen *s, struct err *e);
/* Returns whether at least half of an area (root pixels) changes by itself. */
bool observed_mostly_busy(const struct screen *s, struct screen_rect r);
/* Begins to learn which cells of the view change by themselves: earlier changes are effects of an action. */
void observed_begin_learning(struct screen *s);
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
/* Returns whether a bar or block like a text cursor or the mark of a check box is among the differing pixels,
 * which are erased from where. */
bool observed_block_differs(const struct observed_area *a, uint8_t *where);
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

/* ---- seen.c ------------------------------------------------------------------------------------- */

struct seen { /* what the view has shown since seen_begin() */
    struct image shown;
    struct screen_rect view;
    struct seen_tile *tiles; /* NULL: nothing is known, and every redraw is news */
    int columns, rows;
};

void seen_begin(struct seen *v, struct screen *s);
void seen_end(struct seen *v);
enum seen_kind { SEEN_SAME, SEEN_REPEATED, SEEN_NEW };
/* Captures an area of the root and compares it with the last look. *differs: the rectangle around the pixels
 * that differ; the area if they are unknown. */
enum seen_kind seen_look(struct seen *v, struct screen *s, struct screen_rect area,
                         struct screen_rect *differs);

/* ---- at_rest.c ---------------------------------------------------------------------------------- */

enum { AT_REST_MAX = 64 };

struct at_rest {
    struct at_rest_process {
        int pid;
        int64_t ran_ns; /* CPU time of all its threads */
    } of[AT_REST_MAX];
    int n, server;
    bool unknown; /* a process cannot be watched */
};

/* Begins to watch n processes and their descendants. A pid of 0 is one that cannot be watched. server: the X
 * server, which works for others too, so it need only sleep; 0: on another machine. */
void at_rest_begin(struct at_rest *v, const int *pids, int n, int server);
/* Waits up to max_ms until all are at rest. *rests: whether they are. Returns -1 with e if stopped or the
 * display is lost. */
int at_rest_wait(struct at_rest *v, struct screen *s, double max_ms, bool *rests, struct err *e);

/* ---- pointer.c --------------------------------------------------------------------------------- */

/* Waits up to 1 s until nobody else holds a mouse button; call it before an event. Returns -1 with e if a
 * button is still held, the run is stopped or the display is lost. */
int pointer_wait_for_buttons(struct screen *s, struct err *e);
/* Forgets the pointer position, because the user may have moved the pointer. */
void pointer_forget_place(struct screen *s);

/* ---- stopfile.c -------------------------------------------------------------------------------- */

struct stopfile; /* stop files of one screen */
/* Starts to check the stop files of a screen. check(arg), unless NULL, is called at least once a second by
 * the thread that checks the files of all screens, until stopfile_close() has returned; it must not block.
 * Returns NULL with e. */
struct stopfile *stopfile_open(struct stop *stop, void (*check)(void *), void *arg, struct err *e);
void stopfile_close(struct stopfile *f); /* NULL is allowed. */
