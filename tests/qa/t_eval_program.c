/* t_eval_program.c - tests of `holorun eval`: its results, resuming, and converted sets.
 */
#include "check.h"
#include "program.h"

#include "base/clock.h"
#include "base/file.h"
#include "eval/eval.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define POCKET  "tests/cases/eval/pocket/eval.jsonl"
#define CONVERT "tests/cases/eval/convert/"

/* ---- a directory for the program --------------------------------------------------------------------- */

static struct xvfb place_begin(void)
{
    struct xvfb x;
    xvfb_folder(&x);
    return x;
}

static char *text_of_file(const char *path)
{
    struct err e = ERR_INIT;
    static char *data;
    size_t len;
    if (file_read(path, 16 << 20, &data, &len, &e))
        fail_msg("%s", e.text);
    return data;
}

static int lines_of(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static json_t *json_of(const char *text)
{
    json_t *v = json_loads(text, 0, NULL);
    if (!v)
        fail_msg("not JSON: %s", text);
    return v;
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Returns a results file without its times. */
static char *timeless(const char *path)
{
    char *text = text_of_file(path);
    struct buf out;
    buf_init(&out, 16 << 20);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *v = json_of(line);
        json_object_del(v, "ms");
        char *plain = json_dumps(v, JSON_COMPACT);
        buf_printf(&out, "%s\n", plain);
        free(plain);
        json_decref(v);
    }
    free(text);
    char *result = buf_take(&out);
    buf_free(&out);
    return result;
}

static void t_embedded(void **state)
{
    struct xvfb x = place_begin();
    OUTCOME(o);
    char *results = xvfb_place(&x, "r.jsonl");
    program_run(&x, &o, WORDS("eval", POCKET, "--results", results, "--json"));
    if (o.code)
        fail_msg("%d: %s", o.code, o.err);
    json_t *v = json_of(o.out), *all = json_object_get(v, "all");
    int items = (int)json_integer_value(json_object_get(all, "items")),
        hits = (int)json_integer_value(json_object_get(all, "hits"));
    double low, high;
    wilson(hits, items, &low, &high);
    check_note("%d of %d places on screens with unseen words, 95 %% interval %.1f to %.1f %%", hits, items,
               100 * low, 100 * high);
    assert_int_equal(items, 21);
    assert_true(hits >= 19);
    assert_int_equal(json_array_size(json_object_get(v, "groups")), 10); /* 5 pages, 5 kinds of element */
    const json_t *interval = json_object_get(all, "interval");
    assert_true(fabs(json_number_value(json_array_get(interval, 0)) - low) < 1e-5);
    json_decref(v);

    char *text = text_of_file(results);
    assert_int_equal(lines_of(text), 22);
    v = json_of(strtok(strchr(text, '\n') + 1, "\n"));
    static const char *const fields[] = {"id",  "image",   "instruction",  "box",     "tags", "pred",
                                         "raw", "correct", "wrong_format", "dist_px", "ms",   "tokens",
                                         "p"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        assert_non_null(json_object_get(v, fields[i]));
    json_decref(v);
    free(text);
    free(results);
}

/* Compares confidence with correctness, in the results of a whole set. */
static void t_reliability(void **state)
{
    if (system("python3 -c 'import json' 2>/dev/null")) {
        printf("           Python is not installed\n");
        skip();
    }
    struct xvfb x = place_begin();
    OUTCOME(o);
    char *results = xvfb_place(&x, "r.jsonl");
    program_run(&x, &o, WORDS("eval", POCKET, "--limit", "8", "-o", results));
    assert_int_equal(o.code, 0);
    char *table = xasprintf("python3 -B assets/eval/reliability.py --bins 1 %s >%s.md", results, results),
         *path = xasprintf("%s.md", results);
    assert_int_equal(system(table), 0);
    char *text = text_of_file(path);
    check_has(text, "\n| 0.00-1.00 | 8 | ", "of 8 | ");
    free(text);
    free(path);
    free(table);
    free(results);
}

static void t_only(void **state)
{
    struct xvfb x = place_begin();
    OUTCOME(o);
    char *results = xvfb_place(&x, "r.jsonl");
    program_run(&x, &o, WORDS("eval", POCKET, "--only", "page=dialog-ticks", "--limit", "2", "-o", results));
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "\npage = dialog-ticks "));
    assert_null(strstr(o.out, "dialog-fields"));
    /* the results of --only are not in that file; --resume asks the missing items */
    program_run(&x, &o, WORDS("eval", POCKET, "--only", "tick", "-o", results, "--resume", "--json"));
    assert_int_equal(o.code, 0);
    json_t *v = json_of(o.out);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(v, "all"), "items")), 3);
    json_decref(v);
    char *text = text_of_file(results);
    assert_int_equal(lines_of(text), 1 + 3); /* two of them were already there */
    free(text);
    program_run(&x, &o, WORDS("eval", POCKET, "--only", "page=nowhere", "-o", results));
    ONE_LINE(&o, ERR_USAGE, "page=nowhere");
    free(results);
}

