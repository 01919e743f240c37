/* describe.c - an action as one line for users, and to and from JSON for the trace.
 *
 * The JSON form is canonical: only the members that the kind uses, always in the same order, so that equal
 * actions have equal texts.  Keys are X names, coordinates are pixels, "n" contains the numbers as the model
 * wrote them. */
#include "actions/keys.h"
#include "actions/registry.h"

#include "base/utf8.h"

#include <jansson.h>

#include <stdlib.h>
#include <string.h>

enum { SHOWN_TEXT = 60, MAX_JSON = 1 << 20 };

static const struct {
    int number;
    const char *name;
} buttons[] = {{1, "left"}, {2, "middle"}, {3, "right"}, {8, "back"}, {9, "forward"}};
enum { NBUTTONS = sizeof buttons / sizeof *buttons };

const char *action_button_name(int number)
{
    for (int i = 0; i < NBUTTONS; i++)
        if (buttons[i].number == number)
            return buttons[i].name;
    return "unknown";
}

/* Appends the X name of a key, or "U20AC". */
static void put_key(struct buf *out, uint32_t keysym)
{
    const char *s = keysym_name(keysym);
    if (s)
        buf_puts(out, s);
    else
        buf_printf(out, "U%04X", keysym & 0xffffff);
}

/* ---- for people ------------------------------------------------------------------------------- */

/* Appends a text in quotes, truncated to SHOWN_TEXT bytes. */
static void put_quoted(struct buf *out, const char *s)
{
    size_t n = strlen(s);
    if (n <= SHOWN_TEXT) {
        buf_put_json(out, s, n);
        return;
    }
    buf_put_json(out, s, utf8_valid_prefix(s, SHOWN_TEXT));
    out->data[--out->len] = 0; /* drops the closing quote, which follows the dots */
    buf_puts(out, "...\"");
}

void action_put_keys(struct buf *out, const uint32_t *keys, int n, const char *between)
{
    for (int i = 0; i < n; i++) {
        buf_puts(out, i ? between : "");
        put_key(out, keys[i]);
    }
}

static void put_target(struct buf *out, const struct action *a, const char *before)
{
    if (*a->element) {
        buf_printf(out, "%s", before);
        put_quoted(out, a->element);
    }
    if (a->x != ACTION_ABSENT)
        buf_printf(out, " at %d,%d", a->x, a->y);
}

/* Appends the name of the kind as words: "key down". */
static void put_kind(struct buf *out, const struct action *a)
{
    for (const char *s = action_kind_name(a->kind); *s; s++)
        buf_putc(out, *s == '_' ? ' ' : *s);
}

/* Appends the places and the text that the action has. */
static void put_rest(struct buf *out, const struct action *a)
{
    put_target(out, a, " ");
    if (a->x2 != ACTION_ABSENT)
        buf_printf(out, " to %d,%d", a->x2, a->y2);
    if (a->text) {
        buf_putc(out, ' ');
        put_quoted(out, a->text);
    }
}

/* The column `describe` of kinds.h. */
typedef void describe_fn(struct buf *out, const struct action *a);

static void describe_plain(struct buf *out, const struct action *a)
{
    put_kind(out, a);
    put_rest(out, a);
}

static void describe_button(struct buf *out, const struct action *a)
{
    put_kind(out, a);
    if (a->button != 1)
        buf_printf(out, " %s", action_button_name(a->button));
    put_rest(out, a);
}

static void describe_keys(struct buf *out, const struct action *a)
{
    put_kind(out, a);
    buf_putc(out, ' ');
    action_put_keys(out, a->keys, a->nkeys, "+");
    put_rest(out, a);
}

static void describe_click(struct buf *out, const struct action *a)
{
    static const char *const times[] = {"", "", "double-", "triple-"};
    if (a->nhold) {
        action_put_keys(out, a->hold, a->nhold, "+");
        buf_putc(out, '+');
    }
    if (a->button != 1)
        buf_printf(out, "%s-", action_button_name(a->button));
    buf_printf(out, "%sclick", times[a->count & 3]);
    put_target(out, a, " ");
}

static void describe_type(struct buf *out, const struct action *a)
{
    buf_puts(out, a->overwrite ? "write " : a->at_end ? "append " : "type ");
    put_quoted(out, a->text ? a->text : "");
    put_target(out, a, " into ");
    if (a->press_enter)
        buf_puts(out, " and press Enter");
}

static void describe_scroll(struct buf *out, const struct action *a)
{
    buf_puts(out, "scroll");
    if (a->dy)
        buf_printf(out, " %s %d", a->dy > 0 ? "down" : "up", abs(a->dy));
    if (a->dx)
        buf_printf(out, " %s %d", a->dx > 0 ? "right" : "left", abs(a->dx));
    put_target(out, a, " in ");
}

