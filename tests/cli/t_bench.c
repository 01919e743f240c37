/* t_bench.c - tests of `holorun bench`: it runs, its output can be parsed, and its parts add up.  Speed is
 * not tested.
 */
#include "check.h"
#include "program.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "session/session.h"
#include "text/tokenizer.h"

#include <glob.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <unistd.h>

#define MODEL "assets/pocket/model"
#define SECTIONS                                                                                             \
    "peak", "vision", "prefill", "decode", "concurrency", "peers", "session", "step", "drift", "threads"

/* Creates a directory for the program's output and temporary files. */
static void open_place(struct xvfb *x)
{
    xvfb_folder(x);
    setenv("XDG_RUNTIME_DIR", x->dir, 1);
}

/* Fails if the program has left a file. */
static void close_place(struct xvfb *x)
{
    static const char *const names[] = {"out", "err"};
    for (int i = 0; i < 2; i++) {
        char *path = xvfb_place(x, names[i]);
        unlink(path);
        free(path);
    }
    char *own = xvfb_place(x, "holorun");
    rmdir(own);
    free(own);
    assert_int_equal(rmdir(x->dir), 0);
}

static json_t *known; /* rows by section */

/* Returns the rows of a section, borrowed.  Each section runs once, unless it is removed from `known`. */
static json_t *rows_of(const char *section)
{
    json_t *rows = json_object_get(known, section);
    if (rows)
        return rows;
    struct xvfb x;
    OUTCOME(o);
    open_place(&x);
    bool few = !strcmp(section, "threads"); /* fewer tokens: 64 replies take seconds */
    program_run(&x, &o,
                WORDS("bench", "--json", "--repeat", "1", "--section", section, few ? "--random" : "--model",
                      few ? "tiny" : MODEL));
    if (o.code)
        fail_msg("section %s: exit %d, %s", section, o.code, o.err);
    rows = json_array();
    for (char *rest = o.out, *line; (line = strsep(&rest, "\n")) && *line;) {
        json_error_t why;
        json_t *row = json_loads(line, JSON_REJECT_DUPLICATES, &why);
        if (!row)
            fail_msg("section %s: %s in: %s", section, why.text, line);
        json_array_append_new(rows, row);
    }
    close_place(&x);
    known = known ? known : json_object();
    json_object_set_new(known, section, rows);
    return rows;
}

static double number(const json_t *row, const char *key)
{
    const json_t *v = json_object_get(row, key);
    if (!json_is_number(v))
        fail_msg("'%s' of '%s' is not a number", key, json_string_value(json_object_get(row, "name")));
    return json_number_value(v);
}

static void check_row(const json_t *row, const char *section)
{
    const char *key;
    json_t *value;
    assert_string_equal(json_string_value(json_object_get(row, "section")), section);
    assert_true(json_string_length(json_object_get(row, "name")) > 0);
    assert_true(number(row, "threads") >= 1);
    json_object_foreach((json_t *)(uintptr_t)row, key, value) if (json_is_number(value))
        assert_true(isfinite(json_number_value(value)));
    if (json_object_get(row, "value")) {
        assert_true(number(row, "value") >= 0);
        return;
    }
    assert_true(number(row, "runs") >= 1);
    assert_true(number(row, "min_ms") >= 0 && number(row, "min_ms") <= number(row, "median_ms"));
    if (json_object_get(row, "of_peak"))
        assert_true(number(row, "gflop_s") > 0);
    if (json_object_get(row, "of_memory"))
        assert_true(number(row, "gb_s") > 0);
}

static void t_sections(void **state)
{
    static const char *const names[] = {SECTIONS};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *rows = rows_of(names[i]), *row;
        size_t n;
        json_array_foreach(rows, n, row) check_row(row, names[i]);
        check_note("%s: %zu rows", names[i], json_array_size(rows));
        assert_true(json_array_size(rows) > 1);
    }
}

/* Returns the rows of a comparison on the text of a file. */
static json_t *rounding(const char *from, const char *windows)
{
    struct xvfb x;
    OUTCOME(o);
    json_t *rows = json_array();
    open_place(&x);
    program_run(&x, &o,
                WORDS("bench", "--json", "--section", "drift", "--model", MODEL, "--text", "README.md",
                      "--window", "64", "--choices", "stored,int4", "--from", from, "--windows", windows));
    if (o.code)
        fail_msg("exit %d, %s", o.code, o.err);
    for (char *rest = o.out, *line; (line = strsep(&rest, "\n")) && *line;)
        json_array_append_new(rows, json_loads(line, JSON_REJECT_DUPLICATES, NULL));
    close_place(&x);
    return rows;
}

