/* t_check.c - tests of each kind of check, on separate desktops. */
#include "check.h"
#include "check_fixture.h"

#include "base/clock.h"
#include "base/sha256.h"

#include <X11/Xlib.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- shell --------------------------------------------------------------------------------------- */

static void t_shell(void **state)
{
    struct check_fixture t;
    check_fixture_open(&t);
    t.s.answer = "the 'answer' is\n42";
    t.s.run_dir = "/runs/x y";
    EXPECT(RUN_CHECK(&t, .text = "exit 0"), ANSWER_YES, "exit code 0, got 0");
    EXPECT(RUN_CHECK(&t, .text = "echo one; echo 'no such user' >&2; echo; exit 3"), ANSWER_NO,
           "expected exit code 0, got 3; last line of output: no such user");
    assert_string_equal(t.a.checks[0].output, "one\nno such user\n\n");
    EXPECT(RUN_CHECK(&t, .text = "kill -9 $$"), ANSWER_NO, "got 137");
    EXPECT(RUN_CHECK(&t, .text = "echo \"$HOLORUN_DIR|$HOLORUN_ANSWER|$HOLORUN_HOME\""), ANSWER_YES, "42|");
    char *want = xasprintf("/runs/x y|the 'answer' is\n42|%s\n", desk_home(t.desk));
    assert_string_equal(t.a.checks[0].output, want);
    free(want);
    RUN_CHECK(&t, .text = "yes 1234567 | head -c 100000; echo; echo end");
    assert_int_equal(strlen(t.a.checks[0].output), 64 << 10);
    assert_string_equal(t.a.checks[0].output + (64 << 10) - 5, "\nend\n");
    EXPECT(RUN_CHECK(&t, .text = "printf 'a\\0b\\033[31mc'; exit 1"), ANSWER_NO, "output: a?b [31mc");

    /* it is retried until it succeeds; a command that takes too long is killed */
    EXPECT(RUN_CHECK(&t, .text = "cd $HOLORUN_HOME; n=$(cat n 2>/dev/null); echo x$n >n; test \"$n\" = xxx",
                     .seconds = 20),
           ANSWER_YES, "got 0");
    EXPECT(RUN_CHECK(&t, .text = "echo begun; sleep 50", .seconds = 0.3), ANSWER_NO, "timed out after 1 s");
    assert_string_equal(t.a.checks[0].output, "begun\n");
    EXPECT(RUN_CHECK(&t, .text = "cd $HOLORUN_HOME; test -e again && sleep 50; touch again; exit 4",
                     .seconds = 0.2),
           ANSWER_NO, "got 4");
    check_fixture_close(&t);
}

/* ---- the answer ---------------------------------------------------------------------------------- */

static void t_answer(void **state)
{
    struct check_fixture t;
    check_fixture_open(&t);
    EXPECT(RUN_CHECK(&t, .kind = CHECK_ANSWER, .text = "."), ANSWER_NO, "matches '.', got none");
    t.s.answer = "VERDICT: PASSED\nIt shows \"2 tickets\".";
    EXPECT(RUN_CHECK(&t, .kind = CHECK_ANSWER, .text = "^VERDICT: PASSED$"), ANSWER_NO,
           "got 'VERDICT: PASSED It shows");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_ANSWER, .text = "(?m)^VERDICT: PASSED$"), ANSWER_YES, "matches");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_ANSWER, .text = "verdict"), ANSWER_NO, "matches 'verdict'");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_ANSWER, .text = "(oh"), ANSWER_ERROR, "missing closing parenthesis");
    t.s.answer = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";
    EXPECT(RUN_CHECK(&t, .kind = CHECK_ANSWER, .text = "^(a+)+$"), ANSWER_ERROR, "takes too long");
    check_fixture_close(&t);
}

/* ---- files --------------------------------------------------------------------------------------- */

