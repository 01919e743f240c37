/* t_disturbed.c - tests actions during which the user moves the mouse or presses keys.
 *
 * The window (helpers/xclient) records presses, releases and their positions. The user is a thread with its
 * own connection: it moves the pointer with XTEST, by warping or with the server's mouse, and holds buttons
 * of that mouse.
 */
#include "check.h"
#include "driven.h"

#include "base/clock.h"
#include "screen/exec.h"

#include <pthread.h>

enum { PATIENCE_MS = 20000 }; /* loaded machines are slow */

enum motion_kind { BY_XTEST, BY_WARP, BY_MOUSE, MOTION_KINDS };

struct person {
    char display[16];
    int after_ms;
    enum motion_kind how;
    int x, y;   /* where the pointer is moved, unless x < 0 */
    int button; /* of the server's mouse; 0: none */
    bool down;
    pthread_t thread;
};

static void mouse_moves(Display *dpy, XDevice *mouse, int dx, int dy)
{
    int axes[2] = {dx, dy};
    XTestFakeDeviceMotionEvent(dpy, mouse, True, 0, axes, 2, CurrentTime);
}

static void act(Display *dpy, const struct person *p)
{
    XDevice *mouse = persons_mouse(dpy);
    assert_non_null(mouse);
    if (p->x >= 0 && p->how == BY_XTEST)
        XTestFakeMotionEvent(dpy, -1, p->x, p->y, CurrentTime);
    else if (p->x >= 0 && p->how == BY_WARP)
        XWarpPointer(dpy, None, DefaultRootWindow(dpy), 0, 0, 0, 0, p->x, p->y);
    else if (p->x >= 0)
        mouse_moves(dpy, mouse, 37, 21);
    if (p->button)
        XTestFakeDeviceButtonEvent(dpy, mouse, (unsigned)p->button, p->down, NULL, 0, CurrentTime);
    XSync(dpy, False);
    XCloseDevice(dpy, mouse);
}

static void *person_thread(void *arg)
{
    const struct person *p = arg;
    Display *dpy = XOpenDisplay(p->display);
    clock_sleep_ms(p->after_ms);
    act(dpy, p);
    XCloseDisplay(dpy);
    return NULL;
}

static void person_starts(const struct stage *t, struct person *p)
{
    snprintf(p->display, sizeof p->display, "%s", t->x.display);
    pthread_create(&p->thread, NULL, person_thread, p);
}

/* Waits until n presses and releases have reached the window. */
static json_t *await_events(struct stage *t, size_t n)
{
    int64_t start = clock_ns();
    json_t *ev = stage_events(t, NULL);
    while (json_array_size(ev) < n && clock_ms_since(start) < PATIENCE_MS)
        ev = stage_events(t, NULL);
    assert_int_equal(json_array_size(ev), n);
    return ev;
}

static void expect_button(json_t *ev, size_t i, const char *name, int button, int x, int y)
{
    assert_string_equal(word(ev, i, "event"), name);
    assert_int_equal(field(ev, i, "button"), button);
    assert_int_equal(field(ev, i, "x"), x);
    assert_int_equal(field(ev, i, "y"), y);
}

/* ---- motion ------------------------------------------------------------------------------------ */

static void t_drag(void **state)
{
    static const int path[] = {100, 100, 300, 300};
    struct stage t;
    stage_open(&t);
    unsigned seed = check_seed(), failed = 0, right = 0;
    for (int i = 0; i < 12; i++) {
        struct person p = {.after_ms = 20 + (int)(rand_r(&seed) % 600), .how = (enum motion_kind)(i % 3)};
        struct err e = ERR_INIT;
        p.x = 400 + (int)(rand_r(&seed) % 100);
        p.y = 150;
        stage_clear(&t);
        person_starts(&t, &p);
        int rc = screen_drag(t.s, path, 2, 1, 300, &e);
        pthread_join(p.thread, NULL);
        assert_int_equal(pressed(t.other), 0);
        json_t *ev = rc ? stage_events(&t, NULL) : await_events(&t, 2);
        if (rc && (e.kind != ERR_FAILED || !strstr(e.text, "somebody else")))
            fail_msg("the reason is '%s'", e.text);
        if (json_array_size(ev) == 0) { /* before the press */
            assert_int_equal(rc, -1);
        } else {
            ev = await_events(&t, 2);
            expect_button(ev, 0, "button_press", 1, 100, 100);
            expect_button(ev, 1, "button_release", 1, rc ? 100 : 300, rc ? 100 : 300);
        }
        failed += rc != 0;
        right += rc == 0;
    }
    check_note("%u drags were cancelled, %u had ended before", failed, right);
    assert_true(failed >= 3);
    stage_close(&t);
}

