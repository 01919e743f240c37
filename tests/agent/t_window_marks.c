/* t_window_marks.c - tests that the step window draws markers where events arrive.
 *
 * A client records the clicks that it receives.  From the window's own code the tests take only the
 * positions of the markers.
 */
#include "check.h"

#include "example.h"
#include "screen/exec.h"
#include "stage.h"
#include "step/scene.h"

#include <X11/extensions/Xrandr.h>
#include <math.h>

/* ---- markers --------------------------------------------------------------------------------- */

/* Chooses a random part of the root window, scale of the screenshot, and size of the step window. */
static void random_geometry(struct example *x, struct scene *s, uint64_t *random)
{
    example_make(x, (int)check_within(random, 40, 1400), (int)check_within(random, 40, 900));
    double sx = check_within(random, 0.3, 3), sy = check_within(random, 0.3, 3);
    x->p.place =
        (struct view_transform){check_within(random, -300, 300), check_within(random, -200, 200), sx, sy};
    /* a point of the frame inside the client's window */
    double rx = floor(check_within(random, 30, 600)), ry = floor(check_within(random, 30, 500));
    struct action *a = &x->step.actions[0];
    a->x = (int)fmin(fmax(lround((rx - x->p.place.ox) / sx), 0), x->frame.w - 1);
    a->y = (int)fmin(fmax(lround((ry - x->p.place.oy) / sy), 0), x->frame.h - 1);
    scene_init(s, (int)check_within(random, 760, 2000), (int)check_within(random, 520, 1400));
    s->scale = check_within(random, 0.5, 2);
    scene_show(s, &x->v);
}

/* Returns the position on the display of the pixel that a marker in the window points at. */
static void decoded(const struct scene *s, const struct example *x, double *rx, double *ry)
{
    const struct scene_layout l = scene_layout(s);
    double mx, my;
    assert_true(scene_target(s, &x->v, 0, false, &mx, &my));
    *rx = x->p.place.ox + ((mx - l.frame.x) / l.fit - 0.5) * x->p.place.sx;
    *ry = x->p.place.oy + ((my - l.frame.y) / l.fit - 0.5) * x->p.place.sy;
}

static void expect_presses(struct stage *t, int (*want)[2], size_t n)
{
    json_t *seen = stage_events(t, "button_press");
    assert_int_equal(json_array_size(seen), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(field(seen, i, "x"), want[i][0]);
        assert_int_equal(field(seen, i, "y"), want[i][1]);
    }
}

static void t_marks(void **state)
{
    enum { CASES = 200 };
    struct stage t;
    struct scene s;
    uint64_t random = check_seed();
    struct err e = ERR_INIT;
    int want[CASES][2], n = 0;
    stage_open(&t);
    stage_clear(&t);
    while (n < CASES) {
        struct example x;
        struct exec_result done = {0};
        random_geometry(&x, &s, &random);
        double rx, ry;
        decoded(&s, &x, &rx, &ry);
        if (rx >= 30 && ry >= 30 && rx < 600 && ry < 500) {
            want[n][0] = (int)lround(rx);
            want[n][1] = (int)lround(ry);
            assert_true(fabs(rx - want[n][0]) < 1e-6 && fabs(ry - want[n][1]) < 1e-6);
            assert_int_equal(action_execute(t.s, &x.step.actions[0], &x.p.place, &done, &e), FAULT_NONE);
            n++;
        }
        scene_free(&s);
        image_free(&x.frame);
    }
    expect_presses(&t, want, CASES);
    check_note("%d clicks, each received where its mark stood", CASES);
    stage_close(&t);
}

/* Opens a view of the display as a run does: all of it, one of two monitors, or a window that may extend
 * beyond the screen. */
