/* t_elements_live.c - elements of real programs on private desktops: GTK 3 (zenity, yad), Qt 5 and 6 (PyQt),
 * and Chromium. */
#include "check.h"
#include "desks.h"
#include "xvfb.h"

#include "atspi/elements.h"
#include "atspi/roles.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"

#include <math.h>
#include <signal.h>
#include <unistd.h>

enum { READ_MS = 5000, PATIENCE_MS = 30000 };
#define PYTHON "/usr/bin/python3"
#define SCREEN "xvfb:800x600,noglx"

static const char qt_form[] =
    "from PyQt5.QtWidgets import *\n"
    "a = QApplication([])\nw = QWidget()\nw.setWindowTitle('Qt form')\nv = QVBoxLayout(w)\n"
    "e = QLineEdit('Ana'); e.setAccessibleName('Name'); v.addWidget(e)\n"
    "p = QLineEdit('hunter2'); p.setEchoMode(QLineEdit.Password); p.setAccessibleName('Code'); v.addWidget(p)\n"
    "c = QCheckBox('Window seat'); v.addWidget(c)\n"
    "b = QPushButton('Save file'); v.addWidget(b)\n"
    "b.clicked.connect(lambda: open('pressed', 'w').close())\nw.show()\na.exec_()\n";

/* The field has no name, and its label is not beside it in the tree. */
static const char gtk4_form[] =
    "import gi\ngi.require_version('Gtk', '4.0')\nfrom gi.repository import Gtk, GLib\nGtk.init()\n"
    "w = Gtk.Window(title='Log in')\nb = Gtk.Box(orientation=1)\nw.set_child(b)\n"
    "for text in ('User', 'Password'):\n"
    "    row = Gtk.Box()\n    left = Gtk.Box()\n    left.append(Gtk.Label(label=text))\n    row.append(left)\n"
    "    e = Gtk.Entry(text='Ana' if text == 'User' else 'hunter2', visibility=text == 'User')\n"
    "    row.append(e)\n    b.append(row)\n"
    "b.append(Gtk.Button(label='Save file'))\nw.present()\n"
    "GLib.timeout_add(2000, lambda: e.grab_focus() and False)\nGLib.MainLoop().run()\n";

static struct desk *open_desk(void)
{
    if (!program_exists("dbus-daemon") || !file_exists("/usr/libexec/at-spi-bus-launcher"))
        skip();
    desks_ready();
    return desks_open(&(struct desk_options){.display = SCREEN, .seconds = DESKS_PATIENCE});
}

static void start(struct desk *d, const char *command, const char *window)
{
    struct err e = ERR_INIT;
    if (desk_start(d, command, &e) || desk_wait_window(d, window, DESKS_PATIENCE, NULL, &e))
        fail_msg("%s", e.text);
}

/* Reads the program of a window until it has an element of this name. */
static const struct snapshot *read_until(struct elements *x, const char *window, const char *name)
{
    const struct elements_scope scope = {.window = window};
    struct err e = ERR_INIT;
    const struct snapshot *s = NULL;
    for (int64_t begin = clock_ns(); clock_ms_since(begin) < PATIENCE_MS; clock_sleep_ms(100)) {
        if (elements_snapshot(x, &scope, READ_MS, &s, &e))
            fail_msg("%s", e.text);
        for (int i = 0; i < s->n; i++)
            if (!strcmp(s->e[i].name, name))
                return s;
    }
    fail_msg("no element '%s'", name);
    return s;
}

static const struct element *named(const struct snapshot *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->e[i].name, name))
            return &s->e[i];
    fail_msg("no element '%s' among %d", name, s->n);
    return NULL;
}

static const struct element *of_role(const struct snapshot *s, const char *role)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->e[i].role, role))
            return &s->e[i];
    fail_msg("no element of role '%s' among %d", role, s->n);
    return NULL;
}

static void click(struct desk *d, struct screen_rect r)
{
    struct err e = ERR_INIT;
    struct screen *s = screen_open(&(struct screen_options){.display = desk_display(d)}, &e);
    assert_non_null(s);
    if (screen_acquire_input(s, &e) || screen_click(s, r.x + r.w / 2, r.y + r.h / 2, 1, 1, &e))
        fail_msg("%s", e.text);
    screen_close(s);
}

