/* llm_local.c - implements llm.h with a session of an engine.
 *
 * A mark is a checkpoint and its session. Rewinding to a mark of another session continues in that session.
 * Marks and the conversation share sessions by reference count.
 */
#include "llm/llm.h"

#include "actions/syntax.h"

#include "model/config.h"
#include "session/generate.h"

#include <stdlib.h>
#include <string.h>

enum { GOALS = GOAL_TEXT + 1 };

struct shared_session { /* references: each of its marks, and the current conversation */
    struct session *session;
    int users;
};

struct local_mark {
    struct shared_session *session;
    struct checkpoint *at;
    int w, h;
};

struct local_llm {
    struct llm base;
    struct shared_session *session;
    struct engine *engine;
    uint64_t seed;
    const volatile int *cancel;
    const struct dialect *dialect;
    int w, h; /* size of the newest image, 0 before the first */
    struct goal_grammar {
        struct grammar *g; /* NULL: not compiled yet */
        int w, h;          /* size of the image for which it was compiled */
    } grammars[GOALS];
};

static struct session *session_of(const struct llm *m)
{
    return ((const struct local_llm *)m)->session->session;
}

static struct shared_session *session_share(struct session *s)
{
    struct shared_session *l = xcalloc(1, sizeof *l);
    *l = (struct shared_session){s, 1};
    return l;
}

static void session_release(struct shared_session *l)
{
    if (--l->users)
        return;
    session_free(l->session);
    free(l);
}

static void continue_in(struct local_llm *m, struct shared_session *l)
{
    session_release(m->session);
    m->session = l;
    session_set_cancel(l->session, m->cancel);
}

static int local_begin(struct llm *llm, const char *system, struct err *e)
{
    struct local_llm *m = (struct local_llm *)llm;
    m->w = m->h = 0;
    if (session_length(m->session->session))
        continue_in(m, session_share(session_new(m->engine, m->seed)));
    struct session *s = session_of(llm);
    bool run = *system; /* a question has neither system text nor tools nor reasoning */
    int rc = run && m->dialect->native_tools
                 ? chat_system_tools(s, system, m->dialect->schema, m->dialect->think, e)
                 : chat_system(s, system, run && m->dialect->think, e);
    return rc || session_reuse_prefix(s, e) ? -1 : 0;
}

static int local_user(struct llm *llm, const struct chat_part *parts, int n, enum chat_place place,
                      struct err *e)
{
    struct local_llm *m = (struct local_llm *)llm;
    for (int i = 0; i < n; i++)
        if (parts[i].image) {
            m->w = parts[i].image->w;
            m->h = parts[i].image->h;
        }
    return chat_user(session_of(llm), parts, n, place, e);
}

static int local_reply(struct llm *m, const char *text, struct err *e)
{
    return chat_reply(session_of(m), text, e);
}

/* Returns the grammar of the goal, or NULL with e. For dialects with pixel coordinates it is compiled again
 * for an image of another size. */
static struct grammar *grammar_for(struct local_llm *m, enum dialect_goal goal, struct err *e)
{
    struct goal_grammar *k = &m->grammars[goal];
    if (k->g && dialect_grammar_is_sized(m->dialect) && (k->w != m->w || k->h != m->h)) {
        grammar_free(k->g);
        k->g = NULL;
    }
    if (!k->g)
        *k = (struct goal_grammar){
            dialect_grammar(m->dialect, goal, engine_tokenizer(m->engine), m->w, m->h, e), m->w, m->h};
    return k->g;
}

/* Generates a reply. A rewind restores the random number generator too, so another sample would get equal
 * numbers: sample n first skips n numbers. */
