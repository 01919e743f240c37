/* body_members.c - reads the members of a request except messages and tools; see body.h. */
#include "serve/body.h"

#include <math.h>
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

static int store_flag(const json_t *v, const char *name, double least, double most, void *out, struct err *e)
{
    return read_bool(v, name, out, e);
}

static int store_number(const json_t *v, const char *name, double least, double most, void *out,
                        struct err *e)
{
    double d = json_number_value(v);
    if (!json_is_number(v) || d < least || d > most)
        return err_set(e, ERR_USAGE, "'%s' must be a number from %g to %g", name, least, most);
    *(float *)out = (float)d;
    return 0;
}

/* Returns whether a number is whole; a fraction of zeros is accepted. */
static bool is_whole(const json_t *v, double *out)
{
    *out = json_number_value(v);
    return json_is_integer(v) || (json_is_real(v) && *out == floor(*out));
}

static int store_whole(const json_t *v, const char *name, double least, double most, void *out, struct err *e)
{
    double d;
    if (!is_whole(v, &d) || d < least || d > most)
        return err_set(e, ERR_USAGE, "'%s' must be a whole number from %.0f to %.0f", name, least, most);
    *(int *)out = (int)d;
    return 0;
}

/* ---- members ------------------------------------------------------------------------------------------- */

typedef int read_member(struct chat_body *b, json_t *v, const char *name, struct err *e);

static int member_top_k(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    if (store_whole(v, name, -1, 1 << 30, &b->sampling.top_k, e))
        return -1;
    b->sampling.top_k = b->sampling.top_k < 0 ? 0 : b->sampling.top_k;
    return 0;
}

/* Reads the maximum number of tokens; -1 means no limit, as in llama.cpp. */
static int member_max_tokens(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    double d;
    if (!is_whole(v, &d) || (d < 1 && (d > -1 || d < -1)))
        return wrong(e, name, "a whole number above 0");
    b->sampling.max_tokens = d < 0 ? 0 : d < 1 << 20 ? (int)d : 1 << 20;
    return 0;
}

static int member_seed(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    double d;
    if (!is_whole(v, &d) || fabs(d) > 0x1p63)
        return wrong(e, name, "a whole number");
    b->seeded = true;
    b->seed = json_is_integer(v) ? (uint64_t)json_integer_value(v) : (uint64_t)(int64_t)(d / 2) * 2;
    return 0;
}

static int member_stream_options(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    const char *key;
    json_t *value;
    json_object_foreach(v, key, value)
    {
        if (!strcmp(key, "include_usage")) {
            if (!json_is_null(value) && read_bool(value, "stream_options.include_usage", &b->usage, e))
                return -1;
        } else if (strcmp(key, "include_obfuscation") != 0) {
            notes_ignore(&b->notes, "stream_options.%.60s", key);
        }
    }
    return 0;
}

static int add_stop(struct chat_body *b, const json_t *v, struct err *e)
{
    size_t n = json_string_length(v);
    if (!json_is_string(v) || n > BODY_STOP_LENGTH || strlen(json_string_value(v)) != n)
        return err_set(e, ERR_USAGE, "'stop' must be a string of at most %d bytes, or a list of strings",
                       BODY_STOP_LENGTH);
    if (!n) {
        notes_ignore(&b->notes, "stop: an empty string");
        return 0;
    }
    if (b->n_stops == BODY_STOPS)
        return err_set(e, ERR_USAGE, "'stop' has more than %d strings", BODY_STOPS);
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
    int n;
    return store_whole(v, name, 1, 1, &n, e)
               ? err_set(e, ERR_USAGE, "'n' must be 1: send several requests instead")
               : 0;
}

static int member_response_format(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    const char *type = json_string_value(json_object_get(v, "type"));
    if (type && !strcmp(type, "text"))
        return 0;
    if (type && !strcmp(type, "json_object")) {
        b->schema = json_object_get(v, "schema");
        b->any_object = !json_object_size(b->schema);
        b->schema = b->any_object ? NULL : b->schema;
        return 0;
    }
    if (!type || strcmp(type, "json_schema") != 0)
        return wrong(e, "response_format.type", "text, json_object or json_schema");
    b->schema = json_object_get(json_object_get(v, "json_schema"), "schema");
    b->schema = b->schema ? b->schema : json_object_get(v, "schema");
    return json_is_object(b->schema) ? 0 : wrong(e, "response_format.json_schema.schema", "an object");
}

/* Reads vLLM's structured_outputs, extended by "dialect" for clients that use a reply format of this
 * program. */
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

