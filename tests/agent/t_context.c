/* t_context.c - tests of the conversation's context: which screenshots it contains, how many tokens that
 * costs, and that after a cut it equals a context built from scratch.
 */
#include "check.h"
#include "tiny_model.h"

#include "agent/context.h"

#include <math.h>

enum { TURNS = 11, SPOKEN = 12 };

static struct dialect *dialect;

static int setup(void **state)
{
    dialect = dialect_load("holo3", NULL);
    return dialect ? 0 : -1;
}

static int teardown(void **state)
{
    dialect_free(dialect);
    return 0;
}

#define WITH_DIALECT(text, fn) CLAIM_WITH(text, fn, setup, teardown)

static const char system_text[] = "You use a computer.";

/* The turns so far, to replay them in a new conversation. */
struct story {
    char *leads[TURNS], *replies[TURNS];
    struct image images[TURNS];
    int n; /* turns; the last one has no reply yet */
};

static void story_free(struct story *s)
{
    for (int i = 0; i < s->n; i++) {
        free(s->leads[i]);
        free(s->replies[i]);
        image_free(&s->images[i]);
    }
}

/* Adds a turn.  Prompts and replies have different lengths, so that a checkpoint at a wrong position is
 * detected. */
static void story_add(struct story *s)
{
    int k = s->n++;
    s->leads[k] = xasprintf("turn %d %.*s\n", k, 3 * k, "..............................");
    s->images[k] = tiny_image(70 + k, 50, (uint64_t)k + 1);
}

/* Replays all turns in a new conversation, with the screenshots from turn `first` on. */
static void say(struct llm *m, const struct story *s, int turns, int first)
{
    assert_int_equal(m->ops->begin(m, system_text, NULL), 0);
    for (int i = 0; i < turns; i++) {
        char *lead = xasprintf("%s%s", s->leads[i], dialect->observation_open);
        struct chat_part parts[3] = {
            {.text = lead}, {.text = dialect->image_placeholder}, {.text = dialect->observation_close}};
        if (i >= first)
            parts[1] = (struct chat_part){.image = &s->images[i]};
        assert_int_equal(m->ops->user(m, parts, 3, CHAT_PLACE_TEMPLATE, NULL), 0);
        if (s->replies[i])
            assert_int_equal(m->ops->reply(m, s->replies[i], NULL), 0);
        free(lead);
    }
}

/* Returns the first turn whose screenshot is in the context after turn k, under either policy. */
static int first_in_view(enum window_policy window, int max_images, int k)
{
    if (window == WINDOW_SAWTOOTH)
        return k - k % max_images;
    return k < max_images ? 0 : k - max_images + 1;
}

static int64_t length_of(const struct story *s, int turns, int first)
{
    struct llm *m = llm_script("", 0);
    say(m, s, turns, first);
    int64_t n = m->ops->length(m);
    llm_free(m);
    return n;
}

/* ---- window policies ------------------------------------------------------------------------- */

/* Checks the context and the cost of one turn. */
static void check_turn(struct llm *m, const struct story *s, enum window_policy window, int max_images,
                       const struct context_cost *cost)
{
    int k = s->n - 1, first = first_in_view(window, max_images, k),
        before = k ? first_in_view(window, max_images, k - 1) : 0;
    struct llm *fresh = llm_script("", 0);
    say(fresh, s, s->n, first);
    const char *view = llm_script_transcript(m);
    assert_string_equal(view, llm_script_transcript(fresh));
    assert_int_equal(check_count(view, "[image "), k - first + 1);
    assert_int_equal(check_count(view, dialect->image_placeholder), first);
    assert_int_equal(cost->images, k - first + 1);
    assert_true(cost->images <= max_images);
    assert_int_equal(cost->cut, first != before);
    assert_int_equal(cost->total, fresh->ops->length(fresh));
    /* everything before the first change is reused: the whole conversation, or the part before the oldest
     * screenshot */
    int64_t kept = 0;
    if (first != before)
        kept = length_of(s, before, before);
    else if (k)
        kept = length_of(s, k, first);
    assert_int_equal(cost->reused, kept);
    assert_int_equal(cost->prefilled, cost->total - kept);
    llm_free(fresh);
}

