/* t_step.c - claims about stepping: what a person says to a step changes what then happens.
 *
 * The loop, the stepper and the script front end are the real ones, on a real display with a window that writes down what
 * reaches it.  Replies are scripted, but for the claims about dice, where the model that comes with the program speaks.
 * What is asserted comes from the window, from what the conversation partner read, and from the run directory.
 */
#include "check.h"
#include "play.h"

#include "base/file.h"
#include "step/breakpoint.h"
#include "trace/report.h"

#include <signal.h>
#include <unistd.h>

#define POCKET "assets/pocket/model"

static void open_play(struct play *p)
{
    play_open(p);
    p->o.log_tokens = true;
}

static void run_front(struct play *p, struct step_front *f, const char *const *breaks, const char *replies)
{
    struct err e = ERR_INIT;
    struct stepper *s = stepper_new(f, breaks, &e);
    if (!s)
        fail_msg("%s", e.text);
    play_forget();
    play_script(p, replies, stepper_overseer(s));
    stepper_free(s);
}

/* Scripted commands over scripted replies. */
static void play(struct play *p, const char *const *breaks, const char *commands, const char *replies)
{
    char *path = xasprintf("%s/commands", p->stage.x.dir);
    assert_int_equal(file_write(path, commands, strlen(commands), NULL), 0);
    struct step_front *f = step_script(path, NULL, NULL);
    assert_non_null(f);
    run_front(p, f, breaks, replies);
    free(path);
}

static void ended(const struct play *p, enum agent_status status)
{
    if (p->r.status != status)
        fail_msg("ended as '%s', not as '%s' (%s)", agent_status_name(p->r.status), agent_status_name(status),
                 p->e.text);
}

static json_t *presses(struct play *p)
{
    return stage_events(&p->stage, "button_press");
}

static void pressed_at(struct play *p, size_t i, int x, int y)
{
    json_t *list = presses(p);
    assert_true(json_array_size(list) > i);
    assert_int_equal(field(list, i, "x"), x);
    assert_int_equal(field(list, i, "y"), y);
}

/* Event number i of what people did, in the order of the record. */
static const json_t *human(const struct play *p, int i)
{
    for (int k = 0; k < p->record.n; k++)
        if (!strcmp(p->record.events[k].kind, "human") && i-- == 0)
            return p->record.events[k].fields;
    fail_msg("nobody did so much");
    return NULL;
}

static const json_t *event_of(const struct play *p, const char *kind, int step)
{
    const json_t *found = NULL;
    for (int k = 0; k < p->record.n; k++)
        if (!strcmp(p->record.events[k].kind, kind) && p->record.events[k].step == step)
            found = p->record.events[k].fields;
    return found;
}

static void told(int turn, const char *what)
{
    assert_true(turn < played.n_told);
    if (!strstr(played.told[turn], what))
        fail_msg("turn %d says '%s', not '%s'", turn, played.told[turn], what);
}

/* ---- one step ---------------------------------------------------------------------------------------------------- */

static void t_run_stop(void **state)
{
    (void)state;
    struct play p;
    open_play(&p);
    play(&p, NULL, "# a comment\n\nrun\n  stop   enough of it\n",
         CLICK(500, 500) CLICK(250, 250) ANSWER("x"));
    ended(&p, AGENT_STOPPED);
    assert_int_equal(agent_exit_code(p.r.status, &p.e), ERR_STOPPED);
    assert_string_equal(p.e.text, "stopped before step 2: enough of it");
    assert_int_equal(json_array_size(presses(&p)), 1);
    pressed_at(&p, 0, 400, 300);
    assert_string_equal(field_text(human(&p, 0), "what"), "run");
    assert_string_equal(field_text(human(&p, 1), "what"), "stop");
    assert_string_equal(field_text(human(&p, 1), "by"), "script");
    assert_null(event_of(&p, "action", 2));

    play(&p, NULL, "run\n", CLICK(500, 500) CLICK(250, 250)); /* the end of a script is an end */
    ended(&p, AGENT_STOPPED);
    assert_non_null(strstr(p.e.text, "the script has ended"));
    play(&p, NULL, "run\nrun\n", CLICK(500, 500) ANSWER("done"));
    ended(&p, AGENT_ANSWERED);
    assert_string_equal(p.r.answer, "done");
    play_close(&p);
}

