/* t_export_train.c - tests exports for training: token ids, masks, probabilities, images, and the steps of a
 * trajectory.
 */
#include "exported.h"

#include "check.h"

#include "base/file.h"
#include "base/image.h"

#include <math.h>

static void check_numbers(const json_t *line)
{
    const json_t *ids = json_object_get(line, "completion_ids"),
                 *mask = json_object_get(line, "completion_mask"),
                 *plain = json_object_get(line, "completion_logprobs"),
                 *masked = json_object_get(line, "completion_logprobs_masked");
    size_t n = json_array_size(ids);
    double sums[2] = {0, 0};
    assert_true(n && json_array_size(mask) == n && json_array_size(plain) == n &&
                json_array_size(masked) == n);
    for (size_t k = 0; k < n; k++) {
        double p = json_number_value(json_array_get(plain, k)),
               q = json_number_value(json_array_get(masked, k));
        bool sampled = json_integer_value(json_array_get(mask, k)) == 1;
        assert_int_equal(json_is_null(json_array_get(plain, k)), !sampled);
        assert_true(json_is_number(json_array_get(masked, k)));
        sums[0] += p;
        sums[1] += q;
        assert_true(q <= 0 && p <= 0 && (sampled || q == 0));
        assert_true(!sampled || q >= p - 1e-4); /* a mask removes mass from other tokens */
    }
    assert_true(sums[1] > sums[0]);
}

static void check_images(const char *to, const json_t *line)
{
    const json_t *images = json_object_get(line, "images"),
                 *spans = json_object_get(line, "image_token_span"),
                 *ids = json_object_get(line, "prompt_ids");
    size_t n = json_array_size(images);
    assert_true(n >= 1 && n <= 2 && json_array_size(spans) == n);
    for (size_t i = 0; i < n; i++) {
        const json_t *span = json_array_get(spans, i);
        int64_t a = json_integer_value(json_array_get(span, 0)),
                b = json_integer_value(json_array_get(span, 1));
        assert_int_equal(b - a, 300); /* rows of a 640x480 screen of this model */
        for (int64_t k = a; k < b; k++)
            assert_int_equal(json_integer_value(json_array_get(ids, (size_t)k)),
                             json_integer_value(json_array_get(ids, (size_t)a)));
        char *path = xasprintf("%s/%s", to, json_string_value(json_array_get(images, i)));
        struct image im;
        assert_int_equal(image_read_png(&im, path, NULL), 0);
        image_free(&im);
        free(path);
    }
}

/* Checks that the prompt has as many tokens as the run recorded. */
static void check_prompt(const struct record *r, const json_t *line)
{
    int known = 0;
    for (int i = 0; i < r->n; i++) {
        const struct event *v = &r->events[i];
        if (strcmp(v->kind, "generate") != 0 || v->step != field_int(line, "step"))
            continue;
        assert_int_equal(json_array_size(json_object_get(line, "prompt_ids")),
                         field_int(v->fields, "prompt_tokens"));
        known++;
    }
    assert_true(known > 0);
}

static void t_rl(void **state)
{
    char *to = exported_as("rl", NULL);
    json_t *list = exported_lines(to, "trajectory.jsonl"), *line;
    size_t i, n = json_array_size(list);
    struct record r;
    assert_int_equal(record_open(&r, exported_run(), NULL), 0);
    assert_true(n >= 4);
    json_array_foreach(list, i, line)
    {
        exported_has(
            line,
            "s:env s:traj_id i:step a:prompt_ids a:completion_ids a:completion_mask a:completion_logprobs "
            "a:completion_logprobs_masked f:temperature f:top_p i:seed a:images a:image_token_span F:reward "
            "b:done S:verdict F:advantage");
        assert_int_equal(field_int(line, "seed"), 7);
        assert_true(fabs(field_number(line, "temperature") - 0.9) < 1e-6);
        assert_int_equal(field_bool(line, "done"), i + 1 == n);
        check_numbers(line);
        check_prompt(&r, line);
        check_images(to, line);
    }
    /* A prompt extends the conversation before it, so the first tokens are equal. */
    const json_t *p = json_object_get(json_array_get(list, 0), "prompt_ids"),
                 *q = json_object_get(json_array_get(list, 1), "prompt_ids");
    for (size_t k = 0; k < 4; k++)
        assert_int_equal(json_integer_value(json_array_get(p, k)), json_integer_value(json_array_get(q, k)));
    exported_private(to);
    record_free(&r);
    json_decref(list);
    free(to);
}

