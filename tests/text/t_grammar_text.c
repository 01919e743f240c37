/* t_grammar_text.c - tests elements of grammars: numbers, texts, strings, counts, added tokens; and their
 * memory with a large vocabulary.
 */
#include "check.h"
#include "tiny_vocab.h"

#include "base/utf8.h"
#include "grammar/grammar.h"

#include <jansson.h>
#include <malloc.h>

/* ---- numbers, texts, strings ------------------------------------------------------------------------- */

/* Returns whether the grammar accepts the whole text. */
static bool accepts(struct grammar *g, const char *text, size_t n)
{
    int s = grammar_start(g);
    for (size_t i = 0; i < n && s != GRAMMAR_DEAD; i++)
        s = grammar_advance(g, s, (unsigned char)text[i]);
    return s != GRAMMAR_DEAD && grammar_accepts(g, s);
}

static struct grammar *compile(struct gx *x, gx_node root, const struct tokenizer *t)
{
    struct err e = ERR_INIT;
    struct grammar *g = grammar_compile(x, root, t, &e);
    if (!g)
        fail_msg("%s", e.text);
    gx_free(x);
    return g;
}

static void t_int(void **unused)
{
    uint64_t seed = check_seed();
    struct tokenizer *t = tiny_vocab_letters();
    for (int i = 0; i < 60; i++) {
        int lo = check_below(&seed, 1300) - 150, hi = lo + check_below(&seed, i & 1 ? 30 : 1200);
        struct gx *x = gx_new();
        struct grammar *g = compile(x, gx_int(x, lo, hi), t);
        for (int v = -2500; v <= 3000; v++) {
            char text[32];
            int n = snprintf(text, sizeof text, "%d", v);
            if (accepts(g, text, (size_t)n) != (v >= lo && v <= hi))
                fail_msg("%d in %d..%d", v, lo, hi);
        }
        assert_false(accepts(g, "00", 2));
        assert_false(accepts(g, "-0", 2));
        grammar_free(g);
    }
    tokenizer_free(t);
}

static bool printable_utf8(const char *s, size_t n)
{
    uint32_t cp;
    for (int len; n; s += len, n -= (size_t)len) {
        len = utf8_decode(s, n, &cp);
        if (len < 1 || cp < 0x20 || cp == '<' || (cp >= 0x7f && cp < 0xa0))
            return false;
    }
    return true;
}

static void t_utf8(void **unused)
{
    uint64_t seed = check_seed();
    struct tokenizer *t = tiny_vocab_letters();
    struct gx *x = gx_new();
    struct grammar *g = compile(x, gx_utf8(x, "<", 0, -1), t);
    for (uint32_t cp = 1; cp < 0x110000; cp += cp < 0x3000 ? 1 : 97) {
        char s[4];
        size_t n = (size_t)utf8_encode(cp, s);
        if (n)
            assert_int_equal(accepts(g, s, n), printable_utf8(s, n));
    }
    for (int i = 0; i < 200000; i++) { /* bytes near the limits of the encoding */
        static const unsigned char edges[] = {0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0,
                                              0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
                                              0xef, 0xf0, 0xf3, 0xf4, 0xf5, 'a'};
        char s[5];
        size_t n = 1 + (size_t)check_below(&seed, 5);
        for (size_t k = 0; k < n; k++)
            s[k] = (char)edges[check_below(&seed, sizeof edges)];
        assert_int_equal(accepts(g, s, n), printable_utf8(s, n));
    }
    grammar_free(g);
    tokenizer_free(t);
}

