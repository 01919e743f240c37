/* t_eval.c - claims about grounding sets: what a set may say, how an answer is scored, how sure a rate is, and
 * that a run which was stopped goes on as if it had not been. */
#include "check.h"
#include "program.h"

#include "base/clock.h"
#include "base/file.h"
#include "eval/results.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define POCKET  "tests/cases/eval/pocket/eval.jsonl"
#define CONVERT "tests/cases/eval/convert/"

/* ---- a folder and the program in it ------------------------------------------------------------------ */

static struct xvfb place_begin(void)
{
    struct xvfb x;
    xvfb_folder(&x);
    return x;
}

static void place_end(struct xvfb *x)
{
    char *command = xasprintf("rm -rf '%s'", x->dir);
    assert_int_equal(system(command), 0);
    free(command);
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

static char *write_file(const struct xvfb *x, const char *name, const char *text)
{
    char *path = xvfb_place(x, name);
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
    return path;
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

/* ---- scoring ------------------------------------------------------------------------------------------- */

static void t_wilson(void **state)
{
    (void)state;
    /* Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table I, score method */
    static const struct {
        int hits, n;
        double low, high;
    } published[] = {
        {81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}};
    double low, high;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        wilson(published[i].hits, published[i].n, &low, &high);
        assert_true(fabs(low - published[i].low) < 5e-5 && fabs(high - published[i].high) < 5e-5);
        wilson(published[i].n - published[i].hits, published[i].n, &low, &high); /* mirrored */
        assert_true(fabs(1 - high - published[i].low) < 5e-5 && fabs(1 - low - published[i].high) < 5e-5);
    }
    wilson(0, 0, &low, &high);
    assert_true(low <= 0 && high >= 1);
    for (int n = 1; n < 40; n++)
        for (int k = 0; k <= n; k++) {
            wilson(k, n, &low, &high);
            assert_true(low >= 0 && high <= 1 && low <= (double)k / n && (double)k / n <= high);
        }
}

static void t_box(void **state)
{
    (void)state;
    double at[] = {10, 20, 30, 40};
    struct target t = {TARGET_BOX, at, 2, 0, 0};
    assert_true(target_holds(&t, 10, 20) && target_holds(&t, 30, 40) && target_holds(&t, 15.5, 39.999));
    assert_false(target_holds(&t, 9.999, 30) || target_holds(&t, 30.001, 30) || target_holds(&t, 15, 40.001));
    assert_true(fabs(target_distance(&t, 33, 44) - 5) < 1e-12);
    t.kind = TARGET_NONE;
    assert_false(target_holds(&t, 15, 30));
}

static void t_polygon(void **state)
{
    (void)state;
    double bent[] = {0, 0, 40, 0, 40, 40, 20, 10, 0, 40};   /* a notch from below */
    double star[] = {50, 0, 79, 90, 2, 35, 98, 35, 21, 90}; /* five points; its middle is outside */
    struct target t = {TARGET_POLY, bent, 5, 0, 0}, s = {TARGET_POLY, star, 5, 0, 0};
    assert_true(target_holds(&t, 5, 20) && target_holds(&t, 35, 20));
    assert_false(target_holds(&t, 20, 20) || target_holds(&t, -1, 5) || target_holds(&t, 41, 5));
    assert_true(target_holds(&t, 20, 0) && target_holds(&t, 40, 17) &&
                target_holds(&t, 20, 10)); /* on its edge */
    assert_true(target_holds(&t, 10, 25)); /* on a slope */
    assert_true(fabs(target_distance(&t, 45, 20) - 5) < 1e-12);
    assert_true(target_holds(&s, 50, 20));
    assert_false(target_holds(&s, 50, 50));
}

static struct eval_answer judged(const char *dialect, const struct target *t, const char *reply, int w, int h)
{
    struct err e = ERR_INIT;
    struct eval_answer a = {0};
    struct dialect *d = dialect_load(dialect, &e);
    if (!d)
        fail_msg("%s", e.text);
    eval_judge(t, d, reply, w, h, &a);
    dialect_free(d);
    return a;
}

static void t_judge(void **state)
{
    (void)state;
    double thin[] = {320.5, 100, 320.9, 300}, parts[] = {0.25, 0.25, 0.5, 0.5}, large[] = {960, 0, 980, 1080};
    const struct target t = {TARGET_BOX, thin, 2, 0, 0}, f = {TARGET_BOX, parts, 2, 1, 1},
                        l = {TARGET_BOX, large, 2, 1920, 1080}, none = {0};
    struct eval_answer a = judged("holo3", &t, "{\"x\": 501, \"y\": 500}", 640, 480);
    assert_true(a.correct && a.placed && fabs(a.x - 320.64) < 1e-9 && fabs(a.y - 240) < 1e-9);
    a = judged("holo3", &t, "{\"x\": 502, \"y\": 500}", 640, 480);
    assert_true(!a.correct && !a.wrong_format && fabs(a.distance - 0.38) < 1e-9);
    assert_true(judged("holo3", &f, "{\"x\": 250, \"y\": 500}", 33, 77).correct);
    assert_false(judged("holo3", &f, "{\"x\": 249, \"y\": 500}", 33, 77).correct);
    assert_true(judged("holo3", &l, "{\"x\": 501, \"y\": 5}", 640, 480).correct);
    assert_true(judged("holo1-abs", &l, "Click(321, 5)", 640, 480).correct);
    assert_true(judged("pocket", &l, "only step<click>Save<at><32><3>\n", 640, 480).correct);

    a = judged("holo3", &t, "Click(1200, 5)", 640, 480);
    assert_true(a.wrong_format && !a.correct && !a.placed);
    a = judged("holo3", &t, "it is at the top", 640, 480);
    assert_true(a.wrong_format && !a.correct);
    assert_true(judged("holo3", &none, " None.\n", 640, 480).correct);
    assert_false(judged("holo3", &none, "none of these", 640, 480).correct);
    assert_false(judged("holo3", &none, "{\"x\": 1, \"y\": 1}", 640, 480).correct);
    a = judged("holo3", &t, "none", 640, 480);
    assert_true(!a.correct && !a.wrong_format);
}

/* ---- sets ---------------------------------------------------------------------------------------------- */

#define HEAD "{\"image\": \"a.png\", \"instruction\": \"Save\", "

static void t_refused(void **state)
{
    (void)state;
    static const struct {
        const char *line, *because;
    } bad[] = {
        {"{", "not JSON"},
        {"[1]", "not a JSON object"},
        {"{\"image\": \"a.png\", \"image\": \"b.png\"}", "not JSON"},
        {"{\"instruction\": \"Save\", \"box\": null}", "'image'"},
        {"{\"image\": \"\", \"instruction\": \"Save\", \"box\": null}", "'image'"},
        {"{\"image\": \"a.png\", \"box\": null}", "'instruction'"},
        {"{\"image\": \"a.png\", \"instruction\": 7, \"box\": null}", "'instruction'"},
        {HEAD "\"bbox\": [1, 2, 3, 4]}", "neither 'box' nor 'poly'"},
        {HEAD "\"box\": [1, 2, 3, 4], \"poly\": [1, 2, 3, 4, 5, 6]}", "both"},
        {HEAD "\"box\": \"1 2 3 4\"}", "list of numbers"},
        {HEAD "\"box\": [1, 2, 3]}", "3 numbers"},
        {HEAD "\"box\": [1, 2, 3, 4, 5, 6]}", "[x1, y1, x2, y2]"},
        {HEAD "\"box\": [100, 20, 30, 40]}", "not a width"},
        {HEAD "\"box\": [1, 2, 3, 1e400]}", "JSON"},
        {HEAD "\"box\": [1, 2, 3, 1e9]}", "between"},
        {HEAD "\"box\": [1, 2, 3, \"4\"]}", "between"},
        {HEAD "\"poly\": [1, 2, 3, 4]}", "3 corners"},
        {HEAD "\"box\": null, \"w\": 640}", "'w' and 'h'"},
        {HEAD "\"box\": null, \"w\": 640, \"h\": 0}", "'w' and 'h'"},
        {HEAD "\"box\": null, \"w\": 640, \"h\": \"480\"}", "'w' and 'h'"},
        {HEAD "\"box\": null, \"tags\": [\"web\"]}", "'tags'"},
        {HEAD "\"box\": null, \"tags\": {\"platform\": {\"a\": 1}}}", "'platform'"},
        {HEAD "\"box\": null, \"id\": 1.5}", "'id'"},
        {HEAD "\"box\": null, \"id\": \"1\"}", "line 1 too"},
        {HEAD "\"box\": null, \"a\": [[[[[[[[1]]]]]]]]}", "nested"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err e = ERR_INIT;
        struct eval_set s;
        char *text = xasprintf(HEAD "\"box\": null, \"id\": 1}\n%s\n", bad[i].line);
        int rc = eval_set_parse(&s, text, strlen(text), "set", &e);
        if (rc == 0 || !strstr(e.text, bad[i].because) || !strstr(e.text, "line 2"))
            fail_msg("%s: %d %s", bad[i].line, rc, e.text);
        assert_int_equal(e.kind, ERR_USAGE);
        eval_set_free(&s);
        free(text);
    }
}

static void t_limits(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct eval_set s;
    struct buf text;
    buf_init(&text, 64 << 20);
    buf_puts(&text, HEAD "\"box\": null, \"note\": \"");
    while (text.len < 20 << 20)
        buf_puts(&text, "0123456789abcdef");
    buf_puts(&text, "\"}\n");
    assert_int_equal(eval_set_parse(&s, text.data, text.len, "set", &e), -1);
    assert_non_null(strstr(e.text, "longer than"));
    eval_set_free(&s);

    buf_clear(&text);
    buf_puts(&text, HEAD "\"poly\": [1, 2");
    for (int i = 0; i < EVAL_MAX_CORNERS; i++)
        buf_puts(&text, ", 3, 4");
    buf_puts(&text, "]}");
    assert_int_equal(eval_set_parse(&s, text.data, text.len, "set", &e), -1);
    eval_set_free(&s);

    buf_clear(&text);
    for (int i = 0; i < 100000; i++)
        buf_putc(&text, '[');
    assert_int_equal(eval_set_parse(&s, text.data, text.len, "set", &e), -1);
    assert_non_null(strstr(e.text, "nested"));
    eval_set_free(&s);

    assert_int_equal(eval_set_parse(&s, "", 0, "set", &e), -1);
    assert_non_null(strstr(e.text, "no items"));
    eval_set_free(&s);
    assert_int_equal(eval_set_parse(&s, " \n\r\n\n", 5, "set", &e), -1);
    assert_non_null(strstr(e.text, "no items"));
    eval_set_free(&s);
    buf_free(&text);
}

static void t_set(void **state)
{
    (void)state;
    static const char text[] =
        HEAD "\"box\": [1, 2, 3, 4], \"source\": \"x\", \"also\": 1}\r\n\n" HEAD
             "\"poly\": [1, 2, 3, 4, 5, 6], \"id\": 77, \"w\": 1, \"h\": 1}\n" HEAD "\"box\": null}";
    struct err e = ERR_INIT;
    struct eval_set s;
    if (eval_set_parse(&s, text, strlen(text), "set", &e))
        fail_msg("%s", e.text);
    assert_int_equal(s.n, 3);
    assert_string_equal(s.items[0].id, "1");
    assert_string_equal(s.items[1].id, "77");
    assert_string_equal(s.items[2].id, "4");
    assert_int_equal(s.items[0].target.kind, TARGET_BOX);
    assert_int_equal(s.items[1].target.kind, TARGET_POLY);
    assert_int_equal(s.items[2].target.kind, TARGET_NONE);
    assert_int_equal(json_object_size(s.unknown), 2);
    assert_non_null(json_object_get(s.unknown, "source"));
    eval_set_free(&s);
}

/* ---- the program -------------------------------------------------------------------------------------------- */

/* A results file without its times. */
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
    (void)state;
    struct xvfb x = place_begin();
    struct outcome o = {0};
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
                                         "raw", "correct", "wrong_format", "dist_px", "ms",   "tokens"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        assert_non_null(json_object_get(v, fields[i]));
    json_decref(v);
    free(text);
    free(results);
    outcome_free(&o);
    place_end(&x);
}

static void t_only(void **state)
{
    (void)state;
    struct xvfb x = place_begin();
    struct outcome o = {0};
    char *results = xvfb_place(&x, "r.jsonl");
    program_run(&x, &o, WORDS("eval", POCKET, "--only", "page=dialog-ticks", "--limit", "2", "-o", results));
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "\npage = dialog-ticks "));
    assert_null(strstr(o.out, "dialog-fields"));
    /* the others are no part of that file; they are asked when it is gone on with */
    program_run(&x, &o, WORDS("eval", POCKET, "--only", "tick", "-o", results, "--resume", "--json"));
    assert_int_equal(o.code, 0);
    json_t *v = json_of(o.out);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(v, "all"), "items")), 3);
    json_decref(v);
    char *text = text_of_file(results);
    assert_int_equal(lines_of(text), 1 + 3); /* two of them were there */
    free(text);
    program_run(&x, &o, WORDS("eval", POCKET, "--only", "page=nowhere", "-o", results));
    ONE_LINE(&o, ERR_USAGE, "page=nowhere");
    free(results);
    outcome_free(&o);
    place_end(&x);
}

