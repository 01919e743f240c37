/* hands.c - see hands.h. */
#include "hands.h"

#include "check.h"

#include "base/clock.h"
#include "base/file.h"

#include <X11/extensions/XTest.h>
#include <X11/keysym.h>
#include <ctype.h>
#include <unistd.h>

/* ---- user ------------------------------------------------------------------------------------------- */

struct xvfb hands_x;
Display *hands_dpy;

void hands_open(const char *size)
{
    if (xvfb_start(&hands_x, size, NULL))
        skip();
    hands_dpy = XOpenDisplay(hands_x.display);
    assert_non_null(hands_dpy);
}

void hands_close(void)
{
    XCloseDisplay(hands_dpy);
    xvfb_stop(&hands_x);
}

void hands_pause_ms(double ms)
{
    XSync(hands_dpy, False);
    clock_sleep_ms(ms);
}

void hands_point(int px, int py)
{
    XTestFakeMotionEvent(hands_dpy, 0, px, py, CurrentTime);
    hands_pause_ms(300); /* rests before the press, while the elements are read */
}

void hands_press(unsigned button, int times)
{
    for (int i = 0; i < times; i++) {
        XTestFakeButtonEvent(hands_dpy, button, True, CurrentTime);
        /* leaves the recorder time to query a program that ends with the click */
        hands_pause_ms(times == 1 ? 120 : 20);
        XTestFakeButtonEvent(hands_dpy, button, False, CurrentTime);
        hands_pause_ms(40);
    }
    hands_pause_ms(500); /* not a double click with the next one */
}

void hands_click(int px, int py)
{
    hands_point(px, py);
    hands_press(1, 1);
}

void hands_key(KeySym sym, KeySym with)
{
    unsigned code = XKeysymToKeycode(hands_dpy, sym), mod = with ? XKeysymToKeycode(hands_dpy, with) : 0;
    if (mod)
        XTestFakeKeyEvent(hands_dpy, mod, True, CurrentTime);
    XTestFakeKeyEvent(hands_dpy, code, True, CurrentTime);
    XTestFakeKeyEvent(hands_dpy, code, False, CurrentTime);
    if (mod)
        XTestFakeKeyEvent(hands_dpy, mod, False, CurrentTime);
    hands_pause_ms(25);
}

void hands_words(const char *text)
{
    for (; *text; text++) {
        char name[2] = {*text, 0};
        KeySym sym = *text == ' ' ? XK_space : *text == '-' ? XK_minus : XStringToKeysym(name);
        hands_key(sym, isupper((unsigned char)*text) ? XK_Shift_L : 0);
    }
}

void hands_escape_twice(void)
{
    hands_key(XK_Escape, 0);
    hands_pause_ms(80);
    hands_key(XK_Escape, 0);
}

/* ---- programs --------------------------------------------------------------------------------------- */

bool hands_wait_for_text(const char *path, const char *part)
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

char *hands_text_of(const char *path)
{
    char *text;
    size_t len;
    assert_int_equal(file_read(path, 64 << 20, &text, &len, NULL), 0);
    return text;
}

bool hands_file_has(const char *path, const char *part)
{
    char *text = hands_text_of(path);
    bool has = strstr(text, part) != NULL;
    free(text);
    return has;
}

/* Starts a private session bus, which starts that of AT-SPI on demand. */
static void start_bus(void)
{
    char *log = xvfb_place(&hands_x, "bus.log");
    if (!program_exists("dbus-daemon") || !zenity_fits() || !file_exists("/usr/libexec/at-spi-bus-launcher"))
        skip();
    assert_true(xvfb_spawn(&hands_x, "bus.log",
                           WORDS("dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address")) >
                0);
    assert_true(hands_wait_for_text(log, "\n"));
    char *address = hands_text_of(log);
    address[strcspn(address, "\n")] = 0;
    setenv("DBUS_SESSION_BUS_ADDRESS", address, 1);
    free(address);
    free(log);
}

void hands_open_with_bus(void)
{
    hands_open("800x600x24");
    if (xvfb_window_manager(&hands_x))
        skip();
    start_bus();
}

/* A Tk dialog with a field, a check box and two buttons. Save writes the values to OUT. `how`: "unsaved" has
 * no Save button, "swapped" moves the buttons, "late" and "later" show Save after 3.5 and 6.5 s. */
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

pid_t hands_dialog(const char *place, const char *out, const char *how)
{
    char *script = xvfb_put(&hands_x, "dialog.tcl", dialog);
    if (!program_exists("wish"))
        skip();
    pid_t pid = xvfb_spawn(&hands_x, "wish.log", WORDS("wish", script, "--", place, out, how));
    free(script);
    assert_true(pid > 0 && xvfb_wait_window(&hands_x, "^Letter"));
    clock_sleep_ms(300);
    return pid;
}

/* Starts `holorun record` and waits until it reports that it records. */
pid_t hands_record(const char *file, const char *const *more)
{
    const char *argv[20] = {"record", "-o", file};
    int n = 3;
    for (; *more && n < 19; more++)
        argv[n++] = *more;
    pid_t pid = program_start(&hands_x, argv);
    char *err = xvfb_place(&hands_x, "err");
    assert_true(hands_wait_for_text(err, "recording"));
    free(err);
    return pid;
}

void hands_play(const char *file, struct outcome *o, const char *const *more)
{
    char *runs = xvfb_place(&hands_x, "runs");
    const char *argv[24] = {"run",       "Do it again", "--fake",         file, "--runs", runs,
                            "--confirm", "yes-to-all",  "--settle-quiet", "60"};
    int n = 10;
    for (; *more && n < 23; more++)
        argv[n++] = *more;
    program_run(&hands_x, o, argv);
    free(runs);
}

void hands_assert_text(const char *path, const char *want)
{
    char *text = hands_text_of(path);
    assert_string_equal(text, want);
    free(text);
    unlink(path);
}

struct screen_rect hands_rect_of(const char *class)
{
    const struct screen_options o = {.display = hands_x.display};
    struct screen *s = screen_open(&o, NULL);
    struct screen_window w;
    assert_non_null(s);
    assert_int_equal(screen_find_window(s, class, "", &w), 0);
    screen_close(s);
    return w.rect;
}

void hands_record_letter(const char *file)
{
    pid_t pid = hands_record(file, WORDS(NULL));
    struct outcome o = {0};
    hands_click(330, 110);
    hands_words("Ana Lima");
    hands_click(132, 162);
    hands_click(210, 233);
    hands_escape_twice();
    program_finish(&hands_x, pid, &o);
    if (o.code)
        fail_msg("%s", o.err);
    assert_false(hands_file_has(file, "Escape"));
    outcome_free(&o);
}
