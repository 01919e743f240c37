/* export_uitars.c - the object that UI-TARS's report page shows; see export.h. */
#include "replay/export.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

static json_t *timing_of(const json_t *event, double ms)
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
                  "timing", timing_of(s->observe, s->ms[PHASE_SETTLE] + s->ms[PHASE_SEE]), "screenshotBase64",
                  png, "screenshotContext", "size", "width", field_int(display, "w"), "height",
                  field_int(display, "h"), "mime", "image/png", "scaleFactor", 1);
    free(png);
    return turn;
}

static json_t *model_turn(const struct story_step *s)
{
    const char *thought = field_text(s->step, "thought");
    json_t *parsed = json_array();
    char *value = xasprintf("Thought: %s\nAction: ", thought);
    for (int k = 0; k < s->nactions; k++) {
        const char *type;
        json_t *inputs;
        char *call = export_uitars_action(s->actions[k].action, &type, &inputs);
        char *longer = xasprintf("%s%s%s", value, k ? "\n\n" : "", call);
        json_array_append_new(parsed, json_pack("{s:n, s:s, s:s, s:o}", "reflection", "thought", thought,
                                                "action_type", type, "action_inputs", inputs));
        free(call);
        free(value);
        value = longer;
    }
    json_t *turn =
        json_pack("{s:s, s:s, s:o, s:o}", "from", "gpt", "value", value, "timing",
                  timing_of(s->generate ? s->generate : s->step, s->ms[PHASE_READ] + s->ms[PHASE_WRITE]),
                  "predictionParsed", parsed);
    free(value);
    return turn;
}

int export_uitars(const struct export_options *o, const struct story *s, struct err *e)
{
    const json_t *run = o->record->run, *start = o->record->n ? o->record->events[0].fields : NULL;
    struct file_stream out;
    json_t *turns = json_array();
    json_array_append_new(turns, json_pack("{s:s, s:s, s:o}", "from", "human", "value",
                                           field_text(run, "task"), "timing", timing_of(start, 0)));
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
