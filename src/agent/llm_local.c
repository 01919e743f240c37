/* llm_local.c - a session as a conversation partner; see llm.h.
 *
 * A mark is a checkpoint and the session it is of.  Going back to one in another session makes that the one that goes on;
 * a session lives as long as it is the one, or marks are of it.
 */
#include "agent/llm.h"

#include "model/config.h"
#include "session/generate.h"

#include <stdlib.h>

enum { GOALS = GOAL_TEXT + 1 };

struct line { /* a session and who needs it: each mark of it, and the conversation that is on it */
    struct session *session;
    int users;
};

struct model_mark {
    struct line *line;
    struct checkpoint *at;
};

struct local_llm {
    struct llm base;
    struct line *line;
    struct engine *engine;
    uint64_t seed;
    const volatile int *cancel;
    const struct dialect *dialect;
    struct grammar *grammars[GOALS]; /* compiled when first needed */
};

static struct session *session_of(const struct llm *m)
{
    return ((const struct local_llm *)m)->line->session;
}

static struct line *line_new(struct session *s)
{
    struct line *l = xcalloc(1, sizeof *l);
    *l = (struct line){s, 1};
    return l;
}

static void line_leave(struct line *l)
{
    if (--l->users)
        return;
    session_free(l->session);
    free(l);
}

static void go_on_with(struct local_llm *m, struct line *l)
{
    line_leave(m->line);
    m->line = l;
    session_set_cancel(l->session, m->cancel);
}

static int begin(struct llm *llm, const char *system, struct err *e)
{
    struct local_llm *m = (struct local_llm *)llm;
    if (session_length(m->line->session))
        go_on_with(m, line_new(session_new(m->engine, m->seed)));
    return chat_system(session_of(llm), system, e) || session_reuse_prefix(session_of(llm), e) ? -1 : 0;
}

static int user(struct llm *m, const struct chat_part *parts, int n, enum chat_place place, struct err *e)
{
    return chat_user(session_of(m), parts, n, place, e);
}

static int reply(struct llm *m, const char *text, struct err *e)
{
    return chat_reply(session_of(m), text, e);
}

static struct grammar *grammar_for(struct local_llm *m, enum dialect_goal goal, struct err *e)
{
    if (!m->grammars[goal])
        m->grammars[goal] = dialect_grammar(m->dialect, goal, engine_tokenizer(m->engine), e);
    return m->grammars[goal];
}

/* The dice are part of the state and go back with it: another attempt at the same place would throw the
 * same numbers, so each one first throws some away. */
static int speak(struct llm *llm, const struct llm_request *r, struct generated *out, struct err *e)
{
    struct local_llm *m = (struct local_llm *)llm;
    struct grammar *g = grammar_for(m, r->goal, e);
    struct session *s = session_of(llm);
    if (!g || chat_open_reply(s, r->think, e))
        return -1;
    for (int i = 0; i < r->resample; i++)
        session_uniform(s);
    /* The grammar describes the reply, not the reasoning before it. */
    const struct generation how = {.grammar = r->think ? NULL : g,
                                   .sampling = r->sampling,
                                   .alternatives = r->alternatives,
                                   .cancel = r->cancel,
                                   .on_text = r->on_text,
                                   .arg = r->arg};
    return generate(s, &how, out, e);
}

struct value { /* what is looked for */
    const struct dialect *dialect;
    enum slot_kind kind;
};

static ptrdiff_t value_end(void *arg, const char *text, size_t len)
{
    const struct value *v = arg;
    return dialect_slot_end(v->dialect, v->kind, text, len);
}

/* In a copy of the conversation up to the token in which the slot begins. */
static int beam_search_at(struct local_llm *m, struct session *s, const struct beam_request *x,
                          struct beam_candidate *out, int max, struct err *e)
{
    struct value value = {m->dialect, x->slot->kind};
    struct grammar *g = x->think ? NULL : grammar_for(m, x->goal, e);
    struct beam_search how = {
        .grammar = g, .end = value_end, .arg = &value, .width = max, .cancel = x->cancel};
    size_t begin = 0;
    how.state = g ? grammar_start(g) : 0;
    if ((!g && !x->think) || chat_open_reply(s, x->think, e))
        return -1;
    for (int i = 0; i < x->said->n && x->said->choices[i].end <= x->slot->begin; i++) {
        const struct token_choice *c = &x->said->choices[i];
        how.state = g ? grammar_advance(g, how.state, c->id) : 0;
        begin = c->end;
        if (how.state < 0 || session_append(s, &c->id, 1, e))
            return -1;
    }
    how.given = x->said->text.data + begin;
    how.n_given = x->slot->begin - begin;
    return beam_search(s, &how, out, max, e);
}

