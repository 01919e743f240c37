/* t_plain_live.c - sentences on dialogs of zenity and yad, judged by the output of these, and on a page in
 * Chromium, judged by its console. */
#include "check.h"
#include "desks.h"
#include "program.h"
#include "xvfb.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

static struct xvfb x;

static const struct {
    const char *start, *task;
    int code;
    const char *prints; /* the program's output; NULL: it is still open */
} cases[] = {
    {"zenity --forms --add-entry=Name --add-entry=City --add-combo=Size --combo-values='Small|Medium|Large'",
     "Enter \"Ana Lima\" into Name, enter Rome into City, choose Large in Size, then press OK", 0,
     "Ana Lima|Rome|Large\n"},
    {"zenity --list --checklist --column=Pick --column=Fruit FALSE Apple TRUE Pear FALSE Plum",
     "untick Pear, tick Plum and press OK", 0, "Plum\n"},
    {"zenity --entry --text=Name", "enter \"a > b & 'c' ... \\\"d\\\"\" into Name; press OK", 0,
     "a > b & 'c' ... \"d\"\n"},
    {"zenity --question --text=Sure", "check that Sure is shown, then press Maybe", 1, NULL},
    {"zenity --info --text=Hello", "press OK. check that Hello is shown", 1, ""},
    {"xterm -e cat", "check that Order is gone", 1, NULL}, /* the front window describes nothing */
    {"zenity --question --text='Save As or Save'", "press Save", 1, NULL},
    {"yad --form --field=Price --field=Paid:CHK --field=Colour:CB '' TRUE 'Blue!Red and white!Black'",
     "enter \"12,50\" into Price, untick Paid, choose \"Red and white\" in Colour, press OK", 0,
     "12,50|FALSE|Red and white|\n"},
    {"yad --form --field=Nights:NUM --field=Rate:NUM 2 '1.5!0..9!.5!1'",
     "set Nights to 5, set Rate to 7.5, press OK", 0, "5|7.5|\n"},
    /* the click that gives the slider the keyboard moves it between two steps */
    {"zenity --scale --text=Volume --min-value=5 --max-value=60 --value=10 --step=5",
     "set Volume to 20, press OK", 0, "20\n"},
    {"yad --list --column=Label --radiolist --column=Text --print-column=2 FALSE 'Made in Spain' FALSE "
     "'Made in Italy'",
     "choose Made in Italy, press OK", 0, "Made in Italy|\n"},
};

static void t_dialogs(void **state)
{
    (void)state;
    bool zenity = zenity_fits(), yad = program_exists("yad");
    if ((!zenity && !yad) || !program_exists("dbus-daemon") ||
        !file_exists("/usr/libexec/at-spi-bus-launcher"))
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct outcome o = {0};
        if (text_starts(cases[i].start, "yad ") ? !yad : !zenity)
            continue;
        char *printed = xvfb_place(&x, "printed"), *start = xasprintf("%s >%s", cases[i].start, printed);
        struct err e = ERR_INIT;
        program_run(&x, &o, WORDS("run", cases[i].task, "--plain", "only", "--on", "desk", "--start", start));
        char *text = NULL;
        size_t n = 0;
        file_read(printed, 1 << 16, &text, &n, &e);
        if (o.code != cases[i].code || (cases[i].prints && (!text || strcmp(text, cases[i].prints) != 0)))
            fail_msg("%s\nexit %d, expected %d; output: %s\n%s%s", cases[i].task, o.code, cases[i].code,
                     text ? text : "", o.out, o.err);
        free(text);
        free(start);
        free(printed);
        outcome_free(&o);
    }
}

/* A button that its style moves out of its parent, a list without a name, a text with a click handler, and a
 * date. */
