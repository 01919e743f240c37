/* generate.c - generates a reply token by token (generate.h).
 *
 * Each round appends either the tokens that the grammar forces or one sampled token. Appended tokens stay
 * pending until the next logits are needed: a sampled token and the forced ones after it are one prefill,
 * and the last token of a reply is computed with the next turn. */
#include "session/generate.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/utf8.h"
#include "ops/sample_filter.h"
#include "ops/sampling.h"
#include "session/session_impl.h"
#include "session/speculate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MAX_TEXT = 16 << 20 };

struct run {
    struct session *s;
    struct grammar *g;
    int state; /* state of the grammar */
    const struct sampling *p;
    struct sample_filter filter;
    const int32_t *begins; /* forced prefix [n_begins] */
    int n_begins;
    /* bit set that contains only the next token of the forced prefix */
    uint64_t *only;
    int width;       /* alternatives recorded for each token */
    uint64_t *known; /* bit set of ids that may be generated */
    struct generated *out;
    int cap;      /* allocated elements of out->choices */
    size_t shown; /* bytes of the text that were passed to on_text */
    void (*on_text)(void *arg, const char *text, size_t len);
    void *arg;
    struct token_alternative *alternatives; /* [width] of the token being accepted, or NULL */
    bool done;
    /* the token being accepted is already in the session */
    bool appended;
    struct drafts *drafts; /* NULL: no speculation */
    XXH3_state_t *hash;    /* hash of the logits */
    bool unhashed;         /* some logits were not on the host */
};

uint64_t *generate_known(const struct engine *g)
{
    const struct tokenizer *t = engine_tokenizer(g);
    int n = tokenizer_size(t);
    uint64_t *set = xcalloc(((unsigned long)n + 63) / 64, sizeof *set);
    for (int i = 0; i < n; i++) {
        size_t len;
        tokenizer_bytes(t, i, &len);
        if (len)
            set[i / 64] |= 1ull << (i % 64);
    }
    int image = engine_config(g)->image_token;
    if (engine_config(g)->vision && image < n)
        set[image / 64] &= ~(1ull << (image % 64));
    return set;
}

/* Passes the text up to the last complete character to on_text; all of it at the end. */
static void emit_text(struct run *r, bool all)
{
    const struct buf *text = &r->out->text;
    size_t n = text->len - r->shown, whole = all ? n : utf8_complete(text->data + r->shown, n);
    if (r->on_text && whole)
        r->on_text(r->arg, text->data + r->shown, whole);
    r->shown += whole;
}

static int accept(struct run *r, const struct token_choice *c, struct err *e)
{
    struct generated *out = r->out;
    if (!r->appended && session_append(r->s, &c->id, 1, e))
        return -1;
    if (out->n == r->cap) {
        r->cap = r->cap ? r->cap * 2 : 64;
        out->choices = xrealloc(out->choices, (unsigned long)r->cap, sizeof *out->choices);
        if (r->width)
            out->alternatives = xrealloc(out->alternatives, (unsigned long)r->cap * (unsigned long)r->width,
                                         sizeof *out->alternatives);
    }
    for (int i = 0; i < r->width; i++)
        out->alternatives[out->n * r->width + i] =
            r->alternatives ? r->alternatives[i] : (struct token_alternative){-1, 0};
    struct token_choice *added = &out->choices[out->n++];
    *added = *c;
    added->end = (uint32_t)out->text.len;
    out->forced += c->forced;
    if (engine_is_stop(session_engine(r->s), c->id)) {
        out->finish = FINISH_STOP;
        r->done = true;
        return 0;
    }
    size_t len;
    const char *bytes = tokenizer_bytes(engine_tokenizer(session_engine(r->s)), c->id, &len);
    if (buf_put(&out->text, bytes, len))
        return err_set(e, ERR_MODEL, "the reply is longer than %d bytes", MAX_TEXT);
    added->end = (uint32_t)out->text.len;
    emit_text(r, false);
    return 0;
}

static int no_such_reply(struct err *e)
{
    return err_set(e, ERR_MODEL, "the grammar does not allow the forced prefix of the reply");
}

/* Appends the tokens that the grammar forces. Returns their number, 0 if there is a choice, or -1 with e. */
static int append_forced(struct run *r, struct err *e)
{
    struct tokens ids = {0};
    int after = r->state, n = r->g ? grammar_forced(r->g, r->state, &ids, &after) : 0, rc = 0;
    for (int i = 0; i < n && rc == 0 && !r->done && r->out->n < r->p->max_tokens; i++)
        rc = r->out->n < r->n_begins && ids.ids[i] != r->begins[r->out->n]
                 ? no_such_reply(e)
                 : accept(r, &(struct token_choice){.id = ids.ids[i], .forced = true}, e);
    r->state = after;
    tokens_free(&ids);
    return rc ? -1 : n;
}

