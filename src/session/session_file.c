/* session_file.c - saves and loads a session.
 *
 * Format, little-endian: a header of fixed size, the tokens, every tensor of the state in the order of
 * state_visit() (rows in use only), and the XXH3 hash of all bytes before it. Pending text tokens stay
 * pending, so that the loaded session continues with bit-identical results. The size follows from the
 * model and the number of tokens; a file is accepted only with that size, the hash of this model and a
 * correct hash of its own. */
#include "session/session_impl.h"

#include "base/buf.h"
#include "base/file.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const char magic[] = "HOLOSES2";

struct header {
    char magic[8];
    uint64_t model; /* engine_hash() */
    uint64_t random;
    int64_t length, pending; /* all tokens; those at the end that are not computed */
    int64_t position;        /* rotary position of the next token to compute */
    uint16_t act;            /* enum dtype of the activations */
    uint16_t kv;             /* type of the KV cache; 0: as act */
    uint32_t ssm;            /* type of the SSM states */
};

static int count_tensor(void *arg, struct tensor t)
{
    *(size_t *)arg += tensor_bytes(t);
    return 0;
}

/* Returns the bytes of a file for `length` computed and `pending` further tokens. */
static size_t file_size(const struct engine *g, const struct lm_state *any, int64_t length, int64_t pending)
{
    const struct lm_config *c = &g->config.lm;
    struct lm_state fixed = *any;
    fixed.length = 0;
    size_t bytes = sizeof(struct header) + sizeof(uint64_t);
    state_visit(&fixed, c, count_tensor, &bytes);
    return bytes + (size_t)length * (sizeof(int32_t) + state_position(c, g->types.kv)) +
           (size_t)pending * sizeof(int32_t);
}

/* ---- writing --------------------------------------------------------------------------------- */

static uint16_t kv_of(const struct engine *g)
{
    return g->types.kv == g->types.act ? 0 : (uint16_t)g->types.kv;
}

struct writer {
    struct backend *backend;
    struct buf out;
    void *row; /* one tensor on the host */
};

static int put_tensor(void *arg, struct tensor t)
{
    struct writer *w = arg;
    size_t bytes = tensor_bytes(t);
    w->row = xrealloc(w->row, bytes + 1, 1);
    w->backend->ops->download(w->backend, (struct tensor){w->row, t.dtype, t.rows, t.cols, t.cols}, t);
    return buf_put(&w->out, w->row, bytes);
}

/* Returns the file contents of a pinned session. */
static struct buf bytes_of(const struct session *s)
{
    struct header h = {.model = s->engine->hash,
                       .random = s->random,
                       .length = s->n,
                       .pending = session_pending(s),
                       .position = s->state.position,
                       .act = (uint16_t)s->engine->types.act,
                       .kv = kv_of(s->engine),
                       .ssm = (uint32_t)s->engine->types.ssm};
    memcpy(h.magic, magic, sizeof h.magic);
    struct writer w = {.backend = s->engine->backend};
    buf_init(&w.out, file_size(s->engine, &s->state, s->state.length, h.pending));
    buf_put(&w.out, &h, sizeof h);
    buf_put(&w.out, s->tokens, (size_t)s->n * sizeof *s->tokens);
    state_visit(&s->state, &s->engine->config.lm, put_tensor, &w);
    uint64_t hash = XXH3_64bits(w.out.data, w.out.len);
    buf_put(&w.out, &hash, sizeof hash);
    if (w.out.full || w.out.len != w.out.max)
        bug("a session of %lld tokens is not as long as computed", (long long)s->n);
    free(w.row);
    return w.out;
}

int session_save(const struct session *from, const char *path, struct err *e)
{
    struct session *s = (struct session *)(uintptr_t)from; /* const as in session_logits */
    if (engine_try_enter(s->engine, &s->client, e))
        return -1;
    struct buf out;
    int rc = ((s->n_images || s->interrupted) && session_prefill(s, e)) || session_pin(s, 0, e) ? -1 : 0;
    if (rc == 0) {
        language_flush(&s->engine->language, &s->state);
        out = bytes_of(s);
        session_unpin(s);
    }
    engine_leave(s->engine);
    if (rc)
        return -1;
    rc = file_write(path, out.data, out.len, e);
    buf_free(&out);
    return rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
    struct backend *backend;
    const uint8_t *at;
};

