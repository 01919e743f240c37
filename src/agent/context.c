/* context.c - see context.h.
 *
 * Marks cost memory (a copy of the recurrent state), so there are few: one before the reply that is being
 * written, and one before each turn whose screenshot may have to go.  Sawtooth needs only the oldest of
 * these; strict needs one for each screenshot in view.
 *
 * To go back to a turn takes the mark before its reply and those for cuts as they were then: they are shared.
 */
#include "agent/context.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_TURNS = 4 }; /* that there must be memory for, as long as the average one */

struct held { /* a mark that several hold */
    struct llm_mark *mark;
    int users;
};

struct kept { /* what it takes to go back to where a turn was not yet answered */
    struct held *before_reply;
    struct held **before; /* [turns from the first in view to this one]: for cuts */
    int n;
};

struct turn {
    char *lead;         /* up to the screenshot */
    struct image image; /* strict only: it may have to be read again */
    bool shown;         /* the screenshot is in view */
    struct held *mark;  /* before this turn, or NULL */
    char *reply;        /* NULL until accepted */
    int first;          /* the first turn in view when this one was observed */
    uint64_t rng;       /* then */
    struct kept *kept;  /* or NULL */
};

struct context {
    struct llm *llm;
    const struct llm_ops *ops;
    const struct dialect *dialect;
    enum window_policy window;
    int max_images;
    struct turn *turns;
    int n, cap;
    char *system;
    int keep; /* turns that can be gone back to at once */
    struct held *before_reply;
    bool spoken;     /* a reply stands after before_reply, not accepted yet */
    int64_t carried; /* tokens read since the last observe (system text, a reply retold): the next one's */
};

struct context *context_new(struct llm *m, const struct dialect *d, enum window_policy window, int max_images,
                            const char *system, struct err *e)
{
    struct context *c = xcalloc(1, sizeof *c);
    c->llm = m;
    c->ops = m->ops;
    c->dialect = d;
    c->window = window;
    c->max_images = max_images;
    c->system = xstrdup(system);
    if (m->ops->begin(m, system, e)) {
        context_free(c);
        return NULL;
    }
    c->carried = m->ops->length(m);
    return c;
}

/* ---- marks ----------------------------------------------------------------------------------- */

static struct held *share(struct held *h)
{
    if (h)
        h->users++;
    return h;
}

static void drop(struct context *c, struct held **at)
{
    struct held *h = *at;
    *at = NULL;
    if (!h || --h->users)
        return;
    c->ops->mark_free(h->mark);
    free(h);
}

static void drop_kept(struct context *c, struct turn *t)
{
    struct kept *k = t->kept;
    t->kept = NULL;
    if (!k)
        return;
    drop(c, &k->before_reply);
    for (int i = 0; i < k->n; i++)
        drop(c, &k->before[i]);
    free(k->before);
    free(k);
}

static bool forget_oldest(struct context *c)
{
    for (int i = 0; i < c->n; i++) {
        if (!c->turns[i].kept)
            continue;
        drop_kept(c, &c->turns[i]);
        return true;
    }
    return false;
}

/* Where there is no room the oldest that is kept goes. */
static struct held *hold(struct context *c, struct err *e)
{
    struct err full = ERR_INIT;
    struct llm_mark *mark;
    while (!(mark = c->ops->mark(c->llm, &full))) {
        if (forget_oldest(c))
            continue;
        err_set(e, full.kind, "%s", full.text);
        return NULL;
    }
    struct held *h = xcalloc(1, sizeof *h);
    *h = (struct held){mark, 1};
    return h;
}

/* The last turn can be gone back to; the oldest of those that can no longer. */
static void keep_turn(struct context *c)
{
    struct turn *t = &c->turns[c->n - 1];
    struct kept *k = xcalloc(1, sizeof *k);
    k->before_reply = share(c->before_reply);
    k->n = c->n - t->first;
    k->before = xcalloc((unsigned long)k->n, sizeof *k->before);
    for (int i = 0; i < k->n; i++)
        k->before[i] = share(c->turns[t->first + i].mark);
    t->kept = k;
    if (c->n > c->keep)
        drop_kept(c, &c->turns[c->n - 1 - c->keep]);
    while (!c->ops->fits(c->llm, ROOM_TURNS * c->ops->length(c->llm) / c->n) && forget_oldest(c))
        ; /* what comes next goes before what was */
}