static void t_resume(void **state)
{
    struct xvfb x = place_begin();
    OUTCOME(o);
    char *whole = xvfb_place(&x, "whole.jsonl"), *killed = xvfb_place(&x, "killed.jsonl"), *text = NULL;
    program_run(&x, &o, WORDS("eval", POCKET, "-o", whole, "-n", "12"));
    assert_int_equal(o.code, 0);

    pid_t pid = program_start(&x, WORDS("eval", POCKET, "-o", killed, "-n", "12", "--threads", "1"));
    for (int i = 0; i < 2000 && (!text || lines_of(text) < 4); i++) {
        clock_sleep_ms(5);
        free(text);
        text = file_exists(killed) ? text_of_file(killed) : xstrdup("");
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    free(text);
    text = text_of_file(killed);
    int left = lines_of(text);
    check_note("killed after %d of 12 items", left - 1);
    assert_in_range(left, 4, 12);

    /* a line that was truncated by the kill */
    char *torn = xasprintf("%s{\"id\":\"dialog-o", text);
    assert_int_equal(file_write(killed, torn, strlen(torn), NULL), 0);
    program_run(&x, &o, WORDS("eval", POCKET, "-o", killed, "-n", "12", "--resume"));
    assert_int_equal(o.code, 0);
    char *a = timeless(whole), *b = timeless(killed);
    assert_string_equal(a, b);
    free(a);
    free(b);
    free(torn);
    free(text);
    free(whole);
    free(killed);
}

static void t_standard_place(void **state)
{
    struct xvfb x = place_begin();
    OUTCOME(o);
    char *home = xvfb_place(&x, "state"),
         *before = getenv("XDG_STATE_HOME") ? xstrdup(getenv("XDG_STATE_HOME")) : NULL;
    setenv("XDG_STATE_HOME", home, 1);
    program_run(&x, &o, WORDS("eval", POCKET, "--resume", "--json"));
    ONE_LINE(&o, ERR_USAGE, "no results of 'eval'", "to resume");
    char *paths[2];
    for (int i = 0; i < 2; i++) { /* a second run is allowed */
        if (i)
            clock_sleep_ms(1001);
        program_run(&x, &o, WORDS("eval", POCKET, "-n", "1", "--json"));
        assert_int_equal(o.code, 0);
        json_t *json = json_loads(o.out, 0, NULL);
        paths[i] = xstrdup(json_string_value(json_object_get(json, "results")));
        json_decref(json);
        assert_memory_equal(paths[i], home, strlen(home));
        assert_non_null(strstr(paths[i], "/holorun/eval/eval-2"));
        assert_true(file_exists(paths[i]));
    }
    assert_string_not_equal(paths[0], paths[1]);
    program_run(&x, &o, WORDS("eval", POCKET, "-n", "2", "--json", "--resume"));
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, paths[1])); /* the newest file */
    if (before)
        setenv("XDG_STATE_HOME", before, 1);
    else
        unsetenv("XDG_STATE_HOME");
    for (int i = 0; i < 2; i++)
        free(paths[i]);
    free(before);
    free(home);
}

