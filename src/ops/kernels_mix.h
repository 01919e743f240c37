/* kernels_mix.h - second half of kernels.h: what mixes tokens (convolution, state space, attention). */

/* ---- convolution --------------------------------------------------------------------------------- */

struct conv_task {
    struct tensor v, xbc, state;
    const float *taps; /* [K][C]: transposed, so that channels are the inner index */
    const float *bias;
    const float *rows; /* [K-1+T][C]: state, then input */
    int k;
};

static void conv_range(void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct conv_task *t = arg;
    int64_t n = t->v.cols;
    float *sum = xmalloc((size_t)n, sizeof *sum);
    for (int64_t r = begin; r < end; r++) {
        for (int64_t c = 0; c < n; c++)
            sum[c] = t->bias ? t->bias[c] : 0;
        for (int k = 0; k < t->k; k++) {
            const float *w = t->taps + (int64_t)k * n, *x = t->rows + (r + k) * n;
            for (int64_t c = 0; c < n; c++)
                sum[c] += w[c] * x[c];
        }
        for (int64_t c = 0; c < n; c++)
            sum[c] = silu(sum[c]);
        store_row(t->v, r, 0, n, sum);
    }
    free(sum);
}

static void fast_conv(struct backend *b, struct tensor v, struct tensor xbc, struct tensor w,
                      struct tensor bias, struct tensor state)
{
    int64_t n = xbc.cols, taps = w.cols, keep = taps - 1, rows = xbc.rows;
    float *buffer = xmalloc((size_t)(n * (taps + keep + rows)), sizeof *buffer), *in = buffer + taps * n;
    for (int64_t k = 0; k < taps; k++)
        for (int64_t c = 0; c < n; c++)
            buffer[k * n + c] = ((const float *)w.data)[c * w.stride + k];
    for (int64_t r = 0; r < keep; r++)
        load_row(state, r, 0, n, in + r * n);
    for (int64_t r = 0; r < rows; r++)
        load_row(xbc, r, 0, n, in + (keep + r) * n);
    struct conv_task t = {v, xbc, state, buffer, bias.data, in, (int)taps};
    pool_for(b->pool, rows, 16, conv_range, &t);
    for (int64_t r = 0; r < keep; r++)
        store_row(state, r, 0, n, in + (rows + r) * n);
    free(buffer);
}

/* ---- state space ----------------------------------------------------------------------------------- */

struct ssm_task {
    struct tensor y, v, dt, state;
    const struct ssm_shape *s;
    const struct ssm_const *c;
};

static float time_step(const struct ssm_task *k, int64_t t, int h)
{
    float raw;
    load_row(k->dt, t, h, 1, &raw);
    float a = raw + k->c->dt_bias[h], d = a > 20 ? a : log1pf(expf(a));
    return d < k->s->dt_min ? k->s->dt_min : d > k->s->dt_max ? k->s->dt_max : d;
}

static float *state_row(const struct ssm_task *k, int64_t row)
{
    return (float *)k->state.data + row * k->state.stride;
}

/* Heads [begin, end) of one token: S = exp(dt a) S + dt x B^T;  y = S C + D x */
static void step_range(void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct ssm_task *k = arg;
    int P = k->s->head_dim, N = k->s->state, per = k->s->heads / k->s->groups;
    int64_t inner = (int64_t)k->s->heads * P;
    float *B = xmalloc(2 * ((size_t)N + (size_t)P), sizeof *B), *C = B + N, *x = C + N, *y = x + P;
    for (int64_t h = begin; h < end; h++) {
        float d = time_step(k, 0, (int)h), decay = expf(d * k->c->a[h]);
        load_row(k->v, 0, inner + h / per * N, N, B);
        load_row(k->v, 0, inner + ((int64_t)k->s->groups + h / per) * N, N, C);
        load_row(k->v, 0, h * P, P, x);
        for (int p = 0; p < P; p++) {
            float *S = state_row(k, h * P + p), dx = d * x[p];
            for (int n = 0; n < N; n++)
                S[n] = decay * S[n] + dx * B[n];
            y[p] = lane_sum(S, C, N) + k->c->d[h] * x[p];
        }
        store_row(k->y, 0, h * P, P, y);
    }
    free(B);
}

