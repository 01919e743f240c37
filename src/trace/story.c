/* story.c - groups the events of a run by step; see story.h. */
#include "trace/story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finds or adds a step. Steps are in order, so it is one of the last two, or new. Returns NULL for an old or
 * invalid log. */
static struct story_step *find_step(struct story *s, int number)
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

/* Returns a duration; 0 if it is implausible. */
static double milliseconds(const json_t *fields, const char *key)
{
    double ms = field_number(fields, key);
    return ms > 0 && ms < 1e9 ? ms : 0;
}

static void add_action(struct story_step *s, const json_t *fields)
{
    if (s->nactions == STORY_MAX_ACTIONS)
        return;
    const json_t *action = json_object_get(fields, "action");
    s->actions[s->nactions++] =
        (struct story_action){.action = action, .what = field_text(fields, "what"), .failure = ""};
}

static void add_exec(struct story_step *s, const json_t *fields)
{
    int64_t i = field_int(fields, "index");
    s->ms[PHASE_ACT] += milliseconds(fields, "ms");
    if (i >= 0 && i < s->nactions && !field_bool(fields, "ok"))
        s->actions[i].failure = field_text(fields, "error");
}

enum { NEAR = 256 }; /* maximum number of events between a reply and its step */

/* Selects the reply that became the step: the user may have chosen one other than the last. */
static void choose_reply(struct story_step *s, const struct record *r, int until)
{
    int64_t resample = field_int(s->step, "resample");
    if (!json_object_get(s->step, "resample"))
        return;
    for (int i = until; i >= 0 && i > until - NEAR && r->events[i].step == s->number; i--)
        if (!strcmp(r->events[i].kind, "generate") &&
            field_int(r->events[i].fields, "resample") == resample) {
            s->generate = r->events[i].fields;
            return;
        }
}

static void add_ruling(struct story_step *s, const json_t *fields)
{
    int64_t i = field_int(fields, "index");
    if (i < 0 || i >= s->nactions)
        return;
    s->actions[i].gate = fields;
    if (!field_bool(fields, "pass"))
        s->actions[i].failure = field_text(fields, "error");
}

/* Formats two integer members as a position; "" without them. */
static void put_position(char *out, size_t size, const json_t *fields, const char *x, const char *y)
{
    if (json_object_get(fields, x))
        snprintf(out, size, "%d, %d", (int)field_int(fields, x), (int)field_int(fields, y));
}

/* Reads an event assist, or one that older versions wrote instead: localize, copy, cover. */
static struct story_correction read_correction(const char *kind, const json_t *fields)
{
    struct story_correction c = {.element = field_text(fields, "element")};
    bool cover = !strcmp(kind, "cover"), copy = !strcmp(kind, "copy");
    c.resampled = json_object_get(fields, "taken") != NULL;
    if (!strcmp(kind, "localize")) {
        put_position(c.from, sizeof c.from, fields, "said_x", "said_y");
        if (field_bool(fields, "found"))
            put_position(c.to, sizeof c.to, fields, "x", "y");
        return c;
    }
    snprintf(c.from, sizeof c.from, "%.80s", field_text(fields, copy ? "said" : "from"));
    snprintf(c.to, sizeof c.to, "%.120s", field_text(fields, cover ? "begins" : copy ? "text" : "to"));
    return c;
}

/* Adds a correction. The corrections of a reply that was tried and rejected, or that was replaced, are
 * removed. */
static void add_correction(struct story_step *s, const char *kind, const json_t *fields)
{
    struct story_correction c = read_correction(kind, fields);
    bool taken = c.resampled && field_bool(fields, "taken");
    if (taken) {
        s->ncorrections -= s->of_reply;
        memmove(s->corrections, s->corrections + s->of_reply,
                (size_t)s->ncorrections * sizeof *s->corrections);
    } else if (c.resampled) {
        s->ncorrections = s->of_reply;
    }
    if ((taken || !c.resampled) && s->ncorrections < STORY_MAX_CORRECTIONS)
        s->corrections[s->ncorrections++] = c;
    if (c.resampled)
        s->of_reply = s->ncorrections;
}

static bool is_correction(const char *kind)
{
    return !strcmp(kind, "assist") || !strcmp(kind, "localize") || !strcmp(kind, "copy") ||
           !strcmp(kind, "cover");
}

static void add_event(struct story_step *s, const char *kind, const json_t *fields)
{
    const struct {
        const char *kind;
        const json_t **last;
    } kinds[] = {{"observe", &s->observe}, {"prompt", &s->prompt}, {"generate", &s->generate},
                 {"step", &s->step},       {"effect", &s->effect}, {"tool_output", &s->output},
                 {"error", &s->error},     {"stale", &s->stale}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kind, kinds[i].kind))
            *kinds[i].last = fields;
    if (!strcmp(kind, "observe")) {
        int64_t frame = json_is_integer(json_object_get(fields, "frame")) ? field_int(fields, "frame") : -1;
        s->beyond_budget = field_bool(fields, "beyond_budget");
        s->frame = frame < 1000000 ? (int)frame : -1;
        s->from = (int)field_int(fields, "from");
        s->ms[PHASE_SETTLE] += milliseconds(fields, "settle_ms");
        s->ms[PHASE_SEE] += milliseconds(fields, "capture_ms");
    } else if (!strcmp(kind, "cancelled")) {
        s->cancelled++;
    } else if (!strcmp(kind, "committed")) {
        s->ms[PHASE_SETTLE] = milliseconds(fields, "settle_ms");
    } else if (!strcmp(kind, "prompt")) {
        s->ms[PHASE_READ] += milliseconds(fields, "ms");
    } else if (!strcmp(kind, "generate")) {
        s->attempts++;
        s->of_reply = s->ncorrections;
        s->ms[PHASE_WRITE] += milliseconds(fields, "ms");
    } else if (!strcmp(kind, "step")) {
        s->beyond_budget |= field_bool(fields, "beyond_budget"); /* used up after the screenshot */
    } else if (!strcmp(kind, "action")) {
        add_action(s, fields);
    } else if (!strcmp(kind, "human") && s->nhuman < STORY_MAX_HUMAN) {
        s->human[s->nhuman++] = fields;
    } else if (is_correction(kind)) {
        add_correction(s, kind, fields);
    } else if (!strcmp(kind, "gate")) {
        add_ruling(s, fields);
    } else if (!strcmp(kind, "exec")) {
        add_exec(s, fields);
    }
}

void story_make(struct story *s, const struct record *r)
{
    *s = (struct story){0};
    for (int i = 0; i < r->n; i++) {
        const struct event *v = &r->events[i];
        if (!strcmp(v->kind, "end"))
            s->end = v->fields;
        struct story_step *step = find_step(s, v->step);
        if (step)
            add_event(step, v->kind, v->fields);
        if (step && !strcmp(v->kind, "step"))
            choose_reply(step, r, i);
    }
    for (int i = 0; i < s->n; i++) {
        s->counted += !s->steps[i].beyond_budget;
        for (int p = 0; p < PHASES; p++)
            s->ms[p] += s->steps[i].ms[p];
    }
}

void story_free(struct story *s)
{
    free(s->steps);
    *s = (struct story){0};
}
