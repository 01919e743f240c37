/* t_early.c - tests of thinking early and acting late (early.c).
 *
 * The page is a window of the test's own that covers the display and shows a number as a label at the target,
 * and as a colour in its corner. It changes on request, at given times, and notes its number at each press.
 * The recorded screenshots show the number that the model saw.
 */
#include "check.h"
#include "play.h"

#include "base/clock.h"
#include "base/file.h"
#include "screen/observed.h"
#include "step/step.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { W = 800, H = 600, AT_X = 400, AT_Y = 300, PRESSES = 64, RUNS = 10, LOOK_MS = 25 };

static struct page {
    Display *dpy;
    Window window;
    Pixmap picture;
    GC gc;
    pthread_t thread;
    pthread_mutex_t lock; /* of the connection */
    atomic_bool end;
    atomic_int shown;          /* the number */
    _Atomic int64_t change_at; /* clock_ns(); 0: never */
    int restless_ms;           /* a bar far from the target moves that often; 0: never */
    bool reacts;               /* a press changes the number */
    int late_ms;               /* ... that long after the press; 0: at once */
    bool listed;           /* the page has ten lines of text too; a late reaction begins by removing them */
    bool emptied;          /* they are gone */
    int64_t drawn;         /* clock_ns() of the last change */
    int pressed[PRESSES];  /* number shown at each press */
    double since[PRESSES]; /* ms since the last change */
    int n;
} page;

static unsigned colour_of(int number)
{
    return 0x204060u + (unsigned)(number % 64) * 0x030201u;
}

static const char *const labels[] = {"Save the letter", "Delete all", "Send it now",    "Cancel",
                                     "Pay 40 EUR",      "Next page",  "Format the disk"};

/* Draws everything in one request, so that no screenshot shows half of it. */
static void draw(int number, int bar)
{
    XSetForeground(page.dpy, page.gc, 0xf0f0f0);
    XFillRectangle(page.dpy, page.picture, page.gc, 0, 0, W, H);
    XSetForeground(page.dpy, page.gc, colour_of(number));
    XFillRectangle(page.dpy, page.picture, page.gc, 0, 0, 40, 40);
    XSetForeground(page.dpy, page.gc, 0x101010);
    const char *label = labels[number % (int)(sizeof labels / sizeof *labels)];
    for (int dy = 0; dy < 2; dy++) /* bold */
        XDrawString(page.dpy, page.picture, page.gc, AT_X - 3 * (int)strlen(label), AT_Y + 5 + dy, label,
                    (int)strlen(label));
    for (int i = 0; i < 10 && page.listed && !page.emptied; i++)
        XDrawString(page.dpy, page.picture, page.gc, 60, 60 + 20 * i, "A letter to Ana Lima, not sent yet",
                    34);
    XFillRectangle(page.dpy, page.picture, page.gc, bar * 37 % 700, 520, 60, 40);
    XCopyArea(page.dpy, page.picture, page.window, page.gc, 0, 0, W, H, 0, 0);
    XSync(page.dpy, False);
    if (page.shown != number)
        page.drawn = clock_ns();
    page.shown = number;
}

static void change(void)
{
    pthread_mutex_lock(&page.lock);
    draw(page.shown + 1, 0);
    pthread_mutex_unlock(&page.lock);
}

static void react(void)
{
    if (!page.late_ms) {
        draw(page.shown + 1, 0);
        return;
    }
    page.change_at = clock_ns() + page.late_ms * INT64_C(1000000);
    page.emptied = page.listed;
    if (page.emptied)
        draw(page.shown, 0);
}

static void handle_events(void)
{
    XEvent ev;
    while (XPending(page.dpy)) {
        XNextEvent(page.dpy, &ev);
        if (ev.type != ButtonPress || page.n == PRESSES)
            continue;
        page.since[page.n] = clock_ms_since(page.drawn);
        page.pressed[page.n++] = page.shown;
        if (page.reacts)
            react();
    }
}

