/* type.c - executes actions that passed the gate.
 *
 * Keys are pressed only while the focused window is the one that the rules were applied to, or one for which
 * they would allow the same text: screen_set_check() installs a check before each event. Writing at a
 * position is done in parts, because the click may move the focus elsewhere; typing a secret has more
 * parts:
 *
 * capture | click | check the focus | type with keys only | capture | Enter
 *
 * The difference between the two screenshots locates the field (redact.h).
 *
 * Enter and space press the focused element, which is known only after the click and after each Tab. So the
 * rest of a text is checked again at these points, unless the user has approved all of it. */
#include "gate/gate_impl.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <X11/keysym.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FOCUS_MOST_MS = 1000, /* time for a click to move the focus under a slow window manager */
    FOCUS_POLL_MS = 2
};

struct typing {
    struct gate *g;
    const struct action *a;
    const struct view_transform *transform;
    struct exec_result *r;
    struct err *e;
    bool secret;
    unsigned long focus; /* last focus found to be allowed; 0: check again */
    unsigned opened;     /* number of windows opened by then */
    bool elsewhere;      /* keys would have gone to a window that is not allowed */
};

/* Executes a part of the action and adds its result to *t->r. */
static enum action_fault execute_part(struct typing *t, const struct action *a)
{
    struct exec_result one = {0};
    enum action_fault f = action_execute(t->g->screen, a, t->transform, &one, t->e);
    t->r->events += one.events;
    t->r->unsure = one.unsure ? one.unsure : t->r->unsure;
    return f && t->elsewhere ? FAULT_FOCUS : f;
}

/* ---- checking the focus ------------------------------------------------------------------------------ */

/* Finds a launcher that has opened meanwhile: it has the keyboard without the focus. */
static bool launcher_opened(struct typing *t, struct screen_window *w)
{
    struct screen_window found[8];
    int n = screen_overlays(t->g->screen, found, 8);
    for (int i = 0; i < n; i++) {
        bool known = false;
        for (int k = 0; k < t->g->subject.s.n_targets; k++)
            known = known || t->g->subject.s.targets[k].window.id == found[i].id;
        if (known || !policy_is_launcher(t->g->o.policy, found[i].class))
            continue;
        *w = found[i];
        return true;
    }
    return false;
}

/* Returns 0 if keys may go to the current window; otherwise -1 with e. */
static int check_window(struct typing *t, struct err *e)
{
    struct gate *g = t->g;
    struct policy_ruling rule = {.rule = ""};
    struct screen_window w;
    if (screen_focused_window(g->screen, &w))
        return err_set(e, ERR_ENV, "display '%s' was lost", screen_name(g->screen));
    bool launcher = launcher_opened(t, &w);
    if (!launcher && w.id == g->window)
        return 0;
    if (!t->secret && gate_allows_window(g, t->a, &w, &rule))
        return 0;
    char title[100] = "";
    snprintf(title, sizeof title, "%.99s", *w.title ? w.title : *w.class ? w.class : "without a title");
    title[utf8_valid_prefix(title, strlen(title))] = 0;
    t->elsewhere = true;
    if (t->secret)
        return err_set(e, ERR_FAILED, "the secret was not typed: another window has the keyboard focus");
    return err_set(e, ERR_FAILED,
                   "another window has the keyboard focus (%s), and the rule \"%s\" %s: the rest of the text "
                   "was not typed; look again",
                   title, rule.rule, rule.verdict == POLICY_DENY ? "forbids it" : "requires confirmation");
}

static int check_before_event(void *arg, struct err *e)
{
    struct typing *t = arg;
    unsigned opened;
    unsigned long focus = screen_focus(t->g->screen, &opened);
    if (focus && focus == t->focus && opened == t->opened)
        return 0;
    if (check_window(t, e))
        return -1;
    t->focus = focus;
    t->opened = opened;
    return 0;
}

/* Clicks the position, if there is one, and waits until the focus has followed. */
static enum action_fault focus_target(struct typing *t)
{
    struct gate *g = t->g;
    if (t->a->x == ACTION_ABSENT || t->a->y == ACTION_ABSENT)
        return FAULT_NONE;
    struct action click = {.kind = ACT_CLICK, .x = t->a->x, .y = t->a->y, .button = 1, .count = 1};
    enum action_fault f = execute_part(t, &click);
    f = f || !screen_click_done(g->screen, t->e) ? f : FAULT_STOPPED;
    struct screen_window w;
    int64_t start = clock_ns();
    while (!f && screen_focused_window(g->screen, &w) == 0 && w.id != g->window &&
           clock_ms_since(start) < FOCUS_MOST_MS) {
        struct policy_ruling rule;
        if (!t->secret && gate_allows_window(g, t->a, &w, &rule))
            break;
        f = screen_wait(t->g->screen, FOCUS_POLL_MS, t->e) ? FAULT_STOPPED : FAULT_NONE;
    }
    return f;
}

