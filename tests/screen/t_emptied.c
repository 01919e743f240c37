/* t_emptied.c - tests which reactions to an action look unfinished (emptied.c): an X server draws the screen
 * before and after, with its own font. */
#include "canvas.h"
#include "check.h"

#include "screen/emptied.h"
#include "screen/observed.h"

#include <string.h>

enum { LINES = 12, LINE_H = 18, X = 40, Y = 200, WIDE = 400 };

static struct canvas canvas;
static struct screen *screen;
static struct emptied *memory;

static void block(int x, int y, int w, int h, unsigned long colour)
{
    XSetForeground(canvas.other, canvas.gc, colour);
    XFillRectangle(canvas.other, canvas.root, canvas.gc, x, y, (unsigned)w, (unsigned)h);
}

static void line(int x, int y, const char *text)
{
    XSetForeground(canvas.other, canvas.gc, 0x202020);
    XDrawString(canvas.other, canvas.root, canvas.gc, x, y + 12, text, (int)strlen(text));
}

static void lines(const char *word, int n)
{
    char text[64];
    for (int i = 0; i < n; i++) {
        snprintf(text, sizeof text, "%s message %d: the invoice of %d March is paid", word, i, i + 3);
        line(X, Y + i * LINE_H, text);
    }
}

/* A header, and a button with a frame. */
static void page(void)
{
    block(0, 0, 640, 480, 0xffffff);
    line(X, 20, "Messages of Ana Lima");
    block(X, 100, 120, 30, 0x606060);
    block(X + 1, 101, 118, 28, 0xe0e0e0);
    line(X + 40, 108, "Start");
}

static void list(void)
{
    page();
    lines("old", LINES);
}

/* ---- unfinished -------------------------------------------------------------------------------------- */

static void grey_rows(void)
{
    page();
    for (int i = 0; i < LINES; i++)
        block(X, Y + i * LINE_H, WIDE - i % 3 * 60, 12, 0xcccccc);
}

static void cards(void)
{
    page();
    XSetForeground(canvas.other, canvas.gc, 0xe8e8e8);
    for (int i = 0; i < 6; i++) {
        int x = X + i % 3 * 140, y = Y + i / 3 * 110;
        XFillArc(canvas.other, canvas.root, canvas.gc, x, y, 40, 40, 0, 360 * 64);
        XFillRectangle(canvas.other, canvas.root, canvas.gc, x + 50, y + 10, 70, 12);
        XFillRectangle(canvas.other, canvas.root, canvas.gc, x, y + 50, 120, 40);
    }
}

static void loading(void)
{
    page();
    line(X, Y, "Loading");
}

static void grid(void)
{
    for (int i = 0; i <= LINES; i++)
        block(X - 4, Y + i * LINE_H - 3, WIDE, 1, 0x808080);
    for (int i = 0; i < 4; i++)
        block(X - 4 + i * WIDE / 3, Y - 3, 1, LINES * LINE_H, 0x808080);
}

static void full_table(void)
{
    list();
    grid();
}

static void empty_table(void)
{
    page();
    grid();
}

static void feedback(void)
{
    page();
    block(X, 100, 120, 30, 0x3060c0);
    block(X + 2, 102, 116, 26, 0xc8c8c8);
    line(X + 40, 108, "Start");
}

/* ---- finished ---------------------------------------------------------------------------------------- */

static void other_list(void)
{
    page();
    lines("new", LINES);
}

static void three_fewer(void)
{
    page();
    lines("old", LINES - 3);
}

static void confirmation(void)
{
    page();
    lines("Booked, thank you very much. Your", 2);
}

static void one_line(void)
{
    page();
    lines("A field with", 1);
}

static void two_lines(void)
{
    page();
    lines("A field with", 2);
}

static const struct reaction {
    const char *name;
    void (*before)(void), (*now)(void);
    bool emptied;
} reactions[] = {
    {"grey rows", list, grey_rows, true},
    {"round pictures, lines and cards", list, cards, true},
    {"nothing", list, page, true},
    {"one short word", list, loading, true},
    {"rows of a table without their texts", full_table, empty_table, true},
    {"nothing, beside a button that looks pressed", list, feedback, true},
    {"three rows deleted from the end", list, three_fewer, false},
    {"another text", list, other_list, false},
    {"a message of two lines", list, confirmation, false},
    {"a field of one line cleared", one_line, page, false},
    {"two lines cleared", two_lines, page, false},
    {"text in place of placeholders", grey_rows, other_list, false},
    {"placeholders gone", grey_rows, page, false},
    {"a pressed button", list, list, false},
};

