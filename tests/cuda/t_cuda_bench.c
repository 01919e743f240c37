/* t_cuda_bench.c - tests that each section of `holorun bench` runs on the device and prints finite numbers.
 *
 * Sizes are those of --random tiny, because without a GPU the kernels are emulated.  Speed is not tested.
 */
#include "check.h"
#include "lab.h"

#include "bench/subject.h"
#include "emu/emu.h"
#include "session/session.h"

#include <jansson.h>
#include <math.h>
#include <unistd.h>

static struct backend *gpu;

/* Returns the output of a section as a JSON array. */
static json_t *rows_of(const char *section, enum weight_storage weights)
{
    struct err e = ERR_INIT;
    struct bench k = {.device = "cuda",
                      .random = "tiny",
                      .section = section,
                      .weights = (int)weights,
                      .threads = 1,
                      .repeat = 1,
                      .json = true,
                      .b = gpu};
    char *text = NULL;
    FILE *out = tmpfile();
    fflush(stdout);
    int keep = dup(STDOUT_FILENO);
    dup2(fileno(out), STDOUT_FILENO);
    if (!strcmp(section, "peak") || !strcmp(section, "fleet"))
        bench_peak(&k);
    else
        k.peak_f32 = k.peak_bf16 = k.memory = 1; /* fake limits: measuring them takes a second on the CPU */
    if (bench_has_section(&k, "kernels"))
        bench_kernels(&k);
    bool model = strcmp(section, "peak") != 0 && strcmp(section, "kernels") != 0;
    int rc = model ? bench_model(&k, &e) : 0;
    fflush(stdout);
    dup2(keep, STDOUT_FILENO);
    close(keep);
    if (rc)
        fail_msg("section %s: %s", section, e.text);
    rewind(out);
    json_t *rows = json_array();
    for (size_t room = 0; getline(&text, &room, out) > 0;) {
        json_error_t why;
        json_t *row = json_loads(text, 0, &why);
        if (!row)
            fail_msg("section %s: %s in: %s", section, why.text, text);
        json_array_append_new(rows, row);
    }
    free(text);
    fclose(out);
    return rows;
}

static double number(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

static void check_rows(json_t *rows, const char *section)
{
    json_t *row, *value;
    const char *key;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        assert_string_equal(json_string_value(json_object_get(row, "section")),
                            section[0] == 'f' && i < 3 ? "peak" : section);
        assert_string_equal(json_string_value(json_object_get(row, "isa")), "cuda");
        json_object_foreach(row, key, value)
        {
            assert_false(json_is_null(value));
            if (json_is_number(value))
                assert_true(isfinite(json_number_value(value)));
        }
        if (!json_object_get(row, "value"))
            assert_true(number(row, "median_ms") > 0 && number(row, "runs") >= 1);
    }
}

static void t_sections(void **state)
{
    static const struct {
        const char *name;
        size_t rows;
    } sections[] = {{"peak", 3},        {"kernels", 33}, {"vision", 4}, {"prefill", 1}, {"decode", 1},
                    {"concurrency", 2}, {"session", 8},  {"drift", 25}, {"peers", 2}};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        json_t *rows = rows_of(sections[i].name, WEIGHTS_AUTO);
        clock_gettime(CLOCK_MONOTONIC, &b);
        check_note("%-12s %zu rows, %.2f s", sections[i].name, json_array_size(rows),
                   (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec));
        assert_true(json_array_size(rows) >= sections[i].rows);
        check_rows(rows, sections[i].name);
        json_decref(rows);
    }
}

static const json_t *named(json_t *rows, const char *part)
{
    json_t *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        if (strstr(json_string_value(json_object_get(row, "name")), part))
            return row;
    }
    fail_msg("row '%s' not found", part);
    return NULL;
}

static void t_fleet(void **state)
{
    json_t *rows = rows_of("fleet", WEIGHTS_AUTO);
    check_rows(rows, "fleet");
    static const char *const parts[] = {
        "matrix products",  "copying",  "3 tiles",      "1 session after",     "2 sessions after",
        "3 sessions after", "7 forced", "3 sessions: ", "memory of a session", "memory per token"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        named(rows, parts[i]);
    check_note("a session takes %.3f MiB", number(named(rows, "memory of a session"), "value"));
    json_decref(rows);
}

static void t_small_numbers(void **state)
{
    for (int weights = WEIGHTS_INT8; weights <= WEIGHTS_FP8; weights++) {
        json_t *rows = rows_of("decode", (enum weight_storage)weights);
        check_rows(rows, "decode");
        assert_true(json_array_size(rows) > 0);
        json_decref(rows);
    }
}

/* Compares the memory that rows request before a measurement with the memory that sessions and checkpoints
 * use. */
static void t_memory(void **state)
{
    enum { SESSIONS = 3, TOKENS = 700 };
    if (!&emu_card)
        skip();
    struct err e = ERR_INIT;
    struct bench k = {
        .device = "cuda", .random = "tiny", .section = "fleet", .threads = 1, .repeat = 1, .b = gpu};
    struct subject m;
    struct session *s[SESSIONS];
    struct checkpoint *c[SESSIONS];
    for (int kv = 0; kv < 2; kv++) {
        k.kv = kv ? KV_FP8 : KV_AUTO;
        if (subject_open(&m, &k, &e))
            fail_msg("%s", e.text);
        subject_fork(&m, s, SESSIONS, TOKENS);
        subject_free_forks(s, SESSIONS); /* the engine's pool keeps their memory */
        double left = subject_memory_free(&m);
        size_t before = emu_card.used;
        subject_fork(&m, s, SESSIONS, TOKENS);
        size_t sessions = emu_card.used - before;
        assert_true(left - subject_memory_free(&m) >= (double)sessions);
        for (int i = 0; i < SESSIONS; i++)
            c[i] = session_checkpoint(s[i]);
        size_t marks = emu_card.used - before - sessions, each = subject_session_memory(&m, TOKENS),
               mark = subject_checkpoint_memory(&m);
        check_note("a session of %d tokens: %zu bytes asked for, %.0f taken; a checkpoint: %zu, %.0f", TOKENS,
                   each, (double)sessions / SESSIONS, mark, (double)marks / SESSIONS);
        assert_true(SESSIONS * each <= sessions && sessions < SESSIONS * each + each / 8);
        assert_true(SESSIONS * mark <= marks && marks < SESSIONS * mark + mark / 8);
        assert_true(subject_fits(&m, SESSIONS, TOKENS, 0));
        emu_card.memory = emu_card.used + 2 * each; /* as if other programs used the rest */
        assert_false(subject_fits(&m, SESSIONS, TOKENS, 0));
        emu_card.memory = emu_card.used + 4 * each;
        assert_true(subject_fits(&m, SESSIONS, TOKENS, 0));
        assert_false(subject_fits(&m, SESSIONS, TOKENS, (int)(each / mark) + 1));
        emu_card.memory = (size_t)8 << 30;
        for (int i = 0; i < SESSIONS; i++)
            checkpoint_free(c[i]);
        subject_free_forks(s, SESSIONS);
        subject_close(&m);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("every section of bench except step, whose prompt is long, prints finite numbers on the device",
          t_sections),
    CLAIM("the fleet section prints all of its rows", t_fleet),
    CLAIM("synthetic weights in int8, int4 and fp8 work", t_small_numbers),
    CLAIM("the memory that rows request is the memory that their sessions and checkpoints use", t_memory),
};

CHECK_MAIN_WITH(gpu = lab_gpu(), backend_free(gpu))