static void run_window(enum window_policy window, int max_images)
{
    static const char replies[] = "a\nbb\nccc\ndddd\neeeee\nffffff\nggggggg\nhhhhhhhh\niiiiiiiii\nj\nk\n";
    struct llm *m = llm_script(replies, sizeof replies - 1);
    struct context *c = context_new(m, dialect, window, max_images, 0, system_text, NULL);
    struct story s = {0};
    int64_t read = 0, images = 0, cuts = 0;
    assert_non_null(c);
    for (int k = 0; k < TURNS; k++) {
        struct context_cost cost;
        struct generated g;
        volatile int cancel = 0;
        struct llm_request r = {.cancel = &cancel};
        story_add(&s);
        assert_int_equal(context_observe(c, s.leads[k], &s.images[k], &cost, NULL), 0);
        check_turn(m, &s, window, max_images, &cost);
        read += cost.prefilled;
        images += cost.images;
        cuts += cost.cut;
        assert_int_equal(context_think(c, &r, &g, NULL), 0);
        s.replies[k] = xstrdup(g.text.data);
        generated_free(&g);
        assert_int_equal(context_accept(c, s.replies[k], true, NULL), 0);
    }
    check_note("%-8s %d: %lld cuts in %d turns, %.1f screenshots in view, %lld tokens read",
               window == WINDOW_SAWTOOTH ? "sawtooth" : "strict", max_images, (long long)cuts, TURNS,
               (double)images / TURNS, (long long)read);
    assert_int_equal(m->ops->stats(m).prefilled, read); /* cost and session statistics agree */
    context_free(c);
    llm_free(m);
    story_free(&s);
}

static void t_sawtooth(void **state)
{
    for (int n = 1; n <= 4; n++)
        run_window(WINDOW_SAWTOOTH, n);
}

static void t_strict(void **state)
{
    for (int n = 1; n <= 4; n++)
        run_window(WINDOW_STRICT, n);
}

/* ---- attempts -------------------------------------------------------------------------------- */

static void t_attempts(void **state)
{
    static const char replies[] = "no step\nstill none\nthoughts</think>a step\nnext\n";
    struct llm *m = llm_script(replies, sizeof replies - 1);
    struct context *c = context_new(m, dialect, WINDOW_SAWTOOTH, 2, 0, system_text, NULL);
    struct story s = {0};
    struct context_cost cost;
    struct generated g;
    volatile int cancel = 0;
    struct llm_request r = {.cancel = &cancel};
    story_add(&s);
    assert_int_equal(context_observe(c, s.leads[0], &s.images[0], &cost, NULL), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(context_think(c, &r, &g, NULL), 0);
        generated_free(&g);
    }
    assert_int_equal(context_accept(c, "a step", false, NULL), 0);
    s.replies[0] = xstrdup("a step");
    int64_t carried = (int64_t)strlen("Assistant\na step\n");

    story_add(&s);
    assert_int_equal(context_observe(c, s.leads[1], &s.images[1], &cost, NULL), 0);
    struct llm *fresh = llm_script("", 0);
    say(fresh, &s, 2, 0);
    assert_string_equal(llm_script_transcript(m), llm_script_transcript(fresh));
    assert_null(strstr(llm_script_transcript(m), "no"));
    /* a rewritten reply is prefilled again, and counted in this turn */
    assert_int_equal(cost.reused, length_of(&s, 1, 0) - carried);
    assert_int_equal(cost.prefilled, cost.total - cost.reused);
    llm_free(fresh);
    context_free(c);
    llm_free(m);
    story_free(&s);
}

/* ---- with a model ---------------------------------------------------------------------------- */

static void speak(struct llm *m, struct context *c, struct generated *g)
{
    volatile int cancel = 0;
    struct llm_request r = {.goal = GOAL_TEXT,
                            .sampling = {.temperature = 0, .top_p = 1, .max_tokens = SPOKEN},
                            .cancel = &cancel};
    struct err e = ERR_INIT;
    if (c ? context_think(c, &r, g, &e) : m->ops->speak(m, &r, g, &e))
        fail_msg("%s", e.text);
}

/* Checks that a new conversation with the same context has the same tokens and gives the same reply. */
static double compare(struct engine *engine, struct llm *m, const struct story *s, int first,
                      const struct generated *g)
{
    struct llm *fresh = llm_local(engine, dialect, 1);
    struct generated again;
    say(fresh, s, s->n, first);
    int64_t n = fresh->ops->length(fresh);
    assert_memory_equal(session_tokens(llm_session(m)), session_tokens(llm_session(fresh)),
                        (size_t)n * sizeof(int32_t));
    speak(fresh, NULL, &again);
    assert_int_equal(m->ops->length(m), fresh->ops->length(fresh));
    assert_int_equal(g->n, again.n);
    double worst = 0;
    for (int i = 0; i < g->n; i++) {
        assert_int_equal(g->choices[i].id, again.choices[i].id);
        worst = check_worse(worst, fabs((double)g->choices[i].logprob - (double)again.choices[i].logprob));
    }
    generated_free(&again);
    llm_free(fresh);
    return worst;
}

