/* fuzz_template.c - any text as a chat template, rendered with a conversation. */
#include "jinja/jinja.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char variables[] =
        "{\"messages\": [{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"user\", \"content\": [{\"type\": \"image\"}, "
        "{\"type\": \"text\", \"text\": \"caf\\u00e9 \"}]}, {\"role\": \"assistant\", \"content\": \"r\", \"tool_calls\": "
        "[{\"function\": {\"name\": \"f\", \"arguments\": {\"x\": [1, 2.5, null, true]}}}]}, {\"role\": \"tool\", \"content\": \"t\"}], "
        "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {}}}], \"add_generation_prompt\": true}";
    struct err e = ERR_INIT;
    struct jinja *t = size < 4096 ? jinja_parse((const char *)data, size, &e) : NULL;
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
