/* t_trace.c - tests the run directory: it is readable however the run ends. */
#include "base/file.h"
#include "trace/read.h"
#include "trace/trace.h"

#include "check.h"
#include "place.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char runs[PLACE_PATH]; /* a folder for each test */

static int setup(void **state)
{
    return mkdtemp(place_template(runs)) ? 0 : -1;
}

static int teardown(void **state)
{
    return place_remove(runs);
}

/* Makes an image of noise, which PNG cannot compress. */
static void make_image(struct image *im, int w, int h, uint64_t seed)
{
    assert_int_equal(image_alloc(im, w, h, NULL), 0);
    for (int i = 0; i < w * h * 3; i++)
        im->rgb[i] = (uint8_t)(check_random(&seed) * 256);
}

static int put_frame_of(struct trace *t, int w, int h, uint64_t seed, struct err *e)
{
    struct image im;
    int number;
    make_image(&im, w, h, seed);
    int rc = trace_frame(t, &im, image_hash(&im), &number, e);
    image_free(&im);
    return rc ? -1 : number;
}

static int put_frame(struct trace *t, uint64_t seed, struct err *e)
{
    return put_frame_of(t, 64, 48, seed, e);
}

static char *only_run(void)
{
    struct err e = ERR_INIT;
    char *dir = record_newest(runs, &e);
    if (!dir)
        fail_msg("%s", e.text);
    return dir;
}

static void t_round_trip(void **state)
{
    struct err e = ERR_INIT;
    struct trace *t = trace_open(runs, &e);
    assert_non_null(t);
    int frame = put_frame(t, 1, &e);
    trace_begin(t, 3, "observe");
    trace_int(t, "frame", frame);
    trace_number(t, "settle_ms", 12.5);
    trace_number(t, "nothing", 0.0 / 0.0);
    trace_bool(t, "ok", true);
    trace_text(t, "why", "a \"quote\", a \\, a\nline, a \xff byte, \xc3\xa9");
    trace_json(t, "list", "[1, 2]");
    assert_int_equal(trace_end(t, &e), 0);
    assert_int_equal(trace_run_json(t, "{\"task\": \"t\"}", 13, &e), 0);
    assert_int_equal(trace_sync(t, &e), 0);
    assert_int_equal(trace_close(t, &e), 0);

    struct record r;
    char *dir = only_run();
    assert_int_equal(record_open(&r, dir, &e), 0);
    assert_int_equal(r.n, 1);
    assert_string_equal(field_text(r.run, "task"), "t");
    const json_t *f = r.events[0].fields;
    assert_string_equal(r.events[0].kind, "observe");
    assert_int_equal(r.events[0].step, 3);
    assert_true(field_number(f, "settle_ms") == 12.5 && field_bool(f, "ok") && field_int(f, "v") == 1);
    assert_true(json_is_null(json_object_get(f, "nothing")));
    assert_string_equal(field_text(f, "why"), "a \"quote\", a \\, a\nline, a \xef\xbf\xbd byte, \xc3\xa9");
    assert_int_equal(json_array_size(json_object_get(f, "list")), 2);
    char *png;
    size_t len;
    struct image want, got;
    make_image(&want, 64, 48, 1);
    assert_int_equal(record_frame(&r, frame, &png, &len, &e), 0);
    assert_int_equal(image_parse_png(&got, png, len, &e), 0);
    assert_true(image_equal(&want, &got));
    image_free(&want);
    image_free(&got);
    free(png);
    record_free(&r);
    free(dir);
}

static int frames_on_disk(const char *dir)
{
    int n = 0;
    for (int i = 0; i < 100; i++) {
        char *path = xasprintf("%s/frames/%06d.png", dir, i);
        n += file_exists(path);
        free(path);
    }
    return n;
}

