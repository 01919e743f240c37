/* dialog.c - parameters of a dialog, and its reaction to clicks and keys. */
#include "form/dialog.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parameters ------------------------------------------------------------------------------ */

static bool fail(char why[128], const char *what, const char *name)
{
    snprintf(why, 128, "%s: '%.60s'", what, name);
    return false;
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* Decodes percent-encoding; returns false if the result does not fit. */
static bool decode(const char *s, size_t n, char *out, size_t size)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        char c = s[i] == '+' ? ' ' : s[i];
        if (c == '%' && i + 2 < n && hex(s[i + 1]) >= 0 && hex(s[i + 2]) >= 0) {
            c = (char)(hex(s[i + 1]) * 16 + hex(s[i + 2]));
            i += 2;
        }
        if (k + 1 >= size || !c)
            return false;
        out[k++] = c;
    }
    out[k] = 0;
    return true;
}

static bool text_read(struct text *t, const char *s, size_t n)
{
    t->n = 0;
    while (n) {
        uint32_t c;
        int k = utf8_decode(s, n, &c);
        if (k <= 0 || t->n == TEXT_MAX)
            return false;
        t->c[t->n++] = c;
        s += k;
        n -= (size_t)k;
    }
    return true;
}

/* Splits at `|`; empty parts count only if positions matter. */
static bool list_read(struct list *l, const char *s, bool empty_too)
{
    l->n = 0;
    for (;;) {
        size_t n = strcspn(s, "|");
        if (n || empty_too) {
            if (l->n == LIST_MAX || !text_read(&l->t[l->n++], s, n))
                return false;
        }
        if (!s[n])
            return true;
        s += n + 1;
    }
}

static bool marks_read(bool on[LIST_MAX], const char *s)
{
    for (char *end;; s = end + 1) {
        while (*s == '|')
            s++;
        if (!*s)
            return true;
        long k = strtol(s, &end, 10);
        if (end == s || k < 0 || k >= LIST_MAX || (*end && *end != '|'))
            return false;
        on[k] = true;
        if (!*end)
            return true;
    }
}

static bool set(struct dialog *d, const char *name, const char *value)
{
    static const char *const kinds[] = {"buttons", "ticks", "options", "fields"};
    char *end;
    if (!strcmp(name, "seed")) {
        d->seed = (uint32_t)strtoul(value, &end, 10);
        return *value && !*end;
    }
    if (!strcmp(name, "kind")) {
        for (int k = 0; k < 4; k++)
            if (!strcmp(value, kinds[k])) {
                d->kind = (enum dialog_kind)k;
                return true;
            }
        return false;
    }
    if (!strcmp(name, "title"))
        return text_read(&d->title, value, strlen(value));
    if (!strcmp(name, "text"))
        return text_read(&d->sentence, value, strlen(value));
    if (!strcmp(name, "labels"))
        return list_read(&d->labels, value, false);
    if (!strcmp(name, "buttons"))
        return list_read(&d->buttons, value, false);
    if (!strcmp(name, "values"))
        return list_read(&d->values, value, true);
    return !strcmp(name, "on") && marks_read(d->on, value);
}

bool dialog_read(struct dialog *d, const char *query, char why[128])
{
    memset(d, 0, sizeof *d);
    d->seed = 1;
    d->focus = -1;
    for (const char *s = query; *s;) {
        size_t n = strcspn(s, "&"), name = strcspn(s, "=&");
        char key[16], value[4096];
        if (!decode(s, name, key, sizeof key) ||
            !decode(s + name + (s[name] == '='), n - name - (s[name] == '='), value, sizeof value))
            return fail(why, "too long", s);
        if (!set(d, key, value))
            return fail(why, "not a parameter of a dialog", s);
        s += n + (s[n] == '&');
    }
    if (!d->labels.n)
        list_read(&d->labels, "Save|Discard|Cancel", false);
    return true;
}

/* ---- clicks ---------------------------------------------------------------------------------- */

static bool same(const struct text *a, const struct text *b)
{
    return a->n == b->n && !memcmp(a->c, b->c, (size_t)a->n * sizeof *a->c);
}

/* Returns the index of a checkbox by its label, as the page does: the first of two with one label. */
static int label_index(const struct dialog *d, const struct text *label)
{
    int k = 0;
    while (k < d->labels.n && !same(&d->labels.t[k], label))
        k++;
    return k < d->labels.n ? k : -1;
}

static void enter(struct dialog *d, int field)
{
    d->focus = field;
    d->anchor = 0;
    d->caret = d->values.t[field].n;
}

