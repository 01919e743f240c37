/* template_file.c - finds the chat template and the special tokens of a model directory or GGUF file. */
#include "text/chat_template_impl.h"

#include "base/file.h"
#include "base/gguf.h"

#include <stdlib.h>
#include <string.h>

static json_t *read_json(const char *dir, const char *file)
{
    autofree char *path = xasprintf("%s/%s", dir, file), *text = NULL;
    size_t len;
    return file_read(path, 16 << 20, &text, &len, NULL) ? NULL : json_loadb(text, len, 0, NULL);
}

/* Returns the value of "chat_template": a text, or the text named "default" in a list. */
static char *template_inside(const json_t *root)
{
    const json_t *inside = json_object_get(root, "chat_template"), *list = inside;
    json_t *v;
    size_t i;
    json_array_foreach(list, i, v)
    {
        const char *name = json_string_value(json_object_get(v, "name"));
        if (name && !strcmp(name, "default"))
            inside = json_object_get(v, "template");
    }
    return json_is_string(inside) ? xstrdup(json_string_value(inside)) : NULL;
}

/* Reads the variables bos_token, eos_token, ... of a tokenizer_config.json: texts, or objects that contain
 * the text. */
static void read_special(const json_t *config, struct chat_template *c)
{
    static const char *const names[] = {"bos_token", "eos_token", "pad_token", "unk_token"};
    int n = 0;
    for (int i = 0; i < 4; i++) {
        const json_t *v = json_object_get(config, names[i]);
        v = json_is_object(v) ? json_object_get(v, "content") : v;
        if (!json_is_string(v))
            continue;
        c->special[n][0] = xstrdup(names[i]);
        c->special[n++][1] = xstrdup(json_string_value(v));
    }
}

enum { TOKEN_MAX = 1024 }; /* bytes; the tokenizer has no longer tokens */

/* Returns the text of the token whose id is the value of a key in the file, or NULL; the caller frees it. */
static char *token_of(const struct gguf_file *f, const char *key)
{
    struct gguf_value words;
    double id = gguf_number_of(f, key, -1);
    const char *word = "";
    size_t len = 0;
    if (!(id >= 0) || !gguf_value(f, "tokenizer.ggml.tokens", &words))
        return NULL;
    for (double at = 0; gguf_next_text(&words, &word, &len); at++)
        if (at == id)
            return len <= TOKEN_MAX ? xasprintf("%.*s", (int)len, word) : NULL;
    return NULL;
}

/* Sets the variables bos_token and eos_token like llama.cpp. */
static void read_gguf_special(const struct gguf_file *f, struct chat_template *c)
{
    static const char *const keys[][2] = {{"bos_token", "tokenizer.ggml.bos_token_id"},
                                          {"eos_token", "tokenizer.ggml.eos_token_id"}};
    int n = 0;
    for (int i = 0; i < 2; i++) {
        char *word = token_of(f, keys[i][1]);
        if (!word)
            continue;
        c->special[n][0] = xstrdup(keys[i][0]);
        c->special[n++][1] = word;
    }
}

char *template_read(const char *dir, struct chat_template *c)
{
    struct gguf_file *f = gguf_is_place(dir) ? gguf_open_text(dir, NULL) : NULL;
    if (f) {
        char *text = gguf_text_of(f, "tokenizer.chat_template");
        read_gguf_special(f, c);
        gguf_close(f);
        return text;
    }
    json_auto_t *config = read_json(dir, "tokenizer_config.json"),
                *processor = read_json(dir, "chat_template.json");
    char *path = xasprintf("%s/chat_template.jinja", dir), *text = NULL;
    size_t len;
    read_special(config, c);
    if (file_read(path, JINJA_MAX_SOURCE, &text, &len, NULL) && !(text = template_inside(processor)))
        text = template_inside(config);
    free(path);
    return text;
}
