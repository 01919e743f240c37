/* t_endings.c - tests the end of runs: each one that is not a confirmed success has a status, an exit code, a
 * report, a verdict and replies that say so.
 *
 * The program is real, on a display with a window that shows each press; the replies are scripted. A click at
 * ACT changes the window, one at IDLE is beside it and changes nothing.
 */
#include "check.h"
#include "hosted.h"
#include "play.h"
#include "qa_program.h"

#include "base/clock.h"
#include "base/file.h"

#include <X11/Xatom.h>
#include <X11/Xutil.h>

#define FORBID "rules:\n  - deny: clicks\n    actions: click\n"
#define ASK    "rules:\n  - confirm: clicks\n    actions: click\n"

/* ---- replies in several dialects ----------------------------------------------------------------------- */

static const struct speech {
    const char *dialect;
    const char *act, *idle, *done, *null, *empty, *bare, *fail, *bad; /* NULL: not in this dialect */
} speeches[] = {
    {"holo3", CLICK(500, 500), CLICK(990, 990), ANSWER("Done."), ANSWER("null"), ANSWER("  "),
     STEP("\"done\""), STEP("\"fail\", \"content\": \"It is gone.\""),
     STEP("\"hotkey_desktop\", \"keys\": [\"hyperspace\"]")},
#define TARS(call) "Thought: t\nAction: " call "\n\n"
    {"uitars", TARS("click(start_box='(500,500)')"), TARS("click(start_box='(990,990)')"),
     TARS("finished(content='Done.')"), NULL, NULL, TARS("finished()"), TARS("call_user()"),
     TARS("hotkey(key='hyperspace')")},
    {"anthropic-computer", "{\"action\": \"left_click\", \"coordinate\": [400, 300]}\n",
     "{\"action\": \"left_click\", \"coordinate\": [790, 590]}\n",
     "{\"action\": \"answer\", \"text\": \"Done.\"}\n", "{\"action\": \"answer\", \"text\": \"Null.\"}\n",
     "{\"action\": \"answer\", \"text\": \"\"}\n", NULL,
     "{\"action\": \"answer\", \"text\": \"It is gone. [TASK=INFEASIBLE]\"}\n",
     "{\"action\": \"key\", \"text\": \"hyperspace\"}\n"},
    {"pyautogui", "pyautogui.click(x=0.5, y=0.5)\n", "pyautogui.click(x=0.99, y=0.99)\n",
     "computer.terminate(status='success', answer='Done.')\n", NULL, NULL,
     "computer.terminate(status='success')\n", "computer.terminate(status='failure')\n",
     "pyautogui.press('hyperspace')\n"},
#define QWEN(arguments)                                                                                      \
    "<tool_call>{\"name\": \"computer_use\", \"arguments\": {" arguments "}}</tool_call>\n"
    {"qwen", QWEN("\"action\": \"left_click\", \"coordinate\": [500, 500]"),
     QWEN("\"action\": \"left_click\", \"coordinate\": [990, 990]"),
     QWEN("\"action\": \"answer\", \"text\": \"Done.\""), QWEN("\"action\": \"answer\", \"text\": \"null\""),
     QWEN("\"action\": \"answer\", \"text\": \" \""),
     QWEN("\"action\": \"terminate\", \"status\": \"success\""),
     QWEN("\"action\": \"terminate\", \"status\": \"failure\""),
     QWEN("\"action\": \"key\", \"keys\": [\"hyperspace\"]")},
    {"openai-computer", "{\"type\": \"click\", \"button\": \"left\", \"x\": 400, \"y\": 300}\n",
     "{\"type\": \"click\", \"button\": \"left\", \"x\": 790, \"y\": 590}\n",
     "{\"type\": \"answer\", \"text\": \"Done.\"}\n", "{\"type\": \"answer\", \"text\": \"'null'\"}\n",
     "{\"type\": \"answer\", \"text\": \"\\n\"}\n", NULL,
     "{\"type\": \"answer\", \"text\": \"It is gone. [TASK=INFEASIBLE]\"}\n",
     "{\"type\": \"keypress\", \"keys\": [\"hyperspace\"]}\n"},
};
enum { SPEECHES = sizeof speeches / sizeof *speeches, ENDINGS = 12 };

