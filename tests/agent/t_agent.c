/* t_agent.c - tests of the agent loop: repeated sampling, reports to the model, and the end of a run.
 *
 * The loop is the real one, on a real display with a window that records the events it receives; only the
 * replies are scripted.  The tests check the model's input, the events in the window, and the run's
 * record.
 */
#include "check.h"
#include "person.h"
#include "play.h"

#include <math.h>

#define BAD_KEY STEP("\"hotkey_desktop\", \"keys\": [\"hyperspace\"]")

static void use_dialect(struct play *p, struct dialect *d)
{
    assert_non_null(d);
    dialect_free(p->dialect);
    p->o.dialect = p->dialect = d;
}

static void open_play(struct play *p)
{
    play_open(p);
    p->o.max_steps = 30;
    p->o.force_answer = true;
    p->o.answer_seconds = 60;
}

static void play(struct play *p, const char *replies)
{
    play_script(p, replies, NULL);
}

static int events_of(const struct play *p, const char *kind)
{
    int n = 0;
    for (int i = 0; i < p->record.n; i++)
        n += !strcmp(p->record.events[i].kind, kind);
    return n;
}

static int clicks(struct play *p)
{
    return (int)json_array_size(stage_events(&p->stage, "button_press"));
}

static void ended(const struct play *p, enum agent_status status, int code)
{
    if (p->r.status != status)
        fail_msg("ended as '%s', not as '%s' (%s)", agent_status_name(p->r.status), agent_status_name(status),
                 p->e.text);
    assert_int_equal(agent_exit_code(p->r.status, &p->e), code);
}

static void told(int turn, const char *what)
{
    assert_true(turn < played.n_told);
    if (!strstr(played.told[turn], what))
        fail_msg("turn %d says '%s', not '%s'", turn, played.told[turn], what);
}

static void asked_at(int i, double temperature, int resample)
{
    if (fabs((double)played.asked[i].sampling.temperature - temperature) > 1e-5)
        fail_msg("asking %d was at temperature %g, not %g", i, (double)played.asked[i].sampling.temperature,
                 temperature);
    assert_int_equal(played.asked[i].resample, resample);
}

/* ---- unparsable replies ---------------------------------------------------------------------- */

static void t_unreadable(void **state)
{
    struct play p;
    open_play(&p);
    play(&p, "nonsense one\n{\"thought\": \"nonsense two\"\n{\"thought\": \"nonsense three\"}\n" CLICK(
                 500, 500) ANSWER("Done."));
    ended(&p, AGENT_ANSWERED, 0);
    assert_int_equal(played.n_asked, 5);
    assert_int_equal(played.n_told, 2); /* sampling again is not a turn */
    static const double warmth[] = {0.5, 0.4, 0.6, 0.7, 0.5};
    for (int i = 0; i < 5; i++)
        asked_at(i, warmth[i], i % 4);
    assert_null(strstr(p.transcript, "nonsense"));
    assert_int_equal(events_of(&p, "unreadable"), 3);
    assert_int_equal(events_of(&p, "generate"), 5);
    assert_int_equal(clicks(&p), 1);

    play_forget();
    p.o.sampling.temperature = 0; /* greedy sampling would repeat the reply */
    play(&p, CLICK(500, 500) "no\nno\nno\nno way\n" ANSWER("Never asked for."));
    ended(&p, AGENT_UNPARSABLE, ERR_MODEL);
    assert_int_equal(p.rc, -1);
    assert_non_null(strstr(p.e.text, "4 attempts"));
    assert_non_null(strstr(p.e.text, "no way"));
    assert_int_equal(played.n_asked, 5);
    for (int i = 0; i < 4; i++)
        asked_at(1 + i, 0.3 * i, i);
    assert_null(p.r.answer);
    assert_string_equal(field_text(p.story.end, "error"), p.e.text);
    play_close(&p);
}