/* ---- claims ------------------------------------------------------------------------------------------ */

static void begin(void)
{
    canvas_open(&canvas, "640x480x24", NULL);
    screen = canvas_view(NULL, false, false);
    memory = emptied_new();
}

static void end(void)
{
    emptied_free(memory);
    screen_close(screen);
    canvas_close(&canvas);
}

static struct image shot(void (*draw)(void))
{
    struct image im = {0};
    draw();
    XSync(canvas.other, False);
    assert_int_equal(screen_capture(screen, &im, NULL), 0);
    return im;
}

static bool emptied(void (*before)(void), void (*now)(void))
{
    struct image a = shot(before), b = shot(now);
    bool is = emptied_since(memory, screen, &a, &b);
    image_free(&a);
    image_free(&b);
    return is;
}

static void note(void (*shown)(void))
{
    struct image im = shot(shown);
    emptied_note_shown(memory, &im);
    image_free(&im);
}

static void t_reactions(void **state)
{
    begin();
    for (size_t i = 0; i < sizeof reactions / sizeof *reactions; i++)
        if (emptied(reactions[i].before, reactions[i].now) != reactions[i].emptied)
            fail_msg("%s: %s", reactions[i].name, reactions[i].emptied ? "not noticed" : "taken for empty");
    end();
}

/* A dialog drawn by the page itself, over the first lines of a short list and blank space. */
static void short_list(void)
{
    page();
    lines("old", 4);
}

static void dialog(void)
{
    short_list();
    block(X - 10, Y + 20, 430, 230, 0x404040);
    block(X - 9, Y + 21, 428, 228, 0xf4f4f4);
    for (int i = 0; i < 10; i++)
        line(X, Y + 30 + i * LINE_H, "Delete this message and all of its attachments?");
}

static void t_restored(void **state)
{
    begin();
    assert_true(emptied(dialog, page));
    note(short_list);
    for (int i = 1; i < EMPTIED_PAST; i++)
        note(dialog);
    assert_false(emptied(dialog, short_list));
    note(dialog); /* now the list is forgotten */
    note(page);
    assert_true(emptied(dialog, page)); /* blank cells alone: a list is blank before each search */
    end();
}

static void t_closed(void **state)
{
    static const char *const titles[] = {"still there", "closed"};
    for (int i = 0; i < 2; i++) {
        struct image before = {0}, now = {0};
        begin();
        page();
        XSetWindowAttributes a = {.override_redirect = True, .background_pixel = 0xffffff};
        Window w = XCreateWindow(canvas.other, canvas.root, X, Y, WIDE, 240, 0, CopyFromParent, InputOutput,
                                 NULL, CWOverrideRedirect | CWBackPixel, &a);
        XMapRaised(canvas.other, w);
        for (int k = 0; k < LINES; k++)
            XDrawString(canvas.other, w, canvas.gc, 4, 14 + k * LINE_H,
                        "A dialog with a question and its reasons", 40);
        XSync(canvas.other, False);
        assert_int_equal(screen_capture(screen, &before, NULL), 0);
        observed_take(screen, &before);
        emptied_note_windows(memory, screen);
        if (i == 0)
            XClearWindow(canvas.other, w);
        else
            XUnmapWindow(canvas.other, w);
        if (i == 1)
            page();
        XSync(canvas.other, False);
        assert_int_equal(screen_capture(screen, &now, NULL), 0);
        if (emptied_since(memory, screen, &before, &now) != (i == 0))
            fail_msg("the window is %s", titles[i]);
        image_free(&before);
        image_free(&now);
        end();
    }
}

static void t_other_size(void **state)
{
    begin();
    struct image a = shot(list), b = shot(page), half = {0};
    assert_int_equal(image_crop(&half, &b, 0, 0, 640, 240, NULL), 0);
    assert_false(emptied_since(memory, screen, &a, &half));
    emptied_note_shown(memory, &half);
    assert_true(emptied_since(memory, screen, &a, &b));
    image_free(&a);
    image_free(&b);
    image_free(&half);
    end();
}

static const struct CMUnitTest tests[] = {
    CLAIM("placeholders and blank space in place of content look unfinished, other content does not",
          t_reactions),
    CLAIM(
        "a dialog that closes over content of an earlier screenshot is finished, but blank space alone is not",
        t_restored),
    CLAIM("a window that has emptied looks unfinished, one that has closed does not", t_closed),
    CLAIM("screenshots of different sizes are not compared", t_other_size),
};

CHECK_MAIN()
