/* t_plan_program.c - tests of the commands `plan` and `inspect`: their output, and that they report
 * everything that would be refused. */
#include "check.h"
#include "full_model.h"
#include "program.h"
#include "tiny_model.h"

#include "base/clock.h"
#include "capacity/plan.h"
#include "ops/work.h"

#include <jansson.h>
#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

#define POCKET "assets/pocket/model"

static struct full_model full; /* shared by all tests */

/* ---- the commands ---------------------------------------------------------------------------- */

struct place {
    struct xvfb x; /* used for its directory only */
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

/* Runs the program and parses its JSON object. */
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

/* Upper limits for 3.35 TB/s and 12 k tokens: 23.9, 30.9 and 70.5 GB per step. */
static void t_gpu(void **state)
{
    struct place p;
    open_place(&p);
    static const char *const sessions[] = {"1", "16", "100"};
    static const double limits[] = {140, 1736, 4752};
    for (int i = 0; i < 3; i++) {
        const json_t *j = run(&p, 0,
                              WORDS("plan", full.dir, "--gpu", "141G", "--bandwidth", "3350", "--flops",
                                    "990", "--sessions", sessions[i], "--json"));
        check_about("tokens a second", number(j, "limits", "decode_sessions"), limits[i], 0.01);
        check_about("FLOP of a screen", number(j, "limits", "flop_screen"), 71.4e12, 0.02);
        assert_int_equal(number(j, "limits", "screen_tokens"), 2304);
    }
    const json_t *j = run(&p, 1, WORDS("plan", full.dir, "--gpu", "24G", "--json"));
    assert_true(json_is_false(json_object_get(j, "fits")));
    assert_int_equal(number(j, NULL, "most_sessions"), 0);
    assert_true(mentions(json_object_get(j, "notes"), "more are needed"));
    assert_true(mentions(json_object_get(j, "notes"), "no session fits"));
    assert_true(mentions(json_object_get(j, "notes"), "pass --bandwidth and --flops"));
    assert_null(json_object_get(j, "predictions"));
    j = run(&p, 0, WORDS("plan", full.dir, "--gpu", "h100", "--json"));
    check_about("tokens a second", number(j, "limits", "decode"), 126, 0.01);
    json_t *rows = json_object_get(j, "predictions");
    assert_int_equal(json_array_size(rows), 7);
    for (size_t i = 0; i < 7; i++)
        check_note("%s: %.2f ms", json_string_value(json_object_get(json_array_get(rows, i), "name")),
                   number(json_array_get(rows, i), NULL, "ms"));
    close_place(&p);
}

/* The reported number of sessions fits, and one more does not. */
static void t_fits(void **state)
{
    struct place p;
    char most[32], more[32];
    open_place(&p);
#define PLAN(code, ...)                                                                                      \
    run(&p, code,                                                                                            \
        WORDS("plan", full.dir, "--memory", "24G", "--bandwidth", "40", "--flops", "0.9", "--json",          \
              __VA_ARGS__))
    const json_t *j = PLAN(0, "--context", "32768");
    assert_string_equal(json_string_value(json_object_get(json_object_get(j, "weights"), "held")), "mapped");
    assert_true(mentions(json_object_get(j, "notes"), "read from disk again"));
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
    assert_true(mentions(json_object_get(j, "notes"), "maximum is 131072"));
    j = PLAN(0, "--weights-in", "mmap");
    assert_true(number(j, "weights", "resident") > 16e9);
    close_place(&p);
}

/* A session of the published model takes 142 MiB, on a GPU a ring of inputs, in pages of 2 MiB, and 24 KiB
 * per token; 100 of 30 k tokens fit beside the weights. */
static void t_states(void **state)
{
    struct place p;
    open_place(&p);
#define PLAN_GPU(...)                                                                                        \
    json_object_get(                                                                                         \
        run(&p, 0, WORDS("plan", full.dir, "--gpu", "141G", "--sessions", "100", "--json", __VA_ARGS__)),    \
        "state_memory")
    const json_t *j = PLAN_GPU("--context", "30720", "--state-memory", "50G");
    double fixed = number(j, NULL, "fixed"), each = number(j, NULL, "at_context");
    double ring = 28.0 * WORK_RING * (2 * (10240 + 1024) + 4 * 128);
    check_about("the fixed part in MiB", fixed / (1 << 20), 2 * ceil((142 + ring / (1 << 20)) / 2), 1e-3);
    check_about("with 30720 tokens", each, fixed + 30720 * 24576.0, 1e-9);
    assert_int_equal(number(j, NULL, "bound"), 50.0 * (1 << 30));
    assert_int_equal(number(j, NULL, "sessions"), floor(50.0 * (1 << 30) / each));
    j = PLAN_GPU("--context", "30720"); /* in all remaining memory */
    check_note("%.0f sessions of 30720 tokens on a GPU of 141 GiB", number(j, NULL, "sessions"));
    assert_true(number(j, NULL, "sessions") >= 100);
    j = run(&p, 0, WORDS("plan", full.dir, "--gpu", "141G", "--state-memory", "140G", "--json"));
    assert_true(mentions(json_object_get(j, "notes"), "GiB that the model leaves free"));
    close_place(&p);
}

/* Returns the CPU time of child processes, which does not depend on the load. */
static double seconds_of_children(void)
{
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void t_quick(void **state)
{
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
    assert_true(CHECK_SANITIZED || seconds_of_children() - before < 2.5); /* reading 26 GB takes longer */
    program_run(&p.x, &p.o, WORDS("plan", POCKET));
    assert_int_equal(p.o.code, 0);
    assert_non_null(strstr(p.o.out, "upper limits"));
    program_run(&p.x, &p.o, WORDS("inspect", POCKET));
    assert_int_equal(p.o.code, 0);
    assert_non_null(strstr(p.o.out, "holorun can run this model"));
    close_place(&p);
}

/* The text output must not contradict itself. */
static void t_text(void **state)
{
    struct place p;
    open_place(&p);
    program_run(&p.x, &p.o, WORDS("plan", POCKET, "--memory", "24"));
    assert_int_equal(p.o.code, 0);
    check_has(p.o.out, "\nfits: 1 session of 8192 tokens\n", "18.00 GiB usable (free as given 24.00 GiB");
    assert_null(strstr(p.o.out, "not fit"));
    assert_null(strstr(p.o.out, ".."));
    program_run(&p.x, &p.o, WORDS("plan", POCKET, "--context", "20000", "--sessions", "100"));
    assert_int_equal(p.o.code, 1);
    check_has(p.o.out, "\ndoes not fit: 100 sessions of 20000 tokens\n", "the model's maximum is 8192",
              "at most 8192 tokens in each session");
    assert_null(strstr(p.o.out, "\nfits"));
    assert_null(strstr(p.o.out, "sessions of 20000 tokens\n  at most"));
    close_place(&p);
}

static void t_usage(void **state)
{
    struct place p;
    open_place(&p);
    static const struct {
        const char *words[6], *naming;
        int code;
    } wrong[] = {
        {{"plan", POCKET, "--gpu", "24000"}, "--gpu must be a size", 2},
        {{"plan", POCKET, "--gpu", "h900"}, "--gpu must be a size", 2},
        {{"plan", POCKET, "--gpu", "0"}, "--gpu must be a size", 2},
        {{"plan", "assets/pocket"}, "but 'assets/pocket/model' is", 4},
        {{"plan", POCKET, "--gpu", "-1G"}, "--gpu must be a size", 2},
        {{"plan", POCKET, "--gpu", "24Gx"}, "--gpu must be a size", 2},
        {{"plan", POCKET, "--gpu=8G", "--memory", "8G"}, "not both", 2},
        {{"plan", POCKET, "--gpu=a100", "--activations=fp8"}, "A100 SXM, 80 GB does not support fp8", 2},
        {{"plan", POCKET, "--activations=fp8"}, "select one with --gpu", 2},
        {{"plan", POCKET, "--gpu=h100", "--activations=fp8", "--weights=int8"}, "--weights auto or fp8", 2},
        {{"plan", POCKET, "--gpu=h100", "--activations=int8"}, "remove --activations", 2},
        {{"plan", POCKET, "--screen", "640"}, "--screen must be a size", 2},
        {{"plan", "/nonexistent"}, "/nonexistent", 4},
        {{"plan", POCKET, "--state", "bf16"}, "--state must be one of", 2},
        {{"plan", POCKET, "--state", "f8"}, "--state must be one of", 2},
        {{"plan", POCKET, "--state-memory", "0"}, "--state-memory must be a size", 2},
        {{"ask", "--model=" POCKET, "--state-memory=100K", "where?"}, "one session takes 0.65 MiB", 2},
        {{"ask", "--model=" POCKET, "--state-memory=700K", "where?", "assets/pictures/report.png"},
         "not enough memory for",
         3},
        {{"plan", POCKET, "more"}, "unexpected argument 'more'", 2},
        {{"inspect", POCKET, "more"}, "unexpected argument 'more'", 2},
        {{"inspect", "/nonexistent"}, "/nonexistent", 4},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        program_run(&p.x, &p.o, wrong[i].words);
        if (p.o.code != wrong[i].code || !strstr(p.o.err, wrong[i].naming))
            fail_msg("%s: exit %d: %s", wrong[i].naming, p.o.code, p.o.err);
    }
    close_place(&p);
}

/* ---- inspect --------------------------------------------------------------------------------- */

static void t_inspect(void **state)
{
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

/* All errors are reported, and unused tensors are listed. */
static void t_inspect_faults(void **state)
{
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

    tiny_init(&t, 3); /* the embedding is the first tensor that is read */
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

    tiny_init(&t, 3); /* with an invalid config the rest is still checked */
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
    CLAIM("the number of sessions follows from state memory and the size of a state", t_states),
    CLAIM("limits on a GPU are those of its bandwidth, and an excess is reported", t_gpu),
    CLAIM("the reported number of sessions and tokens fits, and not one more", t_fits),
    CLAIM("only headers are read, so the answer is immediate", t_quick),
    CLAIM("wrong sizes and wrong directories are refused by their name", t_usage),
    CLAIM("a directory of the published size is shown completely", t_inspect),
    CLAIM("every error in a model is reported, and unused tensors are listed", t_inspect_faults),
};

CHECK_MAIN_WITH(full_begin(&full), full_free(&full))