static void *page_thread(void *arg)
{
    int64_t moved = 0;
    for (int bar = 0; !page.end;) {
        struct pollfd fd = {ConnectionNumber(page.dpy), POLLIN, 0};
        poll(&fd, 1, 1);
        pthread_mutex_lock(&page.lock);
        handle_events();
        int64_t at = page.change_at;
        if (at && clock_ns() >= at) {
            page.change_at = 0;
            page.emptied = false;
            XSync(page.dpy, False);
            handle_events(); /* those that the server has sent before the change */
            draw(page.shown + 1, 0);
        }
        if (page.restless_ms && clock_ms_since(moved) >= page.restless_ms) {
            moved = clock_ns();
            draw(page.shown, ++bar);
        }
        pthread_mutex_unlock(&page.lock);
    }
    return NULL;
}

static void page_open(struct play *p, enum think_early early)
{
    play_open(p);
    p->o.settle = (struct settle){0, 0, 0};
    p->o.think_early = early;
    memset(&page, 0, sizeof page);
    pthread_mutex_init(&page.lock, NULL);
    page.reacts = true;
    page.dpy = XOpenDisplay(p->stage.x.display);
    XSetWindowAttributes a = {.override_redirect = True, .event_mask = ButtonPressMask};
    page.window = XCreateWindow(page.dpy, DefaultRootWindow(page.dpy), 0, 0, W, H, 0, CopyFromParent,
                                InputOutput, NULL, CWOverrideRedirect | CWEventMask, &a);
    page.picture = XCreatePixmap(page.dpy, page.window, W, H, (unsigned)DefaultDepth(page.dpy, 0));
    page.gc = XCreateGC(page.dpy, page.window, 0, NULL);
    XMapRaised(page.dpy, page.window);
    draw(1, 0);
    pthread_create(&page.thread, NULL, page_thread, NULL);
}

static void page_close(struct play *p)
{
    page.end = true;
    pthread_join(page.thread, NULL);
    XCloseDisplay(page.dpy);
    play_close(p);
}

/* Returns whether the screenshot of this step shows the number. */
static bool saw(const struct play *p, const struct story_step *s, int number)
{
    struct image im = {0};
    char *path = xasprintf("%s/frames/%06d.png", p->record.dir, s->frame);
    assert_int_equal(image_read_png(&im, path, NULL), 0);
    const uint8_t *c = im.rgb + 3 * (20 * im.w + 20);
    unsigned is = (unsigned)c[0] << 16 | (unsigned)c[1] << 8 | c[2];
    image_free(&im);
    free(path);
    return is == colour_of(number);
}

static int events_of(const struct play *p, const char *kind)
{
    int n = 0;
    for (int i = 0; i < p->record.n; i++)
        n += !strcmp(p->record.events[i].kind, kind);
    return n;
}

/* Checks that each press met what the model had seen, unless it changed after the last look before the press, and
 * returns the number of presses. */
static int check_presses(const struct play *p)
{
    int n = 0;
    for (int i = 0; i < p->story.n; i++) {
        const struct story_step *s = &p->story.steps[i];
        if (s->nactions != 1 || *s->actions[0].failure ||
            strcmp(field_text(s->actions[0].action, "kind"), "click") != 0)
            continue;
        assert_true(n < page.n);
        if (!saw(p, s, page.pressed[n]) && page.since[n] > LOOK_MS)
            fail_msg("step %d pressed on a page that had changed %.1f ms before", s->number, page.since[n]);
        if (!saw(p, s, page.pressed[n]))
            check_note("step %d pressed on a page that had changed %.1f ms before", s->number, page.since[n]);
        n++;
    }
    assert_int_equal(n, page.n);
    return n;
}

static void answered(const struct play *p)
{
    if (p->r.status != AGENT_ANSWERED && p->r.status != AGENT_UNVERIFIED)
        fail_msg("ended as '%s' (%s)", agent_status_name(p->r.status), p->e.text);
    assert_int_equal(events_of(p, "cancelled"), p->r.cancelled.turns);
}

/* ---- claims ---------------------------------------------------------------------------------------------- */

static void change_once(void)
{
    if (played.n_asked == 1)
        change();
}

