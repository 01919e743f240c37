/* t_step_program.c - tests of stepping with the program itself: from a script, and in a terminal. */
#include "check.h"
#include "driven.h"

#include "base/file.h"

#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVIL                                                                                                 \
    "{\"note\": null, \"thought\": \"as\xe2\x80\xaex\", \"tool_call\": {\"tool_name\": \"write_desktop\", "  \
    "\"content\": \"no\"}}\n"

enum { PATIENCE_MS = 8000 };

static void t_program(void **state)
{
    struct stage t;
    struct outcome o = {0};
    driven_open(&t);
    char *replies = xvfb_put(&t.x, "replies", CLICK(500, 500) TYPE("no") ANSWER("Done."));
    char *commands = xvfb_put(&t.x, "commands", "text hi\ncontinue\n"), *runs = xvfb_place(&t.x, "runs");
    char *how = xasprintf("--step=script:%s", commands);
    program_run(&t.x, &o,
                WORDS("run", "Press Save", how, "--break", "kind type", "--break", "step 99", "--fake",
                      replies, "--runs", runs, "--settle-quiet", "30"));
    assert_int_equal(o.code, 0);
    assert_string_equal(o.out, "Done.\n");
    assert_non_null(strstr(o.err, "breakpoint: kind type"));
    assert_int_equal(json_array_size(stage_events(&t, "key_press")), 2);
    program_run(&t.x, &o, WORDS("step", "Press Save", "--step=terminal", "--fake", replies, "--runs", runs));
    ONE_LINE(&o, ERR_USAGE, "not a terminal", "--step=script:FILE");
    program_run(&t.x, &o, WORDS("step", "Press Save", "--step=cards", "--fake", replies, "--runs", runs));
    ONE_LINE(&o, ERR_USAGE, "invalid --step", "'cards'");
    program_run(&t.x, &o,
                WORDS("run", "Press Save", how, "--break", "kind dance", "--fake", replies, "--runs", runs));
    ONE_LINE(&o, ERR_USAGE, "unknown action 'dance'");
    outcome_free(&o);
    free(replies);
    free(commands);
    free(runs);
    free(how);
    stage_close(&t);
}

/* Reads from the terminal until `what` appears; keeps the rest for the next call. */
static void wait_for(int fd, struct buf *said, const char *what)
{
    const char *at;
    while (!(at = strstr(said->data, what))) {
        char piece[4096];
        struct pollfd p = {fd, POLLIN, 0};
        ssize_t n = poll(&p, 1, PATIENCE_MS) > 0 ? read(fd, piece, sizeof piece) : 0;
        if (n <= 0)
            fail_msg("the terminal did not say '%s': %s", what, said->data);
        buf_put(said, piece, (size_t)n);
    }
    char *rest = xstrdup(at + strlen(what));
    buf_clear(said);
    buf_puts(said, rest);
    free(rest);
}

static void t_terminal(void **state)
{
    struct stage t;
    driven_open(&t);
    char *replies = xvfb_put(&t.x, "replies", CLICK(500, 500) EVIL ANSWER("Done."));
    char *runs = xvfb_place(&t.x, "runs");
    int fd;
    pid_t pid = forkpty(&fd, NULL, NULL, NULL);
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("TERM", "xterm", 1);
        setenv("COLORTERM", "truecolor", 1);
        execl(program_path(), "holorun", "step", "Press Save", "--step=terminal", "--quiet", "--fake",
              replies, "--runs", runs, "--settle-quiet", "30", (char *)NULL);
        _exit(127);
    }
    struct buf said;
    buf_init(&said, 1 << 20);
    wait_for(fd, &said, "400,300");      /* the click's position */
    wait_for(fd, &said, "\xe2\x96\x80"); /* the screen there */
    wait_for(fd, &said, "(help)?");
    assert_int_equal(write(fd, "help\n", 5), 5);
    wait_for(fd, &said, "veto [REASON]");
    wait_for(fd, &said, "(help)?");
    assert_int_equal(write(fd, "dance\n", 6), 6);
    wait_for(fd, &said, "unknown command 'dance'");
    assert_int_equal(write(fd, "p 300 210\n", 10), 10);
    wait_for(fd, &said, "300,210");
    assert_int_equal(write(fd, "\n", 1), 1); /* Return runs it */
    wait_for(fd, &said, "as?x");             /* control characters of the model are replaced */
    assert_int_equal(write(fd, "text yes\nn\nc\n", 13), 13);
    wait_for(fd, &said, "Done.");
    int status;
    char rest[256];
    while (read(fd, rest, sizeof rest) > 0)
        ;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    json_t *list = stage_events(&t, "button_press");
    assert_int_equal(field(list, 0, "x"), 300);
    assert_int_equal(json_array_size(stage_events(&t, "key_press")), 3);
    buf_free(&said);
    close(fd);
    free(replies);
    free(runs);
    stage_close(&t);
}

