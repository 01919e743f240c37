/* t_record_merge.c - tests merging the gestures that write a text into a field, and playback that continues as soon
 * as a window looks as recorded. A person fills in a form of a real program; its output decides.
 */
#include "check.h"
#include "hands.h"

#include "base/clock.h"
#include "base/file.h"
#include "record/recording.h"
#include "screen/screen.h"
#include "trace/story.h"

#include <X11/keysym.h>
#include <signal.h>

/* Starts a form with two fields, the first with a text; it prints both. */
static void start_form(const char *log)
{
    pid_t pid = xvfb_spawn(&hands_x, log,
                           WORDS("yad", "--form", "--title=Order", "--width=400", "--field=Name",
                                 "--field=City", "Ana", "", "--separator=|"));
    assert_true(pid > 0 && xvfb_wait_window(&hands_x, "^Order"));
    clock_sleep_ms(1500);
}

static void click(int px, int py)
{
    hands_point(px, py);
    hands_pause_ms(2000); /* the name of the element is read meanwhile */
    hands_press(1, 1);
    hands_pause_ms(900);
}

/* Records a person who replaces the name, fills in the city and presses OK. */
static void record_form(const char *file, const char *log)
{
    struct outcome o = {0};
    start_form("then");
    pid_t pid = hands_record(file, WORDS(NULL));
    struct screen_rect r = hands_rect_of("Yad");
    click(r.x + r.w - 80, r.y + 20);
    hands_key(XK_a, XK_Control_L);
    hands_pause_ms(500);
    hands_words("Bo");
    hands_pause_ms(500);
    click(r.x + r.w - 80, r.y + 55);
    hands_words("Rome");
    hands_pause_ms(500);
    click(r.x + r.w - 50, r.y + r.h - 22);
    assert_true(hands_wait_for_text(log, "Bo|Rome|"));
    hands_pause_ms(500);
    kill(pid, SIGINT);
    program_finish(&hands_x, pid, &o);
    if (o.code)
        fail_msg("%s", o.err);
    outcome_free(&o);
}

/* Returns the number of settled waits that ended because the window looked as recorded. */
static int known_waits(void)
{
    char *runs = xvfb_place(&hands_x, "runs"), *dir = record_newest(runs, NULL);
    struct record r;
    struct story s;
    int n = 0;
    assert_int_equal(record_open(&r, dir, NULL), 0);
    story_make(&s, &r);
    for (int i = 0; i < s.n; i++)
        n += !strcmp(field_text(s.steps[i].observe, "settle_why"), "known");
    story_free(&s);
    record_free(&r);
    free(dir);
    free(runs);
    return n;
}

static void t_form(void **state)
{
    hands_open_with_bus();
    if (!program_exists("yad"))
        skip();
    char *file = xvfb_place(&hands_x, "order.jsonl"), *then = xvfb_place(&hands_x, "then"),
         *now = xvfb_place(&hands_x, "now");
    record_form(file, then);
    struct err e = ERR_INIT;
    struct recording *r = recording_read(file, &e);
    assert_non_null(r);
    int texts = 0, clicks = 0, keys = 0;
    for (int i = 0; i < r->n; i++) {
        const struct action *a = &r->steps[i].action;
        if (r->steps[i].has_target && !*r->steps[i].target.role) {
            check_note("the machine is too slow to read the name of each element");
            skip();
        }
        clicks += a->kind == ACT_CLICK;
        keys += a->kind == ACT_KEY;
        if (a->kind != ACT_TYPE)
            continue;
        assert_true(r->steps[i].has_target);
        assert_int_equal(a->overwrite, !texts);
        assert_string_equal(a->text, texts++ ? "Rome" : "Bo");
    }
    recording_free(r);
    assert_int_equal(texts, 2);
    assert_int_equal(keys, 0);
    assert_int_equal(clicks, 1); /* OK */

    struct outcome o = {0};
    start_form("now");
    hands_play(file, &o, WORDS(NULL));
    if (o.code)
        fail_msg("exit code %d: %s\n%s", o.code, o.out, o.err);
    assert_true(hands_wait_for_text(now, "Bo|Rome|"));
    check_note("%d waits ended at a known window", known_waits());
    assert_true(known_waits() >= 1);
    setenv("GTK_THEME", "Adwaita:dark", 1); /* nothing looks as recorded */
    unlink(now);
    start_form("now");
    hands_play(file, &o, WORDS(NULL));
    if (o.code)
        fail_msg("exit code %d: %s\n%s", o.code, o.out, o.err);
    assert_true(hands_wait_for_text(now, "Bo|Rome|"));
    assert_true(known_waits() <= 1); /* the end, at most */
    unsetenv("GTK_THEME");
    outcome_free(&o);
    free(file);
    free(then);
    free(now);
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    hands_close();
}

/* ---- which gestures are merged ------------------------------------------------------------------------ */

#define HEAD     "{\"holorun_recording\": 1, \"screen\": [640, 480]}\n"
#define KEYBOARD "\"keyboard\": {\"class\": \"Form\", \"title\": \"Order\"}}\n"
#define ON(role)                                                                                              \
    "{\"action\": {\"kind\": \"click\", \"button\": \"left\", \"count\": 1}, \"target\": {\"at\": [50, 60], " \
    "\"window\": {\"class\": \"Form\", \"title\": \"Order\", \"rect\": [0, 0, 300, 200]}, "                   \
    "\"element\": {\"name\": \"Name\", \"role\": \"" role "\"}}}\n"
