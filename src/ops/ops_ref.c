/* ops_ref.c - the scalar reference: every operation as its equation, one output after the other.
 *
 * This is the specification the fast kernels are compared with, and the place to read what an
 * operation means.  Values are read into f32 whatever their storage, sums run in f32 (f64 where a long
 * sum would drown the comparison), and each result is rounded once when it is stored.
 */
#include "ops/ops_impl.h"
#include "ops/stochastic_round.h"

#include <math.h>
#include <string.h>

static float get(struct tensor t, int64_t r, int64_t c)
{
    int64_t i = r * t.stride + c;
    return t.dtype == DT_BF16 ? bf16_to_f32(((const uint16_t *)t.data)[i]) : ((const float *)t.data)[i];
}

static void put(struct tensor t, int64_t r, int64_t c, float v)
{
    int64_t i = r * t.stride + c;
    if (t.dtype == DT_BF16)
        ((uint16_t *)t.data)[i] = bf16_from_f32(v);
    else
        ((float *)t.data)[i] = v;
}

/* The value v has once it is stored in a tensor like t. */
static float rounded(struct tensor t, float v)
{
    return t.dtype == DT_BF16 ? bf16_to_f32(bf16_from_f32(v)) : v;
}

static float silu(float x)
{
    return x / (1.0f + expf(-x));
}

/* y[t] = E[ids[t]] */
static void ref_embed(struct backend *b, struct tensor y, struct tensor table, const int32_t *ids)
{
    (void)b;
    for (int64_t t = 0; t < y.rows; t++)
        for (int64_t c = 0; c < y.cols; c++)
            put(y, t, c, get(table, ids[t], c));
}

static float epilogue(struct tensor y, float v, enum epilogue epi)
{
    switch (epi) {
    case EPI_RELU2:
        v = rounded(y, v);
        return v > 0 ? v * v : 0;
    case EPI_GELU:
        return 0.5f * v * (1.0f + erff(v * 0.70710678118654752f));
    default:
        return v;
    }
}

/* y[t,n] (+)= epi( sum_k x[t,k] W[n,k] + bias[n] ) */
static void ref_linear(struct backend *b, struct tensor y, struct tensor x, const struct weight *w,
                       struct tensor bias, enum epilogue epi, int add)
{
    (void)b;
    for (int64_t t = 0; t < y.rows; t++) {
        for (int64_t n = 0; n < y.cols; n++) {
            float sum = 0;
            for (int64_t k = 0; k < x.cols; k++)
                sum += get(x, t, k) * ref_number(w, n, k);
            if (bias.data)
                sum += get(bias, 0, n);
            float v = epilogue(y, sum, epi);
            put(y, t, n, add ? get(y, t, n) + rounded(y, v) : v);
        }
    }
    cpu_weight_read(w);
}

static void ref_rmsnorm(struct backend *b, struct tensor y, struct tensor x, struct tensor w, float eps)
{
    (void)b;
    for (int64_t t = 0; t < x.rows; t++) {
        double sum = 0;
        for (int64_t c = 0; c < x.cols; c++)
            sum += (double)get(x, t, c) * get(x, t, c);
        float r = 1.0f / sqrtf((float)(sum / (double)x.cols) + eps);
        for (int64_t c = 0; c < x.cols; c++)
            put(y, t, c, get(w, 0, c) * (get(x, t, c) * r));
    }
}

static void ref_layernorm(struct backend *b, struct tensor y, struct tensor x, struct tensor w,
                          struct tensor bias, float eps)
{
    (void)b;
    for (int64_t t = 0; t < x.rows; t++) {
        double sum = 0, square = 0;
        for (int64_t c = 0; c < x.cols; c++)
            sum += get(x, t, c);
        double mean = sum / (double)x.cols;
        for (int64_t c = 0; c < x.cols; c++)
            square += (get(x, t, c) - mean) * (get(x, t, c) - mean);
        float r = 1.0f / sqrtf((float)(square / (double)x.cols) + eps);
        for (int64_t c = 0; c < x.cols; c++)
            put(y, t, c, (get(x, t, c) - (float)mean) * r * get(w, 0, c) + get(bias, 0, c));
    }
}

