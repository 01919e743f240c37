/* t_record.c - what a person did, recorded and played back: real programs on a display of their own.
 *
 * The person is this process, through XTEST; what happened is read from files that the programs write.
 */
#include "check.h"
#include "program.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "screen/screen.h"

#include <X11/XKBlib.h>
#include <X11/extensions/XTest.h>
#include <X11/keysym.h>
#include <ctype.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000 };

/* ---- the person ------------------------------------------------------------------------------------- */

static struct xvfb x;
static Display *dpy;

static void hands_open(const char *size)
{
    if (xvfb_start(&x, size, NULL))
        skip();
    dpy = XOpenDisplay(x.display);
    assert_non_null(dpy);
}

static void hands_close(void)
{
    XCloseDisplay(dpy);
    xvfb_stop(&x);
}

static void pause_ms(double ms)
{
    XSync(dpy, False);
    clock_sleep_ms(ms);
}

static void point(int px, int py)
{
    XTestFakeMotionEvent(dpy, 0, px, py, CurrentTime);
    pause_ms(150); /* a hand rests before it presses */
}

static void press(unsigned button, int times)
{
    for (int i = 0; i < times; i++) {
        XTestFakeButtonEvent(dpy, button, True, CurrentTime);
        pause_ms(times == 1 ? 120 : 20); /* a program that ends with the click can be asked before */
        XTestFakeButtonEvent(dpy, button, False, CurrentTime);
        pause_ms(40);
    }
    pause_ms(500); /* no double click with the next one */
}

static void click(int px, int py)
{
    point(px, py);
    press(1, 1);
}

static void key(KeySym sym, KeySym with)
{
    unsigned code = XKeysymToKeycode(dpy, sym), mod = with ? XKeysymToKeycode(dpy, with) : 0;
    if (mod)
        XTestFakeKeyEvent(dpy, mod, True, CurrentTime);
    XTestFakeKeyEvent(dpy, code, True, CurrentTime);
    XTestFakeKeyEvent(dpy, code, False, CurrentTime);
    if (mod)
        XTestFakeKeyEvent(dpy, mod, False, CurrentTime);
    pause_ms(25);
}

static void words(const char *text)
{
    for (; *text; text++) {
        char name[2] = {*text, 0};
        KeySym sym = *text == ' ' ? XK_space : *text == '-' ? XK_minus : XStringToKeysym(name);
        key(sym, isupper((unsigned char)*text) ? XK_Shift_L : 0);
    }
}

static void escape_twice(void)
{
    key(XK_Escape, 0);
    pause_ms(80);
    key(XK_Escape, 0);
}

/* ---- programs --------------------------------------------------------------------------------------- */

static bool wait_for_text(const char *path, const char *part)
{
    for (int ms = 0; ms < PATIENCE_MS; ms += 20) {
        char *text;
        size_t len;
        if (file_exists(path) && file_read(path, 1 << 20, &text, &len, NULL) == 0) {
            bool there = strstr(text, part) != NULL;
            free(text);
            if (there)
                return true;
        }
        clock_sleep_ms(20);
    }
    return false;
}

static char *text_of(const char *path)
{
    char *text;
    size_t len;
    assert_int_equal(file_read(path, 64 << 20, &text, &len, NULL), 0);
    return text;
}

static bool file_has(const char *path, const char *part)
{
    char *text = text_of(path);
    bool has = strstr(text, part) != NULL;
    free(text);
    return has;
}

/* A dialog of Tk's at a place: a field, a box and two buttons.  Save writes what they hold to OUT.  `how`
 * may be "unsaved" (there is no Save), "swapped" (the buttons are elsewhere) or "late" (Save comes after a
 * while). */
