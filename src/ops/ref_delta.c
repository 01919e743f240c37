/* ref_delta.c - the scalar reference of Gated DeltaNet (Yang et al., "Gated Delta Networks", 2024) and of
 * the gated attention and MLP around it.
 *
 *     q = q / |q| / sqrt(dk),  k = k / |k|                each key head, shared by consecutive value heads
 *     S = exp(g) S;  d = beta (v - ST k);  S = S + k dT   each value head: ST k moves towards v
 *     y = ST q                                            from the new state
 *
 * Many tokens run in chunks, which is mathematically equivalent and uses products of small matrices. For a
 * chunk of C tokens of one value head, with G_i the sum of g up to token i and S the state before:
 *
 *     R_i = beta_i (v_i - e^(G_i) ST k_i) - sum_(j < i) A_ij R_j      A_ij = beta_i (k_i . k_j) e^(G_i - G_j)
 *     y_i = e^(G_i) ST q_i + sum_(j <= i) (q_i . k_j) e^(G_i - G_j) R_j
 *     S'  = e^(G_C) S + sum_j e^(G_C - G_j) k_j R_jT
 *
 * R solves (I + A) R = ... by forward substitution: with equal keys and beta 1, powers of A grow to 1e8,
 * so that an inverse computed from products loses all precision, while substitution is exact. Only
 * differences G_i - G_j <= 0 are exponentiated, and the sums are f64, because G may reach thousands while
 * later differences stay small. */
#include "ops/ref.h"

/* ---- vectors ------------------------------------------------------------------------------------------- */

