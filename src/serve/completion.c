/* completion.c - see completion.h.
 *
 * The session does what it does for an agent in this process, call by call: system text, prefix, turns, a
 * checkpoint before the first picture and one before the reply, the reply, its end.  So the reply has the
 * tokens that it has there.
 */
#include "serve/completion.h"

#include "base/clock.h"
#include "base/flag.h"
#include "model/config.h"
#include "serve/picture.h"
#include "session/chat.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum { DEFAULT_TOKENS = 4096, ROOM_TOKENS = 1024 };

struct completion *completion_new(struct service *s)
{
    struct completion *c = xcalloc(1, sizeof *c);
    unsigned char noise[12];
    c->service = s;
    c->created = (int64_t)time(NULL);
    c->begun = clock_ns();
    if (getrandom(noise, sizeof noise, 0) != (ssize_t)sizeof noise)
        memcpy(noise, &c->begun, sizeof c->begun);
    size_t n = (size_t)snprintf(c->id, sizeof c->id, "chatcmpl-");
    for (size_t i = 0; i < sizeof noise; i++)
        n += (size_t)snprintf(c->id + n, sizeof c->id - n, "%02x", noise[i]);
    memcpy(&c->body.seed, noise, sizeof c->body.seed);
    return c;
}

void completion_gone(struct completion *c)
{
    flag_set(&c->gone, 1);
    flag_set(&c->halt, 1);
}

int completion_read(struct completion *c, const char *body, size_t len, struct err *e)
{
    uint64_t seed = c->body.seed;
    int rc = body_parse(&c->body, body, len, &c->service->defaults, e);
    if (!c->body.seeded)
        c->body.seed = seed;
    return rc;
}

/* ---- reading the conversation -------------------------------------------------------------------- */

static char *joined_text(const struct chat_message *m)
{
    struct buf text;
    buf_init(&text, (size_t)64 << 20);
    for (int i = 0; i < m->n; i++)
        if (m->parts[i].text)
            buf_puts(&text, m->parts[i].text);
    char *s = buf_take(&text);
    return s ? s : xstrdup("");
}

static const struct chat_message *message_at(const struct completion *c, int i)
{
    return &c->body.talk.chat.messages[i];
}

static bool has_picture(const struct chat_message *m)
{
    for (int i = 0; i < m->n; i++)
        if (m->parts[i].image)
            return true;
    return false;
}

static bool has_earlier_picture(const struct completion *c, int before)
{
    for (int i = 0; i < before; i++)
        if (has_picture(message_at(c, i)))
            return true;
    return false;
}

/* The system's block, with the tools; returns how many messages it took. */
static int begin_session(struct completion *c, struct session *s, struct err *e)
{
    const struct chat_conversation *all = &c->body.talk.chat;
    int n = all->messages[0].role == CHAT_SYSTEM, rc;
    if (all->n_tools) {
        struct chat_conversation head = {
            .messages = all->messages, .n = n, .tools = all->tools, .n_tools = all->n_tools};
        rc = chat_append(s, &head, e);
    } else {
        char *text = n ? joined_text(&all->messages[0]) : xstrdup("");
        rc = chat_system(s, text, e);
        free(text);
    }
    return rc || session_reuse_prefix(s, e) ? -1 : n;
}

static struct image *image_of(const struct completion *c, const struct chat_part *p)
{
    return &c->body.talk.images[p->image - c->body.talk.images];
}

/* Decodes the pictures of a message; tokens: at most so many the message has. */
static int decode_pictures(struct completion *c, const struct chat_message *m, int64_t *tokens, struct err *e)
{
    const struct conversation *v = &c->body.talk;
    struct engine *g = c->weights->engine;
    for (int i = 0; i < m->n; i++) {
        struct image *im = m->parts[i].image ? image_of(c, &m->parts[i]) : NULL;
        *tokens += m->parts[i].text ? (int64_t)strlen(m->parts[i].text) : 0;
        if (!im)
            continue;
        if (!im->rgb && picture_decode(v->files[im - v->images], im, e))
            return -1;
        *tokens += engine_image_tokens(g, im->w, im->h, NULL, NULL) + 32;
    }
    return 0;
}

