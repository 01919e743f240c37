/* roofline.c - predicts GPU times from bytes, arithmetic and fitted efficiencies (roofline.h).
 *
 * The rates of the GPUs are those of copies and large products measured by others, not the data sheets';
 * the copy rate of the H200 was measured here. The values above the line in `reach` were fitted to rows
 * measured on one H200 on 2026-11-27 (tests/results/2026-11-27-h200.md); the rest is estimated from the
 * kernels' machine code (tests/results/kernels-*.tsv). With these values seven of its rows are met within
 * 10 % (t_roofline.c): all in bf16, and one session in fp8. The other rows in fp8 measured kernels that
 * were replaced: products of many rows with quantized weights were not measured in their present form. */
#include "capacity/roofline.h"

#include "model/language.h"
#include "model/preprocess.h"
#include "ops/work.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct roofline_card cards[] = {
    {"h100", "H100 SXM, 80 GB", 79.6 * 0x1p30, 3.0e12, 798e12, 132, 1.70e9, true, 2},
    {"h200", "H200, 141 GB", 140.4 * 0x1p30, 4.23e12, 780e12, 132, 1.70e9, true, 2, "2026-11-27"},
    {"a100", "A100 SXM, 80 GB", 79.3 * 0x1p30, 1.75e12, 270e12, 108, 1.35e9, false, 0},
    {"rtx4090", "RTX 4090, 24 GB", 23.6 * 0x1p30, 0.92e12, 155e12, 128, 2.50e9, false, 2},
    {"rtx5090", "RTX 5090, 32 GB", 31.4 * 0x1p30, 1.6e12, 210e12, 170, 2.40e9, true, 2},
    {"rtx4070", "RTX 4070, 12 GB", 11.7 * 0x1p30, 0.45e12, 55e12, 46, 2.50e9, false, 2},
    {"rtx3060", "RTX 3060, 12 GB", 11.8 * 0x1p30, 0.33e12, 25e12, 28, 1.75e9, false, 0},
};

/* Expected efficiencies of the kernels: fractions of the GPU's rates, and times in ms. */
static const struct {
    /* gemv and early_fill match both rows of one session, in bf16 (8.03 ms) and fp8 (4.85 ms). product: the
     * estimate 0.82, reduced in the ratio 128 : 135 ms. tower: 66 ms, including resizing. */
    double gemv;           /* up to 16 rows: fraction of the copy rate */
    double product, tower; /* many rows: fraction of the products' rate */
    double early_fill;     /* ms to begin and end a product that overlaps with the previous kernel */
    /* ---- not measured separately ---- */
    double gemv4;       /* up to 16 rows with 4-bit codes: fraction of the copy rate */
    double gemm_rows;   /* 17 rows and more in bf16, cuBLASLt: fraction of the copy rate */
    double dequantized; /* dequantizing, and reading the result: fraction of the copy rate */
    double state, keys; /* fractions of the copy rate */
    /* Fraction of the GPU's fp8 rate: 0.72 for cuBLASLt, which sums in f32 without fast accumulation, reduced
     * because quantizing x and the pass over the sums take another seventh of the time. */
    double product_fp8;
    /* ms to begin and end a product: own kernel (early_fill and the time it saves), library */
    double fill, library;
    /* minimum time of a layer's kernel; early: its states are requested while the previous product still
     * runs */
    double mixer, early_mixer, attention;
    /* host: 0.006 for comparing some 240 launches, measured on a core of Zen 4; the rest is waking up, the
     * grammar's mask and the launch of the graph */
    double norm, gap, host, sampling;
    double early_gap;    /* for kernels that overlap with the previous one */
    double step, repeat; /* instructions per element of a state: its step, a repeated token */
    double chunk;        /* duration of a chunk of a scan, per layer */
} reach = {.gemv = 0.875,
           .gemv4 = 0.80,
           .gemm_rows = 0.75,
           .dequantized = 0.85,
           .state = 0.82,
           .keys = 0.85,
           .product = 0.77,
           .tower = 0.40,
           .product_fp8 = 0.63,
           .fill = 0.0087,
           .library = 0.004,
           .mixer = 0.011,
           .early_mixer = 0.0100,
           .attention = 0.006,
           .norm = 0.002,
           .gap = 0.0009,
           .host = 0.11,
           .sampling = 0.02,
           .early_fill = 0.0074,
           .early_gap = 0.0004,
           .step = 4.0,
           .repeat = 2.5,
           .chunk = 0.0095};

