/* t_grammar.c - claims about grammars: masks, forced text, no dead ends.
 *
 * The reference is PCRE2: each random expression is built twice, once with gx_ and once as a pattern;
 * whether a text can still become a sentence is what partial matching tells.  The alphabet is small (a b
 * c, and the added token <X>, which the pattern sees as X), so that grammars overlap in every way.
 */
#include "check.h"
#include "tiny_vocab.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "model/grammar.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <jansson.h>
#include <malloc.h>

enum { GRAMMARS = 300, WALKS = 6, LONGEST = 16 };

static struct tokenizer *letters(void)
{
    static const char *const words[] = {"ab", "abc", "ba", "aaa", "cc", "bca", "cab", "bb", "aab", "caba"};
    static const char *const added[] = {"<X>", "<SPECIAL_12>"};
    return tiny_vocab(words, sizeof words / sizeof *words, added, 2);
}

/* ---- random expressions ---------------------------------------------------------------------------- */

struct maker {
    struct gx *x;
    struct buf pattern;
    uint64_t *seed;
};

static int random_below(uint64_t *seed, int n)
{
    return (int)(check_random(seed) * n);
}

static gx_node make(struct maker *m, int depth);

static gx_node make_leaf(struct maker *m)
{
    static const char *const lits[] = {"a", "ab", "abc", "ca", "bb", ""};
    static const char *const sets[] = {"ab", "bc", "a-c", "c"};
    int kind = random_below(m->seed, 4);
    if (kind == 0) {
        buf_puts(&m->pattern, "X");
        return gx_token(m->x, "<X>");
    }
    if (kind == 1) {
        const char *set = sets[random_below(m->seed, 4)];
        buf_printf(&m->pattern, "[%s]", set);
        return gx_set(m->x, set);
    }
    const char *lit = lits[random_below(m->seed, 6)];
    buf_printf(&m->pattern, "(?:%s)", lit);
    return gx_lit(m->x, lit);
}

static gx_node make_repeat(struct maker *m, int depth)
{
    int min = random_below(m->seed, 3), max = min + random_below(m->seed, 3);
    buf_puts(&m->pattern, "(?:");
    gx_node part = make(m, depth - 1);
    if (random_below(m->seed, 3) == 0) {
        buf_printf(&m->pattern, "){%d,}", min);
        return gx_repeat(m->x, part, min, -1);
    }
    buf_printf(&m->pattern, "){%d,%d}", min, max);
    return gx_repeat(m->x, part, min, max);
}

static gx_node make(struct maker *m, int depth)
{
    gx_node parts[4];
    int kind = depth > 0 ? random_below(m->seed, 4) : 0, n = 1 + random_below(m->seed, 3);
    if (kind == 0)
        return make_leaf(m);
    if (kind == 1)
        return make_repeat(m, depth);
    buf_puts(&m->pattern, "(?:");
    for (int i = 0; i < n; i++) {
        if (i && kind == 2)
            buf_puts(&m->pattern, "|");
        parts[i] = make(m, depth - 1);
    }
    buf_puts(&m->pattern, ")");
    return kind == 2 ? gx_alt(m->x, n, parts) : gx_seq(m->x, n, parts);
}

/* ---- the reference --------------------------------------------------------------------------------- */

enum verdict { IMPOSSIBLE, BEGINNING, SENTENCE };

/* The matcher without backtracking, whose time does not explode on nested repetitions. */
static enum verdict judge(pcre2_code *code, pcre2_match_data *data, const char *text, size_t n)
{
    static int work[20000];
    int r = pcre2_dfa_match(code, (PCRE2_SPTR)text, n, 0, PCRE2_PARTIAL_SOFT | PCRE2_ANCHORED, data, NULL,
                            work, sizeof work / sizeof *work);
    if (r < 0 && r != PCRE2_ERROR_PARTIAL && r != PCRE2_ERROR_NOMATCH)
        fail_msg("the reference failed: %d", r);
    return r >= 0 ? SENTENCE : r == PCRE2_ERROR_PARTIAL ? BEGINNING : IMPOSSIBLE;
}

/* The text of a token as the pattern sees it; its length. */
static size_t seen(const struct tokenizer *t, int32_t id, char out[16])
{
    size_t n;
    const char *s = tokenizer_bytes(t, id, &n);
    if (tokenizer_is_special(t, id)) {
        out[0] = !strcmp(s, "<X>") || (n == 3 && !memcmp(s, "<X>", 3)) ? 'X' : 'Y';
        return 1;
    }
    memcpy(out, s, n);
    return n;
}

struct trial {
    struct tokenizer *t;
    struct grammar *g;
    pcre2_code *code;
    pcre2_match_data *data;
    uint64_t *seed;
    const char *pattern;
};

