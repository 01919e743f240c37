/* speculated.h - compares replies of a tiny model with and without n-gram speculation. */
#pragma once

#include "tiny_check.h"

#include "session/generate.h"
#include "session/session_impl.h"
#include "session/speculate.h"

/* Tokens of a reply; fewer in the GPU emulator, which runs each thread on the host. */
enum { LENGTH = 90, LENGTH_CARD = 24 };

static struct engine *open_with(const char *device, const char *isa, int speculate, enum state_storage states,
                                bool f32)
{
    struct err e = ERR_INIT;
    struct engine_options o = {.dir = tiny.dir,
                               .device = device,
                               .isa = isa,
                               .threads = 1,
                               .f32 = f32,
                               .state = states,
                               .any_drift = true,
                               .speculate = speculate};
    struct engine *g = engine_open(&o, &e);
    if (!g)
        fail_msg("%s", e.text);
    return g;
}

struct said {
    struct generated out;
    struct session_stats stats;
    uint64_t rng;
    float *next; /* logits after the reply */
};

/* Generates a reply after a repetitive text. */
static struct said say(struct engine *g, struct grammar *grammar, float temperature, int tokens)
{
    struct err e = ERR_INIT;
    struct said r = {0};
    struct session *s = session_new(g, 7);
    struct generation how = {.sampling = {temperature, 0.95f, tokens}, .grammar = grammar};
    tiny_append_text(s, "<s>to 12! to 12! to 12! click(12) click(12) true, aabb aabb true, tr");
    if (generate(s, &how, &r.out, &e))
        fail_msg("%s", e.text);
    r.stats = session_stats(s);
    r.rng = session_rng(s);
    r.next = malloc((size_t)engine_vocab(g) * sizeof *r.next);
    memcpy(r.next, session_logits(s), (size_t)engine_vocab(g) * sizeof *r.next);
    session_free(s);
    return r;
}

static void same(const struct said *a, const struct said *b, int vocab)
{
    assert_int_equal(a->out.n, b->out.n);
    for (int i = 0; i < a->out.n; i++) {
        assert_int_equal(a->out.choices[i].id, b->out.choices[i].id);
        assert_true(a->out.choices[i].logprob == b->out.choices[i].logprob);
        assert_true(a->out.choices[i].logprob_masked == b->out.choices[i].logprob_masked);
        assert_int_equal(a->out.choices[i].forced, b->out.choices[i].forced);
    }
    assert_int_equal(a->out.finish, b->out.finish);
    assert_true(a->out.hashed == b->out.hashed && a->out.logits_hash == b->out.logits_hash);
    assert_true(a->rng == b->rng);
    assert_memory_equal(a->next, b->next, (size_t)vocab * sizeof(float));
    assert_true(a->stats.decoded == b->stats.decoded);
}

static void drop(struct said *r)
{
    generated_free(&r->out);
    free(r->next);
}

/* Allows only n letters "a" and "b", which soon repeat. */
static struct grammar *letters(struct engine *g, int n)
{
    struct err e = ERR_INIT;
    struct gx *x = gx_new();
    struct grammar *two = grammar_compile(x, gx_repeat(x, gx_set(x, "ab"), n, n), engine_tokenizer(g), &e);
    gx_free(x);
    if (!two)
        fail_msg("%s", e.text);
    return two;
}

/* Compares replies with and without speculation, first of letters, then free, greedy and sampled. If every
 * proposal was accepted, repeats with letters at rising temperature until one is rejected. */
__attribute__((unused)) static void compare(const char *device, const char *isa, enum state_storage states,
                                            bool f32, int length)
{
    struct engine *g[2] = {open_with(device, isa, 0, states, f32), open_with(device, isa, 6, states, f32)};
    int64_t proposed = 0, accepted = 0;
    for (int turn = 0; turn < 4 || (proposed == accepted && turn < 24); turn++) {
        float temperature = turn >= 4 ? 0.5f * (float)turn : turn % 2 ? 1.5f : 0;
        struct grammar *two[2] = {NULL, NULL};
        struct said said[2];
        for (int i = 0; i < 2; i++) {
            two[i] = turn < 2 || turn >= 4 ? letters(g[i], length) : NULL;
            said[i] = say(g[i], two[i], temperature, length);
        }
        same(&said[0], &said[1], engine_vocab(g[0]));
        assert_int_equal(said[0].stats.proposed, 0);
        proposed += said[1].stats.proposed;
        accepted += said[1].stats.accepted;
        for (int i = 0; i < 2; i++) {
            drop(&said[i]);
            grammar_free(two[i]);
        }
    }
    check_note("%s %s%s: %lld of %lld proposals accepted", engine_isa(g[0]), f32 ? "f32" : "bf16",
               states == STATE_FP16 ? ", states in f16" : "", (long long)accepted, (long long)proposed);
    assert_true(proposed > 0 && proposed > accepted); /* at least one rejection */
    engine_close(g[0]);
    engine_close(g[1]);
}