/* Executes a part that presses keys. */
static enum action_fault press(struct typing *t, const struct action *a)
{
    struct err why = ERR_INIT;
    if (check_window(t, &why)) {
        *t->e = why;
        return t->elsewhere ? FAULT_FOCUS : FAULT_X11;
    }
    screen_set_check(t->g->screen, check_before_event, t);
    enum action_fault f = execute_part(t, a);
    screen_set_check(t->g->screen, NULL, NULL);
    return f;
}

/* ---- text that may press an element ------------------------------------------------------------------ */

static int judge_part(struct typing *t, const struct action *part)
{
    struct policy_ruling rule;
    if (t->g->approved)
        return 0;
    struct subject whole = t->g->subject;
    int rc = gate_judge(t->g, part, t->transform, &rule, t->e);
    char pressed[256];
    bool opens = t->g->subject.s.address.goes;
    snprintf(pressed, sizeof pressed, "%s", opens ? "" : t->g->subject.s.targets[0].presses);
    t->g->subject = whole;
    if (rc || gate_lets_through(t->g, &rule))
        return rc;
    t->elsewhere = true;
    return err_set(t->e, ERR_FAILED,
                   "its keys would %s %s%s%s, and the rule \"%s\" %s: the rest was not typed; press the key "
                   "in a separate action",
                   opens ? "open" : "press", *pressed ? "'" : "",
                   opens      ? "the address in the browser's bar"
                   : *pressed ? pressed
                              : "a button of a dialog",
                   *pressed ? "'" : "", rule.rule,
                   rule.verdict == POLICY_DENY ? "forbids it" : "requires confirmation");
}

/* Returns the length of the next part of a text: up to and including the next Tabs, if a key that presses an
 * element follows them. In a browser each Enter begins a part, because it may open the address in the bar. */
static size_t part_length(const char *text, bool press_enter, bool browser)
{
    size_t n = strcspn(text, "\t"), line = strchr("\r\n", *text) && *text;
    n += strspn(text + n, "\t");
    n = press_enter || strpbrk(text + n, " \n\r") ? n : strlen(text);
    line += strcspn(text + line, "\r\n");
    return browser && line < n ? line : n;
}

static enum action_fault type_in_parts(struct typing *t)
{
    const char *rest = t->a->text ? t->a->text : "";
    char *typed = NULL;
    bool clicked = t->a->x != ACTION_ABSENT && t->a->y != ACTION_ABSENT, first = true, last = false;
    bool browser = policy_is_browser(t->g->o.policy, &t->g->subject.s.targets[0].window);
    enum action_fault f = focus_target(t);
    for (; !f && !last; first = false) {
        struct action part = *t->a;
        size_t n = part_length(rest, part.press_enter, browser);
        last = !rest[n] && (!n || !part.press_enter || (rest[n - 1] != '\t' && !browser));
        part.text = xasprintf("%.*s", (int)n, rest);
        part.x = part.y = ACTION_ABSENT;
        part.overwrite = part.overwrite && first;
        part.at_end = part.at_end && first;
        part.press_enter = part.press_enter && last;
        if ((clicked || !first) && judge_part(t, &part))
            f = t->elsewhere ? FAULT_FOCUS : FAULT_X11;
        if (!f && !first && t->r->unsure && part.press_enter) {
            err_set(t->e, ERR_FAILED, "unsure: %s, so the rest and Enter were not typed; look at the field",
                    t->r->unsure);
            f = FAULT_X11;
        }
        f = f ? f : press(t, &part);
        free(typed);
        typed = part.text;
        t->g->part = n ? typed : NULL;
        rest += n;
    }
    t->g->part = NULL;
    free(typed);
    return f;
}

/* ---- secrets ---------------------------------------------------------------------------------------- */

static enum action_fault type_filled(struct typing *t)
{
    char *filled = secrets_fill(t->g->o.secrets, t->a->text);
    struct action type = {.kind = ACT_TYPE, .text = filled, .overwrite = t->a->overwrite, .secret = true};
    type.x = type.y = ACTION_ABSENT;
    enum action_fault f = press(t, &type);
    secrets_free_filled(filled);
    return f;
}

