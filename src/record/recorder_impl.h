/* recorder_impl.h - state shared by recorder.c, recorder_look.c and recorder_queue.c. */
#pragma once

#include "atspi/elements.h"
#include "gate/redact.h"
#include "record/gestures.h"
#include "record/listen.h"
#include "record/recorder.h"
#include "record/recording.h"
#include "record/scenes.h"
#include "record/windows.h"

enum {
    QUEUE_MOST = 32,
    SHOTS = 4,
    WINDOWS_SEEN = 64,
    FOCUS_MS = 350,   /* usual delay of a program's focus report */
    REPORT_MS = 2500, /* longest delay, on a loaded machine */
    NAME_MS = 2500,   /* for the name of a pressed element, from the press */
};

struct item { /* a step that is not written yet */
    struct recording_step step;
    int64_t from, until, done; /* clock_ns(): keyboard focus counts from..until; completion */
    int64_t ended;             /* clock_ns() of its last event */
    bool opened;               /* in a window without earlier steps */
    bool wait;                 /* the screen changed late before this step */
    bool hidden;               /* typed at a terminal without echo */
    bool unsure;               /* typed so fast that a later report of the focus may name its field */
    struct press press;
    struct image before; /* the screen before the press, while its element is wanted */
};

struct shot { /* a screenshot that differs from the next newer one */
    struct image image;
    int64_t first, last; /* clock_ns() of the first and the last identical screenshot */
    int px, py;          /* pointer position at that time */
    int64_t near_change; /* time of the newest screenshot so far that shows a change around the pointer */
};

struct below { /* the window under the pointer */
    struct screen_window window;
    int x, y;
    int64_t at; /* clock_ns() before it was requested; 0: never */
};

struct recorder {
    const struct recorder_options *o;
    struct recorder_result *result;
    struct listen *listen;
    struct gestures *gestures;
    struct elements *elements;
    struct redact *redact; /* NULL: no secrets */
    char *part;
    int fd;
    size_t bytes;
    bool failed;
    struct err trouble;

    struct item queue[QUEUE_MOST];
    int n_queue;
    bool in_field;                           /* the last step written is the text of a password field */
    uint64_t salt, hashes[RECORDER_SECRETS]; /* hashes of the values of result->hidden */

    unsigned long windows[WINDOWS_SEEN]; /* windows of earlier steps; the oldest is overwritten */
    int n_windows;

    int64_t in_ms, in_ns; /* the newest event: X server time, clock_ns() */
    double skew;          /* least difference of clock and X server time so far, ms; 0: no event */
    int64_t last_end;     /* end of the newest finished gesture, clock_ns(); 0: none */

    /* the current gesture */
    bool late; /* the screen changed long after the previous gesture */
    struct recording_target target;
    struct press press;
    struct image before;        /* the screen before the gesture */
    struct recording_look look; /* the window of the gesture in it */
    struct screen_window focus;
    bool hidden; /* typed at a terminal without echo */
    int64_t last_change, last_input, last_shot;

    /* windows now, before the current or newest gesture, and before the one before that */
    struct windows windows_now, windows_before, windows_earlier;
    int64_t windows_read;

    /* the pointer */
    int px, py;
    int64_t moved;
    int64_t pointed; /* clock_ns() of the newest event if it came from the pointer; 0: from the keyboard */
    struct below below[2];      /* where it stopped moving, the newest first */
    struct screen_window under; /* at the newest press */
    bool surely_under;          /* it did not change between the press and the request */

    /* descriptions of programs */
    struct scenes scenes;
    struct scene asked;  /* the newest request for the element under the pointer, with an empty snapshot */
    bool open;           /* it is not answered */
    bool found;          /* its answer has an element */
    int64_t typed;       /* clock_ns() of the first key of the current text; 0: its field was requested */
    int64_t focus_asked; /* clock_ns() of a request for the element with the keyboard; 0: none is open */

    struct shot shots[SHOTS]; /* the newest first */
};

/* ---- recorder_queue.c --------------------------------------------------------------------------------- */

/* Writes the steps that need not wait any more; all: every step. Returns -1 with e. */
int recorder_write_queue(struct recorder *r, bool all, struct err *e);
/* Returns whether a step must wait: a text for the report of the focus that tells its field, a press for the
 * name of its element. */
bool recorder_awaits(const struct recorder *r, const struct item *q);
void recorder_free_item(struct item *q);
int recorder_append(struct recorder *r, const struct recording_step *s, struct err *e); /* -1 with e */
void recorder_mask_title(const struct recorder *r, char *title); /* clears a title that contains a secret */

/* ---- recorder_look.c ---------------------------------------------------------------------------------- */

int recorder_shoot(struct recorder *r, struct err *e); /* takes a screenshot; -1 with e */
/* Reads the window under the pointer, requests the elements there, or reads the answer, whatever is due. */
void recorder_look_ahead(struct recorder *r);
void recorder_look_below(struct recorder *r);            /* fills r->under; at a press, first of all */
void recorder_look_at(struct recorder *r, int x, int y); /* fills r->target, r->press, r->before, r->look */
void recorder_look_around(struct recorder *r, struct screen_rect window); /* fills r->before and r->look */
/* Names the elements of presses whose names have arrived. */
void recorder_name_presses(struct recorder *r);
/* Returns whether a step is the first in its window, but not the first of the recording: the window may be
 * new. */
bool recorder_is_new_window(struct recorder *r, unsigned long id);
/* Requests the element with the keyboard; reads the answer into r->target if the focus has not changed. */
void recorder_ask_focus(struct recorder *r);
void recorder_hear_focus(struct recorder *r);
/* Fills *out with another target, from the screen before the current gesture. */
void recorder_look_back(struct recorder *r, int x, int y, struct recording_target *out);
void recorder_name_program(struct recorder *r, const struct recording_step *s);
void recorder_free_pictures(struct recorder *r);
