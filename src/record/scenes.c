/* scenes.c - finds the name of a pressed element in earlier and later descriptions; see scenes.h. */
#include "record/scenes.h"

#include "atspi/roles.h"
#include "plain/resolve.h"
#include "record/sight.h"
#include "record/target_element.h"

#include <stdlib.h>
#include <string.h>

/* Areas in which an element must look the same, in pixels around it. */
enum {
    EDGE = 4, /* the frame of a button, which the pointer may change */
    AROUND = 24,
    LABEL_LEFT = 160, /* of a field, whose own text tells nothing */
    LABEL_ABOVE = 30,
    FIELD_EDGE = 3,
    PRESS = 40, /* around the point of a press */
};

static const char *const items[] = {
    "menu item", "check menu item", "radio menu item", "menu", "list item", "table cell", NULL};

void scenes_add(struct scenes *q, struct scene *c)
{
    struct scene *oldest = &q->list[SCENES - 1];
    if (q->n == SCENES) {
        snapshot_free(&oldest->s);
        image_free(&oldest->screen);
        q->n--;
    }
    memmove(q->list + 1, q->list, (size_t)q->n * sizeof *q->list);
    q->list[0] = *c;
    q->n++;
    q->added = true;
    c->s = (struct snapshot){.hit = -1};
    c->screen = (struct image){0};
}

static int64_t ripe_at(const struct scene *c)
{
    return c->s.read + SCENES_RIPE_MS * INT64_C(1000000);
}

bool scenes_news(struct scenes *q, int64_t now_at)
{
    bool news = q->added;
    for (int i = 0; i < q->n; i++)
        news = news || (ripe_at(&q->list[i]) >= q->seen && ripe_at(&q->list[i]) < now_at);
    q->added = false;
    q->seen = now_at;
    return news;
}

void scenes_free(struct scenes *q)
{
    for (int i = 0; i < q->n; i++) {
        snapshot_free(&q->list[i].s);
        image_free(&q->list[i].screen);
    }
    q->n = 0;
}

/* ---- the element at a point ------------------------------------------------------------------------- */

/* Returns whether an element is drawn in another X window than the one it is described in: in an open menu or
 * list. */
static bool in_popup(const struct snapshot *s, int at)
{
    int up = at;
    while (s->e[up].parent >= 0)
        up = s->e[up].parent;
    return s->e[at].window != s->e[up].window;
}

/* Returns the smallest element at the point of a press in its window; -1: none. Items that are not known to
 * be in a popup may be those of a menu that has opened over the window. popup: only elements in popups
 * count. */
static int smallest(const struct snapshot *s, const struct press *p, bool popup)
{
    int best = -1;
    for (int i = 0; i < s->n; i++) {
        const struct element *e = &s->e[i], *b = best >= 0 ? &s->e[best] : NULL;
        bool above = in_popup(s, i), may_be = above || (!popup && !text_listed(items, e->role));
        bool in_window = e->parent >= 0 && e->trust != PLACE_NONE && (!p->window || e->window == p->window);
        if (may_be && in_window && screen_rect_contains(e->rect, p->x, p->y) &&
            (!b || (double)e->rect.w * e->rect.h <= (double)b->rect.w * b->rect.h))
            best = i;
    }
    return best;
}

static int beneath(const struct snapshot *s, const struct press *p)
{
    int at = p->window ? -1 : smallest(s, p, true);
    return at >= 0 ? at : smallest(s, p, false);
}

/* Returns the element of a press in a scene; -1: none. */
static int element_of(const struct scene *c, const struct press *p)
{
    const struct snapshot *s = &c->s;
    bool same_window = p->window && s->window == p->window,
         here = abs(c->x - p->x) <= SCENES_NEAR && abs(c->y - p->y) <= SCENES_NEAR;
    int at = same_window ? snapshot_at(s, p->x, p->y) : beneath(s, p);
    if (same_window && here && (at < 0 || s->e[at].parent < 0))
        at = s->hit;
    if (at >= 0 && s->e[at].parent >= 0 && resolve_is_field(&s->e[s->e[at].parent]))
        at = s->e[at].parent; /* Qt describes the inside of a text as a part of it */
    if (at < 0 || s->e[at].parent < 0 || !screen_rect_contains(s->e[at].rect, p->x, p->y))
        return -1;
    /* GTK 3 and Qt describe the items of an open menu or list below the menu bar or the closed list. */
    bool on_top = !p->window || !s->window || !s->e[at].window || s->e[at].window == p->window ||
                  (same_window && text_listed(items, s->e[at].role));
    return on_top ? at : -1;
}

bool scene_has(const struct scene *c, const struct press *p)
{
    return element_of(c, p) >= 0;
}

/* ---- the look of its place -------------------------------------------------------------------------- */

