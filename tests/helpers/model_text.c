/* model_text.c - gives scripts access to the tokenizer and the chat template of a model directory or GGUF
 * file: reads one JSON object per line from stdin and answers each with one on stdout
 * (tests/scripts/real_texts.py).
 *
 *   {"encode": HEX, "special": BOOL}   {"ids": [...]} of the bytes; special: recognize added tokens
 *   {"decode": [...]}                  {"hex": HEX, "ends": [...], "passed": [...]}: the bytes of ids; after
 *                                      each id, the number of bytes, and of those that a stream has output
 *   {"chat": {...}, "normalise": BOOL} {"hex": HEX, "ids": [...]}: the rendered conversation, or {"error":
 *   TEXT};
 *                                      "open": BOOL starts a reply
 */
#include "base/buf.h"
#include "base/utf8.h"
#include "text/chat_layout.h"
#include "text/conversation.h"
#include "text/tokenizer.h"

#include <glib.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 256 << 20 };

static json_t *hex_of(const char *s, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    char *hex = xmalloc(2 * n + 1, 1);
    for (size_t i = 0; i < n; i++) {
        hex[2 * i] = digits[(unsigned char)s[i] >> 4];
        hex[2 * i + 1] = digits[s[i] & 15];
    }
    json_t *v = json_stringn(hex, 2 * n);
    free(hex);
    return v;
}

/* Appends the bytes of a hexadecimal string. */
static void put_hex(struct buf *b, const char *hex)
{
    for (; g_ascii_isxdigit(hex[0]) && g_ascii_isxdigit(hex[1]); hex += 2)
        buf_putc(b, (char)(g_ascii_xdigit_value(hex[0]) << 4 | g_ascii_xdigit_value(hex[1])));
}

static json_t *list_of(const struct tokens *ids)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < ids->n; i++)
        json_array_append_new(list, json_integer(ids->ids[i]));
    return list;
}

static json_t *encode(const struct tokenizer *t, const json_t *q)
{
    struct tokens ids = {0};
    struct buf text;
    buf_init(&text, LINE_MAX_BYTES);
    put_hex(&text, json_string_value(json_object_get(q, "encode")));
    tokenizer_encode(t, text.data ? text.data : "", text.len, json_is_true(json_object_get(q, "special")),
                     &ids);
    json_t *answer = json_pack("{s:o}", "ids", list_of(&ids));
    buf_free(&text);
    tokens_free(&ids);
    return answer;
}

static json_t *decode(const struct tokenizer *t, const json_t *q)
{
    struct buf text;
    size_t i, shown = 0;
    json_t *id, *ends = json_array(), *passed = json_array();
    buf_init(&text, LINE_MAX_BYTES);
    json_array_foreach(json_object_get(q, "decode"), i, id)
    {
        size_t n;
        const char *bytes = tokenizer_bytes(t, (int32_t)json_integer_value(id), &n);
        buf_put(&text, bytes, n);
        shown += utf8_complete(text.data + shown, text.len - shown);
        json_array_append_new(ends, json_integer((json_int_t)text.len));
        json_array_append_new(passed, json_integer((json_int_t)shown));
    }
    json_t *answer =
        json_pack("{s:o, s:o, s:o}", "hex", hex_of(text.data, text.len), "ends", ends, "passed", passed);
    buf_free(&text);
    return answer;
}

static int take_tokens(void *arg, const int32_t *ids, int64_t n, struct err *e)
{
    for (int64_t i = 0; i < n; i++)
        tokens_push(arg, ids[i]);
    return 0;
}

static int refuse_image(void *arg, const struct image *im, struct err *e)
{
    return err_set(e, ERR_USAGE, "images are not rendered here");
}

static json_t *render(const struct chat_template *c, const struct tokenizer *t, const json_t *q)
{
    struct err e = ERR_INIT;
    struct conversation v = {0};
    struct tokens ids = {0};
    struct layout l = layout_new();
    const struct layout_sink sink = {take_tokens, refuse_image, &ids};
    int rc = conversation_take(&v, json_deep_copy(json_object_get(q, "chat")), &e);
    v.chat.open_reply = json_is_true(json_object_get(q, "open"));
    v.chat.normalise = json_is_true(json_object_get(q, "normalise"));
    rc = rc || chat_template_render(c, &v.chat, &l, &e) || layout_encode(&l, t, &sink, &e);
    json_t *answer =
        rc ? json_pack("{s:s}", "error", e.text)
           : json_pack("{s:o, s:o}", "hex", hex_of(l.texts.data, l.texts.len), "ids", list_of(&ids));
    tokens_free(&ids);
    layout_free(&l);
    conversation_free(&v);
    return answer;
}

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct tokenizer *t = argc == 2 ? tokenizer_open(argv[1], &e) : NULL;
    char *line = NULL;
    size_t cap = 0;
    if (!t) {
        fprintf(stderr, "model_text: %s\n", argc == 2 ? e.text : "usage: model_text MODEL");
        return ERR_USAGE;
    }
    struct chat_template *c = chat_template_open(argv[1], t, CHAT_QWEN25_VL);
    if (chat_template_warning(c))
        fprintf(stderr, "model_text: %s\n", chat_template_warning(c));
    while (getline(&line, &cap, stdin) > 0) {
        json_t *q = json_loads(line, JSON_ALLOW_NUL, NULL);
        json_t *answer = json_object_get(q, "encode")   ? encode(t, q)
                         : json_object_get(q, "decode") ? decode(t, q)
                                                        : render(c, t, q);
        json_dumpf(answer, stdout, JSON_COMPACT);
        putchar('\n');
        fflush(stdout);
        json_decref(answer);
        json_decref(q);
    }
    chat_template_free(c);
    tokenizer_free(t);
    free(line);
    return 0;
}
