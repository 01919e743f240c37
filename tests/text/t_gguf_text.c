/* t_gguf_text.c - tests tokenizer and chat template in the keys of a GGUF file: ids against transformers'
 * tokenizers for the names in tokenizer.ggml.pre (tests/golden/tokenizer/splits.json, made by
 * tests/reference/make_splits.py), with the vocabulary of tests/golden/templates/tokenizer.json.
 */
#include "check.h"
#include "gguf_model.h"

#include "base/file.h"
#include "text/chat_layout.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"qwen2", "qwen35"}; /* values of tokenizer.ggml.pre */
static json_t *vocabulary, *golden;

static void load_all(void)
{
    vocabulary = vocabulary ? vocabulary : json_load_file("tests/golden/templates/tokenizer.json", 0, NULL);
    golden = golden ? golden : json_load_file("tests/golden/tokenizer/splits.json", JSON_ALLOW_NUL, NULL);
    assert_non_null(vocabulary);
    assert_non_null(golden);
}

static void put_words(struct gguf *g)
{
    const json_t *words = json_object_get(json_object_get(vocabulary, "model"), "vocab"),
                 *added = json_object_get(vocabulary, "added_tokens");
    size_t n = json_object_size(words), i, all = n + json_array_size(added);
    const char **by_id = xcalloc(all, sizeof *by_id), *word;
    uint32_t *types = xcalloc(all, sizeof *types);
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)words, word, v)
    {
        by_id[json_integer_value(v)] = word;
        types[json_integer_value(v)] = 1;
    }
    json_array_foreach(added, i, v)
    {
        by_id[n + i] = json_string_value(json_object_get(v, "content"));
        types[n + i] = json_is_true(json_object_get(v, "special")) ? 3 : 4;
    }
    gguf_texts(g, "tokenizer.ggml.tokens", all);
    for (i = 0; i < all; i++)
        gguf_item(g, by_id[i], strlen(by_id[i]));
    gguf_ints(g, "tokenizer.ggml.token_type", types, all);
    free(by_id);
    free(types);
}

/* Writes a GGUF file without tensors; returns its path, which the caller frees. */
static char *write_file(const char *pre, const char *template, uint32_t bos, uint32_t eos)
{
    char dir[PLACE_PATH];
    struct gguf g;
    struct buf head;
    struct err e = ERR_INIT;
    load_all();
    assert_non_null(mkdtemp(place_template(dir)));
    char *path = xasprintf("%s/model.gguf", dir);
    gguf_init(&g);
    gguf_text(&g, "tokenizer.ggml.model", "gpt2");
    gguf_text(&g, "tokenizer.ggml.pre", pre);
    put_words(&g);
    gguf_merges(&g, json_object_get(json_object_get(vocabulary, "model"), "merges"));
    gguf_int(&g, "tokenizer.ggml.bos_token_id", bos);
    gguf_int(&g, "tokenizer.ggml.eos_token_id", eos);
    gguf_text(&g, "tokenizer.chat_template", template);
    gguf_head(&g, &head);
    if (file_write(path, head.data, head.len, &e))
        fail_msg("%s", e.text);
    buf_free(&head);
    gguf_free(&g);
    return path;
}

static void check_ids(const struct tokenizer *t, const json_t *text, bool marked, const json_t *want)
{
    struct tokens ids = {0};
    tokenizer_encode(t, json_string_value(text), json_string_length(text), marked, &ids);
    bool same = (size_t)ids.n == json_array_size(want);
    for (int64_t i = 0; same && i < ids.n; i++)
        same = json_integer_value(json_array_get(want, (size_t)i)) == ids.ids[i];
    tokens_free(&ids);
    if (!same) {
        char *shown = json_dumps(text, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
        fail_msg("%s: other ids, %s added tokens", shown, marked ? "with" : "without");
    }
}

static void t_ids(void **state)
{
    size_t n = 0;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        struct err e = ERR_INIT;
        char *path = write_file(names[k], "", 0, 0);
        struct tokenizer *t = tokenizer_open(path, &e);
        json_t *c;
        size_t i;
        if (!t)
            fail_msg("%s", e.text);
        assert_null(tokenizer_check(t));
        json_array_foreach(json_object_get(golden, "texts"), i, c)
        {
            const json_t *ids = json_object_get(c, names[k]), *plain = json_object_get(ids, "plain"),
                         *marked = json_object_get(ids, "marked");
            check_ids(t, json_object_get(c, "text"), false, plain);
            check_ids(t, json_object_get(c, "text"), true, marked ? marked : plain);
            n++;
        }
        tokenizer_free(t);
        free(path);
    }
    assert_true(n >= 400);
}

/* llama.cpp renders such a template with the texts of the file's special ids. */
static void t_special(void **state)
{
    struct err e = ERR_INIT;
    struct layout l = layout_new();
    const struct chat_part part = {.text = "hi"};
    const struct chat_message message = {.role = CHAT_USER, .parts = &part, .n = 1};
    const struct chat_conversation v = {.messages = &message, .n = 1};
    char *path = write_file("qwen2",
                            "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}"
                            "{{ pad_token }}",
                            1536, 1538);
    struct tokenizer *t = tokenizer_open(path, &e);
    assert_non_null(t);
    struct chat_template *c = chat_template_open(path, t, CHAT_QWEN);
    if (chat_template_render(c, &v, &l, &e))
        fail_msg("%s", e.text);
    buf_putc(&l.texts, 0);
    assert_string_equal(l.texts.data, "<|endoftext|>hi<|im_end|>");
    chat_template_free(c);
    layout_free(&l);
    free(path);
    l = layout_new();
    path =
        write_file("qwen2", "[{{ bos_token }}][{{ eos_token }}]", UINT32_MAX, 0); /* the first is not an id */
    c = chat_template_open(path, t, CHAT_QWEN);
    assert_int_equal(chat_template_render(c, &v, &l, &e), 0);
    buf_putc(&l.texts, 0);
    assert_memory_equal(l.texts.data, "[][", 3);
    assert_true(l.texts.len > 5); /* token 0 has a text */
    chat_template_free(c);
    layout_free(&l);
    tokenizer_free(t);
    free(path);
}

static const struct CMUnitTest tests[] = {
    CLAIM("ids equal transformers' for the splits that a GGUF file names", t_ids),
    CLAIM("a chat template in a GGUF file gets the special tokens that the file names", t_special),
};

CHECK_MAIN_WITH(, json_decref(vocabulary); json_decref(golden))
