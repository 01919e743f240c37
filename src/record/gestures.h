/* gestures.h - single events of keyboard and mouse become actions: clicks, drags, scrolls, typed text,
 * chords.
 *
 * Pure: no X requests; times come with the events.  A click is finished when no second one can follow, a
 * text when anything but text happens, so a gesture ends with the next event, with gestures_tick() after a
 * while, or with gestures_end().
 */
#ifndef HOLORUN_RECORD_GESTURES_H
#define HOLORUN_RECORD_GESTURES_H

#include "actions/action.h"

enum input_kind { INPUT_KEY, INPUT_BUTTON, INPUT_MOTION };
struct input {
    enum input_kind kind;
    bool down;
    int64_t ms; /* of the X server, or any other clock that goes on */
    int x, y;   /* root pixels */
    int button;
    uint32_t keysym, plain; /* with and without Shift and levels */
    char text[32];          /* what it types, UTF-8; "": nothing */
};

struct gesture {
    struct action action; /* owned by the receiver */
    int64_t from, to;     /* ms of its first and last event */
};

struct gesture_sink {
    void *arg;
    void (*pointed)(void *arg,
                    const struct input *at); /* a button goes down for a new gesture; before what follows */
    void (*typing)(void *arg, const struct input *at); /* the same for the first key of a text or chord */
    void (*done)(void *arg, struct gesture *g);        /* takes over the action */
};

struct gestures;
struct gestures *gestures_new(const struct gesture_sink *sink);
void gestures_free(struct gestures *g); /* overwrites texts; NULL is fine */

void gestures_input(struct gestures *g, const struct input *in);
/* No event has come for so long: ends what nothing can follow any more. */
void gestures_tick(struct gestures *g, double quiet_ms);
/* Ends everything.  without_escapes: the last two Escape presses were for us. */
void gestures_end(struct gestures *g, bool without_escapes);

#endif