/* As in cuda/linear.cu, in rows. */
enum { FEW = 16, FEW_ON_CODES = 64, MOST_DECODED = 128 };
/* Tokens per chunk of a scan, and of a prompt. */
enum { CHUNK = 128, PROMPT_ROWS = 2048 };
/* Bytes per weight that are written and read again as bf16. */
enum { DEQUANTIZED_BYTES = 4 };
/* As in session_batch.c. */
enum { MIXED_MIN_BATCH = 4 };

const struct roofline_card *roofline_card_at(int i)
{
    return i >= 0 && i < (int)(sizeof cards / sizeof *cards) ? &cards[i] : NULL;
}

const struct roofline_card *roofline_card(const char *name)
{
    const struct roofline_card *g;
    for (int i = 0; (g = roofline_card_at(i)); i++)
        if (!strcmp(g->name, name))
            return g;
    return NULL;
}

const char *roofline_part_name(enum roofline_part p)
{
    static const char *const names[ROOFLINE_PARTS] = {"weights", "states", "keys",   "latency", "launches",
                                                      "host",    "tower",  "prompt", "scan"};
    return names[p];
}

/* ---- decode step ------------------------------------------------------------------------------------- */

struct kernels { /* kernels of one token through all layers; appends: of keys and values, and the rotary
                  * table */
    int products, mixers, attentions, norms, appends, others;
};

static struct kernels kernels_of(const struct lm_config *l)
{
    struct kernels k = {.products = 1, .norms = 1, .others = 5}; /* the head; ids, last rows, sampling */
    for (int i = 0; i < l->layers; i++) {
        char kind = l->pattern[i];
        k.norms++;
        if (layer_recurs(kind))
            k.products += 2, k.mixers++;
        else if (layer_attends(kind))
            k.products += 4, k.attentions++, k.appends += 3;
        else
            k.products += 2;
    }
    return k;
}

/* Returns the time of the states: the slower of memory and f32 arithmetic, where a warp's instruction
 * handles 32 elements and four warps run at once. */
static double states_ms(const struct roofline_model *m, const struct roofline_card *g, int n)
{
    const struct lm_config *l = &m->config->lm;
    double repeated = cost_replays(m->types, n) ? WORK_RING / 2.0 : 0,
           bytes = n * cost_state_bytes(l, m->types, n),
           work = n * cost_state_elements(l, false) * (reach.step + reach.repeat * repeated);
    return 1e3 * fmax(bytes / (g->copy * reach.state), work / (128 * g->clock * g->processors));
}

/* Returns the maximum rows for which the kernels of products are our own. */
static int few_rows(const struct roofline_model *m)
{
    return m->number > 1.9 ? FEW : FEW_ON_CODES;
}

/* Kernels of products with quantized matrices and more rows than few_rows(): each matrix is dequantized in
 * parts, which are multiplied for as many rows as f32 sums have space for, each followed by an epilogue
 * (cuda/linear.cu). Matrices with one scale have fewer in prompts. */
struct parts {
    double dequantized, products;
};

static void add_matrix(struct parts *p, double rows, double cols, double tokens)
{
    double part = (double)work_dequantized(&work_parts_usual, (int64_t)cols).rows, parts = ceil(rows / part),
           summed = floor((double)work_parts_usual.sums / sizeof(float) / fmin(rows, part));
    p->dequantized += parts;
    p->products += parts * ceil(tokens / summed);
}

/* vocab: rows of the head, or 0. Experts are not dequantized. */
static struct parts parts_of(const struct lm_config *l, int vocab, double tokens)
{
    struct parts p = {0, 0};
    double d = l->hidden, q = (double)l->q_heads * l->head_dim, kv = (double)l->kv_heads * l->head_dim;
    for (int i = 0; i < l->layers; i++) {
        char kind = l->pattern[i];
        if (layer_recurs(kind)) {
            add_matrix(&p, config_proj_rows(l), d, tokens);
            add_matrix(&p, d, config_inner(l), tokens);
        } else if (layer_attends(kind)) {
            add_matrix(&p, kind == LAYER_GATED_ATTENTION ? 2 * q : q, d, tokens);
            add_matrix(&p, kv, d, tokens);
            add_matrix(&p, kv, d, tokens);
            add_matrix(&p, d, q, tokens);
        } else if (l->mlp[i]) {
            for (int up = 0; up < (kind == LAYER_SWIGLU ? 2 : 1); up++)
                add_matrix(&p, l->mlp[i], d, tokens);
            add_matrix(&p, d, l->mlp[i], tokens);
        }
    }
    if (vocab)
        add_matrix(&p, vocab, d, tokens);
    return p;
}

