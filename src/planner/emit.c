/* emit.c - appends plain steps to a plan: printed, parsed again, and resolved as the player will. */
#include "planner/planner_impl.h"

#include "atspi/roles.h"
#include "plain/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool frame_add(struct frame *f, const struct plain_step *s, const struct pick *k)
{
    struct plan *out = f->out;
    struct plain_steps again;
    struct buf text, check;
    buf_init(&text, 2 * PLAIN_TEXT_MAX);
    buf_init(&check, 2 * PLAIN_TEXT_MAX);
    plain_print(s, &text);
    bool ok = out->steps.n < PLANNER_STEPS && plain_parse(text.data, &again, NULL) == 0;
    if (ok) {
        ok = again.n == 1;
        if (ok)
            plain_print(&again.s[0], &check);
        if (ok && !strcmp(text.data, check.data)) {
            if (!out->steps.s)
                out->steps.s = xcalloc(PLAIN_STEPS_MAX, sizeof *out->steps.s);
            int n = out->steps.n++;
            out->steps.s[n] = again.s[0];
            again.s[0] = (struct plain_step){0};
            out->p[n] = k ? k->p : 1;
            out->clause[n] = f->k == &f->p->whole ? 0 : (int)(f->k - f->p->clauses.c);
        } else {
            ok = false;
        }
        plain_free(&again);
    }
    if (!ok)
        frame_unsure(f, "a step cannot be written: %.80s", text.data);
    buf_free(&text);
    buf_free(&check);
    return ok;
}

/* Returns whether a name finds just this element. */
static bool finds(const struct frame *f, const char *name, enum resolve_for use, const char *row,
                  const struct element *e)
{
    const struct element *found[4];
    struct resolve_query q = {name, use, row && *row ? row : NULL, NULL};
    return resolve(f->all->s, &q, found, 4) == 1 &&
           (found[0] == e || found[0]->parent == (int)(e - f->all->s->e) ||
            e->parent == (int)(found[0] - f->all->s->e));
}

static void describe_step(const struct frame *f, const struct candidate *c, struct plain_step *s)
{
    bool off = f->k && f->k->deed == DEED_UNTICK, tick = f->k && (off || f->k->deed == DEED_TICK);
    bool presses = f->k && f->k->deed == DEED_PRESS;
    *s = (struct plain_step){.verb = PLAIN_PRESS, .what = (char *)(uintptr_t)c->name};
    switch (c->kind) {
    case CANDIDATE_TICK:
        s->verb = !strcmp(c->e->role, "toggle button") && !tick && !off ? PLAIN_PRESS
                  : off                                                 ? PLAIN_UNTICK
                                                                        : PLAIN_TICK;
        break;
    case CANDIDATE_OPTION:
        s->verb = *c->list || strcmp(c->e->role, "radio button") != 0 ? PLAIN_CHOOSE : PLAIN_TICK;
        s->in = *c->list ? (char *)(uintptr_t)c->list : NULL;
        break;
    case CANDIDATE_ROW:
        s->verb = tick ? off ? PLAIN_UNTICK : PLAIN_TICK : presses ? PLAIN_PRESS : PLAIN_CHOOSE;
        break;
    case CANDIDATE_TAB:
        s->verb = PLAIN_TAB;
        break;
    case CANDIDATE_MENU:
        s->verb = PLAIN_MENU;
        for (int i = 0; i < c->levels; i++)
            s->path[s->levels++] = c->path[i];
        break;
    default:
        break;
    }
    if (s->verb == PLAIN_PRESS && *c->row)
        s->row = (char *)(uintptr_t)c->row;
}

