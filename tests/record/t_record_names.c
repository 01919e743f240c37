/* t_record_names.c - tests the names of pressed elements when programs answer late: descriptions and screens
 * of this test, and real dialogs whose reader or program is stopped during the press.
 */
#include "check.h"
#include "hands.h"

#include "atspi/roles.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "record/scenes.h"
#include "record/sight.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { W = 400, H = 300, ROW_H = 30, STATES = 1 << STATE_SENSITIVE | 1 << STATE_ENABLED };
enum { WINDOW = 7, DIALOG = 8 };

static const int64_t SECOND = 1000000000;

/* ---- screens ---------------------------------------------------------------------------------------- */

static void paint(struct image *im, struct screen_rect r, unsigned rgb)
{
    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++)
            for (int c = 0; c < 3; c++)
                image_at(im, x, y)[c] = (uint8_t)(rgb >> (16 - 8 * c));
}

/* Draws a text as one pattern of 5x7 pixels per character, different for each character. */
static void write_text(struct image *im, const char *text, int x, int y, unsigned rgb)
{
    for (; *text; text++, x += 7) {
        uint64_t bits = (uint64_t)(unsigned char)*text * UINT64_C(0x9e3779b97f4a7c15);
        for (int i = 0; i < 35; i++)
            if (bits >> (i + 16) & 1)
                paint(im, (struct screen_rect){x + i % 5, y + i / 5, 1, 1}, rgb);
    }
}

/* Returns a screen with a text in each row of 30 pixels. hover: row with the colours of a highlight. */
static struct image screen_of(const char *const *texts, int n, int hover)
{
    struct image im = {0};
    assert_int_equal(image_alloc(&im, W, H, NULL), 0);
    paint(&im, (struct screen_rect){0, 0, W, H}, 0xf6f5f4);
    for (int i = 0; i < n; i++) {
        if (i == hover)
            paint(&im, (struct screen_rect){0, i * ROW_H, W, ROW_H}, 0x308cc6);
        write_text(&im, texts[i], 20, i * ROW_H + 11, i == hover ? 0xffffff : 0x2e3436);
    }
    return im;
}

/* ---- descriptions ----------------------------------------------------------------------------------- */

/* Adds a scene whose window has one element per row. role: of each. */
static void add(struct scenes *q, const char *role, const char *const *names, int n, uint32_t ref,
                struct image screen, double asked, double read)
{
    struct scene c = {.screen = screen, .x = 0, .y = 0};
    c.asked = (int64_t)(asked * (double)SECOND);
    c.s = (struct snapshot){.hit = -1, .window = WINDOW, .read = (int64_t)(read * (double)SECOND)};
    c.s.e = xcalloc((size_t)n + 1, sizeof *c.s.e);
    c.s.n = n + 1;
    for (int i = -1; i < n; i++)
        c.s.e[i + 1] = (struct element){.ref = i < 0 ? 1 : ref + (uint32_t)i,
                                        .role = i < 0 ? "frame" : role,
                                        .name = i < 0 ? "Guests" : names[i],
                                        .value = "",
                                        .label = "",
                                        .states = STATES,
                                        .rect = {0, i < 0 ? 0 : i * ROW_H, W, i < 0 ? H : ROW_H},
                                        .parent = i < 0 ? -1 : 0,
                                        .depth = i >= 0,
                                        .window = WINDOW};
    scenes_add(q, &c);
}

/* Returns the name of a press in row `row` after 1 s, "": none, "?": still wanted. now: 1 to 3 s. */
static const char *name_of(const struct scenes *q, int row, const struct image *before,
                           const struct image *now, double now_at)
{
    static struct recording_target t;
    struct press p = {true, 30, row * ROW_H + 15, WINDOW, {0, 0, W, H}, SECOND};
    t = (struct recording_target){.x = p.x, .y = p.y};
    scenes_name(q, &p, before, now, (int64_t)(now_at * (double)SECOND), &t);
    return p.unnamed ? "?" : t.name;
}

static const char *const guests[] = {"Ana", "Bo", "Cy", "Item 1"}, *const fewer[] = {"Bo", "Cy", "Item 1"},
                         *const other[] = {"Ana", "Bo", "Cy", "Item 2"},
                         *const removes[] = {"Remove", "Remove"};

/* The pointer highlights the row between the description and the press. */
static void t_earlier(void **state)
{
    struct scenes q = {0};
    struct image before = screen_of(guests, 4, 3), changed = screen_of(other, 4, 3);
    add(&q, "menu item", guests, 4, 10, screen_of(guests, 4, -1), 0.2, 0.4);
    assert_string_equal(name_of(&q, 3, &before, &before, 1), "Item 1");
    assert_string_equal(name_of(&q, 3, &changed, &changed, 1),
                        "?"); /* "Item 2" was drawn after the reading */
    assert_string_equal(name_of(&q, 1, &changed, &changed, 1), "Bo");
    scenes_free(&q);
    image_free(&before);
    image_free(&changed);
}

