/* t_session.c - tests that rewinding, copying and saving sessions give the bits of an undisturbed run. */
#include "tiny_check.h"

#include "base/file.h"
#include "session/session_impl.h"

#include <math.h>

/* Appends the bytes a, a + 1, ... a + n - 1 as tokens. */
static void append(struct session *s, int a, int n)
{
    int32_t ids[256];
    struct err e = ERR_INIT;
    for (int i = 0; i < n; i++)
        ids[i] = 16 + (a + i) % 256;
    if (session_append(s, ids, n, &e))
        fail_msg("%s", e.text);
}

static void same(struct session *a, struct session *b)
{
    assert_int_equal(session_length(a), session_length(b));
    assert_memory_equal(session_tokens(a), session_tokens(b), (size_t)session_length(a) * sizeof(int32_t));
    assert_memory_equal(session_logits(a), session_logits(b), (size_t)engine_vocab(engine) * sizeof(float));
}

static void look(struct session *s, uint64_t seed)
{
    struct image im = tiny_image(90, 60, seed);
    assert_int_equal(session_append_image(s, &im, NULL), 0);
    image_free(&im);
}

/* ---- cancelling ------------------------------------------------------------------------------ */

static volatile int cancel;
static int left; /* layers or blocks until the cancel */

static void soon(void *arg, int layer, struct tensor t)
{
    cancel = left-- <= 0;
}

static void t_cancel(void **state)
{
    struct err e = ERR_INIT;
    struct session *s = session_new(engine, 7), *straight = session_new(engine, 7);
    struct language *m = &engine->language;
    append(s, 1, 24); /* whole chunks of the scan, so that both divide alike */
    append(straight, 1, 24);
    struct checkpoint *before = session_checkpoint(s);
    append(s, 30, 40);
    append(straight, 30, 40);
    assert_non_null(session_logits(straight)); /* computed before the cancel */
    m->cancel = &cancel;
    m->watch = soon;
    for (left = 0; left < engine->config.lm.layers - 1;) {
        int asked = left;
        cancel = 0;
        assert_int_equal(session_prefill(s, &e), -1);
        assert_int_equal(e.kind, ERR_STOPPED);
        cancel = 0;
        m->cancel = NULL;
        assert_int_equal(session_prefill(s, &e), -1); /* its layers hold different numbers of tokens */
        assert_int_equal(session_rewind(s, before, &e), 0);
        m->cancel = &cancel;
        append(s, 30, 40);
        left = asked + 1;
    }
    m->cancel = NULL;
    m->watch = NULL;
    same(s, straight);
    checkpoint_free(before);
    session_free(straight);
    session_free(s);
}

static void t_cancel_look(void **state)
{
    struct err e = ERR_INIT;
    struct session *s = session_new(engine, 7), *straight = session_new(engine, 7);
    struct image im = tiny_image(90, 60, 5);
    append(s, 1, 20);
    append(straight, 1, 20);
    engine->vision.cancel = &cancel;
    engine->vision.watch = soon;
    cancel = left = 0;
    assert_int_equal(session_append_image(s, &im, &e), -1);
    assert_int_equal(e.kind, ERR_STOPPED);
    assert_int_equal(session_length(s), 20);
    engine->vision.cancel = NULL;
    engine->vision.watch = NULL;
    look(s, 5); /* the half-encoded image was not cached */
    look(straight, 5);
    same(s, straight);
    image_free(&im);
    session_free(straight);
    session_free(s);
}

/* ---- logits after every token ------------------------------------------------------------------------- */

enum { SCORED = 520 }; /* more than one chunk */

struct scores {
    struct session *alone; /* decodes the same tokens one by one */
    const int32_t *ids;
    int64_t n;
    double worst, sum;
};

/* Compares row i with the logits after decoding token i. In bf16 decoding rounds differently from a
 * prefill. */
