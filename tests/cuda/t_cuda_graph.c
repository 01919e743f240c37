/* t_cuda_graph.c - tests of CUDA graphs of decode steps: recording, comparison and replay
 * (cuda/decode_graph.cu).
 *
 * Each step runs twice, as a graph and operation by operation.  The kernels are the same, so the results
 * must be bit-identical.
 */
#include "check.h"
#include "lab.h"

#include "emu/emu.h"
#include "src/ops/cuda.h"

enum { MOST = 5, D = 96, KV = 64, STEPS = 7, MANY = 40 };

static struct backend *b;

/* A small decode step: rows of many sessions, shared weights, separate states. */
struct workers {
    struct tensor table, norm, h, u, q, scratch, y;
    struct tensor many, product; /* for cuBLASLt: more rows than the own kernels take */
    struct weight *wide, *narrow;
    struct tensor k[MOST], v[MOST], last[MOST];
    int length[MOST];
};

static void workers_open(struct workers *c)
{
    struct tensor w = lab_make(b, DT_F32, KV, D, -1, 1), n = lab_make(b, DT_F32, D, KV, -1, 1);
    c->table = lab_make(b, DT_BF16, 50, D, -1, 1);
    c->norm = lab_make(b, DT_F32, 1, D, 0.5, 1.5);
    c->wide = b->ops->pack(b, w, DT_BF16);
    c->narrow = b->ops->pack(b, n, DT_BF16);
    c->many = lab_make(b, DT_BF16, MANY, D, -1, 1);
    c->product = b->ops->alloc(b, DT_BF16, MANY, KV);
    struct tensor *rows[] = {&c->h, &c->u};
    for (int i = 0; i < 2; i++)
        *rows[i] = b->ops->alloc(b, DT_BF16, MOST, D);
    struct tensor *heads[] = {&c->q, &c->scratch, &c->y};
    for (int i = 0; i < 3; i++)
        *heads[i] = b->ops->alloc(b, DT_BF16, MOST, KV);
    lab_drop(b, 2, (struct tensor *const[]){&w, &n});
}

static void workers_close(struct workers *c)
{
    b->ops->weight_free(b, c->wide);
    b->ops->weight_free(b, c->narrow);
    lab_drop(b, 9,
             (struct tensor *const[]){&c->table, &c->norm, &c->h, &c->u, &c->q, &c->scratch, &c->y, &c->many,
                                      &c->product});
}

/* Opens sessions of different lengths, or all of length -longest if that is negative; both copies get equal
 * numbers. */
static void sessions_open(struct workers *c, struct workers *twin, int n, int longest)
{
    for (int i = 0; i < n; i++) {
        int rows = abs(longest) + STEPS;
        c->length[i] = twin->length[i] = longest < 0 ? -longest : lab_between(1, longest);
        c->k[i] = lab_make(b, DT_BF16, rows, KV, -1, 1);
        c->v[i] = lab_make(b, DT_BF16, rows, KV, -1, 1);
        c->last[i] = lab_make(b, DT_BF16, 1, D, -1, 1);
        twin->k[i] = lab_twin(b, c->k[i]);
        twin->v[i] = lab_twin(b, c->v[i]);
        twin->last[i] = lab_twin(b, c->last[i]);
    }
}

static void sessions_close(struct workers *c, int n)
{
    for (int i = 0; i < n; i++)
        lab_drop(b, 3, (struct tensor *const[]){&c->k[i], &c->v[i], &c->last[i]});
}

static void extend(struct workers *c, int n, struct tensor *const caches, struct tensor *out)
{
    struct tensor row[MOST];
    for (int i = 0; i < n; i++) {
        out[i] = tensor_rows(caches[i], 0, c->length[i] + 1);
        row[i] = tensor_rows(out[i], c->length[i], 1);
    }
    b->ops->linear(b, tensor_rows(c->scratch, 0, n), tensor_rows(c->u, 0, n), c->wide, (struct tensor){0},
                   EPI_NONE, SET);
    b->ops->scatter(b, row, tensor_rows(c->scratch, 0, n));
}

