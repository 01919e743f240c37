/* locate.c - from a name that is written to the thing that it names.
 *
 * The pointer (pointer.c) says for each place where a name is written what is named there, or that it is
 * plain text, as in what a page says is to be done.  The surest and nearest thing counts.  A place that is
 * on it already stays; so does one whose name is not read.  A place without a name moves from bare ground
 * onto the nearest element.
 */
#include "locate/locate.h"

#include "base/err.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const float on = 0.4f, sure = 0.6f, surely = 0.95f, bare = 0.3f; /* probabilities of an element */
/* Least probability of what is named: a press of something else does harm, and what is typed has a field. */
static const float trusted[] = {[LOCATE_CLICK] = 0.3f, [LOCATE_TYPE] = 0.02f};
static const float unlikely = 0.02f, contender = 0.1f; /* what counts of what does not look like a field */
static const float plain = 0.8f;          /* from this probability of nothing on a name is plain text */
static const float level = 13;            /* pixels from the middle of a name to what is in its row */
static const float otherwise_from = 0.5f; /* share of a name's letters that must differ */
/* Share of a name's letters that may be read wrongly.  Of a field's name more: there is a field, and the best
 * reading is mostly the right one, while in some types half of the letters are wrong. */
static const float misread = 0.25f, hardly_read = 0.5f;
static const float alike = 0.5f;            /* costs of names that are read equally well */
static const float nearby = 150, onto = 14; /* pixels to a thing */
static const float before_name = 60;        /* a field begins at most so many pixels before its name */
static const float clear = 0.8f;            /* mean mass of letters that are surely read rightly */
static const float letter_gap = 24;         /* pixels, at most, from one to the next on a button */

enum {
    NARROWEST_FIELD = 3, /* patches */
    SHORT_NAME = 4,      /* letters */
    FIELDS = 1 << ELEMENT_FIELD | 1 << ELEMENT_AREA | 1 << ELEMENT_SELECT | 1 << ELEMENT_LIST,
    ANY = (1 << ELEMENT_KINDS) - 1 - (1 << ELEMENT_NONE)
};