static void t_file(void **state)
{
    struct check_fixture t;
    check_fixture_open(&t);
    char hex[65], path[120];
    sha256("Hello\0there\n", 12, hex);
    EXPECT(RUN_CHECK(&t, .kind = CHECK_FILE, .text = "a.txt"), ANSWER_NO,
           "expected a file 'a.txt'; it does not exist");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_FILE, .text = "a.txt", .absent = true), ANSWER_YES,
           "expected no file 'a.txt'; it does not exist");
    check_fixture_file(&t, "a.txt", "Hello\0there\n", 12);
    snprintf(path, sizeof path, "%s/a.txt", desk_home(t.desk));
    EXPECT(RUN_CHECK(&t, .kind = CHECK_FILE, .text = "a.txt"), ANSWER_YES, "one of 12 bytes");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_FILE, .text = path), ANSWER_YES, "one of 12 bytes");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_FILE, .text = "a.txt", .absent = true), ANSWER_NO, "expected no file");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_FILE, .text = "a.txt/b"), ANSWER_NO, "it does not exist");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_FILE, .text = "."), ANSWER_YES, "a folder");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_FILE, .text = "a.txt", .text2 = "there$"), ANSWER_YES,
           "a match for 'there$'");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_FILE, .text = "a.txt", .text2 = "bye"), ANSWER_NO,
           "got 12 bytes: 'Hello");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_FILE, .text = "a.txt", .text2 = "bye", .absent = true), ANSWER_YES,
           "expected no match for 'bye'");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_FILE, .text = "a.txt", .sha256 = hex), ANSWER_YES, "12 bytes");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_FILE, .text = "a.txt", .text2 = "Hello", .sha256 = hex), ANSWER_YES,
           "Hello");
    hex[0] = hex[0] == '0' ? '1' : '0';
    EXPECT(RUN_CHECK(&t, .kind = CHECK_FILE, .text = "a.txt", .text2 = "Hello", .sha256 = hex), ANSWER_NO,
           hex[0] == '0' ? "sha256 0" : "sha256 1");

    /* a named pipe, which would block, and a file above the limit */
    snprintf(path, sizeof path, "%s/pipe", desk_home(t.desk));
    assert_int_equal(mkfifo(path, 0600), 0);
    EXPECT(RUN_CHECK(&t, .kind = CHECK_FILE, .text = "pipe", .text2 = "x"), ANSWER_NO, "not a regular file");
    check_fixture_file(&t, "big", "", 0);
    snprintf(path, sizeof path, "%s/big", desk_home(t.desk));
    assert_int_equal(truncate(path, 5 << 20), 0);
    EXPECT(RUN_CHECK(&t, .kind = CHECK_FILE, .text = "big", .text2 = "x"), ANSWER_ERROR,
           "larger than 4194304 bytes");
    check_fixture_close(&t);
}

/* ---- processes and ports ------------------------------------------------------------------------- */

static int listening(int *port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof to;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&to, &size), 0);
    *port = ntohs(to.sin_port);
    return fd;
}

static void t_process_port(void **state)
{
    struct check_fixture t;
    int port;
    check_fixture_open(&t);
    struct err e = ERR_INIT;
    EXPECT(RUN_CHECK(&t, .kind = CHECK_PROCESS, .text = "sleep 98765"), ANSWER_NO, "there are none");
    assert_int_equal(desk_start(t.desk, "exec sleep 98765", &e), 0);
    EXPECT(RUN_CHECK(&t, .kind = CHECK_PROCESS, .text = "sleep 9876[0-9]", .seconds = CHECK_FIXTURE_PATIENCE),
           ANSWER_YES, "expected a process whose command line matches 'sleep 9876[0-9]', there is 1");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_PROCESS, .text = "sleep 98765", .absent = true), ANSWER_NO,
           "expected no process");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_PROCESS, .text = "(oh"), ANSWER_ERROR, "missing closing parenthesis");
    int fd = listening(&port);
    EXPECT(RUN_CHECK(&t, .kind = CHECK_PORT, .port = port), ANSWER_NO,
           "to accept connections: Connection refused");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_PORT, .port = port, .absent = true), ANSWER_YES,
           "to refuse connections: Connection refused");
    assert_int_equal(listen(fd, 1), 0);
    EXPECT(RUN_CHECK(&t, .kind = CHECK_PORT, .port = port), ANSWER_YES, "connections: accepted");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_PORT, .port = port, .absent = true), ANSWER_NO,
           "connections: accepted");
    close(fd);
    check_fixture_close(&t);
}

/* ---- windows ------------------------------------------------------------------------------------- */

