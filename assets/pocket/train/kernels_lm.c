/* kernels_lm.c - the language model's sub-layers between their matrix products, both ways, with the tile
 * unit.
 *
 * A Mamba-2 sub-layer is, for rows zx = [z | x B C | dt] of its first product:
 *     v = silu(filter(x B C)),  dt = softplus(raw + bias),  c = running sum of dt a within a chunk of 64 rows
 *     Y = M X' + e (C S^T) + D x,  X' = dt x,  M_ij = (C B^T)_ij exp(c_i - c_j) for j <= i,  e = exp(c)
 *     S <- exp(c_last) S + X'^T (B tail),  tail = exp(c_last - c)
 *     out = rms_norm_by_group(Y silu(z))
 * One head of one sequence goes chunk by chunk with its state of 64 x 64 in cache; for the way back the
 * states
 * before each chunk are kept and everything else is computed anew.  Heads, states and chunks are 64 wide, and
 * four heads share a B and a C.  The norms' weights are in the product that follows.  See amx.h for the
 * tiles.
 */
#include "amx.h"

enum { Q = 64, HEADS = 8, GROUPS = 2, X = 512, V = 768, ZX = 1288, SQUARE = Q * Q };

/* ---- products of 64 x 64 ------------------------------------------------------------------------ */

struct left { /* tile (i, s) begins at `at` + i * down + s * right, rows `stride` bytes apart */
    const bf16 *at;
    int64_t down, right, stride;
};

static inline struct left rows_of(const bf16 *a, int64_t ld)
{
    return (struct left){a, T * ld, 32, ld * 2};
}

/* The transpose of a [64][64], as tiles in `room` (8 of them). */
static inline struct left turned(const bf16 *a, int64_t ld, word *room)
{
    word x[TILE], y[TILE];
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < 4; i += 2) {
            pair(a + s * 32 * ld + i * T, ld, x, y);
            turn(x, T, room + (i * 2 + s) * TILE, T);
            turn(y, T, room + ((i + 1) * 2 + s) * TILE, T);
        }
    return (struct left){(bf16 *)room, 4 * TILE, 2 * TILE, 64};
}

/* Right sides: b itself, or its transpose; 8 tiles, (s, j) at s * 4 + j. */
static inline const word *plain(const bf16 *b, int64_t ld, word *room)
{
    for (int s = 0; s < 2; s++)
        for (int j = 0; j < 4; j += 2)
            pair(b + s * 32 * ld + j * T, ld, room + (s * 4 + j) * TILE, room + (s * 4 + j + 1) * TILE);
    return room;
}

static inline const word *across(const bf16 *b, int64_t ld, word *room)
{
    for (int s = 0; s < 2; s++)
        for (int j = 0; j < 4; j++)
            turn((const word *)(b + j * T * ld) + s * T, ld / 2, room + (s * 4 + j) * TILE, T);
    return room;
}

/* out [64][64] fp32 = a b, or += . */
static inline void product(struct left a, const word *b, float *out, int add)
{
    for (int i = 0; i < 4; i += 2)
        for (int j = 0; j < 4; j += 2) {
            float *to = out + i * T * Q + j * T;
            if (add) {
                tile_load(0, to, Q * 4);
                tile_load(1, to + T, Q * 4);
                tile_load(2, to + T * Q, Q * 4);
                tile_load(3, to + T * Q + T, Q * 4);
            } else {
                tile_zero(0);
                tile_zero(1);
                tile_zero(2);
                tile_zero(3);
            }
            for (int s = 0; s < 2; s++) {
                tile_load(4, a.at + i * a.down + s * a.right, a.stride);
                tile_load(5, a.at + (i + 1) * a.down + s * a.right, a.stride);
                tile_load(6, b + (s * 4 + j) * TILE, 64);
                tile_load(7, b + (s * 4 + j + 1) * TILE, 64);
                tile_product(0, 4, 6);
                tile_product(1, 4, 7);
                tile_product(2, 5, 6);
                tile_product(3, 5, 7);
            }
            tile_store(0, to, Q * 4);
            tile_store(1, to + T, Q * 4);
            tile_store(2, to + T * Q, Q * 4);
            tile_store(3, to + T * Q + T, Q * 4);
        }
}

