/* t_input.c - tests keyboard and pointer input as seen from outside.
 *
 * The events are those recorded by a window without a toolkit (helpers/xclient) on a private X server; the
 * pressed keys are those that the X server reports. No test queries the code under test.
 */
#include "check.h"
#include "person.h"
#include "stage.h"

#include "base/clock.h"
#include "screen/exec.h"

#include <pthread.h>

/* ---- pointer ----------------------------------------------------------------------------------- */

static void t_click(void **state)
{
    struct stage t;
    stage_open(&t);
    must(screen_click(t.s, 123, 234, 1, 1, &why));
    json_t *ev = stage_events(&t, NULL);
    assert_int_equal(json_array_size(ev), 2);
    assert_string_equal(word(ev, 0, "event"), "button_press");
    assert_int_equal(field(ev, 0, "button"), 1);
    assert_int_equal(field(ev, 0, "x"), 123);
    assert_int_equal(field(ev, 0, "y"), 234);
    assert_string_equal(word(ev, 1, "event"), "button_release");
    stage_clear(&t);
    must(screen_click(t.s, 50, 60, 3, 1, &why));
    assert_int_equal(field(stage_events(&t, "button_press"), 0, "button"), 3);
    stage_clear(&t);
    double ms = INFINITY;
    for (int tries = 0; tries < 20 && ms >= 400; tries++) { /* loaded machines are slow */
        stage_clear(&t);
        int64_t start = clock_ns();
        must(screen_click(t.s, 50, 60, 1, 2, &why));
        ms = clock_ms_since(start);
        assert_int_equal(json_array_size(stage_events(&t, "button_press")), 2);
    }
    assert_true(ms < 400); /* both presses within a double-click time */
    stage_clear(&t);
    must(screen_click(t.s, -1, -1, 1, 3, &why)); /* at the pointer */
    ev = stage_events(&t, "button_press");
    assert_int_equal(json_array_size(ev), 3);
    assert_int_equal(field(ev, 2, "x"), 50);
    stage_close(&t);
}

static void t_modifier_click(void **state)
{
    struct stage t;
    stage_open(&t);
    struct action a = action_of(ACT_CLICK);
    a.x = 50, a.y = 40, a.button = 1, a.count = 1;
    a.hold[0] = XK_Control_L, a.hold[1] = XK_Shift_L, a.nhold = 2;
    struct view_transform place = {10, 20, 2, 3};
    struct exec_result r;
    struct err e = ERR_INIT;
    assert_int_equal(action_execute(t.s, &a, &place, &r, &e), FAULT_NONE);
    json_t *ev = stage_events(&t, "button_press");
    assert_int_equal(json_array_size(ev), 1);
    assert_int_equal(field(ev, 0, "state"), ControlMask | ShiftMask);
    assert_int_equal(field(ev, 0, "x"), 110); /* 10 + 2 * 50 */
    assert_int_equal(field(ev, 0, "y"), 140); /* 20 + 3 * 40 */
    assert_int_equal(r.events, 7);            /* two keys, a motion, a button; down and up */
    assert_int_equal(pressed(t.other), 0);
    stage_close(&t);
}

static void t_clamp(void **state)
{
    struct stage t;
    stage_open(&t);
    static const int in[][2] = {{99999, -50}, {-1, 599}, {799, 600}, {40000, 70000}, {-40000, 5}};
    static const int want[][2] = {{799, 0}, {0, 599}, {799, 599}, {799, 599}, {0, 5}};
    for (size_t i = 0; i < 5; i++) {
        int x, y;
        must(screen_move(t.s, in[i][0], in[i][1], &why));
        pointer_at(t.other, &x, &y);
        assert_int_equal(x, want[i][0]);
        assert_int_equal(y, want[i][1]);
    }
    stage_close(&t);
}