static void free_pictures(struct completion *c, const struct chat_message *m)
{
    for (int i = 0; i < m->n; i++)
        if (m->parts[i].image) {
            image_free(image_of(c, &m->parts[i]));
            atomic_fetch_add(&c->service->metrics.pictures, 1);
        }
}

static int append_user(struct completion *c, int i, struct err *e)
{
    const struct chat_message *m = message_at(c, i);
    int64_t tokens = 64;
    if (has_picture(m) && !has_earlier_picture(c, i) &&
        store_mark(c->service->store, c->kept, STORE_BEFORE_PICTURE, c->chain[i], e))
        return -1;
    if (decode_pictures(c, m, &tokens, e) || store_room(c->service->store, c->kept, tokens, e))
        return -1;
    int rc = chat_user(kept_session(c->kept), m->parts, m->n, c->body.talk.chat.place, e);
    free_pictures(c, m);
    return rc;
}

/* Text and calls as the model writes them. */
static int append_assistant(struct session *s, const struct chat_message *m, struct err *e)
{
    struct buf text;
    buf_init(&text, (size_t)64 << 20);
    char *said = joined_text(m);
    buf_puts(&text, said);
    for (int i = 0; i < m->n_calls; i++)
        buf_printf(&text, "%s%s", i ? ", " : *said ? "\n\n<TOOLCALL>[" : "<TOOLCALL>[", m->calls[i]);
    if (m->n_calls)
        buf_puts(&text, "]</TOOLCALL>");
    int rc = chat_reply(s, text.data ? text.data : "", e);
    free(said);
    buf_free(&text);
    return rc;
}

/* Consecutive results from message i on; returns how many. */
static int append_results(struct completion *c, int i, struct err *e)
{
    int n = 0;
    while (i + n < c->body.talk.chat.n && message_at(c, i + n)->role == CHAT_TOOL)
        n++;
    char **texts = xcalloc((unsigned long)n, sizeof *texts);
    for (int k = 0; k < n; k++)
        texts[k] = joined_text(message_at(c, i + k));
    int rc = chat_results(kept_session(c->kept), (const char *const *)texts, n, e);
    for (int k = 0; k < n; k++)
        free(texts[k]);
    free(texts);
    return rc ? -1 : n;
}

static int append_from(struct completion *c, int i, struct err *e)
{
    struct session *s = kept_session(c->kept);
    if (i == 0 && (i = begin_session(c, s, e)) < 0)
        return -1;
    while (i < c->body.talk.chat.n) {
        int taken = 1, rc = 0;
        switch (message_at(c, i)->role) {
        case CHAT_USER:
            rc = append_user(c, i, e);
            break;
        case CHAT_ASSISTANT:
            rc = append_assistant(s, message_at(c, i), e);
            break;
        case CHAT_TOOL:
            rc = taken = append_results(c, i, e);
            break;
        case CHAT_SYSTEM:
            break;
        }
        if (rc < 0)
            return -1;
        i += taken;
    }
    return 0;
}

static int64_t computed(const struct session *s)
{
    struct session_stats t = session_stats(s);
    return t.prefilled + t.decoded;
}

/* Counts what the prompt took, and opens the reply. */
static int open_reply(struct completion *c, int64_t before, struct err *e)
{
    struct session *s = kept_session(c->kept);
    int64_t read = computed(s) - before, length = session_length(s);
    if (chat_open_reply(s, c->body.think, e))
        return -1;
    c->prompt_tokens = session_length(s);
    c->cached_tokens = length > read ? length - read : 0;
    if (c->body.token_ids) {
        c->prompt = xmalloc((unsigned long)c->prompt_tokens + 1, sizeof *c->prompt);
        memcpy(c->prompt, session_tokens(s), (size_t)c->prompt_tokens * sizeof *c->prompt);
    }
    return 0;
}

static int limit_tokens(struct completion *c, struct err *e)
{
    int64_t context = engine_config(c->weights->engine)->lm.max_tokens;
    int64_t left = context - session_length(kept_session(c->kept)) - 8;
    if (left < 1)
        return err_set(e, ERR_MODEL, "the conversation fills the model's context");
    int want = c->body.sampling.max_tokens ? c->body.sampling.max_tokens : DEFAULT_TOKENS;
    c->body.sampling.max_tokens = want < left ? want : (int)left;
    return store_room(c->service->store, c->kept, want < ROOM_TOKENS ? want : ROOM_TOKENS, e);
}