/* Reads the choice in one of the forms that tools_settle() produces. */
static int member_tool_choice(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    static const char *const words[] = {"auto", "none", "required"};
    const char *word = json_string_value(v);
    for (int i = 0; word && i < 3; i++)
        if (!strcmp(word, words[i])) {
            b->tools = (enum tool_choice)i;
            return 0;
        }
    b->tools = TOOLS_NAMED;
    b->tool = json_string_value(json_object_get(json_object_get(v, "function"), "name"));
    return 0;
}

static void set_think(struct chat_body *b, bool think)
{
    b->talk.chat.think = think ? CHAT_THINK_ON : CHAT_THINK_OFF;
}

static int read_think(struct chat_body *b, const json_t *v, const char *name, struct err *e)
{
    bool think = false;
    if (read_bool(v, name, &think, e))
        return -1;
    set_think(b, think);
    return 0;
}

static int member_effort(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    const char *word = json_string_value(v);
    if (!word)
        return wrong(e, name, "a word");
    set_think(b, strcmp(word, "none") != 0 && strcmp(word, "minimal") != 0);
    return 0;
}

static int member_think(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    return json_is_string(v) ? member_effort(b, v, name, e) : read_think(b, v, name, e);
}

/* Reads the template arguments; the template gets all of them (conversation.h). "thinking" is an alias of
 * enable_thinking. */
static int member_template(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    json_t *think = json_object_get(v, "enable_thinking"), *effort = json_object_get(v, "reasoning_effort");
    think = think ? think : json_object_get(v, "thinking");
    if (json_is_string(effort) && member_effort(b, effort, "chat_template_kwargs.reasoning_effort", e))
        return -1;
    return think && !json_is_null(think) ? read_think(b, think, "chat_template_kwargs.enable_thinking", e)
                                         : 0;
}

/* Reads {"effort": "low"} or {"enabled": false}. */
static int member_reasoning(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    json_t *effort = json_object_get(v, "effort"), *enabled = json_object_get(v, "enabled");
    if (json_is_string(effort))
        return member_effort(b, effort, name, e);
    return json_is_boolean(enabled) ? read_think(b, enabled, name, e) : 0;
}

/* Reads {"type": "enabled", "budget_tokens": 1000}; "adaptive" lets the model choose. */
static int member_thinking(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    const char *type = json_string_value(json_object_get(v, "type"));
    if (json_is_boolean(v))
        return read_think(b, v, name, e);
    if (type && (!strcmp(type, "enabled") || !strcmp(type, "disabled")))
        set_think(b, !strcmp(type, "enabled"));
    if (json_object_get(v, "budget_tokens"))
        notes_ignore(&b->notes, "thinking.budget_tokens");
    return 0;
}

/* Returns whether a value has no effect: false, 0, "", [] or {}. */
static bool is_nothing(const json_t *v)
{
    double d = json_number_value(v);
    return json_is_false(v) || (json_is_number(v) && !(d < 0) && !(d > 0)) ||
           (json_is_string(v) && !json_string_length(v)) || (json_is_array(v) && !json_array_size(v)) ||
           (json_is_object(v) && !json_object_size(v));
}

static int refuse_member(const char *name, struct err *e)
{
    return err_set(e, ERR_USAGE, "'%s' is not supported and cannot be ignored because it changes the reply",
                   name);
}

static int member_one(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    double d = json_number_value(v);
    return json_is_number(v) && !(d < 1) && !(d > 1) ? 0 : refuse_member(name, e);
}

static int member_true(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    return json_is_true(v) ? 0 : refuse_member(name, e);
}

static int member_off(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    double d = json_number_value(v);
    return is_nothing(v) || (json_is_number(v) && d < 0) ? 0 : refuse_member(name, e);
}

static int member_modalities(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    json_t *one;
    size_t i;
    json_array_foreach(v, i, one)
    {
        const char *word = json_string_value(one);
        if (!word || strcmp(word, "text") != 0)
            return err_set(e, ERR_USAGE, "'modalities' has '%.40s', but only 'text' is supported",
                           word ? word : "");
    }
    return 0;
}

static int member_old_functions(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    const char *word = json_string_value(v);
    return is_nothing(v) || (word && (!strcmp(word, "none") || !strcmp(word, "auto")))
               ? 0
               : err_set(e, ERR_USAGE, "'%s' is not supported: use 'tools' and 'tool_choice'", name);
}

