/* print.c - plain steps as sentences. */
#include "plain/private.h"

#include <string.h>

void plain_quote(const char *text, struct buf *out)
{
    buf_putc(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            buf_putc(out, '\\');
        buf_putc(out, *text);
    }
    buf_putc(out, '"');
}

/* Appends a name, and its role if it was given. */
static void put_name(const char *name, const char *role, struct buf *out)
{
    buf_putc(out, ' ');
    plain_quote(name, out);
    if (role)
        buf_printf(out, " %s", role);
}

static void put_row(const struct plain_step *s, struct buf *out)
{
    if (s->row) {
        buf_puts(out, " in the row of");
        put_name(s->row, NULL, out);
    }
}

static const char *const states[PLAIN_STATES] = {
    [PLAIN_SHOWN] = "is shown",       [PLAIN_GONE] = "is gone",       [PLAIN_TICKED] = "is ticked",
    [PLAIN_UNTICKED] = "is unticked", [PLAIN_ENABLED] = "is enabled", [PLAIN_DISABLED] = "is disabled",
    [PLAIN_EQUALS] = "equals ",       [PLAIN_CONTAINS] = "contains ",
};

static void print_state(const struct plain_step *s, struct buf *out)
{
    put_name(s->what, s->role, out);
    put_row(s, out);
    buf_printf(out, " %s", states[s->state]);
    if (s->value)
        plain_quote(s->value, out);
}

static void print_menu(const struct plain_step *s, struct buf *out)
{
    buf_puts(out, "open menu");
    for (int i = 0; i < s->levels; i++) {
        buf_puts(out, i ? " >" : "");
        put_name(s->path[i], NULL, out);
    }
}

/* Returns whether several words could begin or end the name of a list: such a step keeps its words. */
static bool has_choices(const struct plain_step *s)
{
    struct plain_step second = {0};
    bool yes = s->verb == PLAIN_CHOOSE && plain_choice(s, 1, &second);
    plain_step_free(&second);
    return yes;
}

void plain_print(const struct plain_step *s, struct buf *out)
{
    static const char *const verbs[PLAIN_VERBS] = {
        [PLAIN_PRESS] = "press",
        [PLAIN_DOUBLE_CLICK] = "double-click",
        [PLAIN_RIGHT_CLICK] = "right-click",
        [PLAIN_TICK] = "tick",
        [PLAIN_UNTICK] = "untick",
        [PLAIN_CHOOSE] = "choose",
        [PLAIN_TAB] = "go to tab",
        [PLAIN_SCROLL] = "scroll to",
    };
    switch (s->verb) {
    case PLAIN_ENTER:
        buf_puts(out, "enter ");
        plain_quote(s->value, out);
        if (s->what) {
            buf_puts(out, " into");
            put_name(s->what, s->role, out);
            put_row(s, out);
        }
        break;
    case PLAIN_MENU:
        print_menu(s, out);
        break;
    case PLAIN_CLOSE:
        buf_puts(out, "close the window");
        break;
    case PLAIN_KEYS:
        buf_printf(out, "press key %s", s->what);
        if (s->times > 1)
            buf_printf(out, " %d times", s->times);
        break;
    case PLAIN_WAIT:
        buf_puts(out, "wait until");
        print_state(s, out);
        break;
    case PLAIN_CHECK:
        buf_puts(out, "check that");
        print_state(s, out);
        break;
    default:
        buf_puts(out, verbs[s->verb]);
        if (s->maybe_key || has_choices(s))
            buf_printf(out, " %s", s->maybe_key ? s->what : s->whole);
        else
            put_name(s->what, s->role, out);
        if (s->in && !has_choices(s)) {
            buf_puts(out, " in");
            put_name(s->in, NULL, out);
        }
        put_row(s, out);
    }
}

/* ---- the past tense ------------------------------------------------------------------------------------ */

static void print_menu_done(const struct plain_step *s, struct buf *out)
{
    buf_puts(out, "opened menu '");
    for (int i = 0; i < s->levels; i++)
        buf_printf(out, "%s%s", i ? " > " : "", s->path[i]);
    buf_putc(out, '\'');
}

static void print_done(const struct plain_step *s, struct buf *out)
{
    static const char *const verbs[PLAIN_VERBS] = {
        [PLAIN_PRESS] = "pressed",
        [PLAIN_DOUBLE_CLICK] = "double-clicked",
        [PLAIN_RIGHT_CLICK] = "right-clicked",
        [PLAIN_TICK] = "ticked",
        [PLAIN_UNTICK] = "unticked",
        [PLAIN_CHOOSE] = "chose",
        [PLAIN_TAB] = "went to tab",
        [PLAIN_SCROLL] = "scrolled to",
    };
    switch (s->verb) {
    case PLAIN_ENTER:
        buf_printf(out, "entered '%s'", s->value);
        if (s->what)
            buf_printf(out, " into '%s'", s->what);
        break;
    case PLAIN_MENU:
        print_menu_done(s, out);
        break;
    case PLAIN_CLOSE:
        buf_puts(out, "closed the window");
        break;
    case PLAIN_KEYS:
        buf_printf(out, "pressed %s", s->what);
        if (s->times > 1)
            buf_printf(out, " %d times", s->times);
        break;
    case PLAIN_WAIT:
    case PLAIN_CHECK:
        buf_printf(out, "'%s' %s", s->what, states[s->state]);
        if (s->value)
            buf_printf(out, "'%s'", s->value);
        break;
    default:
        buf_printf(out, "%s '%s'", verbs[s->verb], s->what);
        if (s->in)
            buf_printf(out, " in '%s'", s->in);
    }
}

void plain_print_done(const struct plain_step *s, struct buf *out)
{
    print_done(s, out);
    if (s->row)
        buf_printf(out, " in the row of '%s'", s->row);
}
