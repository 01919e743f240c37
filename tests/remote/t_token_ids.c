/* t_token_ids.c - tests the token ids and log-probabilities that servers return with a reply. */
#include "check.h"

#include "remote/token_ids.h"

#include <math.h>
#include <stdlib.h>

/* Adds chunks, one JSON object each, and takes the ids. */
static void take(const char *const *chunks, struct llm_tokens *out)
{
    struct remote_reply r;
    remote_reply_init(&r);
    for (; *chunks; chunks++) {
        json_t *root = json_loads(*chunks, 0, NULL);
        assert_non_null(root);
        token_ids_add(&r, root, json_array_get(json_object_get(root, "choices"), 0));
        json_decref(root);
    }
    token_ids_take(&r, out);
    remote_reply_free(&r);
}

static void llm_ids_free(struct llm_tokens *k)
{
    free(k->ids);
    free(k->logprobs);
}

static void t_own(void **state)
{
    static const char *const chunks[] = {
        "{\"prompt_token_ids\": [5, 9, 9, 7], \"image_token_id\": 9, \"system_fingerprint\": "
        "\"fp_6482eaeb60e68401_v3\", \"choices\": [{}]}",
        "{\"choices\": [{\"token_ids\": [1, 2], \"token_logprobs\": [[-0.5, -0.25], null]}]}",
        "{\"choices\": [{\"token_ids\": [3], \"token_logprobs\": [[-2, -1]]}]}", "{\"choices\": []}", NULL};
    struct llm_tokens k = {0};
    take(chunks, &k);
    assert_non_null(k.ids);
    assert_int_equal(k.prompt, 4);
    assert_int_equal(k.n, 3);
    assert_int_equal(k.ids[3], 7);
    assert_int_equal(k.ids[6], 3);
    assert_int_equal(k.image_token, 9);
    assert_string_equal(k.weights, "6482eaeb60e68401");
    assert_true(k.logprobs[0] == -0.5F && k.logprobs[1] == -0.25F && isnan(k.logprobs[2]));
    assert_true(k.logprobs[4] == -2.0F && k.logprobs[5] == -1.0F);
    llm_ids_free(&k);
}

/* vLLM has one log-probability for each token, and only if they are requested. */
static void t_other(void **state)
{
    static const char *const whole[] = {
        "{\"prompt_token_ids\": [5], \"choices\": [{\"token_ids\": [1], \"logprobs\": {\"content\": "
        "[{\"token\": \"a\", \"logprob\": -0.75}]}}]}",
        NULL};
    struct llm_tokens k = {0};
    take(whole, &k);
    assert_non_null(k.ids);
    assert_true(k.logprobs[0] == -0.75F && k.logprobs[1] == -0.75F);
    assert_int_equal(k.image_token, -1);
    assert_string_equal(k.weights, "");
    llm_ids_free(&k);
}

static void t_incomplete(void **state)
{
    static const char *const cases[][3] = {
        {"{\"choices\": [{\"token_ids\": [1], \"token_logprobs\": [[-1, -1]]}]}"},
        {"{\"prompt_token_ids\": [5], \"choices\": [{\"token_ids\": [1, 2], \"token_logprobs\": [[-1, -1]]}]}"},
        {"{\"prompt_token_ids\": [5], \"choices\": [{\"token_ids\": [1]}]}"},
        {"{\"prompt_token_ids\": [5.5], \"choices\": [{\"token_ids\": [1], \"token_logprobs\": [[-1, -1]]}]}"},
        {"{\"prompt_token_ids\": [5], \"choices\": [{\"token_ids\": [-4], \"token_logprobs\": [[-1, -1]]}]}"},
        {"{\"prompt_token_ids\": \"x\", \"choices\": [{\"token_ids\": {}, \"token_logprobs\": 7}]}"},
    };
    struct llm_tokens k = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        take(cases[i], &k);
        if (k.ids)
            fail_msg("%s", cases[i][0]);
    }
    llm_ids_free(&k);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the ids of holorun serve are joined from chunks, with both log-probabilities and the weights",
          t_own),
    CLAIM("ids of other servers have the log-probability of their lists", t_other),
    CLAIM("ids without a prompt, with another number of log-probabilities or no numbers are left out",
          t_incomplete),
};

CHECK_MAIN()