static const char dialog[] =
    "lassign $argv place out how\n"
    "wm title . Letter\n"
    "wm geometry . 360x200$place\n"
    "option add *font {Helvetica 14}\n"
    "label .l -text {Your name}\n"
    "entry .e -textvariable name\n"
    "checkbutton .c -text {Send a copy} -variable copy\n"
    "button .s -text Save -command {set f [open $out w]; puts $f \"name=$name copy=$copy\"; close $f}\n"
    "button .q -text Cancel -command exit\n"
    "place .l -x 20 -y 20\nplace .e -x 130 -y 18 -width 200\nplace .c -x 20 -y 70\n"
    "proc show {} {place .s -x 60 -y 140 -width 100}\n"
    "place .q -x [expr {$how eq {swapped} ? 60 : 200}] -y 140 -width 100\n"
    "switch $how {unsaved {} late {after 3500 show} later {after 6500 show} "
    "swapped {place .s -x 240 -y 145 -width 100; place .c -x 20 -y 105} default show}\n"
    "focus -force .e\n";

static pid_t start_dialog(const char *place, const char *out, const char *how)
{
    char *script = xvfb_put(&x, "dialog.tcl", dialog);
    if (!program_exists("wish"))
        skip();
    pid_t pid = xvfb_spawn(&x, "wish.log", WORDS("wish", script, "--", place, out, how));
    free(script);
    assert_true(pid > 0 && xvfb_wait_window(&x, "^Letter"));
    clock_sleep_ms(300);
    return pid;
}

/* `holorun record` until it says that it records. */
static pid_t start_recorder(const char *file, const char *const *more)
{
    const char *argv[20] = {"record", "-o", file};
    int n = 3;
    for (; *more && n < 19; more++)
        argv[n++] = *more;
    pid_t pid = program_start(&x, argv);
    char *err = xvfb_place(&x, "err");
    assert_true(wait_for_text(err, "recording"));
    free(err);
    return pid;
}

static void play(const char *file, struct outcome *o, const char *const *more)
{
    char *runs = xvfb_place(&x, "runs");
    const char *argv[24] = {"run",       "Do it again", "--fake",         file, "--runs", runs,
                            "--confirm", "yes-to-all",  "--settle-quiet", "60"};
    int n = 10;
    for (; *more && n < 23; more++)
        argv[n++] = *more;
    program_run(&x, o, argv);
    free(runs);
}

static void assert_text(const char *path, const char *want)
{
    char *text = text_of(path);
    assert_string_equal(text, want);
    free(text);
    unlink(path);
}

static void record_letter(const char *file)
{
    pid_t pid = start_recorder(file, WORDS(NULL));
    struct outcome o = {0};
    click(330, 110);
    words("Ana Lima");
    click(132, 162);
    click(210, 233);
    escape_twice();
    program_finish(&x, pid, &o);
    if (o.code)
        fail_msg("%s", o.err);
    assert_false(file_has(file, "Escape"));
    outcome_free(&o);
}

static void t_dialog(void **state)
{
    (void)state;
    hands_open("800x600x24");
    char *out = xvfb_place(&x, "letter"), *file = xvfb_place(&x, "letter.jsonl");
    pid_t wish = start_dialog("+100+80", out, "");
    record_letter(file);
    assert_text(out, "name=Ana Lima copy=1\n");
    process_end(wish);

    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    static const char *const places[][2] = {{"+100+80", ""}, {"+380+330", ""}, {"+20+300", "swapped"}};
    for (size_t i = 0, tries = 0; i < sizeof places / sizeof *places; i++) {
        struct outcome o = {0};
        wish = start_dialog(places[i][0], out, places[i][1]);
        play(file, &o, WORDS(NULL));
        if (o.code && tries++ < 2) { /* the picture of a field may hold its caret, which blinks */
            outcome_free(&o);
            process_end(wish);
            i--;
            continue;
        }
        if (o.code)
            fail_msg("exit code %d: %s\n%s", o.code, o.out, o.err);
        check_note("%s %s: %.*s", places[i][0], places[i][1], (int)strcspn(o.out, "\n"), o.out);
        assert_text(out, "name=Ana Lima copy=1\n");
        outcome_free(&o);
        process_end(wish);
    }
    free(out);
    free(file);
    hands_close();
}

/* ---- the accessibility bus -------------------------------------------------------------------------- */