static void t_edit(void **state)
{
    (void)state;
    struct play p;
    open_play(&p);
    play(&p, NULL,
         "target 123 210\nrun\n"
         "text hey\nrun\n"
         "target2 500 400\nrun\n"
         "edit {\"button\": \"right\", \"x\": 77}\nreset\nedit {\"button\": \"right\", \"count\": 2}\nrun\n"
         "edit {\"kind\": \"click\", \"x\": 90, \"y\": 91}\nrun\nrun\n",
         CLICK(500, 500) TYPE("no") DRAG CLICK(400, 400) TYPE("never") ANSWER("Done."));
    ended(&p, AGENT_ANSWERED);
    pressed_at(&p, 0, 123, 210);
    json_t *keys = stage_events(&p.stage, "key_press");
    assert_int_equal(json_array_size(keys), 3);
    assert_string_equal(word(keys, 0, "text"), "h");
    pressed_at(&p, 1, 160, 120);
    json_t *up = stage_events(&p.stage, "button_release");
    assert_int_equal(field(up, 1, "x"), 500);
    assert_int_equal(field(up, 1, "y"), 400);
    pressed_at(&p, 2, 320, 240);
    assert_int_equal(field(presses(&p), 2, "button"), 3);
    assert_int_equal(field(presses(&p), 3, "button"), 3);
    pressed_at(&p, 4, 90, 91);
    assert_int_equal(json_array_size(presses(&p)), 5);
    /* The model learns of it, and it is on record with what it was before. */
    told(1, "A person changed this before it was done. Done was: click \"it\" at 123,210.");
    const json_t *from = json_array_get(json_object_get(human(&p, 0), "from"), 0);
    const json_t *to = json_array_get(json_object_get(human(&p, 0), "to"), 0);
    assert_int_equal(field_int(from, "x"), 400);
    assert_int_equal(field_int(to, "x"), 123);
    assert_int_equal(field_int(json_object_get(event_of(&p, "action", 1), "action"), "x"), 123);
    play_close(&p);
}

static void t_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *commands, *why;
    } cases[] = {
        {"dance\n", "commands:1: there is no command 'dance'"},
        {"# one\nre\n", "commands:2: more than one command begins with 're'"},
        {"target 5\n", "commands:1: 'target' wants two numbers"},
        {"target 800 5\n", "commands:1: 800,5 is not on the screenshot, which is 800 x 600"},
        {"target2 5 5\n", "commands:1: this step has no place where a drag ends"},
        {"text x\n", "commands:1: this step has no text"},
        {"edit {\"kind\": \"jump\"}\n", "commands:1: an action in JSON with a bad 'kind'"},
        {"edit {\"x\": -1}\n", "commands:1: a place that is not on the screenshot"},
        {"edit [1]\n", "commands:1: an action is a JSON object"},
        {"edit 3 {}\n", "commands:1: there is no action 3"},
        {"edit {\"kind\": \"drag\", \"x\": 1, \"y\": 1}\n", "commands:1: a drag needs x2 and y2"},
        {"rewind 2\n", "commands:1: step 2 cannot be gone back to"},
        {"take 1\n", "commands:1: there is no reply 1 to take"},
        {"fork 99\n", "commands:1: 8 replies are the most at once"},
        {"break\n", "commands:1: 'break' wants something behind it"},
        {"break kind dance\n", "commands:1: breakpoint 'kind dance': there is no action 'dance'"},
        {"break text (\n",
         "commands:1: breakpoint 'text (': missing closing parenthesis at character 2 of '('"},
        {"clear 1\n", "commands:1: there is no breakpoint 1"},
        {"run now\n", "commands:1: 'run' takes nothing behind it"},
    };
    struct play p;
    open_play(&p);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        play(&p, NULL, cases[i].commands, CLICK(500, 500) ANSWER("x"));
        assert_int_equal(p.rc, -1);
        if (!strstr(p.e.text, cases[i].why))
            fail_msg("'%s' is refused with '%s', not '%s'", cases[i].commands, p.e.text, cases[i].why);
        assert_int_equal(agent_exit_code(p.r.status, &p.e), ERR_USAGE);
        assert_null(event_of(&p, "action", 1));
    }
    assert_int_equal(json_array_size(presses(&p)), 0);
    play_close(&p);
}

