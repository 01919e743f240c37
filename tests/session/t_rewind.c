/* t_rewind.c - tests rewinding a conversation to a turn without its reply.
 *
 * A tiny model with random weights samples the replies. The test keeps each reply and the tokens before it.
 * After a rewind the tokens must be equal, and the same random numbers must give the same reply.
 */
#include "tiny_check.h"

#include "agent/context.h"

enum { TURNS = 9, SPOKEN = 10, IN_VIEW = 2 };

static struct dialect *dialect;

static int setup(void **state)
{
    dialect = dialect_load("holo3", NULL);
    return tiny_setup(state);
}

static int teardown(void **state)
{
    tiny_teardown(state);
    dialect_free(dialect);
    return 0;
}

#define WITH_TALK(text, fn) CLAIM_WITH(text, fn, setup, teardown)

/* ---- recorded conversation ------------------------------------------------------------------- */

struct talk {
    struct llm *m;
    struct context *c;
    struct image images[TURNS];
    int32_t *before[TURNS]; /* tokens after the observation of turn k */
    int64_t n_before[TURNS];
    struct generated said[TURNS];
    int wanted; /* screenshots that the context requested again */
};

static int again(void *arg, int turn, struct image *out, struct err *e)
{
    struct talk *t = arg;
    t->wanted++;
    return image_copy(out, &t->images[turn], e);
}

static void talk_open(struct talk *t, enum window_policy window, int keep)
{
    *t = (struct talk){.m = llm_local(engine, dialect, check_seed())};
    t->c = context_new(t->m, dialect, window, IN_VIEW, keep, "You use a computer.", NULL);
    assert_non_null(t->c);
    for (int k = 0; k < TURNS; k++)
        t->images[k] = tiny_image(70 + k, 50, (uint64_t)k + 1);
}

static void forget(struct talk *t, int k)
{
    free(t->before[k]);
    t->before[k] = NULL;
    generated_free(&t->said[k]);
}

static void talk_close(struct talk *t)
{
    for (int k = 0; k < TURNS; k++) {
        forget(t, k);
        image_free(&t->images[k]);
    }
    context_free(t->c);
    llm_free(t->m);
}

static void think(struct talk *t, struct generated *g)
{
    volatile int cancel = 0;
    struct llm_request r = {.goal = GOAL_TEXT, .sampling = {1.2f, 1, SPOKEN}, .cancel = &cancel};
    struct err e = ERR_INIT;
    if (context_think(t->c, &r, g, &e))
        fail_msg("%s", e.text);
}

static void note_before(struct talk *t, int k)
{
    t->n_before[k] = t->m->ops->length(t->m);
    t->before[k] = xmalloc((unsigned long)t->n_before[k], sizeof(int32_t));
    memcpy(t->before[k], session_tokens(llm_session(t->m)), (size_t)t->n_before[k] * sizeof(int32_t));
}

static void observe(struct talk *t, int k)
{
    struct context_cost cost;
    char lead[32];
    snprintf(lead, sizeof lead, "turn %d\n", k);
    assert_int_equal(context_observe(t->c, lead, &t->images[k], &cost, NULL), 0);
    assert_true(cost.images <= IN_VIEW);
}

/* Runs turns k to `to`. Replies are sampled, or are `told` if it is not NULL; then they are tokenized
 * again. */
static void go_on(struct talk *t, int k, int to, const char *told)
{
    for (; k < to; k++) {
        observe(t, k);
        forget(t, k);
        note_before(t, k);
        think(t, &t->said[k]);
        assert_int_equal(context_accept(t->c, told ? told : t->said[k].text.data, !told, NULL), 0);
    }
}

static bool same_tokens(const struct talk *t, int k)
{
    return t->m->ops->length(t->m) == t->n_before[k] &&
           !memcmp(session_tokens(llm_session(t->m)), t->before[k], (size_t)t->n_before[k] * sizeof(int32_t));
}

/* Compares ids and probabilities bit for bit. */
static bool same_words(const struct generated *a, const struct generated *b)
{
    bool same = a->n == b->n;
    for (int i = 0; same && i < a->n; i++)
        same = a->choices[i].id == b->choices[i].id && a->choices[i].logprob == b->choices[i].logprob;
    return same;
}

/* Rewinds to turn k, checks that it samples the same reply, and leaves the turn open. */
static void back(struct talk *t, int k)
{
    struct context_cost cost;
    struct generated g;
    assert_int_equal(context_rewind(t->c, k, again, t, &cost, NULL), 0);
    assert_int_equal(context_turns(t->c), k + 1);
    assert_int_equal(cost.total, t->n_before[k]);
    assert_true(same_tokens(t, k));
    think(t, &g);
    if (!same_words(&g, &t->said[k]))
        fail_msg("turn %d has another reply", k);
    generated_free(&g);
}

/* ---- claims ---------------------------------------------------------------------------------- */

static void t_kept(void **state)
{
    for (int window = 0; window < 2; window++) {
        struct talk t;
        talk_open(&t, window ? WINDOW_STRICT : WINDOW_SAWTOOTH, TURNS);
        go_on(&t, 0, TURNS, NULL);
        back(&t, TURNS - 1); /* the last turn: nothing to discard */
        back(&t, 6);
        back(&t, 6);
        assert_int_equal(context_accept(t.c, t.said[6].text.data, false, NULL), 0);
        go_on(&t, 7, TURNS, NULL); /* another continuation, with its own evictions */
        back(&t, 7);
        back(&t, 3);
        back(&t, 0);
        assert_int_equal(context_accept(t.c, "another way", false, NULL), 0);
        go_on(&t, 1, 6, NULL);
        back(&t, 2);
        assert_true(window || t.wanted == 0);
        talk_close(&t);
    }
}