void dialog_down(struct dialog *d, const struct item *it)
{
    if (it && it->kind == ITEM_FIELD)
        enter(d, it->index);
    else
        d->focus = -1;
}

void dialog_click(struct dialog *d, const struct item *it)
{
    if (it->kind == ITEM_FIELD || it->names >= 0) {
        enter(d, it->kind == ITEM_FIELD ? it->index : it->names);
        return;
    }
    if (it->kind == ITEM_TEXT || it->kind == ITEM_BAND)
        return;
    if (it->kind == ITEM_BUTTON)
        d->pressed = *it->text;
    int k = label_index(d, it->text);
    if (it->kind == ITEM_TICK && k >= 0)
        d->on[k] = !d->on[k];
    if (it->kind == ITEM_OPTION && k >= 0) {
        memset(d->on, 0, sizeof d->on);
        d->on[k] = true;
    }
    d->focus = -1;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static void cut(struct dialog *d, int from, int to)
{
    struct text *t = &d->values.t[d->focus];
    memmove(t->c + from, t->c + to, (size_t)(t->n - to) * sizeof *t->c);
    t->n -= to - from;
    d->caret = d->anchor = from;
}

void dialog_edit(struct dialog *d, enum edit how, bool select)
{
    if (d->focus < 0)
        return;
    int n = d->values.t[d->focus].n;
    int from = smaller(d->caret, d->anchor), to = d->caret + d->anchor - from;
    bool some = from < to;
    switch (how) {
    case EDIT_BACKSPACE:
        cut(d, some || !from ? from : from - 1, to);
        return;
    case EDIT_DELETE:
        cut(d, from, some || to == n ? to : to + 1);
        return;
    case EDIT_ALL:
        d->anchor = 0;
        d->caret = n;
        return;
    case EDIT_LEFT:
        d->caret = some && !select ? from : d->caret > 0 ? d->caret - 1 : 0;
        break;
    case EDIT_RIGHT:
        d->caret = some && !select ? to : d->caret < n ? d->caret + 1 : n;
        break;
    case EDIT_HOME:
        d->caret = 0;
        break;
    case EDIT_END:
        d->caret = n;
        break;
    }
    if (!select)
        d->anchor = d->caret;
}

void dialog_insert(struct dialog *d, uint32_t c)
{
    if (d->focus < 0)
        return;
    int from = smaller(d->caret, d->anchor);
    cut(d, from, d->caret + d->anchor - from);
    struct text *t = &d->values.t[d->focus];
    if (t->n == TEXT_MAX)
        return;
    memmove(t->c + from + 1, t->c + from, (size_t)(t->n - from) * sizeof *t->c);
    t->c[from] = c;
    t->n++;
    d->caret = d->anchor = from + 1;
}

void dialog_tab(struct dialog *d, bool back)
{
    int fields = d->kind == DIALOG_FIELDS ? d->labels.n : 0;
    int next = d->focus < 0 ? (back ? fields - 1 : 0) : d->focus + (back ? -1 : 1);
    if (next >= 0 && next < fields)
        enter(d, next);
    else
        d->focus = -1;
}

/* ---- title ----------------------------------------------------------------------------------- */

static void put(char title[TITLE_MAX], size_t *n, const struct text *t)
{
    for (int i = 0; i < t->n && *n + 8 < TITLE_MAX; i++)
        *n += (size_t)utf8_encode(t->c[i], title + *n);
}

static void put_word(char title[TITLE_MAX], size_t *n, const char *word)
{
    size_t len = strlen(word);
    if (*n + len + 8 < TITLE_MAX) {
        memcpy(title + *n, word, len);
        *n += len;
    }
}

void dialog_title(const struct dialog *d, char title[TITLE_MAX])
{
    size_t n = 0;
    put_word(title, &n, "DIALOG pressed=");
    put(title, &n, &d->pressed);
    if (d->kind == DIALOG_TICKS || d->kind == DIALOG_OPTIONS) {
        put_word(title, &n, d->kind == DIALOG_TICKS ? ";ticked=" : ";chosen=");
        bool some = false;
        for (int k = 0; k < d->labels.n; k++) {
            if (!d->on[k])
                continue;
            put_word(title, &n, some ? "," : "");
            put(title, &n, &d->labels.t[k]);
            some = true;
        }
    }
    for (int k = 0; d->kind == DIALOG_FIELDS && k < d->labels.n; k++) {
        put_word(title, &n, ";");
        put(title, &n, &d->labels.t[k]);
        put_word(title, &n, "=");
        put(title, &n, &d->values.t[k]);
    }
    title[n] = 0;
}