/* Reads what is new of the conversation; `reply` opens one. */
static int read_conversation(struct completion *c, struct err *e)
{
    int matched = 0;
    const struct conversation *v = &c->body.talk;
    c->kept = store_take(c->service->store, c->weights, v, c->chain, &matched, &c->gone);
    if (!c->kept)
        return err_set(e, ERR_STOPPED, "the client has gone");
    int64_t before = computed(kept_session(c->kept));
    if (append_from(c, matched, e) ||
        store_mark(c->service->store, c->kept, STORE_BEFORE_REPLY, c->chain[v->chat.n], e))
        return -1;
    store_serve(c->service->store, c->kept);
    return limit_tokens(c, e) || open_reply(c, before, e) ? -1 : 0;
}

int completion_prepare(struct completion *c, struct err *e)
{
    struct metrics *m = &c->service->metrics;
    c->chain = chain_of(&c->body.talk);
    flag_set(&c->resting, 1);
    c->weights = weights_acquire(c->service->weights, &c->gone);
    flag_set(&c->resting, 0);
    if (!c->weights)
        return err_set(e, ERR_STOPPED, "the client has gone");
    if (constraint_take(c->service->constraints, &c->body, engine_tokenizer(c->weights->engine),
                        &c->constraint, e) ||
        read_conversation(c, e))
        return -1;
    session_set_rng(kept_session(c->kept), c->body.seed);
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
        c->tokens[c->n++] =
            (struct completion_token){t->id, t->forced ? 0 : t->logprob_masked, c->weights->version,
                                      engine_is_stop(c->weights->engine, t->id)};
    }
}

/* With a constraint the thought is free, and ends the piece. */
static bool thinks_freely(const struct completion *c)
{
    return c->constraint.grammar && c->text.now == REPLY_THOUGHT;
}

static void on_piece(void *arg, const char *text, size_t n)
{
    struct completion *c = arg;
    bool thinking = thinks_freely(c);
    take_tokens(c);
    reply_text_feed(&c->text, text, n);
    if (c->text.stopped || (thinking && !thinks_freely(c)))
        flag_set(&c->halt, 1);
    store_serve(c->service->store, c->kept);
}

/* The ids that were sampled from token `from` on; the caller frees them. */
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
                             .alternatives = c->body.top_logprobs,
                             .cancel = &c->halt,
                             .on_text = on_piece,
                             .arg = c};
    how.sampling.max_tokens -= c->n;
    c->taken = 0;
    int rc = generate(kept_session(c->kept), &how, &c->piece, e);
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
        flag_set(&c->halt, flag_up(&c->gone) || flag_up(&c->frozen));
    }
    return 0;
}

/* Reads the conversation, and what was sampled of the reply, under other weights. */
static int read_again(struct completion *c, struct weights_set *w, struct err *e)
{
    struct service *s = c->service;
    int64_t prompt = c->prompt_tokens, cached = c->cached_tokens;
    int32_t *said = sampled_ids(c, 0);
    uint64_t rng = session_rng(kept_session(c->kept));
    store_drop(s->store, c->kept);
    c->kept = NULL;
    constraint_give(s->constraints, &c->constraint);
    weights_release(s->weights, c->weights);
    c->weights = w;
    free(c->prompt);
    c->prompt = NULL;
    int rc = constraint_take(s->constraints, &c->body, engine_tokenizer(w->engine), &c->constraint, e) ||
                     read_conversation(c, e) || session_append(kept_session(c->kept), said, c->n, e)
                 ? -1
                 : 0;
    free(said);
    if (rc)
        return -1;
    session_set_rng(kept_session(c->kept), rng);
    if (c->prompt_tokens != prompt)
        return err_set(e, ERR_MODEL, "the new weights have another tokenizer");
    c->cached_tokens = cached;
    return 0;
}