static inline float one(bf16 h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline bf16 back_to(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return (bf16)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

/* ---- filter and silu ------------------------------------------------------------------------------ */

static inline __m512 sigmoid(__m512 x)
{
    __m512 e = exp16(_mm512_sub_ps(_mm512_setzero_ps(),
                                   _mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(-80)), _mm512_set1_ps(80))));
    return _mm512_div_ps(_mm512_set1_ps(1), _mm512_add_ps(_mm512_set1_ps(1), e));
}

static inline __m512 filtered(const bf16 *x, int64_t t, const float *w, const float *bias, int64_t c)
{
    __m512 s = _mm512_loadu_ps(bias + c);
    for (int64_t k = 0; k < 4; k++)
        if (t - 3 + k >= 0)
            s = _mm512_fmadd_ps(_mm512_loadu_ps(w + k * V + c), wide(x + (t - 3 + k) * ZX + c), s);
    return s;
}

/* v [b*n, 768] from zx; w [4][768] taps, oldest first. */
void lm_filter(const bf16 *zx, const float *w, const float *bias, bf16 *v, int64_t b, int64_t n)
{
    for (int64_t s = 0; s < b; s++) {
        const bf16 *x = zx + s * n * ZX + X;
        for (int64_t t = 0; t < n; t++)
            for (int64_t c = 0; c < V; c += T) {
                __m512 p = filtered(x, t, w, bias, c);
                narrow(v + (s * n + t) * V + c, _mm512_mul_ps(p, sigmoid(p)));
            }
    }
}

/* dzx's filtered part from dv; dw and dbias +=. */
void lm_filter_back(const bf16 *zx, const float *w, const float *bias, const bf16 *dv, bf16 *dzx, float *dw,
                    float *dbias, int64_t b, int64_t n)
{
    for (int64_t s = 0; s < b; s++) {
        const bf16 *x = zx + s * n * ZX + X;
        bf16 *dx = dzx + s * n * ZX + X;
        for (int64_t c = 0; c < V; c += T) {
            __m512 g1 = _mm512_setzero_ps(), g2 = g1, g3 = g1, sum = g1, sw[4] = {g1, g1, g1, g1}, tap[4];
            for (int k = 0; k < 4; k++)
                tap[k] = _mm512_loadu_ps(w + k * V + c);
            for (int64_t t = n - 1; t >= 0; t--) {
                __m512 p = filtered(x, t, w, bias, c), y = sigmoid(p);
                __m512 slope = _mm512_mul_ps(
                    y, _mm512_fmadd_ps(p, _mm512_sub_ps(_mm512_set1_ps(1), y), _mm512_set1_ps(1)));
                __m512 g = _mm512_mul_ps(wide(dv + (s * n + t) * V + c), slope);
                sum = _mm512_add_ps(sum, g);
                for (int64_t k = 0; k < 4; k++)
                    if (t - 3 + k >= 0)
                        sw[k] = _mm512_fmadd_ps(g, wide(x + (t - 3 + k) * ZX + c), sw[k]);
                __m512 d = _mm512_mul_ps(tap[3], g);
                d = _mm512_fmadd_ps(tap[2], g1, d);
                d = _mm512_fmadd_ps(tap[1], g2, d);
                d = _mm512_fmadd_ps(tap[0], g3, d);
                narrow(dx + t * ZX + c, d);
                g3 = g2;
                g2 = g1;
                g1 = g;
            }
            _mm512_storeu_ps(dbias + c, _mm512_add_ps(_mm512_loadu_ps(dbias + c), sum));
            for (int k = 0; k < 4; k++)
                _mm512_storeu_ps(dw + k * V + c, _mm512_add_ps(_mm512_loadu_ps(dw + k * V + c), sw[k]));
        }
    }
}

/* ---- scan ------------------------------------------------------------------------------------------ */

struct chunk {
    float dt[Q], c[Q], e[Q], tail[Q], keep;
    bf16 x[SQUARE]; /* X' */
};

