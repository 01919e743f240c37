/* t_window.c - tests of the step window: gestures become commands, and the window is not captured.
 *
 * Gestures come from a second connection through XTEST.
 */
#include "check.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "example.h"
#include "person.h"
#include "stage.h"
#include "step/scene.h"
#include "step/step.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* ---- the user's input ------------------------------------------------------------------------ */

enum { PATIENCE_MS = 40000 };

struct person {
    const char *display, *title;
    const struct deed *deeds;
    int n;
    pthread_t thread;
    atomic_bool answered;
};
static int questions; /* of the open window */

/* Sends the input.  Without a command in it the window would wait forever. */
static void *person_thread(void *arg)
{
    struct person *p = arg;
    Display *d = XOpenDisplay(p->display);
    int x = 0, y = 0;
    if (d && person_is_asked(d, p->title, &x, &y))
        for (int i = 0; i < p->n; i++)
            person_does(d, x, y, &p->deeds[i]);
    if (d)
        XCloseDisplay(d);
    for (int ms = 0; !p->answered && ms < PATIENCE_MS; ms += 10)
        clock_sleep_ms(10);
    if (!p->answered)
        screen_stop_all(STOP_HUMAN);
    return NULL;
}

/* Returns the window's command for this input. */
static struct step_command answer_to(struct step_front *f, const struct example *x, const struct deed *deeds,
                                     int n)
{
    char title[32];
    struct person p = {.display = getenv("DISPLAY"), .title = title, .deeds = deeds, .n = n};
    struct step_command c = {0};
    snprintf(title, sizeof title, "holorun step %d #%d", x->p.number, ++questions);
    assert_int_equal(pthread_create(&p.thread, NULL, person_thread, &p), 0);
    int rc = f->ask(f, &x->v, &c, &why);
    p.answered = true;
    pthread_join(p.thread, NULL);
    must(rc);
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
    questions = 0;
    screen_stop_all(0);
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

/* Letters have the same meaning as in the terminal. */
static void t_letters(void **state)
{
    static const struct {
        char letter;
        const char *words; /* NULL: the command has no argument */
    } cases[] = {{'c', NULL}, {'a', NULL}, {'s', NULL},    {'u', NULL}, {'t', "word"},
                 {'v', "no"}, {'f', "3"},  {'b', "click"}, {'r', "1"},  {'x', "1"},
                 {'d', "1"},  {'g', "1"},  {'l', NULL}};
    struct xvfb x;
    struct example ex;
    struct step_front *f = open_on(&x, "1400x900x24", nothing, true);
    example_make(&ex, 640, 480);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *words = cases[i].words ? cases[i].words : "";
        const struct deed deeds[] = {KEY(cases[i].letter), TEXT(words), KEY(XK_Return)};
        struct step_command there = answer_to(f, &ex, deeds, cases[i].words ? 3 : 1), here = {0};
        char line[32];
        snprintf(line, sizeof line, "%c %s%s", cases[i].letter, cases[i].letter == 'b' ? "kind " : "", words);
        must(step_parse(line, &here, &why));
        if (here.verb != there.verb)
            fail_msg("'%s' is '%s' in a terminal and '%s' in the window", line, step_verb_name(here.verb),
                     step_verb_name(there.verb));
    }
    f->close(f);
    image_free(&ex.frame);
    xvfb_stop(&x);
}

static void t_keys(void **state)
{
    keys_give_commands(true);
}

static void t_keys_without_manager(void **state)
{
    keys_give_commands(false);
}

/* Lays out the scene like the window, to find the positions to click. */
static struct scene same_scene(const struct example *x)
{
    struct scene s;
    scene_init(&s, 1280, 820);
    scene_show(&s, &x->v);
    return s;
}

static struct box button_of(const struct scene *s, char wanted)
{
    struct box b;
    int key;
    for (int i = 0; scene_button(s, i, &b, &key); i++)
        if (key == wanted)
            return b;
    fail_msg("no button '%c'", wanted);
    return (struct box){0};
}

static void t_mouse(void **state)
{
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
    const struct box b = button_of(&s, 'c');
    c = ANSWER(f, &ex, AT(G_CLICK, b.x + b.w / 2, b.y + b.h / 2));
    assert_int_equal(c.verb, STEP_CONTINUE);
    f->close(f);
    scene_free(&s);
    image_free(&ex.frame);
    xvfb_stop(&x);
}