/* Observes another screenshot as turn k, and undoes it: stopped in its prefill, without a reply, or after one. */
static void observe_in_vain(struct talk *t, int k, int how)
{
    volatile int stop = how == 0;
    struct image other = tiny_image(66, 52, 99 + (uint64_t)k);
    struct context_cost cost;
    context_allow_undo(t->c, &stop);
    assert_int_equal(context_observe(t->c, "a turn that is undone\n", &other, &cost, NULL), how ? 0 : -1);
    if (how == 2) {
        struct generated g;
        think(t, &g);
        generated_free(&g);
    }
    stop = 0;
    assert_int_equal(context_undo(t->c, NULL), 0);
    assert_int_equal(context_turns(t->c), k);
    context_allow_undo(t->c, NULL);
    llm_set_cancel(t->m, NULL);
    image_free(&other);
}

static void t_undone(void **state)
{
    for (int i = 0; i < 4; i++) {
        enum window_policy window = i % 2 ? WINDOW_STRICT : WINDOW_SAWTOOTH;
        struct talk plain, t;
        talk_open(&plain, window, 0);
        talk_open(&t, window, i / 2 ? TURNS : 0);
        for (int k = 0; k < TURNS; k++) {
            volatile int never = 0;
            go_on(&plain, k, k + 1, k % 3 == 1 ? "well" : NULL);
            observe_in_vain(&t, k, k % 3);
            if (k % 2)
                observe_in_vain(&t, k, (k + 1) % 3);
            if (k % 4 < 2)
                context_allow_undo(t.c, &never); /* it could be undone, and is not */
            go_on(&t, k, k + 1, k % 3 == 1 ? "well" : NULL);
            context_allow_undo(t.c, NULL);
            llm_set_cancel(t.m, NULL);
            if (t.n_before[k] != plain.n_before[k] ||
                memcmp(t.before[k], plain.before[k], (size_t)t.n_before[k] * sizeof(int32_t)) != 0)
                fail_msg("turn %d has other tokens", k);
            if (!same_words(&t.said[k], &plain.said[k]))
                fail_msg("turn %d has another reply", k);
        }
        talk_close(&t);
        talk_close(&plain);
    }
}

/* Repeats equal turns after a rewind: tokens and evictions must be equal. */
static void t_window(void **state)
{
    for (int i = 0; i < 4; i++) {
        struct talk t;
        struct context_cost cost;
        talk_open(&t, i % 2 ? WINDOW_STRICT : WINDOW_SAWTOOTH, i / 2 ? TURNS : 1);
        go_on(&t, 0, TURNS, "well");
        assert_int_equal(context_rewind(t.c, 3, again, &t, &cost, NULL), 0);
        assert_true(same_tokens(&t, 3));
        assert_int_equal(cost.reused, i / 2 ? cost.total : 0);
        for (int k = 4; k < TURNS; k++) {
            assert_int_equal(context_accept(t.c, "well", false, NULL), 0);
            observe(&t, k);
            assert_true(same_tokens(&t, k));
        }
        talk_close(&t);
    }
}

/* Turns without a rewind point are prefilled again, with the same random numbers. Uses f32, where a different
 * division into chunks changes only the last bits. */
static void t_read_again(void **state)
{
    engine_close(engine);
    engine = tiny_open(&tiny, NULL, 1, true);
    for (int window = 0; window < 2; window++) {
        struct talk t;
        struct context_cost cost;
        talk_open(&t, window ? WINDOW_STRICT : WINDOW_SAWTOOTH, 2);
        go_on(&t, 0, TURNS, "well");
        for (int k = 4; k >= 0; k -= 2) {
            struct generated g;
            assert_int_equal(context_rewind(t.c, k, again, &t, &cost, NULL), 0);
            assert_int_equal(cost.reused, 0);
            assert_true(same_tokens(&t, k));
            think(&t, &g);
            for (int i = 0; i < 3 && i < g.n && i < t.said[k].n;
                 i++) /* the last bits may differ, and later tokens with them */
                assert_int_equal(g.choices[i].id, t.said[k].choices[i].id);
            generated_free(&g);
        }
        assert_true(t.wanted > 0);
        talk_close(&t);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void t_no_room(void **state)
{
    struct engine *roomy = engine;
    size_t most;
    struct talk t;
    talk_open(&t, WINDOW_STRICT, TURNS);
    go_on(&t, 0, TURNS, NULL);
    most = engine_state_memory(engine).peak;
    talk_close(&t);
    struct engine_options o = {.dir = tiny.dir, .device = "cpu", .threads = 1, .state_memory = most / 2};
    struct err e = ERR_INIT;
    engine = engine_open(&o, &e);
    if (!engine)
        fail_msg("%s", e.text);
    talk_open(&t, WINDOW_STRICT, TURNS);
    go_on(&t, 0, TURNS, NULL);
    assert_true(engine_state_memory(engine).peak <= most / 2);
    struct context_cost cost;
    assert_int_equal(context_rewind(t.c, 0, again, &t, &cost, NULL), 0);
    assert_int_equal(cost.reused, 0); /* its rewind point was evicted */
    talk_close(&t);
    engine_close(engine);
    engine = roomy;
}

static const struct CMUnitTest tests[] = {
    WITH_TALK("a turn with a rewind point gives the same reply bit for bit, across evictions and branches",
              t_kept),
    WITH_TALK("turns that are undone leave no bit behind: the next ones have the same tokens and replies",
              t_undone),
    WITH_TALK("after a rewind the window evicts the same screenshots again", t_window),
    WITH_TALK("a turn without a rewind point is prefilled again: same tokens, same random numbers",
              t_read_again),
    WITH_TALK("when memory is short, older rewind points are dropped", t_no_room),
};

CHECK_MAIN()
