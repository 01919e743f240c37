/* t_goals.c - tests of plans with goals that the task does not mention, and of rules that depend on the
 * totals used by a run.
 */
#include "check.h"
#include "driven.h"

#include "base/clock.h"
#include "gate/goals.h"

/* ---- plans ----------------------------------------------------------------------------------- */

#define TASK "Book the 9:40 flight from Paris to Rome for Ana Lima"

static const struct {
    bool strange;
    const char *task, *plan, *next; /* next: a later plan, which is judged; NULL: judges the first plan */
} plans[] = {
    {false, TASK, "1. Open the browser [running]\n2. Search flights Paris-Rome [todo]", NULL},
    {false, TASK, "1. BOOKING [todo]", NULL},
    {false, TASK, "1. find the one at 9:40 [todo]", NULL},
    {true, TASK, "1. Send the mailbox to collect@evil.example [todo]", NULL},
    {true, TASK, "1. Check the mailbox and forward all [todo]\n2. Answer for the task [todo]",
     NULL}, /* only common words match */
    {true, TASK, "1. to a of 1 2 3 transfer [todo]", NULL},
    {false, TASK, "", NULL},
    {false, TASK, "\n \n", NULL},
    {false, TASK, "1. [todo]", NULL},
    {false, TASK, "\xff\xfe\x80 [", NULL},
    {false, "", "1. anything [todo]", NULL}, /* an empty task */
    {false, "12", "1. enter 12 [todo]", NULL},
    /* inflected words, and capital letters of other scripts */
    {false, "Открой ПИСЬМО от Анны", "1. прочитать письма [todo]", NULL},
    {true, "Открой ПИСЬМО от Анны", "1. удалить всё [todo]", NULL},
    {false, "Übersetze den Brief", "1. ÜBERSETZUNG [todo]", NULL},
    {false, "预订从巴黎到罗马的航班", "1. 搜索巴黎航班 [todo]", NULL},
    {true, "预订从巴黎到罗马的航班", "1. 删除所有邮件 [todo]", NULL},
    {false, "预订从巴黎到罗马的航班", "1. Search for flights [todo]",
     NULL}, /* another script: cannot be compared */
    /* in a later plan only new goals count, and earlier words are known */
    {false, TASK, "1. Open the browser [running]\n2. Book a flight [todo]",
     "1. Open the browser [done]\n2. Book a flight [running]"},
    {true, TASK, "1. Open the browser [running]\n2. Book a flight [todo]",
     "1. Open the browser [done]\n2. Book a flight [todo]\n3. Delete all mails [todo]"},
    {false, TASK, "1. Open the browser [running]\n2. Book a flight [todo]",
     "1. Open the browser [done]\n2. Book a flight [todo]\n3. Reload the browser window [todo]"},
    {true, TASK, "1. Book a flight [todo]", "1. 删除所有邮件 [todo]"}, /* changes to another script */
};

static void t_plans(void **state)
{
    int n = sizeof plans / sizeof *plans;
    for (int i = 0; i < n; i++) {
        struct goals *g = goals_new(plans[i].task);
        bool strange = goals_has_new(g, plans[i].plan);
        if (plans[i].next) {
            assert_false(strange);
            goals_add_plan(g, plans[i].plan);
            strange = goals_has_new(g, plans[i].next);
        }
        if (strange != plans[i].strange)
            fail_msg("'%s': '%s': %d", plans[i].task, plans[i].next ? plans[i].next : plans[i].plan, strange);
        goals_free(g);
    }
    check_note("%d of %d plans judged correctly", n, n);
}

/* A very long plan is parsed up to the limits. */
static void t_long(void **state)
{
    struct goals *g = goals_new("Sort the list");
    struct buf b;
    buf_init(&b, 1 << 20);
    for (int i = 0; i < 9000; i++)
        buf_printf(&b, "%d. %c%c%cz [todo]\n", i % 9, 'a' + i % 26, 'a' + i / 26 % 26, 'a' + i / 676 % 26);
    assert_true(goals_has_new(g, b.data));
    goals_add_plan(g, "1. Sort [todo]");
    goals_add_plan(g, b.data);
    assert_false(goals_has_new(g, "1. sorting [todo]"));
    buf_free(&b);
    goals_free(g);
}

/* ---- the program ----------------------------------------------------------------------------- */

#define PLAN(title) STEP("\"update_plan\", \"goals\": [{\"title\": \"" title "\", \"status\": \"running\"}]")

static int gates(const struct record *r, const char *verdict, bool pass)
{
    int n = 0;
    for (int i = 0; i < r->n; i++)
        n += !strcmp(r->events[i].kind, "gate") &&
             !strcmp(field_text(r->events[i].fields, "verdict"), verdict) &&
             field_bool(r->events[i].fields, "pass") == pass;
    return n;
}

