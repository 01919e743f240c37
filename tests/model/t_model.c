/* t_model.c - tests of the forward pass with a random tiny model: the result is the same for many tokens at
 * once or one by one, split anywhere, on any instruction set and number of threads, with images cached or
 * not. */
#include "check.h"
#include "tiny_model.h"

#include "session/session_impl.h"

#include <math.h>

static int32_t random_token(uint64_t *rng)
{
    return 16 + (int32_t)(check_random(rng) * 256);
}

static void append(struct session *s, const int32_t *ids, int64_t n)
{
    struct err e = ERR_INIT;
    if (session_append(s, ids, n, &e))
        fail_msg("%s", e.text);
}

static void append_image(struct session *s, const struct image *im)
{
    struct err e = ERR_INIT;
    if (session_append_image(s, im, &e))
        fail_msg("%s", e.text);
}

/* Returns the logits after the tokens, appended in pieces that end at cut[]; the caller frees them. */
static float *run(struct engine *g, const int32_t *ids, int n, const int *cut, int cuts)
{
    struct session *s = session_new(g, 1);
    for (int i = 0, from = 0; i <= cuts; i++) {
        int to = i < cuts ? cut[i] : n;
        append(s, ids + from, to - from);
        session_logits(s);
        from = to;
    }
    float *out = malloc((size_t)engine_vocab(g) * sizeof *out);
    memcpy(out, session_logits(s), (size_t)engine_vocab(g) * sizeof *out);
    session_free(s);
    return out;
}

static struct engine *open_random(struct tiny *t, const char *isa, int threads, bool f32)
{
    tiny_init(t, check_seed());
    tiny_write(t);
    return tiny_open(t, isa, threads, f32);
}

/* ---- splits ---------------------------------------------------------------------------------- */

static void check_splits(struct engine *g, int n, int rounds, double most)
{
    uint64_t rng = check_seed() + (uint64_t)n;
    int32_t *ids = malloc((size_t)n * sizeof *ids);
    int *all = malloc((size_t)n * sizeof *all), cut[8];
    for (int i = 0; i < n; i++) {
        ids[i] = random_token(&rng);
        all[i] = i + 1;
    }
    float *single = run(g, ids, n, all, n - 1);
    double worst = 0;
    for (int round = 0; round < rounds; round++) {
        int cuts = round == 0 ? 0 : 1 + (int)(check_random(&rng) * 4), at = 0;
        for (int i = 0; i < cuts; i++) {
            int left = n - at - (cuts - i);
            at = cut[i] = at + 1 + (int)(check_random(&rng) * (left > 12 && i == 0 ? 12 : left));
        }
        float *split = run(g, ids, n, cut, cuts);
        worst = fmax(worst, tiny_distance(single, split, engine_vocab(g)));
        free(split);
    }
    check_note("%s: %d tokens, %d ways to cut them, worst difference %.1e", engine_isa(g), n, rounds, worst);
    assert_true(worst < most);
    free(single);
    free(ids);
    free(all);
}

static void t_splits(void **state)
{
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    for (int i = 0; i < n; i++) {
        struct tiny t;
        struct engine *g = open_random(&t, names[i], 1, true);
        check_splits(g, 50, 25, 2e-5);
        check_splits(g, 9, 10, 2e-5);
        if (i > 0)
            check_splits(g, 1100, 4, 1e-4); /* longer than LANGUAGE_ROWS */
        engine_close(g);
        tiny_free(&t);
    }
}

/* Returns the logits after n tokens, prefilled in chunks of `rows`. */
static float *run_in_chunks(struct engine *g, const int32_t *ids, int n, int rows)
{
    language_free(&g->language);
    g->backend->prompt_rows = rows;
    language_init(&g->language, &g->config.lm, &g->weights, g->backend, g->act);
    return run(g, ids, n, &n, 0);
}