/* A session bus of our own, which starts the one of AT-SPI when it is asked for. */
static void start_bus(void)
{
    char *log = xvfb_place(&x, "bus.log");
    if (!program_exists("dbus-daemon") || !program_exists("zenity") ||
        !file_exists("/usr/libexec/at-spi-bus-launcher"))
        skip();
    assert_true(xvfb_spawn(&x, "bus.log",
                           WORDS("dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address")) >
                0);
    assert_true(wait_for_text(log, "\n"));
    char *address = text_of(log);
    address[strcspn(address, "\n")] = 0;
    setenv("DBUS_SESSION_BUS_ADDRESS", address, 1);
    free(address);
    free(log);
}

/* A form of GTK's with a field that hides what is typed; what was typed goes to its log. */
static pid_t start_form(const char *log)
{
    pid_t pid = xvfb_spawn(&x, log,
                           WORDS("zenity", "--forms", "--title=Sign in", "--text=Who are you",
                                 "--add-entry=Name", "--add-password=Word", "--separator=|"));
    assert_true(pid > 0 && xvfb_wait_window(&x, "^Sign in"));
    clock_sleep_ms(1500);
    return pid;
}

static struct screen_rect rect_of(const char *class)
{
    const struct screen_options o = {.display = x.display};
    struct screen *s = screen_open(&o, NULL);
    struct screen_window w;
    assert_non_null(s);
    assert_int_equal(screen_find_window(s, class, "", &w), 0);
    screen_close(s);
    return w.rect;
}

static void t_password_field(void **state)
{
    (void)state;
    hands_open("800x600x24");
    if (xvfb_window_manager(&x))
        skip();
    start_bus();
    char *file = xvfb_place(&x, "form.jsonl"), *first = xvfb_place(&x, "first"),
         *again = xvfb_place(&x, "again");
    struct outcome o = {0};
    start_form("first");
    pid_t pid = start_recorder(file, WORDS(NULL));
    pause_ms(500);
    words("ana");
    key(XK_Tab, 0);
    pause_ms(400);
    words("hush-hush");
    struct screen_rect r = rect_of("Zenity");
    click(r.x + r.w - 50, r.y + r.h - 26);
    assert_true(wait_for_text(first, "ana|hush-hush"));
    escape_twice();
    program_finish(&x, pid, &o);
    if (o.code)
        fail_msg("%s", o.err);
    assert_true(file_has(file, "ana"));
    assert_true(file_has(file, "{{PASSWORD}}"));
    assert_true(file_has(file, "\"name\": \"OK\", \"role\": \"push button\""));
    assert_false(file_has(file, "hush"));
    assert_null(strstr(o.err, "hush"));

    setenv("GTK_THEME", "Adwaita:dark", 1); /* no picture is found again */
    start_form("again");
    play(file, &o, WORDS(NULL));
    ONE_LINE(&o, ERR_USAGE, "{{PASSWORD}}", "--secret");
    setenv("HUSH", "hush-hush", 1);
    play(file, &o, WORDS("--secret", "PASSWORD=env:HUSH"));
    if (o.code)
        fail_msg("exit code %d: %s\n%s", o.code, o.out, o.err);
    assert_true(wait_for_text(again, "ana|hush-hush"));
    assert_non_null(strstr(o.out, "picture 0, name 1, pixel 0"));
    unsetenv("GTK_THEME");
    outcome_free(&o);
    free(file);
    free(first);
    free(again);
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    hands_close();
}

/* Faster than the program can tell where the keyboard is: rather a name too many than a password. */
static void t_too_fast(void **state)
{
    (void)state;
    hands_open("800x600x24");
    if (xvfb_window_manager(&x))
        skip();
    start_bus();
    char *file = xvfb_place(&x, "form.jsonl");
    struct outcome o = {0};
    pid_t form = start_form("form"), pid = start_recorder(file, WORDS(NULL));
    pause_ms(300);
    static const KeySym keys[] = {XK_a, XK_n, XK_a, XK_Tab, XK_z, XK_e, XK_b, XK_r, XK_a, XK_Tab};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        for (int down = 1; down >= 0; down--)
            XTestFakeKeyEvent(dpy, XKeysymToKeycode(dpy, keys[i]), down, CurrentTime);
    pause_ms(100);
    kill(pid, SIGINT);
    program_finish(&x, pid, &o);
    assert_int_equal(o.code, 0);
    assert_true(file_has(file, "{{PASSWORD}}"));
    assert_false(file_has(file, "zebra"));
    process_end(form);
    outcome_free(&o);
    free(file);
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    hands_close();
}

