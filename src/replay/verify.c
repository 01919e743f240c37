/* verify.c - repeats a recorded run's inference and reports the first differences. */
#include "replay/verify.h"

#include "agent/context.h"
#include "agent/overseer.h"
#include "llm/prompt.h"
#include "text/tokenizer.h"
#include "trace/index.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct verifier {
    const struct timeline *t;
    const struct verify_options *o;
    struct verification *v;
    struct llm *llm;
    struct context *context;
    struct frame_index index;
    struct conversation_ids recorded;
    struct seen {
        int step, turn, frame;
    } * seen; /* [n_seen] steps with their turns; a later one replaces an earlier one */
    int n_seen;
    char *said; /* the last reply, as kept in the conversation */
    bool ended; /* by a difference that would cause all following ones */
};

const char *differs_name(enum differs d)
{
    static const char *const names[] = {"model", "dialect", "frame", "prompt", "token", "logits"};
    return names[d];
}

void verify_note(struct verification *v, const struct difference *d)
{
    if (v->n < VERIFY_MAX_DIFFERENCES)
        v->differences[v->n++] = *d;
}

static void format_hash(char out[VERIFY_TEXT], uint64_t hash)
{
    snprintf(out, VERIFY_TEXT, "%016llx", (unsigned long long)hash);
}

/* Decodes the screenshot of a turn; returns -1 if it cannot be decoded. */
static int load_frame(struct verifier *a, const struct turn *u, struct image *im)
{
    struct difference d = {.kind = DIFFERS_FRAME, .step = u->step, .token = -1};
    struct err why = ERR_INIT;
    enum index_fault fault = index_image(&a->index, a->t->record, u->frame, im, &why);
    const struct index_frame *line = index_find(&a->index, u->frame);
    if (line)
        format_hash(d.recorded, line->pixels);
    if (im->rgb)
        format_hash(d.now, image_hash(im));
    if (fault == FRAME_AS_WRITTEN && im->rgb && u->pixels && image_hash(im) != u->pixels) {
        format_hash(d.recorded, u->pixels);
        snprintf(d.what, sizeof d.what, "frames/%06d.png is not the screenshot of step %d", u->frame,
                 u->step);
        verify_note(a->v, &d);
    } else if (fault != FRAME_AS_WRITTEN) {
        snprintf(d.what, sizeof d.what, "%.*s", (int)sizeof d.what - 1, why.text);
        verify_note(a->v, &d);
    }
    return im->rgb ? 0 : -1;
}

static const struct seen *find_seen(const struct verifier *a, int step, int turn)
{
    for (int i = a->n_seen - 1; i >= 0; i--)
        if (a->seen[i].step == step || a->seen[i].turn == turn)
            return &a->seen[i];
    return NULL;
}

static int frame_of_turn(void *arg, int turn, struct image *out, struct err *e)
{
    const struct verifier *a = arg;
    const struct seen *p = find_seen(a, -1, turn);
    if (!p)
        return err_set(e, ERR_ENV, "the record is damaged: turn %d has no screenshot", turn);
    index_image(&a->index, a->t->record, p->frame, out, e); /* errors in it are reported elsewhere */
    return out->rgb ? 0 : -1;
}

static int show_frame(struct verifier *a, const struct turn *u, const struct image *im, struct err *e)
{
    struct context_cost cost;
    const struct seen *then = u->from ? find_seen(a, u->from, -1) : NULL;
    int turn = then ? then->turn : context_turns(a->context);
    if (u->from && !then)
        return err_set(e, ERR_ENV, "the record of step %d is damaged: step %d to rewind to does not exist",
                       u->step, u->from);
    a->seen = xrealloc(a->seen, (unsigned long)a->n_seen + 1, sizeof *a->seen);
    a->seen[a->n_seen++] = (struct seen){u->step, turn, u->frame};
    return then ? context_rewind(a->context, turn, frame_of_turn, a, &cost, e)
                : context_observe(a->context, u->lead, im, &cost, e);
}

