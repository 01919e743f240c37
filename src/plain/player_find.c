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

/* Writes that the name is that of an element which does not suit, or of one in another row.  Returns false if
 * no element has it. */
static bool explain_unsuitable(const struct player *p, const struct resolve_query *q, struct buf *b)
{
    static const char *const uses[] = {
        [RESOLVE_PRESS] = "cannot be pressed", [RESOLVE_TICK] = "cannot be ticked",
        [RESOLVE_OPTION] = "is not an option", [RESOLVE_LIST] = "is not a list",
        [RESOLVE_FIELD] = "takes no text",     [RESOLVE_TAB] = "is not a tab",
        [RESOLVE_MENU] = "is not a menu",      [RESOLVE_MENU_ITEM] = "is not an item of a menu"};
    struct resolve_query other = *q;
    const struct element *found[1];
    other.row = NULL;
    if (q->row && resolve(p->now, &other, found, 1)) {
        buf_printf(b, "'%.80s' is not in the row of '%.80s'", q->name, q->row);
        return true;
    }
    other.use = RESOLVE_ANY;
    other.beyond = true;
    if (q->use == RESOLVE_ANY || !resolve(p->now, &other, found, 1) ||
        !resolve_same(resolve_name(found[0]), q->name) || resolve_suits(found[0], q->use))
        return false;
    buf_printf(b, "%s '%.80s' %s", found[0]->role, q->name, uses[q->use]);
    return true;
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
    } else if (!explain_unsuitable(p, q, &b)) {
        buf_printf(&b, "'%.80s' is not on the screen", q->name);
        resolve_nearest(p->now, q, &b);
    }
    snprintf(why, size, "%s", b.data ? b.data : "not found");
    buf_free(&b);
}

/* Finds the elements that a query means, also those that are scrolled out of sight in a page. */
static int find_beyond(struct player *p, struct resolve_query q, uint32_t below, const struct element **found,
                       int max)
{
    static const struct elements_scope scope = {.beyond = true};
    const struct snapshot *all;
    if (!p->elements || elements_snapshot(p->elements, &scope, PLAYER_READ_MS, &all, NULL) < 0)
        return 0;
    p->now = all; /* the one before is not valid any more */
    q.beyond = true;
    for (int i = 0; i < all->n && below; i++)
        q.below = all->e[i].ref == below ? &all->e[i] : q.below;
    return all->end != SNAPSHOT_WHOLE || (below && !q.below) ? 0 : resolve(all, &q, found, max);
}

const struct element *player_find_away(struct player *p)
{
    const struct element *found[2];
    return find_beyond(p, p->sought, p->below, found, 2) == 1 ? found[0] : NULL;
}

/* Returns whether only buttons of a browser have the name in sight, but it is that of an element of the page,
 * or may be while that loads: "press Close" must not close the window then. */
static bool is_hidden_by_browser(struct player *p, const struct resolve_query *q,
                                 const struct element **found, int *n, int max)
{
    const struct element *page = NULL, *other[4];
    for (int i = 0; i < p->now->n && !page; i++)
        if (!strcmp(p->now->e[i].role, "document web") && resolve_in_active_window(p->now, &p->now->e[i]))
            page = &p->now->e[i];
    if (!*n || !page || p->ref || q->below || q->use == RESOLVE_ANY || resolve_page(p->now, found[0]) ||
        !resolve_in_active_window(p->now, found[0]))
        return false;
    if (player_is_loading(p->now))
        return true;
    if (!p->s.compared) {
        int m = find_beyond(p, *q, 0, other, 4);
        p->s.in_page = m && resolve_page(p->now, other[0]);
        p->s.compared = true;
        player_look(p);
        *n = p->now ? resolve(p->now, q, found, max) : 0;
    }
    return p->s.in_page;
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
    if (n && is_hidden_by_browser(p, q, found, &n, 4))
        n = 0;
    *several = n > 1;
    p->s.absent = n == 0;
    if (n == 1)
        return found[0];
    p->sought = *q;
    p->sought.below = NULL;
    p->below = q->below ? q->below->ref : 0;
    explain(p, q, found, n, why, size);
    return NULL;
}

/* Finds the element of the current step by its name without and then with the words around it.  A condition
 * is also about elements that are scrolled out of sight. */
