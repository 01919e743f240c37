/* t_redact.c - tests that hidden parts of the screen are neither shown to the model nor recorded, nor shown
 * or stored by the checks of a suite.
 */
#include "check.h"
#include "qa_program.h"
#include "stage.h"

#include "base/clock.h"
#include "base/file.h"
#include "gate/redact.h"

#include <dirent.h>

static const uint8_t canary[3] = {0xc0, 0x10, 0x90};

/* Returns whether the image contains the colour of the hidden part. */
static bool shows(const char *path)
{
    struct image im = {0};
    bool found = false;
    assert_int_equal(image_read_png(&im, path, NULL), 0);
    for (size_t i = 0; i < 3 * (size_t)im.w * (size_t)im.h; i += 3)
        found |= !memcmp(im.rgb + i, canary, 3);
    image_free(&im);
    return found;
}

struct pictures {
    int n, shown;
};

static void look_into(const char *dir, struct pictures *p)
{
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *f; (f = readdir(d));) {
        char *path = xasprintf("%s/%s", dir, f->d_name);
        if (f->d_type == DT_DIR && f->d_name[0] != '.') {
            look_into(path, p);
        } else if (strstr(f->d_name, ".png")) {
            p->n++;
            p->shown += shows(path);
        }
        free(path);
    }
    closedir(d);
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* Paints the hidden part on the root window, beside the client: 640,100 to 789,499. */
static void paint(const struct stage *t)
{
    Display *d = t->other;
    XSetWindowAttributes a = {.background_pixel = 0xc01090, .override_redirect = True};
    Window w = XCreateWindow(d, DefaultRootWindow(d), 640, 100, 150, 400, 0, CopyFromParent, InputOutput,
                             CopyFromParent, CWBackPixel | CWOverrideRedirect, &a);
    XMapRaised(d, w);
    XSync(d, False);
}

static struct pictures pictures_of(const struct stage *t, const json_t **settings, struct record *r)
{
    struct pictures p = {0};
    driven_read(t, r);
    look_into(r->dir, &p);
    *settings = json_object_get(r->run, "settings");
    return p;
}

static void t_run(void **state)
{
    static const struct {
        const char *zone;
        bool seen;
    } cases[] = {
        {"0,0,1,1", true}, {"640,100,149,400", true}, {"640,100,150,400", false}, {"50%,0,50%,100%", false}};
    struct stage t;
    driven_open(&t);
    paint(&t);
    for (int i = 0; i < 4; i++) {
        struct outcome o = {0};
        struct record r;
        const json_t *settings;
        if (i)
            clock_sleep_ms(1100); /* start times of runs have a resolution of one second */
        driven_run(&t, CLICK(300, 300) ANSWER("Done."),
                   WORDS("--hide", cases[i].zone, "--confirm", "yes-to-all"), &o);
        assert_int_equal(o.code, 0);
        struct pictures p = pictures_of(&t, &settings, &r);
        assert_true(p.n > 0);
        if ((p.shown > 0) != cases[i].seen)
            fail_msg("%s: %d of %d images", cases[i].zone, p.shown, p.n);
        assert_int_equal(json_array_size(json_object_get(settings, "hide")), 1);
        record_free(&r);
        outcome_free(&o);
    }
    stage_close(&t);
}

/* A resumed run and a replay hide the same parts. */
static void t_again(void **state)
{
    struct stage t;
    struct outcome o = {0};
    struct record r;
    const json_t *settings;
    stage_still = true; /* because the screens of both runs are compared */
    driven_open(&t);
    paint(&t);
    char *runs = xvfb_place(&t.x, "runs");
    driven_run(&t, CLICK(300, 300) CLICK(310, 310) ANSWER("Done."),
               WORDS("--hide", "640,100,100,400", "--hide", "740,100,50,400", "-n", "1", "--no-force-answer"),
               &o);
    assert_int_equal(o.code, ERR_STEPS);
    char *script = xvfb_place(&t.x, "script");
    for (int i = 0; i < 2; i++) {
        clock_sleep_ms(1100);
        if (i)
            program_run(&t.x, &o, WORDS("replay", "--actions", "--runs", runs, "-q"));
        else
            program_run(&t.x, &o, WORDS("resume", "--runs", runs, "--fake", script, "-q", "-n", "9"));
        if (o.code != (i ? 0 : ERR_UNVERIFIED)) /* the click does not change the window */
            fail_msg("%d: %s %s", i, o.out, o.err);
        struct pictures p = pictures_of(&t, &settings, &r);
        assert_int_equal(p.shown, 0);
        assert_true(p.n > 0);
        if (!i)
            assert_int_equal(json_array_size(json_object_get(settings, "hide")), 2);
        record_free(&r);
    }
    driven_run(&t, ANSWER("Done."), WORDS("--hide", "640,100,150"), &o);
    ONE_LINE(&o, ERR_USAGE, "--hide expects X,Y,WIDTH,HEIGHT", "'640,100,150'");
    outcome_free(&o);
    free(script);
    free(runs);
    stage_close(&t);
}