static inline void begin_chunk(struct chunk *k, const bf16 *v, const bf16 *zx, int64_t h, float bias, float a)
{
    float sum = 0;
    for (int t = 0; t < Q; t++) {
        float raw = one(zx[t * ZX + X + V + h]) + bias;
        k->dt[t] = raw > 20 ? raw : log1pf(expf(raw));
        sum += k->dt[t] * a;
        k->c[t] = sum;
        k->e[t] = expf(sum);
        __m512 by = _mm512_set1_ps(k->dt[t]);
        for (int p = 0; p < Q; p += T)
            narrow(k->x + t * Q + p, _mm512_mul_ps(wide(v + t * V + h * Q + p), by));
    }
    for (int t = 0; t < Q; t++)
        k->tail[t] = expf(sum - k->c[t]);
    k->keep = expf(sum);
}

/* rows of `from` [64][64] (stride ld) times a factor each. */
static inline void scaled(const bf16 *from, int64_t ld, const float *by, bf16 *to)
{
    for (int t = 0; t < Q; t++)
        for (int i = 0; i < Q; i += T)
            narrow(to + t * Q + i, _mm512_mul_ps(wide(from + t * ld + i), _mm512_set1_ps(by[t])));
}

static inline void rounded(const float *from, bf16 *to)
{
    for (int i = 0; i < SQUARE; i += T)
        narrow(to + i, _mm512_loadu_ps(from + i));
}

/* m = g exp(c_i - c_j) below the diagonal, else 0. */
static inline void masked(const float *g, const float *c, bf16 *m)
{
    for (int i = 0; i < Q; i++) {
        __m512 ci = _mm512_set1_ps(c[i]);
        for (int j = 0; j < Q; j += T) {
            __mmask16 in = j + 15 <= i ? 0xffff : j > i ? 0 : (__mmask16)((2u << (i - j)) - 1);
            __m512 e = exp16(_mm512_min_ps(_mm512_sub_ps(ci, _mm512_loadu_ps(c + j)), _mm512_setzero_ps()));
            narrow(m + i * Q + j, _mm512_maskz_mul_ps(in, e, _mm512_loadu_ps(g + i * Q + j)));
        }
    }
}

/* y [b*n, 512]; states [b, 8, n/64, 64, 64] are the bf16 states before each chunk. */
void lm_scan(const bf16 *v, const bf16 *zx, const float *bias, const float *a, const float *D, bf16 *y,
             bf16 *states, int64_t b, int64_t n)
{
    static __thread struct chunk k;
    static __thread float g[SQUARE], out[SQUARE], other[SQUARE], S[SQUARE];
    static __thread bf16 m[SQUARE], bt[SQUARE];
    static __thread word r1[8 * TILE], r2[8 * TILE];
    struct config old;
    enter(&old);
    for (int64_t u = 0; u < b * HEADS; u++) {
        int64_t s = u / HEADS, h = u % HEADS, group = h / (HEADS / GROUPS);
        memset(S, 0, sizeof S);
        for (int64_t i = 0; i < n / Q; i++) {
            const bf16 *vc = v + (s * n + i * Q) * V, *B = vc + X + group * Q, *C = B + GROUPS * Q;
            bf16 *kept = states + (u * (n / Q) + i) * SQUARE;
            begin_chunk(&k, vc, zx + (s * n + i * Q) * ZX, h, bias[h], a[h]);
            product(rows_of(C, V), across(B, V, r1), g, 0);
            masked(g, k.c, m);
            product(rows_of(m, Q), plain(k.x, Q, r1), out, 0);
            rounded(S, kept);
            product(rows_of(C, V), across(kept, Q, r2), other, 0);
            for (int t = 0; t < Q; t++) {
                __m512 e = _mm512_set1_ps(k.e[t]), d = _mm512_set1_ps(D[h]);
                for (int p = 0; p < Q; p += T) {
                    __m512 r = _mm512_fmadd_ps(e, _mm512_loadu_ps(other + t * Q + p),
                                               _mm512_loadu_ps(out + t * Q + p));
                    narrow(y + (s * n + i * Q + t) * X + h * Q + p,
                           _mm512_fmadd_ps(d, wide(vc + t * V + h * Q + p), r));
                }
            }
            for (int j = 0; j < SQUARE; j++)
                S[j] *= k.keep;
            scaled(B, V, k.tail, bt);
            product(turned(k.x, Q, r1), plain(bt, Q, r2), S, 1);
        }
    }
    leave(&old);
}