static void free_turn(struct context *c, struct turn *t)
{
    drop_kept(c, t);
    drop(c, &t->mark);
    image_free(&t->image);
    free(t->lead);
    free(t->reply);
}

void context_free(struct context *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->n; i++)
        free_turn(c, &c->turns[i]);
    drop(c, &c->before_reply);
    free(c->turns);
    free(c->system);
    free(c);
}

void context_keep(struct context *c, int marks)
{
    c->keep = marks;
}

int context_turns(const struct context *c)
{
    return c->n;
}

/* ---- the window ------------------------------------------------------------------------------ */

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
    else if ((c->window == WINDOW_STRICT || images_in_view(c) == 1) && !(t->mark = hold(c, e)))
        return -1;
    if (c->ops->user(c->llm, parts, 3, place, e))
        return -1;
    return t->reply ? c->ops->reply(c->llm, t->reply, e) : 0;
}

/* Back to a mark.  Where turns behind it are kept the conversation goes on in a copy, if there is room for that. */
static int leave(struct context *c, const struct held *mark, int turn, struct err *e)
{
    bool kept = false;
    for (int i = turn; i < c->n; i++)
        kept = kept || c->turns[i].kept;
    struct err full = ERR_INIT;
    if (kept && c->ops->branch(c->llm, mark->mark, &full) == 0)
        return 0;
    for (int i = turn; i < c->n; i++)
        drop_kept(c, &c->turns[i]);
    return c->ops->rewind(c->llm, mark->mark, e);
}

/* Makes room for one more screenshot: goes back before the oldest one and says the turns after that
 * again, with placeholders.  *reused: tokens that were kept. */
