/* bind.c - turns a tool call into an action.
 *
 *   name  -> tool of the dialect's table -> kind
 *   keys  -> arguments of the tool       -> registry parameters (bind_values.c) -> members of struct action
 *
 * Coordinates are collected first and mapped to pixels when all are known, because only the pair shows
 * which space a fraction is in.  Values fixed by the table ("with") are bound like those that the model
 * wrote.  Messages name the tool and the argument: the model reads them.
 */
#include "actions/parse.h"
#include "actions/place_impl.h"

#include <string.h>

/* ---- the whole call --------------------------------------------------------------------------- */

/* Builds a position from two arguments. A list [min, max] for each is a box; a list for x alone is the whole
 * position, as in click((x, y)). */
static enum action_fault join_axes(struct binding *c, int i, const char *what)
{
    const struct place_axis *x = &c->axes[i].x, *y = &c->axes[i].y;
    struct place_numbers n = {2, {x->least, y->least}, {x->real, y->real}};
    struct err why = ERR_INIT;
    if (x->list && !y->given)
        n = (struct place_numbers){2, {x->least, x->most}, {x->real, x->real}};
    else if (!x->given || !y->given)
        return parse_fault(c->p, FAULT_SCHEMA, "tool '%s': a position needs both of %s", c->tool->name, what);
    else if (x->list || y->list)
        n = (struct place_numbers){
            4, {x->least, y->least, x->most, y->most}, {x->real, y->real, x->real, y->real}};
    c->p->out->repairs |= n.n == 4 ? REPAIR_MIDPOINT : x->list ? REPAIR_ALIAS : 0;
    if (place_combine(&n, &c->at[i], &why))
        return parse_fault(c->p, FAULT_SCHEMA, "tool '%s': %s is not a position: %s", c->tool->name, what,
                           why.text);
    return FAULT_NONE;
}

/* Maps the first or second position to pixels. */
static enum action_fault map_place(struct binding *c, int i, const char *what, int32_t *x, int32_t *y)
{
    struct place *at = &c->at[i];
    enum action_fault f = FAULT_NONE;
    if (!c->whole[i] && !c->axes[i].x.given && !c->axes[i].y.given)
        return FAULT_NONE;
    if (!c->whole[i])
        f = join_axes(c, i, what);
    else if (c->axes[i].x.given || c->axes[i].y.given)
        f = parse_fault(c->p, FAULT_SCHEMA, "tool '%s': the position %s is given twice", c->tool->name, what);
    *(i ? &c->a->nx2 : &c->a->nx) = at->n.x;
    *(i ? &c->a->ny2 : &c->a->ny) = at->n.y;
    return f ? f : coords_place(c->p, what, at, x, y);
}

static void scroll_amount(struct binding *c)
{
    int n = c->amount;
    if (c->direction == 'u' || c->direction == 'd')
        c->a->dy = (int16_t)(c->direction == 'd' ? n : -n);
    if (c->direction == 'l' || c->direction == 'r')
        c->a->dx = (int16_t)(c->direction == 'r' ? n : -n);
}

/* Returns whether the tool takes a position and the call has none. */
static bool place_is_missing(const struct binding *c)
{
    bool given = c->a->npath || c->whole[0] || c->whole[1] || c->axes[0].x.given || c->axes[1].x.given;
    return !given && (tools_arg(c->tool, P_X) || tools_arg(c->tool, P_POINT));
}

/* Presses a chord, in several actions if the repetitions exceed the limit of one.  a: the first action, or
 * NULL. */
static enum action_fault press(struct binding *c, struct action *a, const struct key_chord *chord, int times)
{
    int most = registry_param(P_REPEAT)->max;
    for (; times > 0; times -= most, a = NULL) {
        a = a ? a : parse_add(c->p, ACT_KEY);
        if (!a)
            return parse_fault(c->p, FAULT_SCHEMA, "too many actions in one step");
        memcpy(a->keys, chord->keys, sizeof a->keys);
        a->nkeys = chord->n;
        a->count = (uint8_t)(times > most ? most : times);
        action_plain_keys(a);
    }
    return FAULT_NONE;
}

static bool same_chord(const struct key_chord *a, const struct key_chord *b)
{
    return a->n == b->n && !memcmp(a->keys, b->keys, (size_t)a->n * sizeof *a->keys);
}

