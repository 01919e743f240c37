/* t_room.c - how many tests run at the same time without --jobs. */
#include "check.h"

#include "base/clock.h"
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
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    int cores = CPU_COUNT(&set);
    struct suite *s = parsed("tests:\n  - { id: a, task: Press Save. }\n");
    assert_int_equal(room_most(s, 0), 2 * cores > 256 ? 256 : 2 * cores);
    assert_int_equal(room_most(s, (size_t)3 << 30), 1);
    suite_free(s);
    s = parsed("suite: { setup: 'make server' }\ntests:\n  - { id: a, task: Press Save. }\n");
    assert_int_equal(room_most(s, 0), 1);
    suite_free(s);
}

/* Keeps every core busy until killed. */
static int keep_busy(pid_t *pids, int most)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    int n = CPU_COUNT(&set) < most ? CPU_COUNT(&set) : most;
    for (int i = 0; i < n; i++)
        if (!(pids[i] = fork()))
            for (volatile unsigned k = 0;; k++)
                ;
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
    CLAIM("no room is left while all cores are busy", t_busy),
    CLAIM("no room is left until it was measured for 300 ms", t_at_once),
};

CHECK_MAIN()