static void t_veto(void **state)
{
    (void)state;
    struct play p;
    open_play(&p);
    play(&p, NULL, "veto that is the wrong button\nveto\nrun\nrun\n",
         CLICK(500, 500) CLICK(400, 400) CLICK(250, 500) ANSWER("Done."));
    ended(&p, AGENT_ANSWERED);
    assert_int_equal(json_array_size(presses(&p)), 1);
    pressed_at(&p, 0, 200, 300);
    told(1,
         "<error tool=\"click_desktop\">\na person did not allow this: that is the wrong button\n</error>");
    told(2, "a person did not allow this\n");
    assert_non_null(strstr(p.transcript, "\"x\": 400")); /* what it said remains */
    assert_string_equal(field_text(human(&p, 0), "reason"), "that is the wrong button");
    assert_null(event_of(&p, "exec", 1));
    char *page = NULL;
    size_t len;
    FILE *f = open_memstream(&page, &len);
    report_print(&p.record, f);
    fclose(f);
    assert_non_null(strstr(page, "did not allow it: that is the wrong button"));
    free(page);
    char *many =
        xasprintf("%s%s%s%s", "veto\nveto\nveto\n", "veto\nveto\nveto\n", "veto\nveto\nveto\n", "run\n");
    play(&p, NULL, many,
         CLICK(1, 1) CLICK(1, 1) CLICK(1, 1) CLICK(1, 1) CLICK(1, 1) CLICK(1, 1) CLICK(1, 1) CLICK(1, 1)
             CLICK(1, 1) ANSWER("I see."));
    ended(&p, AGENT_ANSWERED); /* neither errors nor circles of the model's */
    free(many);
    play_close(&p);
}

static void t_again(void **state)
{
    (void)state;
    struct play p;
    open_play(&p);
    play(&p, NULL, "again\nagain\nrun\nrun\n",
         CLICK(500, 500) "no step at all\n" CLICK(250, 250) ANSWER("Done."));
    ended(&p, AGENT_ANSWERED);
    assert_int_equal(json_array_size(presses(&p)), 1);
    pressed_at(&p, 0, 200, 150);
    assert_int_equal(played.n_told, 2);
    assert_null(strstr(p.transcript, "\"x\": 500"));
    assert_null(strstr(p.transcript, "no step"));
    assert_int_equal(field_int(event_of(&p, "generate", 1), "reroll"), 2);
    play_close(&p);
}

static void t_fork(void **state)
{
    (void)state;
    struct play p;
    open_play(&p);
    play(&p, NULL, "fork 3\ntake 2\nrun\nfork 1\nrun\nrun\n",
         CLICK(500, 500) CLICK(100, 100) CLICK(250, 500) CLICK(300, 300) CLICK(600, 600) CLICK(700, 700)
             ANSWER("Done."));
    ended(&p, AGENT_ANSWERED);
    pressed_at(&p, 0, 200, 300);
    pressed_at(&p, 1, 480, 360); /* without taking one it is the first */
    assert_int_equal(json_array_size(presses(&p)), 2);
    assert_null(strstr(p.transcript, "\"x\": 100"));
    assert_null(strstr(p.transcript, "\"x\": 700"));
    assert_non_null(strstr(p.transcript, "\"x\": 250"));
    assert_int_equal(field_int(human(&p, 0), "n"), 3);
    assert_int_equal(field_int(human(&p, 1), "to"), 2);
    /* The record shows the reply that became the step. */
    assert_non_null(strstr(field_text(p.story.steps[0].generate, "text"), "250"));
    assert_string_equal(field_text(event_of(&p, "step", 1), "thought"), "as planned");
    play_close(&p);
}