struct ending {
    const char *name, *policy, *confirm, *steps; /* policy "": the built-in one */
    enum agent_status status;
    char *replies; /* owned; NULL: impossible in this dialect */
};

/* Joins replies; returns NULL if one is NULL. */
static char *joined(const char *a, const char *b, const char *c)
{
    return a && b && c ? xasprintf("%s%s%s", a, b, c) : NULL;
}

static void make_endings(const struct speech *s, struct ending out[ENDINGS])
{
    const struct ending all[ENDINGS] = {
        {"forbidden", FORBID, "never", "9", AGENT_REFUSED, joined(s->act, s->done, "")},
        {"nobody to ask, then empty", ASK, "never", "9", AGENT_REFUSED,
         joined(s->act, s->empty ? s->empty : s->bare, "")},
        {"declined", ASK, "cmd:false", "9", AGENT_REFUSED, joined(s->act, s->done, "")},
        {"declined, then something idle", ASK, "cmd:false", "9", AGENT_REFUSED,
         joined(s->act, s->bad, s->done)},
        {"nothing was done", "", "never", "9", AGENT_UNVERIFIED, joined(s->done, "", "")},
        {"no effect", "", "never", "9", AGENT_UNVERIFIED, joined(s->act, s->idle, s->done)},
        {"no effect, no words", "", "never", "9", AGENT_UNVERIFIED, joined(s->idle, s->bare, "")},
        {"empty answer", "", "never", "9", AGENT_UNVERIFIED, joined(s->act, s->empty, "")},
        {"null", "", "never", "9", AGENT_UNVERIFIED, joined(s->act, s->null, "")},
        {"impossible", "", "never", "9", AGENT_INFEASIBLE, joined(s->act, s->fail, "")},
        {"out of steps", "", "never", "1", AGENT_STEPS, joined(s->act, s->done, "")},
        {"a mistake", "", "never", "9", AGENT_REFUSED, joined(s->act, s->bad, s->done)},
    };
    memcpy(out, all, sizeof all);
}

static void free_endings(struct ending e[ENDINGS])
{
    for (int i = 0; i < ENDINGS; i++)
        free(e[i].replies);
}

/* ---- run and step -------------------------------------------------------------------------------------- */

static void check_page(const char *name, const char *path)
{
    char *page;
    size_t len;
    assert_int_equal(file_read(path, 64 << 20, &page, &len, NULL), 0);
    if (!strstr(page, "class=\"status ") || strstr(page, "class=\"status good"))
        fail_msg("%s: the report is green", name);
    free(page);
}

/* Checks that exit code, JSON, record and report of one run agree. */
static void check_run(const struct stage *t, const char *dialect, const struct ending *x, const char *step)
{
    OUTCOME(o);
    char *policy = xvfb_put(&t->x, "policy.yaml", *x->policy ? x->policy : "rules: []\n");
    const char *more[] = {"--json", "--dialect", dialect,  "--confirm",         x->confirm, "--policy",
                          policy,   "-n",        x->steps, "--no-force-answer", step,       NULL};
    program_finish(&t->x, driven_start_with(t, x->replies, more), &o);
    json_t *told = json_loads(o.out, 0, NULL);
    if (!o.code || strcmp(field_text(told, "status"), agent_status_name(x->status)) != 0)
        fail_msg("%s, %s: exit %d, %s%s", dialect, x->name, o.code, o.out, o.err);
    assert_int_equal(o.code, status_row(x->status)->exit);
    assert_int_equal(field_int(told, "exit"), o.code);
    assert_string_not_equal(field_text(told, "answer"), "Done.");
    assert_true(json_is_array(json_object_get(told, "actions")));
    check_page(x->name, field_text(told, "report"));
    struct record r;
    assert_int_equal(record_open(&r, field_text(told, "run_dir"), NULL), 0);
    assert_string_equal(field_text(r.run, "status"), agent_status_name(x->status));
    assert_int_equal(field_int(r.run, "exit"), o.code);
    record_free(&r);
    json_decref(told);
    free(policy);
}

