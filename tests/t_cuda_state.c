/* t_cuda_state.c - claims about sessions whose states are fp16, on the GPU, run on the host. */
#include "pool_check.h"
#include "timeline.h"
#include "tiny_check.h"

#include "session/drift.h"
#include "session/session_impl.h"

static void away(struct session *s)
{
    assert_int_equal(pool_entry_spill(&s->entry), 0);
}

/* The same keys as on the processor: in f32 states differ only where a sum does. */
static void t_processor(void **state)
{
    (void)state;
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
    for (size_t i = 0; i < numbers; i++) /* of the first layer */
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
    (void)state;
    struct err e = ERR_INIT;
    struct engine_options o = {.dir = tiny.dir, .device = "cuda", .threads = 1, .state = STATE_FP16};
    struct engine *g = engine_open(&o, &e);
    if (!g)
        fail_msg("%s", e.text);
    check_note("%d tokens, mean KL %.1e", engine_drift(g)->steps,
               engine_drift(g)->sum / engine_drift(g)->steps);
    assert_true(engine_drift(g)->steps >= 32 && engine_drift(g)->sum > 0);
    timeline_check(g, away); /* steps that were recorded while measuring are told from these */
    assert_true(engine_state_memory(g).spilled > 0);
    engine_close(g);
}

static const struct CMUnitTest tests[] = {
    CLAIM("states are rounded with the same bits as on the processor", t_processor),
    CLAIM("the gate measures on the device; then every way to a place leaves the same bits: back, forked, "
          "spilled",
          t_gate),
};

int main(int argc, char **argv)
{
    return tiny_main(argc, argv, 3, tests, sizeof tests / sizeof *tests);
}
