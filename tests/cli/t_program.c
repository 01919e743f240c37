/* t_program.c - tests of the whole program, as a process, without a display: damaged models, invalid images
 * and arguments; the number of lines printed and the exit code.
 */
#include "check.h"
#include "program.h"

#include "base/file.h"
#include "trace/read.h"

#include <fcntl.h>
#include <unistd.h>

#define POCKET "assets/pocket/model"

/* ---- damaged models -------------------------------------------------------------------------- */

/* Replaces the first occurrence by a text of the same length, in place. */
static void damage(const char *file, const char *from, const char *to)
{
    char *data;
    size_t len;
    assert_int_equal(strlen(from), strlen(to));
    assert_int_equal(file_read(file, 64 << 20, &data, &len, NULL), 0);
    char *at = memmem(data, len, from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    assert_int_equal(file_write(file, data, len, NULL), 0);
    free(data);
}

static void damage_model(const char *dir, int which)
{
    static const char index[] = "{\"weight_map\": {\"a\": \"model-00001-of-00002.safetensors\"}}";
    char *weights = xasprintf("%s/model.safetensors", dir), *tokens = xasprintf("%s/tokenizer.json", dir),
         *config = xasprintf("%s/config.json", dir),
         *list = xasprintf("%s/model.safetensors.index.json", dir);
    int fd = -1;
    switch (which) {
    case 0:
        assert_int_equal(unlink(weights), 0);
        assert_int_equal(file_write(list, index, sizeof index - 1, NULL), 0);
        break;
    case 1:
        assert_int_equal(truncate(weights, 1000), 0);
        break;
    case 2: /* header length: 2^56 bytes and more */
        assert_true((fd = open(weights, O_WRONLY)) >= 0);
        assert_int_equal(pwrite(fd, "\1", 1, 7), 1);
        close(fd);
        break;
    case 3:
        damage(weights, "\"shape\":[768,1,4]", "\"shape\":[384,2,4]");
        break;
    case 4:
        damage(config, "\"M-*-M-", "\"M-X-M-");
        break;
    case 5:
        assert_int_equal(truncate(tokens, 9000), 0);
        break;
    default:
        assert_int_equal(unlink(config), 0);
    }
    free(weights);
    free(tokens);
    free(config);
    free(list);
}

static void t_models(void **state)
{
    static const char *const names[][4] = {
        {"model-00001-of-00002.safetensors", "the download is incomplete"},
        {"model.safetensors", "bytes in a file of 1000", "download it again"},
        {"model.safetensors", "the header claims", "download it again"},
        {"conv1d.weight", "[384, 2, 4]", "[768, 1, 4]"},
        {"hybrid_override_pattern", "'X'"},
        {"tokenizer.json", "line"},
        {"config.json", "not a model directory"},
    };
    struct xvfb x;
    OUTCOME(o);
    xvfb_folder(&x);
    char *dir = xvfb_place(&x, "model"), *copy = xasprintf("rm -rf %s && cp -r %s %s", dir, POCKET, dir);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(system(copy), 0);
        damage_model(dir, i);
        program_run(&x, &o, WORDS("ask", "What is this?", "--model", dir));
        ONE_LINE(&o, ERR_MODEL, names[i][0], names[i][1], names[i][2] ? names[i][2] : "");
        assert_string_equal(o.out, "");
    }
    free(copy);
    free(dir);
    xvfb_stop(&x);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Checks that stdout is one object that agrees with the exit code and stderr. */
static void one_object(const struct outcome *o, int code, const char *status)
{
    json_t *json = json_loads(o->out, 0, NULL);
    if (!json || o->code != code || field_int(json, "exit") != code)
        fail_msg("exit %d instead of %d, stdout '%s'", o->code, code, o->out);
    assert_string_equal(field_text(json, "status"), status);
    assert_non_null(strstr(o->err, field_text(json, "error")));
    json_decref(json);
}

static void t_json_failures(void **state)
{
    static const struct {
        int code;
        const char *words[8];
    } cases[] = {
        {ERR_USAGE, {"ask", "--json"}},
        {ERR_USAGE, {"ask", "--bogus", "--json"}},
        {ERR_USAGE, {"ask", "Hello", "--model", POCKET, "--json"}},
        {ERR_ENV, {"ask", "What?", "nowhere.png", "--json"}},
        {ERR_USAGE, {"ground", "--json"}},
        {ERR_ENV, {"ground", "nowhere.png", "it", "--json"}},
        {ERR_ENV,
         {"ground", "tests/cases/eval/pocket/dialog-ticks.png", "it", "--json", "-o", "/no/where.png"}},
        {ERR_MODEL, {"plan", "/nowhere", "--json"}},
        {ERR_USAGE, {"plan", POCKET, "--gpu", "0G", "--json"}},
        {ERR_MODEL, {"inspect", "/nowhere", "--json"}},
        {ERR_USAGE, {"eval", "nowhere.jsonl", "--json"}},
        {ERR_MODEL, {"calibrate", "--json", "-m", "/nowhere"}},
        {ERR_USAGE, {"run", "--json"}},
        {ERR_USAGE, {"run", "one", "two", "-j"}},
        {ERR_ENV, {"run", "one", "-d", ":987", "-j"}},
    };
    struct xvfb x;
    OUTCOME(o);
    xvfb_folder(&x);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program_run(&x, &o, cases[i].words);
        one_object(&o, cases[i].code, "failed");
    }
    program_run(&x, &o, WORDS("ground", "nowhere.png", "it"));
    assert_string_equal(o.out, "");
    program_finish(&x, program_start_into(&x, "/dev/full", WORDS("run", "--json")), &o);
    assert_int_equal(o.code, ERR_USAGE);
    assert_non_null(strstr(o.err, "cannot write to stdout")); /* so there is no object */
    xvfb_stop(&x);
}

