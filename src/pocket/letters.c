/* letters.c - merges the character detections of single cells into lines of text.
 *
 * A cell is a slot of 4x8 pixels (patch_map.h).  A character near a cell border is detected in several
 * cells, each with part of its probability.  Detections are visited in order of falling probability; each
 * absorbs unused neighbours that can only be the same character and is kept if the summed probability
 * reaches `need`. Characters are then assigned from left to right, each to the line that ends closest to
 * its left.  Must match decode() of tests/reference/make_locate.py. */
#include "pocket/locate.h"

#include "base/err.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const float need = 0.35f, low = 0.1f;
static const float slot_w = 4, slot_h = 8; /* pixels */
static const float longest_gap = 48,
                   line_gap = 6.5f; /* pixels between characters of a line, right and down */

struct detection {
    int row, col; /* position of the cell */
    float x, mass;
    uint8_t class;
    bool used;
};

struct detections {
    struct detection *all;
    int *at; /* [rows * cols] of cells: index of the detection, or -1 */
    int n, rows, cols;
};

static struct detections detections_of(const struct patch_map *m)
{
    struct detections c = {.rows = m->rows * (PATCH_SLOTS / PATCH_SLOTS_ACROSS),
                           .cols = m->cols * PATCH_SLOTS_ACROSS};
    size_t slots = (size_t)c.rows * (size_t)c.cols;
    c.all = xmalloc(slots + 1, sizeof *c.all);
    c.at = xmalloc(slots + 1, sizeof *c.at);
    for (int row = 0; row < c.rows; row++)
        for (int col = 0; col < c.cols; col++) {
            const struct patch_reading *p = &m->patches[row / 2 * m->cols + col / PATCH_SLOTS_ACROSS];
            int slot = row % 2 * PATCH_SLOTS_ACROSS + col % PATCH_SLOTS_ACROSS;
            bool detected = p->present[slot] > low && c.n < LOCATE_LETTERS;
            c.at[row * c.cols + col] = detected ? c.n : -1;
            if (detected)
                c.all[c.n++] = (struct detection){
                    row,  col, slot_w * ((float)col + p->shift[slot]), p->present[slot], p->letter[slot],
                    false};
        }
    return c;
}

static bool narrow(uint8_t class)
{
    return strchr("iljtfrI1|!.,:;'`()[]", class + 32) != NULL;
}

/* Returns whether a neighbour is a detection of the same character, whose summed probability is `mass` so
 * far. */
static bool same_letter(const struct detection *first, float mass, const struct detection *other)
{
    float gap = narrow(first->class) || narrow(other->class) ? 3.2f : 4.7f, away = fabsf(other->x - first->x);
    return (away < gap && (other->class == first->class || mass + other->mass <= 1.1f)) ||
           (other->row != first->row && away < 6);
}

/* Merges a detection with its neighbours of the same character. */
static struct letter letter_of(struct detections *c, struct detection *first)
{
    float mass = first->mass, x = first->x * mass, y = (slot_h * (float)first->row + 4) * mass;
    first->used = true;
    for (int row = first->row - 1; row <= first->row + 1; row++)
        for (int col = first->col - 1; col <= first->col + 1; col++) {
            bool there = row >= 0 && row < c->rows && col >= 0 && col < c->cols;
            int k = there ? c->at[row * c->cols + col] : -1;
            struct detection *other = k < 0 ? NULL : &c->all[k];
            if (!other || other->used || !same_letter(first, mass, other))
                continue;
            other->used = true;
            mass += other->mass;
            x += other->x * other->mass;
            y += (slot_h * (float)other->row + 4) * other->mass;
        }
    char shown = first->class == PATCH_LETTERS - 1 ? '\x7f' : (char)(first->class + 32);
    return (struct letter){x / mass, y / mass, mass, shown};
}

static int surest_first(const void *a, const void *b)
{
    const struct detection *const *x = a, *const *y = b;
    return (*x)->mass != (*y)->mass ? ((*x)->mass < (*y)->mass ? 1 : -1) : (*x < *y ? -1 : *x > *y);
}

static int leftmost_first(const void *a, const void *b)
{
    const struct letter *x = a, *y = b;
    return x->x != y->x ? (x->x < y->x ? -1 : 1) : (x->y > y->y) - (x->y < y->y);
}

static int read_letters(const struct patch_map *m, struct letter *out)
{
    struct detections c = detections_of(m);
    struct detection **order = xmalloc((size_t)c.n + 1, sizeof *order);
    int n = 0;
    for (int i = 0; i < c.n; i++)
        order[i] = &c.all[i];
    qsort(order, (size_t)c.n, sizeof *order, surest_first);
    for (int i = 0; i < c.n; i++) {
        if (order[i]->used)
            continue;
        struct letter l = letter_of(&c, order[i]);
        if (l.mass >= need)
            out[n++] = l;
    }
    qsort(out, (size_t)n, sizeof *out, leftmost_first);
    free(order);
    free(c.all);
    free(c.at);
    return n;
}

/* Returns the line that ends closest to the left of a character, or -1; last[line] is its last character. */
static int line_before(const struct letter *letters, const int *last, int lines, const struct letter *l)
{
    float best = INFINITY;
    int found = -1;
    for (int i = 0; i < lines; i++) {
        const struct letter *end = &letters[last[i]];
        float right = l->x - end->x, down = fabsf(l->y - end->y);
        if (right >= 0 && right < longest_gap && down < line_gap && right + 2 * down < best) {
            best = right + 2 * down;
            found = i;
        }
    }
    return found;
}

struct picture_text text_read(const struct patch_map *m)
{
    autofree struct letter *letters = xmalloc(LOCATE_LETTERS, sizeof *letters);
    int n = read_letters(m, letters), *line = xmalloc((size_t)n + 1, sizeof *line),
        *last = xmalloc((size_t)n + 1, sizeof *last);
    struct picture_text t = {.letters = xmalloc((size_t)n + 1, sizeof *t.letters),
                             .lines = xcalloc((size_t)n + 1, sizeof *t.lines)};
    for (int i = 0; i < n; i++) {
        int k = line_before(letters, last, t.n_lines, &letters[i]);
        line[i] = k < 0 ? t.n_lines++ : k;
        last[line[i]] = i;
        t.lines[line[i]].n++;
    }
    for (int k = 1; k < t.n_lines; k++)
        t.lines[k].first = t.lines[k - 1].first + t.lines[k - 1].n;
    for (int k = 0; k < t.n_lines; k++)
        last[k] = t.lines[k].first;
    for (int i = 0; i < n; i++)
        t.letters[last[line[i]]++] = letters[i];
    t.n = n;
    free(line);
    free(last);
    return t;
}

void text_free(struct picture_text *t)
{
    free(t->letters);
    free(t->lines);
    *t = (struct picture_text){0};
}