static inline float dot_rows(const bf16 *a, const float *b)
{
    __m512 s = _mm512_setzero_ps();
    for (int i = 0; i < Q; i += T)
        s = _mm512_fmadd_ps(wide(a + i), _mm512_loadu_ps(b + i), s);
    return _mm512_reduce_add_ps(s);
}

/* dm [64][64] fp32 becomes dg = dm exp(c_i - c_j) as bf16; dc from dm m. */
static inline void masked_back(const float *dm, const bf16 *m, const float *c, bf16 *dg, float *dc)
{
    float down[Q] = {0};
    for (int i = 0; i < Q; i++) {
        __m512 sum = _mm512_setzero_ps(), ci = _mm512_set1_ps(c[i]);
        for (int j = 0; j < Q; j += T) {
            __mmask16 in = j + 15 <= i ? 0xffff : j > i ? 0 : (__mmask16)((2u << (i - j)) - 1);
            __m512 e = exp16(_mm512_min_ps(_mm512_sub_ps(ci, _mm512_loadu_ps(c + j)), _mm512_setzero_ps())),
                   d = _mm512_loadu_ps(dm + i * Q + j);
            narrow(dg + i * Q + j, _mm512_maskz_mul_ps(in, e, d));
            __m512 both = _mm512_mul_ps(d, wide(m + i * Q + j));
            sum = _mm512_add_ps(sum, both);
            _mm512_storeu_ps(down + j, _mm512_add_ps(_mm512_loadu_ps(down + j), both));
        }
        dc[i] += _mm512_reduce_add_ps(sum);
    }
    for (int j = 0; j < Q; j++)
        dc[j] -= down[j];
}

struct sums { /* of one head, over all rows */
    float *bias, *a, *D;
};

/* From dX' and dc of a chunk to x and dt of its rows; all pointers are at the head's first column. */
static inline void rows_back(const struct chunk *k, const float *dx, const float *dc, const bf16 *x,
                             const bf16 *gy, const bf16 *raw_dt, float bias, float a, float D, bf16 *to_x,
                             bf16 *to_dt, struct sums sums)
{
    float run = 0;
    for (int t = Q - 1; t >= 0; t--) {
        float ddt = 0, dd = 0;
        run += dc[t];
        for (int p = 0; p < Q; p++) {
            float xv = one(x[t * V + p]), gv = one(gy[t * X + p]);
            ddt += dx[t * Q + p] * xv;
            dd += gv * xv;
            to_x[t * V + p] = back_to(dx[t * Q + p] * k->dt[t] + gv * D);
        }
        *sums.D += dd;
        *sums.a += run * k->dt[t];
        ddt += run * a;
        float slope = 1 / (1 + expf(-one(raw_dt[t * ZX]) - bias));
        *sums.bias += ddt * slope;
        to_dt[t * ZX] = back_to(ddt * slope);
    }
}