static void t_resume_refused(void **state)
{
    struct xvfb x = place_begin();
    OUTCOME(o);
    char *results = xvfb_place(&x, "r.jsonl");
    program_run(&x, &o, WORDS("eval", POCKET, "-o", results, "-n", "1"));
    assert_int_equal(o.code, 0);
    program_run(&x, &o, WORDS("eval", POCKET, "-o", results, "-n", "1"));
    ONE_LINE(&o, ERR_USAGE, "r.jsonl", "--resume");
    program_run(&x, &o, WORDS("eval", POCKET, "-o", results, "--resume", "--free"));
    ONE_LINE(&o, ERR_USAGE, "r.jsonl", "free");
    program_run(&x, &o, WORDS("eval", CONVERT "webclick.out", "-o", results, "--resume"));
    ONE_LINE(&o, ERR_USAGE, "r.jsonl", "different set");
    char *other = xvfb_put(&x, "other.jsonl", "{\"id\": 1}\n");
    program_run(&x, &o, WORDS("eval", POCKET, "-o", other, "--resume"));
    ONE_LINE(&o, ERR_USAGE, "other.jsonl", "not a results file");
    char *text = text_of_file(results), *twice = xasprintf("%s%s", text, strchr(text, '\n') + 1),
         *path = xvfb_put(&x, "twice.jsonl", twice);
    program_run(&x, &o, WORDS("eval", POCKET, "-o", path, "--resume"));
    ONE_LINE(&o, ERR_USAGE, "twice.jsonl", "line 3", "second result");
    free(path);
    free(twice);
    free(text);
    free(other);
    free(results);
}

static void t_broken(void **state)
{
    struct xvfb x = place_begin();
    OUTCOME(o);
    char cwd[1024];
    assert_non_null(getcwd(cwd, sizeof cwd));
    char *set = xasprintf(
        "{\"id\": \"gone\", \"image\": \"gone.png\", \"instruction\": \"Save\", \"box\": [1, 2, 3, 4]}\n"
        "{\"id\": \"photo\", \"image\": \"photo.jpg\", \"instruction\": \"Save\", \"box\": [1, 2, 3, 4]}\n"
        "{\"id\": \"good\", \"image\": \"%s/tests/cases/eval/pocket/dialog-fields.png\", \"instruction\": "
        "\"Save\", \"box\": [500, 205, 620, 245]}\n",
        cwd);
    char *path = xvfb_put(&x, "set.jsonl", set),
         *photo = xvfb_put(&x, "photo.jpg", "\xff\xd8\xff\xe0 no PNG"), *results = xvfb_place(&x, "r.jsonl");
    program_run(&x, &o, WORDS("eval", path, "-o", results, "--json"));
    assert_int_equal(o.code, ERR_ENV);
    check_has(o.err, "'gone'", "gone.png", "photo.jpg", "2 of 3 items");
    json_t *v = json_of(o.out), *all = json_object_get(v, "all");
    assert_int_equal(json_integer_value(json_object_get(all, "items")), 1);
    assert_int_equal(json_integer_value(json_object_get(all, "hits")), 1);
    assert_int_equal(json_integer_value(json_object_get(all, "broken")), 2);
    json_decref(v);
    free(set);
    free(path);
    free(photo);
    free(results);
}

static void t_usage(void **state)
{
    struct xvfb x = place_begin();
    OUTCOME(o);
    char *empty = xvfb_put(&x, "empty.jsonl", ""),
         *bad = xvfb_put(&x, "bad.jsonl", "{\"image\": \"a.png\"\n"),
         *nowhere = xvfb_place(&x, "no/such/folder/r.jsonl"), *gone = xvfb_place(&x, "gone.jsonl");
    program_run(&x, &o, WORDS("eval", gone));
    ONE_LINE(&o, ERR_USAGE, "gone.jsonl", "No such file");
    program_run(&x, &o, WORDS("eval", empty));
    ONE_LINE(&o, ERR_USAGE, "empty.jsonl", "no items");
    program_run(&x, &o, WORDS("eval", bad));
    ONE_LINE(&o, ERR_USAGE, "bad.jsonl", "line 1");
    program_run(&x, &o, WORDS("eval", POCKET, "-o", nowhere));
    ONE_LINE(&o, ERR_ENV, "no/such/folder");
    program_run(&x, &o, WORDS("eval", POCKET, "--dialect", "openai-computer", "-o", nowhere));
    ONE_LINE(&o, ERR_USAGE, "openai-computer", "position");

    /* if the disk fills up after some items, the results so far are kept and an error is reported */
    char *results = xvfb_place(&x, "full.jsonl");
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){1500, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    pid_t pid = program_start(&x, WORDS("eval", POCKET, "-o", results, "--json"));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    program_finish(&x, pid, &o);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(o.code, ERR_ENV);
    assert_non_null(strstr(o.err, "full.jsonl"));
    char *text = text_of_file(results);
    assert_in_range(lines_of(text), 2, 10);
    free(text);
    free(results);
    free(empty);
    free(bad);
    free(nowhere);
    free(gone);
}