/* A press removes the first row while its program is read: the rows below move up. */
static void t_removed(void **state)
{
    struct image before = screen_of(guests, 4, -1), after = screen_of(fewer, 3, -1);
    static const char *const roles[] = {"table cell", "push button"};
    for (int i = 0; i < 2; i++) {
        struct scenes q = {0};
        add(&q, roles[i], fewer, 3, 11, screen_of(guests, 4, -1), 0.9, 1.1);
        assert_string_equal(name_of(&q, 0, &before, &before, 1.05), "?"); /* not drawn yet */
        assert_string_equal(name_of(&q, 0, &before, &after, 1.6), "?");
        add(&q, roles[i], fewer, 3, 11, screen_of(fewer, 3, -1), 1.2, 1.3);
        assert_string_equal(name_of(&q, 0, &before, &after, 1.7), ""); /* nothing can be learned any more */
        scenes_free(&q);
    }
    image_free(&before);
    image_free(&after);
}

/* The answer to the question that was open at the press describes what the press changed; the one before it
 * describes the pressed element. */
static void t_overtaken(void **state)
{
    struct scenes q = {0};
    struct image before = screen_of(guests, 4, 0), after = screen_of(fewer, 3, 0);
    add(&q, "list item", guests, 4, 10, screen_of(guests, 4, 0), 0.5, 0.6);
    add(&q, "list item", fewer, 3, 11, screen_of(guests, 4, 0), 0.9, 1.2);
    assert_string_equal(name_of(&q, 0, &before, &after, 1.6), "Ana");
    scenes_free(&q);
    image_free(&before);
    image_free(&after);
}

/* A program that describes its window only after the press. */
static void t_later(void **state)
{
    struct scenes q = {0};
    struct image before = screen_of(guests, 4, 3), pressed = screen_of(guests, 4, 3);
    add(&q, "push button", guests, 4, 10, screen_of(guests, 4, 3), 0.9, 1.3);
    assert_string_equal(name_of(&q, 3, &before, &pressed, 1.4), "?");
    assert_string_equal(name_of(&q, 3, &before, &pressed, 1.7), "Item 1");
    scenes_free(&q);
    image_free(&before);
    image_free(&pressed);
}

/* The press changed how its element looks; the program describes the same object before and after. */
static void t_confirmed(void **state)
{
    struct image before = screen_of(guests, 4, -1), after = screen_of(other, 4, -1);
    for (uint32_t ref = 10; ref < 12; ref++) {
        struct scenes q = {0};
        add(&q, "push button", guests, 4, 10, screen_of(other, 4, -1), 0.2, 0.4);
        assert_string_equal(name_of(&q, 3, &before, &after, 1), "?");
        add(&q, "push button", guests, 4, ref, screen_of(other, 4, -1), 1.1, 1.2);
        assert_string_equal(name_of(&q, 3, &before, &after, 1.6), ref == 10 ? "Item 1" : "");
        scenes_free(&q);
    }
    image_free(&before);
    image_free(&after);
}

/* Equal buttons differ only by their rows, so the text beside them counts, too. */
static void t_equal(void **state)
{
    struct image before = screen_of((const char *const[]){"Remove Bo", "Remove Cy"}, 2, -1);
    for (int same = 0; same < 2; same++) {
        struct scenes q = {0};
        const char *const texts[] = {same ? "Remove Bo" : "Remove Ana", "Remove Cy"};
        add(&q, "push button", removes, 2, 10, screen_of(texts, 2, -1), 0.2, 0.4);
        for (int i = 1; i <= 2; i++)
            q.list[0].s.e[i].rect.w = 70; /* without the name beside it */
        assert_string_equal(name_of(&q, 0, &before, &before, 1), same ? "Remove" : "?");
        scenes_free(&q);
    }
    image_free(&before);
}

/* A press whose window may have closed before it was requested: it is named only if a text at its place was
 * there when the element was described. */
static void t_unknown_window(void **state)
{
    static const char *const roles[] = {"menu item", "text"};
    for (int i = 0; i < 2; i++) {
        struct scenes q = {0};
        int hover = i == 0 ? 3 : -1; /* fields are not highlighted */
        struct image before[2] = {screen_of(guests, 4, hover), screen_of(other, 4, hover)};
        add(&q, roles[i], guests, 4, 10, screen_of(guests, 4, -1), 0.2, 0.4);
        for (int k = 1; k <= 4 && i == 0; k++)
            q.list[0].s.e[k].window = DIALOG; /* drawn in a popup */
        for (int changed = 0; changed < 2; changed++) {
            struct press p = {true, 30, 3 * ROW_H + 15, 0, {0, 0, W, H}, SECOND};
            struct recording_target t = {.x = p.x, .y = p.y};
            scenes_name(&q, &p, &before[changed], &before[changed], SECOND, &t);
            assert_false(p.unnamed);
            assert_string_equal(t.name, changed ? "" : "Item 1");
            image_free(&before[changed]);
        }
        scenes_free(&q);
    }
}

