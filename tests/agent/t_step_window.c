/* t_step_window.c - a whole run in which the user decides every step in the step window, with keys and mouse.
 *
 * The program is started normally; its replies are scripted, and a second connection to the display sends
 * the user's input.  The tests check the events that the client receives and the run directory.
 */
#include "check.h"

#include "base/clock.h"
#include "base/file.h"
#include "driven.h"
#include "person.h"
#include "step/scene.h"
#include "trace/story.h"

#include <X11/Xutil.h>
#include <dirent.h>
#include <unistd.h>

struct show {
    struct stage stage;
    pid_t pid;
    struct outcome o;
    int questions;
    struct record record;
    struct story story;
};

/* view: the part of the display that the run uses. */
static void show_start(struct show *s, const char *replies, const char *view)
{
    if (xvfb_window_manager(&s->stage.x)) {
        stage_close(&s->stage);
        skip();
    }
    char *fake = xvfb_put(&s->stage.x, "replies", replies), *runs = xvfb_place(&s->stage.x, "runs");
    s->pid =
        program_start(&s->stage.x, WORDS("step", "Press Save", "--step=window", "--fake", fake, "--runs",
                                         runs, "--settle-quiet", "30", "--confirm", "never", "--view", view));
    free(fake);
    free(runs);
}

static void show_open(struct show *s, const char *replies)
{
    memset(s, 0, sizeof *s);
    driven_open(&s->stage);
    show_start(s, replies, "all");
}

/* Starts a run with free space beside the viewed window, so that the step window stays open. */
static void show_open_beside(struct show *s, const char *replies)
{
    char view[40];
    memset(s, 0, sizeof *s);
    stage_open_sized(&s->stage, "1500x640x24");
    screen_close(s->stage.s); /* the program controls the input */
    s->stage.s = NULL;
    snprintf(view, sizeof view, "window:0x%lx", person_window(s->stage.other, "xclient"));
    show_start(s, replies, view);
}

/* Waits for the question about step `number` and sends this input to the window; the last of it must be a
 * command. */
static void at_step(struct show *s, int number, const struct deed *deeds, int n)
{
    char title[32];
    int x, y;
    snprintf(title, sizeof title, "holorun step %d #%d", number, ++s->questions);
    if (!person_is_asked(s->stage.other, title, &x, &y)) {
        program_finish(&s->stage.x, s->pid, &s->o);
        fail_msg("window '%s' not found: %s", title, s->o.err);
    }
    for (int i = 0; i < n; i++)
        person_does(s->stage.other, x, y, &deeds[i]);
}

#define AT_STEP(s, number, ...)                                                                              \
    at_step(s, number, (const struct deed[]){__VA_ARGS__},                                                   \
            sizeof((const struct deed[]){__VA_ARGS__}) / sizeof(struct deed))

/* Closes the window that shows the result, by pressing Enter in it. */
static void dismiss(struct show *s)
{
    int x, y;
    struct deed enter = KEY(XK_Return);
    if (!person_is_asked(s->stage.other, "holorun step: the run has ended", &x, &y)) {
        program_finish(&s->stage.x, s->pid, &s->o);
        fail_msg("the window did not show the result: %s", s->o.err);
    }
    clock_sleep_ms(800); /* the window ignores keys at first, as they may belong to the last step */
    person_does(s->stage.other, x, y, &enter);
}

static void show_end(struct show *s, int code)
{
    program_finish(&s->stage.x, s->pid, &s->o);
    if (s->o.code != code)
        fail_msg("ended with %d: %s", s->o.code, s->o.err);
    char *runs = xvfb_place(&s->stage.x, "runs"), *dir = record_newest(runs, NULL);
    assert_non_null(dir);
    must(record_open(&s->record, dir, &why));
    story_make(&s->story, &s->record);
    free(dir);
    free(runs);
}

static void show_close(struct show *s)
{
    story_free(&s->story);
    record_free(&s->record);
    outcome_free(&s->o);
    stage_close(&s->stage);
}

/* Returns the i-th recorded event of the user. */
static const json_t *human(const struct show *s, int i)
{
    for (int k = 0; k < s->record.n; k++)
        if (!strcmp(s->record.events[k].kind, "human") && i-- == 0)
            return s->record.events[k].fields;
    fail_msg("the record has less than %d events of the user", i);
    return NULL;
}

