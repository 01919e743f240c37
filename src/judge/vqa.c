/* vqa.c - opens models for questions and asks them; see vqa.h. */
#include "judge/vqa.h"

#include "actions/syntax.h"

#include "checkpoint/find.h"
#include "model/config.h"
#include "screen/screen.h"

#include <math.h>
#include <stdlib.h>

int vqa_open(struct vqa *l, const char *dialect, const struct engine_options *model, uint64_t seed,
             struct err *e)
{
    *l = (struct vqa){0};
    if (!(l->dir = model_find(model->dir, e)))
        return -1;
    autofree char *name = dialect ? xstrdup(dialect) : dialect_for_model(l->dir, e);
    l->dialect = name ? dialect_load(name, e) : NULL;
    if (!l->dialect)
        return -1;
    struct engine_options o = *model;
    o.dir = l->dir;
    if (!(l->engine = engine_open(&o, e)))
        return -1;
    const char *odd = chat_template_warning(engine_chat(l->engine));
    if (odd)
        warn("%s", odd);
    llm_fit_dialect(l->dialect, l->engine);
    l->llm = vqa_conversation(l, l->dialect, seed);
    return 0;
}

int vqa_check_vision(const struct engine_options *model, struct err *e)
{
    struct model_config c;
    autofree char *dir = model_find(model->dir, e);
    int rc = dir ? config_load(&c, dir, e) : -1;
    if (rc == 0)
        rc = config_check_vision(&c, dir, e);
    return rc;
}

int vqa_open_far(struct vqa *l, const char *dialect, char *name, const struct vqa_far *far, uint64_t seed,
                 struct err *e)
{
    *l = (struct vqa){.dir = name, .far = *far};
    if (!(l->dialect = dialect_load(dialect, e)))
        return -1;
    l->llm = vqa_conversation(l, l->dialect, seed);
    return 0;
}

struct llm *vqa_conversation(const struct vqa *l, const struct dialect *d, uint64_t seed)
{
    return l->engine ? llm_local(l->engine, d, seed) : l->far.converse(l->far.arg, d, seed);
}

int vqa_check_places(const struct vqa *l, struct err *e)
{
    if (!l->engine)
        return 0;
    struct grammar *g = dialect_grammar(l->dialect, GOAL_GROUND, engine_tokenizer(l->engine), 0, 0, e);
    grammar_free(g);
    return g ? 0 : -1;
}

static int check_finish(const struct vqa *l, struct err *e)
{
    return l->reply.finish == FINISH_CANCELLED ? err_set(e, ERR_STOPPED, "stopped") : 0;
}

int vqa_ask(struct vqa *l, const char *question, const struct image *images, int n, enum dialect_goal goal,
            const struct sampling *sampling, struct err *e)
{
    const struct llm_request r = {
        .goal = goal, .sampling = *sampling, .free = l->free, .cancel = screen_stop_flag(NULL)};
    struct chat_part parts[8];
    if (n < 0 || n > 6)
        return err_set(e, ERR_USAGE, "%d images; at most 6 fit", n);
    int n_parts = llm_question(l->dialect, question, images, n, parts);
    enum chat_place place = l->dialect->image_inline ? CHAT_PLACE_INLINE : CHAT_PLACE_TEMPLATE;
    generated_free(&l->reply);
    return llm_ask(l->llm, "", parts, n_parts, place, &r, &l->reply, e) ? -1 : check_finish(l, e);
}

static bool within_point(const struct slot *slots, int n, size_t begin, size_t end)
{
    for (int i = 0; i < n; i++)
        if (slots[i].kind == SLOT_POINT && begin < slots[i].end && end > slots[i].begin)
            return true;
    return false;
}

bool vqa_confidence(const struct vqa *l, double *confidence)
{
    const struct generated *g = &l->reply;
    struct slot slots[SLOTS_MAX];
    bool spread = l->dialect->syntax->spread_points;
    int n = spread ? dialect_slots(l->dialect, g->text.data, g->text.len, slots, SLOTS_MAX) : 0;
    double logprob = 0;
    size_t begin = 0;
    for (int i = 0; g->choices && i < g->n; begin = g->choices[i++].end)
        if (!g->choices[i].forced && !within_point(slots, n, begin, g->choices[i].end))
            logprob += (double)g->choices[i].logprob;
    *confidence = exp(logprob);
    return g->choices != NULL;
}

int vqa_converse(struct vqa *l, const struct chat_conversation *c, const struct sampling *sampling,
                 struct err *e)
{
    struct session *s = llm_session(l->llm);
    const struct generation how = {.sampling = *sampling, .cancel = screen_stop_flag(NULL)};
    const struct llm_request r = {.goal = GOAL_TEXT,
                                  .sampling = *sampling,
                                  .think = c->think == CHAT_THINK_ON,
                                  .free = true,
                                  .cancel = how.cancel};
    if (s && c->n_tools && !chat_template_calls(engine_chat(session_engine(s))))
        warn("the model's chat template has no tools: the tools of the conversation are ignored");
    int rc = s ? chat_append(s, c, e) : l->llm->ops->converse(l->llm, c, e);
    rc = rc ? rc : s ? generate(s, &how, &l->reply, e) : l->llm->ops->speak(l->llm, &r, &l->reply, e);
    return rc ? -1 : check_finish(l, e);
}

int vqa_set_dialect(struct vqa *l, const char *dialect, struct err *e)
{
    struct dialect *d = dialect_load(dialect, e);
    if (!d)
        return -1;
    llm_free(l->llm);
    dialect_free(l->dialect);
    l->dialect = d;
    if (l->engine)
        llm_fit_dialect(d, l->engine);
    l->llm = vqa_conversation(l, d, 1);
    return 0;
}

void vqa_close(struct vqa *l)
{
    generated_free(&l->reply);
    llm_free(l->llm);
    dialect_free(l->dialect);
    engine_close(l->engine);
    if (l->far.close)
        l->far.close(l->far.arg);
    free(l->dir);
    *l = (struct vqa){0};
}