static int get_tensor(void *arg, struct tensor t)
{
    struct reader *r = arg;
    struct tensor host = {(void *)(uintptr_t)r->at, t.dtype, t.rows, t.cols, t.cols};
    r->backend->ops->upload(r->backend, t, host);
    r->at += tensor_bytes(t);
    return 0;
}

/* Checks everything but the tokens, without changing the session. */
static int check_file(const struct session *s, const struct file_map *m, struct header *h, const char *path,
                      struct err *e)
{
    const struct engine *g = s->engine;
    uint64_t hash;
    if (m->len < sizeof *h + sizeof hash || memcmp(m->data, magic, sizeof h->magic) != 0)
        return err_set(e, ERR_MODEL, "'%s' is not a saved session", path);
    memcpy(h, m->data, sizeof *h);
    if (h->model != g->hash || h->act != (uint16_t)g->types.act)
        return err_set(e, ERR_MODEL, "'%s' was saved with another model or activation type", path);
    if (h->kv != kv_of(g))
        return err_set(e, ERR_MODEL, "'%s' was saved with another KV cache type: %s", path,
                       h->kv == DT_F8E4M3 ? "give --kv fp8" : "leave out --kv fp8");
    if (h->ssm != (uint32_t)g->types.ssm)
        return err_set(e, ERR_MODEL, "'%s' was saved with another --state", path);
    if (h->length < 0 || h->length > g->config.lm.max_tokens || h->pending < 0 || h->pending > h->length ||
        m->len != file_size(g, &s->state, h->length - h->pending, h->pending))
        return err_set(e, ERR_MODEL, "'%s' is damaged: %zu bytes are not a session of %lld tokens", path,
                       m->len, (long long)h->length);
    if (h->position < 0 || h->position > h->length)
        return err_set(e, ERR_MODEL, "'%s' is damaged: position %lld after %lld tokens", path,
                       (long long)h->position, (long long)h->length);
    memcpy(&hash, m->data + m->len - sizeof hash, sizeof hash);
    if (hash != XXH3_64bits(m->data, m->len - sizeof hash))
        return err_set(e, ERR_MODEL, "'%s' is damaged: its hash does not match", path);
    return 0;
}

static int read_tokens(struct session *s, const uint8_t *data, int64_t n, const char *path, struct err *e)
{
    s->tokens = xmalloc((unsigned long)n + 1, sizeof *s->tokens);
    s->epochs = xcalloc((unsigned long)n + 1, sizeof *s->epochs);
    s->cap = n + 1;
    s->n = n;
    memcpy(s->tokens, data, (size_t)n * sizeof *s->tokens);
    for (int64_t i = 0; i < n; i++)
        if (s->tokens[i] < 0 || s->tokens[i] >= s->engine->weights.vocab)
            return err_set(e, ERR_MODEL, "'%s' is damaged: token %d does not exist", path, s->tokens[i]);
    return 0;
}

struct session *session_load(struct engine *g, const char *path, struct err *e)
{
    struct file_map m;
    if (file_map(&m, path, e))
        return NULL;
    struct session *s = session_new(g, 0);
    struct header h = {0};
    int rc = check_file(s, &m, &h, path, e);
    if (rc == 0)
        rc = read_tokens(s, m.data + sizeof h, h.length, path, e);
    engine_enter(g, NULL);
    if (rc == 0)
        rc = session_pin(s, 0, e);
    if (rc == 0) {
        s->random = h.random;
        s->state.length = h.length - h.pending;
        s->state.position = h.position;
        struct reader r = {g->backend, m.data + sizeof h + (size_t)h.length * sizeof(int32_t)};
        state_visit(&s->state, &g->config.lm, get_tensor, &r);
        session_unpin(s);
    }
    engine_leave(g);
    file_unmap(&m);
    if (rc) {
        session_free(s);
        return NULL;
    }
    return s;
}