static bool said(const struct show *s, const char *key, const char *text)
{
    for (int k = 0; k < s->record.n; k++)
        if (strstr(field_text(s->record.events[k].fields, key), text))
            return true;
    return false;
}

static void t_verbs(void **state)
{
    struct show s;
    show_open(&s, CLICK(500, 500) TYPE("no") CLICK(250, 250) CLICK(600, 600) CLICK(300, 300) CLICK(700, 700)
                      ANSWER("Done."));
    AT_STEP(&s, 1, KEY('e'), KEY(XK_Return)); /* the same text again: not a change */
    AT_STEP(&s, 1, KEY(XK_Return));
    AT_STEP(&s, 2, KEY('t'), KEY(XK_BackSpace), KEY(XK_BackSpace), TEXT("yes"), KEY(XK_Return));
    AT_STEP(&s, 2, KEY(XK_Return));
    AT_STEP(&s, 3, KEY('v'), TEXT("the wrong one"), KEY(XK_Return));
    AT_STEP(&s, 4, KEY('r'), KEY(XK_BackSpace), TEXT("3"), KEY(XK_Return));
    AT_STEP(&s, 5, KEY('b'), TEXT("answer"), KEY(XK_Return));
    AT_STEP(&s, 5, KEY('c'));
    AT_STEP(&s, 7, KEY('s'));
    show_end(&s, ERR_STOPPED);
    json_t *clicks = stage_events(&s.stage, "button_press");
    assert_int_equal(json_array_size(clicks),
                     3); /* steps 1, 5, 6: the vetoed and the abandoned step were not executed */
    assert_int_equal(field(clicks, 0, "x"), 400);
    assert_int_equal(field(clicks, 1, "x"), 240);
    assert_int_equal(field(clicks, 2, "x"), 560);
    json_t *keys = stage_events(&s.stage, "key_press");
    char typed[8] = "";
    for (size_t i = 0; i < json_array_size(keys); i++)
        strncat(typed, word(keys, i, "text"), 1);
    assert_string_equal(typed, "yes");
    assert_true(said(&s, "lead", "the wrong one")); /* the model reads the reason */
    assert_string_equal(field_text(human(&s, 0), "what"), "edit");
    show_close(&s);
}

static void t_fork(void **state)
{
    struct show s;
    show_open(&s, CLICK(500, 500) CLICK(250, 250) CLICK(600, 600) CLICK(300, 300) ANSWER("Done."));
    AT_STEP(&s, 1, KEY('f'), KEY(XK_BackSpace), TEXT("2"), KEY(XK_Return));
    AT_STEP(&s, 1, KEY('2'));
    AT_STEP(&s, 1, KEY(XK_Return));
    AT_STEP(&s, 2, KEY('s'));
    show_end(&s, ERR_STOPPED);
    json_t *clicks = stage_events(&s.stage, "button_press");
    assert_int_equal(json_array_size(clicks), 1);
    assert_int_not_equal(field(clicks, 0, "x"), 400); /* another reply than the first */
    show_close(&s);
}

/* Converts a position on the screen to one in the step window, with a scene of the same size. */
static void over_frame(struct show *s, double fx, double fy, struct deed *d)
{
    struct scene scene;
    int x, y;
    unsigned w, h, border, depth;
    Window root, at = person_window(s->stage.other, "holorun step");
    XGetGeometry(s->stage.other, at, &root, &x, &y, &w, &h, &border, &depth);
    scene_init(&scene, (int)w, (int)h);
    scene.frame_w = 800;
    scene.frame_h = 600;
    const struct scene_layout l = scene_layout(&scene);
    d->x = l.frame.x + (fx + 0.5) * l.fit;
    d->y = l.frame.y + (fy + 0.5) * l.fit;
}

