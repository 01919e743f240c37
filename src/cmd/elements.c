/* elements.c - `holorun elements`: prints the elements of visible windows, as programs describe them through
 * AT-SPI. */
#include "cmd/commands.h"

#include "atspi/elements.h"
#include "atspi/elements_json.h"
#include "base/json.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

struct settings {
    const char *display, *window;
    double seconds;
    bool json, places, closed;
};

#define AT(member) offsetof(struct settings, member)

static const struct option_spec options[] = {
    {"display", 'd', OPTION_TEXT, AT(display), ":N", 0, 256, NULL, "X display", "DISPLAY"},
    {"window", 'w', OPTION_TEXT, AT(window), "TITLE", 0, 512, NULL,
     "read only the program of the window with this title; default: all programs", NULL},
    {"places", 'p', OPTION_FLAG, AT(places), .help = "print the centre of each element that can be operated"},
    {"closed", 0, OPTION_FLAG, AT(closed),
     .help = "also print items of closed menus and lists, and of pages behind the front one"},
    {"seconds", 0, OPTION_NUMBER, AT(seconds), "SECONDS", 0.1, 60, "5",
     "time limit; elements found by then are printed", NULL},
    JSON_OPTION(struct settings),
    {0},
};

const struct command elements_command = {
    "elements",
    "",
    "print the accessibility tree (AT-SPI) of visible windows",
    "Prints role, name, value and state of the elements in visible windows, one per line. Numbers (e12) "
    "identify elements that can be operated. Elements without a name are omitted unless they are text; "
    "--json has them all. Tests of a suite can check elements (kind: element).\n\n"
    "On a private desktop all programs describe their windows. On a user's desktop GTK programs do so once a "
    "session bus runs, Qt programs with QT_LINUX_ACCESSIBILITY_ALWAYS_ON=1, Chromium with "
    "--force-renderer-accessibility and ACCESSIBILITY_ENABLED=1. Contents of password fields are not read. "
    "Exit code 3: no accessibility bus.",
    "holorun elements\nholorun elements --window Passenger --places\n"
    "holorun elements --json | jq '.elements[] | select(.role == \"push button\")'\n",
    options,
    cmd_elements};

static void print_json(const struct snapshot *s)
{
    bool complete = s->end == SNAPSHOT_WHOLE || s->end == SNAPSHOT_NOTHING;
    json_auto_t *all =
        json_pack("{s:o, s:b, s:f}", "elements", elements_json(s, s->n), "complete", complete, "ms", s->ms);
    json_print(all, stdout, JSON_COMPACT);
    putchar('\n');
}

static void print_text(const struct snapshot *s, bool places)
{
    autobuf text = buf_of(16 << 20);
    elements_text(s, places, &text);
    if (text.len)
        utf8_print_lines(stdout, text.data, text.len);
    if (s->end == SNAPSHOT_SILENT)
        warn("a program does not answer; its elements are missing");
    if (s->end == SNAPSHOT_CUT)
        warn("elements are missing: a limit of time, depth or number was reached");
}

int cmd_elements(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings s = {0};
    const struct snapshot *found;
    if (options_parse(&elements_command, &s, argc, argv, &e) < 0)
        return options_refuse(&elements_command, &e);
    struct elements *x = elements_open(s.display);
    const struct elements_scope scope = {.window = s.window, .all = !s.window, .closed = s.closed};
    int rc = elements_snapshot(x, &scope, 1000 * s.seconds, &found, &e);
    if (rc == 0 && s.json)
        print_json(found);
    else if (rc == 0)
        print_text(found, s.places);
    elements_close(x);
    return rc ? options_failed(&e) : 0;
}
