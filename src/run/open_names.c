/* open_names.c - asks programs for the names of elements, for the rules about actions.  See job.h. */
#include "run/job.h"

#include "atspi/elements.h"
#include "base/clock.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

enum {
    NAME_MS = 1000,
    FIRST_NAME_MS = 2500,
    ASK_AGAIN_MS = 200
}; /* limits for a program to name an element; FIRST_NAME_MS applies until the first answer */

/* Returns whether a role is that of a whole page or window. */
static bool holds_others(const char *role)
{
    static const char *const roles[] = {"document web", "document frame", "frame",    "internal frame",
                                        "panel",        "application",    "embedded", "window"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(role, roles[i]))
            return true;
    return false;
}

static bool is_browser(const char *title)
{
    static const char *const names[] = {"Firefox", "Chrom", "Edge", "Brave", "Opera", "Vivaldi", "Falkon"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(title, names[i]))
            return true;
    return false;
}

static void put_name(const struct element *e, char *out, size_t size)
{
    const char *name = *e->name ? e->name : e->label;
    snprintf(out, size, "%.200s%s", name, element_is_password(e) ? " password" : "");
    out[utf8_valid_prefix(out, strlen(out))] = 0;
}

/* Asks the program for its name of the element at a point, for rules about elements.  A browser builds its
 * tree after the first question, and reports at most the page until then.  Returns false without an
 * answer. */
static bool name_at(void *arg, int x, int y, const char *title, char *name, char *other, size_t size)
{
    struct job *j = arg;
    struct element found, hit;
    int64_t start = clock_ns();
    double ms = j->named ? NAME_MS : FIRST_NAME_MS;
    bool answered, waits = !j->browser_named && is_browser(title);
    elements_ask_at(j->elements, x, y);
    answered = elements_answer_at(j->elements, x, y, ms, &found, &hit);
    while (waits && !elements_nobody(j->elements) && (!answered || holds_others(found.role)) &&
           clock_ms_since(start) < FIRST_NAME_MS && screen_wait(j->screen, ASK_AGAIN_MS, NULL) == 0) {
        elements_ask_at(j->elements, x, y);
        answered = elements_answer_at(j->elements, x, y, NAME_MS, &found, &hit);
    }
    j->browser_named = j->browser_named || (waits && !elements_nobody(j->elements));
    if (!answered)
        return false;
    j->named = true;
    put_name(&found, name, size);
    put_name(&hit, other, size);
    return true;
}

static bool pressed(void *arg, bool enter, const char *title, char *name, size_t size)
{
    struct job *j = arg;
    struct element found;
    double ms = j->named ? NAME_MS : FIRST_NAME_MS;
    if (!elements_pressed(j->elements, enter, title, ms, &found))
        return false;
    j->named = true;
    snprintf(name, size, "%.200s", found.name);
    name[utf8_valid_prefix(name, strlen(name))] = 0;
    return true;
}

static bool field(void *arg, const char *title, struct gate_field *out)
{
    struct job *j = arg;
    struct element_field found;
    if (!elements_field(j->elements, title, j->named ? NAME_MS : FIRST_NAME_MS, &found))
        return false;
    j->named = true;
    *out = (struct gate_field){found.in_page, found.tools, found.editable, ""};
    snprintf(out->text, sizeof out->text, "%s", found.text);
    return true;
}

bool job_is_field(void *arg, const char *title)
{
    struct gate_field found;
    return field(arg, title, &found) && found.editable;
}

static int dialog(void *arg, int x, int y, const char *title, char *text, size_t size)
{
    struct job *j = arg;
    int told = elements_dialog(j->elements, x, y, title, j->named ? NAME_MS : FIRST_NAME_MS, text, size);
    j->named = j->named || told > 0;
    return told;
}

void job_name_elements(struct job *j, struct gate_options *o)
{
    o->name_at = name_at;
    o->pressed = pressed;
    o->dialog = dialog;
    o->field = field;
    o->name_arg = j;
}
