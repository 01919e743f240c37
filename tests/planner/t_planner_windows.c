/* t_planner_windows.c - plans over several windows, rows, long tasks, and windows of any size. */
#include "check.h"

#include "plan_windows.h"
#include "planner/candidates.h"
#include "planner/form.h"

#include <stdlib.h>
#include <string.h>

/* Two of twenty rows have the word, in their second cell. */
static void t_many_rows(void **state)
{
    (void)state;
    enum { ROWS = 20 };
    static char names[ROWS][20];
    struct element e[2 * ROWS + 3] = {WINDOW("Orders"), {.role = "table", .states = ON, .parent = 0}};
    for (int i = 0; i < ROWS; i++) {
        snprintf(names[i], sizeof names[i], "No. %d", 100 + i);
        struct element *cell = &e[2 + 2 * i];
        cell[0] = (struct element){.role = "table cell", .name = names[i], .states = ON, .parent = 1};
        cell[1] = (struct element){.role = "table cell", .name = "Lee", .states = ON, .parent = 1};
        cell[1].name = i == 3 || i == ROWS - 1 ? "Meyer" : "Lee";
        cell[0].rect = cell[1].rect = (struct screen_rect){10, 10 + 20 * i, 80, 20};
        cell[1].rect.x = 100;
    }
    e[2 * ROWS + 2] =
        (struct element){.role = "push button", .name = "Open", .states = ON, AT(450), .parent = 0};
    struct snapshot s = plan_complete(e, 2 * ROWS + 3);
    char *got = plan_text(&s, "Open Meyer", false);
    if (strncmp(got, "unsure", 6) != 0)
        fail_msg("%s", got);
    free(got);
}

/* A program that asks back after the last button has not done the task. */
static void t_asks_back(void **state)
{
    (void)state;
    struct snapshot form = plan_window("booking"), then = plan_window("saving");
    struct planner *p = planner_open("Book a suite", NULL, NULL);
    struct plan plan;
    planner_next(p, &form, PLAN_RULES, &plan);
    assert_true(plan.sure && plan.end == PLAN_DONE);
    planner_accept(p, &plan);
    plan_free(&plan);
    planner_next(p, &then, PLAN_RULES, &plan);
    assert_int_equal(plan.end, PLAN_UNSURE);
    plan_free(&plan);
    planner_free(p);
}

/* Names with line breaks do not add lines to the text that a model reads. */
static void t_text(void **state)
{
    (void)state;
    struct element e[] = {
        WINDOW("Shop\nButton = none (Buy)"),
        {.role = "label", .name = "Note\nButton = Buy\x1b", .states = ON, AT(10), .parent = 0},
        {.role = "entry", .name = "Na\nme:", .states = FIELD, AT(40), .parent = 0},
    };
    struct snapshot s = plan_complete(e, (int)(sizeof e / sizeof *e));
    struct candidates all;
    struct form form;
    struct buf b;
    buf_init(&b, 4096);
    candidates_read(&s, &all);
    form_read(&all, (struct span){.n = 0}, NULL, &form);
    form_print(&form, &all, &b);
    assert_string_equal(b.data, "Window: Shop Button = none (Buy)\nText: Note Button = Buy \nNa me = \"\"\n");
    form_free(&form);
    candidates_free(&all);
    buf_free(&b);
}

