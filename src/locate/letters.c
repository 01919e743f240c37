/* letters.c - what slots of patches say, as letters in lines.
 *
 * A letter near the border of slots is claimed by several, each with a part of its probability.  From the
 * surest claim down, one takes its neighbours' that can only mean the same letter; together they must reach
 * NEED.  Letters are then put to lines from left to right, each to the line that ends closest before it.
 * The same as decode() of assets/pocket/pocket/heads.py.
 */
#include "locate/locate.h"

#include "base/err.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const float need = 0.35f, low = 0.1f;
static const float slot_w = 4, slot_h = 8;            /* pixels */
static const float longest_gap = 48, line_gap = 6.5f; /* between letters of a line, right and down */

struct claim {
    int row, col; /* of slots */
    float x, mass;
    uint8_t class;
    bool used;
};

struct claims {
    struct claim *all;
    int *at; /* [rows * cols] of slots: number of the claim there, or -1 */
    int n, rows, cols;
};

static struct claims claims_of(const struct patch_map *m)
{
    struct claims c = {.rows = m->rows * (PATCH_SLOTS / PATCH_SLOTS_ACROSS),
                       .cols = m->cols * PATCH_SLOTS_ACROSS};
    size_t slots = (size_t)c.rows * (size_t)c.cols;
    c.all = xmalloc(slots + 1, sizeof *c.all);
    c.at = xmalloc(slots + 1, sizeof *c.at);
    for (int row = 0; row < c.rows; row++)
        for (int col = 0; col < c.cols; col++) {
            const struct patch_reading *p = &m->patches[row / 2 * m->cols + col / PATCH_SLOTS_ACROSS];
            int slot = row % 2 * PATCH_SLOTS_ACROSS + col % PATCH_SLOTS_ACROSS;
            bool claimed = p->present[slot] > low && c.n < LOCATE_LETTERS;
            c.at[row * c.cols + col] = claimed ? c.n : -1;
            if (claimed)
                c.all[c.n++] = (struct claim){
                    row,  col, slot_w * ((float)col + p->shift[slot]), p->present[slot], p->letter[slot],
                    false};
        }
    return c;
}

static bool narrow(uint8_t class)
{
    return strchr("iljtfrI1|!.,:;'`()[]", class + 32) != NULL;
}

/* Whether a neighbour's claim is of the letter at x that has this mass so far. */
static bool same_letter(const struct claim *own, float mass, const struct claim *other)
{
    float gap = narrow(own->class) || narrow(other->class) ? 3.2f : 4.7f, away = fabsf(other->x - own->x);
    return (away < gap && (other->class == own->class || mass + other->mass <= 1.1f)) ||
           (other->row != own->row && away < 6);
}

/* The letter that a claim and its neighbours mean. */
static struct letter letter_of(struct claims *c, struct claim *own)
{
    float mass = own->mass, x = own->x * mass, y = (slot_h * (float)own->row + 4) * mass;
    own->used = true;
    for (int row = own->row - 1; row <= own->row + 1; row++)
        for (int col = own->col - 1; col <= own->col + 1; col++) {
            bool there = row >= 0 && row < c->rows && col >= 0 && col < c->cols;
            int k = there ? c->at[row * c->cols + col] : -1;
            struct claim *other = k < 0 ? NULL : &c->all[k];
            if (!other || other->used || !same_letter(own, mass, other))
                continue;
            other->used = true;
            mass += other->mass;
            x += other->x * other->mass;
            y += (slot_h * (float)other->row + 4) * other->mass;
        }
    char shown = own->class == PATCH_LETTERS - 1 ? '\x7f' : (char)(own->class + 32);
    return (struct letter){x / mass, y / mass, mass, shown};
}

static int surest_first(const void *a, const void *b)
{
    const struct claim *const *x = a, *const *y = b;
    return (*x)->mass != (*y)->mass ? ((*x)->mass < (*y)->mass ? 1 : -1) : (*x < *y ? -1 : *x > *y);
}

static int leftmost_first(const void *a, const void *b)
{
    const struct letter *x = a, *y = b;
    return x->x != y->x ? (x->x < y->x ? -1 : 1) : (x->y > y->y) - (x->y < y->y);
}

static int read_letters(const struct patch_map *m, struct letter *out)
{
    struct claims c = claims_of(m);
    struct claim **order = xmalloc((size_t)c.n + 1, sizeof *order);
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

/* The line that ends closest before a letter, or -1; last[line] is its last letter. */
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
    struct letter *letters = xmalloc(LOCATE_LETTERS, sizeof *letters);
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
    free(letters);
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
