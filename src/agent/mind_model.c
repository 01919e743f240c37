/* mind_model.c - a session as a conversation partner; see mind.h. */
#include "agent/mind.h"

#include "model/config.h"

#include <stdlib.h>

enum { GOALS = GOAL_TEXT + 1 };

struct model_mind {
    struct mind base;
    struct session *session;
    const struct dialect *dialect;
    struct grammar *grammars[GOALS]; /* compiled when first needed */
};

static struct session *session_of(const struct mind *m)
{
    return ((const struct model_mind *)m)->session;
}

static int begin(struct mind *m, const char *system, struct err *e)
{
    return chat_system(session_of(m), system, e);
}

static int user(struct mind *m, const struct chat_part *parts, int n, enum chat_place place, struct err *e)
{
    return chat_user(session_of(m), parts, n, place, e);
}

static int reply(struct mind *m, const char *text, struct err *e)
{
    return chat_reply(session_of(m), text, e);
}

static struct grammar *grammar_for(struct model_mind *m, enum dialect_goal goal, struct err *e)
{
    if (!m->grammars[goal])
        m->grammars[goal] =
            dialect_grammar(m->dialect, goal, engine_tokenizer(session_engine(m->session)), e);
    return m->grammars[goal];
}

/* The dice are part of the state and go back with it: another attempt at the same place would throw the
 * same numbers, so each one first throws some away. */
static int speak(struct mind *mind, const struct mind_request *r, struct generated *out, struct err *e)
{
    struct model_mind *m = (struct model_mind *)mind;
    struct grammar *g = grammar_for(m, r->goal, e);
    if (!g || chat_open_reply(m->session, r->think, e))
        return -1;
    for (int i = 0; i < r->reroll; i++)
        session_random(m->session);
    /* The grammar describes the reply, not the reasoning before it. */
    return generate(m->session, r->think ? NULL : g, &r->sampling, r->cancel, r->on_text, r->arg, out, e);
}

static int close_reply(struct mind *m, struct err *e)
{
    return chat_close_reply(session_of(m), e);
}

static struct mind_mark *mark(struct mind *m, struct err *e)
{
    return (struct mind_mark *)session_try_checkpoint(session_of(m), e);
}

static int rewind_to(struct mind *m, const struct mind_mark *at, struct err *e)
{
    return session_rewind(session_of(m), (const struct checkpoint *)at, e);
}

static int64_t mark_length(const struct mind_mark *at)
{
    return checkpoint_length((const struct checkpoint *)at);
}

static void mark_free(struct mind_mark *at)
{
    if (at)
        checkpoint_free((struct checkpoint *)at);
}

static int64_t length(const struct mind *m)
{
    return session_length(session_of(m));
}

static const int32_t *tokens(const struct mind *m)
{
    return session_tokens(session_of(m));
}

static int32_t image_token(const struct mind *m)
{
    const struct model_config *c = engine_config(session_engine(session_of(m)));
    return c->vision ? c->image_token : -1;
}

static struct session_stats stats(const struct mind *m)
{
    return session_stats(session_of(m));
}

static void free_model(struct mind *mind)
{
    struct model_mind *m = (struct model_mind *)mind;
    for (int i = 0; i < GOALS; i++)
        if (m->grammars[i])
            grammar_free(m->grammars[i]);
    session_free(m->session);
    free(m);
}

struct mind *mind_model(struct engine *g, const struct dialect *d, uint64_t seed)
{
    static const struct mind_ops ops = {
        .begin = begin,
        .user = user,
        .reply = reply,
        .speak = speak,
        .close = close_reply,
        .mark = mark,
        .rewind = rewind_to,
        .mark_length = mark_length,
        .mark_free = mark_free,
        .length = length,
        .tokens = tokens,
        .image_token = image_token,
        .stats = stats,
        .free = free_model,
    };
    struct model_mind *m = xcalloc(1, sizeof *m);
    m->base.ops = &ops;
    m->session = session_new(g, seed);
    m->dialect = d;
    return &m->base;
}

void mind_free(struct mind *m)
{
    if (m)
        m->ops->free(m);
}