/* q = y silu(z); out = w q rsqrt(mean of the group's q^2 + eps): the gate comes before the norm. */
static void ref_gated_norm(struct backend *b, struct tensor out, struct tensor y, struct tensor z,
                           struct tensor w, int groups, float eps)
{
    (void)b;
    int64_t size = y.cols / groups;
    for (int64_t t = 0; t < y.rows; t++) {
        for (int64_t g = 0; g < groups; g++) {
            double sum = 0;
            for (int64_t c = g * size; c < (g + 1) * size; c++) {
                float q = get(y, t, c) * silu(get(z, t, c));
                sum += (double)q * q;
            }
            float r = 1.0f / sqrtf((float)(sum / (double)size) + eps);
            for (int64_t c = g * size; c < (g + 1) * size; c++)
                put(out, t, c, get(w, 0, c) * (get(y, t, c) * silu(get(z, t, c)) * r));
        }
    }
}

static void ref_add(struct backend *b, struct tensor h, struct tensor y)
{
    (void)b;
    for (int64_t t = 0; t < h.rows; t++)
        for (int64_t c = 0; c < h.cols; c++)
            put(h, t, c, get(h, t, c) + get(y, t, c));
}

/* Input of tap k for output row t: from the input, or from the state for rows before the first. */
static float tap(struct tensor x, struct tensor state, int64_t t, int64_t c)
{
    return t >= 0 ? get(x, t, c) : get(state, state.rows + t, c);
}

static void ref_conv(struct backend *b, struct tensor v, struct tensor xbc, struct tensor w,
                     struct tensor bias, struct tensor state)
{
    (void)b;
    int64_t taps = w.cols, keep = taps - 1, rows = xbc.rows;
    for (int64_t t = 0; t < rows; t++) {
        for (int64_t c = 0; c < xbc.cols; c++) {
            float sum = bias.data ? get(bias, 0, c) : 0;
            for (int64_t k = 0; k < taps; k++)
                sum += get(w, c, k) * tap(xbc, state, t - keep + k, c);
            put(v, t, c, silu(sum));
        }
    }
    for (int64_t r = 0; r < keep;
         r++) /* oldest first: row r of the new state is at or after row r of the old */
        for (int64_t c = 0; c < xbc.cols; c++)
            put(state, r, c, tap(xbc, state, rows - keep + r, c));
}

static float softplus(float a)
{
    return a > 20 ? a : log1pf(expf(a));
}

static float time_step(const struct ssm_shape *s, const struct ssm_const *c, struct tensor dt, int64_t t,
                       int h)
{
    float d = softplus(get(dt, t, h) + c->dt_bias[h]);
    return d < s->dt_min ? s->dt_min : d > s->dt_max ? s->dt_max : d;
}

/* S = exp(dt a) S + (dt x) B^T;  y = S C + D x, token by token. */
static void recurrence(struct tensor y, struct tensor v, struct tensor dt, struct tensor state,
                       const struct ssm_shape *s, const struct ssm_const *c)
{
    int64_t inner = (int64_t)s->heads * s->head_dim, bc = (int64_t)s->groups * s->state;
    for (int64_t t = 0; t < y.rows; t++) {
        for (int h = 0; h < s->heads; h++) {
            int64_t b0 = inner + (int64_t)(h / (s->heads / s->groups)) * s->state, c0 = b0 + bc;
            float d = time_step(s, c, dt, t, h), decay = expf(d * c->a[h]);
            for (int p = 0; p < s->head_dim; p++) {
                int64_t row = (int64_t)h * s->head_dim + p;
                float x = get(v, t, row), sum = 0;
                for (int n = 0; n < s->state; n++) {
                    float next = decay * get(state, row, n) + d * x * get(v, t, b0 + n);
                    put(state, row, n, next);
                    sum += next * get(v, t, c0 + n);
                }
                put(y, t, row, sum + c->d[h] * x);
            }
        }
    }
}

/* A state as f32 for the time of a call: itself, or numbers beside it that are rounded at the end. */
static struct tensor state_begin(struct tensor state)
{
    if (state.dtype == DT_F32)
        return state;
    struct tensor wide = {NULL, DT_F32, state.rows, state.cols, state.cols};
    wide.data = xmalloc((unsigned long)(state.rows * state.cols), sizeof(float));
    tensor_convert(wide, state);
    return wide;
}

static void state_end(struct tensor state, struct tensor wide, uint32_t key)
{
    if (state.dtype == DT_F32)
        return;
    for (int64_t r = 0; r < state.rows; r++)
        for (int64_t n = 0; n < state.cols; n++)
            ((uint16_t *)state.data)[r * state.stride + n] =
                stochastic_round_f16(get(wide, r, n), key, r, n, state.cols);
    free(wide.data);
}

