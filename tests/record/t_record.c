/* t_record.c - tests recording a user in dialogs and playing it back, with real programs on a private
 * display.
 *
 * This process is the user, through XTEST; the programs write the results to files.
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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void t_dialog(void **state)
{
    hands_open("800x600x24");
    char *out = xvfb_place(&hands_x, "letter"), *file = xvfb_place(&hands_x, "letter.jsonl");
    pid_t wish = hands_dialog("+100+80", out, "");
    hands_record_letter(file);
    hands_assert_text(out, "name=Ana Lima copy=1\n");
    process_end(wish);

    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    static const char *const places[][2] = {{"+100+80", ""}, {"+380+330", ""}, {"+20+300", "swapped"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct outcome o = {0};
        wish = hands_dialog(places[i][0], out, places[i][1]);
        hands_play(file, &o, WORDS(NULL));
        if (o.code)
            fail_msg("exit code %d: %s\n%s", o.code, o.out, o.err);
        check_note("%s %s: %.*s", places[i][0], places[i][1], (int)strcspn(o.out, "\n"), o.out);
        hands_assert_text(out, "name=Ana Lima copy=1\n");
        outcome_free(&o);
        process_end(wish);
    }
    free(out);
    free(file);
    hands_close();
}

/* ---- accessibility bus ------------------------------------------------------------------------------ */

/* Starts a GTK form with a password field; the values go to its log. */
static pid_t start_form(const char *log)
{
    pid_t pid = xvfb_spawn(&hands_x, log,
                           WORDS("zenity", "--forms", "--title=Sign in", "--text=Who are you",
                                 "--add-entry=Name", "--add-password=Word", "--separator=|"));
    assert_true(pid > 0 && xvfb_wait_window(&hands_x, "^Sign in"));
    clock_sleep_ms(1500);
    return pid;
}

static void t_password_field(void **state)
{
    hands_open_with_bus();
    char *file = xvfb_place(&hands_x, "form.jsonl"), *first = xvfb_place(&hands_x, "first"),
         *again = xvfb_place(&hands_x, "again");
    struct outcome o = {0};
    start_form("first");
    pid_t pid = hands_record(file, WORDS(NULL));
    hands_pause_ms(500);
    hands_words("ana");
    hands_key(XK_Tab, 0);
    hands_pause_ms(400);
    hands_words("hush-hush");
    struct screen_rect r = hands_rect_of("Zenity");
    hands_click(r.x + r.w - 50, r.y + r.h - 26);
    assert_true(hands_wait_for_text(first, "ana|hush-hush"));
    hands_escape_twice();
    program_finish(&hands_x, pid, &o);
    if (o.code)
        fail_msg("%s", o.err);
    assert_true(hands_file_has(file, "ana"));
    assert_true(hands_file_has(file, "{{PASSWORD}}"));
    assert_true(hands_file_has(file, "\"name\": \"OK\", \"role\": \"push button\""));
    assert_false(hands_file_has(file, "hush"));
    assert_null(strstr(o.err, "hush"));

    setenv("GTK_THEME", "Adwaita:dark", 1); /* no recorded image matches */
    start_form("again");
    hands_play(file, &o, WORDS(NULL));
    ONE_LINE(&o, ERR_USAGE, "{{PASSWORD}}", "--secret");
    setenv("HUSH", "hush-hush", 1);
    hands_play(file, &o, WORDS("--secret", "PASSWORD=env:HUSH"));
    if (o.code)
        fail_msg("exit code %d: %s\n%s", o.code, o.out, o.err);
    assert_true(hands_wait_for_text(again, "ana|hush-hush"));
    assert_non_null(strstr(o.out, "image 0, name 1, position 0"));
    unsetenv("GTK_THEME");
    outcome_free(&o);
    free(file);
    free(first);
    free(again);
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    hands_close();
}

