/* calibrate_ask.c - the questions of one dialect: positions as `ground` asks for them, steps as `run` does.
 *
 * A position is first requested without the grammar, which shows whether the model knows the form and allows
 * numbers outside the range of the grammar.  If the reply cannot be read, the question is repeated with the
 * grammar.  A step always has the grammar, as in a run; its system text is computed once for all screens. */
#include "eval/calibrate.h"

#include "actions/action.h"
#include "actions/place.h"
#include "judge/vqa.h"
#include "llm/llm.h"
#include "llm/prompt.h"
#include "screen/screen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PLACE_TOKENS = 128, STEP_TOKENS = 512, USUAL_W = 1280, USUAL_H = 800, WINDOW_W = 640, WINDOW_H = 480 };

struct work {
    const struct calibration_run *a;
    struct candidate *c;
    struct calibration_screen *screens;
    int n_screens;
    struct llm *llm;         /* used for steps */
    struct llm_mark *before; /* mark in llm after the system text */
};

typedef int ask_fn(struct work *w, const struct calibration_screen *s, const struct calibration_target *t,
                   struct err *e);

static int draw_screens(struct work *w, struct err *e)
{
    int left = w->a->targets;
    w->screens = xcalloc((unsigned long)(left / CALIBRATE_ON_SCREEN + 1), sizeof *w->screens);
    while (left > 0) {
        int n = left < CALIBRATE_ON_SCREEN ? left : CALIBRATE_ON_SCREEN;
        if (calibration_draw(&w->screens[w->n_screens], w->c->w, w->c->h, n,
                             w->a->seed + (uint64_t)w->n_screens, e))
            return -1;
        w->n_screens++;
        left -= n;
    }
    return 0;
}

/* Asks about all targets, or until the candidate is hopeless.  Returns -1 with e. */
static int ask_all(struct work *w, enum question q, ask_fn *ask, struct err *e)
{
    for (int i = 0; i < w->n_screens; i++)
        for (int k = 0; k < w->screens[i].n && !candidate_hopeless(w->c, q); k++) {
            if (ask(w, &w->screens[i], &w->screens[i].targets[k], e))
                return -1;
            if (w->a->progress)
                w->a->progress(w->a->arg, candidate_asked(w->c));
        }
    return 0;
}

/* ---- positions ----------------------------------------------------------------------------------------- */

/* Asks for the position of a label.  Returns 0 with numbers, 1 without, -1 with e. */
static int place_of(struct vqa *l, const struct image *im, const char *label, bool free,
                    struct dialect_numbers *n, struct err *e)
{
    struct sampling greedy = {.temperature = 0, .top_p = 1, .max_tokens = PLACE_TOKENS};
    autobuf question = buf_of(1 << 16);
    l->free = free;
    int rc = dialect_fill(l->dialect->ground, (const char *const[]){"target", label, NULL}, &question, e);
    if (rc == 0)
        rc = vqa_ask(l, question.data, im, 1, GOAL_GROUND, &greedy, e);
    if (rc)
        return -1;
    struct place at;
    if (dialect_read_place(l->dialect, l->reply.text.data, l->reply.text.len, &at, NULL) || at.absent ||
        at.percent)
        return 1;
    *n = at.n;
    return 0;
}

static int ask_place(struct work *w, const struct calibration_screen *s, const struct calibration_target *t,
                     struct err *e)
{
    struct dialect_numbers n;
    int rc = place_of(w->a->l, &s->image, t->label, true, &n, e);
    if (rc < 0)
        return -1;
    candidate_count(w->c, QUESTION_PLACE, t, rc ? NULL : &n, false);
    if (rc == 0)
        return 0;
    rc = place_of(w->a->l, &s->image, t->label, false, &n, e);
    if (rc == 0)
        candidate_count(w->c, QUESTION_PLACE, t, &n, true);
    return rc < 0 ? -1 : 0;
}

/* ---- steps --------------------------------------------------------------------------------------- */

/* Finds the numbers of the first action that has a position; returns false if there is none. */
static bool numbers_of(const struct step *s, struct dialect_numbers *n)
{
    for (int i = 0; i < s->nactions; i++)
        if (s->actions[i].x != ACTION_ABSENT) {
            double x = s->actions[i].nx, y = s->actions[i].ny;
            *n = (struct dialect_numbers){x, y, x != floor(x), y != floor(y)};
            return true;
        }
    return false;
}

