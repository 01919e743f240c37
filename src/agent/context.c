/* context.c - the conversation and its rewind points; see context.h.
 *
 * A mark costs memory (a checkpoint of the recurrent state), so few are kept: one before the reply that is
 * being generated, and one before each turn whose screenshot may be evicted. Sawtooth needs only the oldest
 * of these, strict one for each screenshot in view.
 *
 * Rewinding to a turn needs the mark before its reply, and the marks for evictions as they were then. Turns
 * share these marks.
 */
#include "agent/context_impl.h"
#include "agent/private.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_TURNS = 4 }; /* memory kept free, in turns of average length */

struct context *context_new(struct llm *m, const struct dialect *d, enum window_policy window, int max_images,
                            int rewindable, const char *system, struct err *e)
{
    struct context *c = xcalloc(1, sizeof *c);
    c->llm = m;
    c->ops = m->ops;
    c->dialect = d;
    c->window = window;
    c->max_images = max_images;
    c->max_points = rewindable;
    c->system = xstrdup(system);
    if (m->ops->begin(m, system, e)) {
        context_free(c);
        return NULL;
    }
    c->carried = m->ops->length(m);
    return c;
}

void context_hide_images(struct context *c)
{
    c->imageless = true;
}

/* ---- marks ----------------------------------------------------------------------------------- */

static struct shared_mark *mark_share(struct shared_mark *h)
{
    if (h)
        h->users++;
    return h;
}

static void mark_drop(struct context *c, struct shared_mark **at)
{
    struct shared_mark *h = *at;
    *at = NULL;
    if (!h || --h->users)
        return;
    c->ops->mark_free(h->mark);
    free(h);
}

static void drop_point(struct context *c, struct turn *t)
{
    autofree struct rewind_point *k = t->point;
    t->point = NULL;
    if (!k)
        return;
    mark_drop(c, &k->before_reply);
    for (int i = 0; i < k->n; i++)
        mark_drop(c, &k->before[i]);
    free(k->before);
}

static bool drop_oldest_point(struct context *c)
{
    for (int i = 0; i < c->n; i++) {
        if (!c->turns[i].point)
            continue;
        drop_point(c, &c->turns[i]);
        return true;
    }
    return false;
}

/* Makes a mark, or a bookmark, of the current state. Drops the oldest rewind points while memory is full.
 * Returns NULL with e. */
static struct llm_mark *make_mark(struct context *c, bool bookmark, struct err *e)
{
    struct err full = ERR_INIT;
    struct llm_mark *mark;
    while (!(mark = (bookmark && c->ops->bookmark ? c->ops->bookmark : c->ops->mark)(c->llm, &full))) {
        if (full.kind != ERR_STOPPED && drop_oldest_point(c))
            continue;
        err_set(e, full.kind, "%s", full.text);
        return NULL;
    }
    return mark;
}

/* Returns a new mark of the current state with one user, or NULL with e. */
static struct shared_mark *mark_here(struct context *c, struct err *e)
{
    struct llm_mark *mark = make_mark(c, false, e);
    if (!mark)
        return NULL;
    struct shared_mark *h = xcalloc(1, sizeof *h);
    *h = (struct shared_mark){mark, 1};
    return h;
}

/* Creates a rewind point of the last turn and drops the oldest ones beyond max_points or if memory is
 * short. */
static void save_point(struct context *c)
{
    struct turn *t = &c->turns[c->n - 1];
    struct rewind_point *k = xcalloc(1, sizeof *k);
    k->before_reply = mark_share(c->before_reply);
    k->n = c->n - t->first;
    k->before = xcalloc((unsigned long)k->n, sizeof *k->before);
    for (int i = 0; i < k->n; i++)
        k->before[i] = mark_share(c->turns[t->first + i].mark);
    t->point = k;
    if (c->n > c->max_points)
        drop_point(c, &c->turns[c->n - 1 - c->max_points]);
    const struct session *s = llm_session(c->llm);
    while (s && !session_fits(s, ROOM_TURNS * session_length(s) / c->n) && drop_oldest_point(c))
        ; /* memory for the next turns takes precedence over rewind points */
}

static void free_turn(struct context *c, struct turn *t)
{
    drop_point(c, t);
    mark_drop(c, &t->mark);
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
    mark_drop(c, &c->before_reply);
    c->ops->mark_free(c->undo.mark);
    free(c->turns);
    free(c->system);
    free(c);
}

bool context_replied(const struct context *c)
{
    return !c->n || c->turns[c->n - 1].reply;
}

int context_turns(const struct context *c)
{
    return c->n;
}

