/* licence.c - licence statements in model cards, safetensors, GGUF and JSON files; see licence.h.
 *
 * The files may come from anywhere. The statement is truncated, and its control characters are replaced,
 * before it is displayed. */
#include "checkpoint/licence.h"

#include "base/utf8.h"

#include <jansson.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

static bool take(const char *text, size_t n, char out[LICENCE_TEXT])
{
    while (n && strchr(" \t\r\"'", text[0]))
        text++, n--;
    while (n && strchr(" \t\r\"'", text[n - 1]))
        n--;
    n = n < LICENCE_TEXT - 1 ? n : LICENCE_TEXT - 1;
    n = utf8_valid_prefix(text, n);
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)text[i] < ' ' || text[i] == 127 ? ' ' : text[i];
    out[n] = 0;
    return n > 0;
}

/* Returns the length of the first line of text[n], without its newline. */
static size_t line_at(const char *text, size_t n)
{
    const char *end = memchr(text, '\n', n);
    return end ? (size_t)(end - text) : n;
}

static bool starts(const char *text, size_t n, const char *word)
{
    return n >= strlen(word) && !memcmp(text, word, strlen(word));
}

/* Reads the YAML front matter of a model card, between two lines "---": `license`, or `license_name` if
 * license is "other". */
static bool front_matter(const char *text, size_t n, char out[LICENCE_TEXT])
{
    if (!starts(text, n, "---\n") && !starts(text, n, "---\r\n"))
        return false;
    for (size_t at = line_at(text, n) + 1, len; at < n; at += len + 1) {
        len = line_at(text + at, n - at);
        const char *line = text + at;
        if (starts(line, len, "---"))
            break;
        bool name = starts(line, len, "license_name:");
        if (starts(line, len, "license:") || (name && (!*out || !strcmp(out, "other"))))
            take(line + (name ? 13 : 8), len - (name ? 13 : 8), out);
    }
    return *out != 0;
}

static bool json_licence(const json_t *object, char out[LICENCE_TEXT])
{
    const char *text = json_string_value(json_object_get(object, "license"));
    return text && take(text, strlen(text), out);
}

static uint64_t little(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static bool safetensors_licence(const unsigned char *p, size_t n, char out[LICENCE_TEXT])
{
    uint64_t len = n > 8 ? little(p, 8) : 0;
    if (!len || len > n - 8)
        return false;
    json_auto_t *header = json_loadb((const char *)p + 8, (size_t)len, 0, NULL);
    return json_licence(json_object_get(header, "__metadata__"), out);
}

/* Searches for the encoded key: its length, name and value type string, followed by the value. Other keys
 * are skipped without parsing. */
static bool gguf_licence(const unsigned char *p, size_t n, char out[LICENCE_TEXT])
{
    static const unsigned char key[] = "\017\0\0\0\0\0\0\0general.license\010\0\0";
    if (!starts((const char *)p, n, "GGUF"))
        return false;
    const unsigned char *at = memmem(p, n, key, sizeof key);
    size_t begin = at ? (size_t)(at - p) + sizeof key : n;
    if (n - begin < 8)
        return false;
    uint64_t len = little(p + begin, 8);
    return len <= n - begin - 8 && take((const char *)p + begin + 8, (size_t)len, out);
}

static bool first_line(const char *text, size_t n, char out[LICENCE_TEXT])
{
    bool found = false;
    for (size_t at = 0, len; at < n && !found; at += len + 1) {
        len = line_at(text + at, n - at);
        found = take(text + at, len, out);
    }
    return found;
}

static bool ends(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n >= m && !strcasecmp(name + n - m, ending);
}

bool licence_stated(const char *name, const void *head, size_t n, char out[LICENCE_TEXT])
{
    *out = 0;
    if (ends(name, ".md"))
        return front_matter(head, n, out);
    if (ends(name, ".safetensors"))
        return safetensors_licence(head, n, out);
    if (ends(name, ".gguf"))
        return gguf_licence(head, n, out);
    if (ends(name, ".json")) {
        json_auto_t *object = json_loadb(head, n, 0, NULL);
        bool found = json_licence(object, out);
        return found;
    }
    bool text = !strncasecmp(name, "license", 7) || !strncasecmp(name, "licence", 7) ||
                !strncasecmp(name, "copying", 7) || !strncasecmp(name, "notice", 6);
    return text && first_line(head, n, out);
}
