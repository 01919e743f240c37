/* kv_claims.c - see kv_claims.h. */
#include "kv_claims.h"

#include "check.h"
#include "place.h"
#include "pool_check.h"

#include "session/session_impl.h"

#include <unistd.h>

struct engine *kv_claims_engine(const struct tiny *t, const char *device, const char *isa, bool fp8, bool f32)
{
    struct err e = ERR_INIT;
    struct engine_options o = {
        .dir = t->dir, .device = device, .isa = isa, .threads = 1, .kv = fp8 ? KV_FP8 : KV_AUTO, .f32 = f32};
    struct engine *g = engine_open(&o, &e);
    if (!g)
        fail_msg("%s", e.text);
    return g;
}

static struct session *converse(struct engine *g)
{
    struct session *s = session_new(g, 1);
    tiny_append(s, 1, 23);
    tiny_append_image(s, 5);
    tiny_append(s, 2, 11);
    return s;
}

double kv_claims_apart(struct engine *a, struct engine *b)
{
    struct session *x = converse(a), *y = converse(b);
    double gap = tiny_distance(session_logits(x), session_logits(y), engine_vocab(a));
    session_free(x);
    session_free(y);
    return gap;
}

static void goes_back(struct engine *g, struct session *straight)
{
    struct err e = ERR_INIT;
    struct session *s = converse(g);
    struct checkpoint *c = session_checkpoint(s);
    tiny_append(s, 9, 21);
    session_logits(s);
    if (session_rewind(s, c, &e))
        fail_msg("%s", e.text);
    tiny_append(s, 4, 17);
    pool_check_same(s, straight);
    checkpoint_free(c);
    session_free(s);
}

static void is_saved(struct engine *g, struct session *s, struct engine *other)
{
    struct err e = ERR_INIT;
    char path[PLACE_PATH];
    int fd = mkstemp(place_template(path));
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(session_save(s, path, &e), 0);
    struct session *again = session_load(g, path, &e);
    assert_non_null(again);
    pool_check_same(again, s);
    assert_null(session_load(other, path, &e));
    assert_non_null(strstr(e.text, "give --kv fp8"));
    struct session *plain = converse(other);
    assert_int_equal(session_save(plain, path, &e), 0);
    assert_null(session_load(g, path, &e));
    assert_non_null(strstr(e.text, "leave out --kv fp8"));
    unlink(path);
    session_free(plain);
    session_free(again);
}

static void is_away(struct engine *g, struct session *s)
{
    struct session *fork = session_fork(s);
    if (pool_entry_spill(&s->entry) == 0)
        assert_true(s->entry.spilled);
    pool_check_same(fork, s);
    tiny_append(fork, 8, 1);
    tiny_append(s, 8, 1);
    pool_check_same(fork, s);
    for (int i = 0; i < 470; i++) { /* beyond 512 tokens: the KV cache grows and moves */
        tiny_append(fork, i, 1);
        tiny_append(s, i, 1);
    }
    pool_check_same(fork, s);
    assert_int_equal(engine_state_memory(g).used, pool_check_need(g, session_length(s)) +
                                                      pool_check_need(g, session_length(fork)) +
                                                      pool_check_need(g, 57));
    session_free(fork);
}

static void goes_with_others(struct engine *g)
{
    enum { N = 5 };
    struct session *alone[N], *together[N];
    for (int i = 0; i < N; i++) {
        alone[i] = session_new(g, 1);
        tiny_append(alone[i], i, 1 + 9 * i);
        together[i] = session_fork(alone[i]);
    }
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < N; i++) {
            tiny_append(alone[i], step + i, 1);
            tiny_append(together[i], step + i, 1);
            session_logits(alone[i]);
        }
        session_decode_batch(together, N);
        for (int i = 0; i < N; i++)
            pool_check_same(together[i], alone[i]);
    }
    for (int i = 0; i < N; i++) {
        session_free(alone[i]);
        session_free(together[i]);
    }
}

void kv_claims_check(const struct tiny *t, const char *device, const char *isa)
{
    struct engine *g = kv_claims_engine(t, device, isa, true, false),
                  *plain = kv_claims_engine(t, device, isa, false, false);
    assert_true(engine_kv_storage(g) == KV_FP8 && engine_kv_storage(plain) == KV_AUTO);
    struct session *straight = converse(g);
    session_logits(straight);
    tiny_append(straight, 4, 17);
    session_logits(straight);
    goes_back(g, straight);
    struct session *s = session_fork(straight);
    is_saved(g, s, plain);
    is_away(g, s);
    session_free(s);
    session_free(straight);
    goes_with_others(g);
    double gap = kv_claims_apart(g, plain);
    check_note("%s: 8 bits differ by %.1e of the logits' size from bf16", engine_isa(g), gap);
    assert_true(gap > 0 && gap < 0.3);
    assert_int_equal(engine_state_memory(g).used, 0);
    engine_close(g);
    engine_close(plain);
}
