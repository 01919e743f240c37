/* t_scheduler_engine.c - tests threads that share one engine: each gets the results of running alone, waits
 * are bounded, and threads that decode share a batch. t_cuda_scheduler.c tests the same on a GPU.
 */
#include "pool_check.h"
#include "threads.h"
#include "tiny_check.h"

#include "base/flag.h"
#include "session/generate.h"
#include "session/session_impl.h"

#include <pthread.h>

static struct engine *shared(int threads)
{
    return threads_engine(&tiny, "cpu", 0, true, threads);
}

/* ---- alone and together ---------------------------------------------------------------------- */

static void crowd_of(int n, int rounds, int threads, uint64_t seed)
{
    struct threads c = {.rounds = rounds, .longest = 1200 / rounds, .seed = seed};
    struct played *alone = xcalloc(THREADS_MOST, sizeof *alone);
    struct engine *g = threads_engine(&tiny, "cpu", 0, false, 1);
    for (int i = 0; i < n; i++)
        threads_alone(&c, g, i, &alone[i]);
    engine_close(g);
    g = shared(threads);
    threads_play(&c, g, n, alone);
    threads_alone(&c, g, 0, &alone[1]); /* alone on a shared engine */
    assert_true(alone[0].hash == alone[1].hash && alone[0].n == alone[1].n);
    struct scheduler_stats k = engine_scheduler_stats(g);
    check_note("%d threads: %lld turns, %lld batches of %.2f rows, %lld turns waited at most", n,
               (long long)k.exclusive, (long long)k.batches, (double)k.rows / (double)k.batches,
               (long long)k.most_waited);
    /* one exclusive grant of each other thread, and a batch between any two */
    assert_true(k.most_waited <= 2 * n);
    assert_int_equal(k.waiting, 0);
    check_note("%d cached prefixes", g->prefixes.n);
    assert_true(g->prefixes.n > 0);
    prefix_cache_free(&g->prefixes);
    assert_int_equal(engine_state_memory(g).used, 0);
    engine_close(g);
    free(alone);
}

static void t_eight(void **state)
{
    for (uint64_t i = 0; i < 3; i++)
        crowd_of(8, 4, 1 + (int)i, check_seed() + i);
}

static void t_crowd(void **state)
{
    crowd_of(THREADS_MOST, 2, 2, check_seed());
}

/* ---- batches --------------------------------------------------------------------------------- */

struct looker {
    struct session *s;
    pthread_t id;
    struct err err;
    int rc;
    uint64_t hash;
};

static void *look(void *arg)
{
    struct looker *l = arg;
    l->rc = session_compute_logits(l->s, &l->err);
    return NULL;
}

static void start(struct looker *l)
{
    assert_int_equal(pthread_create(&l->id, NULL, look, l), 0);
}

static void *write_reply(void *arg)
{
    struct looker *l = arg;
    struct sampling p = {.max_tokens = 12, .top_p = 1, .temperature = 1};
    struct generated out;
    l->rc = generate(l->s, &(struct generation){.sampling = p}, &out, &l->err);
    l->hash = out.logits_hash;
    generated_free(&out);
    return NULL;
}

/* Starts all replies at the same time, each with one pending token. */
static struct scheduler_stats replies(struct engine *g, struct looker *all, int n)
{
    struct scheduler_stats before = engine_scheduler_stats(g);
    engine_enter(g, NULL);
    for (int i = 0; i < n; i++)
        assert_int_equal(pthread_create(&all[i].id, NULL, write_reply, &all[i]), 0);
    threads_wait(g->scheduler, n);
    engine_leave(g);
    for (int i = 0; i < n; i++)
        pthread_join(all[i].id, NULL);
    struct scheduler_stats after = engine_scheduler_stats(g);
    return (struct scheduler_stats){.batches = after.batches - before.batches,
                                    .rows = after.rows - before.rows};
}

