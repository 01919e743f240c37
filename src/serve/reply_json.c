/* reply_json.c - formats replies as OpenAI chat completions; see reply_json.h.
 *
 * Extensions of OpenAI's API: reasoning (and its older name reasoning_content), token_ids and
 * prompt_token_ids as in vLLM, and weights_version: per token if log-probabilities are requested, and as the
 * list "weights_versions" next to token_ids. Also next to token_ids, "token_logprobs" has a pair for each
 * token, without and with the constraint, or null if the constraint allowed no other token; next to
 * prompt_token_ids, "image_token_id" is the id at the positions of images. */
#include "serve/reply_json.h"
#include "serve/api.h"

#include "base/json.h"
#include "model/config.h"

#include <math.h>
#include <string.h>

/* ---- tokens ------------------------------------------------------------------------------------------ */

/* Returns a log-probability that JSON can hold. */
static double finite_logprob(float logprob)
{
    return logprob > -9999 ? (double)logprob : -9999.0;
}

static json_t *token_json(const struct completion *c, int32_t id, double logprob)
{
    size_t n;
    const char *bytes = tokenizer_bytes(engine_tokenizer(c->weights->engine), id, &n);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer((unsigned char)bytes[i]));
    return json_pack("{s:o, s:f, s:o}", "token", json_clean_stringn(bytes, n), "logprob",
                     logprob > -9999 ? logprob : -9999.0, "bytes", list);
}

static json_t *logprobs_json(const struct completion *c, int from, int to)
{
    json_t *list = json_array();
    int width = c->body.top_logprobs;
    for (int i = from; i < to; i++) {
        if (c->tokens[i].stop && !c->body.token_ids)
            continue;
        json_t *token = token_json(c, c->tokens[i].id, (double)c->tokens[i].logprob), *top = json_array();
        for (int k = 0; k < width; k++) {
            const struct token_alternative *a = &c->alternatives[(ptrdiff_t)i * width + k];
            if (a->id >= 0)
                json_array_append_new(top, token_json(c, a->id, a->p > 0 ? log((double)a->p) : -9999));
        }
        json_object_set_new(token, "top_logprobs", top);
        json_object_set_new(token, "weights_version", json_integer(c->tokens[i].version));
        json_array_append_new(list, token);
    }
    return json_pack("{s:o, s:n}", "content", list, "refusal");
}

static void set_ids(json_t *choice, const struct completion *c, int from, int to)
{
    json_t *ids = json_array(), *versions = json_array(), *logprobs = json_array();
    for (int i = from; i < to; i++) {
        const struct completion_token *t = &c->tokens[i];
        json_array_append_new(ids, json_integer(t->id));
        json_array_append_new(versions, json_integer(t->version));
        json_array_append_new(
            logprobs, t->forced ? json_null()
                                : json_pack("[f, f]", finite_logprob(t->before), finite_logprob(t->logprob)));
    }
    json_object_set_new(choice, "token_ids", ids);
    json_object_set_new(choice, "token_logprobs", logprobs);
    json_object_set_new(choice, "weights_versions", versions);
}

static void set_prompt_ids(json_t *root, const struct completion *c)
{
    const struct model_config *model = engine_config(c->weights->engine);
    json_t *ids = json_array();
    for (int64_t i = 0; i < c->prompt_tokens; i++)
        json_array_append_new(ids, json_integer(c->prompt[i]));
    json_object_set_new(root, "prompt_token_ids", ids);
    json_object_set_new(root, "image_token_id",
                        model->vision ? json_integer(model->image_token) : json_null());
}

static json_t *usage_json(const struct completion *c)
{
    return json_pack("{s:I, s:i, s:I, s:{s:I}}", "prompt_tokens", (json_int_t)c->prompt_tokens,
                     "completion_tokens", c->n, "total_tokens", (json_int_t)(c->prompt_tokens + c->n),
                     "prompt_tokens_details", "cached_tokens", (json_int_t)c->cached_tokens);
}

/* ---- complete ---------------------------------------------------------------------------------------- */

static json_t *head(const struct completion *c, const char *object)
{
    char print[48];
    snprintf(print, sizeof print, "fp_%016llx_v%d", (unsigned long long)engine_hash(c->weights->engine),
             c->weights->version);
    return json_pack("{s:s, s:s, s:I, s:s, s:s}", "id", c->id, "object", object, "created",
                     (json_int_t)c->created, "model", c->service->model, "system_fingerprint", print);
}

static void whole(const struct completion *c, struct buf *out)
{
    json_t *root = head(c, "chat.completion");
    json_t *choice = json_pack("{s:i, s:o, s:s}", "index", 0, "message", completion_message(c),
                               "finish_reason", completion_finish(c));
    json_object_set_new(choice, "logprobs", c->body.logprobs ? logprobs_json(c, 0, c->n) : json_null());
    if (c->body.token_ids) {
        set_ids(choice, c, 0, c->n);
        set_prompt_ids(root, c);
    }
    json_object_set_new(root, "choices", json_pack("[o]", choice));
    json_object_set_new(root, "usage", usage_json(c));
    api_put(out, root);
}

