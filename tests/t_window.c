/* t_window.c - the step window: what it draws stands where events go, what is done in it becomes a command.
 *
 * Gestures come from a second connection through XTEST, and clicks are received by a client that writes them down:
 * nothing of what is asserted is taken from the window's own code but where it says that things are.
 */
#include "check.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "person.h"
#include "stage.h"
#include "step/scene.h"
#include "step/window.h"

#include <X11/extensions/Xrandr.h>
#include <math.h>
#include <pthread.h>
#include <unistd.h>

/* ---- a view of a step that nobody thought ------------------------------------------------------------------- */

struct example {
    struct image frame;
    struct step step;
    struct past_step past[3];
    struct proposed_reply forks[2];
    struct proposal p;
    struct step_view v;
};

static void example_make(struct example *x, int w, int h)
{
    static char what[] = "click \"Save\" at 10,20", thought[] = "the form is full";
    memset(x, 0, sizeof *x);
    must(image_alloc(&x->frame, w, h, &why));
    for (int i = 0; i < w * h * 3; i++)
        x->frame.rgb[i] = (uint8_t)(40 + i % 180);
    x->step.nactions = 1;
    x->step.thought = thought;
    x->step.actions[0] = action_of(ACT_CLICK);
    x->step.actions[0].x = w / 2;
    x->step.actions[0].y = h / 2;
    x->step.actions[0].button = x->step.actions[0].count = 1;
    for (int i = 0; i < 3; i++)
        x->past[i] = (struct past_step){
            .number = i + 1, .frame = -1, .what = what, .thought = thought, .ran = true, .reachable = i > 0};
    for (int i = 0; i < 2; i++)
        x->forks[i] = (struct proposed_reply){.step = &x->step, .message = "", .reply = ""};
    x->p = (struct proposal){.number = 4,
                             .max_steps = 9,
                             .task = "an example",
                             .frame = &x->frame,
                             .moved_on = -1,
                             .place = {0, 0, 1, 1},
                             .lead = "",
                             .now = x->forks[0],
                             .taken = -1,
                             .past = x->past,
                             .n_past = 3};
    x->v = (struct step_view){
        .p = &x->p, .step = &x->step, .why = "first step", .message = "", .confidence = -1};
}

/* ---- marks ------------------------------------------------------------------------------------------------------ */

static double between(uint64_t *random, double low, double high)
{
    return low + check_random(random) * (high - low);
}

/* Any piece of the root of any size in any picture of any scale, shown in a window of any size. */
static void random_geometry(struct example *x, struct scene *s, uint64_t *random)
{
    example_make(x, (int)between(random, 40, 1400), (int)between(random, 40, 900));
    double sx = between(random, 0.3, 3), sy = between(random, 0.3, 3);
    x->p.place = (struct exec_place){between(random, -300, 300), between(random, -200, 200), sx, sy};
    /* a point of the frame that lies on the client's window */
    double rx = floor(between(random, 30, 600)), ry = floor(between(random, 30, 500));
    struct action *a = &x->step.actions[0];
    a->x = (int)fmin(fmax(lround((rx - x->p.place.ox) / sx), 0), x->frame.w - 1);
    a->y = (int)fmin(fmax(lround((ry - x->p.place.oy) / sy), 0), x->frame.h - 1);
    scene_init(s, (int)between(random, 760, 2000), (int)between(random, 520, 1400));
    s->scale = between(random, 0.5, 2);
    scene_show(s, &x->v);
}

/* Where the pixel of the display lies that a mark in the window stands on. */
static void decoded(const struct scene *s, const struct example *x, double *rx, double *ry)
{
    const struct scene_layout l = scene_layout(s);
    double mx, my;
    assert_true(scene_target(s, &x->v, 0, false, &mx, &my));
    *rx = x->p.place.ox + ((mx - l.frame.x) / l.fit - 0.5) * x->p.place.sx;
    *ry = x->p.place.oy + ((my - l.frame.y) / l.fit - 0.5) * x->p.place.sy;
}

static void t_marks(void **state)
{
    (void)state;
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
    json_t *seen = stage_events(&t, "button_press");
    assert_int_equal(json_array_size(seen), CASES);
    for (size_t i = 0; i < CASES; i++) {
        assert_int_equal(field(seen, i, "x"), want[i][0]);
        assert_int_equal(field(seen, i, "y"), want[i][1]);
    }
    check_note("%d clicks, each received where its mark stood", CASES);
    stage_close(&t);
}

