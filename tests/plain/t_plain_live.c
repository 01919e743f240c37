/* t_plain_live.c - plain sentences on zenity's dialogs, on private desktops; zenity's own output is the judge. */
#include "check.h"
#include "desks.h"
#include "program.h"
#include "xvfb.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

static struct xvfb x;

static const struct {
    const char *zenity, *task;
    int code;
    const char *prints; /* zenity's output; NULL: it is still open */
} cases[] = {
    {"--forms --add-entry=Name --add-entry=City --add-combo=Size --combo-values='Small|Medium|Large'",
     "Enter \"Ana Lima\" into Name, enter Rome into City, choose Large in Size, then press OK", 0,
     "Ana Lima|Rome|Large\n"},
    {"--list --checklist --column=Pick --column=Fruit FALSE Apple TRUE Pear FALSE Plum",
     "untick Pear, tick Plum and press OK", 0, "Plum\n"},
    {"--entry --text=Name", "enter \"a > b & 'c' ... \\\"d\\\"\" into Name; press OK", 0,
     "a > b & 'c' ... \"d\"\n"},
    {"--question --text=Sure", "check that Sure is shown, then press Maybe", 1, NULL},
    {"--info --text=Hello", "press OK. check that Hello is shown", 1, ""},
};

static void t_dialogs(void **state)
{
    (void)state;
    if (!program_exists("zenity") || !program_exists("dbus-daemon") ||
        !file_exists("/usr/libexec/at-spi-bus-launcher"))
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct outcome o = {0};
        char *printed = xvfb_place(&x, "printed"),
             *start = xasprintf("zenity %s >%s", cases[i].zenity, printed);
        struct err e = ERR_INIT;
        program_run(&x, &o, WORDS("run", cases[i].task, "--plain", "only", "--on", "desk", "--start", start));
        char *text = NULL;
        size_t n = 0;
        file_read(printed, 1 << 16, &text, &n, &e);
        if (o.code != cases[i].code || (cases[i].prints && (!text || strcmp(text, cases[i].prints) != 0)))
            fail_msg("%s\nexit %d, expected %d; zenity: %s\n%s%s", cases[i].task, o.code, cases[i].code,
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

int main(int argc, char **argv)
{
    if (xvfb_start(&x, "640x480x24", NULL) < 0)
        return 0;
    int code = check_main(argc, argv, tests, sizeof tests / sizeof *tests);
    xvfb_stop(&x);
    return code;
}
