/* t_approved.c - tests that an action is executed as approved: the content that the question showed must be
 * unchanged.
 *
 * A command answers yes; during the first question, the display changes.
 */
#include "check.h"
#include "driven.h"
#include "stepped.h"

#include "base/clock.h"
#include "base/file.h"
#include "gate/gate.h"

#include <X11/Xutil.h>
#include <pthread.h>
#include <stdatomic.h>

static const struct view_transform same = {0, 0, 1, 1};

/* xclient is at 20,20, 600x500; its window is empty except for these drawings. */
enum what { NOTHING, AMOUNT, DIGIT, TITLE, CARET, BLOCK, FAR_AWAY, COVERED, ALWAYS };

struct meanwhile {
    Display *dpy;
    Window window;
    enum what what;
    atomic_bool over;
};

static void fill(struct meanwhile *m, int x, int y, int w, int h, unsigned long colour)
{
    GC gc = XCreateGC(m->dpy, m->window, 0, NULL);
    XSetForeground(m->dpy, gc, colour);
    XFillRectangle(m->dpy, m->window, gc, x, y, (unsigned)w, (unsigned)h);
    XFreeGC(m->dpy, gc);
    XSync(m->dpy, False);
}

static void write_at(struct meanwhile *m, int x, int y, const char *text)
{
    GC gc = XCreateGC(m->dpy, m->window, 0, NULL);
    fill(m, x - 4, y - 14, 120, 20, 0xffffff);
    XSetForeground(m->dpy, gc, 0x000000);
    XDrawString(m->dpy, m->window, gc, x, y, text, (int)strlen(text));
    XFreeGC(m->dpy, gc);
    XSync(m->dpy, False);
}

static void set_title(Display *d, Window w, const char *title)
{
    XChangeProperty(d, w, XInternAtom(d, "_NET_WM_NAME", False), XInternAtom(d, "UTF8_STRING", False), 8,
                    PropModeReplace, (const unsigned char *)title, (int)strlen(title));
    XSync(d, False);
}

static void *happen(void *arg)
{
    struct meanwhile *m = arg;
    clock_sleep_ms(150);
    switch (m->what) {
    case NOTHING:
        break;
    case AMOUNT:
        write_at(m, 340, 280, "99999 EUR"); /* 60 pixels from the target */
        break;
    case DIGIT:
        write_at(m, 340, 280, "6 EUR");
        break;
    case TITLE:
        set_title(m->dpy, m->window, "Pay 99999 EUR");
        break;
    case CARET:
        fill(m, 400, 270, 1, 16, 0);
        break;
    case BLOCK:
        fill(m, 400, 270, 9, 17, 0);
        break;
    case FAR_AWAY:
        fill(m, 10, 10, 50, 40, 0x2266aa); /* outside the part that the question shows */
        break;
    case COVERED: {
        Window over = XCreateSimpleWindow(m->dpy, DefaultRootWindow(m->dpy), 250, 250, 200, 150, 0, 0, 0x88);
        XSetWindowAttributes a = {.override_redirect = True};
        XChangeWindowAttributes(m->dpy, over, CWOverrideRedirect, &a);
        XMapRaised(m->dpy, over);
        XSync(m->dpy, False);
        break;
    }
    case ALWAYS:
        for (int i = 0; !m->over; i++) {
            fill(m, 300, 250, 60, 40, (unsigned long)(i & 7) << 21 | (unsigned long)(i >> 3 & 7) << 13);
            clock_sleep_ms(70 + i % 7);
        }
        break;
    }
    return NULL;
}

/* Asks about this action while the display changes; returns the number of questions, and the last one as
 * JSON. */