static const char page[] =
    "<!doctype html><title>Order</title><body style='margin:0'>"
    "<div style='height:10px'><button style='position:absolute;left:300px;top:200px' "
    "onclick='console.log(\"got \" + document.querySelector(\"select\").value)'>Far</button></div>"
    "<select><option>Small<option>Large</select><p><span id=s>Later</span></p>"
    "<label>Day <input type=date id=d></label><script>s.onclick = () => console.log('later ' + d.value)</script>";

static void t_page(void **state)
{
    (void)state;
    if (!program_exists("chromium") || !program_exists("dbus-daemon") ||
        !file_exists("/usr/libexec/at-spi-bus-launcher"))
        skip();
    static const char *const scales[] = {"1", "1.5"};
    for (int i = 0; i < 2; i++) {
        struct outcome o = {0};
        struct err e = ERR_INIT;
        char *html = xvfb_put(&x, "page.html", page), *log = xvfb_place(&x, "console"), *text = NULL;
        char *start = xasprintf("chromium --no-sandbox --user-data-dir=\"$HOME/profile\" --no-first-run "
                                "--password-store=basic --test-type --disable-gpu --enable-logging=stderr "
                                "--force-device-scale-factor=%s --window-position=40,30 "
                                "--window-size=700,500 \"file://%s\" 2>%s",
                                scales[i], html, log);
        size_t n = 0;
        program_run(&x, &o,
                    WORDS("run", "choose Large, press Far, enter 3/14/2027 into Day, press Later", "--plain",
                          "only", "--on", "desk", "--start", start));
        assert_int_equal(file_read(log, 1 << 20, &text, &n, &e), 0);
        if (o.code != 0 || !strstr(text, "\"got Large\"") || !strstr(text, "\"later 2027-03-14\""))
            fail_msg("scale %s: exit %d\n%s%s\n%s", scales[i], o.code, o.out, o.err, text);
        free(text);
        free(start);
        free(log);
        free(html);
        outcome_free(&o);
    }
}

/* Fields whose parts differ in kind, a number that keeps values outside its range, fields without names in a table, and a text in a group whose click handler
 * ignores it. */
static const char form[] =
    "<!doctype html><title>Booking</title><body style='margin:0'>"
    "<p><label>Meet <input type=time step=1 id=a></label></p>"
    "<p><label>When <input type=datetime-local id=b></label></p>"
    "<p><label>Month <input type=month id=c></label></p>"
    "<table><tr><th>Item<th>Amount<tr><td>Coffee<td><input id=d><tr><td>Tea<td><input id=e></table>"
    "<p><label>Bags <input type=number min=0 max=40 value=3 id=f></label>"
    "<div id=g><h4>Inert</h4><p>Other</p></div><p><button id=s>Later</button>"
    "<script>g.onclick = () => 0; s.onclick = () => console.log('got ' + [a, b, c, d, e, f].map(i => i.value))"
    "</script>";

static void t_form(void **state)
{
    (void)state;
    if (!program_exists("chromium") || !program_exists("dbus-daemon") ||
        !file_exists("/usr/libexec/at-spi-bus-launcher"))
        skip();
    struct outcome o = {0};
    struct err e = ERR_INIT;
    char *html = xvfb_put(&x, "form.html", form), *log = xvfb_place(&x, "form.log"), *text = NULL;
    char *start = xasprintf("chromium --no-sandbox --user-data-dir=\"$HOME/profile\" --no-first-run "
                            "--password-store=basic --test-type --disable-gpu --enable-logging=stderr "
                            "--window-position=0,0 --window-size=640,480 \"file://%s\" 2>%s",
                            html, log);
    size_t n = 0;
    program_run(
        &x, &o,
        WORDS(
            "run",
            "set Meet to \"13:15:09\", set When to \"2027-03-14T09:30\", set Month to \"2027-03\", "
            "enter 3 into Amount in the row of Tea, set Bags to 41, check that Meet equals \"1:15:09 PM\", press Later, "
            "press Inert",
            "--plain", "only", "--on", "desk", "--start", start));
    assert_int_equal(file_read(log, 1 << 20, &text, &n, &e), 0);
    if (o.code != 1 || !strstr(text, "\"got 13:15:09,2027-03-14T09:30,2027-03,,3,41\"") ||
        (!strstr(o.out, "no effect was seen") && !strstr(o.err, "no effect was seen")))
        fail_msg("exit %d\n%s%s\n%s", o.code, o.out, o.err, text);
    free(text);
    free(start);
    free(log);
    free(html);
    outcome_free(&o);
}

