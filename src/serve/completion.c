/* completion.c - generates the reply of a request and returns its session to the cache; see completion.h.
 *
 * A reply is generated in pieces: the reasoning before a constrained part is a piece of its own, and so is
 * the continuation after a pause. */
#include "serve/completion_impl.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/utf8.h"
#include "capacity/memory.h"
#include "serve/api.h"
#include "session/chat.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* interval in requests at which freed memory is returned to the kernel; CPU budget of a request */
enum { TRIM_EVERY = 64, EFFORT_S = 30 };

struct completion *completion_new(struct service *s, const struct api *api)
{
    struct completion *c = xcalloc(1, sizeof *c);
    unsigned char noise[12];
    c->service = s;
    c->api = api;
    c->created = (int64_t)time(NULL);
    c->begun = clock_ns();
    c->effort = (struct effort){.cpu_s = EFFORT_S, .cancel = &c->gone};
    if (getrandom(noise, sizeof noise, 0) != (ssize_t)sizeof noise)
        memcpy(noise, &c->begun, sizeof c->begun);
    size_t n = (size_t)snprintf(c->id, sizeof c->id, "chatcmpl-");
    for (size_t i = 0; i < sizeof noise; i++)
        n += (size_t)snprintf(c->id + n, sizeof c->id - n, "%02x", noise[i]);
    memcpy(&c->body.seed, noise, sizeof c->body.seed);
    return c;
}

/* Sets the reason before the halt flag; clear_halt() reads them in the opposite order, so that no request to
 * stop is lost in between. */
static void halt_for(struct completion *c, volatile int *reason)
{
    flag_set(reason, 1);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    flag_set(&c->halt, 1);
}

static void clear_halt(struct completion *c)
{
    flag_set(&c->halt, 0);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (flag_up(&c->gone) || flag_up(&c->paused))
        flag_set(&c->halt, 1);
}

void completion_gone(struct completion *c)
{
    halt_for(c, &c->gone);
}

void completion_pause(struct completion *c)
{
    halt_for(c, &c->paused);
}

int completion_read(struct completion *c, const char *body, size_t len, struct err *e)
{
    uint64_t seed = c->body.seed;
    struct body_defaults defaults = c->service->defaults;
    defaults.effort = &c->effort;
    int rc = body_parse(&c->body, body, len, &defaults, c->api->translate, e);
    if (!c->body.seeded)
        c->body.seed = seed;
    return rc;
}

int completion_prepare(struct completion *c, struct err *e)
{
    struct metrics *m = &c->service->metrics;
    flag_set(&c->waiting, 1);
    c->weights = weights_acquire(c->service->weights, &c->gone);
    flag_set(&c->waiting, 0);
    if (!c->weights)
        return err_set(e, ERR_STOPPED, "the client has disconnected");
    if (completion_render(c, e) ||
        constraint_acquire(c->service->constraints, &c->body, engine_chat(c->weights->engine),
                           engine_tokenizer(c->weights->engine), &c->constraint, e) ||
        completion_read_conversation(c, e))
        return -1;
    session_set_rng(cached_session(c->kept), c->body.seed);
    atomic_fetch_add(&m->prompt_tokens, c->prompt_tokens);
    atomic_fetch_add(&m->cached_tokens, c->cached_tokens);
    return 0;
}

/* ---- the reply ------------------------------------------------------------------------------------- */

static void take_tokens(struct completion *c)
{
    int width = c->body.top_logprobs;
    if (c->n == 0 && c->taken == 0 && c->piece.n)
        metrics_observe(&c->service->metrics.first_token, clock_ms_since(c->begun) / 1000);
    for (; c->taken < c->piece.n; c->taken++) {
        const struct token_choice *t = &c->piece.choices[c->taken];
        if (c->n == c->cap) {
            c->cap = c->cap ? c->cap * 2 : 64;
            c->tokens = xrealloc(c->tokens, (unsigned long)c->cap, sizeof *c->tokens);
            if (width)
                c->alternatives =
                    xrealloc(c->alternatives, (unsigned long)(c->cap * width), sizeof *c->alternatives);
        }
        if (width)
            memcpy(c->alternatives + (ptrdiff_t)c->n * width,
                   c->piece.alternatives + (ptrdiff_t)c->taken * width,
                   (size_t)width * sizeof *c->alternatives);
        c->tokens[c->n++] = (struct completion_token){.id = t->id,
                                                      .logprob = t->forced ? 0 : t->logprob_masked,
                                                      .before = t->logprob,
                                                      .version = c->weights->version,
                                                      .stop = engine_is_stop(c->weights->engine, t->id),
                                                      .forced = t->forced};
    }
}