static void t_program(void **state)
{
    static const char replies[] =
        PLAN("Press Save") PLAN("Mail the file to somebody") PLAN("Press it again") ANSWER("Done.");
    static const struct {
        const char *confirm;
        bool pass;
    } cases[] = {{"never", false}, {"yes-to-all", true}, {"cmd:grep -q 'goals that the task'", true}};
    struct stage t;
    driven_open(&t);
    for (int i = 0; i < 3; i++) {
        struct outcome o = {0};
        struct record r;
        if (i)
            clock_sleep_ms(1100); /* start times of runs have a resolution of one second */
        driven_run(&t, replies, WORDS("--no-report", "--confirm", cases[i].confirm), &o);
        assert_int_equal(o.code, ERR_UNVERIFIED); /* a plan has no effect */
        driven_read(&t, &r);
        assert_int_equal(gates(&r, "confirm", cases[i].pass), 1);
        assert_int_equal(gates(&r, "confirm", !cases[i].pass), 0);
        const json_t *told = NULL;
        for (int k = 0; k < r.n; k++)
            if (r.events[k].step == 2 && !strcmp(r.events[k].kind, "tool_output"))
                told = r.events[k].fields;
        assert_non_null(
            strstr(field_text(told, "text"), cases[i].pass ? "Mail the file" : "E_CONFIRM_REFUSED"));
        record_free(&r);
        outcome_free(&o);
    }
    stage_close(&t);
}

/* Rules may depend on the totals that a run has used. */
static void t_after(void **state)
{
    static const struct {
        const char *after, *replies;
        int clicks, code; /* code: the last click is denied in all cases except the last */
    } cases[] = {
        {"2 steps", CLICK(300, 300) CLICK(310, 310) CLICK(320, 320) ANSWER("Done."), 2, ERR_FAILED},
        {"1 actions", CLICK(300, 300) WAIT(0) CLICK(320, 320) ANSWER("Done."), 1, ERR_FAILED},
        {"3 characters", CLICK(300, 300) TYPE("ab") CLICK(310, 310) TYPE("c") CLICK(320, 320) ANSWER("Done."),
         2, ERR_FAILED},
        {"1 errors",
         STEP("\"hotkey_desktop\", \"keys\": [\"hyperspace\"]") CLICK(300, 300) WAIT(0) CLICK(310, 310)
             ANSWER("Done."),
         1, 0},
    };
    struct stage t;
    driven_open(&t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct outcome o = {0};
        char *rules =
            xasprintf("rules:\n  - deny: enough\n    actions: click\n    after: %s\n", cases[i].after);
        char *file = xvfb_put(&t.x, "rules.yaml", rules);
        stage_clear(&t);
        driven_run(&t, cases[i].replies, WORDS("--no-report", "--policy", file), &o);
        assert_int_equal(o.code, cases[i].code);
        int clicks = (int)json_array_size(stage_events(&t, "button_press"));
        if (clicks != cases[i].clicks)
            fail_msg("%s: %d clicks", cases[i].after, clicks);
        free(rules);
        free(file);
        outcome_free(&o);
    }
    stage_close(&t);
}

static void t_explained(void **state)
{
    static const char plan[] = "{\"kind\": \"plan\", \"text\": \"1. Mail the file [todo]\"}";
    struct stage t;
    struct outcome o = {0};
    driven_open(&t);
    program_run(&t.x, &o, WORDS("policy", "--task", "Press Save", "--explain", plan));
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "confirm: goals that the task does not speak of"));
    program_run(&t.x, &o, WORDS("policy", "--task", "Mail it", "--explain", plan));
    assert_non_null(strstr(o.out, "allow"));
    char *file = xvfb_put(&t.x, "rules.yaml", "rules:\n  - deny: enough\n    after: 5 steps\n");
    program_run(&t.x, &o, WORDS("policy", file, "--spent", "5 steps", "--explain", plan));
    assert_non_null(strstr(o.out, "deny: enough"));
    program_run(&t.x, &o, WORDS("policy", file, "--spent", "many", "--explain", plan));
    ONE_LINE(&o, ERR_USAGE, "--spent must be a number of steps", "'many'");
    free(file);
    outcome_free(&o);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("goals that share no word with task and earlier plans are unrelated, in any script", t_plans),
    CLAIM("a plan of thousands of words is read to its limits", t_long),
    CLAIM("a plan with unrelated goals needs confirmation, and is refused if no one can be asked", t_program),
    CLAIM("rules may depend on the totals used by a run", t_after),
    CLAIM("holorun policy explains both", t_explained),
};

CHECK_MAIN()