/* ---- real dialogs ----------------------------------------------------------------------------------- */

/* Returns the process of a recorder that reads programs. */
static pid_t reader_of(pid_t recorder)
{
    char *path = xasprintf("/proc/%d/task/%d/children", recorder, recorder), text[64] = "";
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    fclose(f);
    free(path);
    return atoi(text);
}

static struct screen_rect ask(const char *log, const char *script)
{
    assert_true(xvfb_spawn(&hands_x, log, WORDS("sh", "-c", script)) > 0);
    assert_true(xvfb_wait_window(&hands_x, "^Letter"));
    clock_sleep_ms(1500);
    return hands_rect_of("Zenity");
}

static void end_recording(pid_t recorder)
{
    struct outcome o = {0};
    kill(recorder, SIGINT);
    program_finish(&hands_x, recorder, &o);
    if (o.code)
        fail_msg("%s", o.err);
    outcome_free(&o);
}

/* Presses Save while a process is stopped: from before the pointer moves there until 300 ms after. */
static void press_stopped(struct screen_rect r, pid_t stopped)
{
    kill(stopped, SIGSTOP);
    hands_point(r.x + r.w - 60, r.y + r.h - 26);
    hands_press(1, 1);
    kill(stopped, SIGCONT);
}

static const char SAVED[] = "\"name\": \"Save\", \"role\": \"push button\"";

static void t_stopped(void **state)
{
    static const char script[] =
        "echo $$; exec zenity --question --title=Letter --text=Keep? --ok-label=Save "
        "--cancel-label=Discard --width=300";
    hands_open_with_bus();
    for (int program = 0; program < 2; program++) {
        char *file = xvfb_place(&hands_x, program ? "program.jsonl" : "reader.jsonl"),
             *log = xvfb_place(&hands_x, program ? "program" : "reader");
        struct screen_rect r = ask(program ? "program" : "reader", script);
        pid_t recorder = hands_record(file, WORDS(NULL));
        hands_point(r.x + r.w / 2, r.y + 20);
        hands_pause_ms(1200);
        char *pid = hands_text_of(log);
        press_stopped(r, program ? atoi(pid) : reader_of(recorder));
        hands_pause_ms(1500);
        end_recording(recorder);
        assert_true(hands_file_has(file, SAVED));
        free(pid);
        free(file);
        free(log);
    }
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    hands_close();
}

/* The reader works only when another dialog is at the same place. */
static void t_replaced(void **state)
{
    static const char script[] =
        "ask() { zenity --question --title=\"$1\" --text=Keep? --ok-label=\"$2\" --cancel-label=No --width=300; }\n"
        "ask Letter Save; ask Second Erase";
    hands_open_with_bus();
    char *file = xvfb_place(&hands_x, "letter.jsonl");
    pid_t recorder = hands_record(file, WORDS(NULL)), reader = reader_of(recorder);
    kill(reader, SIGSTOP);
    struct screen_rect r = ask("log", script);
    hands_point(r.x + r.w - 60, r.y + r.h - 26);
    hands_press(1, 1);
    assert_true(xvfb_wait_window(&hands_x, "^Second"));
    struct screen_rect later = hands_rect_of("Zenity");
    check_note("the dialogs are at %d,%d and %d,%d", r.x, r.y, later.x, later.y);
    assert_true(later.x == r.x && later.y == r.y && later.w == r.w && later.h == r.h);
    kill(reader, SIGCONT);
    hands_pause_ms(2500);
    end_recording(recorder);
    assert_true(hands_file_has(file, "\"kind\": \"click\""));
    assert_false(hands_file_has(file, "Erase"));
    free(file);
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    hands_close();
}

static const struct CMUnitTest tests[] = {
    CLAIM("an earlier description names an element that looks the same up to its colours", t_earlier),
    CLAIM("a row that moved up when another was removed does not give its name", t_removed),
    CLAIM("an answer that a press overtakes does not replace the one before it", t_overtaken),
    CLAIM("a description that is read after the press counts when nothing has changed since", t_later),
    CLAIM("an object that is described equally before and after the press gives its name", t_confirmed),
    CLAIM("among equal buttons a changed row gives no name", t_equal),
    CLAIM("a press in an unknown window is named only by a text that was there", t_unknown_window),
    CLAIM("a button is named although its program or the reader is stopped during the press", t_stopped),
    CLAIM("a button is not named after one that replaces it", t_replaced),
};

CHECK_MAIN()
