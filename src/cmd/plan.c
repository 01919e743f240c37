/* plan.c - `holorun plan MODEL`: computes a model's memory needs, what fits, and limits of its speed.
 *
 * Memory is counted by setting the model up on a backend that only counts (capacity/plan.h); no weight is
 * read.  Speed limits divide the cost of the work (capacity/cost.h) by the machine's arithmetic and memory
 * bandwidth, measured in a quarter of a second or given on the command line.  Nothing can be faster than
 * these limits.
 *
 * All results are collected in one JSON object, which is printed itself or as tables. */
#include "cmd/commands.h"

#include "bench/bench.h"
#include "capacity/cost.h"
#include "capacity/memory.h"
#include "checkpoint/find.h"
#include "cmd/plan.h"
#include "model/preprocess.h"
#include "model/state.h"
#include "text/tokenizer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { CONTEXT = 12288, CHUNK = 512, WORDS = 64 /* tokens of a step in addition to its screenshot */ };

static const struct option_spec options[] = {
    {"model", 'm', OPTION_TEXT, offsetof(struct plan_settings, model), "DIR", 0, 4096, NULL,
     "the same as the argument; default: the embedded model", "HOLORUN_MODEL"},
    {"gpu", 0, OPTION_TEXT, offsetof(struct plan_settings, gpu_words), "CARD", 0, 32, NULL,
     "plan for a GPU instead of this machine: its memory, such as 24G, or one of h100, h200, a100, rtx4090, "
     "rtx5090, rtx4070, rtx3060, with the expected time of each row of the benchmark",
     NULL},
    {"memory", 0, OPTION_SIZE, offsetof(struct plan_settings, memory), "SIZE", 0, 0, NULL,
     "plan for a machine with this free memory, such as 32G; default: the memory that is free now", NULL},
    {"state-memory", 0, OPTION_SIZE, offsetof(struct plan_settings, state_memory), "SIZE", 0, 0, NULL,
     "memory for the states of sessions, as for other commands; prints how many fit", "HOLORUN_STATE_MEMORY"},
    WEIGHTS_OPTIONS(struct plan_settings),
    ACTIVATIONS_OPTION(struct plan_settings),
    STATE_OPTION(struct plan_settings),
    {"sessions", 'n', OPTION_INT, offsetof(struct plan_settings, sessions), "N", 1, 100000, "1",
     "simultaneous sessions in memory", NULL},
    {"context", 'c', OPTION_INT, offsetof(struct plan_settings, context), "T", 0, 1 << 28, "0",
     "tokens per session; 0 for 12288, or the model's maximum", NULL},
    {"screen", 0, OPTION_TEXT, offsetof(struct plan_settings, screen), "WxH", 0, 32, "1920x1080",
     "size of the screenshot of a step", NULL},
    {"generated", 0, OPTION_INT, offsetof(struct plan_settings, generated), "N", 1, 100000, "100",
     "tokens generated per step", NULL},
    {"bandwidth", 0, OPTION_NUMBER, offsetof(struct plan_settings, bandwidth), "GB/S", 0, 1e6, "0",
     "memory bandwidth; 0 to measure this machine", NULL},
    {"flops", 0, OPTION_NUMBER, offsetof(struct plan_settings, flops), "TFLOP/S", 0, 1e6, "0",
     "rate of bf16 products; 0 to measure this machine", NULL},
    {"threads", 0, OPTION_INT, offsetof(struct plan_settings, threads), "N", 0, 256, "0",
     "threads for measuring, 0 for one per core", "HOLORUN_THREADS"},
    {"json", 'j', OPTION_FLAG, offsetof(struct plan_settings, json),
     .help = "one JSON object on stdout, in bytes"},
    {0},
};

