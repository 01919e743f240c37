/* stepper.c - the overseer that shows steps and asks for commands; see step.h.
 *
 * A step is shown until a command decides about it: edits, breakpoints and invalid commands only change the
 * view. Forks, another reply or a moved window arrive as a new proposal for the same step. */
#include "step/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALTERNATIVES = 8, FORKS = 3 };

struct stepper {
    struct overseer base;
    struct step_front *front;
    struct {
        struct breakpoint *at;
        bool off;
        int hits;
    } breaks[STEP_BREAKS];
    int n_breaks;
    struct breakpoint *until; /* one-time breakpoint, or NULL */
    bool running;             /* until the next breakpoint */
    struct step_odds *odds;   /* candidates of the steps that were shown */
    int n_odds;
    int asked; /* last step that was shown */
    char why[192], message[512];
    /* the edited reply */
    int number, resample;
    struct step edited;
    bool is_edited;
    struct step_view view;
};

static int add_break(struct stepper *s, const char *spec, struct err *e)
{
    if (s->n_breaks == STEP_BREAKS)
        return err_set(e, ERR_USAGE, "more than %d breakpoints", STEP_BREAKS);
    struct breakpoint *b = break_parse(spec, e);
    if (!b)
        return -1;
    memset(&s->breaks[s->n_breaks], 0, sizeof *s->breaks);
    s->breaks[s->n_breaks++].at = b;
    return 0;
}

static int clear_breaks(struct stepper *s, int n, struct err *e)
{
    if (n > s->n_breaks)
        return err_set(e, ERR_USAGE, "breakpoint %d does not exist", n);
    int first = n ? n - 1 : 0, count = n ? 1 : s->n_breaks;
    for (int i = first; i < first + count; i++)
        break_free(s->breaks[i].at);
    memmove(s->breaks + first, s->breaks + first + count,
            (size_t)(s->n_breaks - first - count) * sizeof *s->breaks);
    s->n_breaks -= count;
    return 0;
}

static void update_view(struct stepper *s, const struct proposal *p)
{
    struct step_view *v = &s->view;
    v->p = p;
    v->step = s->is_edited ? &s->edited : p->now.step;
    v->edited = s->is_edited;
    v->confidence = p->now.confidence;
    v->n_breaks = s->n_breaks;
    for (int i = 0; i < s->n_breaks; i++)
        v->breaks[i] = (struct step_break){break_spec(s->breaks[i].at), s->breaks[i].off, s->breaks[i].hits};
    v->odds = s->odds;
    v->n_odds = s->n_odds;
}

static int slot_candidates(const struct stepper *s, const struct proposal *p, const struct slot *slot,
                           struct alternative out[STEP_ALTERNATIVES])
{
    int wanted = s->front->beam_search < STEP_ALTERNATIVES ? s->front->beam_search : STEP_ALTERNATIVES;
    return p->beam_search && wanted > 0 ? p->beam_search(p, slot, out, wanted) : 0;
}

/* Finds the candidates of the first verb and the first coordinate. */
static void search_candidates(struct stepper *s, const struct proposal *p)
{
    struct step_view *v = &s->view;
    v->n_verbs = v->n_places = 0;
    for (int i = p->now.n_slots - 1; i >= 0; i--) {
        const struct slot *slot = &p->now.slots[i];
        bool first = true;
        for (int k = 0; k < i; k++)
            first = first && p->now.slots[k].kind != slot->kind;
        if (first && slot->kind == SLOT_VERB)
            v->n_verbs = slot_candidates(s, p, slot, v->verbs);
        else if (first)
            v->n_places = slot_candidates(s, p, slot, v->places);
    }
}

/* Stores the best candidates of this step, to be shown when it is an earlier step. */
static void keep_odds(struct stepper *s, const struct proposal *p)
{
    const struct step_view *v = &s->view;
    int i = 0;
    while (i < s->n_odds && s->odds[i].number != p->number)
        i++;
    if (i == s->n_odds)
        s->odds = xrealloc(s->odds, (unsigned long)++s->n_odds, sizeof *s->odds);
    struct step_odds *o = &s->odds[i];
    *o = (struct step_odds){.number = p->number};
    o->n_verbs = v->n_verbs < STEP_ODDS ? v->n_verbs : STEP_ODDS;
    o->n_places = v->n_places < STEP_ODDS ? v->n_places : STEP_ODDS;
    memcpy(o->verbs, v->verbs, (size_t)o->n_verbs * sizeof *o->verbs);
    memcpy(o->places, v->places, (size_t)o->n_places * sizeof *o->places);
}

static void drop_edits(struct stepper *s)
{
    step_free(&s->edited);
    s->is_edited = false;
}