/* Keeps moving the pointer until the drag has been cancelled. */
static void *restless_thread(void *arg)
{
    struct person *p = arg;
    Display *dpy = XOpenDisplay(p->display);
    clock_sleep_ms(p->after_ms);
    for (int i = 0; i < 500; i++) {
        XTestFakeMotionEvent(dpy, -1, 400 + i % 50, 400, CurrentTime);
        XSync(dpy, False);
        clock_sleep_ms(1);
    }
    XCloseDisplay(dpy);
    return NULL;
}

static void t_restless(void **state)
{
    static const int path[] = {100, 100, 300, 300};
    struct stage t;
    stage_open(&t);
    for (int i = 0; i < 3; i++) {
        struct person p = {.after_ms = 300};
        struct err e = ERR_INIT;
        stage_clear(&t);
        snprintf(p.display, sizeof p.display, "%s", t.x.display);
        pthread_create(&p.thread, NULL, restless_thread, &p);
        assert_int_equal(screen_drag(t.s, path, 2, 1, 300, &e), -1);
        pthread_join(p.thread, NULL);
        json_t *ev = await_events(&t, 2);
        expect_button(ev, 1, "button_release", 1, 100, 100);
    }
    stage_close(&t);
}

static void t_click(void **state)
{
    static const struct view_transform plain = {0, 0, 1, 1};
    struct stage t;
    stage_open(&t);
    for (int how = 0; how < MOTION_KINDS; how++) {
        struct person p = {.how = (enum motion_kind)how, .x = 200, .y = 210};
        struct err e = ERR_INIT;
        must(screen_move(t.s, 100, 120, &why));
        stage_clear(&t);
        act(t.other, &p);
        struct action click = action_of(ACT_CLICK); /* at the pointer, which has moved since */
        assert_int_equal(action_execute(t.s, &click, &plain, NULL, &e), FAULT_X11);
        if (!strstr(e.text, "somebody else moved the pointer from 100,120") ||
            !strstr(e.text, "nothing was done"))
            fail_msg("the reason is '%s'", e.text);
        assert_int_equal(json_array_size(stage_events(&t, NULL)), 0);
        must(screen_click(t.s, -1, -1, 1, 1, &why)); /* the moved pointer has now been reported */
        await_events(&t, 2);

        must(screen_move(t.s, 100, 120, &why));
        act(t.other, &p);
        assert_int_equal(screen_scroll(t.s, 0, 3, &e), -1);
        must(screen_click(t.s, 100, 120, 1, 1, &why)); /* with coordinates of its own */
    }
    stage_close(&t);
}

static void t_across_actions(void **state)
{
    static const enum action_kind next[] = {ACT_MUP, ACT_MOVE, ACT_CLICK};
    static const struct view_transform plain = {0, 0, 1, 1};
    struct stage t;
    stage_open(&t);
    for (size_t i = 0; i < sizeof next / sizeof *next; i++) {
        struct person p = {.how = (enum motion_kind)(i % 3), .x = 400, .y = 410};
        struct err e = ERR_INIT;
        struct action a = action_of(ACT_MDOWN);
        a.x = 100, a.y = 120;
        stage_clear(&t);
        assert_int_equal(action_execute(t.s, &a, &plain, NULL, &e), FAULT_NONE);
        act(t.other, &p);
        a.kind = next[i];
        a.x = a.y = 300;
        assert_int_equal(action_execute(t.s, &a, &plain, NULL, &e), FAULT_X11);
        if (!strstr(e.text, "released where it was pressed"))
            fail_msg("the reason is '%s'", e.text);
        json_t *ev = await_events(&t, 2);
        expect_button(ev, 0, "button_press", 1, 100, 120);
        expect_button(ev, 1, "button_release", 1, 100, 120);
        assert_int_equal(pressed(t.other), 0);
    }
    stage_close(&t);
}

/* ---- buttons ----------------------------------------------------------------------------------- */

static void t_button(void **state)
{
    static const int path[] = {100, 100, 300, 300};
    struct stage t;
    stage_open(&t);
    struct person p = {.x = -1, .button = 1, .down = true};
    must(screen_move(t.s, 350, 360, &why));
    stage_clear(&t);
    act(t.other, &p); /* the user begins a drag */
    for (int i = 0; i < 5; i++) {
        struct err e = ERR_INIT;
        int rc = i == 0   ? screen_click(t.s, 100, 120, 1, 1, &e)
                 : i == 1 ? screen_click(t.s, -1, -1, 3, 1, &e)
                 : i == 2 ? screen_drag(t.s, path, 2, 1, 0, &e)
                 : i == 3 ? screen_scroll(t.s, 0, 1, &e)
                          : screen_type(t.s, "a", 1, &e);
        assert_int_equal(rc, -1);
        if (e.kind != ERR_FAILED || strcmp(e.text, "somebody else holds mouse button 1; nothing was done"))
            fail_msg("the reason is '%s'", e.text);
    }
    int x, y;
    pointer_at(t.other, &x, &y);
    assert_int_equal(x, 350); /* nor did the pointer move */
    json_t *ev = await_events(&t, 1);
    expect_button(ev, 0, "button_press", 1, 350, 360);
    p.down = false;
    p.after_ms = 300;
    person_starts(&t, &p);
    must(screen_click(t.s, 100, 120, 1, 1, &why)); /* waits until the user releases the button */
    pthread_join(p.thread, NULL);
    ev = await_events(&t, 4);
    expect_button(ev, 1, "button_release", 1, 350, 360);
    expect_button(ev, 2, "button_press", 1, 100, 120);
    stage_close(&t);
}

