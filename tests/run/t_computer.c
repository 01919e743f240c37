/* t_computer.c - OSWorld's machine as the screen: actions and pictures over HTTP, seen from outside. */
#include "computer_rig.h"

#include "base/clock.h"
#include "screen/observed.h"

#include <stdlib.h>
#include <string.h>

/* ---- hands and eyes ----------------------------------------------------------------------------------- */

static void t_pictures(void **state)
{
    (void)state;
    struct rig g;
    struct image there = {0}, here = {0};
    rig_open(&g);
    must(rig_screen(&g));
    struct screen_rect view = screen_view(g.stage.s);
    assert_int_equal(view.w, 800);
    assert_int_equal(view.h, 600);
    must(screen_capture(g.stage.s, &there, &why));
    must(screen_capture(g.eyes, &here, &why));
    assert_true(image_equal(&there, &here));
    struct settle p = {1, 30, 20000};
    struct settled settled;
    must(screen_settle(g.stage.s, &p, &settled, &why));
    assert_string_not_equal(settled.why, "timeout");
    image_free(&there);
    image_free(&here);
    rig_close(&g);
}

static void t_pointer(void **state)
{
    (void)state;
    struct rig g;
    struct stage *t = &g.stage;
    int x, y;
    rig_open(&g);
    must(rig_screen(&g));
    assert_int_equal(screen_pointer(t->s, &x, &y), -1);
    must(screen_click(t->s, 123, 234, 1, 1, &why));
    json_t *ev = rig_await_events(t, NULL, 2);
    assert_string_equal(word(ev, 0, "event"), "button_press");
    assert_int_equal(field(ev, 0, "button"), 1);
    assert_int_equal(field(ev, 0, "x"), 123);
    assert_int_equal(field(ev, 0, "y"), 234);
    stage_clear(t);
    must(screen_move(t->s, 9999, -5, &why));
    pointer_at(t->other, &x, &y);
    assert_int_equal(x, 799);
    assert_int_equal(y, 0);
    must(screen_click(t->s, 50, 60, 3, 2, &why));
    ev = rig_await_events(t, NULL, 4);
    assert_string_equal(word(ev, 2, "event"), "button_press");
    assert_int_equal(field(ev, 2, "button"), 3);
    stage_clear(t);
    static const int path[] = {100, 100, 300, 100, 300, 250};
    must(screen_drag(t->s, path, 3, 1, 100, &why));
    ev = rig_await_events(t, NULL, 2);
    assert_int_equal(field(ev, 0, "x"), 100);
    assert_int_equal(field(ev, 1, "x"), 300);
    assert_int_equal(field(ev, 1, "y"), 250);
    assert_true(json_array_size(stage_events(t, "motion")) > 10);
    stage_clear(t);
    must(screen_scroll(t->s, -1, 2, &why));
    ev = rig_await_events(t, NULL, 6);
    assert_int_equal(field(ev, 0, "button"), 5);
    assert_int_equal(field(ev, 4, "button"), 6);
    stage_clear(t);
    static const int beyond[] = {-50, 100, 9000, 100};
    must(screen_drag(t->s, beyond, 2, 1, 50, &why));
    assert_int_equal(screen_pointer(t->s, &x, &y), 0); /* the X server would hold it back by itself */
    assert_int_equal(x, 799);
    assert_int_equal(screen_button(t->s, 8, true, &why), -1);
    assert_int_equal(pressed(t->other), 0);
    rig_close(&g);
}

static void draw_label(struct stage *t, Window w, const char *label)
{
    GC gc = XCreateGC(t->other, w, 0, NULL);
    XClearWindow(t->other, w);
    XDrawString(t->other, w, gc, 20, 20, label, (int)strlen(label));
    XFreeGC(t->other, gc);
    XSync(t->other, False);
}

static void t_changed(void **state)
{
    (void)state;
    struct rig g;
    struct stage *t = &g.stage;
    struct image im = {0};
    rig_open(&g);
    must(rig_screen(&g));
    Window w = XCreateSimpleWindow(t->other, DefaultRootWindow(t->other), 200, 200, 120, 30, 0, 0, 0xffffff);
    XSelectInput(t->other, w, ButtonPressMask);
    XMapRaised(t->other, w);
    XSync(t->other, False);
    clock_sleep_ms(100);
    for (int i = 0; i < 3; i++) { /* as seen, changed, and as seen then */
        struct err e = ERR_INIT;
        XEvent ev;
        draw_label(t, w, i < 2 ? "Save it" : "Delete all");
        must(screen_capture(t->s, &im, &why));
        observed_take(t->s, &im);
        draw_label(t, w, i ? "Delete all" : "Save it");
        int rc = screen_move(t->s, 250, 216, &e) || screen_click(t->s, -1, -1, 1, 1, &e) ? -1 : 0;
        assert_int_equal(rc, i == 1 ? -1 : 0);
        assert_int_equal(observed_changed(t->s) != NULL, i == 1);
        if (i == 1)
            assert_int_equal(observed_changed(t->s)->reason, OBSERVED_PIXELS);
        XSync(t->other, False);
        assert_int_equal(XCheckTypedEvent(t->other, ButtonPress, &ev), i != 1);
    }
    image_free(&im);
    rig_close(&g);
}

