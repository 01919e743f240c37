/* deeds.c - the actions of a run and their results, as a list, a line and JSON; see deeds.h. */
#include "agent/deeds.h"

#include "base/json.h"

#include <stdlib.h>

enum { TOLD = 3, LINE_MAX_BYTES = 4096 };

struct deed *deeds_add(struct deeds *d, int step, enum action_kind kind, enum deed_end end, const char *what,
                       const char *did, const char *why)
{
    if (d->n == d->cap) {
        d->cap = d->cap ? 2 * d->cap : 16;
        d->list = xrealloc(d->list, (unsigned long)d->cap, sizeof *d->list);
    }
    struct deed *x = &d->list[d->n++];
    *x = (struct deed){.step = step,
                       .kind = kind,
                       .end = end,
                       .what = xstrdup(what),
                       .did = xstrdup(did),
                       .why = why && *why ? xstrdup(why) : NULL};
    return x;
}

void deeds_free(struct deeds *d)
{
    for (int i = 0; i < d->n; i++) {
        free(d->list[i].what);
        free(d->list[i].did);
        free(d->list[i].why);
    }
    free(d->list);
    *d = (struct deeds){0};
}

/* Returns whether actions of this kind should change the screen itself, not only the visible part as
 * scrolling does. */
static bool commits(enum action_kind k)
{
    return action_is(k, ACTION_CHANGES) && !action_is(k, ACTION_LOOKS);
}

static bool was_done(const struct deed *d)
{
    return d->end <= DEED_DONE;
}

void deeds_judge(struct deeds *d, int step, bool changed)
{
    struct deed *last = NULL;
    bool any = false;
    for (int i = 0; i < d->n; i++) {
        struct deed *x = &d->list[i];
        if (x->end == DEED_INTERRUPTED)
            continue;
        last = x;
        any |= x->step == step;
        if (x->step != step || x->end != DEED_OPEN)
            continue;
        x->end = changed ? DEED_CHANGED : action_is(x->kind, ACTION_CHANGES) ? DEED_UNCHANGED : DEED_DONE;
    }
    if (changed && !any && last && last->end == DEED_UNCHANGED)
        last->end = DEED_CHANGED;
}

bool deeds_open(const struct deeds *d, int step)
{
    for (int i = 0; i < d->n; i++)
        if (d->list[i].step == step && d->list[i].end == DEED_OPEN)
            return true;
    return false;
}

const struct deed *deeds_decisive(const struct deeds *d)
{
    const struct deed *last = NULL;
    for (int i = 0; i < d->n; i++) {
        const struct deed *x = &d->list[i];
        if (!last || !was_done(x) || commits(x->kind) || (!was_done(last) && x->kind == last->kind))
            last = x;
    }
    return last;
}

/* Returns whether text was typed at the keyboard focus after deed i, with nothing but keys between them. */
static bool is_typed_after(const struct deeds *d, int i)
{
    while (++i < d->n && action_is(d->list[i].kind, ACTION_KEYBOARD) && !d->list[i].opens)
        if (action_is(d->list[i].kind, ACTION_TYPES) && d->list[i].end == DEED_CHANGED)
            return true;
    return false;
}

const struct deed *deeds_without_effect(const struct deeds *d)
{
    const struct deed *last = NULL;
    for (int i = 0; i < d->n; i++)
        if (d->list[i].end == DEED_UNCHANGED && action_is(d->list[i].kind, ACTION_CLICKS) &&
            !is_typed_after(d, i))
            last = &d->list[i];
    return last;
}

bool deeds_had_effect(const struct deeds *d)
{
    for (int i = 0; i < d->n; i++)
        if (d->list[i].end == DEED_CHANGED)
            return true;
    return false;
}

static bool is_confirmed(const struct deed *d)
{
    return d->end == DEED_CHANGED || d->end == DEED_DONE;
}

int deeds_performed(const struct deeds *d)
{
    int n = 0;
    for (int i = 0; i < d->n; i++)
        n += is_confirmed(&d->list[i]) && commits(d->list[i].kind);
    return n;
}

/* ---- in words ------------------------------------------------------------------------------------ */

/* Writes one action of the line; the result of the last action follows at the end of the line. */
static void put_deed(struct buf *b, const struct deed *d, bool last)
{
    static const char *const short_ends[] = {[DEED_OPEN] = "not observed",
                                             [DEED_UNCHANGED] = "no change",
                                             [DEED_REFUSED] = "refused",
                                             [DEED_FAILED] = "failed",
                                             [DEED_INTERRUPTED] = "interrupted"};
    if (was_done(d))
        buf_puts(b, d->did);
    else
        buf_printf(b, "did not %s", d->what);
    if (!last && !is_confirmed(d))
        buf_printf(b, " (%s)", short_ends[d->end]);
}

char *deeds_line(const struct deeds *d)
{
    int first = d->n > TOLD ? d->n - TOLD : 0, bad = 0;
    struct buf b;
    if (!d->n)
        return xstrdup("nothing was done");
    buf_init(&b, LINE_MAX_BYTES);
    for (int i = first; i < d->n; i++) {
        buf_puts(&b, i > first ? ", " : "");
        put_deed(&b, &d->list[i], i == d->n - 1);
    }
    const struct deed *last = &d->list[d->n - 1];
    if (last->end == DEED_UNCHANGED)
        buf_puts(&b, "; the window did not change");
    else if (last->end == DEED_OPEN)
        buf_puts(&b, "; no screenshot was taken afterwards");
    else if (last->why)
        buf_printf(&b, ": %.200s", last->why);
    for (int i = 0; i < d->n; i++)
        bad += !is_confirmed(&d->list[i]);
    if (d->n > TOLD)
        buf_printf(&b, "; %d actions in total", d->n);
    if (bad > 1)
        buf_printf(&b, "; %d not confirmed", bad);
    return buf_take(&b);
}

char *deeds_json(const struct deeds *d)
{
    static const char *const ends[] = {[DEED_OPEN] = "not observed",      [DEED_CHANGED] = "changed",
                                       [DEED_UNCHANGED] = "no change",    [DEED_DONE] = "done",
                                       [DEED_REFUSED] = "refused",        [DEED_FAILED] = "failed",
                                       [DEED_INTERRUPTED] = "interrupted"};
    json_auto_t *list = json_array();
    for (int i = 0; i < d->n; i++) {
        const struct deed *x = &d->list[i];
        json_t *one = json_pack("{s:i}", "step", x->step);
        json_set_text(one, "what", was_done(x) ? x->did : x->what);
        json_set_text(one, "end", ends[x->end]);
        if (x->why)
            json_set_text(one, "why", x->why);
        json_array_append_new(list, one);
    }
    return json_line(list, 0);
}