/* Typed faster than the focus can be determined: a plain text may become a secret, never the reverse. */
static void t_too_fast(void **state)
{
    hands_open_with_bus();
    char *file = xvfb_place(&hands_x, "form.jsonl");
    struct outcome o = {0};
    pid_t form = start_form("form"), pid = hands_record(file, WORDS(NULL));
    hands_pause_ms(300);
    static const KeySym keys[] = {XK_a, XK_n, XK_a, XK_Tab, XK_z, XK_e, XK_b, XK_r, XK_a, XK_Tab};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        for (int down = 1; down >= 0; down--)
            XTestFakeKeyEvent(hands_dpy, XKeysymToKeycode(hands_dpy, keys[i]), down, CurrentTime);
    hands_pause_ms(100);
    kill(pid, SIGINT);
    program_finish(&hands_x, pid, &o);
    assert_int_equal(o.code, 0);
    assert_true(hands_file_has(file, "{{PASSWORD}}"));
    assert_false(hands_file_has(file, "zebra"));
    process_end(form);
    outcome_free(&o);
    free(file);
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    hands_close();
}

static void t_vanished(void **state)
{
    hands_open("800x600x24");
    char *out = xvfb_place(&hands_x, "letter"), *file = xvfb_place(&hands_x, "letter.jsonl");
    struct outcome o = {0};
    pid_t wish = hands_dialog("+100+80", out, "");
    hands_record_letter(file);
    process_end(wish);
    unlink(out);
    wish = hands_dialog("+100+80", out, "unsaved");
    hands_play(file, &o, WORDS(NULL));
    assert_int_equal(o.code, ERR_FAILED);
    check_note("%.*s", (int)strcspn(o.out, "\n"), o.out);
    assert_non_null(
        strstr(o.out, "step 4 of 4 (line 5) cannot be played: click at 210,233: its image is not on"));
    assert_ptr_equal(strchr(o.out, '\n'), o.out + strlen(o.out) - 1);
    assert_false(file_exists(out));
    process_end(wish);
    hands_play(file, &o, WORDS(NULL)); /* nor its window */
    assert_int_equal(o.code, ERR_FAILED);
    assert_non_null(strstr(o.out, "step 1 of 4 (line 2) cannot be played"));
    outcome_free(&o);
    free(out);
    free(file);
    hands_close();
}

/* The user waited for a late button; in playback it appears even later. */
static void t_wait(void **state)
{
    hands_open("800x600x24");
    char *out = xvfb_place(&hands_x, "letter"), *file = xvfb_place(&hands_x, "letter.jsonl");
    struct outcome o = {0};
    pid_t wish = hands_dialog("+100+80", out, "late"), pid = hands_record(file, WORDS(NULL));
    hands_click(132, 162);
    hands_pause_ms(4500);
    hands_click(210, 233);
    assert_true(hands_wait_for_text(out, "copy=1"));
    hands_escape_twice();
    program_finish(&hands_x, pid, &o);
    assert_int_equal(o.code, 0);
    process_end(wish);
    assert_true(hands_file_has(file, "\n{\"wait_until\": \"rest\", \"seconds\": 1"));
    unlink(out);
    wish = hands_dialog("+300+80", out, "later");
    hands_play(file, &o, WORDS(NULL));
    if (o.code)
        fail_msg("exit code %d: %s\n%s", o.code, o.out, o.err);
    hands_assert_text(out, "name= copy=1\n");
    process_end(wish);
    outcome_free(&o);
    free(out);
    free(file);
    hands_close();
}

static const char second[] =
    "wm title . Second\nwm geometry . 200x150+500+300\n"
    "button .b -text Go -command {set f [open [lindex $argv 0] w]; puts $f went; close $f; exit}\n"
    "place .b -x 50 -y 50 -width 100 -height 40\n";