static void check_score(void *arg, int64_t i, const float *logits)
{
    struct scores *c = arg;
    double most = 0, off = 0;
    assert_int_equal(i, c->n++);
    assert_int_equal(session_append(c->alone, c->ids + i, 1, NULL), 0);
    const float *want = session_logits(c->alone);
    for (int k = 0; k < engine_vocab(engine); k++) {
        most = fmax(most, fabs((double)want[k]));
        off = check_worse(off, fabs((double)want[k] - (double)logits[k]));
    }
    c->worst = check_worse(c->worst, off / most);
    c->sum += off / most;
}

static void t_score(void **state)
{
    struct session *s = session_new(engine, 1), *whole = session_new(engine, 1);
    struct scores c = {.alone = session_new(engine, 1)};
    int32_t ids[SCORED];
    for (int i = 0; i < SCORED; i++)
        ids[i] = 16 + (i * i + 3 * i) % 256;
    c.ids = ids;
    append(s, 40, 30); /* the text may follow other tokens */
    append(whole, 40, 30);
    append(c.alone, 40, 30);
    assert_int_equal(session_prefill(whole, NULL), 0);
    assert_int_equal(session_score(s, ids, SCORED, check_score, &c, NULL), 0);
    assert_int_equal(session_append(whole, ids, SCORED, NULL), 0);
    assert_int_equal(c.n, SCORED);
    same(s, whole); /* the state is that of a prefill */
    check_note("off by %.1e of the largest logit, %.1e on average", c.worst, c.sum / SCORED);
    assert_true(c.worst < 0.7 && c.sum / SCORED < 0.04); /* rows of different tokens differ by more than 1 */
    session_free(c.alone);
    session_free(whole);
    session_free(s);
}

/* ---- rewinding ------------------------------------------------------------------------------- */

static void t_rewind(void **state)
{
    struct err e = ERR_INIT;
    struct session *s = session_new(engine, 5), *straight = session_new(engine, 5);
    append(s, 0, 30);
    append(straight, 0, 30);
    struct checkpoint *c = session_checkpoint(s), *c2;
    session_logits(straight); /* prefills the same chunk, so that the bits are equal */
    assert_int_equal(checkpoint_length(c), 30);
    double rng = session_uniform(s);
    for (int round = 0; round < 4; round++) {
        append(s, 100 + round, 17 + 60 * round);
        look(s, (uint64_t)round);
        if (round % 2)
            session_logits(s); /* otherwise pending tokens are dropped */
        c2 = session_checkpoint(s);
        append(s, 3, 5);
        assert_int_equal(session_rewind(s, c2, &e), 0);
        assert_int_equal(session_rewind(s, c, &e), 0);
        assert_int_equal(session_length(s), 30);
        assert_true(session_uniform(s) == rng);
        assert_int_equal(session_rewind(s, c2, &e), -1);
        assert_non_null(strstr(e.text, "rewound to before"));
        checkpoint_free(c2);
    }
    append(s, 40, 20);
    append(straight, 40, 20);
    same(s, straight);
    look(s, 9);
    look(straight, 9);
    append(s, 7, 1);
    append(straight, 7, 1);
    same(s, straight);

    /* Past the checkpoint's length again, but with other tokens. */
    c2 = session_checkpoint(s);
    assert_int_equal(session_rewind(s, c, &e), 0);
    append(s, 200, 200);
    assert_int_equal(session_rewind(s, c2, &e), -1);
    assert_int_equal(session_rewind(straight, c, &e), -1);
    assert_non_null(strstr(e.text, "another session"));
    session_free(straight);
    session_free(s);
    checkpoint_free(c);
    checkpoint_free(c2);
}

static void t_empty(void **state)
{
    struct session *s = session_new(engine, 1), *fresh = session_new(engine, 1);
    struct checkpoint *c = session_checkpoint(s);
    assert_null(session_logits(s));
    append(s, 0, 10);
    session_logits(s);
    assert_int_equal(session_rewind(s, c, NULL), 0);
    assert_null(session_logits(s));
    append(s, 50, 10);
    append(fresh, 50, 10);
    same(s, fresh);
    checkpoint_free(c);
    session_free(s);
    session_free(fresh);
}

