/* kernels_lm.c - the language model's sub-layers between their matrix products, both ways.
 *
 * A Mamba-2 sub-layer is, for rows zx = [z | x B C | dt] of its first product:
 *     v = silu(filter(x B C)),  dt = softplus(raw + bias),  c = running sum of dt a within a chunk of 64 rows
 *     Y = M X' + e (C S^T) + D x,  X' = dt x,  M_ij = (C B^T)_ij exp(c_i - c_j) for j <= i,  e = exp(c)
 *     S <- exp(c_last) S + X'^T (B tail),  tail = exp(c_last - c)
 *     out = rms_norm_by_group(Y silu(z))
 * One head of one sequence goes chunk by chunk with its state of 64 x 64 in cache; for the way back the states
 * before each chunk are kept and everything else is computed anew.  Heads, states and chunks are 64 wide, and
 * four heads share a B and a C.  The norms' weights are in the product that follows.  `half` is bf16 or fp32,
 * see half.h; products of 64 x 64 are in squares.h.
 */
#include "squares.h"

enum { HEADS = 8, GROUPS = 2, X = 512, V = 768, ZX = 1288 };

/* ---- filter and silu ------------------------------------------------------------------------------ */

static inline vec filtered(const half *x, int64_t t, const float *w, const float *bias, int64_t c)
{
    vec s = load(bias + c);
    for (int64_t k = 0; k < 4; k++)
        if (t - 3 + k >= 0)
            s += load(w + k * V + c) * wide(x + (t - 3 + k) * ZX + c);
    return s;
}

/* v [b*n, 768] from zx; w [4][768] taps, oldest first. */
void lm_filter(const half *zx, const float *w, const float *bias, half *v, int64_t b, int64_t n)
{
    for (int64_t s = 0; s < b; s++) {
        const half *x = zx + s * n * ZX + X;
        for (int64_t t = 0; t < n; t++)
            for (int64_t c = 0; c < V; c += LANES) {
                vec p = filtered(x, t, w, bias, c);
                narrow(v + (s * n + t) * V + c, p * sigmoid(p));
            }
    }
}

/* dzx's filtered part from dv; dw and dbias +=. */
void lm_filter_back(const half *zx, const float *w, const float *bias, const half *dv, half *dzx, float *dw,
                    float *dbias, int64_t b, int64_t n)
{
    for (int64_t s = 0; s < b; s++) {
        const half *x = zx + s * n * ZX + X;
        half *dx = dzx + s * n * ZX + X;
        for (int64_t c = 0; c < V; c += LANES) {
            vec g1 = all(0), g2 = g1, g3 = g1, sum = g1, sw[4] = {g1, g1, g1, g1}, tap[4];
            for (int k = 0; k < 4; k++)
                tap[k] = load(w + k * V + c);
            for (int64_t t = n - 1; t >= 0; t--) {
                vec p = filtered(x, t, w, bias, c), y = sigmoid(p);
                vec slope = y * (p * (1 - y) + 1);
                vec g = wide(dv + (s * n + t) * V + c) * slope;
                sum += g;
                for (int64_t k = 0; k < 4; k++)
                    if (t - 3 + k >= 0)
                        sw[k] += g * wide(x + (t - 3 + k) * ZX + c);
                narrow(dx + t * ZX + c, tap[3] * g + tap[2] * g1 + tap[1] * g2 + tap[0] * g3);
                g3 = g2;
                g2 = g1;
                g1 = g;
            }
            store(dbias + c, load(dbias + c) + sum);
            for (int k = 0; k < 4; k++)
                store(dw + k * V + c, load(dw + k * V + c) + sw[k]);
        }
    }
}

/* ---- scan ------------------------------------------------------------------------------------------ */

struct chunk {
    float dt[Q], c[Q], e[Q], tail[Q], keep;
    half x[SQUARE]; /* X' */
};

