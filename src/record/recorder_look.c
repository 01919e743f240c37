/* recorder_look.c - records the appearance of a target: pictures, window, element. See recorder.c. */
#include "record/look.h"
#include "record/recorder_impl.h"
#include "record/target.h"
#include "record/target_element.h"

#include "base/clock.h"
#include "base/file.h"
#include "plain/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ANSWER_MS = 300,        /* longest wait for an element at a press */
    FOCUS_ANSWER_MS = 1000, /* longest time in which the element with the keyboard is requested */
    UNDER_PX = 3,           /* maximum distance to the point of the last request */
    FAR_AWAY = 1 << 20,
    AWAY_PX = 60,  /* a pointer farther away does not change a target's appearance */
    FRESH_MS = 40, /* a screenshot younger than this need not be repeated */
};

/* ---- screenshots ------------------------------------------------------------------------------------ */

static int capture(struct recorder *r, struct image *out, struct err *e)
{
    if (screen_capture(r->o->screen, out, e))
        return -1;
    if (r->redact)
        redact_image(r->redact, r->o->screen, out);
    return 0;
}

int recorder_shoot(struct recorder *r, struct err *e)
{
    struct shot oldest = r->shots[SHOTS - 1], *newest = &r->shots[0];
    struct image *im = &oldest.image;
    if (capture(r, im, e)) {
        r->shots[SHOTS - 1] = oldest;
        return -1;
    }
    r->last_shot = clock_ns();
    if (newest->image.rgb && image_equal(&newest->image, im)) {
        r->shots[SHOTS - 1] = oldest;
        newest->last = r->last_shot;
        return 0;
    }
    if (newest->image.rgb && image_tiles_changed(&newest->image, im, IMAGE_EFFECT_LEVEL) > 0)
        r->last_change = r->last_shot;
    memmove(r->shots + 1, r->shots, (SHOTS - 1) * sizeof *r->shots);
    r->shots[0] = (struct shot){*im, r->last_shot, r->px, r->py};
    return 0;
}

void recorder_free_pictures(struct recorder *r)
{
    for (int i = 0; i < SHOTS; i++)
        image_free(&r->shots[i].image);
    image_free(&r->press);
    image_free(&r->look.image);
    recording_target_free(&r->target);
}

/* ---- the place under the pointer -------------------------------------------------------------------- */

void recorder_ask(struct recorder *r, int x, int y)
{
    screen_window_at(r->o->screen, x, y, &r->under);
    r->ux = x;
    r->uy = y;
    r->answered = false;
    r->asked_at = clock_ns();
    elements_ask_at(r->elements, x, y);
}

static void set_window(struct recording_target *t, const struct screen_window *w, struct screen_rect root)
{
    bool known = *w->class && w->rect.w > 0;
    snprintf(t->class, sizeof t->class, "%s", w->class);
    snprintf(t->title, sizeof t->title, "%.*s", (int)sizeof t->title - 1, known ? w->title : "");
    t->rect = known ? w->rect : root;
    window_language(w->pid, t->language);
}

static const char *const items[] = {
    "menu item", "check menu item", "radio menu item", "menu", "list item", "table cell", NULL};

/* Returns whether an element is in the X window at the point. GTK 3 and Qt describe the items of an open
 * menu or list below the menu bar or the closed list. */
static bool is_on_top(const struct snapshot *s, int at)
{
    const struct element *e = &s->e[at];
    return !s->window || !e->window || e->window == s->window || text_listed(items, e->role);
}

/* Returns the smallest element at a point in an X window, except items of menus and lists; -1: none. */
static int beneath(const struct snapshot *s, int x, int y, unsigned long window)
{
    int best = -1;
    for (int i = 0; i < s->n; i++) {
        const struct element *e = &s->e[i], *b = best >= 0 ? &s->e[best] : NULL;
        if (e->window == window && e->parent >= 0 && e->trust != PLACE_NONE && !text_listed(items, e->role) &&
            screen_rect_contains(e->rect, x, y) &&
            (!b || (double)e->rect.w * e->rect.h <= (double)b->rect.w * b->rect.h))
            best = i;
    }
    return best;
}

void recorder_hear(struct recorder *r, double ms)
{
    int at;
    const struct snapshot *s = r->answered ? NULL : elements_answer(r->elements, r->ux, r->uy, ms, &at);
    if (!s)
        return;
    r->answered = true;
    r->found = (struct recording_target){.x = r->ux, .y = r->uy};
    r->found_in = r->under.id;
    bool opened = s->window && r->under.id && s->window != r->under.id;
    if (at >= 0 && opened && text_listed(items, s->e[at].role)) /* read after the press had opened it */
        at = beneath(s, r->ux, r->uy, r->under.id);
    if (at >= 0 && s->e[at].parent >= 0 && resolve_is_field(&s->e[s->e[at].parent]))
        at = s->e[at].parent; /* Qt describes the inside of a text as a part of it */
    if (at >= 0 && screen_rect_contains(s->e[at].rect, r->ux, r->uy) && is_on_top(s, at))
        target_describe(s, at, &r->found);
    r->found_at = r->asked_at;
}

/* Copies the element under the pointer. Without an answer to the newest request, an older answer counts if it
 * is about the same position in the same window: a colour under the pointer causes a request, too. */