static void t_second_screen(void **state)
{
    static const char *const two[] = {"-screen", "1", "640x480x24", NULL};
    struct xvfb x;
    if (xvfb_start(&x, "800x600x24", two))
        skip();
    char name[24];
    snprintf(name, sizeof name, "%s.1", x.display);
    struct screen_options o = {.display = name};
    struct screen *s = screen_open(&o, &why);
    if (!s)
        fail_msg("%s", why.text);
    assert_int_equal(screen_root(s).w, 640);
    must(screen_click(s, 100, 200, 1, 1, &why)); /* the pointer starts on the first screen */
    Display *second = XOpenDisplay(name);
    Window root, child;
    int at_x, at_y, wx, wy;
    unsigned mask;
    assert_true(
        XQueryPointer(second, DefaultRootWindow(second), &root, &child, &at_x, &at_y, &wx, &wy, &mask));
    assert_int_equal(at_x, 100);
    assert_int_equal(at_y, 200);
    XCloseDisplay(second);
    screen_close(s);
    xvfb_stop(&x);
}

static void t_drag(void **state)
{
    struct stage t;
    stage_open(&t);
    int path[] = {100, 100, 300, 100, 300, 300};
    int64_t start = clock_ns();
    must(screen_drag(t.s, path, 3, 1, 400, &why));
    double ms = clock_ms_since(start);
    json_t *ev = stage_events(&t, "motion");
    size_t with_button = 0, corner = 0;
    json_int_t first = -1, biggest = 0, last_x = 100, last_y = 100;
    for (size_t i = 0; i < json_array_size(ev); i++) {
        if (!(field(ev, i, "state") & Button1Mask))
            continue;
        json_int_t x = field(ev, i, "x"), y = field(ev, i, "y"), step = llabs(x - last_x) + llabs(y - last_y);
        if (!with_button++)
            first = step;
        corner += x == 300 && y <= 116;
        biggest = step > biggest ? step : biggest;
        last_x = x;
        last_y = y;
    }
    assert_true(with_button >= 20);
    assert_in_range(first, 2, 4); /* small steps first: the toolkit's drag threshold */
    assert_true(corner >= 1);     /* through the corner, not diagonally */
    assert_true(biggest <= 30);
    assert_int_equal(last_x, 300);
    assert_int_equal(last_y, 300);
    ev = stage_events(&t, NULL);
    assert_int_equal(json_array_size(ev), 2);
    assert_int_equal(field(ev, 0, "x"), 100);
    assert_int_equal(field(ev, 1, "y"), 300);
    check_note("%zu moves in %.0f ms", with_button, ms);
    assert_true(ms > 400);
    stage_close(&t);
}

static void t_scroll(void **state)
{
    struct stage t;
    stage_open(&t);
    must(screen_move(t.s, 200, 200, &why));
    static const int way[][3] = {{0, -3, 4}, {0, 3, 5}, {-2, 0, 6}, {4, 0, 7}};
    for (size_t i = 0; i < 4; i++) {
        stage_clear(&t);
        must(screen_scroll(t.s, way[i][0], way[i][1], &why));
        json_t *ev = stage_events(&t, "button_press");
        assert_int_equal(json_array_size(ev), abs(way[i][0] + way[i][1]));
        assert_int_equal(field(ev, 0, "button"), way[i][2]);
        assert_int_equal(json_array_size(stage_events(&t, "button_release")), abs(way[i][0] + way[i][1]));
    }
    stage_clear(&t);
    must(screen_scroll(t.s, 0, 500, &why));
    assert_int_equal(json_array_size(stage_events(&t, "button_press")), 100);
    stage_close(&t);
}