const char *context_reply(const struct context *c, int turn)
{
    return c->turns[turn].reply;
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

/* Appends one turn: the user's part, and the reply if there is one. Returns -1 with e. */
static int append_turn(struct context *c, struct turn *t, const struct image *im, struct err *e)
{
    const struct dialect *d = c->dialect;
    enum chat_place place = d->image_inline ? CHAT_PLACE_INLINE : CHAT_PLACE_TEMPLATE;
    autofree char *old = t->shown ? NULL : agent_without_elements(t->lead);
    struct chat_part parts[3] = {
        {.text = old ? old : t->lead}, {.image = im}, {.text = d->observation_close}};
    int rc = 0;
    if (!t->shown || c->imageless)
        parts[1] = (struct chat_part){.text = c->imageless ? "" : d->image_placeholder};
    if (t->shown && (c->window == WINDOW_STRICT || images_in_view(c) == 1))
        rc = (t->mark = mark_here(c, e)) ? 0 : -1;
    rc = rc ? rc : c->ops->user(c->llm, parts, 3, place, e);
    if (rc)
        return -1;
    return t->reply ? c->ops->reply(c->llm, t->reply, e) : 0;
}

/* Rewinds to a mark before `turn`. If later turns have rewind points, the conversation continues in a
 * branch, provided that memory suffices; otherwise those points are dropped. Returns -1 with e. */
static int rewind_before(struct context *c, const struct shared_mark *mark, int turn, struct err *e)
{
    bool pinned = false;
    for (int i = turn; i < c->n; i++)
        pinned = pinned || c->turns[i].point;
    struct err full = ERR_INIT;
    if (pinned && c->ops->branch(c->llm, mark->mark, &full) == 0)
        return 0;
    for (int i = turn; i < c->n; i++)
        drop_point(c, &c->turns[i]);
    return c->ops->rewind(c->llm, mark->mark, e);
}

/* Evicts old screenshots to free space for a new one: rewinds to before the oldest and appends the turns
 * after it again, with placeholders. *reused: number of tokens before that point. Returns -1 with e. */
static int evict_screenshots(struct context *c, int64_t *reused, struct err *e)
{
    int first = oldest_in_view(c);
    struct turn *t = &c->turns[first];
    if (rewind_before(c, t->mark, first, e))
        return -1;
    *reused = c->ops->mark_length(t->mark->mark);
    for (int i = first; i < c->n; i++) {
        mark_drop(c, &c->turns[i].mark);
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

/* Marks the state before the reply of the last turn, and saves its rewind point. Returns -1 with e. */
static int await_reply(struct context *c, struct err *e)
{
    if (!(c->before_reply = mark_here(c, e)))
        return -1;
    c->replied = false;
    struct session *s = llm_session(c->llm);
    c->turns[c->n - 1].rng = s ? session_rng(s) : 0;
    if (c->max_points)
        save_point(c);
    return 0;
}

void context_allow_undo(struct context *c, const volatile int *cancel)
{
    c->undo.cancel = cancel;
    c->ops->mark_free(c->undo.mark);
    c->undo.mark = NULL;
}

/* Remembers how to undo the turn that follows, and lets its prefill be cancelled. Returns -1 with e. */
static int prepare_undo(struct context *c, const struct context_cost *cost, struct err *e)
{
    if (!c->undo.cancel)
        return 0;
    c->ops->mark_free(c->undo.mark);
    c->undo.n = c->n;
    c->undo.carried = c->carried;
    c->undo.reused = cost->reused;
    c->undo.evicted = cost->cut;
    if (!(c->undo.mark = make_mark(c, true, e)))
        return -1;
    llm_set_cancel(c->llm, c->undo.cancel);
    return 0;
}

int context_undo(struct context *c, struct err *e)
{
    if (!c->undo.mark)
        return 0; /* nothing was appended */
    mark_drop(c, &c->before_reply);
    while (c->n > c->undo.n)
        free_turn(c, &c->turns[--c->n]);
    c->replied = false;
    c->carried = c->undo.carried;
    int rc = c->ops->rewind(c->llm, c->undo.mark, e);
    c->ops->mark_free(c->undo.mark);
    c->undo.mark = NULL;
    return rc;
}

int context_observe(struct context *c, const char *lead, const struct image *im, struct context_cost *cost,
                    struct err *e)
{
    int64_t start = clock_ns();
    if (c->n && !c->turns[c->n - 1].reply)
        bug("an observation before the last one has a reply");
    *cost = (struct context_cost){.reused = c->ops->length(c->llm) - c->carried};
    mark_drop(c, &c->before_reply);
    cost->cut = images_in_view(c) >= c->max_images;
    if (cost->cut && evict_screenshots(c, &cost->reused, e))
        return -1;
    if (c->undo.evicted) { /* for a turn that was undone */
        cost->cut = true;
        cost->reused = c->undo.reused;
    }
    if (prepare_undo(c, cost, e))
        return -1;
    struct turn *t = add_turn(c, lead);
    if (c->window == WINDOW_STRICT && c->max_images > 1 && image_copy(&t->image, im, e))
        return -1;
    if (append_turn(c, t, im, e))
        return -1;
    t->first = oldest_in_view(c);
    if (await_reply(c, e))
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

static int discard_reply(struct context *c, struct err *e)
{
    int rc = c->replied ? c->ops->rewind(c->llm, c->before_reply->mark, e) : 0;
    c->replied = false;
    return rc;
}

int context_think(struct context *c, const struct llm_request *r, struct generated *out, struct err *e)
{
    *out = (struct generated){0};
    if (discard_reply(c, e))
        return -1;
    c->replied = true;
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
    c->undo.evicted = false;
    t->reply = xstrdup(text);
    struct session *s = llm_session(c->llm);
    if (as_said && (!s || chat_keeps_reply(s, text))) {
        c->replied = false;
        return c->ops->close(c->llm, e);
    }
    if (discard_reply(c, e))
        return -1;
    int64_t before = c->ops->length(c->llm);
    int rc = c->ops->reply(c->llm, text, e);
    c->carried = c->ops->length(c->llm) - before;
    return rc;
}

/* ---- rewinding ------------------------------------------------------------------------------- */

/* Restores the set of screenshots in view when `turn` had been observed; the session is unchanged. */
static int restore_view(struct context *c, int turn, context_image *image, void *arg, struct err *e)
{
    bool wanted = c->window == WINDOW_STRICT && c->max_images > 1; /* evictions prefill them again */
    while (c->n > turn + 1)
        free_turn(c, &c->turns[--c->n]);
    struct turn *last = &c->turns[turn];
    free(last->reply);
    last->reply = NULL;
    for (int i = 0; i < c->n; i++) {
        struct turn *t = &c->turns[i];
        t->shown = i >= last->first;
        mark_drop(c, &t->mark);
        if (t->shown && wanted && !t->image.rgb && image(arg, i, &t->image, e))
            return -1;
    }
    return 0;
}

static int rewind_to_point(struct context *c, int turn, struct err *e)
{
    struct turn *t = &c->turns[turn];
    if (c->ops->rewind(c->llm, t->point->before_reply->mark, e))
        return -1;
    c->before_reply = mark_share(t->point->before_reply);
    for (int i = 0; i < t->point->n; i++)
        c->turns[t->first + i].mark = mark_share(t->point->before[i]);
    return 0;
}

/* Appends turn i again; image() loads a screenshot that is no longer in memory. */
static int append_again(struct context *c, int i, context_image *image, void *arg, struct err *e)
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

static int prefill_again(struct context *c, int turn, context_image *image, void *arg, struct err *e)
{
    int first = c->turns[turn].first;
    uint64_t rng = c->turns[turn].rng;
    if (c->ops->begin(c->llm, c->system, e))
        return -1;
    for (int i = 0; i < c->n; i++)
        c->turns[i].shown = false;
    for (int i = 0; i < c->n; i++) {
        c->turns[i].shown = i >= first;
        if (append_again(c, i, image, arg, e))
            return -1;
    }
    if (llm_session(c->llm))
        session_set_rng(llm_session(c->llm), rng);
    return await_reply(c, e);
}

int context_rewind(struct context *c, int turn, context_image *image, void *arg, struct context_cost *cost,
                   struct err *e)
{
    int64_t start = clock_ns();
    if (turn < 0 || turn >= c->n)
        bug("turn %d of %d", turn, c->n);
    *cost = (struct context_cost){0};
    mark_drop(c, &c->before_reply);
    c->replied = false;
    c->carried = 0;
    if (restore_view(c, turn, image, arg, e))
        return -1;
    bool saved = c->turns[turn].point;
    if (saved ? rewind_to_point(c, turn, e) : prefill_again(c, turn, image, arg, e))
        return -1;
    cost->images = images_in_view(c);
    cost->total = c->ops->length(c->llm);
    cost->reused = saved ? cost->total : 0;
    cost->prefilled = cost->total - cost->reused;
    cost->ms = clock_ms_since(start);
    return 0;
}
