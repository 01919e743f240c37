/* t_overwrite.c - tests that overwrite replaces the content of a field, or reports that it is unsure.
 *
 * Each program has one field (typed_field.h), which holds the text of the previous action, with the cursor at
 * a random position, on up to ten keyboard layouts. The program itself reports the field's content.
 *
 * HOLORUN_OVERWRITE_LAYOUTS=n: the first n layouts instead of two. HOLORUN_OVERWRITE_RESULT=FILE: writes a
 * table.
 */
#include "check.h"
#include "typed_field.h"

#include "base/clock.h"
#include "base/file.h"
#include "screen/exec.h"

#include <X11/keysym.h>
#include <ctype.h>

static const char *const layouts[] = {"us", "ru", "us(dvorak)", "de", "fr", "gr", "il", "ara", "jp", "tr"};
static const char *const texts[] = {"ls -la /data", "Grüße, Zoë 42", "Привет",   "",
                                    "日本語 x",     "שלום עולם",     "a\nb\n\nc"};
enum { TEXTS = sizeof texts / sizeof *texts, MOVES = 4 };

static const struct view_transform plain = {0, 0, 1, 1};

struct tally {
    int actions, right, unsure, refused, wrong;
    double ms;
};

static int layouts_asked(void)
{
    const char *s = getenv("HOLORUN_OVERWRITE_LAYOUTS");
    int n = s && atoi(s) > 0 ? atoi(s) : 2, most = sizeof layouts / sizeof *layouts;
    return n < most ? n : most;
}

static enum action_fault overwrite(struct screen *s, const char *text, bool enter, struct exec_result *r,
                                   struct err *e)
{
    struct action a = {.kind = ACT_TYPE, .text = (char *)text, .overwrite = true, .press_enter = enter};
    a.x = a.y = a.x2 = a.y2 = ACTION_ABSENT;
    return action_execute(s, &a, &plain, r, e);
}

static void move_cursor(struct screen *s, uint64_t *rng)
{
    static const uint32_t keys[] = {XK_Left, XK_Home, XK_End, XK_Right};
    for (int i = check_below(rng, MOVES); i > 0; i--)
        assert_int_equal(screen_chord(s, &keys[check_below(rng, 4)], 1, NULL), 0);
}

/* Performs one action and compares the field. */
static void overwrite_one(struct field *f, const char *layout, const char *text, struct tally *sum)
{
    struct err e = ERR_INIT;
    struct exec_result r = {0};
    int64_t start = clock_ns();
    enum action_fault fault = overwrite(f->s, text, false, &r, &e);
    sum->ms += clock_ms_since(start);
    sum->actions++;
    char *got = fault || r.unsure ? typed_text(f) : typed_wait(f, text);
    if (fault)
        sum->refused++;
    else if (r.unsure)
        sum->unsure++;
    else if (!strcmp(got, text))
        sum->right++;
    else
        sum->wrong++;
    if (fault || r.unsure || strcmp(got, text) != 0)
        check_note("%s, %s: '%s' %s: %s", f->program->name, layout, text, got,
                   fault      ? e.text
                   : r.unsure ? r.unsure
                              : "WRONG");
    free(got);
}

static void put_result(const char *name, const struct tally *sum)
{
    const char *path = getenv("HOLORUN_OVERWRITE_RESULT");
    FILE *out = path ? fopen(path, "a") : NULL;
    if (!out)
        return;
    fprintf(out, "| %s | %d | %d | %d | %d | %d | %.0f |\n", name, sum->actions, sum->right, sum->unsure,
            sum->refused, sum->wrong, sum->ms / sum->actions);
    fclose(out);
}

/* least: minimum percentage of texts that are confirmed and right. Where it is 100, each text is written on one
 * of two layouts, on the other one with the next seed; with HOLORUN_OVERWRITE_LAYOUTS on all. */
static void overwrite_in(const char *name, bool lines, int least)
{
    struct field f;
    struct tally sum = {0};
    uint64_t rng = check_seed() * 31 + (uint64_t)*name;
    typed_open(&f, name);
    bool half = least == 100 && !getenv("HOLORUN_OVERWRITE_LAYOUTS");
    for (int l = 0; l < layouts_asked(); l++) {
        typed_layout(layouts[l]);
        for (int i = 0; i < TEXTS; i++) {
            bool other = half && ((uint64_t)(l + i) + check_seed()) % 2;
            if (other || (!lines && strchr(texts[i], '\n')))
                continue;
            move_cursor(f.s, &rng);
            overwrite_one(&f, layouts[l], texts[i], &sum);
        }
    }
    typed_layout("us");
    typed_close(&f);
    check_note("%s: %d actions, %d right, %d unsure, %d failed, %d wrong, %.0f ms each", name, sum.actions,
               sum.right, sum.unsure, sum.refused, sum.wrong, sum.ms / sum.actions);
    put_result(name, &sum);
    assert_int_equal(sum.wrong, 0);
    assert_true(100 * sum.right >= least * sum.actions);
}