/* Adds the latency that neither bytes nor products explain: begin and end of kernels, and the gaps between
 * them. */
static void add_latency(struct roofline_row *r, const struct roofline_model *m, const struct roofline_card *g,
                        const struct kernels *k, int n)
{
    bool own = n <= few_rows(m), early = own && g->overlap;
    int most = k->products + k->mixers + 2 * k->attentions + k->norms + k->appends,
        overlapped = early ? most : 0, all = most + k->others;
    double products = k->products, more = 0; /* more: kernels beside one for each product */
    if (!own && m->number < 1.9) {
        struct parts p = parts_of(&m->config->lm, m->vocab, n);
        products = p.products;
        more = p.dequantized + 2 * p.products - k->products;
    }
    r->part[ROOFLINE_LATENCY] = products * (early ? reach.early_fill
                                            : own ? reach.fill
                                                  : reach.library) +
                                k->norms * reach.norm;
    r->part[ROOFLINE_LAUNCHES] = reach.early_gap * overlapped + reach.gap * (all - overlapped + more);
}

/* Returns the time to dequantize all of `bytes` bytes of weights to bf16 once and to read the result. */
static double dequantize_ms(const struct roofline_model *m, const struct roofline_card *g, double bytes)
{
    return 1e3 * bytes / m->number * (m->number + DEQUANTIZED_BYTES) / (g->copy * reach.dequantized);
}

/* Returns the time of products of n rows with `bytes` bytes of weights. */
static double weights_ms(const struct roofline_model *m, const struct roofline_card *g, int n, double bytes)
{
    if (n <= few_rows(m)) /* one pass for each FEW rows, at worst from memory each */
        return 1e3 * ceil((double)n / FEW) * bytes / (g->copy * (m->number < 0.9 ? reach.gemv4 : reach.gemv));
    return m->number > 1.9 ? 1e3 * bytes / (g->copy * reach.gemm_rows) : dequantize_ms(m, g, bytes);
}

static void add_up(struct roofline_row *r)
{
    r->ms = 0;
    for (int p = 0; p < ROOFLINE_PARTS; p++)
        r->ms += r->part[p];
}

struct roofline_row roofline_decode(const struct roofline_model *m, const struct roofline_card *g, int n,
                                    int64_t past)
{
    const struct lm_config *l = &m->config->lm;
    struct kernels k = kernels_of(l);
    double weights = cost_weight_bytes(m->config, m->vocab, n, m->number),
           keys = n * (double)state_position(l, m->types.kv) * (double)past;
    struct roofline_row r = {.count = n, .unit = "tok"};
    snprintf(r.name, sizeof r.name, "%d session%s after %lld, one token each", n, n > 1 ? "s" : "",
             (long long)past);
    r.part[ROOFLINE_WEIGHTS] = weights_ms(m, g, n, weights);
    double mixer = g->overlap && n <= FEW ? reach.early_mixer : reach.mixer;
    r.part[ROOFLINE_STATES] = fmax(states_ms(m, g, n), k.mixers * mixer);
    r.part[ROOFLINE_KEYS] = fmax(1e3 * keys / (g->copy * reach.keys), k.attentions * reach.attention);
    add_latency(&r, m, g, &k, n);
    r.part[ROOFLINE_HOST] = reach.host + reach.sampling * ceil((double)n / WORK_SAMPLED_ROWS);
    r.limit_ms = 1e3 * (weights + n * cost_session_bytes(m->config, m->types, n, past)) / g->copy;
    add_up(&r);
    return r;
}

/* ---- screenshot -------------------------------------------------------------------------------------- */

static bool is_plain(const struct roofline_model *m)
{
    return m->number > 1.9 || m->config->lm.moe.width;
}

/* Returns the time of products of `tokens` tokens. Those of a prompt with an image are prefilled in chunks of
 * PROMPT_ROWS rows (language_chunk). */
static double chunks_ms(const struct roofline_model *m, const struct roofline_card *g, double flop,
                        double tokens)
{
    double bytes = cost_weight_bytes(m->config, 0, 1, m->number), weights = bytes / m->number,
           rest = fmax(0, flop - 2 * weights * tokens), parts = ceil(tokens / PROMPT_ROWS),
           rate = g->flops * reach.product;
    if (is_plain(m))
        return 1e3 * flop / rate;
    if (m->fp8 && tokens > MOST_DECODED)
        return 1e3 * fmax((flop - rest) / (g->flops * g->fp8 * reach.product_fp8), parts * bytes / g->copy) +
               1e3 * rest / rate;
    return 1e3 * flop / rate + parts * dequantize_ms(m, g, bytes);
}