/* Adds one action per chord, or per run of equal chords.  count: repetitions of the whole sequence. */
static enum action_fault press_sequence(struct binding *c, const struct key_sequence *all)
{
    int count = c->a->count, runs = 0;
    struct action *first = c->a;
    enum action_fault f = FAULT_NONE;
    for (int round = 0; !f && round < count; round++)
        for (int i = 0, n; !f && i < all->n; i += n, runs++) {
            for (n = 1; i + n < all->n && same_chord(&all->chords[i], &all->chords[i + n]);)
                n++;
            if (n == all->n)
                return press(c, first, &all->chords[0], n * count);
            f = press(c, runs ? NULL : first, &all->chords[i], n);
        }
    return f;
}

/* Turns a list of equal keys into repeated presses of one key, because a pressed key cannot be pressed
 * again. */
static enum action_fault count_repeats(struct binding *c)
{
    struct action *a = c->a;
    struct key_chord chord = {.n = a->nkeys};
    int times = a->count;
    if (c->sequence.n > 1)
        return press_sequence(c, &c->sequence);
    memcpy(chord.keys, a->keys, sizeof chord.keys);
    bool equal = true;
    for (int i = 1; i < a->nkeys; i++)
        equal = equal && a->keys[i] == a->keys[0];
    if (equal) {
        chord.n = 1;
        times *= a->nkeys;
    }
    return press(c, a, &chord, times);
}

/* Turns HOLDTAP without a key to tap into key down, wait, key up. */
static enum action_fault expand_hold(struct binding *c)
{
    struct action held = *c->a;
    c->p->out->nactions--;
    if (c->p->out->nactions + 2 * held.nhold + 1 > STEP_MAX_ACTIONS)
        return parse_fault(c->p, FAULT_SCHEMA, "too many actions in one step");
    for (int i = 0; i < 2 * held.nhold + 1; i++) {
        bool down = i < held.nhold, wait = i == held.nhold;
        struct action *a = parse_add(c->p, down ? ACT_KEYDOWN : wait ? ACT_WAIT : ACT_KEYUP);
        a->ms = wait ? held.ms : 0;
        a->nkeys = !wait;
        a->keys[0] = wait ? 0 : held.keys[down ? i : 2 * held.nhold - i];
    }
    return FAULT_NONE;
}

/* Returns whether the call names its element by a ref, which the run replaces by a place. */
static bool has_ref(const struct binding *c)
{
    return c->p->d->refs && action_ref(c->a->element);
}

static enum action_fault finish(struct binding *c)
{
    struct action *a = c->a;
    enum action_fault f = FAULT_NONE;
    if (c->p->out->cut && place_is_missing(c) && !has_ref(c)) /* the pointer's position would be a guess */
        return parse_fault(c->p, FAULT_PARSE, "the call of '%s' is cut off: its position is missing",
                           c->tool->name);
    if (!a->npath) {
        f = map_place(c, 0, "x, y", &a->x, &a->y);
        f = f ? f : map_place(c, 1, "x2, y2", &a->x2, &a->y2);
    } else {
        a->x = a->path[0].x;
        a->y = a->path[0].y;
        a->x2 = a->path[a->npath - 1].x;
        a->y2 = a->path[a->npath - 1].y;
        a->nx = c->at[0].n.x, a->ny = c->at[0].n.y, a->nx2 = c->at[1].n.x, a->ny2 = c->at[1].n.y;
    }
    if (f)
        return f;
    struct action_address address;
    struct err why = ERR_INIT;
    if (action_is(a->kind, ACTION_ADDRESS) && a->text && action_address(a->text, &address, &why))
        return parse_fault(c->p, FAULT_TEXT, "tool '%s': %s", c->tool->name, why.text);
    if (!a->text && action_ends_run(a->kind)) /* Fara writes its findings before it ends */
        a->text = xstrdup(a->kind == ACT_ANSWER && c->p->out->thought ? c->p->out->thought : "");
    scroll_amount(c);
    action_plain_keys(a);
    const struct tool_arg *text = tools_arg(c->tool, P_TEXT);
    a->wordless = !text || !text->required;
    if (a->kind == ACT_ANSWER && (c->failure || (a->text && strstr(a->text, "[TASK=INFEASIBLE]"))))
        a->kind = ACT_INFEASIBLE;
    if (action_is(a->kind, ACTION_NEEDS_POINT) && a->x == ACTION_ABSENT && !has_ref(c))
        return parse_fault(c->p, FAULT_SCHEMA, "tool '%s' needs a position", c->tool->name);
    if (action_is(a->kind, ACTION_DRAGS) && a->x2 == ACTION_ABSENT)
        return parse_fault(c->p, FAULT_SCHEMA, "tool '%s' needs the position where the drag ends",
                           c->tool->name);
    if (action_takes(a->kind, P_KEY) && !a->nkeys)
        return parse_fault(c->p, FAULT_SCHEMA, "tool '%s' needs a key", c->tool->name);
    if (action_takes(a->kind, P_REPEAT))
        return count_repeats(c);
    return action_takes(a->kind, P_TAP) && a->nkeys == a->nhold ? expand_hold(c) : FAULT_NONE;
}