static void work(struct workers *c, int n, const int32_t *ids, bool more)
{
    struct tensor none = {0}, k[MOST], v[MOST], h = tensor_rows(c->h, 0, n), u = tensor_rows(c->u, 0, n),
                  q = tensor_rows(c->q, 0, n), y = tensor_rows(c->y, 0, n);
    b->ops->embed(b, h, c->table, ids);
    b->ops->linear(b, c->product, c->many, c->wide, none, EPI_NONE, SET);
    b->ops->rmsnorm(b, u, h, c->norm, 1e-5f);
    b->ops->linear(b, q, u, c->wide, none, EPI_NONE, SET);
    extend(c, n, c->k, k);
    extend(c, n, c->v, v);
    /* one session with one key, which needs less working memory than all; its launches never change */
    struct tensor first = tensor_rows(c->scratch, 0, 1), one_k = tensor_rows(k[0], 0, 1),
                  one_v = tensor_rows(v[0], 0, 1);
    b->ops->attend_batch(b, first, tensor_rows(q, 0, 1), &one_k, &one_v, 1, 1);
    b->ops->attend_batch(b, y, q, k, v, 1, 1);
    b->ops->linear(b, tensor_rows(h, 0, 1), first, c->narrow, none, EPI_NONE, ADD);
    b->ops->linear(b, h, y, c->narrow, none, EPI_NONE, ADD);
    b->ops->scatter(b, c->last, h);
    if (more)
        b->ops->scatter(b, c->last, u);
    for (int i = 0; i < n; i++)
        c->length[i]++;
}

static void same(struct tensor x, struct tensor y)
{
    assert_memory_equal(x.data, y.data, (size_t)(x.rows * x.cols) * dtype_size(x.dtype));
}

static void same_sessions(const struct workers *c, const struct workers *twin, int n)
{
    for (int i = 0; i < n; i++) {
        same(c->k[i], twin->k[i]);
        same(c->v[i], twin->v[i]);
        same(c->last[i], twin->last[i]);
    }
}

/* Runs the steps of both copies.  From step `change` on they do more work under the same key, or less if it
 * is negative. */
static void steps(int n, int longest, int change, uint64_t key)
{
    static struct workers c, twin;
    workers_open(&c);
    twin = c;
    twin.product = lab_twin(b, c.product);
    sessions_open(&c, &twin, n, longest);
    for (int step = 0; step < STEPS; step++) {
        int32_t ids[MOST];
        bool twice = change < 0 ? step < -change : step >= change;
        for (int i = 0; i < n; i++)
            ids[i] = lab_between(0, 49);
        b->ops->graph_begin(b, key); /* first, so that working memory has not grown yet */
        work(&c, n, ids, twice);
        b->ops->graph_end(b);
        work(&twin, n, ids, twice);
        same(c.product, twin.product);
        lab_poison(c.product);
        same_sessions(&c, &twin, n);
    }
    sessions_close(&c, n);
    sessions_close(&twin, n);
    workers_close(&c);
    b->ops->free(b, &twin.product);
}

static void t_again(void **state)
{
    steps(3, 40, STEPS, 1);
    steps(1, 20, STEPS, 2);
    steps(5, 300, STEPS, 3); /* several blocks of keys */
}

/* Between two tokens only the graph nodes with changed arguments are updated. */
static void t_unchanged(void **state)
{
    if (!&emu_card)
        skip();
    static struct workers c, twin;
    int32_t ids[MOST] = {3, 1, 4, 1, 5};
    workers_open(&c);
    twin = c;
    sessions_open(&c, &twin, 2, 30);
    for (int step = 0; step < STEPS; step++) {
        long before = emu_card.updated;
        b->ops->graph_begin(b, 300);
        work(&c, 2, ids, false);
        b->ops->graph_end(b);
        c.length[0]--, c.length[1]--;
        if (step > 2)
            assert_int_equal(emu_card.updated, before);
    }
    long before = emu_card.updated;
    ids[0] = 7;
    b->ops->graph_begin(b, 300);
    work(&c, 2, ids, false);
    b->ops->graph_end(b);
    assert_int_equal(emu_card.updated, before + 1); /* the node that reads rows of the table */
    sessions_close(&c, 2);
    sessions_close(&twin, 2);
    workers_close(&c);
}