/* A part of the display as a run would look at it: all of it, one of two monitors, a window that may hang over an edge. */
static struct screen *open_real_view(struct stage *t, Window client, uint64_t *random, struct screen_rect *on)
{
    char view[32];
    int kind = (int)between(random, 0, 4), x = (int)between(random, -250, 350),
        y = (int)between(random, -200, 250);
    XMoveWindow(t->other, client, x, y);
    XSync(t->other, False); /* nobody manages windows: it is there */
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
    *on = (struct screen_rect){left, top, right - left, bottom - top}; /* where the client is in view */
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
    (void)state;
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
        x.p.place = (struct exec_place){v.x, v.y, (double)v.w / im.w, (double)v.h / im.h};
        x.step.actions[0].x = (int)between(&random, on.x, on.x + on.w) - v.x;
        x.step.actions[0].y = (int)between(&random, on.y, on.y + on.h) - v.y;
        scene_init(&s, (int)between(&random, 760, 2000), (int)between(&random, 520, 1400));
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
    json_t *seen = stage_events(&t, "button_press");
    assert_int_equal(json_array_size(seen), CASES);
    for (size_t i = 0; i < CASES; i++) {
        assert_int_equal(field(seen, i, "x"), want[i][0]);
        assert_int_equal(field(seen, i, "y"), want[i][1]);
    }
    check_note("%d views of a display with two monitors, %d of them windows over an edge", CASES, beyond);
    stage_close(&t);
}

/* ---- a person at the window ----------------------------------------------------------------------------------------- */

struct person {
    const char *display;
    const struct deed *deeds;
    int n;
    pthread_t thread;
};

static void *person_thread(void *arg)
{
    const struct person *p = arg;
    Display *d = XOpenDisplay(p->display);
    int x = 0, y = 0;
    if (d && person_finds(d, "holorun step", &x, &y)) {
        clock_sleep_ms(150);
        for (int i = 0; i < p->n; i++)
            person_does(d, x, y, &p->deeds[i]);
    }
    if (d)
        XCloseDisplay(d);
    return NULL;
}

/* What the window says when a person does this to it. */
static struct step_command answer_to(struct step_front *f, const struct example *x, const struct deed *deeds,
                                     int n)
{
    struct person p = {getenv("DISPLAY"), deeds, n, 0};
    struct step_command c = {0};
    assert_int_equal(pthread_create(&p.thread, NULL, person_thread, &p), 0);
    must(f->ask(f, &x->v, &c, &why));
    pthread_join(p.thread, NULL);
    return c;
}

static struct step_front *open_on(struct xvfb *x, const char *screen, struct screen_rect view, bool wm)
{
    if (xvfb_start(x, screen, NULL))
        skip();
    if (wm && xvfb_window_manager(x)) {
        xvfb_stop(x);
        skip();
    }
    struct window_options o = {.captured = x->display, .view = view};
    struct step_front *f = step_window(&o, &why);
    if (!f)
        fail_msg("%s", why.text);
    return f;
}

#define ANSWER(f, x, ...)                                                                                    \
    answer_to(f, x, (const struct deed[]){__VA_ARGS__},                                                      \
              sizeof((const struct deed[]){__VA_ARGS__}) / sizeof(struct deed))

static const struct screen_rect nothing = {0, 0, 0, 0};

static void keys_give_commands(bool wm)
{
    struct xvfb x;
    struct example ex;
    struct step_command c;
    struct step_front *f = open_on(&x, "1400x900x24", nothing, wm);
    example_make(&ex, 640, 480);
    ex.p.forks = ex.forks;
    ex.p.n_forks = 2;
    assert_int_equal(ANSWER(f, &ex, KEY(XK_Return)).verb, STEP_RUN);
    assert_int_equal(ANSWER(f, &ex, KEY('c')).verb, STEP_CONTINUE);
    assert_int_equal(ANSWER(f, &ex, KEY('a')).verb, STEP_AGAIN);
    c = ANSWER(f, &ex, KEY('v'), TEXT("not that one"), KEY(XK_BackSpace), KEY(XK_Return));
    assert_int_equal(c.verb, STEP_VETO);
    assert_string_equal(c.text, "not that on");
    c = ANSWER(f, &ex, KEY('v'), TEXT("no"), KEY(XK_Escape), KEY('f'), KEY(XK_BackSpace), TEXT("5"),
               KEY(XK_Return));
    assert_int_equal(c.verb, STEP_FORK);
    assert_int_equal(c.n, 5);
    c = ANSWER(f, &ex, KEY('2'));
    assert_int_equal(c.verb, STEP_TAKE);
    assert_int_equal(c.n, 2);
    c = ANSWER(f, &ex, KEY('b'), TEXT("click"), KEY(XK_Return));
    assert_int_equal(c.verb, STEP_BREAK);
    assert_string_equal(c.text, "kind click");
    c = ANSWER(f, &ex, KEY('r'), KEY(XK_Return));
    assert_int_equal(c.verb, STEP_REWIND);
    assert_int_equal(c.n, 3);
    assert_int_equal(ANSWER(f, &ex, KEY('s')).verb, STEP_STOP);
    f->close(f);
    image_free(&ex.frame);
    xvfb_stop(&x);
}

