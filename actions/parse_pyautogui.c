/* parse_pyautogui.c - scripts of pyautogui calls.
 *
 *     ## Action:
 *     Open the menu
 *     ## Code:
 *     ```python
 *     pyautogui.click(0.512, 0.25)
 *     ```
 *
 * or the calls alone, or one of WAIT, DONE, FAIL.  No interpreter runs: each statement is a call from the
 * dialect's table with literal arguments, positional ones in the order of the table.  Numbers are fractions
 * of the screen if none is above 1, else pixels.  pyperclip.copy followed by ctrl+v is typing. */
#include "actions/parse.h"
#include "actions/python_in.h"

#include <X11/keysym.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct script {
    struct parse *p;
    struct python_in in;
    char *copied; /* text of pyperclip.copy that has not been pasted; NULL: none */
};

/* ---- coordinates ------------------------------------------------------------------------------ */

/* Returns the space of a call's coordinates: pixels if one is above 1, norm1 if one has a fraction, else the
 * dialect's. */
static enum coord_space infer_space(const struct parse *p, const struct tool *t, json_t *args)
{
    bool fraction = false, large = false;
    for (int i = 0; i < t->nargs; i++) {
        json_t *v = json_object_get(args, t->args[i].name);
        struct place at = {.n = {.x = json_number_value(v)}};
        if (registry_param(t->args[i].id)->type != PARAM_COORD ||
            (!json_is_number(v) && place_value(v, &at, NULL)))
            continue;
        large = large || at.n.x > 1 || at.n.y > 1;
        fraction = fraction || at.n.x != floor(at.n.x) || at.n.y != floor(at.n.y);
    }
    return large ? COORD_PIXEL : fraction ? COORD_NORM1 : p->d->coords;
}

/* Handles moveRel and dragRel, which are relative to the previous action of the script. */
static enum action_fault relative_move(struct parse *p, bool drag, const struct python_call *call)
{
    double dx = json_number_value(json_array_get(call->list, 0)),
           dy = json_number_value(json_array_get(call->list, 1));
    const struct action *last = p->out->nactions ? &p->out->actions[p->out->nactions - 1] : NULL;
    if (json_array_size(call->list) < 2 || !last || last->x == ACTION_ABSENT)
        return parse_fault(p, FAULT_UNSUPPORTED, "'%s' needs two numbers, and an earlier position",
                           call->name);
    int x = last->x2 == ACTION_ABSENT ? last->x : last->x2,
        y = last->x2 == ACTION_ABSENT ? last->y : last->y2;
    struct action *a = parse_add(p, drag ? ACT_DRAG : ACT_MOVE);
    if (!a)
        return parse_fault(p, FAULT_SCHEMA, "more than %d actions in one step", STEP_MAX_ACTIONS);
    bool parts = fabs(dx) < 1 && fabs(dy) < 1 && (dx != 0 || dy != 0);
    p->space = COORD_PIXEL;
    a->nx = floor(x + (parts ? dx * p->w : dx) + 0.5);
    a->ny = floor(y + (parts ? dy * p->h : dy) + 0.5);
    enum action_fault f =
        coords_to_pixels(p, "x, y", (struct dialect_numbers){.x = a->nx, .y = a->ny}, &a->x, &a->y);
    if (!f && drag) {
        a->nx2 = a->nx, a->ny2 = a->ny;
        a->x2 = a->x, a->y2 = a->y;
        a->nx = a->x = x;
        a->ny = a->y = y;
    }
    return f;
}

/* ---- calls ------------------------------------------------------------------------------------ */

/* Returns all arguments by name; the keys of hotkey('ctrl', 'c') become one list. */
static json_t *named_args(struct parse *p, const struct tool *t, const struct python_call *call,
                          enum action_fault *f)
{
    json_t *args = json_copy(call->keywords);
    size_t n = json_array_size(call->list);
    bool gather = t->nargs && t->args[0].id == P_KEYS && n && json_is_string(json_array_get(call->list, 0));
    if (!gather && n > (size_t)t->nargs)
        *f = parse_fault(p, FAULT_SCHEMA, "'%s' takes at most %d arguments", call->name, t->nargs);
    for (size_t i = 0; !*f && i < (gather ? 1 : n); i++) {
        const char *name = t->args[i].name;
        json_t *v = gather ? call->list : json_array_get(call->list, i);
        if (json_object_get(args, name))
            *f = parse_fault(p, FAULT_SCHEMA, "'%s': '%s' is given twice", call->name, name);
        json_object_set(args, name, v);
    }
    return args;
}

/* Handles press(['a', 'b']): one action per key. */
static enum action_fault press_each(struct parse *p, const struct tool *t, json_t *args, json_t *keys)
{
    enum action_fault f = FAULT_NONE;
    json_t *one;
    size_t i;
    json_array_foreach(keys, i, one)
    {
        json_t *single = json_copy(args);
        json_object_set(single, t->args[0].name, one);
        f = f ? f : bind_call(p, t->name, single, NULL);
        json_decref(single);
    }
    return f;
}

static enum action_fault bind_named(struct script *s, const struct tool *t, const struct python_call *call)
{
    struct parse *p = s->p;
    enum action_fault f = FAULT_NONE;
    json_t *args = named_args(p, t, call, &f);
    json_t *first = t->nargs ? json_object_get(args, t->args[0].name) : NULL;
    if (!f && json_is_array(first) && t->args[0].id == P_KEY) {
        json_incref(first);
        f = press_each(p, t, args, first);
        json_decref(first);
    } else if (!f) {
        p->space = infer_space(p, t, args);
        f = bind_call(p, t->name, args, NULL);
    }
    json_decref(args);
    return f;
}

