/* bind_values.c - one argument of a tool call: type, range, repairs.
 *
 * Accepted, and recorded as repairs: numbers written as strings, integers with a fraction, a list of keys
 * as one text.  A value out of range or of another type is a message to the model.
 */
#include "actions/parse.h"

#include "base/buf.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PIXELS_PER_CLICK = 100, MAX_PIXEL_CLICKS = 30, MAX_PLAN = 8 << 10 };

PRINTF_LIKE(3, 4)
static enum action_fault bad_value(struct binding *c, const char *arg, const char *fmt, ...)
{
    char expected[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(expected, sizeof expected, fmt, ap);
    va_end(ap);
    return parse_fault(c->p, FAULT_SCHEMA, "tool '%s': '%s' must be %s", c->tool->name, arg, expected);
}

/* ---- numbers ---------------------------------------------------------------------------------- */

/* A number, or a string with one; *real: it was written with a fraction. */
static bool read_number(struct binding *c, json_t *v, double *out, bool *real)
{
    if (json_is_string(v)) {
        const char *s = json_string_value(v);
        char *end;
        if (!*s || strspn(s, "+-.0123456789eE") != strlen(s))
            return false;
        *out = strtod(s, &end);
        *real = strcspn(s, ".eE") != strlen(s);
        c->p->out->repairs |= REPAIR_NUMBER_STRING;
        return !*end && isfinite(*out);
    }
    *out = json_number_value(v);
    *real = json_is_real(v);
    return json_is_number(v);
}

static enum action_fault read_int(struct binding *c, const struct tool_arg *arg, json_t *v, int *out)
{
    double n;
    bool real, good = read_number(c, v, &n, &real);
    if (good && real) {
        n = floor(n + 0.5);
        c->p->out->repairs |= REPAIR_FLOAT;
    }
    if (!good || n < arg->min || n > arg->max)
        return bad_value(c, arg->name, "an integer from %d to %d", arg->min, arg->max);
    *out = (int)n;
    return FAULT_NONE;
}

/* One coordinate; a list [min, max] stands for its middle. */
static enum action_fault read_coord(struct binding *c, const struct tool_arg *arg, json_t *v, int i)
{
    double a, b;
    bool real, other;
    if (json_is_array(v) && json_array_size(v) == 2 && read_number(c, json_array_get(v, 0), &a, &real) &&
        read_number(c, json_array_get(v, 1), &b, &other)) {
        c->n[i] = floor((a + b) / 2);
        c->real[i] = real || other;
        if (c->real[i])
            c->n[i] = (a + b) / 2;
        c->has[i] = true;
        c->p->out->repairs |= REPAIR_MIDPOINT;
        return FAULT_NONE;
    }
    c->has[i] = read_number(c, v, &c->n[i], &c->real[i]);
    return c->has[i] ? FAULT_NONE : bad_value(c, arg->name, "a number");
}

/* [x, y], or a box [x0, y0, x1, y1], which stands for its centre. */
static enum action_fault read_point(struct binding *c, const struct tool_arg *arg, json_t *v, int i)
{
    double n[4];
    bool real[4];
    size_t size = json_array_size(v);
    bool good = size == 2 || size == 4;
    for (size_t k = 0; good && k < size; k++)
        good = read_number(c, json_array_get(v, k), &n[k], &real[k]);
    if (!good)
        return bad_value(c, arg->name, "two numbers [x, y]");
    for (int k = 0; k < 2; k++) {
        c->has[i + k] = true;
        c->n[i + k] = size == 2 ? n[k] : (n[k] + n[k + 2]) / 2;
        c->real[i + k] = size == 2 && real[k];
    }
    c->p->out->repairs |= size == 4 ? REPAIR_MIDPOINT : 0;
    return FAULT_NONE;
}

static enum action_fault read_region(struct binding *c, const struct tool_arg *arg, json_t *v)
{
    bool good = json_array_size(v) == 4;
    for (int k = 0; good && k < 4; k++)
        good = c->has[k] = read_number(c, json_array_get(v, (size_t)k), &c->n[k], &c->real[k]);
    return good ? FAULT_NONE : bad_value(c, arg->name, "four numbers [left, top, right, bottom]");
}

static enum action_fault read_path(struct binding *c, const struct tool_arg *arg, json_t *v)
{
    size_t count = json_array_size(v);
    if (count < 2 || count > ACTION_MAX_PATH || c->a->path)
        return bad_value(c, arg->name, "a list of 2 to 256 points");
    c->a->path = xcalloc(count, sizeof *c->a->path);
    c->a->npath = (int)count;
    for (size_t i = 0; i < count; i++) {
        json_t *point = json_array_get(v, i);
        bool list = json_is_array(point);
        struct dialect_numbers n;
        if (!read_number(c, list ? json_array_get(point, 0) : json_object_get(point, "x"), &n.x, &n.fx) ||
            !read_number(c, list ? json_array_get(point, 1) : json_object_get(point, "y"), &n.y, &n.fy))
            return bad_value(c, arg->name, "a list of points with x and y");
        struct action_point *to = &c->a->path[i];
        enum action_fault f = coords_to_pixels(c->p, arg->name, n, &to->x, &to->y);
        if (f)
            return f;
        int k = i ? 2 : 0;
        c->n[k] = n.x;
        c->n[k + 1] = n.y;
    }
    c->has[0] = c->has[1] = c->has[2] = c->has[3] = true;
    return FAULT_NONE;
}

/* ---- words and keys --------------------------------------------------------------------------- */

static enum action_fault read_enum(struct binding *c, const struct tool_arg *arg, json_t *v)
{
    static const char *const names[] = {"left", "middle", "right", "wheel", "back", "forward"};
    static const uint8_t numbers[] = {1, 2, 3, 2, 8, 9};
    const char *word = json_string_value(v);
    if (!word || !tools_has_word(arg->values, word, strlen(word)))
        return bad_value(c, arg->name, "one of %s", arg->values);
    if (arg->id == P_DIRECTION)
        c->direction = (char)(word[0] | 0x20);
    else if (arg->id == P_STATUS)
        c->failure = strncasecmp(word, "succ", 4) != 0;
    else
        for (int i = 0; i < 6; i++)
            if (!strcasecmp(names[i], word))
                c->a->button = numbers[i];
    return FAULT_NONE;
}

/* Appends the keys of one chord text. */
static enum action_fault add_chord(struct binding *c, const char *s, size_t len, uint32_t *keys, int max,
                                   int *n)
{
    char bad[64] = "";
    int got = len ? action_chord(s, len, c->p->d->cmd_is_ctrl, keys + *n, max - *n, bad) : -1;
    if (got == -2)
        return parse_fault(c->p, FAULT_SCHEMA, "too many keys in '%s'", s);
    if (got < 0)
        return parse_fault(c->p, FAULT_KEY, "unknown key '%s'", bad);
    *n += got;
    return FAULT_NONE;
}

/* A list of keys, or one text ("ctrl+s", "ctrl s"). */
static enum action_fault read_keys(struct binding *c, const struct tool_arg *arg, json_t *v, uint32_t *keys,
                                   int max, int *n)
{
    static const char expected[] = "a list of %d to %d keys";
    json_t *one = v;
    enum action_fault f = FAULT_NONE;
    int before = *n, least = arg->id == P_KEY || arg->id == P_TAP ? 1 : arg->min;
    size_t i;
    if (json_is_string(v))
        f = add_chord(c, json_string_value(v), json_string_length(v), keys, max, n);
    else if (!json_is_array(v) || json_array_size(v) > (size_t)max)
        return bad_value(c, arg->name, expected, least, max);
    json_array_foreach(v, i, one)
    {
        if (!json_is_string(one))
            return bad_value(c, arg->name, expected, least, max);
        f = f ? f : add_chord(c, json_string_value(one), json_string_length(one), keys, max, n);
    }
    return f || *n - before >= least ? f : bad_value(c, arg->name, expected, least, max);
}

/* For HOLDTAP the held keys go to the front of keys[]. */
static enum action_fault read_hold(struct binding *c, const struct tool_arg *arg, json_t *v)
{
    struct action *a = c->a;
    if (a->kind != ACT_HOLDTAP)
        return read_keys(c, arg, v, a->hold, ACTION_MAX_HOLD, &a->nhold);
    uint32_t held[ACTION_MAX_HOLD];
    int n = 0;
    enum action_fault f = read_keys(c, arg, v, held, ACTION_MAX_HOLD, &n);
    if (f)
        return f;
    memmove(a->keys + n, a->keys, (size_t)a->nkeys * sizeof *a->keys);
    memcpy(a->keys, held, (size_t)n * sizeof *held);
    a->nkeys += n;
    a->nhold = n;
    return FAULT_NONE;
}

/* ---- texts ------------------------------------------------------------------------------------ */

static enum action_fault read_text(struct binding *c, const struct tool_arg *arg, json_t *v)
{
    if (!json_is_string(v))
        return bad_value(c, arg->name, "a string");
    const char *s = json_string_value(v);
    if (arg->id == P_ELEMENT)
        return parse_element(c->p, s, json_string_length(v), c->a->element);
    return parse_text(c->p, s, json_string_length(v), &c->a->text);
}

/* The plan as the model will read it back: one line per goal, "1. title [status]". */
static enum action_fault read_goals(struct binding *c, const struct tool_arg *arg, json_t *v)
{
    static const char expected[] =
        "a list of 1 to 20 goals {title, status}, status one of todo running done failed, one running at "
        "most";
    enum action_fault f = FAULT_NONE;
    struct buf plan;
    json_t *goal;
    size_t i;
    int running = 0;
    bool good = json_is_array(v) && json_array_size(v) >= 1 && json_array_size(v) <= (size_t)arg->max;
    buf_init(&plan, MAX_PLAN);
    json_array_foreach(v, i, goal)
    {
        const char *title = json_string_value(json_object_get(goal, "title"));
        json_t *said = json_object_get(goal, "status");
        const char *status = said ? json_string_value(said) : "todo";
        good = good && title && status && tools_has_word("todo|running|done|failed", status, strlen(status));
        good = good && json_object_size(goal) == (said ? 2u : 1u);
        if (!good)
            break;
        running += !strcmp(status, "running");
        buf_printf(&plan, "%s%zu. ", i ? "\n" : "", i + 1);
        for (const char *s = title; *s; s++) /* a line end would begin another goal */
            buf_putc(&plan, (unsigned char)*s < 0x20 ? ' ' : *s);
        buf_printf(&plan, " [%s]", status);
    }
    if (!good || running > 1 || plan.full)
        f = bad_value(c, arg->name, expected);
    else
        f = parse_text(c->p, plan.data, plan.len, &c->a->text);
    buf_free(&plan);
    return f;
}

/* ---- one argument ----------------------------------------------------------------------------- */

static enum action_fault set_bool(struct binding *c, const struct tool_arg *arg, json_t *v, bool *to)
{
    *to = json_is_true(v);
    return json_is_boolean(v) ? FAULT_NONE : bad_value(c, arg->name, "true or false");
}

static int wheel_clicks(int pixels)
{
    int clicks = (abs(pixels) + PIXELS_PER_CLICK - 1) / PIXELS_PER_CLICK;
    clicks = clicks > MAX_PIXEL_CLICKS ? MAX_PIXEL_CLICKS : clicks;
    return pixels < 0 ? -clicks : clicks;
}

static enum action_fault set_int(struct binding *c, const struct tool_arg *arg, json_t *v)
{
    int n = 0;
    enum action_fault f = read_int(c, arg, v, &n);
    if (f)
        return f;
    switch (arg->id) {
    case P_AMOUNT:
        c->amount = n;
        break;
    case P_DISTANCE:
        c->amount = wheel_clicks(n);
        break;
    case P_SCROLL_UP:
        n = -n;
        /* fall through */
    case P_SCROLL_X:
    case P_SCROLL_Y:
        *(arg->id == P_SCROLL_X ? &c->a->dx : &c->a->dy) = (int16_t)wheel_clicks(n);
        break;
    default:
        c->a->count = (uint8_t)n;
        break;
    }
    return FAULT_NONE;
}

static enum action_fault set_seconds(struct binding *c, const struct tool_arg *arg, json_t *v)
{
    double n;
    bool real;
    if (!read_number(c, v, &n, &real) || n < arg->min || n > arg->max)
        return bad_value(c, arg->name, "a number of seconds from %d to %d", arg->min, arg->max);
    c->a->ms = (uint32_t)(n * 1000 + 0.5);
    return FAULT_NONE;
}

enum action_fault bind_arg(struct binding *c, const struct tool_arg *arg, json_t *v)
{
    struct action *a = c->a;
    switch (registry_param(arg->id)->type) {
    case PARAM_STRING:
        return read_text(c, arg, v);
    case PARAM_INT:
        return set_int(c, arg, v);
    case PARAM_NUMBER:
        return set_seconds(c, arg, v);
    case PARAM_BOOL:
        return set_bool(c, arg, v,
                        arg->id == P_OVERWRITE ? &a->overwrite
                        : arg->id == P_AT_END  ? &a->at_end
                                               : &a->press_enter);
    case PARAM_ENUM:
        return read_enum(c, arg, v);
    case PARAM_COORD:
        return read_coord(c, arg, v, (int)arg->id - P_X);
    case PARAM_POINT:
        return read_point(c, arg, v, arg->id == P_POINT ? 0 : 2);
    case PARAM_PATH:
        return read_path(c, arg, v);
    case PARAM_REGION:
        return read_region(c, arg, v);
    case PARAM_KEY:
        return read_keys(c, arg, v, a->keys, a->kind == ACT_KEY ? 5 : 1, &a->nkeys);
    case PARAM_KEYS:
        if (arg->id == P_HOLD)
            return read_hold(c, arg, v);
        return read_keys(c, arg, v, a->keys,
                         a->nkeys + arg->max > ACTION_MAX_KEYS ? ACTION_MAX_KEYS : a->nkeys + arg->max,
                         &a->nkeys);
    case PARAM_GOALS:
        return read_goals(c, arg, v);
    case PARAM_ANY:
        break;
    }
    return FAULT_NONE;
}