static void t_pictures(void **state)
{
    static const char jpeg[] = "\xff\xd8\xff\xe0 and more", ppm[] = "P6 1 1 255 abc";
    struct xvfb x;
    OUTCOME(o);
    xvfb_folder(&x);
    char *photo = xvfb_place(&x, "photo.jpg"), *plain = xvfb_place(&x, "picture.png");
    assert_int_equal(file_write(photo, jpeg, sizeof jpeg - 1, NULL), 0);
    assert_int_equal(file_write(plain, ppm, sizeof ppm - 1, NULL), 0);
    program_run(&x, &o, WORDS("ask", photo, "What?"));
    ONE_LINE(&o, ERR_ENV, "photo.jpg", "file format is JPEG", "only PNG is supported", "convert");
    program_run(&x, &o, WORDS("ground", plain, "it"));
    ONE_LINE(&o, ERR_ENV, "picture.png", "file format is PPM", "only PNG is supported");
    program_run(&x, &o, WORDS("ground", "Search", plain));
    assert_int_equal(o.code, ERR_USAGE);
    assert_non_null(strstr(o.err, "image 'Search' not found; give the image first"));
    program_run(&x, &o, WORDS("ground", plain, ""));
    assert_int_equal(o.code, ERR_USAGE);
    program_run(&x, &o, WORDS("ask", "What", "is", "this"));
    assert_int_equal(o.code, ERR_USAGE);
    assert_non_null(strstr(o.err, "'is' is not an image file; put the question in quotes"));
    program_run(&x, &o, WORDS("ask", "", plain));
    assert_int_equal(o.code, ERR_USAGE);
    program_run(&x, &o, WORDS("ask", "What is the capital of France?", "--model", POCKET));
    ONE_LINE(&o, ERR_USAGE, "this model needs an image", "a PNG");
    assert_string_equal(o.out, "");
    free(photo);
    free(plain);
    xvfb_stop(&x);
}

