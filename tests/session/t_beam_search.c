/* t_beam_search.c - tests beam search over one slot of a reply: the candidates and their probabilities.
 *
 * The expected probabilities come from trying every continuation that the grammar allows.
 */
#include "tiny_check.h"

#include "actions/action.h"
#include "actions/slots.h"
#include "llm/llm.h"
#include "session/beam_search.h"
#include "session/session_impl.h"

#include <math.h>

/* ---- probabilities --------------------------------------------------------------------------- */

static ptrdiff_t to_bracket(void *arg, const char *text, size_t len)
{
    const char *end = memchr(text, *(const char *)arg, len);
    return end ? end - text : -1;
}

/* Returns the probability of exactly these bytes, one token per byte (the tiny model has no longer
 * tokens). */
static double by_hand(const struct session *from, struct grammar *g, int state, const char *text)
{
    struct session *s = session_fork(from);
    uint64_t *known = generate_known(engine);
    double p = 1;
    for (; *text; text++) {
        struct tokens forced = {0};
        int after, n = grammar_forced(g, state, &forced, &after);
        tokens_free(&forced);
        int32_t id = 16 + (unsigned char)*text;
        if (n == 0) {
            struct token_alternative top[64];
            int found = generate_top(session_logits(s), tokenizer_size(engine_tokenizer(engine)), known,
                                     grammar_mask(g, state), top, 64);
            double chosen = 0;
            for (int i = 0; i < found; i++)
                chosen = top[i].id == id ? (double)top[i].p : chosen;
            p *= chosen;
        }
        state = grammar_advance(g, state, id);
        assert_true(state >= 0);
        assert_int_equal(session_append(s, &id, 1, NULL), 0);
    }
    free(known);
    session_free(s);
    return p;
}

static int by_p(const void *a, const void *b)
{
    double x = ((const struct beam_candidate *)a)->p, y = ((const struct beam_candidate *)b)->p;
    return (x < y) - (x > y);
}

/* (0..4,0..39): two numbers of different lengths with text between them. */
static struct grammar *places(void)
{
    struct gx *x = gx_new();
    struct grammar *g = grammar_compile(
        x, GX_SEQ(x, gx_lit(x, "go("), gx_int(x, 0, 4), gx_lit(x, ", "), gx_int(x, 0, 39), gx_lit(x, ")")),
        engine_tokenizer(engine), NULL);
    gx_free(x);
    assert_non_null(g);
    return g;
}

static void t_all(void **state)
{
    enum { WAYS = 5 * 40, WANTED = 12 };
    struct grammar *g = places();
    struct session *s = session_new(engine, 1);
    tiny_append_text(s, "where? ");
    int at = grammar_start(g);
    for (const char *p = "go("; *p; p++) {
        int32_t id = 16 + (unsigned char)*p;
        at = grammar_advance(g, at, id);
        assert_int_equal(session_append(s, &id, 1, NULL), 0);
    }
    static struct beam_candidate all[WAYS];
    double sum = 0;
    for (int i = 0; i < WAYS; i++) {
        snprintf(all[i].text, sizeof all[i].text, "%d, %d)", i / 40, i % 40);
        all[i].p = by_hand(s, g, at, all[i].text);
        all[i].text[strlen(all[i].text) - 1] = 0;
        sum += all[i].p;
    }
    assert_true(fabs(sum - 1) < 1e-4);
    qsort(all, WAYS, sizeof *all, by_p);
    struct beam_candidate out[WANTED];
    struct checkpoint *c = session_checkpoint(s);
    char bracket = ')';
    struct beam_search how = {
        .grammar = g, .state = at, .given = "", .end = to_bracket, .arg = &bracket, .width = 32};
    assert_int_equal(beam_search(s, &how, out, WANTED, NULL), WANTED);
    for (int i = 0; i < WANTED; i++) {
        if (!(fabs(out[i].p - all[i].p) <= 1e-4 * all[i].p))
            fail_msg("candidate %d is '%s' with %g, not '%s' with %g", i, out[i].text, out[i].p, all[i].text,
                     all[i].p);
        assert_true(i == 0 || out[i].p <= out[i - 1].p);
    }
    check_note("the most probable of %d texts: %s with %.4f, the sum of %d is %.3f", WAYS, out[0].text,
               out[0].p, WANTED, ({
                   double part = 0;
                   for (int i = 0; i < WANTED; i++)
                       part += out[i].p;
                   part;
               }));
    /* Bytes given before or within the first token restrict the candidates. */
    assert_int_equal(session_rewind(s, c, NULL), 0);
    how.given = "3";
    how.n_given = 1;
    int n = beam_search(s, &how, out, WANTED, NULL);
    assert_int_equal(n, WANTED);
    for (int i = 0; i < n; i++) {
        assert_int_equal(out[i].text[0], ',');
        char whole[80];
        snprintf(whole, sizeof whole, "3%.70s", out[i].text);
        int k = 0;
        while (k < WAYS && strcmp(all[k].text, whole) != 0)
            k++;
        assert_true(k < WAYS && fabs(out[i].p - all[k].p) < 1e-4 * all[k].p);
    }
    checkpoint_free(c);
    session_free(s);
    grammar_free(g);
}

