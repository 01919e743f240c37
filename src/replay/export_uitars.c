/* export_uitars.c - exports a run as the JSON object that UI-TARS's report page displays. */
#include "replay/export.h"

#include "base/buf.h"
#include "base/file.h"

#include <stdlib.h>
#include <string.h>

static json_t *timing_json(const json_t *event, double ms)
{
    int64_t end = field_int(event, "t_mono_ns") / 1000000;
    return json_pack("{s:I, s:I, s:I}", "start", end - (int64_t)ms, "end", end, "cost", (json_int_t)ms);
}

static json_t *screen_turn(const struct record *r, const struct story_step *s)
{
    const json_t *display = json_object_get(r->run, "display");
    char *png = export_base64(r, s->frame);
    json_t *turn =
        json_pack("{s:s, s:s, s:o, s:s?, s:{s:{s:I, s:I}, s:s, s:i}}", "from", "human", "value", "<image>",
                  "timing", timing_json(s->observe, s->ms[PHASE_SETTLE] + s->ms[PHASE_SEE]),
                  "screenshotBase64", png, "screenshotContext", "size", "width", field_int(display, "w"),
                  "height", field_int(display, "h"), "mime", "image/png", "scaleFactor", 1);
    free(png);
    return turn;
}

/* Returns an action as a list of actions that UI-TARS can express. Its "type" has no target, so a click
 * precedes it; to overwrite, the text is selected first. */
static json_t *split_action(const json_t *action)
{
    json_t *parts = json_array(), *rest = json_copy((json_t *)(uintptr_t)action);
    if (!strcmp(field_text(action, "kind"), "type")) {
        if (json_object_get(action, "x"))
            json_array_append_new(parts, json_pack("{s:s, s:I, s:I}", "kind", "click", "x",
                                                   field_int(action, "x"), "y", field_int(action, "y")));
        if (field_bool(action, "overwrite"))
            json_array_append_new(parts,
                                  json_pack("{s:s, s:[s, s]}", "kind", "key", "keys", "Control_L", "a"));
        json_object_del(rest, "x");
        json_object_del(rest, "y");
    }
    json_array_append_new(parts, rest);
    return parts;
}

struct reply_parts {
    struct buf value;
    json_t *parsed;
};

static void add_action(struct reply_parts *w, const char *thought, const json_t *action)
{
    json_t *parts = split_action(action), *one;
    size_t i;
    json_array_foreach(parts, i, one)
    {
        const char *type;
        json_t *inputs;
        char *call = export_uitars_action(one, &type, &inputs);
        buf_printf(&w->value, "%s%s", json_array_size(w->parsed) ? "\n\n" : "", call);
        json_array_append_new(w->parsed, json_pack("{s:n, s:s, s:s, s:o}", "reflection", "thought", thought,
                                                   "action_type", type, "action_inputs", inputs));
        free(call);
    }
    json_decref(parts);
}

static json_t *model_turn(const struct story_step *s)
{
    enum { TURN_MAX = 4 << 20 };
    const char *thought = field_text(s->step, "thought");
    struct reply_parts w = {.parsed = json_array()};
    buf_init(&w.value, TURN_MAX);
    buf_printf(&w.value, "Thought: %s\nAction: ", thought);
    for (int k = 0; k < s->nactions; k++)
        add_action(&w, thought, s->actions[k].action);
    json_t *turn =
        json_pack("{s:s, s:s, s:o, s:o}", "from", "gpt", "value", w.value.data, "timing",
                  timing_json(s->generate ? s->generate : s->step, s->ms[PHASE_READ] + s->ms[PHASE_WRITE]),
                  "predictionParsed", w.parsed);
    buf_free(&w.value);
    return turn;
}

int export_uitars(const struct export_options *o, const struct story *s, struct err *e)
{
    const json_t *run = o->record->run, *start = o->record->n ? o->record->events[0].fields : NULL;
    struct file_stream out;
    json_t *turns = json_array();
    json_array_append_new(turns, json_pack("{s:s, s:s, s:o}", "from", "human", "value",
                                           field_text(run, "task"), "timing", timing_json(start, 0)));
    for (int i = 0; i < s->n; i++) {
        if (s->steps[i].observe)
            json_array_append_new(turns, screen_turn(o->record, &s->steps[i]));
        if (s->steps[i].step)
            json_array_append_new(turns, model_turn(&s->steps[i]));
    }
    const char *status = field_text(s->end, "status");
    json_t *all =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "version", field_text(run, "version"), "instruction",
                  field_text(run, "task"), "systemPrompt", field_text(start, "system"), "modelName",
                  field_text(json_object_get(run, "model"), "name"), "status",
                  !strcmp(status, "answered") ? "end"
                  : *status                   ? status
                                              : "running",
                  "logTime", field_text(run, "started"), "conversations", turns);
    if (file_stream_open(&out, o->to, e)) {
        json_decref(all);
        return -1;
    }
    int rc = export_line(out.f, all, e);
    return file_stream_close(&out, rc ? NULL : e) ? -1 : rc;
}