#define ALL  "{\"action\": {\"kind\": \"key\", \"keys\": [\"Control_L\", \"a\"], \"count\": 1}, " KEYBOARD
#define WORD "{\"action\": {\"kind\": \"type\", \"text\": \"Bo\"}, " KEYBOARD
#define ELSEWHERE                                                                                            \
    "{\"action\": {\"kind\": \"type\", \"text\": \"Bo\"}, \"keyboard\": {\"class\": \"Dialog\", \"title\": " \
    "\"Find\"}}\n"
#define REST "{\"wait_until\": \"rest\", \"seconds\": 5}\n"

/* Gives each step a look at its window, in which a bar of 64 x 24 pixels begins at the given pixels. */
static void put_looks(struct recording *r, const int bars[][2])
{
    for (int i = 0; i < r->n; i++) {
        struct recording_look *l = &r->steps[i].look;
        l->w = 300;
        l->h = 200;
        assert_int_equal(image_alloc(&l->image, 300 / 8, 200 / 8, NULL), 0);
        memset(l->image.rgb, 255, (size_t)l->image.w * (size_t)l->image.h * 3);
        for (int y = 0; y < 3; y++)
            memset(l->image.rgb + 3 * ((bars[i][1] / 8 + y) * l->image.w + bars[i][0] / 8), 0, 3 * (64 / 8));
    }
}

/* Parses and merges a recording, whose windows have bars unless NULL, and describes its steps. */
static void expect_looks(const char *text, const int bars[][2], const char *want)
{
    struct err e = ERR_INIT;
    struct buf b;
    struct recording *r = recording_parse(text, strlen(text), "f", &e);
    if (!r)
        fail_msg("%s", e.text);
    if (bars)
        put_looks(r, bars);
    recording_merge(r);
    buf_init(&b, 1 << 16);
    for (int i = 0; i < r->n; i++) {
        buf_puts(&b, i ? "; " : "");
        if (r->steps[i].action.kind == ACT_NONE)
            buf_puts(&b, "wait");
        else
            action_describe(&r->steps[i].action, &b);
    }
    assert_string_equal(b.data, want);
    buf_free(&b);
    recording_free(r);
}

static void expect_steps(const char *text, const char *want)
{
    expect_looks(text, NULL, want);
}

static void t_merged(void **state)
{
    expect_steps(HEAD ON("entry") ALL WORD, "write \"Bo\" into \"Name\" at 50,60");
    expect_steps(HEAD ON("text") WORD WORD, "type \"Bo\" into \"Name\" at 50,60; type \"Bo\"");
    expect_steps(HEAD ON("push button") WORD, "click at 50,60; type \"Bo\"");
    expect_steps(HEAD ON("table cell") ALL WORD, "click at 50,60; press Control_L+a; type \"Bo\"");
    expect_steps(HEAD ON("entry") ELSEWHERE, "click at 50,60; type \"Bo\"");
    expect_steps(HEAD ON("entry") REST WORD, "click at 50,60; wait; type \"Bo\"");
    expect_steps(HEAD ON("entry") ALL ALL WORD,
                 "click at 50,60; press Control_L+a; press Control_L+a; type \"Bo\"");
    expect_steps(HEAD ON("entry") ALL, "click at 50,60; press Control_L+a");
}

#define ON_WHAT(at)                                                                                          \
    "{\"action\": {\"kind\": \"click\", \"button\": \"left\", \"count\": 1}, \"target\": {\"at\": " at       \
    ", \"window\": {\"class\": \"Form\", \"title\": \"Order\", \"rect\": [0, 0, 300, 200]}}}\n"

static void t_merged_by_look(void **state)
{
    static const int still[][2] = {{8, 128}, {8, 128}, {8, 128}},
                     selected[][2] = {{8, 56}, {200, 56}, {200, 56}},
                     opened[][2] = {{8, 56}, {8, 56}, {8, 128}},
                     moved[][2] = {{8, 56}, {8, 56}, {8, 56}, {8, 160}};
    (void)state;
    expect_looks(HEAD ON_WHAT("[50, 60]") ALL WORD, still, "write \"Bo\" at 50,60");
    /* without Ctrl+A the click may have opened the field */
    expect_looks(HEAD ON_WHAT("[50, 60]") WORD, still, "click at 50,60; type \"Bo\"");
    expect_looks(HEAD ON_WHAT("[50, 60]") ALL WORD, selected, "write \"Bo\" at 50,60");
    expect_looks(HEAD ON_WHAT("[50, 60]") ALL WORD, opened, "click at 50,60; press Control_L+a; type \"Bo\"");
    expect_looks(HEAD ON_WHAT("[50, 60]") ALL WORD, NULL, "click at 50,60; press Control_L+a; type \"Bo\"");
    /* the field that loses the keyboard changes, too */
    expect_looks(HEAD ON_WHAT("[50, 60]") ON_WHAT("[50, 160]") ALL WORD, moved,
                 "click at 50,60; write \"Bo\" at 50,160");
}

static const struct CMUnitTest tests[] = {
    CLAIM("a form is filled in again with one step per field, as soon as its window looks as recorded",
          t_form),
    CLAIM("only text typed into a clicked text field is merged with the click", t_merged),
    CLAIM(
        "without elements, Ctrl+A and a text are merged with the click if only the row of the field changes",
        t_merged_by_look),
};

CHECK_MAIN()