static void ref_ssm_step(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                         struct tensor state, uint32_t key, const struct ssm_shape *s,
                         const struct ssm_const *c)
{
    (void)b;
    struct tensor wide = state_begin(state);
    recurrence(y, v, dt, wide, s, c);
    state_end(state, wide, key);
}

/* One head over one chunk of L tokens from token t0, by the quadratic form of the same recurrence:
 * with c_i the inclusive sum of dt a, only differences c_i - c_j <= 0 are ever exponentiated.
 *   y_i = exp(c_i) S C_i + sum_{j<=i} exp(c_i - c_j) dt_j (C_i . B_j) x_j + D x_i
 *   S'  = exp(c_L) S + sum_j exp(c_L - c_j) dt_j x_j B_j^T */
static void scan_chunk(struct tensor y, struct tensor v, struct tensor dt, struct tensor state,
                       const struct ssm_shape *s, const struct ssm_const *c, int h, int64_t t0, int64_t len,
                       float *work)
{
    int64_t inner = (int64_t)s->heads * s->head_dim;
    int64_t b0 = inner + (int64_t)(h / (s->heads / s->groups)) * s->state,
            c0 = b0 + (int64_t)s->groups * s->state;
    float *sum = work, *d = work + len, acc = 0;
    for (int64_t i = 0; i < len; i++) {
        d[i] = time_step(s, c, dt, t0 + i, h);
        sum[i] = acc += d[i] * c->a[h];
    }
    for (int64_t i = 0; i < len; i++) {
        for (int p = 0; p < s->head_dim; p++) {
            int64_t row = (int64_t)h * s->head_dim + p;
            float carried = 0, here = 0;
            for (int n = 0; n < s->state; n++)
                carried += get(state, row, n) * get(v, t0 + i, c0 + n);
            for (int64_t j = 0; j <= i; j++) {
                float cb = 0;
                for (int n = 0; n < s->state; n++)
                    cb += get(v, t0 + i, c0 + n) * get(v, t0 + j, b0 + n);
                here += expf(sum[i] - sum[j]) * d[j] * cb * get(v, t0 + j, row);
            }
            put(y, t0 + i, row, expf(sum[i]) * carried + here + c->d[h] * get(v, t0 + i, row));
        }
    }
    float last = sum[len - 1];
    for (int p = 0; p < s->head_dim; p++) {
        int64_t row = (int64_t)h * s->head_dim + p;
        for (int n = 0; n < s->state; n++) {
            float next = expf(last) * get(state, row, n);
            for (int64_t j = 0; j < len; j++)
                next += expf(last - sum[j]) * d[j] * get(v, t0 + j, row) * get(v, t0 + j, b0 + n);
            put(state, row, n, next);
        }
    }
}

static void ref_ssm_scan(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                         struct tensor state, uint32_t key, const struct ssm_shape *s,
                         const struct ssm_const *c)
{
    (void)b;
    float *work = xmalloc((unsigned long)s->chunk * 2, sizeof *work);
    struct tensor wide = state_begin(state);
    for (int64_t t0 = 0; t0 < y.rows; t0 += s->chunk) {
        int64_t len = y.rows - t0 < s->chunk ? y.rows - t0 : s->chunk;
        for (int h = 0; h < s->heads; h++)
            scan_chunk(y, v, dt, wide, s, c, h, t0, len, work);
    }
    state_end(state, wide, key);
    free(work);
}

static void ref_conv_each(struct backend *b, struct tensor v, struct tensor xbc, struct tensor w,
                          struct tensor bias, const struct tensor *states)
{
    for (int64_t t = 0; t < v.rows; t++)
        ref_conv(b, tensor_rows(v, t, 1), tensor_rows(xbc, t, 1), w, bias, states[t]);
}

static void ref_ssm_each(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                         const struct tensor *states, const uint32_t *keys, const struct ssm_shape *s,
                         const struct ssm_const *c)
{
    for (int64_t t = 0; t < y.rows; t++)
        ref_ssm_step(b, tensor_rows(y, t, 1), tensor_rows(v, t, 1), tensor_rows(dt, t, 1), states[t],
                     keys ? keys[t] : 0, s, c);
}

