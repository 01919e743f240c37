/* t_check_screen.c - tests of screen checks: regions, and questions to a model. */
#include "check.h"
#include "check_fixture.h"

#include <X11/Xlib.h>

/* ---- regions ------------------------------------------------------------------------------------- */

static void picture(const struct check_fixture *t, const char *name, struct image *im)
{
    char *path = xasprintf("%s/%s", desk_home(t->desk), name);
    struct err e = ERR_INIT;
    if (image_read_png(im, path, &e))
        fail_msg("%s", e.text);
    free(path);
}

#define REGION(...) .kind = CHECK_REGION, .text = "golden/box.png", __VA_ARGS__

static void t_region(void **state)
{
    struct check_fixture t;
    struct image im = {0};
    check_fixture_open(&t);
    check_fixture_window(t.dpy, "red", "Red", 100, 50, 40, 20, 0xff0000);
    EXPECT(RUN_CHECK(&t, REGION(.area = {100, 50, 40, 20})), ANSWER_ERROR, "--update-golden creates it");
    t.s.update_golden = true;
    EXPECT(RUN_CHECK(&t, REGION(.area = {100, 50, 40, 20})), ANSWER_YES,
           "golden/box.png', 40x20, from the current screen");
    t.s.update_golden = false;
    picture(&t, "golden/box.png", &im);
    assert_int_equal(im.w, 40);
    assert_memory_equal(im.rgb, "\xff\0\0", 3);
    image_free(&im);
    EXPECT(RUN_CHECK(&t, REGION(.area = {100, 50, 40, 20})), ANSWER_YES, "at most 0 % of the pixels");
    assert_null(t.a.checks[0].pictures[0]);

    /* a tenth of the area differs by more than the tolerance, then by exactly the tolerance */
    Window spot = check_fixture_window(t.dpy, "spot", "Spot", 100, 50, 4, 20, 0xffu << 16 | 17);
    const struct check_result *r = RUN_CHECK(&t, REGION(.area = {100, 50, 40, 20}, .max_diff = 0.099));
    EXPECT(r, ANSWER_NO,
           "at most 9.9 % of the pixels to differ from 'golden/box.png' by more than 16, 10 % do");
    static const char *const names[] = {"expected", "actual", "difference"};
    for (int i = 0; i < 3; i++) {
        char *name = xasprintf("%s/check-1-%s.png", t.out, names[i]);
        assert_string_equal(r->pictures[i], name);
        free(name);
    }
    picture(&t, "out/check-1-difference.png", &im);
    assert_true(im.rgb[0] > im.rgb[1] + 50);            /* marked */
    assert_int_equal(im.rgb[3 * 4], im.rgb[3 * 4 + 1]); /* grey */
    image_free(&im);
    picture(&t, "out/check-1-actual.png", &im);
    assert_memory_equal(im.rgb, "\xff\0\x11", 3);
    image_free(&im);
    EXPECT(RUN_CHECK(&t, REGION(.area = {100, 50, 40, 20}, .max_diff = 0.1)), ANSWER_YES, "10 % do");
    XSetWindowBackground(t.dpy, spot, 0xffu << 16 | 16);
    XClearWindow(t.dpy, spot);
    XSync(t.dpy, False);
    EXPECT(RUN_CHECK(&t, REGION(.area = {100, 50, 40, 20})), ANSWER_YES, ", 0 % do");

    /* reference images of another size, of the whole screen's size, and an area outside the screen */
    EXPECT(RUN_CHECK(&t, REGION(.area = {100, 50, 39, 20})), ANSWER_NO, "of 40x20; the area is 39x20");
    assert_non_null(t.a.checks[0].pictures[1]);
    assert_null(t.a.checks[0].pictures[2]);
    EXPECT(RUN_CHECK(&t, REGION(.area = {380, 50, 40, 20})), ANSWER_ERROR,
           "not within the screen of 400x300");
    t.s.update_golden = true;
    EXPECT(RUN_CHECK(&t, REGION()), ANSWER_YES, "400x300");
    t.s.update_golden = false;
    EXPECT(RUN_CHECK(&t, REGION(.area = {90, 40, 40, 20})), ANSWER_YES, ", 0 % do");
    XSetWindowBackground(t.dpy, spot, 0xff);
    XClearWindow(t.dpy, spot);
    XMoveWindow(t.dpy, spot, 110, 50);
    XSync(t.dpy, False);
    EXPECT(RUN_CHECK(&t, REGION(.area = {90, 40, 40, 20})), ANSWER_NO, ", 5 % do");
    check_fixture_file(&t, "golden/box.png", "no picture", 10);
    EXPECT(RUN_CHECK(&t, REGION()), ANSWER_ERROR, "not a readable PNG");
    check_fixture_close(&t);
}

/* ---- models -------------------------------------------------------------------------------------- */

struct scripted {
    const char *answers; /* one of + - ? ! per question */
    struct judge_question asked;
    char text[200];
    struct image first, last; /* copies */
};