static void t_resume(void **state)
{
    (void)state;
    struct xvfb x = place_begin();
    struct outcome o = {0};
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

    /* and a line that was being written */
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
    outcome_free(&o);
    place_end(&x);
}

static void t_standard_place(void **state)
{
    (void)state;
    struct xvfb x = place_begin();
    struct outcome o = {0};
    char *home = xvfb_place(&x, "state"),
         *before = getenv("XDG_STATE_HOME") ? xstrdup(getenv("XDG_STATE_HOME")) : NULL;
    setenv("XDG_STATE_HOME", home, 1);
    program_run(&x, &o, WORDS("eval", POCKET, "--resume", "--json"));
    ONE_LINE(&o, ERR_USAGE, "no results of 'eval'", "to go on with");
    char *paths[2];
    for (int i = 0; i < 2; i++) { /* again is no obstacle */
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
    assert_non_null(strstr(o.out, paths[1])); /* the newest */
    if (before)
        setenv("XDG_STATE_HOME", before, 1);
    else
        unsetenv("XDG_STATE_HOME");
    for (int i = 0; i < 2; i++)
        free(paths[i]);
    free(before);
    free(home);
    outcome_free(&o);
    place_end(&x);
}

static void t_resume_refused(void **state)
{
    (void)state;
    struct xvfb x = place_begin();
    struct outcome o = {0};
    char *results = xvfb_place(&x, "r.jsonl");
    program_run(&x, &o, WORDS("eval", POCKET, "-o", results, "-n", "1"));
    assert_int_equal(o.code, 0);
    program_run(&x, &o, WORDS("eval", POCKET, "-o", results, "-n", "1"));
    ONE_LINE(&o, ERR_USAGE, "r.jsonl", "--resume");
    program_run(&x, &o, WORDS("eval", POCKET, "-o", results, "--resume", "--free"));
    ONE_LINE(&o, ERR_USAGE, "r.jsonl", "free");
    program_run(&x, &o, WORDS("eval", CONVERT "webclick.out", "-o", results, "--resume"));
    ONE_LINE(&o, ERR_USAGE, "r.jsonl", "another set");
    char *other = write_file(&x, "other.jsonl", "{\"id\": 1}\n");
    program_run(&x, &o, WORDS("eval", POCKET, "-o", other, "--resume"));
    ONE_LINE(&o, ERR_USAGE, "other.jsonl", "not a results file");
    char *text = text_of_file(results), *twice = xasprintf("%s%s", text, strchr(text, '\n') + 1),
         *path = write_file(&x, "twice.jsonl", twice);
    program_run(&x, &o, WORDS("eval", POCKET, "-o", path, "--resume"));
    ONE_LINE(&o, ERR_USAGE, "twice.jsonl", "line 3", "second result");
    free(path);
    free(twice);
    free(text);
    free(other);
    free(results);
    outcome_free(&o);
    place_end(&x);
}

static void t_broken(void **state)
{
    (void)state;
    struct xvfb x = place_begin();
    struct outcome o = {0};
    char cwd[1024];
    assert_non_null(getcwd(cwd, sizeof cwd));
    char *set = xasprintf(
        "{\"id\": \"gone\", \"image\": \"gone.png\", \"instruction\": \"Save\", \"box\": [1, 2, 3, 4]}\n"
        "{\"id\": \"photo\", \"image\": \"photo.jpg\", \"instruction\": \"Save\", \"box\": [1, 2, 3, 4]}\n"
        "{\"id\": \"good\", \"image\": \"%s/tests/cases/eval/pocket/dialog-fields.png\", \"instruction\": "
        "\"Save\", \"box\": [500, 205, 620, 245]}\n",
        cwd);
    char *path = write_file(&x, "set.jsonl", set),
         *photo = write_file(&x, "photo.jpg", "\xff\xd8\xff\xe0 no PNG"),
         *results = xvfb_place(&x, "r.jsonl");
    program_run(&x, &o, WORDS("eval", path, "-o", results, "--json"));
    assert_int_equal(o.code, ERR_ENV);
    assert_non_null(strstr(o.err, "'gone'"));
    assert_non_null(strstr(o.err, "gone.png"));
    assert_non_null(strstr(o.err, "photo.jpg"));
    assert_non_null(strstr(o.err, "2 of 3 items"));
    json_t *v = json_of(o.out), *all = json_object_get(v, "all");
    assert_int_equal(json_integer_value(json_object_get(all, "items")), 1);
    assert_int_equal(json_integer_value(json_object_get(all, "hits")), 1);
    assert_int_equal(json_integer_value(json_object_get(all, "broken")), 2);
    json_decref(v);
    free(set);
    free(path);
    free(photo);
    free(results);
    outcome_free(&o);
    place_end(&x);
}

static void t_usage(void **state)
{
    (void)state;
    struct xvfb x = place_begin();
    struct outcome o = {0};
    char *empty = write_file(&x, "empty.jsonl", ""),
         *bad = write_file(&x, "bad.jsonl", "{\"image\": \"a.png\"\n"),
         *nowhere = xvfb_place(&x, "no/such/folder/r.jsonl"), *gone = xvfb_place(&x, "gone.jsonl");
    program_run(&x, &o, WORDS("eval", gone));
    ONE_LINE(&o, ERR_USAGE, "gone.jsonl", "No such file");
    program_run(&x, &o, WORDS("eval", empty));
    ONE_LINE(&o, ERR_USAGE, "empty.jsonl", "no items");
    program_run(&x, &o, WORDS("eval", bad));
    ONE_LINE(&o, ERR_USAGE, "bad.jsonl", "line 1");
    program_run(&x, &o, WORDS("eval", POCKET, "-o", nowhere));
    ONE_LINE(&o, ERR_ENV, "no/such/folder");
    program_run(&x, &o, WORDS("eval", POCKET, "--dialect", "openai", "-o", nowhere));
    ONE_LINE(&o, ERR_USAGE, "openai", "place");

    /* the disk is full after some items: what was written stays, and the run says so */
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
    outcome_free(&o);
    place_end(&x);
}

/* ---- converters --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *layout, *files, *out;
    int hits, items;
} layouts[] = {
    {"screenspot", CONVERT "screenspot_web.json " CONVERT "screenspot_desktop_v2.json", "screenspot.out", 3,
     3},
    {"screenspot-hf", CONVERT "screenspot-hf.jsonl", "screenspot-hf.out", 2, 2},
    {"screenspot-pro", CONVERT "pro_linux.json", "screenspot-pro.out", 2, 2},
    {"osworld-g", CONVERT "osworld-g.json", "osworld-g.out", 2, 3},
    {"webclick", CONVERT "webclick.jsonl", "webclick.out", 2, 2},
    {"groundui", CONVERT "groundui.jsonl", "groundui.out", 2, 2},
};

static void t_convert(void **state)
{
    (void)state;
    struct xvfb x = place_begin();
    struct outcome o = {0};
    if (!program_exists("jq")) {
        place_end(&x);
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
    outcome_free(&o);
    place_end(&x);
}

static void t_parquet(void **state)
{
    (void)state;
    if (!program_exists("jq") || system("python3 -c 'import pyarrow, PIL' 2>/dev/null")) {
        check_note("jq, or pyarrow and Pillow for python3, are missing");
        skip();
    }
    struct xvfb x = place_begin();
    struct outcome o = {0};
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
    outcome_free(&o);
    place_end(&x);
}

static const struct CMUnitTest tests[] = {
    CLAIM("Wilson's interval has the published values", t_wilson),
    CLAIM("the edges of a box belong to it", t_box),
    CLAIM("polygons go by the even-odd rule, their edges belong to them", t_polygon),
    CLAIM("a place is mapped exactly into the target's picture; replies without one are wrong", t_judge),
    CLAIM("a line that does not say what it must is refused with its number and the reason", t_refused),
    CLAIM("huge lines, deep nesting, long polygons and empty files are refused", t_limits),
    CLAIM("ids, targets and unknown fields are read", t_set),
    CLAIM("the embedded model finds what is asked for on screens with unseen words", t_embedded),
    CLAIM("a group or the first items alone are asked", t_only),
    CLAIM("a run that was killed and resumed leaves the same results", t_resume),
    CLAIM("results lie in the state folder with their time, and --resume takes the newest", t_standard_place),
    CLAIM("results of another set or another way of asking are not gone on with", t_resume_refused),
    CLAIM("images that cannot be read are named and are no part of the rate", t_broken),
    CLAIM("what cannot be read or written ends with one line", t_usage),
    CLAIM("every layout is converted line by line, and what it says is scored", t_convert),
    CLAIM("a parquet table is converted with its pictures", t_parquet),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
