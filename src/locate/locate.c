/* locate.c - from a name that is written to the thing that it names.
 *
 * The letters of a picture are read well in any type and theme, kinds of elements less so.  A name may be
 * written in plain text too, above all in what a page says is to be done, so a click goes to a name only on
 * an element or beside what is surely a tick; typing goes to what is surely a field: right of the name in
 * its row, under it, or before it.  What is no wider than a tick is not taken for a field.  A place that is
 * on the right thing already stays, and so does one whose name is read on no element; but from bare ground
 * it moves onto what is near.
 */
#include "locate/locate.h"

#include "base/err.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const float on = 0.4f, sure = 0.6f, bare = 0.3f, weak = 0.25f; /* probabilities of an element */
static const float level = 13;                  /* pixels from the middle of a name to what is in its row */
static const float letter = 10;                 /* pixels that a letter counts which was read otherwise */
static const float otherwise_from = 0.5f;       /* share of a name's letters that must differ */
static const float alike = 0.5f;                /* costs of names that are read equally well */
static const float own_place = 0.2f, far = 150; /* weight of the distance to the model's place; its most */
static const float beside = 60, below = 64, aside = 40, tick_reach = 40, plain_reach = 120, half_button = 75;

enum {
    NARROWEST_FIELD = 3, /* patches */
    SHORT_NAME = 4,      /* letters */
    FIELDS = 1 << ELEMENT_FIELD | 1 << ELEMENT_AREA | 1 << ELEMENT_SELECT | 1 << ELEMENT_LIST,
    NAMED = 1 << ELEMENT_BUTTON | 1 << ELEMENT_LINK | 1 << ELEMENT_TAB | 1 << ELEMENT_ITEM |
            1 << ELEMENT_HEADER | 1 << ELEMENT_SELECT,
    TICKS = 1 << ELEMENT_CHECK | 1 << ELEMENT_RADIO,
    ANY = (1 << ELEMENT_KINDS) - 1 - (1 << ELEMENT_NONE)
};

struct ground { /* probabilities of each patch, and which fields they are of */
    const struct patch_map *map;
    int n;
    float *field, *tick, *named, *any;
    int *region; /* the first patch of the field that it is of, or -1 */
};

static float mass(const struct patch_reading *p, unsigned kinds)
{
    float sum = 0;
    for (int k = 0; k < ELEMENT_KINDS; k++)
        sum += kinds >> k & 1 ? p->kind[k] : 0;
    return sum;
}

static float middle(const struct ground *g, int index)
{
    return (float)(g->map->side * index) + (float)g->map->side / 2;
}

static float x_of(const struct ground *g, int patch)
{
    return middle(g, patch % g->map->cols);
}

static float y_of(const struct ground *g, int patch)
{
    return middle(g, patch / g->map->cols);
}

static int patch_at(const struct ground *g, double x, double y)
{
    const struct patch_map *m = g->map;
    int row = (int)fmin(fmax(y / m->side, 0), m->rows - 1),
        col = (int)fmin(fmax(x / m->side, 0), m->cols - 1);
    return row * m->cols + col;
}

/* Marks the patches that are connected with this one as a field, with its number.  A region that is too
 * narrow is no field. */
static void mark_region(struct ground *g, int patch, int *todo)
{
    int cols = g->map->cols, n = 0, done = 0, first = cols, last = 0;
    todo[n++] = patch;
    g->region[patch] = patch;
    while (done < n) {
        int p = todo[done++], row = p / cols, col = p % cols;
        first = col < first ? col : first;
        last = col > last ? col : last;
        for (int k = 0; k < 4; k++) {
            int r = row + (k == 0) - (k == 1), c = col + (k == 2) - (k == 3), q = r * cols + c;
            if (r >= 0 && r < g->map->rows && c >= 0 && c < cols && g->region[q] < 0 && g->field[q] >= on) {
                g->region[q] = patch;
                todo[n++] = q;
            }
        }
    }
    for (int i = 0; last - first + 1 < NARROWEST_FIELD && i < n; i++)
        g->field[todo[i]] = 0, g->region[todo[i]] = -1;
}