static void t_vanished(void **state)
{
    (void)state;
    hands_open("800x600x24");
    char *out = xvfb_place(&x, "letter"), *file = xvfb_place(&x, "letter.jsonl");
    struct outcome o = {0};
    pid_t wish = start_dialog("+100+80", out, "");
    record_letter(file);
    process_end(wish);
    unlink(out);
    wish = start_dialog("+100+80", out, "unsaved");
    play(file, &o, WORDS(NULL));
    assert_int_equal(o.code, ERR_FAILED);
    check_note("%.*s", (int)strcspn(o.out, "\n"), o.out);
    assert_non_null(
        strstr(o.out, "step 4 of 4 (line 5) cannot be played: click at 210,233: its picture is not on"));
    assert_ptr_equal(strchr(o.out, '\n'), o.out + strlen(o.out) - 1);
    assert_false(file_exists(out));
    process_end(wish);
    play(file, &o, WORDS(NULL)); /* nor its window */
    assert_int_equal(o.code, ERR_FAILED);
    assert_non_null(strstr(o.out, "step 1 of 4 (line 2) cannot be played"));
    outcome_free(&o);
    free(out);
    free(file);
    hands_close();
}

/* The person waited for what came late; played back, it comes later still. */
static void t_wait(void **state)
{
    (void)state;
    hands_open("800x600x24");
    char *out = xvfb_place(&x, "letter"), *file = xvfb_place(&x, "letter.jsonl");
    struct outcome o = {0};
    pid_t wish = start_dialog("+100+80", out, "late"), pid = start_recorder(file, WORDS(NULL));
    click(132, 162);
    pause_ms(4500);
    click(210, 233);
    assert_true(wait_for_text(out, "copy=1"));
    escape_twice();
    program_finish(&x, pid, &o);
    assert_int_equal(o.code, 0);
    process_end(wish);
    assert_true(file_has(file, "\n{\"wait_until\": \"rest\", \"seconds\": 1"));
    unlink(out);
    wish = start_dialog("+300+80", out, "later");
    play(file, &o, WORDS(NULL));
    if (o.code)
        fail_msg("exit code %d: %s\n%s", o.code, o.out, o.err);
    assert_text(out, "name= copy=1\n");
    process_end(wish);
    outcome_free(&o);
    free(out);
    free(file);
    hands_close();
}

/* A program that answers nobody: its names are not to be had, and nothing waits for it. */
static void t_frozen(void **state)
{
    (void)state;
    hands_open("800x600x24");
    if (xvfb_window_manager(&x))
        skip();
    start_bus();
    char *file = xvfb_place(&x, "form.jsonl");
    struct outcome o = {0};
    pid_t form = start_form("form"), pid = start_recorder(file, WORDS(NULL));
    struct screen_rect r = rect_of("Zenity");
    kill(form, SIGSTOP);
    for (int i = 0; i < 3; i++)
        click(r.x + r.w / 2, r.y + 60 + 30 * i);
    words("abc");
    int64_t start = clock_ns();
    escape_twice();
    program_finish(&x, pid, &o);
    check_note("ended %.0f ms after Escape twice", clock_ms_since(start));
    assert_true(clock_ms_since(start) < 5000);
    kill(form, SIGCONT);
    assert_int_equal(o.code, 0);
    assert_true(file_has(file, "\"text\": \"abc\""));
    outcome_free(&o);
    free(file);
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    hands_close();
}

/* A slider, and an area that writes down how it was clicked. */
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
    char *script = xvfb_put(&x, "panel.tcl", panel);
    if (!program_exists("wish"))
        skip();
    pid_t pid = xvfb_spawn(&x, "wish.log", WORDS("wish", script, "--", place, out));
    free(script);
    assert_true(pid > 0 && xvfb_wait_window(&x, "^Panel"));
    clock_sleep_ms(300);
    return pid;
}