/* softmax(q k / sqrt d) v for one query over `n` keys; columns of one head start at the given ones. */
static void attend_one(struct tensor y, struct tensor q, struct tensor k, struct tensor v, int64_t t,
                       int64_t row0, int64_t n, int64_t yc, int64_t qc, int64_t kc, int64_t vc, int d,
                       float *p)
{
    float scale = 1.0f / sqrtf((float)d), most = -INFINITY, total = 0;
    for (int64_t s = 0; s < n; s++) {
        float dot = 0;
        for (int c = 0; c < d; c++)
            dot += get(q, t, qc + c) * get(k, row0 + s, kc + c);
        p[s] = dot * scale;
        most = p[s] > most ? p[s] : most;
    }
    for (int64_t s = 0; s < n; s++)
        total += p[s] = expf(p[s] - most);
    for (int c = 0; c < d; c++) {
        float sum = 0;
        for (int64_t s = 0; s < n; s++)
            sum += p[s] * get(v, row0 + s, vc + c);
        put(y, t, yc + c, sum / total);
    }
}

static void ref_attend(struct backend *b, struct tensor y, struct tensor q, struct tensor k, struct tensor v,
                       int q_heads, int kv_heads, int64_t past)
{
    (void)b;
    int d = (int)(q.cols / q_heads);
    bool small = k.dtype == DT_F8E4M3;
    if (small) {
        k = kv8_dequantize(k, kv_heads, d);
        v = kv8_dequantize(v, kv_heads, d);
    }
    float *p = xmalloc((unsigned long)(past + q.rows), sizeof *p);
    for (int64_t t = 0; t < q.rows; t++)
        for (int h = 0; h < q_heads; h++) {
            int64_t kc = (int64_t)(h / (q_heads / kv_heads)) * d;
            attend_one(y, q, k, v, t, 0, past + t + 1, (int64_t)h * d, (int64_t)h * d, kc, kc, d, p);
        }
    free(p);
    if (small) {
        free(k.data);
        free(v.data);
    }
}

static void ref_attend_each(struct backend *b, struct tensor y, struct tensor q, const struct tensor *k,
                            const struct tensor *v, int q_heads, int kv_heads)
{
    for (int64_t t = 0; t < q.rows; t++)
        ref_attend(b, tensor_rows(y, t, 1), tensor_rows(q, t, 1), k[t], v[t], q_heads, kv_heads,
                   k[t].rows - 1);
}

static void ref_attend_tiles(struct backend *b, struct tensor y, struct tensor qkv, int heads, int tiles)
{
    (void)b;
    int64_t n = y.rows / tiles, width = y.cols;
    int d = (int)(width / heads);
    float *p = xmalloc((unsigned long)n, sizeof *p);
    for (int64_t t = 0; t < y.rows; t++)
        for (int h = 0; h < heads; h++) {
            int64_t c = (int64_t)h * d;
            attend_one(y, qkv, qkv, qkv, t, t / n * n, n, c, c, width + c, 2 * width + c, d, p);
        }
    free(p);
}

/* Y[p][q][dr*2C + dc*C + ch] = X[2p+dr][2q+dc][ch] */
static void ref_pixel_shuffle(struct backend *b, struct tensor y, struct tensor x, int g)
{
    (void)b;
    int64_t channels = x.cols, half = g / 2;
    for (int64_t i = 0; i < y.rows; i++) {
        int64_t p = i / half, q = i % half;
        for (int64_t c = 0; c < y.cols; c++) {
            int64_t dr = c / (2 * channels), dc = c / channels % 2;
            put(y, i, c, get(x, (2 * p + dr) * g + 2 * q + dc, c % channels));
        }
    }
}

/* Where output i of `out` reads a line of `in` values: between two neighbours, the edges repeated. */
static float between(int i, int in, int out, int64_t at[2])
{
    float step = (float)in / (float)out, x = fmaxf(((float)i + 0.5f) * step - 0.5f, 0);
    at[0] = (int64_t)x;
    at[1] = at[0] + (at[0] < in - 1);
    return x - (float)at[0];
}

static void ref_resize_grid(struct backend *b, struct tensor y, struct tensor table, int rows, int cols)
{
    (void)b;
    int side = (int)lrint(sqrt((double)table.rows)), grid = rows > cols ? rows : cols;
    int64_t r[2], q[2];
    for (int i = 0; i < rows * cols; i++) {
        float fy = between(i / cols, side, grid, r), fx = between(i % cols, side, grid, q);
        for (int64_t c = 0; c < y.cols; c++) {
            float above =
                (1 - fx) * get(table, r[0] * side + q[0], c) + fx * get(table, r[0] * side + q[1], c);
            float below =
                (1 - fx) * get(table, r[1] * side + q[0], c) + fx * get(table, r[1] * side + q[1], c);
            put(y, i, c, (1 - fy) * above + fy * below);
        }
    }
}

