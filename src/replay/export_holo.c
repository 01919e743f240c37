/* export_holo.c - exports a run as the events of H Company's runtime (events.jsonl). */
#include "replay/export.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

struct holo {
    const struct export_options *o;
    FILE *f;
};

static int put_event(const struct holo *h, const json_t *at, json_t *event, struct err *e)
{
    return export_line(
        h->f, event ? json_pack("{s:s, s:o}", "ts", field_text(at, "t_wall"), "event", event) : NULL, e);
}

static int put_observation(const struct holo *h, const struct story_step *s, struct err *e)
{
    const json_t *display = json_object_get(h->o->record->run, "display");
    char *png = export_base64(h->o->record, s->frame);
    json_t *image =
        png ? json_pack("{s:s, s:s, s:s}", "type", "base64", "media_type", "image/png", "source", png)
            : json_null();
    free(png);
    return put_event(h, s->observe,
                     json_pack("{s:s, s:{s:o, s:n, s:{s:I, s:I}}}", "kind", "observation_event",
                               "observation", "image", image, "cursor_position", "viewport_size", "width",
                               field_int(display, "w"), "height", field_int(display, "h")),
                     e);
}

/* Returns an action as a tool call: its kind is the tool, its other members are the arguments. */
static json_t *tool_call(const struct story_step *s, int k)
{
    char id[40];
    json_t *args = json_copy((json_t *)(uintptr_t)s->actions[k].action);
    snprintf(id, sizeof id, "step_%d_%d", s->number, k);
    json_t *call =
        json_pack("{s:s, s:s, s:O}", "id", id, "tool_name", field_text(args, "kind"), "args", args);
    json_object_del(args, "kind");
    json_decref(args);
    return call;
}

static int put_policy(const struct holo *h, const struct story_step *s, struct err *e)
{
    json_t *calls = json_array();
    for (int k = 0; k < s->nactions; k++)
        json_array_append_new(calls, tool_call(s, k));
    return put_event(h, s->step ? s->step : s->generate,
                     json_pack("{s:s, s:s, s:n, s:o}", "kind", "policy_event", "content",
                               field_text(s->generate, "text"), "reasoning_content", "tool_reqs", calls),
                     e);
}

static int put_result(const struct holo *h, const struct story_step *s, int k, struct err *e)
{
    const json_t *a = s->actions[k].action, *at = s->step ? s->step : s->observe;
    const char *kind = field_text(a, "kind"), *failure = s->actions[k].failure;
    if (!strcmp(kind, "answer") || !strcmp(kind, "infeasible"))
        return put_event(h, at,
                         json_pack("{s:s, s:s}", "kind", "answer_event", "answer", field_text(a, "text")), e);
    if (*failure)
        return put_event(
            h, at, json_pack("{s:s, s:s, s:s}", "kind", "error_event", "error", failure, "origin", "tool"),
            e);
    return put_event(h, at,
                     json_pack("{s:s, s:o, s:s}", "kind", "tool_result", "tool_req", tool_call(s, k),
                               "result", field_text(s->output, "text")),
                     e);
}

static int put_step(const struct holo *h, const struct story_step *s, struct err *e)
{
    if (s->observe && put_observation(h, s, e))
        return -1;
    if (s->generate && put_policy(h, s, e))
        return -1;
    if (s->error && put_event(h, s->error,
                              json_pack("{s:s, s:s, s:s}", "kind", "error_event", "error",
                                        field_text(s->error, "message"), "origin", "tool_validation"),
                              e))
        return -1;
    for (int k = 0; k < s->nactions; k++)
        if (put_result(h, s, k, e))
            return -1;
    return 0;
}

int export_holo(const struct export_options *o, const struct story *s, struct err *e)
{
    char *path = xasprintf("%s/events.jsonl", o->to);
    struct file_stream out;
    int rc = file_stream_open(&out, path, e);
    free(path);
    if (rc)
        return -1;
    struct holo h = {o, out.f};
    const json_t *start = o->record->n ? o->record->events[0].fields : NULL;
    rc = put_event(&h, start,
                   json_pack("{s:s, s:s, s:[{s:s, s:s}]}", "kind", "message_event", "caller_id", "user",
                             "content", "type", "text", "text", field_text(o->record->run, "task")),
                   e);
    for (int i = 0; i < s->n && rc == 0; i++)
        rc = put_step(&h, &s->steps[i], e);
    return file_stream_close(&out, rc ? NULL : e) ? -1 : rc;
}
