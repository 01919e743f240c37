/* quantized.c - see quantized.h. */
#include "quantized.h"

#include "check.h"

enum { TOKENS = 12 };

struct engine *quantized_open(const struct tiny *t, const char *isa, bool f32, enum weight_storage numbers,
                              bool cache)
{
    struct err e = ERR_INIT;
    struct engine_options o = {
        .dir = t->dir, .isa = isa, .threads = 2, .f32 = f32, .weights = numbers, .cache = cache};
    struct engine *g = engine_open(&o, &e);
    if (!g)
        fail_msg("%s", e.text);
    return g;
}

void quantized_look(struct engine *g, float out[QUANTIZED_VOCAB])
{
    struct err e = ERR_INIT;
    struct session *s = session_new(g, 1);
    struct image im = tiny_image(130, 70, 3);
    int32_t ids[TOKENS];
    for (int i = 0; i < TOKENS; i++)
        ids[i] = 30 + 7 * i;
    assert_int_equal(session_append(s, ids, TOKENS, &e), 0);
    assert_int_equal(session_append_image(s, &im, &e), 0);
    for (int i = 0; i < TOKENS; i++) {
        assert_int_equal(session_append(s, ids + i, 1, &e), 0);
        memcpy(out, session_logits(s), QUANTIZED_VOCAB * sizeof *out);
    }
    image_free(&im);
    session_free(s);
    engine_close(g);
}
