/* export_rl.c - replies that became steps, for training; see export.h.
 *
 * The model did not choose a forced token: its completion_mask is 0, its log-probability after the logit
 * mask 0 and before it unknown (null).
 */
#include "replay/export.h"

#include "base/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct rl {
    const struct export_options *o;
    const struct story *s;
    struct timeline t;
    struct conversation_ids ids;
    struct seen {
        int step, frame;
    } * seen; /* [n] screenshots of the conversation, oldest first */
    int n;
    const char *id; /* of the run */
};

static json_t *ids_json(const int32_t *ids, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(ids[i]));
    return list;
}

/* which: 0 before the mask, 1 after it. */
static json_t *logprobs_json(const struct rl *x, const struct turn *u, int which)
{
    const float *pairs = turn_logprobs(&x->t, u);
    json_t *list = json_array();
    for (int i = 0; i < u->reply.n; i++) {
        float v = pairs[2 * i + which];
        json_array_append_new(list, isfinite(v) ? json_real((double)v) : which ? json_real(0) : json_null());
    }
    return list;
}

static json_t *mask_json(const struct rl *x, const struct turn *u)
{
    const float *pairs = turn_logprobs(&x->t, u);
    json_t *list = json_array();
    for (int i = 0; i < u->reply.n; i++)
        json_array_append_new(list, json_integer(isfinite(pairs[2 * i]) ? 1 : 0));
    return list;
}

/* The recorded spans of images in the prompt; the images are the last screenshots seen. */
static int put_images(const struct rl *x, const struct turn *u, const json_t *event, json_t *line,
                      struct err *e)
{
    const json_t *spans = json_object_get(event, "image_spans");
    size_t n = json_array_size(spans);
    json_t *images = json_array(), *copy = json_array();
    json_object_set_new(line, "images", images);
    json_object_set_new(line, "image_token_span", copy);
    for (size_t i = 0; i < n; i++) {
        json_t *span = json_array_get(spans, i);
        int64_t a = json_integer_value(json_array_get(span, 0)),
                b = json_integer_value(json_array_get(span, 1));
        if (a < 0 || b <= a || b > u->reply.prompt || n > (size_t)x->n)
            return err_set(e, ERR_ENV, "the record of step %d is damaged: 'image_spans'", u->step);
        char name[40];
        snprintf(name, sizeof name, "frames/%06d.png", x->seen[(size_t)x->n - n + i].frame);
        json_array_append_new(images, json_string(name));
        json_array_append_new(copy, json_pack("[I, I]", a, b));
        if (export_frame(x->o, x->seen[(size_t)x->n - n + i].frame, name, e))
            return -1;
    }
    return 0;
}

/* The generate event of a reply. */
static const json_t *find_event(const struct rl *x, const struct turn *u)
{
    for (int i = 0; i < x->o->record->n; i++) {
        const struct event *v = &x->o->record->events[i];
        if (v->step == u->step && !strcmp(v->kind, "generate") &&
            field_text(v->fields, "text") == u->reply.text)
            return v->fields;
    }
    return NULL;
}

static bool is_last(const struct rl *x, const struct turn *u)
{
    for (const struct turn *v = u + 1; v < x->t.turns + x->t.n; v++)
        if (v->op == TURN_ACCEPT && v->step > u->step)
            return false;
    return true;
}

static int put_reply(struct rl *x, const struct turn *u, const struct conversation_ids *ids, FILE *f,
                     struct err *e)
{
    const struct turn_reply *r = &u->reply;
    const json_t *settings = json_object_get(x->o->record->run, "settings"), *end = x->s->end;
    bool done = is_last(x, u);
    json_t *seed = json_object_get(settings, "seed");
    json_t *line = json_pack(
        "{s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:O?, s:b, s:s?, s:o, s:n}", "env", "holorun",
        "traj_id", x->id, "step", u->step, "prompt_ids", ids_json(ids->ids, r->prompt), "completion_ids",
        ids_json(turn_ids(&x->t, u), r->n), "completion_mask", mask_json(x, u), "completion_logprobs",
        logprobs_json(x, u, 0), "completion_logprobs_masked", logprobs_json(x, u, 1), "temperature",
        (double)r->sampling.temperature, "top_p", (double)r->sampling.top_p, "seed", seed, "done", done,
        "verdict", done && *field_text(end, "status") ? field_text(end, "status") : NULL, "reward",
        done && x->o->has_reward ? json_real(x->o->reward) : json_null(), "advantage");
    if (line && put_images(x, u, find_event(x, u), line, e)) {
        json_decref(line);
        return -1;
    }
    return export_line(f, line, e);
}

/* The reply since the last screenshot that became the step: the last with its resample number. */
static const struct turn *find_reply(const struct rl *x, const struct turn *accept)
{
    const struct turn *found = NULL;
    for (const struct turn *u = accept - 1; u >= x->t.turns && u->op == TURN_REPLY; u--) {
        if (!accept->has_resample || u->reply.resample == accept->resample)
            return u;
        found = found ? found : u;
    }
    return found;
}

static void add_seen(struct rl *x, const struct turn *u)
{
    while (u->from && x->n && x->seen[x->n - 1].step >= u->from)
        x->n--;
    x->seen = xrealloc(x->seen, (unsigned long)x->n + 1, sizeof *x->seen);
    x->seen[x->n++] = (struct seen){u->from ? u->from : u->step, u->frame};
}

static int put_turns(struct rl *x, FILE *f, struct err *e)
{
    for (int i = 0; i < x->t.n; i++) {
        const struct turn *u = &x->t.turns[i];
        if (u->op == TURN_OBSERVE)
            add_seen(x, u);
        else if (u->op == TURN_REPLY && timeline_follow(&x->t, u, &x->ids, e))
            return -1;
        /* All replies to one screenshot have the same prompt. */
        const struct turn *r = u->op == TURN_ACCEPT ? find_reply(x, u) : NULL;
        if (r && put_reply(x, r, &x->ids, f, e))
            return -1;
    }
    return 0;
}

int export_rl(const struct export_options *o, const struct story *s, struct err *e)
{
    const char *slash = strrchr(o->record->dir, '/');
    struct rl x = {.o = o, .s = s, .id = slash ? slash + 1 : o->record->dir};
    struct file_stream out;
    if (timeline_open(&x.t, o->record, e))
        return -1;
    char *path = xasprintf("%s/trajectory.jsonl", o->to), *frames = xasprintf("%s/frames", o->to);
    int rc = timeline_complete(&x.t, e) || dir_make(frames, e) || file_stream_open(&out, path, e) ? -1 : 0;
    if (rc == 0) {
        rc = put_turns(&x, out.f, e);
        if (file_stream_close(&out, rc ? NULL : e))
            rc = -1;
    }
    free(path);
    free(frames);
    free(x.ids.ids);
    free(x.seen);
    timeline_free(&x.t);
    return rc;
}
