/* t_gate_run.c - tests of the gate in a run: actions that are allowed, questions in a terminal, refusal if
 * no one can be asked, and the record.
 */
#include "check.h"
#include "driven.h"

#include "base/clock.h"
#include "base/file.h"

#include <pty.h>
#include <unistd.h>

enum { PATIENCE_MS = 40000 }; /* for loaded machines */

/* ---- the program ----------------------------------------------------------------------------- */

#define SEND CLICK_ON("the Send button", 500, 500)
#define ZAP  STEP("\"hotkey_desktop\", \"keys\": [\"alt\", \"delete\", \"ctrl\"]")

static json_t *gate_event(const struct record *r, int nth)
{
    for (int i = 0; i < r->n; i++)
        if (!strcmp(r->events[i].kind, "gate") && nth-- == 0)
            return r->events[i].fields;
    return NULL;
}

static void t_denied(void **state)
{
    struct stage t;
    struct outcome o = {0};
    struct record r;
    driven_open(&t);
    driven_run(&t, ZAP SEND CLICK(500, 500) ANSWER("Done."), WORDS("--confirm", "never"), &o);
    assert_int_equal(o.code, 0);
    driven_read(&t, &r);
    const json_t *denied = gate_event(&r, 0), *refused = gate_event(&r, 1), *passed = gate_event(&r, 2);
    assert_string_equal(field_text(denied, "verdict"), "deny");
    assert_string_equal(field_text(denied, "who"), "policy");
    assert_false(field_bool(denied, "pass"));
    assert_string_equal(field_text(refused, "verdict"), "confirm");
    assert_string_equal(field_text(refused, "who"), "nobody");
    assert_false(field_bool(refused, "pass"));
    assert_true(field_bool(passed, "pass"));
    int told = 0;
    for (int i = 0; i < r.n; i++)
        told +=
            !strcmp(r.events[i].kind, "tool_output") && strstr(field_text(r.events[i].fields, "text"), "E_");
    assert_int_equal(told, 2); /* the model was informed of both */
    assert_int_equal(strlen(field_text(json_object_get(r.run, "policy"), "sha256")), 64);
    record_free(&r);
    json_t *seen = stage_events(&t, NULL); /* only allowed actions have reached the window */
    for (size_t i = 0; i < json_array_size(seen); i++)
        assert_null(strstr(word(seen, i, "event"), "key"));
    assert_int_equal(json_array_size(stage_events(&t, "button_press")), 1);
    char *runs = xvfb_place(&t.x, "runs"), *dir = record_newest(runs, NULL), *page, *html;
    size_t len;
    assert_true(asprintf(&page, "%s/report.html", dir) > 0);
    assert_int_equal(file_read(page, 64 << 20, &html, &len, NULL), 0);
    assert_non_null(strstr(html, "keys of the console and the X server: denied"));
    assert_non_null(strstr(html, "sending, paying, deleting, granting: refused by nobody"));
    free(html);
    free(page);
    free(dir);
    free(runs);
    outcome_free(&o);
    stage_close(&t);
}

static void t_dry(void **state)
{
    struct stage t;
    struct outcome o = {0};
    struct record r;
    driven_open(&t);
    driven_run(&t, SEND ZAP ANSWER("Done."), WORDS("--dry-run", "-n", "3", "--confirm", "tty"), &o);
    assert_int_equal(o.code, 0);
    driven_read(&t, &r);
    assert_string_equal(field_text(gate_event(&r, 0), "who"), "dry run");
    assert_true(field_bool(gate_event(&r, 0), "pass"));
    assert_string_equal(field_text(gate_event(&r, 1), "verdict"), "deny");
    record_free(&r);
    assert_int_equal(json_array_size(stage_events(&t, NULL)), 0);
    driven_run(&t, ANSWER("Done."), WORDS("--confirm", "perhaps"), &o);
    ONE_LINE(&o, ERR_USAGE, "expected auto, tty, never");
    char *bad = xvfb_place(&t.x, "p.yaml");
    assert_int_equal(file_write(bad, "rules:\n  - deny: x\n    zone: 3\n", 31, NULL), 0);
    driven_run(&t, ANSWER("Done."), WORDS("--policy", bad), &o);
    ONE_LINE(&o, ERR_USAGE, "p.yaml:3", "key 'zone'", "expected");
    free(bad);
    outcome_free(&o);
    stage_close(&t);
}

/* ---- in a terminal --------------------------------------------------------------------------- */

