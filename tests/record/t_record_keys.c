/* t_record_keys.c - tests recording gestures and keys of a user and playing them back: a canvas, terminals,
 * dead keys.
 */
#include "check.h"
#include "hands.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "screen/screen.h"

#include <X11/XKBlib.h>
#include <X11/extensions/XTest.h>
#include <X11/keysym.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A slider, and an area that reports how it was clicked. */
static const char panel[] =
    "lassign $argv place out\n"
    "wm title . Panel\nwm geometry . 400x260$place\n"
    "set f [open $out w]\n"
    "proc note {what} {global f; puts $f $what; flush $f}\n"
    "scale .s -orient horizontal -from 0 -to 100 -length 360 -showvalue 0\n"
    "canvas .c -width 360 -height 150 -background white\n"
    ".c create oval 30 20 80 70 -fill orange\n.c create rectangle 200 40 300 120 -fill navy\n"
    "place .s -x 20 -y 20\nplace .c -x 20 -y 80\n"
    "bind .s <ButtonRelease-1> {after idle {note slider=[.s get]}}\n"
    "bind .c <Double-Button-1> {note double}\nbind .c <Control-Button-1> {note control}\n"
    "bind .c <Button-3> {note right}\nbind .c <Button-4> {note up}\nbind .c <Button-5> {note down}\n";

static pid_t start_panel(const char *place, const char *out)
{
    char *script = xvfb_put(&hands_x, "panel.tcl", panel);
    if (!program_exists("wish"))
        skip();
    pid_t pid = xvfb_spawn(&hands_x, "wish.log", WORDS("wish", script, "--", place, out));
    free(script);
    assert_true(pid > 0 && xvfb_wait_window(&hands_x, "^Panel"));
    clock_sleep_ms(300);
    return pid;
}

static void drag(int fx, int fy, int tx, int ty)
{
    hands_point(fx, fy);
    XTestFakeButtonEvent(hands_dpy, 1, True, CurrentTime);
    hands_pause_ms(60);
    for (int i = 1; i <= 10; i++) {
        XTestFakeMotionEvent(hands_dpy, 0, fx + (tx - fx) * i / 10, fy + (ty - fy) * i / 10, CurrentTime);
        hands_pause_ms(20);
    }
    XTestFakeButtonEvent(hands_dpy, 1, False, CurrentTime);
    hands_pause_ms(300);
}

static void t_mouse(void **state)
{
    hands_open("800x600x24");
    char *out = xvfb_place(&hands_x, "panel"), *file = xvfb_place(&hands_x, "panel.jsonl"), *want, *got;
    struct outcome o = {0};
    pid_t wish = start_panel("+100+100", out), pid = hands_record(file, WORDS(NULL));
    drag(135, 130, 335, 130);
    hands_point(175, 225);
    hands_press(1, 2);
    hands_press(3, 1);
    hands_point(370, 260);
    hands_press(5, 3);
    hands_press(4, 1);
    unsigned control = XKeysymToKeycode(hands_dpy, XK_Control_L);
    XTestFakeKeyEvent(hands_dpy, control, True, CurrentTime);
    hands_press(1, 1);
    XTestFakeKeyEvent(hands_dpy, control, False, CurrentTime);
    assert_true(hands_wait_for_text(out, "control"));
    hands_escape_twice();
    program_finish(&hands_x, pid, &o);
    assert_int_equal(o.code, 0);
    process_end(wish);
    want = hands_text_of(out);
    check_note("%zu bytes: %.*s, ...", strlen(want), (int)strcspn(want, "\n"), want);
    assert_non_null(strstr(want, "\ndouble\nright\ndown\ndown\ndown\nup\ncontrol\n"));
    wish = start_panel("+380+310", out);
    hands_play(file, &o, WORDS(NULL));
    if (o.code)
        fail_msg("exit code %d: %s\n%s", o.code, o.out, o.err);
    got = hands_text_of(out);
    assert_string_equal(got, want);
    process_end(wish);
    outcome_free(&o);
    free(want);
    free(got);
    free(out);
    free(file);
    hands_close();
}

