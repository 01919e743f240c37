/* t_qa_chaos.c - tests of `holorun qa` if a process dies at a random moment (the program itself, an X
 * server, a window manager, the program under test) or the disk is full.
 *
 * Four tests run in parallel; each types five letters twice with pauses, and its check counts them.
 * HOLORUN_MOMENTS is the number of moments (10; `make qa-chaos` uses 30).
 */
#include "check.h"
#include "qa_program.h"

#include "base/clock.h"
#include "base/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TESTS = 4, SPAN_MS = 3000, DISK_BYTES = 4 << 20 };

enum victim { V_PROGRAM_ITSELF, V_SERVER, V_WM, V_PROGRAM, V_DISK, VICTIMS };
static const struct {
    const char *name, *comm; /* comm: of the process; NULL: not a process of a desktop */
} victims[VICTIMS] = {{"holorun", NULL},
                      {"the X server", "Xvfb"},
                      {"the window manager", "openbox"},
                      {"the program under test", "xclient"},
                      {"room on the disk", NULL}};

static void open_suite(struct qa_program *q)
{
    qa_program_open(q);
    qa_program_suite(
        q, "tests:\n  - id: \"t{n}\"\n    matrix: { n: 1..4 }\n    task: Type hello twice.\n"
           "    checks: [{kind: shell, run: 'grep -c key_press \"$HOME/events.jsonl\" | grep -qx 10'}]\n");
    for (const char *const *id = WORDS("t1", "t2", "t3", "t4"); *id; id++)
        qa_program_reply(q, *id, CLICK(400, 400) TYPE("hello") WAIT(1) TYPE("hello") ANSWER("Done."));
}

/* Kills a random one of the marked processes of this name. */
static bool kill_one(const struct qa_program *q, const char *comm, uint64_t *random)
{
    pid_t found[64];
    int n = qa_program_processes(q, comm, found, 64);
    if (n == 0)
        return false;
    kill(found[(int)(check_random(random) * n)], SIGKILL);
    return true;
}

static void fill_disk(const char *dir)
{
    static char zeros[4096];
    char *path = xasprintf("%s/filler", dir);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    while (fd >= 0 && write(fd, zeros, sizeof zeros) > 0)
        ;
    close(fd);
    free(path);
}

/* Checks that each test that did not pass is failed or an error, and has a reason; returns their number. */
static int count_bad(const struct qa_program *q)
{
    int bad = 0;
    for (const char *const *id = WORDS("t1", "t2", "t3", "t4"); *id; id++) {
        const char *o = qa_program_outcome(q, *id);
        if (!strcmp(o, "passed"))
            continue;
        bad++;
        if (strcmp(o, "failed") != 0 && strcmp(o, "error") != 0)
            fail_msg("%s is %s", *id, o);
    }
    return bad;
}

static void judge(const struct qa_program *q, enum victim v)
{
    if (v == V_PROGRAM_ITSELF) { /* unless it had ended before */
        assert_true(q->o.code == -1 || q->o.code == 0);
        return;
    }
    if (v == V_DISK) { /* no file can be written: every run ends with an error line */
        assert_true(q->o.code == ERR_ENV || q->o.code == ERR_FAILED || q->o.code == 0);
        assert_true(q->o.code == 0 || strstr(q->o.err, "No space left"));
        return;
    }
    int bad = count_bad(q);
    check_note("%d of %d not passed, exit %d", bad, TESTS, q->o.code);
    assert_in_range(bad, 0, 1);
    assert_true(bad ? q->o.code == ERR_FAILED || q->o.code == ERR_ENV : q->o.code == 0);
    if (bad && v != V_PROGRAM) /* an error of the environment */
        assert_int_equal(q->o.code, ERR_ENV);
}

static void one_moment(enum victim v, uint64_t *random)
{
    struct qa_program q;
    open_suite(&q);
    char *out = xvfb_place(&q.x, "out.d");
    bool mounted = false, hit = true;
    if (v == V_DISK) {
        assert_int_equal(mkdir(out, 0700), 0);
        mounted = mount("none", out, "tmpfs", 0, "size=4m") == 0;
        if (!mounted)
            check_note("a small file system cannot be mounted here");
    }
    double after = check_random(random) * SPAN_MS;
    pid_t pid = qa_program_start(&q, WORDS("--jobs", "4", "--quiet"));
    clock_sleep_ms(after);
    if (v == V_PROGRAM_ITSELF)
        hit = kill(pid, SIGKILL) == 0;
    else if (v == V_DISK && mounted)
        fill_disk(out);
    else if (v != V_DISK)
        hit = kill_one(&q, victims[v].comm, random);
    check_note("%s after %.0f ms%s", victims[v].name, after, hit ? "" : ": not there");
    qa_program_finish(&q, pid);
    if (mounted)
        umount2(out, MNT_DETACH);
    free(out);
    judge(&q, v);
    assert_int_equal(qa_program_remains(&q), 0);
    qa_program_close(&q);
}

static void t_moments(void **state)
{
    uint64_t random = check_seed() * 2654435761u + 1;
    const char *asked = getenv("HOLORUN_MOMENTS");
    int n = asked ? atoi(asked) : 2 * VICTIMS;
    for (int i = 0; i < n; i++)
        one_moment((enum victim)(i % VICTIMS), &random);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a death at a random moment gives the right outcome, leaves nothing and harms no other test",
          t_moments),
};

CHECK_MAIN()