static void t_button_across_actions(void **state)
{
    static const enum action_kind next[] = {ACT_MOVE, ACT_CLICK, ACT_MDOWN, ACT_TYPE};
    static const struct view_transform plain = {0, 0, 1, 1};
    char text[] = "a";
    struct stage t;
    stage_open(&t);
    for (size_t i = 0; i < sizeof next / sizeof *next; i++) {
        struct person p = {.x = -1, .button = 3, .down = true};
        struct err e = ERR_INIT;
        struct action a = action_of(ACT_MDOWN), then = action_of(next[i]);
        a.x = 100, a.y = 120;
        then.button = next[i] == ACT_MDOWN ? 2 : 0;
        then.text = next[i] == ACT_TYPE ? text : NULL;
        if (next[i] == ACT_MOVE)
            then.x = then.y = 300;
        stage_clear(&t);
        assert_int_equal(action_execute(t.s, &a, &plain, NULL, &e), FAULT_NONE);
        act(t.other, &p);
        assert_int_equal(action_execute(t.s, &then, &plain, NULL, &e), FAULT_X11);
        if (!strstr(e.text, "somebody else holds mouse button 3; the button was released"))
            fail_msg("the reason is '%s'", e.text);
        json_t *ev = await_events(&t, 3);
        expect_button(ev, 2, "button_release", 1, 100, 120);
        p.down = false;
        act(t.other, &p);
        assert_int_equal(pressed(t.other), 0);
    }
    stage_close(&t);
}

static void t_button_during(void **state)
{
    static const int path[] = {100, 100, 300, 300};
    struct stage t;
    stage_open(&t);
    for (int button = 1; button <= 3; button += 2) {
        struct person p = {.x = -1, .button = button, .down = true, .after_ms = 400};
        struct err e = ERR_INIT;
        stage_clear(&t);
        person_starts(&t, &p);
        assert_int_equal(screen_drag(t.s, path, 2, 1, 600, &e), -1);
        pthread_join(p.thread, NULL);
        if (!strstr(e.text, "somebody else holds"))
            fail_msg("the reason is '%s'", e.text);
        int x, y;
        pointer_at(t.other, &x, &y);
        assert_int_equal(x, 100);
        p.down = false;
        act(t.other, &p);
        assert_int_equal(pressed(t.other), 0);
    }
    stage_close(&t);
}

/* ---- --pause-on-human -------------------------------------------------------------------------- */

static int count_events(const struct record *r, const char *kind)
{
    int n = 0;
    for (int i = 0; i < r->n; i++)
        n += !strcmp(r->events[i].kind, kind);
    return n;
}

/* what: 0 is a key of the user's keyboard, 1 a button and 2 a motion through XTEST, as a VNC server sends
 * them. */
static void hand_does(const struct stage *t, XDevice *person, int what)
{
    if (what == 0)
        for (int down = 1; down >= 0; down--)
            XTestFakeDeviceKeyEvent(t->other, person, XKeysymToKeycode(t->other, XK_F7), down, NULL, 0,
                                    CurrentTime);
    else if (what == 1)
        for (int down = 1; down >= 0; down--)
            XTestFakeButtonEvent(t->other, 2, down, CurrentTime);
    else
        XTestFakeMotionEvent(t->other, -1, 300, 300, CurrentTime);
    XSync(t->other, False);
}