/* Returns whether the model is in its reasoning, which is not constrained by the grammar and ends the
 * piece. */
static bool thinks_freely(const struct completion *c)
{
    return c->constraint.grammar && c->text.now == REPLY_THOUGHT;
}

/* Appends generated text. Invalid UTF-8 becomes U+FFFD here, so that the streamed text, the complete text,
 * and the text that returns with the next turn are identical. */
static void feed(struct completion *c, const char *text, size_t n)
{
    while (n) {
        size_t valid = utf8_valid_prefix(text, n), good = strnlen(text, valid);
        reply_text_feed(&c->text, text, good);
        if (good == n)
            break;
        reply_text_feed(&c->text, "\xef\xbf\xbd", 3);
        text += good + 1;
        n -= good + 1;
    }
}

static void on_piece(void *arg, const char *text, size_t n)
{
    struct completion *c = arg;
    bool thinking = thinks_freely(c);
    take_tokens(c);
    feed(c, text, n);
    if (c->text.now == REPLY_THOUGHT)
        c->thought_tokens = c->n;
    if (c->text.stopped || (thinking && !thinks_freely(c)))
        flag_set(&c->halt, 1);
    store_serve(c->service->store, c->kept);
}

/* Returns the token ids sampled since index `from`; the caller frees them. */
static int32_t *sampled_ids(const struct completion *c, int from)
{
    int32_t *ids = xcalloc((unsigned long)(c->n - from) + 1, sizeof *ids);
    for (int i = from; i < c->n; i++)
        ids[i - from] = c->tokens[i].id;
    return ids;
}

static int generate_piece(struct completion *c, struct err *e)
{
    bool thinking = thinks_freely(c);
    int32_t *said = sampled_ids(c, c->free_tokens);
    struct generation how = {.grammar = thinking ? NULL : c->constraint.grammar,
                             .said = said,
                             .n_said = c->n - c->free_tokens,
                             .sampling = c->body.sampling,
                             .earlier = c->n,
                             .alternatives = c->body.top_logprobs,
                             .cancel = &c->halt,
                             .on_text = on_piece,
                             .arg = c};
    how.sampling.max_tokens -= c->n;
    c->taken = 0;
    int rc = generate(cached_session(c->kept), &how, &c->piece, e);
    free(said);
    take_tokens(c);
    c->finish = c->piece.finish;
    generated_free(&c->piece);
    c->taken = 0;
    if (rc)
        return -1;
    if (c->finish == FINISH_CANCELLED && c->text.stopped)
        c->finish = FINISH_STOP;
    c->done = c->finish != FINISH_CANCELLED || flag_up(&c->gone);
    if (!c->done && thinking && !thinks_freely(c)) {
        c->free_tokens = c->n;
        clear_halt(c);
    }
    return 0;
}

/* Prefills the conversation and the sampled part of the reply again with other weights. */
static int prefill_again(struct completion *c, struct weights_set *w, struct err *e)
{
    struct service *s = c->service;
    int64_t prompt = c->prompt_tokens, cached = c->cached_tokens;
    autofree int32_t *said = sampled_ids(c, 0);
    uint64_t rng = session_rng(cached_session(c->kept));
    store_discard(s->store, c->kept);
    c->kept = NULL;
    constraint_release(s->constraints, &c->constraint);
    weights_release(s->weights, c->weights);
    c->weights = w;
    free(c->prompt);
    c->prompt = NULL;
    int rc = completion_render(c, e) ||
                     constraint_acquire(s->constraints, &c->body, engine_chat(w->engine),
                                        engine_tokenizer(w->engine), &c->constraint, e) ||
                     completion_read_conversation(c, e) ||
                     session_append(cached_session(c->kept), said, c->n, e)
                 ? -1
                 : 0;
    if (rc)
        return -1;
    session_set_rng(cached_session(c->kept), rng);
    if (c->prompt_tokens != prompt)
        return err_set(e, ERR_MODEL, "cannot continue: the new weights have a different tokenizer");
    c->cached_tokens = cached;
    return 0;
}