static void drag(int fx, int fy, int tx, int ty)
{
    point(fx, fy);
    XTestFakeButtonEvent(dpy, 1, True, CurrentTime);
    pause_ms(60);
    for (int i = 1; i <= 10; i++) {
        XTestFakeMotionEvent(dpy, 0, fx + (tx - fx) * i / 10, fy + (ty - fy) * i / 10, CurrentTime);
        pause_ms(20);
    }
    XTestFakeButtonEvent(dpy, 1, False, CurrentTime);
    pause_ms(300);
}

static void t_mouse(void **state)
{
    (void)state;
    hands_open("800x600x24");
    char *out = xvfb_place(&x, "panel"), *file = xvfb_place(&x, "panel.jsonl"), *want, *got;
    struct outcome o = {0};
    pid_t wish = start_panel("+100+100", out), pid = start_recorder(file, WORDS(NULL));
    drag(135, 130, 335, 130);
    point(175, 225);
    press(1, 2);
    press(3, 1);
    point(370, 260);
    press(5, 3);
    press(4, 1);
    unsigned control = XKeysymToKeycode(dpy, XK_Control_L);
    XTestFakeKeyEvent(dpy, control, True, CurrentTime);
    press(1, 1);
    XTestFakeKeyEvent(dpy, control, False, CurrentTime);
    assert_true(wait_for_text(out, "control"));
    escape_twice();
    program_finish(&x, pid, &o);
    assert_int_equal(o.code, 0);
    process_end(wish);
    want = text_of(out);
    check_note("%zu bytes: %.*s, ...", strlen(want), (int)strcspn(want, "\n"), want);
    assert_non_null(strstr(want, "\ndouble\nright\ndown\ndown\ndown\nup\ncontrol\n"));
    wish = start_panel("+380+310", out);
    play(file, &o, WORDS(NULL));
    if (o.code)
        fail_msg("exit code %d: %s\n%s", o.code, o.out, o.err);
    got = text_of(out);
    assert_string_equal(got, want);
    process_end(wish);
    outcome_free(&o);
    free(want);
    free(got);
    free(out);
    free(file);
    hands_close();
}

/* Nothing to see: only the place in its window is left. */
static void t_plain(void **state)
{
    (void)state;
    hands_open("800x600x24");
    char *out = xvfb_place(&x, "plain"), *file = xvfb_place(&x, "plain.jsonl");
    char *script = xvfb_put(&x, "plain.tcl",
                            "lassign $argv place out\nwm title . Plain\nwm geometry . 300x260$place\n"
                            "bind . <Button-1> {set f [open $out w]; puts $f %x,%y; close $f}\n");
    static const char *const places[] = {"+100+100", "+430+320"};
    struct outcome o = {0};
    if (!program_exists("wish"))
        skip();
    for (int i = 0; i < 2; i++) {
        pid_t wish = xvfb_spawn(&x, "wish.log", WORDS("wish", script, "--", places[i], out));
        assert_true(wish > 0 && xvfb_wait_window(&x, "^Plain"));
        clock_sleep_ms(300);
        pid_t pid = i ? 0 : start_recorder(file, WORDS(NULL));
        if (i) {
            play(file, &o, WORDS(NULL));
        } else {
            click(260, 230);
            escape_twice();
            program_finish(&x, pid, &o);
        }
        assert_int_equal(o.code, 0);
        assert_text(out, "160,130\n");
        process_end(wish);
    }
    assert_non_null(strstr(o.out, "picture 0, name 0, pixel 1"));
    outcome_free(&o);
    free(script);
    free(out);
    free(file);
    hands_close();
}