static inline void begin_chunk(struct chunk *k, const half *v, const half *zx, int64_t h, float bias, float a)
{
    float sum = 0;
    for (int t = 0; t < Q; t++) {
        float raw = one(zx[t * ZX + X + V + h]) + bias;
        k->dt[t] = raw > 20 ? raw : log1pf(expf(raw));
        sum += k->dt[t] * a;
        k->c[t] = sum;
        k->e[t] = expf(sum);
        vec by = all(k->dt[t]);
        for (int p = 0; p < Q; p += LANES)
            narrow(k->x + t * Q + p, wide(v + t * V + h * Q + p) * by);
    }
    for (int t = 0; t < Q; t++)
        k->tail[t] = expf(sum - k->c[t]);
    k->keep = expf(sum);
}

/* rows of `from` [64][64] (stride ld) times a factor each. */
static inline void scaled(const half *from, int64_t ld, const float *by, half *to)
{
    for (int t = 0; t < Q; t++)
        for (int i = 0; i < Q; i += LANES)
            narrow(to + t * Q + i, wide(from + t * ld + i) * all(by[t]));
}

static inline void rounded(const float *from, half *to)
{
    for (int i = 0; i < SQUARE; i += LANES)
        narrow(to + i, load(from + i));
}

/* m = g exp(c_i - c_j) below the diagonal, else 0. */
static inline void masked(const float *g, const float *c, half *m)
{
    for (int i = 0; i < Q; i++) {
        vec ci = all(c[i]);
        for (int j = 0; j < Q; j += LANES) {
            vec e = exp_of(least(ci - load(c + j), all(0)));
            narrow(m + i * Q + j, first(e * load(g + i * Q + j), i + 1 - j));
        }
    }
}

/* y [b*n, 512]; states [b, 8, n/64, 64, 64] are the states before each chunk. */
void lm_scan(const half *v, const half *zx, const float *bias, const float *a, const float *D, half *y,
             half *states, int64_t b, int64_t n)
{
    static __thread struct chunk k;
    static __thread float g[SQUARE], out[SQUARE], other[SQUARE], S[SQUARE];
    static __thread half m[SQUARE], bt[SQUARE];
    static __thread struct packed r1, r2;
    struct config old;
    enter(&old);
    for (int64_t u = 0; u < b * HEADS; u++) {
        int64_t s = u / HEADS, h = u % HEADS, group = h / (HEADS / GROUPS);
        memset(S, 0, sizeof S);
        for (int64_t i = 0; i < n / Q; i++) {
            const half *vc = v + (s * n + i * Q) * V, *B = vc + X + group * Q, *C = B + GROUPS * Q;
            half *kept = states + (u * (n / Q) + i) * SQUARE;
            begin_chunk(&k, vc, zx + (s * n + i * Q) * ZX, h, bias[h], a[h]);
            product(rows_of(C, V), across(B, V, &r1), g, 0);
            masked(g, k.c, m);
            product(rows_of(m, Q), plain(k.x, Q, &r1), out, 0);
            rounded(S, kept);
            product(rows_of(C, V), across(kept, Q, &r2), other, 0);
            for (int t = 0; t < Q; t++) {
                vec e = all(k.e[t]), d = all(D[h]);
                for (int p = 0; p < Q; p += LANES) {
                    vec r = e * load(other + t * Q + p) + load(out + t * Q + p);
                    narrow(y + (s * n + i * Q + t) * X + h * Q + p, d * wide(vc + t * V + h * Q + p) + r);
                }
            }
            for (int j = 0; j < SQUARE; j++)
                S[j] *= k.keep;
            scaled(B, V, k.tail, bt);
            product(turned(k.x, Q, &r1), plain(bt, Q, &r2), S, 1);
        }
    }
    leave(&old);
}

static inline float dot_rows(const half *a, const float *b)
{
    vec s = all(0);
    for (int i = 0; i < Q; i += LANES)
        s += wide(a + i) * load(b + i);
    return total(s);
}

/* dm [64][64] fp32 becomes dg = dm exp(c_i - c_j) as half, dc from dm m. */
static inline void masked_back(const float *dm, const half *m, const float *c, half *dg, float *dc)
{
    float down[Q] = {0};
    for (int i = 0; i < Q; i++) {
        vec sum = all(0), ci = all(c[i]);
        for (int j = 0; j < Q; j += LANES) {
            vec e = exp_of(least(ci - load(c + j), all(0))), d = load(dm + i * Q + j);
            narrow(dg + i * Q + j, first(e * d, i + 1 - j));
            vec both = d * wide(m + i * Q + j);
            sum += both;
            store(down + j, load(down + j) + both);
        }
        dc[i] += total(sum);
    }
    for (int j = 0; j < Q; j++)
        dc[j] -= down[j];
}

