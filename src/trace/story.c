/* story.c - see story.h. */
#include "trace/story.h"

#include <stdlib.h>
#include <string.h>

/* Steps come in order, so the one wanted is the last or a new one; anything else is an old or broken log. */
static struct story_step *step_of(struct story *s, int number)
{
    for (int i = s->n - 1; i >= 0 && i >= s->n - 2; i--)
        if (s->steps[i].number == number)
            return &s->steps[i];
    if (number < 1 || s->n >= STORY_MAX_STEPS || (s->n && number < s->steps[s->n - 1].number))
        return NULL;
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 32;
        s->steps = xrealloc(s->steps, (unsigned long)s->cap, sizeof *s->steps);
    }
    s->steps[s->n] = (struct story_step){.number = number, .frame = -1};
    return &s->steps[s->n++];
}

/* A duration from the log: anything odd counts as nothing. */
static double milliseconds(const json_t *fields, const char *key)
{
    double ms = field_number(fields, key);
    return ms > 0 && ms < 1e9 ? ms : 0;
}

static void take_action(struct story_step *s, const json_t *fields)
{
    if (s->nactions == STORY_MAX_ACTIONS)
        return;
    const json_t *action = json_object_get(fields, "action");
    s->actions[s->nactions++] =
        (struct story_action){.action = action, .what = field_text(fields, "what"), .failure = ""};
}

static void take_exec(struct story_step *s, const json_t *fields)
{
    int64_t i = field_int(fields, "index");
    s->ms[PHASE_ACT] += milliseconds(fields, "ms");
    if (i >= 0 && i < s->nactions && !field_bool(fields, "ok"))
        s->actions[i].failure = field_text(fields, "error");
}

enum { NEAR = 256 }; /* events that a step may have between a reply and what came of it */

/* Of several replies the one that became the step: a person may have taken another than the last. */
static void choose_reply(struct story_step *s, const struct record *r, int until)
{
    int64_t resample = field_int(s->step, "reroll");
    if (!json_object_get(s->step, "reroll"))
        return;
    for (int i = until; i >= 0 && i > until - NEAR && r->events[i].step == s->number; i--)
        if (!strcmp(r->events[i].kind, "generate") && field_int(r->events[i].fields, "reroll") == resample) {
            s->generate = r->events[i].fields;
            return;
        }
}

static void take_gate(struct story_step *s, const json_t *fields)
{
    int64_t i = field_int(fields, "index");
    if (i < 0 || i >= s->nactions)
        return;
    s->actions[i].gate = fields;
    if (!field_bool(fields, "pass"))
        s->actions[i].failure = field_text(fields, "error");
}

static void take_event(struct story_step *s, const char *kind, const json_t *fields)
{
    if (!strcmp(kind, "observe")) {
        const json_t *frame = json_object_get(fields, "frame");
        s->observe = fields;
        s->beyond_budget = field_bool(fields, "beyond_budget");
        s->frame = json_is_integer(frame) && field_int(fields, "frame") < 1000000
                       ? (int)field_int(fields, "frame")
                       : -1;
        s->from = (int)field_int(fields, "from");
        s->ms[PHASE_SETTLE] += milliseconds(fields, "settle_ms");
        s->ms[PHASE_SEE] += milliseconds(fields, "capture_ms");
    } else if (!strcmp(kind, "prompt")) {
        s->prompt = fields;
        s->ms[PHASE_READ] += milliseconds(fields, "ms");
    } else if (!strcmp(kind, "generate")) {
        s->generate = fields;
        s->attempts++;
        s->ms[PHASE_WRITE] += milliseconds(fields, "ms");
    } else if (!strcmp(kind, "step")) {
        s->step = fields;
        s->beyond_budget |= field_bool(fields, "beyond_budget"); /* used up only after the screen was seen */
    } else if (!strcmp(kind, "action")) {
        take_action(s, fields);
    } else if (!strcmp(kind, "human")) {
        if (s->nhuman < STORY_MAX_HUMAN)
            s->human[s->nhuman++] = fields;
    } else if (!strcmp(kind, "gate")) {
        take_gate(s, fields);
    } else if (!strcmp(kind, "exec")) {
        take_exec(s, fields);
    } else if (!strcmp(kind, "effect")) {
        s->effect = fields;
    } else if (!strcmp(kind, "tool_output")) {
        s->output = fields;
    } else if (!strcmp(kind, "error")) {
        s->error = fields;
    }
}

void story_make(struct story *s, const struct record *r)
{
    *s = (struct story){0};
    for (int i = 0; i < r->n; i++) {
        const struct event *v = &r->events[i];
        if (!strcmp(v->kind, "end"))
            s->end = v->fields;
        struct story_step *step = step_of(s, v->step);
        if (step)
            take_event(step, v->kind, v->fields);
        if (step && !strcmp(v->kind, "step"))
            choose_reply(step, r, i);
    }
    for (int i = 0; i < s->n; i++)
        s->counted += !s->steps[i].beyond_budget;
    for (int i = 0; i < s->n; i++)
        for (int p = 0; p < PHASES; p++)
            s->ms[p] += s->steps[i].ms[p];
}

void story_free(struct story *s)
{
    free(s->steps);
    *s = (struct story){0};
}
