/* delta_chunks.cu - gated delta rule over a prompt in chunks: products of small matrices on tensor cores.
 *
 * The equations are those of ops/ref_delta.c. For a chunk of 64 tokens of one head, G_i is the sum of g up
 * to token i, S the state before the chunk, and k and q are normalized:
 *
 *     R_i = beta_i (v_i - e^(G_i) ST k_i) - sum_(j < i) A_ij R_j      A_ij = beta_i (k_i . k_j) e^(G_i - G_j)
 *     y_i = e^(G_i) ST q_i + sum_(j <= i) W_ij R_j                    W_ij = (q_i . k_j) e^(G_i - G_j)
 *     S'  = e^(G_L) S + sum_j e^(G_L - G_j) k_j R_jT
 *
 * Layout. Columns of a state are independent. A block processes 64 or 32 columns of a head through all
 * chunks and keeps their state in registers. The matrices A and W are common to all columns, and each
 * block of a head computes them again; with 32 columns these are a third of its products. Each of four
 * warps has 16 tokens and 32 rows of the state. (I + A) R = ... is solved by block substitution with
 * blocks of 16 tokens. First each warp inverts its own diagonal block in f32, in parallel. Then the warps
 * multiply in sequence by their inverses, and the warps below each subtract the contribution of its result.
 * An inverse of the whole matrix would be a product of large terms that cancel (ref_delta.c), while the
 * entries of the inverted blocks are at most 1.
 *
 * Rounding. q and k enter the tensor cores unchanged in bf16, and the sums are divided by their lengths
 * afterwards. S, R, A, W and the inverses are sums of two bf16, with an error of 2^-18 per term. The state
 * itself stays f32 in registers. Sums of g are computed in f64 and kept as two floats: if some tokens
 * reset the state, the sums reach thousands, while differences between later tokens remain small.
 *
 * Two buffers hold keys and queries. The next keys replace the queries while R is solved, and the next
 * queries replace the keys while the next A is computed.
 *
 * Work for 64 tokens and 32 columns: the busiest warp has about 420 tensor-core products, which take 2,700
 * cycles of an H100, plus four sequential steps of about 300 cycles. The recurrence of delta.cu takes
 * 29,000 cycles for the same. These are estimates, not measurements.
 *
 * The last few tokens use the recurrence, as do inputs that the tensor cores do not support: f32 and other
 * sizes. Both depend only on the number of remaining tokens, so that dividing a prompt at chunk boundaries
 * changes no bit. */
#include "delta_chunk.cuh"

namespace
{

/* Computes y += ST x for the warp's sixteen rows, which are also kept as left operands. */
template <int N>
__device__ __forceinline__ void read_state(float y[N / 8][4], unsigned x[DELTA / 16][4], const bf16 *rows,
                                           chunk<N> *w)
{
#pragma unroll
    for (int d = 0; d < DELTA / 16; d++)
        load_a(x[d], rows + 16 * d, PITCH);
#pragma unroll
    for (int d = 0; d < DELTA / 16; d++)
#pragma unroll
        for (int i = 0; i < 2 * (N / 16); i++) {
            unsigned b[4];
            int c = i / 2;
            load_b_rows(b, w->state(i % 2) + 16 * d * chunk<N>::WIDE + 16 * c, chunk<N>::WIDE);
            mma_16816(y[2 * c], x[d], b);
            mma_16816(y[2 * c + 1], x[d], b + 2);
        }
}

/* Computes the products of the warp's sixteen rows with the sixteen keys of a block, multiplied by e^(G_i
 * - G_j) and the inverse lengths of the keys. row(a, d) returns these rows as left operands. Products with
 * later tokens are zero. */
template <int N, class F>
__device__ __forceinline__ void pairs(float s[2][4], F row, const bf16 *keys, const chunk<N> *w, int i0,
                                      int j0)
{
    int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < 8; i++)
        s[i / 4][i % 4] = 0;
#pragma unroll
    for (int d = 0; d < DELTA / 16; d++) {
        unsigned a[4], b[4];
        row(a, d);
        load_b_columns(b, keys + j0 * PITCH + 16 * d, PITCH);
        mma_16816(s[0], a, b);
        mma_16816(s[1], a, b + 2);
    }
#pragma unroll
    for (int e = 0; e < 8; e++) {
        int i = i0 + g + e % 4 / 2 * 8, j = j0 + 8 * (e / 4) + 2 * t + e % 2;
        float G = w->sum[i] - w->sum[j] + (w->low[i] - w->low[j]);
        s[e / 4][e % 4] = j <= i ? s[e / 4][e % 4] * (__expf(G) * w->key[j]) : 0.0f;
    }
}