static struct screen_rect grown(struct screen_rect r, int left, int above, int other)
{
    return (struct screen_rect){r.x - left, r.y - above, r.w + left + other, r.h + above + other};
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static struct screen_rect shrunk(struct screen_rect r, int by)
{
    by = smaller(by, smaller(r.w, r.h) / 6);
    return (struct screen_rect){r.x + by, r.y + by, r.w - 2 * by, r.h - 2 * by};
}

/* Returns whether the place of an element looks the same in both pictures, up to the colours. equals: number
 * of elements that only their rows tell apart. If the window is unknown, only a text or an image there shows
 * that it was in front: of a field its label, and the place of the press has to look the same, too. */
static bool looks_same(const struct element *e, int equals, const struct press *p, const struct image *a,
                       const struct image *b)
{
    const struct screen_rect none = {0}, r = e->rect, row = {p->rect.x, r.y, p->rect.w, r.h};
    struct screen_rect area = equals > 1 ? row : shrunk(r, EDGE);
    struct screen_rect except = none, point = {p->x - PRESS, p->y - PRESS, 2 * PRESS, 2 * PRESS};
    bool field = resolve_is_field(e);
    if (field) {
        area = grown(r, LABEL_LEFT, LABEL_ABOVE, AROUND);
        except = shrunk(r, FIELD_EDGE);
    }
    enum sight got = sight_compare(a, b, screen_rect_intersect(area, p->rect), except);
    if (field && !p->window && sight_compare(a, b, point, none) == SIGHT_OTHER)
        return false;
    if (!field && got == SIGHT_PLAIN && p->window) {
        area = grown(r, AROUND, AROUND, AROUND);
        got = sight_compare(a, b, screen_rect_intersect(area, p->rect), none);
    }
    return p->window ? got != SIGHT_OTHER : got == SIGHT_SAME;
}

/* ---- naming ----------------------------------------------------------------------------------------- */

/* Copies the members that describe the element. */
static void put_element(struct recording_target *t, const struct recording_target *from)
{
    struct recording_target whole = *t;
    *t = *from;
    t->x = whole.x;
    t->y = whole.y;
    t->rect = whole.rect;
    t->n_pictures = whole.n_pictures;
    memcpy(t->pictures, whole.pictures, sizeof t->pictures);
    memcpy(t->class, whole.class, sizeof t->class);
    memcpy(t->title, whole.title, sizeof t->title);
    memcpy(t->language, whole.language, sizeof t->language);
}

static struct recording_target described(const struct scene *c, int at, const struct press *p)
{
    struct recording_target t = {.x = p->x, .y = p->y};
    target_describe(&c->s, at, &t);
    return t;
}

static bool is_early(const struct scene *c, const struct press *p)
{
    return c->s.read < p->at;
}

/* Returns whether two scenes describe the same object in the same way. */
static bool repeats(const struct scene *a, int at_a, const struct scene *b, int at_b, const struct press *p)
{
    const struct element *e = &a->s.e[at_a], *f = &b->s.e[at_b];
    struct recording_target t = described(a, at_a, p), u = described(b, at_b, p);
    bool near = t.n_near == u.n_near;
    for (int i = 0; near && i < t.n_near; i++)
        near = !strcmp(t.near[i], u.near[i]);
    return e->ref == f->ref && e->rect.x == f->rect.x && e->rect.y == f->rect.y && e->rect.w == f->rect.w &&
           e->rect.h == f->rect.h && !strcmp(t.role, u.role) && !strcmp(t.name, u.name) &&
           !strcmp(t.label, u.label) && !strcmp(t.path, u.path) && t.equal == u.equal &&
           (near || t.equals <= 1);
}

/* Names the element by a scene that was read before the press. */
static bool name_early(const struct scenes *q, const struct press *p, const struct image *before,
                       struct recording_target *t)
{
    uint32_t ref = 0;
    for (int i = 0; i < q->n; i++) {
        const struct scene *c = &q->list[i];
        int at = is_early(c, p) ? element_of(c, p) : -1;
        if (at < 0)
            continue;
        if (ref && c->s.e[at].ref != ref) /* replaced since */
            return false;
        ref = c->s.e[at].ref;
        struct recording_target seen = described(c, at, p);
        if (!looks_same(&c->s.e[at], seen.equals, p, &c->screen, before))
            continue;
        put_element(t, &seen);
        return true;
    }
    return false;
}

/* Returns the newest scene from before the press that a later one repeats, NULL: none. */
static const struct scene *repeated(const struct scenes *q, const struct scene *late, int at,
                                    const struct press *p)
{
    for (int i = 0; i < q->n; i++) {
        int then = is_early(&q->list[i], p) ? element_of(&q->list[i], p) : -1;
        if (then >= 0)
            return repeats(&q->list[i], then, late, at, p) ? &q->list[i] : NULL;
    }
    return NULL;
}

/* Names the element by a scene that was read after the press. */
static bool name_late(const struct scenes *q, const struct scene *c, const struct press *p,
                      const struct image *before, const struct image *now, bool ripe,
                      struct recording_target *t)
{
    int at = element_of(c, p);
    if (at < 0)
        return false;
    struct recording_target seen = described(c, at, p);
    bool sure = repeated(q, c, at, p) != NULL;
    if (!sure)
        sure = ripe && seen.equals <= 1 && !text_listed(items, seen.role) &&
               looks_same(&c->s.e[at], 1, p, before, &c->screen) &&
               looks_same(&c->s.e[at], 1, p, before, now);
    if (sure) {
        seen.on = RECORDING_NO_STATE; /* the press may have changed it */
        put_element(t, &seen);
    }
    return sure;
}

void scenes_name(const struct scenes *q, struct press *p, const struct image *before, const struct image *now,
                 int64_t now_at, struct recording_target *t)
{
    if (!p->unnamed || !before->rgb)
        return;
    if (name_early(q, p, before, t) || !p->window) {
        p->unnamed = false;
        return;
    }
    for (int i = q->n - 1; i >= 0 && p->unnamed; i--) { /* the first one after the press */
        const struct scene *c = &q->list[i];
        bool ripe = now_at > ripe_at(c);
        bool complete = c->s.end == SNAPSHOT_WHOLE || c->s.end == SNAPSHOT_NOTHING;
        if (is_early(c, p))
            continue;
        if (name_late(q, c, p, before, now, ripe, t) || (ripe && complete && c->asked > p->at))
            p->unnamed = false;
    }
}
