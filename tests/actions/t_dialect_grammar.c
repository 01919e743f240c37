/* t_dialect_grammar.c - tests the grammars of dialects: each text that they allow is parsed as intended. */
#include "check.h"
#include "dialects.h"
#include "tiny_vocab.h"

#include "actions/action.h"
#include "actions/dialect.h"
#include "actions/place.h"

#include "actions/syntax.h"
#include "base/clock.h"
#include "judge/llm_judge.h"

enum { W = 1280, H = 720, SAMPLES = 1000, LONGEST = 20000 };

/* ---- the grammar ----------------------------------------------------------------------------------- */

static void put_token(struct buf *b, const struct tokenizer *t, int32_t id)
{
    size_t n;
    const char *s = tokenizer_bytes(t, id, &n);
    buf_put(b, s, n);
}

/* Picks a random allowed token, sometimes one with a quote or newline, so that texts end. */
static int32_t pick(const uint64_t *mask, const struct tokenizer *t, uint64_t *seed)
{
    int32_t all[1024], ends[1024];
    int n = 0, nends = 0;
    for (int32_t i = 0; i < tokenizer_size(t); i++) {
        if (!(mask[i >> 6] >> (i & 63) & 1))
            continue;
        size_t len;
        const char *s = tokenizer_bytes(t, i, &len);
        assert_true(n < 1024);
        all[n++] = i;
        if (memchr(s, '"', len) || memchr(s, '\n', len) || memchr(s, '\'', len) || tokenizer_is_special(t, i))
            ends[nends++] = i;
    }
    assert_true(n > 0); /* never a dead end */
    if (nends && check_random(seed) < 0.1)
        return ends[(int)(check_random(seed) * nends)];
    return all[(int)(check_random(seed) * n)];
}

/* Returns the state after the end of a value in XML, which random tokens rarely spell; `state` if it cannot
 * end. */
static int close_value(struct grammar *g, const struct tokenizer *t, int state, struct buf *out)
{
    static const char end[] = "\n</parameter>\n";
    int after = state;
    for (size_t i = 0; i < sizeof end - 1; i++) {
        char byte[2] = {end[i], 0};
        int32_t id = tokenizer_find(t, byte);
        const uint64_t *mask = grammar_mask(g, after);
        if (!(mask[id >> 6] >> (id & 63) & 1))
            return state;
        after = grammar_advance(g, after, id);
    }
    buf_puts(out, end);
    return after;
}

static void sample(struct grammar *g, const struct tokenizer *t, uint64_t *seed, bool jump, struct buf *out)
{
    int state = grammar_start(g);
    buf_clear(out);
    while (!grammar_finished(g, state)) {
        struct tokens forced = {0};
        int after = state;
        if (jump && grammar_forced(g, state, &forced, &after))
            for (int64_t i = 0; i < forced.n; i++)
                put_token(out, t, forced.ids[i]);
        tokens_free(&forced);
        if (after == state && check_random(seed) < 0.05)
            after = close_value(g, t, state, out);
        if (after == state) {
            int32_t id = pick(grammar_mask(g, state), t, seed);
            put_token(out, t, id);
            after = grammar_advance(g, state, id);
        }
        assert_int_not_equal(after, GRAMMAR_DEAD);
        state = after;
        assert_true(out->len < LONGEST);
    }
    static const char end[] = "<SPECIAL_12>";
    assert_true(out->len >= sizeof end - 1);
    out->len -= sizeof end - 1;
    assert_string_equal(out->data + out->len, end);
    out->data[out->len] = 0;
}

static void inside(const struct action *a, int w, int h)
{
    assert_true(a->x == ACTION_ABSENT || (a->x >= 0 && a->x < w));
    assert_true(a->y == ACTION_ABSENT || (a->y >= 0 && a->y < h));
    assert_true(a->x2 == ACTION_ABSENT || (a->x2 >= 0 && a->x2 < w));
    assert_true(a->y2 == ACTION_ABSENT || (a->y2 >= 0 && a->y2 < h));
    for (int i = 0; i < a->npath; i++)
        assert_true(a->path[i].x >= 0 && a->path[i].x < w && a->path[i].y >= 0 && a->path[i].y < h);
    assert_true(a->nkeys <= ACTION_MAX_KEYS && a->nhold <= ACTION_MAX_HOLD);
}

