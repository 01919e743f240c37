/* export_atif.c - exports a run in the Agent Trajectory Interchange Format (ATIF), version 1.7, as
 * trajectory.json.
 *
 * The first step is the user's: the task and the first screenshot. Each further step is the agent's: the
 * reply as message, its thought, an object for each action, and the screenshot after the actions. The list of
 * log-probabilities, which may not contain null, has 0 where completion_mask is 0, as verl's. */
#include "replay/export_replies.h"

#include "base/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct atif {
    const struct export_options *o;
    const struct story *s;
    struct timeline t; /* n 0: no tokens were recorded */
    int64_t prompt, said, cached;
};

static json_t *image_part(const struct atif *x, int frame, struct err *e)
{
    char name[40];
    snprintf(name, sizeof name, "frames/%06d.png", frame);
    if (export_frame(x->o, frame, name, e))
        return NULL;
    return json_pack("{s:s, s:{s:s, s:s}}", "type", "image", "source", "media_type", "image/png", "path",
                     name);
}

/* Returns a time such as "2026-11-21T17:57:20.275Z", or null for any other text, which readers of the format
 * reject. */
static json_t *timestamp(const char *wall)
{
    return strlen(wall) == 24 && wall[10] == 'T' && wall[23] == 'Z' ? json_string(wall) : json_null();
}

/* Returns a copy without members that are null, because some readers treat those as values. */
static json_t *without_null(json_t *o)
{
    void *next;
    const char *key;
    json_t *value;
    json_object_foreach_safe(o, next, key, value) if (json_is_null(value)) json_object_del(o, key);
    return o;
}

static json_t *task_step(const struct atif *x, struct err *e)
{
    const struct record *r = x->o->record;
    json_t *message = json_pack("[{s:s, s:s}]", "type", "text", "text", field_text(r->run, "task"));
    if (x->s->steps[0].frame >= 0) {
        json_t *image = image_part(x, x->s->steps[0].frame, e);
        if (!image) {
            json_decref(message);
            return NULL;
        }
        json_array_append_new(message, image);
    }
    return without_null(json_pack("{s:i, s:o, s:s, s:o}", "step_id", 1, "timestamp",
                                  timestamp(field_text(r->run, "started")), "source", "user", "message",
                                  message));
}

/* Returns the reply of a step if its tokens were recorded; NULL otherwise. */
static const struct turn *turn_of(const struct atif *x, const struct story_step *step)
{
    for (int i = 0; i < x->t.n; i++)
        if (x->t.turns[i].op == TURN_REPLY && x->t.turns[i].step == step->number &&
            x->t.turns[i].reply.has_tokens && x->t.turns[i].reply.text == field_text(step->generate, "text"))
            return &x->t.turns[i];
    return NULL;
}

static json_t *metrics(struct atif *x, const struct story_step *step)
{
    const struct turn *u = turn_of(x, step);
    json_int_t prompt = json_integer_value(json_object_get(step->generate, "prompt_tokens")),
               said = json_integer_value(json_object_get(step->generate, "tokens")),
               kept = json_integer_value(json_object_get(step->generate, "kept"));
    x->prompt += prompt, x->said += said, x->cached += kept;
    json_t *m = json_pack("{s:I, s:I, s:I}", "prompt_tokens", prompt, "completion_tokens", said,
                          "cached_tokens", kept);
    if (!u)
        return m;
    json_t *ids = json_array(), *logprobs = json_array(), *mask = json_array();
    for (int i = 0; i < u->reply.n; i++) {
        float logprob = turn_logprobs(&x->t, u)[2 * i];
        bool chosen = isfinite(logprob);
        json_array_append_new(ids, json_integer(turn_ids(&x->t, u)[i]));
        json_array_append_new(logprobs, json_real(chosen ? (double)logprob : 0));
        json_array_append_new(mask, json_integer(chosen));
    }
    json_object_set_new(m, "completion_token_ids", ids);
    json_object_set_new(m, "logprobs", logprobs);
    json_object_set_new(m, "extra",
                        json_pack("{s:o, s:o}", "completion_mask", mask, "sampler",
                                  replies_sampler(x->o->record, &u->reply)));
    return m;
}

static json_t *call(const struct story_step *step, int k, char id[32])
{
    const json_t *action = step->actions[k].action;
    json_t *arguments = json_deep_copy(action);
    snprintf(id, 32, "call_%d_%d", step->number, k);
    json_object_del(arguments, "kind");
    return json_pack("{s:s, s:s, s:o}", "tool_call_id", id, "function_name", field_text(action, "kind"),
                     "arguments", arguments);
}