/* ---- going back ----------------------------------------------------------------------------------------------------- */

static void t_rewind(void **state)
{
    (void)state;
    struct play p;
    open_play(&p);
    p.o.max_images = 2;
    play(&p, NULL, "run\nrun\nrewind 1\nrun\nrun\nrun\n",
         CLICK(500, 500) CLICK(400, 400) CLICK(300, 300) CLICK(200, 200) CLICK(600, 600) ANSWER("Done."));
    ended(&p, AGENT_ANSWERED);
    static const int at[][2] = {{400, 300}, {320, 240}, {160, 120}, {480, 360}};
    for (size_t i = 0; i < 4; i++)
        pressed_at(&p, i, at[i][0], at[i][1]);
    assert_int_equal(json_array_size(presses(&p)), 4);
    /* Of what was left nothing is in view, and the screen it decided on is that of step 1. */
    assert_null(strstr(p.transcript, "\"x\": 500"));
    assert_null(strstr(p.transcript, "\"x\": 400"));
    assert_null(strstr(p.transcript, "\"x\": 300"));
    assert_non_null(strstr(p.transcript, "\"x\": 200"));
    assert_int_equal(field_int(event_of(&p, "observe", 4), "from"), 1);
    assert_int_equal(field_int(event_of(&p, "observe", 4), "frame"),
                     field_int(event_of(&p, "observe", 1), "frame"));
    assert_string_equal(field_text(event_of(&p, "prompt", 4), "lead"),
                        field_text(event_of(&p, "prompt", 1), "lead"));
    assert_int_equal(field_int(event_of(&p, "prompt", 4), "tokens_total"),
                     field_int(event_of(&p, "prompt", 1), "tokens_total"));
    assert_string_equal(field_text(human(&p, 2), "what"), "rewind");
    assert_null(event_of(&p, "action", 3));

    /* Twice, across cuts of the window; a step that was left is out of reach. */
    play(&p, NULL, "run\nrun\nrun\nrun\nrewind 4\nrewind 2\nrewind 2\nrun\nrun\n",
         CLICK(100, 100) CLICK(200, 200) CLICK(300, 300) CLICK(400, 400) CLICK(500, 500) CLICK(600, 600)
             CLICK(700, 700));
    assert_int_equal(p.rc, -1);
    assert_non_null(strstr(p.e.text, "commands:7: step 2 cannot be gone back to"));
    play(&p, NULL, "run\nrun\nrun\nrun\nrewind 4\nrewind 2\nrun\nrun\n",
         CLICK(100, 100) CLICK(200, 200) CLICK(300, 300) CLICK(400, 400) CLICK(500, 500) CLICK(600, 600)
             CLICK(700, 700) ANSWER("Done."));
    ended(&p, AGENT_ANSWERED);
    assert_int_equal(json_array_size(presses(&p)), 5);
    pressed_at(&p, 4, 560, 420);
    assert_non_null(strstr(p.transcript, "\"x\": 100"));
    assert_null(strstr(p.transcript, "\"x\": 200"));
    play_close(&p);
}

/* ---- breakpoints ------------------------------------------------------------------------------------------------- */

/* Runs until this, then stops: before which step? */
static int stopped_before(struct play *p, const char *spec, const char *replies)
{
    play(p, (const char *const[]){spec, NULL}, "stop\n", replies);
    int step = 0;
    if (p->r.status == AGENT_STOPPED && sscanf(p->e.text, "stopped before step %d", &step) != 1)
        fail_msg("%s", p->e.text);
    return step;
}