/* A plain window: only the position in it identifies the target. */
static void t_plain(void **state)
{
    hands_open("800x600x24");
    char *out = xvfb_place(&hands_x, "plain"), *file = xvfb_place(&hands_x, "plain.jsonl");
    char *script = xvfb_put(&hands_x, "plain.tcl",
                            "lassign $argv place out\nwm title . Plain\nwm geometry . 300x260$place\n"
                            "bind . <Button-1> {set f [open $out w]; puts $f %x,%y; close $f}\n");
    static const char *const places[] = {"+100+100", "+430+320"};
    struct outcome o = {0};
    if (!program_exists("wish"))
        skip();
    for (int i = 0; i < 2; i++) {
        pid_t wish = xvfb_spawn(&hands_x, "wish.log", WORDS("wish", script, "--", places[i], out));
        assert_true(wish > 0 && xvfb_wait_window(&hands_x, "^Plain"));
        clock_sleep_ms(300);
        pid_t pid = i ? 0 : hands_record(file, WORDS(NULL));
        if (i) {
            hands_play(file, &o, WORDS(NULL));
        } else {
            hands_click(260, 230);
            hands_escape_twice();
            program_finish(&hands_x, pid, &o);
        }
        assert_int_equal(o.code, 0);
        hands_assert_text(out, "160,130\n");
        process_end(wish);
    }
    assert_non_null(strstr(o.out, "image 0, name 0, position 1"));
    outcome_free(&o);
    free(script);
    free(out);
    free(file);
    hands_close();
}

/* Starts a terminal whose shell appends its input to a file. */
static pid_t start_terminal(const char *place, const char *out)
{
    char *script = xasprintf("while read -r line; do echo \"$line\" >>'%s'; done", out);
    if (!program_exists("xterm"))
        skip();
    unlink(out);
    pid_t pid = xvfb_spawn(&hands_x, "xterm.log",
                           WORDS("xterm", "-geometry", place, "-T", "Notes", "-e", "sh", "-c", script));
    free(script);
    assert_true(pid > 0 && xvfb_wait_window(&hands_x, "^Notes"));
    clock_sleep_ms(500);
    return pid;
}

static void t_terminal(void **state)
{
    hands_open("800x600x24");
    char *out = xvfb_place(&hands_x, "notes"), *file = xvfb_place(&hands_x, "notes.jsonl");
    struct outcome o = {0};
    setenv("WORD", "tiger lily", 1);
    pid_t xterm = start_terminal("50x10+40+60", out);
    pid_t pid = hands_record(file, WORDS("--secret", "WORD=env:WORD"));
    hands_click(200, 150);
    hands_words("eggs and hamm");
    hands_key(XK_BackSpace, 0);
    hands_key(XK_Return, 0);
    hands_words("tiger lily");
    hands_key(XK_Return, 0);
    hands_words("gone");
    hands_key(XK_u, XK_Control_L);
    hands_words("end");
    hands_key(XK_Return, 0);
    assert_true(hands_wait_for_text(out, "end"));
    kill(pid, SIGINT);
    program_finish(&hands_x, pid, &o);
    if (o.code)
        fail_msg("%s", o.err);
    hands_assert_text(out, "eggs and ham\ntiger lily\nend\n");
    assert_true(hands_file_has(file, "{{WORD}}"));
    assert_false(hands_file_has(file, "tiger"));
    assert_null(strstr(o.err, "tiger"));
    process_end(xterm);
    static const char *const places[] = {"50x10+40+60", "50x10+300+320"};
    for (int i = 0; i < 2; i++) {
        xterm = start_terminal(places[i], out);
        hands_play(file, &o, WORDS("--secret", "WORD=env:WORD"));
        if (o.code)
            fail_msg("exit code %d: %s\n%s", o.code, o.out, o.err);
        check_note("%s: %.*s", places[i], (int)strcspn(o.out, "\n"), o.out);
        assert_true(hands_wait_for_text(out, "end"));
        hands_assert_text(out, "eggs and ham\ntiger lily\nend\n");
        process_end(xterm);
    }
    unsetenv("WORD");
    outcome_free(&o);
    free(out);
    free(file);
    hands_close();
}

/* The pointer stays over a terminal with another title, which has the focus. */
static void t_other_title(void **state)
{
    hands_open("800x600x24");
    char *out = xvfb_place(&hands_x, "notes"), *file = xvfb_place(&hands_x, "notes.jsonl"),
         *wrong = xvfb_place(&hands_x, "letters");
    char *script = xasprintf("while read -r line; do echo \"$line\" >>'%s'; done", wrong);
    struct outcome o = {0};
    pid_t notes = start_terminal("40x8+420+300", out);
    hands_point(500, 350);
    pid_t pid = hands_record(file, WORDS(NULL));
    hands_words("eggs");
    hands_key(XK_Return, 0);
    assert_true(hands_wait_for_text(out, "eggs"));
    kill(pid, SIGINT);
    program_finish(&hands_x, pid, &o);
    if (o.code)
        fail_msg("%s", o.err);
    assert_true(xvfb_spawn(&hands_x, "letters.log",
                           WORDS("xterm", "-geometry", "40x8+10+10", "-T", "Letters", "-e", "sh", "-c",
                                 script)) > 0 &&
                xvfb_wait_window(&hands_x, "^Letters"));
    clock_sleep_ms(500);
    hands_point(100, 60);
    hands_play(file, &o, WORDS(NULL));
    assert_int_equal(o.code, 1);
    if (!strstr(o.out, "'Letters', not in 'Notes'"))
        fail_msg("%s", o.out);
    assert_false(file_exists(wrong));
    process_end(notes);
    outcome_free(&o);
    free(script);
    free(wrong);
    free(out);
    free(file);
    hands_close();
}

