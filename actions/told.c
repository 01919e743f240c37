/* told.c - an action in a few words, for the last line of a run: "press 'Save'" before it, "pressed 'Save'"
 * after it.  The position is omitted if the target has a name. */
#include "actions/registry.h"

#include "base/utf8.h"

#include <string.h>

enum { SHOWN = 40 };

/* Appends a text in single quotes, truncated to SHOWN bytes, on one line. */
static void put_name(struct buf *out, const char *before, const char *s)
{
    size_t n = utf8_valid_prefix(s, strlen(s) < SHOWN ? strlen(s) : SHOWN);
    buf_printf(out, "%s'", before);
    for (size_t i = 0; i < n; i++)
        buf_putc(out, (unsigned char)s[i] < 0x20 ? ' ' : s[i]);
    buf_puts(out, s[n] ? "...'" : "'");
}

static void put_target(struct buf *out, const struct action *a, const char *before)
{
    if (*a->element)
        put_name(out, before, a->element);
    else if (a->x != ACTION_ABSENT)
        buf_printf(out, " at %d,%d", a->x, a->y);
}

/* Appends a click; a plain click on a named element is described as pressing it. */
static void tell_click(const struct action *a, bool past, struct buf *out)
{
    static const char *const times[] = {"", "", "double-", "triple-"};
    const char *button = a->button == 3 ? "right-" : a->button == 2 ? "middle-" : "";
    bool plain = a->button == 1 && a->count <= 1 && !a->nhold && *a->element;
    if (plain && past)
        buf_puts(out, "pressed");
    else
        buf_printf(out, "%s%sclick%s", button, times[a->count & 3], past ? "ed" : "");
    put_target(out, a, " ");
}

static void tell_keys(const struct action *a, bool past, struct buf *out)
{
    buf_puts(out, past ? "pressed " : "press ");
    action_put_keys(out, a->keys, a->nkeys, "+");
    if (a->count > 1)
        buf_printf(out, " %d times", a->count);
}

static void tell_type(const struct action *a, bool past, struct buf *out)
{
    if (a->secret)
        buf_puts(out, past ? "typed a secret" : "type a secret");
    else
        put_name(out, past ? "typed " : "type ", a->text ? a->text : "");
    put_target(out, a, " into ");
    if (a->press_enter)
        buf_puts(out, past ? " and pressed Enter" : " and press Enter");
}

void action_tell(const struct action *a, bool past, struct buf *out)
{
    static const char *const words[ACT_COUNT][2] = {
        [ACT_MOVE] = {"move the pointer to", "moved the pointer to"},
        [ACT_MDOWN] = {"hold a mouse button down", "held a mouse button down"},
        [ACT_MUP] = {"release a mouse button", "released a mouse button"},
        [ACT_DRAG] = {"drag", "dragged"},
        [ACT_SCROLL] = {"scroll", "scrolled"},
        [ACT_KEYDOWN] = {"hold down ", "held down "},
        [ACT_KEYUP] = {"release ", "released "},
        [ACT_HOLDTAP] = {"press ", "pressed "},
        [ACT_GOTO] = {"open ", "opened "},
        [ACT_BACK] = {"go back", "went back"},
        [ACT_FORWARD] = {"go forward", "went forward"},
        [ACT_REFRESH] = {"load the page again", "loaded the page again"},
    };
    const char *word = words[a->kind][past] ? words[a->kind][past] : action_kind_name(a->kind);
    if (a->kind == ACT_CLICK)
        tell_click(a, past, out);
    else if (a->kind == ACT_KEY)
        tell_keys(a, past, out);
    else if (a->kind == ACT_TYPE)
        tell_type(a, past, out);
    else if (a->kind == ACT_GOTO)
        put_name(out, word, a->text ? a->text : "");
    else
        buf_puts(out, word);
    if (a->kind == ACT_KEYDOWN || a->kind == ACT_KEYUP || a->kind == ACT_HOLDTAP)
        action_put_keys(out, a->keys, a->nkeys, "+");
    if (a->kind == ACT_MOVE || a->kind == ACT_DRAG)
        put_target(out, a, " ");
    if (a->kind == ACT_SCROLL)
        put_target(out, a, " in ");
}
