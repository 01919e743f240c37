/* t_step.c - tests of stepping: commands of the user change the actions of a step.
 *
 * The loop, the stepper and the script front end are the real ones, on a real display with a window that
 * records the events it receives.  Replies are scripted.  The tests check the window's events, the model's
 * input, and the run directory.
 */
#include "check.h"
#include "stepped.h"

#include "trace/report.h"

static void pressed_at(struct play *p, size_t i, int x, int y)
{
    json_t *list = stepped_presses(p);
    assert_true(json_array_size(list) > i);
    assert_int_equal(field(list, i, "x"), x);
    assert_int_equal(field(list, i, "y"), y);
}

/* Returns the i-th recorded event of the user. */
static const json_t *human(const struct play *p, int i)
{
    for (int k = 0; k < p->record.n; k++)
        if (!strcmp(p->record.events[k].kind, "human") && i-- == 0)
            return p->record.events[k].fields;
    fail_msg("the record has fewer events of the user");
    return NULL;
}

static void told(int turn, const char *what)
{
    assert_true(turn < played.n_told);
    if (!strstr(played.told[turn], what))
        fail_msg("turn %d says '%s', not '%s'", turn, played.told[turn], what);
}

/* ---- one step -------------------------------------------------------------------------------- */

static void t_run_stop(void **state)
{
    struct play p;
    stepped_open(&p);
    stepped(&p, NULL, "# a comment\n\nrun\n  stop   enough of it\n",
            CLICK(500, 500) CLICK(250, 250) ANSWER("x"));
    stepped_ended(&p, AGENT_STOPPED);
    assert_int_equal(agent_exit_code(p.r.status, &p.e), ERR_STOPPED);
    assert_string_equal(p.e.text, "stopped before step 2: enough of it");
    assert_int_equal(json_array_size(stepped_presses(&p)), 1);
    pressed_at(&p, 0, 400, 300);
    assert_string_equal(field_text(human(&p, 0), "what"), "run");
    assert_string_equal(field_text(human(&p, 1), "what"), "stop");
    assert_string_equal(field_text(human(&p, 1), "by"), "script");
    assert_null(stepped_event(&p, "action", 2));

    stepped(&p, NULL, "run\n", CLICK(500, 500) CLICK(250, 250)); /* the end of the script stops the run */
    stepped_ended(&p, AGENT_STOPPED);
    assert_non_null(strstr(p.e.text, "the script has ended"));
    stepped(&p, NULL, "run\nrun\n", CLICK(500, 500) ANSWER("done"));
    stepped_ended(&p, AGENT_ANSWERED);
    assert_string_equal(p.r.answer, "done");
    play_close(&p);
}

static void t_edit(void **state)
{
    struct play p;
    stepped_open(&p);
    stepped(
        &p, NULL,
        "target 123 210\nrun\n"
        "text hey\nrun\n"
        "target2 500 400\nrun\n"
        "edit {\"button\": \"right\", \"x\": 77}\nreset\nedit {\"button\": \"right\", \"count\": 2}\nrun\n"
        "edit {\"kind\": \"click\", \"x\": 90, \"y\": 91}\nrun\nrun\n",
        CLICK(500, 500) TYPE("no") DRAG CLICK(400, 400) TYPE("never") ANSWER("Done."));
    stepped_ended(&p, AGENT_ANSWERED);
    pressed_at(&p, 0, 123, 210);
    json_t *keys = stage_events(&p.stage, "key_press");
    assert_int_equal(json_array_size(keys), 3);
    assert_string_equal(word(keys, 0, "text"), "h");
    pressed_at(&p, 1, 160, 120);
    json_t *up = stage_events(&p.stage, "button_release");
    assert_int_equal(field(up, 1, "x"), 500);
    assert_int_equal(field(up, 1, "y"), 400);
    pressed_at(&p, 2, 320, 240);
    assert_int_equal(field(stepped_presses(&p), 2, "button"), 3);
    assert_int_equal(field(stepped_presses(&p), 3, "button"), 3);
    pressed_at(&p, 4, 90, 91);
    assert_int_equal(json_array_size(stepped_presses(&p)), 5);
    /* the model is informed, and the record has the original action */
    told(1, "The user changed this action. The action performed was: click \"it\" at 123,210.");
    const json_t *from = json_array_get(json_object_get(human(&p, 0), "from"), 0);
    const json_t *to = json_array_get(json_object_get(human(&p, 0), "to"), 0);
    assert_int_equal(field_int(from, "x"), 400);
    assert_int_equal(field_int(to, "x"), 123);
    assert_int_equal(field_int(json_object_get(stepped_event(&p, "action", 1), "action"), "x"), 123);
    play_close(&p);
}