static const struct tool_arg *find_arg(const struct tool *t, const char *key, bool *alias)
{
    *alias = false;
    for (int i = 0; i < t->nargs; i++)
        if (!strcmp(t->args[i].name, key))
            return &t->args[i];
    *alias = true;
    for (int i = 0; i < t->nargs; i++)
        if (tools_alias(t->args[i].aliases, key, true))
            return &t->args[i];
    return NULL;
}

/* Sets the table's fixed values ("with"), under the registry's names. */
static enum action_fault set_fixed(struct binding *c)
{
    const char *key;
    json_t *v;
    json_object_foreach(c->tool->with, key, v)
    {
        int id = registry_param_id(key);
        const struct param *param = registry_param((enum param_id)id);
        struct tool_arg arg = {
            .id = (enum param_id)id, .name = (char *)key, .min = param->min, .max = param->max};
        arg.values = (char *)param->values;
        enum action_fault f = bind_arg(c, &arg, v);
        if (f)
            return f;
    }
    return FAULT_NONE;
}

/* Sets the model's arguments; sets a bit in *given for each. */
static enum action_fault set_given(struct binding *c, json_t *args, const char *ignore, unsigned *given)
{
    const char *key;
    json_t *v;
    json_object_foreach(args, key, v)
    {
        bool alias;
        if (ignore && !strcmp(key, ignore))
            continue;
        const struct tool_arg *arg = find_arg(c->tool, key, &alias);
        if (!arg)
            return parse_fault(c->p, FAULT_SCHEMA, "tool '%s' takes no '%s'", c->tool->name, key);
        bool keys = registry_param(arg->id)->type == PARAM_KEYS;
        if (!arg->required && (json_is_null(v) || (keys && json_is_array(v) && !json_array_size(v))))
            continue; /* servers send null for an absent value, and an empty list for no keys */
        c->p->out->repairs |= alias ? REPAIR_ALIAS : 0;
        unsigned bit = 1u << (arg - c->tool->args);
        if (*given & bit)
            return parse_fault(c->p, FAULT_SCHEMA, "tool '%s': '%s' is given twice", c->tool->name,
                               arg->name);
        *given |= bit;
        enum action_fault f = bind_arg(c, arg, v);
        if (f)
            return f;
    }
    return FAULT_NONE;
}

static enum action_fault set_missing(struct binding *c, unsigned given)
{
    for (int i = 0; i < c->tool->nargs; i++) {
        const struct tool_arg *arg = &c->tool->args[i];
        int k = arg->id == P_Y2; /* click((x, y)) has the second number in the first argument */
        if (!(given >> i & 1) && has_ref(c) && (arg->id == P_X || arg->id == P_Y || arg->id == P_POINT))
            continue;
        if (given >> i & 1 || ((arg->id == P_Y || k) && (c->whole[k] || c->axes[k].x.list)))
            continue;
        if (arg->required)
            return parse_fault(c->p, FAULT_SCHEMA, "tool '%s' needs '%s'", c->tool->name, arg->name);
        enum action_fault f =
            arg->fallback && !json_is_null(arg->fallback) ? bind_arg(c, arg, arg->fallback) : FAULT_NONE;
        if (f)
            return f;
    }
    return FAULT_NONE;
}

enum action_fault bind_call(struct parse *p, const char *tool, json_t *args, const char *ignore)
{
    bool alias;
    unsigned given = 0;
    struct binding c = {.p = p, .amount = 5};
    c.tool = tools_find(p->d->tools, tool, &alias);
    if (!c.tool)
        return parse_fault(p, FAULT_UNSUPPORTED, "unknown tool '%s'", tool);
    p->out->repairs |= alias ? REPAIR_ALIAS : 0;
    c.a = parse_add(p, c.tool->kind);
    if (!c.a)
        return parse_fault(p, FAULT_SCHEMA, "more than %d actions in one step", STEP_MAX_ACTIONS);
    enum action_fault f = set_fixed(&c);
    f = f ? f : set_given(&c, args, ignore, &given);
    f = f ? f : set_missing(&c, given);
    return f ? f : finish(&c);
}