/* ---- streamed ---------------------------------------------------------------------------------------- */

/* Sends one chunk; takes ownership of delta. */
static void put_event(struct reply_events *s, json_t *delta, const char *finish, bool tokens)
{
    const struct completion *c = s->of;
    json_t *root = head(c, "chat.completion.chunk");
    json_t *choice = json_pack("{s:i, s:o, s:s?}", "index", 0, "delta", delta, "finish_reason", finish);
    bool some = tokens && s->told < c->n;
    json_object_set_new(choice, "logprobs",
                        some && c->body.logprobs ? logprobs_json(c, s->told, c->n) : json_null());
    if (some && c->body.token_ids)
        set_ids(choice, c, s->told, c->n);
    if (some)
        s->told = c->n;
    json_object_set_new(root, "choices", json_pack("[o]", choice));
    if (c->body.usage)
        json_object_set_new(root, "usage", json_null());
    if (c->body.token_ids && !tokens && !finish)
        set_prompt_ids(root, c);
    buf_puts(s->out, "data: ");
    api_put(s->out, root);
    buf_puts(s->out, "\n\n");
}

static void begin(struct reply_events *s)
{
    put_event(s, json_pack("{s:s, s:s}", "role", "assistant", "content", ""), NULL, false);
}

static void text(struct reply_events *s, enum reply_part part, const char *bytes, size_t n)
{
    json_auto_t *value = json_clean_stringn(bytes, n);
    json_t *delta = json_pack("{s:O}", part == REPLY_THOUGHT ? "reasoning" : "content", value);
    if (part == REPLY_THOUGHT)
        json_object_set(delta, "reasoning_content", value);
    put_event(s, delta, NULL, true);
}

static void put_calls(struct reply_events *s)
{
    json_t *call, *calls = json_array();
    size_t i;
    json_array_foreach(s->of->calls, i, call)
    {
        json_t *copy = json_copy(call);
        json_object_set_new(copy, "index", json_integer((json_int_t)i));
        json_array_append_new(calls, copy);
    }
    put_event(s, json_pack("{s:o}", "tool_calls", calls), NULL, true);
}

static void end(struct reply_events *s)
{
    const struct completion *c = s->of;
    if (c->calls)
        put_calls(s);
    put_event(s, json_object(), completion_finish(c), true);
    if (c->body.usage) {
        json_t *root = head(c, "chat.completion.chunk");
        json_object_set_new(root, "choices", json_array());
        json_object_set_new(root, "usage", usage_json(c));
        buf_puts(s->out, "data: ");
        api_put(s->out, root);
        buf_puts(s->out, "\n\n");
    }
    buf_puts(s->out, "data: [DONE]\n\n");
}

static void broken(struct reply_events *s, const char *message)
{
    buf_puts(s->out, "data: ");
    reply_json_error(s->out, message, "server_error", NULL);
    buf_puts(s->out, "\n\n");
}

static const char *error_type(int status)
{
    return status == 401   ? "authentication_error"
           : status == 403 ? "permission_error"
           : status == 404 ? "not_found_error"
           : status == 429 ? "rate_limit_error"
           : status >= 500 ? "server_error"
                           : "invalid_request_error";
}

static const char *error_code(int status, const char *message)
{
    return strstr(message, "model's context") ? "context_length_exceeded"
           : status == 401                    ? "invalid_api_key"
           : status == 404                    ? "not_found"
           : status == 413                    ? "body_too_large"
           : status == 429                    ? "too_many_requests"
                                              : NULL;
}

static void refusal(struct buf *out, int status, const char *message)
{
    reply_json_error(out, message, error_type(status), error_code(status, message));
}

const struct api api_chat = {.path = "/v1/chat/completions", API_FUNCTIONS, .refusal = refusal};

/* ---- errors and lists ---------------------------------------------------------------------------------- */

void reply_json_error(struct buf *out, const char *message, const char *type, const char *code)
{
    json_t *text = json_clean_string(message);
    api_put(out, json_pack("{s:{s:o, s:s, s:n, s:s?}}", "error", "message", text, "type", type, "param",
                           "code", code));
}

static json_t *model_json(const struct service *s)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:s}", "id", s->model, "object", "model", "created",
                     (json_int_t)s->opened, "owned_by", "holorun", "dialect", s->dialect);
}

void reply_json_model(const struct service *s, struct buf *out)
{
    api_put(out, model_json(s));
}

void reply_json_models(const struct service *s, struct buf *out)
{
    api_put(out, json_pack("{s:s, s:[o]}", "object", "list", "data", model_json(s)));
}