static void t_wrong(void **state)
{
    static const struct {
        const char *commands, *why;
    } cases[] = {
        {"dance\n", "commands:1: unknown command 'dance'"},
        {"# one\nre\n", "commands:2: ambiguous command 're'"},
        {"help\ndance\n", "commands:2: unknown command 'dance'"}, /* help is not an error */
        {"target 5\n", "commands:1: 'target' needs two numbers"},
        {"target 800 5\n", "commands:1: 800,5 is outside the screenshot of 800 x 600 pixels"},
        {"target2 5 5\n", "commands:1: this step has no end of a drag"},
        {"text x\n", "commands:1: this step has no text"},
        {"edit {\"kind\": \"jump\"}\n", "commands:1: an action in JSON with a bad 'kind'"},
        {"edit {\"x\": -1}\n", "commands:1: a point is outside the screenshot"},
        {"edit [1]\n", "commands:1: invalid action, expected a JSON object"},
        {"edit 3 {}\n", "commands:1: action 3 does not exist"},
        {"edit {\"kind\": \"drag\", \"x\": 1, \"y\": 1}\n", "commands:1: a drag needs x2 and y2"},
        {"rewind 2\n", "commands:1: cannot rewind to step 2"},
        {"take 1\n", "commands:1: reply 1 does not exist"},
        {"fork 99\n", "commands:1: at most 8 replies at once"},
        {"break\n", "commands:1: 'break' needs an argument"},
        {"break kind dance\n", "commands:1: breakpoint 'kind dance': unknown action 'dance'"},
        {"break text (\n",
         "commands:1: breakpoint 'text (': missing closing parenthesis at character 2 of '('"},
        {"clear 1\n", "commands:1: breakpoint 1 does not exist"},
        {"run now\n", "commands:1: 'run' takes no argument"},
    };
    struct play p;
    stepped_open(&p);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stepped(&p, NULL, cases[i].commands, CLICK(500, 500) ANSWER("x"));
        assert_int_equal(p.rc, -1);
        if (!strstr(p.e.text, cases[i].why))
            fail_msg("'%s' is refused with '%s', not '%s'", cases[i].commands, p.e.text, cases[i].why);
        assert_int_equal(agent_exit_code(p.r.status, &p.e), ERR_USAGE);
        assert_null(stepped_event(&p, "action", 1));
    }
    assert_int_equal(json_array_size(stepped_presses(&p)), 0);
    play_close(&p);
}

static void t_veto(void **state)
{
    struct play p;
    stepped_open(&p);
    stepped(&p, NULL, "veto that is the wrong button\nveto\nrun\nrun\n",
            CLICK(500, 500) CLICK(400, 400) CLICK(250, 500) ANSWER("Done."));
    stepped_ended(&p, AGENT_ANSWERED);
    assert_int_equal(json_array_size(stepped_presses(&p)), 1);
    pressed_at(&p, 0, 200, 300);
    told(1,
         "<error tool=\"click_desktop\">\nthe user did not allow this: that is the wrong button\n</error>");
    told(2, "the user did not allow this\n");
    assert_non_null(strstr(p.transcript, "\"x\": 400")); /* its reply stays in the context */
    assert_string_equal(field_text(human(&p, 0), "reason"), "that is the wrong button");
    assert_null(stepped_event(&p, "exec", 1));
    char *page = NULL;
    size_t len;
    FILE *f = open_memstream(&page, &len);
    report_print(&p.record, f);
    fclose(f);
    assert_non_null(strstr(page, "refused it: that is the wrong button"));
    free(page);
    char *many =
        xasprintf("%s%s%s%s", "veto\nveto\nveto\n", "veto\nveto\nveto\n", "veto\nveto\nveto\n", "run\n");
    stepped(&p, NULL, many,
            CLICK(1, 1) CLICK(1, 1) CLICK(1, 1) CLICK(1, 1) CLICK(1, 1) CLICK(1, 1) CLICK(1, 1) CLICK(1, 1)
                CLICK(1, 1) ANSWER("I see."));
    stepped_ended(&p, AGENT_REFUSED); /* not counted as errors or loops of the model */
    assert_int_equal(agent_exit_code(p.r.status, &p.e), ERR_FAILED);
    assert_string_equal(p.r.answer, "not done: you declined step 9 (click 'it')");
    free(many);
    play_close(&p);
}

static void t_again(void **state)
{
    struct play p;
    stepped_open(&p);
    stepped(&p, NULL, "again\nagain\nrun\nrun\n",
            CLICK(500, 500) "no step at all\n" CLICK(250, 250) ANSWER("Done."));
    stepped_ended(&p, AGENT_ANSWERED);
    assert_int_equal(json_array_size(stepped_presses(&p)), 1);
    pressed_at(&p, 0, 200, 150);
    assert_int_equal(played.n_told, 2);
    assert_null(strstr(p.transcript, "\"x\": 500"));
    assert_null(strstr(p.transcript, "no step"));
    assert_int_equal(field_int(stepped_event(&p, "generate", 1), "resample"), 2);
    play_close(&p);
}