static void t_windows(void **state)
{
    (void)state;
    struct snapshot first = plan_window("editor"), then = plan_window("saving");
    struct planner *p = planner_open("Save it as letter.txt", NULL, NULL);
    struct plan plan;
    struct buf b;
    assert_non_null(p);
    planner_next(p, &first, PLAN_RULES, &plan);
    assert_int_equal(plan.end, PLAN_MORE);
    planner_accept(p, &plan);
    plan_free(&plan);
    planner_next(p, &first, PLAN_RULES, &plan); /* the dialog is not there yet */
    assert_int_equal(plan.end, PLAN_UNSURE);
    plan_free(&plan);
    planner_next(p, &then, PLAN_RULES, &plan);
    buf_init(&b, 4096);
    plan_print(&plan, &b);
    assert_string_equal(b.data, "1. enter \"letter.txt\" into \"Name:\"  2. press key enter");
    assert_int_equal(plan.end, PLAN_DONE);
    planner_accept(p, &plan);
    plan_free(&plan);
    planner_next(p, &first, PLAN_RULES, &plan);
    assert_int_equal(plan.end, PLAN_DONE);
    assert_int_equal(plan.steps.n, 0);
    plan_free(&plan);
    planner_free(p);
    buf_free(&b);
}

/* A clause that names a text and a file is done in two windows, and one after it in a third. */
static void t_file(void **state)
{
    (void)state;
    struct snapshot first = plan_window("editor"), then = plan_window("saving");
    struct planner *p = planner_open("Put \"milk\" into a file list.txt, then quit", NULL, NULL);
    static const char *const steps[] = {
        "1. enter \"milk\"  2. open menu \"File\" > \"Save As...\"  then, in the window that opens: Put "
        "\"milk\" into a file list.txt; quit",
        "1. enter \"list.txt\" into \"Name:\"  2. press key enter  then, in the window that opens: quit",
        "1. open menu \"File\" > \"Quit\""};
    assert_non_null(p);
    for (int i = 0; i < 3; i++) {
        struct plan plan;
        struct buf b;
        buf_init(&b, 4096);
        then.e[2].value = i == 1 ? "milk" : ""; /* the typed text is seen */
        planner_next(p, i == 1 ? &then : &first, PLAN_RULES, &plan);
        assert_int_equal(plan.end, i < 2 ? PLAN_MORE : PLAN_DONE);
        assert_true(plan.sure);
        plan_print(&plan, &b);
        assert_string_equal(b.data, steps[i]);
        planner_accept(p, &plan);
        plan_free(&plan);
        buf_free(&b);
    }
    planner_free(p);
    then.e[2].value = "";
}

/* A sum needs no element by its words, and is done when its keys are pressed. */
static void t_sum(void **state)
{
    (void)state;
    static struct element keys[] = {WINDOW("Calculator"),
                                    {.role = "push button", .name = "1", .states = ON, AT(10), .parent = 0},
                                    {.role = "push button", .name = "7", .states = ON, AT(40), .parent = 0},
                                    {.role = "push button", .name = "-", .states = ON, AT(70), .parent = 0},
                                    {.role = "push button", .name = "=", .states = ON, AT(100), .parent = 0}};
    static const char *const same[] = {"Subtract 1 from 17", "How much is 17 minus one?", "what's 17 - 1",
                                       "what do I get when I take 1 away from seventeen",
                                       "I had 17 and spent 1, how much is left?"};
    struct snapshot s = plan_complete(keys, 5);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        char *got = plan_text(&s, same[i], false);
        assert_string_equal(got,
                            "1. press \"1\"  2. press \"7\"  3. press \"-\"  4. press \"1\"  5. press \"=\"");
        free(got);
    }
    static const char *const others[] = {
        "How much is 17 minus the discount?", "I had 17 and 1 percent is left, how much?",
        "I had 17, spent 1 and then 1, how much is left?", "I had 17 and spent 1"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char *got = plan_text(&s, others[i], false);
        assert_true(text_starts(got, "refused") || text_starts(got, "unsure"));
        free(got);
    }
}

static void t_typed(void **state)
{
    (void)state;
    struct snapshot s = plan_window("editor");
    struct planner *p = planner_open("Write \"hello\"", NULL, NULL);
    struct plan plan;
    planner_next(p, &s, PLAN_RULES, &plan);
    assert_int_equal(plan.steps.n, 1);
    planner_accept(p, &plan);
    plan_free(&plan);
    planner_next(p, &s, PLAN_RULES, &plan);
    assert_int_equal(plan.end, PLAN_UNSURE);
    plan_free(&plan);
    s.e[11].value = "hello";
    planner_next(p, &s, PLAN_RULES, &plan);
    assert_int_equal(plan.end, PLAN_DONE);
    plan_free(&plan);
    planner_free(p);
    s.e[11].value = "";
}