static void t_keys(void **state)
{
    (void)state;
    keys_give_commands(true);
}

static void t_keys_without_manager(void **state)
{
    (void)state;
    keys_give_commands(false);
}

/* The scene as the window lays it out, to know where to press. */
static struct scene same_scene(const struct example *x)
{
    struct scene s;
    scene_init(&s, 1280, 820);
    scene_show(&s, &x->v);
    return s;
}

static void t_mouse(void **state)
{
    (void)state;
    struct xvfb x;
    struct example ex;
    struct step_command c;
    struct step_front *f = open_on(&x, "1400x900x24", nothing, true);
    double mx, my;
    example_make(&ex, 640, 480);
    struct scene s = same_scene(&ex);
    const struct scene_layout l = scene_layout(&s);
    assert_true(scene_target(&s, &ex.v, 0, false, &mx, &my));
    double to_x = l.frame.x + 100.5 * l.fit, to_y = l.frame.y + 50.5 * l.fit;
    c = ANSWER(f, &ex, AT(G_PRESS, mx + 3, my - 2), AT(G_MOVE, mx - 50, my), AT(G_RELEASE, to_x, to_y));
    assert_int_equal(c.verb, STEP_TARGET);
    assert_in_range(c.x, 99, 101);
    assert_in_range(c.y, 49, 51);
    c = ANSWER(f, &ex, AT(G_AIM, to_x, to_y));
    assert_int_equal(c.verb, STEP_TARGET);
    assert_in_range(c.x, 99, 101);
    ex.step.actions[0].kind = ACT_DRAG;
    ex.step.actions[0].x2 = 600;
    ex.step.actions[0].y2 = 40;
    assert_true(scene_target(&s, &ex.v, 0, true, &mx, &my));
    c = ANSWER(f, &ex, AT(G_PRESS, mx, my), AT(G_RELEASE, to_x, to_y));
    assert_int_equal(c.verb, STEP_TARGET2);
    const struct box thumb = scene_thumb(&s, &ex.v, 1);
    c = ANSWER(f, &ex, AT(G_CLICK, thumb.x + 20, thumb.y + 20), KEY(XK_Return));
    assert_int_equal(c.verb, STEP_REWIND);
    assert_int_equal(c.n, 2);
    for (int i = 0; i < SCENE_BUTTONS; i++) {
        char letter;
        const struct box b = scene_button(&s, i, &letter);
        if (letter == 'c')
            c = ANSWER(f, &ex, AT(G_CLICK, b.x + b.w / 2, b.y + b.h / 2));
    }
    assert_int_equal(c.verb, STEP_CONTINUE);
    f->close(f);
    scene_free(&s);
    image_free(&ex.frame);
    xvfb_stop(&x);
}

static void t_stop(void **state)
{
    (void)state;
    struct xvfb x;
    struct example ex;
    struct step_front *f = open_on(&x, "1400x900x24", nothing, true);
    example_make(&ex, 640, 480);
    screen_stop_all(0);
    assert_int_equal(ANSWER(f, &ex, KEY(XK_Return)).verb, STEP_RUN);
    const struct deed stop = {G_KEY, 's', NULL, 0, 0};
    struct person p = {x.display, &stop, 1, 0};
    person_thread(&p); /* nobody asks: the model thinks */
    for (int i = 0; i < 50 && !*screen_stop_flag(NULL); i++)
        clock_sleep_ms(20);
    assert_int_equal(*screen_stop_flag(NULL), STOP_HUMAN);
    struct step_command c;
    struct err e = ERR_INIT;
    assert_int_equal(f->ask(f, &ex.v, &c, &e), -1);
    assert_int_equal(e.kind, ERR_STOPPED);
    screen_stop_all(0);
    f->close(f);
    image_free(&ex.frame);
    xvfb_stop(&x);
}

/* ---- what is captured -------------------------------------------------------------------------------------------------- */

