/* body.c - see body.h. */
#include "serve/body.h"

#include "serve/picture.h"

#include <string.h>

/* ---- values -------------------------------------------------------------------------------------------- */

static int wrong(struct err *e, const char *name, const char *want)
{
    return err_set(e, ERR_USAGE, "'%s' must be %s", name, want);
}

static int read_bool(const json_t *v, const char *name, bool *out, struct err *e)
{
    if (!json_is_boolean(v))
        return wrong(e, name, "true or false");
    *out = json_is_true(v);
    return 0;
}

static int read_number(const json_t *v, const char *name, double most, float *out, struct err *e)
{
    if (!json_is_number(v) || json_number_value(v) < 0 || json_number_value(v) > most)
        return err_set(e, ERR_USAGE, "'%s' must be a number from 0 to %g", name, most);
    *out = (float)json_number_value(v);
    return 0;
}

static int read_int(const json_t *v, const char *name, int least, int most, int *out, struct err *e)
{
    if (!json_is_integer(v) || json_integer_value(v) < least || json_integer_value(v) > most)
        return err_set(e, ERR_USAGE, "'%s' must be a whole number from %d to %d", name, least, most);
    *out = (int)json_integer_value(v);
    return 0;
}

/* ---- members ------------------------------------------------------------------------------------------- */

typedef int read_member(struct chat_body *b, json_t *v, const char *name, struct err *e);

static int member_temperature(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    return read_number(v, name, 2, &b->sampling.temperature, e);
}

static int member_top_p(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    return read_number(v, name, 1, &b->sampling.top_p, e);
}

static int member_max_tokens(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    return read_int(v, name, 1, 1 << 20, &b->sampling.max_tokens, e);
}

static int member_seed(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    if (!json_is_integer(v))
        return wrong(e, name, "a whole number");
    b->seeded = true;
    b->seed = (uint64_t)json_integer_value(v);
    return 0;
}

static int member_stream(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    return read_bool(v, name, &b->stream, e);
}

static int member_stream_options(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    json_t *usage = json_object_get(v, "include_usage");
    return usage ? read_bool(usage, "stream_options.include_usage", &b->usage, e) : 0;
}

static int member_logprobs(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    return read_bool(v, name, &b->logprobs, e);
}

static int member_top_logprobs(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    return read_int(v, name, 0, BODY_LOGPROBS, &b->top_logprobs, e);
}

static int member_token_ids(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    return read_bool(v, name, &b->token_ids, e);
}

static int add_stop(struct chat_body *b, const json_t *v, struct err *e)
{
    size_t n = json_string_length(v);
    if (!json_is_string(v) || !n || n > BODY_STOP_LENGTH || strlen(json_string_value(v)) != n)
        return err_set(e, ERR_USAGE, "'stop' must be texts of 1 to %d bytes", BODY_STOP_LENGTH);
    if (b->n_stops == BODY_STOPS)
        return err_set(e, ERR_USAGE, "'stop' has more than %d texts", BODY_STOPS);
    b->stops[b->n_stops++] = json_string_value(v);
    return 0;
}

static int member_stop(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    json_t *one;
    size_t i;
    if (!json_is_array(v))
        return add_stop(b, v, e);
    json_array_foreach(v, i, one) if (add_stop(b, one, e)) return -1;
    return 0;
}

static int member_n(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    return json_integer_value(v) == 1 ? 0 : err_set(e, ERR_USAGE, "'n' can only be 1: ask again instead");
}

static int member_response_format(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    const char *type = json_string_value(json_object_get(v, "type"));
    if (type && !strcmp(type, "text"))
        return 0;
    if (type && !strcmp(type, "json_object")) {
        b->any_object = true;
        return 0;
    }
    if (!type || strcmp(type, "json_schema") != 0)
        return wrong(e, "response_format.type", "text, json_object or json_schema");
    b->schema = json_object_get(json_object_get(v, "json_schema"), "schema");
    return json_is_object(b->schema) ? 0 : wrong(e, "response_format.json_schema.schema", "an object");
}