/* Appends the ids of prompt and response of an output; returns the number that the model chose. */
static int64_t chosen_in(const json_t *line, json_t *ids)
{
    const json_t *mask = json_object_get(line, "response_mask"),
                 *logprobs = json_object_get(line, "response_logprobs");
    size_t n = json_array_size(json_object_get(line, "response_ids"));
    int64_t chosen = 0;
    json_array_extend(ids, json_object_get(line, "prompt_ids"));
    json_array_extend(ids, json_object_get(line, "response_ids"));
    assert_true(n && json_array_size(mask) == n && json_array_size(logprobs) == n);
    for (size_t i = 0; i < n; i++) {
        bool mine = json_integer_value(json_array_get(mask, i)) == 1;
        assert_true(mine ? json_number_value(json_array_get(logprobs, i)) <= 0
                         : json_number_value(json_array_get(logprobs, i)) == 0);
        chosen += mine;
    }
    return chosen;
}

/* Each reply is in one output, after its prompt. */
static void t_verl(void **state)
{
    char *to = exported_as("verl", "--reward=0.5"), *rl = exported_as("rl", NULL);
    json_t *outputs = exported_lines(to, "outputs.jsonl"), *replies = exported_lines(rl, "trajectory.jsonl"),
           *line;
    size_t k = 0, i, n = json_array_size(replies);
    int64_t chosen = 0, sampled = 0;
    json_array_foreach(outputs, i, line)
    {
        json_t *ids = json_array(), *reply;
        chosen += chosen_in(line, ids);
        assert_int_equal(json_is_null(json_object_get(line, "reward_score")),
                         i + 1 < json_array_size(outputs));
        assert_true(json_array_size(json_object_get(json_object_get(line, "multi_modal_data"), "images")));
        for (; (reply = json_array_get(replies, k)); k++) {
            json_t *want = json_copy(json_object_get(reply, "prompt_ids"));
            json_array_extend(want, json_object_get(reply, "completion_ids"));
            size_t same = 0;
            while (same < json_array_size(want) &&
                   json_equal(json_array_get(want, same), json_array_get(ids, same)))
                same++;
            bool here = same == json_array_size(want);
            json_decref(want);
            if (!here)
                break;
        }
        json_decref(ids);
    }
    assert_int_equal(k, n);
    json_array_foreach(replies, i, line)
    {
        size_t j;
        const json_t *m;
        json_array_foreach(json_object_get(line, "completion_mask"), j, m) sampled += json_integer_value(m);
    }
    assert_int_equal(chosen, sampled);
    check_note("%zu replies in %zu outputs", n, json_array_size(outputs));
    json_decref(outputs);
    json_decref(replies);
    free(to);
    free(rl);
}

static size_t count_of(const json_t *list, json_int_t value)
{
    const json_t *v;
    size_t i, n = 0;
    json_array_foreach(list, i, v) n += json_integer_value(v) == value;
    return n;
}

static void t_atif(void **state)
{
    char *to = exported_as("atif", "--reward=0.5");
    json_t *whole = json_array_get(exported_lines(to, "trajectory.json"), 0), *step;
    size_t i, images = 0, forced = 0;
    assert_string_equal(field_text(whole, "schema_version"), "ATIF-v1.7");
    json_array_foreach(json_object_get(whole, "steps"), i, step)
    {
        assert_int_equal(field_int(step, "step_id"), (int)i + 1);
        assert_string_equal(field_text(step, "source"), i ? "agent" : "user");
        const json_t *metrics = json_object_get(step, "metrics"),
                     *mask = json_object_get(json_object_get(metrics, "extra"), "completion_mask");
        size_t tokens = json_array_size(json_object_get(metrics, "completion_token_ids"));
        assert_int_equal(json_array_size(json_object_get(metrics, "logprobs")), tokens);
        assert_int_equal(json_array_size(mask), tokens);
        forced += tokens > 0 && count_of(mask, 0) > 0;
        const json_t *calls = json_object_get(step, "tool_calls"), *result;
        size_t k;
        json_array_foreach(json_object_get(json_object_get(step, "observation"), "results"), k, result)
        {
            assert_string_equal(field_text(result, "source_call_id"),
                                field_text(json_array_get(calls, k), "tool_call_id"));
            images += json_array_size(json_object_get(result, "content")) == 2;
        }
    }
    assert_true(i >= 4 && images >= 2 && forced > 0);
    char *first = xasprintf("%s/frames/000000.png", to);
    assert_true(file_exists(first));
    exported_private(to);
    free(first);
    free(to);
}

static const struct CMUnitTest tests[] = {
    CLAIM("rl: ids, probabilities before and after the mask, images and their rows", t_rl),
    CLAIM("verl: each reply is in one output, and the mask is 1 for tokens that the model chose", t_verl),
    CLAIM("atif: numbered steps, results that name their calls, a log-probability for each token", t_atif),
};

CHECK_MAIN()