/* Waits for /resume and continues with the weights that are then current. Another pause may follow at any
 * time. */
static int await_resume(struct completion *c, struct err *e)
{
    struct weights_slot *slot = c->service->weights;
    flag_set(&c->paused, 0);
    store_pause(c->service->store, c->kept, true);
    flag_set(&c->waiting, 1);
    struct weights_set *w = weights_acquire(slot, &c->gone);
    flag_set(&c->waiting, 0);
    store_pause(c->service->store, c->kept, false);
    if (!w) {
        c->done = true;
        return 0;
    }
    clear_halt(c);
    if (w != c->weights)
        return prefill_again(c, w, e);
    weights_release(slot, w);
    return 0;
}

/* Generates a piece. Being stopped while waiting for the engine is not a failure: the client is gone, the
 * request was aborted, or it continues with other weights. */
static int generate_or_stop(struct completion *c, struct err *e)
{
    struct err why = ERR_INIT;
    if (generate_piece(c, &why) == 0)
        return 0;
    c->done = flag_up(&c->gone);
    if (why.kind == ERR_STOPPED && (c->done || flag_up(&c->paused)))
        return 0;
    return err_set(e, why.kind, "%s", why.text);
}

/* Returns the tools that a reply may call, or NULL. */
static const json_t *completion_tools(const struct completion *c)
{
    bool any = c->body.talk.chat.n_tools && c->body.tools != TOOLS_NONE;
    return any ? json_object_get(c->body.talk.root, "tools") : NULL;
}

int completion_generate(struct completion *c, struct err *e)
{
    struct metrics *m = &c->service->metrics;
    reply_text_init(&c->text, c->layout.thinks, completion_tools(c), c->body.stops, c->body.n_stops);
    c->text.on_text = c->on_text;
    c->text.arg = c->arg;
    while (!c->done)
        if ((flag_up(&c->paused) && await_resume(c, e)) || (!c->done && generate_or_stop(c, e)))
            return -1;
    reply_text_end(&c->text);
    c->calls = reply_text_calls(&c->text, c->id + strlen("chatcmpl-"));
    atomic_fetch_add(&m->generated_tokens, c->n);
    metrics_observe(&m->whole, clock_ms_since(c->begun) / 1000);
    if (!flag_up(&c->gone) || c->aborted)
        return 0;
    atomic_fetch_add(&m->cancelled, 1);
    return err_set(e, ERR_STOPPED, "the client has disconnected");
}

const char *completion_finish(const struct completion *c)
{
    if (c->aborted)
        return "abort";
    return c->finish == FINISH_LENGTH ? "length" : c->calls ? "tool_calls" : "stop";
}

json_t *completion_message(const struct completion *c)
{
    const struct buf *content = &c->text.parts[REPLY_CONTENT], *thought = &c->text.parts[REPLY_THOUGHT];
    json_t *text = c->calls && !content->len ? json_null()
                                             : json_stringn(content->len ? content->data : "", content->len);
    json_t *m = json_pack("{s:s, s:o, s:n}", "role", "assistant", "content", text, "refusal");
    if (thought->len) {
        json_object_set_new(m, "reasoning", json_stringn_nocheck(thought->data, thought->len));
        json_object_set(m, "reasoning_content", json_object_get(m, "reasoning"));
    }
    if (c->calls)
        json_object_set(m, "tool_calls", c->calls);
    return m;
}

/* ---- returning the session ------------------------------------------------------------------------- */