/* A window that opens between two steps is waited for. */
static void t_window(void **state)
{
    hands_open("800x600x24");
    char *out = xvfb_place(&hands_x, "letter"), *went = xvfb_place(&hands_x, "went");
    char *file = xvfb_place(&hands_x, "letter.jsonl"), *script = xvfb_put(&hands_x, "second.tcl", second);
    char *later = xasprintf("sleep 4; exec wish %s -- %s", script, went);
    struct outcome o = {0};
    pid_t wish = hands_dialog("+100+80", out, ""), pid = hands_record(file, WORDS(NULL));
    hands_click(132, 162);
    xvfb_spawn(&hands_x, "wish2.log", WORDS("wish", script, "--", went));
    assert_true(xvfb_wait_window(&hands_x, "^Second"));
    hands_pause_ms(300);
    hands_click(600, 370);
    assert_true(hands_wait_for_text(went, "went"));
    hands_escape_twice();
    program_finish(&hands_x, pid, &o);
    assert_int_equal(o.code, 0);
    assert_true(hands_file_has(
        file, "\n{\"wait_until\": \"window\", \"class\": \"Second.tcl\", \"title\": \"Second\""));
    assert_false(hands_file_has(file, "\"class\": \"Dialog.tcl\", \"title\": \"Letter\", \"seconds\""));
    process_end(wish);
    unlink(went);
    hands_dialog("+100+80", out, "");
    xvfb_spawn(&hands_x, "wish2.log", WORDS("sh", "-c", later));
    hands_play(file, &o, WORDS(NULL));
    if (o.code)
        fail_msg("exit code %d: %s\n%s", o.code, o.out, o.err);
    assert_non_null(strstr(o.err, "waits for a window"));
    hands_assert_text(went, "went\n");
    outcome_free(&o);
    free(later);
    free(script);
    free(went);
    free(out);
    free(file);
    hands_close();
}

/* A program that does not answer AT-SPI: its names are missing, and nothing waits for it. */
static void t_frozen(void **state)
{
    hands_open_with_bus();
    char *file = xvfb_place(&hands_x, "form.jsonl");
    struct outcome o = {0};
    pid_t form = start_form("form"), pid = hands_record(file, WORDS(NULL));
    struct screen_rect r = hands_rect_of("Zenity");
    kill(form, SIGSTOP);
    for (int i = 0; i < 3; i++)
        hands_click(r.x + r.w / 2, r.y + 60 + 30 * i);
    hands_words("abc");
    int64_t start = clock_ns();
    hands_escape_twice();
    program_finish(&hands_x, pid, &o);
    check_note("ended %.0f ms after Escape twice", clock_ms_since(start));
    assert_true(clock_ms_since(start) < 5000);
    kill(form, SIGCONT);
    assert_int_equal(o.code, 0);
    assert_true(hands_file_has(file, "\"text\": \"abc\""));
    outcome_free(&o);
    free(file);
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    hands_close();
}

