/* t_step_until.c - tests of stepping: where a run stops by itself, the information shown there, and the
 * random seed.
 *
 * The setup is that of t_step.c; the tests of the random seed use the model that comes with the program.
 */
#include "check.h"
#include "stepped.h"

#include "base/file.h"
#include "step/private.h"

#define POCKET "assets/pocket/model"

/* ---- breakpoints ----------------------------------------------------------------------------- */

/* Runs with a breakpoint and returns the step before which the run stops. */
static int stopped_before(struct play *p, const char *spec, const char *replies)
{
    stepped(p, (const char *const[]){spec, NULL}, "stop\n", replies);
    int step = 0;
    if (p->r.status == AGENT_STOPPED && sscanf(p->e.text, "stopped before step %d", &step) != 1)
        fail_msg("%s", p->e.text);
    return step;
}

static void t_breakpoints(void **state)
{
    static const char replies[] = CLICK(500, 500) CLICK_ON("the Delete button", 900, 900) TYPE("secret plan")
        CLICK(300, 300) ANSWER("All good.");
    struct play p;
    stage_still = true;
    stepped_open(&p);
    assert_int_equal(stopped_before(&p, "step 4", replies), 4);
    assert_int_equal(json_array_size(stepped_presses(&p)), 1); /* 900,900 is outside the window */
    assert_int_equal(stopped_before(&p, "kind type", replies), 3);
    assert_int_equal(stopped_before(&p, "kind answer", replies), 5);
    assert_int_equal(stopped_before(&p, "kind drag", replies), 0);
    assert_int_equal(stopped_before(&p, "text SECRET +pl", replies), 3);
    assert_int_equal(stopped_before(&p, "text delete", replies), 2);
    assert_int_equal(stopped_before(&p, "text ^as planned$", replies), 1);
    assert_int_equal(stopped_before(&p, "window xclient", replies), 1);
    assert_int_equal(stopped_before(&p, "window firefox", replies), 0);
    assert_int_equal(stopped_before(&p, "irreversible", replies), 2);
    assert_int_equal(stopped_before(&p, "no-effect", replies), 2);
    assert_int_equal(stopped_before(&p, "confidence 0.9", replies), 0); /* a script has no confidence */
    /* several breakpoints; one is added and removed while a step is shown */
    stepped(&p, (const char *const[]){"step 2", "kind type", NULL},
            "continue\nbreak step 4\nbreak step 5\nclear 4\nc\nstop\n", replies);
    assert_string_equal(p.e.text, "stopped before step 4");
    assert_int_equal(stopped_before(&p, "  kind   type", replies), 3);
    play_close(&p);
}

/* Tests "and", "until", and a disabled breakpoint. */
static void t_conditions(void **state)
{
    static const char replies[] = CLICK(500, 500) CLICK_ON("the Pay and go button", 900, 900)
        CLICK_ON("the Pay button", 300, 300) TYPE("pay later") CLICK(310, 310) ANSWER("All good.");
    struct play p;
    stage_still = true;
    stepped_open(&p);
    assert_int_equal(stopped_before(&p, "kind click and text Pay", replies), 2);
    assert_int_equal(stopped_before(&p, "text pay and kind type", replies), 4);
    assert_int_equal(stopped_before(&p, "text \"Pay and go\" and kind click", replies), 2);
    assert_int_equal(stopped_before(&p, "text Pay and go", replies), 2); /* "go" is not a condition */
    assert_int_equal(stopped_before(&p, "kind drag and text Pay", replies), 0);
    assert_int_equal(stopped_before(&p, "text Pay and kind click and step 3", replies), 3);
    assert_int_equal(stopped_before(&p, "window xclient and no-effect", replies), 2);
    stepped(&p, NULL, "until step 3 and kind click\nuntil kind answer\nstop\n", replies);
    assert_non_null(strstr(p.e.text, "stopped before step 6"));
    /* it applies once, and other breakpoints still apply */
    stepped(&p, NULL, "break kind type\nuntil step 6\ncontinue\nstop\n", replies);
    stepped_ended(&p, AGENT_UNVERIFIED);
    stepped(&p, NULL, "break kind type\nuntil step 6\nstop\n", replies);
    assert_non_null(strstr(p.e.text, "stopped before step 4"));
    stepped(&p, NULL, "break kind type\nbreak step 5\ntoggle 1\ncontinue\nstop\n", replies);
    assert_non_null(strstr(p.e.text, "stopped before step 5"));
    stepped(&p, NULL, "break kind type\ntoggle 1\ntoggle 1\ncontinue\nstop\n", replies);
    assert_non_null(strstr(p.e.text, "stopped before step 4"));
    stepped(&p, NULL, "toggle 1\n", replies);
    assert_non_null(strstr(p.e.text, "breakpoint 1 does not exist"));
    play_close(&p);
}