static struct ground ground_of(const struct patch_map *m)
{
    struct ground g = {.map = m, .n = m->rows * m->cols};
    size_t n = (size_t)g.n;
    g.field = xmalloc(4 * n, sizeof *g.field);
    g.tick = g.field + n;
    g.named = g.tick + n;
    g.any = g.named + n;
    g.region = xmalloc(2 * n, sizeof *g.region);
    for (int i = 0; i < g.n; i++) {
        g.field[i] = mass(&m->patches[i], FIELDS);
        g.tick[i] = mass(&m->patches[i], TICKS);
        g.named[i] = mass(&m->patches[i], NAMED);
        g.any[i] = mass(&m->patches[i], ANY);
        g.region[i] = -1;
    }
    for (int i = 0; i < g.n; i++)
        if (g.region[i] < 0 && g.field[i] >= on)
            mark_region(&g, i, g.region + n);
    return g;
}

static void ground_free(struct ground *g)
{
    free(g->field);
    free(g->region);
}

static float near_of(float x, float y, const double *own)
{
    return hypotf(x - (float)own[0], y - (float)own[1]);
}

/* Onto the closest patch that is surely an element within reach, if the place is on none. */
static bool onto_element(const struct ground *g, const float *mass, float reach, double *own)
{
    float best = INFINITY;
    int found = -1;
    if (mass[patch_at(g, own[0], own[1])] > bare)
        return false;
    for (int i = 0; i < g->n; i++) {
        float away = near_of(x_of(g, i), y_of(g, i), own);
        if (mass[i] > sure && away < reach && away < best) {
            best = away;
            found = i;
        }
    }
    if (found < 0)
        return false;
    own[0] = x_of(g, found);
    own[1] = y_of(g, found);
    return true;
}

/* ---- fields -------------------------------------------------------------------------------------- */

/* Whether another field comes before this patch's on the way from the name, going right or down. */
static bool another_first(const struct ground *g, int patch, float from, bool down)
{
    int cols = g->map->cols, step = down ? cols : 1, k = (int)from / g->map->side + 1;
    int at = down ? k * cols + patch % cols : patch / cols * cols + k;
    for (; at < patch; at += step)
        if (g->region[at] >= 0 && g->region[at] != g->region[patch])
            return true;
    return false;
}

/* How far a field's patch is from a name, as people lay out forms; INFINITY: it is not named so. */
static float field_cost(const struct ground *g, const struct written *w, int patch)
{
    float x = x_of(g, patch), y = y_of(g, patch), down = y - w->y;
    bool in_row = fabsf(down) < level;
    if (in_row && x > w->x1)
        return another_first(g, patch, w->x1, false) ? INFINITY : 0.1f * (x - w->x1) + fabsf(down);
    bool under = down >= 10 && down < below && (fabsf(x - w->x0) < aside || (x >= w->x0 && x <= w->x1));
    if (under)
        return another_first(g, patch, w->y, true) ? INFINITY : 0.7f * down + 0.15f * fabsf(x - w->x0);
    return in_row && x < w->x0 && w->x0 - x < beside ? 30 + 0.5f * (w->x0 - x) : INFINITY;
}

/* Whether the place is on or beside a field. */
static bool on_field(const struct ground *g, int region, const double *own)
{
    for (int i = 0; i < g->n; i++)
        if (g->region[i] == region && near_of(x_of(g, i), y_of(g, i), own) < 18)
            return true;
    return false;
}

/* What may be a field at the far end of a name's row, of a look that the tower does not know: several
 * patches of something.  The surest of them, or -1. */
static int something_in_row(const struct ground *g, const struct written *w)
{
    float best = weak;
    int found = -1, many = 0;
    for (int i = 0; i < g->n; i++) {
        if (fabsf(y_of(g, i) - w->y) >= (float)g->map->side / 2 || x_of(g, i) < w->x1 + (float)g->map->side)
            continue;
        many += g->any[i] >= weak;
        if (g->any[i] >= best) {
            best = g->any[i];
            found = i;
        }
    }
    return many > NARROWEST_FIELD ? found : -1;
}