static enum answer scripted_ask(void *arg, const struct judge_question *q, char **reason, struct err *e)
{
    struct scripted *s = arg;
    s->asked = *q;
    snprintf(s->text, sizeof s->text, "%s", q->text);
    image_free(&s->first);
    image_free(&s->last);
    image_copy(&s->first, &q->frames[0], NULL);
    image_copy(&s->last, &q->frames[q->n - 1], NULL);
    char c = *s->answers++;
    assert_true(c);
    if (c == '!')
        err_set(e, ERR_MODEL, "no memory for the judge");
    else
        *reason = xasprintf("because of %c", c);
    return c == '+' ? ANSWER_YES : c == '-' ? ANSWER_NO : c == '?' ? ANSWER_UNKNOWN : ANSWER_ERROR;
}

/* Counts red pixels between two lines. */
static int occurrences(const struct image *im, int from, int to)
{
    int n = 0;
    for (int i = from * im->w; i < to * im->w; i++)
        n += !memcmp(im->rgb + 3 * i, "\xff\0\0", 3);
    return n;
}

static void t_model(void **state)
{
    struct check_fixture t;
    check_fixture_open(&t);
    check_fixture_window(t.dpy, "red", "Red", 0, 0, 400, 300, 0xff0000);
    struct image frames[3] = {0};
    for (int i = 0; i < 3; i++)
        assert_int_equal(image_alloc(&frames[i], 4 + i, 4, NULL), 0);
    t.s.frames = frames;
    t.s.n_frames = 3;
    EXPECT(RUN_CHECK(&t, .kind = CHECK_JUDGE, .text = "Is it red?", .passes = 1, .frames = 1), ANSWER_UNKNOWN,
           "no model");
    struct scripted model = {.answers = "++"};
    t.s.judge = (struct judge){scripted_ask, &model};
    EXPECT(RUN_CHECK(&t, .kind = CHECK_JUDGE, .text = "Is it red?", .passes = 2, .frames = 3), ANSWER_YES,
           "asked 2 times and answers yes: because of +");
    assert_string_equal(t.a.checks[0].output, "because of +");
    assert_string_equal(model.text, "Is it red?");
    assert_int_equal(model.asked.n, 3);
    assert_int_equal(model.asked.pass, 1);
    assert_int_equal(model.first.w, 5); /* two frames of the run, then the current screen */
    assert_int_equal(model.last.w, 400);
    assert_memory_equal(model.last.rgb, "\xff\0\0", 3);
    /* Areas hidden in the run are hidden from the judge. */
    struct gate_options hiding = {.policy = policy_builtin(), .n_hide = 1};
    assert_int_equal(zones_read((const char *const[]){"0,0,100%,10", NULL}, "", hiding.hide, NULL), 1);
    t.s.gate = gate_new(&hiding);
    gate_begin(t.s.gate, t.s.screen, NULL);
    model.answers = "+";
    EXPECT(RUN_CHECK(&t, .kind = CHECK_JUDGE, .text = "?", .passes = 1, .frames = 1), ANSWER_YES,
           "asked 1 time");
    assert_int_equal(occurrences(&model.last, 0, 10), 0);
    assert_int_equal(occurrences(&model.last, 10, 300), 400 * 290);
    gate_free(t.s.gate);
    policy_free((struct policy *)hiding.policy);
    t.s.gate = NULL;
    model.answers = "+-+";
    EXPECT(RUN_CHECK(&t, .kind = CHECK_JUDGE, .text = "?", .passes = 3, .frames = 1), ANSWER_NO,
           "asked 2 times and answers no");
    assert_int_equal(model.asked.n, 1);
    model.answers = "?";
    EXPECT(RUN_CHECK(&t, .kind = CHECK_JUDGE, .text = "?", .passes = 3, .frames = 9), ANSWER_UNKNOWN,
           "answers unknown");
    assert_int_equal(model.asked.n, 4);
    model.answers = "!";
    EXPECT(RUN_CHECK(&t, .kind = CHECK_JUDGE, .text = "?", .passes = 1, .frames = 1), ANSWER_ERROR,
           "no memory for the judge");
    /* if the last frame of the run equals the current screen, it is sent once */
    image_free(&frames[2]);
    assert_int_equal(image_copy(&frames[2], &model.last, NULL), 0);
    model.answers = "+";
    EXPECT(RUN_CHECK(&t, .kind = CHECK_JUDGE, .text = "?", .passes = 1, .frames = 2), ANSWER_YES, "yes");
    assert_int_equal(model.asked.n, 2);
    assert_int_equal(model.first.w, 5);
    model.answers = "+-?";
    EXPECT(RUN_CHECK(&t, .kind = CHECK_TEXT, .text = "Log out"), ANSWER_YES, "yes");
    assert_non_null(strstr(model.text, "\"Log out\""));
    EXPECT(RUN_CHECK(&t, .kind = CHECK_TEXT, .text = "Log out", .absent = true), ANSWER_YES, "answers no");
    EXPECT(RUN_CHECK(&t, .kind = CHECK_TEXT, .text = "Log out", .absent = true), ANSWER_UNKNOWN,
           "answers unknown");
    for (int i = 0; i < 3; i++)
        image_free(&frames[i]);
    image_free(&model.first);
    image_free(&model.last);
    check_fixture_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a region is compared pixel by pixel, shown if it differs, and updated on request", t_region),
    CLAIM("a model is asked `passes` times about the last frames and the current screen", t_model),
};

int main(int argc, char **argv)
{
    return check_fixture_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