static void t_cut_off(void **state)
{
    struct play p;
    open_play(&p);
    played.cut_off_at = 1; /* even a reply that parses, because its end is missing */
    play(&p, CLICK(400, 400) "still too long\n" CLICK(500, 500) ANSWER("Done."));
    ended(&p, AGENT_ANSWERED, 0);
    static const int room[] = {100, 200, 200, 100};
    for (int i = 0; i < 4; i++)
        assert_int_equal(played.asked[i].sampling.max_tokens, room[i]);
    assert_int_equal(clicks(&p), 1);
    play_close(&p);
}

static void t_reasoning(void **state)
{
    struct play p;
    open_play(&p);
    p.dialect->think = true;
    play(&p, "Let me see. {\"example\": 1}</think>" CLICK(500, 500) "Well, well.</think>" ANSWER("Done."));
    ended(&p, AGENT_ANSWERED, 0);
    assert_true(played.asked[0].think);
    assert_null(strstr(p.transcript, "Let me see"));
    assert_non_null(strstr(p.transcript, "\"x\": 500"));
    assert_non_null(
        strstr(field_text(p.story.steps[0].generate, "text"), "Let me see")); /* but in the record */
    play_close(&p);
}

/* ---- errors in steps ------------------------------------------------------------------------- */

static void t_told(void **state)
{
    struct play p;
    stage_still = true;
    open_play(&p);
    play(&p, BAD_KEY CLICK(1500, 20) STEP("\"teleport\"") CLICK(500, 500) WAIT(0) ANSWER("Done."));
    ended(&p, AGENT_UNVERIFIED, ERR_UNVERIFIED);
    assert_string_equal(p.r.answer, "unverified: Done.");
    assert_string_equal(p.r.said, "Done.");
    assert_non_null(
        strstr(p.r.did, "pressed 'it'; the window did not change; 4 actions in total; 4 not confirmed"));
    assert_int_equal(played.n_asked, 6);
    assert_string_equal(played.told[0],
                        "<message from=\"user\">\nPress Save\n</message>\n<observation>\n[image]\n"
                        "</observation>");
    told(
        1,
        "<error tool=\"hotkey_desktop\">\nunknown key 'hyperspace'; the nearest is 'kpspace'\n</error>\n<observation>");
    told(2, "<error tool=\"click_desktop\">\n");
    told(2, "1500");
    told(3, "'teleport'");
    told(4, "<tool_output tool=\"click_desktop\">\nThe screen did not change.\n</tool_output>");
    told(5, "<tool_output tool=\"wait_desktop\">\nWaited.\n</tool_output>");
    assert_int_equal(events_of(&p, "error"), 3);
    assert_int_equal(clicks(&p), 1);
    assert_non_null(strstr(p.transcript, "hyperspace")); /* a step with an error stays in the context */

    play_forget();
    use_dialect(&p, dialect_load("anthropic-computer", NULL)); /* an error that only the executor finds */
    play(&p,
         "{\"action\": \"zoom\", \"region\": [0, 0, 100, 100]}\n{\"action\": \"answer\", \"text\": \"x\"}\n");
    ended(&p, AGENT_UNVERIFIED, ERR_UNVERIFIED);
    told(1, "Error: 'zoom' is not something that can be done on the screen");
    play_close(&p);
}

/* The second action of a reply is not executed, and the model is informed. */
static void t_dropped(void **state)
{
    struct play p;
    open_play(&p);
    use_dialect(&p, dialect_load("uitars", NULL));
    play(&p, "Thought: t\nAction: click(start_box='(500,500)')\nAction: type(content='x')\n\n"
             "Action: finished(content='Done.')\n");
    ended(&p, AGENT_ANSWERED, 0);
    told(1, "Further actions of the reply were not executed: type(content='x')");
    assert_int_equal(clicks(&p), 1);
    assert_int_equal(json_array_size(stage_events(&p.stage, "key_press")), 0);
    play_close(&p);
}