static void t_string(void **unused)
{
    static const struct {
        const char *text;
        bool good;
    } cases[] = {
        {"\"\"", false},
        {"\"a\"", true},
        {"\"a\\\"b\"", true},
        {"\"\\\\\\n\\t\"", true},
        {"\"\\r\"", false},
        {"\"\\u0041\"", false},
        {"\"a", false},
        {"\"\n\"", false},
        {"\"abc\"", true},
        {"\"abcd\"", false},
        {"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82\"", true},
        {"\"\xc3\"", false},
        {"\"\\\"", false},
        {"\"\x7f\"", false},
    };
    struct tokenizer *t = tiny_vocab_letters();
    struct gx *x = gx_new();
    struct grammar *g = compile(x, gx_json_string(x, 1, 3), t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (accepts(g, cases[i].text, strlen(cases[i].text)) != cases[i].good)
            fail_msg("%s", cases[i].text);
    grammar_free(g);
    tokenizer_free(t);
}

static void t_counts(void **unused)
{
    struct tokenizer *t = tiny_vocab_letters();
    char text[1000];
    memset(text, 'a', sizeof text);
    static const struct {
        int min, max, n;
        bool good;
    } cases[] = {{0, 0, 0, true},    {0, 0, 1, false},    {2, 5, 1, false},     {2, 5, 5, true},
                 {2, 5, 6, false},   {0, 256, 256, true}, {0, 256, 257, false}, {3, -1, 2, false},
                 {3, -1, 999, true}, {3, 257, 999, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gx *x = gx_new();
        struct grammar *g = compile(x, gx_repeat(x, gx_set(x, "a"), cases[i].min, cases[i].max), t);
        assert_int_equal(accepts(g, text, (size_t)cases[i].n), cases[i].good);
        grammar_free(g);
    }
    tokenizer_free(t);
}

/* ---- tokens ------------------------------------------------------------------------------------------ */

static void t_added(void **unused)
{
    struct tokenizer *t = tiny_vocab_letters();
    struct gx *x = gx_new();
    struct grammar *g =
        compile(x, GX_SEQ(x, gx_repeat(x, gx_set(x, "<X>a"), 0, -1), gx_token(x, "<SPECIAL_12>")), t);
    const uint64_t *mask = grammar_mask(g, grammar_start(g));
    int32_t x_id = tokenizer_find(t, "<X>"), end = tokenizer_find(t, "<SPECIAL_12>");
    assert_false(mask[x_id >> 6] >> (x_id & 63) & 1); /* its letters are text, the token is not */
    assert_true(mask[end >> 6] >> (end & 63) & 1);
    assert_true(mask['<' >> 6] >> ('<' & 63) & 1);
    assert_int_equal(grammar_advance(g, 0, x_id), GRAMMAR_DEAD);
    assert_int_equal(grammar_advance(g, 0, -1), GRAMMAR_DEAD);
    assert_int_equal(grammar_advance(g, 0, 1 << 30), GRAMMAR_DEAD);
    int s = grammar_advance(g, 0, end);
    assert_true(grammar_finished(g, s));
    mask = grammar_mask(g, s);
    for (int i = 0; i < (tokenizer_size(t) + 63) / 64; i++)
        assert_int_equal(mask[i], 0);
    grammar_free(g);
    tokenizer_free(t);
}

static void t_missing(void **unused)
{
    struct err e = ERR_INIT;
    struct tokenizer *t = tiny_vocab_letters();
    struct gx *x = gx_new();
    assert_null(grammar_compile(x, gx_token(x, "<Y>"), t, &e));
    assert_non_null(strstr(e.text, "'<Y>'"));
    assert_int_equal(e.kind, ERR_MODEL);
    assert_null(grammar_compile(x, gx_token(x, "ab"), t, &e)); /* a plain token cannot be named */
    gx_node many = gx_repeat(x, gx_repeat(x, gx_repeat(x, gx_lit(x, "abc"), 200, 200), 200, 200), 200, 200);
    assert_null(grammar_compile(x, many, t, &e));
    assert_non_null(strstr(e.text, "too large"));
    gx_free(x);
    tokenizer_free(t);
}

static void t_forced_cut(void **unused)
{
    static const char *const words[] = {"\": ", "\": \"", "key"};
    static const char *const added[] = {"<E>"};
    struct tokenizer *t = tiny_vocab(words, 3, added, 1);
    struct gx *x = gx_new();
    gx_node free_string = GX_SEQ(x, gx_lit(x, "\""), gx_utf8(x, "\"", 0, 5), gx_lit(x, "\""));
    gx_node number = gx_int(x, 0, 9);
    struct grammar *open =
        compile(x, GX_SEQ(x, gx_lit(x, "{key\": "), GX_ALT(x, free_string, number), gx_token(x, "<E>")), t);
    struct tokens forced = {0};
    int after;
    /* `": "` may become `": ""`: the model chooses. */
    assert_int_equal(grammar_forced(open, 0, &forced, &after), 2);
    assert_int_equal(forced.ids[0], '{');
    assert_int_equal(forced.ids[1], tokenizer_find(t, "key"));
    tokens_free(&forced);
    grammar_free(open);
    x = gx_new();
    struct grammar *closed =
        compile(x, GX_SEQ(x, gx_lit(x, "{key\": "), gx_int(x, 0, 9), gx_token(x, "<E>")), t);
    assert_int_equal(grammar_forced(closed, 0, &forced, &after), 3);
    assert_int_equal(forced.ids[2], tokenizer_find(t, "\": "));
    tokens_free(&forced);
    after = grammar_advance(closed, after, '7');
    assert_int_equal(grammar_forced(closed, after, &forced, &after), 1);
    assert_int_equal(forced.ids[0], tokenizer_find(t, "<E>"));
    assert_true(grammar_finished(closed, after));
    assert_int_equal(grammar_forced(closed, after, &forced, &after), 0);
    tokens_free(&forced);
    grammar_free(closed);
    tokenizer_free(t);
}

/* Returns the allocated bytes; 0 under a sanitizer, which has its own allocator. */
static size_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void t_shared(void **unused)
{
    struct tokenizer *t = tiny_vocab_large(132096);
    struct gx *x = gx_new();
    struct err e = ERR_INIT;
    struct grammar *both[2];
    size_t took[2];
    for (int k = 0; k < 2; k++) {
        gx_node text = GX_SEQ(x, gx_json_string(x, 0, k ? 200 : -1), gx_token(x, "<SPECIAL_12>"));
        size_t before = in_use();
        both[k] = grammar_compile(x, text, t, &e);
        took[k] = in_use() - before;
        assert_non_null(both[k]);
    }
    check_note("132096 tokens: the first grammar takes %zu KiB, the second %zu", took[0] >> 10,
               took[1] >> 10);
    assert_true(took[1] <= took[0] / 4); /* reuses the trie */
    for (int k = 0; k < 2; k++) {
        int s = grammar_advance(both[k], 0, '"');
        for (int i = 0; i < 20; i++, s = grammar_advance(both[k], s, 'x')) {
            const uint64_t *mask = grammar_mask(both[k], s);
            assert_true(mask[0] | mask[1]);
            assert_ptr_equal(grammar_mask(both[k], s), mask);
        }
        grammar_free(both[k]);
    }
    gx_free(x);
    tokenizer_free(t);
}

/* Thousands of masks of a large vocabulary are evicted and remain correct. */
static void t_bounded(void **unused)
{
    struct tokenizer *t = tiny_vocab_large(132096);
    struct gx *x = gx_new();
    gx_node parts[20];
    for (int i = 0; i < 20; i++)
        parts[i] = GX_SEQ(x, gx_repeat(x, gx_set(x, "a-z"), 0, 250), gx_lit(x, "."));
    struct grammar *g = compile(x, gx_seq(x, 20, parts), t);
    size_t before = in_use();
    int s = 0, masks = 0;
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 250; k++, masks++) {
            const uint64_t *mask = grammar_mask(g, s);
            assert_true(mask['a' >> 6] >> ('a' & 63) & 1);
            assert_true(mask['.' >> 6] >> ('.' & 63) & 1);
            s = grammar_advance(g, s, 'q');
        }
        assert_false(grammar_mask(g, s)['a' >> 6] >> ('a' & 63) & 1);
        s = grammar_advance(g, s, '.');
    }
    assert_true(grammar_finished(g, s));
    double used = (double)(in_use() - before) / (1 << 20), all = masks * (132096 / 8.0) / (1 << 20);
    check_note("%d masks are %.0f MiB, in memory are %.0f", masks, all, used);
    assert_true(used < 72 && all > 76);
    grammar_free(g);
    tokenizer_free(t);
}

