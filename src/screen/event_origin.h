/* event_origin.h - which of the events on a display are ours.
 *
 * What XTEST injects carries the XTEST keyboard or pointer as its source, but so does what a person does through
 * VNC.  Hence every event is noted before it is sent; one of XTEST's devices that matches a note of the last 2 s
 * is ours and uses the note up, everything else is a person.
 */
#ifndef HOLORUN_SCREEN_OURS_H
#define HOLORUN_SCREEN_OURS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { ORIGIN_NOTES = 256 };
enum event_origin_kind { ORIGIN_KEY, ORIGIN_BUTTON, ORIGIN_MOTION };

struct ours { /* the notes of one display */
    pthread_mutex_t lock;
    unsigned next;
    struct event_origin_note {
        enum event_origin_kind kind;
        int detail; /* keycode or button */
        bool down;
        int64_t at; /* clock_ns(); 0: used up */
    } notes[ORIGIN_NOTES];
};

void event_origin_open(struct ours *o); /* of zeros */
void event_origin_close(struct ours *o);

void event_origin_note(struct ours *o, enum event_origin_kind kind, int detail,
                       bool down); /* before each event we send */
/* Whether such an event that XTEST's device sent is one of ours; uses its note up. */
bool event_origin_take(struct ours *o, enum event_origin_kind kind, int detail, bool down);

#endif
