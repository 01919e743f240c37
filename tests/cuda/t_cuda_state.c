/* t_cuda_state.c - tests of sessions with fp16 states on the device. */
#include "place.h"
#include "pool_check.h"
#include "timeline.h"
#include "tiny_check.h"

#include "session/drift.h"
#include "session/session_impl.h"

#include <stdlib.h>
#include <unistd.h>

static void away(struct session *s)
{
    assert_int_equal(pool_entry_spill(&s->entry), 0);
}

/* Device and CPU use the same random numbers for rounding, so states differ only where a sum does. */
static void t_processor(void **state)
{
    struct engine *g[2] = {timeline_engine(&tiny, "cuda", NULL, true),
                           timeline_engine(&tiny, "cpu", "ref", true)};
    uint8_t *bits[2];
    size_t n[2];
    for (int k = 0; k < 2; k++) {
        struct session *s = session_new(g[k], 1);
        for (int i = 0; i < 30; i++) {
            int32_t id = 16 + i * 7 % 256;
            assert_int_equal(session_append(s, &id, 1, NULL), 0);
            assert_int_equal(i == 20 || i > 25 ? session_compute_logits(s, NULL) : 0, 0);
        }
        bits[k] = pool_check_bits(s, &n[k]);
        session_free(s);
    }
    assert_int_equal(n[0], n[1]);
    const struct lm_config *c = &engine_config(g[0])->lm;
    size_t numbers = (size_t)(c->ssm.heads * c->ssm.head_dim) * (size_t)c->ssm.state, others = 0;
    for (size_t i = 0; i < numbers; i++) /* in the first layer */
        others += memcmp(bits[0] + 2 * i, bits[1] + 2 * i, 2) != 0;
    check_note("%zu of %zu numbers differ", others, numbers);
    assert_true(others < numbers / 20);
    for (int k = 0; k < 2; k++) {
        free(bits[k]);
        engine_close(g[k]);
    }
}

static void t_gate(void **state)
{
    struct err e = ERR_INIT;
    struct engine_options o = {.dir = tiny.dir, .device = "cuda", .threads = 1, .state = STATE_FP16};
    struct engine *g = engine_open(&o, &e);
    if (!g)
        fail_msg("%s", e.text);
    check_note("%d tokens, mean KL %.1e", engine_drift(g)->steps,
               engine_drift(g)->sum / engine_drift(g)->steps);
    assert_true(engine_drift(g)->steps >= 32 && engine_drift(g)->sum > 0);
    timeline_check(g, away); /* graphs recorded during the measurement are not reused */
    assert_true(engine_state_memory(g).spilled > 0);
    engine_close(g);
}

/* ---- deferred state updates ------------------------------------------------------------------ */

enum { CROWD = LANGUAGE_REPLAYS };

static void decode(struct session **s, int each, int round)
{
    for (int i = 0; i < CROWD; i++)
        tiny_append(s[i], 3 * i + round, 1);
    for (int i = 0; i < CROWD; i += each)
        session_decode_batch(s + i, each);
}

/* Saves a session to a file, frees it, and returns the session loaded from the file. */
static struct session *through_file(struct session *s)
{
    struct err e = ERR_INIT;
    char path[PLACE_PATH];
    close(mkstemp(place_template(path)));
    if (session_save(s, path, &e))
        fail_msg("%s", e.text);
    struct session *back = session_load(session_engine(s), path, &e);
    if (!back)
        fail_msg("%s", e.text);
    unlink(path);
    session_free(s);
    return back;
}

/* Applies every operation that reads or moves a state. */
static void live(struct session **s, int each)
{
    struct checkpoint *c = NULL, *same = NULL;
    for (int round = 0; round < 22; round++) {
        decode(s, each, round);
        if (round == 4) {
            c = session_checkpoint(s[0]);
            same = session_checkpoint(s[1]);
        }
        if (round == 7) {
            assert_int_equal(session_rewind(s[0], c, NULL), 0);
            struct session *fork = session_fork(s[2]);
            session_free(s[2]);
            s[2] = fork;
            struct session *branch = session_try_branch(s[1], same, NULL);
            session_free(s[1]);
            s[1] = branch;
        }
        if (round == 9) {
            s[3] = through_file(s[3]);
            assert_int_equal(pool_entry_spill(&s[4]->entry), 0);
            tiny_append(s[5], round, 7); /* prefills several tokens at once */
            session_logits(s[5]);
        }
        if (round == 13)
            session_logits(s[6]); /* is already up to date */
    }
    checkpoint_free(c);
    checkpoint_free(same);
}

static void t_behind(void **state)
{
    struct engine *g = pool_check_engine(&tiny, "cuda", 0);
    struct session *s[2][CROWD];
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < CROWD; i++) {
            s[k][i] = session_new(g, 1);
            tiny_append(s[k][i], i, 3 + i);
            session_logits(s[k][i]);
        }
        live(s[k], k ? CROWD / 2 : CROWD);
    }
    for (int i = 0; i < CROWD; i++) {
        assert_true(s[0][i]->state.lag > 0);
        assert_int_equal(s[1][i]->state.lag, 0);
        size_t n, m;
        uint8_t *a = pool_check_bits(s[0][i], &n), *b = pool_check_bits(s[1][i], &m);
        assert_int_equal(n, m);
        if (memcmp(a, b, n) != 0)
            fail_msg("session %d has other bits", i);
        free(a);
        free(b);
        session_free(s[0][i]);
        session_free(s[1][i]);
    }
    engine_close(g);
}

static const struct CMUnitTest tests[] = {
    CLAIM("states with deferred updates end with the same bits as with immediate updates", t_behind),
    CLAIM("states are rounded to the same bits as on the CPU", t_processor),
    CLAIM("the drift is measured on the device; then rewind, fork and spill give the same bits", t_gate),
};

TINY_MAIN(3)