static int local_speak(struct llm *llm, const struct llm_request *r, struct generated *out, struct err *e)
{
    struct local_llm *m = (struct local_llm *)llm;
    struct grammar *g = r->free ? NULL : grammar_for(m, r->goal, e);
    struct session *s = session_of(llm);
    if ((!g && !r->free) || chat_open_reply(s, r->think, e))
        return -1;
    for (int i = 0; i < r->resample; i++)
        session_uniform(s);
    struct tokens begins = {0};
    if (r->begins)
        tokenizer_encode(engine_tokenizer(m->engine), r->begins, strlen(r->begins), true, &begins);
    /* The grammar describes the reply, not the reasoning before it. */
    const struct generation how = {.grammar = r->think ? NULL : g,
                                   .begins = begins.ids,
                                   .n_begins = (int)begins.n,
                                   .sampling = r->sampling,
                                   .alternatives = r->alternatives,
                                   .cancel = r->cancel,
                                   .on_text = r->on_text,
                                   .arg = r->arg};
    int rc = generate(s, &how, out, e);
    tokens_free(&begins);
    return rc;
}

struct slot_value { /* argument of value_end(): end of a candidate */
    const struct dialect *dialect;
    enum slot_kind kind;
};

static ptrdiff_t value_end(void *arg, const char *text, size_t len)
{
    const struct slot_value *v = arg;
    return dialect_slot_end(v->dialect, v->kind, text, len);
}

/* Searches with a grammar of the requested words instead of the grammar of the goal. */
static int search_words(struct local_llm *m, struct session *s, const struct beam_request *x,
                        struct beam_search *how, struct beam_candidate *out, int max, struct err *e)
{
    autofree char *given = xasprintf("%.*s", (int)how->n_given, how->given);
    how->grammar = dialect_words_grammar(m->dialect, x->slot->kind, given, x->words, x->n_words,
                                         engine_tokenizer(m->engine), e);
    how->state = how->grammar ? grammar_start(how->grammar) : 0;
    int n = how->grammar ? beam_search(s, how, out, max, e) : -1;
    grammar_free(how->grammar);
    return n;
}

/* Appends the reply to s, a branch at its start, up to the token in which the slot begins, and searches from
 * there. Returns the number of candidates, or -1 with e. */
static int beam_search_at(struct local_llm *m, struct session *s, const struct beam_request *x,
                          struct beam_candidate *out, int max, struct err *e)
{
    struct slot_value value = {m->dialect, x->slot->kind};
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
    return x->words ? search_words(m, s, x, &how, out, max, e) : beam_search(s, &how, out, max, e);
}

static int local_beam_search(struct llm *llm, const struct llm_mark *before, const struct beam_request *x,
                             struct beam_candidate *out, int max, struct err *e)
{
    struct local_llm *m = (struct local_llm *)llm;
    const struct local_mark *k = (const struct local_mark *)before;
    struct session *s = session_try_branch(k->session->session, k->at, e);
    if (!s)
        return -1;
    int n = beam_search_at(m, s, x, out, max, e);
    session_free(s);
    return n;
}

static int local_close(struct llm *m, struct err *e)
{
    return chat_close_reply(session_of(m), e);
}

/* Returns a mark that owns this checkpoint; NULL for NULL. */
static struct llm_mark *mark_at(struct local_llm *m, struct checkpoint *at)
{
    if (!at)
        return NULL;
    struct local_mark *k = xcalloc(1, sizeof *k);
    *k = (struct local_mark){m->session, at, m->w, m->h};
    m->session->users++;
    return (struct llm_mark *)k;
}

static struct llm_mark *local_mark_new(struct llm *llm, struct err *e)
{
    return mark_at((struct local_llm *)llm, session_try_checkpoint(session_of(llm), e));
}

static struct llm_mark *local_bookmark(struct llm *llm, struct err *e)
{
    return mark_at((struct local_llm *)llm, session_try_bookmark(session_of(llm), e));
}

static const struct local_mark *mark_of(const struct llm_mark *mark)
{
    return (const struct local_mark *)mark;
}

static int local_rewind(struct llm *llm, const struct llm_mark *mark, struct err *e)
{
    struct local_llm *m = (struct local_llm *)llm;
    const struct local_mark *k = mark_of(mark);
    if (session_rewind(k->session->session, k->at, e))
        return -1;
    m->w = k->w;
    m->h = k->h;
    if (k->session != m->session) {
        k->session->users++;
        continue_in(m, k->session);
    }
    return 0;
}