static void t_cancelled(void **state)
{
    static const double thinks[] = {20, 2000};
    struct play p;
    page_open(&p, THINK_EARLY_YES);
    play_script(&p, CLICK(500, 500) ANSWER("Done."), NULL);
    answered(&p);
    assert_int_equal(p.r.cancelled.turns, 0);
    char *undisturbed = xstrdup(p.transcript);
    int64_t generated = p.r.generated;
    for (int i = 0; i < 2; i++) {
        play_forget();
        page.n = 0;
        played.slow_ms = thinks[i];
        played.always = change_once;
        play_script(&p, CLICK(500, 500) ANSWER("Done."), NULL);
        answered(&p);
        assert_int_equal(check_presses(&p), 1);
        assert_int_equal(p.r.cancelled.turns, 1);
        assert_true(p.r.cancelled.tokens > 0);
        assert_int_equal(p.r.generated, generated); /* in the turns that stand */
        assert_int_equal(p.r.steps, 2);
        assert_string_equal(p.transcript, undisturbed);
        assert_int_equal(p.story.steps[0].cancelled, 1);
    }
    free(undisturbed);
    page_close(&p);
}

static void t_answer(void **state)
{
    struct play p;
    page_open(&p, THINK_EARLY_YES);
    played.slow_ms = 20;
    played.always = change_once;
    play_script(&p, ANSWER("It says 1."), NULL);
    answered(&p);
    assert_int_equal(p.r.cancelled.turns, 1);
    assert_true(saw(&p, &p.story.steps[0], page.shown));
    page_close(&p);
}

/* The page changes once at a random time after each request, mostly before the press. */
static void change_soon(void)
{
    page.change_at = clock_ns() + (int64_t)(rand() % 600) * 1000000;
}

static void t_random(void **state)
{
    struct play p;
    int cancelled = 0, refused = 0, presses = 0;
    page_open(&p, THINK_EARLY_YES);
    srand((unsigned)check_seed());
    const char *wanted = getenv("HOLORUN_EARLY_RUNS"); /* 150: 300 presses, a quarter of an hour */
    for (int i = 0, n = wanted ? atoi(wanted) : RUNS; i < n || (!cancelled && i < 4 * n); i++) {
        play_forget();
        page.n = 0;
        observed_drop(p.stage.s); /* a new program has learned nothing about the page */
        p.o.max_steps = 2;
        played.slow_ms = 60;
        played.always = change_soon;
        play_script(&p, CLICK(500, 500) CLICK(500, 500) CLICK(500, 500), NULL);
        assert_int_equal(p.r.status, AGENT_STEPS);
        presses += check_presses(&p);
        cancelled += p.r.cancelled.turns;
        refused += events_of(&p, "stale");
    }
    check_note("%d presses, %d turns cancelled, %d refused before the press", presses, cancelled, refused);
    assert_true(presses > 0 && cancelled > 0);
    page_close(&p);
}

static void t_restless(void **state)
{
    struct play p;
    page_open(&p, THINK_EARLY_YES);
    page.restless_ms = 45;
    p.o.settle.max_ms = 600;
    played.slow_ms = 300;
    play_script(&p, CLICK(500, 500) CLICK(500, 500) ANSWER("Done."), NULL);
    answered(&p);
    assert_int_equal(check_presses(&p), 2);
    for (int i = 0; i < p.story.n; i++)
        assert_in_range(p.story.steps[i].cancelled, 0, 2);
    assert_true(p.r.cancelled.turns > 0);
    page_close(&p);
}

static void change_and_stop(void)
{
    if (played.n_asked == 1)
        change();
    else
        screen_stop_all(STOP_HUMAN);
}

static void change_while_stopping(void)
{
    screen_stop_all(STOP_HUMAN);
    change();
}

static void t_stopped(void **state)
{
    static void (*const hooks[])(void) = {change_and_stop, change_while_stopping};
    for (int i = 0; i < 2; i++) {
        struct play p;
        page_open(&p, THINK_EARLY_YES);
        played.slow_ms = 50;
        played.always = hooks[i];
        play_script(&p, CLICK(500, 500) ANSWER("Never."), NULL);
        assert_int_equal(p.r.status, AGENT_STOPPED);
        assert_int_equal(page.n, 0);
        assert_int_equal(p.r.cancelled.turns, i == 0);
        page_close(&p);
    }
}

