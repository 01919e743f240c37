/* wait.c - `holorun wait`: waits until the screen shows a window, an image or a text, for use in scripts.
 * The checks are those of suites (qa/run/check.h), applied to an existing display without a run. */
#include "cmd/commands.h"

#include "base/regex.h"
#include "qa/run/check.h"
#include "screen/x11/displays.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings {
    const char *display, *window, *class, *region, *area, *text;
    double seconds, max_diff;
    bool absent, json;
};

static const struct option_spec options[] = {
    {"display", 'd', OPTION_TEXT, offsetof(struct settings, display), ":N", 0, 256, NULL, "X display",
     "DISPLAY"},
    {"window", 'w', OPTION_TEXT, offsetof(struct settings, window), "REGEX", 0, 2000, NULL,
     "wait for a window whose title matches", NULL},
    {"class", 0, OPTION_TEXT, offsetof(struct settings, class), "REGEX", 0, 2000, NULL,
     "wait for a window whose class matches", NULL},
    {"region", 'r', OPTION_TEXT, offsetof(struct settings, region), "FILE", 0, 4096, NULL,
     "wait until the screen, or --area of it, looks like this PNG", NULL},
    {"area", 0, OPTION_TEXT, offsetof(struct settings, area), "X,Y,W,H", 0, 64, NULL,
     "with --region: the part of the screen to compare", NULL},
    {"max-diff", 0, OPTION_NUMBER, offsetof(struct settings, max_diff), "FRACTION", 0, 1, "0.01",
     "with --region: fraction of pixels that may differ", NULL},
    {"text", 't', OPTION_TEXT, offsetof(struct settings, text), "WORDS", 0, 4096, NULL,
     "wait until the embedded model reads this text on the screen", NULL},
    {"absent", 0, OPTION_FLAG, offsetof(struct settings, absent),
     .help = "with --window or --class: wait until no such window is open"},
    {"seconds", 's', OPTION_NUMBER, offsetof(struct settings, seconds), "SECONDS", 0, 86400, "30",
     "time limit", NULL},
    JSON_OPTION(struct settings),
    {0},
};

const struct command wait_command = {
    "wait",
    "",
    "wait until a window, an image or a text is on the screen",
    "For use in scripts. All given conditions must hold; they are checked in sequence. Exit code 0: they "
    "hold; 124: not within the time limit, and the message describes what was found instead. The embedded "
    "model reads its own theme well and others badly. If it reads a text, the text is present; if it does "
    "not, the text may be present all the same, so waiting for the absence of a text is not possible.",
    "holorun wait --window '^Dashboard' --seconds 60\nholorun wait --region logo.png --area 0,0,200,60\n"
    "holorun run 'Open the report.' && holorun wait --window Report && holorun run 'Print it.'\n",
    options,
    cmd_wait};

/* Finds mistakes in patterns and file names before the wait begins.  Returns -1 with e. */
static int check_words(const struct settings *s, struct err *e)
{
    const struct {
        const char *option, *pattern;
    } patterns[] = {{"--window", s->window}, {"--class", s->class}};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct regex *r = patterns[i].pattern ? regex_new(patterns[i].pattern, false, e) : NULL;
        if (patterns[i].pattern && !r)
            return err_prefix(e, "%s", patterns[i].option);
        regex_free(r);
    }
    if (s->region && access(s->region, R_OK))
        return err_set(e, ERR_USAGE, "--region: cannot open '%s': %s", s->region, strerror(errno));
    return 0;
}

/* Fills the requested checks; returns their number, or -1 with e. */
static int fill_checks(const struct settings *s, struct check c[3], struct err *e)
{
    struct check base = {
        .seconds = s->seconds, .max_diff = s->max_diff, .tolerance = 16, .passes = 1, .frames = 1};
    int n = 0, end = 0, area[4] = {0};
    if (s->area && (sscanf(s->area, "%5d,%5d,%5d,%5d%n", &area[0], &area[1], &area[2], &area[3], &end) != 4 ||
                    s->area[end] || area[0] < 0 || area[1] < 0 || area[2] < 1 || area[3] < 1))
        return err_set(e, ERR_USAGE, "--area must be X,Y,W,H in pixels, such as 0,0,200,60");
    if (s->absent && (s->region || s->text))
        return err_set(e, ERR_USAGE, "--absent works only with --window and --class");
    if (s->window || s->class) {
        c[n] = base;
        c[n].kind = CHECK_WINDOW;
        c[n].text = s->window;
        c[n].text2 = s->class;
        c[n].absent = s->absent;
        c[n++].name = "window";
    }
    if (s->region) {
        c[n] = base;
        c[n].kind = CHECK_REGION;
        c[n].text = s->region;
        for (int i = 0; i < 4; i++)
            c[n].area[i] = area[i];
        c[n++].name = "region";
    }
    if (s->text) {
        c[n] = base;
        c[n].kind = CHECK_TEXT;
        c[n].text = s->text;
        c[n].reading = true;
        c[n++].name = "text";
    }
    return n ? n : err_set(e, ERR_USAGE, "nothing to wait for: give --window, --class, --region or --text");
}

int cmd_wait(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings s = {0};
    struct check checks[3];
    int n = options_parse(&wait_command, &s, argc, argv, &e);
    n = n < 0 || check_words(&s, &e) ? -1 : fill_checks(&s, checks, &e);
    if (n < 0)
        return options_refuse(&wait_command, &e);
    screen_install_signals();
    displays_authorize(s.display);
    const struct screen_options o = {.display = s.display};
    struct screen *screen = screen_open(&o, &e);
    const struct check_context context = {.screen = screen, .cancel = screen_stop_flag(screen)};
    int rc = screen ? 0 : -1;
    for (int i = 0; i < n && rc == 0; i++)
        rc = check_wait(&context, &checks[i], &e);
    screen_close(screen);
    if (rc == 0 && s.json)
        puts("{\"status\": \"there\"}");
    return rc ? options_failed(&e) : 0;
}
