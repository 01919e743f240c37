/* ours.c - which of the events on a display are ours.
 *
 * What XTEST injects carries the XTEST keyboard or pointer as its source, but so does what a person does through
 * VNC.  Hence every event is noted before it is sent; one of XTEST's devices that matches a note of the last 250 ms
 * is ours and uses the note up, everything else is a person.
 */
#include "screen/private.h"

#include "base/clock.h"

#include <pthread.h>

enum { NOTE_MS = 250, MAX_NOTES = 256 };

struct note {
    enum ours kind;
    int detail; /* keycode or button */
    bool down;
    int64_t at; /* clock_ns(); 0: used up */
};
static struct note notes[MAX_NOTES];
static unsigned next_note;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void ours_note(enum ours kind, int detail, bool down)
{
    pthread_mutex_lock(&lock);
    notes[next_note++ % MAX_NOTES] = (struct note){kind, detail, down, clock_ns()};
    pthread_mutex_unlock(&lock);
}

bool ours_take(enum ours kind, int detail, bool down)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_NOTES && !found; i++) {
        struct note *n = &notes[i];
        found = n->at && n->kind == kind && n->detail == detail && n->down == down &&
                clock_ms_since(n->at) < NOTE_MS;
        if (found)
            n->at = 0;
    }
    pthread_mutex_unlock(&lock);
    return found;
}