static int questions(struct stage *t, struct meanwhile *m, const char *json, struct gate_ruling *r,
                     json_t **last)
{
    static const char rules[] = "builtin: no\notherwise: confirm\n";
    struct err e = ERR_INIT;
    struct action a;
    char *file = xvfb_place(&t->x, "questions"), *how = xasprintf("cmd:cat >>%s; sleep 0.5", file),
         *text = NULL;
    struct gate_options o = {.confirm = {.seconds = 60}, .task = "Pay 5 EUR to Ada"};
    must(confirm_parse(how, &o.confirm, &e));
    struct policy *policy = policy_parse(rules, sizeof rules - 1, "p.yaml", &e);
    o.policy = policy;
    struct gate *g = gate_new(&o);
    gate_begin(g, t->s, t->x.dir);
    gate_set_thought(g, "The amount is right, so I pay.");
    must(action_from_json(json, strlen(json), &a, &e));
    remove(file);
    write_at(m, 340, 280, "5 EUR");
    fill(m, 400, 270, 9, 17, 0xffffff);
    pthread_t thread;
    m->over = false;
    pthread_create(&thread, NULL, happen, m);
    int rc = gate_decide(g, &a, &same, 1, false, r, &e), n = 0;
    m->over = true;
    pthread_join(thread, NULL);
    if (rc)
        fail_msg("%s", e.text);
    size_t len;
    must(file_read(file, 1 << 20, &text, &len, &e));
    *last = NULL;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, n++) {
        *end = 0;
        json_decref(*last);
        assert_non_null(*last = json_loads(line, 0, NULL));
    }
    free(text);
    free(file);
    free(how);
    action_free(&a);
    gate_free(g);
    policy_free(policy);
    return n;
}

#define CLICK_PAY   "{\"kind\": \"click\", \"x\": 300, \"y\": 300, \"element\": \"Pay 5 EUR\"}"
#define PRESS_ENTER "{\"kind\": \"key\", \"keys\": [\"Return\"]}"

static void t_changed(void **state)
{
    static const struct {
        enum what what;
        const char *action;
        int asked;
        bool pass;
    } cases[] = {
        {NOTHING, CLICK_PAY, 1, true},  {AMOUNT, CLICK_PAY, 2, true},    {DIGIT, CLICK_PAY, 2, true},
        {TITLE, CLICK_PAY, 2, true},    {CARET, CLICK_PAY, 1, true},     {BLOCK, CLICK_PAY, 1, true},
        {FAR_AWAY, CLICK_PAY, 1, true}, {NOTHING, PRESS_ENTER, 1, true}, {AMOUNT, PRESS_ENTER, 2, true},
        {TITLE, PRESS_ENTER, 2, true},  {ALWAYS, CLICK_PAY, 3, false},   {COVERED, CLICK_PAY, 1, false},
    };
    struct stage t;
    stage_open(&t);
    struct screen_window w;
    must(screen_window_at(t.s, 300, 300, &w));
    struct meanwhile m = {.dpy = t.other, .window = w.id};
    XSetInputFocus(t.other, w.id, RevertToPointerRoot, CurrentTime);
    XSync(t.other, False);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gate_ruling r;
        json_t *last;
        m.what = cases[i].what;
        set_title(t.other, w.id, "Pay");
        int n = questions(&t, &m, cases[i].action, &r, &last);
        if (n != cases[i].asked || r.pass != cases[i].pass)
            fail_msg("case %zu: asked %d times, %s: %s", i, n, r.pass ? "done" : "not done", r.told);
        assert_int_equal(json_is_true(json_object_get(last, "changed")), n > 1);
        if (m.what == TITLE)
            assert_string_equal(field_text(json_object_get(last, "window"), "title"), "Pay 99999 EUR");
        assert_true(r.pass || strstr(r.told, "changed"));
        json_decref(last);
    }
    stage_close(&t);
}