static void run_model(struct engine *engine, enum window_policy window, bool as_said)
{
    enum { IN_VIEW = 3 };
    struct llm *m = llm_local(engine, dialect, 1);
    struct context *c = context_new(m, dialect, window, IN_VIEW, 0, system_text, NULL);
    struct story s = {0};
    double worst = 0;
    int compared = 0;
    for (int k = 0; k < TURNS; k++) {
        struct context_cost cost;
        struct generated g;
        story_add(&s);
        assert_int_equal(context_observe(c, s.leads[k], &s.images[k], &cost, NULL), 0);
        speak(NULL, c, &g);
        /* a verbatim reply may be tokenized differently from its text, unless a cut has rewritten it */
        if (!as_said || cost.cut) {
            worst = check_worse(worst, compare(engine, m, &s, first_in_view(window, IN_VIEW, k), &g));
            compared++;
        }
        s.replies[k] = as_said ? xstrdup(g.text.data) : xasprintf("reply %d", k);
        generated_free(&g);
        assert_int_equal(context_accept(c, s.replies[k], as_said, NULL), 0);
    }
    check_note("%-8s %s: %d turns compared, log probabilities differ by at most %.1e",
               window == WINDOW_SAWTOOTH ? "sawtooth" : "strict", as_said ? "verbatim" : "rewritten",
               compared, worst);
    assert_true(compared >= (as_said ? 3 : TURNS));
    assert_true(worst < 1e-4);
    context_free(c);
    llm_free(m);
    story_free(&s);
}

static void t_model(void **state)
{
    struct tiny tiny;
    tiny_init(&tiny, check_seed());
    tiny_write(&tiny);
    struct engine *engine = tiny_open(&tiny, NULL, 1, true);
    for (int i = 0; i < 4; i++)
        run_model(engine, i / 2 ? WINDOW_STRICT : WINDOW_SAWTOOTH, i % 2);
    engine_close(engine);
    tiny_free(&tiny);
}

static int no_image(void *arg, int turn, struct image *out, struct err *e)
{
    return err_set(e, ERR_FAILED, "turn %d would be prefilled again", turn);
}

/* Cancels the prefill of the third turn and undoes it; then rewinds to the first. Turns without screenshots are
 * not cancelled before that, while an image is encoded. */
static void t_undo(void **state)
{
    enum { POINTS = 8 };
    volatile int cancel = 1;
    struct err e = ERR_INIT;
    struct tiny tiny;
    struct story s = {0};
    struct context_cost cost;
    tiny_init(&tiny, check_seed());
    tiny_write(&tiny);
    struct engine *engine = tiny_open(&tiny, NULL, 1, true);
    struct llm *m = llm_local(engine, dialect, 1);
    struct context *c = context_new(m, dialect, WINDOW_SAWTOOTH, TURNS, POINTS, system_text, NULL);
    context_hide_images(c);
    for (int k = 0; k < 3; k++) {
        struct generated g;
        story_add(&s);
        context_allow_undo(c, k == 2 ? &cancel : NULL);
        int rc = context_observe(c, s.leads[k], &s.images[k], &cost, &e);
        assert_int_equal(rc, k == 2 ? -1 : 0);
        if (rc)
            break;
        speak(NULL, c, &g);
        generated_free(&g);
        assert_int_equal(context_accept(c, "a step", false, NULL), 0);
    }
    assert_string_equal(e.text, "stopped during prefill");
    assert_int_equal(context_undo(c, NULL), 0);
    assert_int_equal(context_turns(c), 2);
    llm_set_cancel(m, NULL);
    assert_int_equal(context_rewind(c, 0, no_image, NULL, &cost, NULL), 0);
    assert_int_equal(cost.prefilled, 0);
    context_free(c);
    llm_free(m);
    story_free(&s);
    engine_close(engine);
    tiny_free(&tiny);
}

static const struct CMUnitTest tests[] = {
    WITH_DIALECT("sawtooth: screenshots accumulate, then all old ones are dropped at once", t_sawtooth),
    WITH_DIALECT("strict: the last N screenshots stay, one is dropped per turn, the prefix is reused",
                 t_strict),
    WITH_DIALECT("discarded replies leave no trace, and a rewritten one is counted", t_attempts),
    WITH_DIALECT("after a cut a model's tokens and replies equal those of a new session", t_model),
    WITH_DIALECT("a turn whose prefill was cancelled costs no rewind point", t_undo),
};

CHECK_MAIN()
