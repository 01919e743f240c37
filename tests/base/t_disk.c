/* t_disk.c - tests of a disk that becomes full: at each call that writes a record, in turn, and under a
 * suite.  Data from successful calls stays readable, and the error is reported once.
 *
 * The calls are counted where they leave this program: this file replaces libc's write, open, rename, mkdir
 * and fdatasync.
 */
#include "check.h"
#include "qa_program.h"

#include "base/file.h"
#include "trace/read.h"
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STEPS = 3, CALLS_MAX = 500, SIZE = 24 };

/* ---- a disk that is full from the N-th call on ----------------------------------------------- */

static atomic_int calls_left = INT32_MAX; /* the disk is full at 0 */

static bool is_full(void)
{
    return atomic_load(&calls_left) != INT32_MAX && atomic_fetch_sub(&calls_left, 1) <= 1;
}

static int no_room(void)
{
    errno = ENOSPC;
    return -1;
}

/* The first call on the full disk writes half of the data, as a real disk may do. */
ssize_t write(int fd, const void *data, size_t n)
{
    if (!is_full())
        return syscall(SYS_write, fd, data, n);
    return atomic_load(&calls_left) == 0 && n > 1 ? syscall(SYS_write, fd, data, n / 2) : no_room();
}

int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return flags & O_CREAT && is_full() ? no_room() : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int rename(const char *from, const char *to)
{
    return is_full() ? no_room() : (int)syscall(SYS_rename, from, to);
}

int mkdir(const char *path, mode_t mode)
{
    bool there = syscall(SYS_access, path, F_OK) == 0; /* an existing directory needs no space */
    return !there && is_full() ? no_room() : (int)syscall(SYS_mkdir, path, mode);
}

int fdatasync(int fd)
{
    return is_full() ? no_room() : (int)syscall(SYS_fdatasync, fd);
}

/* ---- a record -------------------------------------------------------------------------------- */

struct kept { /* data of successful calls */
    int events, frames, runs;
    int64_t tokens;
};

static int put_step(struct trace *t, int step, struct kept *k, struct err *e)
{
    struct image im;
    int frame, rc;
    int64_t at;
    assert_int_equal(image_alloc(&im, SIZE, SIZE, NULL), 0);
    memset(im.rgb, 40 * step, (size_t)SIZE * SIZE * 3);
    rc = trace_frame(t, &im, (uint64_t)step, &frame, e);
    image_free(&im);
    trace_begin(t, step, "observe");
    trace_int(t, "frame", frame);
    if (rc || trace_end(t, e))
        return -1;
    k->events++;
    if (trace_sync(t, e))
        return -1;
    k->frames++;
    if (trace_tokens(t, (int32_t[]){step, step, step}, 3, &at, e))
        return -1;
    k->tokens += 3;
    trace_begin(t, step, "reply");
    if (trace_end(t, e))
        return -1;
    k->events++;
    return 0;
}

static int put_run(struct trace *t, struct kept *k, const char *json, struct err *e)
{
    if (trace_run_json(t, json, strlen(json), e))
        return -1;
    k->runs++;
    return 0;
}

/* Records on a disk that is full from the n-th call on; returns the number of error reports. */
static int record_until(const char *runs, int n, struct kept *k, struct err *e)
{
    struct err late = ERR_INIT;
    atomic_store(&calls_left, n);
    struct trace *t = trace_open(runs, e);
    int rc = t ? put_run(t, k, "{\"n\": 1}", e) : -1, step;
    for (step = 1; !rc && step <= STEPS; step++)
        rc = put_step(t, step, k, e);
    if (!rc)
        rc = put_run(t, k, "{\"n\": 2}", e);
    int told = (rc != 0) + (trace_close(t, &late) != 0);
    atomic_store(&calls_left, INT32_MAX);
    if (late.kind)
        *e = late;
    return told;
}

static void no_temporary(const char *dir, const char *below)
{
    glob_t g;
    char *pattern = xasprintf("%s/%s*.tmp", dir, below);
    assert_int_equal(glob(pattern, 0, NULL, &g), GLOB_NOMATCH);
    free(pattern);
}

static void check_kept(const char *dir, const struct kept *k)
{
    struct record r;
    struct err e = ERR_INIT;
    char *png, *tokens = xasprintf("%s/tokens.bin", dir);
    size_t len;
    struct stat st = {0};
    if (record_open(&r, dir, &e)) /* the event file does not even exist */
        fail_msg("%s", e.text);
    assert_int_equal(r.skipped, 0);
    assert_in_range(r.n, k->events, k->events + 1);
    for (int i = 0; i < r.n; i++)
        assert_string_equal(r.events[i].kind, i % 2 ? "reply" : "observe");
    for (int i = 0; i < k->frames; i++) {
        struct image im;
        assert_int_equal(record_frame(&r, i, &png, &len, &e) || image_parse_png(&im, png, len, &e), 0);
        assert_int_equal(im.rgb[0], 40 * (i + 1));
        image_free(&im);
        free(png);
    }
    stat(tokens, &st);
    assert_true(st.st_size >= k->tokens * 4);
    assert_in_range(field_int(r.run, "n"), k->runs, k->runs + 1);
    no_temporary(dir, "");
    no_temporary(dir, "frames/");
    free(tokens);
    record_free(&r);
}

