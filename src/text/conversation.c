/* conversation.c - reads a conversation from JSON (conversation.h). */
#include "text/conversation.h"

#include "base/file.h"
#include "base/image.h"
#include "jinja/jinja.h"

#include <stdlib.h>
#include <string.h>

/* ---- parts ------------------------------------------------------------------------------------------ */

/* Reads a part: {"type": "text" | "image" | "image_url", ...}. Returns -1 with e. */
static int read_part(struct conversation *v, const json_t *part, struct chat_part *out, struct err *e)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    const json_t *name = json_object_get(part, "image");
    if (type && !strcmp(type, "text")) {
        out->text = json_string_value(json_object_get(part, "text"));
        return out->text ? 0 : err_set(e, ERR_USAGE, "a text part without 'text'");
    }
    if (type && !strcmp(type, "image_url"))
        name = json_object_get(json_object_get(part, "image_url"), "url");
    else if (!type || strcmp(type, "image") != 0)
        return err_set(e, ERR_USAGE, "a part must be of type text, image or image_url");
    if (!json_is_string(name) || !json_string_length(name))
        return err_set(e, ERR_USAGE, "an image part has no file name");
    if (v->n_images == CONVERSATION_IMAGES)
        return err_set(e, ERR_USAGE, "more than %d images", CONVERSATION_IMAGES);
    v->files[v->n_images] = json_string_value(name);
    out->image = &v->images[v->n_images++];
    return 0;
}

static int read_content(struct conversation *v, const json_t *content, struct chat_message *m, struct err *e)
{
    bool list = json_is_array(content);
    size_t n = list ? json_array_size(content) : json_is_string(content);
    if (!list && !json_is_string(content) && !json_is_null(content) && content)
        return err_set(e, ERR_USAGE, "'content' must be a string or a list of parts");
    if (n > CONVERSATION_PARTS)
        return err_set(e, ERR_USAGE, "more than %d parts", CONVERSATION_PARTS);
    struct chat_part *parts = xcalloc(n + 1, sizeof *parts);
    m->parts = parts;
    m->listed = list;
    m->n = (int)n;
    if (!list && n)
        parts[0].text = json_string_value(content);
    for (size_t i = 0; list && i < n; i++) {
        if (read_part(v, json_array_get(content, i), &parts[i], e))
            return -1;
    }
    return 0;
}

/* ---- calls and tools -------------------------------------------------------------------------------- */

static const char *keep_text(struct conversation *v, char *text)
{
    v->texts = xrealloc(v->texts, (size_t)v->n_texts + 1, sizeof *v->texts);
    return v->texts[v->n_texts++] = text;
}

/* Reads a call: {"function": {"name": ..., "arguments": an object, or its JSON text}}, or the inner object
 * alone. Returns -1 with e. */
static int read_call(struct conversation *v, const json_t *call, const char **out, struct err *e)
{
    const json_t *inner = json_object_get(call, "function");
    const json_t *f = inner ? inner : call, *name = json_object_get(f, "name");
    json_t *arguments = json_object_get(f, "arguments");
    if (!json_is_string(name))
        return err_set(e, ERR_USAGE, "a call needs a 'name'");
    if (arguments && !json_is_null(arguments) && !json_is_string(arguments) && !json_is_object(arguments))
        return err_set(e, ERR_USAGE, "the 'arguments' of a call must be an object or its JSON text");
    json_auto_t *both = json_pack("{s:O}", "name", name);
    if (arguments && !json_is_null(arguments))
        json_object_set(both, "arguments", arguments);
    *out = keep_text(v, jinja_json_text(both));
    return 0;
}

static int read_calls(struct conversation *v, const json_t *calls, struct chat_message *m, struct err *e)
{
    size_t n = json_array_size(calls);
    if (!calls || json_is_null(calls))
        return 0;
    if (!json_is_array(calls) || n > CONVERSATION_PARTS || m->role != CHAT_ASSISTANT)
        return err_set(e, ERR_USAGE, "'tool_calls' must be a list of at most %d, and an assistant's",
                       CONVERSATION_PARTS);
    const char **texts = xcalloc(n + 1, sizeof *texts);
    m->calls = texts;
    m->n_calls = (int)n;
    for (size_t i = 0; i < n; i++)
        if (read_call(v, json_array_get(calls, i), &texts[i], e))
            return -1;
    return 0;
}

