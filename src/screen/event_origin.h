/* event_origin.h - tells the events that this program sent from those of a person.
 *
 * XTEST events carry the XTEST keyboard or pointer as their source, but so do the events of a person who
 * uses VNC. So each event is noted before it is sent.  An event of an XTEST device that matches a note of
 * the last 2 s is ours and uses the note up; every other event is a person's.
 */
#ifndef HOLORUN_SCREEN_EVENT_ORIGIN_H
#define HOLORUN_SCREEN_EVENT_ORIGIN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { ORIGIN_NOTES = 256 };
enum event_origin_kind { ORIGIN_KEY, ORIGIN_BUTTON, ORIGIN_MOTION };

struct event_origin { /* of one display */
    pthread_mutex_t lock;
    unsigned next;
    struct event_origin_note {
        enum event_origin_kind kind;
        int detail; /* keycode or button */
        bool down;
        int64_t at; /* clock_ns(); 0: used up */
    } notes[ORIGIN_NOTES];
};

void event_origin_open(struct event_origin *o); /* *o is zeroed memory */
void event_origin_close(struct event_origin *o);

/* To be called before each event is sent. */
void event_origin_add(struct event_origin *o, enum event_origin_kind kind, int detail, bool down);
/* Whether this event of an XTEST device is ours; uses its note up. */
bool event_origin_match(struct event_origin *o, enum event_origin_kind kind, int detail, bool down);

#endif