static void wait_for(struct desk *d, const char *command)
{
    int64_t begin = clock_ns();
    while (desks_run(d, command, NULL) != 0 && clock_ms_since(begin) < PATIENCE_MS)
        clock_sleep_ms(50);
    assert_int_equal(desks_run(d, command, NULL), 0);
}

static void note(const struct snapshot *s, const char *program)
{
    check_note("%s: %d of %d elements show, %d calls, %.1f ms", program, s->n, s->nodes, s->calls, s->ms);
}

/* ---- programs ---------------------------------------------------------------------------------------- */

static void t_gtk(void **state)
{
    (void)state;
    if (!program_exists("yad")) { /* zenity has GTK 4 from Debian 13 on */
        check_note("yad is missing");
        skip();
    }
    struct desk *d = open_desk();
    start(d,
          "yad --form --title='Sign in' --text=Who --field=Name --field=Code:H --button=OK:0 >~/out; "
          "echo $? >~/code",
          "^Sign in$");
    struct elements *x = elements_open(desk_display(d));
    const struct snapshot *s = read_until(x, "Sign in", "OK");
    s = read_until(x, "Sign in", "OK");
    note(s, "yad");
    assert_int_equal(s->end, SNAPSHOT_WHOLE);
    assert_string_equal(of_role(s, "password text")->label, "Code");
    assert_string_equal(of_role(s, "password text")->value, "");
    assert_string_equal(of_role(s, "text")->label, "Name");
    assert_string_equal(named(s, "OK")->role, "push button");
    assert_int_equal(named(s, "OK")->trust, PLACE_SURE);
    click(d, named(s, "OK")->rect);
    wait_for(d, "grep -qx 0 ~/code");
    elements_close(x);
    desk_close(d);
    desks_end();
}

static void t_gtk4(void **state)
{
    static const char seen[] = PYTHON " -c \"import gi; gi.require_version('Gtk', '4.0')\"";
    (void)state;
    struct desk *d = open_desk();
    if (!file_exists(PYTHON) || desks_run(d, seen, NULL) != 0) {
        check_note("GTK 4 for Python is missing");
        desk_close(d);
        desks_end();
        skip();
    }
    char *file = xasprintf("%s/form.py", desk_home(d));
    assert_int_equal(file_write(file, gtk4_form, sizeof gtk4_form - 1, NULL), 0);
    struct elements *x = elements_open(desk_display(d));
    start(d, "cd && exec " PYTHON " form.py", "^Log in$");
    int64_t begin = clock_ns();
    const struct snapshot *s = read_until(x, "Log in", "Save file");
    while (!elements_password_between(x, begin, clock_ns()) && clock_ms_since(begin) < PATIENCE_MS)
        s = read_until(x, "Log in", "Save file");
    note(s, "GTK 4");
    assert_true(elements_password_between(x, begin, clock_ns()));
    assert_string_equal(of_role(s, "password text")->value, "");
    assert_string_equal(of_role(s, "text")->value, "Ana");
    for (int i = 0; i < s->n; i++)
        assert_string_not_equal(s->e[i].value, "hunter2");
    free(file);
    elements_close(x);
    desk_close(d);
    desks_end();
}

static void t_qt(void **state)
{
    (void)state;
    if (!file_exists(PYTHON)) /* another python3 in PATH lacks Debian's packages */
        skip();
    struct desk *d = open_desk();
    if (desks_run(d, PYTHON " -c 'import PyQt5.QtWidgets'", NULL) != 0) {
        check_note("python3-pyqt5 is missing");
        desk_close(d);
        desks_end();
        skip();
    }
    char *file = xasprintf("%s/form.py", desk_home(d));
    assert_int_equal(file_write(file, qt_form, sizeof qt_form - 1, NULL), 0);
    start(d, "cd && exec " PYTHON " form.py", "^Qt form$");
    struct elements *x = elements_open(desk_display(d));
    const struct snapshot *s = read_until(x, "Qt form", "Save file");
    s = read_until(x, "Qt form", "Save file");
    note(s, "Qt 5");
    assert_string_equal(named(s, "Name")->value, "Ana");
    assert_string_equal(named(s, "Code")->role, "password text");
    assert_string_equal(named(s, "Code")->value, "");
    assert_string_equal(named(s, "Window seat")->role, "check box");
    click(d, named(s, "Window seat")->rect);
    clock_sleep_ms(300);
    s = read_until(x, "Qt form", "Save file");
    assert_true(state_in(named(s, "Window seat")->states, STATE_CHECKED));
    click(d, named(s, "Save file")->rect);
    wait_for(d, "test -e ~/pressed");
    elements_close(x);
    desk_close(d);
    desks_end();
    free(file);
}