/* The way back: dy [b*n, 512] -> dv [b*n, 768] and the dt columns of dzx; dbias, da and dD [8] +=. */
void lm_scan_back(const bf16 *v, const bf16 *zx, const float *bias, const float *a, const float *D,
                  const bf16 *states, const bf16 *dy, bf16 *dv, bf16 *dzx, float *dbias, float *da, float *dD,
                  int64_t b, int64_t n)
{
    static __thread struct chunk k;
    static __thread float g[SQUARE], dx[SQUARE], dm[SQUARE], part[SQUARE], dS[SQUARE];
    static __thread bf16 m[SQUARE], dg[SQUARE], bt[SQUARE], edy[SQUARE], dsh[SQUARE];
    static __thread word r1[8 * TILE], r2[8 * TILE];
    static __thread void *mine;
    static __thread size_t have;
    float *dB = room(&mine, &have, (size_t)(2 * n * Q) * 4), *dC = dB + n * Q, dc[Q];
    struct config old;
    enter(&old);
    for (int64_t u = 0; u < b * HEADS; u++) {
        int64_t s = u / HEADS, h = u % HEADS, group = h / (HEADS / GROUPS), first = h % (HEADS / GROUPS) == 0;
        if (first)
            memset(dB, 0, (size_t)(2 * n * Q) * 4);
        memset(dS, 0, sizeof dS);
        for (int64_t i = n / Q - 1; i >= 0; i--) {
            int64_t row = s * n + i * Q;
            const bf16 *vc = v + row * V, *B = vc + X + group * Q, *C = B + GROUPS * Q,
                       *S = states + (u * (n / Q) + i) * SQUARE, *gy = dy + row * X + h * Q;
            float *toB = dB + i * Q * Q, *toC = dC + i * Q * Q, last = 0;
            memset(dc, 0, sizeof dc);
            begin_chunk(&k, vc, zx + row * ZX, h, bias[h], a[h]);
            product(rows_of(C, V), across(B, V, r1), g, 0);
            masked(g, k.c, m);
            scaled(B, V, k.tail, bt);
            rounded(dS, dsh);
            product(turned(m, Q, r1), plain(gy, X, r2), dx, 0); /* dX' */
            product(rows_of(bt, Q), across(dsh, Q, r1), dx, 1);
            product(rows_of(gy, X), across(k.x, Q, r1), dm, 0);
            masked_back(dm, m, k.c, dg, dc);
            scaled(gy, X, k.e, edy);
            product(rows_of(dg, Q), plain(B, V, r1), toC, 1);
            product(rows_of(edy, Q), plain(S, Q, r1), part, 0);
            for (int t = 0; t < Q; t++) {
                dc[t] += dot_rows(C + t * V, part + t * Q);
                for (int j = 0; j < Q; j++)
                    toC[t * Q + j] += part[t * Q + j];
            }
            product(turned(dg, Q, r1), plain(C, V, r2), toB, 1);
            product(rows_of(k.x, Q), plain(dsh, Q, r1), part, 0);
            for (int t = 0; t < Q; t++) {
                float w = dot_rows(bt + t * Q, part + t * Q);
                dc[t] -= w;
                last += w;
                for (int j = 0; j < Q; j++)
                    toB[t * Q + j] += part[t * Q + j] * k.tail[t];
            }
            float keep = 0;
            for (int j = 0; j < SQUARE; j++) {
                keep += dS[j] * one(S[j]);
                dS[j] *= k.keep;
            }
            dc[Q - 1] += last + keep * k.keep;
            product(turned(edy, Q, r1), plain(C, V, r2), dS, 1);
            struct sums to = {dbias + h, da + h, dD + h};
            rows_back(&k, dx, dc, vc + h * Q, gy, zx + row * ZX + X + V + h, bias[h], a[h], D[h],
                      dv + row * V + h * Q, dzx + row * ZX + X + V + h, to);
        }
        if (h % (HEADS / GROUPS) == HEADS / GROUPS - 1)
            for (int64_t t = 0; t < n; t++)
                for (int j = 0; j < Q; j += T) {
                    bf16 *to = dv + (s * n + t) * V + X + group * Q + j;
                    narrow(to, _mm512_loadu_ps(dB + t * Q + j));
                    narrow(to + GROUPS * Q, _mm512_loadu_ps(dC + t * Q + j));
                }
    }
    leave(&old);
}

/* ---- gate and norms ---------------------------------------------------------------------------------- */

/* q = rms norm, by groups of 256, of y silu(z); r [rows, 2]. */
void lm_gate(const bf16 *y, const bf16 *zx, bf16 *q, float *r, int64_t rows, float eps)
{
    enum { W = X / GROUPS };
    for (int64_t t = 0; t < rows; t++)
        for (int64_t g = 0; g < GROUPS; g++) {
            float f[W];
            __m512 sum = _mm512_setzero_ps();
            for (int64_t i = 0; i < W; i += T) {
                __m512 z = wide(zx + t * ZX + g * W + i),
                       p = _mm512_mul_ps(wide(y + t * X + g * W + i), _mm512_mul_ps(z, sigmoid(z)));
                _mm512_storeu_ps(f + i, p);
                sum = _mm512_fmadd_ps(p, p, sum);
            }
            float s = 1 / sqrtf(_mm512_reduce_add_ps(sum) / W + eps);
            r[t * GROUPS + g] = s;
            for (int64_t i = 0; i < W; i += T)
                narrow(q + t * X + g * W + i, _mm512_mul_ps(_mm512_loadu_ps(f + i), _mm512_set1_ps(s)));
        }
}

