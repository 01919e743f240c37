/* emit.c - appends plain steps to a plan: printed, parsed again, and resolved as the player will. */
#include "planner/planner_impl.h"

#include "atspi/roles.h"
#include "plain/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum framed frame_unsure(struct frame *f, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(f->out->why, sizeof f->out->why, fmt, args);
    va_end(args);
    return FRAME_UNSURE;
}

enum framed frame_add(struct frame *f, const struct plain_step *s, float p)
{
    struct plan *out = f->out;
    struct plain_steps again;
    autobuf text = buf_of(2 * PLAIN_TEXT_MAX), check = buf_of(2 * PLAIN_TEXT_MAX);
    plain_print(s, &text);
    if (out->steps.n == PLANNER_STEPS || plain_parse(text.data, &again, NULL))
        return frame_unsure(f, "a step cannot be written: %.80s", text.data);
    if (again.n == 1)
        plain_print(&again.s[0], &check);
    bool same = check.data && !strcmp(text.data, check.data);
    if (same) {
        if (!out->steps.s)
            out->steps.s = xcalloc(PLAIN_STEPS_MAX, sizeof *out->steps.s);
        out->p[out->steps.n] = p;
        out->steps.s[out->steps.n++] = again.s[0];
        again.s[0] = (struct plain_step){0};
    }
    plain_free(&again);
    return same ? FRAME_DONE : frame_unsure(f, "a step cannot be written: %.80s", text.data);
}

enum framed frame_key(struct frame *f, const char *keys)
{
    struct plain_step s = {.verb = PLAIN_KEYS, .what = (char *)(uintptr_t)keys, .times = 1};
    return frame_add(f, &s, 1);
}

/* Returns whether a name finds just this element. */
static bool finds(const struct frame *f, const char *name, enum resolve_for use, const char *row,
                  const struct element *e)
{
    const struct element *found[4];
    struct resolve_query q = {name, use, row && *row ? row : NULL, NULL, false};
    return resolve(f->all->s, &q, found, 4) == 1 &&
           (found[0] == e || found[0]->parent == (int)(e - f->all->s->e) ||
            e->parent == (int)(found[0] - f->all->s->e));
}

static struct plain_step step_of(const struct candidate *c, enum use use)
{
    struct plain_step s = {.verb = PLAIN_PRESS, .what = (char *)(uintptr_t)c->name};
    enum plain_verb sets = use == USE_OFF ? PLAIN_UNTICK : PLAIN_TICK;
    switch (c->kind) {
    case CANDIDATE_TICK:
        s.verb = use == USE_PRESS && !strcmp(c->e->role, "toggle button") ? PLAIN_PRESS : sets;
        break;
    case CANDIDATE_OPTION:
        s.verb = *c->list || strcmp(c->e->role, "radio button") != 0 ? PLAIN_CHOOSE : PLAIN_TICK;
        s.in = *c->list ? (char *)(uintptr_t)c->list : NULL;
        break;
    case CANDIDATE_ROW:
        s.verb = use == USE_PRESS ? PLAIN_CHOOSE : sets;
        break;
    case CANDIDATE_TAB:
        s.verb = PLAIN_TAB;
        break;
    case CANDIDATE_MENU:
        s.verb = PLAIN_MENU;
        for (int i = 0; i < c->levels; i++)
            s.path[s.levels++] = c->path[i];
        break;
    default:
        break;
    }
    if (s.verb == PLAIN_PRESS && *c->row)
        s.row = (char *)(uintptr_t)c->row;
    return s;
}

void frame_describe(const struct candidate *c, struct buf *out)
{
    struct plain_step s = step_of(c, USE_PRESS);
    if (c->kind == CANDIDATE_FIELD)
        buf_printf(out, "enter ... into \"%s\"", c->name);
    else
        plain_print(&s, out);
}

/* Returns whether the step finds its element now.  Elements of closed menus and pages are found later. */
static bool is_found(const struct frame *f, const struct candidate *c, const struct plain_step *s)
{
    static const enum resolve_for uses[PLAIN_VERBS] = {[PLAIN_TICK] = RESOLVE_TICK,
                                                       [PLAIN_UNTICK] = RESOLVE_TICK,
                                                       [PLAIN_CHOOSE] = RESOLVE_OPTION,
                                                       [PLAIN_TAB] = RESOLVE_TAB};
    if (*c->tab || s->verb == PLAIN_MENU)
        return true;
    if (s->verb == PLAIN_CHOOSE && *c->list)
        return finds(f, c->list, RESOLVE_LIST, NULL, c->list_of);
    return finds(f, c->name, uses[s->verb], s->row, c->e);
}

/* Opens the page that holds an element. */
static enum framed open_tab(struct frame *f, const struct candidate *c)
{
    struct plain_step tab = {.verb = PLAIN_TAB, .what = (char *)(uintptr_t)c->tab};
    return *c->tab ? frame_add(f, &tab, 1) : FRAME_DONE;
}