static void describe_chord(struct buf *out, const struct action *a)
{
    buf_puts(out, "press ");
    action_put_keys(out, a->keys, a->nkeys, "+");
    if (a->count > 1)
        buf_printf(out, " %d times", a->count);
}

static void describe_holdtap(struct buf *out, const struct action *a)
{
    buf_puts(out, "hold ");
    action_put_keys(out, a->keys, a->nhold, "+");
    buf_puts(out, ", tap ");
    action_put_keys(out, a->keys + a->nhold, a->nkeys - a->nhold, ", ");
}

static void describe_wait(struct buf *out, const struct action *a)
{
    buf_printf(out, "wait %g s", a->ms / 1000.0);
}

void action_describe(const struct action *a, struct buf *out)
{
#define ACTION(kind, execute, describe, ...) [kind] = describe,
    static describe_fn *const describers[ACT_COUNT] = {
#include "actions/kinds.h"
    };
    describers[a->kind](out, a);
}

/* ---- for the trace ---------------------------------------------------------------------------- */

static void put_keys_member(struct buf *out, const char *key, const uint32_t *keys, int n)
{
    buf_printf(out, ", \"%s\": [", key);
    for (int i = 0; i < n; i++) {
        buf_puts(out, i ? ", \"" : "\"");
        put_key(out, keys[i]);
        buf_putc(out, '"');
    }
    buf_putc(out, ']');
}

void action_to_json(const struct action *a, struct buf *out)
{
    buf_printf(out, "{\"kind\": \"%s\"", action_kind_name(a->kind));
    if (a->x != ACTION_ABSENT)
        buf_printf(out, ", \"x\": %d, \"y\": %d", a->x, a->y);
    if (a->x2 != ACTION_ABSENT)
        buf_printf(out, ", \"x2\": %d, \"y2\": %d", a->x2, a->y2);
    if (a->x != ACTION_ABSENT && a->x2 != ACTION_ABSENT)
        buf_printf(out, ", \"n\": [%.6g, %.6g, %.6g, %.6g]", a->nx, a->ny, a->nx2, a->ny2);
    else if (a->x != ACTION_ABSENT)
        buf_printf(out, ", \"n\": [%.6g, %.6g]", a->nx, a->ny);
    if (a->npath) {
        buf_puts(out, ", \"path\": [");
        for (int i = 0; i < a->npath; i++)
            buf_printf(out, "%s[%d, %d]", i ? ", " : "", a->path[i].x, a->path[i].y);
        buf_putc(out, ']');
    }
    if (action_takes(a->kind, P_BUTTON))
        buf_put_member(out, "button", action_button_name(a->button));
    if (action_takes(a->kind, P_COUNT) || action_takes(a->kind, P_REPEAT))
        buf_printf(out, ", \"count\": %d", a->count);
    if (a->nkeys)
        put_keys_member(out, "keys", a->keys, a->nkeys);
    if (action_takes(a->kind, P_TAP))
        buf_printf(out, ", \"nhold\": %d", a->nhold);
    else if (a->nhold)
        put_keys_member(out, "hold", a->hold, a->nhold);
    if (action_takes(a->kind, P_DIRECTION))
        buf_printf(out, ", \"dx\": %d, \"dy\": %d", a->dx, a->dy);
    if (a->text)
        buf_put_member(out, "text", a->text);
    if (action_takes(a->kind, P_OVERWRITE))
        buf_printf(out, ", \"press_enter\": %s, \"overwrite\": %s", a->press_enter ? "true" : "false",
                   a->overwrite ? "true" : "false");
    if (a->at_end)
        buf_puts(out, ", \"at_end\": true");
    if (a->ms)
        buf_printf(out, ", \"ms\": %u", a->ms);
    if (*a->element)
        buf_put_member(out, "element", a->element);
    buf_putc(out, '}');
}

/* ---- from JSON ----------------------------------------------------------------------------------- */

/* Reads an integer member within lo..hi; the fallback if absent.  Returns false if it is not an integer, or
 * out of range. */
static bool get_int(json_t *root, const char *key, int lo, int hi, int fallback, int *out)
{
    json_t *v = json_object_get(root, key);
    json_int_t n = v ? json_integer_value(v) : fallback;
    *out = (int)n;
    return !v || (json_is_integer(v) && n >= lo && n <= hi);
}

static bool get_keys(json_t *root, const char *key, uint32_t *keys, int max, int *n)
{
    json_t *list = json_object_get(root, key), *one;
    size_t i;
    if (list && (!json_is_array(list) || json_array_size(list) > (size_t)max))
        return false;
    json_array_foreach(list, i, one)
    {
        const char *s = json_string_value(one);
        keys[i] = s ? keysym_named(s) : 0;
        if (!keys[i])
            return false;
    }
    *n = (int)json_array_size(list);
    return true;
}

