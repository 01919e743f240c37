/* player_find.c - finds the element of a step, and says why it cannot be used. */
#include "plain/player_impl.h"

#include "atspi/roles.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUGGESTIONS_GAP = 8 }; /* px */

/* Returns the element of the step's ref, or NULL with the reason. */
static const struct element *find_ref(struct player *p, char *why, size_t size)
{
    for (int i = 0; p->now && i < p->now->n; i++)
        if (p->now->e[i].ref == p->ref)
            return &p->now->e[i];
    p->blame = PLAYER_NOT_FOUND;
    snprintf(why, size, "'%.80s' is gone", p->steps.s[p->s.at].what);
    return NULL;
}

/* Writes why no element, or none of n, is meant. */
static void explain(struct player *p, const struct resolve_query *q, const struct element *const *found,
                    int n, char *why, size_t size)
{
    struct buf b;
    struct screen_window active;
    bool described = p->now && p->now->n;
    bool open = !described && p->screen && screen_focused_window(p->screen, &active) == 0 && active.id;
    p->blame = !p->now || open ? PLAYER_UNREAD : PLAYER_NOT_FOUND;
    buf_init(&b, size);
    if (!p->now) {
        buf_printf(&b, "the elements cannot be read: %s", p->unread);
    } else if (open) {
        buf_printf(&b, "the program of window '%.80s' describes no elements (AT-SPI)", active.title);
    } else if (!described) {
        buf_printf(&b, "'%.80s' is not on the screen: no window has the focus", q->name);
    } else if (n > 1) {
        buf_printf(&b, "'%.80s' is the name of several elements: ", q->name);
        for (int i = 0; i < n; i++)
            buf_printf(&b, "%s%s at %d,%d", i ? ", " : "", found[i]->role, found[i]->rect.x,
                       found[i]->rect.y);
    } else {
        buf_printf(&b, "'%.80s' is not on the screen", q->name);
        resolve_nearest(p->now, q, &b);
    }
    snprintf(why, size, "%s", b.data ? b.data : "not found");
    buf_free(&b);
}

/* Returns the only element that fits, or NULL with the reason; *several: the name is ambiguous. */
const struct element *player_find(struct player *p, const struct resolve_query *q, bool *several, char *why,
                                  size_t size)
{
    const struct element *found[4] = {0};
    *several = false;
    p->blame = PLAYER_NOT_DONE;
    p->s.absent = false;
    if (p->ref && q->use != RESOLVE_OPTION)
        return find_ref(p, why, size);
    int n = p->now ? resolve(p->now, q, found, 4) : 0;
    *several = n > 1;
    p->s.absent = n == 0;
    if (n == 1)
        return found[0];
    explain(p, q, found, n, why, size);
    return NULL;
}

/* Finds the element of the current step by its name without and then with the words around it. */
const struct element *player_find_target(struct player *p, enum resolve_for use, bool *several, char *why,
                                         size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    struct resolve_query q = {s->what, use, s->row, NULL};
    const struct element *e = player_find(p, &q, several, why, size);
    if (!e && !*several && s->whole && strcmp(s->whole, s->what) != 0) {
        struct resolve_query whole = {s->whole, use, s->row, NULL};
        char unused[ERR_TEXT];
        e = player_find(p, &whole, several, unused, sizeof unused);
    }
    return e;
}

bool player_is_off(const struct element *e)
{
    return !state_in(e->states, STATE_SENSITIVE) && !state_in(e->states, STATE_ENABLED);
}

bool player_is_on(const struct element *e)
{
    return state_in(e->states, STATE_CHECKED) || state_in(e->states, STATE_PRESSED);
}

/* Waits for the name while it is missing; otherwise fails. */
enum player_next player_wait_or_fail(struct player *p, double ms)
{
    if (!p->s.since)
        p->s.since = clock_ns();
    return clock_ms_since(p->s.since) < ms ? NEXT_WAIT : NEXT_FAILED;
}

bool player_still_waits(struct player *p)
{
    p->begun = p->begun ? p->begun : clock_ns();
    return clock_ms_since(p->begun) < PLAYER_WAIT_MS;
}

/* Scrolls a web page down for a name that is not in sight: browsers do not report elements further below.
 * Returns false if a page is not shown, or the last turn of the wheel did not move it. */
