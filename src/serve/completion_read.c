/* completion_read.c - the conversation of a request becomes the state of a session (completion.h).
 *
 * The session does what it does for an agent in this process, call by call: system text, prefix, turns, a
 * checkpoint before the first picture and one before the reply, the reply, its end.  So the reply has the
 * tokens that it has there.
 */
#include "serve/completion_impl.h"

#include "model/config.h"
#include "serve/picture.h"
#include "session/chat.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOKENS = 4096, ROOM_TOKENS = 1024 };

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

/* The system's block, with the tools; returns how many messages it took.  It is computed apart from the first
 * turn, as it is before an agent's first screenshot: the rounding of what follows depends on where prefill
 * begins, and must not depend on what other conversations have left here. */
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
    return rc || session_reuse_prefix(s, e) || session_prefill(s, e) ? -1 : n;
}

static struct image *image_of(const struct completion *c, const struct chat_part *p)
{
    return &c->body.talk.images[p->image - c->body.talk.images];
}

/* Decodes the pictures of a message, whose small files may unpack to large ones; tokens: at most so many the
 * message has. */
static int decode_pictures(struct completion *c, const struct chat_message *m, int64_t *tokens, struct err *e)
{
    const struct conversation *v = &c->body.talk;
    struct engine *g = c->weights->engine;
    int64_t pixels = 0;
    for (int i = 0; i < m->n; i++) {
        struct image *im = m->parts[i].image ? image_of(c, &m->parts[i]) : NULL;
        *tokens += m->parts[i].text ? (int64_t)strlen(m->parts[i].text) : 0;
        if (!im)
            continue;
        if (!im->rgb && picture_decode(v->files[im - v->images], im, e))
            return -1;
        pixels += (int64_t)im->w * im->h;
        *tokens += engine_image_tokens(g, im->w, im->h, NULL, NULL) + 32;
        if (pixels > MESSAGE_MAX_PIXELS)
            return err_set(e, ERR_USAGE, "the pictures of a message have more than %d million pixels",
                           MESSAGE_MAX_PIXELS >> 20);
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
    if (i == 0 &&
        (store_room(c->service->store, c->kept, ROOM_TOKENS, e) || (i = begin_session(c, s, e)) < 0))
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

/* After the reply's opening, whose length is the template's. */
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

int completion_read_conversation(struct completion *c, struct err *e)
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
    return open_reply(c, before, e) || limit_tokens(c, e) ? -1 : 0;
}