/* Widgets that a page makes itself: a box of three states, a list that scrolls, one that opens only for a text, a
 * slider, a spin button with keys of its own, and below the window a button with the name of a key. */
static const char widgets[] =
    "<!doctype html><title>Widgets</title><body style='margin:0'>"
    "<div role=checkbox tabindex=0 aria-checked=mixed id=a>Everything</div>"
    "<ul role=listbox aria-label=Metal tabindex=0 id=b style='height:60px;overflow:auto;margin:0'></ul>"
    "<ul role=listbox aria-label=Fuel style='margin:0'><li role=option>Coal</ul>" /* ignores clicks */
    "<input role=combobox aria-label=Town aria-expanded=false id=c autocomplete=off>"
    "<ul role=listbox id=d hidden style='margin:0'></ul>"
    "<div role=slider tabindex=0 aria-label=Heat aria-valuenow=5 aria-valuemin=0 aria-valuemax=99 id=e "
    "style='width:200px'>heat</div>"
    "<input role=spinbutton aria-label=Guests aria-valuenow=1 value=1 id=f><p style='height:700px'>"
    "<p><button id=g>Up</button><button id=h>Close</button><p>Bottom"
    "<script>var cycle = {mixed: 'true', true: 'false', false: 'mixed'}, set = (e, k, v) => e.setAttribute(k, v);"
    "a.onclick = () => set(a, 'aria-checked', cycle[a.getAttribute('aria-checked')]);"
    "var entry = (list, name, f) => { let o = document.createElement('li'); o.textContent = name;"
    "  set(o, 'role', 'option'); o.onclick = () => f(o); list.append(o) };"
    "for (let n of ['Gold', 'Iron', 'Lead', 'Silver', 'Tin', 'Zinc']) entry(b, n, o => {"
    "  for (let x of b.children) set(x, 'aria-selected', x == o) });"
    "c.oninput = () => { d.innerHTML = ''; d.hidden = false; for (let n of ['Bonn', 'Bern', 'Rome'])"
    "  if (n.startsWith(c.value)) entry(d, n, () => { c.value = n + '!'; c.value = n; d.hidden = true; got = n }) };"
    "var got = '';"
    "e.onkeydown = v => { let by = {ArrowRight: 3, ArrowLeft: -3}[v.key]; if (by) set(e, 'aria-valuenow',"
    "  +e.getAttribute('aria-valuenow') + by) };"
    "f.onkeydown = v => { if (v.key == 'Home' || v.key == 'End') { f.value = v.key == 'Home' ? 0 : 8;"
    "  v.preventDefault() } };"
    "g.onclick = () => console.log('up', a.getAttribute('aria-checked'), b.querySelector('[aria-selected=true]')"
    "  .textContent, got, e.getAttribute('aria-valuenow'), f.value);"
    "h.onclick = () => console.log('closed')</script>";