static void t_specs(void **state)
{
    static const char *const bad[] = {"",
                                      "step",
                                      "step 0",
                                      "step x",
                                      "kind",
                                      "text",
                                      "window",
                                      "irreversible now",
                                      "confidence",
                                      "confidence 2",
                                      "no-effect 3",
                                      "sometimes",
                                      "step 1 and step",
                                      "step 1 and step 2 and step 3 and step 4 and step 5",
                                      "kind click and "};
    struct err e = ERR_INIT;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        e = (struct err)ERR_INIT;
        assert_null(break_parse(bad[i], &e));
        assert_int_equal(e.kind, ERR_USAGE);
    }
    char long_one[300];
    memset(long_one, 'x', sizeof long_one);
    memcpy(long_one, "text ", 5);
    long_one[sizeof long_one - 1] = 0;
    assert_null(break_parse(long_one, &e));
}

/* ---- view ------------------------------------------------------------------------------------ */

struct witness { /* a front end that runs every step and records the marker's position */
    struct step_front base;
    int x[64], y[64], n;
    double moved_on;
    bool recorded;
    int rewind_at; /* the step at which it rewinds to the first */
};

static int witness_show(struct step_front *f, const struct step_view *v, struct err *e)
{
    struct witness *w = (struct witness *)f;
    if (v->step->nactions && step_target(v, 0, false, &w->x[w->n % 64], &w->y[w->n % 64]))
        w->n++;
    assert_true(v->p->frame->w > 0 && *v->why);
    if (v->p->recorded) {
        w->recorded = true;
        w->moved_on = v->p->moved_on;
    }
    return 0;
}

static int witness_ask(struct step_front *f, const struct step_view *v, struct step_command *c, struct err *e)
{
    const struct witness *w = (const struct witness *)f;
    bool back = v->p->number == w->rewind_at;
    *c = (struct step_command){.verb = back ? STEP_REWIND : STEP_RUN, .n = 1};
    return 0;
}

static void t_marker(void **state)
{
    enum { CLICKS = 11 }; /* twelve without effect end a run */
    struct play p;
    uint64_t rng = check_seed();
    stepped_open(&p);
    for (int round = 0; round < 4; round++) {
        struct buf replies;
        if (round == 2) { /* views a window: its corner is the origin */
            Window root, parent, *list;
            unsigned n;
            XQueryTree(p.stage.other, DefaultRootWindow(p.stage.other), &root, &parent, &list, &n);
            XWindowAttributes at = {0};
            while (n &&
                   (!XGetWindowAttributes(p.stage.other, list[n - 1], &at) || at.map_state != IsViewable))
                n--;
            char *id = xasprintf("window:%lu", n ? list[n - 1] : root);
            XFree(list);
            screen_close(p.stage.s);
            p.stage.s = screen_open(&(struct screen_options){.view = id}, NULL);
            free(id);
            assert_non_null(p.stage.s);
            assert_int_not_equal(screen_view(p.stage.s).x, 0);
            p.o.screen = p.stage.s;
        }
        buf_init(&replies, 1 << 16);
        for (int i = 0; i < CLICKS; i++)
            buf_printf(&replies, STEP("\"click_desktop\", \"element\": \"it\", \"x\": %d, \"y\": %d"),
                       (int)(50 + 650 * check_random(&rng)), (int)(50 + 700 * check_random(&rng)));
        buf_puts(&replies, ANSWER("Done."));
        struct witness w = {.base = {.name = "witness", .show = witness_show, .ask = witness_ask}};
        p.o.settle = (struct settle){1, 1, 50};
        stepped_by(&p, &w.base, NULL, replies.data);
        stepped_ended(&p, AGENT_ANSWERED);
        json_t *list = stepped_presses(&p);
        assert_int_equal(json_array_size(list), CLICKS);
        assert_int_equal(w.n, CLICKS);
        for (int i = 0; i < CLICKS; i++) {
            assert_int_equal(field(list, (size_t)i, "x"), w.x[i]);
            assert_int_equal(field(list, (size_t)i, "y"), w.y[i]);
        }
        buf_free(&replies);
    }
    play_close(&p);
}