/* Inverts I + A of a diagonal block, where A is strictly lower triangular: each lane computes one column
 * by substitution in f32. */
__device__ __forceinline__ void invert(float *corner, const float A[2][4])
{
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4, c = lane % 16;
    float x[16];
#pragma unroll
    for (int i = 0; i < 4; i++)
        *reinterpret_cast<float2 *>(corner + (g + i % 2 * 8) * CORNER + i / 2 * 8 + 2 * t) =
            float2{A[i / 2][i % 2 * 2], A[i / 2][i % 2 * 2 + 1]};
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16; i++) {
        x[i] = i == c ? 1.0f : 0.0f;
#pragma unroll
        for (int j = 0; j < i; j++)
            x[i] = fmaf(-corner[i * CORNER + j], x[j], x[i]);
    }
    __syncwarp(); /* all lanes have read A */
    if (lane < 16)
#pragma unroll
        for (int i = 0; i < 16; i++)
            corner[i * CORNER + c] = x[i];
}

__device__ __forceinline__ operand load_inverse(const float *corner)
{
    int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    float s[2][4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float2 v =
            *reinterpret_cast<const float2 *>(corner + (g + i % 2 * 8) * CORNER + i / 2 * 8 + 2 * t);
        s[i / 2][i % 2 * 2] = v.x, s[i / 2][i % 2 * 2 + 1] = v.y;
    }
    operand inverse;
    inverse.take(s);
    return inverse;
}

/* Computes y += M R for the sixteen rows of R from j0 on. */
template <int N>
__device__ __forceinline__ void add_solved(float y[N / 8][4], const operand &M, chunk<N> *w, int j0)
{
#pragma unroll
    for (int c = 0; c < N / 16; c++) {
        unsigned b[4];
        load_b_rows(b, w->solved(0) + j0 * chunk<N>::WIDE + 16 * c, chunk<N>::WIDE);
        mma_16816(y[2 * c], M.most, b);
        mma_16816(y[2 * c + 1], M.most, b + 2);
        mma_16816(y[2 * c], M.rest, b);
        mma_16816(y[2 * c + 1], M.rest, b + 2);
        load_b_rows(b, w->solved(1) + j0 * chunk<N>::WIDE + 16 * c, chunk<N>::WIDE);
        mma_16816(y[2 * c], M.most, b);
        mma_16816(y[2 * c + 1], M.most, b + 2);
    }
}

/* Computes the warp's R from its right-hand side and stores it for all warps. */
template <int N> __device__ __forceinline__ void solve(chunk<N> *w, const float right[N / 8][4], int i0)
{
    int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    const operand inverse = load_inverse(w->corner[i0 / 16]);
    float part[2] = {w->left[i0 + g] * w->key[i0 + g], w->left[i0 + g + 8] * w->key[i0 + g + 8]};
#pragma unroll
    for (int n = 0; n < N / 8; n++) {
        unsigned most[2], rest[2];
        float R[4] = {};
#pragma unroll
        for (int h = 0; h < 2; h++) {
            split2(&most[h], &rest[h], right[n][2 * h], right[n][2 * h + 1]);
            most[h] = transposed(most[h]);
            rest[h] = transposed(rest[h]);
        }
        mma_16816(R, inverse.most, most);
        mma_16816(R, inverse.rest, most);
        mma_16816(R, inverse.most, rest);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int at = (i0 + g + 8 * h) * chunk<N>::WIDE + 8 * n + 2 * t;
            auto word = [at](bf16 *of) { return reinterpret_cast<unsigned *>(of + at); };
            split2(word(w->solved(0)), word(w->solved(1)), R[2 * h], R[2 * h + 1]);
            split2(word(w->carried(0)), word(w->carried(1)), part[h] * R[2 * h], part[h] * R[2 * h + 1]);
        }
    }
}