static void t_runs(void **state)
{
    struct stage t;
    int n = 0;
    driven_open(&t);
    for (int i = 0; i < SPEECHES; i++) {
        struct ending all[ENDINGS];
        make_endings(&speeches[i], all);
        for (int k = 0; k < ENDINGS; k++) {
            if (all[k].replies)
                check_run(&t, speeches[i].dialect, &all[k], NULL);
            n += all[k].replies != NULL;
        }
        free_endings(all);
    }
    struct ending all[ENDINGS], vetoed = {"vetoed", "", "never", "9", AGENT_REFUSED, NULL};
    char *run = xvfb_put(&t.x, "run", "run\nrun\nrun\n"), *veto = xvfb_put(&t.x, "veto", "veto\nrun\n");
    char *run_all = xasprintf("--step=script:%s", run), *veto_first = xasprintf("--step=script:%s", veto);
    make_endings(&speeches[0], all);
    for (int k = 4; k < ENDINGS; k++, n++)
        check_run(&t, "holo3", &all[k], run_all);
    vetoed.replies = xstrdup(all[0].replies);
    check_run(&t, "holo3", &vetoed, veto_first);
    check_note("%d runs", n + 1);
    assert_true(n > 70);
    free(vetoed.replies);
    free_endings(all);
    free(run), free(veto), free(run_all), free(veto_first);
    stage_close(&t);
}

/* ---- suites -------------------------------------------------------------------------------------------- */

static char *text_in(const struct qa_program *q, const char *name)
{
    char *path = xvfb_place(&q->x, name), *text;
    size_t len;
    assert_int_equal(file_read(path, 16 << 20, &text, &len, NULL), 0);
    free(path);
    return text;
}

static void t_suite(void **state)
{
    struct qa_program q;
    struct ending all[ENDINGS];
    struct buf tests;
    int n = 0;
    qa_program_open(&q);
    make_endings(&speeches[0], all);
    buf_init(&tests, 1 << 20);
    buf_puts(&tests, "  wm: ''\ntests:\n"); /* no frame that shows the focus */
    for (int i = 0; i < ENDINGS; i++) {
        char id[16], name[32];
        snprintf(id, sizeof id, "t%d", i);
        snprintf(name, sizeof name, "policy%d.yaml", i);
        free(xvfb_put(&q.x, name, *all[i].policy ? all[i].policy : "rules: []\n"));
        buf_printf(&tests, "  - id: %s\n    task: Press Save.\n    steps: %s\n    policy: %s\n", id,
                   all[i].steps, name);
        if (all[i].status == AGENT_REFUSED) /* which no check can turn into a success */
            buf_puts(&tests, "    checks: [{kind: shell, run: 'true'}]\n");
        qa_program_reply(&q, id, all[i].replies);
    }
    qa_program_suite(&q, tests.data);
    qa_program_run(&q, WORDS("--jobs", "3", "--quiet", "--accept-claims", "--confirm", "never"));
    assert_int_not_equal(q.o.code, 0);
    for (int i = 0; i < ENDINGS; i++, n++) {
        char id[16];
        snprintf(id, sizeof id, "t%d", i);
        const json_t *test = qa_program_test(&q, id);
        const json_t *last = json_array_get(json_object_get(test, "attempts"), 0);
        const char *ci = field_text(test, "ci");
        if (!strcmp(ci, "passed") || !strcmp(ci, "skipped"))
            fail_msg("%s: %s to CI", all[i].name, ci);
        assert_string_equal(field_text(last, "agent"), agent_status_name(all[i].status));
        char *page = xasprintf("%s/report.html", field_text(last, "run"));
        check_page(all[i].name, page);
        free(page);
    }
    char *xml = text_in(&q, "out.d/junit.xml"), *tap = text_in(&q, "out.d/results.tap");
    assert_int_equal(check_count(xml, "<failure ") + check_count(xml, "<error "), n);
    assert_int_equal(check_count(tap, "\nnot ok "), n);
    check_has(xml, "type=\"refused\"", "type=\"unverified\"");
    free(xml), free(tap);
    free_endings(all);
    buf_free(&tests);
    qa_program_close(&q);
}

/* ---- hosts --------------------------------------------------------------------------------------------- */