/* The test's window publishes no selection, so its field cannot be read back. */
static void t_unsure(void **state)
{
    struct play p;
    open_play(&p);
    play(&p, STEP("\"write_desktop\", \"content\": \"ab\", \"overwrite\": true")
                 STEP("\"write_desktop\", \"content\": \"cd\", \"overwrite\": true, \"press_enter\": true")
                     ANSWER("Done."));
    ended(&p, AGENT_REFUSED, ERR_FAILED);
    told(1, "unsure: the text was typed, but the field could not be read back");
    told(2, "so Enter was not pressed");
    int noted = 0;
    for (int i = 0; i < p.record.n; i++)
        noted += json_object_get(p.record.events[i].fields, "unsure") != NULL;
    assert_int_equal(noted, 1);
    json_t *keys = stage_events(&p.stage, "key_press");
    for (size_t i = 0; i < json_array_size(keys); i++)
        assert_int_not_equal(field(keys, i, "keysym"), XK_Return);
    play_close(&p);
}

/* Call markup in a text is not typed. */
static void t_markup(void **state)
{
    struct play p;
    open_play(&p);
    play(&p, TYPE("ab\\n</parameter>\\n<parameter=x>\\n1") ANSWER("Done."));
    ended(&p, AGENT_REFUSED, ERR_FAILED);
    told(1, "the text of 'type' contains markup of a tool call, '</parameter>'");
    assert_int_equal(json_array_size(stage_events(&p.stage, "key_press")), 0);
    play_forget();
    use_dialect(&p, dialect_load("holo31", NULL)); /* a reply without closing tags */
    play(&p, "</think><tool_call>\n<function=answer>\n<parameter=content>\nDone.\n\n");
    ended(&p, AGENT_UNVERIFIED, ERR_UNVERIFIED);
    assert_string_equal(p.r.said, "Done.");
    play_close(&p);
}

static void t_many_mistakes(void **state)
{
    struct play p;
    open_play(&p);
    play(&p, BAD_KEY BAD_KEY BAD_KEY BAD_KEY CLICK(500, 500) BAD_KEY BAD_KEY BAD_KEY BAD_KEY ANSWER("Done."));
    ended(&p, AGENT_REFUSED, ERR_FAILED);
    play_forget();
    play(&p, BAD_KEY CLICK(1500, 1) BAD_KEY CLICK(1600, 1) BAD_KEY ANSWER("Never asked for."));
    ended(&p, AGENT_ERRORS, ERR_UNSURE);
    assert_int_equal(played.n_asked, 5);
    play_close(&p);
}

static void t_batch(void **state)
{
    static const char batching[] =
        "{\"name\": \"t\", \"syntax\": \"function\", \"coords\": \"px\", \"system\": \"\", \"max_images\": "
        "1, "
        "\"tool_error\": \"{tool}: {message}\\n\", \"run_all\": true, \"tools\": \"anthropic-computer\"}";
    struct play p;
    open_play(&p);
    use_dialect(&p, dialect_parse(batching, sizeof batching - 1, "t", &p.e));
    play(&p, "[{\"name\": \"left_click\", \"arguments\": {\"coordinate\": [300, 300]}}, "
             "{\"name\": \"zoom\", \"arguments\": {\"region\": [0, 0, 9, 9]}}, "
             "{\"name\": \"left_click\", \"arguments\": {\"coordinate\": [310, 310]}}]\n"
             "[{\"name\": \"left_click\", \"arguments\": {\"coordinate\": [320, 320]}}, "
             "{\"name\": \"answer\", \"arguments\": {\"text\": \"Done.\"}}, "
             "{\"name\": \"left_click\", \"arguments\": {\"coordinate\": [330, 330]}}]\n");
    ended(&p, AGENT_ANSWERED, 0);
    json_t *list = stage_events(&p.stage, "button_press");
    assert_int_equal(json_array_size(list), 2);
    assert_int_equal(field(list, 0, "x"), 300);
    assert_int_equal(field(list, 1, "x"), 320);
    told(1, "'zoom' is not something");
    assert_string_equal(p.r.answer, "Done.");
    play_close(&p);
}