/* ---- copying --------------------------------------------------------------------------------- */

static void t_fork(void **state)
{
    struct session *s = session_new(engine, 5);
    append(s, 0, 20);
    look(s, 1);
    append(s, 3, 3);
    struct session *copy = session_fork(s);
    same(s, copy);
    assert_true(session_uniform(s) == session_uniform(copy));
    append(copy, 100, 200); /* the copy diverges */
    session_logits(copy);
    append(s, 20, 30);
    struct session *straight = session_new(engine, 5);
    append(straight, 0, 20);
    look(straight, 1);
    append(straight, 3, 3);
    session_logits(straight);
    append(straight, 20, 30);
    same(s, straight); /* the original is not affected */
    session_free(copy);
    session_free(s);
    session_free(straight);
}

static void t_lazy(void **state)
{
    struct session *s = session_new(engine, 1), *once = session_new(engine, 1);
    append(s, 0, 10);
    look(s, 4);
    append(s, 10, 5);
    look(s, 5);
    append(s, 15, 1);
    struct session_stats st = session_stats(s);
    assert_int_equal(st.prefilled + st.decoded, 0);
    session_logits(s);
    st = session_stats(s);
    assert_int_equal(st.prefilled, session_length(s)); /* in one pass */
    assert_int_equal(st.decoded, 0);
    append(s, 9, 1);
    session_logits(s);
    session_logits(s);
    assert_int_equal(session_stats(s).decoded, 1);
    append(once, 0, 10);
    look(once, 4);
    append(once, 10, 5);
    look(once, 5);
    append(once, 15, 1);
    session_logits(once);
    append(once, 9, 1);
    same(s, once);
    session_free(s);
    session_free(once);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void t_save(void **state)
{
    struct err e = ERR_INIT;
    char *path = xasprintf("%s/session", tiny.dir);
    static const int lengths[] = {0, 1, 2, 700};
    for (size_t i = 0; i < 4; i++) {
        struct session *s = session_new(engine, 11);
        for (int n = 0; n < lengths[i]; n += 100)
            append(s, n, lengths[i] - n < 100 ? lengths[i] - n : 100);
        if (i == 3)
            look(s, 2);
        session_uniform(s);
        assert_int_equal(session_save(s, path, &e), 0);
        struct session *back = session_load(engine, path, &e);
        if (!back)
            fail_msg("%s", e.text);
        assert_int_equal(session_length(back), session_length(s));
        assert_true(session_uniform(s) == session_uniform(back));
        append(s, 77, 40);
        append(back, 77, 40);
        same(s, back);
        session_free(s);
        session_free(back);
    }
    free(path);
}

static void refuses(const char *path, const char *data, size_t len, struct engine *g, const char *naming)
{
    struct err e = ERR_INIT;
    if (data)
        assert_int_equal(file_write(path, data, len, NULL), 0);
    struct session *s = session_load(g, path, &e);
    if (s || !strstr(e.text, naming))
        printf("%s: '%s'\n", naming, e.text);
    assert_null(s);
    assert_non_null(strstr(e.text, naming));
}

static void t_damage(void **state)
{
    char *path = xasprintf("%s/session", tiny.dir), *data;
    size_t len;
    struct session *s = session_new(engine, 11);
    append(s, 0, 20);
    assert_int_equal(session_save(s, path, NULL), 0);
    assert_int_equal(file_read(path, 1 << 24, &data, &len, NULL), 0);
    check_note("20 tokens are %zu bytes", len);

    struct tiny other; /* same shapes, other weights */
    tiny_init(&other, check_seed() + 1);
    tiny_write(&other);
    struct engine *stranger = tiny_open(&other, NULL, 1, false), *wider = tiny_open(&tiny, NULL, 1, true);
    refuses(path, NULL, 0, stranger, "another model");
    refuses(path, NULL, 0, wider, "another model or activation type");
    engine_close(stranger);
    engine_close(wider);
    tiny_free(&other);

    uint64_t rng = check_seed();
    for (size_t cut = 0; cut < len; cut += 1 + len / 50)
        refuses(path, data, cut, engine, cut < 48 ? "not a saved session" : "damaged");
    for (int round = 0; round < 60; round++) {
        size_t at = (size_t)(check_random(&rng) * (double)len);
        char bit = (char)(1 << (int)(check_random(&rng) * 8));
        data[at] ^= bit;
        refuses(path, data, len, engine, "session"); /* the message names a session; the reason varies */
        data[at] ^= bit;
    }
    int64_t huge = INT64_MAX / 2;
    memcpy(data + 24, &huge, sizeof huge);
    refuses(path, data, len, engine, "damaged");
    refuses("/nonexistent/x", NULL, 0, engine, "/nonexistent/x");
    assert_int_equal(session_save(s, "/nonexistent/x", NULL), -1);
    free(data);
    free(path);
    session_free(s);
}

/* ---- rejected input -------------------------------------------------------------------------- */

static void t_refusals(void **state)
{
    struct err e = ERR_INIT;
    struct session *s = session_new(engine, 1), *other = session_new(engine, 1);
    append(s, 0, 9);
    append(other, 0, 9);
    static const int32_t bad[] = {272, 275, 288, -1, 1 << 30};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const int32_t ids[2] = {20, bad[i]};
        assert_int_equal(session_append(s, ids, 2, &e), -1);
        assert_non_null(strstr(e.text, "not a text token"));
    }
    struct image none = {0};
    assert_int_equal(session_append_image(s, &none, &e), -1);
    int32_t many[4096];
    for (int i = 0; i < 4096; i++)
        many[i] = 30;
    assert_int_equal(session_append(s, many, 4096, &e), -1);
    assert_non_null(strstr(e.text, "4105 tokens long; the model's context has 4096"));
    assert_int_equal(session_append(s, many, 4080, &e), 0);
    struct image im = tiny_image(64, 64, 1);
    assert_int_equal(session_append_image(s, &im, &e), 0); /* 4 + 2 tokens */
    assert_int_equal(session_append_image(s, &im, &e), -1);
    assert_int_equal(session_append(s, many, 1, &e), 0);
    assert_int_equal(session_append(s, many, 1, &e), -1);
    /* A session that never received the rejected input. */
    assert_int_equal(session_append(other, many, 4080, &e), 0);
    assert_int_equal(session_append_image(other, &im, &e), 0);
    assert_int_equal(session_append(other, many, 1, &e), 0);
    same(s, other);
    image_free(&im);
    session_free(s);
    session_free(other);
}

static const struct CMUnitTest tests[] = {
    WITH_MODEL("prefill can be cancelled between two layers; after a rewind it has the same bits", t_cancel),
    WITH_MODEL("image encoding can be cancelled, and leaves the session unchanged", t_cancel_look),
    WITH_MODEL("scoring gives the logits of decoding within rounding, and the state of a prefill", t_score),
    WITH_MODEL("after any number of rewinds a session equals one that never diverged", t_rewind),
    WITH_MODEL("an empty session has no logits and can be rewound to", t_empty),
    WITH_MODEL("a fork is equal and independent", t_fork),
    WITH_MODEL("tokens are prefilled in one pass when the logits are read", t_lazy),
    WITH_MODEL("a saved session continues where it was", t_save),
    WITH_MODEL("a damaged, truncated or foreign session file is refused", t_damage),
    WITH_MODEL("invalid tokens, too long texts and invalid images are refused and change nothing",
               t_refusals),
};

CHECK_MAIN()