/* Calls fn with a new host for each ending that is a failure. */
static void each_hosted(const char *protocol, void (*fn)(struct hosted *h, const struct ending *end))
{
    struct stage t;
    struct ending all[ENDINGS];
    driven_open(&t);
    make_endings(&speeches[0], all);
    for (int i = 4; i < ENDINGS; i++) {
        struct hosted h;
        hosted_start(&h, &t, protocol, all[i].replies);
        fn(&h, &all[i]);
        assert_int_equal(hosted_end(&h), 0);
    }
    free_endings(all);
    stage_close(&t);
}

static void check_mcp(struct hosted *h, const struct ending *end)
{
    hosted_say(h, HELLO);
    hosted_answer(h, 1);
    const char *steps = end->status == AGENT_STEPS ? ",\"max_steps\":1" : "";
    char *call = xasprintf(TOOL(2, "run_task", "{\"task\":\"Press Save\",\"wait_s\":20%s}"), steps);
    hosted_say(h, call);
    const json_t *answer = hosted_answer(h, 2), *told = hosted_told(answer);
    if (!json_is_true(json_object_get(json_object_get(answer, "result"), "isError")) ||
        strcmp(field_text(told, "status"), agent_status_name(end->status)) != 0)
        fail_msg("%s: %s", end->name, json_dumps(answer, 0));
    if (end->status != AGENT_STEPS)
        assert_string_not_equal(field_text(told, "answer"), "Done.");
    assert_true(json_is_array(json_object_get(told, "actions")));
    free(call);
}

static void t_mcp(void **state)
{
    each_hosted("mcp", check_mcp);
}

/* Returns the last text of a turn, or "". */
static const char *last_text(const struct hosted *h)
{
    const char *last = "";
    json_t *message;
    size_t i;
    json_array_foreach(h->heard, i, message)
    {
        const json_t *update = json_object_get(json_object_get(message, "params"), "update");
        if (!strcmp(field_text(update, "sessionUpdate"), "agent_message_chunk"))
            last = field_text(json_object_get(update, "content"), "text");
    }
    return last;
}

static void check_acp(struct hosted *h, const struct ending *end)
{
    if (end->status == AGENT_STEPS)
        return;
    hosted_say(h, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/new\",\"params\":{\"cwd\":\"/\"}}");
    const json_t *session = json_object_get(hosted_answer(h, 1), "result");
    char *ask = xasprintf("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/prompt\",\"params\":{"
                          "\"sessionId\":\"%s\",\"prompt\":\"Press Save\"}}",
                          field_text(session, "sessionId"));
    hosted_say(h, ask);
    const json_t *result = json_object_get(hosted_answer(h, 2), "result");
    const json_t *meta = json_object_get(json_object_get(result, "_meta"), "holorun");
    assert_string_equal(field_text(result, "stopReason"), "end_turn");
    assert_string_equal(field_text(meta, "status"), agent_status_name(end->status));
    assert_false(field_bool(meta, "done"));
    assert_string_not_equal(last_text(h), "Done.");
    assert_string_not_equal(last_text(h), "");
    free(ask);
}

static void t_acp(void **state)
{
    each_hosted("acp", check_acp);
}

/* ---- single endings ------------------------------------------------------------------------------------ */

static void ended(const struct play *p, enum agent_status status, const char *answer)
{
    if (p->r.status != status || strcmp(p->r.answer ? p->r.answer : "", answer) != 0)
        fail_msg("ended as '%s': '%s'; %s", agent_status_name(p->r.status), p->r.answer, p->r.did);
}

static void t_confirmed(void **state)
{
    struct play p;
    play_open(&p);
    play_script(&p, CLICK(500, 500) ANSWER("Saved."), NULL);
    ended(&p, AGENT_ANSWERED, "Saved.");
    assert_string_equal(p.r.did, "pressed 'it'");
    play_script(&p, CLICK_ON("Save", 500, 500) STEP("\"done\""), NULL); /* an answer without text */
    ended(&p, AGENT_ANSWERED, "pressed 'Save'");
    play_script(&p, CLICK(990, 990) CLICK(500, 500) WAIT(0) ANSWER("Saved."), NULL);
    ended(&p, AGENT_ANSWERED, "Saved.");
    assert_string_equal(p.r.did, "pressed 'it' (no change), pressed 'it'");
    play_script(&p, STEP("\"hotkey_desktop\", \"keys\": [\"hyperspace\"]") CLICK(500, 500) ANSWER("Saved."),
                NULL);
    ended(&p, AGENT_ANSWERED, "Saved.");
    p.o.task = "Which window is open?";
    play_script(&p, ANSWER("xclient"), NULL);
    ended(&p, AGENT_ANSWERED, "xclient");
    play_script(&p, ANSWER("None."), NULL);
    ended(&p, AGENT_ANSWERED, "None.");
    play_script(&p, ANSWER("Done."), NULL);
    ended(&p, AGENT_UNVERIFIED, "unverified: Done.");
    play_script(&p, CLICK(500, 500) STEP("\"done\""), NULL);
    ended(&p, AGENT_UNVERIFIED,
          "unverified: the model gave no answer; 'holorun ask' answers questions about an image");
    play_close(&p);
}