/* ---- loops ----------------------------------------------------------------------------------- */

#define FIVE_CLICKS CLICK(500, 500) CLICK(500, 500) CLICK(500, 500) CLICK(500, 500) CLICK(500, 500)
#define SIX_CLICKS                                                                                           \
    CLICK(500, 500) CLICK(500, 501) CLICK(500, 500) CLICK(500, 501) CLICK(500, 500) CLICK(500, 501)

static void t_loop(void **state)
{
    struct play p;
    stage_still = true;
    open_play(&p);
    p.o.warm_up = true;
    play(&p, FIVE_CLICKS ANSWER("Never asked for."));
    ended(&p, AGENT_LOOP, ERR_UNSURE);
    assert_int_equal(p.rc, 0);
    assert_int_equal(played.n_asked, 5);
    for (int k = 1; k < 3; k++)
        told(k, "<tool_output tool=\"click_desktop\">\nThe screen did not change.\n</tool_output>");
    for (int k = 3; k < 5; k++)
        told(k, "<error tool=\"click_desktop\">\nthe same action was performed");
    told(3, "3 times without visible effect");
    told(4, "4 times");
    for (int k = 1; k < 5; k++) /* the temperature rises */
        asked_at(k, fmax(0.5, 0.3 * k), 0);
    assert_int_equal(clicks(&p), 5);

    play_forget(); /* another action in between breaks the repetition */
    play(&p, CLICK(500, 500) CLICK(500, 500) CLICK(500, 501) CLICK(500, 500) CLICK(500, 500) CLICK(500, 501)
                 ANSWER("Done."));
    ended(&p, AGENT_UNVERIFIED, ERR_UNVERIFIED);
    for (int k = 1; k < 7; k++)
        told(k, "<tool_output");

    play_forget(); /* different actions, none with an effect */
    play(&p, SIX_CLICKS SIX_CLICKS SIX_CLICKS ANSWER("Never asked for."));
    ended(&p, AGENT_LOOP, ERR_UNSURE);
    assert_int_equal(played.n_asked, 12);

    play_forget(); /* the same action with an effect each time, such as a "Next" button */
    played.repaint = true;
    play(&p, FIVE_CLICKS CLICK(500, 500) CLICK(500, 500) ANSWER("Done."));
    ended(&p, AGENT_ANSWERED, 0);
    for (int k = 1; k < 8; k++)
        told(k, "<tool_output tool=\"click_desktop\">\n\n</tool_output>");
    for (int k = 0; k < 7; k++)
        assert_true(field_bool(p.story.steps[k].effect, "changed"));
    play_close(&p);
}

/* ---- budgets --------------------------------------------------------------------------------- */

static void t_steps(void **state)
{
    struct play p;
    open_play(&p);
    p.o.max_steps = 2;
    play(&p, CLICK(500, 500) CLICK(400, 400) ANSWER("So far."));
    ended(&p, AGENT_STEPS, ERR_STEPS);
    assert_string_equal(p.r.answer, "So far.");
    assert_int_equal(p.r.steps, 2); /* the request for an answer is not a step */
    assert_int_equal(p.story.counted, 2);
    assert_true(p.story.n == 3 && p.story.steps[2].beyond_budget && !p.story.steps[1].beyond_budget);
    assert_int_equal(played.n_asked, 3);
    assert_int_equal(played.asked[1].goal, GOAL_STEP);
    assert_int_equal(played.asked[2].goal, GOAL_ANSWER);
    assert_int_equal(clicks(&p), 2);

    static const char *const no_answers[] = {
        CLICK(500, 500) CLICK(400, 400) CLICK(300, 300) CLICK(200, 200), /* a valid action: not executed */
        CLICK(500, 500) CLICK(400, 400) BAD_KEY BAD_KEY BAD_KEY,         /* invalid actions */
        CLICK(500, 500) CLICK(400, 400) "no\nno\nno\nno\n",
    };
    for (int i = 0; i < 3; i++) {
        play_forget();
        play(&p, no_answers[i]);
        ended(&p, AGENT_STEPS, ERR_STEPS); /* the step limit ended it, whatever the last replies were */
        assert_null(p.r.answer);
        assert_int_equal(played.n_asked, i == 2 ? 6 : 3);
        assert_int_equal(clicks(&p), 2);
    }

    play_forget();
    p.o.force_answer = false;
    play(&p, CLICK(500, 500) CLICK(400, 400) ANSWER("Never asked for."));
    ended(&p, AGENT_STEPS, ERR_STEPS);
    assert_null(p.r.answer);
    assert_int_equal(played.n_asked, 2);
    play_close(&p);
}