/* Needs 2^n states: texts whose n-th letter from the end is an a. */
static struct gx *many_states(int n, gx_node *root)
{
    struct gx *x = gx_new();
    gx_node ab = gx_set(x, "ab");
    *root = GX_SEQ(x, gx_repeat(x, ab, 0, -1), gx_lit(x, "a"), gx_repeat(x, ab, n, n), gx_lit(x, "!"));
    return x;
}

/* Walks randomly until the grammar fails; returns the number of steps. */
static int walk_until_failure(struct grammar *g, int most)
{
    uint64_t rng = check_seed();
    int s = grammar_start(g), n = 0;
    for (; n < most && !grammar_failed(g, NULL); n++) {
        grammar_mask(g, s);
        s = grammar_advance(g, s, check_random(&rng) < 0.5 ? 'a' : 'b');
    }
    return n;
}

static void t_limited(void **unused)
{
    struct tokenizer *t = tiny_vocab_letters();
    struct err e = ERR_INIT;
    gx_node root;
    struct gx *x = many_states(20, &root);
    const struct grammar_limits limits = {.bytes = 4 << 20};
    struct grammar *g = grammar_compile_within(x, root, t, &limits, &e);
    assert_non_null(g);
    int steps = walk_until_failure(g, 1 << 20);
    assert_true(grammar_failed(g, &e));
    check_note("%d steps, %zu bytes: %s", steps, grammar_bytes(g), e.text);
    assert_int_equal(e.kind, ERR_USAGE);
    assert_non_null(strstr(e.text, "more than 4 MiB"));
    assert_true(grammar_bytes(g) <= limits.bytes);
    /* afterwards nothing is allowed */
    int after;
    struct tokens forced = {0};
    assert_int_equal(grammar_advance(g, 0, 'a'), GRAMMAR_DEAD);
    assert_int_equal(grammar_forced(g, 0, &forced, &after), 0);
    assert_int_equal(grammar_mask(g, GRAMMAR_DEAD)[1], 0);
    tokens_free(&forced);
    grammar_free(g);
    gx_free(x);
    tokenizer_free(t);
}