static void fast_ssm_step(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                          struct tensor state, const struct ssm_shape *s, const struct ssm_const *c)
{
    struct ssm_task k = {y, v, dt, state, s, c};
    int64_t work = (int64_t)s->head_dim * s->state;
    pool_for(b->pool, s->heads, work < 20000 ? s->heads : 8, step_range, &k);
}

/* c[M][N] += a[M][K] b[K][N], all f32 and contiguous: small products inside a chunk. */
static void small_product(float *c, const float *a, const float *b, int M, int K, int N)
{
    for (int m = 0; m < M; m++)
        for (int k = 0; k < K; k++) {
            float s = a[m * K + k];
            for (int n = 0; n < N; n++)
                c[m * N + n] += s * b[k * N + n];
        }
}

struct chunk {              /* scratch of one head over one chunk of at most Q tokens */
    float *x, *B, *C, *Bt;  /* [Q][P] [Q][N] [Q][N] [N][Q] */
    float *M, *St, *y, *xd; /* [Q][Q] [N][P] [Q][P] [P][Q] */
    float *d, *sum;         /* [Q] time steps and their running sums times a */
};

/* The quadratic form of the recurrence: see ref_ssm_scan. */
static void scan_head(const struct ssm_task *k, struct chunk *w, int h, int64_t t0, int L)
{
    int P = k->s->head_dim, N = k->s->state, per = k->s->heads / k->s->groups;
    int64_t inner = (int64_t)k->s->heads * P;
    float acc = 0;
    for (int i = 0; i < L; i++) {
        w->d[i] = time_step(k, t0 + i, h);
        w->sum[i] = acc += w->d[i] * k->c->a[h];
        load_row(k->v, t0 + i, (int64_t)h * P, P, w->x + (size_t)i * P);
        load_row(k->v, t0 + i, inner + (int64_t)(h / per) * N, N, w->B + (size_t)i * N);
        load_row(k->v, t0 + i, inner + (int64_t)(k->s->groups + h / per) * N, N, w->C + (size_t)i * N);
    }
    for (int j = 0; j < L; j++)
        for (int n = 0; n < N; n++)
            w->Bt[n * L + j] = w->B[j * N + n];
    for (int p = 0; p < P; p++) /* S transposed: y wants it as the right factor */
        for (int n = 0; n < N; n++)
            w->St[n * P + p] = state_row(k, (int64_t)h * P + p)[n];

    /* y = exp(c_i) S C_i + sum_j M_ij x_j + D x_i,  M_ij = (C_i . B_j) exp(c_i - c_j) dt_j for j <= i */
    memset(w->M, 0, (size_t)L * (size_t)L * sizeof *w->M);
    small_product(w->M, w->C, w->Bt, L, N, L);
    for (int i = 0; i < L; i++)
        for (int j = 0; j < L; j++)
            w->M[i * L + j] = j <= i ? w->M[i * L + j] * exp_fast(w->sum[i] - w->sum[j]) * w->d[j] : 0;
    memset(w->y, 0, (size_t)L * (size_t)P * sizeof *w->y);
    small_product(w->y, w->C, w->St, L, N, P);
    for (int i = 0; i < L; i++) {
        float decay = expf(w->sum[i]);
        for (int p = 0; p < P; p++)
            w->y[i * P + p] = w->y[i * P + p] * decay + k->c->d[h] * w->x[i * P + p];
    }
    small_product(w->y, w->M, w->x, L, L, P);
    for (int i = 0; i < L; i++)
        store_row(k->y, t0 + i, (int64_t)h * P, P, w->y + (size_t)i * P);

    /* S' = exp(c_L) S + sum_j exp(c_L - c_j) dt_j x_j B_j^T */
    for (int j = 0; j < L; j++) {
        float f = expf(w->sum[L - 1] - w->sum[j]) * w->d[j];
        for (int p = 0; p < P; p++)
            w->xd[p * L + j] = f * w->x[j * P + p];
    }
    float decay = expf(w->sum[L - 1]);
    for (int p = 0; p < P; p++) {
        float *S = state_row(k, (int64_t)h * P + p);
        for (int n = 0; n < N; n++)
            S[n] *= decay;
        small_product(S, w->xd + (size_t)p * (size_t)L, w->B, 1, L, N);
    }
}

