/* recorder_look.c - records the appearance of a target: pictures, window, element. See recorder.c. */
#include "record/look.h"
#include "record/recorder_impl.h"
#include "record/sight.h"
#include "record/target.h"
#include "record/target_element.h"

#include "base/clock.h"
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FOCUS_ANSWER_MS = 1000, /* longest time in which the element with the keyboard is requested */
    AROUND_PX = 40,         /* around the pointer: includes the text of a menu item */
    FAR_AWAY = 1 << 20,
    AWAY_PX = 60,       /* a pointer farther away does not change a target's appearance */
    FRESH_MS = 40,      /* a screenshot younger than this need not be repeated */
    REST_MS = 25,       /* without motion for this time, the pointer has stopped */
    ASK_AGAIN_MS = 250, /* between two requests for the element at one position */
    OVERDUE_MS = 4000,  /* a request that is not answered by then is not answered */
    POINTED_MS = 3000,  /* so long after the pointer was used: reading delays reports of the focus */
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

/* Returns whether the surroundings of the pointer look the same in two screenshots, up to the colours and a
 * blinking caret. */
static bool same_around(const struct recorder *r, const struct image *a, const struct image *b)
{
    struct screen_rect around = {r->px - AROUND_PX, r->py - AROUND_PX, 2 * AROUND_PX, 2 * AROUND_PX};
    return sight_compare(a, b, around, (struct screen_rect){0}) != SIGHT_OTHER ||
           sight_difference(a, b, around) < IMAGE_EFFECT_LEVEL;
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
    int64_t near =
        newest->image.rgb && same_around(r, &newest->image, im) ? newest->near_change : r->last_shot;
    memmove(r->shots + 1, r->shots, (SHOTS - 1) * sizeof *r->shots);
    r->shots[0] = (struct shot){*im, r->last_shot, r->last_shot, r->px, r->py, near};
    return 0;
}

void recorder_free_pictures(struct recorder *r)
{
    for (int i = 0; i < SHOTS; i++)
        image_free(&r->shots[i].image);
    image_free(&r->before);
    image_free(&r->asked.screen);
    scenes_free(&r->scenes);
    image_free(&r->look.image);
    recording_target_free(&r->target);
}

/* Returns the newest screenshot that was complete at a time, or else the oldest one. */
static const struct shot *shot_at(const struct recorder *r, int64_t at)
{
    int i = 0;
    while (i + 1 < SHOTS && r->shots[i].first > at && r->shots[i + 1].image.rgb)
        i++;
    return &r->shots[i];
}

/* ---- the place under the pointer -------------------------------------------------------------------- */

static bool is_at(const struct recorder *r, const struct below *b)
{
    return b->at && abs(b->x - r->px) <= SCENES_NEAR && abs(b->y - r->py) <= SCENES_NEAR;
}

static void request_below(struct recorder *r)
{
    r->below[1] = r->below[0];
    r->below[0] = (struct below){.x = r->px, .y = r->py, .at = clock_ns()};
    screen_window_at(r->o->screen, r->px, r->py, &r->below[0].window);
}

/* The window was requested before the press, and nothing has opened since; or it is requested only now, and
 * the screen there looks as before the press. */
void recorder_look_below(struct recorder *r)
{
    const struct shot *before = shot_at(r, r->in_ns);
    struct image now = {0};
    for (int i = 0; i < 2; i++)
        if (is_at(r, &r->below[i]) && r->below[i].at <= r->in_ns && r->below[i].at >= before->near_change) {
            r->under = r->below[i].window;
            r->surely_under = true;
            return;
        }
    request_below(r);
    r->under = r->below[0].window;
    r->surely_under = capture(r, &now, NULL) == 0 && same_around(r, &before->image, &now);
    image_free(&now);
}

static void set_window(struct recording_target *t, const struct screen_window *w, struct screen_rect root)
{
    bool known = *w->class && w->rect.w > 0;
    snprintf(t->class, sizeof t->class, "%s", w->class);
    snprintf(t->title, sizeof t->title, "%.*s", (int)sizeof t->title - 1, known ? w->title : "");
    t->rect = known ? w->rect : root;
    window_language(w->pid, t->language);
}

/* Adds the answer to the newest request to the scenes. */
static void keep_scene(struct recorder *r)
{
    elements_take(r->elements, &r->asked.s);
    scenes_add(&r->scenes, &r->asked);
}

/* Keeps the screen at the time of a request. */
static void begin_scene(struct recorder *r, int x, int y)
{
    image_free(&r->asked.screen);
    image_copy(&r->asked.screen, &r->shots[0].image, NULL);
    r->asked.x = x;
    r->asked.y = y;
    r->asked.asked = clock_ns();
}

static void ask(struct recorder *r)
{
    if (clock_ms_since(r->shots[0].last) > FRESH_MS)
        recorder_shoot(r, NULL);
    begin_scene(r, r->px, r->py);
    r->open = true;
    r->found = false;
    elements_ask_at(r->elements, r->px, r->py);
}