/* Notes the member as ignored unless its value has no effect. */
static int member_named_if_true(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    if (!is_nothing(v))
        notes_ignore(&b->notes, "%s", name);
    return 0;
}

static int member_named_if_false(struct chat_body *b, json_t *v, const char *name, struct err *e)
{
    if (!json_is_true(v))
        notes_ignore(&b->notes, "%s", name);
    return 0;
}

#define NUMBER(name, member, least, most)                                                                    \
    name, NULL, store_number, offsetof(struct chat_body, member), least, most
static const struct member {
    const char *name;
    read_member *read; /* NULL: the value is stored at `at` */
    int (*store)(const json_t *v, const char *name, double least, double most, void *to, struct err *e);
    size_t at;
    double least, most;
} members[] = {
    {NUMBER("temperature", sampling.temperature, 0, 100)},
    {NUMBER("top_p", sampling.top_p, 0, 1)},
    {"top_k", member_top_k},
    {NUMBER("min_p", sampling.min_p, 0, 1)},
    {NUMBER("presence_penalty", sampling.presence_penalty, -2, 2)},
    {NUMBER("frequency_penalty", sampling.frequency_penalty, -2, 2)},
    {NUMBER("repetition_penalty", sampling.repetition_penalty, 0.01, 100)},
    {"max_tokens", member_max_tokens},
    {"max_completion_tokens", member_max_tokens},
    {"n_predict", member_max_tokens},
    {"seed", member_seed},
    {"stream", NULL, store_flag, offsetof(struct chat_body, stream)},
    {"stream_options", member_stream_options},
    {"logprobs", NULL, store_flag, offsetof(struct chat_body, logprobs)},
    {"top_logprobs", NULL, store_whole, offsetof(struct chat_body, top_logprobs), 0, BODY_LOGPROBS},
    {"return_token_ids", NULL, store_flag, offsetof(struct chat_body, token_ids)},
    {"stop", member_stop},
    {"n", member_n},
    {"response_format", member_response_format},
    {"structured_outputs", member_structured_outputs},
    {"guided_json", member_guided_json},
    {"json_schema", member_guided_json},
    {"tool_choice", member_tool_choice},
    {"chat_template_kwargs", member_template},
    {"reasoning_effort", member_effort},
    {"reasoning", member_reasoning},
    {"thinking", member_thinking},
    {"enable_thinking", member_think},
    {"think", member_think},
    {"modalities", member_modalities},
    {"functions", member_old_functions},
    {"function_call", member_old_functions},
    {"best_of", member_one},
    {"length_penalty", member_one},
    {"repeat_penalty", member_one},
    {"typical_p", member_one},
    {"tfs_z", member_one},
    {"add_generation_prompt", member_true},
    {"truncate_prompt_tokens", member_off},
    {"store", member_named_if_true},
    {"background", member_named_if_true},
    {"parallel_tool_calls", member_named_if_false},
};

/* These change the reply: rejected unless the value has no effect. */
static const char zero_members[] =
    "logit_bias|audio|use_beam_search|min_tokens|ignore_eos|stop_token_ids|bad_words|allowed_token_ids|"
    "logits_processors|guided_regex|guided_choice|guided_grammar|regex|ebnf|grammar|format|top_a|"
    "mirostat|mirostat_mode|dry_multiplier|xtc_probability|dynatemp_range|echo|suffix|chat_template|"
    "documents|continue_final_message|include_stop_str_in_output";

/* The first three are read elsewhere (conversation.c, tools.c, the caller); the others have no effect on a
 * reply of this server. */
static const char ignored_members[] =
    "messages|tools|model|user|metadata|service_tier|safety_identifier|prompt_cache_key|"
    "prompt_cache_retention|cache_prompt|cache_control|skip_special_tokens";

static int read_one(struct chat_body *b, json_t *v, const char *key, struct err *e)
{
    if (text_choice(ignored_members, key) >= 0)
        return 0;
    if (text_choice(zero_members, key) >= 0)
        return is_nothing(v) ? 0 : refuse_member(key, e);
    for (const struct member *m = members; m < members + sizeof members / sizeof *members; m++)
        if (!strcmp(m->name, key))
            return m->read ? m->read(b, v, key, e)
                           : m->store(v, key, m->least, m->most, (char *)b + m->at, e);
    notes_ignore(&b->notes, "%.60s", key);
    return 0;
}

int body_read_members(struct chat_body *b, json_t *root, struct err *e)
{
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value) if (!json_is_null(value) && read_one(b, value, key, e)) return -1;
    return 0;
}