static bool get_path(json_t *root, struct action *a)
{
    json_t *list = json_object_get(root, "path"), *one;
    size_t i, n = json_array_size(list);
    if (!list)
        return true;
    if (!json_is_array(list) || n < 2 || n > ACTION_MAX_PATH)
        return false;
    a->path = xcalloc(n, sizeof *a->path);
    a->npath = (int)n;
    json_array_foreach(list, i, one)
    {
        json_t *x = json_array_get(one, 0), *y = json_array_get(one, 1);
        if (!json_is_integer(x) || !json_is_integer(y))
            return false;
        a->path[i] = (struct action_point){(int32_t)json_integer_value(x), (int32_t)json_integer_value(y)};
    }
    return true;
}

static bool get_button(json_t *root, struct action *a)
{
    const char *name = json_string_value(json_object_get(root, "button"));
    a->button = 1;
    for (int i = 0; name && i < NBUTTONS; i++)
        if (!strcmp(buttons[i].name, name)) {
            a->button = (uint8_t)buttons[i].number;
            name = NULL;
        }
    return !name;
}

static void get_texts(json_t *root, struct action *a)
{
    const char *text = json_string_value(json_object_get(root, "text"));
    const char *element = json_string_value(json_object_get(root, "element"));
    json_t *n = json_object_get(root, "n");
    if (text)
        a->text = xstrdup(text);
    if (element) {
        size_t len = strlen(element);
        len = utf8_valid_prefix(element, len < ACTION_MAX_ELEMENT ? len : ACTION_MAX_ELEMENT - 1);
        for (size_t i = 0; i < len; i++)
            a->element[i] = (unsigned char)element[i] < 0x20 ? ' ' : element[i];
    }
    a->nx = json_number_value(json_array_get(n, 0));
    a->ny = json_number_value(json_array_get(n, 1));
    a->nx2 = json_number_value(json_array_get(n, 2));
    a->ny2 = json_number_value(json_array_get(n, 3));
    a->press_enter = json_is_true(json_object_get(root, "press_enter"));
    a->overwrite = json_is_true(json_object_get(root, "overwrite"));
    a->at_end = json_is_true(json_object_get(root, "at_end"));
}

/* Parses a JSON action into *a.  Returns NULL, or the name of the first invalid member. */
static const char *read_action(json_t *root, struct action *a)
{
    enum { FAR = 1 << 20, LONG = 1000000 };
    const char *kind = json_string_value(json_object_get(root, "kind"));
    int count, dx, dy, ms, nhold;
    a->kind = kind ? registry_kind(kind) : ACT_NONE;
    if (a->kind == ACT_NONE)
        return "kind";
    if (!get_int(root, "x", -FAR, FAR, ACTION_ABSENT, &a->x) ||
        !get_int(root, "y", -FAR, FAR, ACTION_ABSENT, &a->y) ||
        !get_int(root, "x2", -FAR, FAR, ACTION_ABSENT, &a->x2) ||
        !get_int(root, "y2", -FAR, FAR, ACTION_ABSENT, &a->y2))
        return "place";
    if (!get_int(root, "count", 1, 20, 1, &count) || !get_int(root, "dx", -100, 100, 0, &dx) ||
        !get_int(root, "dy", -100, 100, 0, &dy) || !get_int(root, "ms", 0, LONG, 0, &ms))
        return "number";
    if (!get_keys(root, "keys", a->keys, ACTION_MAX_KEYS, &a->nkeys) ||
        !get_keys(root, "hold", a->hold, ACTION_MAX_HOLD, &a->nhold) ||
        !get_int(root, "nhold", 0, a->nkeys, a->nhold, &nhold))
        return "keys";
    if (!get_path(root, a))
        return "path";
    if (!get_button(root, a))
        return "button";
    a->count = (uint8_t)count;
    a->dx = (int16_t)dx;
    a->dy = (int16_t)dy;
    a->ms = (uint32_t)ms;
    a->nhold = nhold;
    action_plain_keys(a);
    get_texts(root, a);
    struct action_address address;
    if (action_is(a->kind, ACTION_ADDRESS) && a->text && action_address(a->text, &address, NULL))
        return "text";
    return NULL;
}

int action_from_json(const char *json, size_t len, struct action *out, struct err *e)
{
    json_error_t je;
    *out = (struct action){0};
    json_t *root = len <= MAX_JSON ? json_loadb(json, len, 0, &je) : NULL;
    if (!root)
        return err_set(e, ERR_FAILED, "an action that is not JSON: %s",
                       len <= MAX_JSON ? je.text : "too long");
    const char *bad = read_action(root, out);
    json_decref(root);
    if (!bad)
        return 0;
    action_free(out);
    return err_set(e, ERR_FAILED, "an action in JSON with a bad '%s'", bad);
}

char *actions_describe(const struct action *a, int n)
{
    struct buf b;
    buf_init(&b, STEP_MAX_ACTIONS * MAX_JSON);
    for (int i = 0; i < n; i++) {
        buf_puts(&b, i ? "; " : "");
        action_describe(&a[i], &b);
    }
    return buf_take(&b);
}