static void t_recorded(void **state)
{
    struct play p;
    stepped_open(&p);
    struct witness w = {.base = {.name = "witness", .show = witness_show, .ask = witness_ask},
                        .rewind_at = 2};
    stepped_by(&p, &w.base, NULL, CLICK(500, 500) CLICK(400, 400) CLICK(300, 300) ANSWER("Done."));
    stepped_ended(&p, AGENT_ANSWERED);
    assert_true(w.recorded);
    assert_true(w.moved_on >= 0 && w.moved_on < 0.01); /* the screen has not changed */
    play_close(&p);
}

/* ---- with a model ---------------------------------------------------------------------------- */

/* Returns all inputs and outputs of a reply as text; equal texts mean bit-identical replies. */
static char *fingerprint(const json_t *generate)
{
    assert_non_null(generate);
    return xasprintf("%s prompt %s logits %s reroll %lld", field_text(generate, "text"),
                     field_text(generate, "prompt_hash"), field_text(generate, "logits_hash"),
                     (long long)field_int(generate, "resample"));
}

static void same_reply(const struct play *p, int a, int b, bool same)
{
    char *x = fingerprint(stepped_event(p, "generate", a)), *y = fingerprint(stepped_event(p, "generate", b));
    if (!strcmp(x, y) != same)
        fail_msg("step %d: %s\nstep %d: %s", a, x, b, y);
    free(x);
    free(y);
}

static void t_rng(void **state)
{
    struct engine_options eo = {.dir = POCKET, .device = "cpu", .threads = 1};
    struct engine *engine = engine_open(&eo, NULL);
    if (!engine)
        skip(); /* not run from the source directory */
    struct play p;
    stepped_open(&p);
    dialect_free(p.dialect);
    p.o.dialect = p.dialect = dialect_load("pocket-wide", NULL);
    p.o.window = WINDOW_STRICT;
    p.o.max_images = 1;
    p.o.sampling = (struct sampling){1.5f, 1, 60};
    p.o.task = "Press Save";
    char *alone = NULL;
    for (int beam_search = 0; beam_search < 2; beam_search++) {
        char *path = xasprintf("%s/commands", p.stage.x.dir);
        static const char commands[] = "veto\nveto\nveto\nrewind 2\nveto\nrewind 1\nstop\n";
        assert_int_equal(file_write(path, commands, strlen(commands), NULL), 0);
        struct step_front *f = step_script(path, NULL, NULL);
        f->beam_search = beam_search ? 6 : 0;
        struct stepper *s = stepper_new(f, NULL, NULL);
        struct llm *m = llm_local(engine, p.dialect, check_seed());
        play_run(&p, m, stepper_overseer(s));
        stepped_ended(&p, AGENT_STOPPED);
        same_reply(&p, 2, 5, true); /* the same seed again, across cuts */
        same_reply(&p, 1, 7, true);
        same_reply(&p, 3, 6, true); /* and the steps that follow */
        same_reply(&p, 1, 2, false);
        /* requesting alternatives changes nothing */
        char *now = fingerprint(stepped_event(&p, "generate", 4));
        if (alone)
            assert_string_equal(alone, now);
        free(alone);
        alone = now;
        llm_free(m);
        stepper_free(s);
        free(path);
    }
    free(alone);
    play_close(&p);
    engine_close(engine);
}