/* Canonical text needs only the repairs that a syntax cannot avoid. */
static void check_step(const struct dialect *d, const char *text, size_t len, enum dialect_goal goal, int w,
                       int h, unsigned *kinds)
{
    struct err e = ERR_INIT;
    struct step s;
    enum action_fault f = action_parse(text, len, d, w, h, &s, &e);
    if (f)
        fail_msg("%s: %s: %s\nin: %s", d->name, action_fault_name(f), e.text, text);
    if (s.repairs)
        fail_msg("%s: repairs 0x%x in: %s", d->name, s.repairs, text);
    /* hold_key becomes several actions, and so do more key presses than one action can hold */
    bool several =
        s.actions[0].kind == ACT_KEYDOWN || (s.actions[0].kind == ACT_KEY && s.actions[0].count > 1);
    if (s.nactions != 1 && !several)
        fail_msg("%s: %d actions in: %s", d->name, s.nactions, text);
    for (int i = 0; i < s.nactions; i++)
        inside(&s.actions[i], w, h);
    assert_true(s.actions[0].kind != ACT_ZOOM &&
                s.actions[0].kind != ACT_RESTART); /* every offered action can be performed */
    if (goal == GOAL_ANSWER)
        assert_true(action_ends_run(s.actions[0].kind));
    *kinds |= 1u << s.actions[0].kind;
    struct buf json, again;
    struct action back;
    buf_init(&json, 1 << 20);
    buf_init(&again, 1 << 20);
    action_to_json(&s.actions[0], &json);
    assert_int_equal(action_from_json(json.data, json.len, &back, &e), 0);
    action_to_json(&back, &again);
    assert_string_equal(json.data, again.data);
    buf_clear(&json);
    action_describe(&back, &json);
    assert_true(json.len > 0);
    action_free(&back);
    buf_free(&json);
    buf_free(&again);
    step_free(&s);
}

/* With reasoning, the language of the step is unchanged, and the reasoning is not part of the step. */
static void t_think(void **state)
{
    uint64_t seed = check_seed();
    static const char *const added[] = {"<SPECIAL_12>", "</think>"};
    struct tokenizer *vocab[] = {tiny_vocab_usual(), tiny_vocab(NULL, 0, added, 2)};
    struct dialect *d = dialect_need("holo3");
    struct buf text;
    buf_init(&text, LONGEST + 100);
    d->think = true;
    for (int i = 0; i < 2; i++) {
        struct err e = ERR_INIT;
        unsigned kinds = 0;
        struct grammar *g = dialect_grammar(d, GOAL_STEP, vocab[i], W, H, &e);
        assert_non_null(g);
        for (int k = 0; k < 100; k++) {
            sample(g, vocab[i], &seed, k & 1, &text);
            assert_non_null(strstr(text.data, "</think>"));
            check_step(d, text.data, text.len, GOAL_STEP, W, H, &kinds);
        }
        grammar_free(g);
        tokenizer_free(vocab[i]);
    }
    buf_free(&text);
    dialect_free(d);
}

static struct tokenizer *pocket_vocab(void)
{
    enum { MARKS = 14 };
    const char *added[MARKS + 72] = {"<SPECIAL_12>", "<click>",  "<write>", "<done>",   "<at>",
                                     "<append>",     "<double>", "<hover>", "<drag>",   "<to>",
                                     "<key>",        "<scroll>", "<wait>",  "<missing>"};
    char numbers[72][16];
    for (int i = 0; i < 72; i++) {
        snprintf(numbers[i], sizeof numbers[i], i < 64 ? "<%d>" : "<.%d>", i < 64 ? i : i - 64);
        added[MARKS + i] = numbers[i];
    }
    return tiny_vocab(NULL, 0, added, MARKS + 72);
}