static int verify_observation(struct verifier *a, const struct turn *u, struct err *e)
{
    struct image im;
    if (load_frame(a, u, &im)) {
        a->ended = true;
        return 0;
    }
    int rc = show_frame(a, u, &im, e);
    image_free(&im);
    a->v->steps += rc == 0;
    return rc;
}

/* Formats a token as its id and text: 1234 "text". */
static void format_token(const struct verifier *a, int32_t id, char out[VERIFY_TEXT])
{
    size_t len = 0;
    const char *bytes = tokenizer_bytes(engine_tokenizer(a->o->engine), id, &len);
    struct buf b;
    buf_init(&b, VERIFY_TEXT / 2);
    if (buf_put_json(&b, bytes ? bytes : "", len < 40 ? len : 40))
        buf_clear(&b);
    snprintf(out, VERIFY_TEXT, "%d %s", id, b.data);
    buf_free(&b);
}

static void note_end(struct verifier *a, const struct difference *d)
{
    verify_note(a->v, d);
    a->ended = true;
}

/* Returns the first index at which two arrays of ids differ; -1: none. */
static int64_t first_other(const int32_t *x, int64_t nx, const int32_t *y, int64_t ny)
{
    int64_t n = nx < ny ? nx : ny, i = 0;
    while (i < n && x[i] == y[i])
        i++;
    return i == nx && i == ny ? -1 : i;
}

static void note_ids(struct verifier *a, const struct turn *u, enum differs kind, int64_t at,
                     const int32_t *was, int64_t n_was, const int32_t *is, int64_t n_is)
{
    struct difference d = {
        .kind = kind, .step = u->step, .token = at, .recorded = "the end", .now = "the end"};
    snprintf(d.what, sizeof d.what, "token %lld of %lld of the %s", (long long)at + 1,
             (long long)(n_was > at ? n_was : n_is), kind == DIFFERS_PROMPT ? "prompt" : "reply");
    if (at < n_was)
        format_token(a, was[at], d.recorded);
    if (at < n_is)
        format_token(a, is[at], d.now);
    note_end(a, &d);
}

static void compare_prompt(struct verifier *a, const struct turn *u, const int32_t *ids, int64_t n)
{
    int64_t at = first_other(a->recorded.ids, u->reply.prompt, ids, n);
    uint64_t hash = XXH3_64bits(ids, (size_t)n * sizeof *ids);
    if (at >= 0) {
        note_ids(a, u, DIFFERS_PROMPT, at, a->recorded.ids, u->reply.prompt, ids, n);
    } else if (hash != u->reply.prompt_hash) { /* tokens.bin was modified */
        struct difference d = {.kind = DIFFERS_PROMPT, .step = u->step, .token = -1};
        format_hash(d.recorded, u->reply.prompt_hash);
        format_hash(d.now, hash);
        snprintf(d.what, sizeof d.what, "hash of the prompt's %lld tokens", (long long)n);
        note_end(a, &d);
    }
}

static bool same_bits(float x, float y)
{
    uint32_t a, b;
    memcpy(&a, &x, sizeof a);
    memcpy(&b, &y, sizeof b);
    return a == b;
}

/* Returns the first token whose log-probabilities differ in any bit; -1: none. */
static int64_t first_other_logprob(const struct verifier *a, const struct turn *u, const struct generated *g)
{
    const float *was = turn_logprobs(a->t, u);
    for (int i = 0; i < g->n; i++)
        if (!g->choices[i].forced && !(same_bits(was[2 * i], g->choices[i].logprob) &&
                                       same_bits(was[2 * i + 1], g->choices[i].logprob_masked)))
            return i;
    return -1;
}