static void set_element(struct recorder *r, struct recording_target *t)
{
    struct recording_target whole = *t;
    bool heard = r->answered; /* before the press, which changes the state */
    recorder_hear(r, ANSWER_MS);
    const struct recording_target *f = &r->found;
    if (!*f->role || r->found_in != r->under.id || abs(f->x - t->x) > UNDER_PX || abs(f->y - t->y) > UNDER_PX)
        return;
    bool late = (double)r->found_at / 1e6 > (double)r->in_ms + r->skew;
    if (late && text_listed(items, f->role)) /* requested after the press, which may have opened this menu */
        return;
    if (!heard && f->equals > 1) /* read after the press, which may have removed a row above */
        return;
    *t = *f;
    t->on = late || !heard ? RECORDING_NO_STATE : t->on;
    t->x = whole.x;
    t->y = whole.y;
    t->rect = whole.rect;
    memcpy(t->class, whole.class, sizeof t->class);
    memcpy(t->title, whole.title, sizeof t->title);
    memcpy(t->language, whole.language, sizeof t->language);
}

/* Adds a further picture of the target, cut at the rectangle of the first, unless the list is full or both
 * are equal. */
static void add_picture(struct recording_target *t, const struct image *im)
{
    struct recording_picture *first = &t->pictures[0], *next = &t->pictures[t->n_pictures];
    if (t->n_pictures == RECORDING_PICTURES || !t->n_pictures || !im->rgb || im->w * 3 < 1 ||
        t->x - first->x + first->image.w > im->w || t->y - first->y + first->image.h > im->h)
        return;
    if (target_cut_same(im, t->x, t->y, first, next, NULL))
        return;
    if (image_equal(&next->image, &first->image))
        image_free(&next->image);
    else
        t->n_pictures++;
}

/* Returns the newest screenshot with the pointer more than AWAY_PX away, or an empty image. */
static const struct image *without_pointer(const struct recorder *r, int x, int y)
{
    static const struct image none;
    for (int i = 0; i < SHOTS; i++)
        if (r->shots[i].image.rgb && (abs(r->shots[i].px - x) > AWAY_PX || abs(r->shots[i].py - y) > AWAY_PX))
            return &r->shots[i].image;
    return &none;
}

void recorder_look_around(struct recorder *r, struct screen_rect window)
{
    image_free(&r->press);
    if (image_copy(&r->press, &r->shots[0].image, NULL) == 0)
        look_take(&r->press, 0, 0, window, &r->look);
}

void recorder_look_at(struct recorder *r, int x, int y)
{
    struct recording_target *t = &r->target;
    struct image now = {0};
    recording_target_free(t);
    bool fresh = clock_ms_since(r->shots[0].last) < FRESH_MS;
    if (!fresh && capture(r, &now, NULL)) /* just after the press: usually before its effect */
        image_free(&now);
    if (abs(x - r->ux) > UNDER_PX || abs(y - r->uy) > UNDER_PX)
        recorder_ask(r, x, y);
    t->x = x;
    t->y = y;
    set_window(t, &r->under, screen_root(r->o->screen));
    set_element(r, t);
    recorder_look_around(r, t->rect);
    if (r->press.rgb && target_cut(&r->press, x, y, t->rect, &t->pictures[0], NULL) == 0)
        t->n_pictures = 1;
    add_picture(t, without_pointer(r, x, y));
    add_picture(t, &now);
    image_free(&now);
}

void recorder_ask_focus(struct recorder *r)
{
    r->focus_asked = r->asked = clock_ns();
    r->typed = 0;
    r->answered = true; /* the question about the pointer is replaced */
    r->ux = r->uy = -FAR_AWAY;
    elements_ask_focus(r->elements, r->focus.title);
}

void recorder_hear_focus(struct recorder *r)
{
    int at;
    const struct snapshot *s = elements_answer_focus(r->elements, r->focus.title, 0, &at);
    if (!s && clock_ms_since(r->focus_asked) < FOCUS_ANSWER_MS)
        return;
    bool moved = elements_focus_since(r->elements, r->focus_asked);
    r->focus_asked = 0;
    if (!s || moved || at < 0 || s->e[at].rect.w < 1 || s->e[at].rect.h < 1)
        return;
    r->target.x = s->e[at].rect.x + s->e[at].rect.w / 2;
    r->target.y = s->e[at].rect.y + s->e[at].rect.h / 2;
    target_describe(s, at, &r->target);
}

void recorder_look_back(struct recorder *r, int x, int y, struct recording_target *out)
{
    struct screen_window w;
    *out = (struct recording_target){.x = x, .y = y};
    screen_window_at(r->o->screen, x, y, &w);
    set_window(out, &w, screen_root(r->o->screen));
    if (r->press.rgb && target_cut(&r->press, x, y, out->rect, &out->pictures[0], NULL) == 0)
        out->n_pictures = 1;
}

/* ---- the program, for a suite ----------------------------------------------------------------------- */

void recorder_name_program(struct recorder *r, const struct recording_step *s)
{
    struct screen_window w;
    if (screen_find_window(r->o->screen, s->target.class, s->target.title, &w) == 0)
        snprintf(r->result->command, sizeof r->result->command, "%s", w.program);
}

bool recorder_is_new_window(struct recorder *r, unsigned long id)
{
    bool known = !id;
    for (int i = 0; i < r->n_windows && i < WINDOWS_SEEN; i++)
        known = known || r->windows[i] == id;
    if (!known)
        r->windows[r->n_windows++ % WINDOWS_SEEN] = id;
    return !known && r->n_windows > 1;
}
