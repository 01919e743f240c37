/* text.c - the compact text of a snapshot: a line for each element that can be used or names something.
 *
 *     window "Passenger" 401x240
 *       e4 field "Name" focused
 *       e3 list "City" = "Rome"
 *       e6 button "OK" off
 *
 * Groups without a name are left out, and so are labels that name the field beside them. Text that cannot be
 * acted on has no number. Elements of a doubtful place are marked. */
#include "atspi/elements.h"
#include "atspi/roles.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_SHOWN = 80, VALUE_SHOWN = 80, DEPTH_MAX = 64, ROWS_SHOWN = 20 };

/* clang-format off */
static const struct word { /* roles that can be acted on */
    const char *role, *word;
} words[] = {
    {"push button", "button"}, {"toggle button", "toggle"}, {"check box", "check"},
    {"radio button", "radio"}, {"switch", "switch"}, {"link", "link"}, {"entry", "field"}, {"text", "field"},
    {"password text", "password"}, {"combo box", "list"}, {"spin button", "number"}, {"slider", "slider"},
    {"menu item", "item"}, {"check menu item", "check item"}, {"radio menu item", "radio item"},
    {"menu", "menu"}, {"page tab", "tab"},
    {"list item", "row"}, {"table cell", "cell"}, {"tree item", "row"}, {"icon", "icon"},
    {"push button menu", "button"}, {"terminal", "terminal"}, {"date editor", "date"}, {"dial", "dial"},
    {"column header", "column"}, {"table column header", "column"}, {"autocomplete", "field"},
};
/* clang-format on */

const char *element_word(const char *role)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(role, words[i].role))
            return words[i].word;
    return NULL;
}

static const char *word_of(const struct element *e)
{
    const char *word = element_word(e->role);
    return !word && state_in(e->states, STATE_CLICKABLE) ? "clickable" : word;
}

/* Appends a text in quotes, cut after a number of characters. */
static void put_quoted(struct buf *out, const char *text, int most)
{
    size_t n = 0;
    uint32_t cp;
    for (int k = 0; text[n] && k < most; k++) {
        int len = utf8_decode(text + n, strlen(text + n), &cp);
        n += len > 0 ? (size_t)len : 1;
    }
    buf_putc(out, '"');
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"' || text[i] == '\\')
            buf_putc(out, '\\');
        buf_putc(out, text[i]);
    }
    buf_puts(out, text[n] ? "…\"" : "\"");
}

static void put_states(struct buf *out, const struct element *e)
{
    static const struct {
        int state;
        const char *word;
    } states[] = {{STATE_CHECKED, " checked"}, {STATE_INDETERMINATE, " partly checked"},
                  {STATE_PRESSED, " pressed"}, {STATE_SELECTED, " selected"},
                  {STATE_EXPANDED, " open"},   {STATE_FOCUSED, " focused"}};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (state_in(e->states, states[i].state))
            buf_puts(out, states[i].word);
    if (!state_in(e->states, STATE_SENSITIVE) && !state_in(e->states, STATE_ENABLED))
        buf_puts(out, " off");
    if (e->trust == PLACE_DOUBTFUL)
        buf_puts(out, " (place unsure)");
}

/* Returns whether two texts differ at most in spaces and colons at their ends. */
static bool same_words(const char *a, const char *b)
{
    a += strspn(a, " ");
    b += strspn(b, " ");
    size_t n = strlen(a), m = strlen(b);
    while (n && strchr(" :", a[n - 1]))
        n--;
    while (m && strchr(" :", b[m - 1]))
        m--;
    return n == m && !memcmp(a, b, n);
}

/* Returns whether a label names a field that has no name of its own, or repeats its parent. */
static bool is_repeated(const struct snapshot *s, const struct element *e)
{
    const char *text = *e->name ? e->name : e->value;
    const struct element *up = &s->e[e->parent];
    if (same_words(up->name, text) || same_words(up->value, text))
        return true;
    for (int i = e->parent + 1; i < s->n && s->e[i].depth > up->depth; i++)
        if (&s->e[i] != e && word_of(&s->e[i]) && (s->e[i].label == text || same_words(s->e[i].name, text)))
            return true;
    return false;
}

static void put_window(const struct element *e, struct buf *out)
{
    buf_puts(out, "window ");
    put_quoted(out, e->name, TEXT_SHOWN);
    buf_printf(out, " %dx%d%s\n", e->rect.w, e->rect.h, state_in(e->states, STATE_ACTIVE) ? " active" : "");
}

static void put_usable(const struct element *e, const char *word, bool places, struct buf *out)
{
    const char *name = *e->name ? e->name : e->label;
    buf_printf(out, "e%u %s", e->ref, word);
    if (*name) {
        buf_putc(out, ' ');
        put_quoted(out, name, TEXT_SHOWN);
    }
    if (*e->value && strcmp(e->value, name) != 0) {
        buf_puts(out, " = ");
        put_quoted(out, e->value, VALUE_SHOWN);
    }
    if (e->least < e->most)
        buf_printf(out, " (%.6g to %.6g)", e->least, e->most);
    put_states(out, e);
    if (places && e->trust != PLACE_NONE)
        buf_printf(out, " @%d,%d", e->rect.x + e->rect.w / 2, e->rect.y + e->rect.h / 2);
    buf_putc(out, '\n');
}

/* Appends the line of an element. Returns whether elements below it are indented further. */
static bool put_element(const struct snapshot *s, const struct element *e, int indent, bool places,
                        struct buf *out)
{
    static const char *const texts[] = {"label",   "static",      "paragraph",  "heading",
                                        "section", "block quote", "status bar", "progress bar",
                                        "caption", "image",       "alert",      NULL};
    const char *word = word_of(e), *text = *e->name ? e->name : e->value;
    bool is_text = text_listed(texts, e->role);
    if (word || (state_in(e->states, STATE_FOCUSED) && !is_text)) {
        buf_printf(out, "%*s", 2 * indent, "");
        put_usable(e, word ? word : e->role, places, out);
        return *e->name;
    }
    if (!text[strspn(text, " ")] || is_repeated(s, e))
        return false;
    buf_printf(out, "%*s%s ", 2 * indent, "", is_text ? "text" : e->role);
    put_quoted(out, text, TEXT_SHOWN);
    if (e->children)
        buf_printf(out, " of %d", e->children);
    buf_putc(out, '\n');
    return !is_text;
}

void elements_text(const struct snapshot *s, bool places, struct buf *out)
{
    int indent[DEPTH_MAX + 2] = {0}; /* of the children of an element at this depth */
    int rows = 0;                    /* of the list that has more than can be read */
    for (int i = 0; i < s->n; i++) {
        const struct element *e = &s->e[i];
        int depth = e->depth < DEPTH_MAX ? e->depth : DEPTH_MAX, at = depth ? indent[depth - 1] : 0;
        if (e->parent < 0) {
            put_window(e, out);
            indent[0] = 1;
            continue;
        }
        rows = e->children ? 0 : rows;
        if (s->e[e->parent].children && ++rows > ROWS_SHOWN)
            continue;
        indent[depth] = at + put_element(s, e, at, places, out);
    }
}
