/* recorder_impl.h - what recorder.c and recorder_look.c share. */
#ifndef HOLORUN_RECORD_RECORDER_IMPL_H
#define HOLORUN_RECORD_RECORDER_IMPL_H

#include "atspi/elements.h"
#include "gate/redact.h"
#include "record/gestures.h"
#include "record/listen.h"
#include "record/recorder.h"
#include "record/recording.h"

enum { QUEUE_MOST = 32, SHOTS = 4, WINDOWS_SEEN = 64 };

struct item { /* a step that is not written yet */
    struct recording_step step;
    int64_t from, until, done; /* clock_ns(): who had the keyboard meanwhile counts; when it was complete */
    bool opened;               /* in a window that no step before was in */
    bool wait;                 /* the screen changed late before it */
    bool hidden;               /* typed at a terminal that does not show it */
};

struct shot { /* a screenshot that differs from the one after it */
    struct image image;
    int64_t last; /* clock_ns() when the screen last looked so */
    int px, py;   /* the pointer then */
};

struct recorder {
    const struct recorder_options *o;
    struct recorder_result *result;
    struct listen *listen;
    struct gestures *gestures;
    struct elements *elements;
    struct redact *redact; /* NULL: there are no secrets */
    char *part;
    int fd;
    size_t bytes;
    bool failed;
    struct err trouble;

    struct item queue[QUEUE_MOST];
    int n_queue;
    bool in_field; /* the last step that was written is the text of a password field */
    uint64_t salt, hashes[RECORDER_SECRETS]; /* of the values of result->hidden */

    unsigned long windows[WINDOWS_SEEN]; /* that steps were in; the oldest is forgotten */
    int n_windows;

    int64_t in_ms, in_ns; /* the newest event: the server's time, ours */
    int64_t last_end;     /* of the newest finished gesture, clock_ns(); 0: none */

    /* the present gesture */
    bool late; /* the screen changed long after the one before */
    struct recording_target target;
    struct image press; /* the screen before it */
    struct screen_window focus;
    bool hidden; /* it is typed at a terminal that does not show it */
    int64_t last_change, last_input, last_shot;

    /* the pointer, and what was under it when it came to rest */
    int px, py;
    int64_t moved;
    bool asked;
    struct screen_window under;
    int ux, uy;

    struct shot shots[SHOTS]; /* the newest first */
};

/* ---- recorder_look.c ---------------------------------------------------------------------------------- */

int recorder_shoot(struct recorder *r, struct err *e);   /* a screenshot */
void recorder_ask(struct recorder *r, int x, int y);     /* window and element there */
void recorder_look_at(struct recorder *r, int x, int y); /* fills r->target, r->press */
/* Another target, as it was before the present gesture. */
void recorder_look_back(struct recorder *r, int x, int y, struct recording_target *out);
void recorder_name_program(struct recorder *r, const struct recording_step *s);
void recorder_free_pictures(struct recorder *r);

#endif
