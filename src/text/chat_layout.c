/* chat_layout.c - builds, trims and encodes a rendered chat template (chat_layout.h). */
#include "text/chat_layout.h"

#include "base/utf8.h"
#include "text/tokenizer.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 64 << 20 };

bool layout_is_chatml(const struct tokenizer *t)
{
    return tokenizer_is_special(t, tokenizer_find(t, "<|im_start|>")) &&
           tokenizer_is_special(t, tokenizer_find(t, "<|im_end|>"));
}

struct layout layout_new(void)
{
    struct layout l = {0};
    buf_init(&l.texts, TEXT_MAX);
    return l;
}

void layout_free(struct layout *l)
{
    buf_free(&l->texts);
    free(l->segments);
}

/* ---- segments -------------------------------------------------------------------------------- */

static void add_segment(struct layout *l, const char *text, size_t len, bool special, const struct image *im)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 8;
        l->segments = xrealloc(l->segments, (unsigned long)l->cap, sizeof *l->segments);
    }
    l->segments[l->n++] = (struct layout_segment){l->texts.len, len, special, im};
    buf_put(&l->texts, text, len);
}

void layout_template_part(struct layout *l, const char *text, size_t len)
{
    if (len)
        add_segment(l, text, len, true, NULL);
}

void layout_template(struct layout *l, const char *text)
{
    layout_template_part(l, text, strlen(text));
}

void layout_text(struct layout *l, const char *text, size_t len)
{
    add_segment(l, text, len, false, NULL);
}

void layout_image(struct layout *l, const struct image *im)
{
    add_segment(l, "", 0, false, im);
}

void layout_images_first(struct layout *l, const struct chat_part *parts, int n)
{
    int images = 0, k = 0;
    char label[48];
    for (int i = 0; i < n; i++)
        images += parts[i].image != NULL;
    for (int i = 0; i < n; i++) {
        if (!parts[i].image)
            continue;
        k++;
        snprintf(label, sizeof label, "%s<image %d>", k > 1 ? " " : "", k);
        if (images > 1)
            layout_text(l, label, strlen(label));
        layout_image(l, parts[i].image);
    }
    if (images)
        layout_template(l, "\n");
}

/* Returns the length of a template marker at s[n]; 0: none. In a reply it can only be plain text. */
static size_t marker_at(const char *s, size_t n)
{
    static const char *const marks[] = {"<s>",    "</s>",    "<image>", "<img>",       "</img>",   "<unk>",
                                        "[INST]", "[/INST]", "[IMG]",   "[IMG_BREAK]", "[IMG_END]"};
    size_t k = 0;
    if (n > 9 && !memcmp(s, "<SPECIAL_", 9)) { /* <SPECIAL_12> */
        for (k = 9; k < n && s[k] >= '0' && s[k] <= '9';)
            k++;
        return k > 9 && k < n && s[k] == '>' ? k + 1 : 0;
    }
    if (n > 2 && !memcmp(s, "<|", 2)) { /* <|im_end|> */
        for (k = 2; k < n && (g_ascii_isalnum(s[k]) || s[k] == '_');)
            k++;
        return k > 2 && k + 1 < n && s[k] == '|' && s[k + 1] == '>' ? k + 2 : 0;
    }
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (n >= strlen(marks[i]) && !memcmp(s, marks[i], strlen(marks[i])))
            return strlen(marks[i]);
    return 0;
}

void layout_reply(struct layout *l, const char *text, size_t len)
{
    size_t from = 0, at = 0;
    while (at < len) {
        size_t mark = marker_at(text + at, len - at);
        if (mark) {
            layout_template_part(l, text + from, at - from);
            layout_text(l, text + at, mark);
            from = at + mark;
        }
        at += mark ? mark : 1;
    }
    layout_template_part(l, text + from, len - from);
}

/* ---- trimming -------------------------------------------------------------------------------- */

