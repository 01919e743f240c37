/* export_verl.c - exports a run as agent loop outputs for the verl trainer.
 *
 * An output is a prompt and everything that follows it in the same conversation: replies of the model, with
 * mask 1, and the text between them and forced tokens, with mask 0. A new output begins when the conversation
 * was not only extended, because old screenshots were removed or a reply was edited. The trainer uses the
 * reward of the last output for the whole run. Log-probabilities are those before the logit mask, because the
 * trainer recomputes them without it; they are 0 where the mask is 0. */
#include "replay/export_replies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct output {
    int32_t *ids; /* [n], beginning with the prompt, `prompt` ids */
    float *logprobs;
    bool *mask;
    int64_t n, prompt, cap;
    json_t *images;
    int turns, first_step, last_step;
    json_t *sampler; /* of its first reply */
    double write_s;  /* time the model took, in seconds */
};

static void append(struct output *p, int32_t id, bool mask, float logprob)
{
    if (p->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 1024;
        p->ids = xrealloc(p->ids, (unsigned long)p->cap, sizeof *p->ids);
        p->logprobs = xrealloc(p->logprobs, (unsigned long)p->cap, sizeof *p->logprobs);
        p->mask = xrealloc(p->mask, (unsigned long)p->cap, sizeof *p->mask);
    }
    p->ids[p->n] = id;
    p->mask[p->n] = mask;
    p->logprobs[p->n++] = logprob;
}

static int end_output(struct replies *x, bool last, struct err *e)
{
    struct output *p = x->arg;
    if (!p->n)
        return 0;
    json_t *mask = json_array(), *logprobs = json_array();
    for (int64_t i = p->prompt; i < p->n; i++) {
        json_array_append_new(mask, json_integer(p->mask[i]));
        json_array_append_new(logprobs, json_real((double)p->logprobs[i]));
    }
    json_t *line = json_pack(
        "{s:o, s:o, s:o, s:o, s:{s:o}, s:o, s:i, s:{s:f}, s:{s:s, s:[i, i], s:b, s:o}}", "prompt_ids",
        replies_ids(p->ids, p->prompt), "response_ids", replies_ids(p->ids + p->prompt, p->n - p->prompt),
        "response_mask", mask, "response_logprobs", logprobs, "multi_modal_data", "images", p->images,
        "reward_score", last && x->o->has_reward ? json_real(x->o->reward) : json_null(), "num_turns",
        p->turns, "metrics", "generate_sequences", p->write_s, "extra_fields", "run", x->id, "steps",
        p->first_step, p->last_step, "last", last, "sampler", p->sampler);
    p->images = p->sampler = NULL;
    p->n = 0;
    return export_line(x->f, line, e);
}

static bool goes_on(const struct output *p, const struct conversation_ids *ids, int64_t prompt)
{
    return p->n && prompt >= p->n && !memcmp(p->ids, ids->ids, (size_t)p->n * sizeof *p->ids);
}

static int put_images(struct replies *x, const struct turn *u, int64_t since, struct err *e)
{
    struct output *p = x->arg;
    struct reply_image image;
    int rc;
    for (int i = 0; (rc = replies_image(x, u, i, &image, e)) > 0; i++)
        if (image.from >= since)
            json_array_append_new(p->images, json_string(image.name));
    return rc;
}

static int put_reply(struct replies *x, const struct turn *u, const struct conversation_ids *ids,
                     struct err *e)
{
    const struct turn_reply *r = &u->reply;
    const float *pairs = turn_logprobs(&x->t, u);
    const int32_t *said = turn_ids(&x->t, u);
    struct output *p = x->arg;
    bool more = goes_on(p, ids, r->prompt);
    if (!more) {
        if (end_output(x, false, e))
            return -1;
        *p = (struct output){.ids = p->ids,
                             .logprobs = p->logprobs,
                             .mask = p->mask,
                             .cap = p->cap,
                             .prompt = r->prompt,
                             .images = json_array(),
                             .turns = 1, /* the task counts as the first */
                             .sampler = replies_sampler(x->o->record, r),
                             .first_step = u->step};
    }
    int64_t since = p->n;
    while (p->n < r->prompt)
        append(p, ids->ids[p->n], false, 0);
    for (int i = 0; i < r->n; i++) {
        bool chosen = isfinite(pairs[2 * i]);
        append(p, said[i], chosen, chosen ? pairs[2 * i] : 0);
    }
    p->turns += more ? 2 : 1;
    p->last_step = u->step;
    p->write_s += json_number_value(json_object_get(replies_event(x, u), "ms")) / 1000;
    return put_images(x, u, since, e);
}

static int put_last(struct replies *x, struct err *e)
{
    return end_output(x, true, e);
}

int export_verl(const struct export_options *o, const struct story *s, struct err *e)
{
    struct output p = {0};
    struct replies x = {.o = o, .s = s, .put = put_reply, .end = put_last, .arg = &p};
    int rc = replies_export(&x, "outputs.jsonl", e);
    json_decref(p.images);
    json_decref(p.sampler);
    free(p.ids);
    free(p.logprobs);
    free(p.mask);
    return rc;
}
