/* locate.c - maps a text label on screen to the UI element it labels, and corrects a position by it.
 *
 * The pointer head (pointer.c) gives for each occurrence of the label the element that it labels, or that
 * it is plain text, for example in a page's instructions.  The most probable and nearest element counts.
 * A position that is already on it stays, and so does one whose label was not found.  A position without a
 * label moves from the background to the nearest element. */
#include "pocket/locate.h"

#include "base/err.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Probabilities of an element on a patch: it belongs to one; clearly; beyond doubt; at most this on the
 * background. */
static const float min_element = 0.4f, min_clear = 0.6f, min_certain = 0.95f, max_background = 0.3f;
/* Minimum probability of the labelled element.  A click on another element does harm; a text needs some
 * field. */
static const float trusted[] = {[LOCATE_CLICK] = 0.3f, [LOCATE_TYPE] = 0.02f};
static const float unlikely = 0.02f, contender = 0.1f; /* weights of patches that do not look like a field */
static const float min_plain = 0.8f;                   /* probability from which a label is plain text */
static const float row_height = 13;   /* pixels from the middle of a label to elements of its row */
static const float other_name = 0.5f; /* fraction of characters that must differ */
/* Maximum fraction of misread characters in a label, and in a field's label: a text needs some field, the
 * best match is mostly right, and in some typefaces half of the characters are misread. */
static const float max_misread = 0.25f, max_field_misread = 0.5f;
static const float same_cost = 0.5f;        /* matches with costs this close are equally good */
static const float nearby = 150, onto = 14; /* pixels to an element: scale of the distance; on it */
static const float before_name = 60;        /* pixels by which a field may begin before its label */
static const float min_mass = 0.8f;         /* mean probability of characters that were clearly read */
static const float letter_gap = 24;         /* maximum distance of characters on a button, in pixels */

enum {
    NARROWEST_FIELD = 3, /* patches */
    SHORT_NAME = 4,      /* letters */
    FIELDS = 1 << ELEMENT_FIELD | 1 << ELEMENT_AREA | 1 << ELEMENT_SELECT | 1 << ELEMENT_LIST,
    ANY = (1 << ELEMENT_KINDS) - 1 - (1 << ELEMENT_NONE)
};