static void t_facts(void **state)
{
    struct xvfb x;
    OUTCOME(o);
    xvfb_folder(&x);
    program_run(&x, &o, WORDS("version"));
    assert_int_equal(o.code, 0);
    static const char *const lines[] = {"holorun 0.", "\ncompiler   ", "\nkernels    ref ",
                                        "glibc 2.",   "jansson 2.",    "/" POCKET "\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(o.out, lines[i]))
            fail_msg("version lacks '%s': %s", lines[i], o.out);
    assert_null(strstr(o.out, ".."));
    char *nowhere = xvfb_place(&x, "nowhere");
    program_run(&x, &o, WORDS("report", "--runs", nowhere));
    ONE_LINE(&o, ERR_USAGE, "no runs in", nowhere, "--runs");
    free(nowhere);
    program_run(&x, &o, WORDS("policy"));
    assert_non_null(strstr(o.out, "  sending, paying, deleting, granting;"));
    for (const char *line = o.out; *line; line += strcspn(line, "\n"), line += *line == '\n')
        assert_true(strcspn(line, "\n") < 100); /* no patterns */
    program_run(&x, &o, WORDS("policy", "--patterns"));
    assert_non_null(strstr(o.out, "element: "));
    program_run(&x, &o, WORDS("models", "--json"));
    assert_null(strstr(o.out, "00000000"));
    program_run(&x, &o, WORDS("report", "nonsense", "--runs", x.dir));
    ONE_LINE(&o, ERR_USAGE, "run 'nonsense' not found", x.dir);
    program_run(&x, &o, WORDS("report", x.dir));
    ONE_LINE(&o, ERR_USAGE, "is not a run", "events.jsonl");
    xvfb_stop(&x);
}

static void t_quotes(void **state)
{
    struct xvfb x;
    OUTCOME(o);
    xvfb_folder(&x);
    program_run(&x, &o, WORDS("book", "a", "flight", "--dry-run"));
    assert_int_equal(o.code, ERR_USAGE);
    assert_non_null(strstr(o.err, "holorun run \"book a flight\" --dry-run\n"));
    program_run(&x, &o, WORDS("help", "dialcts"));
    assert_non_null(strstr(o.err, "did you mean 'dialects'?"));
    program_run(&x, &o, WORDS("merge", "a"));
    assert_non_null(strstr(o.err, "did you mean 'qa merge'?"));
    program_run(&x, &o, WORDS("qa", "--quiet", "merge", "a", "b"));
    assert_non_null(strstr(o.err, "holorun qa merge [OPTION...] RESULTS..."));
    program_run(&x, &o, WORDS("qa", "merge", "--bogus"));
    assert_non_null(strstr(o.err, "'holorun qa merge --help' lists the options"));
    program_run(&x, &o, WORDS("wait", "--window", "("));
    assert_int_equal(o.code, ERR_USAGE);
    assert_non_null(strstr(o.err, "--window: missing closing parenthesis"));
    program_run(&x, &o, WORDS("run", "Press Save", "--on", "desk:99"));
    ONE_LINE(&o, ERR_USAGE, "--on 'desk:99'", "1280x800");
    program_run(&x, &o, WORDS("run", "Press Save", "--dialect", "holo32", "--fake", "/dev/null"));
    assert_non_null(strstr(o.err, "unknown dialect 'holo32'; did you mean 'holo3'?"));
    program_run(&x, &o, WORDS("help", "nonsense"));
    assert_int_equal(o.code, ERR_USAGE);
    assert_null(strstr(o.err, "holorun run"));
    program_run(&x, &o, WORDS("run", "--dry-run", "pay", "$5", "for", "Ana's", "book"));
    assert_int_equal(o.code, ERR_USAGE);
    assert_non_null(strstr(o.err, "holorun run 'pay $5 for Ana'\\''s book'\n"));
    xvfb_stop(&x);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a damaged model directory gives exit code 4 and one line that names file and fault", t_models),
    CLAIM("with --json a failure is one object with status, exit code and error", t_json_failures),
    CLAIM("an image that is missing or not a PNG is refused with a remedy", t_pictures),
    CLAIM("version lists compiler and libraries; a directory that is not a run is reported", t_facts),
    CLAIM("a task without quotes is suggested with them, whole", t_quotes),
};

CHECK_MAIN()
