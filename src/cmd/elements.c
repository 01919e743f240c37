/* elements.c - `holorun elements`: prints the accessibility tree (AT-SPI) of visible windows: roles, names,
 * states, contents and positions.
 *
 * A request to a program that does not answer times out after CALL_MS; the walk ends at its time limit and
 * prints its results so far, and an alarm ends the process if the library hangs.  Programs choose the names
 * of their elements, so names are limited in length and printed without control characters. */
#include "cmd/commands.h"

#include "atspi/atspi.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CALL_MS = 400,
    START_MS = 1000,
    DEPTH = 60,
    ELEMENTS = 5000,
    TEXT = 4096, /* maximum bytes of a name or a content */
};

struct settings {
    const char *display;
    double seconds;
    bool json;
};

static const struct option_spec options[] = {
    {"display", 'd', OPTION_TEXT, offsetof(struct settings, display), ":N", 0, 256, NULL, "X display",
     "DISPLAY"},
    {"seconds", 0, OPTION_NUMBER, offsetof(struct settings, seconds), "SECONDS", 0.1, 60, "5",
     "time limit; elements found by then are printed", NULL},
    JSON_OPTION(struct settings),
    {0},
};

const struct command elements_command = {
    "elements",
    "",
    "print the accessibility tree (AT-SPI) of visible windows",
    "Prints role, name, states, content and position of each element, indented. Tests of a suite can check "
    "them (kind: element). GTK programs publish their elements if there is a session bus, Qt programs with "
    "QT_LINUX_ACCESSIBILITY_ALWAYS_ON=1, Chromium with --force-renderer-accessibility. Contents of password "
    "fields are omitted. Exit code 3: no accessibility bus or no libatspi was found.",
    "holorun elements\nholorun elements --json | jq '.elements[] | select(.role == \"push button\")'\n",
    options,
    cmd_elements};

static const struct atspi *spi;

/* ---- one element --------------------------------------------------------------------------------- */

static const struct {
    int bit;
    const char *name;
} states[] = {{1, "active"},     {4, "checked"},    {7, "editable"}, {8, "enabled"},  {9, "expandable"},
              {10, "expanded"},  {11, "focusable"}, {12, "focused"}, {20, "pressed"}, {23, "selected"},
              {24, "sensitive"}, {30, "visible"},   {39, "default"}};

/* Returns text as valid UTF-8 of at most TEXT bytes; frees text. */
static json_t *text_of(char *text)
{
    size_t n = text ? strlen(text) : 0;
    json_t *v = json_stringn(text ? text : "", utf8_valid_prefix(text ? text : "", n < TEXT ? n : TEXT));
    g_free(text);
    return v;
}

static json_t *content_of(void *object, const char *role)
{
    void *text = strstr(role, "password") ? NULL : spi->text(object);
    int n = text ? spi->text_length(text, NULL) : 0;
    json_t *v = n > 0 ? text_of(spi->text_get(text, 0, n < TEXT ? n : TEXT, NULL)) : NULL;
    atspi_drop(text);
    return v;
}

static json_t *box_of(void *object)
{
    struct atspi_rect r;
    return atspi_extents(spi, object, &r) ? json_pack("[i, i, i, i]", r.x, r.y, r.width, r.height) : NULL;
}

/* Describes an element.  Returns NULL if it is not visible; then its descendants are not visible either. */
static json_t *describe(void *object, const char *window, int depth)
{
    void *set = spi->states(object);
    bool shows = set && spi->has_state(set, ATSPI_SHOWING);
    json_t *one = NULL, *list = json_array();
    for (size_t i = 0; shows && i < sizeof states / sizeof *states; i++)
        if (spi->has_state(set, states[i].bit))
            json_array_append_new(list, json_string(states[i].name));
    atspi_drop(set);
    if (shows) {
        json_t *role = text_of(spi->role(object, NULL));
        one = json_pack("{s:o, s:o, s:s, s:i, s:O}", "role", role, "name", text_of(spi->name(object, NULL)),
                        "window", window, "depth", depth, "states", list);
        json_t *content = content_of(object, json_string_value(role)), *box = box_of(object);
        if (content)
            json_object_set_new(one, "content", content);
        if (box)
            json_object_set_new(one, "box", box);
    }
    json_decref(list);
    return one;
}

/* ---- the tree ------------------------------------------------------------------------------------ */

struct walk {
    json_t *found;
    int64_t start;
    double seconds;
    bool cut;    /* the time limit or the maximum number of elements was reached */
    bool silent; /* a program did not answer */
};