struct ground { /* element classes of each patch, and connected fields */
    const struct patch_map *map;
    int n;
    float *field, *any;
    int *region; /* first patch of the field to which the patch belongs, or -1 */
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

/* Marks the connected component of field patches around this one, unless it is too narrow. */
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
            if (r >= 0 && r < g->map->rows && c >= 0 && c < cols && g->region[q] < 0 &&
                g->field[q] >= min_element) {
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
        if (g.region[i] < 0 && g.field[i] >= min_element)
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

/* Moves a position from the background to the closest patch of an element within reach.  Returns whether it
 * moved. */
static bool onto_element(const struct ground *g, const float *mass, float reach, double *own)
{
    float best = INFINITY;
    int found = -1;
    if (mass[patch_at(g, own[0], own[1])] > max_background)
        return false;
    for (int i = 0; i < g->n; i++) {
        float away = near_of(x_of(g, i), y_of(g, i), own);
        if (mass[i] > min_clear && away < reach && away < best) {
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

/* ---- labelled elements ----------------------------------------------------------------------------- */

struct named { /* element found by the best matches of a label */
    struct pointed at;
    bool known; /* `at` is set; else the label is plain text everywhere, or not on the screen */
    bool there; /* the position is on the label of an element */
};

static bool on_text(const struct written *w, const double *own)
{
    return own[0] >= w->x0 - onto && own[0] <= w->x1 + onto && fabs(own[1] - w->y) < row_height;
}

/* Follows a label to its element.  For typing, patches that look like a field count more; but not if the
 * pointer certainly finds another element, since on some pages a click on the label enters the field, and
 * less if the model points at the label as well. */
static struct pointed follow(const struct ground *g, const struct written *w, enum locate_for what,
                             const double *own)
{
    struct pointed to = pointer_follow(g->map, w, NULL, 0);
    int patch = patch_at(g, to.x, to.y);
    bool other = g->any[patch] - mass(&g->map->patches[patch], FIELDS) > min_certain;
    bool name = own && on_text(w, own) && on_text(w, (double[]){to.x, to.y});
    return what == LOCATE_CLICK || other ? to
                                         : pointer_follow(g->map, w, g->field, name ? contender : unlikely);
}

/* Finds the most probable and nearest labelled element; a field by the label at the position, if there is
 * one. */
static struct named thing_named(const struct ground *g, const struct written *w, int n, enum locate_for what,
                                const double *own)
{
    struct named out = {.known = false};
    float best = -INFINITY;
    bool meant = false;
    for (int k = 0; k < n && w[k].cost <= w->cost + same_cost; k++)
        meant = meant || on_text(&w[k], own);
    for (int k = 0; k < n && w[k].cost <= w->cost + same_cost; k++) {
        if (meant && what == LOCATE_TYPE && !on_text(&w[k], own))
            continue;
        struct pointed to = follow(g, &w[k], what, own);
        if (meant && what == LOCATE_TYPE && to.x < w[k].x0 - before_name)
            continue;
        float score = logf(to.p) - near_of(to.x, to.y, own) / nearby;
        out.there = out.there || (on_text(&w[k], own) && to.nothing < min_plain);
        if (to.p > trusted[what] && score > best) {
            best = score;
            out.known = true;
            out.at = to;
        }
    }
    return out;
}

/* Returns whether a position is on the field to which a patch belongs. */
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

/* ---- labels -------------------------------------------------------------------------------------- */

/* Returns the number of characters of a line that are on the button at a position, and the first of them. */
static int on_button(const struct picture_text *t, const struct text_line *line, const double *own,
                     int *first)
{
    const struct letter *l = t->letters;
    int nearest = -1, end = line->first + line->n;
    for (int i = line->first; i < end; i++)
        if (fabs((double)l[i].y - own[1]) < row_height &&
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

/* Returns whether a position is on a button that clearly has another label. */
static bool says_otherwise(const struct ground *g, const struct picture_text *t, const char *name,
                           const double *own)
{
    float least = 1;
    bool read = false;
    if (g->map->patches[patch_at(g, own[0], own[1])].kind[ELEMENT_BUTTON] <= min_clear)
        return false;
    for (int k = 0; k < t->n_lines; k++) {
        int first = 0, n = on_button(t, &t->lines[k], own, &first);
        float mass = 0;
        for (int i = 0; i < n; i++)
            mass += t->letters[first + i].mass / (float)n;
        if (n)
            least = fminf(least, text_differs(&t->letters[first], n, name));
        read = read || (n > 1 && mass > min_mass);
    }
    return read && least > other_name;
}

/* Returns whether a label was found; a short one only as a separate word, since longer words may contain
 * it. */
static bool is_written(const char *name, const struct written *w, int n)
{
    return n && (strlen(name) > SHORT_NAME || w->cost < same_cost);
}

enum located locate(const struct patch_map *m, const char *name, enum locate_for what, double *x, double *y)
{
    struct written w[LOCATE_PLACES];
    double own[2] = {*x, *y};
    struct picture_text t = text_read(m);
    struct ground g = ground_of(m);
    bool hardly = what == LOCATE_TYPE && strlen(name) > SHORT_NAME;
    int n = text_find(&t, name, hardly ? max_field_misread : max_misread, w);
    enum located at = locate_named(&g, w, n, name, what, own);
    bool nowhere = what == LOCATE_CLICK && strlen(name) > 1 && !is_written(name, w, n) &&
                   says_otherwise(&g, &t, name, own);
    ground_free(&g);
    text_free(&t);
    *x = own[0];
    *y = own[1];
    return nowhere ? LOCATED_NOWHERE : at;
}

bool thing_of_name(const struct patch_map *m, const struct picture_text *t, const char *name, bool exactly,
                   enum locate_for what, struct thing *out)
{
    struct written w[LOCATE_PLACES];
    float worst = !exactly && strlen(name) > SHORT_NAME ? max_misread * (float)strlen(name) : same_cost;
    int n = text_find(t, name, max_misread, w);
    *out = (struct thing){.p = 0};
    if (n == 0)
        return false;
    struct ground g = ground_of(m);
    for (int k = 0; k < n && w[k].cost <= fminf(worst, w->cost + same_cost); k++) {
        struct pointed to = follow(&g, &w[k], what, NULL);
        int patch = patch_at(&g, to.x, to.y);
        if (to.p < trusted[what] || to.nothing > 1 - min_clear || to.p < out->p)
            continue;
        *out = (struct thing){to.x, to.y, to.p, .field = g.field[patch] > min_element,
                              .button = m->patches[patch].kind[ELEMENT_BUTTON] > min_element};
    }
    ground_free(&g);
    return out->p > 0;
}