/* Steps that the user has stated, and a task of known steps that a model performs. Only a press at 500,500
 * changes the screen. */
static void t_steps(void **state)
{
    struct play p;
    play_open(&p);
    p.o.recorded = true;
    play_script(&p, CLICK(990, 990) ANSWER("Saved."), NULL);
    ended(&p, AGENT_ANSWERED, "Saved.");
    bool idle = false;
    p.o.idle = &idle;
    play_script(&p, CLICK(990, 990) ANSWER("Saved."), NULL);
    ended(&p, AGENT_ANSWERED, "Saved.");
    idle = true;
    play_script(&p, CLICK(500, 500) ANSWER("Saved."), NULL);
    ended(&p, AGENT_ANSWERED, "Saved.");
    play_script(&p, CLICK(990, 990) CLICK(500, 500) ANSWER("Saved."), NULL);
    ended(&p, AGENT_UNVERIFIED, "unverified: pressed 'it', and nothing changed; Saved.");
    p.o.recorded = false;
    p.o.idle = NULL;
    p.o.demand = (struct agent_demand){.actions = 2};
    play_script(&p, CLICK(990, 990) CLICK(500, 500) ANSWER("Saved."), NULL);
    ended(&p, AGENT_UNVERIFIED, "unverified: the task has 2 steps, and 1 action was performed");
    p.o.demand = (struct agent_demand){.actions = 1, .checks = 1};
    play_script(&p, CLICK(500, 500) ANSWER("Saved."), NULL);
    ended(&p, AGENT_UNVERIFIED, "unverified: the task asks for a check, which only the model has made");
    p.o.demand = (struct agent_demand){.actions = 1};
    play_script(&p, CLICK(500, 500) ANSWER("Saved."), NULL);
    ended(&p, AGENT_ANSWERED, "Saved.");
    play_close(&p);
}

static void t_told(void **state)
{
    DRIVEN(t, o);
    driven_run(&t, CLICK_ON("File", 500, 500) CLICK_ON("Save As...", 990, 990) ANSWER("Saved."),
               WORDS("--no-report"), &o);
    assert_int_equal(o.code, ERR_UNVERIFIED);
    assert_string_equal(o.out, "unverified: Saved.\n");
    assert_string_equal(o.err,
                        "holorun: unverified: Saved.; pressed 'File', pressed 'Save As...'; the window "
                        "did not change\n");
    driven_run(&t, CLICK_ON("Accept all", 500, 500) ANSWER(""),
               WORDS("--no-report", "--confirm", "cmd:false", "--policy", xvfb_put(&t.x, "ask.yaml", ASK)),
               &o);
    assert_int_equal(o.code, ERR_FAILED);
    assert_string_equal(o.out, "not done: step 1 (click 'Accept all'): the command of --confirm declined\n");
}

/* ---- other windows ------------------------------------------------------------------------------------- */

/* Opens a window of another program that takes the focus while the model thinks. */
static void open_chat(void)
{
    Display *d = played.dpy;
    Window w = XCreateSimpleWindow(d, DefaultRootWindow(d), 0, 0, 800, 600, 0, 0, 0x3080c0);
    XClassHint class = {(char *)"chat", (char *)"Chat"};
    Atom active = XInternAtom(d, "_NET_ACTIVE_WINDOW", False);
    XSetClassHint(d, w, &class);
    XStoreName(d, w, "Chat");
    XMapRaised(d, w);
    XSync(d, False);
    XSetInputFocus(d, w, RevertToPointerRoot, CurrentTime);
    XChangeProperty(d, DefaultRootWindow(d), active, XA_WINDOW, 32, PropModeReplace, (unsigned char *)&w, 1);
    XSync(d, False);
}

