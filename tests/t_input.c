/* t_input.c - what the hands do, seen from outside.
 *
 * A private X server, a window without toolkit (helpers/xclient) that writes down every event it
 * receives, and the X server's own word for what is pressed.  Nothing here asks the code under test
 * what it has done.
 */
#include "check.h"
#include "xvfb.h"

#include "actions/action.h"
#include "base/clock.h"
#include "base/file.h"
#include "screen/screen.h"
#include "screen/xtrap.h"

#include <X11/XKBlib.h>
#include <X11/extensions/XInput.h>
#include <X11/extensions/XTest.h>
#include <X11/keysym.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the stage --------------------------------------------------------------------------------- */

struct stage {
    struct xvfb x;
    struct screen *s;
    Display *other; /* the test's own eyes */
    char events[160];
    json_t *seen; /* events since the last stage_clear() */
    long skip;
};

static void stage_open(struct stage *t)
{
    memset(t, 0, sizeof *t);
    *screen_stop_flag() = 0;
    if (xvfb_start(&t->x, "800x600x24", NULL))
        skip();
    snprintf(t->events, sizeof t->events, "%s/events.jsonl", t->x.dir);
    const char *argv[] = {helper_path("xclient"), t->events, "--geometry", "600x500+20+20", "--xi2", NULL};
    if (access(argv[0], X_OK)) {
        printf("           %s is not built\n", argv[0]);
        xvfb_stop(&t->x);
        skip();
    }
    xvfb_spawn(&t->x, "xclient.log", argv);
    assert_true(xvfb_wait_window(&t->x, "^xclient$", 5000));
    struct err e = ERR_INIT;
    t->s = screen_open(NULL, &e);
    if (!t->s)
        fail_msg("%s", e.text);
    t->other = XOpenDisplay(NULL);
    assert_non_null(t->other);
}

static void stage_close(struct stage *t)
{
    screen_close(t->s);
    if (t->other)
        XCloseDisplay(t->other);
    json_decref(t->seen);
    xvfb_stop(&t->x);
    *screen_stop_flag() = 0;
}

/* Reads what the window has written until nothing new comes for 50 ms; only events named `name`
 * (NULL: all but motion and raw ones). */
static json_t *stage_events(struct stage *t, const char *name)
{
    long size = -1, now = 0;
    char *text = NULL;
    size_t len = 0;
    for (int i = 0; i < 60 && now != size; i++) {
        size = now;
        clock_sleep_ms(50);
        free(text);
        assert_int_equal(file_read(t->events, 16 << 20, &text, &len, NULL), 0);
        now = (long)len;
    }
    json_decref(t->seen);
    t->seen = json_array();
    char *save, *line = strtok_r(text + t->skip, "\n", &save);
    for (; line; line = strtok_r(NULL, "\n", &save)) {
        json_t *o = json_loads(line, 0, NULL);
        const char *ev = json_string_value(json_object_get(o, "event"));
        if (ev &&
            (name ? !strcmp(ev, name) : strcmp(ev, "motion") && strncmp(ev, "raw", 3) && strcmp(ev, "ready")))
            json_array_append(t->seen, o);
        json_decref(o);
    }
    free(text);
    return t->seen;
}

static void stage_clear(struct stage *t)
{
    char *text;
    size_t len;
    clock_sleep_ms(50);
    assert_int_equal(file_read(t->events, 16 << 20, &text, &len, NULL), 0);
    t->skip = (long)len;
    free(text);
}

static json_int_t field(json_t *list, size_t i, const char *name)
{
    return json_integer_value(json_object_get(json_array_get(list, i), name));
}

static const char *word(json_t *list, size_t i, const char *name)
{
    const char *s = json_string_value(json_object_get(json_array_get(list, i), name));
    return s ? s : "";
}

/* Keys and buttons the server has down. */
static int pressed(Display *dpy)
{
    char keys[32];
    Window r, c;
    int x, y, wx, wy, n = 0;
    unsigned mask;
    XQueryKeymap(dpy, keys);
    for (int i = 0; i < 256; i++)
        n += keys[i / 8] >> (i % 8) & 1;
    XQueryPointer(dpy, DefaultRootWindow(dpy), &r, &c, &x, &y, &wx, &wy, &mask);
    return n +
           __builtin_popcount(mask & (Button1Mask | Button2Mask | Button3Mask | Button4Mask | Button5Mask));
}