/* Whether some text can follow: for a grammar without sentences the reference knows only beginnings. */
static bool possible(const struct trial *r, const char *text, size_t n, int32_t id)
{
    char next[LONGEST * 4 + 32], one[16];
    size_t len = seen(r->t, id, one);
    for (size_t i = 0; i < len; i++) /* a byte "X" is not the token <X>, and the other way round */
        if (one[i] != 'a' && one[i] != 'b' && one[i] != 'c' &&
            !(one[i] == 'X' && tokenizer_is_special(r->t, id)))
            return false;
    memcpy(next, text, n);
    memcpy(next + n, one, len);
    return judge(r->code, r->data, next, n + len) != IMPOSSIBLE;
}

static int check_mask(const struct trial *r, int state, const char *text, size_t n)
{
    const uint64_t *mask = grammar_mask(r->g, state);
    int allowed = 0;
    for (int32_t id = 0; id < tokenizer_size(r->t); id++) {
        bool have = mask[id >> 6] >> (id & 63) & 1, want = possible(r, text, n, id);
        allowed += have;
        if (have != want || have != (grammar_advance(r->g, state, id) != GRAMMAR_DEAD))
            fail_msg("after '%.*s' token %d is %s, pattern %s", (int)n, text, id,
                     have ? "allowed" : "forbidden", r->pattern);
        mask = grammar_mask(r->g, state);
    }
    return allowed;
}

static const int32_t symbols[] = {'a', 'b', 'c'};

/* The single symbols that may follow, counted with the reference. */
static int choices(const struct trial *r, const char *text, size_t n)
{
    int count = possible(r, text, n, tokenizer_find(r->t, "<X>"));
    for (int i = 0; i < 3; i++)
        count += possible(r, text, n, symbols[i]);
    return count;
}

static void check_forced(const struct trial *r, int state, const char *text, size_t n)
{
    struct tokens forced = {0};
    int after = -5;
    char next[4096];
    size_t at = n;
    memcpy(next, text, n);
    int count = grammar_forced(r->g, state, &forced, &after), end = state;
    assert_int_equal(count, forced.n);
    for (int i = 0; i < count; i++) {
        char one[16];
        size_t len = seen(r->t, forced.ids[i], one);
        for (size_t k = 0; k < len; k++) {
            if (choices(r, next, at) != 1 || judge(r->code, r->data, next, at) == SENTENCE)
                fail_msg("after '%.*s' nothing is forced, pattern %s", (int)at, next, r->pattern);
            next[at++] = one[k];
        }
        end = grammar_advance(r->g, end, forced.ids[i]);
        assert_int_not_equal(end, GRAMMAR_DEAD);
    }
    assert_int_equal(end, after);
    /* What stops it is a choice, an end, or a longer token that may cover the place where it stopped. */
    if (choices(r, next, at) == 1 && judge(r->code, r->data, next, at) != SENTENCE) {
        const uint64_t *mask = grammar_mask(r->g, after);
        int several = 0;
        for (int32_t id = 0; id < tokenizer_size(r->t); id++)
            several += mask[id >> 6] >> (id & 63) & 1;
        if (several < 2)
            fail_msg("after '%.*s' there is no choice, yet nothing is forced, pattern %s", (int)at, next,
                     r->pattern);
    }
    tokens_free(&forced);
}

static void walk(const struct trial *r)
{
    char text[LONGEST * 4 + 32];
    size_t n = 0;
    int state = grammar_start(r->g);
    while (n < LONGEST) {
        assert_int_equal(grammar_accepts(r->g, state), judge(r->code, r->data, text, n) == SENTENCE);
        int allowed = check_mask(r, state, text, n);
        check_forced(r, state, text, n);
        assert_int_equal(grammar_finished(r->g, state), grammar_accepts(r->g, state) && !allowed);
        if (!allowed) {
            assert_true(grammar_accepts(r->g, state)); /* no dead end */
            return;
        }
        const uint64_t *mask = grammar_mask(r->g, state);
        int32_t id = 0;
        for (int k = random_below(r->seed, allowed); k >= 0; id++)
            k -= mask[id >> 6] >> (id & 63) & 1;
        n += seen(r->t, --id, text + n);
        state = grammar_advance(r->g, state, id);
    }
}