static void t_effort(void **unused)
{
    struct tokenizer *t = tiny_vocab_letters();
    struct err e = ERR_INIT;
    gx_node root;
    volatile int gone = 0;
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        struct effort w = {.cpu_s = 0.02, .cancel = &gone};
        struct gx *x = many_states(20, &root);
        struct grammar *g = grammar_compile_within(x, root, t, &(struct grammar_limits){.effort = &w}, &e);
        assert_non_null(g);
        gone = cancelled;
        walk_until_failure(g, 1 << 20);
        assert_true(grammar_failed(g, &e));
        assert_int_equal(e.kind, cancelled ? ERR_STOPPED : ERR_USAGE);
        assert_non_null(strstr(e.text, cancelled ? "disconnected" : "more than 0.02 s of CPU time"));
        grammar_free(g);
        gx_free(x);
    }
    tokenizer_free(t);
}

static void t_large(void **unused)
{
    struct tokenizer *t = tiny_vocab_letters();
    struct err e = ERR_INIT;
    struct gx *x = gx_new();
    gx_node deep = gx_lit(x, "a"), nothing = gx_lit(x, "");
    for (int i = 0; i < 3000; i++)
        deep = GX_SEQ(x, deep, nothing);
    assert_null(grammar_compile(x, deep, t, &e));
    assert_non_null(strstr(e.text, "nested too deep"));
    for (int i = 0; i < 6; i++)
        nothing = gx_repeat(x, nothing, 256, 256);
    assert_null(grammar_compile(x, nothing, t, &e));
    assert_non_null(strstr(e.text, "too many repetitions"));
    for (int i = 0; i < 1 << 21; i++)
        gx_set(x, "a");
    assert_true(gx_failed(x, &e));
    assert_null(grammar_compile(x, gx_lit(x, "a"), t, &e));
    assert_non_null(strstr(e.text, "too large"));
    gx_free(x);
    tokenizer_free(t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("numbers are exactly those of the range", t_int),
    CLAIM("texts are exactly the printable scalar values", t_utf8),
    CLAIM("a JSON string has one spelling for each text, within its length", t_string),
    CLAIM("repetitions count exactly up to 256, above they are unbounded", t_counts),
    CLAIM("an added token is only allowed by name", t_added),
    CLAIM("an unknown token and a grammar without limits are refused", t_missing),
    CLAIM("forced text stops before a token that may be longer", t_forced_cut),
    CLAIM("grammars share the trie of a large vocabulary, and masks are cached", t_shared),
    CLAIM("masks have a memory limit", t_bounded),
    CLAIM("an automaton that exceeds its memory fails with a reason, and then allows nothing", t_limited),
    CLAIM("a limit of CPU time and a cancel stop a grammar", t_effort),
    CLAIM("expressions that are too deep, too repetitive or too many are refused", t_large),
};

CHECK_MAIN()
