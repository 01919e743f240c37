/* scan.cu - Mamba-2 prefill (chunked scan, SSD): the recurrence over many tokens as products of small
 * matrices on tensor cores.
 *
 * For a chunk of L <= 128 tokens of one head, c_i is the sum of dt a up to token i and S the state before
 * the chunk:
 *
 *     y_i = e^(c_i) S C_i + sum_(j <= i) M_ij x_j + D x_i     M_ij = e^(c_i - c_j) dt_j (C_i . B_j)
 *     S'  = e^(c_L) S + sum_j x_j (f_j B_j)^T                 f_j = e^(c_L - c_j) dt_j
 *
 * Layout. Heads are independent, and so are the rows of a state. A block processes one head, or some rows
 * of its state, through all chunks and keeps the state in registers. The memory traffic is the inputs and
 * outputs of the operation: x, B, C, dt, y, and the state once in each direction. B and C are shared by
 * the heads of a group and come from the L2 cache. The form of the paper (first the states of all chunks,
 * then passing them on, then the outputs) has more blocks, but moves 4 P N bytes per head and chunk four
 * times; 128 heads already give as many blocks as multiprocessors. A warp has 16 rows of the outputs, as
 * in flash attention: M never leaves its registers, and tiles above the diagonal are not computed. Rows
 * are assigned such that the two warps of each scheduler have the same number of tiles. Each warp has 16
 * of the 128 columns of the state.
 *
 * Rounding. c is summed in f64 and kept as the sum of two floats: if some tokens reset the state, c
 * reaches thousands, while differences between later tokens remain small. x, B and C are bf16 and enter
 * the tensor cores unchanged; sums are f32. M, S (for the outputs) and f B are f32, and rounding them to
 * bf16 would be visible, because a sum that cancels has the error of its terms. Each of them is a sum of
 * two bf16 instead, with an error of 2^-18 per term, and takes two products. f multiplies B because a warp
 * then splits only its own columns. The state itself stays f32 in registers. It is multiplied by e^(c_L)
 * and added to, but never rounded, so that only the errors of the chunks' own sums accumulate. An f16
 * state is rounded when it leaves the registers, once per call.
 *
 * Work for a head and chunk of 128 by 80 by 128: 2.6 MFLOP for each of C B^T (half of it), M x (half of
 * it, twice), S C (twice), and x B^T (twice). This is about 16 MFLOP on tensor cores for 84 KB read and
 * written.
 *
 * The chunk has 128 tokens here, whatever the shape specifies; the result is mathematically the same. A
 * remainder of a few tokens uses the recurrence (ssm.cu), as do inputs that the tensor cores do not
 * support: f32 and other sizes. Both depend only on the number of remaining tokens, so that dividing a
 * prompt at chunk boundaries changes no bit of an f32 state. An f16 state must not be rounded twice, so a
 * remainder is processed as a chunk then. */
#include "mma.cuh"
#include "ssm.cuh"

enum {
    CHUNK = 128,
    STATE = 128,
    TILES = CHUNK / 16,
    FEW = 16, /* maximum number of tokens that are not worth a chunk */
};

/* Returns the index of (row, column) in a matrix with 128 columns. The 16-byte blocks of a row are
 * swizzled, so that eight rows of one column are in different banks. */
__device__ __forceinline__ int at128(int row, int column)
{
    return row * 128 + ((column / 8 ^ row % 8) * 8) + column % 8;
}

/* Shared memory of a block. P: rows of the state. */
template <int P> struct chunk {
    enum { PITCH = P + 8 }; /* row pitch of x, padded to avoid bank conflicts */
    bf16 B[CHUNK * STATE];  /* index: at128 */
    bf16 most[P * STATE];   /* index: at128; the state before the chunk, as the sum of two bf16 */
    bf16 rest[P * STATE];
    bf16 x[CHUNK * PITCH];
    float sum[CHUNK];  /* c */
    float low[CHUNK];  /* rounding error of `sum` in f32 */
    float step[CHUNK]; /* dt, zero after the last token */
    float left[CHUNK]; /* f */
};

struct scan_place {
    int head, x0, b0, c0; /* columns of v */
    int64_t t0;           /* first token of the chunk */
    int count;            /* number of tokens in the chunk */
};