static void *put_window_late(void *arg)
{
    struct check_fixture *t = arg;
    Display *dpy = XOpenDisplay(desk_display(t->desk));
    clock_sleep_ms(300);
    check_fixture_window(dpy, "Late one", "Late", 10, 10, 20, 20, 0xff);
    return dpy;
}

static void t_window(void **state)
{
    struct check_fixture t;
    check_fixture_open(&t);
    EXPECT(RUN_CHECK(&t, .kind = CHECK_WINDOW, .text = "."), ANSWER_NO,
           "expected a window titled '.', there is none");
    check_fixture_window(t.dpy, "Nimbus - Tickets", "Nimbus", 0, 0, 50, 50, 0xff0000);
    Window other = check_fixture_window(t.dpy, "Terminal", "XTerm", 60, 0, 50, 50, 0xff00);
    EXPECT(RUN_CHECK(&t, .kind = CHECK_WINDOW, .text = "^Nimbus"), ANSWER_YES, "there is 'Nimbus - Tickets'");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_WINDOW, .text2 = "^XTerm$"), ANSWER_YES,
           "'Terminal' of class 'XTerm'");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_WINDOW, .text = "Nimbus", .text2 = "XTerm"), ANSWER_NO,
           "of class 'XTerm', there is 'Terminal'");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_WINDOW, .text = "Mail"), ANSWER_NO,
           "there is 'Terminal', 'Nimbus - Tickets'");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_WINDOW, .text = "Mail", .absent = true), ANSWER_YES,
           "expected no window titled 'Mail'");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_WINDOW, .text = "Term", .absent = true), ANSWER_NO,
           "there is 'Terminal'");
    XUnmapWindow(t.dpy, other);
    XSync(t.dpy, False);
    EXPECT(RUN_CHECK(&t, .kind = CHECK_WINDOW, .text = "Term", .absent = true), ANSWER_YES,
           "expected no window");

    pthread_t later;
    void *dpy;
    assert_int_equal(pthread_create(&later, NULL, put_window_late, &t), 0);
    EXPECT(RUN_CHECK(&t, .kind = CHECK_WINDOW, .text = "Late", .seconds = 60), ANSWER_YES, "'Late one'");
    pthread_join(later, &dpy);
    XCloseDisplay(dpy);
    check_fixture_close(&t);
}

/* ---- checks that cannot run ---------------------------------------------------------------------- */

static void t_not_asked(void **state)
{
    struct check_fixture t;
    check_fixture_open(&t);
    t.s.ended = false;
    EXPECT(RUN_CHECK(&t, .text = "exit 0"), ANSWER_NOT_ASKED, "the agent did not finish");
    EXPECT(RUN_CHECK(&t, .text = "exit 0", .always = true), ANSWER_YES, "got 0");
    t.s.ended = true;

    /* all checks run, whatever the first one finds; each has its own detail */
    attempt_free(&t.a);
    t.test.checks[0] = (struct check){.text = "exit 1"};
    t.test.checks[1] = (struct check){.kind = CHECK_WINDOW, .text = "x"};
    t.test.checks[2] = (struct check){.text = "exit 0"};
    t.test.n_checks = 3;
    struct screen *screen = t.s.screen;
    t.s.screen = NULL;
    assert_int_equal(checks_run(&t.s, &t.a), 0);
    t.s.screen = screen;
    EXPECT(&t.a.checks[0], ANSWER_NO, "got 1");
    EXPECT(&t.a.checks[1], ANSWER_ERROR, "the screen of the test was lost");
    EXPECT(&t.a.checks[2], ANSWER_YES, "got 0");

    t.s.desk = NULL;
    EXPECT(RUN_CHECK(&t, .text = "exit 0"), ANSWER_ERROR, "the desktop of the test was lost");
    check_fixture_close(&t);
}

