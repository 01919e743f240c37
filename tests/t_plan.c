/* t_plan.c - claims about `plan` and `inspect`: their numbers are those of the published model and of the memory
 * that a running one takes, and nothing that would be refused goes unsaid. */
#include "check.h"
#include "full_model.h"
#include "program.h"
#include "tiny_model.h"

#include "base/clock.h"
#include "base/file.h"
#include "model/cost.h"
#include "model/memory.h"
#include "model/plan.h"
#include "model/session.h"
#include "model/tokenizer.h"

#include <jansson.h>
#include <malloc.h>
#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

#define POCKET "assets/pocket/model"

#if defined(__SANITIZE_ADDRESS__)
static const bool sanitized = true; /* memory and time are then not the program's own */
#else
static const bool sanitized = false;
#endif

static struct full_model full; /* written once */

static void about(const char *what, double have, double want, double part)
{
    if (!(fabs(have - want) <= part * want))
        fail_msg("%s: %.6g where %.6g is right", what, have, want);
}

static struct plan plan_of(const char *dir, struct model_config *c, const struct engine_options *o)
{
    struct err e = ERR_INIT;
    struct plan p;
    struct safetensors *s = safetensors_open(dir, &e);
    if (!s || config_load(c, dir, &e) || plan_make(&p, c, s, o, &e))
        fail_msg("%s", e.text);
    safetensors_close(s);
    return p;
}

/* ---- numbers -------------------------------------------------------------------------------------------- */

static void t_published_memory(void **state)
{
    (void)state;
    struct model_config c;
    struct engine_options o = {.hold = HOLD_PACKED};
    struct plan p = plan_of(full.dir, &c, &o);
    assert_int_equal(p.ssm, 28 * 128 * 80 * 128 * 4);
    about("SSM state in MiB", (double)p.ssm / (1 << 20), 140.0, 1e-9);
    assert_int_equal(p.conv, 28 * 12288 * 3 * 2);
    about("convolution state in MiB", (double)p.conv / (1 << 20), 1.97, 1e-3);
    assert_int_equal(p.kv_token, 24 * 1024 + PLAN_TOKEN_BYTES);
    assert_int_equal(p.weights.stored, 2 * 13181860352);
    assert_int_equal(p.parts[PLAN_MAMBA].stored, 2 * 4718131712);
    assert_int_equal(p.parts[PLAN_MLP].stored, 2 * 5872168960);
    assert_int_equal(p.parts[PLAN_ATTENTION].stored, 2 * 377518080);
    assert_int_equal(p.parts[PLAN_EMBEDDINGS].stored, 2 * 676331520);
    assert_int_equal(p.parts[PLAN_HEAD].stored, 2 * (676331520 + 5120));
    assert_int_equal(p.parts[PLAN_VISION].stored, 2 * 651653120);
    assert_int_equal(p.parts[PLAN_PROJECTOR].stored, 2 * 209720320);
    assert_int_equal(p.prefix, 16);
    assert_int_equal(p.vocab, FULL_VOCAB);
    assert_int_equal(p.parts[PLAN_MAMBA].tensors, 28 * 9);
    assert_int_equal(p.parts[PLAN_VISION].tensors, 387);
    o.state = STATE_FP16;
    assert_int_equal(plan_of(full.dir, &c, &o).ssm, 28 * 128 * 80 * 128 * 2);
}

static void t_published_work(void **state)
{
    (void)state;
    struct model_config c;
    struct engine_options o = {.hold = HOLD_MAPPED};
    struct plan p = plan_of(full.dir, &c, &o);
    double weights = cost_weight_bytes(&c, p.vocab, 1, p.number);
    about("bytes of weights", weights, 2 * (10965483520.0 + 676331520.0), 1e-12);
    assert_true(weights == cost_weight_bytes(&c, p.vocab, 100, 2)); /* no experts */
    about("bytes, 1 session of 4 k",
          weights + cost_session_bytes(&c, state_types(false, STATE_FP32, KV_AUTO), 4096), 23.68e9, 1e-3);
    about("bytes, 32 sessions of 16 k",
          weights + 32 * cost_session_bytes(&c, state_types(false, STATE_FP32, KV_AUTO), 16384), 45.7e9,
          2e-3);
    about("bytes, 100 sessions of 20 k",
          weights + 100 * cost_session_bytes(&c, state_types(false, STATE_FP32, KV_AUTO), 20000), 102e9,
          3e-3);
    about("FLOP of logits", cost_head_flop(&c, p.vocab), 2 * 676331520.0, 1e-12);
    double past = cost_text_flop(&c, 1, 32768) - cost_text_flop(&c, 1, 0);
    about("FLOP of looking back 32 k", past, 122880.0 * 32768, 1e-12);
    about("FLOP of a token", cost_text_flop(&c, 1, 0), 2 * 10965483520.0 + 0.22e9, 1e-3);
    about("FLOP of a tile", cost_tile_flop(&c, p.prefix), 1.595e12, 1e-3);
}

