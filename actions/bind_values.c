/* bind_values.c - one argument of a tool call: type, range, repairs.
 *
 * Accepted, and recorded as repairs: numbers written as strings, integers with a fraction, a list of keys as
 * one text.  A value out of range or of another type causes a message to the model. */
#include "actions/parse.h"
#include "actions/syntax.h"

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

/* Reads a number, or a string that contains one; *real: it was written with a fraction. */
static bool read_number(struct binding *c, json_t *v, double *out, bool *real)
{
    if (json_is_string(v)) {
        const char *s = json_string_value(v);
        char *end;
        s += strspn(s, " \t\n");
        size_t n = strspn(s, "+-.0123456789eE");
        if (!n || s[n + strspn(s + n, " \t\n")])
            return false;
        *out = strtod(s, &end);
        *real = strcspn(s, ".eE") < n;
        c->p->out->repairs |= REPAIR_NUMBER_STRING;
        return end == s + n && isfinite(*out);
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

/* Reads a position in any notation (place.h). */
static enum action_fault read_point(struct binding *c, const struct tool_arg *arg, json_t *v, int i)
{
    struct err why = ERR_INIT;
    struct place *at = &c->at[i];
    if (place_value(v, at, &why))
        return parse_fault(c->p, FAULT_SCHEMA, "tool '%s': '%s': %s", c->tool->name, arg->name, why.text);
    c->whole[i] = true;
    c->p->out->repairs |= at->box ? REPAIR_MIDPOINT : 0;
    if (json_is_string(v) || json_is_string(json_array_get(v, 0)))
        c->p->out->repairs |= c->p->d->syntax->native_points ? 0 : REPAIR_NUMBER_STRING;
    return FAULT_NONE;
}

/* Reads one coordinate, a list [min, max], or a whole position under the name of its x. */
static enum action_fault read_coord(struct binding *c, const struct tool_arg *arg, json_t *v, int i,
                                    bool vertical)
{
    struct place_axis *to = vertical ? &c->axes[i].y : &c->axes[i].x;
    double a, b;
    bool real, other = false;
    bool list = json_is_array(v) && json_array_size(v) == 2;
    if (read_number(c, list ? json_array_get(v, 0) : v, &a, &real) &&
        (!list || read_number(c, json_array_get(v, 1), &b, &other))) {
        *to = (struct place_axis){a, list ? b : a, true, list, real || other};
        return FAULT_NONE;
    }
    if (vertical || (!json_is_string(v) && !json_is_array(v) && !json_is_object(v)))
        return bad_value(c, arg->name, "a number");
    struct err why = ERR_INIT;
    struct place whole;
    if (json_is_string(v) && place_value(v, &whole, &why))
        return bad_value(c, arg->name, "a number");
    return read_point(c, arg, v, i);
}

static enum action_fault read_region(struct binding *c, const struct tool_arg *arg, json_t *v)
{
    struct err why = ERR_INIT;
    struct place at;
    if (place_value(v, &at, &why) || !at.box)
        return bad_value(c, arg->name, "four numbers [left, top, right, bottom]");
    for (int i = 0; i < 2; i++) {
        c->at[i] = (struct place){.n = at.corners[i]};
        c->whole[i] = true;
    }
    return FAULT_NONE;
}

static enum action_fault read_path(struct binding *c, const struct tool_arg *arg, json_t *v)
{
    size_t count = json_array_size(v);
    if (count < 2 || count > ACTION_MAX_PATH || c->a->path)
        return bad_value(c, arg->name, "a list of 2 to 256 points");
    c->a->path = xcalloc(count, sizeof *c->a->path);
    c->a->npath = (int)count;
    for (size_t i = 0; i < count; i++) {
        struct action_point *to = &c->a->path[i];
        struct place at;
        if (place_value(json_array_get(v, i), &at, NULL) || at.box)
            return bad_value(c, arg->name, "a list of points with x and y");
        enum action_fault f = coords_place(c->p, arg->name, &at, &to->x, &to->y);
        if (f)
            return f;
        c->at[i ? 1 : 0] = at;
    }
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

/* Appends the chords of one text of a list. */
static enum action_fault add_element(struct binding *c, const char *s, size_t len, struct key_sequence *all)
{
    struct err why = ERR_INIT;
    struct key_sequence one;
    enum action_fault f = keys_parse(s, len, c->p->d->cmd_is_ctrl, &one, &why);
    if (f)
        return parse_fault(c->p, f, "%s", why.text);
    if (all->n + one.n > KEYS_MAX_CHORDS)
        return parse_fault(c->p, FAULT_SCHEMA, "too many chords in '%.60s'", s);
    memcpy(all->chords + all->n, one.chords, (size_t)one.n * sizeof *one.chords);
    all->n += one.n;
    return FAULT_NONE;
}

/* Reads a text of chords, or a list of keys, which may itself be written as a text.  Returns
 * FAULT_UNSUPPORTED without a message if an element is not a string. */
static enum action_fault read_sequence(struct binding *c, json_t *v, struct key_sequence *all, bool *list)
{
    struct json_in in = {.max_depth = JSON_IN_MAX_DEPTH};
    size_t i;
    json_t *one, *inner = NULL;
    enum action_fault f = FAULT_NONE;
    all->n = 0;
    if (json_string_length(v) > 1 && *json_string_value(v) == '[')
        inner = json_in(json_string_value(v), json_string_length(v), &in, NULL);
    *list = json_is_array(v) || inner;
    json_array_foreach(inner ? inner : v, i, one)
    {
        if (!f && !json_is_string(one))
            f = FAULT_UNSUPPORTED; /* reported by the caller */
        f = f ? f : add_element(c, json_string_value(one), json_string_length(one), all);
    }
    if (!*list)
        f = json_is_string(v) ? add_element(c, json_string_value(v), json_string_length(v), all)
                              : FAULT_UNSUPPORTED;
    json_decref(inner);
    return f;
}

static bool only_modifiers(const struct key_chord *c)
{
    for (int i = 0; i < c->n; i++)
        if (!keys_is_modifier(c->keys[i]))
            return false;
    return true;
}

/* Merges single keys into one chord.  A chord of modifiers counts as single keys, and so does a chord at the
 * end after modifiers ("ctrl", "shift+t").  Returns false for other chords ("ctrl+a", "Delete"), which form a
 * sequence. */
static bool merge(struct key_sequence *all, bool tapped)
{
    struct key_chord whole = {0};
    bool modifiers = true;
    for (int i = 0; i < all->n; i++) {
        const struct key_chord *c = &all->chords[i];
        bool only = only_modifiers(c), last = i == all->n - 1;
        if (c->n > 1 && (tapped || (!only && !(last && modifiers))))
            return false;
        modifiers = modifiers && only;
    }
    for (int i = 0; i < all->n; i++)
        for (int k = 0; k < all->chords[i].n; k++) {
            if (whole.n == ACTION_MAX_KEYS)
                return false;
            whole.keys[whole.n++] = all->chords[i].keys[k];
        }
    all->chords[0] = whole;
    all->n = 1;
    return true;
}

/* Reads keys: a list of keys, or one text ("ctrl+s", "ctrl s", "ctrl+k ctrl+s"). */
static enum action_fault read_keys(struct binding *c, const struct tool_arg *arg, json_t *v, uint32_t *keys,
                                   int max, int *n)
{
    static const char expected[] = "a list of %d to %d keys";
    struct key_sequence all;
    bool list;
    int least = arg->id == P_KEY || arg->id == P_TAP ? 1 : arg->min;
    if (!json_is_string(v) && (!json_is_array(v) || json_array_size(v) > KEYS_MAX_CHORDS))
        return bad_value(c, arg->name, expected, least, max);
    enum action_fault f = read_sequence(c, v, &all, &list);
    if (f)
        return f == FAULT_UNSUPPORTED ? bad_value(c, arg->name, expected, least, max) : f;
    const char *shown = json_is_string(v) ? json_string_value(v) : arg->name;
    if (all.n > 1 && (list || arg->id == P_TAP))
        merge(&all, arg->id == P_TAP);
    if (all.n > 1 && (!action_takes(c->a->kind, P_REPEAT) || *n))
        return parse_fault(c->p, FAULT_SCHEMA, "'%.60s' has %d chords; expected one", shown, all.n);
    for (int i = 0; i < all.n; i++)
        if (all.chords[i].n > max - *n)
            return list && json_is_array(v)
                       ? bad_value(c, arg->name, expected, least, max)
                       : parse_fault(c->p, FAULT_SCHEMA, "too many keys in '%.60s'", shown);
    if (all.n > 1)
        c->sequence = all;
    int added = all.n ? all.chords[0].n : 0;
    memcpy(keys + *n, all.chords[0].keys, (size_t)added * sizeof *keys);
    *n += added;
    return added >= least || all.n > 1 ? FAULT_NONE : bad_value(c, arg->name, expected, least, max);
}

/* Reads the held keys; for HOLDTAP they go to the front of keys[]. */
static enum action_fault read_hold(struct binding *c, const struct tool_arg *arg, json_t *v)
{
    struct action *a = c->a;
    if (!action_takes(a->kind, P_TAP))
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

/* Reads the plan, formatted as the model will read it later: one line per goal, "1. title [status]". */
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

/* Takes a ref in place of a position.  Returns false if the value is not a ref. */
static bool set_ref(struct binding *c, const struct tool_arg *arg, json_t *v)
{
    const char *text = json_string_value(v);
    bool place = arg->id == P_X || arg->id == P_POINT;
    if (!c->p->d->refs || !place || !text || !action_ref(text))
        return false;
    snprintf(c->a->element, sizeof c->a->element, "%s", text);
    return true;
}

enum action_fault bind_arg(struct binding *c, const struct tool_arg *arg, json_t *v)
{
    struct action *a = c->a;
    if (set_ref(c, arg, v))
        return FAULT_NONE;
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
        return read_coord(c, arg, v, arg->id == P_X2 || arg->id == P_Y2, arg->id == P_Y || arg->id == P_Y2);
    case PARAM_POINT:
        return read_point(c, arg, v, arg->id != P_POINT);
    case PARAM_PATH:
        return read_path(c, arg, v);
    case PARAM_REGION:
        return read_region(c, arg, v);
    case PARAM_KEY:
        return read_keys(c, arg, v, a->keys, action_takes(a->kind, P_KEYS) ? 5 : 1, &a->nkeys);
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