/* The rows of the state of a warp: 16 m + g and 16 m + g + 8, columns 8 n + 2t and 8 n + 2t + 1. */
template <int N> struct state_rows {
    float S[STATE_ROWS / 16][N / 8][4];

    template <class F> __device__ __forceinline__ void each_pair(F f)
    {
        int r = threadIdx.x / WARP * STATE_ROWS + threadIdx.x % WARP / 4, c = threadIdx.x % 4 * 2;
#pragma unroll
        for (int m = 0; m < STATE_ROWS / 16; m++)
#pragma unroll
            for (int n = 0; n < N / 8; n++)
#pragma unroll
                for (int h = 0; h < 2; h++)
                    f(r + 16 * m + 8 * h, c + 8 * n, S[m][n] + 2 * h);
    }

    __device__ __forceinline__ void share(chunk<N> *w)
    {
        each_pair([&](int r, int c, float *s) {
            int at = r * chunk<N>::WIDE + c;
            split2(reinterpret_cast<unsigned *>(w->state(0) + at),
                   reinterpret_cast<unsigned *>(w->state(1) + at), s[0], s[1]);
        });
    }

    /* Computes S = e^(G_L) S + sum of k RT. */
    __device__ __forceinline__ void advance(chunk<N> *w, const bf16 *keys, int count)
    {
        int lane = threadIdx.x % WARP;
        float all = expf(w->sum[CHUNK - 1]);
        each_pair([&](int, int, float *s) { s[0] *= all, s[1] *= all; });
        for (int j0 = 0; j0 < count; j0 += 16) {
            unsigned a[STATE_ROWS / 16][4];
#pragma unroll
            for (int m = 0; m < STATE_ROWS / 16; m++) /* transposed: [row of the state][token] */
                load_matrices<true>(a[m], keys + (j0 + lane / 16 * 8 + lane % 8) * PITCH +
                                              threadIdx.x / WARP * STATE_ROWS + 16 * m + lane / 8 % 2 * 8);
#pragma unroll
            for (int i = 0; i < 2 * (N / 16); i++) {
                unsigned b[4];
                int c = i / 2;
                load_b_rows(b, w->carried(i % 2) + j0 * chunk<N>::WIDE + 16 * c, chunk<N>::WIDE);
#pragma unroll
                for (int m = 0; m < STATE_ROWS / 16; m++) {
                    mma_16816(S[m][2 * c], a[m], b);
                    mma_16816(S[m][2 * c + 1], a[m], b + 2);
                }
            }
        }
    }
};

