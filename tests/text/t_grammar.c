/* t_grammar.c - tests grammars: masks, forced text, no dead ends.
 *
 * The reference is PCRE2. Each random expression is built with gx_ and as a pattern, whose partial match says
 * whether a text is the beginning of a sentence. The alphabet is small (a b c, and the added token <X>, which
 * the pattern sees as X), so that alternatives overlap in many ways.
 */
#include "check.h"
#include "tiny_vocab.h"

#include "base/buf.h"
#include "grammar/grammar.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum { GRAMMARS = 300, WALKS = 6, LONGEST = 16 };

/* ---- random expressions ---------------------------------------------------------------------------- */

struct maker {
    struct gx *x;
    struct buf pattern;
    uint64_t *seed;
};

static gx_node make(struct maker *m, int depth);

static gx_node make_leaf(struct maker *m)
{
    static const char *const lits[] = {"a", "ab", "abc", "ca", "bb", ""};
    static const char *const sets[] = {"ab", "bc", "a-c", "c"};
    int kind = check_below(m->seed, 4);
    if (kind == 0) {
        buf_puts(&m->pattern, "X");
        return gx_token(m->x, "<X>");
    }
    if (kind == 1) {
        const char *set = sets[check_below(m->seed, 4)];
        buf_printf(&m->pattern, "[%s]", set);
        return gx_set(m->x, set);
    }
    const char *lit = lits[check_below(m->seed, 6)];
    buf_printf(&m->pattern, "(?:%s)", lit);
    return gx_lit(m->x, lit);
}

static gx_node make_repeat(struct maker *m, int depth)
{
    int min = check_below(m->seed, 3), max = min + check_below(m->seed, 3);
    buf_puts(&m->pattern, "(?:");
    gx_node part = make(m, depth - 1);
    if (check_below(m->seed, 3) == 0) {
        buf_printf(&m->pattern, "){%d,}", min);
        return gx_repeat(m->x, part, min, -1);
    }
    buf_printf(&m->pattern, "){%d,%d}", min, max);
    return gx_repeat(m->x, part, min, max);
}

static gx_node make(struct maker *m, int depth)
{
    gx_node parts[4];
    int kind = depth > 0 ? check_below(m->seed, 4) : 0, n = 1 + check_below(m->seed, 3);
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

/* ---- reference ------------------------------------------------------------------------------------- */

enum verdict { IMPOSSIBLE, BEGINNING, SENTENCE };

/* Matches without backtracking, whose time would explode on nested repetitions. */
static enum verdict judge(pcre2_code *code, pcre2_match_data *data, const char *text, size_t n)
{
    static int work[20000];
    int r = pcre2_dfa_match(code, (PCRE2_SPTR)text, n, 0, PCRE2_PARTIAL_SOFT | PCRE2_ANCHORED, data, NULL,
                            work, sizeof work / sizeof *work);
    if (r < 0 && r != PCRE2_ERROR_PARTIAL && r != PCRE2_ERROR_NOMATCH)
        fail_msg("the reference failed: %d", r);
    return r >= 0 ? SENTENCE : r == PCRE2_ERROR_PARTIAL ? BEGINNING : IMPOSSIBLE;
}

/* Writes the text of a token as the pattern sees it; returns its length. */
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

/* Returns whether a text can follow. For a grammar without sentences the reference only finds beginnings. */
static bool possible(const struct trial *r, const char *text, size_t n, int32_t id)
{
    char next[LONGEST * 4 + 32], one[16];
    size_t len = seen(r->t, id, one);
    for (size_t i = 0; i < len; i++) /* a byte "X" is not the token <X>, and vice versa */
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

/* Counts the single symbols that may follow according to the reference. */
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
    /* Forced text stops at a choice, at an end, or before a longer token that may cover this position. */
    if (choices(r, next, at) == 1 && judge(r->code, r->data, next, at) != SENTENCE) {
        const uint64_t *mask = grammar_mask(r->g, after);
        int several = 0;
        for (int32_t id = 0; id < tokenizer_size(r->t); id++)
            several += mask[id >> 6] >> (id & 63) & 1;
        if (several < 2)
            fail_msg("one choice after '%.*s', but no forced text; pattern %s", (int)at, next, r->pattern);
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
        for (int k = check_below(r->seed, allowed); k >= 0; id++)
            k -= mask[id >> 6] >> (id & 63) & 1;
        n += seen(r->t, --id, text + n);
        state = grammar_advance(r->g, state, id);
    }
}

static void t_random(void **unused)
{
    uint64_t seed = check_seed();
    struct tokenizer *t = tiny_vocab_letters();
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

static const struct CMUnitTest tests[] = {
    CLAIM("masks, ends and forced text of random grammars agree with PCRE2", t_random),
};

CHECK_MAIN()
