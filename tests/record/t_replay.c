/* t_replay.c - tests verifying a run of the embedded model from its record, unchanged and with one thing
 * changed. The whole program reads it.
 */
#include "check.h"
#include "place.h"
#include "program.h"

#include "base/clock.h"
#include "base/file.h"
#include "replay/timeline.h"
#include "trace/index.h"
#include "trace/read.h"

#include <X11/Xlib.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#define POCKET "assets/pocket/model"

/* The recorded run; each test uses a copy. */
static char base[PLACE_PATH]; /* parent folder; "" until recorded */
static char recorded[160];    /* folder of the run */
static struct xvfb place;     /* folder for outputs, without a server */

/* ---- recording and copying ------------------------------------------------------------------- */

static void forget_all(void)
{
    if (*base)
        place_remove(base);
}

static void record_once(void)
{
    struct xvfb x;
    struct outcome o = {0};
    if (*base)
        return;
    if (xvfb_start(&x, "640x480x24", NULL))
        skip();
    assert_non_null(mkdtemp(place_template(base)));
    atexit(forget_all);
    memcpy(place.dir, base, sizeof base);
    program_run(&x, &o,
                WORDS("run", "Book the 9:40 flight from Paris to Rome on 12 May for Ana Lima", "--model",
                      POCKET, "--runs", base, "-q", "-n", "4", "--temperature", "0.9", "--seed",
                      "18446744073709551613", "--settle-min", "1", "--settle-quiet", "30", "--no-report",
                      "--max-images", "2"));
    assert_int_equal(o.code, ERR_STEPS);
    outcome_free(&o);
    xvfb_stop(&x);
    char *dir = record_newest(base, NULL);
    assert_non_null(dir);
    snprintf(recorded, sizeof recorded, "%s", dir);
    free(dir);
}

/* Copies a folder; the caller frees the path. */
static char *copy_of(const char *what, const char *name)
{
    char *to = xasprintf("%s/%s", base, name), *command = xasprintf("rm -rf %s && cp -r %s %s", to, what, to);
    assert_int_equal(system(command), 0);
    free(command);
    return to;
}

static char *run_copy(void)
{
    record_once();
    return copy_of(recorded, "copy");
}

/* ---- changing files -------------------------------------------------------------------------- */

static void read_file(const char *dir, const char *name, char **data, size_t *len)
{
    char *path = xasprintf("%s/%s", dir, name);
    assert_int_equal(file_read(path, 64 << 20, data, len, NULL), 0);
    free(path);
}

static void write_file(const char *dir, const char *name, const char *data, size_t len)
{
    char *path = xasprintf("%s/%s", dir, name);
    assert_int_equal(file_write(path, data, len, NULL), 0);
    free(path);
}

/* Flips bits at an offset from the start or, if negative, from the end. */
static void flip(const char *dir, const char *name, long at, int mask)
{
    char *data;
    size_t len;
    read_file(dir, name, &data, &len);
    size_t i = at < 0 ? len - (size_t)-at : (size_t)at;
    assert_true(i < len);
    data[i] = (char)(data[i] ^ mask);
    write_file(dir, name, data, len);
    free(data);
}

static void put_in_place(const char *dir, const char *name, const char *from, const char *to)
{
    char *data;
    size_t len;
    read_file(dir, name, &data, &len);
    char *at = strstr(data, from);
    assert_non_null(at);
    char *text = xasprintf("%.*s%s%s", (int)(at - data), data, to, at + strlen(from));
    write_file(dir, name, text, strlen(text));
    free(text);
    free(data);
}

/* ---- verifying ------------------------------------------------------------------------------- */

/* Runs replay --verify and returns its JSON object; the caller releases it. */
static json_t *verify_with(const char *run, const char *model, const char *threads, int code)
{
    struct outcome o = {0};
    program_run(&place, &o,
                WORDS("replay", run, "--verify", "--json", "-q", "--threads", threads,
                      model ? "--model" : NULL, model));
    if (o.code != code)
        fail_msg("exit %d, not %d: %s%s", o.code, code, o.out, o.err);
    json_t *json = json_loads(o.out, 0, NULL);
    assert_non_null(json);
    assert_int_equal(field_int(json, "exit"), code);
    outcome_free(&o);
    return json;
}

static json_t *verify(const char *run, int code)
{
    return verify_with(run, NULL, "0", code);
}

/* Returns the i-th difference, which must be of this kind. */
static const json_t *difference(const json_t *json, size_t i, const char *kind)
{
    const json_t *d = json_array_get(json_object_get(json, "differences"), i);
    if (!d || strcmp(field_text(d, "kind"), kind) != 0) {
        char *text = json_dumps(json, 0);
        fail_msg("difference %zu is not '%s': %s", i, kind, text);
    }
    return d;
}