static void t_breakpoints(void **state)
{
    (void)state;
    static const char replies[] = CLICK(500, 500) CLICK_ON("the Delete button", 900, 900) TYPE("secret plan")
        CLICK(300, 300) ANSWER("All good.");
    struct play p;
    open_play(&p);
    assert_int_equal(stopped_before(&p, "step 4", replies), 4);
    assert_int_equal(json_array_size(presses(&p)), 1); /* 900,900 lies beside the window */
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
    assert_int_equal(stopped_before(&p, "confidence 0.9", replies), 0); /* of a script it is not known */
    /* Several; one that is added and taken away again while a step is shown. */
    play(&p, (const char *const[]){"step 2", "kind type", NULL},
         "continue\nbreak step 4\nbreak step 5\nclear 4\nc\nstop\n", replies);
    assert_string_equal(p.e.text, "stopped before step 4");
    assert_int_equal(stopped_before(&p, "  kind   type", replies), 3);
    play_close(&p);
}

static void t_specs(void **state)
{
    (void)state;
    static const char *const bad[] = {"",           "step",         "step 0",      "step x",
                                      "kind",       "text",         "window",      "irreversible now",
                                      "confidence", "confidence 2", "no-effect 3", "sometimes"};
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

/* ---- what is shown ------------------------------------------------------------------------------------------------- */

struct witness { /* a front end that runs everything and writes down where it said it would go */
    struct step_front base;
    int x[64], y[64], n;
    double moved_on;
    bool recorded;
    int rewind_at; /* the step at which it goes back to the first */
};

static int witness_show(struct step_front *f, const struct step_view *v, struct err *e)
{
    struct witness *w = (struct witness *)f;
    (void)e;
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
    (void)e;
    bool back = v->p->number == w->rewind_at;
    *c = (struct step_command){.verb = back ? STEP_REWIND : STEP_RUN, .n = 1};
    return 0;
}

static void t_marker(void **state)
{
    (void)state;
    enum { CLICKS = 11 }; /* after twelve without effect a run ends */
    struct play p;
    uint64_t dice = check_seed();
    open_play(&p);
    for (int round = 0; round < 4; round++) {
        struct buf replies;
        if (round == 2) { /* a window is what is looked at: its corner is the origin */
            Window root, parent, *list;
            unsigned n;
            XQueryTree(p.stage.other, DefaultRootWindow(p.stage.other), &root, &parent, &list, &n);
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
                       (int)(50 + 650 * check_random(&dice)), (int)(50 + 700 * check_random(&dice)));
        buf_puts(&replies, ANSWER("Done."));
        struct witness w = {.base = {.name = "witness", .show = witness_show, .ask = witness_ask}};
        p.o.settle = (struct settle){1, 1, 50};
        run_front(&p, &w.base, NULL, replies.data);
        ended(&p, AGENT_ANSWERED);
        json_t *list = presses(&p);
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
    (void)state;
    struct play p;
    open_play(&p);
    struct witness w = {.base = {.name = "witness", .show = witness_show, .ask = witness_ask},
                        .rewind_at = 2};
    run_front(&p, &w.base, NULL, CLICK(500, 500) CLICK(400, 400) CLICK(300, 300) ANSWER("Done."));
    ended(&p, AGENT_ANSWERED);
    assert_true(w.recorded);
    assert_true(w.moved_on >= 0 && w.moved_on < 0.01); /* nothing has changed since */
    play_close(&p);
}

/* ---- with a model ------------------------------------------------------------------------------------------------------ */

/* Everything that a reply came from and what it was: equal texts are equal bits. */
static char *fingerprint(const json_t *generate)
{
    assert_non_null(generate);
    return xasprintf("%s prompt %s logits %s reroll %lld", field_text(generate, "text"),
                     field_text(generate, "prompt_hash"), field_text(generate, "logits_hash"),
                     (long long)field_int(generate, "reroll"));
}

static void same_reply(const struct play *p, int a, int b, bool same)
{
    char *x = fingerprint(event_of(p, "generate", a)), *y = fingerprint(event_of(p, "generate", b));
    if (!strcmp(x, y) != same)
        fail_msg("step %d: %s\nstep %d: %s", a, x, b, y);
    free(x);
    free(y);
}

static void t_dice(void **state)
{
    (void)state;
    struct engine_options eo = {.dir = POCKET, .device = "cpu", .threads = 1};
    struct engine *engine = engine_open(&eo, NULL);
    if (!engine)
        skip(); /* run from elsewhere */
    struct play p;
    open_play(&p);
    dialect_free(p.dialect);
    p.o.dialect = p.dialect = dialect_load("pocket", NULL);
    p.o.window = WINDOW_STRICT;
    p.o.max_images = 1;
    p.o.sampling = (struct sampling){1.5f, 1, 60};
    p.o.task = "Press Save";
    char *alone = NULL;
    for (int explore = 0; explore < 2; explore++) {
        char *path = xasprintf("%s/commands", p.stage.x.dir);
        static const char commands[] = "veto\nveto\nveto\nrewind 2\nveto\nrewind 1\nstop\n";
        assert_int_equal(file_write(path, commands, strlen(commands), NULL), 0);
        struct step_front *f = step_script(path, NULL, NULL);
        f->explore = explore ? 6 : 0;
        struct stepper *s = stepper_new(f, NULL, NULL);
        struct mind *m = mind_model(engine, p.dialect, check_seed());
        play_run(&p, m, stepper_overseer(s));
        ended(&p, AGENT_STOPPED);
        same_reply(&p, 2, 5, true); /* again the same dice, across cuts */
        same_reply(&p, 1, 7, true);
        same_reply(&p, 3, 6, true); /* and what follows from them */
        same_reply(&p, 1, 2, false);
        /* Looking for alternatives changes nothing. */
        char *now = fingerprint(event_of(&p, "generate", 4));
        if (alone)
            assert_string_equal(alone, now);
        free(alone);
        alone = now;
        mind_free(m);
        stepper_free(s);
        free(path);
    }
    free(alone);
    play_close(&p);
    engine_close(engine);
}

/* How sure the model was: of what it said each token has a probability, and the least of them counts. */
static void t_confidence(void **state)
{
    (void)state;
    struct engine_options eo = {.dir = POCKET, .device = "cpu", .threads = 1};
    struct engine *engine = engine_open(&eo, NULL);
    if (!engine)
        skip();
    struct play p;
    open_play(&p);
    dialect_free(p.dialect);
    p.o.dialect = p.dialect = dialect_load("pocket", NULL);
    p.o.window = WINDOW_STRICT;
    p.o.max_images = 1;
    p.o.sampling = (struct sampling){0, 1, 60};
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
        struct mind *m = mind_model(engine, p.dialect, 1);
        play_run(&p, m, stepper_overseer(s));
        assert_int_equal(p.r.status == AGENT_STOPPED, !sure); /* of such a screen it is never quite sure */
        mind_free(m);
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

static const struct CMUnitTest tests[] = {
    CLAIM("run does the step that is shown, stop does none; the end of a script is a stop", t_run_stop),
    CLAIM("what is changed before it runs is what happens, and the model is told", t_edit),
    CLAIM("a command that cannot be is refused with its line and its reason, and nothing happens", t_wrong),
    CLAIM("what is refused does not happen, and the model reads the reason next", t_veto),
    CLAIM("another reply takes the place of the one that was shown", t_again),
    CLAIM("of several replies the one that is taken happens, the others never were", t_fork),
    CLAIM("gone back to, a step is decided again on its own screen; what came after is forgotten", t_rewind),
    CLAIM("a run goes on to its breakpoint: step, kind, text, window, irreversible, no effect",
          t_breakpoints),
    CLAIM("a breakpoint that cannot be is refused", t_specs),
    CLAIM("where the marker is, the event goes: of the screen and of a window", t_marker),
    CLAIM("a recorded screen is said to be one, and how far it is from that of now", t_recorded),
    CLAIM("the same dice say the same to the bit after going back; looking for alternatives changes nothing",
          t_dice),
    CLAIM("a run goes on to where the model was not sure, and shows what else it could have said",
          t_confidence),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