static void pointer_at(Display *dpy, int *x, int *y)
{
    Window r, c;
    int wx, wy;
    unsigned mask;
    XQueryPointer(dpy, DefaultRootWindow(dpy), &r, &c, x, y, &wx, &wy, &mask);
}

static struct err why; /* of the last must() */

#define must(call)                                                                                           \
    do {                                                                                                     \
        if (call)                                                                                            \
            fail_msg("%s: %s", #call, why.text);                                                             \
    } while (0)

static struct action action_of(enum action_kind kind)
{
    return (struct action){
        .kind = kind, .x = ACTION_ABSENT, .y = ACTION_ABSENT, .x2 = ACTION_ABSENT, .y2 = ACTION_ABSENT};
}

/* ---- pointer ----------------------------------------------------------------------------------- */

static void t_click(void **state)
{
    (void)state;
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
    int64_t start = clock_ns();
    must(screen_click(t.s, 50, 60, 1, 2, &why));
    assert_true(clock_ms_since(start) < 400); /* both presses within a double-click time */
    assert_int_equal(json_array_size(stage_events(&t, "button_press")), 2);
    stage_clear(&t);
    must(screen_click(t.s, -1, -1, 1, 3, &why)); /* in place */
    ev = stage_events(&t, "button_press");
    assert_int_equal(json_array_size(ev), 3);
    assert_int_equal(field(ev, 2, "x"), 50);
    stage_close(&t);
}

static void t_modifier_click(void **state)
{
    (void)state;
    struct stage t;
    stage_open(&t);
    struct action a = action_of(ACT_CLICK);
    a.x = 50, a.y = 40, a.button = 1, a.count = 1;
    a.hold[0] = XK_Control_L, a.hold[1] = XK_Shift_L, a.nhold = 2;
    struct exec_place place = {10, 20, 2, 3};
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
    (void)state;
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

static void t_drag(void **state)
{
    (void)state;
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
    assert_true(corner >= 1);     /* through the corner, not across */
    assert_true(biggest <= 30);
    assert_int_equal(last_x, 300);
    assert_int_equal(last_y, 300);
    ev = stage_events(&t, NULL);
    assert_int_equal(json_array_size(ev), 2);
    assert_int_equal(field(ev, 0, "x"), 100);
    assert_int_equal(field(ev, 1, "y"), 300);
    check_note("%zu moves in %.0f ms", with_button, ms);
    assert_true(ms > 400 && ms < 1500);
    stage_close(&t);
}

static void t_scroll(void **state)
{
    (void)state;
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
    (void)state;
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
    map[0] = map[2] = 0; /* no button 1 at all */
    XSetPointerMapping(t.other, map, n);
    struct err e = ERR_INIT;
    assert_int_equal(screen_click(t.s, 100, 100, 1, 1, &e), -1);
    assert_non_null(strstr(e.text, "mouse button 1"));
    XSetPointerMapping(t.other, old, n);
    stage_close(&t);
}

/* ---- keys -------------------------------------------------------------------------------------- */

/* "key_press Control_L, key_press c, …" of what was received. */
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
    (void)state;
    struct stage t;
    char got[400];
    stage_open(&t);
    must(screen_move(t.s, 100, 100, &why)); /* no window manager: keys go where the pointer is */
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
    static const uint32_t absent[] = {XK_Control_L, XK_Greek_omega}; /* on no key: borrows one */
    must(screen_chord(t.s, absent, 2, &why));
    ev = stage_events(&t, "key_press");
    assert_int_equal(json_array_size(ev), 2);
    assert_int_equal(field(ev, 1, "keysym"), XK_Greek_omega);
    assert_int_equal(pressed(t.other), 0);
    stage_close(&t);
}

static void t_actions(void **state)
{
    (void)state;
    static const struct exec_place plain = {0, 0, 1, 1};
    struct stage t;
    struct err e = ERR_INIT;
    char got[600];
    stage_open(&t);
    must(screen_move(t.s, 100, 100, &why));
    struct action a = action_of(ACT_KEY);
    a.keys[0] = XK_Control_L, a.keys[1] = XK_S, a.nkeys = 2, a.count = 2;
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
    assert_int_equal(pressed(t.other), 1); /* spans steps */
    struct action click = action_of(ACT_CLICK);
    click.x = click.y = 100;
    assert_int_equal(action_execute(t.s, &click, &plain, NULL, &e), FAULT_NONE);
    assert_int_equal(field(stage_events(&t, "button_press"), 0, "state"), ShiftMask);
    a.kind = ACT_KEYUP;
    assert_int_equal(action_execute(t.s, &a, &plain, NULL, &e), FAULT_NONE);
    assert_int_equal(pressed(t.other), 0);

    stage_clear(&t);
    a = action_of(ACT_TYPE);
    a.x = 200, a.y = 210, a.text = (char *)"Hi\t!", a.overwrite = a.press_enter = true;
    assert_int_equal(action_execute(t.s, &a, &plain, NULL, &e), FAULT_NONE);
    json_t *ev = stage_events(&t, "button_press");
    assert_int_equal(json_array_size(ev), 1);
    assert_int_equal(field(ev, 0, "y"), 210);
    spell(stage_events(&t, "key_press"), got, sizeof got);
    assert_string_equal(got, "+Control_L +a +BackSpace +Shift_L +H +i +Tab +Shift_L +exclam +Return");

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
    (void)state;
    static const struct exec_place plain = {0, 0, 1, 1};
    struct stage t;
    struct err e = ERR_INIT;
    struct exec_result r;
    stage_open(&t);
    struct action a = action_of(ACT_WAIT);
    a.ms = 250;
    assert_int_equal(action_execute(t.s, &a, &plain, &r, &e), FAULT_NONE);
    assert_true(r.ms >= 250 && r.ms < 600);
    assert_int_equal(r.events, 0);
    static const enum action_kind nothing[] = {ACT_OBSERVE, ACT_PLAN, ACT_ANSWER, ACT_INFEASIBLE};
    for (size_t i = 0; i < 4; i++) {
        a = action_of(nothing[i]);
        assert_int_equal(action_execute(t.s, &a, &plain, &r, &e), FAULT_NONE);
        assert_int_equal(r.events, 0);
    }
    static const enum action_kind refused[] = {ACT_NONE, ACT_ZOOM, ACT_ASK, ACT_RESTART};
    for (size_t i = 0; i < 4; i++) {
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
    a = action_of(ACT_DRAG); /* from where the pointer is */
    a.x2 = 200, a.y2 = 100, a.ms = 300;
    assert_int_equal(action_execute(t.s, &a, &plain, &r, &e), FAULT_NONE);
    json_t *ev = stage_events(&t, "button_press");
    assert_int_equal(field(ev, 1, "x"), 100);
    assert_int_equal(field(stage_events(&t, "button_release"), 1, "x"), 200);
    stage_close(&t);
}

/* The server's other keyboard plays the person. */
static XDevice *persons_keyboard(Display *dpy)
{
    int n = 0;
    XDevice *found = NULL;
    XDeviceInfo *list = XListInputDevices(dpy, &n);
    for (int i = 0; i < n && !found; i++)
        if (list[i].use == IsXExtensionKeyboard && !strstr(list[i].name, "XTEST"))
            found = XOpenDevice(dpy, list[i].id);
    XFreeDeviceList(list);
    return found;
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
    (void)state;
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

static int borrowed_keycodes(Display *dpy)
{
    int lo, hi, per, n = 0;
    XDisplayKeycodes(dpy, &lo, &hi);
    KeySym *map = XGetKeyboardMapping(dpy, (KeyCode)lo, hi - lo + 1, &per);
    for (int i = 0; i < (hi - lo + 1) * per; i++)
        n += map[i] > 0x01000000 && map[i] < 0x01110000;
    XFree(map);
    return n;
}

static void t_locks(void **state)
{
    (void)state;
    struct stage t;
    stage_open(&t);
    must(screen_move(t.s, 100, 100, &why));
    static const char *const layouts[] = {"setxkbmap", "-layout", "us,gr", NULL};
    xvfb_run(&t.x, layouts);
    XkbLockModifiers(t.other, XkbUseCoreKbd, LockMask, LockMask); /* Caps Lock */
    XkbLockGroup(t.other, XkbUseCoreKbd, 1);                      /* the Greek layout */
    XSync(t.other, False);
    int before = borrowed_keycodes(t.other); /* the Greek layout has such keysyms of its own */
    must(screen_type(t.s, "aB\xc3\xb3\xce\xbb\xce\xa9,", 9, &why));
    assert_int_equal(borrowed_keycodes(t.other), before); /* given back at once */
    json_t *ev = stage_events(&t, "key_press");
    char got[64] = "";
    for (size_t i = 0; i < json_array_size(ev); i++)
        strncat(got, word(ev, i, "text"), sizeof got - strlen(got) - 1);
    assert_string_equal(got, "aB\xc3\xb3\xce\xbb\xce\xa9,");
    XkbStateRec st;
    XkbGetState(t.other, XkbUseCoreKbd, &st);
    assert_int_equal(st.locked_mods & LockMask, LockMask); /* as it was */
    assert_int_equal(st.locked_group, 1);
    XkbLockModifiers(t.other, XkbUseCoreKbd, LockMask, 0);
    XSync(t.other, False);
    stage_clear(&t);
    static const uint32_t copy[] = {XK_Control_L, XK_c}; /* on the other layout's keys */
    must(screen_chord(t.s, copy, 2, &why));
    ev = stage_events(&t, "key_press");
    assert_int_equal(field(ev, 1, "keysym"), XK_c);
    XkbGetState(t.other, XkbUseCoreKbd, &st);
    assert_int_equal(st.locked_group, 1);
    stage_close(&t);
}

/* ---- stopping and dying ------------------------------------------------------------------------ */

static void *stop_later(void *ms)
{
    clock_sleep_ms(*(int *)ms);
    *screen_stop_flag() = SIGINT;
    return NULL;
}

static void t_stop(void **state)
{
    (void)state;
    static const struct exec_place plain = {0, 0, 1, 1};
    struct stage t;
    stage_open(&t);
    must(screen_move(t.s, 100, 100, &why));
    static char text[6001];
    for (int i = 0; i < 2000; i++)
        memcpy(text + 3 * i, i % 3 ? "\xc5\x91Q" : "\xce\xa9z", 3);
    struct action a[4] = {action_of(ACT_TYPE), action_of(ACT_DRAG), action_of(ACT_WAIT),
                          action_of(ACT_HOLDTAP)};
    a[0].text = text;
    a[1].x = a[1].y = 100, a[1].x2 = a[1].y2 = 400, a[1].ms = 5000, a[1].hold[0] = XK_Control_L,
    a[1].nhold = 1;
    a[2].ms = 60000;
    a[3].keys[0] = XK_Shift_L, a[3].nkeys = ACTION_MAX_KEYS, a[3].nhold = 1;
    for (int i = 1; i < ACTION_MAX_KEYS; i++)
        a[3].keys[i] = XK_a;
    struct action down = action_of(ACT_KEYDOWN);
    down.keys[0] = XK_Alt_L, down.nkeys = 1;
    static const int after[] = {400, 400, 200, 60};
    for (int i = 0; i < 4; i++) {
        struct err e = ERR_INIT;
        struct exec_result r;
        pthread_t thread;
        int ms = after[i];
        *screen_stop_flag() = 0;
        if (i > 0) /* something held by an earlier step goes up as well */
            assert_int_equal(action_execute(t.s, &down, &plain, &r, &e), FAULT_NONE);
        pthread_create(&thread, NULL, stop_later, &ms);
        assert_int_equal(action_execute(t.s, &a[i], &plain, &r, &e), FAULT_STOPPED);
        pthread_join(thread, NULL);
        assert_int_equal(e.kind, ERR_STOPPED);
        check_note("%-7s asked at %3d ms, stopped after %.0f ms: %s", action_kind_name(a[i].kind), ms, r.ms,
                   e.text);
        assert_true(r.ms < ms + 150);
        assert_int_equal(pressed(t.other), 0);
        assert_int_equal(borrowed_keycodes(t.other), 0);
        assert_int_equal(action_execute(t.s, &down, &plain, &r, &e),
                         FAULT_STOPPED); /* nothing more happens */
        assert_int_equal(r.events, 0);
    }
    stage_close(&t);
}

/* Escape down and up by the device (NULL: XTEST, as a VNC server does), then what the flag says. */
static void tap_escape(Display *dpy, XDevice *by, KeySym sym)
{
    unsigned code = XKeysymToKeycode(dpy, sym);
    for (int down = 1; down >= 0; down--)
        if (by)
            XTestFakeDeviceKeyEvent(dpy, by, code, down, NULL, 0, CurrentTime);
        else
            XTestFakeKeyEvent(dpy, code, down, CurrentTime);
    XSync(dpy, False);
    clock_sleep_ms(60);
}

static int flag_soon(void)
{
    for (int i = 0; i < 15 && !*screen_stop_flag(); i++)
        clock_sleep_ms(10);
    int why_stopped = *screen_stop_flag();
    *screen_stop_flag() = 0;
    return why_stopped;
}

static void t_person_stops(void **state)
{
    (void)state;
    struct stage t;
    static const uint32_t escape = XK_Escape;
    stage_open(&t);
    must(screen_move(t.s, 100, 100, &why));
    must(screen_watch(t.s, &why));
    XDevice *person = persons_keyboard(t.other);
    for (int i = 0; i < 2; i++) { /* a keyboard, then VNC */
        XDevice *by = i ? NULL : person;
        tap_escape(t.other, by, XK_Escape);
        tap_escape(t.other, by, XK_Escape);
        assert_int_equal(flag_soon(), STOP_HUMAN);
        tap_escape(t.other, by, XK_Escape);
        tap_escape(t.other, by, XK_a);
        tap_escape(t.other, by, XK_Escape);
        assert_int_equal(flag_soon(), 0); /* another key between */
        clock_sleep_ms(600);
        tap_escape(t.other, by, XK_Escape);
        assert_int_equal(flag_soon(), 0); /* too slow */
        tap_escape(t.other, by, XK_a);
    }
    for (int i = 0; i < 4; i++)
        must(screen_chord(t.s, &escape, 1, &why)); /* the agent's own */
    assert_int_equal(flag_soon(), 0);
    must(screen_key(t.s, XK_Escape, true, &why)); /* held: repeats itself, and is ours */
    assert_int_equal(flag_soon(), 0);
    must(screen_key(t.s, XK_Escape, false, &why));

    char path[128];
    snprintf(path, sizeof path, "%s/holorun/stop", t.x.dir);
    assert_int_equal(file_write(path, "1000000000.5", 12, NULL), 0); /* for a run long ago */
    assert_int_equal(flag_soon(), 0);
    char now[32];
    snprintf(now, sizeof now, "%ld", (long)time(NULL) + 1);
    assert_int_equal(file_write(path, now, strlen(now), NULL), 0);
    assert_int_equal(flag_soon(), STOP_FILE);
    XCloseDevice(t.other, person);
    stage_close(&t);
}

/* A child process that holds Control, button 1 and a borrowed keycode, and then does `how`. */
enum { HOW_KILL, HOW_DIE, HOW_EXIT, HOW_WAIT };

static pid_t child_that_holds(struct stage *t, int how, int ready_fd)
{
    screen_close(t->s); /* it has the lock */
    t->s = NULL;
    fflush(stdout);
    pid_t pid = fork();
    if (pid)
        return pid;
    screen_install_signals();
    static struct screen *s; /* static: what exit() leaves behind is no leak */
    s = screen_open(NULL, NULL);
    if (!s || screen_move(s, 100, 100, NULL) || screen_key(s, XK_Control_L, true, NULL) ||
        screen_key(s, 0x010005d0, true, NULL) || screen_button(s, 1, true, NULL))
        _exit(99);
    if (write(ready_fd, "r", 1) != 1)
        _exit(98);
    if (how == HOW_DIE) {
        dup2(open("/dev/null", 1), 2);
        die(ERR_MODEL, "on purpose");
    }
    if (how == HOW_EXIT)
        exit(7);
    if (how == HOW_WAIT)
        dup2(open("/dev/null", 1), 2);
    for (;;)
        pause();
}

static void t_killed(void **state)
{
    (void)state;
    struct stage t;
    char c;
    int fds[2], status;
    stage_open(&t);
    assert_int_equal(pipe(fds), 0);
    pid_t pid = child_that_holds(&t, HOW_KILL, fds[1]);
    assert_int_equal(read(fds[0], &c, 1), 1);
    assert_int_equal(pressed(t.other), 3);
    assert_true(borrowed_keycodes(t.other) > 0);

    /* While it lives, the display is its own. */
    struct err e = ERR_INIT;
    struct screen *second = screen_open(NULL, &e);
    assert_non_null(second);
    assert_int_equal(screen_move(second, 1, 1, &e), -1);
    assert_non_null(strstr(e.text, "another holorun"));
    struct image im = {0};
    assert_int_equal(screen_capture(second, &im, &e), 0);
    image_free(&im);
    screen_close(second);
    assert_int_equal(pressed(t.other), 3);

    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    assert_int_equal(pressed(t.other), 3); /* X keeps them down */
    fprintf(stderr, "(a warning about an earlier run belongs here) ");
    t.s = screen_open(NULL, &e);
    assert_non_null(t.s);
    assert_int_equal(pressed(t.other), 0);
    assert_int_equal(borrowed_keycodes(t.other), 0);
    close(fds[0]);
    close(fds[1]);
    stage_close(&t);
}

static void t_endings(void **state)
{
    (void)state;
    static const int how[] = {HOW_DIE, HOW_EXIT, HOW_WAIT}, code[] = {ERR_MODEL, 7, ERR_STOPPED};
    for (int i = 0; i < 3; i++) {
        struct stage t;
        char c;
        int fds[2], status;
        stage_open(&t);
        assert_int_equal(pipe(fds), 0);
        pid_t pid = child_that_holds(&t, how[i], fds[1]);
        assert_int_equal(read(fds[0], &c, 1), 1);
        if (how[i] == HOW_WAIT) { /* it does not look at the flag: the second signal ends it */
            kill(pid, SIGINT);
            clock_sleep_ms(100);
            assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
            kill(pid, SIGINT);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), code[i]);
        assert_int_equal(pressed(t.other), 0);
        assert_int_equal(borrowed_keycodes(t.other), 0);
        close(fds[0]);
        close(fds[1]);
        stage_close(&t);
    }
}

static void t_lost(void **state)
{
    (void)state;
    struct stage t;
    stage_open(&t);
    volatile bool lost = false;
    xtrap_watch(t.other, &lost);
    must(screen_key(t.s, XK_Shift_L, true, &why));
    xvfb_kill_server(&t.x);
    struct err e = ERR_INIT;
    struct image im = {0};
    char want[64];
    snprintf(want, sizeof want, "display '%s' was lost", t.x.display);
    struct settled settled;
    uint32_t key = XK_a;
    int path[] = {1, 1, 2, 2};
#define gone(call)                                                                                           \
    do {                                                                                                     \
        memset(&e, 0, sizeof e);                                                                             \
        assert_int_equal(call, -1);                                                                          \
        assert_int_equal(e.kind, ERR_ENV);                                                                   \
        assert_string_equal(e.text, want);                                                                   \
    } while (0)
    gone(screen_capture(t.s, &im, &e));
    gone(screen_settle(t.s, NULL, &settled, &e));
    gone(screen_move(t.s, 1, 1, &e));
    gone(screen_click(t.s, 1, 1, 1, 1, &e));
    gone(screen_drag(t.s, path, 2, 1, 0, &e));
    gone(screen_scroll(t.s, 1, 1, &e));
    gone(screen_chord(t.s, &key, 1, &e));
    gone(screen_type(t.s, "abc", 3, &e));
    gone(screen_wait(t.s, 5, &e));
    gone(screen_find_window(t.s, "x", NULL, 0, &e));
    gone(screen_activate_window(t.s, 1, &e));
    int x, y;
    char title[10];
    assert_int_equal(screen_pointer(t.s, &x, &y), -1);
    assert_int_equal(screen_active_window(t.s, title, sizeof title, NULL, 0), -1);
    image_free(&im);
    stage_close(&t);
}

static void *kill_later(void *arg)
{
    clock_sleep_ms(200);
    xvfb_kill_server(arg);
    return NULL;
}

static void t_lost_while(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct stage t;
        stage_open(&t);
        volatile bool lost = false;
        xtrap_watch(t.other, &lost);
        pthread_t thread;
        struct err e = ERR_INIT;
        struct settled settled;
        static const struct settle p = {5000, 300, 6000};
        static char text[4000];
        memset(text, 'a', sizeof text);
        int path[] = {1, 1, 400, 400};
        pthread_create(&thread, NULL, kill_later, &t.x);
        int rc = i == 0   ? screen_type(t.s, text, sizeof text, &e)
                 : i == 1 ? screen_drag(t.s, path, 2, 1, 5000, &e)
                 : i == 2 ? screen_settle(t.s, &p, &settled, &e)
                          : screen_scroll(t.s, 0, 100, &e);
        pthread_join(thread, NULL);
        assert_int_equal(rc, -1);
        assert_non_null(strstr(e.text, "was lost"));
        stage_close(&t);
    }
}

static void t_refusals(void **state)
{
    (void)state;
    struct xvfb x;
    struct err e = ERR_INIT;
    static const char *const no_xtest[] = {"-extension", "XTEST", NULL};
    if (xvfb_start(&x, "320x240x24", no_xtest))
        skip();
    assert_null(screen_open(NULL, &e));
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.text, "XTEST"));

    struct screen_options o = {.display = ":987"};
    assert_null(screen_open(&o, &e));
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.text, ":987"));

    unsetenv("DISPLAY");
    assert_null(screen_open(NULL, &e));
    assert_non_null(strstr(e.text, "DISPLAY is not set"));
    setenv("WAYLAND_DISPLAY", "wayland-0", 1);
    assert_null(screen_open(NULL, &e));
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.text, "Wayland"));
    unsetenv("WAYLAND_DISPLAY");
    xvfb_stop(&x);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a click arrives once at its pixel; right, double, triple and in-place clicks too", t_click),
    CLAIM("modifiers are down around a click, image pixels become root pixels", t_modifier_click),
    CLAIM("positions off the screen end at its edge instead of wrapping", t_clamp),
    CLAIM("a drag goes through its corner in small steps and lands exactly", t_drag),
    CLAIM("the wheel turns in four directions, at most 100 clicks", t_scroll),
    CLAIM("a left-handed pointer map is inverted", t_left_handed),
    CLAIM("chords go down in order and up in reverse, with Shift where the key needs it", t_chord),
    CLAIM("keys, hold-and-tap, held keys, overwrite, address and history actions arrive as keys", t_actions),
    CLAIM("wait waits, screenless actions do nothing, impossible ones name their fault", t_small_actions),
    CLAIM("a modifier that a person holds is waited for, and not typed through", t_person_holds),
    CLAIM("Caps Lock and another layout group do not change the text, and are back after it", t_locks),
    CLAIM("a stop in the middle of typing, dragging, waiting or tapping leaves nothing pressed", t_stop),
    CLAIM("a person stops the run with Escape twice or a file; the agent's own Escapes do not",
          t_person_stops),
    CLAIM("what a killed run held is released by the next start, not by a second program", t_killed),
    CLAIM("die, exit and a second Ctrl-C release what is held", t_endings),
    CLAIM("a lost display is one clear error from every verb", t_lost),
    CLAIM("a display lost in the middle of an action ends it with that error", t_lost_while),
    CLAIM("no display, Wayland only, no XTEST: refused with the reason", t_refusals),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
