/* export_rl.c - exports the replies that became steps for reinforcement learning, one JSON object each. */
#include "replay/export_replies.h"

#include <math.h>

/* Returns the log-probabilities of a reply. which: 0 before the mask, 1 after it. */
static json_t *logprobs_json(const struct replies *x, const struct turn *u, int which)
{
    const float *pairs = turn_logprobs(&x->t, u);
    json_t *list = json_array();
    for (int i = 0; i < u->reply.n; i++) {
        float v = pairs[2 * i + which];
        json_array_append_new(list, isfinite(v) ? json_real((double)v) : which ? json_real(0) : json_null());
    }
    return list;
}

static int put_images(const struct replies *x, const struct turn *u, json_t *line, struct err *e)
{
    json_t *images = json_array(), *spans = json_array();
    struct reply_image image;
    int rc;
    json_object_set_new(line, "images", images);
    json_object_set_new(line, "image_token_span", spans);
    for (int i = 0; (rc = replies_image(x, u, i, &image, e)) > 0; i++) {
        json_array_append_new(images, json_string(image.name));
        json_array_append_new(spans, json_pack("[I, I]", image.from, image.to));
    }
    return rc;
}

static int put_reply(struct replies *x, const struct turn *u, const struct conversation_ids *ids,
                     struct err *e)
{
    const struct turn_reply *r = &u->reply;
    const json_t *end = x->s->end;
    bool done = replies_last(x, u);
    json_t *line = json_pack(
        "{s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:b, s:s?, s:o, s:n}", "env", "holorun", "traj_id", x->id,
        "step", u->step, "prompt_ids", replies_ids(ids->ids, r->prompt), "completion_ids",
        replies_ids(turn_ids(&x->t, u), r->n), "completion_mask", replies_mask(x, u), "completion_logprobs",
        logprobs_json(x, u, 0), "completion_logprobs_masked", logprobs_json(x, u, 1), "done", done, "verdict",
        done && *field_text(end, "status") ? field_text(end, "status") : NULL, "reward",
        done && x->o->has_reward ? json_real(x->o->reward) : json_null(), "advantage");
    json_object_update_new(line, replies_sampler(x->o->record, r));
    if (line && put_images(x, u, line, e)) {
        json_decref(line);
        return -1;
    }
    return export_line(x->f, line, e);
}

int export_rl(const struct export_options *o, const struct story *s, struct err *e)
{
    struct replies x = {.o = o, .s = s, .put = put_reply};
    return replies_export(&x, "trajectory.jsonl", e);
}