static void t_fork(void **state)
{
    struct play p;
    stepped_open(&p);
    stepped(&p, NULL, "fork 3\ntake 2\nrun\nfork 1\nrun\nrun\n",
            CLICK(500, 500) CLICK(100, 100) CLICK(250, 500) CLICK(300, 300) CLICK(600, 600) CLICK(700, 700)
                ANSWER("Done."));
    stepped_ended(&p, AGENT_ANSWERED);
    pressed_at(&p, 0, 200, 300);
    pressed_at(&p, 1, 480, 360); /* the first one if none was taken */
    assert_int_equal(json_array_size(stepped_presses(&p)), 2);
    assert_null(strstr(p.transcript, "\"x\": 100"));
    assert_null(strstr(p.transcript, "\"x\": 700"));
    assert_non_null(strstr(p.transcript, "\"x\": 250"));
    assert_int_equal(field_int(human(&p, 0), "n"), 3);
    assert_int_equal(field_int(human(&p, 1), "to"), 2);
    /* the record has the reply that became the step */
    assert_non_null(strstr(field_text(p.story.steps[0].generate, "text"), "250"));
    assert_string_equal(field_text(stepped_event(&p, "step", 1), "thought"), "as planned");
    play_close(&p);
}

/* ---- rewind ---------------------------------------------------------------------------------- */

static void t_rewind(void **state)
{
    struct play p;
    stepped_open(&p);
    p.o.max_images = 2;
    stepped(&p, NULL, "run\nrun\nrewind 1\nrun\nrun\nrun\n",
            CLICK(500, 500) CLICK(400, 400) CLICK(300, 300) CLICK(200, 200) CLICK(600, 600) ANSWER("Done."));
    stepped_ended(&p, AGENT_ANSWERED);
    static const int at[][2] = {{400, 300}, {320, 240}, {160, 120}, {480, 360}};
    for (size_t i = 0; i < 4; i++)
        pressed_at(&p, i, at[i][0], at[i][1]);
    assert_int_equal(json_array_size(stepped_presses(&p)), 4);
    /* the context has no abandoned steps, and the current screen is that of step 1 */
    assert_null(strstr(p.transcript, "\"x\": 500"));
    assert_null(strstr(p.transcript, "\"x\": 400"));
    assert_null(strstr(p.transcript, "\"x\": 300"));
    assert_non_null(strstr(p.transcript, "\"x\": 200"));
    assert_int_equal(field_int(stepped_event(&p, "observe", 4), "from"), 1);
    assert_int_equal(field_int(stepped_event(&p, "observe", 4), "frame"),
                     field_int(stepped_event(&p, "observe", 1), "frame"));
    assert_string_equal(field_text(stepped_event(&p, "prompt", 4), "lead"),
                        field_text(stepped_event(&p, "prompt", 1), "lead"));
    assert_int_equal(field_int(stepped_event(&p, "prompt", 4), "tokens_total"),
                     field_int(stepped_event(&p, "prompt", 1), "tokens_total"));
    assert_string_equal(field_text(human(&p, 2), "what"), "rewind");
    assert_null(stepped_event(&p, "action", 3));

    /* twice, across cuts of the context; an abandoned step cannot be reached */
    stepped(&p, NULL, "run\nrun\nrun\nrun\nrewind 4\nrewind 2\nrewind 2\nrun\nrun\n",
            CLICK(100, 100) CLICK(200, 200) CLICK(300, 300) CLICK(400, 400) CLICK(500, 500) CLICK(600, 600)
                CLICK(700, 700));
    assert_int_equal(p.rc, -1);
    assert_non_null(strstr(p.e.text, "commands:7: cannot rewind to step 2"));
    stepped(&p, NULL, "run\nrun\nrun\nrun\nrewind 4\nrewind 2\nrun\nrun\n",
            CLICK(100, 100) CLICK(200, 200) CLICK(300, 300) CLICK(400, 400) CLICK(500, 500) CLICK(600, 600)
                CLICK(700, 700) ANSWER("Done."));
    stepped_ended(&p, AGENT_ANSWERED);
    assert_int_equal(json_array_size(stepped_presses(&p)), 5);
    pressed_at(&p, 4, 560, 420);
    assert_non_null(strstr(p.transcript, "\"x\": 100"));
    assert_null(strstr(p.transcript, "\"x\": 200"));
    play_close(&p);
}

static const struct CMUnitTest tests[] = {
    CLAIM("run executes the step that is shown, stop does not; the end of a script is a stop", t_run_stop),
    CLAIM("an edited step is executed as edited, and the model is informed", t_edit),
    CLAIM("an invalid command is rejected with its line and a reason, and has no effect", t_wrong),
    CLAIM("a vetoed step is not executed, and the model reads the reason next", t_veto),
    CLAIM("another reply replaces the one that was shown", t_again),
    CLAIM("of several replies only the selected one is executed and stays in the context", t_fork),
    CLAIM("after a rewind a step is decided again on its own screen, and later steps are forgotten",
          t_rewind),
};

CHECK_MAIN()