static void hear(struct recorder *r)
{
    int at, x = r->asked.x, y = r->asked.y;
    if (!elements_answer(r->elements, x, y, 0, &at))
        return;
    r->open = false;
    keep_scene(r);
    const struct press here = {.x = x, .y = y, .window = r->below[0].window.id};
    r->found = scene_has(&r->scenes.list[0], &here);
}

static bool awaits_name(const struct recorder *r)
{
    bool waits = r->press.unnamed;
    for (int i = 0; i < r->n_queue; i++)
        waits = waits || r->queue[i].press.unnamed;
    return waits;
}

/* Elements are requested as soon as the pointer stops, and again when the screen has changed since, because a
 * list may have opened under the pointer, or while no element is known. A request is open until it is
 * answered: on a loaded machine the pointer may stop several times meanwhile, and each answer describes the
 * program. */
void recorder_look_ahead(struct recorder *r)
{
    bool soon =
        r->pointed && clock_ms_since(r->pointed)<POINTED_MS, rests = clock_ms_since(r->moved)> REST_MS;
    int64_t near = r->shots[0].near_change, changed = near > r->last_change ? near : r->last_change;
    if (rests && (r->moved > r->below[0].at || (soon && changed > r->below[0].at)))
        request_below(r);
    if (r->open)
        hear(r);
    bool overdue = r->open && clock_ms_since(r->asked.asked) > OVERDUE_MS,
         other = soon && (r->last_change > r->asked.asked || !r->found), wanted = awaits_name(r),
         again = (other || wanted) && clock_ms_since(r->asked.asked) > ASK_AGAIN_MS;
    if ((!r->open || overdue) && rests && (r->moved > r->asked.asked || again))
        ask(r);
}

static void name_press(struct recorder *r, struct press *p, const struct image *before,
                       struct recording_target *t)
{
    const struct shot *now = &r->shots[0];
    if (p->unnamed)
        scenes_name(&r->scenes, p, before, &now->image, now->last, t);
    p->unnamed = p->unnamed && !elements_nobody(r->elements);
}

void recorder_name_presses(struct recorder *r)
{
    if (!scenes_news(&r->scenes, r->shots[0].last))
        return;
    name_press(r, &r->press, &r->before, &r->target);
    for (int i = 0; i < r->n_queue; i++)
        name_press(r, &r->queue[i].press, &r->queue[i].before, &r->queue[i].step.target);
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
    image_free(&r->before);
    if (image_copy(&r->before, &shot_at(r, r->in_ns)->image, NULL) == 0)
        look_take(&r->before, 0, 0, window, &r->look);
}

void recorder_look_at(struct recorder *r, int x, int y)
{
    struct recording_target *t = &r->target;
    struct image now = {0};
    recording_target_free(t);
    bool fresh = r->in_ns - shot_at(r, r->in_ns)->last < FRESH_MS * INT64_C(1000000),
         soon = clock_ms_since(r->in_ns) < FRESH_MS;
    if (!fresh && soon && capture(r, &now, NULL)) /* just after the press: usually before its effect */
        image_free(&now);
    t->x = x;
    t->y = y;
    set_window(t, &r->under, screen_root(r->o->screen));
    recorder_look_around(r, t->rect);
    if (r->before.rgb && target_cut(&r->before, x, y, t->rect, &t->pictures[0], NULL) == 0)
        t->n_pictures = 1;
    add_picture(t, without_pointer(r, x, y));
    add_picture(t, &now);
    image_free(&now);
    r->press = (struct press){r->elements != NULL, x, y, r->under.id, t->rect, r->in_ns};
    if (!r->surely_under) {
        r->press.window = 0;
        r->press.rect = screen_root(r->o->screen);
    }
    name_press(r, &r->press, &r->before, t);
}

void recorder_ask_focus(struct recorder *r)
{
    begin_scene(r, -FAR_AWAY, -FAR_AWAY);
    r->focus_asked = r->asked.asked;
    r->typed = 0;
    r->open = false; /* the question about the pointer is replaced */
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
    if (s && !moved && at >= 0 && s->e[at].rect.w > 0 && s->e[at].rect.h > 0) {
        r->target.x = s->e[at].rect.x + s->e[at].rect.w / 2;
        r->target.y = s->e[at].rect.y + s->e[at].rect.h / 2;
        target_describe(s, at, &r->target);
    }
    if (s)
        keep_scene(r);
}

void recorder_look_back(struct recorder *r, int x, int y, struct recording_target *out)
{
    struct screen_window w;
    *out = (struct recording_target){.x = x, .y = y};
    screen_window_at(r->o->screen, x, y, &w);
    set_window(out, &w, screen_root(r->o->screen));
    if (r->before.rgb && target_cut(&r->before, x, y, out->rect, &out->pictures[0], NULL) == 0)
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