static size_t leading_space(const char *s, size_t n)
{
    size_t at = 0;
    uint32_t c;
    for (int len; at < n && (len = utf8_decode(s + at, n - at, &c)) > 0 && utf8_is_space(c);)
        at += (size_t)len;
    return at;
}

static size_t trailing_space(const char *s, size_t n)
{
    size_t end = n;
    while (end) {
        size_t at = end - 1;
        uint32_t c;
        while (at && end - at < 4 && ((unsigned char)s[at] & 0xc0) == 0x80)
            at--;
        if (utf8_decode(s + at, end - at, &c) != (int)(end - at) || !utf8_is_space(c))
            break;
        end = at;
    }
    return n - end;
}

bool layout_trim(struct layout *l, int from, unsigned sides)
{
    bool any = false;
    for (int i = from; i < l->n && !any; i++) {
        struct layout_segment *p = &l->segments[i];
        size_t space = sides & LAYOUT_TRIM_BEGIN ? leading_space(l->texts.data + p->at, p->len) : 0;
        p->at += space;
        p->len -= space;
        any = p->len || p->image;
    }
    for (int i = l->n - 1; i >= from && any && sides & LAYOUT_TRIM_END; i--) {
        struct layout_segment *p = &l->segments[i];
        p->len -= trailing_space(l->texts.data + p->at, p->len);
        if (p->len || p->image)
            break;
    }
    return any;
}

/* ---- encoding ------------------------------------------------------------------------------------------ */

/* Encodes segments [from, to), which are texts. Returns -1 with e. */
static int encode_texts(const struct layout *l, int from, int to, const struct tokenizer *t,
                        const struct layout_sink *sink, struct err *e)
{
    autofree struct text_part *parts = xcalloc((unsigned long)(to - from) + 1, sizeof *parts);
    struct tokens ids = {0};
    for (int i = from; i < to; i++)
        parts[i - from] =
            (struct text_part){l->texts.data + l->segments[i].at, l->segments[i].len, l->segments[i].special};
    tokenizer_encode_parts(t, parts, to - from, &ids);
    int rc = sink->tokens(sink->arg, ids.ids, ids.n, e);
    tokens_free(&ids);
    return rc;
}

int layout_encode_part(const struct layout *l, int from, int to, const struct tokenizer *t,
                       const struct layout_sink *sink, struct err *e)
{
    if (l->texts.full)
        return err_set(e, ERR_USAGE, "the conversation has more than %d bytes of text", TEXT_MAX);
    for (int i = from; i <= to; i++) {
        const struct image *im = i < to ? l->segments[i].image : NULL;
        if (i < to && !im)
            continue;
        if (encode_texts(l, from, i, t, sink, e) || (im && sink->image(sink->arg, im, e)))
            return -1;
        from = i + 1;
    }
    return 0;
}

int layout_encode(const struct layout *l, const struct tokenizer *t, const struct layout_sink *to,
                  struct err *e)
{
    return layout_encode_part(l, 0, l->n, t, to, e);
}

int layout_split(struct layout *l, int segment, size_t at)
{
    struct layout_segment *s = &l->segments[segment];
    struct layout_segment rest = {s->at + at, s->len - at, s->special, s->image};
    if (!at || at == s->len)
        return at ? segment + 1 : segment;
    s->len = at;
    add_segment(l, "", 0, false, NULL);
    memmove(l->segments + segment + 2, l->segments + segment + 1,
            (size_t)(l->n - segment - 2) * sizeof *l->segments);
    l->segments[segment + 1] = rest;
    return segment + 1;
}

bool layout_opens_thought(const struct layout *l)
{
    const struct layout_segment *s = l->n ? &l->segments[l->n - 1] : NULL;
    if (!s || !s->special || s->image)
        return false;
    const char *text = l->texts.data + s->at, *open = NULL, *at = text;
    while ((at = memmem(at, s->len - (size_t)(at - text), "<think>", 7)))
        open = at++;
    return open && !memmem(open, s->len - (size_t)(open - text), "</think>", 8);
}
