/* lines.c - see lines.h. */
#include "atspi/lines.h"

#include "atspi/elements.h"
#include "base/err.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BYTES = 64, LEFT_OUT_BYTES = 80 };

/* ---- lines --------------------------------------------------------------------------------------------- */

/* Returns the ref at the beginning of a line, 0: none. */
static uint32_t ref_of(const char *text, size_t n)
{
    size_t digits = n > 1 && *text == 'e' ? strspn(text + 1, "0123456789") : 0;
    return digits && digits < 10 && text[1 + digits] == ' ' ? (uint32_t)strtoul(text + 1, NULL, 10) : 0;
}

void lines_split(const char *text, struct lines *out)
{
    int cap = 0;
    *out = (struct lines){0};
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, "\n"), indent = strspn(at, " ");
        if (out->n == cap) {
            cap = cap ? 2 * cap : 64;
            out->l = xrealloc(out->l, (unsigned long)cap, sizeof *out->l);
        }
        if (indent < n) {
            const char *begin = at + indent;
            out->l[out->n++] = (struct line){
                .text = begin, .n = n - indent, .indent = (int)indent, .ref = ref_of(begin, n - indent)};
        }
        at += n + (at[n] != 0);
    }
}

void lines_free(struct lines *l)
{
    free(l->l);
    *l = (struct lines){0};
}

static void put(const struct line *l, struct buf *out)
{
    buf_printf(out, "%*s%.*s\n", l->indent, "", (int)l->n, l->text);
}

static bool begins(const struct line *l, const char *word)
{
    size_t n = strlen(word);
    return l->n > n && !strncmp(l->text, word, n) && l->text[n] == ' ';
}

/* Returns the word for the role: the first word, or the one behind the ref. */
static const char *role_of(const struct line *l)
{
    return l->ref ? strchr(l->text, ' ') + 1 : l->text; /* a ref ends with a space */
}

/* ---- limit --------------------------------------------------------------------------------------------- */

/* Returns how early a line is left out: 2: a text, 1: one of many, 0: last. */
static int worth(const struct line *l)
{
    static const char *const many[] = {"row ", "cell ", "item ", "link ", "icon ", NULL};
    if (!l->ref)
        return begins(l, "window") ? 0 : 2;
    const char *role = role_of(l), *end = l->text + l->n;
    if (l->n > 8 && memmem(role, (size_t)(end - role), " focused", 8))
        return 0;
    for (int i = 0; many[i]; i++)
        if (text_starts(role, many[i]))
            return 1;
    return 0;
}

void lines_within(const char *text, size_t bytes, struct buf *out)
{
    struct lines l;
    int left_out = 0;
    size_t size = strlen(text);
    lines_split(text, &l);
    for (int class = 2; class >= 0 && size > bytes; class --)
        for (int i = l.n - 1; i >= 0 && size + LEFT_OUT_BYTES > bytes; i--) {
            if (l.l[i].taken || worth(&l.l[i]) != class)
                continue;
            l.l[i].taken = true;
            size -= l.l[i].n + (size_t)l.l[i].indent + 1;
            left_out++;
        }
    for (int i = 0; i < l.n; i++)
        if (!l.l[i].taken)
            put(&l.l[i], out);
    if (left_out)
        buf_printf(out, "… %d lines left out: search them with find, or raise the limit\n", left_out);
    lines_free(&l);
}

/* ---- search -------------------------------------------------------------------------------------------- */

/* Returns whether a line contains a word behind its ref, in any case of ASCII letters. */
static bool contains(const struct line *l, const char *word, size_t n)
{
    for (size_t i = (size_t)(role_of(l) - l->text); i + n <= l->n; i++)
        if (!strncasecmp(l->text + i, word, n))
            return true;
    return false;
}

static bool has_words(const struct line *l, const char *words)
{
    for (const char *at = words; *(at += strspn(at, " \t\n"));) {
        size_t n = strcspn(at, " \t\n");
        if (!contains(l, at, n))
            return false;
        at += n;
    }
    return true;
}

static bool has_role(const struct line *l, const char *role)
{
    const char *word = element_word(role), *is = role_of(l);
    word = word ? word : role;
    size_t n = strlen(word), left = (size_t)(l->text + l->n - is);
    return left >= n && !strncasecmp(is, word, n) && (left == n || is[n] == ' ');
}

/* Marks the lines that line i is below. */
static void take_above(struct lines *l, int i)
{
    int indent = l->l[i].indent;
    for (int k = i - 1; k >= 0 && indent > 0; k--)
        if (l->l[k].indent < indent) {
            l->l[k].taken = true;
            indent = l->l[k].indent;
        }
}

int lines_find(const char *text, const char *words, const char *role, int max, struct buf *out)
{
    struct lines l;
    int found = 0;
    lines_split(text, &l);
    for (int i = 0; i < l.n; i++) {
        if (!has_words(&l.l[i], words ? words : "") || (role && *role && !has_role(&l.l[i], role)))
            continue;
        if (found++ >= max)
            continue;
        l.l[i].taken = true;
        take_above(&l, i);
    }
    for (int i = 0; i < l.n; i++)
        if (l.l[i].taken)
            put(&l.l[i], out);
    lines_free(&l);
    return found;
}

/* ---- difference ---------------------------------------------------------------------------------------- */

static bool same(const struct line *a, const struct line *b)
{
    return a->n == b->n && !memcmp(a->text, b->text, a->n);
}

/* Returns the line of the same ref, or without a ref the same line that is not taken yet; NULL: none. */
static struct line *partner(struct lines *of, const struct line *l)
{
    for (int i = 0; i < of->n; i++) {
        struct line *o = &of->l[i];
        if (l->ref ? o->ref == l->ref : !o->ref && !o->taken && same(o, l))
            return o;
    }
    return NULL;
}

static void put_under(const char *heading, bool *begun, const struct line *l, struct buf *out)
{
    if (!*begun)
        buf_printf(out, "%s:\n", heading);
    *begun = true;
    buf_printf(out, "  %.*s\n", (int)l->n, l->text);
}

int lines_diff(const char *before, const char *after, struct buf *out)
{
    struct lines a, b;
    bool changed = false, added = false, gone = false;
    int n = 0;
    lines_split(before, &a);
    lines_split(after, &b);
    for (int i = 0; i < b.n; i++) {
        struct line *was = partner(&a, &b.l[i]);
        if (was) {
            was->taken = b.l[i].taken = true;
            if (same(was, &b.l[i]))
                continue;
            put_under("changed", &changed, &b.l[i], out);
            n++;
        }
    }
    for (int i = 0; i < b.n; i++)
        if (!b.l[i].taken) {
            put_under("new", &added, &b.l[i], out);
            n++;
        }
    for (int i = 0; i < a.n; i++)
        if (!a.l[i].taken) {
            put_under("gone", &gone, &a.l[i], out);
            n++;
        }
    lines_free(&a);
    lines_free(&b);
    return n;
}