static void t_stop(void **state)
{
    struct xvfb x;
    struct example ex;
    struct step_front *f = open_on(&x, "1400x900x24", nothing, true);
    example_make(&ex, 640, 480);
    screen_stop_all(0);
    assert_int_equal(ANSWER(f, &ex, KEY(XK_Return)).verb, STEP_RUN);
    struct scene s = same_scene(&ex);
    const struct box b = button_of(&s, 's'); /* not the key, because the agent may type an "s" here */
    const struct deed stop = AT(G_CLICK, b.x + b.w / 2, b.y + b.h / 2);
    Display *d = XOpenDisplay(x.display);
    int wx = 0, wy = 0;
    assert_true(person_finds(d, "holorun step", &wx, &wy));
    person_does(d, wx, wy, &stop); /* while the model generates */
    XCloseDisplay(d);
    for (int i = 0; i < 1000 && !*screen_stop_flag(NULL); i++)
        clock_sleep_ms(20);
    assert_int_equal(*screen_stop_flag(NULL), STOP_HUMAN);
    struct step_command c;
    struct err e = ERR_INIT;
    assert_int_equal(f->ask(f, &ex.v, &c, &e), -1);
    assert_int_equal(e.kind, ERR_STOPPED);
    screen_stop_all(0);
    scene_free(&s);
    f->close(f);
    image_free(&ex.frame);
    xvfb_stop(&x);
}

/* ---- captured screenshots -------------------------------------------------------------------- */

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

/* The whole display is captured, so the window closes whenever it does not ask. */
static void t_hides(void **state)
{
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

/* Only the left part is captured, so the window can stay open beside it. */
static void t_beside(void **state)
{
    struct xvfb x;
    struct example ex;
    struct screen_rect left = {0, 0, 600, 900};
    struct step_front *f = open_on(&x, "1600x900x24", left, true);
    int wx = 0, wy = 0;
    example_make(&ex, 600, 900);
    assert_int_equal(ANSWER(f, &ex, KEY(XK_Return)).verb, STEP_RUN);
    Display *d = XOpenDisplay(NULL);
    assert_true(person_finds(d, "holorun step", &wx, &wy)); /* still open */
    XCloseDisplay(d);
    assert_true(wx >= 600);
    f->close(f);
    image_free(&ex.frame);
    xvfb_stop(&x);
}

static void t_no_display(void **state)
{
    struct err e = ERR_INIT;
    struct window_options o = {.display = ":4999", .captured = ":4999"};
    assert_null(step_window(&o, &e));
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.text, ":4999"));
}

/* ---- random input ---------------------------------------------------------------------------- */

static void t_anything(void **state)
{
    struct example ex;
    uint64_t random = check_seed();
    static const char *const words[] = {"a", "é", "語", "🙂", "\t", "12", "\xff\xfe", "kind click", "\n"};
    example_make(&ex, 300, 200);
    struct scene s = same_scene(&ex);
    cairo_surface_t *on = cairo_image_surface_create(CAIRO_FORMAT_RGB24, 1280, 820);
    int commands = 0;
    for (int i = 0; i < 20000; i++) {
        struct step_command c = {0};
        double r = check_random(&random), x = check_within(&random, -20, 1300),
               y = check_within(&random, -20, 840);
        ex.v.n_places = (int)check_within(&random, 0, 3);
        ex.step.nactions = (int)check_within(&random, 0, 2);
        if (r < 0.3)
            commands += scene_key(&s, &ex.v, (int)check_within(&random, 0, KEY_LAST + 2), &c);
        else if (r < 0.6)
            scene_type(&s, words[(int)check_within(&random, 0, 9)]);
        else if (r < 0.8)
            commands += scene_press(&s, &ex.v, x, y, r < 0.7, &c);
        else if (r < 0.9)
            commands += scene_release(&s, x, y, &c);
        else
            scene_wheel(&s, &ex.v, x, y, check_within(&random, -3, 3));
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

static const struct CMUnitTest tests[] = {
    CLAIM("keys are commands, with text where the command needs it", t_keys),
    CLAIM("a letter is the same command in the window and in a terminal", t_letters),
    CLAIM("keys work without a window manager", t_keys_without_manager),
    CLAIM("the mouse moves targets, presses buttons and rewinds to past steps", t_mouse),
    CLAIM("Stop works while the model generates, and ends waiting", t_stop),
    CLAIM("a window on the captured display is closed while it does not ask", t_hides),
    CLAIM("a window with free space beside the captured part stays open there", t_beside),
    CLAIM("a missing display is refused in one line", t_no_display),
    CLAIM("no key, click or scroll breaks the scene", t_anything),
};

CHECK_MAIN()