static float dot(const float *a, const float *b, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Computes to += by x. */
static void add(float *to, const float *x, int n, float by)
{
    for (int i = 0; i < n; i++)
        to[i] += by * x[i];
}

/* Computes to += by ST x. */
static void add_read(float *to, const float *S, const float *x, int rows, int cols, float by)
{
    for (int r = 0; r < rows; r++)
        add(to, S + (int64_t)r * cols, cols, by * x[r]);
}

/* Computes S += by x zT. */
static void add_outer(float *S, const float *x, const float *z, int rows, int cols, float by)
{
    for (int r = 0; r < rows; r++)
        add(S + (int64_t)r * cols, z, cols, by * x[r]);
}

static void scale(float *x, int64_t n, float by)
{
    for (int64_t i = 0; i < n; i++)
        x[i] *= by;
}

/* Computes to = x / sqrt(|x|^2 + 1e-6) * by, for n columns of row t starting at c. */
static void normalised(float *to, struct tensor x, int64_t t, int64_t c, int n, float by)
{
    for (int i = 0; i < n; i++)
        to[i] = get(x, t, c + i);
    scale(to, n, by / sqrtf(dot(to, to, n) + 1e-6f));
}

/* ---- the delta rule ------------------------------------------------------------------------------------ */

struct head { /* one value head of a call */
    const struct delta_shape *s;
    struct tensor y, v, gates;
    int j;
    float *S;         /* [dk][dv] */
    float *q, *k, *R; /* [C][dk], [C][dk], [C][dv] of a chunk */
    double *sum;      /* [C] */
    float *row;       /* [dv] */
};

/* Loads q and k of token t, normalized, and v, as token i of the chunk. */
static void load_token(const struct head *h, int64_t t, int64_t i)
{
    const struct delta_shape *s = h->s;
    int64_t keys = (int64_t)s->key_heads * s->key,
            of = (int64_t)(s->tiled ? h->j % s->key_heads : h->j / (s->value_heads / s->key_heads)) * s->key;
    normalised(h->q + i * s->key, h->v, t, of, s->key, 1 / sqrtf((float)s->key));
    normalised(h->k + i * s->key, h->v, t, keys + of, s->key, 1);
    for (int c = 0; c < s->value; c++)
        h->R[i * s->value + c] = get(h->v, t, 2 * keys + (int64_t)h->j * s->value + c);
}

static void store_token(const struct head *h, int64_t t)
{
    for (int c = 0; c < h->s->value; c++)
        put(h->y, t, (int64_t)h->j * h->s->value + c, h->row[c]);
}

/* Computes one token. */
static void step(const struct head *h, int64_t t)
{
    int dk = h->s->key, dv = h->s->value;
    load_token(h, t, 0);
    scale(h->S, (int64_t)dk * dv, expf(get(h->gates, t, h->j)));
    add_read(h->R, h->S, h->k, dk, dv, -1);
    add_outer(h->S, h->k, h->R, dk, dv, get(h->gates, t, h->s->value_heads + h->j));
    memset(h->row, 0, (size_t)dv * sizeof *h->row);
    add_read(h->row, h->S, h->q, dk, dv, 1);
    store_token(h, t);
}

static float decay(const struct head *h, int64_t i, int64_t j)
{
    return expf((float)(h->sum[i] - h->sum[j]));
}

/* Computes tokens [t, t + n). */
static void chunk(const struct head *h, int64_t t, int64_t n)
{
    int dk = h->s->key, dv = h->s->value;
    double acc = 0;
    for (int64_t i = 0; i < n; i++) {
        load_token(h, t + i, i);
        const float *k = h->k + i * dk, *q = h->q + i * dk;
        float *R = h->R + i * dv;
        h->sum[i] = acc += (double)get(h->gates, t + i, h->j);
        add_read(R, h->S, k, dk, dv, -expf((float)acc));
        for (int64_t m = 0; m < i; m++)
            add(R, h->R + m * dv, dv, -decay(h, i, m) * dot(k, h->k + m * dk, dk));
        scale(R, dv, get(h->gates, t + i, h->s->value_heads + h->j));
        memset(h->row, 0, (size_t)dv * sizeof *h->row);
        add_read(h->row, h->S, q, dk, dv, expf((float)acc));
        for (int64_t m = 0; m <= i; m++)
            add(h->row, h->R + m * dv, dv, decay(h, i, m) * dot(q, h->k + m * dk, dk));
        store_token(h, t + i);
    }
    scale(h->S, (int64_t)dk * dv, expf((float)acc));
    for (int64_t m = 0; m < n; m++)
        add_outer(h->S, h->k + m * dk, h->R + m * dv, dk, dv, decay(h, n - 1, m));
}

/* Computes every head over all rows, starting from `state`: in chunks, or one token at a time. */
static void run_heads(struct tensor y, struct tensor v, struct tensor gates, struct tensor state,
                      const struct delta_shape *s, bool chunks)
{
    int64_t C = chunks ? s->chunk : 1, dk = s->key, dv = s->value;
    struct head h = {s, y, v, gates};
    h.q = xmalloc((unsigned long)(C * (2 * dk + dv) + dv), sizeof *h.q);
    h.k = h.q + C * dk;
    h.R = h.k + C * dk;
    h.row = h.R + C * dv;
    h.sum = xmalloc((unsigned long)C, sizeof *h.sum);
    for (h.j = 0; h.j < s->value_heads; h.j++) {
        h.S = (float *)state.data + h.j * dk * state.stride;
        for (int64_t t = 0; t < y.rows; t += C)
            if (chunks)
                chunk(&h, t, y.rows - t < C ? y.rows - t : C);
            else
                step(&h, t);
    }
    free(h.q);
    free(h.sum);
}

static void ref_delta_scan(struct backend *b, struct tensor y, struct tensor v, struct tensor gates,
                           struct tensor state, const struct delta_shape *s)
{
    run_heads(y, v, gates, state, s, true);
}

static void ref_delta_step_batch(struct backend *b, struct tensor y, struct tensor v, struct tensor gates,
                                 const struct tensor *states, const struct delta_shape *s)
{
    for (int64_t t = 0; t < y.rows; t++)
        run_heads(tensor_rows(y, t, 1), tensor_rows(v, t, 1), tensor_rows(gates, t, 1), states[t], s, false);
}

static float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static void ref_delta_gates(struct backend *b, struct tensor gates, struct tensor x, struct tensor z,
                            struct tensor a, struct tensor dt_bias)
{
    for (int64_t t = 0; t < x.rows; t++)
        for (int64_t h = 0; h < x.cols; h++) {
            float dt = get(x, t, h) + get(dt_bias, 0, h);
            put(gates, t, h, get(a, 0, h) * (dt > 20 ? dt : log1pf(expf(dt))));
            put(gates, t, x.cols + h, sigmoid(get(z, t, h)));
        }
}

/* ---- gates, norms, MLP --------------------------------------------------------------------------------- */

/* Returns 1 / sqrt(mean x^2 + eps) of n columns. */
static float inverse_size(struct tensor x, int64_t t, int64_t c, int64_t n, float eps)
{
    double sum = 0;
    for (int64_t i = c; i < c + n; i++)
        sum += (double)get(x, t, i) * get(x, t, i);
    return 1.0f / sqrtf((float)(sum / (double)n) + eps);
}

static void ref_norm_gate(struct backend *b, struct tensor out, struct tensor y, struct tensor z,
                          struct tensor w, float eps)
{
    for (int64_t t = 0; t < y.rows; t++)
        for (int64_t c = 0; c < y.cols; c += w.cols) {
            float r = inverse_size(y, t, c, w.cols, eps);
            for (int64_t i = 0; i < w.cols; i++)
                put(out, t, c + i, get(w, 0, i) * (get(y, t, c + i) * r) * silu(get(z, t, c + i)));
        }
}

static void ref_norm_rotate(struct backend *b, struct tensor y, struct tensor x, struct tensor w,
                            struct tensor table, int heads, float eps)
{
    int64_t d = w.cols, half = table.cols / 2, apart = x.cols / heads;
    autofree float *v = xmalloc((unsigned long)d, sizeof *v);
    for (int64_t t = 0; t < y.rows; t++)
        for (int h = 0; h < heads; h++) {
            float r = inverse_size(x, t, h * apart, d, eps);
            for (int64_t i = 0; i < d; i++)
                v[i] = get(w, 0, i) * (get(x, t, h * apart + i) * r);
            for (int64_t i = 0; i < half; i++) {
                float c = get(table, t, i), s = get(table, t, half + i), low = v[i], high = v[half + i];
                v[i] = low * c - high * s;
                v[half + i] = high * c + low * s;
            }
            for (int64_t i = 0; i < d; i++)
                put(y, t, h * d + i, v[i]);
        }
}

static void ref_gate_heads(struct backend *b, struct tensor y, struct tensor p, int heads)
{
    int64_t d = y.cols / heads;
    for (int64_t t = 0; t < y.rows; t++)
        for (int64_t c = 0; c < y.cols; c++)
            put(y, t, c, get(y, t, c) * sigmoid(get(p, t, (c / d * 2 + 1) * d + c % d)));
}

static void ref_swiglu(struct backend *b, struct tensor y, struct tensor g, struct tensor u)
{
    for (int64_t t = 0; t < y.rows; t++)
        for (int64_t c = 0; c < y.cols; c++)
            put(y, t, c, silu(get(g, t, c)) * get(u, t, c));
}

static void ref_add_gated(struct backend *b, struct tensor y, struct tensor x, struct tensor g)
{
    for (int64_t t = 0; t < y.rows; t++)
        for (int64_t c = 0; c < y.cols; c++)
            put(y, t, c, get(y, t, c) + sigmoid(get(g, t, 0)) * get(x, t, c));
}

void ref_delta_fill(struct ops *o)
{
    o->delta_gates = ref_delta_gates;
    o->delta_scan = ref_delta_scan;
    o->delta_step_batch = ref_delta_step_batch;
    o->norm_gate = ref_norm_gate;
    o->norm_rotate = ref_norm_rotate;
    o->gate_heads = ref_gate_heads;
    o->swiglu = ref_swiglu;
    o->add_gated = ref_add_gated;
}
