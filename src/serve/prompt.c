/* prompt.c - renders a conversation and cuts the prompt into parts; see prompt.h. */
#include "serve/prompt.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MAX_TEXT = 64 << 20 };

/* ---- cuts --------------------------------------------------------------------------------------------- */

static void add_cut(struct prompt *p, int segment)
{
    if (p->n >= 0 && p->cuts[p->n] == segment)
        return;
    p->cuts = xrealloc(p->cuts, (unsigned long)(++p->n) + 1, sizeof *p->cuts);
    p->cuts[p->n] = segment;
}

static bool begins_with(const struct layout *l, int segment, const char *text, size_t n)
{
    const struct layout_segment *s = &l->segments[segment];
    return n && s->special && s->len >= n && !memcmp(l->texts.data + s->at, text, n);
}

/* Splits the layout so that each turn begins a segment. */
static void split_turns(struct layout *l, const char *token, size_t n)
{
    for (int i = 0; i < l->n && n; i++) {
        const struct layout_segment *s = &l->segments[i];
        const char *text = l->texts.data + s->at;
        size_t from = begins_with(l, i, token, n) ? n : 0;
        const char *next = s->special && !s->image ? memmem(text + from, s->len - from, token, n) : NULL;
        if (next)
            layout_split(l, i, (size_t)(next - text));
    }
}

static void find_cuts(struct prompt *p, const struct chat_template *c)
{
    struct err e = ERR_INIT;
    const struct chat_turns *t = chat_template_turns(c, false, &e);
    const char *user = t ? t->user[0] : "";
    size_t n = t ? (size_t)(strchr(user, '>') - user) + 1 : 0; /* length of the token that begins a turn */
    struct layout *l = &p->layout;
    int turn = 0; /* cut before the current turn */
    split_turns(l, user, n);
    p->n = p->pictures = -1;
    add_cut(p, 0);
    for (int i = 0; i < l->n; i++) {
        if (l->segments[i].image) {
            p->pictures = p->pictures < 0 ? turn : p->pictures;
            add_cut(p, i + 1);
        } else if (begins_with(l, i, user, n)) {
            add_cut(p, i);
            turn = p->n;
            bool is_user = begins_with(l, i, user, strlen(user));
            p->head = !p->head && p->pictures < 0 && is_user ? p->n : p->head;
        }
    }
}

/* ---- hashes ------------------------------------------------------------------------------------------- */

static char kind_of(const struct layout_segment *s)
{
    return s->image ? 'i' : s->special ? 's' : 't';
}

static void hash_bytes(XXH3_state_t *x, char kind, const char *text, size_t len)
{
    uint64_t head[2] = {(uint64_t)kind, len};
    XXH3_128bits_update(x, head, sizeof head);
    XXH3_128bits_update(x, text, len);
}

/* Hashes segments [from, to); adjacent ones of the same kind count as one. */
static void hash_part(XXH3_state_t *x, const struct prompt *p, const struct conversation *v, int from, int to)
{
    autobuf run = buf_of(MAX_TEXT);
    for (int i = from; i < to; i++) {
        const struct layout_segment *s = &p->layout.segments[i];
        if (s->image) {
            const char *file = v->files[s->image - v->images];
            hash_bytes(x, 'i', file, strlen(file));
            continue;
        }
        buf_put(&run, p->layout.texts.data + s->at, s->len);
        if (i + 1 < to && kind_of(s + 1) == kind_of(s))
            continue;
        if (run.len)
            hash_bytes(x, kind_of(s), run.data, run.len);
        buf_clear(&run);
    }
}

static void hash_cuts(struct prompt *p, const struct conversation *v)
{
    XXH3_state_t *x = XXH3_createState();
    if (!x)
        die(ERR_ENV, "out of memory");
    XXH3_128bits_reset(x);
    p->hashes = xcalloc((unsigned long)p->n + 1, sizeof *p->hashes);
    for (int i = 0; i <= p->n; i++) {
        if (i)
            hash_part(x, p, v, p->cuts[i - 1], p->cuts[i]);
        XXH128_hash_t h = XXH3_128bits_digest(x);
        p->hashes[i] = (struct prefix_hash){h.low64, h.high64};
    }
    XXH3_freeState(x);
}

/* ---- building ----------------------------------------------------------------------------------------- */

static int build(struct prompt *p, const struct chat_template *c, const struct conversation *v,
                 const struct chat_conversation *chat, struct err *e)
{
    *p = (struct prompt){.layout = layout_new()};
    if (chat_template_render(c, chat, &p->layout, e))
        return -1;
    p->thinks = layout_opens_thought(&p->layout);
    find_cuts(p, c);
    hash_cuts(p, v);
    return 0;
}

int prompt_build(struct prompt *p, const struct chat_template *c, const struct conversation *v, struct err *e)
{
    struct chat_conversation chat = v->chat;
    chat.open_reply = chat.normalise = true;
    return build(p, c, v, &chat, e);
}

int prompt_build_reply(struct prompt *p, const struct chat_template *c, const struct conversation *v,
                       const struct prompt *before, const json_t *reply, int *end, struct err *e)
{
    struct conversation said;
    int n = v->chat.n, rc;
    autofree struct chat_message *messages = xcalloc((unsigned long)n + 2, sizeof *messages);
    const struct chat_part part = {.text = "A"};
    memcpy(messages, v->chat.messages, (size_t)n * sizeof *messages);
    *p = (struct prompt){0};
    if (!(rc = conversation_take(&said, json_pack("[o]", json_deep_copy(reply)), e))) {
        messages[n] = said.messages[0];
        messages[n + 1] = (struct chat_message){
            .role = messages[n].n_calls ? CHAT_TOOL : CHAT_USER, .parts = &part, .n = 1};
        struct chat_conversation chat = v->chat;
        chat.messages = messages;
        chat.n = n + 2;
        chat.open_reply = false;
        chat.normalise = true;
        rc = build(p, c, v, &chat, e);
    }
    conversation_free(&said);
    *end = rc ? 0 : p->n;
    if (rc == 0 && (p->n <= before->n || !prefix_hash_equal(p->hashes[before->n], before->hashes[before->n])))
        rc = err_set(e, ERR_MODEL, "the chat template renders earlier messages differently with a reply");
    return rc;
}

void prompt_free(struct prompt *p)
{
    layout_free(&p->layout);
    free(p->cuts);
    free(p->hashes);
    *p = (struct prompt){0};
}

char *prompt_text(const struct prompt *p, int from, int to)
{
    autobuf out = buf_of(MAX_TEXT);
    for (int i = from; i < to; i++)
        buf_put(&out, p->layout.texts.data + p->layout.segments[i].at, p->layout.segments[i].len);
    char *text = buf_take(&out);
    return text ? text : xstrdup("");
}