static void t_bounds(void **state)
{
    struct grammar *g = places();
    struct session *s = session_new(engine, 1);
    tiny_append_text(s, "where? ");
    struct beam_candidate out[4];
    char bracket = ')', never = '~';
    volatile int cancel = 1;
    struct err e = ERR_INIT;
    struct beam_search how = {
        .grammar = g, .state = grammar_start(g), .given = "", .end = to_bracket, .arg = &bracket, .width = 1};
    assert_int_equal(beam_search(s, &how, out, 0, &e), 0);
    assert_int_equal(beam_search(s, &how, out, 4, &e), 1); /* width 1 is greedy: one candidate */
    assert_int_equal(memcmp(out[0].text, "go(", 3), 0);
    session_free(s);
    s = session_new(engine, 1);
    tiny_append_text(s, "where? ");
    how.arg = &never;
    assert_int_equal(beam_search(s, &how, out, 4, &e), 0);
    session_free(s);
    s = session_new(engine, 1);
    tiny_append_text(s, "where? ");
    how.arg = &bracket;
    how.grammar = NULL; /* without a grammar any text is allowed; the search must still end */
    assert_true(beam_search(s, &how, out, 4, &e) >= 0);
    session_free(s);
    s = session_new(engine, 1);
    tiny_append_text(s, "where? ");
    how.cancel = &cancel;
    assert_int_equal(beam_search(s, &how, out, 4, &e), -1);
    assert_int_equal(e.kind, ERR_STOPPED);
    session_free(s);
    grammar_free(g);
}

/* ---- complete replies ------------------------------------------------------------------------ */

/* Generates a whole reply under a dialect's grammar. The reply must be among its own alternatives, with the
 * probability with which it was drawn. */
static void t_llm(void **state)
{
    struct dialect *d = dialect_load("anthropic-computer", NULL);
    struct llm *m = llm_local(engine, d, check_seed());
    struct image im = tiny_image(64, 64, 7);
    volatile int cancel = 0;
    const struct chat_part parts[] = {{.text = "go"}, {.image = &im}};
    int compared = 0;
    assert_int_equal(m->ops->begin(m, "x", NULL), 0);
    assert_int_equal(m->ops->user(m, parts, 2, CHAT_PLACE_TEMPLATE, NULL), 0);
    struct llm_mark *before = m->ops->mark(m, NULL);
    for (int i = 0; i < 6; i++) {
        struct llm_request r = {.goal = GOAL_STEP, .sampling = {1, 1, 120}, .resample = i, .cancel = &cancel};
        struct generated g;
        struct slot slots[SLOTS_MAX];
        assert_int_equal(m->ops->speak(m, &r, &g, NULL), 0);
        int n = dialect_slots(d, g.text.data, g.text.len, slots, SLOTS_MAX);
        assert_true(n >= 1 && slots[0].kind == SLOT_VERB);
        const struct beam_request x = {.goal = GOAL_STEP, .said = &g, .slot = &slots[0]};
        struct beam_candidate out[BEAM_WIDTH];
        int64_t length = m->ops->length(m);
        int found = m->ops->beam_search(m, before, &x, out, BEAM_WIDTH, NULL);
        assert_int_equal(m->ops->length(m), length);
        assert_true(found > 3);
        double p = 1, sum = 0;
        size_t begin = 0;
        for (int k = 0; k < g.n; k++) {
            bool inside = begin < slots[0].end + 1 && g.choices[k].end > slots[0].begin;
            p *= inside && !g.choices[k].forced ? exp((double)g.choices[k].logprob_masked) : 1;
            begin = g.choices[k].end;
        }
        for (int k = 0; k < found; k++) {
            sum += out[k].p;
            if (strlen(out[k].text) == slots[0].end - slots[0].begin &&
                !memcmp(out[k].text, g.text.data + slots[0].begin, strlen(out[k].text))) {
                assert_true(fabs(out[k].p - p) < 1e-3);
                compared++;
            }
        }
        assert_true(sum < 1.0001);
        generated_free(&g);
        assert_int_equal(m->ops->rewind(m, before, NULL), 0);
    }
    assert_true(compared > 0);
    m->ops->mark_free(before);
    llm_free(m);
    image_free(&im);
    dialect_free(d);
}

