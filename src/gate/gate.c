/* gate.c - decides about actions and covers secrets in screenshots; see gate.h. */
#include "gate/gate_impl.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gate *gate_new(const struct gate_options *o)
{
    struct gate *g = xcalloc(1, sizeof *g);
    g->o = *o;
    g->goals = o->task ? goals_new(o->task) : NULL;
    return g;
}

static void forget_covered(struct gate *g)
{
    if (g->redact != g->o.covered)
        redact_free(g->redact);
    else if (g->redact)
        redact_leave(g->redact, g->screen);
    g->redact = NULL;
}

void gate_begin(struct gate *g, struct screen *s, const char *dir)
{
    g->screen = s;
    free(g->dir);
    g->dir = dir ? xstrdup(dir) : NULL;
    forget_covered(g);
    g->redact = g->o.covered                                 ? g->o.covered
                : g->o.redact && secrets_count(g->o.secrets) ? redact_new()
                                                             : NULL;
}

void gate_free(struct gate *g)
{
    if (!g)
        return;
    forget_covered(g);
    goals_free(g->goals);
    free(g->dir);
    free(g->pasted);
    free(g);
}

void gate_action_done(struct gate *g, const struct action *a)
{
    subject_update_held(a, g->held, &g->n_held);
    gate_note_written(g, a);
    if (a->kind == ACT_PLAN && a->text && g->goals)
        goals_add_plan(g->goals, a->text);
}

void gate_set_check(struct gate *g, const char *text)
{
    snprintf(g->check, sizeof g->check, "%s%s", text ? "the model's server requests a check: " : "",
             text ? text : "");
    g->check[utf8_valid_prefix(g->check, strlen(g->check))] = 0;
}

void gate_set_spent(struct gate *g, const struct policy_spent *spent)
{
    g->spent = *spent;
}

void gate_keys_released(struct gate *g)
{
    g->n_held = 0;
    g->buttons = 0;
}

/* ---- targets and rules ------------------------------------------------------------------------ */

int gate_judge(struct gate *g, const struct action *a, const struct view_transform *transform,
               struct policy_ruling *out, struct err *e)
{
    if (gate_look(g, a, transform, e))
        return -1;
    *out = gate_apply_rules(g, a);
    return 0;
}

void gate_redact(struct gate *g, struct image *capture)
{
    static const uint8_t grey[3] = {128, 128, 128};
    if (!g || !capture->rgb || !g->screen)
        return;
    redact_image(g->redact, g->screen, capture);
    struct screen_rect root = screen_root(g->screen), view = screen_view(g->screen);
    for (int i = 0; i < g->o.n_hide; i++) {
        struct screen_rect z = zone_rect(&g->o.hide[i], root.w, root.h);
        redact_paint(capture, (struct screen_rect){z.x - view.x, z.y - view.y, z.w, z.h}, grey);
    }
}

bool gate_lets_through(const struct gate *g, const struct policy_ruling *r)
{
    return r->verdict == POLICY_ALLOW || (r->verdict == POLICY_CONFIRM && g->o.confirm.method == CONFIRM_YES);
}

/* ---- deciding --------------------------------------------------------------------------------- */

static int note_approval(struct gate *g, const struct gate_ruling *r)
{
    g->approved = r->pass && r->rule.verdict == POLICY_CONFIRM;
    return 0;
}

int gate_decide(struct gate *g, const struct action *a, const struct view_transform *transform, int step,
                bool reviewed, struct gate_ruling *out, struct err *e)
{
    *out = (struct gate_ruling){.who = "policy"};
    if (gate_judge(g, a, transform, &out->rule, e))
        return -1;
    gate_describe_window(g, out->where, sizeof out->where);
    g->window = g->subject.s.n_targets ? g->subject.s.targets[0].window.id : 0;
    if (out->rule.verdict == POLICY_CONFIRM && g->o.dry_run)
        out->who = "dry run";
    else if (out->rule.verdict == POLICY_CONFIRM && reviewed)
        out->who = "stepper";
    else if (out->rule.verdict == POLICY_CONFIRM)
        return gate_ask(g, a, transform, step, out, e) ? -1 : note_approval(g, out);
    out->pass = out->rule.verdict != POLICY_DENY;
    note_approval(g, out);
    if (!out->pass)
        gate_refuse(out, FAULT_DENIED, "the rule \"%s\" forbids it; do not try it in another way",
                    out->rule.rule);
    return 0;
}
