/* labels.c - the labels on an image, and whether a name is one of them.
 *
 * A line is split into labels where a gap is too wide for a space.
 */
#include "pocket/locate.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static const float label_gap = 2.5f;    /* maximum distance of characters of a label, in median distances */
static const float min_mass = 0.8f;     /* mean probability of characters that were clearly read */
static const float same_cost = 0.5f;    /* maximum cost of an exact match */
static const float in_line = 6.5f;      /* pixels */
static const float max_misread = 0.25f; /* fraction of a name's characters */
static const float min_field = 0.5f;    /* probability of a field */
/* Minimum gap for a space between two characters, in ems; the lower one finds more. */
static const float blanks[] = {0.1f, 0.2f};

static float mean_mass(const struct letter *l, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += l[i].mass;
    return n ? sum / (float)n : 0;
}

/* Returns whether a position is in a field. */
static bool in_field(const struct patch_map *m, float x, float y)
{
    int row = (int)fminf(fmaxf(y / (float)m->side, 0), (float)m->rows - 1);
    int col = (int)fminf(fmaxf(x / (float)m->side, 0), (float)m->cols - 1);
    const float *kind = m->patches[row * m->cols + col].kind;
    return kind[ELEMENT_FIELD] + kind[ELEMENT_AREA] > min_field;
}

/* Returns whether n characters were clearly read and label an element: for typing a field, but not the one
 * that contains them. */
static bool is_label(const struct patch_map *m, const struct letter *l, int n, enum locate_for what)
{
    char name[LOCATE_NAME];
    const struct picture_text t = {(struct letter *)l, &(struct text_line){0, n}, n, 1};
    struct thing is;
    text_spell(l, n, INFINITY, name, sizeof name);
    if (n < 2 || !isalpha((unsigned char)l[0].c) || mean_mass(l, n) < min_mass ||
        in_field(m, l[n / 2].x, l->y))
        return false;
    if (what == LOCATE_TYPE)
        return names_field(m, &(struct written){l->x, l[n - 1].x, l->y, 0});
    return thing_of_name(m, &t, name, true, what, &is) && !is.field;
}

static int add_label(char (*out)[LOCATE_NAME], int n, int max, const char *label)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(out[i], label))
            return n;
    if (n < max)
        memcpy(out[n++], label, LOCATE_NAME);
    return n;
}

int labels_read(const struct patch_map *m, const struct picture_text *t, enum locate_for what,
                char (*out)[LOCATE_NAME], int max)
{
    char label[LOCATE_NAME] = "";
    int n = 0;
    for (int k = 0; k < t->n_lines; k++) {
        const struct letter *l = t->letters + t->lines[k].first;
        float most = label_gap * text_pitch(l, t->lines[k].n);
        for (int from = 0, to; from < t->lines[k].n; from = to) {
            for (to = from + 1; to < t->lines[k].n && l[to].x - l[to - 1].x < most;)
                to++;
            if (to - from >= LOCATE_NAME / 2 || !is_label(m, l + from, to - from, what))
                continue;
            for (size_t i = 0; i < sizeof blanks / sizeof *blanks; i++) {
                text_spell(l + from, to - from, blanks[i], label, sizeof label);
                n = add_label(out, n, max, label);
            }
        }
    }
    return n;
}

/* Returns the mean probability of the characters of a match. */
static float mass_at(const struct picture_text *t, const struct written *w)
{
    float sum = 0;
    int n = 0;
    for (int i = 0; i < t->n; i++)
        if (fabsf(t->letters[i].y - w->y) < in_line && t->letters[i].x >= w->x0 && t->letters[i].x <= w->x1) {
            sum += t->letters[i].mass;
            n++;
        }
    return n ? sum / (float)n : 0;
}

bool is_misspelt(const struct picture_text *t, const char *name)
{
    struct written w[LOCATE_PLACES];
    int n = text_find(t, name, max_misread, w);
    for (int i = 0; i < n && w[i].cost <= w->cost + same_cost; i++)
        if (w->cost < same_cost || mass_at(t, &w[i]) < min_mass)
            return false;
    return true;
}