static void t_widgets(void **state)
{
    static const struct {
        const char *task;
        int code;
        const char *logs, *says;
    } runs[] = {
        {"untick Everything, choose Zinc in Metal, choose Bern in Town, set Heat to 26, set Guests to 3, press Up, "
         "press Close",
         0, "\"up false Zinc Bern 26 3\"", NULL},
        {"check that Everything is unticked", 1, NULL, "partly ticked"},
        {"check that Bottom is gone", 1, NULL, "in the page"},
        {"check that Bottom is shown, press Bottom", 1, NULL, "cannot be pressed"},
        {"choose Coal in Fuel, check that Coal is shown", 7, NULL, "nothing changed"},
        {"set Heat to 6", 1, NULL, "in steps of 3"},
        {"set Heat to 101", 1, NULL, "takes numbers from 0 to 99, not 101"},
    };
    (void)state;
    if (!program_exists("chromium") || !program_exists("dbus-daemon") ||
        !file_exists("/usr/libexec/at-spi-bus-launcher"))
        skip();
    char *html = xvfb_put(&x, "widgets.html", widgets), *log = xvfb_place(&x, "widgets.log");
    char *start = xasprintf("chromium --no-sandbox --user-data-dir=\"$HOME/profile\" --no-first-run "
                            "--password-store=basic --test-type --disable-gpu --enable-logging=stderr "
                            "--window-position=0,0 --window-size=640,480 \"file://%s\" 2>%s",
                            html, log);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct outcome o = {0};
        struct err e = ERR_INIT;
        char *text = NULL;
        size_t n = 0;
        program_run(&x, &o, WORDS("run", runs[i].task, "--plain", "only", "--on", "desk", "--start", start));
        assert_int_equal(file_read(log, 1 << 20, &text, &n, &e), 0);
        if (o.code != runs[i].code ||
            (runs[i].says && !strstr(o.out, runs[i].says) && !strstr(o.err, runs[i].says)) ||
            (runs[i].logs && (!strstr(text, runs[i].logs) || !strstr(text, "\"closed\""))))
            fail_msg("%s: exit %d\n%s%s\n%s", runs[i].task, o.code, o.out, o.err, text);
        free(text);
        outcome_free(&o);
    }
    free(start);
    free(log);
    free(html);
}

/* Prints each value, and each text while it is typed. */
static const char qt_numbers[] =
    "from PyQt6.QtWidgets import *\nfrom PyQt6.QtCore import Qt\n"
    "a = QApplication([])\nw = QWidget()\nw.setWindowTitle('Numbers')\nf = QFormLayout(w)\n"
    "for name, x in (('Bags', QSpinBox()), ('Level', QSlider(Qt.Orientation.Horizontal)), ('Turn', QDial()),\n"
    "                ('Weight', QDoubleSpinBox(singleStep=.5, prefix='ca. ', suffix=' kg'))):\n"
    "    x.setRange(0, 40)\n    x.setValue(3)\n    x.setAccessibleName(name)\n    f.addRow(name, x)\n"
    "    x.valueChanged.connect(lambda v, n=name: print(n, v, flush=True))\n"
    "w.show()\na.exec()\n";
static const char gtk_numbers[] =
    "import gi\ngi.require_version('Gtk', '3.0')\nfrom gi.repository import Gtk\n"
    "w = Gtk.Window(title='Numbers')\ng = Gtk.Grid()\nw.add(g)\n"
    "for i, name in enumerate(('Bags', 'Level')):\n"
    "    a = Gtk.Adjustment(value=3, lower=0, upper=40, step_increment=1)\n"
    "    x = Gtk.Scale(adjustment=a, digits=0, hexpand=True) if i else Gtk.SpinButton(adjustment=a)\n"
    "    l = Gtk.Label(label=name, mnemonic_widget=x)\n    g.attach(l, 0, i, 1, 1)\n    g.attach(x, 1, i, 1, 1)\n"
    "    a.connect('value-changed', lambda a, n=name: print(n, '%g' % a.get_value(), flush=True))\n"
    "    if not i: x.connect('changed', lambda x: print('Bags', x.get_text(), flush=True))\n"
    "w.resize(400, 100)\nw.show_all()\nGtk.main()\n";