static bool search_page(struct player *p)
{
    const struct element *page = NULL;
    uint64_t place = 0;
    double since = p->s.since ? clock_ms_since(p->s.since) : 0;
    for (int i = 0; p->now && i < p->now->n; i++) {
        const struct element *e = &p->now->e[i];
        place = place * 31 + e->ref + (uint64_t)(e->rect.y + (1 << 20));
        if (!page && !strcmp(e->role, "document web") && e->rect.w > 0 && e->trust != PLACE_NONE)
            page = e;
    }
    if (!page || p->ref || !p->s.absent || p->s.turns >= PLAYER_SCROLLS || p->s.opened ||
        since < (p->s.turns ? PLAYER_TURN_MS : PLAYER_SEARCH_MS) || (p->s.turns && place == p->s.place))
        return false;
    p->s.x = page->rect.x + page->rect.w / 2;
    p->s.y = page->rect.y + page->rect.h / 2;
    p->s.place = place;
    p->s.turns++;
    p->s.since = clock_ns();
    return p->s.search = true;
}

enum player_next player_missing(struct player *p)
{
    if (search_page(p))
        return NEXT_WAIT;
    bool whole = p->now && p->now->end == SNAPSHOT_WHOLE; /* a program that starts describes nothing */
    double named = p->s.acted ? PLAYER_PATIENCE_MS : PLAYER_START_MS;
    return player_wait_or_fail(p, !whole ? PLAYER_CUT_MS : p->ref ? PLAYER_EFFECT_MS : named);
}

/* Returns whether suggestions for the field that was written last are open: a window above or below it, which
 * takes the next click anywhere else. */
static bool suggestions_open(const struct player *p, const struct element *e)
{
    struct screen_window over[8];
    struct screen_rect f = p->field, r;
    int n = f.w > 0 && p->screen ? screen_overlays(p->screen, over, 8) : 0;
    for (int i = 0; i < n; i++) {
        r = over[i].rect;
        bool beside = abs(r.y - f.y - f.h) <= SUGGESTIONS_GAP || abs(f.y - r.y - r.h) <= SUGGESTIONS_GAP;
        if (beside && r.x < f.x + f.w && f.x < r.x + r.w && over[i].id != e->window)
            return true;
    }
    return false;
}

/* Returns whether a window is a popup, which the window manager does not handle. */
static bool is_popup(struct player *p, unsigned long id)
{
    struct screen_window over[8];
    int n = screen_overlays(p->screen, over, 8);
    for (int i = 0; i < n; i++)
        if (over[i].id == id)
            return true;
    return false;
}

/* Returns whether another window is above an element.  A popup may be a tool tip, which closes when the
 * pointer moves away (*popup); those of GTK have the title of the program, and may be dialogs of it. */
static bool is_covered(struct player *p, const struct element *e, bool *popup)
{
    int x = e->rect.x + e->rect.w / 2, y = e->rect.y + e->rect.h / 2;
    struct screen_window at;
    *popup = false;
    if (!e->window || screen_window_at(p->screen, x, y, &at) != 0 || !at.id || at.id == e->window ||
        screen_window_covers(p->screen, e->window, x, y))
        return false;
    *popup = is_popup(p, at.id) || (!*at.title && !at.dialog);
    return !(*popup && p->s.opened); /* the list that the step has opened */
}

/* Returns the element if it can be used; otherwise NULL with what happens next. */
const struct element *player_usable(struct player *p, const struct element *e, enum player_next *next,
                                    char *why, size_t size)
{
    p->s.aside = p->s.dismiss = false;
    if (!e) {
        *next = player_missing(p);
        return NULL;
    }
    p->blame = PLAYER_NOT_DONE;
    if (e->trust == PLACE_NONE || e->rect.w <= 0 || e->rect.h <= 0)
        snprintf(why, size, "%s '%.80s' has no place on the screen", e->role, resolve_name(e));
    else if (player_is_off(e))
        snprintf(why, size, "%s '%.80s' is disabled", e->role, resolve_name(e));
    else if (e->trust == PLACE_DOUBTFUL)
        snprintf(why, size, "the program does not say reliably where %s '%.80s' is", e->role,
                 resolve_name(e));
    else if (is_covered(p, e, &p->s.aside))
        snprintf(why, size, "%s '%.80s' is covered by another window", e->role, resolve_name(e));
    else if ((p->s.dismiss = suggestions_open(p, e)))
        snprintf(why, size, "suggestions for the last field are open");
    else
        return e;
    *next = player_missing(p);
    return NULL;
}
