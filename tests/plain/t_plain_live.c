/* t_plain_live.c - sentences on dialogs of zenity and yad, judged by the output of these. */
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
    CLAIM("--plain only refuses other tasks in one line", t_refused),
};

CHECK_MAIN_WITH(if (xvfb_start(&x, "640x480x24", NULL) < 0) return 0, xvfb_stop(&x))