static void scan_range(void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct ssm_task *k = arg;
    size_t Q = (size_t)k->s->chunk, P = (size_t)k->s->head_dim, N = (size_t)k->s->state;
    float *all = xmalloc(3 * Q * P + 3 * Q * N + Q * Q + N * P + 2 * Q, sizeof *all), *at = all;
    struct chunk w;
    w.x = at, at += Q * P;
    w.y = at, at += Q * P;
    w.xd = at, at += Q * P;
    w.B = at, at += Q * N;
    w.C = at, at += Q * N;
    w.Bt = at, at += Q * N;
    w.M = at, at += Q * Q;
    w.St = at, at += N * P;
    w.d = at, at += Q;
    w.sum = at;
    for (int64_t t = 0; t < k->y.rows; t += k->s->chunk) {
        int64_t len = k->y.rows - t < k->s->chunk ? k->y.rows - t : k->s->chunk;
        for (int64_t h = begin; h < end; h++)
            scan_head(k, &w, (int)h, t, (int)len);
    }
    free(all);
}

static void fast_ssm_scan(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                          struct tensor state, const struct ssm_shape *s, const struct ssm_const *c)
{
    struct ssm_task k = {y, v, dt, state, s, c};
    pool_for(b->pool, s->heads, y.rows < 8 ? s->heads : 1, scan_range, &k);
}

/* ---- attention ---------------------------------------------------------------------------------------- */

/* A block of queries against a block of keys; QB queries at a time share the loads. */
enum { QUERIES = 32, KEYS = 4 * VL, QB = VL == 16 ? 4 : 2, WIDE = 2 * VL };

struct attend_task {
    struct tensor y, q, k, v;
    int64_t k_col, v_col; /* where the heads start in k and v */
    int heads, group, d;  /* query heads, of which `group` share a key head */
    int64_t past, tile;   /* causal: query t sees past + t + 1 keys; tile > 0: all keys of its tile */
};

struct attend_work {                     /* scratch of one thread; dp = d rounded up to WIDE, the rest zero */
    float *q, *out;                      /* [QUERIES][dp], the queries scaled */
    float *kt, *v;                       /* [d][KEYS], [KEYS][dp] */
    float *p, *row;                      /* [QUERIES][KEYS], [d] */
    float most[QUERIES], total[QUERIES]; /* softmax in one pass: largest score, sum of exp */
    int limit[QUERIES];                  /* keys of this block that a query sees */
    int d, dp;
};

static void attend_work_init(struct attend_work *w, int d)
{
    size_t dp = ((size_t)d + WIDE - 1) / WIDE * WIDE,
           n = 2 * QUERIES * dp + KEYS * (size_t)d + KEYS * dp + QUERIES * KEYS;
    w->d = d;
    w->dp = (int)dp;
    w->q = xcalloc(n + (size_t)d, sizeof *w->q);
    w->out = w->q + QUERIES * dp;
    w->kt = w->out + QUERIES * dp;
    w->v = w->kt + KEYS * (size_t)d;
    w->p = w->v + KEYS * dp;
    w->row = w->p + QUERIES * KEYS;
}

