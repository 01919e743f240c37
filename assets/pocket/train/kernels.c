/* kernels.c - what a training step does between its matrix products, one pass over memory each.
 *
 * Products run in bf16 at about 1000 GFLOP/s a core where the processor has tiles for them; then the
 * library's softmax, GELU, norms and copies take most of a step.  These loops are written so that gcc
 * turns them into vector code (-O3 -march=native -ffast-math); each is checked against torch by tower.py.
 * A bf16 number is a uint16_t, the upper half of a float.  One thread: workers are processes.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef uint16_t bf16;

static inline float up(bf16 h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline bf16 down(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return (bf16)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

/* e^x for x <= 88, relative error below 1e-6; far below zero it is 0. */
static inline float fast_exp(float x)
{
    float z = x * 1.44269504f;
    z = z < -126 ? -126 : z;
    float n = rintf(z), f = (z - n) * 0.69314718f;
    float p = 1 + f * (1 + f * (0.5f + f * (0.16666667f + f * (0.041666668f + f * 0.0083333f))));
    int32_t bits;
    memcpy(&bits, &p, 4);
    bits += (int32_t)n << 23;
    memcpy(&p, &bits, 4);
    return p;
}

/* x += delta (unless NULL), u = (x - mean) / deviation, rdev = 1 / deviation; d columns. */
void add_norm(float *restrict x, const bf16 *restrict delta, bf16 *restrict u, float *restrict rdev,
              int64_t rows, int64_t d, float eps)
{
    for (int64_t r = 0; r < rows; r++) {
        float *row = x + r * d, sum = 0, square = 0;
        bf16 *out = u + r * d;
        if (delta)
            for (int64_t i = 0; i < d; i++)
                row[i] += up(delta[r * d + i]);
        for (int64_t i = 0; i < d; i++)
            sum += row[i];
        float mean = sum / (float)d;
        for (int64_t i = 0; i < d; i++)
            square += (row[i] - mean) * (row[i] - mean);
        float s = 1 / sqrtf(square / (float)d + eps);
        rdev[r] = s;
        for (int64_t i = 0; i < d; i++)
            out[i] = down((row[i] - mean) * s);
    }
}

/* dx += the norm's way back of du; and dx as bf16 for the products that come next. */
void norm_back(float *restrict dx, const bf16 *restrict du, const bf16 *restrict u,
               const float *restrict rdev, bf16 *restrict dxh, int64_t rows, int64_t d)
{
    for (int64_t r = 0; r < rows; r++) {
        const bf16 *g = du + r * d, *h = u + r * d;
        float a = 0, b = 0;
        for (int64_t i = 0; i < d; i++) {
            a += up(g[i]);
            b += up(g[i]) * up(h[i]);
        }
        a /= (float)d;
        b /= (float)d;
        for (int64_t i = 0; i < d; i++) {
            float v = dx[r * d + i] + rdev[r] * (up(g[i]) - a - up(h[i]) * b);
            dx[r * d + i] = v;
            dxh[r * d + i] = down(v);
        }
    }
}

/* qkv [B*n, 3*H*p] -> q (times scale), k, v, each [B, H, n, p]. */
void split_heads(const bf16 *restrict qkv, bf16 *restrict q, bf16 *restrict k, bf16 *restrict v, int64_t B,
                 int64_t n, int64_t H, int64_t p, float scale)
{
    int64_t w = 3 * H * p;
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++)
            for (int64_t t = 0; t < n; t++) {
                const bf16 *from = qkv + (b * n + t) * w + h * p;
                int64_t to = ((b * H + h) * n + t) * p;
                for (int64_t i = 0; i < p; i++)
                    q[to + i] = down(up(from[i]) * scale);
                memcpy(k + to, from + H * p, (size_t)p * sizeof(bf16));
                memcpy(v + to, from + 2 * H * p, (size_t)p * sizeof(bf16));
            }
}

void join_heads(const bf16 *restrict q, const bf16 *restrict k, const bf16 *restrict v, bf16 *restrict qkv,
                int64_t B, int64_t n, int64_t H, int64_t p, float scale)
{
    int64_t w = 3 * H * p;
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++)
            for (int64_t t = 0; t < n; t++) {
                bf16 *to = qkv + (b * n + t) * w + h * p;
                int64_t from = ((b * H + h) * n + t) * p;
                for (int64_t i = 0; i < p; i++)
                    to[i] = down(up(q[from + i]) * scale);
                memcpy(to + H * p, k + from, (size_t)p * sizeof(bf16));
                memcpy(to + 2 * H * p, v + from, (size_t)p * sizeof(bf16));
            }
}

