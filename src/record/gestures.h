/* gestures.h - converts single keyboard and mouse events into actions: clicks, drags, scrolls, typed text,
 * chords.
 *
 * Pure: no X requests; times come with the events. A click ends when no second click can follow, a text when
 * any other input occurs. A gesture therefore ends with the next event, with gestures_tick() after a time
 * limit, or with gestures_end().
 */
#pragma once

#include "actions/action.h"

enum input_kind { INPUT_KEY, INPUT_BUTTON, INPUT_MOTION };
struct input {
    enum input_kind kind;
    bool down;
    int64_t ms; /* time of the X server, or another monotonic clock */
    int x, y;   /* root pixels */
    int button;
    uint32_t keysym, plain; /* with and without Shift and levels */
    char text[32];          /* text that the key types, UTF-8; "": none */
};

struct gesture {
    struct action action; /* owned by the receiver */
    int64_t from, to;     /* ms of its first and last event */
};

struct gesture_sink {
    void *arg;
    void (*pointed)(void *arg, const struct input *at); /* a button press began a gesture */
    void (*typing)(void *arg, const struct input *at);  /* first key of a text or chord was pressed */
    void (*done)(void *arg, struct gesture *g); /* receives the gesture; takes ownership of g->action */
};

struct gestures;
struct gestures *gestures_new(const struct gesture_sink *sink);
void gestures_free(struct gestures *g); /* overwrites texts; accepts NULL */

void gestures_input(struct gestures *g, const struct input *in);
/* Ends the pending gesture if no event has arrived for its time limit. quiet_ms: time since the last
 * event. */
void gestures_tick(struct gestures *g, double quiet_ms);
/* Ends the pending gesture. without_escapes: the last two Escape presses ended the recording and are
 * dropped. */
void gestures_end(struct gestures *g, bool without_escapes);