static void t_stepped(void **state)
{
    static const char commands[] = "run\nrewind 1\nrun\nrun\n";
    struct play p;
    page_open(&p, THINK_EARLY_YES);
    char *path = xasprintf("%s/commands", p.stage.x.dir);
    assert_int_equal(file_write(path, commands, sizeof commands - 1, NULL), 0);
    struct stepper *s = stepper_new(step_script(path, NULL, NULL), NULL, NULL);
    assert_non_null(s);
    played.slow_ms = 20;
    played.always = change_once;
    play_script(&p, CLICK(500, 500) ANSWER("Not yet.") CLICK(500, 500) ANSWER("Done."), stepper_overseer(s));
    answered(&p);
    assert_int_equal(p.r.cancelled.turns, 1);
    assert_int_equal(page.n, 2);
    assert_string_equal(p.r.answer, "Done.");
    stepper_free(s);
    free(path);
    page_close(&p);
}

static void t_late(void **state)
{
    static const enum think_early ways[] = {THINK_EARLY_AUTO, THINK_EARLY_NO};
    for (int i = 0; i < 2; i++) {
        struct play p;
        page_open(&p, ways[i]);
        played.slow_ms = 120;
        play_script(&p, CLICK(500, 500) CLICK(500, 500) ANSWER("Done."), NULL);
        answered(&p);
        assert_int_equal(events_of(&p, "committed"), 0);
        assert_int_equal(check_presses(&p), 2);
        page_close(&p);
    }
}

static void t_late_effect(void **state)
{
    static const enum think_early ways[] = {THINK_EARLY_YES, THINK_EARLY_NO};
    static const struct settle limits[] = {{-1, -1, -1}, {150, -1, -1}, {-1, 50, -1}, {-1, -1, 3000}};
    for (int i = 0; i < 8; i++) {
        struct play p;
        page_open(&p, ways[i % 2]);
        page.late_ms = 800;
        p.o.settle = limits[i / 2];
        played.slow_ms = 20;
        play_script(&p, CLICK(500, 500) ANSWER("Done."), NULL);
        answered(&p);
        if (saw(&p, &p.story.steps[1], 2) != (i < 2))
            fail_msg("case %d", i);
        page_close(&p);
    }
}

/* The press removes the text at once; the number changes with its return. */
static void t_emptied(void **state)
{
    static const enum think_early ways[] = {THINK_EARLY_YES, THINK_EARLY_NO};
    static const struct settle limits[] = {{-1, -1, -1}, {-1, 300, -1}};
    for (int i = 0; i < 4; i++) {
        struct play p;
        page_open(&p, ways[i % 2]);
        page.listed = true;
        page.late_ms = 700;
        p.o.settle = limits[i / 2];
        change();
        played.slow_ms = 20;
        play_script(&p, CLICK(500, 500) ANSWER("Done."), NULL);
        answered(&p);
        if (saw(&p, &p.story.steps[1], 3) != (i < 2))
            fail_msg("case %d", i);
        page_close(&p);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("a change while the model thinks cancels the turn, which leaves no trace but its counters",
          t_cancelled),
    CLAIM("an answer is given about the screen as it is", t_answer),
    CLAIM("no press meets a page that the model has not seen, if it changed more than 25 ms before",
          t_random),
    CLAIM("on a page that never rests at most two turns of a step are cancelled, and the run continues",
          t_restless),
    CLAIM("a run can be stopped in a cancelled turn, and sends no input", t_stopped),
    CLAIM("the step debugger shows only turns that stand, and rewinds over cancelled ones", t_stepped),
    CLAIM("replies from a file begin late unless the user asks for it", t_late),
    CLAIM("a press without an effect is waited for longer, unless an option says how long", t_late_effect),
    CLAIM("the return of text that a press has removed is waited for, unless an option says how long",
          t_emptied),
};

CHECK_MAIN()