const struct command plan_command = {
    "plan",
    "[MODEL]",
    "estimate the memory needs of a model, what fits, and upper limits of its speed",
    "Reads only headers, not weights. A size is a number followed by K, M, G or T (powers of 1024); a small "
    "number without a letter is in G. A quarter of this machine's free memory is reserved for the system, a "
    "twentieth of a GPU's for its driver.\n"
    "Limits are upper bounds: unavoidable arithmetic and memory traffic divided by the machine's peak. If "
    "only the memory of a GPU is given, they need --bandwidth and --flops. For a known GPU, the expected "
    "time and its parts are printed next to each limit. The exit code is 1 if the model does not fit.",
    "holorun plan\nholorun plan ~/models/Holotron-12B --sessions 4 --context 32768\n"
    "holorun plan DIR --gpu 80G --bandwidth 3350 --flops 990 --json\n"
    "holorun plan DIR --gpu h100 --weights fp8 --activations fp8\n",
    options,
    cmd_plan};

static int read_screen(const char *text, int *w, int *h, struct err *e)
{
    char end = 0;
    if (sscanf(text, "%dx%d%c", w, h, &end) != 2 || *w < 1 || *h < 1 || *w > 1 << 16 || *h > 1 << 16)
        return err_set(e, ERR_USAGE, "--screen must be a size like 1920x1080, not '%s'", text);
    return 0;
}

static void note(struct planning *g, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void note(struct planning *g, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    json_array_append_new(json_object_get(g->root, "notes"), json_vsprintf(fmt, ap));
    va_end(ap);
}

static void put(json_t *o, const char *key, size_t bytes)
{
    json_object_set_new(o, key, json_integer((json_int_t)bytes));
}

static void put_rate(json_t *o, const char *key, double rate)
{
    json_object_set_new(o, key, json_real(rate));
}

static void put_weights(const struct planning *g)
{
    json_t *list = json_array();
    for (enum plan_kind k = 0; k < PLAN_KINDS; k++) {
        const struct plan_part *part = &g->p.parts[k];
        if (part->tensors)
            json_array_append_new(list,
                                  json_pack("{s:s, s:i, s:I, s:I, s:I}", "name", plan_kind_name(k), "tensors",
                                            part->tensors, "stored", (json_int_t)part->stored, "own",
                                            (json_int_t)part->own, "mapped", (json_int_t)part->mapped));
    }
    const struct plan_part *all = &g->p.weights;
    json_object_set_new(g->root, "weights",
                        json_pack("{s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:f}", "held",
                                  all->mapped ? "mapped" : "packed", "tensors", all->tensors, "stored",
                                  all->stored, "own", all->own, "mapped", all->mapped, "resident",
                                  g->p.resident, "streamed", g->p.streamed, "bits", 8 * g->p.number));
    json_object_set_new(g->root, "parts", list);
}

static void put_memory(const struct planning *g)
{
    const struct plan *p = &g->p;
    json_t *engine = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "language", p->language, "vision",
                               p->vision, "work", p->work, "picture", p->picture, "tokenizer", p->tokenizer,
                               "program", p->base, "vision_cache_most", p->tile_cache);
    json_t *session = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "ssm", p->ssm, "conv", p->conv,
                                "other", p->session, "kv_per_token", p->kv_token - PLAN_TOKEN_BYTES,
                                "ids_per_token", (json_int_t)PLAN_TOKEN_BYTES, "at_context",
                                plan_session(p, g->context), "checkpoint", p->state);
    json_object_set_new(g->root, "engine", engine);
    json_object_set_new(g->root, "session", session);
}

/* Adds the state memory: the given limit, or all memory that the engine leaves free. */
static void put_states(struct planning *g, size_t room)
{
    const struct plan *p = &g->p;
    size_t engine = plan_own(p, 0, 0), each = plan_state(p, g->context),
           bound = g->set->state_memory ? g->set->state_memory
                   : room > engine      ? room - engine
                                        : 0;
    json_object_set_new(g->root, "state_memory",
                        json_pack("{s:I, s:I, s:I, s:I}", "fixed", p->state, "at_context", each, "bound",
                                  bound, "sessions", (json_int_t)plan_states(p, bound, g->context)));
    if (g->set->state_memory && bound > room - (room < engine ? room : engine))
        note(g, "%.2f GiB of state memory exceed the %.2f GiB that the model leaves free",
             planning_gib(bound), planning_gib(room > engine ? room - engine : 0));
}