/* ---- a suite --------------------------------------------------------------------------------- */

/* Paints the root window of the desktop; without --hide the golden image has the colour. */
#define PAINT(C) "xsetroot -solid '#" C "'"
#define SUITE(ID, C, W)                                                                                      \
    "tests:\n  - id: " ID                                                                                    \
    "\n    task: Look.\n    setup: [\"" PAINT(C) "\"]\n"                                                     \
                                                 "    checks: [{kind: region, png: golden/" W                \
                                                 ".png, max_diff: 0}]\n"

static void t_suite(void **state)
{
    struct qa_program q;
    struct pictures p = {0}, before;
    if (system("command -v xsetroot >/dev/null"))
        skip();
    qa_program_open(&q);
    qa_program_reply(&q, "a", WAIT(0) ANSWER("Done."));
    qa_program_suite(&q, SUITE("a", "c01090", "open"));
    qa_program_run(&q, WORDS("--update-golden"));
    assert_int_equal(q.o.code, 0);
    char *golden = xvfb_place(&q.x, "golden/open.png"), *hidden = xvfb_place(&q.x, "golden/hidden.png"),
         *out = xvfb_place(&q.x, "out.d");
    assert_true(shows(golden));
    look_into(out, &p);
    assert_true(p.shown > 0); /* visible without --hide */

    qa_program_run(&q, WORDS("--hide", "0,0,100%,100%")); /* hidden parts are not compared */
    assert_int_equal(q.o.code, 0);
    before = p;
    p = (struct pictures){0};
    look_into(out, &p); /* includes images of the first run */
    assert_true(p.n > before.n && p.shown == before.shown);
    qa_program_suite(&q, SUITE("a", "808080", "open")); /* the colour that covers hidden parts */
    qa_program_run(&q, WORDS("--hide", "0,0,100%,100%"));
    assert_int_equal(q.o.code, 0);

    /* a run that fails because its replies end stores only visible parts of its last screen */
    qa_program_reply(&q, "b", WAIT(0));
    qa_program_suite(&q, SUITE("b", "c01090", "open"));
    qa_program_run(&q, WORDS("--hide", "0,0,100%,100%"));
    assert_string_equal(qa_program_outcome(&q, "b"), "error");
    p = (struct pictures){0};
    look_into(out, &p);
    assert_int_equal(p.shown, before.shown);
    qa_program_run(&q, WORDS("-q"));
    p = (struct pictures){0};
    look_into(out, &p);
    assert_true(p.shown > before.shown);

    qa_program_suite(&q, SUITE("a", "c01090", "hidden"));
    qa_program_run(&q, WORDS("--update-golden", "--hide", "0,0,100%,100%"));
    assert_int_equal(q.o.code, 0);
    assert_false(shows(hidden));

    /* images of the difference do not show the hidden part */
    qa_program_run(&q, WORDS("--hide", "0,0,100%,50%", "--hide", "0,50%,100%,40%"));
    assert_int_equal(q.o.code, ERR_FAILED); /* the visible rest differs */
    free(golden);
    free(hidden);
    free(out);
    qa_program_close(&q);
}

/* ---- more fields than can be tracked ---------------------------------------------------------- */

static Window show_field(struct stage *t, int i)
{
    Window w = XCreateSimpleWindow(t->other, DefaultRootWindow(t->other), 20 + i % 8 * 90, 20 + i / 8 * 60,
                                   60, 30, 0, 0, 0xc01090); /* the hidden colour */
    XMapRaised(t->other, w);
    XMoveWindow(t->other, w, 20 + i % 8 * 90, 20 + i / 8 * 60);
    XSync(t->other, False);
    clock_sleep_ms(50);
    return w;
}

static void t_many_fields(void **state)
{
    struct stage t;
    struct image im = {0};
    int shown = 0;
    stage_open(&t);
    struct redact *r = redact_new();
    for (int i = 0; i <= REDACT_FIELDS; i++) {
        struct screen_window w = {.id = show_field(&t, i)};
        must(screen_window_rect(t.s, w.id, &w.rect));
        int rc = redact_before(r, t.s, NULL); /* the recorder sees the keys nevertheless */
        assert_int_equal(rc, i == REDACT_FIELDS ? -1 : 0);
        must(redact_after(r, t.s, &w, -1, -1, &why));
        redact_seal(r);
    }
    must(screen_capture(t.s, &im, &why));
    redact_image(r, t.s, &im);
    for (int i = 0; i < im.w * im.h; i++)
        shown += !memcmp(im.rgb + 3 * (size_t)i, canary, 3);
    assert_int_equal(shown, 0);
    image_free(&im);
    redact_free(r);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("secrets in more fields than can be tracked are all hidden", t_many_fields),
    CLAIM("hidden parts are in no image of a run, and parts beside them are", t_run),
    CLAIM("a resumed run and a replay hide the same parts", t_again),
    CLAIM("checks of a suite neither show nor store nor compare hidden parts", t_suite),
};

CHECK_MAIN()