/* Adds the kernels of a prompt that bf16 does not need; those it needs are part of `product`. */
static void add_prompt_kernels(struct roofline_row *r, const struct roofline_model *m, double tokens)
{
    if (is_plain(m) || (m->fp8 && tokens > MOST_DECODED))
        return;
    double chunks = ceil(tokens / PROMPT_ROWS), once = kernels_of(&m->config->lm).products - 1;
    struct parts p = parts_of(&m->config->lm, 0, fmin(tokens, PROMPT_ROWS));
    r->part[ROOFLINE_LATENCY] = chunks * reach.library * fmax(0, p.products - once);
    r->part[ROOFLINE_LAUNCHES] = chunks * reach.gap * fmax(0, p.dequantized + 2 * p.products - once);
}

static struct roofline_row prompt(const struct roofline_model *m, const struct roofline_card *g,
                                  int64_t tokens, int64_t past)
{
    const struct lm_config *l = &m->config->lm;
    double flop = cost_text_flop(m->config, tokens, past), chunks = ceil((double)tokens / CHUNK),
           n = (double)tokens;
    struct roofline_row r = {.count = n, .unit = "tok"};
    r.part[ROOFLINE_PROMPT] = chunks_ms(m, g, flop, n);
    add_prompt_kernels(&r, m, n);
    r.part[ROOFLINE_SCAN] = kernels_of(l).mixers * chunks * reach.chunk * (132.0 / g->processors);
    double weights = cost_weight_bytes(m->config, 0, 1, m->number) / m->number,
           halved = m->fp8 ? fmin(flop, 2 * weights * n) : 0; /* products at the rate of fp8 */
    r.limit_ms = 1e3 * (flop - halved) / g->flops + (m->fp8 ? 1e3 * halved / (g->flops * g->fp8) : 0);
    add_up(&r);
    return r;
}

struct roofline_row roofline_screen(const struct roofline_model *m, const struct roofline_card *g, int w,
                                    int h, int64_t past, int64_t *tokens)
{
    struct tile_grid grid = preprocess_grid(m->config, w, h);
    int64_t seen = preprocess_tokens(&grid), patches = (int64_t)grid.patch_cols * grid.patch_rows;
    double tower = cost_patches_flop(m->config, m->prefix, patches) * grid.tiles;
    struct roofline_row r = prompt(m, g, seen, past);
    snprintf(r.name, sizeof r.name, "screen, %d tiles, %lld tokens: all of it", grid.tiles, (long long)seen);
    r.part[ROOFLINE_TOWER] = 1e3 * tower / (g->flops * reach.tower);
    r.limit_ms += 1e3 * tower / g->flops;
    r.count = 1;
    r.unit = "shots";
    add_up(&r);
    if (tokens)
        *tokens = seen;
    return r;
}

/* ---- agent step -------------------------------------------------------------------------------------- */

static void add_row(struct roofline_row *to, const struct roofline_row *from, double times)
{
    for (int p = 0; p < ROOFLINE_PARTS; p++)
        to->part[p] += times * from->part[p];
    to->limit_ms += times * from->limit_ms;
    add_up(to);
}

struct roofline_row roofline_step(const struct roofline_model *m, const struct roofline_card *g, int n, int w,
                                  int h, int64_t past, int reply, int forced)
{
    struct roofline_row r = {.count = n, .unit = "steps"};
    char given[32] = "";
    int64_t seen;
    struct roofline_row screen = roofline_screen(m, g, w, h, past, &seen),
                        token = roofline_decode(m, g, n, past + seen + reply / 2),
                        alone = roofline_decode(m, g, 1, past + seen + reply / 2);
    /* a run of forced tokens is one pass of a session alone, in which the weights are read as for one
     * token; with enough sessions they are mixed into the batch, one token in each step */
    int runs = n < MIXED_MIN_BATCH ? forced / ROOFLINE_RUN : 0;
    add_row(&r, &screen, n);
    add_row(&r, &token, n < MIXED_MIN_BATCH ? reply - forced - runs : reply);
    add_row(&r, &alone, (double)n * runs);
    if (forced)
        snprintf(given, sizeof given, ", %d forced", forced);
    snprintf(r.name, sizeof r.name, "%d session%s: %dx%d screen, reply of %d%s", n, n > 1 ? "s" : "", w, h,
             reply, given);
    return r;
}
