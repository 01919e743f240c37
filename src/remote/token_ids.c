/* token_ids.c - reads the token ids and log-probabilities of a server's replies. */
#include "remote/token_ids.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PROMPT = 4 << 20, MOST_REPLY = 1 << 20 };

/* Appends a list to a member of the collected ids. */
static void collect(struct remote_reply *r, const char *key, json_t *list, size_t most)
{
    if (!json_is_array(list) || (json_array_size(list) == 0 && r->tokens_of))
        return;
    r->tokens_of = r->tokens_of ? r->tokens_of : json_object();
    if (!json_object_get(r->tokens_of, key))
        json_object_set_new(r->tokens_of, key, json_array());
    json_t *all = json_object_get(r->tokens_of, key);
    if (json_array_size(all) + json_array_size(list) <= most)
        json_array_extend(all, list);
}

void token_ids_add(struct remote_reply *r, const json_t *root, const json_t *choice)
{
    json_t *ids = json_object_get(choice, "token_ids"), *prompt = json_object_get(root, "prompt_token_ids");
    if (json_is_array(prompt)) {
        collect(r, "prompt", prompt, MOST_PROMPT);
        json_object_set(r->tokens_of, "image", json_object_get(root, "image_token_id"));
        json_object_set(r->tokens_of, "weights", json_object_get(root, "system_fingerprint"));
    }
    if (!json_is_array(ids))
        return;
    json_t *pairs = json_object_get(choice, "token_logprobs");
    collect(r, "reply", ids, MOST_REPLY);
    collect(r, "logprobs", pairs ? pairs : json_object_get(json_object_get(choice, "logprobs"), "content"),
            MOST_REPLY);
}

static bool read_ids(const json_t *list, int32_t *to)
{
    const json_t *v;
    size_t i;
    json_array_foreach(list, i, v)
    {
        json_int_t id = json_is_integer(v) ? json_integer_value(v) : -1;
        if (id < 0 || id > INT32_MAX)
            return false;
        to[i] = (int32_t)id;
    }
    return true;
}

/* Reads a pair, null, or the object of a token with its only log-probability. */
static void read_logprob(const json_t *v, float pair[2])
{
    const json_t *one = json_object_get(v, "logprob");
    for (size_t k = 0; k < 2; k++) {
        const json_t *number = one ? one : json_array_get(v, k);
        pair[k] = json_is_number(number) ? (float)json_number_value(number) : NAN;
    }
}

/* Copies what identifies the weights: of `holorun serve` the hash of its model, as in a local run's run.json,
 * else the text that the server returned. */
static void read_weights(const json_t *fingerprint, char *to, size_t size)
{
    enum { FRONT = 3, DIGITS = 16 };
    const char *text = json_string_value(fingerprint);
    bool own = text && !strncmp(text, "fp_", FRONT) && strspn(text + FRONT, "0123456789abcdef") == DIGITS &&
               text[FRONT + DIGITS] == '_';
    snprintf(to, size, "%.*s", own ? DIGITS : (int)size, !text ? "" : own ? text + FRONT : text);
}

void token_ids_take(const struct remote_reply *r, struct llm_tokens *out)
{
    const json_t *prompt = json_object_get(r->tokens_of, "prompt"),
                 *reply = json_object_get(r->tokens_of, "reply"),
                 *logprobs = json_object_get(r->tokens_of, "logprobs"), *v;
    size_t n = json_array_size(reply), before = json_array_size(prompt), i;
    free(out->ids);
    free(out->logprobs);
    *out = (struct llm_tokens){.prompt = (int64_t)before, .n = (int)n, .image_token = -1};
    if (!n || !before || json_array_size(logprobs) != n)
        return;
    out->ids = xmalloc(before + n, sizeof *out->ids);
    out->logprobs = xmalloc(n, 2 * sizeof *out->logprobs);
    json_array_foreach(logprobs, i, v) read_logprob(v, out->logprobs + 2 * i);
    json_t *image = json_object_get(r->tokens_of, "image");
    out->image_token = json_is_integer(image) ? (int32_t)json_integer_value(image) : -1;
    read_weights(json_object_get(r->tokens_of, "weights"), out->weights, sizeof out->weights);
    if (read_ids(prompt, out->ids) && read_ids(reply, out->ids + before))
        return;
    free(out->ids);
    out->ids = NULL;
}