static void t_tokens(void **state)
{
    struct play p;
    open_play(&p);
    p.o.max_tokens = (int64_t)strlen(CLICK(500, 500)); /* a token is a byte here: less than two steps */
    play(&p, CLICK(500, 500) CLICK(400, 400) ANSWER("So far."));
    ended(&p, AGENT_TOKENS, ERR_STEPS);
    assert_string_equal(p.r.answer, "So far.");
    assert_int_equal(played.asked[2].goal, GOAL_ANSWER);
    assert_int_equal(p.r.steps, 2);
    play_close(&p);
}

static void t_time(void **state)
{
    struct play p;
    open_play(&p);
    p.o.max_seconds = 0.5;
    played.slow_ms = 600; /* interrupts the first reply; the final answer has no time limit */
    play(&p, CLICK(500, 500) ANSWER("So far."));
    ended(&p, AGENT_TIME, ERR_TIME);
    assert_int_equal(played.asked[1].goal, GOAL_ANSWER);
    assert_string_equal(p.r.answer, "So far.");
    assert_true(p.r.steps == 0 && p.story.counted == 0 && p.story.n == 1);
    assert_int_equal(clicks(&p), 0);

    play_forget();
    p.o.answer_seconds = 0.1;
    played.slow_ms = 600;
    play(&p, CLICK(500, 500) ANSWER("Too late.") ANSWER("Not asked for."));
    ended(&p, AGENT_TIME, ERR_TIME);
    assert_null(p.r.answer);
    assert_int_equal(played.n_asked, 2);

    play_forget();
    p.o.force_answer = false;
    play(&p, WAIT(60) CLICK(500, 500)); /* a wait is interrupted as well */
    ended(&p, AGENT_TIME, ERR_TIME);
    assert_true(p.r.seconds < 3);
    assert_int_equal(played.n_asked, 1);
    play_close(&p);
}

enum { TRIES = 20 };
#define THOUSAND HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED

/* Returns whether this action was interrupted within a quarter of a second.  On a loaded machine it may
 * start or end later. */
static bool in_time(struct play *p, const char *reply, int presses)
{
    play_forget();
    play(p, reply);
    ended(p, AGENT_TIME, ERR_TIME);
    assert_int_equal(p->rc, 0);
    check_note("%.1f s given, ended after %.3f s", p->o.max_seconds, p->r.seconds);
    assert_int_equal(pressed(p->stage.other), 0);
    int pressed_n = clicks(p);
    assert_true(pressed_n <= presses);
    const struct story_step *last = p->story.n ? &p->story.steps[p->story.n - 1] : NULL;
    if (p->r.seconds >= p->o.max_seconds + 0.25 || pressed_n < presses || !last || last->nactions < 1)
        return false;
    assert_int_equal(last->nactions, 1);
    assert_non_null(strstr(last->actions[0].failure, "time limit reached"));
    return true;
}

