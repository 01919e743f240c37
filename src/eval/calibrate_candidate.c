/* calibrate_candidate.c - counts answers in every space and selects the best; robust line fit. */
#include "eval/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void candidate_count(struct candidate *c, enum question q, const struct calibration_target *t,
                     const struct dialect_numbers *n, bool forced)
{
    struct answer_counts *h = &c->counts[q];
    const struct target box = {TARGET_BOX, (double *)t->box, 2, 0, 0};
    /* Exact numbers only: reading 0.5 of 0..1000 as the middle would hide a model that uses fractions, which
     * the grammar of integers could not express. */
    const struct dialect_numbers strict = {n ? n->x : 0, n ? n->y : 0, false, false};
    h->asked += !forced;
    if (!n)
        return;
    h->read += !forced;
    for (int space = 0; space < CALIBRATE_SPACES; space++) {
        double x, y;
        if (forced && space != (int)c->own)
            continue;
        if (!dialect_exact_point((enum coord_space)space, NULL, &strict, c->w, c->h, &x, &y, NULL))
            h->hits[space] += target_holds(&box, x, y);
    }
    if (forced || q != QUESTION_PLACE || c->n >= CALIBRATE_MAX_TARGETS)
        return;
    for (int axis = 0; axis < 2; axis++) {
        c->truth[axis][c->n] = (t->box[axis] + t->box[axis + 2]) / 2;
        c->said[axis][c->n] = axis ? n->y : n->x;
    }
    c->n++;
}

bool candidate_hopeless(const struct candidate *c, enum question q)
{
    const struct answer_counts *h = &c->counts[q];
    int best = 0;
    for (int space = 0; space < CALIBRATE_SPACES; space++)
        best = h->hits[space] > best ? h->hits[space] : best;
    /* Answers that are read but miss may still be on a line. */
    return h->asked >= CALIBRATE_GIVE_UP && best * 4 < h->asked && h->read * 2 < h->asked;
}

int candidate_hits(const struct candidate *c, enum coord_space space)
{
    return c->counts[QUESTION_PLACE].hits[space] + c->counts[QUESTION_STEP].hits[space];
}

int candidate_asked(const struct candidate *c)
{
    return c->counts[QUESTION_PLACE].asked + c->counts[QUESTION_STEP].asked;
}

struct verdict calibration_verdict(const struct candidate *c, int n)
{
    struct verdict best = {.high = 1};
    double rate = 0;
    for (int i = 0; i < n; i++) {
        int asked = candidate_asked(&c[i]);
        for (int k = 0; k < CALIBRATE_SPACES && asked; k++) {
            /* the candidate's own space comes first, so that another space needs more hits */
            int space = k == 0 ? (int)c[i].own : k <= (int)c[i].own ? k - 1 : k;
            int hits = candidate_hits(&c[i], (enum coord_space)space);
            if ((double)hits / asked <= rate)
                continue;
            rate = (double)hits / asked;
            best = (struct verdict){
                .candidate = &c[i], .space = (enum coord_space)space, .hits = hits, .asked = asked};
        }
    }
    wilson(best.hits, best.asked, &best.low, &best.high);
    best.sure = best.candidate && best.low > 0.5;
    return best;
}

/* ---- lines --------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_size);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

struct line line_fit(const double *x, const double *y, int n, double tolerance)
{
    struct line l = {.n = n};
    size_t m = (size_t)n, k = 0;
    if (n < 3)
        return l;
    autofree double *v = xmalloc(m * m, sizeof *v);
    for (size_t i = 0; i < m; i++)
        for (size_t j = i + 1; j < m; j++)
            if (fabs(x[i] - x[j]) > 1e-9)
                v[k++] = (y[i] - y[j]) / (x[i] - x[j]);
    if (k >= 2) {
        l.a = median(v, k);
        for (size_t i = 0; i < m; i++)
            v[i] = y[i] - l.a * x[i];
        l.b = median(v, m);
        for (size_t i = 0; i < m; i++)
            l.near += fabs(l.a * x[i] + l.b - y[i]) <= tolerance;
    }
    return l;
}

enum coord_space calibration_space(enum coord_space own)
{
    return own == COORD_NATIVE || own == COORD_PX28 || own == COORD_FIT ? COORD_PIXEL : own;
}

struct line line_of_space(enum coord_space space, int size)
{
    double top = space == COORD_NORM1000 ? 1000 : space == COORD_NORM1 ? 1 : size;
    return (struct line){.a = top / size};
}