/* Opens a run with the model that comes with the program; skips the test without it. */
static struct engine *pocket_open(struct play *p)
{
    struct engine_options o = {.dir = POCKET, .device = "cpu", .threads = 1};
    struct engine *engine = engine_open(&o, NULL);
    if (!engine)
        skip();
    stepped_open(p);
    dialect_free(p->dialect);
    p->o.dialect = p->dialect = dialect_load("pocket-wide", NULL);
    p->o.window = WINDOW_STRICT;
    p->o.max_images = 1;
    p->o.sampling = (struct sampling){0, 1, 60};
    return engine;
}

/* Each token of a reply has a probability; the confidence is the lowest. */
static void t_confidence(void **state)
{
    struct play p;
    struct engine *engine = pocket_open(&p);
    p.o.max_steps = 3;
    p.o.dry_run = true;
    for (int sure = 0; sure < 2; sure++) {
        char *path = xasprintf("%s/commands", p.stage.x.dir), *text = NULL;
        size_t len;
        assert_int_equal(file_write(path, "stop\n", 5, NULL), 0);
        FILE *log = open_memstream(&text, &len);
        struct step_front *f = step_script(path, log, NULL);
        struct stepper *s =
            stepper_new(f, (const char *const[]){sure ? "confidence 1e-30" : "confidence 1", NULL}, NULL);
        struct llm *m = llm_local(engine, p.dialect, 1);
        play_run(&p, m, stepper_overseer(s));
        assert_int_equal(p.r.status == AGENT_STOPPED, !sure); /* on this screen it is below the threshold */
        llm_free(m);
        stepper_free(s);
        fclose(log);
        if (!sure && (!strstr(text, "verbs") || !strstr(text, "sure")))
            fail_msg("%s", text);
        free(text);
        free(path);
    }
    play_close(&p);
    engine_close(engine);
}

/* Checks the odds of earlier steps: the choice, its probability, and the candidates of those queried. */
static int odds_show(struct step_front *f, const struct step_view *v, struct err *e)
{
    for (int i = 0; i < v->p->n_history; i++) {
        const struct history_step *h = &v->p->history[i];
        const struct step_odds *o = i < v->n_odds ? &v->odds[i] : NULL;
        assert_true(h->n_chosen >= 1 && *h->chosen[0].text && h->confidence >= 0);
        double product = h->chosen[0].p;
        assert_true(product > 0 && product <= 1 && h->confidence <= 1);
        assert_true(o && o->number == h->number && o->n_verbs > 0);
        bool among = false; /* the chosen verb is a candidate with the same probability */
        for (int k = 0; k < o->n_verbs; k++)
            among = among || (!strcmp(o->verbs[k].text, h->chosen[0].text) &&
                              o->verbs[k].p > product - 0.02 && o->verbs[k].p < product + 0.02);
        assert_true(among);
    }
    return 0;
}

static int odds_ask(struct step_front *f, const struct step_view *v, struct step_command *c, struct err *e)
{
    *c = (struct step_command){.verb = v->p->number == 3 ? STEP_STOP : STEP_VETO};
    return 0;
}

static void t_odds(void **state)
{
    struct play p;
    struct engine *engine = pocket_open(&p);
    p.o.dry_run = true;
    struct step_front f = {.name = "odds", .beam_search = 8, .show = odds_show, .ask = odds_ask};
    struct stepper *s = stepper_new(&f, NULL, NULL);
    struct llm *m = llm_local(engine, p.dialect, 1);
    play_run(&p, m, stepper_overseer(s));
    assert_int_equal(p.r.status, AGENT_STOPPED);
    llm_free(m);
    stepper_free(s);
    play_close(&p);
    engine_close(engine);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a run continues to its breakpoint: step, kind, text, window, irreversible, no effect",
          t_breakpoints),
    CLAIM("conditions are joined by 'and'; until applies once; a breakpoint can be disabled", t_conditions),
    CLAIM("an earlier step has the probability of its choice and of the alternatives", t_odds),
    CLAIM("an invalid breakpoint is refused", t_specs),
    CLAIM("the marker shows the position of the event, on the screen and in a window", t_marker),
    CLAIM("a recorded screen is labelled, with its difference from the current one", t_recorded),
    CLAIM("after a rewind the same seed gives identical replies; requesting alternatives changes nothing",
          t_rng),
    CLAIM("a run continues until the model's confidence is low, and shows the alternatives", t_confidence),
};

CHECK_MAIN()
