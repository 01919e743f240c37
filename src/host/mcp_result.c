/* mcp_result.c - results of requests and tools, within the size that hosts accept.
 *
 * Some hosts reject a line of 1 MiB or more (Claude Desktop).  An image has at most HOST_PICTURE_BYTES in
 * base64 (look.c), and the texts of a result are truncated until the line has at most HOST_REPLY_BYTES. */
#include "host/mcp_impl.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ENVELOPE_BYTES: reserved for jsonrpc, id and _meta.  CUT_MIN: texts of at most so many bytes stay whole. */
enum { ENVELOPE_BYTES = 4 << 10, CUT_MIN = 256 };

/* ---- size ---------------------------------------------------------------------------------------------- */

static size_t line_bytes(const json_t *v)
{
    autofree char *line = json_line(v, JSON_COMPACT);
    return line ? strlen(line) : 0;
}

/* Finds the longest string in v that is longer than *longest, its container, and its key or index in the
 * container. */
static void find_longest(json_t *v, size_t *longest, json_t **owner, const char **key, size_t *index)
{
    const char *name;
    json_t *one;
    size_t i;
    json_object_foreach(v, name, one)
    {
        if (json_string_length(one) > *longest) {
            *longest = json_string_length(one);
            *owner = v;
            *key = name;
        }
        find_longest(one, longest, owner, key, index);
    }
    json_array_foreach(v, i, one)
    {
        if (json_string_length(one) > *longest) {
            *longest = json_string_length(one);
            *owner = v;
            *key = NULL;
            *index = i;
        }
        find_longest(one, longest, owner, key, index);
    }
}

/* Truncates the longest string in v to half its length.  Returns false if no string is longer than CUT_MIN
 * bytes. */
static bool cut_longest(json_t *v)
{
    size_t longest = CUT_MIN, index = 0;
    json_t *owner = NULL;
    const char *key = NULL;
    find_longest(v, &longest, &owner, &key, &index);
    if (!owner)
        return false;
    const char *text = json_string_value(key ? json_object_get(owner, key) : json_array_get(owner, index));
    size_t left = utf8_valid_prefix(text, longest / 2);
    autofree char *cut = xasprintf("%.*s [%zu bytes omitted]", (int)left, text, longest - left);
    if (key)
        json_object_set_new(owner, key, json_string(cut));
    else
        json_array_set_new(owner, index, json_string(cut));
    return true;
}

static json_t *text_content(const char *text)
{
    return json_pack("{s:s, s:s}", "type", "text", "text", text);
}

/* Sets the first content of a tool's result to its structured content as text. */
static void set_text(json_t *result)
{
    autofree char *text = json_line(json_object_get(result, "structuredContent"), JSON_COMPACT);
    json_array_set_new(json_object_get(result, "content"), 0, text_content(text ? text : "{}"));
}

/* Truncates texts of a tool's result until the result fits into a line. */
static void fit(json_t *result)
{
    while (line_bytes(result) > HOST_REPLY_BYTES - ENVELOPE_BYTES &&
           cut_longest(json_object_get(result, "structuredContent")))
        set_text(result);
}

/* ---- results ------------------------------------------------------------------------------------------- */

json_t *mcp_server_info(const struct mcp *m)
{
    return json_pack("{s:s, s:s, s:s}", "name", "holorun", "title", "holorun", "version", m->version);
}

/* Adds the names of arguments that the tool does not have. */
static void add_ignored(json_t *result, json_t *ignored)
{
    const json_t *one;
    struct buf text;
    size_t i;
    if (!json_array_size(ignored))
        return;
    buf_init(&text, HOST_REPLY_BYTES);
    buf_puts(&text, "Unknown arguments were ignored: ");
    json_array_foreach(ignored, i, one) buf_printf(&text, "%s'%s'", i ? ", " : "", json_string_value(one));
    if (json_object_get(result, "structuredContent")) {
        json_object_set(json_object_get(result, "structuredContent"), "ignored_arguments", ignored);
        set_text(result);
    }
    json_array_append_new(json_object_get(result, "content"), text_content(text.data));
    buf_free(&text);
}

void mcp_reply(struct mcp *m, const json_t *id, const struct mcp_client *c, json_t *object)
{
    json_t *nested = json_object_get(object, "result"); /* result of a task */
    json_t *tool = json_object_get(object, "content") ? object : nested;
    if (json_object_get(tool, "content")) {
        add_ignored(tool, c->ignored);
        fit(tool);
    }
    if (c->modern) {
        if (!json_object_get(object, "resultType"))
            json_object_set_new(object, "resultType", json_string("complete"));
        json_object_set_new(object, "_meta", json_pack("{s:o}", MCP_META "serverInfo", mcp_server_info(m)));
    }
    rpc_reply(m->rpc, id, object);
}

json_t *mcp_tool_result(json_t *structured, json_t *picture, bool is_error)
{
    json_make_visible(structured);
    json_t *result =
        json_pack("{s:[n], s:o, s:b}", "content", "structuredContent", structured, "isError", is_error);
    set_text(result);
    if (picture)
        json_array_append_new(json_object_get(result, "content"), picture);
    return result;
}

json_t *mcp_text_result(const char *text, json_t *picture, bool is_error)
{
    json_auto_t *visible = json_visible_string(text);
    json_t *result =
        json_pack("{s:[o], s:b}", "content", text_content(json_string_value(visible)), "isError", is_error);
    if (picture)
        json_array_append_new(json_object_get(result, "content"), picture);
    return result;
}

void mcp_tool_error(struct mcp *m, const json_t *id, const struct mcp_client *c, const char *fmt, ...)
{
    struct err e = ERR_INIT;
    va_list args;
    va_start(args, fmt);
    err_vset(&e, ERR_FAILED, fmt, args);
    va_end(args);
    mcp_reply(m, id, c, mcp_tool_result(json_pack("{s:s}", "error", e.text), NULL, true));
}