static void t_time_within(void **state)
{
    static const char *const replies[] = {
        SHIFT_DOWN TYPE(THOUSAND) CLICK(500, 500),
        STEP(
            "\"drag_and_drop\", \"description\": \"it\", \"x1\": 200, \"y1\": 200, \"x2\": 600, \"y2\": 600, "
            "\"hold_keys\": [\"ctrl\"]") CLICK(500, 500),
        WAIT(60) CLICK(500, 500),
    };
    struct play p;
    open_play(&p);
    p.o.force_answer = false;
    for (int i = 0; i < 3; i++) {
        int tries = 0;
        p.o.max_seconds = i == 1 ? 0.6 : 0.7;
        while (!in_time(&p, replies[i], i == 1)) /* the drag presses a button once */
            assert_true(++tries < TRIES);
    }

    p.o.force_answer = true;
    p.o.max_seconds = 1;
    do { /* an interrupted action is not an error of the model, and the answer is still requested */
        p.o.max_seconds *= 1.5;
        play_forget();
        play(&p, BAD_KEY BAD_KEY BAD_KEY BAD_KEY WAIT(60) ANSWER("So far."));
        ended(&p, AGENT_TIME, ERR_TIME);
    } while ((!p.r.answer || p.r.steps < 5) && p.o.max_seconds < 15); /* on a loaded machine: try longer */
    assert_non_null(p.r.answer);
    assert_string_equal(p.r.answer, "So far.");
    assert_int_equal(p.r.steps, 5);
    play_close(&p);
}

/* ---- other ends of a run --------------------------------------------------------------------- */

static void t_dry_run(void **state)
{
    struct play p;
    open_play(&p);
    p.o.dry_run = true;
    p.o.max_steps = 7;
    play(&p, FIVE_CLICKS TYPE("abc") BAD_KEY ANSWER("Never asked for."));
    ended(&p, AGENT_DRY_RUN, 0);
    assert_int_equal(json_array_size(stage_events(&p.stage, NULL)), 0);
    assert_int_equal(json_array_size(stage_events(&p.stage, "motion")), 0);
    assert_int_equal(events_of(&p, "action"), 6);
    assert_int_equal(played.n_asked, 7);
    for (int k = 1; k < 7; k++) /* a dry run sends no events, so "no effect" is not reported */
        told(k, "<tool_output");
    play_close(&p);
}

static void t_infeasible(void **state)
{
    struct play p;
    open_play(&p);
    play(&p, ANSWER("There is no such flight. [TASK=INFEASIBLE]"));
    ended(&p, AGENT_INFEASIBLE, ERR_FAILED);
    assert_int_equal(p.rc, 0);
    assert_non_null(strstr(p.r.answer, "no such flight"));
    play_forget();
    use_dialect(&p, dialect_load("pyautogui", NULL));
    play(&p, "FAIL\n");
    ended(&p, AGENT_INFEASIBLE, ERR_FAILED);
    play_forget();
    use_dialect(&p, dialect_load("uitars", NULL)); /* it asks for the user */
    play(&p, "Action: call_user()\n");
    ended(&p, AGENT_INFEASIBLE, ERR_FAILED);
    assert_string_equal(p.r.answer, "the user has to help");
    play_close(&p);
}

static void t_stopped(void **state)
{
    struct play p;
    open_play(&p);
    played.stop_at = 2;
    play(&p, CLICK(500, 500) CLICK(400, 400) ANSWER("Never asked for."));
    ended(&p, AGENT_STOPPED, ERR_STOPPED);
    assert_int_equal(p.rc, -1);
    assert_int_equal(played.n_asked, 2);
    assert_int_equal(clicks(&p), 1);
    play_close(&p);
}

static void t_held(void **state)
{
    struct play p;
    open_play(&p);
    played.repaint = true;
    play(&p, SHIFT_DOWN CLICK(500, 500) STEP("\"key_up_desktop\", \"key\": \"shift\"")
                 SHIFT_DOWN FIVE_CLICKS CLICK(500, 500) CLICK(400, 400) SHIFT_DOWN ANSWER("Done."));
    ended(&p, AGENT_ANSWERED, 0);
    static const int down[] = {0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 0, 1}; /* released after ten steps */
    for (int i = 0; i < 13; i++)
        assert_int_equal(played.downs[i], down[i]);
    json_t *list = stage_events(&p.stage, "button_press");
    assert_int_equal(field(list, 0, "state") & ShiftMask, ShiftMask);
    play_close(&p);
}

