/* t_batch.c - claims about many sessions within a bound on their memory, on the processor: who does not fit waits, or is
 * refused, and nobody's tokens depend on it.  On the device: t_cuda_batch.c.
 */
#include "crowd.h"
#include "tiny_check.h"

#include "session/generate.h"
#include "session/session_impl.h"

static struct crowd crowd;

static void no_memory_left(struct engine *g)
{
    assert_int_equal(engine_state_memory(g).used, 0);
}

static void shuffled(int *order, int n, uint64_t seed)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int k = (int)(check_random(&seed) * (i + 1)), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
}

/* ---- the batch -------------------------------------------------------------------------------------------- */

static void t_crowd(void **state)
{
    (void)state;
    struct engine *free_of = crowd_engine(&tiny, "cpu", 0);
    size_t bound = 10 * crowd_need(free_of, 1024);
    crowd_alone(&crowd, free_of);
    crowd_run(&crowd, free_of, NULL, 0); /* without a bound, too */
    no_memory_left(free_of);
    engine_close(free_of);
    struct engine *g = crowd_engine(&tiny, "cpu", bound);
    crowd_run(&crowd, g, NULL, 0);
    struct state_memory m = engine_state_memory(g);
    check_note("40 sessions, %zu of %zu bytes at most", m.most, m.bound);
    assert_true(m.most <= bound && m.most > bound / 2);
    assert_int_equal(m.spilled, 0);
    no_memory_left(g);
    for (int round = 0; round < 3; round++) {
        int order[CROWD_MOST];
        shuffled(order, crowd.n, check_seed() + (uint64_t)round);
        crowd_run(&crowd, g, order, round * 1000);
        no_memory_left(g);
    }
    engine_close(g);
}

/* While one reads a long prompt, another one writes a token in each round; and nobody overtakes. */
static void t_scheduler(void **state)
{
    (void)state;
    struct engine *g = crowd_engine(&tiny, "cpu", 0);
    struct batch *b = batch_new(g, 0);
    struct batch_job jobs[3] = {{.limit = 6}, {.limit = 2}, {.limit = 3}};
    const int prompts[3] = {1, 5 * LANGUAGE_ROWS + 7, 2 * LANGUAGE_ROWS + 300};
    for (int i = 0; i < 3; i++) {
        jobs[i].session = session_new(g, 1);
        for (int t = 0; t < prompts[i]; t++) {
            int32_t id = 16 + (i * 31 + t * 7) % 256;
            assert_int_equal(session_append(jobs[i].session, &id, 1, NULL), 0);
        }
        batch_add(b, &jobs[i]);
    }
    int64_t before = 0;
    while (batch_round(b)) {
        int64_t read = 0;
        for (int i = 0; i < 3; i++)
            read += session_stats(jobs[i].session).prefilled;
        assert_true(read - before <= LANGUAGE_ROWS);
        before = read;
    }
    assert_int_equal(jobs[0].done_at, jobs[0].generated); /* one in each round */
    assert_int_equal(jobs[2].done_at,
                     6 + jobs[2].generated); /* three pieces, and three of the other's between */
    assert_int_equal(jobs[1].done_at, 9 + jobs[1].generated);
    for (int i = 0; i < 3; i++)
        session_free(jobs[i].session);
    batch_free(b);
    engine_close(g);
}

static int32_t by_logits(struct batch_job *j, const float *logits)
{
    int32_t best = 16;
    for (int32_t i = 17; i < 272; i++)
        best = logits[i] > logits[best] ? i : best;
    return j->generated == 4 ? -1 : best;
}