const struct element *player_find_target(struct player *p, enum resolve_for use, bool *several, char *why,
                                         size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    struct resolve_query q = {s->what, use, s->row, NULL, false}, whole = q;
    const struct element *e = player_find(p, &q, several, why, size);
    char unused[ERR_TEXT];
    whole.name = s->whole && strcmp(s->whole, s->what) != 0 ? s->whole : NULL;
    if (!e && !*several && whole.name)
        e = player_find(p, &whole, several, unused, sizeof unused);
    q.beyond = whole.beyond = s->verb == PLAIN_WAIT || s->verb == PLAIN_CHECK;
    if (!e && !*several && q.beyond)
        e = player_find(p, &q, several, unused, sizeof unused);
    if (!e && !*several && q.beyond && whole.name)
        e = player_find(p, &whole, several, unused, sizeof unused);
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

/* Begins to turn the wheel on a pane towards an element, NULL: down. A turn that has not moved it may have
 * met another pane: it is repeated near the left and the right edge. Returns false if neither has moved
 * it. */
static bool turn_wheel(struct player *p, const struct element *pane, const struct element *e, uint64_t place)
{
    struct screen_rect r = pane->rect;
    int far = e ? e->rect.y + e->rect.h / 2 - r.y - r.h / 2 : 0;
    bool moved = !p->s.turns || place != p->s.place;
    p->s.edge = moved ? p->s.edge : p->s.edge + 1;
    if (p->s.turns >= PLAYER_SCROLLS || p->s.edge >= PLAYER_EDGES)
        return false;
    const int x[PLAYER_EDGES] = {r.w / 2, r.w / 50, r.w - r.w / 25};
    p->s.x = r.x + x[p->s.edge];
    p->s.y = r.y + r.h / 2;
    p->s.upwards = far < 0;
    p->s.amount = !e ? PLAYER_TURN : abs(far) < PLAYER_TURN_PX ? 1 : abs(far) / PLAYER_TURN_PX;
    p->s.amount = p->s.amount < PLAYER_TURN_MAX ? p->s.amount : PLAYER_TURN_MAX;
    p->s.place = place;
    p->s.turns++;
    p->s.since = clock_ns();
    return p->s.search = true;
}

/* Writes the reason if the name is known, but not for this use. */
static bool explains(const struct player *p, const struct resolve_query *q, char *why, size_t size)
{
    struct buf b;
    buf_init(&b, size);
    bool known = explain_unsuitable(p, q, &b);
    if (known)
        snprintf(why, size, "%s", b.data);
    buf_free(&b);
    return known;
}

/* Scrolls a web page to a name that is not in sight: browsers report such elements only when they are asked
 * for, and some pages create them when they are scrolled down.  Returns NEXT_STEP if there is nothing to
 * scroll. */
static enum player_next search_page(struct player *p, char *why, size_t size)
{
    const struct element *page = NULL, *found[4];
    uint64_t place = 0;
    double since = p->s.since ? clock_ms_since(p->s.since) : 0;
    for (int i = 0; p->now && i < p->now->n; i++) {
        const struct element *e = &p->now->e[i];
        place = place * 31 + e->ref + (uint64_t)(e->rect.y + (1 << 20));
        if (!page && !strcmp(e->role, "document web") && e->rect.w > 0 && e->trust != PLACE_NONE)
            page = e;
    }
    if (!page || p->ref || !p->s.absent || since < (p->s.turns ? PLAYER_TURN_MS : PLAYER_SEARCH_MS))
        return NEXT_STEP;
    struct element copy = *page;
    const struct plain_step *s = &p->steps.s[p->s.at];
    struct resolve_query q = p->sought;
    int n = find_beyond(p, q, p->below, found, 4);
    if (!n && q.name == s->whole && s->what) {
        q.name = s->what;
        n = find_beyond(p, q, p->below, found, 4);
    }
    p->s.in_page = p->s.in_page && n;
    if (n > 1) {
        explain(p, &q, found, n, why, size);
        return NEXT_FAILED;
    }
    if (!n && p->now->end == SNAPSHOT_WHOLE && explains(p, &q, why, size))
        return NEXT_STEP;
    const struct element *moved = n ? found[0] : NULL, *pane = n ? resolve_scrolled_by(p->now, &moved) : NULL;
    if (pane)
        place = found[0]->ref * UINT64_C(31) + (uint64_t)(found[0]->rect.y + (1 << 20));
    if (n && !pane) { /* in sight, but below a group that is not */
        p->s.all = true;
        return player_wait_or_fail(p, PLAYER_START_MS);
    }
    bool turned = pane          ? turn_wheel(p, pane, moved, place)
                  : p->s.opened ? false
                                : turn_wheel(p, &copy, NULL, place);
    if (pane && !turned)
        snprintf(why, size, "'%.80s' is out of sight, and the wheel does not reach it", p->sought.name);
    return turned ? NEXT_WAIT : NEXT_STEP;
}

enum player_next player_missing(struct player *p, char *why, size_t size)
{
    enum player_next next = search_page(p, why, size);
    if (next != NEXT_STEP)
        return next;
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

/* Returns whether an element is where it was at the last look, after the wheel was turned for it: pages move
 * smoothly. */
static bool is_still(struct player *p, const struct element *e)
{
    uint64_t place = e->ref * UINT64_C(31) + (uint64_t)(e->rect.y + (1 << 20));
    bool still = !p->s.turns || place == p->s.still;
    if (!p->s.still)
        p->s.since = clock_ns();
    p->s.still = place;
    return still;
}

/* Returns the element if it can be used; otherwise NULL with what happens next. */
const struct element *player_usable(struct player *p, const struct element *e, enum player_next *next,
                                    char *why, size_t size)
{
    p->s.aside = p->s.dismiss = false;
    if (!e) {
        *next = player_missing(p, why, size);
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
    else if (!is_still(p, e))
        snprintf(why, size, "the page still moves");
    else
        return e;
    *next = player_missing(p, why, size);
    return NULL;
}