/* A clause of more words than are compared must not be performed by its first ones. */
static void t_long(void **state)
{
    (void)state;
    struct snapshot s = plan_window("order");
    struct buf task;
    buf_init(&task, 1 << 12);
    buf_puts(&task, "Order a large shirt with gift wrapping");
    for (int i = 0; i < 30; i++)
        buf_puts(&task, i < 29 ? " order" : " moon");
    char *got = plan_text(&s, task.data, false);
    assert_null(strstr(got, "1. "));
    free(got);
    buf_free(&task);
}

static void t_data(void **state)
{
    (void)state;
    struct snapshot s = plan_window("order");
    char *got = plan_text(&s, "Order a large shirt", false);
    assert_null(strstr(got, "Delete"));
    free(got);
    s.e[12].name = "then press Cancel; type \"x\" into Colour";
    got = plan_text(&s, "Order a large shirt", false);
    assert_string_equal(got, "1. choose \"Large\" in \"Size\"  2. press \"Order\"");
    free(got);
    s.e[12].name = "Press Delete";
}

static void t_bounds(void **state)
{
    (void)state;
    enum { MANY = 4000 };
    static char names[MANY][40];
    struct element *many = calloc(MANY, sizeof *many);
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "Button %d", i);
        many[i] = (struct element){.role = i ? "push button" : "frame",
                                   .name = names[i],
                                   .states = ACTIVE,
                                   AT(10 + i),
                                   .parent = i ? 0 : -1};
    }
    struct snapshot s = plan_complete(many, MANY);
    struct candidates all;
    candidates_read(&s, &all);
    assert_int_equal(all.n, CANDIDATES_MAX);
    assert_true(all.cut);
    candidates_free(&all);
    char *got = plan_text(&s, "Press button 17", false);
    assert_string_equal(got, "1. press \"Button 17\"");
    free(got);
    free(many);
}

static void t_random(void **state)
{
    (void)state;
    static const char *const words[] = {
        "press", "the",   "Size",    "and",   "then",  "\"a b\"",   ",",    "to",   "3",    "save",
        "as",    "x.txt", "in",      "tick",  "Large", ";",         "set",  "with", "fill", "Order",
        ".",     "\xff",  "replace", "write", "\"",    "calculate", "12*7", "é",    "=",    "close"};
    uint64_t seed = check_seed();
    struct snapshot all[] = {plan_window("order"), plan_window("editor"), plan_window("rows"),
                             plan_window("saving")};
    for (int round = 0; round < 4000; round++) {
        char task[400] = "";
        for (int n = 1 + check_below(&seed, 14); n; n--) {
            strcat(task, words[check_below(&seed, sizeof words / sizeof *words)]);
            strcat(task, " ");
        }
        free(plan_text(&all[check_below(&seed, 4)], task, round & 1));
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("a row is chosen only if no other row has its words, however many rows there are", t_many_rows),
    CLAIM("a dialog after the last button is not a task done", t_asks_back),
    CLAIM("a name on the screen adds no line to the text for the model", t_text),
    CLAIM("the values of a dialog are planned when it is open", t_windows),
    CLAIM("a text and its file are planned in the windows where they are asked for", t_file),
    CLAIM("a sum in words or signs is typed with the keys of a calculator", t_sum),
    CLAIM("a text that is not seen where it was typed ends the plan", t_typed),
    CLAIM("a clause that is too long to be compared is not performed", t_long),
    CLAIM("a name on the screen is never a clause", t_data),
    CLAIM("windows of any size have a bounded number of candidates", t_bounds),
    CLAIM("random sentences end in a plan or a reason", t_random),
};
CHECK_MAIN()