/* Starts copying x and B to shared memory, with zeros after the last token. */
template <int P> __device__ __forceinline__ void fetch(chunk<P> *w, view<bf16> v, const scan_place &at)
{
    for (int i = threadIdx.x; i < CHUNK * STATE / 8; i += SSM_THREADS) {
        int j = i / (STATE / 8), n = i % (STATE / 8) * 8;
        bool there = j < at.count;
        copy16(w->B + at128(j, n), v.row(at.t0 + (there ? j : 0)) + at.b0 + n, there);
    }
    for (int i = threadIdx.x; i < CHUNK * P / 8; i += SSM_THREADS) {
        int j = i / (P / 8), p = i % (P / 8) * 8;
        bool there = j < at.count;
        copy16(w->x + j * chunk<P>::PITCH + p, v.row(at.t0 + (there ? j : 0)) + at.x0 + p, there);
    }
    copies_end();
}

/* Computes the time steps, their prefix sums, and the factor f of each token, by one warp with four tokens
 * per lane. */
template <int P>
__device__ __forceinline__ void time_steps(chunk<P> *w, view<bf16> dt, const layer &k, const scan_place &at)
{
    int lane = threadIdx.x % WARP;
    float d[4], a = k.a[at.head];
    double sum[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int j = 4 * lane + i;
        d[i] = j < at.count ? time_step(k, number(dt.row(at.t0 + j)[at.head]), at.head) : 0.0f;
        sum[i] = (i ? sum[i - 1] : 0.0) + (double)(d[i] * a);
    }
    double all, before = sum_before(sum[3], &all);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        double c = before + sum[i];
        w->sum[4 * lane + i] = (float)c;
        w->low[4 * lane + i] = (float)(c - (double)(float)c);
        w->step[4 * lane + i] = d[i];
        w->left[4 * lane + i] = expf(fminf((float)(all - c), 0.0f)) * d[i];
    }
}

/* Loads sixteen rows of C as left operands. */
__device__ __forceinline__ void load_c(unsigned C[STATE / 16][4], view<bf16> v, const scan_place &at, int i0)
{
    int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int i = i0 + g + 8 * half;
        const unsigned *from =
            reinterpret_cast<const unsigned *>(v.row(at.t0 + (i < at.count ? i : 0)) + at.c0) + t;
#pragma unroll
        for (int n = 0; n < STATE / 16; n++) {
            C[n][half] = i < at.count ? from[8 * n] : 0;
            C[n][half + 2] = i < at.count ? from[8 * n + 4] : 0;
        }
    }
}

/* Computes y = S C for sixteen tokens. */
template <int P>
__device__ __forceinline__ void carried(float y[P / 8][4], const chunk<P> *w, const unsigned C[STATE / 16][4])
{
    int lane = threadIdx.x % WARP, row = lane / 16 * 8 + lane % 8, column = lane / 8 % 2 * 8;
#pragma unroll
    for (int n = 0; n < STATE / 16; n++)
#pragma unroll
        for (int p = 0; p < P / 16; p++) {
            unsigned b[4];
            load_matrices<false>(b, w->most + at128(16 * p + row, 16 * n + column));
            mma_16816(y[2 * p], C[n], b);
            mma_16816(y[2 * p + 1], C[n], b + 2);
            load_matrices<false>(b, w->rest + at128(16 * p + row, 16 * n + column));
            mma_16816(y[2 * p], C[n], b);
            mma_16816(y[2 * p + 1], C[n], b + 2);
        }
}

/* Computes y += M x for sixteen tokens from i0 and sixteen from j0 <= i0. */
template <int P>
__device__ __forceinline__ void seen(float y[P / 8][4], const chunk<P> *w, const unsigned C[STATE / 16][4],
                                     int i0, int j0)
{
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    float M[2][4] = {};
#pragma unroll
    for (int n = 0; n < STATE / 16; n++) {
        unsigned b[4];
        load_matrices<false>(b, w->B + at128(j0 + lane / 16 * 8 + lane % 8, 16 * n + lane / 8 % 2 * 8));
        mma_16816(M[0], C[n], b);
        mma_16816(M[1], C[n], b + 2);
    }
#pragma unroll
    for (int q = 0; q < 2; q++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int i = i0 + g + e / 2 * 8, j = j0 + 8 * q + 2 * t + e % 2;
            float c = w->sum[i] - w->sum[j] + (w->low[i] - w->low[j]);
            M[q][e] = j <= i ? M[q][e] * (__expf(c) * w->step[j]) : 0.0f;
        }
    unsigned most[4], rest[4];
#pragma unroll
    for (int q = 0; q < 4; q++) /* rows g and g + 8 of the left half, then of the right half */
        split2(&most[q], &rest[q], M[q / 2][q % 2 * 2], M[q / 2][q % 2 * 2 + 1]);
#pragma unroll
    for (int p = 0; p < P / 16; p++) {
        unsigned b[4];
        load_b_rows(b, w->x + j0 * chunk<P>::PITCH + 16 * p, chunk<P>::PITCH);
        mma_16816(y[2 * p], most, b);
        mma_16816(y[2 * p + 1], most, b + 2);
        mma_16816(y[2 * p], rest, b);
        mma_16816(y[2 * p + 1], rest, b + 2);
    }
}