/* ---- turns that were cancelled ----------------------------------------------------------------- */

struct painter {
    const char *display;
    atomic_bool end;
};

/* Changes the screen two to six times a second. */
static void *paint(void *arg)
{
    struct painter *p = arg;
    Display *dpy = XOpenDisplay(p->display);
    Window root = DefaultRootWindow(dpy);
    GC gc = XCreateGC(dpy, root, 0, NULL);
    for (unsigned i = 1; !p->end; i++) {
        XSetForeground(dpy, gc, i * 2654435761u >> 8);
        XFillRectangle(dpy, root, gc, (int)(i * 97 % 500), (int)(i * 61 % 400), 140, 60);
        XSync(dpy, False);
        clock_sleep_ms(160 + i * 37 % 340);
    }
    XCloseDisplay(dpy);
    return NULL;
}

static void t_cancelled(void **state)
{
    static const char *const images[] = {"1", "2"}, *const windows[] = {"sawtooth", "strict"};
    struct xvfb was = place;
    for (int i = 0; i < 2; i++) {
        struct xvfb x;
        struct outcome o = {0};
        char runs[PLACE_PATH];
        pthread_t thread;
        if (xvfb_start(&x, "640x480x24", NULL))
            skip();
        struct painter p = {.display = x.display};
        assert_non_null(mkdtemp(place_template(runs)));
        pthread_create(&thread, NULL, paint, &p);
        program_run(&x, &o,
                    WORDS("run", "Book the 9:40 flight from Paris to Rome on 12 May for Ana Lima", "--model",
                          POCKET, "--runs", runs, "-q", "-n", "3", "--temperature", "0.9", "--no-report",
                          "--think-early", "yes", "--max-images", images[i], "--window", windows[i],
                          "--plain", "no", "--json"));
        p.end = true;
        pthread_join(thread, NULL);
        json_t *run = json_loads(o.out, 0, NULL);
        assert_true(field_int(json_object_get(run, "cancelled"), "turns") > 0);
        char *dir = record_newest(runs, NULL);
        memcpy(place.dir, runs, sizeof runs);
        json_decref(verify(dir, 0));
        free(dir);
        json_decref(run);
        outcome_free(&o);
        xvfb_stop(&x);
        place_remove(runs);
    }
    place = was;
}

static void t_same(void **state)
{
    record_once();
    json_t *a = verify(recorded, 0), *b = verify_with(recorded, NULL, "1", 0);
    assert_string_equal(field_text(a, "status"), "same");
    assert_int_equal(field_int(a, "steps"), 5);
    assert_true(field_int(a, "replies") >= 5);
    assert_int_equal(field_int(a, "logits"), field_int(a, "replies"));
    assert_true(field_int(a, "tokens") > 20);
    assert_true(json_equal(a, b));
    check_note("%d replies, %d tokens", (int)field_int(a, "replies"), (int)field_int(a, "tokens"));
    json_decref(a);
    json_decref(b);
}

static void t_frame(void **state)
{
    char *run = run_copy();
    static const long places[] = {0, 20, 200, -6, -1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        flip(run, "frames/000000.png", places[i], 1);
        json_t *json = verify(run, ERR_FAILED);
        const json_t *d = difference(json, 0, "frame");
        assert_int_equal(field_int(d, "step"), 1);
        assert_non_null(strstr(field_text(d, "what"), "000000.png"));
        json_decref(json);
        flip(run, "frames/000000.png", places[i], 1);
    }
    char *png; /* the same image in another file */
    size_t len;
    read_file(run, "frames/000000.png", &png, &len);
    char *longer = malloc(len + 1);
    assert_non_null(longer);
    memcpy(longer, png, len);
    longer[len] = 0;
    write_file(run, "frames/000000.png", longer, len + 1);
    json_t *other = verify(run, ERR_FAILED);
    assert_non_null(
        strstr(field_text(difference(other, 0, "frame"), "what"), "not the file that was written"));
    assert_int_equal(field_int(other, "steps"), 5); /* the pixels are the same */
    json_decref(other);
    write_file(run, "frames/000000.png", png, len);
    free(longer);
    free(png);
    /* another valid PNG: its pixels differ, and the model's reading of it */
    struct image im = {0};
    char *path = xasprintf("%s/frames/000000.png", run);
    assert_int_equal(image_read_png(&im, path, NULL), 0);
    for (int i = 0; i < 3 * 640 * 200; i++)
        im.rgb[i] ^= 0x5a;
    assert_int_equal(image_write_png(&im, path, NULL), 0);
    json_t *json = verify(run, ERR_FAILED);
    difference(json, 0, "frame");
    assert_true(json_array_size(json_object_get(json, "differences")) >= 2);
    json_decref(json);
    assert_int_equal(unlink(path), 0);
    json = verify(run, ERR_FAILED);
    assert_non_null(strstr(field_text(difference(json, 0, "frame"), "what"), "No such file"));
    json_decref(json);
    image_free(&im);
    free(path);
    free(run);
}