/* Small numbers: what the matrices of the language model take, and what a step moves. */
static void t_small_memory(void **state)
{
    (void)state;
    struct model_config c;
    double layers = 10965483520.0, head = 676331520.0;
    struct engine_options o = {.hold = HOLD_PACKED, .weights = WEIGHTS_BF16};
    double tower = (double)plan_of(full.dir, &c, &o).parts[PLAN_VISION].own;
    o.weights = WEIGHTS_INT8;
    struct plan p = plan_of(full.dir, &c, &o);
    about("int8: bytes of a number", p.number, 1, 1e-3); /* and a scale for thousands of them */
    about("int8: MLP layers", (double)p.parts[PLAN_MLP].own, 5872168960.0, 1e-3);
    about("int8: head", (double)p.parts[PLAN_HEAD].own, head, 2e-3);
    about("int8: embeddings stay", (double)p.parts[PLAN_EMBEDDINGS].own, 2 * head, 1e-9);
    about("int8: so does the tower", (double)p.parts[PLAN_VISION].own, tower, 1e-9);
    o.weights = WEIGHTS_FP8; /* the same bytes */
    struct plan same = plan_of(full.dir, &c, &o);
    assert_true(same.number == p.number && same.weights.own == p.weights.own);
    o.kv = KV_FP8; /* 1024 codes and 8 scales, to a multiple of 16, of six layers' keys and values */
    assert_int_equal(plan_of(full.dir, &c, &o).kv_token, 2 * 6 * 1040 + PLAN_TOKEN_BYTES);
    o.kv = KV_AUTO;
    o.weights = WEIGHTS_INT4;
    p = plan_of(full.dir, &c, &o);
    about("int4: MLP layers, 4.5 bits", (double)p.parts[PLAN_MLP].own, 5872168960.0 * 4.5 / 8, 2e-3);
    about("int4: head in int8", (double)p.parts[PLAN_HEAD].own, head, 2e-3);
    about("int4: bytes of a step", cost_weight_bytes(&c, p.vocab, 1, p.number), layers * 4.5 / 8 + head,
          2e-3);
}

/* What has been set up takes the memory that was planned. */
static void t_pocket_memory(void **state)
{
    (void)state;
    static const enum weight_hold holds[] = {HOLD_PACKED, HOLD_MAPPED, HOLD_PACKED, HOLD_PACKED};
    static const enum weight_numbers numbers[] = {WEIGHTS_AUTO, WEIGHTS_AUTO, WEIGHTS_INT8, WEIGHTS_INT4};
    static const char *const names[] = {"packed", "mapped", "int8", "int4"};
    for (int i = 0; i < 4; i++) {
        struct model_config c;
        struct err e = ERR_INIT;
        struct engine_options o = {
            .dir = POCKET, .hold = holds[i], .weights = numbers[i], .memory = (size_t)8 << 30};
        struct plan p = plan_of(POCKET, &c, &o);
        malloc_trim(0);
        size_t before = memory_use().own;
        struct engine *g = engine_open(&o, &e);
        if (!g)
            fail_msg("%s", e.text);
        struct session *s = session_new(g, 1);
        if (session_hold(s, 0, &e)) /* its state takes memory once it is used */
            fail_msg("%s", e.text);
        session_release(s);
        double have = (double)(memory_use().own - before), want = (double)(plan_own(&p, 1, 0) - p.base);
        check_note("%s: %.2f MB, planned %.2f MB", names[i], have * 1e-6, want * 1e-6);
        if (!sanitized)
            about("memory", have, want, 0.05);
        session_free(s);
        engine_close(g);
    }
}