/* Waits until the file has n lines. */
static void wait_for_lines(const char *path, int n)
{
    for (int ms = 0; ms < PATIENCE_MS; ms += 20) {
        char *text = file_exists(path) ? hands_text_of(path) : xstrdup("");
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
    hands_open("800x600x24");
    char *out = xvfb_place(&hands_x, "letter"), *file = xvfb_place(&hands_x, "letter.jsonl"),
         *part = xvfb_place(&hands_x, "letter.jsonl.part");
    struct outcome o = {0};
    struct stat st;
    pid_t wish = hands_dialog("+100+80", out, ""), pid = hands_record(file, WORDS(NULL));
    hands_click(132, 162);
    hands_click(210, 233);
    wait_for_lines(part, 3);
    kill(pid, SIGKILL);
    program_finish(&hands_x, pid, &o);
    assert_false(file_exists(file));
    assert_int_equal(stat(part, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    program_run(&hands_x, &o, WORDS("record", "-o", file)); /* an existing file is not overwritten */
    ONE_LINE(&o, ERR_USAGE, "letter.jsonl.part");
    process_end(wish);
    unlink(out);
    wish = hands_dialog("+250+200", out, "");
    hands_play(part, &o, WORDS(NULL));
    assert_int_equal(o.code, 0);
    hands_assert_text(out, "name= copy=1\n");
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

/* Makes a suite with its recording; arguments and a check are added as its comments say. */
static void t_suite(void **state)
{
    hands_open("800x600x24");
    char *out = xvfb_place(&hands_x, "letter"), *suite = xvfb_place(&hands_x, "letter.yaml"),
         *results = xvfb_place(&hands_x, "results");
    struct outcome o = {0};
    struct stat st;
    pid_t wish = hands_dialog("+100+80", out, ""), pid = hands_record(suite, WORDS("--test"));
    hands_click(132, 162);
    hands_point(330, 110);
    hands_press(1, 2);
    hands_words("Bo");
    hands_click(210, 233);
    kill(pid, SIGINT);
    program_finish(&hands_x, pid, &o);
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.err, "holorun qa "));
    process_end(wish);
    assert_int_equal(stat(suite, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    char *text = hands_text_of(suite);
    char *start = xasprintf("wish %s/dialog.tcl -- +330+250 $HOME/letter ''\"", hands_x.dir);
    assert_non_null(strstr(text, "display: xvfb:800x600"));
    assert_non_null(strstr(text, "the last action changed no window, so nothing shows its effect"));
    char *line = strstr(text, "start: \""), *end = line ? strchr(line + 8, '"') : NULL;
    assert_non_null(end);
    int before = (int)(line - text) - (line[-2] == '#' ? 2 : 0); /* Tk windows do not name their program */
    char *whole = xasprintf("%.*sstart: \"%s%s", before, text, start, end + 1);
    replace(&whole, "# - { kind: file, path: saved.txt, match: \"the text\" }",
            "- { kind: file, path: letter, match: \"name=Bo copy=1\" }");
    assert_int_equal(file_write(suite, whole, strlen(whole), NULL), 0);
    program_run(&hands_x, &o, WORDS("qa", suite, "--check"));
    assert_int_equal(o.code, 0);
    program_run(&hands_x, &o, WORDS("qa", suite, "--out", results, "--confirm", "yes-to-all"));
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

/* holorun stop ends a recording; an existing file stays; a missing display is reported. */
static void t_ends(void **state)
{
    hands_open("640x480x24");
    char *file = xvfb_place(&hands_x, "a.jsonl");
    struct outcome o = {0}, stopped = {0};
    pid_t pid = hands_record(file, WORDS("--json"));
    hands_point(100, 100);
    hands_press(5, 3);
    hands_key(XK_F5, 0);
    char *said = xvfb_place(&hands_x, "out.stop");
    program_finish(&hands_x, program_start_into(&hands_x, said, WORDS("stop")), &stopped);
    assert_int_equal(stopped.code, 0);
    program_finish(&hands_x, pid, &o);
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "\"steps\": 2"));
    assert_true(hands_file_has(file, "\"dy\": 3"));
    assert_true(hands_file_has(file, "\"keys\": [\"F5\"]"));
    program_run(&hands_x, &o, WORDS("record", "-o", file));
    ONE_LINE(&o, ERR_USAGE, "a.jsonl", "exists");
    program_run(&hands_x, &o, WORDS("record", "-o", "/nowhere/a.jsonl"));
    ONE_LINE(&o, ERR_ENV, "/nowhere/a.jsonl");
    program_run(&hands_x, &o, WORDS("record", "--display", ":987654"));
    ONE_LINE(&o, ERR_ENV, ":987654");
    outcome_free(&o);
    outcome_free(&stopped);
    free(said);
    free(file);
    hands_close();
}

static const struct CMUnitTest tests[] = {
    CLAIM("a dialog that a user filled in is filled in again, also after it moved", t_dialog),
    CLAIM("text typed into a password field is not recorded, and comes from a secret", t_password_field),
    CLAIM("a password typed too fast to be distinguished from a name is not recorded", t_too_fast),
    CLAIM("a missing target is not clicked, and the run names the step", t_vanished),
    CLAIM("playback waits for whatever the user waited for", t_wait),
    CLAIM("playback waits for a window that opened between two steps", t_window),
    CLAIM("a program that hangs does not block the recorder", t_frozen),
    CLAIM("a killed recorder leaves a recording that can be played", t_killed),
    CLAIM("record --test writes a suite that qa plays without a model", t_suite),
    CLAIM("holorun stop ends a recording; no file is overwritten; mistakes are one line", t_ends),
};

CHECK_MAIN()