int generate_top(const float *logits, int n, const uint64_t *known, const uint64_t *allowed,
                 struct token_alternative *top, int width)
{
    int found = 0;
    for (int id = 0; id < n; id++) {
        if (!sampling_has(known, id) || (allowed && !sampling_has(allowed, id)) || !isfinite(logits[id]))
            continue;
        int at = found < width ? found++ : width;
        for (; at > 0 && logits[id] > logits[top[at - 1].id]; at--)
            if (at < width)
                top[at] = top[at - 1];
        if (at < width)
            top[at].id = id;
    }
    double mass = 0;
    float largest = found ? logits[top[0].id] : 0;
    for (int id = 0; id < n; id++)
        if (sampling_has(known, id) && (!allowed || sampling_has(allowed, id)) && isfinite(logits[id]))
            mass += (double)expf(logits[id] - largest);
    for (int i = 0; i < width; i++)
        top[i] = i < found
                     ? (struct token_alternative){top[i].id,
                                                  (float)((double)expf(logits[top[i].id] - largest) / mass)}
                     : (struct token_alternative){-1, 0};
    return found;
}

/* Adds the logits from which a token is sampled to the hash; NULL: they are not on the host. */
static void hash_logits(struct run *r, const float *logits)
{
    if (logits)
        XXH3_64bits_update(r->hash, logits, (size_t)engine_vocab(r->s->engine) * sizeof *logits);
    else
        r->unhashed = true;
}

/* Accepts a token that was sampled with `how`. */
static int accept_sampled(struct run *r, const struct sampled *c, const struct sampler *how,
                          const float *logits, struct err *e)
{
    struct token_alternative top[GENERATE_MAX_ALTERNATIVES];
    if (c->id < 0)
        return err_set(e, ERR_MODEL,
                       "the model's output is not a number: a weight is NaN or infinite, or a sum overflows; "
                       "--weights-in ram checks all weights when they are loaded");
    if (r->width)
        generate_top(logits, tokenizer_size(engine_tokenizer(session_engine(r->s))), how->known, how->allowed,
                     top, r->width);
    hash_logits(r, logits);
    if (r->g)
        r->state = grammar_advance(r->g, r->state, c->id);
    r->alternatives = top;
    int rc = accept(r, &(struct token_choice){c->id, c->logprob, c->logprob_masked, false, 0}, e);
    r->alternatives = NULL;
    return rc;
}

/* Returns the bit set of ids allowed next; NULL: all. */
static const uint64_t *allowed_next(struct run *r)
{
    if (r->out->n >= r->n_begins)
        return r->g ? grammar_mask(r->g, r->state) : NULL;
    int32_t id = r->begins[r->out->n];
    size_t words = ((size_t)tokenizer_size(engine_tokenizer(r->s->engine)) + 63) / 64;
    r->only = r->only ? r->only : xmalloc(words, sizeof *r->only);
    memset(r->only, 0, words * sizeof *r->only);
    r->only[id / 64] |= 1ull << (id % 64);
    return r->only;
}

/* Samples the next token, on the host if a filter is on. Returns -1 with e. */
static int sample(struct run *r, const struct sampler *how, struct sampled *out, struct err *e)
{
    struct session *s = r->s;
    if (!sample_filter_is_on(&r->filter))
        return session_sample(s, how, out, e);
    if (session_compute_logits(s, e))
        return -1;
    r->filter.tokens = session_tokens(s);
    r->filter.n_tokens = session_length(s);
    *out = sample_filtered(s->logits, tokenizer_size(engine_tokenizer(s->engine)), how, &r->filter);
    return 0;
}

static int append_sampled(struct run *r, struct err *e)
{
    if (session_length(r->s) == 0)
        return err_set(e, ERR_MODEL, "cannot generate a reply: the session is empty");
    if (r->out->n < r->n_begins && r->g && !sampling_has(grammar_mask(r->g, r->state), r->begins[r->out->n]))
        return no_such_reply(e);
    struct sampler how = {.known = r->known,
                          .allowed = allowed_next(r),
                          .temperature = r->p->temperature,
                          .top_p = r->p->top_p};
    uint64_t rng = session_rng(r->s);
    how.random = how.temperature > 0 ? session_uniform(r->s) : 0;
    struct sampled c;
    if (r->g && grammar_failed(r->g, e)) {
        session_set_rng(r->s, rng);
        return -1;
    }
    if (sample(r, &how, &c, e) || (r->width && session_compute_logits(r->s, e))) {
        session_set_rng(r->s, rng); /* the random number was not used */
        return -1;
    }
    return accept_sampled(r, &c, &how, r->s->logits_at == r->s->n ? r->s->logits : NULL, e);
}

