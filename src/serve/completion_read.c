/* completion_read.c - prefills the conversation of a request into a session (completion.h).
 *
 * The prompt is appended part by part (prompt.h), with checkpoints where other requests may continue. An
 * agent's session in this process has the same tokens. */
#include "serve/completion_impl.h"

#include "model/config.h"
#include "serve/picture.h"
#include "session/chat.h"

#include <stdlib.h>
#include <string.h>

/* PIXEL_BYTES: memory to decode one pixel (RGB, a rotated copy, the coefficients of a progressive JPEG) */
enum { DEFAULT_TOKENS = 4096, ROOM_TOKENS = 1024, PIXEL_BYTES = 12, LONGEST_TOKEN = 256 };

static struct image *image_of(const struct completion *c, const struct image *im)
{
    return &c->body.talk.images[im - c->body.talk.images];
}

/* Checks the sizes of the images of segments [from, to) and waits for memory to decode them. */
static int reserve_pictures(struct completion *c, int from, int to, struct err *e)
{
    const struct conversation *v = &c->body.talk;
    int64_t pixels = 0;
    for (int i = from; i < to; i++) {
        const struct layout_segment *s = &c->layout.layout.segments[i];
        pixels += s->image ? picture_pixels(v->files[image_of(c, s->image) - v->images]) : 0;
    }
    c->pixels += pixels;
    if (c->pixels > MESSAGE_MAX_PIXELS)
        return err_set(e, ERR_USAGE, "the images of a message have more than %d million pixels",
                       MESSAGE_MAX_PIXELS >> 20);
    if (!pixels || !c->service->pictures)
        return 0;
    if (!budget_wait(c->service->pictures, (size_t)pixels * PIXEL_BYTES, &c->gone))
        return err_set(e, ERR_STOPPED, "the client has disconnected");
    c->reserved = (size_t)pixels * PIXEL_BYTES;
    return 0;
}

/* Decodes the images of segments [from, to). Adds an upper bound of the tokens of these segments to
 * *tokens. */
static int decode_pictures(struct completion *c, int from, int to, int64_t *tokens, struct err *e)
{
    const struct conversation *v = &c->body.talk;
    for (int i = from; i < to; i++) {
        const struct layout_segment *s = &c->layout.layout.segments[i];
        struct image *im = s->image ? image_of(c, s->image) : NULL;
        *tokens += (int64_t)s->len;
        if (!im)
            continue;
        if (!im->rgb && picture_decode(v->files[im - v->images], &c->effort, im, e))
            return -1;
        *tokens += engine_image_tokens(c->weights->engine, im->w, im->h, NULL, NULL) + 32;
    }
    return 0;
}

static void free_pictures(struct completion *c, int from, int to)
{
    if (c->reserved)
        budget_release(c->service->pictures, c->reserved);
    c->reserved = 0;
    for (int i = from; i < to; i++)
        if (c->layout.layout.segments[i].image) {
            image_free(image_of(c, c->layout.layout.segments[i].image));
            atomic_fetch_add(&c->service->metrics.pictures, 1);
        }
}

/* Returns the number of images before a segment. */
static int pictures_before(const struct completion *c, int segment)
{
    int n = 0;
    for (int i = 0; i < segment; i++)
        n += c->layout.layout.segments[i].image != NULL;
    return n;
}

/* Appends the part of the prompt up to cut i + 1, and sets a checkpoint after its image. */
static int append_part(struct completion *c, int i, struct err *e)
{
    const struct prompt *p = &c->layout;
    struct store *store = c->service->store;
    struct session *s = cached_session(c->kept);
    int from = p->cuts[i], to = p->cuts[i + 1];
    int64_t tokens = 64;
    if (i == p->pictures && store_mark(store, c->kept, STORE_BEFORE_PICTURE, p->hashes[i], e))
        return -1;
    if (!p->layout.segments[to - 1].image)
        c->pixels = 0; /* the limit is per turn */
    int rc = reserve_pictures(c, from, to, e) || decode_pictures(c, from, to, &tokens, e) ||
                     store_reserve(store, c->kept, tokens, e)
                 ? -1
                 : chat_append_layout(s, &p->layout, from, to, e);
    free_pictures(c, from, to);
    if (rc || !p->layout.segments[to - 1].image)
        return rc;
    enum store_point at = STORE_BEHIND_PICTURE + (pictures_before(c, to - 1)) % STORE_PICTURES;
    return store_mark(store, c->kept, at, p->hashes[i + 1], e);
}

/* Appends the text before the first user turn. It is prefilled separately, as before an agent's first
 * screenshot: the rounding of later tokens depends on where prefill begins, and must not depend on cached
 * conversations. */
static int append_head(struct completion *c, struct err *e)
{
    const struct prompt *p = &c->layout;
    struct session *s = cached_session(c->kept);
    return store_reserve(c->service->store, c->kept, ROOM_TOKENS, e) ||
                   chat_append_layout(s, &p->layout, 0, p->cuts[p->head], e) || session_reuse_prefix(s, e) ||
                   session_prefill(s, e)
               ? -1
               : 0;
}

static int append_from(struct completion *c, int i, struct err *e)
{
    if (i == 0 && c->layout.head) {
        if (append_head(c, e))
            return -1;
        i = c->layout.head;
    }
    for (; i < c->layout.n; i++)
        if (append_part(c, i, e))
            return -1;
    return 0;
}