static void t_samples(void **state)
{
    uint64_t seed = check_seed();
    struct tokenizer *usual = tiny_vocab_usual(), *spelled = pocket_vocab();
    struct buf text;
    buf_init(&text, LONGEST + 100);
    for (const char *const *name = dialect_names(); *name; name++) {
        struct err e = ERR_INIT;
        struct dialect *d = dialect_need(*name);
        int w = d->screen_w ? d->screen_w : W, h = d->screen_h ? d->screen_h : H;
        const struct tokenizer *t = syntax_is(d, "pocket") ? spelled : usual;
        unsigned kinds = 0;
        /* most share a table or a syntax */
        int samples = name - dialect_names() < 9 ? SAMPLES : SAMPLES / 10;
        int64_t begin = clock_ns();
        d->think = false; /* t_think tests reasoning, which is long */
        for (int goal = GOAL_STEP; goal <= GOAL_ANSWER; goal++) {
            struct grammar *g = dialect_grammar(d, (enum dialect_goal)goal, t, w, h, &e);
            if (!g)
                fail_msg("%s", e.text);
            for (int i = 0; i < (goal == GOAL_STEP ? samples : samples / 10); i++) {
                sample(g, t, &seed, i & 1, &text);
                check_step(d, text.data, text.len, (enum dialect_goal)goal, w, h, &kinds);
            }
            grammar_free(g);
        }
        check_note("%-10s %d steps of %d kinds in %.0f ms", *name, samples + samples / 10,
                   __builtin_popcount(kinds), clock_ms_since(begin));
        assert_true(__builtin_popcount(kinds) >= 3);
        dialect_free(d);
    }
    buf_free(&text);
    tokenizer_free(usual);
    tokenizer_free(spelled);
}

/* Returns the state after a text, byte by byte, or GRAMMAR_DEAD if the grammar does not allow it. */
static int after_text(struct grammar *g, const struct tokenizer *t, int state, const char *text)
{
    for (; *text && state != GRAMMAR_DEAD; text++)
        state = grammar_advance(g, state, tokenizer_find(t, (char[]){*text, 0}));
    return state;
}

static void t_markup(void **state)
{
    static const char begin[] = "<tool_call>\n<function=write_desktop>\n<parameter=content>\n",
                      end[] = "\n</parameter>\n</function>\n</tool_call>";
    static const char *const markup[] = {"a\n<parameter=x>", "b</parameter>",
                                         "<<tool_call>",     "<function=f>",
                                         "</function>",      "<invoke name=x",
                                         "<|im_end|>",       "<TOOLCALL>",
                                         "[[TOOL_CALLS]",    "<Parameter=x>",
                                         "<arg_key>a",       "<pa<parameter=",
                                         "a\n</tool_call>",  "<|",
                                         "<par<function="};
    static const char *const plain[] = {"a < b",    "<p>x<b>y<i>z<a href=1>t<table>u<form>",
                                        "a[0]",     "[[ -f x ]]",
                                        "[\n1\n]",  "x << 1",
                                        "<partial", "tool_call",
                                        "<\n",      "[text]",
                                        "if (a<1)"};
    struct err e = ERR_INIT;
    struct tokenizer *t = tiny_vocab_usual();
    struct dialect *d = dialect_need("holo31");
    d->think = false;
    struct grammar *g = dialect_grammar(d, GOAL_STEP, t, W, H, &e);
    assert_non_null(g);
    int text = after_text(g, t, grammar_start(g), begin);
    assert_int_not_equal(text, GRAMMAR_DEAD);
    for (size_t i = 0; i < sizeof markup / sizeof *markup; i++)
        if (after_text(g, t, text, markup[i]) != GRAMMAR_DEAD)
            fail_msg("the grammar allows '%s' in a text", markup[i]);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (after_text(g, t, after_text(g, t, text, plain[i]), end) == GRAMMAR_DEAD)
            fail_msg("the grammar does not allow the text '%s'", plain[i]);
    grammar_free(g);
    dialect_free(d);
    tokenizer_free(t);
}