/* Data of a warp for its sixteen tokens i0 to i0 + 15. */
template <int N> struct sixteen {
    int i0;
    operand A[BLOCKS - 1], W[BLOCKS]; /* A: negated, for the preceding blocks */
    float right[N / 8][4] = {}, y[N / 8][4] = {};

    /* Loads pairs of adjacent columns of v, zero after the last token. */
    __device__ __forceinline__ void load_values(unsigned v[N / 8][2], const delta<bf16> &d,
                                                const chunk_place &at)
    {
        int r = i0 + threadIdx.x % WARP / 4;
        int64_t c = d.at.v(at.head) + at.column + threadIdx.x % 4 * 2;
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int n = 0; n < N / 8; n++)
                v[n][h] = r + 8 * h < at.count
                              ? *reinterpret_cast<const unsigned *>(d.v.row(at.t0 + r + 8 * h) + c + 8 * n)
                              : 0;
    }

    /* Scales tiles by the factors of a lane's two tokens: low for row g, high for row g + 8. */
    static __device__ __forceinline__ void scale(float (*s)[4], int tiles, float low, float high)
    {
#pragma unroll
        for (int i = 0; i < tiles; i++)
            s[i][0] *= low, s[i][1] *= low, s[i][2] *= high, s[i][3] *= high;
    }

    /* Computes A, and beta (v - e^G ST k) from ST k. */
    __device__ __forceinline__ void take_keys(chunk<N> *w, const unsigned x[DELTA / 16][4], const bf16 *keys,
                                              const unsigned v[N / 8][2])
    {
        int i = i0 + threadIdx.x % WARP / 4;
        float beta[2] = {w->beta[i], w->beta[i + 8]}, by[2] = {w->key[i], w->key[i + 8]}, s[2][4];
        auto row = [&](unsigned a[4], int d) {
            a[0] = x[d][0], a[1] = x[d][1], a[2] = x[d][2], a[3] = x[d][3];
        };
        scale(right, N / 8, -expf(w->sum[i]) * by[0], -expf(w->sum[i + 8]) * by[1]);
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                right[n][e] += __uint_as_float(e % 2 ? v[n][e / 2] & 0xffff0000u : v[n][e / 2] << 16);
        scale(right, N / 8, beta[0], beta[1]);
        pairs(s, row, keys, w, i0, i0);
        scale(s, 2, beta[0] * by[0], beta[1] * by[1]);
        invert(w->corner[i0 / 16], s);
#pragma unroll
        for (int j = 0; j < BLOCKS - 1; j++)
            if (16 * j < i0) {
                pairs(s, row, keys, w, i0, 16 * j);
                scale(s, 2, -beta[0] * by[0], -beta[1] * by[1]);
                A[j].take(s);
            }
    }

    /* Computes W and e^G ST q. */
    __device__ __forceinline__ void take_queries(chunk<N> *w, const bf16 *queries, const bf16 *keys)
    {
        int i = i0 + threadIdx.x % WARP / 4;
        const bf16 *mine = queries + i0 * PITCH;
        lengths(w->query + i0, mine, DELTA_SCALE);
        __syncwarp();
        float by[2] = {w->query[i], w->query[i + 8]}, s[2][4];
        unsigned x[DELTA / 16][4];
        read_state(y, x, mine, w);
        scale(y, N / 8, expf(w->sum[i]) * by[0], expf(w->sum[i + 8]) * by[1]);
        auto row = [&](unsigned a[4], int d) {
            load_a(a, mine + 16 * d, PITCH);
        }; /* x would not fit into the registers in addition to W */
#pragma unroll
        for (int j = 0; j < BLOCKS; j++)
            if (16 * j <= i0) {
                pairs(s, row, keys, w, i0, 16 * j);
                scale(s, 2, by[0], by[1]);
                W[j].take(s);
            }
    }

    /* Solves for R block by block, and computes the outputs. */
    __device__ __forceinline__ void substitute(chunk<N> *w, int count)
    {
#pragma unroll
        for (int j = 0; j < BLOCKS; j++) {
            if (16 * j >= count)
                break;
            if (i0 == 16 * j)
                solve<N>(w, right, i0);
            __syncthreads(); /* R of this block is complete */
            if (j < BLOCKS - 1 && 16 * j < i0)
                add_solved<N>(right, A[j], w, 16 * j);
            if (16 * j <= i0)
                add_solved<N>(y, W[j], w, 16 * j);
        }
    }

    __device__ __forceinline__ void store_answers(const delta<bf16> &d, const chunk_place &at) const
    {
        int r = i0 + threadIdx.x % WARP / 4;
        int64_t c = (int64_t)at.head * DELTA + at.column + threadIdx.x % 4 * 2;
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int n = 0; n < N / 8; n++)
                if (r + 8 * h < at.count)
                    *reinterpret_cast<unsigned *>(d.y.row(at.t0 + r + 8 * h) + c + 8 * n) =
                        pack2(y[n][2 * h], y[n][2 * h + 1]);
    }
};

