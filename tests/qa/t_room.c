/* t_room.c - how many tests run at the same time without --jobs. */
#include "check.h"

#include "base/clock.h"
#include "base/file.h"
#include "qa/run/room.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct suite *parsed(const char *text)
{
    struct err e = ERR_INIT;
    struct suite *s = suite_parse(text, strlen(text), "suite.yaml", &e);
    if (!s)
        fail_msg("%s", e.text);
    return s;
}

static void t_ports(void **state)
{
    static const struct {
        const char *keys;
        bool shares;
    } rows[] = {
        {"start: ./nimbus --port 5173", true},
        {"start: 'chromium http://localhost:5173'", true},
        {"setup: 'python3 -m http.server --bind 127.0.0.1 8000 &'", true},
        {"env: { PORT: '8000' }", true},
        {"task: 'Open http://127.0.0.1:8000'", true},
        {"checks: [{ kind: port, port: 8000 }]", true},
        {"checks: [{ kind: shell, run: curl localhost }]", true},
        {"wait_until: [{ kind: port, port: 8000 }]", true},
        {"start: './nimbus -p 8080'", true},
        {"start: './nimbus -p8080 --quiet'", true},
        {"start: './nimbus --address :8080'", true},
        {"setup: './nimbus --listen /run/nimbus &'", true},
        {"setup: 'python3 -m http.server 8000 &'", true},
        {"task: 'Open nimbus.example:80.'", true},
        {"task: 'Set the alarm to 12:30.'", false},
        {"setup: 'mkdir -p reports'", false},
        {"start: 'chromium file://{dir}/page.html'", false},
        {"checks: [{ kind: window, title: Report }]", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *task = strstr(rows[i].keys, "task:") ? "" : "    task: Press Save.\n";
        char *text = xasprintf("tests:\n  - id: a\n%s    %s\n", task, rows[i].keys);
        struct suite *s = parsed(text);
        if (room_shares_port(&s->tests[0]) != rows[i].shares)
            fail_msg("%s: expected %d", rows[i].keys, rows[i].shares);
        suite_free(s);
        free(text);
    }
}

static void t_most(void **state)
{
    cpu_set_t set;
    const struct group_limits none = {.memory_left = SIZE_MAX};
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    int cores = CPU_COUNT(&set);
    struct suite *s = parsed("tests:\n  - { id: a, task: Press Save. }\n");
    assert_int_equal(room_most(s, 0, none), 2 * cores > 256 ? 256 : 2 * cores);
    assert_int_equal(room_most(s, (size_t)3 << 30, none), 1);
    assert_int_equal(room_most(s, 0, (struct group_limits){.cores = 0.4}), 2);
    assert_int_equal(room_most(s, 0, (struct group_limits){.cores = 1.5}), cores > 1 ? 4 : 2);
    suite_free(s);
    s = parsed("suite: { setup: 'make server' }\ntests:\n  - { id: a, task: Press Save. }\n");
    assert_int_equal(room_most(s, 0, none), 1);
    suite_free(s);
}

/* ---- control groups ------------------------------------------------------------------------------ */

static void put(const char *root, const char *dir, const char *name, const char *text)
{
    char *folder = xasprintf("%s/%s", root, dir), *path = xasprintf("%s/%s", folder, name);
    assert_int_equal(dir_make(folder, NULL) || file_write(path, text, strlen(text), NULL), 0);
    free(path);
    free(folder);
}

static void t_group(void **state)
{
    char root[PLACE_PATH];
    assert_non_null(mkdtemp(place_template(root)));
    put(root, "proc/self", "cgroup", "0::/ci/job\n");
    put(root, "sys/fs/cgroup/ci", "cpu.max", "150000 100000\n");
    put(root, "sys/fs/cgroup/ci", "cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 7\n");
    put(root, "sys/fs/cgroup/ci", "memory.max", "1000000\n");
    put(root, "sys/fs/cgroup/ci", "memory.current", "700000\n");
    put(root, "sys/fs/cgroup/ci", "memory.stat", "anon 1\ninactive_file 200000\n");
    put(root, "sys/fs/cgroup/ci/job", "cpu.max", "max 100000\n");
    put(root, "sys/fs/cgroup/ci/job", "memory.max", "max\n");
    put(root, "sys/fs/cgroup/ci/job", "memory.current", "600000\n");
    struct group_limits l = group_limits(root);
    assert_float_equal(l.cores, 1.5, 1e-6);
    assert_int_equal(l.throttled, 7);
    assert_int_equal(l.memory_left, 500000);
    place_remove(root);
}

/* A container of version 1 sees its own group at the top, and a path that does not exist. */
static void t_group_first(void **state)
{
    char root[PLACE_PATH];
    assert_non_null(mkdtemp(place_template(root)));
    put(root, "proc/self", "cgroup", "7:cpu,cpuacct:/docker/1f\n4:memory:/docker/1f\n3:cpuset:/\n0::/\n");
    put(root, "sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "50000\n");
    put(root, "sys/fs/cgroup/cpu", "cpu.cfs_period_us", "100000\n");
    put(root, "sys/fs/cgroup/memory", "memory.limit_in_bytes", "1000000\n");
    put(root, "sys/fs/cgroup/memory", "memory.usage_in_bytes", "400000\n");
    struct group_limits l = group_limits(root);
    assert_float_equal(l.cores, 0.5, 1e-6);
    assert_int_equal(l.memory_left, 600000);
    put(root, "sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "-1\n");
    put(root, "sys/fs/cgroup/memory", "memory.limit_in_bytes", "9223372036854771712\n");
    l = group_limits(root);
    assert_float_equal(l.cores, 0, 1e-6);
    assert_true(l.memory_left == SIZE_MAX);
    place_remove(root);
}

/* Keeps every core busy until killed. */
static int keep_busy(pid_t *pids, int most)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    int n = CPU_COUNT(&set) < most ? CPU_COUNT(&set) : most;
    for (int i = 0; i < n; i++)
        if (!(pids[i] = fork()))
            while (true)
                __asm__ volatile("");
    return n;
}

static void t_busy(void **state)
{
    pid_t pids[64];
    struct room r = {0};
    int n = keep_busy(pids, 64), left = 0;
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    room_left(&r);
    for (int i = 0; i < 3; i++) {
        clock_sleep_ms(320);
        left += room_left(&r);
    }
    for (int i = 0; i < n; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    if (n == CPU_COUNT(&set))
        assert_int_equal(left, 0);
}

static void t_at_once(void **state)
{
    struct room r = {0};
    assert_false(room_left(&r));
    assert_false(room_left(&r)); /* less than 300 ms later */
}

static const struct CMUnitTest tests[] = {
    CLAIM("a test whose texts name a port of this machine runs alone", t_ports),
    CLAIM("at most two tests run for each core, and one with the suite's own setup or heavy weights", t_most),
    CLAIM("the tightest limit of a group and those around it counts", t_group),
    CLAIM("limits of version 1 are found in a container that does not see its own path", t_group_first),
    CLAIM("no room is left while all cores are busy", t_busy),
    CLAIM("no room is left until it was measured for 300 ms", t_at_once),
};

CHECK_MAIN()