static void t_record(void **state)
{
    struct xvfb x = {0};
    int n = 1, told = 1;
    xvfb_folder(&x);
    for (; told && n < CALLS_MAX; n++) {
        struct kept k = {0};
        struct err e = ERR_INIT;
        char *runs = xasprintf("%s/%d", x.dir, n);
        assert_int_equal(mkdir(runs, 0700), 0);
        told = record_until(runs, n, &k, &e);
        if (told && (e.kind != ERR_ENV || !strstr(e.text, runs) || !strstr(e.text, "No space left")))
            fail_msg("call %d: '%s'", n, e.text);
        if (told > 1)
            fail_msg("call %d: reported %d times", n, told);
        char *dir = record_newest(runs, NULL);
        if (k.runs)
            check_kept(dir, &k);
        free(dir);
        free(runs);
    }
    check_note("%d calls write a record of %d steps; each of them found no room", n - 2, STEPS);
    assert_in_range(n - 2, 20, CALLS_MAX - 3);
    xvfb_stop(&x);
}

/* ---- a stream -------------------------------------------------------------------------------- */

static bool small_disk(const char *at, int kib)
{
    char *size = xasprintf("size=%dk", kib);
    int rc = mount("none", at, "tmpfs", 0, size);
    free(size);
    if (rc)
        check_note("a small file system cannot be mounted here");
    return !rc;
}

/* stdio discards data that it could not write, so closing does not fail again. */
static void t_stream(void **state)
{
    struct xvfb x = {0};
    struct file_stream s;
    struct err e = ERR_INIT;
    static const char block[65536];
    xvfb_folder(&x);
    if (!small_disk(x.dir, 16))
        skip();
    char *path = xvfb_place(&x, "page");
    assert_int_equal(file_stream_open(&s, path, &e), 0);
    fwrite(block, 1, sizeof block, s.f);
    int rc = file_stream_close(&s, &e);
    bool there = file_exists(path);
    no_temporary(x.dir, "");
    umount2(x.dir, MNT_DETACH);
    assert_int_equal(rc, -1);
    assert_false(there);
    if (e.kind != ERR_ENV || !strstr(e.text, path) || !strstr(e.text, "No space left"))
        fail_msg("'%s'", e.text);
    free(path);
    xvfb_stop(&x);
}

/* ---- a suite --------------------------------------------------------------------------------- */

static int lines_that_begin(const char *text, const char *with)
{
    int n = 0;
    for (const char *p = text; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        n += !strncmp(p, with, strlen(with));
    return n;
}

/* Runs a suite on a disk of `kib` KiB: requested output on stdout is complete, and one line and the exit
 * code report the failure. */
static void suite_within(struct qa_program *q, const char *out, int kib)
{
    if (!small_disk(out, kib))
        skip();
    qa_program_run(q, WORDS("--jobs", "2", "--quiet", "--json"));
    char *path = xasprintf("%s/report.html", out);
    bool page = strstr(q->o.err, "\nreport "), there = file_exists(path);
    free(path);
    no_temporary(out, "");
    umount2(out, MNT_DETACH);
    json_t *said = json_loads(q->o.out, 0, NULL);
    check_note("%d KiB: exit %d, %s", kib, q->o.code,
               q->results ? "results.json is there" : "no results.json");
    if (!said || json_array_size(json_object_get(said, "tests")) != 2)
        fail_msg("stdout: '%s'", q->o.out);
    json_decref(said);
    if (page != there)
        fail_msg("a page is %sthere: '%s'", there ? "" : "not ", q->o.err);
    assert_int_equal(q->o.code, kib < 1000 ? ERR_ENV : ERR_NONE);
    /* each run whose other files fit may report that its page does not */
    int pages = lines_that_begin(q->o.err, "holorun: warning: cannot write the report: ");
    if (pages > 2 || lines_that_begin(q->o.err, "holorun: ") - pages > 1)
        fail_msg("reported more than once: '%s'", q->o.err);
    assert_int_equal(qa_program_remains(q), 0);
}

static void t_suite(void **state)
{
    struct qa_program q;
    uint64_t random = check_seed() * 2654435761u + 1;
    qa_program_open(&q);
    qa_program_suite(&q, "tests:\n  - id: \"t{n}\"\n    matrix: { n: 1..2 }\n    task: Click.\n"
                         "    checks: [{kind: shell, run: 'grep -q button_press \"$HOME/events.jsonl\"'}]\n");
    qa_program_reply(&q, "t1", CLICK(400, 400) ANSWER("Done."));
    qa_program_reply(&q, "t2", CLICK(400, 400) ANSWER("Done."));
    char *out = xvfb_place(&q.x, "out.d");
    assert_int_equal(mkdir(out, 0700), 0);
    suite_within(&q, out, 4);
    suite_within(&q, out, 8 + 4 * (int)(check_random(&random) * 16));
    suite_within(&q, out, 4000);
    free(out);
    qa_program_close(&q);
}

static const struct CMUnitTest tests[] = {
    CLAIM("whichever call finds the disk full, earlier data stays, and it is reported once", t_record),
    CLAIM("a stream on a full disk reports it and leaves nothing", t_stream),
    CLAIM("a suite on a full disk gives exit code 3, one line, complete results on stdout, no missing page",
          t_suite),
};

CHECK_MAIN()
