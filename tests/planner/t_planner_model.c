/* t_planner_model.c - which replies of a model without vision become steps.  The replies are those that
 * Qwen2.5-Coder-1.5B-Instruct wrote about like windows, or differ from them in one line. */
#include "check.h"

#include "plan_windows.h"
#include "planner/writer.h"

#include <stdlib.h>
#include <string.h>

struct reply {
    const char *lines; /* "Size = Large\nButton = Order\n"; the others stay as they are */
    float p, whole;
};

/* Returns the index of the value that a reply gives to a line. */
static int value_of(const struct form_line *l, const char *lines)
{
    char *head = xasprintf("%s = ", l->name);
    const char *at = strstr(lines, head);
    int found = at ? -1 : 0;
    if (at)
        for (int k = 0; k < l->n; k++) {
            char *line = xasprintf("%s%s\n", head, l->v[k].text);
            found = !strncmp(at, line, strlen(line)) ? k : found;
            free(line);
        }
    if (found < 0)
        fail_msg("the window has no such value: %s", at);
    free(head);
    return found;
}

static int write_reply(void *arg, const char *window, const char *request, const struct form *form,
                       struct written *out, struct err *e)
{
    const struct reply *r = arg;
    (void)window, (void)request, (void)e;
    *out = (struct written){.cannot = xstrdup("something"), .whole = r->whole};
    for (int i = 0; i < form->n; i++) {
        out->value[i] = value_of(&form->l[i], r->lines);
        out->p[i] = r->p;
    }
    return 0;
}

/* Returns the sure steps by a reply, or the reason; the caller frees it. */
static char *planned(const char *window, const char *task, struct reply r)
{
    struct snapshot s = plan_window(window);
    const struct planner_model model = {.write = write_reply, .arg = &r};
    struct err e = ERR_INIT;
    struct planner *p = planner_open(task, &model, &e);
    struct plan plan = {0};
    struct buf b;
    buf_init(&b, 1 << 14);
    if (!p)
        buf_printf(&b, "refused: %s", e.text);
    else
        planner_next(p, &s, PLAN_MODEL, &plan);
    if (p && (plan.end == PLAN_UNSURE || !plan.sure))
        buf_printf(&b, "unsure: %s", plan.why);
    else if (p)
        plan_print(&plan, &b);
    plan_free(&plan);
    planner_free(p);
    char *text = xstrdup(b.data ? b.data : "");
    buf_free(&b);
    return text;
}

static const struct {
    const char *window, *task, *lines;
    float p, whole;
    const char *plan; /* the steps, or how the reason begins */
} cases[] = {
    /* words that no name has */
    {"order", "I'd love one in large, do wrap it up as a present",
     "Size = Large\nGift wrapping = yes\nButton = Order\n", 0.9F, 0.9F,
     "1. choose \"Large\" in \"Size\"  2. tick \"Gift wrapping\"  3. press \"Order\""},
    /* the model names a missing part, or is not sure of its lines */
    {"order", "I'd love one in large", "Size = Large\nButton = Order\n", 0.9F, 0.3F,
     "unsure: the window may lack"},
    {"order", "I'd love one in large", "Size = Large\nButton = Order\n", 0.3F, 0.9F, "unsure: not sure"},
    /* names and numbers of the task that are in no step */
    {"order", "I'd love one in large for Olga", "Size = Large\nButton = Order\n", 0.9F, 0.9F,
     "unsure: nothing in this window is called 'Olga'"},
    {"order", "I'd love 3 in large at 12 euros", "Size = Large\nQuantity = \"3\"\nButton = Order\n", 0.9F,
     0.9F, "unsure: nothing in this window is called '12'"},
    /* choices that no word names, or that leave a word out */
    {"order", "make it match my eyes", "Size = Extra large\nButton = Order\n", 0.9F, 0.9F,
     "unsure: the model guesses"},
    {"order", "I'd love the double large one", "Size = Large\nButton = Order\n", 0.9F, 0.9F,
     "unsure: the model guesses"},
    /* the rules know better */
    {"order", "I'd love a large one", "Size = Extra large\nButton = Order\n", 0.9F, 0.9F,
     "unsure: the model and the words disagree on 'Size'"},
    {"booking", "Carla Dias would love the suite", "Guest = \"Carla Dias\"\nButton = Book\n", 0.9F, 0.9F,
     "1. enter \"Carla Dias\" into \"Guest\"  2. choose \"Suite\" in \"Room\"  3. press \"Book\""},
    {"booking", "we need the suite for the budget review", "Room = Suite\nButton = Book\n", 0.9F, 0.9F,
     "unsure: nothing in this window is called"},
    {"order", "I'd love a large one, embroidered, and quickly", "Size = Large\nButton = Order\n", 0.9F, 0.9F,
     "unsure: nothing in this window is called"},
    {"alarm", "snooze the alarm for one hour, I was up late", "Button = Snooze 10 minutes\n", 0.9F, 0.9F,
     "unsure: nothing in this window is called 'one'"},
    {"alarm", "snooze it, I was up late", "Button = Snooze 10 minutes\n", 0.9F, 0.9F,
     "1. press \"Snooze 10 minutes\""},
    {"ferry", "fill in Karim Haddad as the name and go to the next step",
     "Passenger name = \"Karim Haddad\"\nButton = Next step\n", 0.9F, 0.9F,
     "unsure: the name of another field"},
    {"ferry", "fill in Karim Haddad as the driver and go to the next step",
     "Driver name = \"Karim Haddad\"\nButton = Next step\n", 0.9F, 0.9F,
     "1. enter \"Karim Haddad\" into \"Driver name\"  2. press \"Next step\""},
    /* a button alone does not carry out what the form has no line for */
    {"order", "could you attach a photo of my house", "Button = Order\n", 0.9F, 0.95F, "unsure"},
    {"order", "order me a taxi", "Button = Order\n", 0.9F, 0.95F, "unsure"},
    {"order", "attach the drawing and order it in large", "Size = Large\nButton = Order\n", 0.9F, 0.95F,
     "unsure"},
    {"order", "I'd love a large one", "Size = Large\nButton = Cancel\n", 0.9F, 0.95F,
     "unsure: the model fills the form and leaves it"},
    /* contrasts are the model's, conditions and orders to wait are nobody's */
    {"order", "it should be the large one, not the small one", "Size = Large\nButton = Order\n", 0.9F, 0.9F,
     "1. choose \"Large\" in \"Size\"  2. press \"Order\""},
    {"order", "don't order it in large yet", "Size = Large\nButton = Order\n", 0.9F, 0.9F, "refused"},
    {"order", "please never order the large one", "Size = Large\nButton = Order\n", 0.9F, 0.9F, "refused"},
    {"order", "order the large one if my boss agrees", "Size = Large\nButton = Order\n", 0.9F, 0.9F,
     "refused"},
    {"order", "order the large one unless it rains", "Size = Large\nButton = Order\n", 0.9F, 0.9F, "refused"},
};

static void t_replies(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *got = planned(cases[i].window, cases[i].task,
                            (struct reply){cases[i].lines, cases[i].p, cases[i].whole});
        bool steps = cases[i].plan[0] == '1', right = !strncmp(got, cases[i].plan, strlen(cases[i].plan));
        right = right && (!steps || strlen(got) == strlen(cases[i].plan));
        if (!right)
            print_message("%s\n  %s\n  expected %s\n", cases[i].task, got, cases[i].plan);
        wrong += !right;
        free(got);
    }
    assert_int_equal(wrong, 0);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a reply becomes steps if it leaves no part out, and the names and numbers of the task are in it",
          t_replies),
};
CHECK_MAIN()