static void put_fit(struct planning *g)
{
    const struct plan *p = &g->p;
    int n = g->set->sessions;
    size_t need = plan_own(p, n, g->context) + p->tile_cache;
    size_t room = g->usable > p->tile_cache ? g->usable - p->tile_cache : 0;
    int64_t sessions = plan_sessions(p, room, g->context), tokens = plan_tokens(p, room, n);
    bool fits = need <= g->usable && g->context <= g->c.lm.max_tokens;
    tokens = tokens < g->c.lm.max_tokens ? tokens : g->c.lm.max_tokens;
    if (*p->forms)
        note(g, "matrices in formats without kernels are converted: %s", p->forms);
    put(g->root, "ready_own", plan_own(p, 1, 0));
    put(g->root, "ready_resident", plan_own(p, 1, 0) + g->files);
    put(g->root, "in_use_own", need);
    put_states(g, room);
    put(g->root, "most_sessions", g->context > g->c.lm.max_tokens ? 0 : (size_t)sessions);
    put(g->root, "most_context", (size_t)tokens);
    json_object_set_new(g->root, "fits", json_boolean(fits));
    if (g->context > g->c.lm.max_tokens)
        note(g, "%lld tokens do not fit: the model's maximum is %d", (long long)g->context,
             g->c.lm.max_tokens);
    if (need > g->usable)
        note(g, "%d session%s of %lld tokens do not fit: %.2f GiB more are needed", n, n == 1 ? "" : "s",
             (long long)g->context, planning_gib(need - g->usable));
    if (g->set->gpu && plan_own(p, 0, 0) > g->usable)
        note(g, "the weights alone need %.2f GiB of the %.2f usable GiB; no session fits",
             planning_gib(plan_own(p, 0, 0)), planning_gib(g->usable));
    /* embeddings of GGUF files are always mapped */
    bool mapped = p->weights.mapped > p->parts[PLAN_EMBEDDINGS].mapped;
    if (mapped && g->set->weights_in == WEIGHTS_IN_AUTO)
        note(g, "the weights are read from their files: copies would leave less than a quarter of the memory "
                "free");
    if (p->streamed)
        note(g,
             "%.2f GiB of the weights do not fit in memory and are read from disk again for every token and "
             "every %d tokens of a prompt",
             planning_gib(p->streamed), CHUNK);
    note(g, "the buffers of keys and values grow by %lld tokens or a 32nd, whichever is larger",
         (long long)state_capacity(0, 1));
}

static int measure(struct planning *g, struct err *e)
{
    const struct roofline_card *card = g->set->card;
    g->bandwidth = g->set->bandwidth > 0 || !card ? g->set->bandwidth * 1e9 : card->copy;
    g->flops = g->set->flops > 0 || !card ? g->set->flops * 1e12 : card->flops;
    return g->set->gpu ? 0 : bench_rates(g->set->threads, &g->bandwidth, &g->flops, e);
}

static struct state_types types_of(const struct planning *g)
{
    struct state_types t = state_types(false, (enum state_storage)g->set->state, (enum kv_storage)g->set->kv);
    t.ring = state_ring(t, &g->c.lm, g->set->gpu);
    return t;
}

static double decode_bytes(const struct planning *g, int sessions)
{
    return cost_weight_bytes(&g->c, g->p.vocab, sessions, g->p.number) +
           sessions * cost_session_bytes(&g->c, types_of(g), sessions, g->context);
}

/* Returns the seconds of one step: encoding and prefilling a screenshot, generating a reply. */
static double step_time(const struct planning *g, json_t *o)
{
    struct tile_grid grid = preprocess_grid(&g->c, g->screen_w, g->screen_h);
    int64_t tokens = preprocess_tokens(&grid), patches = (int64_t)grid.patch_cols * grid.patch_rows;
    double tower = cost_patches_flop(&g->c, g->p.prefix, patches) * grid.tiles,
           text = cost_text_flop(&g->c, tokens + WORDS, g->context);
    put(o, "screen_tiles", (size_t)grid.tiles);
    put(o, "screen_tokens", (size_t)tokens);
    put_rate(o, "flop_screen", tower + text);
    return (tower + text) / g->flops + g->set->generated * decode_bytes(g, 1) / g->bandwidth;
}