static void t_model(void **state)
{
    char *run = run_copy(), *model = copy_of(POCKET, "model"), hash[32];
    flip(model, "model.safetensors", 5000001, 0x40); /* the exponent of one weight in the middle */
    json_t *json = verify_with(run, model, "0", ERR_FAILED);
    const json_t *d = difference(json, 0, "model");
    assert_string_equal(field_text(d, "what"), "a weight");
    snprintf(hash, sizeof hash, "%s", field_text(d, "recorded"));
    json_decref(json);
    put_in_place(run, "run.json", hash, "");
    json = verify_with(run, model, "0", ERR_FAILED); /* without a recorded hash the logits differ */
    d = json_array_get(json_object_get(json, "differences"), 0);
    assert_true(!strcmp(field_text(d, "kind"), "logits") || !strcmp(field_text(d, "kind"), "token"));
    json_decref(json);
    free(model);
    free(run);
}

static void t_tokens(void **state)
{
    char *run = run_copy();
    struct record r;
    struct timeline t;
    struct err e = ERR_INIT;
    assert_int_equal(record_open(&r, run, &e), 0);
    if (timeline_open(&t, &r, &e))
        fail_msg("%s", e.text);
    const struct turn *u = &t.turns[1];
    assert_int_equal(u->op, TURN_REPLY);
    long generated = (long)(u->reply.at + u->reply.prompt - u->reply.kept);
    flip(run, "tokens.bin", 4 * (generated + 3), 1);
    json_t *json = verify(run, ERR_FAILED);
    const json_t *d = difference(json, 0, "token");
    assert_int_equal(field_int(d, "step"), 1);
    assert_int_equal(field_int(d, "token"), 3);
    char id[16];
    snprintf(id, sizeof id, "%d ", turn_ids(&t, u)[3]);
    assert_int_equal(strncmp(field_text(d, "now"), id, strlen(id)), 0);
    snprintf(id, sizeof id, "%d ", turn_ids(&t, u)[3] ^ 1);
    assert_int_equal(strncmp(field_text(d, "recorded"), id, strlen(id)), 0);
    json_decref(json);
    flip(run, "tokens.bin", 4 * (generated + 3), 1);

    flip(run, "tokens.bin", 4 * 2, 1); /* of the prompt */
    json = verify(run, ERR_FAILED);
    assert_int_equal(field_int(difference(json, 0, "prompt"), "token"), 2);
    json_decref(json);
    flip(run, "tokens.bin", 4 * 2, 1);

    char hash[24];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)u->reply.logits_hash);
    put_in_place(run, "events.jsonl", hash, "0123456789abcdef");
    json = verify(run, ERR_FAILED);
    d = difference(json, 0, "logits");
    assert_string_equal(field_text(d, "recorded"), "0123456789abcdef");
    assert_string_equal(field_text(d, "now"), hash);
    json_decref(json);
    put_in_place(run, "events.jsonl", "0123456789abcdef", hash);

    int sampled = 0;
    while (isnan(turn_logprobs(&t, u)[2 * sampled]))
        sampled++;
    flip(run, "logprobs.bin", 8 * sampled, 1);
    json = verify(run, ERR_FAILED);
    assert_int_equal(field_int(difference(json, 0, "logits"), "token"), sampled);
    json_decref(json);
    timeline_free(&t);
    record_free(&r);
    free(run);
}

static void t_told(void **state)
{
    char *run = run_copy();
    put_in_place(run, "events.jsonl", "\"lead\": \"Book the 9:40 flight", "\"lead\": \"Book the 9:40 fight");
    json_t *json = verify(run, ERR_FAILED);
    difference(json, 0, "prompt");
    json_decref(json);
    put_in_place(run, "events.jsonl", "\"lead\": \"Book the 9:40 fight", "\"lead\": \"Book the 9:40 flight");
    put_in_place(run, "run.json", "\"sha256\": \"", "\"sha256\": \"0");
    json = verify(run, ERR_FAILED);
    difference(json, 0, "dialect");
    assert_int_equal(json_array_size(json_object_get(json, "differences")), 1);
    json_decref(json);
    free(run);
}