enum framed frame_use(struct frame *f, const struct candidate *c, enum use use, float p)
{
    bool check = !strcmp(c->e->role, "check menu item"), radio = !strcmp(c->e->role, "radio menu item");
    bool sets = c->kind == CANDIDATE_TICK || c->kind == CANDIDATE_ROW || check;
    if (use != USE_PRESS && (check || radio) && c->on == (use == USE_ON))
        return FRAME_DONE;
    if (use == USE_OFF && !sets)
        return frame_unsure(f, "'%.60s' cannot be turned off", c->name);
    if (c->off && !f->out->at.any && !f->out->steps.n)
        return frame_unsure(f, "%s '%.60s' is disabled", c->e->role, c->name);
    struct plain_step s = step_of(c, use);
    if (!is_found(f, c, &s))
        return frame_unsure(f, "the name '%.60s' finds several elements, or another one", c->name);
    if (open_tab(f, c) != FRAME_DONE || frame_add(f, &s, p) != FRAME_DONE)
        return FRAME_UNSURE;
    bool press = s.verb == PLAIN_PRESS || s.verb == PLAIN_MENU;
    if (s.verb == PLAIN_PRESS) /* it may close the window with the text, which the player has seen */
        f->out->at.typed[0] = 0;
    f->out->at.pressed = press;
    f->out->at.filled = !press && (s.verb != PLAIN_TAB || f->out->at.filled);
    return FRAME_DONE;
}

enum framed frame_enter(struct frame *f, const struct candidate *c, const char *text, float p)
{
    struct plain_step s = {.verb = PLAIN_ENTER, .value = (char *)(uintptr_t)text};
    if (c && *c->name)
        s.what = (char *)(uintptr_t)c->name;
    if (s.what && !*c->tab && !finds(f, c->name, RESOLVE_FIELD, NULL, c->e))
        return frame_unsure(f, "the name '%.60s' finds several fields", c->name);
    if (c && !s.what && !state_in(c->e->states, STATE_FOCUSED))
        return frame_unsure(f, "the field has no name and not the focus");
    if ((c && open_tab(f, c) != FRAME_DONE) || frame_add(f, &s, p) != FRAME_DONE)
        return FRAME_UNSURE;
    f->out->at.filled = true;
    f->out->at.pressed = false;
    if (!s.what && !strstr(text, "{{")) /* a secret is not seen as it is written here */
        snprintf(f->out->at.typed, sizeof f->out->at.typed, "%s", text);
    return FRAME_DONE;
}

/* ---- clauses of the plain grammar ---------------------------------------------------------------------- */

/* Returns whether a menu path or an option is in the window. */
static bool has_step(const struct frame *f, const struct plain_step *s)
{
    for (int i = 0; i < f->all->n; i++) {
        const struct candidate *c = &f->all->c[i];
        int k = 0;
        if (s->verb == PLAIN_CHOOSE && c->kind == CANDIDATE_OPTION && resolve_same(c->name, s->what) &&
            resolve_same(c->list, s->in))
            return true;
        while (c->kind == CANDIDATE_MENU && k < c->levels && k < s->levels &&
               resolve_same(c->path[k], s->path[k]))
            k++;
        if (k && k == s->levels && c->levels == k)
            return true;
    }
    return false;
}

static bool fits(const struct frame *f, const struct plain_step *s)
{
    static const enum resolve_for uses[PLAIN_VERBS] = {[PLAIN_TICK] = RESOLVE_TICK,
                                                       [PLAIN_UNTICK] = RESOLVE_TICK,
                                                       [PLAIN_CHOOSE] = RESOLVE_OPTION,
                                                       [PLAIN_ENTER] = RESOLVE_FIELD,
                                                       [PLAIN_TAB] = RESOLVE_TAB};
    const struct element *found[2];
    if (s->verb == PLAIN_MENU || (s->verb == PLAIN_CHOOSE && s->in))
        return has_step(f, s);
    if (s->verb == PLAIN_KEYS || s->verb == PLAIN_WAIT || s->verb == PLAIN_CHECK || s->verb == PLAIN_CLOSE)
        return true;
    struct resolve_query q = {s->what, uses[s->verb], s->row, NULL, false};
    return s->what && !s->maybe_key && resolve(f->all->s, &q, found, 2) == 1 &&
           (s->verb != PLAIN_ENTER ||
            strcmp(found[0]->role, "combo box") != 0) && /* its options are chosen */
           (s->verb != PLAIN_UNTICK ||
            strcmp(found[0]->role, "radio button") != 0); /* another one is pressed */
}

enum framed frame_plain(struct frame *f, const struct clause *k)
{
    struct plain_steps steps;
    struct planner_at *at = &f->out->at;
    enum framed done = FRAME_DONE;
    if (plain_parse(k->text, &steps, NULL) < 0)
        return FRAME_NONE;
    for (int i = 0; i < steps.n && done == FRAME_DONE; i++)
        done = fits(f, &steps.s[i]) ? FRAME_DONE : FRAME_NONE;
    for (int i = 0; i < steps.n && done == FRAME_DONE; i++) {
        enum plain_verb v = steps.s[i].verb;
        done = frame_add(f, &steps.s[i], 1);
        at->pressed = v == PLAIN_PRESS || v == PLAIN_MENU || v == PLAIN_KEYS || v == PLAIN_CLOSE ||
                      v == PLAIN_DOUBLE_CLICK;
        at->filled = v == PLAIN_TICK || v == PLAIN_UNTICK || v == PLAIN_CHOOSE || v == PLAIN_ENTER ||
                     (at->filled && !at->pressed);
    }
    plain_free(&steps);
    return done;
}
