/* fuzz_secret.c - the first line as a secret, the rest as text and as JSON; after masking neither contains
 * it, literally or quoted for JSON, and JSON is still valid. */
#include "base/secret.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mask(const struct secrets *s, const char *text)
{
    char *masked = secrets_mask(s, text);
    if (secrets_contained_in(s, masked))
        bug("a secret is not masked");
    free(masked);
}

/* Masks a text in the form in which an event contains it. */
static void scrub_string(const struct secrets *s, const char *text, size_t n)
{
    struct buf json;
    buf_init(&json, 8 * n + 64);
    buf_puts(&json, "{\"a\": "); /* the key is shorter than any secret */
    buf_put_json(&json, text, n);
    buf_putc(&json, '}');
    secrets_scrub_json(s, &json);
    json_t *root = json_loadb(json.data, json.len, 0, NULL);
    const char *kept = json_string_value(json_object_get(root, "a"));
    if (!kept || secrets_contained_in(s, kept))
        bug(kept ? "a secret in a string is not masked" : "the result is not JSON");
    json_decref(root);
    buf_free(&json);
}

static void scrub_anything(const struct secrets *s, const char *text, size_t n)
{
    struct buf json;
    buf_init(&json, n + 64);
    buf_put(&json, text, n);
    secrets_scrub_json(s, &json);
    buf_free(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t n = size < SECRET_MAX ? size : SECRET_MAX;
    const uint8_t *end = memchr(data, '\n', n);
    char value[SECRET_MAX + 1];
    struct err e = ERR_INIT;
    if (!end)
        return 0;
    n = (size_t)(end - data);
    memcpy(value, data, n);
    value[n] = 0;
    if (strlen(value) != n || strpbrk(value, "{}") || strstr("SECRET", value)) /* part of the placeholder */
        return 0;
    setenv("FUZZ_SECRET", value, 1);
    struct secrets *s = secrets_new();
    if (secrets_add(s, "SECRET=env:FUZZ_SECRET", &e)) {
        if (!*e.text)
            bug("refused without a reason");
    } else {
        size_t rest = size - n - 1;
        char *text = malloc(rest + 1);
        memcpy(text, end + 1, rest);
        text[rest] = 0;
        mask(s, text);
        scrub_string(s, text, strlen(text));
        scrub_anything(s, text, rest);
        free(text);
    }
    secrets_free(s);
    return 0;
}
