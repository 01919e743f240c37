/* chat_layout.c - see chat_layout.h. */
#include "text/chat_layout.h"

#include "base/utf8.h"
#include "text/chat_qwen.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 64 << 20 };

bool layout_is_chatml(const struct tokenizer *t)
{
    return tokenizer_is_special(t, tokenizer_find(t, "<|im_start|>")) &&
           tokenizer_is_special(t, tokenizer_find(t, "<|im_end|>"));
}

struct layout_marks layout_marks_vl(const struct template_traits *h)
{
    static const char
        before[] = "These tools can be called: <AVAILABLE_TOOLS>[",
        after[] = "]</AVAILABLE_TOOLS>\n\nA call of one or more of them is written as "
                  "<TOOLCALL>[{\"name\": \"the name\", \"arguments\": {\"an argument\": \"its "
                  "value\"}}]</TOOLCALL>. What they return follows as <TOOL_RESPONSE>[...]</TOOL_RESPONSE>.";
    return (struct layout_marks){
        .system = h->start ? "<s><SPECIAL_10>System\n" : "<SPECIAL_10>System\n",
        .user = "<SPECIAL_11>User\n",
        .reply = "<SPECIAL_11>Assistant\n",
        .close = "\n",
        .newline = "\n",
        .end = "<SPECIAL_12>",
        .tools = {h->tools[0] ? h->tools[0] : before, h->tools[0] ? h->tools[1] : after},
        .think = {"<think></think>", "<think>\n"},
        .trim = h->trim};
}

/* The published ChatML template has no <s>, and does not trim. */
struct layout_marks layout_marks_of(const struct tokenizer *t, const struct template_traits *h)
{
    static const struct layout_marks chatml = {.system = "<|im_start|>system\n",
                                               .user = "<|im_start|>user\n",
                                               .reply = "<|im_start|>assistant\n",
                                               .close = "<|im_end|>\n",
                                               .newline = "",
                                               .end = "<|im_end|>",
                                               .think = {"<think></think>", "<think>\n"}};
    if (qwen_is_family(t))
        return qwen_marks(h);
    return layout_is_chatml(t) ? chatml : layout_marks_vl(h);
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

void layout_template(struct layout *l, const char *text)
{
    add_segment(l, text, strlen(text), true, NULL);
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

/* Length of a marker of the template at s, 0: none.  In a reply it can only be plain text. */
static size_t marker_at(const char *s)
{
    static const char *const marks[] = {"<s>",    "</s>",    "<image>", "<img>",       "</img>",   "<unk>",
                                        "[INST]", "[/INST]", "[IMG]",   "[IMG_BREAK]", "[IMG_END]"};
    if (!strncmp(s, "<SPECIAL_", 9)) { /* <SPECIAL_12> */
        size_t n = strspn(s + 9, "0123456789");
        return n && s[9 + n] == '>' ? n + 10 : 0;
    }
    if (!strncmp(s, "<|", 2)) { /* <|im_end|> */
        size_t n = strspn(s + 2, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
        return n && !strncmp(s + 2 + n, "|>", 2) ? n + 4 : 0;
    }
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (!strncmp(s, marks[i], strlen(marks[i])))
            return strlen(marks[i]);
    return 0;
}

void layout_reply(struct layout *l, const char *text)
{
    const char *from = text, *p = text;
    while (*p) {
        size_t mark = marker_at(p);
        if (mark) {
            add_segment(l, from, (size_t)(p - from), true, NULL);
            layout_text(l, p, mark);
            from = p + mark;
        }
        p += mark ? mark : 1;
    }
    add_segment(l, from, (size_t)(p - from), true, NULL);
}

/* ---- trimming -------------------------------------------------------------------------------- */

/* White space as Python's strip() has it. */
static bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
           c == 0x3000;
}

static size_t leading_space(const char *s, size_t n)
{
    size_t at = 0;
    uint32_t c;
    for (int len; at < n && (len = utf8_decode(s + at, n - at, &c)) > 0 && is_space(c);)
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
        if (utf8_decode(s + at, end - at, &c) != (int)(end - at) || !is_space(c))
            break;
        end = at;
    }
    return n - end;
}

bool layout_trim(struct layout *l, int from)
{
    bool any = false;
    for (int i = from; i < l->n && !any; i++) {
        struct layout_segment *p = &l->segments[i];
        size_t space = leading_space(l->texts.data + p->at, p->len);
        p->at += space;
        p->len -= space;
        any = p->len || p->image;
    }
    for (int i = l->n - 1; i >= from && any; i--) {
        struct layout_segment *p = &l->segments[i];
        p->len -= trailing_space(l->texts.data + p->at, p->len);
        if (p->len || p->image)
            break;
    }
    return any;
}

/* ---- encoding ------------------------------------------------------------------------------------------ */

/* Segments [from, to) are texts. */
static int encode_texts(const struct layout *l, int from, int to, const struct tokenizer *t,
                        const struct layout_sink *sink, struct err *e)
{
    struct text_part *parts = xcalloc((unsigned long)(to - from) + 1, sizeof *parts);
    struct tokens ids = {0};
    for (int i = from; i < to; i++)
        parts[i - from] =
            (struct text_part){l->texts.data + l->segments[i].at, l->segments[i].len, l->segments[i].special};
    tokenizer_encode_parts(t, parts, to - from, &ids);
    int rc = sink->tokens(sink->arg, ids.ids, ids.n, e);
    tokens_free(&ids);
    free(parts);
    return rc;
}

int layout_encode(const struct layout *l, const struct tokenizer *t, const struct layout_sink *to,
                  struct err *e)
{
    if (l->texts.full)
        return err_set(e, ERR_USAGE, "the conversation has more than %d bytes of text", TEXT_MAX);
    for (int i = 0, from = 0; i <= l->n; i++) {
        if (i < l->n && !l->segments[i].image)
            continue;
        if (encode_texts(l, from, i, t, to, e) || (i < l->n && to->image(to->arg, l->segments[i].image, e)))
            return -1;
        from = i + 1;
    }
    return 0;
}

char *chat_message_text(const struct chat_message *m)
{
    struct buf text;
    buf_init(&text, (size_t)64 << 20);
    for (int i = 0; i < m->n; i++)
        if (m->parts[i].text)
            buf_puts(&text, m->parts[i].text);
    char *s = buf_take(&text);
    buf_free(&text);
    return s;
}
