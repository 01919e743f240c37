/* ref_moe.c - the scalar reference of a mixture of experts. */
#include "ops/ref.h"

#include "base/number.h"

/* Keeps the groups with the largest sums of their two best scores; sets the scores of the others to -inf. */
static void drop_groups(float *choice, float *sums, const struct route_shape *s)
{
    int size = s->experts / s->groups;
    for (int g = 0; g < s->groups; g++) {
        float *v = choice + (ptrdiff_t)g * size, first = -INFINITY, second = -INFINITY;
        for (int i = 0; i < size; i++) {
            second = v[i] > first ? first : v[i] > second ? v[i] : second;
            first = v[i] > first ? v[i] : first;
        }
        sums[g] = first + second;
    }
    for (int i = 0; i < s->groups_kept; i++)
        sums[floats_argmax(sums, s->groups)] = -INFINITY;
    for (int g = 0; g < s->groups; g++)
        for (int i = 0; sums[g] > -INFINITY && i < size; i++)
            choice[(ptrdiff_t)g * size + i] = -INFINITY;
}

static int compare_ids(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

/* Computes the scores of row t: sigmoids, or a softmax over all experts. */
static void score_row(float *score, struct tensor logits, int64_t t, const struct route_shape *s)
{
    float most = -INFINITY, total = 0;
    for (int e = 0; e < s->experts; e++)
        most = fmaxf(most, get(logits, t, e));
    for (int e = 0; e < s->experts; e++) {
        score[e] = s->softmax ? expf(get(logits, t, e) - most) : 1.0f / (1.0f + expf(-get(logits, t, e)));
        total += score[e];
    }
    for (int e = 0; s->softmax && e < s->experts; e++)
        score[e] /= total;
}

static void ref_route(struct backend *b, struct tensor ids, struct tensor weights, struct tensor logits,
                      struct tensor bias, const struct route_shape *s)
{
    float *choice = xmalloc((unsigned long)s->experts * 3, sizeof *choice), *score = choice + s->experts,
          *sums = score + s->experts;
    for (int64_t t = 0; t < logits.rows; t++) {
        int32_t *id = (int32_t *)ids.data + t * ids.stride;
        float total = 0;
        score_row(score, logits, t, s);
        for (int e = 0; e < s->experts; e++) {
            choice[e] = score[e] + (bias.data ? get(bias, 0, e) : 0);
            if (isnan(choice[e]))
                choice[e] = -1e30f; /* so that the chosen experts differ */
        }
        if (s->groups > 1)
            drop_groups(choice, sums, s);
        for (int j = 0; j < s->chosen; j++) {
            id[j] = floats_argmax(choice, s->experts);
            choice[id[j]] = -INFINITY;
        }
        qsort(id, (size_t)s->chosen, sizeof *id, compare_ids);
        for (int j = 0; j < s->chosen; j++)
            total += score[id[j]];
        for (int j = 0; j < s->chosen; j++)
            put(weights, t, j, score[id[j]] / (s->normalise ? total + 1e-20f : 1.0f) * s->scale);
    }
    free(choice);
}

/* Computes out [N] = W times row t of x. */
static void row_products(const struct weight *w, struct tensor x, int64_t t, float *out)
{
    autofree float *row = xmalloc((unsigned long)w->cols, sizeof *row);
    ref_row(w, x, t, row);
    for (int64_t n = 0; n < w->rows; n++) {
        out[n] = 0;
        for (int64_t k = 0; k < w->cols; k++)
            out[n] += row[k] * ref_number(w, n, k);
    }
}

static void ref_experts(struct backend *b, struct tensor y, struct tensor x, struct tensor ids,
                        struct tensor weights, const struct experts *e)
{
    int64_t width = e->up[0]->rows;
    float *up = xmalloc((unsigned long)(2 * width + 2 * y.cols), sizeof *up), *gate = up + width,
          *sum = gate + width, *down = sum + y.cols;
    struct tensor inner = {xmalloc((unsigned long)width, sizeof(float)), x.dtype, 1, width, width};
    for (int64_t t = 0; t < x.rows; t++) {
        memset(sum, 0, (size_t)y.cols * sizeof *sum);
        for (int64_t j = 0; j < ids.cols; j++) {
            int32_t id = ((const int32_t *)ids.data)[t * ids.stride + j];
            row_products(e->up[id], x, t, up);
            if (e->gate)
                row_products(e->gate[id], x, t, gate);
            for (int64_t m = 0; m < width; m++)
                put(inner, 0, m,
                    e->gate ? silu(rounded(x, gate[m])) * rounded(x, up[m]) : epilogue(x, up[m], EPI_RELU2));
            row_products(e->down[id], inner, 0, down);
            for (int64_t n = 0; n < y.cols; n++)
                sum[n] += get(weights, t, j) * down[n];
        }
        for (int64_t n = 0; n < y.cols; n++)
            put(y, t, n, sum[n]);
    }
    free(inner.data);
    free(up);
}

void ref_moe_fill(struct ops *o)
{
    o->route = ref_route;
    o->experts = ref_experts;
}
