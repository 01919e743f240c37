/* t_planner_live.c - freely worded tasks on dialogs of zenity, on private desktops; zenity's output is the
 * judge. */
#include "check.h"
#include "desks.h"
#include "program.h"
#include "xvfb.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

#define FORM "--forms --add-entry=Name --add-entry=City --add-combo=Size --combo-values='Small|Medium|Large'"

static struct xvfb x;

static const struct {
    const char *zenity, *task, *confirm;
    int code;
    const char *prints;  /* zenity's output; NULL: it is still open */
    const char *says;    /* part of stdout or stderr */
    const char *planner; /* NULL: only */
} cases[] = {
    {FORM, "Fill in the form: name Ana Lima, city Porto and size Large", "yes-to-all", 0,
     "Ana Lima|Porto|Large\n", "performed"},
    {FORM, "Fill in the form: name Ana Lima, city Porto and size Large", "never", 8, NULL, "without a user"},
    {FORM, "Set the size to large, then cancel", "cmd:true", 0, "", "performed"},
    {FORM, "Set the size to large", "cmd:false", 8, NULL, "you declined"},
    {FORM, "Set the size to large", "cmd:false", 8, NULL, "you declined", "auto"}, /* no model instead */
    {FORM, "Set the size to purple", "cmd:true", 8, NULL, "purple"},
    {FORM, "Fill in the name Ana unless the city is Rome", "cmd:true", 8, NULL, "unless"},
    {"--forms --add-entry=Phone --add-entry=Phone", "Enter 555 into the phone field", "cmd:true", 8, NULL,
     "several elements"},
};

static void t_dialogs(void **state)
{
    (void)state;
    if (!zenity_fits() || !program_exists("dbus-daemon") || !file_exists("/usr/libexec/at-spi-bus-launcher"))
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct outcome o = {0};
        struct err e = ERR_INIT;
        char *printed = xvfb_place(&x, "printed"),
             *start = xasprintf("zenity %s >%s", cases[i].zenity, printed);
        char *text = NULL;
        size_t n = 0;
        program_run(&x, &o,
                    WORDS("run", cases[i].task, "--planner", cases[i].planner ? cases[i].planner : "only",
                          "--plain", "no", "--confirm", cases[i].confirm, "--on", "desk", "--start", start));
        file_read(printed, 1 << 16, &text, &n, &e);
        bool prints = cases[i].prints ? text && !strcmp(text, cases[i].prints) : !text || !*text;
        if (o.code != cases[i].code || !prints ||
            (!strstr(o.out, cases[i].says) && !strstr(o.err, cases[i].says)))
            fail_msg("%s\nexit %d, expected %d; zenity: %s\n%s%s", cases[i].task, o.code, cases[i].code,
                     text ? text : "", o.out, o.err);
        free(text);
        free(start);
        free(printed);
        outcome_free(&o);
    }
}

static void t_dry(void **state)
{
    (void)state;
    struct outcome o = {0};
    if (!zenity_fits() || !program_exists("dbus-daemon") || !file_exists("/usr/libexec/at-spi-bus-launcher"))
        skip();
    program_run(&x, &o,
                WORDS("run", "Bring me a coffee, please", "--planner", "only", "--dry-run", "--on", "desk",
                      "--start", "zenity " FORM));
    assert_int_equal(o.code, 8);
    program_run(&x, &o,
                WORDS("run", "Set the size to large", "--planner", "only", "--dry-run", "--on", "desk",
                      "--start", "zenity " FORM));
    assert_int_equal(o.code, 0);
    assert_string_equal(o.out, "I understood: 1. choose \"Large\" in \"Size\"  2. press \"OK\"\n");
    assert_non_null(strstr(o.err, "p 1.00"));
    outcome_free(&o);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a freely worded task is done in a dialog, or nothing is pressed", t_dialogs),
    CLAIM("a dry run prints the steps and presses nothing", t_dry),
};

CHECK_MAIN_WITH(if (xvfb_start(&x, "640x480x24", NULL) < 0) return 0, xvfb_stop(&x))
