/* shown.c - the screenshots that were shown to the client, as observations of the screen.
 *
 * A screenshot is taken over its own connection, before there is a run.  The client decides the next call on
 * it, so that call is compared with this screenshot (observed.h) and not with the first one of its run. */
#include "host/private.h"

#include "base/lock.h"
#include "screen/observed.h"

#include <stdlib.h>
#include <string.h>

/* Finds the entry of a display; NULL: none.  The caller holds the lock. */
static struct shown *find(struct host *h, const char *display)
{
    struct shown *s = h->shown;
    while (s && strcmp(s->display, display) != 0)
        s = s->next;
    return s;
}

static struct observed *swap(struct host *h, const char *display, struct observed *o)
{
    LOCKED(&h->lock);
    struct shown *s = find(h, display);
    if (!s && o) {
        s = xcalloc(1, sizeof *s);
        *s = (struct shown){.next = h->shown, .display = xstrdup(display)};
        h->shown = s;
    }
    struct observed *was = s ? s->observed : NULL;
    if (s)
        s->observed = o;
    return was;
}

void shown_keep(struct host *h, struct screen *s, const struct image *frame)
{
    observed_take(s, frame);
    observed_free(swap(h, screen_name(s), observed_detach(s)));
}

void shown_use(struct host *h, struct screen *s)
{
    struct observed *o = swap(h, screen_name(s), NULL);
    if (o)
        observed_attach(s, o);
}

void shown_forget(struct host *h, const struct screen *s)
{
    observed_free(swap(h, screen_name(s), NULL));
}

void shown_free(struct host *h)
{
    while (h->shown) {
        autofree struct shown *s = h->shown;
        h->shown = s->next;
        observed_free(s->observed);
        free(s->display);
    }
}