/* Keys [s0, s0 + n) of one head, transposed, and their values. */
static void load_keys(const struct attend_task *a, struct attend_work *w, int64_t kc, int64_t vc, int64_t s0,
                      int n)
{
    for (int s = 0; s < n; s++) {
        load_row(a->k, s0 + s, kc, w->d, w->row);
        for (int c = 0; c < w->d; c++)
            w->kt[c * KEYS + s] = w->row[c];
        load_row(a->v, s0 + s, vc, w->d, w->v + (size_t)s * (size_t)w->dp);
    }
}

/* p[i][s] = q_i . k_s for QB queries from i on */
static void scores(const struct attend_work *w, int i)
{
    vec acc[QB][4];
    for (int m = 0; m < QB; m++)
        acc[m][0] = acc[m][1] = acc[m][2] = acc[m][3] = (vec){0};
    const float *kt = w->kt, *q = w->q + (size_t)i * (size_t)w->dp;
    for (int c = 0; c < w->d; c++, kt += KEYS) {
        vec k0 = *(const vec *)kt, k1 = *(const vec *)(kt + VL), k2 = *(const vec *)(kt + 2 * VL),
            k3 = *(const vec *)(kt + 3 * VL);
        for (int m = 0; m < QB; m++) {
            float x = q[m * w->dp + c];
            acc[m][0] += x * k0;
            acc[m][1] += x * k1;
            acc[m][2] += x * k2;
            acc[m][3] += x * k3;
        }
    }
    for (int m = 0; m < QB; m++)
        for (int j = 0; j < 4; j++)
            *(vec *)(w->p + (i + m) * KEYS + j * VL) = acc[m][j];
}

/* Scores to weights of query i; what was summed so far is scaled to the new largest score. */
static void soften(struct attend_work *w, int i)
{
    float *p = w->p + i * KEYS, most = w->most[i], total = 0;
    int n = w->limit[i];
    for (int s = 0; s < n; s++)
        most = p[s] > most ? p[s] : most;
    float scale = n > 0 ? exp_fast(w->most[i] - most) : 1;
    for (int s = 0; s < KEYS; s++)
        p[s] = s < n ? exp_fast(p[s] - most) : 0;
    for (int s = 0; s < n; s++)
        total += p[s];
    float *o = w->out + (size_t)i * (size_t)w->dp;
    for (int c = 0; c < w->dp; c++)
        o[c] *= scale;
    w->total[i] = w->total[i] * scale + total;
    w->most[i] = most;
}

/* out_i += sum_s p[i][s] v_s for QB queries from i on */
static void gather(const struct attend_work *w, int i, int n)
{
    for (int c = 0; c < w->dp; c += WIDE) {
        vec acc[QB][2];
        for (int m = 0; m < QB; m++) {
            const float *o = w->out + (size_t)(i + m) * (size_t)w->dp + c;
            acc[m][0] = *(const vec *)o;
            acc[m][1] = *(const vec *)(o + VL);
        }
        for (int s = 0; s < n; s++) {
            const float *v = w->v + (size_t)s * (size_t)w->dp + c;
            vec v0 = *(const vec *)v, v1 = *(const vec *)(v + VL);
            for (int m = 0; m < QB; m++) {
                acc[m][0] += w->p[(i + m) * KEYS + s] * v0;
                acc[m][1] += w->p[(i + m) * KEYS + s] * v1;
            }
        }
        for (int m = 0; m < QB; m++) {
            float *o = w->out + (size_t)(i + m) * (size_t)w->dp + c;
            *(vec *)o = acc[m][0];
            *(vec *)(o + VL) = acc[m][1];
        }
    }
}