/* vLLM's spelling, and "dialect" for clients whose reply format is one of ours. */
static int member_structured_outputs(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    const char *key;
    json_t *value;
    if (!json_is_object(v))
        return wrong(e, name, "an object");
    json_object_foreach(v, key, value)
    {
        if (!strcmp(key, "json") && json_is_object(value))
            b->schema = value;
        else if (!strcmp(key, "json_object"))
            b->any_object = json_is_true(value);
        else if (!strcmp(key, "dialect") && json_is_string(value))
            b->dialect = json_string_value(value);
        else if (!json_is_null(value))
            return err_set(e, ERR_USAGE,
                           "'structured_outputs.%s' is not supported: only json, json_object "
                           "and dialect",
                           key);
    }
    return 0;
}

static int member_guided_json(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    b->schema = v;
    return json_is_object(v) ? 0 : wrong(e, name, "an object");
}

static int member_tool_choice(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    static const char *const words[] = {"auto", "none", "required"};
    const char *word = json_string_value(v),
               *tool = json_string_value(json_object_get(json_object_get(v, "function"), "name"));
    for (int i = 0; word && i < 3; i++)
        if (!strcmp(word, words[i])) {
            b->tools = (enum tool_choice)i;
            return 0;
        }
    if (!tool)
        return wrong(e, name, "auto, none, required, or a function of 'tools'");
    b->tools = TOOLS_NAMED;
    b->tool = tool;
    return 0;
}

static int member_template(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    json_t *thinking = json_object_get(v, "thinking"), *enable = json_object_get(v, "enable_thinking");
    bool think = false;
    if (thinking && !enable)
        json_object_set(v, "enable_thinking", enable = thinking);
    if (enable && read_bool(enable, "chat_template_kwargs.enable_thinking", &think, e))
        return -1;
    return 0; /* conversation_take has read them all */
}

static int member_effort(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    const char *word = json_string_value(v);
    if (!word)
        return wrong(e, name, "a word");
    b->talk.chat.think =
        strcmp(word, "none") != 0 && strcmp(word, "minimal") != 0 ? CHAT_THINK_ON : CHAT_THINK_OFF;
    return 0;
}

/* Penalties and the like: fine as long as they do nothing. */
static int member_zero(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    bool nothing = (json_is_number(v) && !(json_number_value(v) < 0) && !(json_number_value(v) > 0)) ||
                   (json_is_object(v) && !json_object_size(v)) || json_is_false(v);
    return nothing ? 0 : err_set(e, ERR_USAGE, "'%s' is not supported", name);
}

static int member_one(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    double d = json_number_value(v);
    return d < 1 || d > 1 ? err_set(e, ERR_USAGE, "'%s' is not supported", name) : 0;
}

static int member_off(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    json_int_t n = json_integer_value(v);
    return n == 0 || n == -1 ? 0 : err_set(e, ERR_USAGE, "'%s' is not supported: use top_p", name);
}

static int member_ignored(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    return 0;
}

static const struct member {
    const char *name;
    read_member *read;
} members[] = {
    {"messages", member_ignored}, /* read by conversation_take, and tools */
    {"tools", member_ignored},
    {"model", member_ignored}, /* checked by the caller */
    {"temperature", member_temperature},
    {"top_p", member_top_p},
    {"max_tokens", member_max_tokens},
    {"max_completion_tokens", member_max_tokens},
    {"seed", member_seed},
    {"stream", member_stream},
    {"stream_options", member_stream_options},
    {"logprobs", member_logprobs},
    {"top_logprobs", member_top_logprobs},
    {"return_token_ids", member_token_ids},
    {"stop", member_stop},
    {"n", member_n},
    {"response_format", member_response_format},
    {"structured_outputs", member_structured_outputs},
    {"guided_json", member_guided_json},
    {"tool_choice", member_tool_choice},
    {"chat_template_kwargs", member_template},
    {"reasoning_effort", member_effort},
    {"frequency_penalty", member_zero},
    {"presence_penalty", member_zero},
    {"logit_bias", member_zero},
    {"min_p", member_zero},
    {"repetition_penalty", member_one},
    {"top_k", member_off},
    {"user", member_ignored},
    {"metadata", member_ignored},
    {"store", member_ignored},
    {"service_tier", member_ignored},
    {"safety_identifier", member_ignored},
    {"prompt_cache_key", member_ignored},
    {"parallel_tool_calls", member_ignored},
};