/* A terminal whose shell keeps what it reads in a file. */
static pid_t start_terminal(const char *place, const char *out)
{
    char *script = xasprintf("while read -r line; do echo \"$line\" >>'%s'; done", out);
    if (!program_exists("xterm"))
        skip();
    unlink(out);
    pid_t pid = xvfb_spawn(&x, "xterm.log",
                           WORDS("xterm", "-geometry", place, "-T", "Notes", "-e", "sh", "-c", script));
    free(script);
    assert_true(pid > 0 && xvfb_wait_window(&x, "^Notes"));
    clock_sleep_ms(500);
    return pid;
}

static void t_terminal(void **state)
{
    (void)state;
    hands_open("800x600x24");
    char *out = xvfb_place(&x, "notes"), *file = xvfb_place(&x, "notes.jsonl");
    struct outcome o = {0};
    setenv("WORD", "tiger lily", 1);
    pid_t xterm = start_terminal("50x10+40+60", out);
    pid_t pid = start_recorder(file, WORDS("--secret", "WORD=env:WORD"));
    click(200, 150);
    words("eggs and hamm");
    key(XK_BackSpace, 0);
    key(XK_Return, 0);
    words("tiger lily");
    key(XK_Return, 0);
    words("gone");
    key(XK_u, XK_Control_L);
    words("end");
    key(XK_Return, 0);
    assert_true(wait_for_text(out, "end"));
    kill(pid, SIGINT);
    program_finish(&x, pid, &o);
    if (o.code)
        fail_msg("%s", o.err);
    assert_text(out, "eggs and ham\ntiger lily\nend\n");
    assert_true(file_has(file, "{{WORD}}"));
    assert_false(file_has(file, "tiger"));
    assert_null(strstr(o.err, "tiger"));
    process_end(xterm);
    static const char *const places[] = {"50x10+40+60", "50x10+300+320"};
    for (int i = 0; i < 2; i++) {
        xterm = start_terminal(places[i], out);
        play(file, &o, WORDS("--secret", "WORD=env:WORD"));
        if (o.code)
            fail_msg("exit code %d: %s\n%s", o.code, o.out, o.err);
        check_note("%s: %.*s", places[i], (int)strcspn(o.out, "\n"), o.out);
        assert_true(wait_for_text(out, "end"));
        assert_text(out, "eggs and ham\ntiger lily\nend\n");
        process_end(xterm);
    }
    unsetenv("WORD");
    outcome_free(&o);
    free(out);
    free(file);
    hands_close();
}

/* A prompt of a terminal that does not show what is typed, twice, with two values. */
static void t_prompt(void **state)
{
    (void)state;
    hands_open("800x600x24");
    if (!program_exists("xterm"))
        skip();
    char *out = xvfb_place(&x, "words"), *file = xvfb_place(&x, "words.jsonl");
    char *script =
        xasprintf("for i in 1 2; do echo name; read -r n; echo password; stty -echo; read -r p; stty echo; "
                  "echo \"$n $p\" >>'%s'; done; sleep 60",
                  out);
    struct outcome o = {0};
    setenv("ONE", "plover", 1);
    setenv("TWO", "xyzzy", 1);
    for (int again = 0; again < 2; again++) {
        pid_t xterm = xvfb_spawn(&x, "xterm.log", WORDS("xterm", "-T", "Notes", "-e", "sh", "-c", script));
        assert_true(xterm > 0 && xvfb_wait_window(&x, "^Notes"));
        clock_sleep_ms(500);
        pid_t pid = again ? 0 : start_recorder(file, WORDS(NULL));
        point(100, 100);
        for (int i = 0; i < 2 && !again; i++) {
            words(i ? "bo" : "ana");
            key(XK_Return, 0);
            pause_ms(300);
            words(i ? "xyzzy" : "plover");
            key(XK_Return, 0);
            pause_ms(300);
        }
        if (!again) {
            assert_true(wait_for_text(out, "bo xyzzy"));
            kill(pid, SIGTERM);
            program_finish(&x, pid, &o);
            assert_int_equal(o.code, 0);
        } else {
            play(file, &o, WORDS("--secret", "PASSWORD=env:ONE", "--secret", "PASSWORD_2=env:TWO"));
            if (o.code)
                fail_msg("exit code %d: %s\n%s", o.code, o.out, o.err);
            assert_true(wait_for_text(out, "bo xyzzy"));
        }
        assert_text(out, "ana plover\nbo xyzzy\n");
        process_end(xterm);
    }
    assert_true(file_has(file, "\"ana\"") && file_has(file, "{{PASSWORD}}") &&
                file_has(file, "{{PASSWORD_2}}"));
    assert_false(file_has(file, "plover") || file_has(file, "xyzzy"));
    unsetenv("ONE");
    unsetenv("TWO");
    outcome_free(&o);
    free(script);
    free(out);
    free(file);
    hands_close();
}