/* Returns whether to ask about this step; s->why is the reason. */
static bool should_ask(struct stepper *s, const struct proposal *p)
{
    if (s->asked == p->number) { /* another proposal for the same step */
        snprintf(s->why, sizeof s->why, "%s",
                 p->changed_since ? "the screen has changed since you saw it; this is its current state"
                 : p->moved       ? "the view has moved; the target shows where the event would go now"
                 : p->n_forks > 1 ? "choose one"
                                  : "another reply");
        return true;
    }
    if (!s->running) {
        snprintf(s->why, sizeof s->why, "%s", s->asked ? "next step" : "first step");
        return true;
    }
    bool hit = s->until && break_hit(s->until, &s->view);
    if (hit)
        snprintf(s->why, sizeof s->why, "reached: %s", break_spec(s->until));
    for (int i = 0; i < s->n_breaks; i++) {
        if (s->breaks[i].off || !break_hit(s->breaks[i].at, &s->view))
            continue;
        s->breaks[i].hits++;
        if (!hit)
            snprintf(s->why, sizeof s->why, "breakpoint: %s", break_spec(s->breaks[i].at));
        hit = true;
    }
    return hit;
}

/* Edits a copy, so that the model's step is preserved. */
static int edit_step(struct stepper *s, const struct proposal *p, const struct step_command *c, struct err *e)
{
    if (!s->is_edited && edit_copy(&s->edited, p->now.step, e))
        return -1;
    int rc = 0;
    if (c->verb == STEP_EDIT)
        rc = edit_json(&s->edited, c->text, p->frame, e);
    else if (c->verb == STEP_TEXT)
        rc = edit_text(&s->edited, c->text, e);
    else
        rc = edit_target(&s->edited, c->verb == STEP_TARGET2, c->x, c->y, p->frame, e);
    if (rc && !s->is_edited)
        step_free(&s->edited);
    s->is_edited = s->is_edited || rc == 0;
    return rc;
}

static int set_until(struct stepper *s, const char *spec, struct err *e)
{
    struct breakpoint *b = break_parse(spec, e);
    if (!b)
        return -1;
    break_free(s->until);
    s->until = b;
    s->running = true;
    return 1;
}

static int toggle_break(struct stepper *s, int n, struct err *e)
{
    if (n < 1 || n > s->n_breaks)
        return err_set(e, ERR_USAGE, "breakpoint %d does not exist", n);
    s->breaks[n - 1].off = !s->breaks[n - 1].off;
    return 0;
}

static bool can_rewind(const struct proposal *p, int number)
{
    for (int i = 0; i < p->n_history; i++)
        if (p->history[i].number == number)
            return p->history[i].reachable;
    return number == p->number;
}

static void decide_run(struct stepper *s, struct decision *d)
{
    d->verdict = s->is_edited ? VERDICT_EDIT : VERDICT_RUN;
    if (!s->is_edited)
        return;
    d->edited = s->edited;
    s->edited = (struct step){0};
    s->is_edited = false;
}

/* Applies a command. Returns 1 if *d is the decision, 0 to show the step again, -1 with e for an invalid
 * command. */
static int apply_command(struct stepper *s, const struct proposal *p, const struct step_command *c,
                         struct decision *d, struct err *e)
{
    d->by = s->front->name;
    d->confirmed = s->front->person;
    d->to = c->n;
    switch (c->verb) {
    case STEP_CONTINUE:
        s->running = true;
        __attribute__((fallthrough));
    case STEP_RUN:
        decide_run(s, d);
        return 1;
    case STEP_VETO:
    case STEP_STOP:
        d->verdict = c->verb == STEP_VETO ? VERDICT_VETO : VERDICT_STOP;
        d->reason = xstrdup(c->text);
        return 1;
    case STEP_AGAIN:
        d->verdict = VERDICT_AGAIN;
        return 1;
    case STEP_REWIND:
        d->verdict = VERDICT_REWIND;
        return can_rewind(p, c->n) ? 1 : err_set(e, ERR_USAGE, "cannot rewind to step %d", c->n);
    case STEP_FORK:
        d->verdict = VERDICT_FORK;
        d->n = c->n ? c->n : FORKS;
        return d->n <= OVERSEER_FORKS ? 1
                                      : err_set(e, ERR_USAGE, "at most %d replies at once", OVERSEER_FORKS);
    case STEP_TAKE:
        d->verdict = VERDICT_TAKE;
        return c->n < p->n_forks
                   ? 1
                   : err_set(e, ERR_USAGE, "reply %d does not exist; 'fork' samples replies", c->n);
    case STEP_BREAK:
        return add_break(s, c->text, e);
    case STEP_UNTIL:
        if (set_until(s, c->text, e) < 0)
            return -1;
        decide_run(s, d);
        return 1;
    case STEP_TOGGLE:
        return toggle_break(s, c->n, e);
    case STEP_CLEAR:
        return clear_breaks(s, c->n, e);
    case STEP_RESET:
        drop_edits(s);
        return 0;
    case STEP_SHOW:
        return 0;
    default:
        return edit_step(s, p, c, e);
    }
}