static void t_numbers(void **state)
{
    static const char *const modules[] = {"import PyQt6.QtWidgets",
                                          "import gi; gi.require_version('Gtk', '3.0')"};
    static const struct {
        int where;               /* bits: Qt, GTK */
        const char *task, *says; /* says: why it fails */
        const char *last;        /* last line of the output; "": nothing was printed; NULL: anything */
    } runs[] = {
        {3, "set Bags to 41", "spin button 'Bags' takes numbers from 0 to 40, not 41", ""},
        {3, "set Level to -1", "slider 'Level' takes numbers from 0 to 40, not -1", ""},
        {3, "set Bags to 40", NULL, "Bags 40\n"},
        {3, "set Level to 31", NULL, "Level 31\n"},
        {1, "set Turn to 17", NULL, "Turn 17\n"},
        {1, "set Weight to 0", NULL, "Weight 0.0\n"},       /* its text does not begin with the number */
        {1, "set Weight to 12.25", NULL, "Weight 12.25\n"}, /* not a multiple of its step */
        {1, "set Bags to 12.5", "is 12 after typing", NULL},
        {2, "set Bags to 12.5", "contains '12' after typing", NULL},
    };
    (void)state;
    if (!file_exists("/usr/bin/python3") || !program_exists("dbus-daemon") ||
        !file_exists("/usr/libexec/at-spi-bus-launcher"))
        skip();
    for (size_t i = 0; i < 2 * sizeof runs / sizeof *runs; i++) {
        bool gtk = i % 2;
        size_t k = i / 2;
        autofree char *probe = xasprintf("/usr/bin/python3 -c \"%s\" 2>/dev/null", modules[gtk]);
        if (!(runs[k].where & (gtk ? 2 : 1)) || system(probe) != 0)
            continue;
        OUTCOME(o);
        struct err e = ERR_INIT;
        autofree char *script = xvfb_put(&x, "numbers.py", gtk ? gtk_numbers : qt_numbers);
        autofree char *printed = xvfb_place(&x, "numbers"), *text = NULL;
        autofree char *start = xasprintf("/usr/bin/python3 %s >%s", script, printed);
        size_t n = 0;
        program_run(&x, &o, WORDS("run", runs[k].task, "--plain", "only", "--on", "desk", "--start", start));
        assert_int_equal(file_read(printed, 1 << 16, &text, &n, &e), 0);
        const char *line = runs[k].last;
        size_t last = line ? strlen(line) : 0;
        if (o.code != !!runs[k].says ||
            (runs[k].says && !strstr(o.out, runs[k].says) && !strstr(o.err, runs[k].says)) ||
            (line && (last ? n < last || strcmp(text + n - last, line) != 0 : n != 0)))
            fail_msg("%s in %s: exit %d; output: %s\n%s%s", runs[k].task, gtk ? "GTK 3" : "Qt 6", o.code,
                     text, o.out, o.err);
    }
}

static void t_refused(void **state)
{
    (void)state;
    struct outcome o = {0};
    program_run(&x, &o, WORDS("run", "make the text bold", "--plain", "only", "--display", x.display));
    ONE_LINE(&o, ERR_USAGE, "no rule covers", "make the text bold");
    program_run(&x, &o, WORDS("run", "press Save", "--plain", "only", "--fake", "x", "--display", x.display));
    ONE_LINE(&o, ERR_USAGE, "--plain only", "--fake");
    outcome_free(&o);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a sentence does in a dialog what it says, or fails", t_dialogs),
    CLAIM("a page with a scale and styled places is operated where it is drawn", t_page),
    CLAIM("fields of a page get any value, and a text that ignores a click is not pressed", t_form),
    CLAIM("widgets that a page makes itself are operated, wherever they are on the page", t_widgets),
    CLAIM(
        "a number outside the range is refused before a key is pressed, and one that the program changes fails",
        t_numbers),
    CLAIM("--plain only refuses other tasks in one line", t_refused),
};

CHECK_MAIN_WITH(if (xvfb_start(&x, "640x480x24", NULL) < 0) return 0, xvfb_stop(&x))