/* Waits until the window's key presses make as many characters as this has: those must be these. */
static void t_keyboard(void **state)
{
    (void)state;
    struct rig g;
    struct stage *t = &g.stage;
    static const uint32_t chord[] = {XK_Control_L, XK_s};
    rig_open(&g);
    must(rig_screen(&g));
    must(screen_click(t->s, 100, 100, 1, 1, &why));
    stage_clear(t);
    static const char said[] = "it's a \\ B<c>\n";
    must(screen_type(t->s, said, strlen(said), &why));
    rig_expect_typed(t, "it's a \\ B<c>\r");
    stage_clear(t);
    must(screen_chord(t->s, chord, 2, &why));
    json_t *ev = rig_await_events(t, NULL, 4);
    assert_int_equal(field(ev, 1, "state"), ControlMask);
    stage_clear(t);
    /* What pyautogui would pass over is refused, and nothing of a secret is said. */
    assert_int_equal(screen_type_secret(t->s, "pass\xc3\xa4word", 10, &why), -1);
    assert_int_equal(why.kind, ERR_FAILED);
    assert_null(strstr(why.text, "word"));
    static const uint32_t unknown[] = {0x1008ff11};
    assert_int_equal(screen_chord(t->s, unknown, 1, &why), -1);
    assert_int_equal(json_array_size(stage_events(t, NULL)), 0);
    rig_close(&g);
}

/* All that is printed, and a line end that lies across the end of a request. */
static void t_characters(void **state)
{
    (void)state;
    struct rig g;
    char text[260] = "", arrives[260];
    int n = 0;
    rig_open(&g);
    must(rig_screen(&g));
    must(screen_click(g.stage.s, 100, 100, 1, 1, &why));
    stage_clear(&g.stage);
    for (int c = ' '; c <= '~'; c++)
        text[n++] = (char)c;
    while (n < 199)
        text[n++] = '<';
    memcpy(arrives, text, sizeof arrives);
    snprintf(text + n, sizeof text - (size_t)n, "\r\nx\ty");
    snprintf(arrives + n, sizeof arrives - (size_t)n, "\rx\ty");
    must(screen_type(g.stage.s, text, strlen(text), &why));
    rig_expect_typed(&g.stage, arrives);
    assert_int_equal(g.executed, 3); /* one click and two parts */
    assert_int_equal(pressed(g.stage.other), 0);
    rig_close(&g);
}

/* Every key of its own, in one request: the window sees its keysym. */
static void t_keys(void **state)
{
    (void)state;
    static const uint32_t special[] = {
        XK_Control_L, XK_Control_R, XK_Shift_L,     XK_Shift_R, XK_Alt_L,     XK_Alt_R,     XK_Super_L,
        XK_Super_R,   XK_Return,    XK_Escape,      XK_Tab,     XK_space,     XK_BackSpace, XK_Delete,
        XK_Insert,    XK_Home,      XK_End,         XK_Page_Up, XK_Page_Down, XK_Up,        XK_Down,
        XK_Left,      XK_Right,     XK_Scroll_Lock, XK_Print,   XK_Pause,     XK_Menu,      XK_F1,
        XK_F2,        XK_F3,        XK_F4,          XK_F5,      XK_F6,        XK_F7,        XK_F8,
        XK_F9,        XK_F10,       XK_F11,         XK_F12,     XK_Num_Lock,  XK_Caps_Lock,
    };
    static const uint32_t others[][2] = {{XK_KP_Enter, XK_Return}, {XK_Sys_Req, XK_Print},
                                         {XK_KP_7, '7'},           {XK_KP_Add, '+'},
                                         {XK_KP_Multiply, '*'},    {XK_KP_Equal, '='}};
    enum { SPECIAL = sizeof special / sizeof *special, OTHERS = sizeof others / sizeof *others };
    enum { KEYS = '~' - ' ' + OTHERS + SPECIAL };
    struct computer_event v[2 * KEYS];
    uint32_t seen[KEYS];
    int n = 0;
    for (int i = 0; i < KEYS; i++) {
        int other = i - ('~' - ' '), last = other - OTHERS; /* locks come last: they change what follows */
        uint32_t key = last >= 0 ? special[last] : other >= 0 ? others[other][0] : (uint32_t)('!' + i);
        seen[i] = other >= 0 && last < 0 ? others[other][1] : key;
        v[n++] = (struct computer_event){.kind = COMPUTER_KEY_DOWN, .keysym = key};
        v[n++] = (struct computer_event){.kind = COMPUTER_KEY_UP, .keysym = key};
    }
    struct rig g;
    rig_open(&g);
    must(rig_screen(&g));
    must(screen_click(g.stage.s, 100, 100, 1, 1, &why));
    stage_clear(&g.stage);
    const struct computer *c = machine_computer(g.machine);
    must(c->perform(c->arg, NULL, v, n, &why));
    int at = 0;
    int64_t start = clock_ns();
    while (at < KEYS && clock_ms_since(start) < PATIENCE_MS) {
        json_t *ev = stage_events(&g.stage, "key_press");
        at = 0; /* each in its turn; Shift comes before some */
        for (size_t i = 0; i < json_array_size(ev) && at < KEYS; i++)
            at += field(ev, i, "keysym") == seen[at];
    }
    if (at < KEYS)
        fail_msg("the key with the keysym 0x%x has not arrived", seen[at]);
    assert_int_equal(pressed(g.stage.other), 0);
    rig_close(&g);
}