/* Until the file holds n lines. */
static void wait_for_lines(const char *path, int n)
{
    for (int ms = 0; ms < PATIENCE_MS; ms += 20) {
        char *text = file_exists(path) ? text_of(path) : xstrdup("");
        int lines = 0;
        for (const char *p = text; *p; p++)
            lines += *p == '\n';
        free(text);
        if (lines >= n)
            return;
        clock_sleep_ms(20);
    }
    fail_msg("'%s' does not get %d lines", path, n);
}

static void t_killed(void **state)
{
    (void)state;
    hands_open("800x600x24");
    char *out = xvfb_place(&x, "letter"), *file = xvfb_place(&x, "letter.jsonl"),
         *part = xvfb_place(&x, "letter.jsonl.part");
    struct outcome o = {0};
    struct stat st;
    pid_t wish = start_dialog("+100+80", out, ""), pid = start_recorder(file, WORDS(NULL));
    click(132, 162);
    click(210, 233);
    wait_for_lines(part, 3);
    kill(pid, SIGKILL);
    program_finish(&x, pid, &o);
    assert_false(file_exists(file));
    assert_int_equal(stat(part, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    program_run(&x, &o, WORDS("record", "-o", file)); /* it is not overwritten */
    ONE_LINE(&o, ERR_USAGE, "letter.jsonl.part");
    process_end(wish);
    unlink(out);
    wish = start_dialog("+250+200", out, "");
    play(part, &o, WORDS(NULL));
    assert_int_equal(o.code, 0);
    assert_text(out, "name= copy=1\n");
    outcome_free(&o);
    free(out);
    free(file);
    free(part);
    hands_close();
}

static void replace(char **text, const char *what, const char *by)
{
    char *at = strstr(*text, what);
    assert_non_null(at);
    char *whole = xasprintf("%.*s%s%s", (int)(at - *text), *text, by, at + strlen(what));
    free(*text);
    *text = whole;
}

/* A suite with its recording; the program's arguments and a check are filled in, as the file says. */
static void t_suite(void **state)
{
    (void)state;
    hands_open("800x600x24");
    char *out = xvfb_place(&x, "letter"), *suite = xvfb_place(&x, "letter.yaml"),
         *results = xvfb_place(&x, "results");
    struct outcome o = {0};
    struct stat st;
    pid_t wish = start_dialog("+100+80", out, ""), pid = start_recorder(suite, WORDS("--test"));
    click(132, 162);
    point(330, 110);
    press(1, 2);
    words("Bo");
    click(210, 233);
    kill(pid, SIGINT);
    program_finish(&x, pid, &o);
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.err, "holorun qa "));
    process_end(wish);
    assert_int_equal(stat(suite, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    char *text = text_of(suite);
    char *start = xasprintf("wish %s/dialog.tcl -- +330+250 $HOME/letter ''\"", x.dir);
    assert_non_null(strstr(text, "display: xvfb:800x600"));
    assert_non_null(strstr(text, "- { kind: window, title: \"^Letter\" }"));
    char *line = strstr(text, "start: \""), *end = line ? strchr(line + 8, '"') : NULL;
    assert_non_null(end);
    int before = (int)(line - text) - (line[-2] == '#' ? 2 : 0); /* Tk does not say which program it is */
    char *whole = xasprintf("%.*sstart: \"%s%s", before, text, start, end + 1);
    replace(&whole, "# - { kind: file, path: saved.txt, match: \"the text\" }",
            "- { kind: file, path: letter, match: \"name=Bo copy=1\" }");
    assert_int_equal(file_write(suite, whole, strlen(whole), NULL), 0);
    program_run(&x, &o, WORDS("qa", suite, "--check"));
    assert_int_equal(o.code, 0);
    program_run(&x, &o, WORDS("qa", suite, "--out", results, "--confirm", "yes-to-all"));
    if (o.code)
        fail_msg("%s\n%s\n%s", whole, o.out, o.err);
    free(whole);
    free(text);
    free(start);
    outcome_free(&o);
    free(out);
    free(suite);
    free(results);
    hands_close();
}

static void t_compose(void **state)
{
    (void)state;
    hands_open("640x480x24");
    if (!program_exists("setxkbmap") ||
        xvfb_run(&x, WORDS("setxkbmap", "-layout", "us", "-variant", "intl", "-option", "compose:menu")))
        skip();
    char *file = xvfb_place(&x, "a.jsonl");
    struct outcome o = {0};
    pid_t pid = start_recorder(file, WORDS(NULL));
    static const KeySym keys[] = {XK_c, XK_a, XK_f, XK_dead_acute, XK_e, XK_Multi_key, XK_o, XK_c, XK_x};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        key(keys[i], 0);
    kill(pid, SIGINT);
    program_finish(&x, pid, &o);
    assert_int_equal(o.code, 0);
    assert_true(file_has(file, "\"caf\xc3\xa9\xc2\xa9x\""));
    outcome_free(&o);
    free(file);
    hands_close();
}

/* holorun stop ends it; an existing file stays; without a display it says so. */
static void t_ends(void **state)
{
    (void)state;
    hands_open("640x480x24");
    char *file = xvfb_place(&x, "a.jsonl");
    struct outcome o = {0}, stopped = {0};
    pid_t pid = start_recorder(file, WORDS("--json"));
    point(100, 100);
    press(5, 3);
    key(XK_F5, 0);
    char *said = xvfb_place(&x, "out.stop");
    program_finish(&x, program_start_into(&x, said, WORDS("stop")), &stopped);
    assert_int_equal(stopped.code, 0);
    program_finish(&x, pid, &o);
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "\"steps\": 2"));
    assert_true(file_has(file, "\"dy\": 3"));
    assert_true(file_has(file, "\"keys\": [\"F5\"]"));
    program_run(&x, &o, WORDS("record", "-o", file));
    ONE_LINE(&o, ERR_USAGE, "a.jsonl", "exists");
    program_run(&x, &o, WORDS("record", "-o", "/nowhere/a.jsonl"));
    ONE_LINE(&o, ERR_ENV, "/nowhere/a.jsonl");
    program_run(&x, &o, WORDS("record", "--display", ":987654"));
    ONE_LINE(&o, ERR_ENV, ":987654");
    outcome_free(&o);
    outcome_free(&stopped);
    free(said);
    free(file);
    hands_close();
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CLAIM("a dialog that a person filled in is filled in again, also when it has moved", t_dialog),
        CLAIM("what is typed into a password field is not recorded, and comes from a secret",
              t_password_field),
        CLAIM("a password that is typed too fast to be told from a name is not recorded", t_too_fast),
        CLAIM("a target that is gone is not clicked, and the run says which step it was", t_vanished),
        CLAIM("drags, double clicks, wheels and held keys do the same in a window that has moved", t_mouse),
        CLAIM("a place in a window that shows nothing is found by where it is in the window", t_plain),
        CLAIM("what a person waited for is waited for, as long as it takes", t_wait),
        CLAIM("a program that hangs does not hang the recorder", t_frozen),
        CLAIM("texts, keys and a secret go into a terminal again, also when it has moved", t_terminal),
        CLAIM("what a terminal does not show is not recorded", t_prompt),
        CLAIM("dead keys and Compose are recorded as the characters they give", t_compose),
        CLAIM("a recorder that is killed leaves what it has, and that can be played", t_killed),
        CLAIM("record --test writes a suite that qa plays, without a model", t_suite),
        CLAIM("holorun stop ends a recording; no file is overwritten; mistakes are one line", t_ends),
    };
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
