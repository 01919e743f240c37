/* ref_mamba.c - the scalar reference of Mamba-2's convolution and state space. */
#include "ops/ref.h"
#include "ops/stochastic_round.h"

/* Returns the input of tap k for output row t: a row of x, or of the state if t is negative. */
static float tap(struct tensor x, struct tensor state, int64_t t, int64_t c)
{
    return t >= 0 ? get(x, t, c) : get(state, state.rows + t, c);
}

static void ref_conv_tokens(struct backend *b, struct tensor v, struct tensor xbc, struct tensor w,
                            struct tensor bias, struct tensor state)
{
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
         /* oldest first: row r of the new state is at or after row r of the old one */
         r++)
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

/* Computes S = exp(dt a) S + (dt x) B^T;  y = S C + D x, token by token. */
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

/* Returns a state as f32 for a call: itself, or a copy that state_end() rounds. */
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

/* Computes one head over one chunk of `len` tokens starting at t0, by the quadratic form of the same
 * recurrence. With c_i the inclusive sum of dt a, only differences c_i - c_j <= 0 are exponentiated. A
 * token that decays the state to zero makes c reach thousands, while differences between later tokens stay
 * small, so the sums are f64.
 *
 *     y_i = exp(c_i) S C_i + sum_{j<=i} exp(c_i - c_j) dt_j (C_i . B_j) x_j + D x_i
 *     S'  = exp(c_L) S + sum_j exp(c_L - c_j) dt_j x_j B_j^T */
static void scan_chunk(struct tensor y, struct tensor v, struct tensor dt, struct tensor state,
                       const struct ssm_shape *s, const struct ssm_const *c, int h, int64_t t0, int64_t len,
                       float *work)
{
    int64_t inner = (int64_t)s->heads * s->head_dim;
    int64_t b0 = inner + (int64_t)(h / (s->heads / s->groups)) * s->state,
            c0 = b0 + (int64_t)s->groups * s->state;
    float *d = work + 2 * len;
    double *sum = (double *)(void *)work, acc = 0;
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
                here += expf((float)(sum[i] - sum[j])) * d[j] * cb * get(v, t0 + j, row);
            }
            put(y, t0 + i, row, expf((float)sum[i]) * carried + here + c->d[h] * get(v, t0 + i, row));
        }
    }
    double last = sum[len - 1];
    for (int p = 0; p < s->head_dim; p++) {
        int64_t row = (int64_t)h * s->head_dim + p;
        for (int n = 0; n < s->state; n++) {
            float next = expf((float)last) * get(state, row, n);
            for (int64_t j = 0; j < len; j++)
                next += expf((float)(last - sum[j])) * d[j] * get(v, t0 + j, row) * get(v, t0 + j, b0 + n);
            put(state, row, n, next);
        }
    }
}

static void ref_ssm_scan(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                         struct tensor state, uint32_t key, const struct ssm_shape *s,
                         const struct ssm_const *c)
{
    autofree float *work = xmalloc((unsigned long)s->chunk * 3, sizeof *work);
    struct tensor wide = state_begin(state);
    for (int64_t t0 = 0; t0 < y.rows; t0 += s->chunk) {
        int64_t len = y.rows - t0 < s->chunk ? y.rows - t0 : s->chunk;
        for (int h = 0; h < s->heads; h++)
            scan_chunk(y, v, dt, wide, s, c, h, t0, len, work);
    }
    state_end(state, wide, key);
}

static void ref_conv_batch(struct backend *b, struct tensor v, struct tensor xbc, struct tensor w,
                           struct tensor bias, const struct tensor *states)
{
    for (int64_t t = 0; t < v.rows; t++)
        ref_conv_tokens(b, tensor_rows(v, t, 1), tensor_rows(xbc, t, 1), w, bias, states[t]);
}

static void ref_ssm_step_batch(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                               const struct tensor *states, const uint32_t *keys, const struct ssm_shape *s,
                               const struct ssm_const *c)
{
    for (int64_t t = 0; t < y.rows; t++) {
        struct tensor wide = state_begin(states[t]);
        recurrence(tensor_rows(y, t, 1), tensor_rows(v, t, 1), tensor_rows(dt, t, 1), wide, s, c);
        state_end(states[t], wide, keys ? keys[t] : 0);
    }
}

void ref_mamba_fill(struct ops *o)
{
    o->conv_tokens = ref_conv_tokens;
    o->conv_batch = ref_conv_batch;
    o->ssm_step_batch = ref_ssm_step_batch;
    o->ssm_scan = ref_ssm_scan;
}
