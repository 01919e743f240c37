/* export_osworld.c - exports a run in OSWorld's format: traj.jsonl and screenshots. */
#include "replay/export.h"

#include "actions/registry.h"
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Converts "2026-11-21T17:57:20.275Z" to "20261121@175720". */
static void put_timestamp(const char *wall, char out[16])
{
    static const int places[] = {0, 1, 2, 3, 5, 6, 8, 9, -1, 11, 12, 14, 15, 17, 18};
    size_t n = strlen(wall);
    for (int i = 0; i < 15; i++)
        out[i] = places[i] < 0                                                ? '@'
                 : n > 18 && wall[places[i]] >= '0' && wall[places[i]] <= '9' ? wall[places[i]]
                                                                              : '0';
    out[15] = 0;
}

static int put_action(const struct export_options *o, const struct story *s, int i, int k, FILE *f,
                      struct err *e)
{
    const struct story_step *step = &s->steps[i];
    const json_t *action = step->actions[k].action;
    /* not ASK: OSWorld knows only DONE and FAIL */
    bool over = action_is(registry_kind(field_text(action, "kind")), ACTION_ENDS_RUN | ACTION_LOOKS);
    bool done = over || (i + 1 == s->n && k + 1 == step->nactions);
    char when[16], name[64];
    int frame = i + 1 < s->n ? s->steps[i + 1].frame : over ? s->steps[i].frame : -1;
    put_timestamp(field_text(step->step, "t_wall"), when);
    snprintf(name, sizeof name, "step_%d_%s.png", step->number, when);
    if (frame >= 0 && export_frame(o, frame, name, e))
        return -1;
    autofree char *code = export_python(action);
    json_t *info = json_pack("{s:b}", "done", done);
    if (*step->actions[k].failure)
        json_object_set_new(info, "error", json_string(step->actions[k].failure));
    json_t *line = json_pack("{s:i, s:s, s:s, s:s, s:s, s:f, s:b, s:o, s:s?}", "step_num", step->number,
                             "action_timestamp", when, "action", code, "response",
                             field_text(step->generate, "text"), "thought", field_text(step->step, "thought"),
                             "reward", done && o->has_reward ? o->reward : 0.0, "done", done, "info", info,
                             "screenshot_file", frame >= 0 ? name : NULL);
    return export_line(f, line, e);
}

static int put_text(const struct export_options *o, const char *name, const char *text, struct err *e)
{
    autofree char *path = xasprintf("%s/%s", o->to, name);
    return file_write(path, text, strlen(text), e);
}

static int put_texts(const struct export_options *o, const struct story *s, struct err *e)
{
    char reward[40],
        *log = xasprintf("%s: %s\n", field_text(o->record->run, "started"),
                         *field_text(s->end, "status") ? field_text(s->end, "status") : "unfinished");
    snprintf(reward, sizeof reward, "%g\n", o->reward);
    int rc = put_text(o, "instruction.txt", field_text(o->record->run, "task"), e) ||
                     put_text(o, "runtime.log", log, e) ||
                     (o->has_reward && put_text(o, "result.txt", reward, e))
                 ? -1
                 : 0;
    free(log);
    return rc;
}

int export_osworld(const struct export_options *o, const struct story *s, struct err *e)
{
    autofree char *path = xasprintf("%s/traj.jsonl", o->to);
    struct file_stream out;
    int rc = s->steps[0].frame >= 0 ? export_frame(o, s->steps[0].frame, "step_0.png", e) : 0;
    if (rc == 0 && (rc = file_stream_open(&out, path, e)) == 0) {
        for (int i = 0; i < s->n && rc == 0; i++)
            for (int k = 0; k < s->steps[i].nactions && rc == 0; k++)
                rc = put_action(o, s, i, k, out.f, e);
        if (file_stream_close(&out, rc ? NULL : e))
            rc = -1;
    }
    return rc ? -1 : put_texts(o, s, e);
}