static int search_reply(struct llm *llm, const struct llm_mark *before, const struct beam_request *x,
                        struct beam_candidate *out, int max, struct err *e)
{
    struct local_llm *m = (struct local_llm *)llm;
    const struct model_mark *k = (const struct model_mark *)before;
    struct session *s = session_try_branch(k->line->session, k->at, e);
    if (!s)
        return -1;
    int n = beam_search_at(m, s, x, out, max, e);
    session_free(s);
    return n;
}

static int close_reply(struct llm *m, struct err *e)
{
    return chat_close_reply(session_of(m), e);
}

static struct llm_mark *mark(struct llm *llm, struct err *e)
{
    struct local_llm *m = (struct local_llm *)llm;
    struct checkpoint *at = session_try_checkpoint(m->line->session, e);
    if (!at)
        return NULL;
    struct model_mark *k = xcalloc(1, sizeof *k);
    *k = (struct model_mark){m->line, at};
    m->line->users++;
    return (struct llm_mark *)k;
}

static const struct model_mark *mark_of(const struct llm_mark *mark)
{
    return (const struct model_mark *)mark;
}

static int rewind_to(struct llm *llm, const struct llm_mark *mark, struct err *e)
{
    struct local_llm *m = (struct local_llm *)llm;
    const struct model_mark *k = mark_of(mark);
    if (session_rewind(k->line->session, k->at, e))
        return -1;
    if (k->line != m->line) {
        k->line->users++;
        go_on_with(m, k->line);
    }
    return 0;
}

static int branch(struct llm *llm, const struct llm_mark *mark, struct err *e)
{
    struct local_llm *m = (struct local_llm *)llm;
    const struct model_mark *k = mark_of(mark);
    struct session *s = session_try_branch(k->line->session, k->at, e);
    if (!s)
        return -1;
    go_on_with(m, line_new(s));
    return 0;
}

static int64_t mark_length(const struct llm_mark *mark)
{
    return checkpoint_length(mark_of(mark)->at);
}

static void mark_free(struct llm_mark *mark)
{
    struct model_mark *k = (struct model_mark *)mark;
    if (!k)
        return;
    checkpoint_free(k->at);
    line_leave(k->line);
    free(k);
}

static int64_t length(const struct llm *m)
{
    return session_length(session_of(m));
}

static bool fits(const struct llm *m, int64_t more)
{
    return session_fits(session_of(m), more);
}

static const int32_t *tokens(const struct llm *m)
{
    return session_tokens(session_of(m));
}

static int32_t image_token(const struct llm *m)
{
    const struct model_config *c = engine_config(session_engine(session_of(m)));
    return c->vision ? c->image_token : -1;
}

static struct session_stats stats(const struct llm *m)
{
    return session_stats(session_of(m));
}

static uint64_t rng(const struct llm *m)
{
    return session_rng(session_of(m));
}

static void set_rng(struct llm *m, uint64_t to)
{
    session_set_rng(session_of(m), to);
}

static void set_cancel(struct llm *llm, const volatile int *flag)
{
    struct local_llm *m = (struct local_llm *)llm;
    m->cancel = flag;
    session_set_cancel(m->line->session, flag);
}

static void free_model(struct llm *llm)
{
    struct local_llm *m = (struct local_llm *)llm;
    for (int i = 0; i < GOALS; i++)
        if (m->grammars[i])
            grammar_free(m->grammars[i]);
    line_leave(m->line);
    free(m);
}

struct llm *llm_local(struct engine *g, const struct dialect *d, uint64_t seed)
{
    static const struct llm_ops ops = {
        .begin = begin,
        .user = user,
        .reply = reply,
        .speak = speak,
        .beam_search = search_reply,
        .close = close_reply,
        .mark = mark,
        .rewind = rewind_to,
        .branch = branch,
        .mark_length = mark_length,
        .mark_free = mark_free,
        .length = length,
        .fits = fits,
        .tokens = tokens,
        .image_token = image_token,
        .stats = stats,
        .rng = rng,
        .set_rng = set_rng,
        .set_cancel = set_cancel,
        .free = free_model,
    };
    struct local_llm *m = xcalloc(1, sizeof *m);
    m->base.ops = &ops;
    m->engine = g;
    m->seed = seed;
    m->line = line_new(session_new(g, seed));
    m->dialect = d;
    return &m->base;
}

void llm_set_cancel(struct llm *m, const volatile int *flag)
{
    if (m->ops->set_cancel)
        m->ops->set_cancel(m, flag);
}

void llm_free(struct llm *m)
{
    if (m)
        m->ops->free(m);
}
