/* generate.c - see generate.h.
 *
 * Each round appends either the tokens that the grammar forces or one sampled token.  Appended tokens stay
 * pending until the next logits are needed: a sampled token and the forced ones after it are one prefill,
 * and the last token of a reply is computed with the next turn.
 */
#include "session/generate.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/utf8.h"
#include "ops/sampling.h"
#include "session/session_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MAX_TEXT = 16 << 20 };

struct run {
    struct session *s;
    struct grammar *g;
    int state; /* of the grammar */
    const struct sampling *p;
    int width;       /* alternatives recorded for each token */
    uint64_t *known; /* ids that may be generated */
    struct generated *out;
    int cap;      /* of out->choices */
    size_t shown; /* bytes of the text that on_text has seen */
    void (*on_text)(void *arg, const char *text, size_t len);
    void *arg;
    struct token_alternative *alternatives; /* [width] of the token that is being accepted, or NULL */
    bool done;
    XXH3_state_t *hash; /* of logits */
    bool unhashed;      /* some were not on the host */
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

/* Passes on the text up to the last complete character; all of it at the end. */
static void emit_text(struct run *r, bool all)
{
    const struct buf *text = &r->out->text;
    size_t n = text->len - r->shown, whole = utf8_valid_prefix(text->data + r->shown, n);
    if (all || n - whole > 3) /* four bytes that are not a character never become one */
        whole = n;
    if (r->on_text && whole)
        r->on_text(r->arg, text->data + r->shown, whole);
    r->shown += whole;
}

static int accept(struct run *r, const struct token_choice *c, struct err *e)
{
    struct generated *out = r->out;
    if (session_append(r->s, &c->id, 1, e))
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

/* Appends the forced tokens; their number, 0 when the model has a choice. */
static int append_forced(struct run *r, struct err *e)
{
    struct tokens ids = {0};
    int after = r->state, n = r->g ? grammar_forced(r->g, r->state, &ids, &after) : 0, rc = 0;
    for (int i = 0; i < n && rc == 0 && !r->done && r->out->n < r->p->max_tokens; i++)
        rc = accept(r, &(struct token_choice){.id = ids.ids[i], .forced = true}, e);
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

static void hash_logits(struct run *r)
{
    if (r->s->logits_at == r->s->n)
        XXH3_64bits_update(r->hash, r->s->logits, (size_t)engine_vocab(r->s->engine) * sizeof *r->s->logits);
    else
        r->unhashed = true;
}

static int append_sampled(struct run *r, struct err *e)
{
    if (session_length(r->s) == 0)
        return err_set(e, ERR_MODEL, "there is nothing to continue");
    struct sampler how = {.known = r->known,
                          .allowed = r->g ? grammar_mask(r->g, r->state) : NULL,
                          .temperature = r->p->temperature,
                          .top_p = r->p->top_p};
    uint64_t rng = session_rng(r->s);
    how.random = how.temperature > 0 ? session_uniform(r->s) : 0;
    struct sampled c;
    if (session_sample(r->s, &how, &c, e) || (r->width && session_compute_logits(r->s, e))) {
        session_set_rng(r->s, rng); /* nothing was sampled with it */
        return -1;
    }
    if (c.id < 0)
        return err_set(e, ERR_MODEL,
                       "the model's output is no number: a weight is NaN or infinite, or a sum overflows; "
                       "--weights-in ram checks all weights when they are read");
    struct token_alternative top[GENERATE_MAX_ALTERNATIVES];
    if (r->width)
        generate_top(session_logits(r->s), tokenizer_size(engine_tokenizer(session_engine(r->s))), how.known,
                     how.allowed, top, r->width);
    hash_logits(r);
    if (r->g)
        r->state = grammar_advance(r->g, r->state, c.id);
    r->alternatives = top;
    int rc = accept(r, &(struct token_choice){c.id, c.logprob, c.logprob_masked, false, 0}, e);
    r->alternatives = NULL;
    return rc;
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
        int forced = append_forced(r, e);
        if (forced < 0 || (forced == 0 && append_sampled(r, e)))
            return -1;
    }
    return 0;
}

int generate(struct session *s, const struct generation *how, struct generated *out, struct err *e)
{
    int64_t start = clock_ns();
    *out = (struct generated){0};
    buf_init(&out->text, MAX_TEXT);
    struct run r = {
        .s = s, .g = how->grammar, .p = &how->sampling, .out = out, .on_text = how->on_text, .arg = how->arg};
    r.width = out->width =
        how->alternatives < GENERATE_MAX_ALTERNATIVES ? how->alternatives : GENERATE_MAX_ALTERNATIVES;
    r.state = r.g ? grammar_start(r.g) : 0;
    for (int i = 0; r.g && i < how->n_said; i++)
        r.state = grammar_advance(r.g, r.state, how->said[i]);
    r.known = generate_known(session_engine(s));
    if (!(r.hash = XXH3_createState()))
        die(ERR_ENV, "out of memory");
    XXH3_64bits_reset(r.hash);
    int rc = run(&r, how->cancel, e);
    session_idle(s);
    emit_text(&r, true);
    out->logits_hash = XXH3_64bits_digest(r.hash);
    out->hashed = !r.unhashed;
    XXH3_freeState(r.hash);
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