static void put_limits(struct planning *g)
{
    const struct model_config *c = &g->c;
    json_t *o = json_object();
    double token = cost_text_flop(c, 1, g->context) + cost_head_flop(c, g->p.vocab);
    double prompt = cost_text_flop(c, CHUNK, g->context) / CHUNK;
    put_rate(o, "flop_token", token);
    put_rate(o, "flop_prompt_token", prompt);
    put_rate(o, "bytes_step", decode_bytes(g, 1));
    put_rate(o, "bytes_step_sessions", decode_bytes(g, g->set->sessions));
    if (c->vision)
        put_rate(o, "flop_tile", cost_tile_flop(c, g->p.prefix));
    json_object_set_new(g->root, "limits", o);
    if (!(g->bandwidth > 0 && g->flops > 0)) {
        note(g, "no speed limits: pass --bandwidth and --flops of the GPU");
        return;
    }
    put_rate(o, "bandwidth", g->bandwidth);
    put_rate(o, "flops", g->flops);
    int n = g->set->sessions;
    double memory = decode_bytes(g, n) / g->bandwidth, arithmetic = n * token / g->flops;
    put_rate(o, "decode", g->bandwidth / decode_bytes(g, 1));
    put_rate(o, "decode_sessions", n / (memory > arithmetic ? memory : arithmetic));
    put_rate(o, "prefill", g->flops / prompt);
    if (c->vision) {
        put_rate(o, "tiles", g->flops / cost_tile_flop(c, g->p.prefix));
        put_rate(o, "steps", 1 / step_time(g, o));
    }
}

static void put_prediction(json_t *list, const struct roofline_row *r)
{
    json_t *row = json_pack("{s:s, s:f, s:f, s:f, s:s}", "name", r->name, "ms", r->ms, "limit_ms",
                            r->limit_ms, "rate", 1e3 * r->count / r->ms, "unit", r->unit),
           *parts = json_object();
    for (int p = 0; p < ROOFLINE_PARTS; p++)
        if (r->part[p] > 0)
            put_rate(parts, roofline_part_name((enum roofline_part)p), r->part[p]);
    json_object_set_new(row, "parts", parts);
    json_array_append_new(list, row);
}

/* Adds the rows of the fleet benchmark. */
static void put_predictions(struct planning *g)
{
    enum { WIDE = 2048, HIGH = 1536, HISTORY = 2048, REPLY = 100, FORCED = 35, MANY = 100, SOME = 16 };
    const struct roofline_card *card = g->set->card;
    if (g->p.records) {
        note(
            g,
            "no times are predicted: the kernels for GGUF's blocks, fp8 in blocks and GPTQ were not measured "
            "on a GPU");
        return;
    }
    const struct roofline_model m = {&g->c,       types_of(g), g->p.vocab,
                                     g->p.number, g->p.prefix, g->set->activations == ACTIVATIONS_FP8};
    json_t *list = json_array();
    const int sessions[] = {1, SOME, MANY};
    struct roofline_row r;
    for (int i = 0; i < 3; i++)
        put_prediction(list, (r = roofline_decode(&m, card, sessions[i], g->context), &r));
    if (g->c.vision) {
        put_prediction(list, (r = roofline_screen(&m, card, WIDE, HIGH, 0, NULL), &r));
        put_prediction(list,
                       (r = roofline_step(&m, card, 1, g->screen_w, g->screen_h, HISTORY, REPLY, 0), &r));
        put_prediction(
            list, (r = roofline_step(&m, card, 1, g->screen_w, g->screen_h, HISTORY, REPLY, FORCED), &r));
        put_prediction(list,
                       (r = roofline_step(&m, card, MANY, g->screen_w, g->screen_h, HISTORY, REPLY, 0), &r));
    }
    json_object_set_new(g->root, "predictions", list);
}