static void t_pause(void **state)
{
    static const char *const what[] = {"keyboard", "pointer", "pointer"};
    static const char *const replies[] = {CLICK(500, 500) TYPE_LONG CLICK(400, 400) ANSWER("Done."),
                                          CLICK(500, 500) CTRL_DRAG CLICK(400, 400) ANSWER("Done."),
                                          CLICK(500, 500) TYPE_LONG CLICK(400, 400) ANSWER("Done.")};
    static const char *const event[] = {"key_press", "button_press", "key_press"};
    static const int n[] = {20, 2, 20};
    for (int i = 0; i < 3; i++) {
        struct stage t;
        struct outcome o = {0};
        struct record r;
        driven_open(&t);
        XDevice *person = persons_keyboard(t.other);
        pid_t pid = driven_start_with(&t, replies[i], WORDS("--pause-on-human", "--human-quiet", "0.7"));
        driven_wait(&t, event[i], n[i]);
        int64_t quiet_since = clock_ns();
        hand_does(&t, person, i);
        clock_sleep_ms(300); /* no action and no pressed key until the user has been quiet for 0.7 s */
        int held = pressed(t.other);
        size_t before = json_array_size(stage_events(&t, NULL));
        clock_sleep_ms(100);
        size_t after = json_array_size(stage_events(&t, NULL));
        double ms = clock_ms_since(quiet_since);
        if (ms < 700)
            assert_true(held == 0 && after == before);
        else
            check_note("%s: the state while the user acts was read after %.0f ms, too late to compare",
                       what[i], ms);
        program_finish(&t.x, pid, &o);
        assert_int_equal(o.code, 0);
        driven_read(&t, &r);
        assert_int_equal(count_events(&r, "human"), 1);
        assert_string_equal(field_text(driven_last(&r, "human"), "what"), what[i]);
        for (int k = 0; k < r.n; k++)
            if (!strcmp(r.events[k].kind, "human"))
                assert_true(r.events[k].ns - quiet_since >= 700 * 1000000LL);
        assert_int_equal(count_events(&r, "exec"), 3);
        for (int k = 0, seen = 0; k < r.n; k++)
            if (!strcmp(r.events[k].kind, "exec"))
                assert_int_equal(field_bool(r.events[k].fields, "ok"), seen++ != 1);
        record_free(&r);
        XCloseDevice(t.other, person);
        outcome_free(&o);
        stage_close(&t);
    }
}

/* The program's own events do not count as the user's. */
static void t_nobody(void **state)
{
    struct stage t;
    struct outcome o = {0};
    struct record r;
    driven_open(&t);
    driven_run(&t,
               CLICK(500, 500) SHIFT_DOWN TYPE(TEN TEN) CTRL_DRAG STEP(
                   "\"scroll_desktop\", \"element\": \"it\", \"x\": 400, \"y\": 400, \"direction\": \"down\"")
                   ANSWER("Done."),
               WORDS("--pause-on-human"), &o);
    assert_int_equal(o.code, 0);
    driven_read(&t, &r);
    assert_int_equal(count_events(&r, "human"), 0);
    assert_int_equal(count_events(&r, "exec"), 5);
    for (int k = 0; k < r.n; k++)
        assert_true(strcmp(r.events[k].kind, "exec") != 0 || field_bool(r.events[k].fields, "ok"));
    record_free(&r);
    outcome_free(&o);
    stage_close(&t);
}

static void t_corner(void **state)
{
    struct stage t;
    stage_open(&t);
    screen_close(t.s);
    struct screen_options o = {.corner_stop = true};
    t.s = screen_open(&o, &why);
    assert_non_null(t.s);
    must(screen_watch(t.s, &why));
    must(screen_watch_check(t.s, &why));
    must(screen_move(t.s, 0, 0, &why));
    clock_sleep_ms(1400);
    assert_int_equal(*screen_stop_flag(t.s), 0); /* the program itself moved it there */
    int64_t rests_since = clock_ns();
    XTestFakeMotionEvent(t.other, -1, 300, 300, CurrentTime);
    XTestFakeMotionEvent(t.other, -1, 1, 1, CurrentTime);
    XSync(t.other, False);
    clock_sleep_ms(500);
    int stopped = *screen_stop_flag(t.s);
    assert_true(!stopped || clock_ms_since(rests_since) >= 1000);
    for (int ms = 0; ms < PATIENCE_MS && !*screen_stop_flag(t.s); ms += 10)
        clock_sleep_ms(10);
    assert_int_equal(*screen_stop_flag(t.s), STOP_CORNER);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a drag during which the user moves the mouse fails and is dropped where it began", t_drag),
    CLAIM("a drag is cancelled even if the user keeps moving the mouse", t_restless),
    CLAIM("a click at the pointer and the wheel fail once after the user moved the mouse", t_click),
    CLAIM("a button held across actions is cancelled when the user has moved the mouse", t_across_actions),
    CLAIM("while the user holds a button, nothing is pressed and the pointer does not move", t_button),
    CLAIM("a button held across actions is released when the user holds another one",
          t_button_across_actions),
    CLAIM("a button that the user presses during a drag ends it, also the same button", t_button_during),
    CLAIM("a key, button or motion of the user interrupts an action; the run resumes after quiet", t_pause),
    CLAIM("the agent's own input does not count as the user's", t_nobody),
    CLAIM("a pointer that the user rests in the corner stops the run; the agent's does not", t_corner),
};

CHECK_MAIN()
