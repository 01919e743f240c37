/* t_nfc.c - tests the tokenizer of Qwen3.5 (NFC, marks in its split, added tokens of ChatML) against hashes
 * of Hugging Face tokenizers' ids for 20,000 texts and every character in tests/golden/tokenizer/nfc.json
 * (tests/reference/make_nfc.py). The vocabulary is Tekken's.
 */
#include "check.h"
#include "drawn_texts.h"
#include "tekken.h"

#include "base/buf.h"
#include "text/tokenizer.h"

static struct tokenizer *tk;
static json_t *golden;

/* Replaces each `from`; takes over the text. */
static char *replace(char *text, size_t *len, const char *from, const char *to)
{
    struct buf out;
    buf_init(&out, 64 << 20);
    const char *at = text, *end = text + *len;
    int found = 0;
    for (const char *p; (p = memmem(at, (size_t)(end - at), from, strlen(from))); at = p + strlen(from)) {
        buf_put(&out, at, (size_t)(p - at));
        buf_puts(&out, to);
        found++;
    }
    if (!found)
        fail_msg("no '%s' in the file", from);
    buf_put(&out, at, (size_t)(end - at));
    free(text);
    *len = out.len;
    char *result = buf_take(&out);
    buf_free(&out);
    return result;
}

static char *rename_token(char *json, size_t *len, int id, const char *name)
{
    char from[32], to[64];
    snprintf(from, sizeof from, "\"<SPECIAL_%d>\"", id);
    snprintf(to, sizeof to, "\"%s\"", name);
    return replace(json, len, from, to);
}

/* Replaces Tekken's split, which ends with this. */
static char *replace_split(char *json, size_t *len)
{
    char *begin = strstr(json, "\"Regex\": "), *end = begin ? strchr(begin, '\n') : NULL;
    char *split = json_dumps(json_object_get(golden, "split"), JSON_ENCODE_ANY);
    assert_non_null(end);
    char *old = xasprintf("%.*s", (int)(end - begin), begin), *new = xasprintf("\"Regex\": %s", split);
    json = replace(json, len, old, new);
    free(split);
    free(old);
    free(new);
    return json;
}

static void open_all(void)
{
    if (tk)
        return;
    size_t len, i;
    json_t *name;
    struct err e = ERR_INIT;
    golden = json_load_file("tests/golden/tokenizer/nfc.json", 0, NULL);
    assert_non_null(golden);
    char *json = tekken_json(&len);
    json = replace_split(json, &len);
    json = replace(json, &len, "\"normalizer\": null", "\"normalizer\": {\"type\": \"NFC\"}");
    json = replace(json, &len, "\"ignore_merges\": true", "\"ignore_merges\": false");
    json_array_foreach(json_object_get(golden, "names"), i, name) json =
        rename_token(json, &len, (int)json_integer_value(json_array_get(name, 0)),
                     json_string_value(json_array_get(name, 1)));
    tk = tokenizer_parse(json, len, &e);
    free(json);
    if (!tk)
        fail_msg("%s", e.text);
    assert_null(tokenizer_check(tk));
}

static void note_speed(const struct drawn *d, const char *what)
{
    check_note("%zu %s, %.1f MB; encoding %.1f MB/s", d->n, what, (double)d->bytes / 2e6,
               (double)d->bytes / 1e3 / d->ms);
}

static void t_texts(void **state)
{
    open_all();
    struct drawn d = {.tk = tk, .golden = golden, .normalises = true};
    assert_int_equal(drawn_texts(&d), 0);
    assert_int_equal(d.n, 20000 / 4);
    note_speed(&d, "texts");
}

static void t_chars(void **state)
{
    open_all();
    struct drawn d = {.tk = tk, .golden = golden, .normalises = true};
    assert_int_equal(drawn_chars(&d), 0);
    note_speed(&d, "characters");
}

static struct tokens encode(const char *text, size_t len, bool special)
{
    struct tokens out = {0};
    tokenizer_encode(tk, text, len, special, &out);
    return out;
}

static bool same(const char *a, size_t a_len, const char *b, size_t b_len)
{
    struct tokens x = encode(a, a_len, false), y = encode(b, b_len, false);
    bool equal = x.n == y.n && !memcmp(x.ids, y.ids, (size_t)x.n * sizeof *x.ids);
    tokens_free(&x);
    tokens_free(&y);
    return equal;
}

#define SAME(a, b) same(a, sizeof(a) - 1, b, sizeof(b) - 1)

static void t_composed(void **state)
{
    open_all();
    assert_true(SAME("cafe\u0301", "caf\u00e9"));
    assert_true(SAME("a\0e\u0301\0b", "a\0\u00e9\0b"));
    assert_true(SAME("e\u0301\xff", "\u00e9\xff"));
    assert_false(SAME("e\xff\u0301", "\u00e9\xff"));
    assert_true(SAME("\u1112\u1161\u11ab", "\ud55c"));
    assert_true(SAME("s\u0307\u0323", "\u1e69"));
    /* U+1DF9 was added in Unicode 10: the marks around it keep their order. */
    assert_false(SAME("a\u1df9\u0301", "\u00e1\u1df9"));
}

static void t_marks(void **state)
{
    open_all();
    struct tokens marked = encode("<|im_start|>", 12, true), plain = encode("<|im_start|>", 12, false);
    assert_int_equal(marked.n, 1);
    assert_int_equal(marked.ids[0], tokenizer_find(tk, "<|im_start|>"));
    assert_true(plain.n > 1);
    tokens_free(&marked);
    tokens_free(&plain);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a quarter of 20,000 texts with marks, joiners, CJK and numbers gives the ids of tokenizers",
          t_texts),
    CLAIM("every fourth block of characters between others gives the ids of tokenizers", t_chars),
    CLAIM("text in parts and composed gives the same ids, with any Unicode version of this machine",
          t_composed),
    CLAIM("text from outside cannot form a special token of the template", t_marks),
};

CHECK_MAIN_WITH(, tokenizer_free(tk); json_decref(golden))