static int read_tools(struct conversation *v, const json_t *tools, struct err *e)
{
    size_t n = json_array_size(tools);
    if (!tools || json_is_null(tools))
        return 0;
    if (!json_is_array(tools) || n > CONVERSATION_PARTS)
        return err_set(e, ERR_USAGE, "'tools' must be a list of at most %d", CONVERSATION_PARTS);
    const char **texts = xcalloc(n + 1, sizeof *texts);
    v->chat.tools = texts;
    v->chat.n_tools = (int)n;
    for (size_t i = 0; i < n; i++) {
        if (!json_is_object(json_array_get(tools, i)))
            return err_set(e, ERR_USAGE, "tool %zu is not an object", i + 1);
        texts[i] = keep_text(v, jinja_json_text(json_array_get(tools, i)));
    }
    return 0;
}

/* ---- the conversation ------------------------------------------------------------------------------- */

static int read_message(struct conversation *v, const json_t *message, struct chat_message *m, struct err *e)
{
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    const char *role = json_string_value(json_object_get(message, "role"));
    int i = 0;
    while (i < 4 && !(role && !strcmp(role, roles[i])))
        i++;
    if (i == 4)
        return err_set(e, ERR_USAGE, "'role' must be system, user, assistant or tool");
    m->role = (enum chat_role)i;
    if (read_content(v, json_object_get(message, "content"), m, e))
        return -1;
    if (m->role == CHAT_ASSISTANT)
        m->reasoning = json_string_value(json_object_get(message, "reasoning_content"));
    return read_calls(v, json_object_get(message, "tool_calls"), m, e);
}

/* Reads "chat_template_kwargs": further variables of the template. */
static int read_variables(struct conversation *v, struct err *e)
{
    const json_t *variables = json_object_get(v->root, "chat_template_kwargs");
    if (!variables || json_is_null(variables))
        return 0;
    if (!json_is_object(variables))
        return err_set(e, ERR_USAGE, "'chat_template_kwargs' must be an object");
    v->chat.variables = variables;
    return 0;
}

int conversation_take(struct conversation *v, json_t *root, struct err *e)
{
    *v = (struct conversation){.root = root};
    const json_t *list = json_is_array(v->root) ? v->root : json_object_get(v->root, "messages");
    size_t n = json_array_size(list);
    if (!n || n > CONVERSATION_MESSAGES)
        return err_set(e, ERR_USAGE, "'messages' must be a list of 1 to %d", CONVERSATION_MESSAGES);
    v->messages = xcalloc(n, sizeof *v->messages);
    v->images = xcalloc(CONVERSATION_IMAGES, sizeof *v->images);
    v->files = xcalloc(CONVERSATION_IMAGES, sizeof *v->files);
    v->chat.messages = v->messages;
    v->chat.open_reply = true;
    for (size_t i = 0; i < n; i++) {
        struct err part = ERR_INIT;
        v->chat.n = (int)i + 1;
        if (read_message(v, json_array_get(list, i), &v->messages[i], &part))
            return err_set(e, part.kind, "message %zu: %s", i + 1, part.text);
    }
    return json_is_object(v->root)
               ? read_variables(v, e) || read_tools(v, json_object_get(v->root, "tools"), e)
               : 0;
}

int conversation_parse(struct conversation *v, const char *text, size_t len, struct err *e)
{
    json_error_t why = {0};
    *v = (struct conversation){0};
    json_t *root = len > CONVERSATION_BYTES ? NULL : json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        return err_set(e, ERR_USAGE, "not JSON of at most %d bytes: %s", CONVERSATION_BYTES, why.text);
    return conversation_take(v, root, e);
}

/* Reads the images; file names are relative to the directory of the conversation. */
static int read_images(struct conversation *v, const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    int front = slash ? (int)(slash - path) + 1 : 0;
    for (int i = 0; i < v->n_images; i++) {
        autofree char *file = xasprintf("%.*s%s", v->files[i][0] == '/' ? 0 : front, path, v->files[i]);
        int rc = image_read_png(&v->images[i], file, e);
        if (rc)
            return rc;
    }
    return 0;
}

int conversation_read(struct conversation *v, const char *path, struct err *e)
{
    struct err why = ERR_INIT;
    char *text;
    size_t len;
    *v = (struct conversation){0};
    if (file_read(path, CONVERSATION_BYTES, &text, &len, e))
        return -1;
    int rc = conversation_parse(v, text, len, &why);
    free(text);
    if (rc)
        return err_set(e, why.kind, "'%s': %s", path, why.text);
    return read_images(v, path, e);
}

void conversation_free(struct conversation *v)
{
    for (int i = 0; i < v->chat.n; i++) {
        free((void *)v->messages[i].parts);
        free((void *)v->messages[i].calls);
    }
    for (int i = 0; i < v->n_images; i++)
        image_free(&v->images[i]);
    for (int i = 0; i < v->n_texts; i++)
        free(v->texts[i]);
    free((void *)v->chat.tools);
    free((void *)v->files);
    free(v->texts);
    free(v->images);
    free(v->messages);
    json_decref(v->root);
    *v = (struct conversation){0};
}