/* Clicks into the field and finds the window that will receive the secret. */
static enum action_fault find_receiver(struct typing *t, struct screen_window *w)
{
    enum action_fault f = focus_target(t);
    if (f)
        return f;
    if (screen_focused_window(t->g->screen, w))
        return err_set(t->e, ERR_ENV, "display '%s' was lost", screen_name(t->g->screen)), FAULT_X11;
    return check_window(t, t->e) ? FAULT_FOCUS : FAULT_NONE;
}

/* Covers the field, also if writing failed with f. */
static enum action_fault cover(struct typing *t, const struct screen_window *w, enum action_fault f)
{
    struct err late = ERR_INIT;
    const struct policy_target *at = &t->g->subject.s.targets[0];
    bool placed = at->placed && w->id == at->window.id;
    if (!redact_after(t->g->redact, t->g->screen, w, placed ? at->x : -1, at->y, &late) || f)
        return f;
    *t->e = late;
    return FAULT_X11;
}

/* Types a secret. Enter comes last, because the second screenshot must still show the field. */
static enum action_fault type_secret(struct typing *t)
{
    struct gate *g = t->g;
    struct screen_window w;
    if (g->redact && redact_before(g->redact, g->screen, t->e))
        return FAULT_X11;
    enum action_fault f = find_receiver(t, &w);
    if (f && g->redact)
        redact_untyped(g->redact);
    if (f)
        return f;
    f = type_filled(t);
    if (g->redact) {
        f = cover(t, &w, f);
        if (t->a->press_enter)
            redact_seal(g->redact);
    }
    if (f || !t->a->press_enter)
        return f;
    struct action enter = {.kind = ACT_KEY, .keys = {XK_Return}, .nkeys = 1, .count = 1};
    enter.x = enter.y = ACTION_ABSENT;
    return press(t, &enter);
}

/* Returns whether the action pastes a secret, or an unknown text after a secret was typed. */
static bool pastes_secret(const struct gate *g)
{
    const char *names[SECRETS_MAX];
    if (!g->redact || !g->subject.s.writing.any || !writing_sources(&g->subject.s))
        return false;
    return g->pasted ? secrets_find_values(g->o.secrets, g->pasted, names) > 0 : redact_has_fields(g->redact);
}

/* Pastes a secret. The text may be drawn in another font than at its source, so the field is covered like one
 * that was typed into. */
static enum action_fault paste_secret(struct typing *t)
{
    struct gate *g = t->g;
    struct screen_window w;
    if (redact_before(g->redact, g->screen, t->e))
        return FAULT_X11;
    enum action_fault f = action_is(t->a->kind, ACTION_KEYBOARD) ? press(t, t->a) : execute_part(t, t->a);
    const struct policy_target *last = &g->subject.s.targets[g->subject.s.n_targets - 1];
    if (last->placed || screen_focused_window(g->screen, &w)) /* the middle button, or a drop */
        w = last->window;
    return cover(t, &w, f);
}

/* ---- all actions ------------------------------------------------------------------------------------ */

static enum action_fault execute(struct typing *t)
{
    const char *names[SECRETS_MAX];
    struct gate *g = t->g;
    const struct action *a = t->a;
    t->secret =
        action_is(a->kind, ACTION_TYPES) && a->text && secrets_find_names(g->o.secrets, a->text, names);
    if (t->secret)
        return type_secret(t);
    if (pastes_secret(g))
        return paste_secret(t);
    bool harmless = action_is(a->kind, ACTION_LOOKS) && !action_is(a->kind, ACTION_CHANGES);
    /* changes outside the field that a secret was typed into are not part of it */
    if (g->redact && !harmless)
        redact_seal(g->redact);
    if (!action_is(a->kind, ACTION_KEYBOARD))
        return execute_part(t, a);
    return action_is(a->kind, ACTION_TYPES) ? type_in_parts(t) : press(t, a);
}

enum action_fault gate_execute(struct gate *g, const struct action *a, const struct view_transform *transform,
                               struct exec_result *r, struct err *e)
{
    struct err own = ERR_INIT;
    struct typing t = {.g = g, .a = a, .transform = transform, .r = r, .e = e ? e : &own};
    int64_t start = clock_ns();
    *r = (struct exec_result){0};
    enum action_fault f = execute(&t);
    r->ms = clock_ms_since(start);
    return f;
}
