/* by_name.c - corrects positions by the names of elements. */
#include "pocket/private.h"

#include "base/err.h"

#include <math.h>
#include <stdio.h>

static int note_place(struct assist_step *s, int index, const char *element, const int32_t from[2],
                      const int32_t *to, struct err *e)
{
    char was[32], is[32];
    snprintf(was, sizeof was, "%d, %d", from[0], from[1]);
    if (to)
        snprintf(is, sizeof is, "%d, %d", to[0], to[1]);
    const struct assist_note n = {
        .by = "name", .index = index, .element = element, .from = was, .to = to ? is : NULL};
    return s->note(s, &n, e);
}

/* Replaces a click on a button with another name by the statement that the element is missing. */
static int report_missing(struct assist_step *s, int index, struct action *a, struct err *e)
{
    struct action missing = {.kind = ACT_INFEASIBLE,
                             .x = ACTION_ABSENT,
                             .y = ACTION_ABSENT,
                             .x2 = ACTION_ABSENT,
                             .y2 = ACTION_ABSENT,
                             .text = xstrdup(a->element)};
    int rc = note_place(s, index, a->element, (int32_t[]){a->x, a->y}, NULL, e);
    action_free(a);
    *a = missing;
    return rc;
}

static int correct_place(struct pocket *x, struct assist_step *s, int index, struct action *a, struct err *e)
{
    const struct seen *seen;
    enum locate_for what = a->kind == ACT_TYPE ? LOCATE_TYPE : LOCATE_CLICK;
    if (pocket_look(x, s->frame, &seen, e))
        return -1;
    if (!seen->map.patches || pocket_without & WITHOUT_PLACES)
        return 0;
    double at[2] = {(a->x + 0.5) * seen->map.scale, (a->y + 0.5) * seen->map.scale};
    enum located found = locate(&seen->map, a->element, what, &at[0], &at[1]);
    if (found == LOCATED_THERE)
        return 0;
    if (found == LOCATED_NOWHERE)
        return report_missing(s, index, a, e);
    const int32_t from[2] = {a->x, a->y};
    a->x = (int32_t)floor(fmin(at[0] / seen->map.scale, s->frame->w - 1));
    a->y = (int32_t)floor(fmin(at[1] / seen->map.scale, s->frame->h - 1));
    return note_place(s, index, a->element, from, (int32_t[]){a->x, a->y}, e);
}

int pocket_correct_action(struct assist *x, struct assist_step *s, int index, struct action *a, struct err *e)
{
    bool placed = (action_is(a->kind, ACTION_CLICKS) || action_is(a->kind, ACTION_TYPES)) && *a->element &&
                  a->x != ACTION_ABSENT;
    return placed ? correct_place((struct pocket *)x, s, index, a, e) : 0;
}

/* In pixels of the tower's input. */
static void find_in(const struct seen *seen, const char *name, struct grounding *f)
{
    struct thing is;
    float differs = text_absent(&seen->text, name);
    if (f->missing && thing_of_name(&seen->map, &seen->text, name, false, LOCATE_CLICK, &is))
        *f = (struct grounding){false, (double)is.x, (double)is.y, (double)is.p};
    else if (!f->missing && differs > 0)
        *f = (struct grounding){.missing = true, .p = (double)differs};
    else if (!f->missing)
        f->missing = locate(&seen->map, name, LOCATE_CLICK, &f->x, &f->y) == LOCATED_NOWHERE;
}

int pocket_find(struct assist *x, const struct image *im, const char *name, struct grounding *f,
                struct err *e)
{
    const struct seen *seen;
    if (pocket_look((struct pocket *)x, im, &seen, e))
        return -1;
    if (!seen->map.patches || pocket_without & WITHOUT_PLACES)
        return 0;
    f->x *= seen->map.scale;
    f->y *= seen->map.scale;
    find_in(seen, name, f);
    f->x = fmin(f->x / seen->map.scale, im->w - 1);
    f->y = fmin(f->y / seen->map.scale, im->h - 1);
    return 0;
}
