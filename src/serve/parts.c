/* parts.c - converts the content of a message into text and image parts; see parts.h. */
#include "serve/parts.h"

#include "base/json.h"
#include "text/conversation.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 64 << 20, NESTED = 4 };

struct reading {
    json_t *out;
    struct buf *thought;
    struct notes *notes;
    int depth; /* nesting of documents */
};

static bool is_one_of(const char *type, const char *const *names)
{
    while (*names && strcmp(*names, type) != 0)
        names++;
    return *names;
}

json_t *parts_new_text(const char *text)
{
    return json_pack("{s:s, s:s}", "type", "text", "text", text);
}

static json_t *parts_new_image(json_t *url)
{
    return json_pack("{s:s, s:{s:o}}", "type", "image_url", "image_url", "url", url);
}

static int read_list(struct reading *r, const json_t *content, struct err *e);

/* ---- images ------------------------------------------------------------------------------------------ */

/* Reads {"type": "base64", "media_type": ..., "data": ...} or {"type": "url", "url": ...}. */
static int read_source(struct reading *r, const json_t *source, struct err *e)
{
    const char *data = json_text(source, "data"), *url = json_text(source, "url"),
               *media = json_text(source, "media_type");
    if (data) {
        json_array_append_new(r->out,
                              parts_new_image(json_sprintf("data:%s;base64,%s", media ? media : "", data)));
        return 0;
    }
    if (!url)
        return err_set(e, ERR_USAGE,
                       "an image needs a 'source' with 'data' or 'url'; files are not stored "
                       "here");
    json_array_append_new(r->out, parts_new_image(json_incref(json_object_get(source, "url"))));
    return 0;
}

static int read_image(struct reading *r, const json_t *part, struct err *e)
{
    json_t *at = json_object_get(part, "image_url");
    at = at ? at : json_object_get(part, "image");
    at = at ? at : json_object_get(part, "url");
    if (json_object_get(part, "source"))
        return read_source(r, json_object_get(part, "source"), e);
    json_t *url = json_is_object(at) ? json_object_get(at, "url") : at;
    if (!json_string_length(url))
        return err_set(e, ERR_USAGE, "an image needs a data URL in 'image_url'; files are not stored here");
    json_array_append_new(r->out, parts_new_image(json_incref(url)));
    return 0;
}

/* ---- texts ------------------------------------------------------------------------------------------- */

static int refuse(const char *type, struct err *e)
{
    return err_set(e, ERR_USAGE, "content of type '%.60s' is not supported: only text and images", type);
}

/* Reads a document of text or of parts; other formats are rejected. */
static int read_document(struct reading *r, const json_t *part, struct err *e)
{
    const json_t *source = json_object_get(part, "source"), *inside = json_object_get(source, "content");
    const char *type = json_text(source, "type"), *title = json_text(part, "title"),
               *text = json_text(source, "data");
    if (type && !strcmp(type, "content") && inside && r->depth < NESTED) {
        r->depth++;
        int rc = read_list(r, inside, e);
        r->depth--;
        return rc;
    }
    if (!type || strcmp(type, "text") != 0 || !text)
        return refuse("document", e);
    autofree char *whole = xasprintf("%s%s%s", title ? title : "", title ? "\n" : "", text);
    json_array_append_new(r->out, parts_new_text(whole));
    return 0;
}

static int read_search_result(struct reading *r, const json_t *part, struct err *e)
{
    const char *title = json_text(part, "title"), *source = json_text(part, "source");
    autofree char *head = xasprintf("%s (%s)\n", title ? title : "", source ? source : "");
    json_array_append_new(r->out, parts_new_text(head));
    if (r->depth == NESTED)
        return refuse("search_result", e);
    r->depth++;
    int rc = read_list(r, json_object_get(part, "content"), e);
    r->depth--;
    return rc;
}

static void read_thought(struct reading *r, const json_t *part)
{
    static const char *const keys[] = {"thinking", "text", "reasoning", NULL};
    for (int i = 0; r->thought && keys[i]; i++)
        if (json_text(part, keys[i])) {
            buf_puts(r->thought, json_text(part, keys[i]));
            return;
        }
}