void lm_gate_back(const bf16 *y, const bf16 *zx, const bf16 *q, const float *r, const bf16 *dq, bf16 *dy,
                  bf16 *dzx, int64_t rows)
{
    enum { W = X / GROUPS };
    for (int64_t t = 0; t < rows; t++)
        for (int64_t g = 0; g < GROUPS; g++) {
            __m512 sum = _mm512_setzero_ps(), s = _mm512_set1_ps(r[t * GROUPS + g]);
            for (int64_t i = 0; i < W; i += T)
                sum = _mm512_fmadd_ps(wide(q + t * X + g * W + i), wide(dq + t * X + g * W + i), sum);
            __m512 mean = _mm512_set1_ps(_mm512_reduce_add_ps(sum) / W);
            for (int64_t i = 0; i < W; i += T) {
                int64_t at = t * X + g * W + i;
                __m512 df = _mm512_mul_ps(s, _mm512_fnmadd_ps(mean, wide(q + at), wide(dq + at)));
                __m512 z = wide(zx + t * ZX + g * W + i), sg = sigmoid(z), silu = _mm512_mul_ps(z, sg);
                __m512 slope = _mm512_mul_ps(
                    sg, _mm512_fmadd_ps(z, _mm512_sub_ps(_mm512_set1_ps(1), sg), _mm512_set1_ps(1)));
                narrow(dy + at, _mm512_mul_ps(df, silu));
                narrow(dzx + t * ZX + g * W + i, _mm512_mul_ps(_mm512_mul_ps(df, wide(y + at)), slope));
            }
        }
}

/* x += delta (unless NULL); u = x / root mean square, r = 1 / it. */
void lm_norm(float *x, const bf16 *delta, bf16 *u, float *r, int64_t rows, int64_t d, float eps)
{
    for (int64_t t = 0; t < rows; t++) {
        __m512 sum = _mm512_setzero_ps();
        for (int64_t i = 0; i < d; i += T) {
            __m512 v = _mm512_loadu_ps(x + t * d + i);
            if (delta) {
                v = _mm512_add_ps(v, wide(delta + t * d + i));
                _mm512_storeu_ps(x + t * d + i, v);
            }
            sum = _mm512_fmadd_ps(v, v, sum);
        }
        r[t] = 1 / sqrtf(_mm512_reduce_add_ps(sum) / (float)d + eps);
        for (int64_t i = 0; i < d; i += T)
            narrow(u + t * d + i, _mm512_mul_ps(_mm512_loadu_ps(x + t * d + i), _mm512_set1_ps(r[t])));
    }
}

/* dx += the norm's way back of du; dx as bf16 too. */
void lm_norm_back(float *dx, const bf16 *du, const bf16 *u, const float *r, bf16 *dxh, int64_t rows,
                  int64_t d)
{
    for (int64_t t = 0; t < rows; t++) {
        __m512 sum = _mm512_setzero_ps(), s = _mm512_set1_ps(r[t]);
        for (int64_t i = 0; i < d; i += T)
            sum = _mm512_fmadd_ps(wide(u + t * d + i), wide(du + t * d + i), sum);
        __m512 mean = _mm512_set1_ps(_mm512_reduce_add_ps(sum) / (float)d);
        for (int64_t i = 0; i < d; i += T) {
            __m512 v = _mm512_fmadd_ps(s, _mm512_fnmadd_ps(mean, wide(u + t * d + i), wide(du + t * d + i)),
                                       _mm512_loadu_ps(dx + t * d + i));
            _mm512_storeu_ps(dx + t * d + i, v);
            narrow(dxh + t * d + i, v);
        }
    }
}

/* g = max(a, 0)^2, and back: dg becomes da. */
void lm_square(const bf16 *a, bf16 *g, int64_t n)
{
    for (int64_t i = 0; i < n; i += T) {
        __m512 v = _mm512_max_ps(wide(a + i), _mm512_setzero_ps());
        narrow(g + i, _mm512_mul_ps(v, v));
    }
}

void lm_square_back(bf16 *dg, const bf16 *a, int64_t n)
{
    for (int64_t i = 0; i < n; i += T) {
        __m512 v = _mm512_max_ps(wide(a + i), _mm512_setzero_ps());
        narrow(dg + i, _mm512_mul_ps(wide(dg + i), _mm512_add_ps(v, v)));
    }
}
