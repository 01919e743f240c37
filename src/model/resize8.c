/* resize8.c - bicubic resizing of 8-bit images (resize8.h).
 *
 * Two passes, horizontal first, each rounded and clamped to a byte. A bicubic filter (Keys, a = -1/2,
 * widened when it shrinks) overshoots at edges, and the models were trained on images clamped between the
 * passes. Weights are 16-bit integers, scaled by the largest power of two for which the greatest weight of
 * an axis fits. Sums are integers, so the result does not depend on the order of the terms. */
#include "model/resize8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct taps { /* out[o] = sum of weight[o * most + k] * in[first[o] + k] >> shift */
    int out, most, shift;
    int *first, *count;
    int16_t *weight;
};

static double cubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* Computes the taps of output o and their weights, which sum to 1; returns the largest weight. */
static double fill_taps(struct taps *t, int in, int o, double *weight)
{
    double scale = (double)in / t->out, wide = scale >= 1 ? scale : 1, support = 2 * wide, shrink = 1 / wide;
    double centre = scale * (o + 0.5), sum = 0, most = 0;
    int lo = (int)fmax(0, (double)(int64_t)(centre - support + 0.5)),
        hi = (int)fmin(in, (double)(int64_t)(centre + support + 0.5)), n = hi - lo;
    n = n < 0 ? 0 : n > t->most ? t->most : n;
    for (int k = 0; k < n; k++)
        sum += weight[k] = cubic((k + lo - centre + 0.5) * shrink);
    for (int k = 0; k < n; k++) {
        weight[k] = sum != 0 ? weight[k] / sum : weight[k];
        most = fmax(most, weight[k]);
    }
    t->first[o] = lo;
    t->count[o] = n;
    return most;
}

static int shift_of(double most)
{
    int shift = 0;
    while (shift < 22 && (int)(0.5 + most * (1 << (shift + 1))) < 1 << 15)
        shift++;
    return shift;
}

static struct taps make_taps(int in, int out)
{
    double scale = (double)in / out, support = 2 * (scale >= 1 ? scale : 1), most = 0;
    struct taps t = {.out = out, .most = (int)ceil(support) * 2 + 1};
    size_t n = (size_t)out * (size_t)t.most;
    autofree double *weight = xcalloc(n, sizeof *weight);
    t.first = xcalloc((size_t)out, sizeof *t.first);
    t.count = xcalloc((size_t)out, sizeof *t.count);
    t.weight = xcalloc(n, sizeof *t.weight);
    for (int o = 0; o < out; o++)
        most = fmax(most, fill_taps(&t, in, o, weight + (size_t)o * (size_t)t.most));
    t.shift = shift_of(most);
    for (size_t i = 0; i < n; i++)
        t.weight[i] = (int16_t)(int)((weight[i] < 0 ? -0.5 : 0.5) + weight[i] * (1 << t.shift));
    return t;
}

static void free_taps(struct taps *t)
{
    free(t->first);
    free(t->count);
    free(t->weight);
}

struct pass {
    const struct taps *t;
    const uint8_t *in; /* rows of in_bytes */
    uint8_t *out;      /* rows of out_bytes */
    size_t in_bytes, out_bytes;
};

static uint8_t clamped(int32_t v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void across_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct pass *p = arg;
    const struct taps *t = p->t;
    const int32_t half = 1 << (t->shift - 1);
    for (int64_t y = begin; y < end; y++) {
        const uint8_t *row = p->in + (size_t)y * p->in_bytes;
        uint8_t *to = p->out + (size_t)y * p->out_bytes;
        for (int o = 0; o < t->out; o++, to += 3) {
            const uint8_t *in = row + 3 * (size_t)t->first[o];
            const int16_t *weight = t->weight + (size_t)o * (size_t)t->most;
            int32_t sum[3] = {half, half, half};
            for (int k = 0; k < t->count[o]; k++)
                for (int ch = 0; ch < 3; ch++)
                    sum[ch] += weight[k] * in[3 * k + ch];
            for (int ch = 0; ch < 3; ch++)
                to[ch] = clamped(sum[ch] >> t->shift);
        }
    }
}

static void down_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct pass *p = arg;
    const struct taps *t = p->t;
    size_t n = p->out_bytes;
    autofree int32_t *sum = xmalloc(n, sizeof *sum);
    for (int64_t o = begin; o < end; o++) {
        for (size_t i = 0; i < n; i++)
            sum[i] = 1 << (t->shift - 1);
        for (int k = 0; k < t->count[o]; k++) {
            const uint8_t *in = p->in + (size_t)(t->first[o] + k) * p->in_bytes;
            int32_t weight = t->weight[(size_t)o * (size_t)t->most + (size_t)k];
            for (size_t i = 0; i < n; i++)
                sum[i] += weight * in[i];
        }
        uint8_t *to = p->out + (size_t)o * n;
        for (size_t i = 0; i < n; i++)
            to[i] = clamped(sum[i] >> t->shift);
    }
}

void resize8(const struct image *im, int w, int h, struct pool *pool, uint8_t *out)
{
    uint8_t *wide = im->rgb;
    size_t bytes = 3 * (size_t)w;
    if (w != im->w) { /* an axis that keeps its size is not filtered */
        struct taps t = make_taps(im->w, w);
        wide = h == im->h ? out : xmalloc(bytes, (unsigned long)im->h);
        struct pass p = {&t, im->rgb, wide, 3 * (size_t)im->w, bytes};
        pool_for(pool, im->h, 16, across_rows, &p);
        free_taps(&t);
    }
    if (h != im->h) {
        struct taps t = make_taps(im->h, h);
        struct pass p = {&t, wide, out, bytes, bytes};
        pool_for(pool, h, 16, down_rows, &p);
        free_taps(&t);
    } else if (w == im->w) {
        memcpy(out, im->rgb, bytes * (size_t)h);
    }
    if (wide != out && wide != im->rgb)
        free(wide);
}