/* Returns whether the part records a vendor's own tool, which other models do not support. */
static bool is_record(const char *type)
{
    static const char *const names[] = {
        "server_tool_use", "mcp_tool_use",   "mcp_tool_result", "container_upload",
        "fallback",        "tool_reference", "tool_use",        NULL};
    size_t n = strlen(type);
    return is_one_of(type, names) || (n > 12 && !strcmp(type + n - 12, "_tool_result"));
}

static int read_typed(struct reading *r, const char *type, const json_t *part, struct err *e)
{
    static const char *const texts[] = {"text",         "input_text",     "output_text",
                                        "summary_text", "reasoning_text", NULL},
                             *const images[] = {"image_url", "input_image", "image", "computer_screenshot",
                                                NULL},
                             *const thoughts[] = {"thinking", "reasoning", NULL};
    const char *text = json_text(part, !strcmp(type, "refusal")      ? "refusal"
                                       : !strcmp(type, "compaction") ? "content"
                                                                     : "text");
    if (is_one_of(type, texts) || !strcmp(type, "refusal") || !strcmp(type, "compaction")) {
        if (!text && !is_one_of(type, texts))
            return 0;
        if (!text && !json_is_null(json_object_get(part, "text")))
            return err_set(e, ERR_USAGE, "a text part without 'text'");
        json_array_append_new(r->out, parts_new_text(text ? text : ""));
    } else if (is_one_of(type, images)) {
        return read_image(r, part, e);
    } else if (is_one_of(type, thoughts)) {
        read_thought(r, part);
    } else if (!strcmp(type, "document")) {
        return read_document(r, part, e);
    } else if (!strcmp(type, "search_result")) {
        return read_search_result(r, part, e);
    } else if (is_record(type)) {
        notes_ignore(r->notes, "content: %.60s", type);
    } else if (strcmp(type, "redacted_thinking") != 0) {
        return refuse(type, e);
    }
    return 0;
}

static int read_part(struct reading *r, const json_t *part, struct err *e)
{
    const char *type = json_text(part, "type");
    if (json_is_string(part))
        return json_array_append_new(r->out, parts_new_text(json_string_value(part)));
    if (!json_is_object(part))
        return err_set(e, ERR_USAGE, "a part of 'content' must be an object with a 'type'");
    if (!type)
        type = json_object_get(part, "text") ? "text" : json_object_get(part, "image_url") ? "image_url" : "";
    return read_typed(r, type, part, e);
}

static int read_list(struct reading *r, const json_t *content, struct err *e)
{
    json_t *part;
    size_t i;
    if (!content || json_is_null(content))
        return 0;
    if (!json_is_array(content))
        return json_is_string(content) || json_is_object(content)
                   ? read_part(r, content, e)
                   : err_set(e, ERR_USAGE, "'content' must be a string or a list of parts");
    json_array_foreach((json_t *)(uintptr_t)content, i, part)
    {
        if (json_array_size(r->out) > CONVERSATION_PARTS)
            return err_set(e, ERR_USAGE, "'content' has more than %d parts", CONVERSATION_PARTS);
        if (read_part(r, part, e))
            return -1;
    }
    return 0;
}

json_t *parts_read(const json_t *content, struct buf *thought, struct notes *n, struct err *e)
{
    struct reading r = {.out = json_array(), .thought = thought, .notes = n};
    if (read_list(&r, content, e) == 0)
        return r.out;
    json_decref(r.out);
    return NULL;
}

char *parts_text(const json_t *parts, json_t *pictures)
{
    struct buf text;
    json_t *part;
    size_t i;
    buf_init(&text, TEXT_MAX);
    json_array_foreach((json_t *)(uintptr_t)parts, i, part)
    {
        const char *one = json_text(part, "text");
        if (one)
            buf_puts(&text, one);
        else if (pictures)
            json_array_append(pictures, part);
    }
    char *s = buf_take(&text);
    return s ? s : xstrdup("");
}