/* Simulates a crash of the X server; the test's own connection is closed first. */
static void kill_server(struct check_fixture *t)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    assert_int_equal(getsockopt(ConnectionNumber(t->dpy), SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
    XCloseDisplay(t->dpy);
    t->dpy = NULL;
    assert_int_equal(kill(peer.pid, SIGKILL), 0);
    char what[256];
    for (int64_t start = clock_ns(); desk_state(t->desk, what, sizeof what) != DESK_NO_SERVER;
         clock_sleep_ms(20))
        assert_true(clock_ms_since(start) < 1000 * CHECK_FIXTURE_PATIENCE);
}

/* Starts a program under test that exits at once, and checks the state of the desktop. */
static void ends_as(struct check_fixture *t, const char *command, enum desk_state state)
{
    struct err e = ERR_INIT;
    char what[256];
    assert_int_equal(desk_start(t->desk, command, &e), 0);
    for (int64_t start = clock_ns(); desk_state(t->desk, what, sizeof what) != state; clock_sleep_ms(20))
        assert_true(clock_ms_since(start) < 1000 * CHECK_FIXTURE_PATIENCE);
}

/* On a broken desktop neither a no, nor a yes of `absent`, is a verdict; the program under test may have
 * exited. */
static void t_not_well(void **state)
{
    struct check_fixture t;
    check_fixture_open(&t);
    ends_as(&t, "exit 3", DESK_NO_PROGRAM);
    EXPECT(RUN_CHECK(&t, .text = "exit 1"), ANSWER_NO, "got 1");
    kill_server(&t);
    EXPECT(RUN_CHECK(&t, .text = "exit 1"), ANSWER_ERROR, "the X server has ended");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_PROCESS, .text = "none", .absent = true), ANSWER_ERROR,
           "the X server has ended");
    EXPECT(RUN_CHECK(&t, .text = "exit 0"), ANSWER_YES, "got 0");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_WINDOW, .text = "x", .absent = true), ANSWER_ERROR, "was lost");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_REGION, .text = "x.png"), ANSWER_ERROR, "was lost");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_TEXT, .text = "x"), ANSWER_ERROR, "was lost");
    check_fixture_close(&t);
}

/* The program under test may be closed, because that may be the task. */
static void t_closed(void **state)
{
    struct check_fixture t;
    check_fixture_open(&t);
    ends_as(&t, "exit 0", DESK_PROGRAM_DONE);
    EXPECT(RUN_CHECK(&t, .kind = CHECK_PROCESS, .text = "none", .absent = true), ANSWER_YES, "");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_WINDOW, .text = "none", .absent = true), ANSWER_YES, "");
    EXPECT(RUN_CHECK(&t, .text = "exit 1"), ANSWER_NO, "got 1");
    check_fixture_close(&t);
}

static void *cancel_soon(void *arg)
{
    clock_sleep_ms(200);
    *(volatile int *)arg = 1;
    return NULL;
}

static void t_cancel(void **state)
{
    struct check_fixture t;
    volatile int cancel = 0;
    pthread_t later;
    check_fixture_open(&t);
    t.s.cancel = &cancel;
    static const char *const commands[] = {"exit 1",
                                           "sleep 1000"}; /* cancelled between retries, and during one */
    for (int i = 0; i < 2; i++) {
        attempt_free(&t.a);
        cancel = 0;
        t.test.checks[0] = (struct check){.text = "exit 0", .seconds = 1000};
        t.test.checks[1] = (struct check){.text = commands[i], .seconds = 1000};
        t.test.checks[2] = (struct check){.text = "exit 0", .seconds = 1000};
        t.test.n_checks = 3;
        assert_int_equal(pthread_create(&later, NULL, cancel_soon, (void *)(uintptr_t)&cancel), 0);
        assert_int_equal(checks_run(&t.s, &t.a), -1);
        pthread_join(later, NULL);
        assert_int_equal(t.a.n_checks, 3);
        EXPECT(&t.a.checks[1], ANSWER_NOT_ASKED, "stopped");
        EXPECT(&t.a.checks[2], ANSWER_NOT_ASKED, "not run: stopped");
    }
    check_fixture_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a command's exit code decides; its output, environment and time limit work", t_shell),
    CLAIM("the answer is matched unchanged", t_answer),
    CLAIM("a file exists, matches, has this hash; other kinds and large files are reported", t_file),
    CLAIM("processes and ports are found or not", t_process_port),
    CLAIM("a window is found by title and class and waited for; if absent, the others are listed", t_window),
    CLAIM("a check that cannot run is not a no, and the others run", t_not_asked),
    CLAIM("cancelling does not wait for checks", t_cancel),
    CLAIM("on a lost desktop no check gives a no, and nothing counts as absent", t_not_well),
    CLAIM("checks run after the program was closed", t_closed),
};

int main(int argc, char **argv)
{
    return check_fixture_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
