/* t_record_changes.c - tests playing a recording in a form that has changed since: with real programs on a
 * private display. The programs' output decides.
 */
#include "check.h"
#include "hands.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "record/windows.h"
#include "screen/screen.h"

#include <X11/keysym.h>
#include <signal.h>
#include <unistd.h>

/* Starts a question with two buttons, the right one first; it prints the name of the pressed one. */
static pid_t ask(const char *log, const char *right, const char *left, const char *width)
{
    char *line =
        xasprintf("zenity --question --title=Letter --text=Keep? --ok-label='%s' --cancel-label='%s' "
                  "--width=%s && echo 'pressed %s' || echo 'pressed %s'",
                  right, left, width, right, left);
    pid_t pid = xvfb_spawn(&hands_x, log, WORDS("sh", "-c", line));
    free(line);
    assert_true(pid > 0 && xvfb_wait_window(&hands_x, "^Letter"));
    clock_sleep_ms(1500);
    return pid;
}

/* Records a click on the right button. */
static void record_click(const char *file, const char *log)
{
    struct outcome o = {0};
    ask("then", "Save", "Discard", "300");
    pid_t pid = hands_record(file, WORDS(NULL));
    hands_pause_ms(500);
    struct screen_rect r = hands_rect_of("Zenity");
    hands_point(r.x + r.w - 60, r.y + r.h - 26);
    hands_pause_ms(700);
    hands_press(1, 1);
    assert_true(hands_wait_for_text(log, "pressed Save"));
    hands_pause_ms(500);
    kill(pid, SIGINT);
    program_finish(&hands_x, pid, &o);
    if (o.code)
        fail_msg("%s", o.err);
    assert_true(hands_file_has(file, "\"name\": \"Save\", \"role\": \"push button\""));
    assert_true(hands_file_has(file, "{\"wait_until\": \"end\", \"closed\": {\"class\": \"Zenity\", "
                                     "\"title\": \"Letter\"}"));
    outcome_free(&o);
}

static void t_swapped(void **state)
{
    hands_open_with_bus();
    char *file = xvfb_place(&hands_x, "letter.jsonl"), *then = xvfb_place(&hands_x, "then"),
         *now = xvfb_place(&hands_x, "now"), *other = xvfb_place(&hands_x, "other");
    struct outcome o = {0};
    record_click(file, then);
    setenv("GTK_THEME", "Adwaita:dark", 1);
    ask("now", "Discard", "Save", "480");
    hands_play(file, &o, WORDS(NULL));
    if (o.code)
        fail_msg("exit code %d: %s\n%s", o.code, o.out, o.err);
    assert_true(hands_wait_for_text(now, "pressed Save"));
    assert_non_null(strstr(o.out, "image 0, name 1, position 0, mended 0"));
    unsetenv("GTK_THEME");

    pid_t pid = ask("other", "Delete", "Discard", "300");
    hands_play(file, &o, WORDS(NULL));
    check_note("%.*s", (int)strcspn(o.out, "\n"), o.out);
    assert_int_equal(o.code, ERR_FAILED);
    assert_non_null(strstr(o.out, "push button \"Save\" is not on the screen"));
    assert_false(hands_file_has(other, "pressed"));
    process_end(pid);
    outcome_free(&o);
    free(file);
    free(then);
    free(now);
    free(other);
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    hands_close();
}

/* A button that takes the click and does nothing: the recording does not end as it did. */
static void t_no_effect(void **state)
{
    static const char deaf[] = "wm title . Letter\nwm geometry . 200x150+100+80\n"
                               "button .b -text Save -command {if {[lindex $argv 0] eq {works}} exit}\n"
                               "place .b -x 50 -y 50 -width 100 -height 40\n";
    hands_open("800x600x24");
    if (!program_exists("wish"))
        skip();
    char *file = xvfb_place(&hands_x, "letter.jsonl"), *script = xvfb_put(&hands_x, "deaf.tcl", deaf);
    struct outcome o = {0};
    xvfb_spawn(&hands_x, "wish.log", WORDS("wish", script, "--", "works"));
    assert_true(xvfb_wait_window(&hands_x, "^Letter"));
    pid_t pid = hands_record(file, WORDS(NULL));
    hands_pause_ms(500);
    hands_click(200, 150);
    hands_pause_ms(700);
    kill(pid, SIGINT);
    program_finish(&hands_x, pid, &o);
    assert_int_equal(o.code, 0);
    pid_t wish = xvfb_spawn(&hands_x, "wish.log", WORDS("wish", script, "--", "deaf"));
    assert_true(xvfb_wait_window(&hands_x, "^Letter"));
    hands_pause_ms(500);
    hands_play(file, &o, WORDS(NULL));
    check_note("%.*s", (int)strcspn(o.out, "\n"), o.out);
    assert_int_equal(o.code, ERR_FAILED);
    assert_non_null(strstr(o.out, "the recording ended with window 'Letter' closed, and it is open"));
    process_end(wish);
    outcome_free(&o);
    free(file);
    free(script);
    hands_close();
}

