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

#include <X11/Xlib.h>
#include <X11/extensions/XInput.h>
#include <X11/extensions/XTest.h>
#include <X11/keysym.h>
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

/* Reads what the window has written until nothing new comes for 100 ms; only events named `name`
 * (NULL: all but motion and raw ones). */
static json_t *stage_events(struct stage *t, const char *name)
{
    long size = -1, now = 0;
    char *text = NULL;
    size_t len = 0;
    for (int i = 0; i < 30 && now != size; i++) {
        size = now;
        clock_sleep_ms(100);
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

#define must(call)                                                                                           \
    do {                                                                                                     \
        struct err e_ = ERR_INIT;                                                                            \
        struct err *e = &e_;                                                                                 \
        if (call)                                                                                            \
            fail_msg("%s: %s", #call, e_.text);                                                              \
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
    must(screen_click(t.s, 123, 234, 1, 1, e));
    json_t *ev = stage_events(&t, NULL);
    assert_int_equal(json_array_size(ev), 2);
    assert_string_equal(word(ev, 0, "event"), "button_press");
    assert_int_equal(field(ev, 0, "button"), 1);
    assert_int_equal(field(ev, 0, "x"), 123);
    assert_int_equal(field(ev, 0, "y"), 234);
    assert_string_equal(word(ev, 1, "event"), "button_release");
    stage_clear(&t);
    must(screen_click(t.s, 50, 60, 3, 1, e));
    assert_int_equal(field(stage_events(&t, "button_press"), 0, "button"), 3);
    stage_clear(&t);
    int64_t start = clock_ns();
    must(screen_click(t.s, 50, 60, 1, 2, e));
    assert_true(clock_ms_since(start) < 400); /* both presses within a double-click time */
    assert_int_equal(json_array_size(stage_events(&t, "button_press")), 2);
    stage_clear(&t);
    must(screen_click(t.s, -1, -1, 1, 3, e)); /* in place */
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
        must(screen_move(t.s, in[i][0], in[i][1], e));
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
    must(screen_drag(t.s, path, 3, 1, 400, e));
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
    must(screen_move(t.s, 200, 200, e));
    static const int way[][3] = {{0, -3, 4}, {0, 3, 5}, {-2, 0, 6}, {4, 0, 7}};
    for (size_t i = 0; i < 4; i++) {
        stage_clear(&t);
        must(screen_scroll(t.s, way[i][0], way[i][1], e));
        json_t *ev = stage_events(&t, "button_press");
        assert_int_equal(json_array_size(ev), abs(way[i][0] + way[i][1]));
        assert_int_equal(field(ev, 0, "button"), way[i][2]);
        assert_int_equal(json_array_size(stage_events(&t, "button_release")), abs(way[i][0] + way[i][1]));
    }
    stage_clear(&t);
    must(screen_scroll(t.s, 0, 500, e));
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
    must(screen_click(t.s, 100, 100, 1, 1, e));
    assert_int_equal(field(stage_events(&t, "button_press"), 0, "button"), 1);
    map[0] = map[2] = 0; /* no button 1 at all */
    XSetPointerMapping(t.other, map, n);
    struct err e = ERR_INIT;
    assert_int_equal(screen_click(t.s, 100, 100, 1, 1, &e), -1);
    assert_non_null(strstr(e.text, "mouse button 1"));
    XSetPointerMapping(t.other, old, n);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a click arrives once at its pixel; right, double, triple and in-place clicks too", t_click),
    CLAIM("modifiers are down around a click, image pixels become root pixels", t_modifier_click),
    CLAIM("positions off the screen end at its edge instead of wrapping", t_clamp),
    CLAIM("a drag goes through its corner in small steps and lands exactly", t_drag),
    CLAIM("the wheel turns in four directions, at most 100 clicks", t_scroll),
    CLAIM("a left-handed pointer map is inverted", t_left_handed),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