static void t_together(void **state)
{
    enum { N = 16 };
    struct engine *g = shared(2);
    struct looker all[N] = {{.rc = 0}}, alone[N] = {{.rc = 0}};
    int tokens = 0;
    for (int i = 0; i < N; i++) {
        all[i].s = session_new(g, (uint64_t)i);
        tiny_append(all[i].s, i, 5 + i);
        assert_int_equal(session_compute_logits(all[i].s, NULL), 0);
        tiny_append(all[i].s, i, 1);
        alone[i].s = session_new(g, (uint64_t)i);
        tiny_append(alone[i].s, i, 5 + i);
        session_logits(alone[i].s);
        tiny_append(alone[i].s, i, 1);
        write_reply(&alone[i]);
    }
    struct scheduler_stats k = replies(g, all, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(all[i].rc, 0);
        assert_true(all[i].hash == alone[i].hash);
        tokens += (int)(session_length(all[i].s) - 6 - i);
        session_free(all[i].s);
        session_free(alone[i].s);
    }
    check_note("%lld batches of %.2f rows", (long long)k.batches, (double)k.rows / (double)k.batches);
    assert_int_equal(k.rows, tokens);
    assert_true(k.batches <= k.rows - (N - 1)); /* the first batch has all rows */
    engine_close(g);
}

struct polite { /* decodes while another session prefills or encodes an image */
    struct engine *engine;
    struct looker writer;
    int first; /* first layer or block that is counted */
    int parts; /* chunks or tiles so far */
    bool served;
};

static void part_begins(void *arg, int layer, struct tensor t)
{
    struct polite *p = arg;
    if (t.rows == 1 || layer != p->first || ++p->parts > 2)
        return;
    if (p->parts == 1) {
        start(&p->writer);
        threads_wait(p->engine->scheduler, 1);
    } else {
        p->served = p->writer.s->logits_at == p->writer.s->n;
    }
}

static struct polite polite(struct engine *g, int first)
{
    struct polite p = {.engine = g, .writer = {.s = session_new(g, 1)}, .first = first};
    tiny_append(p.writer.s, 1, 9);
    session_logits(p.writer.s);
    tiny_append(p.writer.s, 1, 1);
    return p;
}

static void t_pieces(void **state)
{
    struct engine *g = shared(1);
    struct polite p = polite(g, 0);
    struct session *s = session_new(g, 1);
    tiny_append(s, 3, 2 * LANGUAGE_ROWS);
    g->language.watch = part_begins;
    g->language.watch_arg = &p;
    assert_int_equal(session_prefill(s, NULL), 0);
    pthread_join(p.writer.id, NULL);
    assert_true(p.parts >= 2 && p.served);
    session_free(p.writer.s);
    session_free(s);
    engine_close(g);
}

static void t_tiles(void **state)
{
    struct engine *g = shared(1);
    struct polite p = polite(g, -1);
    struct session *s = session_new(g, 1);
    struct image im = tiny_image(190, 120, 3);
    g->vision.watch = part_begins;
    g->vision.watch_arg = &p;
    assert_int_equal(session_append_image(s, &im, NULL), 0);
    pthread_join(p.writer.id, NULL);
    assert_true(p.parts >= 2 && p.served);
    session_free(p.writer.s);
    session_free(s);
    image_free(&im);
    engine_close(g);
}

/* A session that does not fit gets an error; the others of its batch get their tokens. */
static void t_no_room(void **state)
{
    struct engine *g = threads_engine(&tiny, "cpu", 0, false, 1);
    size_t bound = 2 * pool_check_need(g, 512) + 1000;
    engine_close(g);
    g = threads_engine(&tiny, "cpu", bound, true, 1);
    struct looker all[3] = {{.rc = 0}};
    for (int i = 0; i < 3; i++) {
        all[i].s = session_new(g, 1);
        tiny_append(all[i].s, i, i == 2 ? 1 : 5);
    }
    assert_int_equal(session_compute_logits(all[0].s, NULL), 0);
    assert_int_equal(session_compute_logits(all[1].s, NULL), 0);
    tiny_append(all[0].s, 1, 1);
    tiny_append(all[1].s, 1, 1);
    engine_enter(g, NULL);
    for (int i = 0; i < 3; i++) {
        start(&all[i]);
        threads_wait(g->scheduler, i + 1);
    }
    engine_leave(g);
    for (int i = 0; i < 3; i++)
        pthread_join(all[i].id, NULL);
    assert_true(all[0].rc == 0 && all[1].rc == 0);
    assert_int_equal(all[2].rc, -1);
    assert_non_null(strstr(all[2].err.text, "not enough memory"));
    for (int i = 0; i < 3; i++)
        session_free(all[i].s);
    engine_close(g);
}

