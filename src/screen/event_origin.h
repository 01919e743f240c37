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

enum { OURS_NOTES = 256 };
enum ours_kind { OURS_KEY, OURS_BUTTON, OURS_MOTION };

struct ours { /* the notes of one display */
    pthread_mutex_t lock;
    unsigned next;
    struct ours_note {
        enum ours_kind kind;
        int detail; /* keycode or button */
        bool down;
        int64_t at; /* clock_ns(); 0: used up */
    } notes[OURS_NOTES];
};

void ours_open(struct ours *o); /* of zeros */
void ours_close(struct ours *o);

void ours_note(struct ours *o, enum ours_kind kind, int detail, bool down); /* before each event we send */
/* Whether such an event that XTEST's device sent is one of ours; uses its note up. */
bool ours_take(struct ours *o, enum ours_kind kind, int detail, bool down);

#endif