static bool is_over(struct walk *w)
{
    w->cut |= json_array_size(w->found) >= ELEMENTS || clock_ms_since(w->start) > 1000 * w->seconds;
    return w->cut;
}

static void visit(struct walk *w, void *object, const char *window, int depth)
{
    json_t *one = depth > DEPTH || is_over(w) ? NULL : describe(object, window, depth);
    if (!one)
        return;
    json_array_append_new(w->found, one);
    if (!depth) {
        json_object_set(one, "window", json_object_get(one, "name"));
        window = json_string_value(json_object_get(one, "name"));
    }
    int n = spi->child_count(object, NULL);
    w->silent |= n < 0;
    for (int i = 0; i < n && !is_over(w); i++) {
        void *child = spi->child_at(object, i, NULL);
        if (child)
            visit(w, child, window, depth + 1);
        atspi_drop(child);
    }
}

static void visit_all(struct walk *w)
{
    void *desktop = spi->desktop(0);
    int programs = desktop ? spi->child_count(desktop, NULL) : 0;
    for (int i = 0; i < programs && !is_over(w); i++) {
        void *program = spi->child_at(desktop, i, NULL);
        int windows = program ? spi->child_count(program, NULL) : -1;
        w->silent |= windows < 0;
        for (int k = 0; k < windows && !is_over(w); k++) {
            void *window = spi->child_at(program, k, NULL);
            if (window)
                visit(w, window, "", 0);
            atspi_drop(window);
        }
        atspi_drop(program);
    }
    atspi_drop(desktop);
}

/* ---- printing ------------------------------------------------------------------------------------ */

static void print_text(const json_t *one, const char *key, const char *before, const char *behind)
{
    const char *text = json_string_value(json_object_get(one, key));
    if (!text || !*text)
        return;
    fputs(before, stdout);
    utf8_print(stdout, text, strlen(text));
    fputs(behind, stdout);
}

static void print_element(const json_t *one)
{
    size_t i;
    json_t *state;
    printf("%*s", 2 * (int)json_integer_value(json_object_get(one, "depth")), "");
    print_text(one, "role", "", "");
    print_text(one, "name", " '", "'");
    json_array_foreach(json_object_get(one, "states"), i, state)
    {
        const char *s = json_string_value(state);
        if (strcmp(s, "enabled") != 0 && strcmp(s, "sensitive") != 0 && strcmp(s, "visible") != 0)
            printf(" %s", s);
    }
    print_text(one, "content", " \"", "\"");
    const json_t *box = json_object_get(one, "box");
    for (i = 0; box && i < 4; i++)
        printf("%s%d",
               i == 0   ? " at "
               : i == 1 ? ","
               : i == 2 ? " size "
                        : "x",
               (int)json_integer_value(json_array_get(box, i)));
    putchar('\n');
}

static void print_all(const struct walk *w, bool json)
{
    size_t i;
    json_t *one;
    if (json) {
        json_t *all = json_pack("{s:O, s:b}", "elements", w->found, "complete", !w->cut && !w->silent);
        json_print(all, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(all);
        return;
    }
    json_array_foreach(w->found, i, one) print_element(one);
    if (w->silent)
        warn("a program does not answer");
    if (w->cut)
        warn("the list is incomplete: time limit or %d elements reached", ELEMENTS);
}

int cmd_elements(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings s = {0};
    if (options_parse(&elements_command, &s, argc, argv, &e) < 0)
        return options_refuse(&elements_command, &e);
    if (s.display)
        setenv("DISPLAY", s.display, 1);
    alarm((unsigned)s.seconds + 5);
    if (!(spi = atspi_load(&e)))
        return options_failed(&e);
    /* suppresses messages of the library */
    int messages = dup(2), none = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (none >= 0)
        dup2(none, 2);
    spi->set_timeout(CALL_MS, START_MS);
    bool no_bus = spi->init() > 1;
    struct walk w = {.found = json_array(), .start = clock_ns(), .seconds = s.seconds};
    if (!no_bus)
        visit_all(&w);
    dup2(messages, 2);
    if (no_bus) {
        err_set(&e, ERR_ENV, "accessibility bus not found: start a session bus and install at-spi2-core");
        return options_failed(&e);
    }
    print_all(&w, s.json);
    fflush(stdout);
    _exit(0); /* the library's exit handlers may wait for programs that do not answer */
}