/* Uses other sessions and buffers under a key that has been recorded. */
static void t_others(void **state)
{
    struct tensor held[3]; /* forces other addresses for the next allocations */
    for (int i = 0; i < 3; i++) {
        steps(2, 10 + 60 * i, STEPS, 4);
        held[i] = b->ops->alloc(b, DT_BF16, MANY, KV);
    }
    for (int i = 0; i < 3; i++)
        b->ops->free(b, &held[i]);
}

static void t_changes(void **state)
{
    for (int change = 1; change < STEPS; change++)
        steps(3, 30, change, 10 + (uint64_t)change), steps(3, 30, -change, 30 + (uint64_t)change);
    steps(3, -124, STEPS, 20); /* sessions grow from one block of keys to two */
}

static void t_many_keys(void **state)
{
    for (uint64_t key = 100; key < 180; key++)
        steps(1, 3, STEPS, key % 70);
}

/* Uses a device with little memory: all sessions reach their second block of keys at once, after an
 * operation that needs one block only. */
static void t_grows(void **state)
{
    backend_free(b);
    b = lab_gpu();
    steps(5, -124, STEPS, 1);
}

/* A captured graph that is not a chain is detected at each of its nodes. */
static void t_odd(void **state)
{
    if (!&emu_card)
        skip();
    for (long at = 1; at <= 12; at++) {
        emu_card.odd = at;
        steps(2, 20, STEPS, 200 + (uint64_t)at);
        assert_int_equal(emu_card.odd, 0); /* the code has queried this node */
    }
}

/* With programmatic dependent launch, kernels start before the previous one has ended.  emu/watch.h checks
 * each access that they make until then. */
static void t_overlap(void **state)
{
    if (!&emu_card)
        skip();
    long before = emu_card.overlapped;
    backend_free(b);
    b = lab_gpu();
    steps(3, 40, STEPS, 1);
    assert_true(emu_card.overlapped > before);
    backend_free(b);
    emu_card.overlaps = false; /* a driver without such launches */
    b = lab_gpu();
    before = emu_card.overlapped;
    long graphs = emu_card.graphs;
    steps(3, 40, STEPS, 1);
    assert_int_equal(emu_card.overlapped, before);
    assert_true(emu_card.graphs > graphs);
    emu_card.overlaps = true;
    backend_free(b);
    b = lab_gpu();
    graphs = emu_card.graphs;
    emu_card.odd = 3; /* capture fails with such launches */
    steps(3, 40, STEPS, 1);
    assert_true(emu_card.graphs > graphs);
    emu_card.major = 8;
    backend_free(b);
    b = lab_gpu();
    before = emu_card.overlapped;
    steps(3, 40, STEPS, 1);
    assert_int_equal(emu_card.overlapped, before);
    emu_card.major = 9;
}

static const struct CMUnitTest tests[] = {
    CLAIM("kernels overlap if the device and the driver support it", t_overlap),
    CLAIM("a replayed step has the same bits as its operations one by one", t_again),
    CLAIM("graph nodes whose arguments have not changed are not updated", t_unchanged),
    CLAIM("a step with other sessions, lengths and buffers under the same key has the same bits", t_others),
    CLAIM("a step that differs from the recorded one is detected and correct", t_changes),
    CLAIM("working memory that grows within a step stays valid for operations that already use it", t_grows),
    CLAIM("more kinds of steps than the cache holds are correct", t_many_keys),
    CLAIM("a step that cannot be recorded runs operation by operation", t_odd),
};

CHECK_MAIN_WITH((lab_random = check_seed(), b = lab_gpu()), backend_free(b))