static void t_left_handed(void **state)
{
    struct stage t;
    stage_open(&t);
    unsigned char map[32], old[32];
    int n = XGetPointerMapping(t.other, map, sizeof map);
    memcpy(old, map, sizeof map);
    map[0] = 3;
    map[2] = 1;
    assert_int_equal(XSetPointerMapping(t.other, map, n), MappingSuccess);
    must(screen_click(t.s, 100, 100, 1, 1, &why));
    assert_int_equal(field(stage_events(&t, "button_press"), 0, "button"), 1);
    map[0] = map[2] = 0; /* no button 1 */
    XSetPointerMapping(t.other, map, n);
    struct err e = ERR_INIT;
    assert_int_equal(screen_click(t.s, 100, 100, 1, 1, &e), -1);
    assert_non_null(strstr(e.text, "mouse button 1"));
    XSetPointerMapping(t.other, old, n);
    stage_close(&t);
}

/* ---- keys -------------------------------------------------------------------------------------- */

/* Writes the received events as "key_press Control_L, key_press c, ...". */
static void spell(json_t *ev, char *out, size_t size)
{
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < json_array_size(ev) && n < size; i++) {
        const char *name = XKeysymToString((KeySym)field(ev, i, "keysym"));
        n += (size_t)snprintf(out + n, size - n, "%s%c%s", i ? " " : "",
                              strcmp(word(ev, i, "event"), "key_press") ? '-' : '+', name ? name : "?");
    }
}

static void t_chord(void **state)
{
    struct stage t;
    char got[400];
    stage_open(&t);
    /* without a window manager keys go to the window under the pointer */
    must(screen_move(t.s, 100, 100, &why));
    static const uint32_t copy[] = {XK_Control_L, XK_c}, plus[] = {XK_Control_L, XK_plus},
                          three[] = {XK_Control_L, XK_Alt_L, XK_Shift_L, XK_t};
    must(screen_chord(t.s, copy, 2, &why));
    spell(stage_events(&t, NULL), got, sizeof got);
    assert_string_equal(got, "+Control_L +c -c -Control_L");
    stage_clear(&t);
    must(screen_chord(t.s, plus, 2, &why)); /* needs Shift on this keyboard */
    spell(stage_events(&t, NULL), got, sizeof got);
    assert_string_equal(got, "+Control_L +Shift_L +plus -plus -Shift_L -Control_L");
    stage_clear(&t);
    must(screen_chord(t.s, three, 4, &why));
    json_t *ev = stage_events(&t, "key_press");
    assert_int_equal(json_array_size(ev), 4);
    assert_int_equal(field(ev, 3, "state"), ControlMask | Mod1Mask | ShiftMask);
    stage_clear(&t);
    static const uint32_t absent[] = {XK_Control_L, XK_Greek_omega}; /* on no key: borrows a keycode */
    must(screen_chord(t.s, absent, 2, &why));
    ev = stage_events(&t, "key_press");
    assert_int_equal(json_array_size(ev), 2);
    assert_int_equal(field(ev, 1, "keysym"), XK_Greek_omega);
    assert_int_equal(pressed(t.other), 0);
    screen_close(t.s);
    t.s = NULL;
    assert_int_equal(borrowed_keycodes(t.other), 0); /* returned at the end */
    stage_close(&t);
}