static int64_t computed(const struct session *s)
{
    struct session_stats t = session_stats(s);
    return t.prefilled + t.decoded;
}

/* Counts the tokens of the prompt and opens the reply. */
static int open_reply(struct completion *c, int64_t before, struct err *e)
{
    struct session *s = cached_session(c->kept);
    int64_t read = computed(s) - before, length = session_length(s);
    if (chat_append_layout(s, &c->layout.layout, c->layout.cuts[c->layout.n], c->layout.layout.n, e))
        return -1;
    c->prompt_tokens = session_length(s);
    c->cached_tokens = length > read ? length - read : 0;
    if (c->body.token_ids) {
        c->prompt = xmalloc((unsigned long)c->prompt_tokens + 1, sizeof *c->prompt);
        memcpy(c->prompt, session_tokens(s), (size_t)c->prompt_tokens * sizeof *c->prompt);
    }
    return 0;
}

/* Limits max_tokens to the rest of the context; call it after the reply was opened, because the template
 * determines the length of the opening. */
static int limit_tokens(struct completion *c, struct err *e)
{
    int64_t context = engine_config(c->weights->engine)->lm.max_tokens;
    int64_t left = context - session_length(cached_session(c->kept)) - 8;
    if (left < 1)
        return err_set(e, ERR_MODEL, "the conversation does not fit the model's context");
    int want = c->body.sampling.max_tokens ? c->body.sampling.max_tokens : DEFAULT_TOKENS;
    c->body.sampling.max_tokens = want < left ? want : (int)left;
    return store_reserve(c->service->store, c->kept, want < ROOM_TOKENS ? want : ROOM_TOKENS, e);
}

int completion_read_conversation(struct completion *c, struct err *e)
{
    int matched = 0;
    const struct prompt *p = &c->layout;
    c->kept = store_acquire(c->service->store, c->weights, p->hashes, p->n, &matched, &c->gone);
    if (!c->kept)
        return err_set(e, ERR_STOPPED, "the client has disconnected");
    int64_t before = computed(cached_session(c->kept));
    c->pixels = 0;
    if (append_from(c, matched, e) ||
        store_mark(c->service->store, c->kept, STORE_BEFORE_REPLY, p->hashes[p->n], e))
        return -1;
    store_serve(c->service->store, c->kept);
    return open_reply(c, before, e) || limit_tokens(c, e) ? -1 : 0;
}

/* ---- tools --------------------------------------------------------------------------------------------- */

/* Drops the tools if the template does not support them, and notes this for the client. Tools are optional
 * for a model. */
static void drop_tools(struct completion *c, const struct chat_template *t)
{
    if (!c->body.talk.chat.n_tools || chat_template_calls(t))
        return;
    c->body.talk.chat.n_tools = 0;
    notes_ignore(&c->body.notes, "tools");
}

size_t completion_text_bytes(const struct completion *c)
{
    size_t n = 0;
    for (int i = 0; i < c->body.talk.chat.n; i++) {
        const struct chat_message *m = &c->body.talk.chat.messages[i];
        for (int k = 0; k < m->n; k++)
            n += m->parts[k].text ? strlen(m->parts[k].text) : 0;
    }
    return n;
}

int completion_render(struct completion *c, struct err *e)
{
    const struct chat_template *t = engine_chat(c->weights->engine);
    size_t text = completion_text_bytes(c);
    if ((int64_t)(text / LONGEST_TOKEN) > engine_config(c->weights->engine)->lm.max_tokens)
        return err_set(e, ERR_MODEL,
                       "the conversation does not fit the model's context: it has %zu bytes of text", text);
    if (c->body.talk.n_images && config_check_vision(engine_config(c->weights->engine), c->service->model, e))
        return -1;
    prompt_free(&c->layout);
    drop_tools(c, t);
    return prompt_build(&c->layout, t, &c->body.talk, e);
}

/* ---- counting ------------------------------------------------------------------------------------------ */

struct counter {
    struct completion *c;
    int64_t n;
};

static int count_tokens(void *arg, const int32_t *ids, int64_t n, struct err *e)
{
    ((struct counter *)arg)->n += n;
    return 0;
}

static int count_image(void *arg, const struct image *at, struct err *e)
{
    enum { MARKS = 2 }; /* tokens around an image */
    struct counter *k = arg;
    const struct image *im = image_of(k->c, at);
    int w, h;
    if (picture_size(k->c->body.talk.files[im - k->c->body.talk.images], &w, &h, e))
        return -1;
    k->n += engine_image_tokens(k->c->weights->engine, w, h, NULL, NULL) + MARKS;
    return 0;
}

int completion_count_tokens(struct completion *c, struct err *e)
{
    struct counter k = {.c = c};
    const struct layout_sink sink = {count_tokens, count_image, &k};
    c->weights = weights_acquire(c->service->weights, &c->gone);
    if (!c->weights)
        return err_set(e, ERR_STOPPED, "the client has disconnected");
    const struct engine *g = c->weights->engine;
    if (completion_render(c, e) || layout_encode(&c->layout.layout, engine_tokenizer(g), &sink, e))
        return -1;
    c->prompt_tokens = k.n;
    return 0;
}