/* A terminal prompt without echo, played twice with two values. */
static void t_prompt(void **state)
{
    hands_open("800x600x24");
    if (!program_exists("xterm"))
        skip();
    char *out = xvfb_place(&hands_x, "words"), *file = xvfb_place(&hands_x, "words.jsonl");
    char *script =
        xasprintf("for i in 1 2; do echo name; read -r n; echo password; stty -echo; read -r p; stty echo; "
                  "echo \"$n $p\" >>'%s'; done; sleep 60",
                  out);
    struct outcome o = {0};
    setenv("ONE", "plover", 1);
    setenv("TWO", "xyzzy", 1);
    for (int again = 0; again < 2; again++) {
        pid_t xterm =
            xvfb_spawn(&hands_x, "xterm.log", WORDS("xterm", "-T", "Notes", "-e", "sh", "-c", script));
        assert_true(xterm > 0 && xvfb_wait_window(&hands_x, "^Notes"));
        clock_sleep_ms(500);
        pid_t pid = again ? 0 : hands_record(file, WORDS(NULL));
        hands_point(100, 100);
        for (int i = 0; i < 2 && !again; i++) {
            hands_words(i ? "bo" : "ana");
            hands_key(XK_Return, 0);
            hands_pause_ms(300);
            hands_words(i ? "xyzzy" : "plover");
            hands_key(XK_Return, 0);
            hands_pause_ms(300);
        }
        if (!again) {
            assert_true(hands_wait_for_text(out, "bo xyzzy"));
            kill(pid, SIGTERM);
            program_finish(&hands_x, pid, &o);
            assert_int_equal(o.code, 0);
        } else {
            hands_play(file, &o, WORDS("--secret", "PASSWORD=env:ONE", "--secret", "PASSWORD_2=env:TWO"));
            if (o.code)
                fail_msg("exit code %d: %s\n%s", o.code, o.out, o.err);
            assert_true(hands_wait_for_text(out, "bo xyzzy"));
        }
        hands_assert_text(out, "ana plover\nbo xyzzy\n");
        process_end(xterm);
    }
    assert_true(hands_file_has(file, "\"ana\"") && hands_file_has(file, "{{PASSWORD}}") &&
                hands_file_has(file, "{{PASSWORD_2}}"));
    assert_false(hands_file_has(file, "plover") || hands_file_has(file, "xyzzy"));
    unsetenv("ONE");
    unsetenv("TWO");
    outcome_free(&o);
    free(script);
    free(out);
    free(file);
    hands_close();
}
static void t_compose(void **state)
{
    hands_open("640x480x24");
    if (!program_exists("setxkbmap") || xvfb_run(&hands_x, WORDS("setxkbmap", "-layout", "us", "-variant",
                                                                 "intl", "-option", "compose:menu")))
        skip();
    char *file = xvfb_place(&hands_x, "a.jsonl");
    struct outcome o = {0};
    pid_t pid = hands_record(file, WORDS(NULL));
    static const KeySym keys[] = {XK_c, XK_a, XK_f, XK_dead_acute, XK_e, XK_Multi_key, XK_o, XK_c, XK_x};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        hands_key(keys[i], 0);
    kill(pid, SIGINT);
    program_finish(&hands_x, pid, &o);
    assert_int_equal(o.code, 0);
    assert_true(hands_file_has(file, "\"caf\xc3\xa9\xc2\xa9x\""));
    outcome_free(&o);
    free(file);
    hands_close();
}

static const struct CMUnitTest tests[] = {
    CLAIM("drags, double clicks, wheels and held keys have the same effect in a moved window", t_mouse),
    CLAIM("a target in a plain window is found by its position in the window", t_plain),
    CLAIM("texts, keys and a secret are typed into a terminal again, also after it moved", t_terminal),
    CLAIM("nothing is typed into another window of the same class", t_other_title),
    CLAIM("text that a terminal does not echo is not recorded", t_prompt),
    CLAIM("dead keys and Compose are recorded as the resulting characters", t_compose),
};

CHECK_MAIN()