/* Adds the actions of a step and their results. The last result has the screenshot after the actions. */
static int put_calls(const struct atif *x, int i, json_t *out, struct err *e)
{
    const struct story_step *step = &x->s->steps[i];
    json_t *calls = json_array(), *results = json_array();
    for (int k = 0; k < step->nactions; k++) {
        char id[32];
        json_array_append_new(calls, call(step, k, id));
        const char *failure = step->actions[k].failure;
        json_t *content = json_pack("[{s:s, s:s}]", "type", "text", "text", *failure ? failure : "done");
        json_array_append_new(results, json_pack("{s:s, s:o}", "source_call_id", id, "content", content));
        if (k + 1 < step->nactions || i + 1 >= x->s->n || x->s->steps[i + 1].frame < 0)
            continue;
        json_t *image = image_part(x, x->s->steps[i + 1].frame, e);
        if (image)
            json_array_append_new(content, image);
        else
            k = step->nactions + 1;
    }
    bool any = json_array_size(calls) > 0;
    json_object_set_new(out, "tool_calls", any ? calls : json_null());
    json_object_set_new(out, "observation", any ? json_pack("{s:o}", "results", results) : json_null());
    if (!any)
        json_decref(calls), json_decref(results);
    return e->kind ? -1 : 0;
}

static json_t *agent_step(struct atif *x, int i, struct err *e)
{
    const struct story_step *step = &x->s->steps[i];
    const char *thought = field_text(step->step, "thought");
    json_t *out =
        json_pack("{s:i, s:o, s:s, s:s, s:s?, s:o, s:{s:i}}", "step_id", i + 2, "timestamp",
                  timestamp(field_text(step->step, "t_wall")), "source", "agent", "message",
                  field_text(step->generate, "text"), "reasoning_content", *thought ? thought : NULL,
                  "metrics", step->generate ? metrics(x, step) : json_null(), "extra", "step", step->number);
    if (put_calls(x, i, out, e)) {
        json_decref(out);
        return NULL;
    }
    return without_null(out);
}

static json_t *head(const struct atif *x, json_t *steps)
{
    const json_t *run = x->o->record->run, *model = json_object_get(run, "model");
    const char *slash = strrchr(x->o->record->dir, '/'), *name = field_text(model, "name");
    json_t *agent = without_null(json_pack(
        "{s:s, s:s, s:s?, s:{s:s}}", "name", "holorun", "version", field_text(run, "version"), "model_name",
        *name ? name : NULL, "extra", "dialect", field_text(json_object_get(run, "dialect"), "name")));
    json_t *extra = without_null(json_pack("{s:s?, s:s?, s:o}", "status",
                                           x->s->end ? field_text(x->s->end, "status") : NULL, "answer",
                                           x->s->end ? field_text(x->s->end, "answer") : NULL, "reward",
                                           x->o->has_reward ? json_real(x->o->reward) : json_null()));
    return json_pack("{s:s, s:s, s:o, s:o, s:{s:I, s:I, s:I, s:i}, s:o}", "schema_version", "ATIF-v1.7",
                     "session_id", slash ? slash + 1 : x->o->record->dir, "agent", agent, "steps", steps,
                     "final_metrics", "total_prompt_tokens", (json_int_t)x->prompt, "total_completion_tokens",
                     (json_int_t)x->said, "total_cached_tokens", (json_int_t)x->cached, "total_steps",
                     x->s->n + 1, "extra", extra);
}

int export_atif(const struct export_options *o, const struct story *s, struct err *e)
{
    struct atif x = {.o = o, .s = s};
    struct err none = ERR_INIT;
    autofree char *path = xasprintf("%s/trajectory.json", o->to), *frames = xasprintf("%s/frames", o->to);
    if (timeline_open(&x.t, o->record, &none)) /* a scripted run has no tokens */
        x.t = (struct timeline){0};
    struct file_stream out;
    json_t *steps = json_array(), *step = NULL;
    int rc = dir_make(frames, e);
    for (int i = -1; i < s->n && rc == 0; i++) {
        step = i < 0 ? task_step(&x, e) : agent_step(&x, i, e);
        rc = step ? json_array_append_new(steps, step) : -1;
    }
    json_auto_t *whole = head(&x, steps);
    if (rc == 0 && (rc = file_stream_open(&out, path, e)) == 0) {
        rc = export_line(out.f, json_incref(whole), e);
        if (file_stream_close(&out, rc ? NULL : e))
            rc = -1;
    }
    timeline_free(&x.t);
    return rc;
}