/* Returns the sum of -log p over the first 64 tokens of the text, computed token by token in f32. */
static double by_decoding(void)
{
    struct err e = ERR_INIT;
    struct engine *g = engine_open(&(struct engine_options){.dir = MODEL, .threads = 1, .f32 = true}, &e);
    struct session *s = session_new(g, 1);
    struct tokens ids = {0};
    char *text = NULL;
    size_t len = 0;
    double sum = 0;
    assert_int_equal(file_read("README.md", 1 << 20, &text, &len, &e), 0);
    tokenizer_encode(engine_tokenizer(g), text, len, false, &ids);
    for (int i = 0; i < 63; i++) {
        double all = 0;
        assert_int_equal(session_append(s, ids.ids + i, 1, &e), 0);
        const float *logits = session_logits(s);
        for (int k = 0; k < engine_vocab(g); k++)
            all += exp((double)logits[k]);
        sum += log(all) - (double)logits[ids.ids[i + 1]];
    }
    free(text);
    tokens_free(&ids);
    session_free(s);
    engine_close(g);
    return sum;
}

static void t_rounding(void **state)
{
    json_t *rows = rounding("0", "2"), *again = rounding("1", "1");
    assert_int_equal(json_array_size(rows), 4); /* two options, two windows */
    assert_int_equal(json_array_size(again), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *stored = json_array_get(rows, i), *int4 = json_array_get(rows, 2 + i);
        assert_true(number(stored, "rows") == 63 && number(stored, "same") <= 63);
        assert_true(number(stored, "window") == (double)i && number(int4, "window") == (double)i);
        assert_true(number(stored, "kl") >= 0 && number(stored, "kl") < number(int4, "kl"));
        assert_true(number(stored, "nll_exact") == number(int4, "nll_exact"));
        assert_true(number(stored, "nll") > 0 && number(stored, "nll") != number(stored, "nll_exact"));
        const json_t *later = json_array_get(again, i), *same = json_array_get(rows, 2 * i + 1);
        assert_true(number(later, "kl") == number(same, "kl") && number(later, "nll") == number(same, "nll"));
    }
    double want = by_decoding(), have = number(json_array_get(rows, 0), "nll_exact");
    check_note("%.6f nat by decoding, %.6f in one batch", want, have);
    assert_true(fabs(want - have) < 1e-4 * want);
    json_decref(again);
    json_decref(rows);
}