/* ---- converters ------------------------------------------------------------------------------ */

static const struct {
    const char *layout, *files, *out;
    int hits, items;
} layouts[] = {
    {"screenspot", CONVERT "screenspot_web.json " CONVERT "screenspot_desktop_v2.json", "screenspot.out", 3,
     3},
    {"screenspot-hf", CONVERT "screenspot-hf.jsonl", "screenspot-hf.out", 2, 2},
    {"screenspot-pro", CONVERT "pro_linux.json", "screenspot-pro.out", 2, 2},
    {"osworld-g", CONVERT "osworld-g.json", "osworld-g.out", 3, 3},
    {"webclick", CONVERT "webclick.jsonl", "webclick.out", 2, 2},
    {"groundui", CONVERT "groundui.jsonl", "groundui.out", 2, 2},
};

static void t_convert(void **state)
{
    struct xvfb x = place_begin();
    OUTCOME(o);
    if (!program_exists("jq")) {
        check_note("jq is missing");
        skip();
    }
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        char *got = xvfb_place(&x, "got"), *want = xasprintf(CONVERT "%s", layouts[i].out),
             *results = xasprintf("%s/%s", x.dir, layouts[i].out);
        char *command = xasprintf("sh assets/eval/convert.sh %s --images ../pocket %s >'%s'",
                                  layouts[i].layout, layouts[i].files, got);
        assert_int_equal(system(command), 0);
        char *a = text_of_file(got), *b = text_of_file(want);
        assert_string_equal(a, b);
        program_run(&x, &o, WORDS("eval", want, "-o", results, "--json"));
        if (o.code)
            fail_msg("%s: %s", layouts[i].layout, o.err);
        json_t *v = json_of(o.out), *all = json_object_get(v, "all");
        assert_int_equal(json_integer_value(json_object_get(all, "items")), layouts[i].items);
        assert_int_equal(json_integer_value(json_object_get(all, "hits")), layouts[i].hits);
        json_decref(v);
        free(a);
        free(b);
        free(command);
        free(got);
        free(want);
        free(results);
    }
    assert_int_not_equal(
        system("sh assets/eval/convert.sh webclick " CONVERT "osworld-g.json >/dev/null 2>&1"), 0);
}

static void t_parquet(void **state)
{
    if (!program_exists("jq") || system("python3 -c 'import pyarrow, PIL' 2>/dev/null")) {
        check_note("jq, or pyarrow and Pillow for python3, are missing");
        skip();
    }
    struct xvfb x = place_begin();
    OUTCOME(o);
    char cwd[1024];
    assert_non_null(getcwd(cwd, sizeof cwd));
    char *command = xasprintf("cd '%s' && sh '%s/assets/eval/convert.sh' webclick --images shots '%s/" CONVERT
                              "table.parquet' >set.jsonl && test $(ls shots | wc -l) = 1",
                              x.dir, cwd, cwd);
    assert_int_equal(system(command), 0);
    char *set = xvfb_place(&x, "set.jsonl"), *results = xvfb_place(&x, "r.jsonl");
    program_run(&x, &o, WORDS("eval", set, "-o", results, "--json"));
    assert_int_equal(o.code, 0);
    json_t *v = json_of(o.out);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(v, "all"), "hits")), 2);
    json_decref(v);
    free(set);
    free(results);
    free(command);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the embedded model finds the requested elements on screens with unseen words", t_embedded),
    CLAIM("a table compares confidence with correctness", t_reliability),
    CLAIM("a group or the first items alone can be selected", t_only),
    CLAIM("a run that was killed and resumed gives the same results", t_resume),
    CLAIM("results are stored in the state directory by time, and --resume uses the newest",
          t_standard_place),
    CLAIM("results of another set or other options cannot be resumed", t_resume_refused),
    CLAIM("unreadable images are named and do not count in the rate", t_broken),
    CLAIM("files that cannot be read or written give one error line", t_usage),
    CLAIM("every layout is converted line by line and can be scored", t_convert),
    CLAIM("a parquet table is converted with its images", t_parquet),
};

CHECK_MAIN()
