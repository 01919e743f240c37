/* timeline.c - see timeline.h. */
#include "timeline.h"

#include "check.h"
#include "place.h"
#include "pool_check.h"

#include "session/session_impl.h"

#include <unistd.h>

enum { PROMPT = 40, REPLY = 6, CROWD = 5 };

struct engine *timeline_engine(const struct tiny *t, const char *device, const char *isa, bool f32)
{
    struct err e = ERR_INIT;
    struct engine_options o = {.dir = t->dir,
                               .device = device,
                               .isa = isa,
                               .threads = 1,
                               .f32 = f32,
                               .state = STATE_FP16,
                               .any_drift = true};
    struct engine *g = engine_open(&o, &e);
    if (!g)
        fail_msg("%s", e.text);
    assert_int_equal(engine_state_storage(g), STATE_FP16);
    return g;
}

/* Returns token i of conversation c. */
static int32_t token(int c, int i)
{
    return 16 + (c * 89 + i * 37 + i * i) % 256;
}

static void prompt(struct session *s, int c)
{
    for (int i = 0; i < PROMPT; i++) {
        int32_t id = token(c, i);
        assert_int_equal(session_append(s, &id, 1, NULL), 0);
    }
    assert_int_equal(session_prefill(s, NULL), 0);
}

/* Decodes the reply's tokens from `from`, one by one. */
static void reply(struct session *s, int c, int from)
{
    for (int i = from; i < REPLY; i++) {
        int32_t id = token(c, PROMPT + i);
        assert_int_equal(session_append(s, &id, 1, NULL), 0);
        assert_int_equal(session_compute_logits(s, NULL), 0);
    }
}

static struct session *straight(struct engine *g, int c)
{
    struct session *s = session_new(g, 1);
    prompt(s, c);
    reply(s, c, 0);
    return s;
}

static void same(struct session *have, struct session *want, const char *what)
{
    size_t n, m, logits = (size_t)engine_vocab(session_engine(want)) * sizeof(float);
    uint8_t *x = pool_check_bits(have, &n), *y = pool_check_bits(want, &m);
    if (n != m || memcmp(x, y, n) != 0 || memcmp(session_logits(have), session_logits(want), logits) != 0)
        fail_msg("other bits: %s", what);
    free(x);
    free(y);
}

static void back_and_on(struct engine *g, struct session *want, void (*away)(struct session *s))
{
    struct session *s = session_new(g, 1);
    prompt(s, 0);
    struct checkpoint *c = session_checkpoint(s);
    reply(s, 1, 0); /* another reply */
    if (away)
        away(s);
    assert_int_equal(session_rewind(s, c, NULL), 0);
    struct session *fork = session_fork(s);
    reply(s, 0, 0);
    same(s, want, "after going back");
    if (away)
        away(fork);
    reply(fork, 0, 0);
    same(fork, want, "in a fork");
    checkpoint_free(c);
    session_free(fork);
    session_free(s);
}

static void from_file(struct engine *g, struct session *want)
{
    char path[PLACE_PATH];
    struct err e = ERR_INIT;
    struct session *s = session_new(g, 1);
    int fd = mkstemp(place_template(path));
    assert_true(fd >= 0);
    close(fd);
    prompt(s, 0);
    if (session_save(s, path, &e))
        fail_msg("%s", e.text);
    struct session *loaded = session_load(g, path, &e);
    if (!loaded)
        fail_msg("%s", e.text);
    reply(loaded, 0, 0);
    same(loaded, want, "from a file");
    session_free(loaded);
    session_free(s);
    unlink(path);
}

/* Decodes in a batch with sessions at other positions, in changing order. */
static void in_a_crowd(struct engine *g, struct session *want)
{
    struct session *s[CROWD];
    for (int i = 0; i < CROWD; i++) {
        s[i] = session_new(g, 1);
        prompt(s[i], i);
        reply(s[i], i, i ? REPLY - i : REPLY);
    }
    for (int t = 0; t < REPLY; t++) {
        struct session *order[CROWD];
        for (int i = 0; i < CROWD; i++) {
            int32_t id = token(i, PROMPT + (i + t));
            order[(i + t) % CROWD] = s[i];
            assert_int_equal(session_append(s[i], i ? &id : (int32_t[]){token(0, PROMPT + t)}, 1, NULL), 0);
        }
        session_decode_batch(order, CROWD);
    }
    same(s[0], want, "among others");
    for (int i = 0; i < CROWD; i++)
        session_free(s[i]);
}

void timeline_check(struct engine *g, void (*away)(struct session *s))
{
    struct session *want = straight(g, 0), *again = straight(g, 0);
    same(again, want, "once more");
    back_and_on(g, want, away);
    from_file(g, want);
    in_a_crowd(g, want);
    session_free(again);
    session_free(want);
}
