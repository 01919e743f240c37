/* export_replies.c - iterates over the replies of a run that became steps, for training formats. */
#include "replay/export_replies.h"

#include "base/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *replies_ids(const int32_t *ids, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(ids[i]));
    return list;
}

json_t *replies_mask(const struct replies *x, const struct turn *u)
{
    const float *pairs = turn_logprobs(&x->t, u);
    json_t *list = json_array();
    for (int i = 0; i < u->reply.n; i++)
        json_array_append_new(list, json_integer(isfinite(pairs[2 * i]) ? 1 : 0));
    return list;
}

json_t *replies_sampler(const struct record *r, const struct turn_reply *reply)
{
    json_t *seed = json_object_get(json_object_get(r->run, "settings"), "seed");
    const char *local = field_text(json_object_get(r->run, "model"), "hash"),
               *weights = reply->weights ? reply->weights : local;
    return json_pack("{s:f, s:f, s:O?, s:s?}", "temperature", (double)reply->sampling.temperature, "top_p",
                     (double)reply->sampling.top_p, "seed", seed, "weights", *weights ? weights : NULL);
}

/* Returns the generate event of a reply. */
const json_t *replies_event(const struct replies *x, const struct turn *u)
{
    for (int i = 0; i < x->o->record->n; i++) {
        const struct event *v = &x->o->record->events[i];
        if (v->step == u->step && !strcmp(v->kind, "generate") &&
            field_text(v->fields, "text") == u->reply.text)
            return v->fields;
    }
    return NULL;
}

bool replies_last(const struct replies *x, const struct turn *u)
{
    for (const struct turn *v = u + 1; v < x->t.turns + x->t.n; v++)
        if (v->op == TURN_ACCEPT && v->step > u->step)
            return false;
    return true;
}

int replies_image(const struct replies *x, const struct turn *u, int i, struct reply_image *out,
                  struct err *e)
{
    const json_t *spans = json_object_get(replies_event(x, u), "image_spans"),
                 *span = json_array_get(spans, (size_t)i);
    int n = (int)json_array_size(spans);
    if (!span)
        return 0;
    out->from = json_integer_value(json_array_get(span, 0));
    out->to = json_integer_value(json_array_get(span, 1));
    if (out->from < 0 || out->to <= out->from || out->to > u->reply.prompt || n > x->n)
        return err_set(e, ERR_ENV, "the record of step %d is damaged: 'image_spans'", u->step);
    int frame = x->seen[x->n - n + i].frame;
    snprintf(out->name, sizeof out->name, "frames/%06d.png", frame);
    return export_frame(x->o, frame, out->name, e) ? -1 : 1;
}

/* Returns the reply that an accept event accepted: since the last screenshot, the last one with its resample
 * number. */
static const struct turn *find_reply(const struct replies *x, const struct turn *accept)
{
    const struct turn *found = NULL;
    for (const struct turn *u = accept - 1; u >= x->t.turns && u->op == TURN_REPLY; u--) {
        if (!accept->has_resample || u->reply.resample == accept->resample)
            return u;
        found = found ? found : u;
    }
    return found;
}

static void add_seen(struct replies *x, const struct turn *u)
{
    while (u->from && x->n && x->seen[x->n - 1].step >= u->from)
        x->n--;
    x->seen = xrealloc(x->seen, (unsigned long)x->n + 1, sizeof *x->seen);
    x->seen[x->n++] = (struct seen){u->from ? u->from : u->step, u->frame};
}

static int put_turns(struct replies *x, struct err *e)
{
    for (int i = 0; i < x->t.n; i++) {
        const struct turn *u = &x->t.turns[i];
        if (u->op == TURN_OBSERVE)
            add_seen(x, u);
        else if (u->op == TURN_REPLY && timeline_follow(&x->t, u, &x->ids, e))
            return -1;
        /* all replies to one screenshot have the same prompt */
        const struct turn *r = u->op == TURN_ACCEPT ? find_reply(x, u) : NULL;
        if (r && x->put(x, r, &x->ids, e))
            return -1;
    }
    return 0;
}

int replies_export(struct replies *x, const char *name, struct err *e)
{
    const char *slash = strrchr(x->o->record->dir, '/');
    struct file_stream out;
    x->id = slash ? slash + 1 : x->o->record->dir;
    if (timeline_open(&x->t, x->o->record, e))
        return -1;
    autofree char *path = xasprintf("%s/%s", x->o->to, name), *frames = xasprintf("%s/frames", x->o->to);
    int rc = timeline_complete(&x->t, e) || dir_make(frames, e) || file_stream_open(&out, path, e) ? -1 : 0;
    if (rc == 0) {
        x->f = out.f;
        rc = put_turns(x, e) || (x->end && x->end(x, e)) ? -1 : 0;
        if (file_stream_close(&out, rc ? NULL : e))
            rc = -1;
    }
    free(x->ids.ids);
    free(x->seen);
    timeline_free(&x->t);
    return rc;
}