/* ---- stopping one session -------------------------------------------------------------------- */

static volatile int stop;
static int layers_left;

/* Stops in the second chunk of the long prompt; no other session has a chunk of that size. */
static void stop_reader(void *arg, int layer, struct tensor h)
{
    if (h.rows == LANGUAGE_ROWS && layers_left-- == 0)
        flag_set(&stop, 1);
}

static void t_cancel(void **state)
{
    struct threads c = {.rounds = 3, .longest = 60, .seed = check_seed()};
    struct played *alone = xcalloc(THREADS_MOST, sizeof *alone);
    struct engine *g = shared(1);
    for (int i = 0; i < 6; i++)
        threads_alone(&c, g, i, &alone[i]);
    struct looker reader = {.s = session_new(g, 1)};
    struct session *straight = session_new(g, 1);
    flag_set(&stop, 0);
    session_set_cancel(reader.s, &stop);
    tiny_append(reader.s, 3, 24);
    tiny_append(straight, 3, 24);
    session_logits(straight);
    tiny_append(straight, 4, 1800);
    session_logits(straight);
    struct checkpoint *mark = session_checkpoint(reader.s);
    for (int asked = 1; asked < 12; asked += 5) {
        flag_set(&stop, 0);
        layers_left = asked;
        tiny_append(reader.s, 4, 1800);
        g->language.watch = stop_reader;
        start(&reader);
        threads_play(&c, g, 6, alone); /* the other sessions are not affected */
        pthread_join(reader.id, NULL);
        g->language.watch = NULL;
        assert_int_equal(reader.rc, -1);
        assert_int_equal(reader.err.kind, ERR_STOPPED);
        /* works while the session is stopped, too */
        assert_int_equal(session_rewind(reader.s, mark, NULL), 0);
    }
    flag_set(&stop, 0);
    tiny_append(reader.s, 4, 1800);
    assert_int_equal(session_compute_logits(reader.s, NULL), 0);
    assert_memory_equal(session_logits(reader.s), session_logits(straight),
                        (size_t)engine_vocab(g) * sizeof(float));
    checkpoint_free(mark);
    session_free(reader.s);
    session_free(straight);
    engine_close(g);
    free(alone);
}

/* A session stopped while it waits for its grant has not changed. */
static void t_cancel_waiting(void **state)
{
    for (int prompt = 1; prompt < 100; prompt += 50) {
        struct engine *g = shared(1);
        struct looker l = {.s = session_new(g, 1)};
        struct image im = tiny_image(60, 60, 1);
        tiny_append(l.s, 1, 9);
        assert_int_equal(session_compute_logits(l.s, NULL), 0);
        tiny_append(l.s, 2, prompt);
        flag_set(&stop, 0);
        session_set_cancel(l.s, &stop);
        engine_enter(g, NULL);
        start(&l);
        threads_wait(g->scheduler, 1);
        flag_set(&stop, 1);
        pthread_join(l.id, NULL);
        engine_leave(g);
        assert_int_equal(l.rc, -1);
        assert_int_equal(l.err.kind, ERR_STOPPED);
        assert_int_equal(session_append_image(l.s, &im, NULL), -1);
        assert_null(session_try_checkpoint(l.s, NULL));
        session_set_cancel(l.s, NULL);
        assert_int_equal(session_compute_logits(l.s, NULL), 0);
        assert_int_equal(session_length(l.s), 9 + prompt);
        session_free(l.s);
        image_free(&im);
        engine_close(g);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("8 threads get the bits of running alone", t_eight),
    CLAIM("32 threads get the bits of running alone; each waits at most once for each other", t_crowd),
    CLAIM("threads that wait for a token share one batch", t_together),
    CLAIM("others get a token between the chunks of a prompt", t_pieces),
    CLAIM("others get a token between the tiles of an image", t_tiles),
    CLAIM("a session without room does not disturb its batch", t_no_room),
    CLAIM("a stopped prefill disturbs no other session, and continues from its checkpoint", t_cancel),
    CLAIM("a session stopped while it waits has lost nothing", t_cancel_waiting),
};

TINY_MAIN(check_seed())