void frame_describe(const struct frame *f, const struct candidate *c, struct buf *out)
{
    struct plain_step s;
    describe_step(f, c, &s);
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

/* Returns whether a candidate has the state that the deed asks for. */
static bool is_there(const struct frame *f, const struct candidate *c)
{
    bool toggles = !strcmp(c->e->role, "check menu item") || !strcmp(c->e->role, "radio menu item");
    if (toggles && (f->k->deed == DEED_TICK || f->k->deed == DEED_UNTICK))
        return c->on == (f->k->deed == DEED_TICK);
    return false;
}

enum framed frame_use(struct frame *f, const struct pick *k)
{
    const struct candidate *c = k->best;
    struct plain_step s, tab = {.verb = PLAIN_TAB, .what = (char *)(uintptr_t)c->tab};
    if (is_there(f, c))
        return FRAME_DONE;
    if (f->k->deed == DEED_UNTICK && c->kind != CANDIDATE_TICK && c->kind != CANDIDATE_ROW &&
        strcmp(c->e->role, "check menu item") != 0)
        return frame_unsure(f, "'%.60s' cannot be turned off", c->name);
    if (c->off && !f->out->at.any)
        return frame_unsure(f, "%s '%.60s' is disabled", c->e->role, c->name);
    describe_step(f, c, &s);
    if (!is_found(f, c, &s))
        return frame_unsure(f, "the name '%.60s' finds several elements, or another one", c->name);
    if ((*c->tab && !frame_add(f, &tab, NULL)) || !frame_add(f, &s, k))
        return FRAME_UNSURE;
    bool press = (s.verb == PLAIN_PRESS && c->kind != CANDIDATE_ROW) || s.verb == PLAIN_MENU;
    f->out->at.pressed = press;
    f->out->at.filled = !press && s.verb != PLAIN_TAB ? true : f->out->at.filled && !press;
    return FRAME_DONE;
}

enum framed frame_enter(struct frame *f, const struct pick *field, const char *text)
{
    const struct candidate *c = field ? field->best : NULL;
    struct plain_step s = {.verb = PLAIN_ENTER, .value = (char *)(uintptr_t)text};
    if (c && *c->name)
        s.what = (char *)(uintptr_t)c->name;
    if (s.what && !*c->tab && !finds(f, c->name, RESOLVE_FIELD, NULL, c->e))
        return frame_unsure(f, "the name '%.60s' finds several fields", c->name);
    if (c && !s.what && !state_in(c->e->states, STATE_FOCUSED))
        return frame_unsure(f, "the field has no name and not the focus");
    struct plain_step tab = {.verb = PLAIN_TAB, .what = c ? (char *)(uintptr_t)c->tab : NULL};
    if ((c && *c->tab && !frame_add(f, &tab, NULL)) || !frame_add(f, &s, field))
        return FRAME_UNSURE;
    f->out->at.filled = true;
    f->out->at.pressed = false;
    if (!s.what && !strstr(text, "{{")) /* a secret is not seen as it is written here */
        snprintf(f->out->at.typed, sizeof f->out->at.typed, "%s", text);
    return FRAME_DONE;
}

/* ---- clauses of the plain grammar ---------------------------------------------------------------------- */

static bool has_menu(const struct frame *f, const struct plain_step *s)
{
    for (int i = 0; i < f->all->n; i++) {
        const struct candidate *c = &f->all->c[i];
        int k = 0;
        while (c->kind == CANDIDATE_MENU && k < c->levels && k < s->levels &&
               resolve_same(c->path[k], s->path[k]))
            k++;
        if (k && k == s->levels && c->levels == k)
            return true;
    }
    return false;
}

static bool has_option(const struct frame *f, const struct plain_step *s)
{
    for (int i = 0; i < f->all->n; i++)
        if (f->all->c[i].kind == CANDIDATE_OPTION && resolve_same(f->all->c[i].name, s->what) &&
            resolve_same(f->all->c[i].list, s->in))
            return true;
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
    if (s->verb == PLAIN_MENU)
        return has_menu(f, s);
    if (s->verb == PLAIN_CHOOSE && s->in)
        return has_option(f, s);
    if (s->verb == PLAIN_KEYS || s->verb == PLAIN_WAIT || s->verb == PLAIN_CHECK || s->verb == PLAIN_CLOSE)
        return true;
    if (!s->what || s->maybe_key)
        return false;
    struct resolve_query q = {s->what, uses[s->verb], s->row, NULL};
    if (resolve(f->all->s, &q, found, 2) != 1)
        return false;
    return s->verb != PLAIN_ENTER || strcmp(found[0]->role, "combo box") != 0; /* its options are chosen */
}

enum framed frame_plain(struct frame *f)
{
    struct plain_steps steps;
    if (plain_parse(f->k->text, &steps, NULL) < 0)
        return FRAME_NONE;
    enum framed done = FRAME_DONE;
    for (int i = 0; i < steps.n && done == FRAME_DONE; i++)
        done = fits(f, &steps.s[i]) ? FRAME_DONE : FRAME_NONE;
    for (int i = 0; i < steps.n && done == FRAME_DONE; i++) {
        const struct plain_step *s = &steps.s[i];
        bool press = s->verb == PLAIN_PRESS || s->verb == PLAIN_MENU || s->verb == PLAIN_KEYS ||
                     s->verb == PLAIN_CLOSE || s->verb == PLAIN_DOUBLE_CLICK;
        bool value = s->verb == PLAIN_TICK || s->verb == PLAIN_UNTICK || s->verb == PLAIN_CHOOSE ||
                     s->verb == PLAIN_ENTER;
        done = frame_add(f, s, NULL) ? FRAME_DONE : FRAME_UNSURE;
        f->out->at.pressed = press;
        f->out->at.filled = value || (f->out->at.filled && !press);
    }
    plain_free(&steps);
    return done;
}
