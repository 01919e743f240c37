/* ops.c - dtypes, tensor views, CPU memory, and the selection of a CPU backend. */
#include "ops/memory.h"
#include "ops/ops_impl.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __aarch64__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

/* ---- dtypes -------------------------------------------------------------------------------------------- */

size_t dtype_size(enum dtype t)
{
    static const size_t size[DT_COUNT] = {4, 2, 2, 1, 1, 1, 4, 8};
    return size[t];
}

const char *dtype_name(enum dtype t)
{
    static const char *const name[DT_COUNT] = {"f32", "bf16", "f16", "i8", "u8", "f8e4m3", "i32", "i64"};
    return name[t];
}

uint16_t bf16_from_f32(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    if ((u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(u >> 16 | 0x40); /* quiet NaN: rounding could turn it into an infinity */
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

float bf16_to_f32(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

/* Converts f16 to f32 by a multiplication that adjusts the exponent; correct for subnormal numbers, too. */
static inline float wide_half(uint16_t h)
{
    union {
        uint32_t u;
        float f;
    } v = {(uint32_t)(h & 0x7fff) << 13};
    v.f *= 0x1p112f;
    v.u |= ((h & 0x7c00) == 0x7c00 ? 0x7f800000u : 0) | (uint32_t)(h & 0x8000) << 16;
    return v.f;
}

float f16_to_f32(uint16_t h)
{
    return wide_half(h);
}

float f8e4m3_to_f32(uint8_t v)
{
    int exponent = v >> 3 & 15, mantissa = v & 7;
    float sign = v & 0x80 ? -1.0f : 1.0f;
    if ((v & 0x7f) == 0x7f)
        return NAN; /* e4m3 has no infinity */
    return sign * (exponent ? ldexpf((float)(mantissa + 8), exponent - 10) : ldexpf((float)mantissa, -9));
}

size_t tensor_bytes(struct tensor t)
{
    return (size_t)t.rows * (size_t)t.cols * dtype_size(t.dtype);
}

/* ---- views --------------------------------------------------------------------------------------------- */

struct tensor tensor_rows(struct tensor t, int64_t r, int64_t n)
{
    if (r < 0 || n < 0 || r + n > t.rows)
        bug("rows %lld+%lld of %lld", (long long)r, (long long)n, (long long)t.rows);
    t.data = (char *)t.data + (size_t)(r * t.stride) * dtype_size(t.dtype);
    t.rows = n;
    return t;
}

struct tensor tensor_cols(struct tensor t, int64_t c, int64_t n)
{
    if (c < 0 || n < 0 || c + n > t.cols)
        bug("columns %lld+%lld of %lld", (long long)c, (long long)n, (long long)t.cols);
    t.data = (char *)t.data + (size_t)c * dtype_size(t.dtype);
    t.cols = n;
    return t;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

/* Scratch memory: ORDER_SCRATCH, OUTER_SCRATCH, SHARED_SCRATCH, then one block per thread. */
struct cpu {
    struct ops ops;
    struct memory memory;
    struct scratch {
        void *data;
        size_t size;
        char apart[48]; /* padding: threads never share a cache line */
    } scratch[];
};

static struct cpu *cpu_of(struct backend *b)
{
    return b->priv;
}

static struct tensor cpu_try_alloc(struct backend *b, enum dtype t, int64_t rows, int64_t cols)
{
    size_t bytes = (size_t)rows * (size_t)cols * dtype_size(t);
    return (struct tensor){memory_alloc(&cpu_of(b)->memory, bytes), t, rows, cols, cols};
}

static struct tensor cpu_alloc(struct backend *b, enum dtype t, int64_t rows, int64_t cols)
{
    struct tensor x = cpu_try_alloc(b, t, rows, cols);
    if (!x.data)
        die(ERR_ENV, "out of memory: %lld x %lld elements requested", (long long)rows, (long long)cols);
    return x;
}

static void cpu_free(struct backend *b, struct tensor *t)
{
    memory_free(&cpu_of(b)->memory, t->data);
    *t = (struct tensor){0};
}

void *cpu_scratch(struct backend *b, int thread, size_t bytes)
{
    struct scratch *p = &cpu_of(b)->scratch[thread + SCRATCHES];
    if (p->size < bytes) {
        free(p->data);
        p->size = bytes + bytes / 4;
        if (posix_memalign(&p->data, 64, p->size))
            die(ERR_ENV, "out of memory: %zu bytes requested", p->size);
        memory_huge_pages(p->data, p->size);
    }
    return p->data;
}

/* Converts n values, starting at `first`, to f32. */
static void widen(float *to, const void *from, enum dtype t, int64_t first, int64_t n)
{
    const uint16_t *halves = (const uint16_t *)from + first;
    if (t == DT_F32)
        memcpy(to, (const float *)from + first, (size_t)n * sizeof *to);
    else if (t == DT_BF16)
        for (int64_t i = 0; i < n; i++)
            to[i] = bf16_to_f32(halves[i]);
    else if (t == DT_F16)
        for (int64_t i = 0; i < n; i++)
            to[i] = wide_half(halves[i]);
    else if (t == DT_F8E4M3)
        for (int64_t i = 0; i < n; i++)
            to[i] = f8e4m3_to_f32(((const uint8_t *)from)[first + i]);
    else
        bug("no float in a tensor of %s", dtype_name(t));
}

static void narrow(uint16_t *to, const void *from, enum dtype t, int64_t n)
{
    enum { SOME = 256 };
    float some[SOME];
    for (int64_t at = 0; at < n; at += SOME) {
        int64_t m = n - at < SOME ? n - at : SOME;
        widen(some, from, t, at, m);
        for (int64_t i = 0; i < m; i++)
            to[at + i] = bf16_from_f32(some[i]);
    }
}

void tensor_check_copy(struct tensor dst, struct tensor src)
{
    if (dst.rows != src.rows || dst.cols != src.cols)
        bug("copy of %lldx%lld to %lldx%lld", (long long)src.rows, (long long)src.cols, (long long)dst.rows,
            (long long)dst.cols);
}

void tensor_convert(struct tensor dst, struct tensor src)
{
    tensor_check_copy(dst, src);
    size_t ds = dtype_size(dst.dtype), ss = dtype_size(src.dtype);
    for (int64_t r = 0; r < dst.rows; r++) {
        char *to = (char *)dst.data + (size_t)(r * dst.stride) * ds;
        const char *from = (const char *)src.data + (size_t)(r * src.stride) * ss;
        if (dst.dtype == src.dtype)
            memmove(to, from, (size_t)dst.cols * ds);
        else if (dst.dtype == DT_F32)
            widen((float *)(void *)to, from, src.dtype, 0, dst.cols);
        else if (dst.dtype == DT_BF16)
            narrow((uint16_t *)(void *)to, from, src.dtype, dst.cols);
        else
            bug("copy of %s to %s", dtype_name(src.dtype), dtype_name(dst.dtype));
    }
}

static void cpu_copy(struct backend *b, struct tensor dst, struct tensor src)
{
    tensor_convert(dst, src);
}

static void cpu_scatter(struct backend *b, const struct tensor *dst, struct tensor src)
{
    for (int64_t t = 0; t < src.rows; t++)
        b->ops->copy(b, dst[t], tensor_rows(src, t, 1));
}

static void cpu_gather(struct backend *b, struct tensor dst, const struct tensor *src)
{
    for (int64_t t = 0; t < dst.rows; t++)
        b->ops->copy(b, tensor_rows(dst, t, 1), src[t]);
}

static struct weight *cpu_pack(struct backend *b, struct tensor host, enum dtype dtype)
{
    struct weight *w = xcalloc(1, sizeof *w);
    w->rows = host.rows;
    w->cols = host.cols;
    w->plain = cpu_alloc(b, dtype, host.rows, host.cols);
    cpu_copy(b, w->plain, host);
    return w;
}

static struct weight *cpu_borrow(struct backend *b, struct tensor host, bool once)
{
    if (host.stride != host.cols || (host.dtype != DT_BF16 && host.dtype != DT_F32))
        bug("a borrowed weight of %s with %lld of %lld columns", dtype_name(host.dtype), (long long)host.cols,
            (long long)host.stride);
    struct weight *w = xcalloc(1, sizeof *w);
    *w = (struct weight){.rows = host.rows, .cols = host.cols, .plain = host, .borrowed = true, .once = once};
    w->words = host.dtype == DT_BF16 ? (host.cols + 1) / 2 : host.cols;
    return w;
}

struct weight *cpu_quantized(void *bytes, bool owned, enum quant_format format, int64_t rows, int64_t cols,
                             size_t groups, size_t scales)
{
    struct weight *w = xcalloc(1, sizeof *w);
    *w = (struct weight){.rows = rows, .cols = cols, .format = format, .codes = bytes};
    w->groups = (const uint16_t *)(const void *)((const char *)bytes + groups);
    w->scales = (const float *)(const void *)((const char *)bytes + scales);
    w->owned = owned ? bytes : NULL;
    return w;
}

void cpu_put_order(void *bytes, size_t at, enum quant_format format, const struct quant_source *s)
{
    int32_t *order = (int32_t *)(void *)((char *)bytes + at);
    for (int64_t k = 0; format == QUANT_GPTQ && k < s->cols; k++)
        order[k] = s->gptq->order ? s->gptq->order[k] : (int32_t)k;
}

void cpu_weight_order(struct weight *w, size_t at)
{
    w->order = NULL;
    if (w->format != QUANT_GPTQ || !w->codes)
        return;
    const int32_t *order = (const int32_t *)(const void *)((const char *)w->codes + at);
    bool moved = false;
    for (int64_t k = 0; k < w->cols; k++)
        moved |= order[k] != k;
    if (moved)
        w->order = order;
}

void cpu_round_activations(struct backend *b, struct weight *w)
{
    w->coarse = w->format != QUANT_NONE && w->format != QUANT_F8 && w->format != QUANT_F8_BLOCKS;
}

/* Releases the pages of a `once` weight: only whole pages, because the first and the last may contain part
 * of another tensor. PAGEOUT reclaims them at once, before pages that will be read again sooner. */
void cpu_weight_read(const struct weight *w)
{
    if (!w->once)
        return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)w->plain.data;
    size_t bytes = (size_t)w->rows * (size_t)w->cols * dtype_size(w->plain.dtype);
    uintptr_t begin = (at + page - 1) / page * page, end = (at + bytes) / page * page;
    if (end <= begin)
        return;
    madvise((void *)begin, end - begin, MADV_PAGEOUT);
    madvise((void *)begin, end - begin, MADV_DONTNEED);
}

static void cpu_weight_free(struct backend *b, struct weight *w)
{
    if (!w)
        return;
    if (!w->borrowed)
        cpu_free(b, &w->plain);
    free(w->owned);
    free(w);
}

/* ---- choosing a backend ---------------------------------------------------------------------- */

#ifdef __aarch64__

static bool has_neondot(void)
{
    return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
}

static bool has_neonbf16(void)
{
    const unsigned long both = HWCAP2_BF16 | HWCAP2_I8MM;
    return has_neondot() && (getauxval(AT_HWCAP2) & both) == both;
}

#elif defined(__x86_64__)

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

static bool has_avx512bf16(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni");
}

#endif

static const struct isa { /* slowest first; each requires everything the previous ones require */
    const char *name;
    bool (*runs)(void); /* NULL: always available */
    void (*fill)(struct ops *o);
} isas[] = {
    {"ref", NULL, ops_ref_fill},
#ifdef __aarch64__
    {"neon", NULL, ops_neon_fill},
    {"neondot", has_neondot, ops_neondot_fill},
    {"neonbf16", has_neonbf16, ops_neonbf16_fill},
#elif defined(__x86_64__)
    {"avx2", has_avx2, ops_avx2_fill},
    {"avx512", has_avx512, ops_avx512_fill},
    {"avx512bf16", has_avx512bf16, ops_avx512bf16_fill},
#endif
};

int backend_cpu_list(const char *names[], int max)
{
    int n = 0;
    for (size_t i = 0; i < sizeof isas / sizeof *isas && n < max && (!isas[i].runs || isas[i].runs()); i++)
        names[n++] = isas[i].name;
    return n;
}

static void cpu_close(struct backend *b)
{
    autofree struct cpu *cpu = cpu_of(b);
    for (int i = 0; i < pool_threads(b->pool) + SCRATCHES; i++)
        free(cpu->scratch[i].data);
    memory_close(&cpu->memory);
}

struct backend *backend_cpu(const char *isa, struct pool *pool, struct err *e)
{
    const char *names[8] = {0};
    int n = backend_cpu_list(names, 8), chosen = n - 1;
    if (isa)
        for (chosen = n - 1; chosen >= 0 && strcmp(names[chosen], isa) != 0; chosen--)
            ;
    if (chosen < 0)
        return err_set(e, ERR_USAGE, "this CPU cannot run the kernels '%s'; best here is '%s'", isa,
                       names[n - 1]),
               NULL;
    unsigned long blocks = (unsigned long)pool_threads(pool) + SCRATCHES;
    struct cpu *cpu = xcalloc(1, sizeof *cpu + blocks * sizeof *cpu->scratch);
    cpu->ops = (struct ops){.name = names[chosen],
                            .close = cpu_close,
                            .alloc = cpu_alloc,
                            .free = cpu_free,
                            .try_alloc = cpu_try_alloc,
                            .upload = cpu_copy,
                            .download = cpu_copy,
                            .copy = cpu_copy,
                            .scatter = cpu_scatter,
                            .gather = cpu_gather,
                            .pack = cpu_pack,
                            .borrow = cpu_borrow,
                            .weight_free = cpu_weight_free};
    memory_init(&cpu->memory, MEMORY_DEFAULT);
    ops_ref_fill(&cpu->ops);
    isas[chosen].fill(&cpu->ops);
    struct backend *b = xcalloc(1, sizeof *b);
    *b = (struct backend){&cpu->ops, pool, cpu};
    return b;
}

void backend_free(struct backend *b)
{
    if (!b)
        return;
    b->ops->close(b);
    free(b);
}