static int read_members(struct chat_body *b, json_t *root, struct err *e)
{
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        size_t i = 0, n = sizeof members / sizeof *members;
        while (i < n && strcmp(members[i].name, key) != 0)
            i++;
        if (i == n)
            return err_set(e, ERR_USAGE, "unknown member '%s'", key);
        if (!json_is_null(value) && members[i].read(b, value, key, e))
            return -1;
    }
    return 0;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

/* OpenAI's newer name of the system's role. */
static void rename_developer(json_t *root)
{
    json_t *message;
    size_t i;
    json_array_foreach(json_object_get(root, "messages"), i, message)
    {
        const char *role = json_string_value(json_object_get(message, "role"));
        if (role && !strcmp(role, "developer"))
            json_object_set_new(message, "role", json_string("system"));
    }
}

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
    json_t *tool;
    size_t i;
    json_array_foreach(json_object_get(b->talk.root, "tools"), i, tool) if (
        !json_is_string(json_object_get(json_object_get(tool, "function"),
                                        "name"))) return err_set(e, ERR_USAGE,
                                                                 "tool %zu must be a function with a name",
                                                                 i + 1);
    if ((b->tools == TOOLS_REQUIRED || b->tools == TOOLS_NAMED) && !b->talk.chat.n_tools)
        return err_set(e, ERR_USAGE, "'tool_choice' without 'tools'");
    if (b->tools == TOOLS_NAMED && !has_tool(b, b->tool))
        return err_set(e, ERR_USAGE, "'tool_choice' names '%.60s', which is not one of 'tools'", b->tool);
    return 0;
}

static int check_talk(const struct chat_body *b, struct err *e)
{
    const struct chat_conversation *c = &b->talk.chat;
    for (int i = 1; i < c->n; i++)
        if (c->messages[i].role == CHAT_SYSTEM)
            return err_set(e, ERR_USAGE, "message %d: a system message can only be the first", i + 1);
    if (c->messages[c->n - 1].role != CHAT_USER && c->messages[c->n - 1].role != CHAT_TOOL)
        return err_set(e, ERR_USAGE, "the last message must be a user's or a tool's");
    for (int i = 0; i < b->talk.n_images; i++)
        if (picture_check(b->talk.files[i], e))
            return -1;
    return check_tools(b, e);
}

static int check_constraints(const struct chat_body *b, struct err *e)
{
    int n = (b->schema != NULL) + b->any_object + (b->dialect != NULL) + (b->tools >= TOOLS_REQUIRED);
    if (n > 1)
        return err_set(e, ERR_USAGE, "a reply can have one constraint: a schema, or a tool that is called");
    if (b->top_logprobs && !b->logprobs)
        return err_set(e, ERR_USAGE, "'top_logprobs' needs 'logprobs'");
    return 0;
}

/* jansson recurses: deep nesting is refused before it is read. */
static int check_depth(const char *text, size_t len, struct err *e)
{
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < len; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted && (text[i] == '{' || text[i] == '[') && ++depth > BODY_DEPTH)
            return err_set(e, ERR_USAGE, "the JSON is nested deeper than %d", BODY_DEPTH);
        else if (!quoted && (text[i] == '}' || text[i] == ']'))
            depth--;
    }
    return 0;
}

int body_parse(struct chat_body *b, const char *text, size_t len, const struct body_defaults *d,
               body_translate *translate, struct err *e)
{
    json_error_t why = {0};
    *b = (struct chat_body){.sampling = d->sampling};
    if (check_depth(text, len, e))
        return -1;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(root)) {
        json_decref(root);
        return err_set(e, ERR_USAGE, "the body is not a JSON object%s%s", *why.text ? ": " : "", why.text);
    }
    if (translate && !(root = translate(root, e)))
        return -1;
    rename_developer(root);
    if (conversation_take(&b->talk, root, e))
        return -1;
    b->talk.chat.place = d->place;
    return read_members(b, root, e) || check_talk(b, e) || check_constraints(b, e) ? -1 : 0;
}

void body_free(struct chat_body *b)
{
    conversation_free(&b->talk);
    *b = (struct chat_body){0};
}