/* The arguments are the range of the spin button and of the slider. */
static const char qt6_numbers[] =
    "import sys\nfrom PyQt6.QtWidgets import *\nfrom PyQt6.QtCore import Qt\n"
    "a = QApplication([])\nw = QWidget()\nw.setWindowTitle('Numbers')\nv = QVBoxLayout(w)\n"
    "n = [int(x) for x in sys.argv[1:]]\n"
    "for i, x in enumerate((QSpinBox(), QSlider(Qt.Orientation.Horizontal))):\n"
    "    x.setRange(n[2 * i], n[2 * i + 1])\n    x.setAccessibleName(('Bags', 'Level')[i])\n    v.addWidget(x)\n"
    "w.show()\na.exec()\n";

static const char page[] =
    "<!doctype html><title>Page</title><input type=number aria-label=Bags min=2 max=17 value=3>"
    "<input type=range aria-label=Level min=-4 max=250 value=7><input type=number aria-label=Any value=3>";

struct range {
    const char *role, *name;
    double least, most;
};
static const struct {
    const char *needs; /* exits with 0 if the program can run */
    const char *start, *window;
    struct range ranges[3]; /* those of `start`, and of the page */
} numbers[] = {
    {"command -v zenity",
     "exec zenity --scale --title=Scale --min-value=5 --max-value=61 --value=9",
     "Scale",
     {{"slider", NULL, 5, 61}}},
    {"command -v yad",
     "exec yad --form --title=Form --field=Nights:NUM --field=Rate:NUM '2!1..31' '1.5!-2.5..9.75!.25!2'",
     "Form",
     {{"spin button", "Nights", 1, 31}, {"spin button", "Rate", -2.5, 9.75}}},
    {PYTHON " -c 'import PyQt6.QtWidgets'",
     "exec " PYTHON " ~/numbers.py -3 41 100 900",
     "Numbers",
     {{"spin button", "Bags", -3, 41}, {"slider", "Level", 100, 900}}},
    {"command -v chromium",
     "exec chromium --no-sandbox --user-data-dir=$HOME/profile --no-first-run --password-store=basic --test-type "
     "--disable-gpu ~/numbers.html",
     "Page - Chromium",
     {{"spin button", "Bags", 2, 17}, {"slider", "Level", -4, 250}, {"spin button", "Any", 0, 0}}},
};

static const struct element *with_range(const struct snapshot *s, const struct range *r)
{
    for (int i = 0; s && i < s->n; i++)
        if (!strcmp(s->e[i].role, r->role) &&
            (!r->name || !strcmp(s->e[i].name, r->name) || !strcmp(s->e[i].label, r->name)))
            return &s->e[i];
    return NULL;
}