/* ---- draft tokens ------------------------------------------------------------------------------------- */

struct drafts { /* the draft tokens of a round, their samplers and buffers */
    int32_t ids[ENGINE_MAX_SPECULATE];
    struct sampler how[ENGINE_MAX_SPECULATE + 1];
    struct sampled out[ENGINE_MAX_SPECULATE + 1];
    float *logits[ENGINE_MAX_SPECULATE + 1];
    uint64_t *masks; /* one grammar mask per draft token, contiguous */
    size_t mask;     /* words per mask */
    bool on_host;    /* logits are needed on the host */
    struct tensor saved;
};

static struct drafts *drafts_new(const struct run *r)
{
    const struct engine *g = r->s->engine;
    if (!g->speculate || sample_filter_is_on(&r->filter))
        return NULL;
    struct drafts *x = xcalloc(1, sizeof *x);
    x->mask = ((size_t)tokenizer_size(g->tokenizer) + 63) / 64;
    x->on_host = r->width || !g->backend->ops->sample;
    if (r->g)
        x->masks = xmalloc(x->mask * (size_t)(g->speculate + 1), sizeof *x->masks);
    for (int i = 0; i <= g->speculate && x->on_host; i++)
        x->logits[i] = xmalloc((unsigned long)engine_vocab(g), sizeof **x->logits);
    return x;
}

static void drafts_free(struct run *r)
{
    autofree struct drafts *x = r->drafts;
    if (!x)
        return;
    speculate_end(r->s, &x->saved);
    for (int i = 0; i <= ENGINE_MAX_SPECULATE; i++)
        free(x->logits[i]);
    free(x->masks);
    r->drafts = NULL;
}

/* Returns whether the grammar leaves no choice in this state: it forces tokens, or the reply ends. */
static bool no_choice(struct grammar *g, int state)
{
    struct tokens ids = {0};
    int after = state, forced = grammar_forced(g, state, &ids, &after);
    tokens_free(&ids);
    return forced > 0 || grammar_finished(g, state);
}

/* Sets the sampler that follows i draft tokens. */
static void set_sampler(struct run *r, int i, int state)
{
    struct drafts *x = r->drafts;
    x->how[i] = (struct sampler){.known = r->known, .temperature = r->p->temperature, .top_p = r->p->top_p};
    if (!r->g)
        return;
    x->how[i].allowed =
        memcpy(x->masks + (size_t)i * x->mask, grammar_mask(r->g, state), x->mask * sizeof *x->masks);
}

/* Proposes draft tokens and returns their number. Drafts stop before a token that may not be sampled, a
 * stop token, and a state without a choice: forced tokens are prefilled together with the sampled token
 * before them. */
static int propose_drafts(struct run *r)
{
    struct drafts *x = r->drafts;
    struct session *s = r->s;
    int64_t room = session_lm(s)->max_tokens - s->n - 1;
    int most = s->engine->speculate, left = r->p->max_tokens - r->out->n - 1, n = 0, state = r->state;
    most = left < most ? left : most;
    most = room < most ? (int)room : most;
    int found = most > 0 ? speculate_propose(s->tokens, s->n, x->ids, most) : 0;
    for (set_sampler(r, 0, state); n < found; n++) {
        int32_t id = x->ids[n];
        if (!sampling_has(r->known, id) || engine_is_stop(s->engine, id) ||
            (r->g && !sampling_has(x->how[n].allowed, id)))
            break;
        state = r->g ? grammar_advance(r->g, state, id) : 0;
        if (r->g && no_choice(r->g, state))
            break;
        set_sampler(r, n + 1, state);
    }
    return n;
}