static void t_actions(void **state)
{
    static const struct view_transform plain = {0, 0, 1, 1};
    struct stage t;
    struct err e = ERR_INIT;
    char got[600];
    stage_open(&t);
    must(screen_move(t.s, 100, 100, &why));
    static const char save_twice[] = "{\"kind\": \"key\", \"keys\": [\"Control_L\", \"S\"], \"count\": 2}";
    struct action a; /* "ctrl+S" is the S key, without Shift */
    must(action_from_json(save_twice, sizeof save_twice - 1, &a, &why));
    assert_int_equal(action_execute(t.s, &a, &plain, NULL, &e), FAULT_NONE);
    spell(stage_events(&t, NULL), got, sizeof got);
    assert_string_equal(got, "+Control_L +s -s -Control_L +Control_L +s -s -Control_L");

    stage_clear(&t);
    a = action_of(ACT_HOLDTAP);
    a.keys[0] = XK_Alt_L, a.keys[1] = XK_Tab, a.keys[2] = XK_Tab, a.nkeys = 3, a.nhold = 1;
    assert_int_equal(action_execute(t.s, &a, &plain, NULL, &e), FAULT_NONE);
    spell(stage_events(&t, NULL), got, sizeof got);
    assert_string_equal(got, "+Alt_L +Tab -Tab +Tab -Tab -Alt_L");

    stage_clear(&t);
    a = action_of(ACT_KEYDOWN);
    a.keys[0] = XK_Shift_L, a.nkeys = 1;
    assert_int_equal(action_execute(t.s, &a, &plain, NULL, &e), FAULT_NONE);
    assert_int_equal(pressed(t.other), 1); /* held across steps */
    struct action click = action_of(ACT_CLICK);
    click.x = click.y = 100;
    assert_int_equal(action_execute(t.s, &click, &plain, NULL, &e), FAULT_NONE);
    assert_int_equal(field(stage_events(&t, "button_press"), 0, "state"), ShiftMask);
    a.kind = ACT_KEYUP;
    assert_int_equal(action_execute(t.s, &a, &plain, NULL, &e), FAULT_NONE);
    assert_int_equal(pressed(t.other), 0);

    stage_clear(&t);
    a = action_of(ACT_TYPE);
    a.x = 200, a.y = 210, a.text = (char *)"Hi\t!", a.overwrite = true;
    struct exec_result done;
    assert_int_equal(action_execute(t.s, &a, &plain, &done, &e), FAULT_NONE);
    assert_non_null(done.unsure); /* this window publishes no selection */
    json_t *ev = stage_events(&t, "button_press");
    assert_int_equal(json_array_size(ev), 1);
    assert_int_equal(field(ev, 0, "y"), 210);
    spell(stage_events(&t, "key_press"), got, sizeof got);
#define SELECT "+Control_L +Shift_L +Home +Home +Shift_L +End +Control_L +Shift_L +End"
    assert_string_equal(got, SELECT " +Shift_L +H +i " SELECT " +End +Tab +Shift_L +exclam");

    stage_clear(&t);
    a = action_of(ACT_GOTO);
    a.text = (char *)"a.b";
    assert_int_equal(action_execute(t.s, &a, &plain, NULL, &e), FAULT_NONE);
    a.kind = ACT_BACK;
    assert_int_equal(action_execute(t.s, &a, &plain, NULL, &e), FAULT_NONE);
    a.kind = ACT_FORWARD;
    assert_int_equal(action_execute(t.s, &a, &plain, NULL, &e), FAULT_NONE);
    a.kind = ACT_REFRESH;
    assert_int_equal(action_execute(t.s, &a, &plain, NULL, &e), FAULT_NONE);
    spell(stage_events(&t, "key_press"), got, sizeof got);
    assert_string_equal(got, "+Control_L +l +a +period +b +Return +Alt_L +Left +Alt_L +Right +F5");
    stage_close(&t);
}

