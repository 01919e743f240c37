/* context.c - see context.h.
 *
 * Marks cost memory (a copy of the recurrent state), so there are few: one before the reply that is being
 * written, and one before each turn whose screenshot may have to go.  Sawtooth needs only the oldest of
 * these; strict needs one for each screenshot in view.
 */
#include "agent/context.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

struct turn {
    char *lead;             /* up to the screenshot */
    struct image image;     /* strict only: it may have to be read again */
    bool shown;             /* the screenshot is in view */
    struct mind_mark *mark; /* before this turn, or NULL */
    char *reply;            /* NULL until accepted */
};

struct context {
    struct mind *mind;
    const struct mind_ops *ops;
    const struct dialect *dialect;
    enum window_policy window;
    int max_images;
    struct turn *turns;
    int n, cap;
    struct mind_mark *before_reply;
    bool spoken;     /* a reply stands after before_reply, not accepted yet */
    int64_t carried; /* tokens read since the last observe (system text, a reply retold): the next one's */
};

struct context *context_new(struct mind *m, const struct dialect *d, enum window_policy window,
                            int max_images, const char *system, struct err *e)
{
    struct context *c = xcalloc(1, sizeof *c);
    c->mind = m;
    c->ops = m->ops;
    c->dialect = d;
    c->window = window;
    c->max_images = max_images;
    if (m->ops->begin(m, system, e)) {
        context_free(c);
        return NULL;
    }
    c->carried = m->ops->length(m);
    return c;
}

static void drop_mark(struct context *c, struct mind_mark **mark)
{
    c->ops->mark_free(*mark);
    *mark = NULL;
}

void context_free(struct context *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->n; i++) {
        drop_mark(c, &c->turns[i].mark);
        image_free(&c->turns[i].image);
        free(c->turns[i].lead);
        free(c->turns[i].reply);
    }
    drop_mark(c, &c->before_reply);
    free(c->turns);
    free(c);
}

/* ---- the window ------------------------------------------------------------------------------- */

static int images_in_view(const struct context *c)
{
    int n = 0;
    for (int i = 0; i < c->n; i++)
        n += c->turns[i].shown;
    return n;
}

static int oldest_in_view(const struct context *c)
{
    int i = 0;
    while (i < c->n && !c->turns[i].shown)
        i++;
    return i;
}

/* Says one turn: the user's part, and the reply when there is one. */
static int append_turn(struct context *c, struct turn *t, const struct image *im, struct err *e)
{
    const struct dialect *d = c->dialect;
    enum chat_place place = d->image_inline ? CHAT_PLACE_INLINE : CHAT_PLACE_TEMPLATE;
    struct chat_part parts[3] = {{.text = t->lead}, {.image = im}, {.text = d->observation_close}};
    if (!t->shown)
        parts[1] = (struct chat_part){.text = d->image_placeholder};
    else if ((c->window == WINDOW_STRICT || images_in_view(c) == 1) && !(t->mark = c->ops->mark(c->mind, e)))
        return -1;
    if (c->ops->user(c->mind, parts, 3, place, e))
        return -1;
    return t->reply ? c->ops->reply(c->mind, t->reply, e) : 0;
}

/* Makes room for one more screenshot: goes back before the oldest one and says the turns after that
 * again, with placeholders.  *reused: tokens that were kept. */
static int cut(struct context *c, int64_t *reused, struct err *e)
{
    int first = oldest_in_view(c);
    struct turn *t = &c->turns[first];
    if (c->ops->rewind(c->mind, t->mark, e))
        return -1;
    *reused = c->ops->mark_length(t->mark);
    for (int i = first; i < c->n; i++) {
        drop_mark(c, &c->turns[i].mark);
        if (c->window == WINDOW_SAWTOOTH || i == first) {
            c->turns[i].shown = false;
            image_free(&c->turns[i].image);
        }
    }
    for (int i = first; i < c->n; i++)
        if (append_turn(c, &c->turns[i], &c->turns[i].image, e))
            return -1;
    return 0;
}

static struct turn *add_turn(struct context *c, const char *lead)
{
    if (c->n == c->cap) {
        c->cap = c->cap ? c->cap * 2 : 32;
        c->turns = xrealloc(c->turns, (unsigned long)c->cap, sizeof *c->turns);
    }
    struct turn *t = &c->turns[c->n++];
    *t = (struct turn){.lead = xasprintf("%s%s", lead, c->dialect->observation_open), .shown = true};
    return t;
}

int context_observe(struct context *c, const char *lead, const struct image *im, struct context_cost *cost,
                    struct err *e)
{
    int64_t start = clock_ns();
    if (c->n && !c->turns[c->n - 1].reply)
        bug("an observation before the last one was answered");
    *cost = (struct context_cost){.reused = c->ops->length(c->mind) - c->carried};
    drop_mark(c, &c->before_reply);
    cost->cut = images_in_view(c) >= c->max_images;
    if (cost->cut && cut(c, &cost->reused, e))
        return -1;
    struct turn *t = add_turn(c, lead);
    if (c->window == WINDOW_STRICT && c->max_images > 1 && image_copy(&t->image, im, e))
        return -1;
    if (append_turn(c, t, im, e))
        return -1;
    if (!(c->before_reply = c->ops->mark(c->mind, e)))
        return -1;
    c->spoken = false;
    cost->images = images_in_view(c);
    cost->total = c->ops->length(c->mind);
    cost->prefilled = cost->total - cost->reused;
    cost->ms = clock_ms_since(start);
    c->carried = 0;
    return 0;
}

/* ---- replies ---------------------------------------------------------------------------------- */

static int back_before_reply(struct context *c, struct err *e)
{
    int rc = c->spoken ? c->ops->rewind(c->mind, c->before_reply, e) : 0;
    c->spoken = false;
    return rc;
}

int context_think(struct context *c, const struct mind_request *r, struct generated *out, struct err *e)
{
    *out = (struct generated){0};
    if (back_before_reply(c, e))
        return -1;
    c->spoken = true;
    return c->ops->speak(c->mind, r, out, e);
}

int context_accept(struct context *c, const char *text, bool as_said, struct err *e)
{
    struct turn *t = &c->turns[c->n - 1];
    t->reply = xstrdup(text);
    if (as_said) {
        c->spoken = false;
        return c->ops->close(c->mind, e);
    }
    if (back_before_reply(c, e))
        return -1;
    int64_t before = c->ops->length(c->mind);
    int rc = c->ops->reply(c->mind, text, e);
    c->carried = c->ops->length(c->mind) - before;
    return rc;
}