/* y [B, H, n, p] <-> [B*n, H*p]; `back` goes from rows to heads. */
void turn_heads(const bf16 *restrict from, bf16 *restrict to, int64_t B, int64_t n, int64_t H, int64_t p,
                int back)
{
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++)
            for (int64_t t = 0; t < n; t++) {
                int64_t heads = ((b * H + h) * n + t) * p, rows = (b * n + t) * H * p + h * p;
                memcpy(to + (back ? heads : rows), from + (back ? rows : heads), (size_t)p * sizeof(bf16));
            }
}

/* Rows of n scores become weights, in place; n <= 4096. */
void softmax(bf16 *restrict s, int64_t rows, int64_t n)
{
    float e[4096];
    for (int64_t r = 0; r < rows; r++) {
        bf16 *row = s + r * n;
        float top = -1e30f, sum = 0;
        for (int64_t i = 0; i < n; i++) {
            e[i] = up(row[i]);
            top = e[i] > top ? e[i] : top;
        }
        for (int64_t i = 0; i < n; i++) {
            e[i] = fast_exp(e[i] - top);
            sum += e[i];
        }
        float one = 1 / sum;
        for (int64_t i = 0; i < n; i++)
            row[i] = down(e[i] * one);
    }
}

/* dp becomes ds = p (dp - sum dp p), in place. */
void softmax_back(bf16 *restrict dp, const bf16 *restrict p, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++) {
        bf16 *g = dp + r * n;
        const bf16 *w = p + r * n;
        float sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += up(g[i]) * up(w[i]);
        for (int64_t i = 0; i < n; i++)
            g[i] = down(up(w[i]) * (up(g[i]) - sum));
    }
}

/* Phi(x) and the slope of x Phi(x) as odd polynomials, |x| <= 4 (beyond it the ends): absolute errors
 * 2.5e-5 and 7e-5, far below
 * what bf16 keeps, and a third of the time of the exact form. */
static inline float within4(float x)
{
    return x > 4 ? 4 : x < -4 ? -4 : x;
}

static inline float normal(float x)
{
    float y = within4(x), z = y * y;
    return 0.5f +
           y * (0.398832912f +
                z * (-0.0661411744f +
                     z * (0.0096417153f +
                          z * (-0.0010412958f +
                               z * (7.96099747e-05f +
                                    z * (-4.01422155e-06f + z * (1.1809647e-07f - z * 1.52048009e-09f)))))));
}

static inline float slope(float x)
{
    float y = within4(x), z = y * y;
    return 0.5f + y * (0.797564812f +
                       z * (-0.264691742f +
                            z * (0.0583377758f +
                                 z * (-0.00866971796f +
                                      z * (0.000897597986f +
                                           z * (-6.38059045e-05f +
                                                z * (2.95072287e-06f +
                                                     z * (-7.94124051e-08f + z * 9.38745919e-10f))))))));
}

void gelu(const bf16 *restrict a, bf16 *restrict g, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float x = up(a[i]);
        g[i] = down(x * normal(x));
    }
}

/* dg becomes da, in place. */
void gelu_back(bf16 *restrict dg, const bf16 *restrict a, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dg[i] = down(up(dg[i]) * slope(up(a[i])));
}

/* sums[c] += the column's sum, `rows` rows of `cols` <= 4096. */
void column_sums(const bf16 *restrict y, float *restrict sums, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            sums[c] += up(y[r * cols + c]);
}

/* A crop of a picture [h, w, 3] at (x, y), rows x cols patches of 16: normalised patches [rows*cols, 768],
 * column
 * channel*256 + y*16 + x.  Channel c is taken from channel from[c], as value * gain[c] + shift[c]. */
void cut_patches(const uint8_t *restrict rgb, int64_t w, int64_t x, int64_t y, int64_t rows, int64_t cols,
                 const int64_t *from, const float *gain, const float *shift, bf16 *restrict out)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t q = 0; q < cols; q++)
            for (int64_t c = 0; c < 3; c++)
                for (int64_t i = 0; i < 16; i++) {
                    const uint8_t *line = rgb + ((y + r * 16 + i) * w + x + q * 16) * 3 + from[c];
                    bf16 *to = out + ((r * cols + q) * 3 + c) * 256 + i * 16;
                    for (int64_t j = 0; j < 16; j++)
                        to[j] = down((float)line[j * 3] * gain[c] + shift[c]);
                }
}