static void t_ranges(void **state)
{
    (void)state;
    struct desk *d = open_desk();
    char *script = xasprintf("%s/numbers.py", desk_home(d)),
         *html = xasprintf("%s/numbers.html", desk_home(d));
    assert_int_equal(file_write(script, qt6_numbers, sizeof qt6_numbers - 1, NULL), 0);
    assert_int_equal(file_write(html, page, sizeof page - 1, NULL), 0);
    int ran = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct err e = ERR_INIT;
        if (desks_run(d, numbers[i].needs, NULL) != 0) {
            check_note("missing: %s", numbers[i].needs);
            continue;
        }
        char *title = xasprintf("^%s$", numbers[i].window);
        start(d, numbers[i].start, title);
        struct elements *x = elements_open(desk_display(d));
        const struct elements_scope scope = {.window = numbers[i].window};
        const struct snapshot *s = NULL;
        for (int64_t begin = clock_ns(); clock_ms_since(begin) < PATIENCE_MS; clock_sleep_ms(100)) {
            if (elements_snapshot(x, &scope, READ_MS, &s, &e))
                fail_msg("%s", e.text);
            if (with_range(s, &numbers[i].ranges[0]))
                break;
        }
        for (const struct range *r = numbers[i].ranges; r < numbers[i].ranges + 3 && r->role; r++) {
            const struct element *at = with_range(s, r);
            if (!at || at->least != r->least || at->most != r->most)
                fail_msg("%s: %s '%s' %g to %g, expected %g to %g", numbers[i].start, r->role,
                         r->name ? r->name : "", at ? at->least : NAN, at ? at->most : NAN, r->least,
                         r->most);
        }
        elements_close(x);
        free(title);
        ran++;
    }
    free(script);
    free(html);
    desk_close(d);
    desks_end();
    if (!ran)
        skip();
}

/* Stopping one program must not delay reading another. */
static void t_stopped(void **state)
{
    (void)state;
    if (!program_exists("zenity"))
        skip();
    struct desk *d = open_desk();
    start(d, "echo $$ >~/pid; exec zenity --info --title=Stopped --text=One", "^Stopped$");
    start(d, "zenity --info --title=Other --text=Two", "^Other$");
    struct elements *x = elements_open(desk_display(d));
    read_until(x, "Stopped", "Stopped");
    read_until(x, "Other", "Other");
    assert_int_equal(desks_run(d, "kill -STOP $(cat ~/pid)", NULL), 0);
    const struct snapshot *s = read_until(x, "Other", "Other");
    note(s, "beside a stopped program");
    assert_int_equal(s->end, SNAPSHOT_WHOLE);
    assert_true(s->ms < 400); /* no call to the stopped program was waited for */
    assert_int_equal(desks_run(d, "kill -CONT $(cat ~/pid)", NULL), 0);
    elements_close(x);
    desk_close(d);
    desks_end();
}

/* ---- the bus ----------------------------------------------------------------------------------------- */

static void t_bus(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    const struct snapshot *s;
    struct desk *d = open_desk();
    desks_says(d, "stat -c %a \"$XDG_RUNTIME_DIR\"; test -S \"$XDG_RUNTIME_DIR/bus\" && echo socket",
               "700\nsocket\n");
    desks_says(
        d,
        "printf %s \"$QT_LINUX_ACCESSIBILITY_ALWAYS_ON$GNOME_ACCESSIBILITY$ACCESSIBILITY_ENABLED$GTK_A11Y\"",
        "111atspi");
    struct desk_trace t = desk_trace_of(d);
    desk_close(d);
    desks_gone(&t);
    d = desks_open(&(struct desk_options){.display = SCREEN, .no_elements = true, .seconds = DESKS_PATIENCE});
    desks_says(d, "printf %s \"$DBUS_SESSION_BUS_ADDRESS$GTK_A11Y\"", "");
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    setenv("XDG_RUNTIME_DIR", "/proc/none", 1);
    struct elements *x = elements_open(desk_display(d));
    assert_int_equal(elements_snapshot(x, &(struct elements_scope){.all = true}, READ_MS, &s, &e), -1);
    check_note("%s", e.text);
    elements_close(x);
    desk_close(d);
    desks_end();
}

static const struct CMUnitTest tests[] = {
    CLAIM("a form of GTK 3 is read without its password, and its button is where it says", t_gtk),
    CLAIM("a password of GTK 4 is neither read nor recorded", t_gtk4),
    CLAIM("a form of Qt 5 is read, and its check box and button are where it says", t_qt),
    CLAIM("a slider or spin button has the range with which its program was started", t_ranges),
    CLAIM("a stopped program costs nothing when another one is read", t_stopped),
    CLAIM("a desktop has a bus of its own in its run directory, or none", t_bus),
};

CHECK_MAIN()