static void t_random(void **unused)
{
    (void)unused;
    uint64_t seed = check_seed();
    struct tokenizer *t = letters();
    for (int i = 0; i < GRAMMARS; i++) {
        struct err e = ERR_INIT;
        int code_error;
        PCRE2_SIZE where;
        struct maker m = {.x = gx_new(), .seed = &seed};
        buf_init(&m.pattern, 1 << 16);
        gx_node root = make(&m, 4);
        buf_puts(&m.pattern, "\\z");
        struct grammar *g = grammar_compile(m.x, root, t, &e);
        assert_non_null(g);
        pcre2_code *code = pcre2_compile((PCRE2_SPTR)m.pattern.data, m.pattern.len, PCRE2_NO_START_OPTIMIZE,
                                         &code_error, &where, NULL);
        assert_non_null(code);
        pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);
        struct trial r = {t, g, code, data, &seed, m.pattern.data};
        for (int k = 0; k < WALKS; k++)
            walk(&r);
        pcre2_match_data_free(data);
        pcre2_code_free(code);
        grammar_free(g);
        gx_free(m.x);
        buf_free(&m.pattern);
    }
    tokenizer_free(t);
}

/* ---- numbers, texts, strings ------------------------------------------------------------------------- */

/* Whether the whole text is in the language. */
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
    (void)unused;
    uint64_t seed = check_seed();
    struct tokenizer *t = letters();
    for (int i = 0; i < 60; i++) {
        int lo = random_below(&seed, 1300) - 150, hi = lo + random_below(&seed, i & 1 ? 30 : 1200);
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
    (void)unused;
    uint64_t seed = check_seed();
    struct tokenizer *t = letters();
    struct gx *x = gx_new();
    struct grammar *g = compile(x, gx_utf8(x, "<", 0, -1), t);
    for (uint32_t cp = 1; cp < 0x110000; cp += cp < 0x3000 ? 1 : 97) {
        char s[4];
        size_t n = (size_t)utf8_encode(cp, s);
        if (n)
            assert_int_equal(accepts(g, s, n), printable_utf8(s, n));
    }
    for (int i = 0; i < 200000; i++) { /* bytes near the borders of the encoding */
        static const unsigned char edges[] = {0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0,
                                              0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
                                              0xef, 0xf0, 0xf3, 0xf4, 0xf5, 'a'};
        char s[5];
        size_t n = 1 + (size_t)random_below(&seed, 5);
        for (size_t k = 0; k < n; k++)
            s[k] = (char)edges[random_below(&seed, sizeof edges)];
        assert_int_equal(accepts(g, s, n), printable_utf8(s, n));
    }
    grammar_free(g);
    tokenizer_free(t);
}

static void t_string(void **unused)
{
    (void)unused;
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
    struct tokenizer *t = letters();
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
    (void)unused;
    struct tokenizer *t = letters();
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
    (void)unused;
    struct tokenizer *t = letters();
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
    (void)unused;
    struct err e = ERR_INIT;
    struct tokenizer *t = letters();
    struct gx *x = gx_new();
    assert_null(grammar_compile(x, gx_token(x, "<Y>"), t, &e));
    assert_non_null(strstr(e.text, "'<Y>'"));
    assert_int_equal(e.kind, ERR_MODEL);
    assert_null(grammar_compile(x, gx_token(x, "ab"), t, &e)); /* a plain token has no name */
    gx_node many = gx_repeat(x, gx_repeat(x, gx_repeat(x, gx_lit(x, "abc"), 200, 200), 200, 200), 200, 200);
    assert_null(grammar_compile(x, many, t, &e));
    assert_non_null(strstr(e.text, "too large"));
    gx_free(x);
    tokenizer_free(t);
}

static void t_forced_cut(void **unused)
{
    (void)unused;
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
    /* `": "` may become `": ""`: the model decides between the two. */
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

/* Bytes allocated and not freed; 0 under a sanitizer, which has its own allocator. */
static size_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void t_shared(void **unused)
{
    (void)unused;
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
    assert_true(took[1] <= took[0] / 4); /* the trie is there already */
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

/* Thousands of masks of a large vocabulary do not stay in memory, and stay right. */
static void t_bounded(void **unused)
{
    (void)unused;
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

static const struct CMUnitTest tests[] = {
    CLAIM("masks, ends and forced text of random grammars are what PCRE2 says", t_random),
    CLAIM("numbers are exactly those of the range", t_int),
    CLAIM("texts are exactly the printable scalars", t_utf8),
    CLAIM("a JSON string has one spelling for each text, within its length", t_string),
    CLAIM("repetitions count exactly up to 256, above they are unbounded", t_counts),
    CLAIM("an added token is only allowed by name", t_added),
    CLAIM("a token that does not exist and a grammar without bounds are refused", t_missing),
    CLAIM("forced text stops before a token that the model may want to be longer", t_forced_cut),
    CLAIM("grammars share the trie of a large vocabulary, and masks are kept", t_shared),
    CLAIM("masks do not fill the memory", t_bounded),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