static void t_pick(void **state)
{
    (void)state;
    struct engine *g = crowd_engine(&tiny, "cpu", 0);
    struct session *alone = session_new(g, 1), *s = session_new(g, 1);
    crowd_prompt(&crowd, 3, alone);
    crowd_prompt(&crowd, 3, s);
    struct batch_job j = {.session = s, .limit = 100, .pick = by_logits}, rng = {.limit = 0};
    for (int i = 0; i < 4; i++) {
        struct batch_job at = {.generated = i};
        int32_t id = by_logits(&at, session_logits(alone));
        assert_int_equal(session_append(alone, &id, 1, NULL), 0);
    }
    struct batch *b = batch_new(g, 0);
    rng.session = session_new(g, 1); /* reads, and writes nothing */
    crowd_prompt(&crowd, 5, rng.session);
    batch_add(b, &rng);
    batch_add(b, &j);
    batch_run(b);
    assert_int_equal(j.generated, 4);
    assert_int_equal(rng.generated, 0);
    assert_int_equal(session_pending(rng.session), 0);
    assert_int_equal(session_length(s), session_length(alone));
    assert_memory_equal(session_tokens(s), session_tokens(alone),
                        (size_t)session_length(s) * sizeof(int32_t));
    assert_memory_equal(session_logits(s), session_logits(alone), (size_t)engine_vocab(g) * sizeof(float));
    batch_free(b);
    session_free(alone);
    session_free(s);
    session_free(rng.session);
    engine_close(g);
}

/* One asks for more than there is, one for nothing to continue: the others do not notice. */
static void t_too_large(void **state)
{
    (void)state;
    struct engine *g = crowd_engine(&tiny, "cpu", 0);
    size_t bound = crowd_need(g, 1536) * 2;
    engine_close(g);
    g = crowd_engine(&tiny, "cpu", bound);
    struct batch *b = batch_new(g, 0);
    struct batch_job jobs[4] = {{.limit = 3}, {.limit = 5000}, {.limit = 3}, {.limit = 3}};
    for (int i = 0; i < 4; i++) {
        jobs[i].session = session_new(g, 1);
        if (i != 2)
            crowd_prompt(&crowd, i, jobs[i].session);
        batch_add(b, &jobs[i]);
    }
    batch_run(b);
    assert_non_null(strstr(jobs[1].err.text, "MiB of state memory"));
    assert_non_null(strstr(jobs[2].err.text, "nothing to continue"));
    assert_true(jobs[1].done_at == 1 && jobs[2].done_at == 1); /* at once */
    assert_true(jobs[0].err.kind == ERR_NONE && jobs[3].err.kind == ERR_NONE);
    assert_true(jobs[0].generated > 0 && jobs[3].generated > 0 && jobs[1].generated == 0);
    batch_free(b);
    for (int i = 0; i < 4; i++)
        session_free(jobs[i].session);
    no_memory_left(g);
    engine_close(g);
}

/* ---- the bound -------------------------------------------------------------------------------------------- */

static void append(struct session *s, int n)
{
    for (int i = 0; i < n; i++)
        assert_int_equal(session_append(s, &(int32_t){16 + i % 256}, 1, NULL), 0);
}

static void t_refused(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct engine *g = crowd_engine(&tiny, "cpu", 0);
    size_t one = crowd_need(g, 512), two = crowd_need(g, 1024);
    engine_close(g);
    g = crowd_engine(&tiny, "cpu", one + 1000); /* neither a checkpoint nor more tokens */
    struct session *a = session_new(g, 1), *b = session_new(g, 1);
    append(a, 500);
    append(b, 20);
    assert_int_equal(session_compute(a, &e), 0);
    assert_int_equal(session_compute(b, &e), -1);
    assert_non_null(strstr(e.text, "no room"));
    assert_int_equal(e.kind, ERR_ENV);
    assert_null(session_try_checkpoint(a, &e));
    assert_null(session_try_fork(a, &e));
    struct generated out;
    struct sampling p = {.max_tokens = 3};
    assert_int_equal(generate(b, NULL, &p, NULL, NULL, NULL, &out, &e), -1);
    generated_free(&out);
    append(a, 100); /* its own growing is refused, and what it has stays */
    assert_int_equal(session_compute(a, &e), -1);
    assert_int_equal(session_pending(a), 100);
    assert_int_equal(engine_state_memory(g).used, one);
    session_free(a);
    no_memory_left(g);
    assert_int_equal(session_compute(b, &e), 0);
    session_free(b);
    no_memory_left(g);
    engine_close(g);

    g = crowd_engine(&tiny, "cpu", two); /* what grows is there twice for a moment */
    a = session_new(g, 1);
    append(a, 500);
    assert_int_equal(session_compute(a, &e), 0);
    append(a, 100);
    assert_int_equal(session_compute(a, &e), -1);
    assert_int_equal(engine_state_memory(g).used, one);
    session_free(a);
    engine_close(g);

    struct engine_options o = {.dir = tiny.dir, .device = "cpu", .threads = 1, .state_memory = 1000};
    assert_null(engine_open(&o, &e));
    assert_non_null(strstr(e.text, "one session takes"));
    assert_int_equal(e.kind, ERR_USAGE);
}

