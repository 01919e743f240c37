/* pointer.c - finds the element of a label with the pointers of the label's patches.
 *
 * Each patch of the label gives a probability for each other patch.  Their logarithms are averaged; the most
 * probable patch and its neighbours give the position within a patch, as in training
 * (assets/pocket/pocket/pointer_training.py, whose targets are spread over the corners of a patch).
 */
#include "pocket/locate.h"

#include "base/err.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static const float min_share = 0.1f; /* minimum fraction of the most probable patch's probability */

static int step_of(int patches)
{
    return POINTER_FAR + (patches < -POINTER_FAR  ? -POINTER_FAR
                          : patches > POINTER_FAR ? POINTER_FAR
                                                  : patches);
}

static void log_softmax(float *x, int n)
{
    float most = x[0], sum = 0;
    for (int i = 1; i < n; i++)
        most = fmaxf(most, x[i]);
    for (int i = 0; i < n; i++)
        sum += expf(x[i] - most);
    for (int i = 0; i < n; i++)
        x[i] -= most + logf(sum);
}

void pointer_read(const struct patch_map *m, int patch, float *out)
{
    const struct patch_pointer *own = &m->patches[patch].pointer;
    int row = patch / m->cols, col = patch % m->cols, n = m->rows * m->cols;
    out[0] = own->nothing;
    for (int i = 0; i < n; i++) {
        const float *key = m->patches[i].pointer.key;
        float dot = 0;
        for (int k = 0; k < POINTER_WIDTH; k++)
            dot += own->query[k] * key[k];
        out[1 + i] = dot / sqrtf(POINTER_WIDTH) + own->down[step_of(i / m->cols - row)] +
                     own->right[step_of(i % m->cols - col)];
    }
    log_softmax(out, 1 + n);
}

/* Averages the patches' log-probabilities [1 + patches]; the caller frees them. */
static float *mean_of(const struct patch_map *m, int row, int from, int to)
{
    int n = 1 + m->rows * m->cols;
    float *sum = xcalloc((size_t)n, sizeof *sum), *one = xmalloc((size_t)n, sizeof *one);
    for (int col = from; col <= to; col++) {
        pointer_read(m, row * m->cols + col, one);
        for (int i = 0; i < n; i++)
            sum[i] += one[i] / (float)(to - from + 1);
    }
    free(one);
    return sum;
}

/* Sums the probability of the connected component around a patch, of patches with at least min_share of its
 * probability: a field has many patches. */
static float mass_of(const struct patch_map *m, const float *p, int best)
{
    int n = m->rows * m->cols, todo = 1, *stack = xmalloc(4 * (size_t)n + 1, sizeof *stack);
    bool *seen = xcalloc((size_t)n, sizeof *seen);
    float sum = 0;
    stack[0] = best;
    while (todo) {
        int i = stack[--todo], row = i / m->cols, col = i % m->cols;
        if (seen[i] || p[i] < min_share * p[best])
            continue;
        seen[i] = true;
        sum += p[i];
        if (row > 0)
            stack[todo++] = i - m->cols;
        if (row + 1 < m->rows)
            stack[todo++] = i + m->cols;
        if (col > 0)
            stack[todo++] = i - 1;
        if (col + 1 < m->cols)
            stack[todo++] = i + 1;
    }
    free(stack);
    free(seen);
    return sum;
}

/* Finds the most probable patch, and the centre of probability in it and its neighbours. */
static struct pointed place_of(const struct patch_map *m, const float *p)
{
    struct pointed out = {0};
    int best = 0;
    float sum = 0;
    for (int i = 0; i < m->rows * m->cols; i++)
        best = p[i] > p[best] ? i : best;
    for (int row = best / m->cols - 1; row <= best / m->cols + 1; row++)
        for (int col = best % m->cols - 1; col <= best % m->cols + 1; col++) {
            if (row < 0 || row >= m->rows || col < 0 || col >= m->cols)
                continue;
            float here = p[row * m->cols + col];
            sum += here;
            out.x += here * ((float)col + 0.5f) * (float)m->side;
            out.y += here * ((float)row + 0.5f) * (float)m->side;
        }
    out.x /= fmaxf(sum, FLT_MIN);
    out.y /= fmaxf(sum, FLT_MIN);
    out.p = mass_of(m, p, best);
    return out;
}

struct pointed pointer_follow(const struct patch_map *m, const struct written *w, const float *likely,
                              float unlikely)
{
    int row = (int)fminf(fmaxf(w->y / (float)m->side, 0), (float)m->rows - 1);
    int from = (int)fminf(fmaxf(w->x0 / (float)m->side, 0), (float)m->cols - 1);
    int to = (int)fminf(fmaxf(w->x1 / (float)m->side, (float)from), (float)m->cols - 1);
    int n = m->rows * m->cols;
    autofree float *p = mean_of(m, row, from, to);
    log_softmax(p, 1 + n);
    for (int i = 0; i <= n; i++)
        p[i] = expf(p[i]);
    for (int i = 0; likely && i < n; i++)
        p[1 + i] *= unlikely + likely[i];
    struct pointed out = place_of(m, p + 1);
    out.nothing = p[0];
    if (likely) /* the weighted sum is not a probability */
        out.p = 1 - out.nothing;
    return out;
}
