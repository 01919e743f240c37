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

/* The column `tell` of kinds.h. word: the verb of the row in present or past tense, or the name of the
 * kind. */
typedef void tell_fn(const struct action *a, const char *word, bool past, struct buf *out);

static void tell_words(const struct action *a, const char *word, bool past, struct buf *out)
{
    (void)a;
    (void)past;
    buf_puts(out, word);
}

static void tell_target(const struct action *a, const char *word, bool past, struct buf *out)
{
    tell_words(a, word, past, out);
    put_target(out, a, " ");
}

static void tell_scroll(const struct action *a, const char *word, bool past, struct buf *out)
{
    tell_words(a, word, past, out);
    put_target(out, a, " in ");
}

/* Appends a click; a plain click on a named element is described as pressing it. */
static void tell_click(const struct action *a, const char *word, bool past, struct buf *out)
{
    static const char *const times[] = {"", "", "double-", "triple-"};
    const char *button = a->button == 3 ? "right-" : a->button == 2 ? "middle-" : "";
    bool plain = a->button == 1 && a->count <= 1 && !a->nhold && *a->element;
    if (plain && past)
        buf_puts(out, "pressed");
    else
        buf_printf(out, "%s%s%s%s", button, times[a->count & 3], word, past ? "ed" : "");
    put_target(out, a, " ");
}

static void tell_keys(const struct action *a, const char *word, bool past, struct buf *out)
{
    tell_words(a, word, past, out);
    action_put_keys(out, a->keys, a->nkeys, "+");
    if (action_takes(a->kind, P_REPEAT) && a->count > 1)
        buf_printf(out, " %d times", a->count);
}

static void tell_type(const struct action *a, const char *word, bool past, struct buf *out)
{
    if (a->secret)
        buf_printf(out, "%sa secret", word);
    else
        put_name(out, word, a->text ? a->text : "");
    put_target(out, a, " into ");
    if (a->press_enter)
        buf_puts(out, past ? " and pressed Enter" : " and press Enter");
}

static void tell_address(const struct action *a, const char *word, bool past, struct buf *out)
{
    (void)past;
    put_name(out, word, a->text ? a->text : "");
}

void action_tell(const struct action *a, bool past, struct buf *out)
{
#define ACTION(kind, execute, describe, tell, ...) [kind] = tell,
    static tell_fn *const tellers[ACT_COUNT] = {
#include "actions/kinds.h"
    };
    const char *word = registry_entry(a->kind)->words[past];
    tellers[a->kind](a, word ? word : action_kind_name(a->kind), past, out);
}