static void t_damaged(void **state)
{
    char *run = run_copy(), *tokens = xasprintf("%s/tokens.bin", run),
         *events = xasprintf("%s/events.jsonl", run);
    struct outcome o = {0};
    struct stat st;
    assert_int_equal(stat(tokens, &st), 0);
    assert_int_equal(truncate(tokens, st.st_size - 5), 0);
    program_run(&place, &o, WORDS("replay", run, "--verify", "-q"));
    ONE_LINE(&o, ERR_ENV, "tokens.bin has", "cut off");
    assert_int_equal(unlink(tokens), 0);
    program_run(&place, &o, WORDS("replay", run, "--verify", "-q"));
    ONE_LINE(&o, ERR_ENV, "tokens.bin has 0 tokens");
    free(run);

    run = run_copy(); /* like after a crash: the last event torn, no outcome */
    assert_int_equal(stat(events, &st), 0);
    assert_int_equal(truncate(events, st.st_size / 2), 0);
    put_in_place(run, "run.json", "\"status\": \"steps\"", "\"status\": \"running\"");
    json_t *json = verify(run, 0);
    assert_true(field_int(json, "steps") >= 1 && field_int(json, "steps") < 5);
    json_decref(json);

    static const char *const wrong[][2] = {{"\"prompt_tokens\": ", "\"prompt_tokens\": -"},
                                           {"\"kept\": 0", "\"kept\": 99999"},
                                           {"\"prompt_hash\": \"", "\"prompt_hash\": \"x"},
                                           {"\"tokens_at\": 0", "\"tokens_at\": \"0\""},
                                           {"\"top_p\": 1", "\"top_p\": 7"},
                                           {"\"frame\": 0", "\"frame\": -1"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        put_in_place(run, "events.jsonl", wrong[i][0], wrong[i][1]);
        program_run(&place, &o, WORDS("replay", run, "--verify", "-q"));
        ONE_LINE(&o, ERR_ENV, "step 1 is damaged");
        put_in_place(run, "events.jsonl", wrong[i][1], wrong[i][0]);
    }
    outcome_free(&o);
    free(tokens);
    free(events);
    free(run);
}

static void t_nothing(void **state)
{
    struct outcome o = {0};
    char *run = run_copy();
    put_in_place(run, "run.json", "{\"name\": \"", "{\"name\": \"script\", \"was\": \"");
    program_run(&place, &o, WORDS("replay", run, "--verify"));
    ONE_LINE(&o, ERR_USAGE, "its replies came from a file");
    static const char old[] = "{\"dialect\": {\"name\": \"function\"}}";
    write_file(run, "run.json", old, sizeof old - 1);
    program_run(&place, &o, WORDS("replay", run, "--verify", "--model", POCKET));
    ONE_LINE(&o, ERR_USAGE, run, "'function', which cannot be loaded: ", "unknown dialect 'function'",
             "--dialect");
    write_file(run, "run.json", "{}", 2);
    program_run(&place, &o, WORDS("replay", run, "--verify", "--model", POCKET));
    ONE_LINE(&o, ERR_USAGE, run, "has no dialect", "run.json is missing or damaged", "--dialect");
    write_file(run, "events.jsonl", "{\"kind\": \"start\", \"step\": 0}\n", 29);
    program_run(&place, &o, WORDS("replay", run, "--verify", "--model", POCKET));
    ONE_LINE(&o, ERR_USAGE, "the run has no replies");
    program_run(&place, &o, WORDS("replay", "--runs", base, "nonsense", "--verify"));
    assert_int_equal(o.code, ERR_USAGE);
    assert_non_null(strstr(o.err, "run 'nonsense' not found"));
    outcome_free(&o);
    free(run);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a run with cancelled turns is repeated bit for bit", t_cancelled),
    CLAIM("verifying a run gives the same tokens and logits, with any number of threads", t_same),
    CLAIM("a changed byte of a screenshot, another image or a missing one is named", t_frame),
    CLAIM("a changed weight is found by its hash, or in the logits", t_model),
    CLAIM("an edited token, prompt, hash or probability is found at its position", t_tokens),
    CLAIM("edited texts are found in the prompt; another dialect is named", t_told),
    CLAIM("a truncated record is read as far as possible; an invalid one gives a line with the position",
          t_damaged),
    CLAIM("a run without a model, or without any step, is reported as such", t_nothing),
};

CHECK_MAIN()
