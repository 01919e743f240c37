/* tokenizer_gguf.c - converts the tokenizer in a GGUF file's keys to the text of a tokenizer.json, which
 * is then parsed like a published one.
 *
 *     tokenizer.ggml.model       "gpt2": byte-level BPE
 *     tokenizer.ggml.pre         name of the normalization and split pattern, which the file does not contain
 *     tokenizer.ggml.tokens      by id, spelled in the byte alphabet, added ones literally
 *     tokenizer.ggml.token_type  1 plain, 3 and 4 added, 5 not a token but a row of the embedding
 *     tokenizer.ggml.merges      "left right" */
#include "text/tokenizer_impl.h"

#include "base/gguf.h"

#include <stdlib.h>
#include <string.h>

enum { PLAIN = 1, CONTROL = 3, USER = 4, UNUSED = 5, TEXT_MAX = 128 << 20 };

static const struct {
    const char *pre, *normalizer, *pattern;
} known[] = {
    {"qwen35", "{\"type\":\"NFC\"}",
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| "
     "?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
    {"qwen2", "{\"type\":\"NFC\"}",
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
     "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
};

static void put_split(struct buf *b, int kind)
{
    buf_printf(b,
               "{\"normalizer\":%s,\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
               "\"Split\",\"pattern\":{\"Regex\":",
               known[kind].normalizer);
    buf_put_json(b, known[kind].pattern, strlen(known[kind].pattern));
    buf_puts(
        b, "},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
           "\"trim_offsets\":false,\"use_regex\":false}]},\"added_tokens\":[");
}

/* Writes the added tokens, or the others; each call passes over all tokens of the file. */
static int put_tokens(struct buf *b, const struct gguf_file *f, bool added, struct err *e)
{
    struct gguf_value words, types;
    const char *word;
    size_t len;
    double type;
    bool some = false;
    gguf_value(f, "tokenizer.ggml.tokens", &words);
    gguf_value(f, "tokenizer.ggml.token_type", &types);
    for (int id = 0; gguf_next_text(&words, &word, &len) && gguf_next_number(&types, &type); id++) {
        bool extra = type == CONTROL || type == USER;
        if (!extra && type != PLAIN && type != UNUSED)
            return err_set(e, ERR_MODEL, "token %d has type %g, which is unknown", id, type);
        if (type == UNUSED || extra != added)
            continue;
        buf_puts(b, some ? "," : "");
        if (added)
            buf_printf(b, "{\"id\":%d,\"content\":", id);
        buf_put_json(b, word, len);
        if (added)
            buf_putc(b, '}');
        else
            buf_printf(b, ":%d", id);
        some = true;
    }
    return 0;
}

static void put_merges(struct buf *b, const struct gguf_file *f)
{
    struct gguf_value v;
    const char *text;
    size_t len;
    bool some = false;
    gguf_value(f, "tokenizer.ggml.merges", &v);
    for (; gguf_next_text(&v, &text, &len); some = true) {
        buf_puts(b, some ? "," : "");
        buf_put_json(b, text, len);
    }
}

/* Returns the row of `known`, or -1 after reporting an error. */
static int find_kind(const struct gguf_file *f, struct err *e)
{
    autofree char *model = gguf_text_of(f, "tokenizer.ggml.model"),
                  *pre = gguf_text_of(f, "tokenizer.ggml.pre");
    int kind = -1;
    for (int i = 0; i < (int)(sizeof known / sizeof *known); i++)
        if (model && pre && !strcmp(model, "gpt2") && !strcmp(pre, known[i].pre))
            kind = i;
    if (kind < 0)
        err_set(e, ERR_MODEL,
                "its tokenizer is '%s' with splits of '%s'; supported are gpt2 with qwen35 or qwen2",
                model ? model : "", pre ? pre : "");
    return kind;
}

static bool has_list(const struct gguf_file *f, const char *key, bool text, uint64_t *n)
{
    struct gguf_value v;
    bool there = gguf_value(f, key, &v) && v.list && (v.kind == GGUF_TEXT) == text;
    *n = there ? v.count : 0;
    return there;
}

static int put_all(struct buf *b, const struct gguf_file *f, struct err *e)
{
    uint64_t words, types, merges;
    int kind = find_kind(f, e);
    if (kind < 0)
        return -1;
    if (!has_list(f, "tokenizer.ggml.tokens", true, &words) ||
        !has_list(f, "tokenizer.ggml.token_type", false, &types) || words != types ||
        !has_list(f, "tokenizer.ggml.merges", true, &merges))
        return err_set(e, ERR_MODEL,
                       "the lists of tokens, token types and merges are missing or have "
                       "different lengths");
    put_split(b, kind);
    if (put_tokens(b, f, true, e))
        return -1;
    buf_puts(b, "],\"model\":{\"type\":\"BPE\",\"vocab\":{");
    if (put_tokens(b, f, false, e))
        return -1;
    buf_puts(b, "},\"merges\":[");
    put_merges(b, f);
    buf_puts(b, "]}}");
    return b->full ? err_set(e, ERR_MODEL, "its tokens are longer than %d bytes in total", TEXT_MAX) : 0;
}

struct tokenizer *tokenizer_of_gguf(const struct gguf_file *f, struct err *e)
{
    autobuf b = buf_of(TEXT_MAX);
    struct tokenizer *t = put_all(&b, f, e) ? NULL : tokenizer_parse(b.data, b.len, e);
    if (!t)
        err_prefix(e, "%s: as tokenizer.json", gguf_name(f));
    return t;
}