/* Returns the largest coordinates of an image. */
static void shown_size(const struct dialect *d, int w, int h, double v[2])
{
    dialect_shown_size(d, &w, &h);
    bool parts = d->coords == COORD_NORM1 || d->coords == COORD_NORM1000;
    v[0] = d->coords == COORD_NORM1 ? 1 : parts ? 1000 : w - 1;
    v[1] = d->coords == COORD_NORM1 ? 1 : parts ? 1000 : h - 1;
}

static void t_ground(void **state)
{
    static const int sizes[][2] = {{W, H}, {320, 240}, {1003, 77}, {2560, 1440}, {15, 9}};
    uint64_t seed = check_seed();
    struct tokenizer *usual = tiny_vocab_usual(), *spelled = pocket_vocab();
    bool said_missing = false;
    struct buf text;
    buf_init(&text, LONGEST + 100);
    for (const char *const *name = dialect_names(); *name; name++) {
        struct err e = ERR_INIT;
        struct dialect *d = dialect_need(*name);
        const struct tokenizer *t = syntax_is(d, "pocket") ? spelled : usual;
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            int w = sizes[k][0], h = sizes[k][1];
            struct grammar *g = dialect_grammar(d, GOAL_GROUND, t, w, h, &e);
            assert_int_equal(g != NULL, *d->ground != 0);
            for (int i = 0; g && i < 60; i++) {
                int32_t x, y;
                struct place at;
                double v[2];
                sample(g, t, &seed, i & 1, &text);
                if (dialect_read_place(d, text.data, text.len, &at, &e))
                    fail_msg("%s: %s in: %s", *name, e.text, text.data);
                said_missing |= at.absent;
                if (at.absent)
                    continue;
                if (dialect_place_pixel(d, &at, w, h, &x, &y, &e))
                    fail_msg("%s, %d x %d: %s in: %s", *name, w, h, e.text, text.data);
                assert_true(x >= 0 && x < w && y >= 0 && y < h);
                shown_size(d, w, h, v);
                assert_true(at.n.x <= v[0] && at.n.y <= v[1]); /* nothing is clamped */
            }
            grammar_free(g);
        }
        dialect_free(d);
    }
    assert_true(said_missing);
    buf_free(&text);
    tokenizer_free(usual);
    tokenizer_free(spelled);
}

static void t_verdict(void **state)
{
    uint64_t seed = check_seed();
    struct tokenizer *usual = tiny_vocab_usual();
    struct buf text;
    int seen[LLM_JUDGE_UNKNOWN + 1] = {0};
    buf_init(&text, LONGEST + 100);
    for (const char *const *name = dialect_names(); *name; name++) {
        struct err e = ERR_INIT;
        struct dialect *d = dialect_need(*name);
        struct grammar *g = syntax_is(d, "pocket") ? NULL : dialect_grammar(d, GOAL_VERDICT, usual, 0, 0, &e);
        for (int i = 0; g && i < 100; i++) {
            sample(g, usual, &seed, i & 1, &text);
            char *reason;
            enum llm_verdict is = llm_judge_read(text.data, text.len, &reason);
            const char *said = strstr(text.data, "\"verdict\": \"");
            assert_true(said && *reason && strncmp(text.data, "{\"reason\": \"", 12) == 0);
            while (strstr(said + 1, "\"verdict\": \""))
                said = strstr(said + 1, "\"verdict\": \"");
            assert_int_equal(said[12], "YNU"[is]);
            seen[is]++;
            free(reason);
        }
        grammar_free(g);
        dialect_free(d);
    }
    assert_true(seen[LLM_JUDGE_YES] && seen[LLM_JUDGE_NO] && seen[LLM_JUDGE_UNKNOWN]);
    buf_free(&text);
    tokenizer_free(usual);
}