/* One head and one block of at most QUERIES queries from t0 on. */
static void attend_queries(const struct attend_task *a, struct attend_work *w, int64_t h, int64_t t0)
{
    int d = w->d, nq = (int)(a->q.rows - t0 < QUERIES ? a->q.rows - t0 : QUERIES);
    float scale = 1.0f / sqrtf((float)d);
    memset(w->q, 0, 2 * QUERIES * (size_t)w->dp * sizeof *w->q); /* queries and out */
    for (int i = 0; i < QUERIES; i++) {
        w->most[i] = -INFINITY;
        w->total[i] = 0;
        w->limit[i] = 0;
    }
    for (int i = 0; i < nq; i++) {
        float *q = w->q + (size_t)i * (size_t)w->dp;
        load_row(a->q, t0 + i, h * d, d, q);
        for (int c = 0; c < d; c++)
            q[c] *= scale;
    }
    int64_t first = a->tile ? t0 / a->tile * a->tile : 0,
            stop = a->tile ? first + a->tile : a->past + t0 + nq;
    for (int64_t s = first; s < stop; s += KEYS) {
        int n = (int)(stop - s < KEYS ? stop - s : KEYS);
        load_keys(a, w, a->k_col + h / a->group * d, a->v_col + h / a->group * d, s, n);
        for (int i = 0; i < nq; i++) {
            int64_t sees = a->tile ? n : a->past + t0 + i + 1 - s;
            w->limit[i] = (int)(sees < 0 ? 0 : sees < n ? sees : n);
        }
        for (int i = 0; i < nq; i += QB) {
            scores(w, i);
            for (int m = 0; m < QB; m++)
                soften(w, i + m);
            gather(w, i, n);
        }
    }
    for (int i = 0; i < nq; i++) {
        float *o = w->out + (size_t)i * (size_t)w->dp;
        for (int c = 0; c < d; c++)
            o[c] /= w->total[i];
        store_row(a->y, t0 + i, h * d, d, o);
    }
}

static void attend_range(void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct attend_task *a = arg;
    int64_t blocks = (a->q.rows + QUERIES - 1) / QUERIES;
    struct attend_work w;
    attend_work_init(&w, a->d);
    for (int64_t item = begin; item < end; item++)
        attend_queries(a, &w, item / blocks, item % blocks * QUERIES);
    free(w.q);
}

static void run_attention(struct backend *b, struct attend_task *a, int64_t keys)
{
    int64_t items = (a->q.rows + QUERIES - 1) / QUERIES * a->heads, work = a->q.rows * keys * a->d * a->heads;
    pool_for(b->pool, items, work < 200000 ? items : 1, attend_range, a);
}

static void fast_attend(struct backend *b, struct tensor y, struct tensor q, struct tensor k, struct tensor v,
                        int q_heads, int kv_heads, int64_t past)
{
    struct attend_task a = {.y = y,
                            .q = q,
                            .k = k,
                            .v = v,
                            .heads = q_heads,
                            .group = q_heads / kv_heads,
                            .d = (int)(q.cols / q_heads),
                            .past = past};
    run_attention(b, &a, past + q.rows);
}

/* Each tile on its own, so that a block of queries never straddles two. */
static void fast_attend_tiles(struct backend *b, struct tensor y, struct tensor qkv, int heads, int tiles)
{
    int64_t n = y.rows / tiles;
    for (int i = 0; i < tiles; i++) {
        struct tensor rows = tensor_rows(qkv, i * n, n);
        struct attend_task a = {.y = tensor_rows(y, i * n, n),
                                .q = rows,
                                .k = rows,
                                .v = rows,
                                .k_col = y.cols,
                                .v_col = 2 * y.cols,
                                .heads = heads,
                                .group = 1,
                                .d = (int)(y.cols / heads),
                                .tile = n};
        run_attention(b, &a, n);
    }
}

void KERNELS_FILL(struct ops *o)
{
    ops_ref_fill(o);
    o->pack = fast_pack;
    o->linear = fast_linear;
    o->rmsnorm = fast_rmsnorm;
    o->layernorm = fast_layernorm;
    o->gated_norm = fast_gated_norm;
    o->add = fast_add;
    o->conv = fast_conv;
    o->ssm_step = fast_ssm_step;
    o->ssm_scan = fast_ssm_scan;
    o->attend = fast_attend;
    o->attend_tiles = fast_attend_tiles;
}