/* And so do its sessions, each with what it has. */
static void t_state_memory(void **state)
{
    (void)state;
    enum { N = 6 };
    static const int tokens[N] = {1, 700, 2048, 3000, 4100, 8000};
    struct model_config c;
    struct err e = ERR_INIT;
    struct engine_options o = {.dir = POCKET, .hold = HOLD_PACKED, .device = "cpu"};
    struct plan p = plan_of(POCKET, &c, &o);
    struct session *s[N];
    struct engine *g = engine_open(&o, &e);
    if (!g)
        fail_msg("%s", e.text);
    double want = 0;
    malloc_trim(0);
    size_t before = memory_use().own;
    for (int i = 0; i < N; i++) {
        s[i] = session_new(g, 1);
        if (session_hold(s[i], tokens[i], &e))
            fail_msg("%s", e.text);
        session_release(s[i]);
        want += (double)plan_state(&p, tokens[i]);
    }
    double have = (double)(memory_use().own - before);
    check_note("%d sessions: %.2f MB, planned %.2f MB", N, have * 1e-6, want * 1e-6);
    about("what is counted", (double)engine_state_memory(g).used, want, 1e-9);
    if (!sanitized)
        about("state memory", have, want, 0.05);
    for (int i = 0; i < N; i++)
        session_free(s[i]);
    engine_close(g);
}

/* ---- the commands --------------------------------------------------------------------------------------- */

struct place {
    struct xvfb x; /* its folder alone: no display is started */
    struct outcome o;
    json_t *json;
};

static void open_place(struct place *p)
{
    *p = (struct place){0};
    xvfb_folder(&p->x);
}

static void close_place(struct place *p)
{
    static const char *const names[] = {"out", "err"};
    for (int i = 0; i < 2; i++) {
        char *path = xvfb_place(&p->x, names[i]);
        unlink(path);
        free(path);
    }
    rmdir(p->x.dir);
    json_decref(p->json);
    outcome_free(&p->o);
}

/* Runs it and reads its one JSON object. */
static const json_t *run(struct place *p, int code, const char *const *words)
{
    json_error_t why;
    program_run(&p->x, &p->o, words);
    if (p->o.code != code)
        fail_msg("exit %d, not %d: %s%s", p->o.code, code, p->o.out, p->o.err);
    json_decref(p->json);
    p->json = json_loads(p->o.out, JSON_REJECT_DUPLICATES, &why);
    if (!p->json)
        fail_msg("%s in: %s", why.text, p->o.out);
    return p->json;
}

static double number(const json_t *o, const char *section, const char *key)
{
    const json_t *v = json_object_get(section ? json_object_get(o, section) : o, key);
    if (!json_is_number(v))
        fail_msg("no number '%s'", key);
    return json_number_value(v);
}

static bool mentions(const json_t *list, const char *text)
{
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)(uintptr_t)list, i, v)
    {
        if (strstr(json_string_value(v), text))
            return true;
    }
    return false;
}

/* The table of upper limits for 3.35 TB/s at 12 k tokens: 140, 1633 and 4040 tokens a second. */
static void t_gpu(void **state)
{
    (void)state;
    struct place p;
    open_place(&p);
    static const char *const sessions[] = {"1", "16", "100"};
    static const double limits[] = {140, 1633, 4040};
    for (int i = 0; i < 3; i++) {
        const json_t *j = run(&p, 0,
                              WORDS("plan", full.dir, "--gpu", "141G", "--bandwidth", "3350", "--flops",
                                    "990", "--sessions", sessions[i], "--json"));
        about("tokens a second", number(j, "limits", "decode_sessions"), limits[i], 0.01);
        about("FLOP of a screen", number(j, "limits", "flop_screen"), 71.4e12, 0.02);
        assert_int_equal(number(j, "limits", "screen_tokens"), 2304);
    }
    const json_t *j = run(&p, 1, WORDS("plan", full.dir, "--gpu", "24G", "--json"));
    assert_true(json_is_false(json_object_get(j, "fits")));
    assert_int_equal(number(j, NULL, "most_sessions"), 0);
    assert_true(mentions(json_object_get(j, "notes"), "are missing"));
    assert_true(mentions(json_object_get(j, "notes"), "no session fits"));
    assert_true(mentions(json_object_get(j, "notes"), "give --bandwidth and --flops"));
    close_place(&p);
}

