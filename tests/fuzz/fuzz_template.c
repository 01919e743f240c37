/* fuzz_template.c - any text as a chat template: rendered with a conversation, and analysed for turns and
 * calls. */
#include "base/file.h"
#include "jinja/jinja.h"
#include "text/chat_layout.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct tokenizer *published_tokenizer(void)
{
    static struct tokenizer *t;
    char *json;
    size_t len;
    if (!t && file_read("tests/golden/templates/tokenizer.json", 1 << 20, &json, &len, NULL) == 0) {
        t = tokenizer_parse(json, len, NULL);
        free(json);
    }
    return t;
}

/* Uses the turns that were found. */
static void take_apart(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + 1);
    struct err e = ERR_INIT;
    memcpy(text, data, size);
    struct chat_template *t = chat_template_of(text, published_tokenizer(), CHAT_QWEN);
    const struct chat_turns *turns = chat_template_turns(t, true, &e);
    if (turns ? !turns->open || !turns->user[0] || !*turns->user[0] : !*e.text)
        __builtin_trap();
    chat_template_free(t);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 12000)
        take_apart(data, size);
    static const char variables[] =
        "{\"messages\": [{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"user\", \"content\": [{\"type\": \"image\"}, "
        "{\"type\": \"text\", \"text\": \"caf\\u00e9 \"}]}, {\"role\": \"assistant\", \"content\": \"r\", \"tool_calls\": "
        "[{\"function\": {\"name\": \"f\", \"arguments\": {\"x\": [1, 2.5, null, true]}}}]}, {\"role\": \"tool\", \"content\": \"t\"}], "
        "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {}}}], \"add_generation_prompt\": true}";
    struct err e = ERR_INIT;
    struct jinja *t = size < 12000 ? jinja_parse((const char *)data, size, &e) : NULL;
    struct jinja_arena *a = jinja_arena_new();
    json_t *json = json_loads(variables, 0, NULL);
    struct jinja_string out = {0};
    if (t && jinja_render(t, a, jinja_of_json(a, json, JINJA_TEXT), &out, &e) == 0)
        for (size_t i = 0; i < out.len && out.origin; i++)
            if (out.origin[i] > JINJA_REPLY)
                __builtin_trap();
    json_decref(json);
    jinja_free(t);
    jinja_arena_free(a);
    return 0;
}