/* Turns ctrl+v after a copy into typing. */
static void paste(struct script *s)
{
    struct action *a = s->p->out->nactions ? &s->p->out->actions[s->p->out->nactions - 1] : NULL;
    if (!s->copied || !a || a->kind != ACT_KEY || a->nkeys != 2 || a->keys[0] != XK_Control_L ||
        a->keys[1] != XK_v)
        return;
    a->kind = ACT_TYPE;
    a->nkeys = 0;
    a->text = s->copied;
    s->copied = NULL;
}

static enum action_fault run_call(struct script *s, struct python_call *call)
{
    struct parse *p = s->p;
    bool alias;
    if (!strcmp(call->name, "pyperclip.copy")) {
        json_t *v = json_array_get(call->list, 0);
        if (!json_is_string(v))
            return parse_fault(p, FAULT_SCHEMA, "'pyperclip.copy' takes a string");
        return parse_text(p, json_string_value(v), json_string_length(v), &s->copied);
    }
    if (!strcmp(call->name, "pyautogui.moveRel") || !strcmp(call->name, "pyautogui.dragRel"))
        return relative_move(p, call->name[10] == 'd', call);
    const struct tool *t = tools_find(p->d->tools, call->name, &alias);
    if (!t || (!call->called && strchr(call->name, '.')))
        return parse_fault(p, FAULT_UNSUPPORTED, "'%s' is not a call of a supported function", call->name);
    if (action_ends_run(t->kind) && p->out->nactions) {
        parse_dropped(p, call->name, strlen(call->name));
        p->out->repairs |= REPAIR_EXTRA_CALLS;
        return FAULT_NONE;
    }
    /* typewrite(['a', 'enter']) presses keys */
    json_t *text = json_array_get(call->list, 0);
    if (t->kind == ACT_TYPE && json_is_array(text))
        t = tools_find(p->d->tools, "pyautogui.press", &alias);
    if (!t)
        return parse_fault(p, FAULT_UNSUPPORTED, "'%s' with a list is not supported; pass a string",
                           call->name);
    int first = p->out->nactions;
    enum action_fault f = bind_named(s, t, call);
    struct action *a = &p->out->actions[first];
    if (!f && call->times > 1 && p->out->nactions == first + 1 && a->kind == ACT_KEY &&
        a->count * call->times <= 20) {
        a->count = (uint8_t)(a->count * call->times);
        return FAULT_NONE;
    }
    for (int i = 1; !f && i < call->times; i++)
        f = bind_named(s, t, call);
    if (!f)
        paste(s);
    return f;
}

/* ---- the reply -------------------------------------------------------------------------------- */

static bool find(const char *text, size_t len, const char *mark, const char **at)
{
    *at = memmem(text, len, mark, strlen(mark));
    return *at != NULL;
}

/* Finds the thought and the first code block; returns whether text follows it.  fenced: the text begins with
 * a code block, whose opening fence was stripped. */
static bool find_code(const char **code, size_t *len, const char **thought, size_t *nthought, bool fenced)
{
    const char *text = *code, *end = text + *len, *at, *fence;
    *thought = text;
    *nthought = 0;
    if (find(text, *len, "## Code:", &at)) {
        *nthought = (size_t)(at - text);
        *code = at + strlen("## Code:");
    } else if (find(text, *len, "```", &at) && fenced) {
        *len = (size_t)(at - text);
        return end - at > 4;
    } else if (find(text, *len, "```", &at)) {
        *nthought = (size_t)(at - text);
        *code = at;
    }
    if (*nthought && find(text, *nthought, "## Action:", &at)) {
        *thought = at + strlen("## Action:");
        *nthought -= (size_t)(*thought - text);
    }
    *len = (size_t)(end - *code);
    bool header = find(*code, *len, "\n## ", &at);
    if (find(*code, *len, "```", &fence) && !(header && at < fence)) {
        *code = parse_fence_end(fence, end);
        *len = (size_t)(end - *code);
        if (find(*code, *len, "```", &fence))
            *len = (size_t)(fence - *code);
    } else if (header) {
        *len = (size_t)(at - *code);
    }
    return end - (*code + *len) > 4;
}

enum action_fault parse_pyautogui(struct parse *p, const char *text, size_t len)
{
    struct err why = ERR_INIT;
    struct python_call call;
    const char *thought;
    size_t n;
    int r = 1;
    enum action_fault f = FAULT_NONE;
    const char *end = text + len;
    if (find_code(&text, &len, &thought, &n, p->out->repairs & REPAIR_FENCE))
        p->out->repairs |= REPAIR_TRAILING_TEXT;
    parse_beside(p, thought, n);
    parse_beside(p, text + len, (size_t)(end - text) - len);
    for (parse_trim(&thought, &n); n && *thought == '#'; parse_trim(&thought, &n))
        thought++, n--;
    if (n)
        f = parse_text(p, thought, n, &p->out->thought);
    struct script s = {.p = p, .in = {text, text + len, false, &why}};
    while (!f && (r = python_next(&s.in, &call)) > 0) {
        f = run_call(&s, &call);
        python_call_free(&call);
        if (p->out->repairs & REPAIR_EXTRA_CALLS) { /* the script ends here, whatever follows */
            parse_dropped(p, s.in.at, (size_t)(s.in.end - s.in.at));
            break;
        }
    }
    if (!f && r < 0)
        f = parse_fault(p, s.in.cut ? FAULT_PARSE : FAULT_UNSUPPORTED,
                        "not understood as a pyautogui call: %s", why.text);
    free(s.copied);
    return f;
}