struct sums { /* of one head, over all rows */
    float *bias, *a, *D;
};

/* From dX' and dc of a chunk to x and dt of its rows; all pointers are at the head's first column. */
static inline void rows_back(const struct chunk *k, const float *dx, const float *dc, const half *x,
                             const half *gy, const half *raw_dt, float bias, float a, float D, half *to_x,
                             half *to_dt, struct sums sums)
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

/* The way back: dy [b*n, 512] -> dv [b*n, 768] and the dt columns of dzx; dbias, da and dD [8] +=; scratch
 * [2, n, 64]. */
void lm_scan_back(const half *v, const half *zx, const float *bias, const float *a, const float *D,
                  const half *states, const half *dy, half *dv, half *dzx, float *dbias, float *da, float *dD,
                  float *scratch, int64_t b, int64_t n)
{
    static __thread struct chunk k;
    static __thread float g[SQUARE], dx[SQUARE], dm[SQUARE], part[SQUARE], dS[SQUARE];
    static __thread half m[SQUARE], dg[SQUARE], bt[SQUARE], edy[SQUARE], dsh[SQUARE];
    static __thread struct packed r1, r2;
    float *dB = scratch, *dC = dB + n * Q, dc[Q];
    struct config old;
    enter(&old);
    for (int64_t u = 0; u < b * HEADS; u++) {
        int64_t s = u / HEADS, h = u % HEADS, group = h / (HEADS / GROUPS), first = h % (HEADS / GROUPS) == 0;
        if (first)
            memset(dB, 0, (size_t)(2 * n * Q) * 4);
        memset(dS, 0, sizeof dS);
        for (int64_t i = n / Q - 1; i >= 0; i--) {
            int64_t row = s * n + i * Q;
            const half *vc = v + row * V, *B = vc + X + group * Q, *C = B + GROUPS * Q,
                       *S = states + (u * (n / Q) + i) * SQUARE, *gy = dy + row * X + h * Q;
            float *toB = dB + i * Q * Q, *toC = dC + i * Q * Q, last = 0;
            memset(dc, 0, sizeof dc);
            begin_chunk(&k, vc, zx + row * ZX, h, bias[h], a[h]);
            product(rows_of(C, V), across(B, V, &r1), g, 0);
            masked(g, k.c, m);
            scaled(B, V, k.tail, bt);
            rounded(dS, dsh);
            product(turned(m, Q, &r1), plain(gy, X, &r2), dx, 0); /* dX' */
            product(rows_of(bt, Q), across(dsh, Q, &r1), dx, 1);
            product(rows_of(gy, X), across(k.x, Q, &r1), dm, 0);
            masked_back(dm, m, k.c, dg, dc);
            scaled(gy, X, k.e, edy);
            product(rows_of(dg, Q), plain(B, V, &r1), toC, 1);
            product(rows_of(edy, Q), plain(S, Q, &r1), part, 0);
            for (int t = 0; t < Q; t++) {
                dc[t] += dot_rows(C + t * V, part + t * Q);
                for (int j = 0; j < Q; j++)
                    toC[t * Q + j] += part[t * Q + j];
            }
            product(turned(dg, Q, &r1), plain(C, V, &r2), toB, 1);
            product(rows_of(k.x, Q), plain(dsh, Q, &r1), part, 0);
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
            product(turned(edy, Q, &r1), plain(C, V, &r2), dS, 1);
            struct sums to = {dbias + h, da + h, dD + h};
            rows_back(&k, dx, dc, vc + h * Q, gy, zx + row * ZX + X + V + h, bias[h], a[h], D[h],
                      dv + row * V + h * Q, dzx + row * ZX + X + V + h, to);
        }
        if (h % (HEADS / GROUPS) == HEADS / GROUPS - 1)
            for (int64_t t = 0; t < n; t++)
                for (int j = 0; j < Q; j += LANES) {
                    half *to = dv + (s * n + t) * V + X + group * Q + j;
                    narrow(to, load(dB + t * Q + j));
                    narrow(to + GROUPS * Q, load(dC + t * Q + j));
                }
    }
    leave(&old);
}