struct ground { /* probabilities of each patch, and which fields they are of */
    const struct patch_map *map;
    int n;
    float *field, *any;
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
    g.field = xmalloc(2 * n, sizeof *g.field);
    g.any = g.field + n;
    g.region = xmalloc(2 * n, sizeof *g.region);
    for (int i = 0; i < g.n; i++) {
        g.field[i] = mass(&m->patches[i], FIELDS);
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

/* ---- what a name names ----------------------------------------------------------------------------- */

struct named { /* by the best readings of a name */
    struct pointed at;
    bool known; /* what is named; else it is plain text wherever it is written, or not written */
    bool there; /* the place is on the name of something */
};

static bool on_text(const struct written *w, const double *own)
{
    return own[0] >= w->x0 - onto && own[0] <= w->x1 + onto && fabs(own[1] - w->y) < level;
}

/* What a name names.  Where text goes, what looks like a field; but not in place of what is surely
 * something else, since on some pages a name enters its field, and where the model points at the name as
 * well, only what the pointer finds likely too. */
static struct pointed follow(const struct ground *g, const struct written *w, enum locate_for what,
                             const double *own)
{
    struct pointed to = pointer_follow(g->map, w, NULL, 0);
    int patch = patch_at(g, to.x, to.y);
    bool other = g->any[patch] - mass(&g->map->patches[patch], FIELDS) > surely;
    bool name = own && on_text(w, own) && on_text(w, (double[]){to.x, to.y});
    return what == LOCATE_CLICK || other ? to
                                         : pointer_follow(g->map, w, g->field, name ? contender : unlikely);
}

/* The surest and nearest thing of this name; of a field, by the name that is pointed at, if one is. */
static struct named thing_named(const struct ground *g, const struct written *w, int n, enum locate_for what,
                                const double *own)
{
    struct named out = {.known = false};
    float best = -INFINITY;
    bool meant = false;
    for (int k = 0; k < n && w[k].cost <= w->cost + alike; k++)
        meant = meant || on_text(&w[k], own);
    for (int k = 0; k < n && w[k].cost <= w->cost + alike; k++) {
        if (meant && what == LOCATE_TYPE && !on_text(&w[k], own))
            continue;
        struct pointed to = follow(g, &w[k], what, own);
        if (meant && what == LOCATE_TYPE && to.x < w[k].x0 - before_name)
            continue;
        float score = logf(to.p) - near_of(to.x, to.y, own) / nearby;
        out.there = out.there || (on_text(&w[k], own) && to.nothing < plain);
        if (to.p > trusted[what] && score > best) {
            best = score;
            out.known = true;
            out.at = to;
        }
    }
    return out;
}

/* Whether a place is on the field that this patch is of. */
static bool same_field(const struct ground *g, int patch, const double *own)
{
    for (int i = 0; i < g->n; i++)
        if (g->region[patch] >= 0 && g->region[i] == g->region[patch] &&
            near_of(x_of(g, i), y_of(g, i), own) < onto)
            return true;
    return false;
}

static enum located locate_named(const struct ground *g, const struct written *w, int n, const char *name,
                                 enum locate_for what, double *own)
{
    struct named to = thing_named(g, w, n, what, own);
    if (what == LOCATE_CLICK && to.there)
        return LOCATED_THERE;
    if (!to.known) {
        bool near = !*name && onto_element(g, what == LOCATE_TYPE ? g->field : g->any, 40, own);
        return near ? LOCATED_ELSEWHERE : LOCATED_THERE;
    }
    bool near = near_of(to.at.x, to.at.y, own) < onto;
    if (what == LOCATE_TYPE && (near || same_field(g, patch_at(g, to.at.x, to.at.y), own)))
        return LOCATED_THERE;
    own[0] = to.at.x;
    own[1] = to.at.y;
    return LOCATED_ELSEWHERE;
}

/* ---- names --------------------------------------------------------------------------------------- */

/* The letters of a line that are on the button at a place, from the nearest one on both sides: how many, and
 * the first. */
static int on_button(const struct picture_text *t, const struct text_line *line, const double *own,
                     int *first)
{
    const struct letter *l = t->letters;
    int nearest = -1, end = line->first + line->n;
    for (int i = line->first; i < end; i++)
        if (fabs((double)l[i].y - own[1]) < level &&
            (nearest < 0 || fabs((double)l[i].x - own[0]) < fabs((double)l[nearest].x - own[0])))
            nearest = i;
    if (nearest < 0 || fabs((double)l[nearest].x - own[0]) > nearby / 2)
        return 0;
    int last = *first = nearest;
    while (*first > line->first && l[*first].x - l[*first - 1].x < letter_gap)
        --*first;
    while (last + 1 < end && l[last + 1].x - l[last].x < letter_gap)
        last++;
    return last - *first + 1;
}

/* Whether a place is on a button whose name is clearly read and is another. */
static bool says_otherwise(const struct ground *g, const struct picture_text *t, const char *name,
                           const double *own)
{
    float least = 1;
    bool read = false;
    if (g->map->patches[patch_at(g, own[0], own[1])].kind[ELEMENT_BUTTON] <= sure)
        return false;
    for (int k = 0; k < t->n_lines; k++) {
        int first = 0, n = on_button(t, &t->lines[k], own, &first);
        float mass = 0;
        for (int i = 0; i < n; i++)
            mass += t->letters[first + i].mass / (float)n;
        if (n)
            least = fminf(least, text_differs(&t->letters[first], n, name));
        read = read || (n > 1 && mass > clear);
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
    bool hardly = what == LOCATE_TYPE && strlen(name) > SHORT_NAME;
    int n = text_find(&t, name, hardly ? hardly_read : misread, w);
    enum located at = locate_named(&g, w, n, name, what, own);
    bool nowhere = what == LOCATE_CLICK && strlen(name) > 1 && !is_written(name, w, n) &&
                   says_otherwise(&g, &t, name, own);
    ground_free(&g);
    text_free(&t);
    *x = own[0];
    *y = own[1];
    return nowhere ? LOCATED_NOWHERE : at;
}

bool may_be_written(const struct picture_text *t, const char *name)
{
    struct written w[LOCATE_PLACES];
    return text_find(t, name, strlen(name) > SHORT_NAME ? hardly_read : misread, w) > 0;
}

bool names_field(const struct patch_map *m, const struct written *w)
{
    struct ground g = ground_of(m);
    struct pointed to = pointer_follow(m, w, g.field, unlikely);
    int patch = patch_at(&g, to.x, to.y), row = patch / m->cols, col = patch % m->cols;
    float field = 0; /* of the place and of what is around it, since a field has a rim */
    for (int i = 0; i < g.n; i++)
        if (abs(i / m->cols - row) <= 1 && abs(i % m->cols - col) <= 1)
            field = fmaxf(field, g.field[i]);
    ground_free(&g);
    return to.nothing < sure && field > on;
}

bool thing_of_name(const struct patch_map *m, const struct picture_text *t, const char *name, bool exactly,
                   enum locate_for what, struct thing *out)
{
    struct written w[LOCATE_PLACES];
    float worst = !exactly && strlen(name) > SHORT_NAME ? misread * (float)strlen(name) : alike;
    int n = text_find(t, name, misread, w);
    *out = (struct thing){.p = 0};
    if (n == 0)
        return false;
    struct ground g = ground_of(m);
    for (int k = 0; k < n && w[k].cost <= fminf(worst, w->cost + alike); k++) {
        struct pointed to = follow(&g, &w[k], what, NULL);
        int patch = patch_at(&g, to.x, to.y);
        if (to.p < trusted[what] || to.nothing > 1 - sure || to.p < out->p)
            continue;
        *out = (struct thing){to.x, to.y, to.p, .field = g.field[patch] > on,
                              .button = m->patches[patch].kind[ELEMENT_BUTTON] > on};
    }
    ground_free(&g);
    return out->p > 0;
}