/* A question contains the information for a decision: text, amounts, thought, window and task. */
static void t_enough(void **state)
{
    static const char write_all[] =
        "{\"kind\": \"type\", \"x\": 300, \"y\": 300, \"text\": \"please send to account 12 34 56 78 90 with the "
        "reference of the invoice of last May the sum of $ 1,250.00 and then CHF 7 for the fee\"}";
    struct stage t;
    struct gate_ruling r;
    struct image crop;
    json_t *q;
    stage_open(&t);
    struct screen_window w;
    must(screen_window_at(t.s, 300, 300, &w));
    struct meanwhile m = {.dpy = t.other, .window = w.id, .what = NOTHING};
    set_title(t.other, w.id, "Transfer 99 EUR");
    assert_int_equal(questions(&t, &m, write_all, &r, &q), 1);
    assert_non_null(strstr(field_text(json_object_get(q, "action"), "text"), "CHF 7 for the fee"));
    assert_string_equal(field_text(q, "amounts"), "$ 1,250.00, CHF 7, 99 EUR");
    assert_string_equal(field_text(q, "thought"), "The amount is right, so I pay.");
    assert_string_equal(field_text(q, "task"), "Pay 5 EUR to Ada");
    must(image_read_png(&crop, field_text(q, "crop"), &why));
    assert_true(crop.w == 600 && crop.h == 400); /* more than the target itself */
    image_free(&crop);
    json_decref(q);
    stage_close(&t);
}

/* ---- in the stepper ---------------------------------------------------------------------------- */

struct approver { /* a user who runs each step; the display changes before the first answer */
    struct step_front base;
    struct meanwhile m;
    int asked, changed;
    bool where, fresh; /* the window is named; the later image shows the current screen */
    struct image first;
};

static int approver_ask(struct step_front *f, const struct step_view *v, struct step_command *c,
                        struct err *e)
{
    struct approver *w = (struct approver *)f;
    *c = (struct step_command){.verb = v->p->number == 1 ? STEP_RUN : STEP_STOP};
    if (v->p->number != 1)
        return 0;
    w->where = *v->p->where && strstr(v->p->where, "Xclient");
    w->changed += v->p->changed_since;
    if (w->asked++ == 0) {
        must(image_copy(&w->first, v->p->frame, &why));
        happen(&w->m);
    } else {
        w->fresh = !image_equal(&w->first, v->p->frame);
    }
    return 0;
}

static void t_stepper(void **state)
{
    static const struct {
        enum what what;
        int asked;
    } cases[] = {{NOTHING, 1}, {AMOUNT, 2}, {TITLE, 2}, {FAR_AWAY, 1}, {CARET, 1}};
    struct play p;
    stepped_open(&p);
    struct gate_options o = {.policy = policy_builtin(), .task = "Press Save"};
    p.o.gate = gate_new(&o);
    gate_begin(p.o.gate, p.stage.s, NULL);
    struct screen_window window;
    must(screen_window_at(p.stage.s, 400, 300, &window));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct approver w = {.base = {.name = "approver", .person = true, .ask = approver_ask},
                             .m = {.dpy = p.stage.other, .window = window.id, .what = cases[i].what}};
        set_title(p.stage.other, window.id, "Pay");
        write_at(&w.m, 340, 280, "5 EUR");
        fill(&w.m, 400, 270, 9, 17, 0xffffff);
        stepped_by(&p, &w.base, NULL, CLICK_ON("the Send button", 500, 500) ANSWER("x"));
        if (w.asked != cases[i].asked || w.changed != cases[i].asked - 1)
            fail_msg("case %zu: asked %d times", i, w.asked);
        assert_true(w.where);
        assert_int_equal(w.fresh, cases[i].what == AMOUNT);
        image_free(&w.first);
    }
    gate_free(p.o.gate);
    play_close(&p);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a yes counts only for the amount, digits and title that the question showed; a caret may change",
          t_changed),
    CLAIM(
        "a question has the whole text, the amounts, the thought, the task and the window around the target",
        t_enough),
    CLAIM("a step approved in the stepper is shown again if the screen at its target has changed", t_stepper),
};

CHECK_MAIN()