static int ask_for_command(struct stepper *s, const struct proposal *p, struct decision *d, struct err *e)
{
    int rc = 0;
    *s->message = 0;
    s->view.error = false;
    search_candidates(s, p);
    keep_odds(s, p);
    while (rc == 0) {
        struct step_command c = {0};
        struct err wrong = ERR_INIT;
        update_view(s, p);
        if ((s->front->show && s->front->show(s->front, &s->view, e)) ||
            s->front->ask(s->front, &s->view, &c, e))
            return -1;
        *d = (struct decision){0};
        rc = apply_command(s, p, &c, d, &wrong);
        s->view.error = rc < 0;
        snprintf(s->message, sizeof s->message, "%s", wrong.text);
        rc = rc < 0 ? 0 : rc;
    }
    return 0;
}

static int stepper_decide(struct overseer *o, const struct proposal *p, struct decision *d, struct err *e)
{
    struct stepper *s = (struct stepper *)o;
    if (s->number != p->number || s->resample != p->now.resample)
        drop_edits(s);
    s->number = p->number;
    s->resample = p->now.resample;
    s->view.n_verbs = s->view.n_places = 0;
    *s->message = *s->why = 0;
    update_view(s, p);
    if (!should_ask(s, p)) {
        d->verdict = VERDICT_RUN;
        if (s->front->passed)
            s->front->passed(s->front, &s->view);
        return 0;
    }
    s->running = false;
    break_free(s->until);
    s->until = NULL;
    s->asked = p->number;
    return ask_for_command(s, p, d, e);
}

struct stepper *stepper_new(struct step_front *f, const char *const *breaks, struct err *e)
{
    struct stepper *s = xcalloc(1, sizeof *s);
    s->base = (struct overseer){.decide = stepper_decide, .alternatives = f->beam_search ? ALTERNATIVES : 0};
    s->front = f;
    s->view = (struct step_view){.why = s->why, .message = s->message};
    for (; breaks && *breaks; breaks++) {
        s->running = true;
        if (add_break(s, *breaks, e)) {
            stepper_free(s);
            return NULL;
        }
    }
    return s;
}

struct overseer *stepper_overseer(struct stepper *s)
{
    return &s->base;
}

void stepper_ended(struct stepper *s, const char *head, const char *text)
{
    if (s->front->ended)
        s->front->ended(s->front, head, text);
}

void stepper_free(struct stepper *s)
{
    if (!s)
        return;
    clear_breaks(s, 0, NULL);
    break_free(s->until);
    free(s->odds);
    drop_edits(s);
    if (s->front->close)
        s->front->close(s->front);
    free(s);
}

/* ---- front ends by name ---------------------------------------------------------------------- */

static struct step_front *open_window(const struct step_where *w, struct err *e)
{
    if (!w->unseen)
        return step_window(&w->window, e);
    err_set(
        e, ERR_USAGE,
        "no display for the step window: DISPLAY is not set, and the desktop of this run has no viewer; use "
        "--ui-display or --desk-view");
    return NULL;
}

static struct step_front *open_best(const struct step_where *w, struct err *e)
{
    struct err unopened = ERR_INIT;
    if (w->insists)
        return step_window(&w->window, e);
    bool remote = getenv("SSH_CONNECTION") && !w->window.display;
    struct step_front *f = remote ? NULL : open_window(w, &unopened);
    if (f)
        return f;
    if (!(f = step_terminal(STDIN_FILENO, w->out, e))) {
        if (unopened.kind)
            err_set(e, e->kind, "%s; %s", unopened.text, e->text);
    } else if (unopened.kind && !w->quiet) {
        fprintf(w->out, "holorun: stepping in this terminal: %s\n", unopened.text);
    }
    return f;
}

static struct step_front *open_front(const char *how, const struct step_where *w, struct err *e)
{
    if (!strncmp(how, "script:", 7) && how[7])
        return step_script(how + 7, w->quiet ? NULL : w->out, e);
    if (!strcmp(how, "auto"))
        return open_best(w, e);
    if (!strcmp(how, "terminal"))
        return step_terminal(STDIN_FILENO, w->out, e);
    if (!strcmp(how, "window"))
        return open_window(w, e);
    err_set(e, ERR_USAGE, "invalid --step '%s': expected auto, terminal, window or script:FILE", how);
    return NULL;
}

struct stepper *stepper_open(const char *how, const char *const *breaks, const struct step_where *w,
                             struct err *e)
{
    struct step_front *f = open_front(how, w, e);
    return f ? stepper_new(f, breaks, e) : NULL;
}
