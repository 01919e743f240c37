/* gate.c - see gate.h. */
#include "gate/gate_impl.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CROP_W = 320, CROP_H = 200, NEAR = 24, QUESTION_MAX = 1 << 20 };
static const double changed_level = 10; /* a blinking caret stays below */

struct gate *gate_new(const struct gate_options *o)
{
    struct gate *g = xcalloc(1, sizeof *g);
    g->o = *o;
    g->goals = o->task ? goals_new(o->task) : NULL;
    return g;
}

void gate_begin(struct gate *g, struct screen *s, const char *dir)
{
    g->screen = s;
    free(g->dir);
    g->dir = dir ? xstrdup(dir) : NULL;
    redact_free(g->redact);
    g->redact = g->o.redact && secrets_count(g->o.secrets) ? redact_new(s) : NULL;
}

void gate_free(struct gate *g)
{
    if (!g)
        return;
    redact_free(g->redact);
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

/* Of a drag its end. */
static const struct policy_target *last_target(const struct gate *g)
{
    const struct policy_subject *s = &g->subject.s;
    return s->n_targets ? &s->targets[s->n_targets - 1] : NULL;
}

static void describe_window(const struct gate *g, char *out, size_t size)
{
    const struct policy_target *t = last_target(g);
    const struct screen_window *w = t ? &t->window : NULL;
    out[0] = 0;
    if (!w)
        return;
    if (!w->id)
        snprintf(out, size, "the desktop");
    else
        snprintf(out, size, "%.120s%s%.60s%s%.100s", *w->title ? w->title : "without a title",
                 *w->class ? ", " : "", w->class, *w->program ? ", " : "", w->program);
    out[utf8_valid_prefix(out, strlen(out))] = 0;
}

/* ---- the picture ------------------------------------------------------------------------------ */

/* Part of the screen; empty when it cannot be captured: a question works without. */
struct crop {
    struct image im;
    int x, y; /* the target in im; -1: none */
};

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* Around the last target: the end of a drag, for keys the centre of the focused window. */
static void take_crop(struct gate *g, int w, int h, struct crop *out)
{
    const struct policy_target *t = last_target(g);
    struct image all = {0};
    *out = (struct crop){.x = -1, .y = -1};
    if (!t || screen_capture(g->screen, &all, NULL))
        return;
    struct screen_rect view = screen_view(g->screen); /* the capture may have updated it */
    gate_redact(g, &all);
    const struct screen_rect *r = &t->window.rect;
    int cx = (t->placed ? t->x : r->x + r->w / 2) - view.x,
        cy = (t->placed ? t->y : r->y + r->h / 2) - view.y;
    w = min_int(w, all.w);
    h = min_int(h, all.h);
    int x = cx - w / 2, y = cy - h / 2;
    x = x < 0 ? 0 : min_int(x, all.w - w);
    y = y < 0 ? 0 : min_int(y, all.h - h);
    if (w > 0 && h > 0 && image_crop(&out->im, &all, x, y, w, h, NULL) == 0) {
        out->x = t->placed ? cx - x : -1;
        out->y = t->placed ? cy - y : -1;
    }
    image_free(&all);
}

static void mark_target(struct crop *c)
{
    static const uint8_t red[3] = {230, 40, 40}, white[3] = {255, 255, 255};
    if (c->x < 0)
        return;
    image_draw_ring(&c->im, c->x, c->y, 13, 5, white);
    image_draw_ring(&c->im, c->x, c->y, 12, 3, red);
}

/* confirm/0001.png; "" when it cannot be written. */
static void save_crop(struct gate *g, const struct crop *c, int step, char *name, size_t size, char **path)
{
    name[0] = 0;
    *path = NULL;
    if (!c->im.rgb || !g->dir)
        return;
    char *folder = xasprintf("%s/confirm", g->dir);
    snprintf(name, size, "confirm/%04d-%d.png", step, ++g->questions);
    *path = xasprintf("%s/%s", g->dir, name);
    if (dir_make(folder, NULL) || image_write_png(&c->im, *path, NULL)) {
        free(*path);
        *path = NULL;
        name[0] = 0;
    }
    free(folder);
}

void gate_redact(struct gate *g, struct image *capture)
{
    static const uint8_t grey[3] = {128, 128, 128};
    if (!g || !capture->rgb || !g->screen)
        return;
    redact_image(g->redact, capture);
    struct screen_rect root = screen_root(g->screen), view = screen_view(g->screen);
    for (int i = 0; i < g->o.n_hide; i++) {
        struct screen_rect z = zone_rect(&g->o.hide[i], root.w, root.h);
        redact_paint(capture, (struct screen_rect){z.x - view.x, z.y - view.y, z.w, z.h}, grey);
    }
}

/* ---- asking ----------------------------------------------------------------------------------- */

static void question_json(const struct gate *g, const struct action *a, const char *what, const char *path,
                          const struct gate_ruling *out, struct buf *b)
{
    const struct policy_subject *s = &g->subject.s;
    const struct screen_window none = {0}, *w = s->n_targets ? &last_target(g)->window : &none;
    buf_puts(b, "{\"v\": 1");
    buf_put_member(b, "what", what);
    buf_put_member(b, "rule", out->rule.rule);
    buf_put_member(b, "task", g->o.task ? g->o.task : "");
    buf_puts(b, ", \"action\": ");
    action_to_json(a, b);
    buf_puts(b, ", \"targets\": [");
    for (int i = 0; i < s->n_targets; i++)
        if (s->targets[i].placed)
            buf_printf(b, "%s[%d, %d]", i ? ", " : "", s->targets[i].x, s->targets[i].y);
    buf_printf(b, "], \"window\": {\"id\": %lu", w->id);
    buf_put_member(b, "title", w->title);
    buf_put_member(b, "class", w->class);
    buf_put_member(b, "program", w->program);
    buf_printf(b, "}, \"seconds\": %g", g->o.confirm.seconds);
    if (path)
        buf_put_member(b, "crop", path);
    buf_puts(b, "}\n");
}

static enum confirm_answer ask_person(struct gate *g, const struct action *a, const struct crop *crop,
                                      int step, struct gate_ruling *out)
{
    struct buf what, json;
    char *path;
    buf_init(&what, QUESTION_MAX);
    buf_init(&json, QUESTION_MAX);
    action_describe(a, &what);
    save_crop(g, crop, step, out->crop, sizeof out->crop, &path);
    question_json(g, a, what.data, path, out, &json);
    secrets_scrub_json(g->o.secrets, &json);
    struct confirm_line lines[5] = {
        {"wants to", what.data}, {"window", out->where}, {"rule", out->rule.rule}};
    int n = 3;
    if (g->o.task)
        lines[n++] = (struct confirm_line){"task", g->o.task};
    if (path)
        lines[n++] = (struct confirm_line){"picture", path};
    struct confirm_question q = {lines, n, crop->im.rgb ? &crop->im : NULL, json.data};
    enum confirm_answer answer = confirm_ask(&g->o.confirm, &q, screen_stop_flag(g->screen), &out->who);
    free(path);
    buf_free(&what);
    buf_free(&json);
    return answer;
}

/* What the person has approved must not have changed: the windows and the text here, the pixels near the
 * target below. */
static bool same_targets(const struct policy_subject *a, const struct policy_subject *b)
{
    bool same = a->n_targets == b->n_targets && a->writing.known == b->writing.known &&
                (!a->writing.known || !strcmp(a->writing.text, b->writing.text));
    for (int i = 0; same && i < a->n_targets; i++) {
        const struct screen_window *v = &a->targets[i].window, *w = &b->targets[i].window;
        same = v->id == w->id && !strcmp(v->title, w->title) && !strcmp(v->class, w->class);
    }
    return same;
}

static int check_unchanged(struct gate *g, const struct action *a, const struct view_transform *transform,
                           const struct crop *near, bool *same, struct err *e)
{
    struct policy_subject asked = g->subject.s; /* its corners are not compared */
    struct crop now;
    char *text = xstrdup(asked.writing.known ? asked.writing.text : "");
    asked.writing.text = text;
    int rc = gate_look(g, a, transform, e);
    *same = rc == 0 && same_targets(&asked, &g->subject.s);
    free(text);
    if (rc)
        return -1;
    take_crop(g, 2 * NEAR, 2 * NEAR, &now);
    if (near->im.rgb && now.im.rgb && near->x >= 0)
        *same = *same && image_tiles_changed(&near->im, &now.im, changed_level) == 0;
    image_free(&now.im);
    return 0;
}

__attribute__((format(printf, 3, 4))) static void refuse(struct gate_ruling *out, enum action_fault fault,
                                                         const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    out->pass = false;
    out->fault = fault;
    snprintf(out->told, sizeof out->told, "%s: not done: %s", action_fault_name(fault), text);
    out->told[utf8_valid_prefix(out->told, strlen(out->told))] = 0;
}

static void apply_answer(struct gate *g, enum confirm_answer answer, struct gate_ruling *out)
{
    const char *rule = out->rule.rule;
    switch (answer) {
    case CONFIRM_ALLOWED:
        out->pass = true;
        return;
    case CONFIRM_DECLINED:
        refuse(out, FAULT_REFUSED,
               "a person was asked (rule \"%s\") and declined; do not try it in another way", rule);
        return;
    case CONFIRM_TIMED_OUT:
        refuse(out, FAULT_REFUSED, "a person was asked (rule \"%s\") and did not answer in time", rule);
        return;
    case CONFIRM_STOPPED:
        refuse(out, FAULT_REFUSED, "stopped");
        return;
    case CONFIRM_NOBODY:
        refuse(out, FAULT_REFUSED, "the rule \"%s\" wants a person to be asked, and there is nobody to ask",
               rule);
        if (!g->warned_nobody)
            warn("the rule \"%s\" asks before this, and there is nobody to ask: see --confirm", rule);
        g->warned_nobody = true;
    }
}

static int ask_and_check_again(struct gate *g, const struct action *a, const struct view_transform *transform,
                               int step, struct gate_ruling *out, struct err *e)
{
    struct crop crop, near;
    int64_t start = clock_ns();
    bool same = true;
    take_crop(g, 2 * NEAR, 2 * NEAR, &near);
    take_crop(g, CROP_W, CROP_H, &crop);
    mark_target(&crop);
    enum confirm_answer answer = ask_person(g, a, &crop, step, out);
    int rc = answer == CONFIRM_STOPPED ? err_set(e, ERR_STOPPED, "stopped while a person was asked") : 0;
    bool asked = g->o.confirm.method != CONFIRM_YES;
    if (answer == CONFIRM_ALLOWED && asked)
        rc = check_unchanged(g, a, transform, &near, &same, e);
    apply_answer(g, answer, out);
    if (!same)
        refuse(out, FAULT_REFUSED,
               "what is under the target has changed while a person was asked; look again");
    out->ms = clock_ms_since(start);
    image_free(&crop.im);
    image_free(&near.im);
    return rc;
}

int gate_decide(struct gate *g, const struct action *a, const struct view_transform *transform, int step,
                bool reviewed, struct gate_ruling *out, struct err *e)
{
    *out = (struct gate_ruling){.who = "policy"};
    if (gate_judge(g, a, transform, &out->rule, e))
        return -1;
    describe_window(g, out->where, sizeof out->where);
    g->window = g->subject.s.n_targets ? g->subject.s.targets[0].window.id : 0;
    if (out->rule.verdict == POLICY_CONFIRM && g->o.dry_run)
        out->who = "dry run";
    else if (out->rule.verdict == POLICY_CONFIRM && reviewed)
        out->who = "stepper";
    else if (out->rule.verdict == POLICY_CONFIRM)
        return ask_and_check_again(g, a, transform, step, out, e);
    out->pass = out->rule.verdict != POLICY_DENY;
    if (!out->pass)
        refuse(out, FAULT_DENIED, "the rule \"%s\" forbids it; do not try it in another way", out->rule.rule);
    return 0;
}