/* ---- gate and norms ---------------------------------------------------------------------------------- */

/* q = rms norm, by groups of 256, of y silu(z); r [rows, 2]. */
void lm_gate(const half *y, const half *zx, half *q, float *r, int64_t rows, float eps)
{
    enum { W = X / GROUPS };
    for (int64_t t = 0; t < rows; t++)
        for (int64_t g = 0; g < GROUPS; g++) {
            float f[W];
            vec sum = all(0);
            for (int64_t i = 0; i < W; i += LANES) {
                vec z = wide(zx + t * ZX + g * W + i), p = wide(y + t * X + g * W + i) * z * sigmoid(z);
                store(f + i, p);
                sum += p * p;
            }
            float s = 1 / sqrtf(total(sum) / W + eps);
            r[t * GROUPS + g] = s;
            for (int64_t i = 0; i < W; i += LANES)
                narrow(q + t * X + g * W + i, load(f + i) * all(s));
        }
}

void lm_gate_back(const half *y, const half *zx, const half *q, const float *r, const half *dq, half *dy,
                  half *dzx, int64_t rows)
{
    enum { W = X / GROUPS };
    for (int64_t t = 0; t < rows; t++)
        for (int64_t g = 0; g < GROUPS; g++) {
            vec sum = all(0), s = all(r[t * GROUPS + g]);
            for (int64_t i = 0; i < W; i += LANES)
                sum += wide(q + t * X + g * W + i) * wide(dq + t * X + g * W + i);
            vec mean = all(total(sum) / W);
            for (int64_t i = 0; i < W; i += LANES) {
                int64_t at = t * X + g * W + i;
                vec df = s * (wide(dq + at) - mean * wide(q + at));
                vec z = wide(zx + t * ZX + g * W + i), sg = sigmoid(z), silu = z * sg;
                vec slope = sg * (z * (1 - sg) + 1);
                narrow(dy + at, df * silu);
                narrow(dzx + t * ZX + g * W + i, df * wide(y + at) * slope);
            }
        }
}

/* x += delta (unless NULL); u = x / root mean square, r = 1 / it. */
void lm_norm(float *x, const half *delta, half *u, float *r, int64_t rows, int64_t d, float eps)
{
    for (int64_t t = 0; t < rows; t++) {
        vec sum = all(0);
        for (int64_t i = 0; i < d; i += LANES) {
            vec v = load(x + t * d + i);
            if (delta) {
                v += wide(delta + t * d + i);
                store(x + t * d + i, v);
            }
            sum += v * v;
        }
        r[t] = 1 / sqrtf(total(sum) / (float)d + eps);
        for (int64_t i = 0; i < d; i += LANES)
            narrow(u + t * d + i, load(x + t * d + i) * all(r[t]));
    }
}

/* dx += the norm's way back of du; dx as half too. */
void lm_norm_back(float *dx, const half *du, const half *u, const float *r, half *dxh, int64_t rows,
                  int64_t d)
{
    for (int64_t t = 0; t < rows; t++) {
        vec sum = all(0), s = all(r[t]);
        for (int64_t i = 0; i < d; i += LANES)
            sum += wide(u + t * d + i) * wide(du + t * d + i);
        vec mean = all(total(sum) / (float)d);
        for (int64_t i = 0; i < d; i += LANES) {
            vec v = s * (wide(du + t * d + i) - mean * wide(u + t * d + i)) + load(dx + t * d + i);
            store(dx + t * d + i, v);
            narrow(dxh + t * d + i, v);
        }
    }
}

/* g = max(a, 0)^2, and back: dg becomes da. */
void lm_square(const half *a, half *g, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) {
        vec v = most(wide(a + i), all(0));
        narrow(g + i, v * v);
    }
}

void lm_square_back(half *dg, const half *a, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) {
        vec v = most(wide(a + i), all(0));
        narrow(dg + i, wide(dg + i) * (v + v));
    }
}
