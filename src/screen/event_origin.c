/* event_origin.c - see event_origin.h. */
#include "screen/event_origin.h"

#include "base/clock.h"

enum { NOTE_MS = 2000 };

void ours_open(struct ours *o)
{
    pthread_mutex_init(&o->lock, NULL);
}

void ours_close(struct ours *o)
{
    pthread_mutex_destroy(&o->lock);
}

void ours_note(struct ours *o, enum ours_kind kind, int detail, bool down)
{
    pthread_mutex_lock(&o->lock);
    o->notes[o->next++ % OURS_NOTES] = (struct ours_note){kind, detail, down, clock_ns()};
    pthread_mutex_unlock(&o->lock);
}

bool ours_take(struct ours *o, enum ours_kind kind, int detail, bool down)
{
    bool found = false;
    pthread_mutex_lock(&o->lock);
    for (int i = 0; i < OURS_NOTES && !found; i++) {
        struct ours_note *n = &o->notes[i];
        found = n->at && n->kind == kind && n->detail == detail && n->down == down &&
                clock_ms_since(n->at) < NOTE_MS;
        if (found)
            n->at = 0;
    }
    pthread_mutex_unlock(&o->lock);
    return found;
}