static void t_mouse(void **state)
{
    struct show s;
    struct deed drag[] = {AT(G_PRESS, 0, 0), AT(G_MOVE, 0, 0), AT(G_RELEASE, 0, 0)}, aim = AT(G_AIM, 0, 0);
    show_open(&s, CLICK(500, 500) CLICK(250, 250) ANSWER("Done."));
    assert_true(person_window(s.stage.other, "holorun step 1") != None);
    over_frame(&s, 400, 300, &drag[0]); /* the original target */
    over_frame(&s, 300, 250, &drag[1]);
    over_frame(&s, 200, 150, &drag[2]);
    at_step(&s, 1, drag, 3);
    AT_STEP(&s, 1, KEY(XK_Return));
    assert_true(person_window(s.stage.other, "holorun step 2") != None);
    over_frame(&s, 500, 400, &aim);
    at_step(&s, 2, &aim, 1);
    AT_STEP(&s, 2, KEY(XK_Return));
    AT_STEP(&s, 3, KEY('s'));
    show_end(&s, ERR_STOPPED);
    json_t *clicks = stage_events(&s.stage, "button_press");
    assert_int_equal(json_array_size(clicks), 2);
    /* a pixel of the window is up to three of the screenshot */
    assert_in_range(field(clicks, 0, "x"), 197, 203);
    assert_in_range(field(clicks, 0, "y"), 147, 153);
    assert_in_range(field(clicks, 1, "x"), 497, 503);
    assert_in_range(field(clicks, 1, "y"), 397, 403);
    show_close(&s);
}

/* The policy asks about the word "Send"; only the user at the step window can confirm. */
static void t_seen(void **state)
{
    struct show s;
    show_open(&s, CLICK_ON("Send", 500, 500) CLICK_ON("Send", 250, 250) ANSWER("Done."));
    AT_STEP(&s, 1, KEY(XK_Return));
    AT_STEP(&s, 2, KEY('c')); /* runs this step too; the answer that follows is not shown */
    dismiss(&s);
    show_end(&s, 0);
    json_t *clicks = stage_events(&s.stage, "button_press");
    assert_int_equal(json_array_size(clicks), 2);
    assert_true(said(&s, "who", "stepper"));
    show_close(&s);
}

/* Enter always goes to the step window, although the click moved the focus to another window; typed text,
 * an "s" too, goes to that window. */
static void t_beside(void **state)
{
    struct show s;
    char typed[16] = "";
    show_open_beside(&s, CLICK(500, 500) TYPE("as is") ANSWER("Done."));
    for (int step = 1; step <= 3; step++)
        AT_STEP(&s, step, KEY(XK_Return));
    dismiss(&s);
    show_end(&s, 0);
    json_t *keys = stage_events(&s.stage, "key_press");
    for (size_t i = 0; i < json_array_size(keys); i++)
        strncat(typed, word(keys, i, "text"), 1);
    assert_string_equal(typed, "as is");
    show_close(&s);
}

/* The user presses Enter once more than there are steps, and again to close the result. */
static void t_last(void **state)
{
    struct show s;
    struct deed enter = KEY(XK_Return);
    int x, y;
    show_open_beside(&s, CLICK(500, 500) ANSWER("Done."));
    AT_STEP(&s, 1, KEY(XK_Return));
    AT_STEP(&s, 2, KEY(XK_Return));
    assert_true(person_is_asked(s.stage.other, "holorun step: the run has ended", &x, &y));
    person_does(s.stage.other, x, y, &enter);
    dismiss(&s); /* the window is still open */
    show_end(&s, 0);
    assert_int_equal(json_array_size(stage_events(&s.stage, "key_press")), 0);
    assert_int_equal(json_array_size(stage_events(&s.stage, "key_release")), 0);
    XClassHint hint = {0};
    Window focused = None;
    int revert;
    XGetInputFocus(s.stage.other, &focused, &revert);
    assert_true(focused != None && XGetClassHint(s.stage.other, focused, &hint));
    assert_string_equal(hint.res_name, "xclient"); /* the focus is back */
    XFree(hint.res_name);
    XFree(hint.res_class);
    show_close(&s);
}

static void t_nowhere(void **state)
{
    struct stage t;
    struct outcome o = {0};
    driven_open(&t);
    program_run(&t.x, &o, WORDS("step", "Press Save", "--ui-display", ":987", "--fake", "/dev/null"));
    ONE_LINE(&o, ERR_ENV, "cannot open the step window on display ':987'");
    outcome_free(&o);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the window shows the result until a key is pressed in it, and no key reaches the program", t_last),
    CLAIM("a missing display for the window is refused with its name", t_nowhere),
    CLAIM("beside the viewed window, the step window has the keyboard only while it asks", t_beside),
    CLAIM("edit, run, veto, rewind, break, continue and stop in the window work", t_verbs),
    CLAIM("clicks arrive at targets that were moved with the mouse", t_mouse),
    CLAIM("a step that the user runs in the window is not confirmed again", t_seen),
    CLAIM("of several replies the one selected in the window is executed", t_fork),
};

CHECK_MAIN()