/* What was pressed before a part that fails goes up at once, and keys that the machine lacks keep none down. */
static void t_failed(void **state)
{
    (void)state;
    static const uint32_t unknown[] = {XK_Control_L, 0x1008ff11}, chord[] = {XK_Control_L, XK_s};
    struct rig g;
    struct screen *s;
    rig_open(&g);
    must(rig_screen(&g));
    s = g.stage.s;
    must(screen_key(s, XK_Shift_L, true, &why));
    assert_int_equal(screen_chord(s, unknown, 2, &why), -1);
    assert_int_equal(pressed(g.stage.other), 1);
    must(screen_chord(s, chord, 2, &why));
    assert_int_equal(pressed(g.stage.other), 1); /* Shift stays, Ctrl does not */
    assert_int_equal(screen_key(s, 0x1008ff11, true, &why), -1);
    assert_int_equal(screen_release_all(s), 1);
    assert_int_equal(pressed(g.stage.other), 0);
    rig_close(&g);
}

static void t_released(void **state)
{
    (void)state;
    struct rig g;
    rig_open(&g);
    must(rig_screen(&g));
    must(screen_move(g.stage.s, 40, 40, &why));
    must(screen_button(g.stage.s, 1, true, &why));
    must(screen_key(g.stage.s, XK_Shift_L, true, &why));
    assert_int_equal(pressed(g.stage.other), 2);
    screen_stop(g.stage.s, STOP_HOST); /* nothing more is pressed, and what is down goes up */
    assert_int_equal(screen_click(g.stage.s, 10, 10, 1, 1, &why), -1);
    assert_int_equal(why.kind, ERR_STOPPED);
    assert_int_equal(screen_release_all(g.stage.s), 1);
    assert_int_equal(pressed(g.stage.other), 0);
    rig_close(&g);
}

static void t_windows(void **state)
{
    (void)state;
    struct rig g;
    struct screen_window there, here;
    struct image im = {0};
    rig_open(&g);
    must(rig_screen(&g));
    must(screen_move(g.stage.s, 40, 40, &why));
    must(screen_window_at(g.stage.s, 40, 40, &there));
    must(screen_window_at(g.eyes, 40, 40, &here));
    assert_int_equal(there.id, here.id);
    assert_string_equal(there.title, here.title);
    assert_int_equal(there.pid, 0); /* it is no process of this machine */
    int asked = g.asked;
    must(screen_window_at(g.stage.s, 40, 40, &there));
    assert_int_equal(g.asked, asked); /* nothing was done since */
    must(screen_capture(g.stage.s, &im, &why));
    must(screen_window_at(g.stage.s, 40, 40, &there));
    assert_int_equal(g.asked, asked + 2); /* what was seen since may be another window */
    image_free(&im);
    asked = g.asked;
    must(screen_move(g.stage.s, 50, 50, &why));
    must(screen_window_at(g.stage.s, 40, 40, &there));
    assert_int_equal(g.asked, asked + 2);
    /* One that could not be told is asked for again; after three in a row nothing is. */
    must(screen_move(g.stage.s, 40, 40, &why));
    g.fault = FAR_JSON "{\"status\": \"success\", \"returncode\": 1, \"error\": \"BadWindow\"}";
    g.fault_at = "Xlib";
    must(screen_window_at(g.stage.s, 40, 40, &there));
    assert_int_equal(there.id, 0);
    g.fault = NULL;
    must(screen_window_at(g.stage.s, 40, 40, &there));
    assert_int_equal(there.id, here.id);
    must(screen_move(g.stage.s, 40, 40, &why));
    g.fault = FAR_ERROR("500 Oops", "no");
    asked = g.asked;
    for (int i = 0; i < 5; i++)
        must(screen_window_at(g.stage.s, 40, 40, &there));
    assert_int_equal(g.asked, asked + 3);
    rig_close(&g);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a machine's screenshots are its screen, and it settles", t_pictures),
    CLAIM("clicks, drags and the wheel reach a window there", t_pointer),
    CLAIM("a button that another has replaced since the screenshot is not pressed", t_changed),
    CLAIM("keys and text arrive letter by letter, and what cannot be typed is refused", t_keyboard),
    CLAIM("every printed character arrives, and a line end between two requests is one", t_characters),
    CLAIM("every key that has a name there arrives as itself", t_keys),
    CLAIM("what fails leaves nothing pressed there but what was before", t_failed),
    CLAIM("what a stopped run has pressed there goes up", t_released),
    CLAIM("windows there are asked for once, until something is done or seen", t_windows),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