/* Starts the program in a new terminal (*fd), or without one (fd NULL). */
static pid_t start_in_session(const struct stage *t, const char *replies, const char *seconds, int *fd)
{
    char *script = xvfb_place(&t->x, "script"), *runs = xvfb_place(&t->x, "runs"),
         *err = xvfb_place(&t->x, "err"), *out = xvfb_place(&t->x, "out");
    assert_int_equal(file_write(script, replies, strlen(replies), NULL), 0);
    fflush(stdout);
    pid_t pid = fd ? forkpty(fd, NULL, NULL, NULL) : fork();
    if (pid == 0) {
        if (!fd)
            setsid();
        setenv("TERM", "xterm-256color", 1);
        unsetenv("NO_COLOR");
        if (freopen(err, "w", stderr) && freopen(out, "w", stdout))
            execl(program_path(), "holorun", "run", "Press Send", "--fake", script, "--runs", runs,
                  "--settle-min", "1", "--settle-quiet", "30", "--confirm-timeout", seconds, NULL);
        _exit(127);
    }
    free(script);
    free(runs);
    free(err);
    free(out);
    return pid;
}

/* Returns the terminal's output up to `what`; the caller frees it. */
static char *read_until(int fd, const char *what)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    for (int64_t start = clock_ns(); !strstr(b.data, what) && clock_ms_since(start) < PATIENCE_MS;) {
        char chunk[4096];
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n <= 0)
            break;
        buf_put(&b, chunk, (size_t)n);
    }
    if (!strstr(b.data, what))
        fail_msg("the terminal never showed '%s' but '%s'", what, b.data);
    char *shown = buf_take(&b);
    buf_free(&b);
    return shown;
}

static void t_terminal(void **state)
{
    static const struct {
        const char *ahead, *answer, *seconds;
        int clicks, code;
    } cases[] = {
        {"", "y\n", "600", 1, 0},
        {"", "YES\n", "600", 1, 0},
        {"", "n\n", "600", 0, 1},
        {"", "\n", "600", 0, 1},
        {"", "yesterday\n", "600", 0, 1},
        {"", "\x04", "600", 0, 1},      /* end of input */
        {"", "", "0.5", 0, 1},          /* no answer */
        {"y\ny\ny\n", "", "0.5", 0, 1}, /* typed before the question */
        {"", "\x03", "600", 0, 130},    /* Ctrl-C */
    };
    int n = sizeof cases / sizeof *cases;
    for (int i = 0; i < n; i++) {
        struct stage t;
        struct outcome o = {0};
        struct record r;
        int fd;
        driven_open(&t);
        pid_t pid = start_in_session(&t, SEND ANSWER("Done."), cases[i].seconds, &fd);
        if (*cases[i].ahead)
            assert_true(write(fd, cases[i].ahead, strlen(cases[i].ahead)) > 0);
        char *shown = read_until(fd, "[y/N]");
        assert_non_null(strstr(shown, "click \"the Send button\" at"));
        assert_non_null(strstr(shown, "sending, paying"));
        assert_non_null(strstr(shown, "confirm/0001-1.png"));
        assert_non_null(strstr(shown, "\033[38;5;")); /* the image itself */
        if (*cases[i].answer)
            assert_true(write(fd, cases[i].answer, strlen(cases[i].answer)) > 0);
        program_finish(&t.x, pid, &o);
        if (o.code != cases[i].code)
            fail_msg("case %d: exit %d, %s", i, o.code, o.err);
        driven_read(&t, &r);
        assert_string_equal(field_text(gate_event(&r, 0), "who"), "terminal");
        assert_int_equal(field_bool(gate_event(&r, 0), "pass"), cases[i].clicks);
        record_free(&r);
        assert_int_equal(json_array_size(stage_events(&t, "button_press")), cases[i].clicks);
        free(shown);
        close(fd);
        outcome_free(&o);
        stage_close(&t);
    }
    check_note("%d of %d hostile cases ended as documented", n, n);
}

static void t_nobody(void **state)
{
    struct stage t;
    struct outcome o = {0};
    struct record r;
    driven_open(&t);
    program_finish(&t.x, start_in_session(&t, SEND SEND SEND SEND SEND SEND SEND, "60", NULL), &o);
    assert_int_equal(o.code, ERR_UNSURE);
    assert_non_null(strstr(o.err, "nobody can be asked: see --confirm"));
    driven_read(&t, &r);
    assert_string_equal(field_text(driven_last(&r, "end"), "status"), "errors");
    record_free(&r);
    assert_int_equal(json_array_size(stage_events(&t, "button_press")), 0);
    outcome_free(&o);
    stage_close(&t);
}

/* ---- names of elements --------------------------------------------------------------------------- */

/* Starts a private session bus, which starts the accessibility bus when a program needs it. */
static void start_bus(struct xvfb *x)
{
    char *log = xvfb_place(x, "bus.log"), *address = NULL;
    size_t n = 0;
    if (!program_exists("dbus-daemon") || !zenity_fits() || !file_exists("/usr/libexec/at-spi-bus-launcher"))
        skip();
    xvfb_spawn(x, "bus.log", WORDS("dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address"));
    for (int ms = 0; ms < PATIENCE_MS && n == 0; ms += 50, clock_sleep_ms(50)) {
        free(address);
        address = NULL;
        if (file_read(log, 4096, &address, &n, NULL) || !memchr(address, '\n', n))
            n = 0;
    }
    assert_true(n > 0);
    address[strcspn(address, "\n")] = 0;
    setenv("DBUS_SESSION_BUS_ADDRESS", address, 1);
    free(address);
    free(log);
}