/* Waits for /resume, and goes on under the weights of then. */
static int await_resume(struct completion *c, struct err *e)
{
    struct weights_slot *slot = c->service->weights;
    flag_set(&c->resting, 1);
    struct weights_set *w = weights_acquire(slot, &c->gone);
    flag_set(&c->resting, 0);
    if (!w) {
        c->done = true;
        return 0;
    }
    flag_set(&c->frozen, 0);
    flag_set(&c->halt, flag_value(&c->gone));
    if (w != c->weights)
        return read_again(c, w, e);
    weights_release(slot, w);
    return 0;
}

int completion_generate(struct completion *c, struct err *e)
{
    struct metrics *m = &c->service->metrics;
    reply_text_init(&c->text, c->body.think, c->body.talk.chat.n_tools && c->body.tools != TOOLS_NONE,
                    c->body.stops, c->body.n_stops);
    c->text.on_text = c->on_text;
    c->text.arg = c->arg;
    while (!c->done)
        if ((flag_up(&c->frozen) && await_resume(c, e)) || (!c->done && generate_piece(c, e)))
            return -1;
    reply_text_end(&c->text);
    c->calls = reply_text_calls(&c->text, c->id + strlen("chatcmpl-"));
    atomic_fetch_add(&m->generated_tokens, c->n);
    metrics_observe(&m->whole, clock_ms_since(c->begun) / 1000);
    if (!flag_up(&c->gone) || c->aborted)
        return 0;
    atomic_fetch_add(&m->cancelled, 1);
    return err_set(e, ERR_STOPPED, "the client has gone");
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
    json_t *text = json_stringn(content->len ? content->data : "", content->len);
    if (!text) { /* invalid UTF-8 of a random model: JSON has no bytes */
        struct buf whole;
        buf_init(&whole, (size_t)64 << 20);
        buf_put_json(&whole, content->data, content->len);
        text = json_loadb(whole.data, whole.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        buf_free(&whole);
    }
    if (c->calls && !content->len) {
        json_decref(text);
        text = json_null();
    }
    json_t *m = json_pack("{s:s, s:o, s:n}", "role", "assistant", "content", text, "refusal");
    if (thought->len) {
        json_object_set_new(m, "reasoning", json_stringn_nocheck(thought->data, thought->len));
        json_object_set(m, "reasoning_content", json_object_get(m, "reasoning"));
    }
    if (c->calls)
        json_object_set(m, "tool_calls", c->calls);
    return m;
}

/* ---- the end ---------------------------------------------------------------------------------------- */

/* Leaves the session as the messages will be next time; -1: it is of no use. */
static int close_reply(struct completion *c, struct chain *end)
{
    struct session *s = kept_session(c->kept);
    struct chain before = c->chain[c->body.talk.chat.n];
    struct err e = ERR_INIT;
    bool as_said = !c->body.think && !c->text.stopped;
    if (!c->done || c->finish == FINISH_CANCELLED)
        return store_rewind(c->kept, STORE_BEFORE_REPLY, end, &e);
    json_t *message = completion_message(c);
    *end = chain_reply(before, message);
    const char *text = json_string_value(json_object_get(message, "content"));
    int rc;
    if (as_said)
        rc = chat_close_reply(s, &e);
    else if (c->calls || store_rewind(c->kept, STORE_BEFORE_REPLY, &before, &e))
        rc = -1;
    else
        rc = chat_reply(s, text ? text : "", &e);
    json_decref(message);
    return rc;
}

static void give_back(struct completion *c)
{
    struct chain end;
    if (!c->kept)
        return;
    session_set_cancel(kept_session(c->kept), NULL);
    struct err e = ERR_INIT;
    int rc = c->prompt_tokens ? close_reply(c, &end) : store_rewind(c->kept, STORE_BEFORE_REPLY, &end, &e);
    if (rc == 0)
        store_keep(c->service->store, c->kept, end);
    else
        store_drop(c->service->store, c->kept);
    c->kept = NULL;
}

void completion_free(struct completion *c)
{
    if (!c)
        return;
    give_back(c);
    constraint_give(c->service->constraints, &c->constraint);
    weights_release(c->service->weights, c->weights);
    reply_text_free(&c->text);
    generated_free(&c->piece);
    json_decref(c->calls);
    free(c->tokens);
    free(c->alternatives);
    free(c->prompt);
    free(c->chain);
    body_free(&c->body);
    free(c);
}