static struct image captured(const char *view)
{
    struct image im = {0};
    struct screen_options o = {.view = view};
    struct screen *s = screen_open(&o, &why);
    if (!s)
        fail_msg("%s", why.text);
    must(screen_capture(s, &im, &why));
    screen_close(s);
    return im;
}

/* The whole display is captured: the window has to go whenever it does not ask. */
static void t_hides(void **state)
{
    (void)state;
    struct xvfb x;
    struct example ex;
    struct screen_rect all = {0, 0, 1000, 700};
    struct step_front *f = open_on(&x, "1000x700x24", all, true);
    clock_sleep_ms(300);
    struct image before = captured(NULL);
    example_make(&ex, 640, 480);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ANSWER(f, &ex, KEY(XK_Return)).verb, STEP_RUN);
        struct image after = captured(NULL);
        assert_true(image_equal(&before, &after));
        image_free(&after);
    }
    f->close(f);
    image_free(&before);
    image_free(&ex.frame);
    xvfb_stop(&x);
}

/* Only the left part is captured: it stands beside that, all the time. */
static void t_beside(void **state)
{
    (void)state;
    struct xvfb x;
    struct example ex;
    struct screen_rect left = {0, 0, 600, 900};
    struct step_front *f = open_on(&x, "1600x900x24", left, true);
    int wx = 0, wy = 0;
    example_make(&ex, 600, 900);
    assert_int_equal(ANSWER(f, &ex, KEY(XK_Return)).verb, STEP_RUN);
    Display *d = XOpenDisplay(NULL);
    assert_true(person_finds(d, "holorun step", &wx, &wy)); /* still there */
    XCloseDisplay(d);
    assert_true(wx >= 600);
    f->close(f);
    image_free(&ex.frame);
    xvfb_stop(&x);
}

static void t_no_display(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct window_options o = {.display = ":4999", .captured = ":4999"};
    assert_null(step_window(&o, &e));
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.text, ":4999"));
}

/* ---- whatever is done to it -------------------------------------------------------------------------------------------- */

static void t_anything(void **state)
{
    (void)state;
    struct example ex;
    uint64_t random = check_seed();
    static const char *const words[] = {"a", "é", "語", "🙂", "\t", "12", "\xff\xfe", "kind click", "\n"};
    example_make(&ex, 300, 200);
    struct scene s = same_scene(&ex);
    cairo_surface_t *on = cairo_image_surface_create(CAIRO_FORMAT_RGB24, 1280, 820);
    int commands = 0;
    for (int i = 0; i < 20000; i++) {
        struct step_command c = {0};
        double r = check_random(&random), x = between(&random, -20, 1300), y = between(&random, -20, 840);
        ex.v.n_places = (int)between(&random, 0, 3);
        ex.step.nactions = (int)between(&random, 0, 2);
        if (r < 0.3)
            commands += scene_key(&s, &ex.v, (int)between(&random, 0, KEY_SMALLER + 2), &c);
        else if (r < 0.6)
            scene_type(&s, words[(int)between(&random, 0, 9)]);
        else if (r < 0.8)
            commands += scene_press(&s, &ex.v, x, y, r < 0.7, &c);
        else if (r < 0.9)
            commands += scene_release(&s, &ex.v, x, y, &c);
        else
            scene_wheel(&s, &ex.v, x, y, between(&random, -3, 3));
        size_t len = strlen(s.input);
        assert_true(len < sizeof s.input && s.caret <= len);
        assert_int_equal(utf8_valid_prefix(s.input, len), len);
        assert_int_equal(utf8_valid_prefix(s.input, s.caret), s.caret);
        if (i % 500 == 0)
            scene_draw(&s, &ex.v, on);
    }
    check_note("20000 gestures, %d commands", commands);
    cairo_surface_destroy(on);
    scene_free(&s);
    image_free(&ex.frame);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CLAIM("a mark stands where the click arrives, in 200 random geometries", t_marks),
        CLAIM("so it does on monitors and in windows that hang over an edge", t_real_views),
        CLAIM("keys are verbs, and words go with them", t_keys),
        CLAIM("keys work without a window manager", t_keys_without_manager),
        CLAIM("the mouse moves targets, presses buttons, goes back to past steps", t_mouse),
        CLAIM("Stop works while the model thinks, and ends waiting", t_stop),
        CLAIM("a window on the captured display is gone when nobody is asked", t_hides),
        CLAIM("a window with room beside what is captured stands there", t_beside),
        CLAIM("a display that is not there is refused in one line", t_no_display),
        CLAIM("nothing that is typed, pressed or turned breaks the scene", t_anything),
    };
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
