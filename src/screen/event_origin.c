/* event_origin.c - see event_origin.h. */
#include "screen/event_origin.h"

#include "base/clock.h"

enum { NOTE_MS = 2000 };

void event_origin_open(struct event_origin *o)
{
    pthread_mutex_init(&o->lock, NULL);
}

void event_origin_close(struct event_origin *o)
{
    pthread_mutex_destroy(&o->lock);
}

void event_origin_add(struct event_origin *o, enum event_origin_kind kind, int detail, bool down)
{
    pthread_mutex_lock(&o->lock);
    o->notes[o->next++ % ORIGIN_NOTES] = (struct event_origin_note){kind, detail, down, clock_ns()};
    pthread_mutex_unlock(&o->lock);
}

bool event_origin_match(struct event_origin *o, enum event_origin_kind kind, int detail, bool down)
{
    bool found = false;
    pthread_mutex_lock(&o->lock);
    for (int i = 0; i < ORIGIN_NOTES && !found; i++) {
        struct event_origin_note *n = &o->notes[i];
        found = n->at && n->kind == kind && n->detail == detail && n->down == down &&
                clock_ms_since(n->at) < NOTE_MS;
        if (found)
            n->at = 0;
    }
    pthread_mutex_unlock(&o->lock);
    return found;
}