#define IN(fn, name, lines, least)                                                                           \
    static void fn(void **state)                                                                             \
    {                                                                                                        \
        overwrite_in(name, lines, least);                                                                    \
    }
IN(t_tk, "Tk", false, 100)
IN(t_tk_text, "Tk text", true, 100)
IN(t_gtk3, "GTK 3", false, 100)
IN(t_gtk3_text, "GTK 3 text", true, 100)
IN(t_gtk4, "GTK 4", false, 100)
IN(t_gtk4_text, "GTK 4 text", true, 100)
IN(t_qt, "Qt", false, 100)
IN(t_qt_text, "Qt text", true, 100)
IN(t_qt6, "Qt 6", false, 100)
IN(t_qt6_text, "Qt 6 text", true, 100)
IN(t_firefox, "Firefox", true, 90)
IN(t_firefox_line, "Firefox line", false, 90)
IN(t_chromium, "Chromium", true, 100)
IN(t_chromium_line, "Chromium line", false, 100)
IN(t_password, "GTK 3 password", false, 0)
IN(t_writer, "Writer", true, 0)

/* ---- terminals ---------------------------------------------------------------------------------- */

/* Starts a program in an xterm of this class; no event may reach it. */
static void refused_in(const char *class, const char *program, const char *shows)
{
    struct xvfb x;
    struct exec_result r = {0};
    struct err e = ERR_INIT;
    screen_stop_all(0);
    if (!program_exists("xterm") || !program_exists(program)) {
        check_note("xterm or %s is not installed", program);
        skip();
    }
    if (xvfb_start(&x, "1024x768x24", NULL))
        skip();
    char *log = xasprintf("%s/log", x.dir);
    const char *argv[] = {"xterm", "-l", "-lf", log, "-class", class, "-T", "typing", "-e", program, NULL};
    xvfb_spawn(&x, "xterm.log", argv);
    assert_true(xvfb_wait_window(&x, "^typing$"));
    struct screen *s = screen_open(NULL, NULL);
    assert_int_equal(screen_move(s, 100, 100, NULL), 0);
    clock_sleep_ms(1000);
    static const char line[] = "rm -r /data/old";
    if (shows)
        assert_int_equal(screen_type(s, line, sizeof line - 1, NULL), 0);
    enum action_fault fault = overwrite(s, "ls", true, &r, &e);
    assert_int_equal(fault, FAULT_X11);
    if (!strstr(e.text, "overwrite is not supported in a terminal") || r.events)
        fail_msg("%s in %s: '%s', %d events", program, class, e.text, r.events);
    clock_sleep_ms(300);
    char *text;
    size_t n;
    if (shows) {
        assert_int_equal(file_read(log, 1 << 20, &text, &n, NULL), 0);
        assert_non_null(strstr(text, shows));
        assert_null(strstr(text, "lsrm"));
        free(text);
    }
    free(log);
    screen_close(s);
    xvfb_stop(&x);
}

static void t_terminals(void **state)
{
    refused_in("XTerm", "bash", "rm -r /data/old");
    refused_in("Unheard", "bash", "rm -r /data/old"); /* the child on its pseudo-terminal identifies it */
    refused_in("XTerm", "vim", NULL);
}

static bool answer(void *arg, const char *title)
{
    assert_string_equal(title, "typing");
    return *(bool *)arg;
}

/* A dialog whose process has a child on a pseudo-terminal, like the search field of an editor with a
 * terminal. */
static void t_field_beside_terminal(void **state)
{
    static const char code[] = "import os, pty, time\n"
                               "pid, terminal = pty.fork()\n"
                               "if pid == 0: time.sleep(600)\n"
                               "os.set_inheritable(terminal, True)\n"
                               "os.execvp('yad', ['yad', '--entry', '--title=typing', '--entry-text=old'])";
    const char *argv[] = {"python3", "-c", code, NULL};
    struct xvfb x;
    struct exec_result r = {0};
    struct err e = ERR_INIT;
    bool field = false;
    (void)state;
    screen_stop_all(0);
    if (!program_exists("yad") || !program_exists("python3") || xvfb_start(&x, "1024x768x24", NULL))
        skip();
    xvfb_spawn(&x, "yad.log", argv);
    assert_true(xvfb_wait_window(&x, "^typing$"));
    struct screen *s = screen_open(NULL, NULL);
    clock_sleep_ms(1000);
    assert_int_equal(screen_move(s, 20, 20, NULL),
                     0); /* without a window manager the pointer gives the keyboard */
    assert_int_equal(overwrite(s, "new", false, &r, &e), FAULT_X11);
    assert_non_null(strstr(e.text, "not supported in a terminal"));
    screen_set_is_field(s, answer, &field);
    assert_int_equal(overwrite(s, "new", false, &r, &e), FAULT_X11);
    assert_int_equal(r.events, 0);
    field = true;
    assert_int_equal(overwrite(s, "new", false, &r, &e), FAULT_NONE);
    assert_null(r.unsure); /* it was read back */
    screen_close(s);
    xvfb_stop(&x);
}