/* As many sessions as are said to fit do, and one more does not. */
static void t_fits(void **state)
{
    (void)state;
    struct place p;
    char most[32], more[32];
    open_place(&p);
#define PLAN(code, ...)                                                                                      \
    run(&p, code,                                                                                            \
        WORDS("plan", full.dir, "--memory", "24G", "--bandwidth", "40", "--flops", "0.9", "--json",          \
              __VA_ARGS__))
    const json_t *j = PLAN(0, "--context", "32768");
    assert_string_equal(json_string_value(json_object_get(json_object_get(j, "weights"), "held")), "mapped");
    assert_true(mentions(json_object_get(j, "notes"), "read from the disk again"));
    snprintf(most, sizeof most, "%.0f", number(j, NULL, "most_sessions"));
    snprintf(more, sizeof more, "%.0f", number(j, NULL, "most_sessions") + 1);
    check_note("%s sessions of 32768 tokens in 24 GiB", most);
    assert_true(atoi(most) > 1);
    PLAN(0, "--context", "32768", "--sessions", most);
    j = PLAN(1, "--context", "32768", "--sessions", more);
    assert_true(mentions(json_object_get(j, "notes"), "do not fit"));
    j = PLAN(0, "--sessions", "20");
    snprintf(most, sizeof most, "%.0f", number(j, NULL, "most_context"));
    snprintf(more, sizeof more, "%.0f", number(j, NULL, "most_context") + 1);
    PLAN(0, "--sessions", "20", "--context", most);
    PLAN(1, "--sessions", "20", "--context", more);
    j = PLAN(1, "--context", "131073");
    assert_true(mentions(json_object_get(j, "notes"), "made for 131072"));
    j = PLAN(0, "--hold", "mapped");
    assert_true(number(j, "weights", "resident") > 16e9);
    close_place(&p);
}

/* Sessions of the published model: 142 MiB and 24 KiB for each token; 100 of 30 k beside its weights on a card. */
static void t_states(void **state)
{
    (void)state;
    struct place p;
    open_place(&p);
#define PLAN_GPU(...)                                                                                        \
    json_object_get(                                                                                         \
        run(&p, 0, WORDS("plan", full.dir, "--gpu", "141G", "--sessions", "100", "--json", __VA_ARGS__)),    \
        "state_memory")
    const json_t *j = PLAN_GPU("--context", "30720", "--state-memory", "50G");
    double fixed = number(j, NULL, "fixed"), each = number(j, NULL, "at_context");
    about("the fixed part in MiB", fixed / (1 << 20), 142, 1e-3);
    about("with 30720 tokens", each, fixed + 30720 * 24576.0, 1e-9);
    assert_int_equal(number(j, NULL, "bound"), 50.0 * (1 << 30));
    assert_int_equal(number(j, NULL, "sessions"), floor(50.0 * (1 << 30) / each));
    j = PLAN_GPU("--context", "30720"); /* all that is left */
    check_note("%.0f sessions of 30720 tokens on a card of 141 GiB", number(j, NULL, "sessions"));
    assert_true(number(j, NULL, "sessions") >= 100);
    j = run(&p, 0, WORDS("plan", full.dir, "--gpu", "141G", "--state-memory", "140G", "--json"));
    assert_true(mentions(json_object_get(j, "notes"), "GiB that are left beside the model"));
    close_place(&p);
}