static struct screen_rect open_window(struct stage *t, const char *title, const char *const *argv)
{
    struct screen_window w;
    char pattern[64];
    snprintf(pattern, sizeof pattern, "^%s", title);
    xvfb_spawn(&t->x, "zenity.log", argv);
    assert_true(xvfb_wait_window(&t->x, pattern));
    clock_sleep_ms(1000);
    struct screen *s = screen_open(NULL, NULL);
    assert_non_null(s);
    assert_int_equal(screen_find_window(s, "Zenity", title, &w), 0);
    screen_close(s);
    return w.rect;
}

/* Opens a dialog that asks whether to delete, and returns its rectangle. */
static struct screen_rect open_dialog(struct stage *t)
{
    return open_window(t, "Question",
                       WORDS("zenity", "--question", "--title=Question", "--text=Go on?",
                             "--ok-label=Delete all", "--cancel-label=Keep"));
}

/* Returns whether all of these replies pass. */
static bool replies_pass(struct stage *t, const char *replies)
{
    struct outcome o = {0};
    char *all = xasprintf("%s{\"action\": \"answer\", \"text\": \"done\"}\n", replies);
    program_finish(
        &t->x, driven_start_with(t, all, WORDS("--dialect", "anthropic-computer", "--confirm", "never")), &o);
    assert_non_null(strstr(o.err, "does not describe click targets"));
    bool pass = !strstr(o.err, "requires confirmation");
    assert_int_equal(o.code == ERR_FAILED, !pass);
    outcome_free(&o);
    free(all);
    return pass;
}

static bool click_passes(struct stage *t, int x, int y)
{
    char *click = xasprintf("{\"action\": \"left_click\", \"coordinate\": [%d, %d]}\n", x, y);
    bool pass = replies_pass(t, click);
    free(click);
    return pass;
}

#define PRESS(key)  "{\"action\": \"key\", \"text\": \"" key "\"}\n"
#define WRITE(text) "{\"action\": \"type\", \"text\": \"" text "\"}\n"

/* Moves the focus to a window. */
static void give_keyboard(struct screen_rect r)
{
    struct screen *s = screen_open(NULL, NULL);
    assert_non_null(s);
    assert_int_equal(screen_click(s, r.x + 5, r.y + 5, 1, 1, NULL), 0);
    clock_sleep_ms(300);
    screen_close(s);
}

/* Enter and space press the focused button; in a text field, Enter presses the default button. */
static void check_keys(struct stage *t)
{
    give_keyboard(open_dialog(t));
    assert_false(replies_pass(t, PRESS("Return")));
    assert_false(replies_pass(t, PRESS("space")));
    assert_false(replies_pass(t, WRITE(" ")));
    assert_false(replies_pass(t, WRITE("\\t\\t\\n"))); /* away and back to the button */
    assert_true(replies_pass(t, PRESS("Tab") PRESS("Return")));
    give_keyboard(
        open_window(t, "Message", WORDS("zenity", "--entry", "--title=Message", "--ok-label=Send now")));
    assert_true(replies_pass(t, WRITE("two words")));
    assert_false(replies_pass(t, PRESS("Return")));
    assert_false(replies_pass(t, WRITE("more\\n")));
}

/* Neither the dialect nor the dialog's title describes the target. */
static void t_names(void **state)
{
    struct stage t;
    driven_open(&t);
    start_bus(&t.x);
    bool managed = xvfb_window_manager(&t.x) == 0;
    struct screen_rect r = open_dialog(&t);
    assert_false(click_passes(&t, r.x + 3 * r.w / 4, r.y + r.h - 20));
    assert_true(click_passes(&t, r.x + r.w / 4, r.y + r.h - 20));
    r = open_window(&t, "Note",
                    WORDS("zenity", "--question", "--title=Note", "--text=All files will be erased.",
                          "--ok-label=OK", "--cancel-label=Cancel"));
    assert_false(click_passes(&t, r.x + 3 * r.w / 4, r.y + r.h - 20)); /* because of the dialog's text */
    assert_true(click_passes(&t, r.x + r.w / 4, r.y + r.h - 20));
    if (managed) /* only a window manager reports the active window */
        check_keys(&t);
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the program's name of a button is judged if the dialect does not describe the target", t_names),
    CLAIM("a denied or refused action is not executed; the model is informed, and it is recorded", t_denied),
    CLAIM("a dry run asks no questions; invalid options and files give one line", t_dry),
    CLAIM("in a terminal only y and yes, typed after the question and in time, are yes", t_terminal),
    CLAIM("a run that can ask no one ends by itself", t_nobody),
};

CHECK_MAIN()