/* ---- a view that moves ----------------------------------------------------------------------- */

/* Limits the view to the only window, 600x500+20+20. */
static void look_at_window(struct play *p)
{
    char view[32];
    screen_close(p->stage.s);
    snprintf(view, sizeof view, "window:0x%lx", person_window(p->stage.other, "xclient"));
    struct screen_options o = {.view = view};
    p->stage.s = screen_open(&o, &why);
    if (!p->stage.s)
        fail_msg("%s", why.text);
    p->o.screen = p->stage.s;
}

static void move_window(void)
{
    XMoveWindow(played.dpy, person_window(played.dpy, "xclient"), 150, 60);
    XSync(played.dpy, False);
}

static void resize_window(void)
{
    XResizeWindow(played.dpy, person_window(played.dpy, "xclient"), 400, 300);
    XSync(played.dpy, False);
}

static void t_view(void **state)
{
    struct play p;
    open_play(&p);
    look_at_window(&p);
    played.meanwhile = move_window;
    play(&p, CLICK(500, 500) ANSWER("Done."));
    ended(&p, AGENT_ANSWERED, 0);
    json_t *ev = stage_events(&p.stage, "button_press");
    assert_int_equal(json_array_size(ev), 1);
    assert_int_equal(field(ev, 0, "x"), 150 + 300); /* the centre of the window at its new position */
    assert_int_equal(field(ev, 0, "y"), 60 + 250);

    play_forget();
    played.meanwhile = resize_window;
    play(&p, CLICK(500, 500) CLICK(500, 500) ANSWER("Done."));
    ended(&p, AGENT_ANSWERED, 0);
    told(1, "changed its size");
    ev = stage_events(&p.stage, "button_press");
    assert_int_equal(json_array_size(ev), 1); /* the second click, after a new screenshot */
    assert_int_equal(field(ev, 0, "x"), 150 + 200);
    play_close(&p);
}

static const struct CMUnitTest tests[] = {
    CLAIM("an unparsable reply is discarded and sampled again, at most four times", t_unreadable),
    CLAIM("a truncated reply is sampled again with twice the token limit", t_cut_off),
    CLAIM("reasoning is recorded but does not stay in the context", t_reasoning),
    CLAIM("an error in a step or of the executor is reported in the next turn", t_told),
    CLAIM("a second action in a reply is not executed, and the model is informed", t_dropped),
    CLAIM("an overwrite that cannot be read back is reported as unsure, to the model and in the record",
          t_unsure),
    CLAIM("call markup in a text is reported to the model and not typed", t_markup),
    CLAIM("five errors in a row end the run", t_many_mistakes),
    CLAIM("a batch of actions ends at its first failure and at its answer", t_batch),
    CLAIM("three repetitions without effect are reported and five end the run, as do any twelve actions",
          t_loop),
    CLAIM("at the step limit an answer is requested and no action is executed", t_steps),
    CLAIM("at the token limit an answer is requested and no action is executed", t_tokens),
    CLAIM("at the time limit an answer is requested, even during a reply or a wait", t_time),
    CLAIM("a long action is interrupted at the time limit and releases everything", t_time_within),
    CLAIM("a dry run sends no events and reports no missing effect", t_dry_run),
    CLAIM("an answer that the task is infeasible has its own exit code", t_infeasible),
    CLAIM("after a stop during a reply no action is executed", t_stopped),
    CLAIM("a click follows a window that has moved, and is not sent to one of another size", t_view),
    CLAIM("a held key spans up to ten steps and is released at the end of the run", t_held),
};

CHECK_MAIN()