/* Samples and accepts one or more tokens with speculation. Returns 1 if nothing was done, -1 with e. */
static int append_speculated(struct run *r, struct err *e)
{
    struct drafts *x = r->drafts;
    struct session *s = r->s;
    int n = x && r->out->n >= r->n_begins && speculate_ready(s) ? propose_drafts(r) : 0;
    if (n == 0 || (r->g && grammar_failed(r->g, NULL)))
        return 1;
    struct speculation p = {.draft = x->ids,
                            .n = n,
                            .how = x->how,
                            .out = x->out,
                            .logits = x->on_host ? x->logits : NULL,
                            .saved = &x->saved};
    uint64_t rng[ENGINE_MAX_SPECULATE + 2] = {session_rng(s)};
    for (int i = 0; i <= n; i++) {
        x->how[i].random = r->p->temperature > 0 ? session_uniform(s) : 0;
        rng[i + 1] = session_rng(s);
    }
    int rc = speculate_round(s, &p, e);
    r->out->proposed += p.sampled ? n : 0;
    r->out->accepted += p.sampled ? p.sampled - 1 : 0;
    session_set_rng(s, rng[p.sampled]); /* one random number per sampled token */
    r->appended = true;
    for (int i = 0; i < p.sampled && rc == 0; i++)
        rc = accept_sampled(r, &p.out[i], &p.how[i], p.logits ? p.logits[i] : NULL, e);
    r->appended = false;
    if (rc > 0)
        drafts_free(r); /* no memory for a copy of the state */
    return rc;
}

/* ---- a reply ------------------------------------------------------------------------------------------- */

/* Appends one or more tokens chosen by the model. */
static int append_chosen(struct run *r, struct err *e)
{
    int rc = append_speculated(r, e);
    return rc > 0 ? append_sampled(r, e) : rc;
}

static int run(struct run *r, const volatile int *cancel, struct err *e)
{
    r->out->finish = FINISH_LENGTH;
    while (!r->done && r->out->n < r->p->max_tokens) {
        if (flag_up(cancel)) {
            r->out->finish = FINISH_CANCELLED;
            return 0;
        }
        if (r->g && grammar_finished(r->g, r->state)) {
            r->out->finish = FINISH_GRAMMAR;
            return 0;
        }
        int forced = r->g && grammar_failed(r->g, e) ? -1 : append_forced(r, e);
        if (forced < 0 || (forced == 0 && append_chosen(r, e)))
            return -1;
    }
    return 0;
}

int generate(struct session *s, const struct generation *how, struct generated *out, struct err *e)
{
    int64_t start = clock_ns();
    *out = (struct generated){0};
    buf_init(&out->text, MAX_TEXT);
    struct run r = {.s = s,
                    .g = how->grammar,
                    .p = &how->sampling,
                    .out = out,
                    .on_text = how->on_text,
                    .arg = how->arg,
                    .begins = how->begins,
                    .n_begins = how->n_begins};
    r.filter = (struct sample_filter){.top_k = r.p->top_k,
                                      .min_p = r.p->min_p,
                                      .presence = r.p->presence_penalty,
                                      .frequency = r.p->frequency_penalty,
                                      .repetition = r.p->repetition_penalty,
                                      .reply = session_length(s) - how->earlier};
    r.width = out->width =
        how->alternatives < GENERATE_MAX_ALTERNATIVES ? how->alternatives : GENERATE_MAX_ALTERNATIVES;
    r.state = r.g ? grammar_start(r.g) : 0;
    for (int i = 0; r.g && i < how->n_said; i++)
        r.state = grammar_advance(r.g, r.state, how->said[i]);
    r.known = generate_known(session_engine(s));
    r.drafts = drafts_new(&r);
    if (!(r.hash = XXH3_createState()))
        die(ERR_ENV, "out of memory");
    XXH3_64bits_reset(r.hash);
    int rc = run(&r, how->cancel, e);
    session_idle(s);
    emit_text(&r, true);
    out->logits_hash = XXH3_64bits_digest(r.hash);
    out->hashed = !r.unhashed;
    XXH3_freeState(r.hash);
    drafts_free(&r);
    free(r.only);
    free(r.known);
    out->ms = clock_ms_since(start);
    return rc;
}

void generated_free(struct generated *g)
{
    buf_free(&g->text);
    free(g->choices);
    free(g->alternatives);
    free(g->spelled);
    *g = (struct generated){0};
}

bool generated_logprob(const struct generated *g, double *logprob)
{
    *logprob = 0;
    for (int i = 0; g->choices && i < g->n; i++)
        *logprob += g->choices[i].forced ? 0 : (double)g->choices[i].logprob;
    return g->choices != NULL;
}

double generated_prefix_logprob(const struct generated *g, size_t bytes)
{
    double sum = 0;
    for (int i = 0; i < g->n && g->choices[i].end <= bytes; i++)
        sum += g->choices[i].forced ? 0 : (double)g->choices[i].logprob;
    return sum;
}