/* Returns the sampled bytes of the reply without the stop token; the caller frees them. */
static char *sampled_text(const struct completion *c)
{
    autobuf text = buf_of((size_t)64 << 20);
    for (int i = 0; i < c->n; i++) {
        size_t n;
        const char *bytes = tokenizer_bytes(engine_tokenizer(c->weights->engine), c->tokens[i].id, &n);
        if (!c->tokens[i].stop)
            buf_put(&text, bytes, n);
    }
    char *s = buf_take(&text);
    return s ? s : xstrdup("");
}

/* Appends the end of the reply's turn if the prompt with the reply contains it exactly as sampled. Returns 1
 * if it does not, -1 with e on failure. */
static int close_sampled(struct completion *c, const struct prompt *with, int end, struct err *e)
{
    struct session *s = cached_session(c->kept);
    const struct prompt *p = &c->layout;
    autofree char *want = prompt_text(with, with->cuts[p->n], with->cuts[end]);
    autofree char *opening = prompt_text(p, p->cuts[p->n], p->layout.n), *said = sampled_text(c);
    autofree char *got = xasprintf("%s%s", opening, said);
    size_t n = strlen(got), ended = 0;
    bool same = !strncmp(want, got, n);
    if (same && c->n && c->tokens[c->n - 1].stop) { /* the session contains the token that ends the turn */
        size_t len;
        const char *bytes =
            tokenizer_bytes(engine_tokenizer(c->weights->engine), c->tokens[c->n - 1].id, &len);
        same = strlen(want + n) >= len && !memcmp(want + n, bytes, len);
        ended = len;
    }
    struct layout rest = layout_new();
    if (same)
        layout_template(&rest, want + n + ended);
    int rc = same ? chat_append_layout(s, &rest, 0, rest.n, e) : 1;
    layout_free(&rest);
    return rc;
}

/* Prepares the session for the next prompt; *end: hash of its prefix. Returns -1 if the session is unusable.
 * A reply that the next prompt formats differently is prefilled again, except for calls, which are prefilled
 * with the next prompt. */
static int close_reply(struct completion *c, struct prefix_hash *end)
{
    struct err e = ERR_INIT;
    struct prompt with;
    int at, rc = 1;
    bool whole = c->done && c->finish != FINISH_CANCELLED;
    json_auto_t *message = completion_message(c);
    *end = c->layout.hashes[c->layout.n];
    if (whole && prompt_build_reply(&with, engine_chat(c->weights->engine), &c->body.talk, &c->layout,
                                    message, &at, &e) == 0) {
        rc = c->text.stopped ? 1 : close_sampled(c, &with, at, &e);
        if (rc > 0 && !c->calls && store_rewind(c->kept, end, &e) == 0)
            rc = chat_append_layout(cached_session(c->kept), &with.layout, with.cuts[c->layout.n],
                                    with.cuts[at], &e);
        if (rc == 0)
            *end = with.hashes[at];
    }
    if (whole)
        prompt_free(&with);
    return rc > 0 ? store_rewind(c->kept, end, &e) : rc;
}

void completion_keep(struct completion *c)
{
    struct prefix_hash end;
    if (!c->kept)
        return;
    session_set_cancel(cached_session(c->kept), NULL);
    struct err e = ERR_INIT;
    int rc = c->prompt_tokens ? close_reply(c, &end) : store_rewind(c->kept, &end, &e);
    if (rc == 0)
        store_release(c->service->store, c->kept, end);
    else
        store_discard(c->service->store, c->kept);
    c->kept = NULL;
}

void completion_free(struct completion *c)
{
    if (!c)
        return;
    completion_keep(c);
    constraint_release(c->service->constraints, &c->constraint);
    weights_release(c->service->weights, c->weights);
    reply_text_free(&c->text);
    generated_free(&c->piece);
    json_decref(c->calls);
    free(c->tokens);
    free(c->alternatives);
    free(c->prompt);
    prompt_free(&c->layout);
    body_free(&c->body);
    bool trim = atomic_fetch_add(&c->service->ended, 1) % TRIM_EVERY == TRIM_EVERY - 1;
    free(c);
    if (trim)
        memory_trim();
}