/* The patch of a field that is cheapest to be the named one, or -1. */
static int field_named(const struct ground *g, const struct written *w, int n, const double *own)
{
    float best = INFINITY;
    int found = -1;
    for (int k = 0; k < n && w[k].cost <= w->cost + alike; k++)
        for (int i = 0; i < g->n; i++) {
            if (g->region[i] < 0)
                continue;
            float cost = field_cost(g, &w[k], i) + letter * w[k].cost + 40 * (1 - g->field[i]) +
                         own_place * fminf(near_of(x_of(g, i), y_of(g, i), own), far);
            if (cost < best) {
                best = cost;
                found = i;
            }
        }
    return found;
}

/* Whether a place on a field stays there: unless it cannot be the named one, and another is in the name's
 * row. */
static bool field_stays(const struct ground *g, const struct written *w, int other, const double *own)
{
    int there = patch_at(g, own[0], own[1]);
    bool in_row = fabsf(y_of(g, other) - w->y) < level;
    if (g->region[other] >= 0 && on_field(g, g->region[other], own))
        return true;
    return g->region[there] >= 0 && (!in_row || !isinf(field_cost(g, w, there)));
}

static bool locate_field(const struct ground *g, const struct written *w, int n, double *own)
{
    int found = field_named(g, w, n, own);
    if (found < 0 && n && (own[0] <= w->x1 || fabs(own[1] - w->y) >= level))
        found = something_in_row(g, w);
    if (found < 0)
        return onto_element(g, g->field, 40, own);
    if (field_stays(g, w, found, own))
        return false;
    own[0] = x_of(g, found);
    own[1] = y_of(g, found);
    return true;
}

/* ---- clicks -------------------------------------------------------------------------------------- */

/* Where a tick is from left to right: the mean of its patch and those beside it, by probability.  Above and
 * under it others may stand. */
static float tick_middle(const struct ground *g, int patch)
{
    float sum = 0, x = 0;
    for (int i = patch - 1; i <= patch + 1; i++) {
        bool there = i >= 0 && i < g->n && i / g->map->cols == patch / g->map->cols;
        float p = there && g->tick[i] >= on ? g->tick[i] : 0;
        sum += p;
        x += p * x_of(g, i);
    }
    return x / sum;
}

/* The patch of the tick that stands before a name, or after it.  -1: no patch near it is surely a tick. */
static int tick_of(const struct ground *g, const struct written *w)
{
    float best = INFINITY;
    int found = -1;
    for (int i = 0; i < g->n; i++) {
        float before = w->x0 - x_of(g, i), behind = x_of(g, i) - w->x1;
        float away = before > 0 ? before : 20 + behind;
        if (g->tick[i] > sure && fabsf(y_of(g, i) - w->y) < level && fmaxf(before, behind) > 0 &&
            fmaxf(before, behind) < tick_reach && away < best) {
            best = away;
            found = i;
        }
    }
    return found;
}

/* Whether a name stands on an element: the share of its width. */
static bool on_element(const struct ground *g, const struct written *w)
{
    enum { STEP = 6 };
    float sum = 0;
    int n = (int)((w->x1 - w->x0) / STEP) + 1;
    for (int i = 0; i < n; i++)
        sum += g->named[patch_at(g, w->x0 + (float)(STEP * i), w->y)];
    return sum > bare * (float)n;
}

/* Whether a place is on a name, on its tick, or on a field that the name may be of. */
static bool on_named(const struct ground *g, const struct written *w, int tick, const double *own)
{
    int there = patch_at(g, own[0], own[1]);
    bool text = own[0] >= w->x0 - 12 && own[0] <= w->x1 + 12 && fabs(own[1] - w->y) < 12;
    bool field = g->region[there] >= 0 && !isinf(field_cost(g, w, there));
    bool on_tick =
        g->tick[there] >= on && fabs(own[1] - w->y) < 10 && own[0] < w->x0 && w->x0 - own[0] < tick_reach;
    return text || field || on_tick || (tick >= 0 && near_of(x_of(g, tick), y_of(g, tick), own) < 14);
}