static void compare_logits(struct verifier *a, const struct turn *u, const struct generated *g)
{
    struct difference d = {.kind = DIFFERS_LOGITS, .step = u->step};
    bool both = u->reply.hashed && g->hashed;
    d.token = first_other_logprob(a, u, g);
    a->v->hashed += both;
    if (both && u->reply.logits_hash != g->logits_hash) {
        format_hash(d.recorded, u->reply.logits_hash);
        format_hash(d.now, g->logits_hash);
        snprintf(d.what, sizeof d.what,
                 d.token < 0 ? "hash of the logits" : "hash of the logits; first seen in token %lld of %d",
                 (long long)d.token + 1, g->n);
        note_end(a, &d);
    } else if (d.token >= 0) {
        const float *was = turn_logprobs(a->t, u) + 2 * d.token;
        const struct token_choice *is = &g->choices[d.token];
        snprintf(d.recorded, sizeof d.recorded, "%.9g, %.9g", (double)was[0], (double)was[1]);
        snprintf(d.now, sizeof d.now, "%.9g, %.9g", (double)is->logprob, (double)is->logprob_masked);
        snprintf(d.what, sizeof d.what, "log-probability of token %lld of %d", (long long)d.token + 1, g->n);
        note_end(a, &d);
    }
}

static void compare_reply(struct verifier *a, const struct turn *u, const struct generated *g)
{
    const int32_t *ids = session_tokens(llm_session(a->llm));
    int64_t prompt = a->llm->ops->length(a->llm) - g->n;
    compare_prompt(a, u, ids, prompt);
    if (a->ended)
        return;
    const int32_t *was = turn_ids(a->t, u);
    int64_t at = first_other(was, u->reply.n, ids + prompt, g->n);
    a->v->tokens += g->n;
    if (at >= 0)
        note_ids(a, u, DIFFERS_TOKEN, at, was, u->reply.n, ids + prompt, g->n);
    else
        compare_logits(a, u, g);
}

static int verify_reply(struct verifier *a, const struct turn *u, struct err *e)
{
    const struct turn_reply *r = &u->reply;
    struct llm_request ask = {.goal = r->goal,
                              .sampling = r->sampling,
                              .think = r->think,
                              .begins = r->begins,
                              .resample = r->resample,
                              .cancel = a->o->cancel};
    struct generated g;
    if (r->cancelled) /* reproduces as many tokens as were recorded */
        ask.sampling.max_tokens = r->n;
    int rc = context_think(a->context, &ask, &g, e);
    if (rc == 0 && g.finish == FINISH_CANCELLED)
        rc = err_set(e, ERR_STOPPED, "stopped");
    if (rc == 0)
        rc = timeline_follow(a->t, u, &a->recorded, e);
    if (rc == 0) {
        compare_reply(a, u, &g);
        a->v->replies++;
        free(a->said);
        a->said = prompt_reply_as_history(g.text.data);
        if (a->o->stepped)
            a->o->stepped(a->o->arg, u->step, a->v);
    }
    generated_free(&g);
    return rc;
}

static int verify_turn(struct verifier *a, const struct turn *u, struct err *e)
{
    switch (u->op) {
    case TURN_RECALL:
        return context_recall(a->context, u->lead, u->history, e);
    case TURN_OBSERVE:
        return verify_observation(a, u, e);
    case TURN_REPLY:
        return verify_reply(a, u, e);
    default:
        return context_accept(a->context, u->history ? u->history : a->said, u->as_said, e);
    }
}

int verify_run(const struct timeline *t, const struct verify_options *o, struct verification *v,
               struct err *e)
{
    struct verifier a = {.t = t, .o = o, .v = v};
    if (timeline_complete(t, e) || index_open(&a.index, t->record, e))
        return -1;
    a.llm = llm_local(o->engine, o->dialect, o->seed);
    int points = 0;
    for (int i = 0; i < t->n; i++)
        if (t->turns[i].from) /* same order as in the run, where the user could rewind here */
            points = OVERSEER_MARKS;
    a.context = context_new(a.llm, o->dialect, o->window, o->max_images, points, t->system, e);
    int rc = a.context ? 0 : -1;
    for (int i = 0; i < t->n && rc == 0 && !a.ended; i++)
        rc = verify_turn(&a, &t->turns[i], e);
    context_free(a.context);
    llm_free(a.llm);
    index_free(&a.index);
    free(a.recorded.ids);
    free(a.seen);
    free(a.said);
    return rc;
}