static void t_points(void **state)
{
    static const struct {
        const char *dialect, *text;
        int x, y; /* x < 0: refused */
    } cases[] = {
        {"holo3", "{\"x\": 500, \"y\": 1000}", 640, 719},
        {"holo3", " {\"action\": \"click_absolute\", \"x\": 250, \"y\": 250} ", 320, 180},
        {"holo3", "{\"x\": 0.5, \"y\": 0.25}", 640, 180},
        {"holo3", "Click(500, 500)", 640, 360},
        {"holo3", "(500, 500)", 640, 360},
        {"holo3", "{\"x\": 1100, \"y\": 5}", -1, 0},
        {"holo3", "{\"x\": 11", -1, 0},
        {"holo3", "near the top", -1, 0},
        {"holo3", "Click(1, 2, 3)", -1, 0},
        {"openai-computer", "Click(352, 348)", 352, 348},
        {"openai-computer", "Click(1352, 348)", -1, 0},
        {"uitars", "Thought: there\nAction: click(start_box='(500,500)')", 640, 360},
        {"uitars", "<point>500 250</point>", 640, 180},
        {"pocket-wide", "<at><12><.3><20><.0>\n", 248, 401},
        {"pocket-wide", "only step<click>Save<at><12><.3><20><.0>\n", 248, 401},
        {"pocket-wide", "<at><12><.3><20><.8>", -1, 0},
        {"pocket-wide", "<at><12><20>", -1, 0},
        {"pocket-wide", "<at><12><.3>", -1, 0},
        {"pocket-wide", "<at><65><.0><20><.0>", -1, 0},
        {"pocket-wide", "<done>Done.", -1, 0},
        {"pocket-wide", "only step<write>From<at><12><.3><20><.0>Oslo", -1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = ERR_INIT;
        struct dialect *d = dialect_need(cases[i].dialect);
        struct place at;
        int32_t x = -1, y = -1;
        int r = dialect_read_place(d, cases[i].text, strlen(cases[i].text), &at, &e);
        r = r ? r : at.absent ? -1 : dialect_place_pixel(d, &at, W, H, &x, &y, &e);
        if (r != (cases[i].x < 0 ? -1 : 0) || (!r && (x != cases[i].x || y != cases[i].y)))
            fail_msg("'%s': %d, %d, %d %s", cases[i].text, r, x, y, e.text);
        dialect_free(d);
    }
}

static void t_needs(void **state)
{
    struct err e = ERR_INIT;
    const char *const added[] = {"<SPECIAL_12>"};
    struct tokenizer *t = tiny_vocab(NULL, 0, added, 1);
    struct dialect *d = dialect_need("pocket-wide");
    assert_null(dialect_grammar(d, GOAL_STEP, t, 0, 0, &e));
    assert_non_null(strstr(e.text, "dialect 'pocket-wide': the tokenizer has no added token '<"));
    assert_int_equal(e.kind, ERR_MODEL);
    dialect_free(d);
    d = dialect_need("anthropic-computer");
    assert_null(dialect_grammar(d, GOAL_GROUND, t, 0, 0, &e));
    assert_non_null(strstr(e.text, "'ground'"));
    struct grammar *g = dialect_grammar(d, GOAL_TEXT, t, 0, 0, &e);
    int s = grammar_start(g);
    assert_int_not_equal(s = grammar_advance(g, s, 'a'), GRAMMAR_DEAD);
    assert_int_not_equal(s = grammar_advance(g, s, '\n'), GRAMMAR_DEAD);
    assert_int_equal(grammar_advance(g, s, 0x80), GRAMMAR_DEAD);
    assert_true(grammar_finished(g, grammar_advance(g, s, tokenizer_find(t, "<SPECIAL_12>"))));
    grammar_free(g);
    dialect_free(d);
    tokenizer_free(t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("each text of a grammar parses into one action on the screen, without repairs", t_samples),
    CLAIM("the grammar of the XML form allows no tag of a call in a text", t_markup),
    CLAIM("reasoning may come first and is removed", t_think),
    CLAIM("each text of the localizer's grammar is a point on the screen or 'absent'", t_ground),
    CLAIM("each verdict that the grammar allows is read with its reason", t_verdict),
    CLAIM("points are read as written, anything else is refused", t_points),
    CLAIM("a grammar that cannot be compiled reports the missing part", t_needs),
};

CHECK_MAIN()