static void t_frames_once(void **state)
{
    struct err e = ERR_INIT;
    struct trace *t = trace_open(runs, &e);
    assert_non_null(t);
    static const struct {
        int seed, number;
    } cases[] = {{5, 0}, {6, 1}, {5, 0}, {7, 2}, {7, 2}, {6, 1}, {8, 3}, {9, 4}, {10, 5}, {11, 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(put_frame(t, (uint64_t)cases[i].seed, &e), cases[i].number);
    char *dir = xstrdup(trace_dir(t)), *index_path = xasprintf("%s/frames.idx", dir), *index;
    size_t len;
    assert_int_equal(trace_close(t, &e), 0);
    assert_int_equal(frames_on_disk(dir), 7);
    assert_int_equal(file_read(index_path, 1 << 16, &index, &len, &e), 0);
    int lines = 0;
    for (size_t i = 0; i < len; i++)
        lines += index[i] == '\n';
    assert_int_equal(lines, 7);
    free(index);
    free(index_path);
    free(dir);
}

static void t_private(void **state)
{
    struct err e = ERR_INIT;
    mode_t old = umask(0);
    struct trace *t = trace_open(runs, &e);
    assert_non_null(t);
    put_frame(t, 1, &e);
    int64_t at;
    assert_int_equal(trace_tokens(t, (int32_t[]){1, 2, 3}, 3, &at, &e), 0);
    assert_int_equal(trace_logprobs(t, (float[]){-1, -2, -3, -4}, 2, &at, &e), 0);
    assert_int_equal(at, 0);
    assert_int_equal(trace_run_json(t, "{}", 2, &e), 0);
    char *dir = xstrdup(trace_dir(t));
    assert_int_equal(trace_close(t, &e), 0);
    umask(old);
    static const char *const names[] = {"",           "frames",     "run.json",     "events.jsonl",
                                        "frames.idx", "tokens.bin", "logprobs.bin", "frames/000000.png"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct stat st;
        char *path = xasprintf("%s/%s", dir, names[i]);
        assert_int_equal(stat(path, &st), 0);
        if ((st.st_mode & 0777) != (S_ISDIR(st.st_mode) ? 0700u : 0600u))
            fail_msg("'%s' has mode %o", names[i], (unsigned)st.st_mode & 0777);
        free(path);
    }
    free(dir);
}

static void t_torn(void **state)
{
    static const char text[] = "{\"kind\": \"start\", \"step\": 0}\n"
                               "not json at all\n"
                               "\n"
                               "{\"kind\": \"observe\", \"step\": 1, \"frame\": 0}\n"
                               "[1, 2]\n"
                               "{\"step\": 1}\n"
                               "{\"kind\": \"step\", \"step\": -4}\n"
                               "{\"kind\": \"unheard\", \"step\": 1, \"of\": {\"x\": 1}}\n"
                               "{\"kind\": \"action\", \"step\": 1, \"te";
    struct record r = {0};
    struct err e = ERR_INIT;
    assert_int_equal(record_parse(&r, text, sizeof text - 1, &e), 0);
    assert_int_equal(r.n, 3);
    assert_int_equal(r.skipped, 4);
    assert_true(r.torn);
    assert_string_equal(r.events[2].kind, "unheard");
    record_free(&r);
}

/* In a child: writes frames and events of steps until it is killed. */
static void run_and_be_killed(void)
{
    struct err e = ERR_INIT;
    struct trace *t = trace_open(runs, &e);
    for (int step = 1; t && step <= 5; step++) {
        int frame = put_frame_of(t, 800, 600, (uint64_t)step, &e);
        trace_begin(t, step, "observe");
        trace_int(t, "frame", frame);
        trace_end(t, &e);
        trace_begin(t, step, "action");
        if (trace_end(t, &e) || trace_sync(t, &e))
            break;
        if (step == 5)
            raise(SIGKILL);
    }
    _exit(1);
}

static void t_killed(void **state)
{
    pid_t pid = fork();
    if (!pid)
        run_and_be_killed();
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    struct record r;
    struct err e = ERR_INIT;
    char *dir = only_run();
    assert_int_equal(record_open(&r, dir, &e), 0);
    assert_int_equal(r.n, 10);
    assert_false(r.torn);
    assert_string_equal(r.events[9].kind, "action");
    assert_int_equal(frames_on_disk(dir), 5);
    record_free(&r);
    free(dir);
}

/* In a child: limits the file size, like a full disk. Exits with 0 if the run reports it in one line of the
 * right kind and each later call repeats it. */
static void run_on_full_disk(int frames)
{
    struct rlimit limit = {16384, 16384};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    struct err e = ERR_INIT, again = ERR_INIT;
    struct trace *t = trace_open(runs, &e);
    int rc = 0, i;
    for (i = 0; t && !rc && i < 1000; i++) {
        trace_begin(t, i, "observe");
        trace_text(t, "filler", "0123456789012345678901234567890123456789");
        rc = trace_end(t, &e);
        if (!rc && frames)
            rc = put_frame_of(t, 128, 128, 1, &e) < 0 || trace_sync(t, &e);
    }
    trace_begin(t, i, "stop");
    int later = trace_end(t, &again);
    bool right = rc && later && e.kind == ERR_ENV && strstr(e.text, "cannot write '") &&
                 strstr(e.text, "--runs") && !strcmp(e.text, again.text);
    if (!right)
        printf("%d %d '%s' '%s'\n", rc, later, e.text, again.text);
    trace_close(t, NULL);
    fflush(stdout);
    _exit(!right);
}

static void check_full_disk(int frames)
{
    pid_t pid = fork();
    if (!pid)
        run_on_full_disk(frames);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    struct record r;
    struct err e = ERR_INIT;
    char *dir = only_run();
    assert_int_equal(record_open(&r, dir, &e), 0);
    assert_int_equal(r.skipped, 0);
    if (frames)
        assert_int_equal(frames_on_disk(dir), 0); /* a half-written image is removed */
    else
        assert_true(r.n > 50);
    record_free(&r);
    free(dir);
}

static void t_full_events(void **state)
{
    check_full_disk(0);
}

static void t_full_frames(void **state)
{
    check_full_disk(1);
}

/* The letters after the time are random. */
static void t_newest(void **state)
{
    static const char *const names[] = {"20260301T101112Z-ffffffff", "20260301T101113Z-eeeeeeee",
                                        "20260301T101113Z-11111111", "20260301T101111Z-22222222"};
    struct err e = ERR_INIT;
    for (int i = 0; i < 4; i++) {
        char *dir = xasprintf("%s/%s", runs, names[i]);
        assert_int_equal(mkdir(dir, 0700), 0);
        struct timespec when[2] = {{1700000000, 1000 * i}, {1700000000, 1000 * i}};
        assert_int_equal(utimensat(AT_FDCWD, dir, when, 0), 0);
        free(dir);
    }
    char *dir = record_newest(runs, &e);
    assert_non_null(dir);
    assert_string_equal(dir + strlen(runs) + 1, names[2]);
    free(dir);
}

static void t_no_place(void **state)
{
    struct err e = ERR_INIT;
    char *file = xasprintf("%s/file", runs), *below = xasprintf("%s/file/runs", runs);
    assert_int_equal(file_write(file, "x", 1, &e), 0);
    assert_null(trace_open(below, &e));
    assert_int_equal(e.kind, ERR_ENV);
    assert_null(record_newest(runs, &e));
    assert_non_null(strstr(e.text, "no run"));
    free(file);
    free(below);
}

#define TRACE_CLAIM(text, fn) CLAIM_WITH(text, fn, setup, teardown)

static const struct CMUnitTest tests[] = {
    TRACE_CLAIM("events, run.json and frames are read as written", t_round_trip),
    TRACE_CLAIM("identical frames are stored once", t_frames_once),
    TRACE_CLAIM("files are 0600 and folders 0700, whatever the umask", t_private),
    TRACE_CLAIM("a torn last line is dropped, broken lines are skipped and counted", t_torn),
    TRACE_CLAIM("a killed run is complete up to its last action", t_killed),
    TRACE_CLAIM("a full disk gives one clear line, and the events so far stay readable", t_full_events),
    TRACE_CLAIM("a full disk during a screenshot is reported and leaves no half image", t_full_frames),
    TRACE_CLAIM("of two runs begun in one second the newest is the one written to last", t_newest),
    TRACE_CLAIM("a folder that cannot hold runs is refused", t_no_place),
};

CHECK_MAIN()