/* Computes the outputs of the sixteen tokens from i0. */
template <int P>
__device__ __forceinline__ void outputs(view<bf16> out, const chunk<P> *w, const unsigned C[STATE / 16][4],
                                        const layer &k, const scan_place &at, int i0)
{
    int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    float y[P / 8][4] = {};
    carried<P>(y, w, C);
    float now[2] = {expf(w->sum[i0 + g]), expf(w->sum[i0 + g + 8])};
#pragma unroll
    for (int p = 0; p < P / 8; p++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            y[p][e] *= now[e / 2];
    for (int j0 = 0; j0 <= i0; j0 += 16)
        seen<P>(y, w, C, i0, j0);
    float D = k.d[at.head];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int i = i0 + g + 8 * half;
        if (i >= at.count)
            continue;
        const bf16 *x = w->x + i * chunk<P>::PITCH + 2 * t;
        bf16 *to = out.row(at.t0 + i) + at.x0 + 2 * t;
#pragma unroll
        for (int p = 0; p < P / 8; p++)
            *reinterpret_cast<unsigned *>(to + 8 * p) = pack2(
                fmaf(D, number(x[8 * p]), y[p][2 * half]), fmaf(D, number(x[8 * p + 1]), y[p][2 * half + 1]));
    }
}

/* Sixteen columns of the state, those of a warp: rows 16 m + g and + 8, columns 8 q + 2t and + 1. */
template <int P> struct columns16 {
    float S[P / 16][2][4];

    template <class F> __device__ __forceinline__ void each_pair(F f)
    {
        int g = threadIdx.x % WARP / 4, n = threadIdx.x / WARP * 16 + threadIdx.x % 4 * 2;
#pragma unroll
        for (int m = 0; m < P / 16; m++)
#pragma unroll
            for (int q = 0; q < 2; q++)
#pragma unroll
                for (int half = 0; half < 2; half++)
                    f(16 * m + g + 8 * half, n + 8 * q, S[m][q] + 2 * half);
    }

    __device__ __forceinline__ void advance(const chunk<P> *w, int count)
    {
        int lane = threadIdx.x % WARP, t = lane % 4, n0 = threadIdx.x / WARP * 16;
        float all = expf(w->sum[CHUNK - 1]);
        each_pair([&](int, int, float *s) { s[0] *= all, s[1] *= all; });
        for (int j0 = 0; j0 < count; j0 += 16) {
            unsigned b[4], most[4], rest[4];
            load_matrices<true>(b, w->B + at128(j0 + lane % 16, n0 + lane / 16 * 8));
#pragma unroll
            for (int i = 0; i < 4; i++) { /* rows 2t, 2t + 1; the same + 8; then those of columns + 8 */
                const float *f = w->left + j0 + 2 * t + i % 2 * 8;
                split2(&most[i], &rest[i], f[0] * __uint_as_float(b[i] << 16),
                       f[1] * __uint_as_float(b[i] & 0xffff0000u));
            }
            const bf16 *x = w->x + (j0 + lane / 16 * 8 + lane % 8) * chunk<P>::PITCH +
                            lane / 8 % 2 * 8; /* transposed: [p][j] */
#pragma unroll
            for (int m = 0; m < P / 16; m++) {
                unsigned a[4];
                load_matrices<true>(a, x + 16 * m);
                mma_16816(S[m][0], a, most);
                mma_16816(S[m][1], a, most + 2);
                mma_16816(S[m][0], a, rest);
                mma_16816(S[m][1], a, rest + 2);
            }
        }
    }
};

