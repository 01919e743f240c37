/* delta.c - see delta.h.
 *
 * A chunk of C tokens of one value head, with G_i the sum of g up to token i and S the state before:
 *
 *   R_i = beta_i (v_i - e^(G_i) ST k_i) - sum_(j < i) A_ij R_j      A_ij = beta_i (k_i . k_j) e^(G_i - G_j)
 *   y_i = e^(G_i) ST q_i + sum_(j <= i) (q_i . k_j) e^(G_i - G_j) R_j
 *   S'  = e^(G_C) S + sum_j e^(G_C - G_j) k_j R_jT
 *
 * R solves (I + A) R = ... by forward substitution: with equal keys and beta 1 powers of A grow to 1e8, so
 * that an inverse from products loses everything, while substitution is exact.  Only differences G_i - G_j <=
 * 0 are ever exponentiated, and the sums are f64, since G may reach thousands while later differences stay
 * small.
 */
#include "model/delta.h"

#include "base/err.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float dot(const float *a, const float *b, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* to = x / sqrt(|x|^2 + 1e-6) * by */
static void normalise(float *to, const float *x, int n, float by)
{
    float r = by / sqrtf(dot(x, x, n) + 1e-6f);
    for (int i = 0; i < n; i++)
        to[i] = x[i] * r;
}

/* to += by x */
static void add(float *to, const float *x, int n, float by)
{
    for (int i = 0; i < n; i++)
        to[i] += by * x[i];
}

/* to += by ST x */
static void add_read(float *to, const float *S, const float *x, int rows, int cols, float by)
{
    for (int r = 0; r < rows; r++)
        add(to, S + (int64_t)r * cols, cols, by * x[r]);
}

/* S += by x zT */
static void add_outer(float *S, const float *x, const float *z, int rows, int cols, float by)
{
    for (int r = 0; r < rows; r++)
        add(S + (int64_t)r * cols, z, cols, by * x[r]);
}

static void scale(float *x, int n, float by)
{
    for (int i = 0; i < n; i++)
        x[i] *= by;
}

/* What all forms do first for tokens [t, t + n) of value head j: q and k normalised, [n][dk] each. */
static void load_head(const struct delta_shape *s, const struct delta_rows *x, int j, int64_t t, int64_t n,
                      float *q, float *k)
{
    int64_t head = j / (s->value_heads / s->key_heads), width = (int64_t)s->key_heads * s->key;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = (t + i) * width + head * s->key;
        normalise(q + i * s->key, x->q + at, s->key, 1 / sqrtf((float)s->key));
        normalise(k + i * s->key, x->k + at, s->key, 1);
    }
}

void delta_steps(const struct delta_shape *s, const struct delta_rows *x, float *state, float *y)
{
    int dk = s->key, dv = s->value;
    float *q = xmalloc((unsigned long)(2 * dk + dv), sizeof *q), *k = q + dk, *d = k + dk;
    memset(y, 0, (size_t)(x->tokens * s->value_heads * dv) * sizeof *y);
    for (int64_t t = 0; t < x->tokens; t++)
        for (int j = 0; j < s->value_heads; j++) {
            int64_t at = t * s->value_heads + j;
            float *S = state + (int64_t)j * dk * dv;
            load_head(s, x, j, t, 1, q, k);
            scale(S, dk * dv, expf(x->g[at]));
            memcpy(d, x->v + at * dv, (size_t)dv * sizeof *d);
            add_read(d, S, k, dk, dv, -1);
            add_outer(S, k, d, dk, dv, x->beta[at]);
            add_read(y + at * dv, S, q, dk, dv, 1);
        }
    free(q);
}

struct delta_chunk {  /* scratch of a chunk */
    float *q, *k, *R; /* [C][dk], [C][dk], [C][dv] */
    double *sum;      /* [C] */
};

static float decay(const struct delta_chunk *w, int64_t i, int64_t j)
{
    return expf((float)(w->sum[i] - w->sum[j]));
}

/* Tokens [t, t + n) of value head j. */
static void scan_chunk(const struct delta_shape *s, const struct delta_rows *x, const struct delta_chunk *w,
                       int j, int64_t t, int64_t n, float *S, float *out)
{
    int dk = s->key, dv = s->value;
    double acc = 0;
    load_head(s, x, j, t, n, w->q, w->k);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = (t + i) * s->value_heads + j;
        const float *k = w->k + i * dk, *q = w->q + i * dk;
        float *R = w->R + i * dv, *y = out + at * dv;
        w->sum[i] = acc += (double)x->g[at];
        memcpy(R, x->v + at * dv, (size_t)dv * sizeof *R);
        add_read(R, S, k, dk, dv, -expf((float)acc));
        for (int64_t m = 0; m < i; m++)
            add(R, w->R + m * dv, dv, -decay(w, i, m) * dot(k, w->k + m * dk, dk));
        scale(R, dv, x->beta[at]);
        memset(y, 0, (size_t)dv * sizeof *y);
        add_read(y, S, q, dk, dv, expf((float)acc));
        for (int64_t m = 0; m <= i; m++)
            add(y, w->R + m * dv, dv, decay(w, i, m) * dot(q, w->k + m * dk, dk));
    }
    scale(S, dk * dv, expf((float)acc));
    for (int64_t m = 0; m < n; m++)
        add_outer(S, w->k + m * dk, w->R + m * dv, dk, dv, decay(w, n - 1, m));
}

void delta_scan(const struct delta_shape *s, const struct delta_rows *x, float *state, float *y)
{
    int64_t C = s->chunk, dk = s->key, dv = s->value;
    struct delta_chunk w = {.q = xmalloc((unsigned long)(C * (2 * dk + dv)), sizeof(float)),
                            .sum = xmalloc((unsigned long)C, sizeof(double))};
    w.k = w.q + C * dk;
    w.R = w.k + C * dk;
    for (int64_t t = 0; t < x->tokens; t += C)
        for (int j = 0; j < s->value_heads; j++)
            scan_chunk(s, x, &w, j, t, x->tokens - t < C ? x->tokens - t : C, state + j * dk * dv, y);
    free(w.q);
    free(w.sum);
}
