/* chain.c - see chain.h. */
#include "serve/chain.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static XXH3_state_t *begin(struct chain before)
{
    XXH3_state_t *x = XXH3_createState();
    if (!x)
        die(ERR_ENV, "out of memory");
    XXH3_128bits_reset(x);
    XXH3_128bits_update(x, &before, sizeof before);
    return x;
}

static struct chain end(XXH3_state_t *x)
{
    XXH128_hash_t h = XXH3_128bits_digest(x);
    XXH3_freeState(x);
    return (struct chain){h.low64, h.high64};
}

/* A kind and a length before each text, so that no two lists of texts are the same bytes. */
static void add(XXH3_state_t *x, char kind, const char *text)
{
    uint64_t head[2] = {(uint64_t)kind, strlen(text)};
    XXH3_128bits_update(x, head, sizeof head);
    XXH3_128bits_update(x, text, head[1]);
}

static struct chain chain_message(struct chain before, const struct conversation *v,
                                  const struct chat_message *m)
{
    XXH3_state_t *x = begin(before);
    const char role[2] = {(char)('0' + (int)m->role), 0};
    add(x, 'r', role);
    for (int i = 0; i < m->n; i++) {
        if (m->parts[i].image)
            add(x, 'i', v->files[m->parts[i].image - v->images]);
        else if (m->parts[i].text && *m->parts[i].text)
            add(x, 't', m->parts[i].text);
    }
    for (int i = 0; i < m->n_calls; i++)
        add(x, 'c', m->calls[i]);
    return end(x);
}

struct chain *chain_of(const struct conversation *v)
{
    struct chain *c = xcalloc((unsigned long)v->chat.n + 1, sizeof *c);
    XXH3_state_t *x = begin((struct chain){0});
    for (int i = 0; i < v->chat.n_tools; i++)
        add(x, 'f', v->chat.tools[i]);
    c[0] = end(x);
    for (int i = 0; i < v->chat.n; i++)
        c[i + 1] = chain_message(c[i], v, &v->chat.messages[i]);
    return c;
}

struct chain chain_reply(struct chain before, const json_t *message)
{
    struct conversation v;
    struct err e = ERR_INIT;
    json_t *copy = json_deep_copy(message);
    struct chain after = {0};
    if (conversation_take(&v, json_pack("[o]", copy), &e) == 0)
        after = chain_message(before, &v, &v.chat.messages[0]);
    conversation_free(&v);
    return after;
}