template <class N, int P>
__global__ void __launch_bounds__(SSM_THREADS, 1)
    ssm_chunks(view<bf16> y, view<bf16> v, view<bf16> dt, layer k, view<N> state, uint32_t key)
{
    DYNAMIC_SHARED(chunk<P>, w);
    int warp = threadIdx.x / WARP, i0 = 16 * (warp < TILES / 2 ? warp : TILES / 2 - 1 + TILES - warp);
    scan_place at;
    at.head = blockIdx.x;
    at.x0 = at.head * k.head_dim + blockIdx.y * P;
    at.b0 = k.inner + k.group_of(at.head) * STATE;
    at.c0 = at.b0 + k.groups * STATE;
    columns16<P> S;
    S.each_pair([&](int p, int n, float *s) {
        float2 two = load2(state.row(at.x0 + p) + n);
        s[0] = two.x, s[1] = two.y;
    });
    for (at.t0 = 0; at.t0 < y.rows; at.t0 += CHUNK) {
        at.count = (int)min((int64_t)CHUNK, y.rows - at.t0);
        __syncthreads(); /* the previous chunk has been read */
        fetch<P>(w, v, at);
        S.each_pair([&](int p, int n, float *s) {
            unsigned most, rest;
            split2(&most, &rest, s[0], s[1]);
            *reinterpret_cast<unsigned *>(w->most + at128(p, n)) = most;
            *reinterpret_cast<unsigned *>(w->rest + at128(p, n)) = rest;
        });
        if (warp == 0)
            time_steps<P>(w, dt, k, at);
        unsigned C[STATE / 16][4];
        load_c(C, v, at, i0);
        copies_wait<0>();
        __syncthreads();
        if (i0 < at.count)
            outputs<P>(y, w, C, k, at, i0);
        S.advance(w, at.count);
    }
    S.each_pair([&](int p, int n, float *s) {
        store2(state.row(at.x0 + p) + n, s[0], s[1], key, (at.x0 + p) * stochastic_pairs(STATE) + n / 2);
    });
}

template <class N, int P>
static void chunks(struct backend *b, struct tensor y, struct tensor v, struct tensor dt, struct tensor state,
                   uint32_t key, const struct ssm_shape *s, const struct ssm_const *c)
{
    dim3 grid = grid_of(s->heads, s->head_dim / P);
    allow_shared(ssm_chunks<N, P>, sizeof(chunk<P>));
    LAUNCH((ssm_chunks<N, P>), grid, SSM_THREADS, sizeof(chunk<P>), b, view_of<bf16>(y), view_of<bf16>(v),
           view_of<bf16>(dt), layer_of(s, c), view_of<N>(state), key);
}

static void cuda_ssm_scan(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                          struct tensor state, uint32_t key, const struct ssm_shape *s,
                          const struct ssm_const *c)
{
    bool fast = y.dtype == DT_BF16 && s->state == STATE && s->head_dim % 16 == 0 && aligned(v) &&
                aligned(y) && aligned(state);
    bool at_once = state.dtype != DT_F32 && y.rows > FEW;
    int64_t rest = y.rows % CHUNK, rows = !fast ? 0 : at_once || rest > FEW ? y.rows : y.rows - rest;
    if (rows > 0) {
        struct tensor to = tensor_rows(y, 0, rows), from = tensor_rows(v, 0, rows),
                      steps = tensor_rows(dt, 0, rows);
        /* rows of a state per block: as many as still give each multiprocessor a block */
        bool wide = s->heads * s->head_dim / 64 >= cuda_of(b)->processors;
        WITH_STATE(N, state.dtype,
                   (s->head_dim % 80 == 0           ? chunks<N, 80>
                    : s->head_dim % 64 == 0 && wide ? chunks<N, 64>
                    : s->head_dim % 32 == 0         ? chunks<N, 32>
                                                    : chunks<N, 16>)(b, to, from, steps, state, key, s, c));
    }
    ssm_walk_run(b, tensor_rows(y, rows, y.rows - rows), tensor_rows(v, rows, y.rows - rows),
                 tensor_rows(dt, rows, y.rows - rows), &state, &key, 1, s, c);
}

void scan_fill(struct ops *o)
{
    o->ssm_scan = cuda_ssm_scan;
}