/* A window of Gnumeric's class, before and after it becomes a dialog. */
static void t_spreadsheet(void **state)
{
    static const char *const argv[] = {"yad",         "--class=gnumeric", "--entry", "--title=typing",
                                       "--width=300", "--entry-text=old", NULL},
                             *const makes[] = {"xprop",
                                               "-name",
                                               "typing",
                                               "-f",
                                               "_NET_WM_WINDOW_TYPE",
                                               "32a",
                                               "-set",
                                               "_NET_WM_WINDOW_TYPE",
                                               "_NET_WM_WINDOW_TYPE_DIALOG",
                                               NULL};
    struct xvfb x;
    struct exec_result r = {0};
    struct err e = ERR_INIT;
    (void)state;
    screen_stop_all(0);
    if (!program_exists("yad") || !program_exists("xprop") || xvfb_start(&x, "1024x768x24", NULL))
        skip();
    xvfb_spawn(&x, "yad.log", argv);
    assert_true(xvfb_wait_window(&x, "^typing$"));
    struct screen *s = screen_open(NULL, NULL);
    clock_sleep_ms(1000);
    assert_int_equal(screen_move(s, 40, 40, NULL), 0);
    assert_int_equal(overwrite(s, "new", false, &r, &e), FAULT_X11);
    assert_non_null(strstr(e.text, "not supported in a spreadsheet"));
    assert_int_equal(r.events, 0);
    xvfb_spawn(&x, "xprop.log", makes);
    clock_sleep_ms(1000);
    assert_int_equal(overwrite(s, "new", false, &r, &e), FAULT_NONE);
    assert_null(r.unsure);
    screen_close(s);
    xvfb_stop(&x);
}

/* ---- Enter ---------------------------------------------------------------------------------------- */

/* A password field publishes no selection. */
static void t_enter(void **state)
{
    struct field f;
    struct exec_result r = {0};
    struct err e = ERR_INIT;
    typed_open(&f, "GTK 3 password");
    assert_int_equal(overwrite(f.s, "abc", false, &r, &e), FAULT_NONE);
    assert_non_null(r.unsure);
    enum action_fault fault = overwrite(f.s, "abcd", true, &r, &e);
    char *got = typed_wait(&f, "abcd");
    typed_close(&f);
    assert_string_equal(got, "abcd");
    free(got);
    assert_int_equal(fault, FAULT_X11);
    assert_non_null(strstr(e.text, "unsure"));
    assert_non_null(strstr(e.text, "Enter was not pressed"));
}

static const struct CMUnitTest tests[] = {
    CLAIM("overwrite replaces the line of a Tk entry", t_tk),
    CLAIM("overwrite replaces all lines of a Tk text", t_tk_text),
    CLAIM("overwrite replaces the line of a GTK 3 entry", t_gtk3),
    CLAIM("overwrite replaces all lines of a GTK 3 text view", t_gtk3_text),
    CLAIM("overwrite replaces the line of a GTK 4 entry", t_gtk4),
    CLAIM("overwrite replaces all lines of a GTK 4 text view", t_gtk4_text),
    CLAIM("overwrite replaces the line of a Qt 5 field", t_qt),
    CLAIM("overwrite replaces all lines of a Qt 5 editor", t_qt_text),
    CLAIM("overwrite replaces the line of a Qt 6 field", t_qt6),
    CLAIM("overwrite replaces all lines of a Qt 6 editor", t_qt6_text),
    CLAIM("overwrite replaces all lines of a text area in Firefox", t_firefox),
    CLAIM("overwrite replaces the line of an input in Firefox", t_firefox_line),
    CLAIM("overwrite replaces all lines of a text area in Chromium", t_chromium),
    CLAIM("overwrite replaces the line of an input in Chromium", t_chromium_line),
    CLAIM("overwrite in a password field is right or unsure", t_password),
    CLAIM("overwrite replaces the text of a Writer document, or is unsure", t_writer),
    CLAIM("overwrite is refused in terminals, and sends nothing", t_terminals),
    CLAIM("the field of a dialog is written in a spreadsheet, its window is not", t_spreadsheet),
    CLAIM("overwrite replaces a field of a program with a terminal if the program describes it",
          t_field_beside_terminal),
    CLAIM("Enter is not pressed after an overwrite that cannot be read back", t_enter),
};

CHECK_MAIN()