static void t_small_actions(void **state)
{
    static const struct view_transform plain = {0, 0, 1, 1};
    struct stage t;
    struct err e = ERR_INIT;
    struct exec_result r;
    stage_open(&t);
    struct action a = action_of(ACT_WAIT);
    a.ms = 250;
    assert_int_equal(action_execute(t.s, &a, &plain, &r, &e), FAULT_NONE);
    assert_true(r.ms >= 250);
    assert_int_equal(r.events, 0);
    static const enum action_kind nothing[] = {ACT_OBSERVE, ACT_PLAN, ACT_ANSWER, ACT_INFEASIBLE, ACT_ASK};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        a = action_of(nothing[i]);
        assert_int_equal(action_execute(t.s, &a, &plain, &r, &e), FAULT_NONE);
        assert_int_equal(r.events, 0);
    }
    static const enum action_kind refused[] = {ACT_NONE, ACT_ZOOM, ACT_RESTART};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        a = action_of(refused[i]);
        assert_int_equal(action_execute(t.s, &a, &plain, &r, &e), FAULT_UNSUPPORTED);
    }
    a = action_of(ACT_KEY);
    a.nkeys = 1; /* keysym 0 */
    assert_int_equal(action_execute(t.s, &a, &plain, &r, &e), FAULT_KEY);
    a = action_of(ACT_TYPE);
    a.text = (char *)"a\x01";
    assert_int_equal(action_execute(t.s, &a, &plain, &r, &e), FAULT_TEXT);
    a.text = (char *)"\xc3(";
    assert_int_equal(action_execute(t.s, &a, &plain, &r, &e), FAULT_TEXT);
    a = action_of(ACT_MDOWN);
    a.x = a.y = 100;
    assert_int_equal(action_execute(t.s, &a, &plain, &r, &e), FAULT_NONE);
    assert_int_equal(pressed(t.other), 1);
    a = action_of(ACT_MUP);
    assert_int_equal(action_execute(t.s, &a, &plain, &r, &e), FAULT_NONE);
    assert_int_equal(pressed(t.other), 0);
    a = action_of(ACT_DRAG); /* from the pointer's position */
    a.x2 = 200, a.y2 = 100, a.ms = 300;
    assert_int_equal(action_execute(t.s, &a, &plain, &r, &e), FAULT_NONE);
    json_t *ev = stage_events(&t, "button_press");
    assert_int_equal(field(ev, 1, "x"), 100);
    assert_int_equal(field(stage_events(&t, "button_release"), 1, "x"), 200);
    stage_close(&t);
}

struct release_later {
    char display[16];
    int ms, keycode;
};

static void *release_later(void *arg)
{
    struct release_later *r = arg;
    Display *dpy = XOpenDisplay(r->display);
    clock_sleep_ms(r->ms);
    XDevice *person = persons_keyboard(dpy);
    XTestFakeDeviceKeyEvent(dpy, person, (unsigned)r->keycode, False, NULL, 0, CurrentTime);
    XCloseDevice(dpy, person);
    XCloseDisplay(dpy);
    return NULL;
}

static void t_person_holds(void **state)
{
    struct stage t;
    struct err e = ERR_INIT;
    stage_open(&t);
    must(screen_move(t.s, 100, 100, &why));
    XDevice *person = persons_keyboard(t.other);
    assert_non_null(person);
    int control = XKeysymToKeycode(t.other, XK_Control_R);
    XTestFakeDeviceKeyEvent(t.other, person, (unsigned)control, True, NULL, 0, CurrentTime);
    XSync(t.other, False);
    assert_int_equal(screen_type(t.s, "w", 1, &e), -1); /* would be ctrl+w */
    assert_non_null(strstr(e.text, "Control"));
    struct release_later r = {.ms = 300, .keycode = control};
    snprintf(r.display, sizeof r.display, "%s", t.x.display);
    pthread_t thread;
    pthread_create(&thread, NULL, release_later, &r);
    stage_clear(&t);
    must(screen_type(t.s, "w", 1, &why));
    pthread_join(thread, NULL);
    json_t *ev = stage_events(&t, "key_press");
    assert_int_equal(json_array_size(ev), 1);
    assert_string_equal(word(ev, 0, "text"), "w");
    assert_int_equal(field(ev, 0, "state"), 0);
    XCloseDevice(t.other, person);
    stage_close(&t);
}