static void t_chunks(void **state)
{
    enum { N = 1700 };
    static const int rows[] = {130, 600, 1024, 2048};
    int32_t ids[N];
    struct tiny t;
    struct engine *g = open_random(&t, NULL, 1, true);
    uint64_t rng = check_seed() + 3;
    for (int i = 0; i < N; i++)
        ids[i] = random_token(&rng);
    float *usual = run_in_chunks(g, ids, N, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float *other = run_in_chunks(g, ids, N, rows[i]);
        double gap = tiny_distance(usual, other, engine_vocab(g));
        check_note("chunks of %d: logits differ by %.1e", rows[i], gap);
        assert_true(gap < 1e-4);
        free(other);
    }
    free(usual);
    engine_close(g);
    tiny_free(&t);
}

/* Chunks are contiguous and none has a single token.  In a long text the first ones are small, because
 * sessions can only reuse whole chunks of others.  No session reuses an image: a chunk with one is large. */
static void t_chunk_sizes(void **state)
{
    struct tiny t;
    struct engine *g = open_random(&t, NULL, 1, true);
    struct language m = g->language;
    for (m.rows = LANGUAGE_ROWS; m.rows <= 4 * LANGUAGE_ROWS; m.rows *= 2)
        for (int64_t n = 2; n < 9000; n += 1 + n / 97)
            for (int64_t done = 0, rows; done < n; done += rows) {
                int64_t image = n / 3, text = done < image ? image - done : done == image ? 0 : n - done;
                bool small = done < m.rows && m.rows > LANGUAGE_ROWS && text >= LANGUAGE_ROWS;
                rows = language_chunk(&m, done, n - done, text);
                if (!small && n - done > m.rows + 1)
                    assert_int_equal(rows, m.rows);
                assert_in_range(rows, 2, small ? LANGUAGE_ROWS : m.rows);
                if (small && n - done - rows > LANGUAGE_ROWS)
                    assert_true(rows % LANGUAGE_ROWS == 0 || n - done == m.rows + 1);
            }
    engine_close(g);
    tiny_free(&t);
}