static int read_model(struct planning *g, struct err *e)
{
    struct engine_options o = {.dir = g->dir,
                               .weights_in = (enum weights_in)g->set->weights_in,
                               .weights = (enum weight_storage)g->set->weights,
                               .tower = (enum tower_storage)g->set->tower,
                               .activations = (enum activation_rounding)g->set->activations,
                               .state = (enum state_storage)g->set->state,
                               .kv = (enum kv_storage)g->set->kv};
    if (config_load(&g->c, g->dir, e))
        return -1;
    size_t heap = memory_heap();
    struct tokenizer *t = tokenizer_open(g->dir, e);
    size_t tokenizer = memory_heap() - heap;
    tokenizer_free(t);
    struct safetensors *s = t ? safetensors_open(g->dir, e) : NULL;
    if (!s)
        return -1;
    o.memory = g->memory;
    if (g->set->gpu) {
        o.weights_in = WEIGHTS_IN_RAM;
        o.device = "cuda";
    }
    int rc = plan_make(&g->p, &g->c, s, &o, e);
    safetensors_close(s);
    if (rc)
        return err_prefix(e, "model '%s'", g->dir);
    g->p.tokenizer = g->set->gpu ? 0 : tokenizer;
    plan_picture(&g->p, &g->c, g->screen_w, g->screen_h);
    plan_fit(&g->p, g->usable);
    return 0;
}

static int make(struct planning *g, struct err *e)
{
    const struct plan_settings *set = g->set;
    size_t gpu = set->gpu, given = set->memory;
    if (read_screen(set->screen, &g->screen_w, &g->screen_h, e))
        return -1;
    if (gpu && given)
        return err_set(e, ERR_USAGE, "give --gpu or --memory, not both");
    g->memory = gpu ? gpu : given ? given : memory_available();
    g->usable = gpu ? gpu / 20 * 19 : g->memory / 4 * 3;
    struct memory_use now = memory_use();
    g->files = now.file;
    if (read_model(g, e) || measure(g, e))
        return -1;
    g->p.base = gpu ? 0 : now.own;
    int most = g->c.lm.max_tokens;
    g->context = set->context ? set->context : most < CONTEXT ? most : CONTEXT;
    g->root = json_pack("{s:s, s:s, s:i, s:I, s:[]}", "model", g->dir, "for", gpu ? "gpu" : "machine",
                        "sessions", set->sessions, "context", (json_int_t)g->context, "notes");
    put(g->root, "memory", g->memory);
    put(g->root, "usable", g->usable);
    put_weights(g);
    put_memory(g);
    put_fit(g);
    put_limits(g);
    if (set->card)
        put_predictions(g);
    return 0;
}

/* Rejects combinations that no engine supports.  Returns -1 with e. */
static int check_activations(const struct plan_settings *set, struct err *e)
{
    if (set->activations == ACTIVATIONS_INT8 && set->gpu)
        return err_set(e, ERR_USAGE, "int8 activations are not supported on a GPU: remove --activations");
    if (set->activations != ACTIVATIONS_FP8)
        return 0;
    if (set->weights != WEIGHTS_AUTO && set->weights != WEIGHTS_FP8)
        return err_set(e, ERR_USAGE, "fp8 activations need fp8 weights: use --weights auto or fp8");
    if (set->card && !(set->card->fp8 > 0))
        return err_set(e, ERR_USAGE, "an %s does not support fp8: remove --activations", set->card->words);
    return set->gpu ? 0 : err_set(e, ERR_USAGE, "fp8 activations need a GPU: select one with --gpu");
}

/* Parses --gpu: the name of a GPU, or a size.  Returns -1 with e. */
static int read_gpu(struct plan_settings *set, struct err *e)
{
    if (!set->gpu_words)
        return 0;
    set->card = roofline_card(set->gpu_words);
    if (!set->card)
        return options_size(&set->gpu, "--gpu", set->gpu_words, e);
    set->gpu = (size_t)set->card->memory;
    return 0;
}

int cmd_plan(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct plan_settings set = {0};
    struct planning g = {.set = &set};
    int n = options_parse(&plan_command, &set, argc, argv, &e);
    if (n < 0 || read_gpu(&set, &e) || check_activations(&set, &e))
        return options_refuse(&plan_command, &e);
    g.dir = model_find(n ? argv[0] : set.model, &e);
    int code = ERR_NONE;
    if (!g.dir || make(&g, &e))
        code = options_failed(&e);
    else if (set.json)
        options_print_json(json_incref(g.root), JSON_COMPACT | JSON_ENSURE_ASCII);
    else
        planning_print(&g);
    if (code == ERR_NONE && !json_is_true(json_object_get(g.root, "fits")))
        code = ERR_FAILED;
    json_decref(g.root);
    free(g.dir);
    return code;
}