static int ask_step(struct work *w, const struct calibration_screen *s, const struct calibration_target *t,
                    struct err *e)
{
    const struct dialect *d = w->a->l->dialect;
    struct llm *m = w->llm;
    struct llm_request ask = {.goal = GOAL_STEP,
                              .sampling = {0, 1, d->max_tokens < STEP_TOKENS ? d->max_tokens : STEP_TOKENS},
                              .cancel = screen_stop_flag(NULL)};
    autofree char *sentence = xasprintf("Press %s", t->label), *task = prompt_task(d, sentence),
                  *lead = xasprintf("%s%s", task, d->observation_open);
    struct chat_part parts[3] = {{.text = lead}, {.image = &s->image}, {.text = d->observation_close}};
    struct generated reply = {0};
    struct step step = {0};
    struct dialect_numbers n;
    int rc = m->ops->user(m, parts, 3, d->image_inline ? CHAT_PLACE_INLINE : CHAT_PLACE_TEMPLATE, e);
    if (rc == 0)
        rc = m->ops->speak(m, &ask, &reply, e);
    if (rc == 0 && reply.finish == FINISH_CANCELLED)
        rc = err_set(e, ERR_STOPPED, "stopped");
    if (rc == 0) {
        bool read = !action_parse(reply.text.data, reply.text.len, d, w->c->w, w->c->h, &step, NULL) &&
                    numbers_of(&step, &n);
        candidate_count(w->c, QUESTION_STEP, t, read ? &n : NULL, false);
    }
    step_free(&step);
    generated_free(&reply);
    return rc ? rc : m->ops->rewind(m, w->before, e);
}

static int ask_steps(struct work *w, struct err *e)
{
    const struct dialect *d = w->a->l->dialect;
    struct prompt_vars words = {"Press a button", 100, w->c->w, w->c->h, 1800};
    autofree char *system = prompt_system(d, &words, e);
    if (!system)
        return -1;
    struct llm *m = w->llm = vqa_conversation(w->a->l, d, 1);
    int rc = m->ops->begin(m, system, e);
    w->before = rc ? NULL : m->ops->mark(m, e);
    rc = w->before ? ask_all(w, QUESTION_STEP, ask_step, e) : -1;
    m->ops->mark_free(w->before);
    llm_free(m);
    return rc;
}

/* ---- both questions ------------------------------------------------------------------------------------ */

static int ask_dialect(struct work *w, struct err *e)
{
    struct vqa *l = w->a->l;
    if (vqa_set_dialect(l, w->c->dialect, e))
        return -1;
    w->c->own = calibration_space(l->dialect->coords);
    bool window = l->dialect->coords == COORD_NATIVE; /* such a model processes one window */
    int usual_w = window ? WINDOW_W : USUAL_W, usual_h = window ? WINDOW_H : USUAL_H;
    w->c->w = w->a->w ? w->a->w : l->dialect->screen_w ? l->dialect->screen_w : usual_w;
    w->c->h = w->a->h ? w->a->h : l->dialect->screen_h ? l->dialect->screen_h : usual_h;
    dialect_shown_size(l->dialect, &w->c->w, &w->c->h); /* a size that the dialect does not change */
    if (vqa_check_places(l, e) || draw_screens(w, e) || ask_all(w, QUESTION_PLACE, ask_place, e))
        return -1;
    return w->a->steps ? ask_steps(w, e) : 0;
}

int calibration_ask(const struct calibration_run *a, struct candidate *c, struct err *e)
{
    struct work w = {.a = a, .c = c};
    struct err why = ERR_INIT;
    int rc = ask_dialect(&w, &why);
    for (int i = 0; i < w.n_screens; i++)
        image_free(&w.screens[i].image);
    free(w.screens);
    a->l->free = false;
    if (rc && why.kind == ERR_STOPPED)
        return err_set(e, ERR_STOPPED, "%s", why.text);
    if (rc)
        snprintf(c->error, sizeof c->error, "%s", why.text);
    return 0;
}