/* Index of the largest of n values, among equals the first. */
static int largest(const float *v, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (v[i] > v[best])
            best = i;
    return best;
}

/* The groups that stay are those with the largest sum of their two best; the others become -inf. */
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
        sums[largest(sums, s->groups)] = -INFINITY;
    for (int g = 0; g < s->groups; g++)
        for (int i = 0; sums[g] > -INFINITY && i < size; i++)
            choice[(ptrdiff_t)g * size + i] = -INFINITY;
}

static int compare_ids(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

static void ref_route(struct backend *b, struct tensor ids, struct tensor weights, struct tensor logits,
                      struct tensor bias, const struct route_shape *s)
{
    (void)b;
    float *choice = xmalloc((unsigned long)s->experts * 3, sizeof *choice), *score = choice + s->experts,
          *sums = score + s->experts;
    for (int64_t t = 0; t < logits.rows; t++) {
        int32_t *id = (int32_t *)ids.data + t * ids.stride;
        float total = 0;
        for (int e = 0; e < s->experts; e++) {
            score[e] = 1.0f / (1.0f + expf(-get(logits, t, e)));
            choice[e] = score[e] + get(bias, 0, e);
            if (isnan(choice[e]))
                choice[e] = -1e30f; /* a choice is always of different experts */
        }
        if (s->groups > 1)
            drop_groups(choice, sums, s);
        for (int j = 0; j < s->chosen; j++) {
            id[j] = largest(choice, s->experts);
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

static void ref_experts(struct backend *b, struct tensor y, struct tensor x, struct tensor ids,
                        struct tensor weights, const struct experts *e)
{
    (void)b;
    int64_t width = e->up[0]->rows;
    float *inner = xmalloc((unsigned long)width, sizeof *inner);
    float *sum = xmalloc((unsigned long)y.cols, sizeof *sum);
    for (int64_t t = 0; t < x.rows; t++) {
        memset(sum, 0, (size_t)y.cols * sizeof *sum);
        for (int64_t j = 0; j < ids.cols; j++) {
            int32_t id = ((const int32_t *)ids.data)[t * ids.stride + j];
            const struct weight *up = e->up[id], *down = e->down[id];
            for (int64_t m = 0; m < width; m++) {
                float v = 0;
                for (int64_t k = 0; k < x.cols; k++)
                    v += get(x, t, k) * ref_number(up, m, k);
                inner[m] = rounded(x, epilogue(x, v, EPI_RELU2));
            }
            for (int64_t n = 0; n < y.cols; n++) {
                float v = 0;
                for (int64_t m = 0; m < width; m++)
                    v += inner[m] * ref_number(down, n, m);
                sum[n] += get(weights, t, j) * v;
            }
        }
        for (int64_t n = 0; n < y.cols; n++)
            put(y, t, n, sum[n]);
    }
    free(inner);
    free(sum);
}

static double ref_probe(struct backend *b, enum dtype t, int64_t rounds)
{
    (void)b;
    (void)t;
    volatile float sink = 1;
    float sum = sink, factor = sink;
    for (int64_t i = 0; i < rounds; i++)
        sum = sum * factor + factor;
    sink = sum;
    return 2.0 * (double)rounds;
}

void ops_ref_fill(struct ops *o)
{
    o->embed = ref_embed;
    o->linear = ref_linear;
    o->rmsnorm = ref_rmsnorm;
    o->layernorm = ref_layernorm;
    o->gated_norm = ref_gated_norm;
    o->add = ref_add;
    o->conv = ref_conv;
    o->conv_each = ref_conv_each;
    o->ssm_step = ref_ssm_step;
    o->ssm_each = ref_ssm_each;
    o->ssm_scan = ref_ssm_scan;
    o->attend = ref_attend;
    o->attend_each = ref_attend_each;
    o->attend_tiles = ref_attend_tiles;
    o->pixel_shuffle = ref_pixel_shuffle;
    o->resize_grid = ref_resize_grid;
    o->route = ref_route;
    o->experts = ref_experts;
    o->probe = ref_probe;
    ops_ref_quant_fill(o);
    ops_synthetic_fill(o);
    ops_kv8_fill(o);
}