/* Of the best readings of a name on an element or with a tick the nearest; from bare ground plain text that
 * is near counts too.  -1: there is none. */
static int thing_named(const struct ground *g, const struct written *w, int n, const double *own)
{
    float best = INFINITY;
    int found = -1;
    bool on_bare = g->any[patch_at(g, own[0], own[1])] < bare;
    for (int k = 0; k < n && (found < 0 || w[k].cost <= w[found].cost + alike); k++) {
        float away = near_of((w[k].x0 + w[k].x1) / 2, w[k].y, own);
        bool thing = on_element(g, &w[k]) || tick_of(g, &w[k]) >= 0;
        if (away < best && (thing || (on_bare && away < plain_reach))) {
            best = away;
            found = k;
        }
    }
    return found;
}

static bool locate_click(const struct ground *g, const struct written *w, int n, double *own)
{
    int found = thing_named(g, w, n, own), tick = found < 0 ? -1 : tick_of(g, &w[found]);
    for (int k = 0; k < n; k++)
        if ((found < 0 || w[k].cost <= w[found].cost + alike) && on_named(g, &w[k], tick_of(g, &w[k]), own))
            return false;
    if (found < 0)
        return onto_element(g, g->any, 40, own);
    own[0] = tick >= 0 ? tick_middle(g, tick) : (w[found].x0 + w[found].x1) / 2;
    own[1] = w[found].y;
    return true;
}

/* ---- names --------------------------------------------------------------------------------------- */

/* The letters of a line that are on the button at a place: how many, and the first. */
static int on_button(const struct picture_text *t, const struct text_line *line, const double *own,
                     int *first)
{
    int n = 0;
    for (int i = line->first; i < line->first + line->n; i++) {
        const struct letter *l = &t->letters[i];
        bool there = fabs((double)l->y - own[1]) < level && fabs((double)l->x - own[0]) < half_button;
        if (there && n++ == 0)
            *first = i;
    }
    return n;
}

/* Whether a place is on a button whose name is read and is another. */
static bool says_otherwise(const struct ground *g, const struct picture_text *t, const char *name,
                           const double *own)
{
    float least = 1;
    bool read = false;
    if (g->map->patches[patch_at(g, own[0], own[1])].kind[ELEMENT_BUTTON] <= sure)
        return false;
    for (int k = 0; k < t->n_lines; k++) {
        int first = 0, letters = on_button(t, &t->lines[k], own, &first);
        if (letters) {
            least = fminf(least, text_differs(&t->letters[first], letters, name));
            read = read || letters > 1;
        }
    }
    return read && least > otherwise_from;
}

/* Whether a name is written anywhere; a short one as a word of its own, since longer ones may hold it. */
static bool is_written(const char *name, const struct written *w, int n)
{
    return n && (strlen(name) > SHORT_NAME || w->cost < alike);
}

enum located locate(const struct patch_map *m, const char *name, enum locate_for what, double *x, double *y)
{
    struct written w[LOCATE_PLACES];
    double own[2] = {*x, *y};
    struct picture_text t = text_read(m);
    struct ground g = ground_of(m);
    int n = text_find(&t, name, w);
    bool moved = what == LOCATE_TYPE ? locate_field(&g, w, n, own) : locate_click(&g, w, n, own);
    bool nowhere = what == LOCATE_CLICK && strlen(name) > 1 && !is_written(name, w, n) &&
                   says_otherwise(&g, &t, name, own);
    ground_free(&g);
    text_free(&t);
    *x = own[0];
    *y = own[1];
    return nowhere ? LOCATED_NOWHERE : moved ? LOCATED_ELSEWHERE : LOCATED_THERE;
}