/* Text ends at the first token of an image that is not before `first`; inside an image there is none. */
static void t_text_before_images(void **state)
{
    const struct image_rows two[] = {{.at = 100, .rows = {.rows = 50}}, {.at = 300, .rows = {.rows = 20}}};
    static const struct {
        int n;
        int64_t first, end, text;
    } cases[] = {{0, 0, 900, 900},   {1, 0, 900, 100},   {1, 99, 900, 1},    {1, 100, 900, 0},
                 {1, 149, 900, 0},   {1, 150, 900, 750}, {1, 0, 100, 100},   {1, 0, 101, 100},
                 {2, 0, 900, 100},   {2, 120, 900, 0},   {2, 150, 900, 150}, {2, 319, 900, 0},
                 {2, 320, 900, 580}, {2, 160, 300, 140}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(language_text(two, cases[i].n, cases[i].first, cases[i].end), cases[i].text);
    const struct image_rows turned[] = {two[1], two[0]};
    assert_int_equal(language_text(turned, 2, 0, 900), 100);
}

/* ---- instruction sets and threads ------------------------------------------------------------ */

static float *run_mixed(struct engine *g, int n)
{
    uint64_t rng = check_seed() + 7;
    struct session *s = session_new(g, 1);
    for (int i = 0; i < n; i++) {
        int32_t id = random_token(&rng);
        append(s, &id, 1);
        if (i % 40 == 20) {
            struct image im = tiny_image(150, 100, (uint64_t)i);
            append_image(s, &im);
            image_free(&im);
        }
        if (i % 13 == 5)
            session_logits(s);
    }
    float *out = malloc((size_t)engine_vocab(g) * sizeof *out);
    memcpy(out, session_logits(s), (size_t)engine_vocab(g) * sizeof *out);
    session_free(s);
    return out;
}

static void t_isas(void **state)
{
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    struct tiny t;
    struct engine *g = open_random(&t, "ref", 1, true);
    float *ref = run_mixed(g, 60);
    engine_close(g);
    for (int i = 1; i < n; i++) {
        double d[2];
        for (int f32 = 0; f32 < 2; f32++) {
            g = tiny_open(&t, names[i], 1, f32);
            float *got = run_mixed(g, 60);
            d[f32] = tiny_distance(ref, got, engine_vocab(g));
            free(got);
            engine_close(g);
        }
        check_note("%s: f32 differs from the reference by %.1e, bf16 by %.1e", names[i], d[1], d[0]);
        assert_true(d[1] < 5e-5); /* some random models amplify errors a hundred times; a mistake gives 1 */
        assert_true(d[0] < 0.3);
    }
    free(ref);
    tiny_free(&t);
}

static void t_threads(void **state)
{
    struct tiny t;
    struct engine *one = open_random(&t, NULL, 1, false), *two = tiny_open(&t, NULL, 2, false),
                  *three = tiny_open(&t, NULL, 3, false);
    float *a = run_mixed(one, 90), *b = run_mixed(two, 90), *c = run_mixed(three, 90);
    assert_memory_equal(a, b, (size_t)engine_vocab(one) * sizeof *a);
    assert_memory_equal(a, c, (size_t)engine_vocab(one) * sizeof *a);
    free(a);
    free(b);
    free(c);
    engine_close(one);
    engine_close(two);
    engine_close(three);
    tiny_free(&t);
}

/* ---- images ---------------------------------------------------------------------------------- */

static void t_cache(void **state)
{
    struct tiny t;
    struct engine *g = open_random(&t, NULL, 1, false), *fresh = tiny_open(&t, NULL, 1, false);
    struct image im = tiny_image(192, 128, check_seed()), other = tiny_image(192, 128, check_seed() + 1);
    struct session *s = session_new(g, 1), *again = session_new(g, 1), *cold = session_new(fresh, 1);
    int cols, rows;
    assert_int_equal(engine_image_tokens(g, 192, 128, &cols, &rows), 7 * 4);
    assert_int_equal(cols * 10 + rows, 32);
    append_image(s, &im);
    struct session_stats st = session_stats(s);
    assert_int_equal(st.tiles_computed, 7);
    assert_int_equal(session_length(s), 7 * 4 + 2);
    assert_int_equal(session_tokens(s)[0], 273);
    assert_int_equal(session_tokens(s)[1], 272);
    assert_int_equal(session_tokens(s)[29], 274);

    /* another image with the same first tile: six tiles are new, including the thumbnail */
    for (int y = 0; y < 64; y++)
        memcpy(other.rgb + (size_t)y * 576, im.rgb + (size_t)y * 576, 64 * 3);
    append_image(again, &other);
    st = session_stats(again);
    check_note("an image with one common tile: %d computed, %d from the cache", (int)st.tiles_computed,
               (int)st.tiles_cached);
    assert_int_equal(st.tiles_computed, 6);
    assert_int_equal(st.tiles_cached, 1);
    append_image(cold, &other);
    assert_int_equal(session_stats(cold).tiles_computed, 7);
    assert_memory_equal(session_logits(again), session_logits(cold), (size_t)engine_vocab(g) * sizeof(float));

    /* all tiles are equal: only one is encoded */
    memset(im.rgb, 200, 192 * 128 * 3);
    append_image(again, &im);
    st = session_stats(again);
    check_note("an image of one colour: %d more computed", (int)st.tiles_computed - 6);
    assert_true(st.tiles_computed <= 6 + 3); /* tiles at the edges may differ in the last bit */
    session_free(s);
    session_free(again);
    session_free(cold);
    image_free(&im);
    image_free(&other);
    engine_close(g);
    engine_close(fresh);
    tiny_free(&t);
}

/* Returns the number of cached tiles when an image of one tile is appended. */
static int64_t cached_of(struct engine *g, uint64_t seed)
{
    struct image im = tiny_image(60, 60, seed);
    struct session *s = session_new(g, 1);
    append_image(s, &im);
    int64_t cached = session_stats(s).tiles_cached;
    session_free(s);
    image_free(&im);
    return cached;
}

/* With a cache of two tiles the least recently used one is replaced. */
static void forgets_in_order(struct engine *g)
{
    static const int seen[] = {1, 2, 1, 3, 1, 2}, cached[] = {0, 0, 1, 0, 1, 0};
    g->vision.cache_max = 2;
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
        assert_int_equal(cached_of(g, (uint64_t)seen[i]), cached[i]);
}

static void t_cache_full(void **state)
{
    struct tiny t;
    struct engine *g = open_random(&t, NULL, 1, false), *fresh = tiny_open(&t, NULL, 1, false);
    g->vision.cache_max = 8;
    for (int i = 0; i < 12; i++) {
        struct image im = tiny_image(100 + i % 5 * 40, 90, (uint64_t)(i % 7));
        struct session *s = session_new(g, 1), *cold = session_new(fresh, 1);
        append_image(s, &im);
        append_image(cold, &im);
        assert_memory_equal(session_logits(s), session_logits(cold), (size_t)engine_vocab(g) * sizeof(float));
        assert_true(g->vision.cached <= 8);
        session_free(s);
        session_free(cold);
        image_free(&im);
    }
    engine_close(g);
    engine_close(fresh);
    fresh = tiny_open(&t, NULL, 1, false);
    forgets_in_order(fresh);
    engine_close(fresh);
    tiny_free(&t);
}

/* If two tiles of an image are swapped, their rows must be swapped too. */
static void t_places(void **state)
{
    struct tiny t;
    tiny_init(&t, check_seed());
    tiny_edit(&t.config, "\"use_thumbnail\":true", "\"use_thumbnail\":false");
    tiny_write(&t);
    struct engine *g = tiny_open(&t, NULL, 1, true);
    struct image im = tiny_image(128, 64, 3), left = tiny_image(64, 64, 0), right = tiny_image(64, 64, 0);
    for (int y = 0; y < 64; y++) {
        memcpy(left.rgb + (size_t)y * 192, im.rgb + (size_t)y * 384, 192);
        memcpy(right.rgb + (size_t)y * 192, im.rgb + (size_t)y * 384 + 192, 192);
    }
    struct session *s = session_new(g, 1), *l = session_new(g, 1), *r = session_new(g, 1);
    append_image(s, &im);
    append_image(l, &left);
    append_image(r, &right);
    assert_int_equal(session_length(s), 2 * 4 + 2);
    int64_t row = 4 * 40 * sizeof(float);
    const float *whole = s->images[0].rows.data;
    double d = tiny_distance(whole, l->images[0].rows.data, 160) +
               tiny_distance(whole + 160, r->images[0].rows.data, 160);
    check_note("tiles alone and side by side differ by %.1e", d);
    assert_true(d < 1e-5); /* the filter extends beyond the tile, with zero weights */
    assert_true(memcmp(whole, whole + 160, (size_t)row) != 0);
    session_free(s);
    session_free(l);
    session_free(r);
    image_free(&im);
    image_free(&left);
    image_free(&right);
    engine_close(g);
    tiny_free(&t);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void resize(const float *table, int side, float *out, int grid, int width)
{
    tensor_resize_grid((struct tensor){out, DT_F32, grid * grid, width, width},
                       (struct tensor){(void *)(uintptr_t)table, DT_F32, side * side, width, width}, grid,
                       grid);
}

static void t_position(void **state)
{
    uint64_t rng = check_seed();
    int width = 3;
    float *table = malloc((size_t)(128 * 128 * width) * sizeof *table),
          *out = malloc((size_t)(128 * 128 * width) * 4);
    for (int i = 0; i < 128 * 128 * width; i++)
        table[i] = (float)check_random(&rng) - 0.5f;
    resize(table, 128, out, 32, width); /* source coordinate 4r + 1.5: the mean of four cells */
    for (int r = 0; r < 32; r++)
        for (int c = 0; c < 32; c++)
            for (int k = 0; k < width; k++) {
                float want = 0;
                for (int i = 0; i < 4; i++)
                    want += 0.25f * table[((4 * r + 1 + i / 2) * 128 + 4 * c + 1 + i % 2) * width + k];
                assert_true(fabsf(want - out[(r * 32 + c) * width + k]) < 1e-6f);
            }
    resize(table, 40, out, 40, width);
    assert_memory_equal(out, table, 40 * 40 * 3 * sizeof *out);
    resize(table, 2, out, 4, 1); /* enlarging repeats the edges */
    assert_true(out[0] == table[0] && out[15] == table[3]);
    assert_true(fabsf(out[1] - (0.75f * table[0] + 0.25f * table[1])) < 1e-6f);
    free(table);
    free(out);
}

/* Uses the older spellings of keys. */
static void spell_old(struct tiny *t)
{
    tiny_edit(&t->config, "llm_config", "text_config");
    tiny_edit(&t->config, "\"head_dim\":12", "\"attention_head_dim\":12");
    tiny_edit(&t->config, "[0.0,Infinity]", "[0.0,{\"__float__\":\"Infinity\"}]");
    tiny_edit(&t->config, "\"intermediate_size\":56", "\"intermediate_size\":[56]");
    tiny_edit(&t->config, "\"layer_norm_epsilon\"", "\"norm_eps\"");
    tiny_edit(&t->config, "\"img_context_token_id\"", "\"image_context_token_id\"");
}

/* Uses the spellings of some files saved by transformers 5, and omits keys that the tokenizer has. */
static void spell_new(struct tiny *t)
{
    tiny_edit(&t->config, "\"hybrid_override_pattern\":\"M-*-M-\"",
              "\"hybrid_override_pattern\":[\"M\",\"-\",\"*\",\"-\",\"M\",\"-\"]");
    tiny_edit(&t->config, "\"conv_kernel\"", "\"mamba_d_conv\"");
    tiny_edit(&t->config, "\"chunk_size\"", "\"mamba_chunk_size\"");
    tiny_edit(&t->config, "\"n_groups\"", "\"mamba_n_groups\"");
    tiny_edit(&t->config, "\"time_step_limit\"", "\"mamba_dt_limit\"");
    tiny_edit(&t->config, "\"img_context_token_id\":272,", "");
    enum { NAMES = 5 << 20 }; /* a mixed-precision config lists every expert */
    char *names = malloc(NAMES + 1);
    memset(names, 'x', NAMES);
    names[NAMES] = 0;
    char *text =
        xasprintf("\"quantization_config\":{\"quant_algo\":\"MIXED_PRECISION\",\"quantized_layers\":\"%s\"},"
                  "\"llm_config\"",
                  names);
    tiny_edit(&t->config, "\"llm_config\"", text);
    free(names);
    free(text);
}

static void t_sources(void **state)
{
    struct tiny a;
    struct engine *plain = open_random(&a, NULL, 1, false);
    float *x = run_mixed(plain, 50);
    for (int i = 0; i < 2; i++) {
        struct tiny b;
        tiny_init(&b, check_seed()); /* the same model in shards, under other names */
        b.shards = 3;
        for (int k = 0; k < b.n; k++) {
            char *at = strstr(b.tensors[k].name, "backbone."), rest[96];
            if (!at)
                continue;
            snprintf(rest, sizeof rest, "%s", at + 9);
            snprintf(at, sizeof b.tensors[k].name - (size_t)(at - b.tensors[k].name), "model.%s", rest);
        }
        (i ? spell_new : spell_old)(&b);
        tiny_write(&b);
        struct engine *other = tiny_open(&b, NULL, 1, false);
        float *y = run_mixed(other, 50);
        assert_memory_equal(x, y, (size_t)engine_vocab(plain) * sizeof *x);
        assert_int_not_equal(engine_hash(plain), engine_hash(other));
        free(y);
        engine_close(other);
        tiny_free(&b);
    }
    engine_close(plain);
    free(x);
    tiny_free(&a);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a prompt at once equals token by token, wherever it is cut", t_splits),
    CLAIM("chunks of any size give the same logits", t_chunks),
    CLAIM("the first chunks of a text are small, those with an image are not, and none has one token",
          t_chunk_sizes),
    CLAIM("the text before the next image ends at its first token", t_text_before_images),
    CLAIM("every instruction set agrees with the scalar reference; bf16 differs little", t_isas),
    CLAIM("one, two and three threads give the same bits", t_threads),
    CLAIM("a cached tile gives the same bits as a computed one; only changed tiles are computed", t_cache),
    CLAIM("a full cache replaces the oldest tile and stays correct", t_cache_full),
    CLAIM("the rows of a tile are in the tile's position", t_places),
    CLAIM("the position table is resized bilinearly with half-pixel centres", t_position),
    CLAIM("shards and spellings of keys and names change nothing", t_sources),
};

CHECK_MAIN()
