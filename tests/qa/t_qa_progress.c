/* t_qa_progress.c - tests of the terminal output while a suite runs: whole lines, a bar below them, no
 * control sequences. */
#include "base/file.h"
#include "qa/report/report.h"

#include "check.h"
#include "results_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- progress lines ------------------------------------------------------------------------------ */

/* Returns the output of `show` on stderr. */
static char *shown(void (*show)(struct fixture *m), struct fixture *m)
{
    char *path = fixture_path(m, "stderr"), *text;
    size_t len;
    fflush(stderr);
    int old = dup(2), fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(old >= 0 && fd >= 0 && dup2(fd, 2) == 2);
    show(m);
    fflush(stderr);
    assert_true(dup2(old, 2) == 2);
    close(old), close(fd);
    assert_int_equal(file_read(path, 8 << 20, &text, &len, NULL), 0);
    free(path);
    return text;
}

static struct progress *shared_live;

enum { CROWD = 8, ROUNDS = 25 };

static void *end_some(void *arg)
{
    struct fixture *m = arg;
    for (int i = 0; i < ROUNDS * m->all.n; i++) {
        progress_start(shared_live, &m->tests[i % m->all.n], i % 4);
        progress_tick(shared_live);
        progress_end(shared_live, &m->results[i % m->all.n]);
    }
    return NULL;
}

static void show_crowd(struct fixture *m)
{
    pthread_t threads[CROWD];
    shared_live = progress_begin(CROWD * ROUNDS * m->all.n, 4, false);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, end_some, m), 0);
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    progress_summary(shared_live, &m->all, "qa/report.html");
    progress_free(shared_live);
}

static void t_live(void **state)
{
    struct fixture *m = fixture_one_of_each();
    m->tests[0].id = "evil\x1b[2J\x9b\xe2\x80\xae\nid";
    char *text = shown(show_crowd, m);
    for (int i = 1; i <= CROWD * ROUNDS * m->all.n; i++) { /* every number appears once */
        char number[32];
        snprintf(number, sizeof number, "[%4d/1800] ", i);
        assert_int_equal(check_count(text, number), 1);
    }
    assert_int_equal(check_count(text, "passed           5.2 s  evil\xef\xbf\xbd id\n"), CROWD * ROUNDS);
    assert_int_equal(
        check_count(text, "failed           5.2 s  failed - shell: true: expected exit code 0, got 1\n"),
        CROWD * ROUNDS);
    for (const char *p = text; *p; p++)
        assert_true((unsigned char)*p >= 0x20 || *p == '\n');
    check_has(text, "\nclaimed      claimed - no check confirms what the agent says: Done.\n");
    check_has(text, "\nflaky        flaky one - flaky, passed on attempt 2: ");
    check_has(text,
              "\n2 failed, 1 error, 1 claimed, 1 inconclusive, 1 stopped, 1 flaky, 1 skipped, 1 passed in 3 "
              "min 21 s\n"
              "not passed   exit code 130; 3 of the tests undecided: errors to CI\n"
              "report       qa/report.html\n");
    free(text);
    fixture_free(m);
}

/* A terminal of 100 columns as stderr.  A thread reads it, because its buffer is small. */
struct terminal {
    int master;
    char *text;
};

static void *read_terminal(void *arg)
{
    struct terminal *t = arg;
    size_t size;
    char part[512];
    FILE *f = open_memstream(&t->text, &size);
    for (ssize_t n; (n = read(t->master, part, sizeof part)) > 0;) /* ends when the other side is closed */
        fwrite(part, 1, (size_t)n, f);
    fclose(f);
    return NULL;
}

static char *shown_on_terminal(void (*show)(struct fixture *m), struct fixture *m)
{
    struct terminal t = {.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
    struct winsize size = {.ws_row = 24, .ws_col = 100};
    pthread_t reader;
    assert_true(t.master >= 0 && grantpt(t.master) == 0 && unlockpt(t.master) == 0);
    int old = dup(2), slave = open(ptsname(t.master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(slave >= 0 && ioctl(slave, TIOCSWINSZ, &size) == 0);
    assert_int_equal(pthread_create(&reader, NULL, read_terminal, &t), 0);
    fflush(stderr);
    assert_true(dup2(slave, 2) == 2);
    show(m);
    fflush(stderr);
    assert_true(dup2(old, 2) == 2);
    close(old), close(slave);
    pthread_join(reader, NULL);
    close(t.master);
    return t.text;
}

/* Starts two tests and ends the first. */
static void show_two(struct fixture *m)
{
    struct progress *l = progress_begin(m->all.n, 4, false);
    progress_start(l, &m->tests[0], 0);
    progress_start(l, &m->tests[1], 1);
    progress_end(l, &m->results[0]);
    progress_summary(l, &m->all, NULL);
    progress_free(l);
}

static void t_terminal(void **state)
{
    struct fixture *m = fixture_one_of_each();
    m->tests[0].id = "login\x1b]0;mine\x07";
    m->tests[1].id = "a-test-whose-name-has-no-room-beside-the-bar-on-this-terminal";
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    char *text = shown_on_terminal(show_two, m);
    check_has(text, "] 0/9  login  ");
    check_has(text, "] 0/9  login +1  ");
    check_has(text, "\r\033[K[1/9] \033[32mpassed      \033[0m     5.2 s  login\r\n");
    check_has(text, "] 1/9  1 running  ");
    check_has(text, "\033[31m2 failed\033[0m, \033[31m1 error\033[0m");
    assert_int_equal(check_count(text, "mine"), 0);
    for (char *save, *line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save))
        if (strstr(line, "/9  ")) /* a bar longer than a line could not be erased */
            assert_true(strlen(line) < 100);
    free(text);
    setenv("NO_COLOR", "1", 1);
    text = shown_on_terminal(show_two, m);
    assert_int_equal(check_count(text, "\033[3"), 0);
    check_has(text, "[1/9] passed           5.2 s  login\r\n");
    free(text);
    unsetenv("NO_COLOR");
    fixture_free(m);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a terminal has a bar below the lines, in colour unless NO_COLOR is set", t_terminal),
    CLAIM("lines of tests that end at the same time do not mix, and no id controls the terminal", t_live),
};

CHECK_MAIN()
