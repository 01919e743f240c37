/* fuzz_calls.c - the parser of tool calls: byte 0 selects whether tools are known, the rest is the text.
 *
 * For any input, calls have a name and arguments, or a fault with a message; their ranges are in order and
 * within the text; the content is the rest of the text.
 */
#include "actions/calls.h"
#include "require.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has_tool(const void *arg, const char *name)
{
    return !strcmp(name, "click") || !strcmp(name, "write");
}

static bool has_parameter(const void *arg, const char *tool, const char *name)
{
    return !strcmp(tool, "click") ? !strcmp(name, "x") || !strcmp(name, "y") : !strcmp(name, "content");
}

static const char *nth_parameter(const void *arg, const char *tool, int i)
{
    return strcmp(tool, "click") != 0 || i > 1 ? NULL : i ? "y" : "x";
}

static void check_call(struct call *c, size_t from, size_t size)
{
    require(c->begin >= from && c->begin <= c->end && c->end <= size, "ranges are in order");
    if (c->fault) {
        require(c->why && *c->why && !strchr(c->why, '\n') && !c->arguments, "a fault has one line");
        return;
    }
    require(c->name && *c->name && strlen(c->name) < CALLS_MAX_NAME, "a call has a name");
    require(json_is_object(c->arguments), "arguments are an object");
    const char *key;
    json_t *v;
    json_object_foreach(c->arguments, key, v) require(!c->texts || json_is_string(v), "XML has texts");
    calls_convert(c, NULL);
    require(json_is_object(c->arguments) && !c->texts, "converted arguments are an object");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct calls_hints known = {has_tool, has_parameter, nth_parameter, NULL};
    struct calls c;
    struct buf content;
    if (!size)
        return 0;
    const char *text = (const char *)data + 1;
    const struct calls_hints *hints = data[0] & 1 ? &known : NULL;
    size_t at = 0, expected = --size, len;
    calls_read(text, size, hints, &c);
    require(c.n >= 0 && c.n <= CALLS_MAX, "calls are bounded");
    for (int i = 0; i < c.n; i++) {
        check_call(&c.list[i], at, size);
        at = c.list[i].end;
        expected -= c.list[i].fault ? 0 : c.list[i].end - c.list[i].begin;
    }
    buf_init(&content, size + 1);
    calls_content(text, size, &c, &content);
    require(content.len == expected, "the content is the rest");
    size_t safe = calls_safe_prefix(text, size, hints);
    require(safe <= size && (!c.n || safe <= c.list[0].begin), "a call begins behind the safe prefix");
    const char *mark = calls_markup(text, size, &len);
    require(!mark || (mark >= text && mark + len <= text + size), "markup is within the text");
    buf_free(&content);
    calls_free(&c);
    return 0;
}