static int local_branch(struct llm *llm, const struct llm_mark *mark, struct err *e)
{
    struct local_llm *m = (struct local_llm *)llm;
    const struct local_mark *k = mark_of(mark);
    struct session *s = session_try_branch(k->session->session, k->at, e);
    if (!s)
        return -1;
    continue_in(m, session_share(s));
    m->w = k->w;
    m->h = k->h;
    return 0;
}

static int64_t local_mark_length(const struct llm_mark *mark)
{
    return checkpoint_length(mark_of(mark)->at);
}

static void local_mark_free(struct llm_mark *mark)
{
    autofree struct local_mark *k = (struct local_mark *)mark;
    if (!k)
        return;
    checkpoint_free(k->at);
    session_release(k->session);
}

static int64_t local_length(const struct llm *m)
{
    return session_length(session_of(m));
}

static struct session_stats local_stats(const struct llm *m)
{
    return session_stats(session_of(m));
}

static void local_set_cancel(struct llm *llm, const volatile int *flag)
{
    struct local_llm *m = (struct local_llm *)llm;
    m->cancel = flag;
    session_set_cancel(m->session->session, flag);
}

static void local_free(struct llm *llm)
{
    autofree struct local_llm *m = (struct local_llm *)llm;
    for (int i = 0; i < GOALS; i++)
        grammar_free(m->grammars[i].g);
    session_release(m->session);
}

void llm_fit_dialect(struct dialect *d, const struct engine *g)
{
    const struct model_config *c = engine_config(g);
    if (c->family != FAMILY_QWEN25VL || d->coords != COORD_PX28)
        return;
    d->least_pixels = c->vit.min_pixels;
    d->most_pixels = c->vit.max_pixels;
}

struct llm *llm_local(struct engine *g, const struct dialect *d, uint64_t seed)
{
    static const struct llm_ops ops = {
        LLM_OPS(local),        .beam_search = local_beam_search, .branch = local_branch,
        .session = session_of, .set_cancel = local_set_cancel,   .bookmark = local_bookmark,
    };
    struct local_llm *m = xcalloc(1, sizeof *m);
    m->base.ops = &ops;
    m->engine = g;
    m->seed = seed;
    m->session = session_share(session_new(g, seed));
    m->dialect = d;
    return &m->base;
}

void llm_set_cancel(struct llm *m, const volatile int *flag)
{
    if (m->ops->set_cancel)
        m->ops->set_cancel(m, flag);
}

struct session *llm_session(const struct llm *m)
{
    return m->ops->session ? m->ops->session(m) : NULL;
}

const struct llm_usage *llm_usage(const struct llm *m)
{
    return m->ops->usage ? m->ops->usage(m) : NULL;
}

const struct llm_tokens *llm_tokens(const struct llm *m)
{
    return m->ops->tokens ? m->ops->tokens(m) : NULL;
}

int llm_question(const struct dialect *d, const char *question, const struct image *images, int n,
                 struct chat_part *parts)
{
    int k = 0;
    if (d->syntax->question_first) {
        parts[k++] = (struct chat_part){.text = question};
        parts[k++] = (struct chat_part){.text = "\n"};
    }
    for (int i = 0; i < n; i++)
        parts[k++] = (struct chat_part){.image = &images[i]};
    if (!k || parts[0].image)
        parts[k++] = (struct chat_part){.text = question};
    return k;
}

int llm_ask(struct llm *m, const char *system, const struct chat_part *parts, int n, enum chat_place place,
            const struct llm_request *r, struct generated *out, struct err *e)
{
    return m->ops->begin(m, system, e) || m->ops->user(m, parts, n, place, e) || m->ops->speak(m, r, out, e)
               ? -1
               : 0;
}

void llm_free(struct llm *m)
{
    if (m)
        m->ops->free(m);
}