/* Runs `holorun step` in a terminal and writes `end` at its first question.  Returns the exit code. */
static int stepped_at_terminal(const struct stage *t, const char *end, size_t n, const char *expected)
{
    char *replies = xvfb_put(&t->x, "replies", CLICK(500, 500) ANSWER("Done."));
    char *runs = xvfb_place(&t->x, "runs");
    int fd, status;
    pid_t pid = forkpty(&fd, NULL, NULL, NULL);
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("TERM", "xterm", 1);
        unsetenv("SSH_CONNECTION");
        if (expected)
            unsetenv("DISPLAY");
        execl(program_path(), "holorun", "step", "Press Save", expected ? "--on" : "--step=terminal",
              expected ? "desk" : "--report", "--fake", replies, "--runs", runs, "--settle-quiet", "30",
              (char *)NULL);
        _exit(127);
    }
    struct buf said;
    buf_init(&said, 1 << 20);
    if (expected)
        wait_for(fd, &said, expected);
    wait_for(fd, &said, "(help)?");
    assert_int_equal(write(fd, end, n), n);
    wait_for(fd, &said, "stopped");
    char rest[256];
    while (read(fd, rest, sizeof rest) > 0)
        ;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    buf_free(&said);
    close(fd);
    free(replies);
    free(runs);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void t_quit(void **state)
{
    static const char *const ends[] = {"quit\n", "q\n", "exit\n", "stop\n", "\4"}; /* \4: Ctrl-D */
    struct stage t;
    driven_open(&t);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        assert_int_equal(stepped_at_terminal(&t, ends[i], strlen(ends[i]), NULL), ERR_STOPPED);
        driven_was_stopped(&t, "");
        driven_left_nothing(&t);
    }
    assert_int_equal(json_array_size(stage_events(&t, "button_press")), 0);
    stage_close(&t);
}

static void t_private(void **state)
{
    struct stage t;
    struct outcome o = {0};
    driven_open(&t);
    assert_int_equal(stepped_at_terminal(&t, "quit\n", 5, "stepping in this terminal"), ERR_STOPPED);
    char *replies = xvfb_put(&t.x, "replies", ANSWER("Done.")), *display = xstrdup(getenv("DISPLAY"));
    unsetenv("DISPLAY");
    program_run(&t.x, &o, WORDS("step", "Press Save", "--on", "desk", "--step=window", "--fake", replies));
    setenv("DISPLAY", display, 1);
    ONE_LINE(&o, ERR_USAGE, "no display for the step window", "--ui-display");
    outcome_free(&o);
    free(replies);
    free(display);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("quit, q, exit, stop and Ctrl-D end the run as stopped and release everything", t_quit),
    CLAIM("on a private desktop without DISPLAY steps are shown in the terminal", t_private),
    CLAIM("--step, --break and the step command work in the program", t_program),
    CLAIM("a terminal accepts the same commands, and the model's text cannot control it", t_terminal),
};

CHECK_MAIN()
