/* recorder_look.c - records the appearance of a target: pictures, window, element. See recorder.c. */
#include "record/recorder_impl.h"
#include "record/target.h"

#include "base/clock.h"
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ANSWER_MS = 300, /* longest wait for an element's name at a press */
    UNDER_PX = 3,    /* maximum distance to the point of the last request */
    AWAY_PX = 60,    /* a pointer farther away does not change a target's appearance */
    FRESH_MS = 40,   /* a screenshot younger than this need not be repeated */
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
    recording_target_free(&r->target);
}

/* ---- the place under the pointer -------------------------------------------------------------------- */

void recorder_ask(struct recorder *r, int x, int y)
{
    screen_window_at(r->o->screen, x, y, &r->under);
    r->ux = x;
    r->uy = y;
    elements_ask_at(r->elements, x, y);
}

static void set_window(struct recording_target *t, const struct screen_window *w, struct screen_rect root)
{
    bool known = *w->class && w->rect.w > 0;
    snprintf(t->class, sizeof t->class, "%s", w->class);
    snprintf(t->title, sizeof t->title, "%.*s", (int)sizeof t->title - 1, known ? w->title : "");
    t->rect = known ? w->rect : root;
}

static void set_element(struct recorder *r, struct recording_target *t)
{
    struct element el, other;
    if (!elements_answer_at(r->elements, t->x, t->y, ANSWER_MS, &el, &other))
        return;
    bool inside = t->x >= el.rect.x && t->x < el.rect.x + el.rect.w && t->y >= el.rect.y &&
                  t->y < el.rect.y + el.rect.h;
    if (!inside || el.rect.w < 1 || el.rect.h < 1)
        return;
    snprintf(t->name, sizeof t->name, "%s", el.name);
    snprintf(t->role, sizeof t->role, "%s", el.role);
    t->fx = (t->x - el.rect.x + 0.5) / el.rect.w;
    t->fy = (t->y - el.rect.y + 0.5) / el.rect.h;
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
    image_free(&r->press);
    if (image_copy(&r->press, &r->shots[0].image, NULL) == 0 &&
        target_cut(&r->press, x, y, t->rect, &t->pictures[0], NULL) == 0)
        t->n_pictures = 1;
    add_picture(t, without_pointer(r, x, y));
    add_picture(t, &now);
    image_free(&now);
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