/* Of programs that have ended: what they computed and read, however busy the machine is. */
static double seconds_of_children(void)
{
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void t_quick(void **state)
{
    (void)state;
    struct place p;
    open_place(&p);
    double before = seconds_of_children();
    int64_t start = clock_ns();
    const json_t *j = run(&p, 0, WORDS("plan", full.dir, "--json", "--sessions", "1", "--memory", "24G"));
    double plan = clock_ms_since(start) * 1e-3;
    assert_true(number(j, "limits", "decode") > 0 && number(j, "limits", "steps") > 0);
    start = clock_ns();
    run(&p, 0, WORDS("inspect", full.dir, "--json"));
    check_note("plan %.2f s, inspect %.2f s", plan, clock_ms_since(start) * 1e-3);
    assert_true(sanitized || seconds_of_children() - before < 2.5); /* 26 GB of weights take longer */
    program_run(&p.x, &p.o, WORDS("plan", POCKET));
    assert_int_equal(p.o.code, 0);
    assert_non_null(strstr(p.o.out, "upper limits"));
    program_run(&p.x, &p.o, WORDS("inspect", POCKET));
    assert_int_equal(p.o.code, 0);
    assert_non_null(strstr(p.o.out, "holorun can run this model"));
    close_place(&p);
}

/* What a person reads must not contradict itself. */
static void t_text(void **state)
{
    (void)state;
    struct place p;
    open_place(&p);
    program_run(&p.x, &p.o, WORDS("plan", POCKET, "--memory", "24"));
    assert_int_equal(p.o.code, 0);
    assert_non_null(strstr(p.o.out, "\nfits: 1 session of 8192 tokens\n"));
    assert_non_null(strstr(p.o.out, "18.00 GiB may be used (free as given 24.00 GiB"));
    assert_null(strstr(p.o.out, "not fit"));
    assert_null(strstr(p.o.out, ".."));
    program_run(&p.x, &p.o, WORDS("plan", POCKET, "--context", "20000", "--sessions", "100"));
    assert_int_equal(p.o.code, 1);
    assert_non_null(strstr(p.o.out, "\ndoes not fit: 100 sessions of 20000 tokens\n"));
    assert_non_null(strstr(p.o.out, "the model was made for 8192"));
    assert_non_null(strstr(p.o.out, "at most 8192 tokens in each session"));
    assert_null(strstr(p.o.out, "\nfits"));
    assert_null(strstr(p.o.out, "sessions of 20000 tokens\n  at most"));
    close_place(&p);
}

static void t_usage(void **state)
{
    (void)state;
    struct place p;
    open_place(&p);
    static const struct {
        const char *words[6], *naming;
        int code;
    } wrong[] = {
        {{"plan", POCKET, "--gpu", "24000"}, "--gpu wants a size", 2},
        {{"plan", POCKET, "--gpu", "0"}, "--gpu wants a size", 2},
        {{"plan", "assets/pocket"}, "but 'assets/pocket/model' is", 4},
        {{"plan", POCKET, "--gpu", "-1G"}, "--gpu wants a size", 2},
        {{"plan", POCKET, "--gpu", "24Gx"}, "--gpu wants a size", 2},
        {{"plan", POCKET, "--gpu=8G", "--memory", "8G"}, "not both", 2},
        {{"plan", POCKET, "--screen", "640"}, "--screen wants a size", 2},
        {{"plan", "/nonexistent"}, "/nonexistent", 4},
        {{"plan", POCKET, "--state", "bf16"}, "--state bf16 is refused", 2},
        {{"ask", "--model=" POCKET, "--state=bf16", "where?"}, "--state bf16 is refused", 2},
        {{"plan", POCKET, "--state", "f8"}, "--state is one of", 2},
        {{"plan", POCKET, "--state-memory", "0"}, "--state-memory wants a size", 2},
        {{"ask", "--model=" POCKET, "--state-memory=100K", "where?"}, "one session takes 0.39 MiB", 2},
        {{"ask", "--model=" POCKET, "--state-memory=450K", "where?", "assets/pictures/report.png"},
         "no room for",
         3},
        {{"plan", POCKET, "more"}, "one argument too many", 2},
        {{"inspect", POCKET, "more"}, "one argument too many", 2},
        {{"inspect", "/nonexistent"}, "/nonexistent", 4},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        program_run(&p.x, &p.o, wrong[i].words);
        if (p.o.code != wrong[i].code || !strstr(p.o.err, wrong[i].naming))
            fail_msg("%s: exit %d: %s", wrong[i].naming, p.o.code, p.o.err);
    }
    close_place(&p);
}

/* ---- inspect ------------------------------------------------------------------------------------------------ */

static void t_inspect(void **state)
{
    (void)state;
    struct place p;
    open_place(&p);
    const json_t *j = run(&p, 0, WORDS("inspect", full.dir, "--json")), *g;
    size_t i;
    double tensors = 0, bytes = 0;
    bool in_proj = false;
    json_array_foreach(json_object_get(j, "groups"), i, g)
    {
        tensors += number(g, NULL, "count");
        bytes += number(g, NULL, "bytes");
        in_proj = in_proj || (number(g, NULL, "count") == 28 &&
                              !strcmp(json_string_value(json_object_get(g, "shape")), "[22656, 5120]"));
    }
    assert_true(in_proj);
    assert_int_equal(json_array_size(json_object_get(j, "groups")), 36);
    assert_int_equal(tensors, FULL_TENSORS);
    assert_int_equal(bytes, 2 * 13181860352);
    assert_int_equal(number(j, "dtypes", "bf16"), FULL_TENSORS);
    assert_int_equal(number(j, "config", "Mamba layers"), 28);
    assert_int_equal(number(j, "tokenizer", "<image>"), 131072);
    assert_int_equal(number(j, "tokenizer", "rows without a token"), FULL_VOCAB - 131081);
    close_place(&p);
}

/* Several faults are all told, and what is left out is listed. */
static void t_inspect_faults(void **state)
{
    (void)state;
    struct place p;
    struct tiny t;
    open_place(&p);
    tiny_init(&t, 3);
    tiny_drop(&t, "mlp1.3.weight");
    tiny_drop(&t, "language_model.backbone.layers.3.norm.weight");
    tiny_find(&t, "mlp1.0.weight")->type = "I32";
    tiny_find(&t, "mlp1.0.weight")->shape[0] = 48;
    strcpy(tiny_find(&t, "language_model.lm_head.weight")->name, "language_model.lm_tail.weight");
    tiny_write(&t);
    const json_t *j = run(&p, 4, WORDS("inspect", t.dir, "--json")), *refused = json_object_get(j, "refused");
    assert_int_equal(json_array_size(refused), 5);
    assert_true(mentions(refused, "'mlp1.3.weight' is missing"));
    assert_true(mentions(refused, "'language_model.backbone.layers.3.norm.weight' is missing"));
    assert_true(mentions(refused, "'mlp1.0.weight' is stored as i32"));
    assert_true(mentions(refused, "'language_model.lm_head.weight' is missing"));
    assert_true(mentions(refused, "'language_model.lm_tail.weight'"));
    assert_true(mentions(json_object_get(j, "ignored"), "input_conditioner.norm_mean"));
    tiny_free(&t);

    tiny_init(&t, 3); /* the embedding is the first that is looked for */
    tiny_drop(&t, "language_model.backbone.embeddings.weight");
    tiny_write(&t);
    j = run(&p, 4, WORDS("inspect", t.dir, "--json"));
    assert_true(mentions(json_object_get(j, "refused"), "embeddings.weight' is missing"));
    assert_true(json_array_size(json_object_get(j, "refused")) < 4);
    tiny_free(&t);

    tiny_init(&t, 3);
    tiny_edit(&t.tokenizer, "\"id\":274", "\"id\":290");
    tiny_write(&t);
    j = run(&p, 4, WORDS("inspect", t.dir, "--json"));
    assert_true(mentions(json_object_get(j, "refused"), "ids up to 290"));
    tiny_free(&t);

    tiny_init(&t, 3); /* a config that cannot be read leaves the rest */
    tiny_edit(&t.config, "\"hidden_size\":40,", "");
    tiny_write(&t);
    j = run(&p, 4, WORDS("inspect", t.dir, "--json"));
    assert_true(mentions(json_object_get(j, "refused"), "'hidden_size' is missing"));
    assert_true(json_array_size(json_object_get(j, "groups")) > 10);
    program_run(&p.x, &p.o, WORDS("plan", t.dir));
    assert_int_equal(p.o.code, 4);
    assert_non_null(strstr(p.o.err, "'hidden_size' is missing"));
    tiny_free(&t);
    close_place(&p);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the text of a plan says once whether it fits, and why not", t_text),
    CLAIM("memory of the published model is what its shapes say", t_published_memory),
    CLAIM("work of the published model is what its shapes say", t_published_work),
    CLAIM("int8 and int4 take a half and less than a third, embeddings and tower stay", t_small_memory),
    CLAIM("the embedded model takes the memory that was planned, within 5 %", t_pocket_memory),
    CLAIM("sessions take the state memory that was planned, within 5 %", t_state_memory),
    CLAIM("so many sessions fit in state memory as its size says", t_states),
    CLAIM("limits on a GPU are those of its bandwidth, and what does not fit is said", t_gpu),
    CLAIM("as many sessions and tokens fit as is said, and not one more", t_fits),
    CLAIM("headers are enough: an answer comes at once", t_quick),
    CLAIM("wrong sizes and wrong folders are refused by their name", t_usage),
    CLAIM("a directory of the published size is shown whole", t_inspect),
    CLAIM("every fault of a model is told, and what is left out is listed", t_inspect_faults),
};

int main(int argc, char **argv)
{
    full_init(&full);
    full_write(&full);
    int rc = check_main(argc, argv, tests, sizeof tests / sizeof *tests);
    full_free(&full);
    return rc;
}
