/* template_file.c - the chat template in a model's directory: its traits, and whether it is a known one. */
#include "text/chat_qwen.h"

#include "base/file.h"
#include "base/gguf.h"
#include "base/sha256.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

const char *chat_end_mark(const struct tokenizer *t)
{
    return layout_is_chatml(t) ? "<|im_end|>" : "<SPECIAL_12>";
}

/* The value of "chat_template" in a file: a text, or a list of named ones. */
static char *template_inside(const char *dir, const char *file)
{
    char *path = xasprintf("%s/%s", dir, file), *text = NULL;
    size_t len, i;
    json_t *root = file_read(path, 16 << 20, &text, &len, NULL) ? NULL : json_loadb(text, len, 0, NULL), *v;
    const json_t *inside = json_object_get(root, "chat_template"), *list = inside;
    json_array_foreach(list, i, v)
    {
        const char *name = json_string_value(json_object_get(v, "name"));
        if (name && !strcmp(name, "default"))
            inside = json_object_get(v, "template");
    }
    free(text);
    text = json_is_string(inside) ? xstrdup(json_string_value(inside)) : NULL;
    json_decref(root);
    free(path);
    return text;
}

/* The template of a model directory, a file of its own or inside another; NULL: none. */
static char *read_template(const char *dir)
{
    char *path = xasprintf("%s/chat_template.jinja", dir), *text = NULL;
    size_t len;
    struct gguf_file *f = gguf_is_place(dir) ? gguf_open_text(dir, NULL) : NULL;
    if (f) {
        text = gguf_text_of(f, "tokenizer.chat_template");
        gguf_close(f);
        free(path);
        return text;
    }
    if (file_read(path, 1 << 20, &text, &len, NULL) && !(text = template_inside(dir, "chat_template.json")))
        text = template_inside(dir, "tokenizer_config.json");
    free(path);
    return text;
}

struct template_traits template_traits_of(const char *dir)
{
    enum { SENTENCES = 64 << 10 };
    char *text = read_template(dir);
    struct template_traits h = {.start = !text || strstr(text, "bos_token") || strstr(text, "<s>"),
                                .trim = !text || strstr(text, "strip()") || strstr(text, "| trim"),
                                .json_values = text && !strstr(text, "args_value | string"),
                                .given = text};
    struct buf before, after;
    buf_init(&before, SENTENCES);
    buf_init(&after, SENTENCES);
    bool qwen = text && strstr(text, "<|vision_start|>");
    h.json_calls = qwen && !strstr(text, "<function=");
    h.thinks = h.json_calls && strstr(text, "</think>");
    h.greets = h.json_calls && strstr(text, "You are a helpful assistant.");
    if (text && (qwen ? template_read_qwen_tools : template_read_tools)(text, &before, &after)) {
        h.tools[0] = buf_take(&before);
        h.tools[1] = buf_take(&after);
    }
    buf_free(&before);
    buf_free(&after);
    free(text);
    return h;
}

void template_traits_free(struct template_traits *h)
{
    free(h->tools[0]);
    free(h->tools[1]);
    *h = (struct template_traits){0};
}

const char *chat_check(const char *dir, const struct tokenizer *t)
{
    static const char pocket[] = "7c20622a3c7cca9ddafa3b7934bda1afdc3a82b4f278d5b9c73178bfca7d357c";
    enum { VL, CHATML, QWEN, OLDER_QWEN } kind = qwen_is_family(t) ? QWEN : layout_is_chatml(t) ? CHATML : VL;
    static const char *const known_marks[4][4] = {
        {"<SPECIAL_10>System", "<SPECIAL_11>User", "<SPECIAL_11>Assistant", "<SPECIAL_12>"},
        {"<|im_start|>system", "<|im_start|>", "<|im_start|>assistant", "<|im_end|>"},
        {"<|im_start|>system", "<|vision_start|><|image_pad|><|vision_end|>",
         "<function=", "last_query_index"},
        {"<|im_start|>", "<|vision_start|><|image_pad|><|vision_end|>", "add_generation_prompt",
         "<|im_start|>assistant"}};
    char *text = read_template(dir);
    if (!text && kind == QWEN)
        return "the model has no chat template; the layout of its family is used";
    if (kind == QWEN && !strstr(text, "<function="))
        kind = OLDER_QWEN;
    const char *const *marks = known_marks[kind];
    if (!text)
        return "the model has no chat template; the layout of Nemotron VL is used";
    char hex[65];
    sha256(text, strlen(text), hex);
    bool alike = true;
    for (size_t i = 0; i < 4; i++)
        alike = alike && strstr(text, marks[i]);
    free(text);
    if (!strcmp(hex, pocket))
        return NULL;
    if (kind >= QWEN && alike)
        return NULL;
    if (kind >= QWEN)
        return "the model's chat template is not a known one; the layout of its family is used";
    if (kind == CHATML && alike)
        return "the model's chat template is not a known one, but it has the markers of ChatML: the layout "
               "of Nemotron 3 is used";
    return alike ? "the model's chat template is not a known one, but it has the markers of Nemotron VL, "
                   "whose layout is used"
                 : "the model's chat template has other markers than Nemotron VL, whose layout is used: "
                   "replies may be poor";
}