template <int N>
__global__ void __launch_bounds__(CHUNK_THREADS) delta_chunk(delta<bf16> d, view<float> state)
{
    DYNAMIC_SHARED(chunk<N>, w);
    const int slices = DELTA / N;
    chunk_place at = {(int)blockIdx.x / slices, (int)blockIdx.x % slices * N, 0, 0};
    const int64_t k = d.at.k(at.head), q = d.at.q(at.head), rows = (int64_t)at.head * DELTA;
    state_rows<N> S;
    S.each_pair([&](int r, int c, float *s) {
        float2 two = load2(state.row(rows + r) + at.column + c);
        s[0] = two.x, s[1] = two.y;
    });
    fetch(w->x[0], d.v, k, 0, d.tokens);
    for (int turn = 0; at.t0 < d.tokens; at.t0 += CHUNK, turn = 1 - turn) {
        bf16 *keys = w->x[turn], *queries = w->x[1 - turn];
        sixteen<N> own;
        unsigned v[N / 8][2], x[DELTA / 16][4];
        at.count = (int)min((int64_t)CHUNK, d.tokens - at.t0);
        own.i0 = threadIdx.x / WARP * 16;
        __syncthreads(); /* the data of the previous chunk has been used */
        fetch(queries, d.v, q, at.t0, d.tokens);
        S.share(w);
        if (threadIdx.x < WARP)
            gates_of(w, d, at);
        copies_wait<1>();
        __syncthreads(); /* keys, state and gates are complete */
        lengths(w->key + own.i0, keys + own.i0 * PITCH, 1);
        read_state(own.right, x, keys + own.i0 * PITCH, w);
        own.load_values(v, d, at);
        copies_wait<0>();
        __syncthreads(); /* queries and lengths are complete */
        own.take_keys(w, x, keys, v);
        own.take_queries(w, queries, keys);
        __syncthreads(); /* state and queries have been read */
        if (at.t0 + CHUNK < d.tokens)
            fetch(queries, d.v, k, at.t0 + CHUNK, d.tokens);
        own.substitute(w, at.count);
        own.store_answers(d, at);
        S.advance(w, keys, at.count);
    }
    S.each_pair([&](int r, int c, float *s) {
        *reinterpret_cast<float2 *>(state.row(rows + r) + at.column + c) = float2{s[0], s[1]};
    });
}

template <int N> void launch_chunks(struct backend *b, const delta<bf16> &d, struct tensor state)
{
    allow_shared(delta_chunk<N>, sizeof(chunk<N>));
    LAUNCH((delta_chunk<N>), grid_of(d.at.value_heads * (DELTA / N)), CHUNK_THREADS, sizeof(chunk<N>), b, d,
           view_of<float>(state));
}

} // namespace

int64_t delta_chunks(struct backend *b, struct tensor y, struct tensor v, struct tensor gates,
                     struct tensor state, const struct delta_shape *s)
{
    int64_t rest = y.rows % CHUNK, rows = rest > FEW ? y.rows : y.rows - rest;
    if (y.dtype != DT_BF16 || s->key != DELTA || s->value != DELTA || !aligned(v) || !aligned(y) ||
        !aligned(state) || rows == 0 || rows > 1 << 30)
        return 0;
    delta<bf16> d = {view_of<bf16>(y), view_of<const bf16>(v), view_of<const float>(gates), columns_of(s),
                     static_cast<int>(rows)};
    /* columns per block: 64, unless that leaves a quarter of the GPU idle */
    if (4 * s->value_heads * (DELTA / 64) >= 3 * cuda_of(b)->processors)
        launch_chunks<64>(b, d, state);
    else
        launch_chunks<32>(b, d, state);
    return rows;
}
