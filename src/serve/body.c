/* body.c - parses and checks the body of a completion request; see body.h. */
#include "serve/body.h"

#include "serve/body_text.h"
#include "serve/json_schema.h"
#include "serve/messages.h"
#include "serve/picture.h"
#include "serve/tools.h"

#include <string.h>

static bool has_tool(const struct chat_body *b, const char *name)
{
    json_t *tool;
    size_t i;
    json_array_foreach(json_object_get(b->talk.root, "tools"), i, tool)
    {
        const char *other = json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
        if (other && !strcmp(other, name))
            return true;
    }
    return false;
}

static int check_tools(const struct chat_body *b, struct err *e)
{
    if ((b->tools == TOOLS_REQUIRED || b->tools == TOOLS_NAMED) && !b->talk.chat.n_tools)
        return err_set(e, ERR_USAGE, "'tool_choice' needs 'tools' with at least one function");
    if (b->tools == TOOLS_NAMED && !has_tool(b, b->tool))
        return err_set(e, ERR_USAGE, "'tool_choice' names '%.60s', which is not one of 'tools'", b->tool);
    return 0;
}

static int check_talk(const struct chat_body *b, struct err *e)
{
    const struct chat_conversation *c = &b->talk.chat;
    if (c->messages[c->n - 1].role == CHAT_ASSISTANT)
        return err_set(e, ERR_USAGE,
                       "the last message must have the role user or tool: a reply cannot be prefilled");
    int64_t pixels = 0;
    for (int i = 0; i < b->talk.n_images; i++) {
        if (picture_check(b->talk.files[i], e))
            return -1;
        pixels += picture_pixels(b->talk.files[i]);
    }
    if (pixels > REQUEST_MAX_PIXELS)
        return err_set(e, ERR_USAGE, "the images of the request have more than %d million pixels",
                       REQUEST_MAX_PIXELS >> 20);
    return check_tools(b, e);
}

/* Compiles the schemas that the reply must match: an invalid one is rejected before the prompt is computed,
 * and keywords that are not enforced are noted. */
static int check_schemas(struct chat_body *b, struct err *e)
{
    json_t *tool;
    size_t i;
    if (b->schema && json_schema_check(b->schema, &b->notes, b->effort, e))
        return -1;
    if (b->tools < TOOLS_REQUIRED)
        return 0;
    json_array_foreach(json_object_get(b->talk.root, "tools"), i, tool)
    {
        const json_t *f = json_object_get(tool, "function"), *schema = json_object_get(f, "parameters");
        const char *name = json_string_value(json_object_get(f, "name"));
        if (b->tools == TOOLS_NAMED && strcmp(name, b->tool) != 0)
            continue;
        if (json_object_size(schema) && json_schema_check(schema, &b->notes, b->effort, e))
            return err_prefix(e, "tool \"%.60s\"", name);
    }
    return 0;
}

static int check_constraints(struct chat_body *b, struct err *e)
{
    int n = (b->schema != NULL) + b->any_object + (b->dialect != NULL) + (b->tools >= TOOLS_REQUIRED);
    if (n > 1)
        return err_set(e, ERR_USAGE, "only one constraint is possible: a schema or a required tool");
    if (b->top_logprobs && !b->logprobs)
        return err_set(e, ERR_USAGE, "'top_logprobs' needs 'logprobs'");
    return check_schemas(b, e);
}

static void drop_nulls(json_t *object)
{
    const char *key;
    void *next;
    json_t *v;
    json_object_foreach_safe(object, next, key, v) if (json_is_null(v)) json_object_del(object, key);
}

int body_parse(struct chat_body *b, const char *text, size_t len, const struct body_defaults *d,
               body_translate *translate, struct err *e)
{
    json_error_t why = {0};
    *b = (struct chat_body){.sampling = d->sampling, .effort = d->effort};
    int values = BODY_VALUES;
    if (body_text_check(text, len, &values, e))
        return -1;
    json_t *root = body_text_load(text, len, JSON_REJECT_DUPLICATES, &b->notes, &why);
    if (!json_is_object(root)) {
        json_decref(root);
        return err_set(e, ERR_USAGE, "the body is not a JSON object%s%s", *why.text ? ": " : "", why.text);
    }
    drop_nulls(root);
    if (translate && !(root = translate(root, &b->notes, e)))
        return -1;
    if (messages_settle(root, d->result_pictures, &b->notes, e) || tools_settle(root, &b->notes, e)) {
        json_decref(root);
        return -1;
    }
    if (conversation_take(&b->talk, root, e))
        return -1;
    b->talk.chat.place = d->place;
    return body_read_members(b, root, e) || check_talk(b, e) || check_constraints(b, e) ? -1 : 0;
}

void body_free(struct chat_body *b)
{
    conversation_free(&b->talk);
    *b = (struct chat_body){0};
}