static struct screen *open_real_view(struct stage *t, Window client, uint64_t *random, struct screen_rect *on)
{
    char view[32];
    int kind = (int)check_within(random, 0, 4), x = (int)check_within(random, -250, 350),
        y = (int)check_within(random, -200, 250);
    XMoveWindow(t->other, client, x, y);
    XSync(t->other, False); /* without a window manager it is mapped now */
    snprintf(view, sizeof view,
             kind == 0   ? "all"
             : kind == 1 ? "left"
             : kind == 2 ? "right"
                         : "window:0x%lx",
             client);
    struct screen *s = screen_open(&(struct screen_options){.view = view}, &why);
    if (!s)
        fail_msg("view %s: %s", view, why.text);
    struct screen_rect v = screen_view(s);
    int left = x > v.x ? x : v.x, top = y > v.y ? y : v.y;
    int right = x + 600 < v.x + v.w ? x + 600 : v.x + v.w, bottom = y + 500 < v.y + v.h ? y + 500 : v.y + v.h;
    *on = (struct screen_rect){left, top, right - left, bottom - top}; /* visible part of the client */
    return s;
}

static void add_monitor(struct stage *t, const char *name, int x, int y, int w, int h, bool with_output)
{
    XRRScreenResources *res = XRRGetScreenResources(t->other, DefaultRootWindow(t->other));
    XRRMonitorInfo *m = XRRAllocateMonitor(t->other, with_output);
    *m = (XRRMonitorInfo){.name = XInternAtom(t->other, name, False),
                          .x = x,
                          .y = y,
                          .width = w,
                          .height = h,
                          .mwidth = 100,
                          .mheight = 100,
                          .noutput = with_output,
                          .outputs = m->outputs};
    if (with_output)
        m->outputs[0] = res->outputs[0];
    XRRSetMonitor(t->other, DefaultRootWindow(t->other), m);
    XRRFreeMonitors(m);
    XRRFreeScreenResources(res);
    XSync(t->other, False);
}

static void t_real_views(void **state)
{
    enum { CASES = 40 };
    struct stage t;
    uint64_t random = check_seed();
    int want[CASES][2], done = 0, beyond = 0;
    stage_open(&t);
    screen_close(t.s);
    t.s = NULL;
    Window client = (Window)field(stage_events(&t, "ready"), 0, "window");
    add_monitor(&t, "left", 0, 0, 400, 600, true);
    add_monitor(&t, "right", 400, 100, 400, 400, false);
    while (done < CASES) {
        struct image im = {0};
        struct screen_rect on;
        struct example x;
        struct scene s;
        struct exec_result result = {0};
        struct err e = ERR_INIT;
        double rx, ry;
        struct screen *eyes = open_real_view(&t, client, &random, &on);
        must(screen_capture(eyes, &im, &why));
        example_make(&x, im.w, im.h);
        struct screen_rect v = screen_view(eyes);
        x.p.place = (struct view_transform){v.x, v.y, (double)v.w / im.w, (double)v.h / im.h};
        x.step.actions[0].x = (int)check_within(&random, on.x, on.x + on.w) - v.x;
        x.step.actions[0].y = (int)check_within(&random, on.y, on.y + on.h) - v.y;
        scene_init(&s, (int)check_within(&random, 760, 2000), (int)check_within(&random, 520, 1400));
        scene_show(&s, &x.v);
        decoded(&s, &x, &rx, &ry);
        if (on.w > 0 && on.h > 0 && screen_visible(eyes, (int)lround(rx), (int)lround(ry))) {
            assert_int_equal(action_execute(eyes, &x.step.actions[0], &x.p.place, &result, &e), FAULT_NONE);
            want[done][0] = (int)lround(rx);
            want[done][1] = (int)lround(ry);
            done++;
            beyond += im.w < 600 && v.w < 600 && v.w != 400;
        }
        scene_free(&s);
        screen_close(eyes);
        image_free(&im);
        image_free(&x.frame);
    }
    expect_presses(&t, want, CASES);
    check_note("%d views of a display with two monitors, %d of them windows over an edge", CASES, beyond);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a marker is where the click arrives, in 200 random geometries", t_marks),
    CLAIM("a marker is where the click arrives, on monitors and in windows beyond the screen", t_real_views),
};

CHECK_MAIN()