static int32_t always(struct batch_job *j, const float *logits)
{
    (void)logits;
    return 16 + (int32_t)j->generated;
}

/* Five that fit with their prompts, and three with their replies, too. */
static void t_whole(void **state)
{
    (void)state;
    struct engine *g = crowd_engine(&tiny, "cpu", 0);
    size_t bound = crowd_need(g, 1024) * 3;
    assert_true(crowd_need(g, 512) * 5 < bound);
    engine_close(g);
    g = crowd_engine(&tiny, "cpu", bound);
    struct batch *b = batch_new(g, 0);
    struct batch_job jobs[5];
    for (int i = 0; i < 5; i++) {
        jobs[i] = (struct batch_job){.session = session_new(g, 1), .limit = 20, .pick = always};
        append(jobs[i].session, 505);
        batch_add(b, &jobs[i]);
    }
    for (int i = 0; i < 2; i++) {
        while (jobs[i].state != BATCH_ENDED)
            batch_round(b);
        assert_true(jobs[i].err.kind == ERR_NONE && jobs[i].generated == 20);
        session_free(jobs[i].session);
    }
    batch_run(b);
    for (int i = 2; i < 5; i++) {
        assert_true(jobs[i].err.kind == ERR_NONE && jobs[i].generated == 20);
        session_free(jobs[i].session);
    }
    batch_free(b);
    no_memory_left(g);
    engine_close(g);
}

/* Sessions that are here for nobody take the room of those that wait: they are told so, and the rest goes on. */
static void t_occupied(void **state)
{
    (void)state;
    struct engine *g = crowd_engine(&tiny, "cpu", 0);
    size_t bound = crowd_need(g, 512) * 2;
    engine_close(g);
    g = crowd_engine(&tiny, "cpu", bound);
    struct session *idle = session_new(g, 1), *s[2] = {session_new(g, 1), session_new(g, 1)};
    append(idle, 30);
    assert_int_equal(session_compute(idle, NULL), 0);
    struct batch *b = batch_new(g, 0);
    struct batch_job jobs[2] = {{.session = s[0], .limit = 2}, {.session = s[1], .limit = 2}};
    for (int i = 0; i < 2; i++) {
        append(s[i], 40 + i);
        batch_add(b, &jobs[i]);
    }
    batch_run(b); /* the first is not freed when it has ended */
    assert_int_equal(jobs[0].err.kind, ERR_NONE);
    assert_non_null(strstr(jobs[1].err.text, "no room"));
    session_free(idle);
    batch_add(b, &jobs[1]);
    batch_run(b);
    assert_int_equal(jobs[1].err.kind, ERR_NONE);
    assert_true(jobs[1].began > 0 && jobs[1].generated > 0);
    batch_free(b);
    session_free(s[0]);
    session_free(s[1]);
    no_memory_left(g);
    engine_close(g);
}

static const struct CMUnitTest tests[] = {
    CLAIM("40 sessions on room for 10 write what each writes alone, in any order", t_crowd),
    CLAIM("a long prompt is read in turns, and nobody's writing waits for it", t_scheduler),
    CLAIM("a caller may pick tokens by their logits, and read without writing", t_pick),
    CLAIM("a session that can never fit gets its error, and the others end", t_too_large),
    CLAIM("beyond the bound there is an error, and what was there stays", t_refused),
    CLAIM("a session begins when there is room for its end", t_whole),
    CLAIM("who waits for sessions that nobody frees is told so", t_occupied),
};

int main(int argc, char **argv)
{
    crowd = (struct crowd){.n = CROWD_MOST, .longest = 1200, .tokens = CROWD_TOKENS, .seed = check_seed()};
    return tiny_main(argc, argv, check_seed(), tests, sizeof tests / sizeof *tests);
}