static void t_rounding_refusals(void **state)
{
    static const struct {
        const char *words[5], *says;
    } cases[] = {
        {{"--section", "decode", "--text", "README.md"}, "--section drift"},
        {{"--section", "drift", "--text", "README.md", "--choices=int4,int3"},
         "unknown option 'int3' in --choices; the options are default, stored, bf16"},
        {{"--section", "drift", "--text", "README.md", "--from=100000"}, "too few for window 100000"},
        {{"--section", "drift", "--text", "no-such-file"}, "no-such-file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xvfb x;
        OUTCOME(o);
        const char *const *w = cases[i].words;
        open_place(&x);
        program_run(&x, &o, WORDS("bench", "--model", MODEL, w[0], w[1], w[2], w[3], w[4] ? w[4] : "--json"));
        assert_true(o.code != 0);
        if (!strstr(o.err, cases[i].says))
            fail_msg("'%s' is not in: %s", cases[i].says, o.err);
        close_place(&x);
    }
}

static void t_step_adds_up(void **state)
{
    json_t *rows = rows_of("step");
    size_t last = json_array_size(rows) - 1;
    double parts = 0, whole = number(json_array_get(rows, last), "median_ms");
    for (size_t i = 0; i < last; i++)
        parts += number(json_array_get(rows, i), "median_ms");
    check_note("%zu parts: %.2f ms of %.2f ms", last, parts, whole);
    assert_true(last > 1 && fabs(parts - whole) <= 0.02 * whole);
}

static const json_t *row_named(const char *section, const char *name)
{
    json_t *row;
    size_t n;
    json_array_foreach(rows_of(section), n, row)
    {
        if (!strcmp(json_string_value(json_object_get(row, "name")), name))
            return row;
    }
    fail_msg("section %s has no row '%s'", section, name);
    return NULL;
}

/* Returns the shortest time of a row, including earlier runs. */
static double shortest(const char *section, const char *name, double before)
{
    return fmin(before, number(row_named(section, name), "min_ms"));
}

/* Appending is lazy: without a request for logits, appended tokens cost no more than a rewind.  Another
 * program may use the CPU during one of three measurements, but not during all. */
static void t_computed(void **state)
{
    double back = INFINITY, many = INFINITY, one = INFINITY;
    bool computed = false;
    for (int i = 0; i < 10 && !computed; i++) {
        back = shortest("session", "rewind", back);
        many = shortest("prefill", "64 tokens", many);
        one = shortest("decode", "one token after 512", one);
        computed = many > 2 * back && one > 2 * back;
        for (size_t k = 0; k < 3 && !computed; k++)
            json_object_del(known, (const char *const[]){"session", "prefill", "decode"}[k]);
    }
    check_note("going back %.3f ms, one token %.3f ms, 64 tokens %.3f ms", back, one, many);
    assert_true(computed);
}

static int lines(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void t_table(void **state)
{
    struct xvfb x;
    OUTCOME(o);
    open_place(&x);
    size_t rows = json_array_size(rows_of("vision"));
    program_run(&x, &o, WORDS("bench", "--repeat", "1", "-s", "vision", "--model", MODEL));
    assert_int_equal(o.code, 0);
    assert_int_equal(lines(o.out), (int)rows + 2); /* and two lines of header */
    assert_non_null(strstr(o.out, "of peak"));
    close_place(&x);
}

static void refused(const struct xvfb *x, int code, const char *what, const char *const *words)
{
    OUTCOME(o);
    program_run(x, &o, words);
    bool quiet = !*o.out || (lines(o.out) == 1 && strstr(o.out, "\"failed\"")); /* with --json one object */
    if (o.code != code || !quiet || !strstr(o.err, what))
        fail_msg("exit %d, stdout '%s', stderr '%s'", o.code, o.out, o.err);
    printf("           %d  %.*s\n", code, (int)strcspn(o.err, "\n"), o.err);
}

static void t_refused(void **state)
{
    struct xvfb x;
    open_place(&x);
    refused(&x, ERR_USAGE, "unknown section 'nope'", WORDS("bench", "--section", "nope"));
    refused(&x, ERR_USAGE, "'please'", WORDS("bench", "please"));
    refused(&x, ERR_USAGE, "repeat", WORDS("bench", "--repeat", "0"));
    refused(&x, ERR_USAGE, "holotron-12b", WORDS("bench", "--random", "nope"));
    refused(&x, ERR_USAGE, "variable $HOLORUN_ISA", WORDS("bench", "--isa", "z80"));
    refused(&x, ERR_MODEL, "/nowhere", WORDS("bench", "-s", "decode", "--json", "--model", "/nowhere"));
    close_place(&x);
}

/* Interrupts the program while its temporary model exists. */
static void t_interrupted(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++) {
        struct xvfb x;
        OUTCOME(o);
        open_place(&x);
        char *made = xvfb_place(&x, "holorun/random-*/model.safetensors");
        pid_t pid =
            program_start(&x, WORDS("bench", "--repeat", "1000", "-s", "prefill", "--random", "tiny"));
        glob_t found = {0};
        for (int ms = 0; ms < 20000 && glob(made, 0, NULL, &found); ms += 10)
            clock_sleep_ms(10);
        assert_int_equal(found.gl_pathc, 1);
        globfree(&found);
        assert_int_equal(kill(pid, signals[i]), 0);
        program_finish(&x, pid, &o);
        assert_int_equal(o.code, -1); /* killed by the signal */
        free(made);
        close_place(&x);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("options compared on a text give the sums of token-by-token decoding, from any start", t_rounding),
    CLAIM("a text without its section, with unknown options, or shorter than the start is refused",
          t_rounding_refusals),
    CLAIM("an interrupted benchmark leaves no file", t_interrupted),
    CLAIM("every section runs, and each line of it is one JSON object with finite numbers", t_sections),
    CLAIM("the parts of a step sum to the step within 2 %", t_step_adds_up),
    CLAIM("timed tokens are computed: a rewind alone takes less than half the time", t_computed),
    CLAIM("the table has a line for each JSON row, and names the limit", t_table),
    CLAIM("an unknown section, argument, instruction set or model is refused with its name", t_refused),
};

CHECK_MAIN_WITH(, json_decref(known))