static int cut(struct context *c, int64_t *reused, struct err *e)
{
    int first = oldest_in_view(c);
    struct turn *t = &c->turns[first];
    if (leave(c, t->mark, first, e))
        return -1;
    *reused = c->ops->mark_length(t->mark->mark);
    for (int i = first; i < c->n; i++) {
        drop(c, &c->turns[i].mark);
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

/* The last turn waits for its reply. */
static int observed(struct context *c, struct err *e)
{
    if (!(c->before_reply = hold(c, e)))
        return -1;
    c->spoken = false;
    c->turns[c->n - 1].rng = c->ops->rng(c->llm);
    if (c->keep)
        keep_turn(c);
    return 0;
}

int context_observe(struct context *c, const char *lead, const struct image *im, struct context_cost *cost,
                    struct err *e)
{
    int64_t start = clock_ns();
    if (c->n && !c->turns[c->n - 1].reply)
        bug("an observation before the last one was answered");
    *cost = (struct context_cost){.reused = c->ops->length(c->llm) - c->carried};
    drop(c, &c->before_reply);
    cost->cut = images_in_view(c) >= c->max_images;
    if (cost->cut && cut(c, &cost->reused, e))
        return -1;
    struct turn *t = add_turn(c, lead);
    if (c->window == WINDOW_STRICT && c->max_images > 1 && image_copy(&t->image, im, e))
        return -1;
    if (append_turn(c, t, im, e))
        return -1;
    t->first = oldest_in_view(c);
    if (observed(c, e))
        return -1;
    cost->images = images_in_view(c);
    cost->total = c->ops->length(c->llm);
    cost->prefilled = cost->total - cost->reused;
    cost->ms = clock_ms_since(start);
    c->carried = 0;
    return 0;
}

int context_recall(struct context *c, const char *lead, const char *reply, struct err *e)
{
    int64_t before = c->ops->length(c->llm);
    struct turn *t = add_turn(c, lead);
    t->shown = false;
    t->reply = xstrdup(reply);
    int rc = append_turn(c, t, NULL, e);
    c->carried += c->ops->length(c->llm) - before;
    return rc;
}

/* ---- replies --------------------------------------------------------------------------------- */

static int back_before_reply(struct context *c, struct err *e)
{
    int rc = c->spoken ? c->ops->rewind(c->llm, c->before_reply->mark, e) : 0;
    c->spoken = false;
    return rc;
}

int context_think(struct context *c, const struct llm_request *r, struct generated *out, struct err *e)
{
    *out = (struct generated){0};
    if (back_before_reply(c, e))
        return -1;
    c->spoken = true;
    return c->ops->speak(c->llm, r, out, e);
}

int context_beam_search(struct context *c, const struct beam_request *x, struct beam_candidate *out, int max,
                        struct err *e)
{
    if (!c->ops->beam_search || !c->before_reply)
        return 0;
    return c->ops->beam_search(c->llm, c->before_reply->mark, x, out, max, e);
}

int context_accept(struct context *c, const char *text, bool as_said, struct err *e)
{
    struct turn *t = &c->turns[c->n - 1];
    t->reply = xstrdup(text);
    if (as_said) {
        c->spoken = false;
        return c->ops->close(c->llm, e);
    }
    if (back_before_reply(c, e))
        return -1;
    int64_t before = c->ops->length(c->llm);
    int rc = c->ops->reply(c->llm, text, e);
    c->carried = c->ops->length(c->llm) - before;
    return rc;
}

/* ---- going back ------------------------------------------------------------------------------ */

/* What is in view is as it was when turn number `turn` had been observed; nothing is said. */
static int restore_view(struct context *c, int turn, context_image *image, void *arg, struct err *e)
{
    bool wanted = c->window == WINDOW_STRICT && c->max_images > 1; /* screenshots are read again at cuts */
    while (c->n > turn + 1)
        free_turn(c, &c->turns[--c->n]);
    struct turn *last = &c->turns[turn];
    free(last->reply);
    last->reply = NULL;
    for (int i = 0; i < c->n; i++) {
        struct turn *t = &c->turns[i];
        t->shown = i >= last->first;
        drop(c, &t->mark);
        if (t->shown && wanted && !t->image.rgb && image(arg, i, &t->image, e))
            return -1;
    }
    return 0;
}

static int back_to_kept(struct context *c, int turn, struct err *e)
{
    struct turn *t = &c->turns[turn];
    if (c->ops->rewind(c->llm, t->kept->before_reply->mark, e))
        return -1;
    c->before_reply = share(t->kept->before_reply);
    for (int i = 0; i < t->kept->n; i++)
        c->turns[t->first + i].mark = share(t->kept->before[i]);
    return 0;
}

/* One turn more, as it was said then; its screenshot comes from where those of turns come from. */
static int say_again(struct context *c, int i, context_image *image, void *arg, struct err *e)
{
    struct turn *t = &c->turns[i];
    struct image loaded = {0};
    const struct image *shown = t->image.rgb ? &t->image : &loaded;
    if (t->shown && !t->image.rgb && image(arg, i, &loaded, e))
        return -1;
    int rc = append_turn(c, t, shown, e);
    image_free(&loaded);
    return rc;
}

static int read_again(struct context *c, int turn, context_image *image, void *arg, struct err *e)
{
    int first = c->turns[turn].first;
    uint64_t rng = c->turns[turn].rng;
    if (c->ops->begin(c->llm, c->system, e))
        return -1;
    for (int i = 0; i < c->n; i++)
        c->turns[i].shown = false;
    for (int i = 0; i < c->n; i++) {
        c->turns[i].shown = i >= first;
        if (say_again(c, i, image, arg, e))
            return -1;
    }
    c->ops->set_rng(c->llm, rng);
    return observed(c, e);
}

int context_back(struct context *c, int turn, context_image *image, void *arg, struct context_cost *cost,
                 struct err *e)
{
    int64_t start = clock_ns();
    if (turn < 0 || turn >= c->n)
        bug("turn %d of %d", turn, c->n);
    *cost = (struct context_cost){0};
    drop(c, &c->before_reply);
    c->spoken = false;
    c->carried = 0;
    if (restore_view(c, turn, image, arg, e))
        return -1;
    bool kept = c->turns[turn].kept;
    if (kept ? back_to_kept(c, turn, e) : read_again(c, turn, image, arg, e))
        return -1;
    cost->images = images_in_view(c);
    cost->total = c->ops->length(c->llm);
    cost->reused = kept ? cost->total : 0;
    cost->prefilled = cost->total - cost->reused;
    cost->ms = clock_ms_since(start);
    return 0;
}