static void t_locks(void **state)
{
    struct stage t;
    stage_open(&t);
    must(screen_move(t.s, 100, 100, &why));
    static const char *const layouts[] = {"setxkbmap", "-layout", "us,gr", NULL};
    xvfb_run(&t.x, layouts);
    XkbLockModifiers(t.other, XkbUseCoreKbd, LockMask, LockMask); /* Caps Lock */
    XkbLockGroup(t.other, XkbUseCoreKbd, 1);                      /* the Greek layout */
    XSync(t.other, False);
    int before = borrowed_keycodes(t.other); /* the Greek layout has such keysyms itself */
    must(screen_type(t.s, "aB\xc3\xb3\xce\xbb\xce\xa9,", 9, &why));
    assert_true(borrowed_keycodes(t.other) > before); /* borrowed until the run ends */
    json_t *ev = stage_events(&t, "key_press");
    char got[64] = "";
    for (size_t i = 0; i < json_array_size(ev); i++)
        strncat(got, word(ev, i, "text"), sizeof got - strlen(got) - 1);
    assert_string_equal(got, "aB\xc3\xb3\xce\xbb\xce\xa9,");
    XkbStateRec st;
    XkbGetState(t.other, XkbUseCoreKbd, &st);
    assert_int_equal(st.locked_mods & LockMask, LockMask); /* restored */
    assert_int_equal(st.locked_group, 1);
    XkbLockModifiers(t.other, XkbUseCoreKbd, LockMask, 0);
    XSync(t.other, False);
    stage_clear(&t);
    static const uint32_t copy[] = {XK_Control_L, XK_c}; /* on keys of the other layout */
    must(screen_chord(t.s, copy, 2, &why));
    ev = stage_events(&t, "key_press");
    assert_int_equal(field(ev, 1, "keysym"), XK_c);
    XkbGetState(t.other, XkbUseCoreKbd, &st);
    assert_int_equal(st.locked_group, 1);
    screen_close(t.s);
    t.s = NULL;
    assert_int_equal(borrowed_keycodes(t.other), before);
    stage_close(&t);
}

/* The viewed window closes at the fifth key; the one below it gets the focus. */
static void t_view_closes(void **state)
{
    static const char text[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
    struct stage t;
    stage_open(&t);
    screen_close(t.s);
    char *out = xasprintf("%s/above.jsonl", t.x.dir), view[32];
    xvfb_spawn(&t.x, "above.log",
               (const char *const[]){helper_path("xclient"), out, "--title", "above", "--geometry",
                                     "600x500+20+20", "--keys", "5", NULL});
    assert_true(xvfb_wait_window(&t.x, "^above$"));
    snprintf(view, sizeof view, "window:0x%lx", person_window(t.other, "above"));
    struct screen_options o = {.view = view, .key_delay_ms = 30};
    t.s = screen_open(&o, &why);
    assert_non_null(t.s);
    must(screen_move(t.s, 100, 100, &why));
    assert_int_equal(screen_type(t.s, text, sizeof text - 1, &why), -1);
    assert_non_null(strstr(why.text, "the rest was not typed"));
    json_t *below = stage_events(&t, "key_press");
    if (json_array_size(below) > 1) /* one key may be in flight */
        fail_msg("%zu keys came to the window below", json_array_size(below));
    assert_int_equal(pressed(t.other), 0);
    free(out);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a click arrives once at its pixel; so do right, double, triple and in-place clicks", t_click),
    CLAIM("modifiers are down around a click; image pixels map to root pixels", t_modifier_click),
    CLAIM("positions off the screen are clamped to its edge", t_clamp),
    CLAIM("the pointer moves to the driven screen of a server with two", t_second_screen),
    CLAIM("a drag goes through its corner in small steps and lands exactly", t_drag),
    CLAIM("the wheel turns in four directions, at most 100 clicks", t_scroll),
    CLAIM("a left-handed pointer map is inverted", t_left_handed),
    CLAIM("chords go down in order and up in reverse, with Shift where the key needs it", t_chord),
    CLAIM("keys, hold-and-tap, held keys, overwrite, address and history arrive as keys", t_actions),
    CLAIM("wait waits, actions without input do nothing, impossible ones name their fault", t_small_actions),
    CLAIM("typing waits while the user holds a modifier", t_person_holds),
    CLAIM("Caps Lock and another layout group do not change the text, and are restored", t_locks),
    CLAIM("when the viewed window closes during typing, the rest is not typed elsewhere", t_view_closes),
};

CHECK_MAIN()