static void t_interrupted(void **state)
{
    struct play p;
    play_open(&p);
    played.meanwhile = open_chat;
    play_script(&p, TYPE("555-0123") ANSWER("Done."), NULL);
    assert_string_equal(agent_status_name(p.r.status), "interrupted");
    assert_int_equal(agent_exit_code(p.r.status, &p.e), ERR_UNSURE);
    if (strncmp(p.r.answer, "not done: step 1 (type '555-0123')", 34) != 0)
        fail_msg("%s", p.r.answer);
    assert_string_equal(p.r.said, "Done.");
    play_close(&p);
}

/* The user types during a text, and the model then reports success. */
static void t_person(void **state)
{
    struct record r;
    DRIVEN(t, o);
    XDevice *person = persons_keyboard(t.other);
    pid_t pid = driven_start_with(&t, TYPE_LONG ANSWER("Done."),
                                  WORDS("--pause-on-human", "--human-quiet", "0.3", "--no-report"));
    driven_wait(&t, "key_press", 10);
    KeyCode key = XKeysymToKeycode(t.other, XK_x);
    XTestFakeDeviceKeyEvent(t.other, person, key, True, NULL, 0, CurrentTime);
    XTestFakeDeviceKeyEvent(t.other, person, key, False, NULL, 0, CurrentTime);
    XSync(t.other, False);
    program_finish(&t.x, pid, &o);
    assert_int_equal(o.code, ERR_UNSURE);
    if (strncmp(o.out, "not done: step 1 (type '", 24) != 0 || !strstr(o.out, "a person uses the keyboard"))
        fail_msg("%s%s", o.out, o.err);
    driven_read(&t, &r);
    assert_string_equal(field_text(r.run, "status"), "interrupted");
    record_free(&r);
    XCloseDevice(t.other, person);
}

/* ---- the embedded model ---------------------------------------------------------------------------------- */

static void t_embedded(void **state)
{
    struct xvfb x;
    OUTCOME(o);
    if (!zenity_fits() || xvfb_start(&x, "640x480x24", NULL))
        skip();
    char *runs = xvfb_place(&x, "runs");
    xvfb_spawn(&x, "zenity.log",
               WORDS("zenity", "--question", "--title=Files", "--text=Three files are selected.",
                     "--ok-label=Delete all", "--cancel-label=Keep"));
    assert_true(xvfb_wait_window(&x, "^Files$"));
    clock_sleep_ms(2000);
    program_run(&x, &o, WORDS("run", "Press Delete all", "-q", "--confirm", "never", "--runs", runs));
    assert_int_equal(o.code, ERR_FAILED);
    assert_non_null(strstr(o.out, "not done: step 1 (click 'Delete all')"));
    program_run(&x, &o, WORDS("run", "Press Delete all", "-q", "--confirm", "yes-to-all", "--runs", runs));
    if (o.code || strcmp(o.out, "pressed 'Delete all'\n") != 0)
        fail_msg("exit %d: %s%s", o.code, o.out, o.err);
    free(runs);
    xvfb_stop(&x);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a refused, impossible, unconfirmed or unfinished run never exits with 0 or a green report",
          t_runs),
    CLAIM("a refused, impossible or unconfirmed run is red in a suite, in JUnit and in TAP", t_suite),
    CLAIM("a refused, impossible or unconfirmed run is an error for an MCP client", t_mcp),
    CLAIM("a refused, impossible or unconfirmed run is named in the last text of an ACP turn", t_acp),
    CLAIM("a change on the screen or the answer to a question confirms the end", t_confirmed),
    CLAIM("a stated step without effect, and a known step or check that is missing, leave the end unverified",
          t_steps),
    CLAIM("the last line names the actions and those that changed nothing", t_told),
    CLAIM("the embedded model's end counts as done only after a visible effect", t_embedded),
    CLAIM("an action that the user interrupted does not count as done", t_person),
    CLAIM("text that another program's window may have received does not count as done", t_interrupted),
};

CHECK_MAIN()