/* A button whose name is a secret: neither its target nor its action contains it. */
static void t_secret_name(void **state)
{
    hands_open_with_bus();
    char *file = xvfb_place(&hands_x, "letter.jsonl"), *log = xvfb_place(&hands_x, "then");
    struct outcome o = {0};
    setenv("HUSH", "Tulip4711", 1);
    ask("then", "Tulip4711", "Discard", "300");
    pid_t pid = hands_record(file, WORDS("--secret", "HUSH=env:HUSH"));
    hands_pause_ms(500);
    struct screen_rect r = hands_rect_of("Zenity");
    hands_point(r.x + r.w - 60, r.y + r.h - 26);
    hands_pause_ms(700);
    hands_press(1, 1);
    assert_true(hands_wait_for_text(log, "pressed Tulip4711"));
    hands_pause_ms(500);
    kill(pid, SIGINT);
    program_finish(&hands_x, pid, &o);
    if (o.code)
        fail_msg("%s", o.err);
    assert_true(hands_file_has(file, "\"name\": \"\", \"role\": \"push button\""));
    assert_false(hands_file_has(file, "Tulip4711"));
    assert_null(strstr(o.err, "Tulip4711"));
    outcome_free(&o);
    free(file);
    free(log);
    unsetenv("HUSH");
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    hands_close();
}

/* Returns whether the keyboard may be in this window instead of the recorded "Note 1". */
static bool takes_keyboard(struct screen *s, int x, int y)
{
    struct recording_step step = {.class = "Note.tcl", .title = "Note 1"};
    char why[300] = "";
    hands_point(x, y);
    hands_pause_ms(200);
    bool takes = windows_keyboard(s, &step, why, sizeof why);
    check_note("%s", why);
    return takes;
}

static void t_numbered(void **state)
{
    static const char note[] = "wm title . [lindex $argv 0]\nwm geometry . [lindex $argv 1]\n";
    hands_open("800x600x24");
    if (!program_exists("wish"))
        skip();
    char *script = xvfb_put(&hands_x, "note.tcl", note);
    const struct screen_options o = {.display = hands_x.display};
    pid_t first = xvfb_spawn(&hands_x, "1.log", WORDS("wish", script, "--", "Note 1", "200x150+100+80"));
    assert_true(xvfb_wait_window(&hands_x, "^Note 1"));
    pid_t second = xvfb_spawn(&hands_x, "2.log", WORDS("wish", script, "--", "Note 2", "200x150+400+80"));
    assert_true(xvfb_wait_window(&hands_x, "^Note 2"));
    struct screen *s = screen_open(&o, NULL);
    assert_non_null(s);
    assert_true(takes_keyboard(s, 200, 150));
    assert_false(takes_keyboard(s, 500, 150));
    process_end(first);
    hands_pause_ms(300);
    assert_true(takes_keyboard(s, 500, 150));
    screen_close(s);
    process_end(second);
    free(script);
    hands_close();
}

static const struct CMUnitTest tests[] = {
    CLAIM("a recorded button is pressed where it is now, and another one at its place is not", t_swapped),
    CLAIM("a name that is a secret is not recorded", t_secret_name),
    CLAIM("keys go to a window with another number in its title only if the recorded title is gone",
          t_numbered),
    CLAIM("a recording whose last action has no effect now does not pass", t_no_effect),
};

CHECK_MAIN()
