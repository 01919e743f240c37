/* playback_put.c - writes the arguments of a recorded action as a reply; see playback_put.h. */
#include "record/playback_put.h"

#include "actions/registry.h"

#include <X11/keysym.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_BYTES = 1 << 16 };

static void put_keys(struct buf *b, const char *name, const uint32_t *keys, int n)
{
    struct action a = {.kind = ACT_KEY, .x = ACTION_ABSENT, .x2 = ACTION_ABSENT, .nkeys = n, .count = 1};
    struct buf json;
    if (!n)
        return;
    memcpy(a.keys, keys, (size_t)n * sizeof *keys);
    buf_init(&json, KEYS_BYTES);
    action_to_json(&a, &json); /* for its spelling of keys */
    const char *list = strchr(json.data, '['), *end = list ? strchr(list, ']') : NULL;
    if (end)
        buf_printf(b, ", \"%s\": %.*s", name, (int)(end - list) + 1, list);
    buf_free(&json);
}

static void put_element(struct buf *b, const struct recording_target *t)
{
    if (!*t->name)
        return;
    buf_puts(b, ", \"element\": ");
    buf_put_json(b, t->name, strlen(t->name));
}

/* Writes the path of a drag. Inside one window the recorded path is kept; to another target it is
 * straight. */
static void put_path(struct buf *b, const struct action *a, struct playback_place from,
                     struct playback_place to)
{
    struct action_point ends[2] = {{a->x, a->y}, {a->x2, a->y2}};
    const struct action_point *p = a->npath ? a->path : ends;
    int n = a->npath ? a->npath : 2;
    bool moved = to.x - from.x != p[n - 1].x - p[0].x || to.y - from.y != p[n - 1].y - p[0].y;
    buf_puts(b, ", \"path\": [");
    for (int i = 0; i < n; i++) {
        struct playback_place at = {from.x + p[i].x - p[0].x, from.y + p[i].y - p[0].y};
        if (moved && i && i < n - 1)
            continue;
        at = i == n - 1 ? to : at;
        buf_printf(b, "%s{\"x\": %d, \"y\": %d}", i ? ", " : "", at.x, at.y);
    }
    buf_putc(b, ']');
}

static void put_arguments(struct buf *b, const struct recording_step *s, struct playback_place from,
                          struct playback_place to)
{
    const struct action *a = &s->action;
    if (action_is(a->kind, ACTION_TYPES) && a->text) {
        buf_puts(b, "\"text\": ");
        buf_put_json(b, a->text, strlen(a->text));
        buf_printf(b, ", \"press_enter\": %s", a->press_enter ? "true" : "false");
        if (s->has_target) {
            buf_printf(b, ", \"x\": %d, \"y\": %d", from.x, from.y);
            put_element(b, &s->target);
        }
        return;
    }
    if (action_is(a->kind, ACTION_NAMED_KEYS)) {
        buf_printf(b, "\"repeat\": %d", a->count);
        put_keys(b, "keys", a->keys, a->nkeys);
        return;
    }
    if (action_is(a->kind, ACTION_DRAGS)) {
        buf_printf(b, "\"button\": \"%s\"", action_button_name(a->button));
        put_path(b, a, from, to);
    } else {
        buf_printf(b, "\"x\": %d, \"y\": %d", from.x, from.y);
    }
    if (action_takes(a->kind, P_DIRECTION))
        buf_printf(b, ", \"direction\": \"%s\", \"amount\": %d",
                   a->dy > 0   ? "down"
                   : a->dy < 0 ? "up"
                   : a->dx > 0 ? "right"
                               : "left",
                   abs(a->dy ? a->dy : a->dx));
    if (action_is(a->kind, ACTION_CLICKS))
        buf_printf(b, ", \"button\": \"%s\", \"count\": %d", action_button_name(a->button), a->count);
    put_element(b, &s->target);
    put_keys(b, "hold", a->hold, a->nhold);
}

static void put_call(struct buf *b, const struct recording_step *s, struct playback_place from,
                     struct playback_place to)
{
    buf_printf(b, "\n<tool_call>{\"name\": \"%s\", \"arguments\": {", action_kind_name(s->action.kind));
    put_arguments(b, s, from, to);
    buf_puts(b, "}}</tool_call>");
}

void playback_put_click(struct buf *b, const struct recording_step *s, struct playback_place at)
{
    struct recording_step click = *s;
    click.action = (struct action){.kind = ACT_CLICK, .button = 1, .count = 1};
    put_call(b, &click, at, at);
}

void playback_put_calls(struct buf *b, const struct recording_step *s, struct playback_place from,
                        struct playback_place to)
{
    struct recording_step part = *s;
    if (!s->action.overwrite) {
        put_call(b, s, from, to);
        return;
    }
    playback_put_click(b, s, from);
    part.has_target = false;
    part.action = (struct action){.kind = ACT_KEY, .keys = {XK_Control_L, XK_a}, .nkeys = 2, .count = 1};
    put_call(b, &part, from, to);
    part.action = s->action;
    put_call(b, &part, from, to);
}
