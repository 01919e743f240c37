/* edit.c - changes the actions of the shown step; see private.h. */
#include "step/private.h"

#include "actions/registry.h"
#include "base/utf8.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_MAX = 1 << 20 };

char *edit_to_json(const struct action *a)
{
    struct buf b;
    buf_init(&b, JSON_MAX);
    action_to_json(a, &b);
    return buf_take(&b);
}

/* Copies an action deeply, through JSON. */
static int copy_action(struct action *to, const struct action *from, struct err *e)
{
    char *text = edit_to_json(from);
    int rc = action_from_json(text, strlen(text), to, e);
    free(text);
    return rc;
}

int edit_copy(struct step *to, const struct step *from, struct err *e)
{
    *to = (struct step){0};
    for (int i = 0; i < from->nactions; i++) {
        if (copy_action(&to->actions[i], &from->actions[i], e)) {
            step_free(to);
            return -1;
        }
        to->nactions = i + 1;
    }
    return 0;
}

static bool off_screen(int32_t v, int size)
{
    return v != ACTION_ABSENT && (v < 0 || v >= size);
}

static int check_places(const struct action *a, const struct image *frame, struct err *e)
{
    bool bad = off_screen(a->x, frame->w) || off_screen(a->y, frame->h) || off_screen(a->x2, frame->w) ||
               off_screen(a->y2, frame->h) || (a->x == ACTION_ABSENT) != (a->y == ACTION_ABSENT) ||
               (a->x2 == ACTION_ABSENT) != (a->y2 == ACTION_ABSENT);
    for (int i = 0; i < a->npath; i++)
        bad = bad || off_screen(a->path[i].x, frame->w) || off_screen(a->path[i].y, frame->h);
    return bad ? err_set(e, ERR_USAGE, "a point is outside the screenshot of %d x %d pixels", frame->w,
                         frame->h)
               : 0;
}

static bool has_text(enum action_kind k)
{
    return action_takes(k, P_TEXT) || action_takes(k, P_GOALS);
}

/* Checks a text like the parsers of replies: no control characters except tab and newline. */
static int check_text(const struct action *a, struct err *e)
{
    size_t n = a->text ? strlen(a->text) : 0;
    if (n > ACTION_MAX_TEXT)
        return err_set(e, ERR_USAGE, "the text is longer than %d bytes", ACTION_MAX_TEXT);
    if (n != utf8_valid_prefix(a->text ? a->text : "", n))
        return err_set(e, ERR_USAGE, "the text is not valid UTF-8");
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)a->text[i] < 0x20 && a->text[i] != '\n' && a->text[i] != '\t') ||
            a->text[i] == 0x7f)
            return err_set(e, ERR_USAGE, "the text contains control characters");
    return 0;
}

static int check_action(struct action *a, const struct image *frame, struct err *e)
{
    if (has_text(a->kind) && !a->text)
        a->text = xstrdup("");
    bool needs_place = action_is(a->kind, ACTION_DRAGS) && !a->npath && a->x2 == ACTION_ABSENT;
    bool needs_keys = (action_takes(a->kind, P_KEY) || action_takes(a->kind, P_TAP)) && a->nkeys == 0;
    if (needs_place)
        return err_set(e, ERR_USAGE, "a drag needs x2 and y2");
    if (needs_keys)
        return err_set(e, ERR_USAGE, "a '%s' needs keys", action_kind_name(a->kind));
    return check_places(a, frame, e) || check_text(a, e) ? -1 : 0;
}

/* Merges the given members into those of `now`; with "kind" they form a new action. Returns NULL with e. */
static json_t *merge_members(const struct action *now, const char *text, struct err *e)
{
    json_error_t why;
    json_t *given = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(given)) {
        err_set(e, ERR_USAGE, "invalid action, expected a JSON object: %s",
                given ? "another JSON value" : why.text);
        json_decref(given);
        return NULL;
    }
    if (!now || json_object_get(given, "kind"))
        return given;
    char *old = edit_to_json(now);
    json_t *all = json_loads(old, 0, NULL);
    free(old);
    json_object_update(all, given);
    if (json_object_get(given, "x") || json_object_get(given, "y"))
        json_object_del(all, "path"); /* the path started at another point */
    json_decref(given);
    return all;
}

static int replace_action(struct action *at, struct action *with, const struct image *frame, struct err *e)
{
    if (check_action(with, frame, e)) {
        action_free(with);
        return -1;
    }
    action_free(at);
    *at = *with;
    return 0;
}

int edit_json(struct step *s, const char *text, const struct image *frame, struct err *e)
{
    int i = 0;
    if (*text >= '1' && *text <= '9') { /* index of the action */
        char *end;
        i = (int)strtol(text, &end, 10) - 1;
        text = end + strspn(end, " \t");
    }
    if (i > s->nactions || i < 0 || i >= STEP_MAX_ACTIONS)
        return err_set(e, ERR_USAGE, "action %d does not exist", i + 1);
    json_t *all = merge_members(i < s->nactions ? &s->actions[i] : NULL, text, e);
    if (!all)
        return -1;
    char *json = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    struct action a;
    int rc = action_from_json(json, strlen(json), &a, e);
    free(json);
    if (rc)
        return -1;
    if (i == s->nactions)
        s->actions[s->nactions++] = (struct action){0};
    if (replace_action(&s->actions[i], &a, frame, e) == 0)
        return 0;
    if (s->actions[i].kind == ACT_NONE)
        s->nactions--;
    return -1;
}

int edit_target(struct step *s, bool second, int x, int y, const struct image *frame, struct err *e)
{
    for (int i = 0; i < s->nactions; i++) {
        struct action *a = &s->actions[i];
        if ((second ? a->x2 : a->x) == ACTION_ABSENT)
            continue;
        if (off_screen(x, frame->w) || off_screen(y, frame->h))
            return err_set(e, ERR_USAGE, "%d,%d is outside the screenshot of %d x %d pixels", x, y, frame->w,
                           frame->h);
        *(second ? &a->x2 : &a->x) = x;
        *(second ? &a->y2 : &a->y) = y;
        if (a->npath) { /* the ends of the path are the targets */
            struct action_point *end = &a->path[second ? a->npath - 1 : 0];
            *end = (struct action_point){x, y};
        }
        return 0;
    }
    return err_set(e, ERR_USAGE, "this step has no %s", second ? "end of a drag" : "target");
}

int edit_text(struct step *s, const char *text, struct err *e)
{
    for (int i = 0; i < s->nactions; i++) {
        struct action *a = &s->actions[i];
        if (!has_text(a->kind))
            continue;
        struct action wanted = {.text = xstrdup(text)};
        if (check_text(&wanted, e)) {
            free(wanted.text);
            return -1;
        }
        free(a->text);
        a->text = wanted.text;
        return 0;
    }
    return err_set(e, ERR_USAGE, "this step has no text");
}