/* ---- slots ----------------------------------------------------------------------------------- */

static void t_slots(void **state)
{
    static const struct {
        const char *dialect, *reply;
        const char *slots[4]; /* expected text of the verb and of each point */
        int at[2][2];         /* expected points in an image of 640 x 640 */
    } cases[] = {
        {"pocket-wide",
         "Name it<click>the <b field<at><7><.6><21><.4>",
         {"click", "7><.6><21><.4"},
         {{125, 345}}},
        {"pocket-wide", "<write>Name<at><0><.2><39><.5>12 34", {"write", "0><.2><39><.5"}, {{5, 635}}},
        {"pocket-wide", "ok<done>It is 5.", {"done"}, {{0}}},
        {"holo3",
         "{\"note\": \"x\\\": 5\", \"thought\": \"\\\"tool_name\\\": 1 2\", \"tool_call\": {\"tool_name\": "
         "\"click_desktop\", \"element\": \"7, 8\", \"x\": 500, \"y\": 250}}",
         {"click_desktop", "500, \"y\": 250"},
         {{320, 160}}},
        {"holo3",
         "{\"note\": null, \"thought\": \"d\", \"tool_call\": {\"tool_name\": \"drag_and_drop\", "
         "\"description\": \"it\", "
         "\"x1\": 200, \"y1\": 100, \"x2\": 1000, \"y2\": 0}}",
         {"drag_and_drop", "200, \"y1\": 100", "1000, \"y2\": 0"},
         {{128, 64}, {639, 0}}},
        {"holo3",
         "{\"note\": null, \"thought\": \"d\", \"tool_call\": {\"tool_name\": \"write_desktop\", "
         "\"content\": \"1, 2\"}}",
         {"write_desktop"},
         {{0}}},
        {"gemini",
         "{\"name\": \"click_at\", \"arguments\": {\"x\": 10, \"y\": 20}}",
         {"click_at", "10, \"y\": 20"},
         {{6, 12}}},
        {"anthropic-computer",
         "{\"action\": \"left_click\", \"coordinate\": [300, 41]}",
         {"left_click", "300, 41"},
         {{300, 41}}},
        {"openai-computer",
         "{\"type\": \"click\", \"button\": \"left\", \"x\": 7, \"y\": 639}",
         {"click", "7, \"y\": 639"},
         {{7, 639}}},
        {"uitars", "Thought: a\nAction: click(start_box='(3,4)')", {NULL}, {{0}}},
        {"holo3", "{\"tool_name\": \"click_desk", {NULL}, {{0}}},
        {"pocket-wide", "<click", {NULL}, {{0}}},
        {"anthropic-computer", "", {NULL}, {{0}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dialect *d = dialect_load(cases[i].dialect, NULL);
        const char *reply = cases[i].reply;
        struct slot slots[SLOTS_MAX];
        int n = dialect_slots(d, reply, strlen(reply), slots, SLOTS_MAX), wanted = 0, places = 0;
        while (cases[i].slots[wanted])
            wanted++;
        if (n != wanted)
            fail_msg("%d slots in '%s'", n, reply);
        for (int k = 0; k < n; k++) {
            size_t len = slots[k].end - slots[k].begin;
            assert_int_equal(slots[k].kind, k ? SLOT_POINT : SLOT_VERB);
            if (len != strlen(cases[i].slots[k]) ||
                memcmp(reply + slots[k].begin, cases[i].slots[k], len) != 0)
                fail_msg("slot %d is '%.*s', not '%s'", k, (int)len, reply + slots[k].begin,
                         cases[i].slots[k]);
            /* The end is found if the text continues after the slot, and not if the text stops there. */
            const char *rest = reply + slots[k].begin;
            assert_int_equal(dialect_slot_end(d, slots[k].kind, rest, strlen(rest)), (ptrdiff_t)len);
            assert_int_equal(dialect_slot_end(d, slots[k].kind, rest, len), -1);
            int32_t x, y;
            if (slots[k].kind != SLOT_POINT)
                continue;
            assert_int_equal(dialect_slot_point(d, rest, len, 640, 640, &x, &y), 0);
            assert_int_equal(x, cases[i].at[places][0]);
            assert_int_equal(y, cases[i].at[places++][1]);
            assert_int_equal(dialect_slot_point(d, "70000, 70000", 12, 640, 640, &x, &y), -1);
        }
        assert_int_equal(dialect_slots(d, reply, strlen(reply), slots, 1), wanted ? 1 : 0);
        dialect_free(d);
    }
}

static void t_words(void **state)
{
    static const struct {
        const char *reply, *name, *text; /* NULL: none */
    } cases[] = {{"ok<write>City<at><0><.2><39><.5>Rome 5\n", "City", "Rome 5"},
                 {"<write>City<at><0><.2><39><.5>\n", "City", NULL},
                 {"<click>Save as<at><7><.6><21><.4>", "Save as", NULL},
                 {"<click><at><7><.6><21><.4>", NULL, NULL},
                 {"<done>It is 5.\n", NULL, "It is 5."},
                 {"<at>", NULL, NULL},
                 {"Rome", NULL, NULL},
                 {"", NULL, NULL}};
    struct dialect *d = dialect_load("pocket-wide", NULL), *other = dialect_load("holo3", NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (enum slot_kind kind = SLOT_NAME; kind <= SLOT_TEXT; kind++) {
            const char *reply = cases[i].reply, *want = kind == SLOT_NAME ? cases[i].name : cases[i].text;
            struct slot slot;
            bool found = dialect_word_slot(d, kind, reply, strlen(reply), &slot);
            check_note("'%s': %.*s", reply, found ? (int)(slot.end - slot.begin) : 0,
                       reply + (found ? slot.begin : 0));
            assert_int_equal(found, want != NULL);
            assert_false(dialect_word_slot(other, kind, reply, strlen(reply), &slot));
            if (!found)
                continue;
            assert_int_equal(slot.end - slot.begin, strlen(want));
            assert_memory_equal(reply + slot.begin, want, strlen(want));
            char *ended = xasprintf("%s%s", reply + slot.begin, kind == SLOT_TEXT ? "\n" : "");
            assert_int_equal(dialect_slot_end(d, kind, ended, strlen(ended)), strlen(want));
            assert_int_equal(dialect_slot_end(d, kind, ended, strlen(want)), -1);
            free(ended);
        }
    char *begin = dialect_step_begin(d, ACT_TYPE, "City");
    assert_string_equal(begin, "<write>City<at>");
    free(begin);
    begin = dialect_step_begin(d, ACT_CLICK, "Save as");
    assert_string_equal(begin, "<click>Save as<at>");
    free(begin);
    assert_null(dialect_step_begin(d, ACT_CLICK, "a <b>"));
    assert_null(dialect_step_begin(d, ACT_CLICK, "a name of more than forty letters is too long"));
    assert_null(dialect_step_begin(d, ACT_WAIT, "City"));
    assert_null(dialect_step_begin(other, ACT_CLICK, "City"));
    dialect_free(d);
    dialect_free(other);
}

/* Returns whether the grammar accepts the whole text and is then complete. */
static bool takes(struct grammar *g, const struct tokenizer *t, const char *text)
{
    struct tokens ids = {0};
    int state = grammar_start(g);
    tokenizer_encode(t, text, strlen(text), true, &ids);
    for (int i = 0; i < (int)ids.n && state >= 0; i++)
        state = grammar_advance(g, state, ids.ids[i]);
    tokens_free(&ids);
    return state >= 0 && grammar_finished(g, state);
}

static void t_given_words(void **state)
{
    static const char *const words[] = {"To", "Travel date", "Day"};
    struct dialect *d = dialect_load("pocket-wide", NULL), *other = dialect_load("holo3", NULL);
    struct tokenizer *t = tokenizer_open("assets/pocket/model", NULL);
    assert_non_null(t);
    struct grammar *g = dialect_words_grammar(d, SLOT_NAME, "", words, 3, t, NULL);
    assert_true(takes(g, t, "To<at>") && takes(g, t, "Travel date<at>") && takes(g, t, "Day<at>"));
    assert_false(takes(g, t, "To"));
    assert_false(takes(g, t, "Travel<at>"));
    assert_false(takes(g, t, "Today<at>"));
    grammar_free(g);
    g = dialect_words_grammar(d, SLOT_TEXT, "<x>", words, 1, t, NULL);
    assert_true(takes(g, t, "<x>To\n"));
    assert_false(takes(g, t, "To\n"));
    assert_false(takes(g, t, "<x>Day\n"));
    grammar_free(g);
    struct err e = ERR_INIT;
    assert_null(dialect_words_grammar(d, SLOT_VERB, "", words, 3, t, &e));
    assert_null(dialect_words_grammar(other, SLOT_NAME, "", words, 3, t, &e));
    check_note("%s", e.text);
    tokenizer_free(t);
    dialect_free(d);
    dialect_free(other);
}

/* Each requested word must be a candidate. Its probability is the product of the model's choices at the
 * letters where the words differ, so the sum is 1. */
static void t_among_words(void **state)
{
    static const char *const words[] = {"Destination", "Departure", "Day", "To"};
    const struct engine_options o = {.dir = "assets/pocket/model", .threads = 2};
    struct engine *g = engine_open(&o, NULL);
    struct dialect *d = dialect_load("pocket-wide", NULL);
    struct llm *m = llm_local(g, d, 1);
    struct image im = tiny_image(320, 240, 3);
    volatile int cancel = 0;
    const struct chat_part parts[] = {{.text = "Type Rome into Departure"}, {.image = &im}};
    assert_int_equal(m->ops->begin(m, "", NULL), 0);
    assert_int_equal(m->ops->user(m, parts, 2, CHAT_PLACE_TEMPLATE, NULL), 0);
    struct llm_mark *before = m->ops->mark(m, NULL);
    const struct llm_request r = {
        .goal = GOAL_STEP, .sampling = {0, 1, 60}, .begins = "<write>Depart<at>", .cancel = &cancel};
    struct generated said;
    struct slot slot;
    struct beam_candidate out[8];
    assert_int_equal(m->ops->speak(m, &r, &said, NULL), 0);
    assert_true(dialect_word_slot(d, SLOT_NAME, said.text.data, said.text.len, &slot));
    const struct beam_request x = {
        .goal = GOAL_STEP, .said = &said, .slot = &slot, .words = words, .n_words = 4};
    int n = m->ops->beam_search(m, before, &x, out, 8, NULL);
    double sum = 0;
    for (int i = 0; i < n; i++) {
        check_note("%s %.4f", out[i].text, out[i].p);
        sum += out[i].p;
    }
    assert_int_equal(n, 4);
    assert_true(fabs(sum - 1) < 1e-3);
    generated_free(&said);
    m->ops->mark_free(before);
    llm_free(m);
    image_free(&im);
    dialect_free(d);
    engine_close(g);
}

static const struct CMUnitTest tests[] = {
    WITH_MODEL_F32("the most probable candidates and their probabilities equal those of an exhaustive search",
                   t_all),
    WITH_MODEL_F32("the search ends: width 1, no value, no grammar, or a cancel", t_bounds),
    WITH_MODEL_F32("a sampled reply is among its alternatives, with its probability", t_llm),
    CLAIM("a grammar of given words accepts each of them with its end, and nothing else", t_given_words),
    CLAIM("each given word has a probability, and they sum to 1", t_among_words),
    CLAIM("names and texts are found in replies, and the beginning of a reply with a name", t_words),
    CLAIM("verb and points are found in each dialect that has them", t_slots),
};

CHECK_MAIN()
