/* t_feedback.c - tests what counts as the feedback of a pressed element, on drawn pictures (feedback.c). */
#include "check.h"

#include "screen/screen.h"

#include <string.h>

enum { W = 640, H = 480, X = 200, Y = 130, BUTTON_W = 200, BUTTON_H = 60 };

static struct image before, now;

static void fill(struct image *im, int x, int y, int w, int h, uint8_t grey)
{
    for (int i = y; i < y + h; i++)
        memset(im->rgb + 3 * (i * im->w + x), grey, 3 * (size_t)w);
}

/* Draws a button around (X, Y), with strokes in place of letters. */
static void draw_button(struct image *im, uint8_t background, uint8_t border)
{
    fill(im, X - BUTTON_W / 2, Y - BUTTON_H / 2, BUTTON_W, BUTTON_H, border);
    fill(im, X - BUTTON_W / 2 + 2, Y - BUTTON_H / 2 + 2, BUTTON_W - 4, BUTTON_H - 4, background);
    for (int i = 0; i < 6; i++)
        fill(im, X - 30 + 10 * i, Y - 8, 3, 16, 20);
}

static void draw_both(void)
{
    assert_int_equal(image_alloc(&before, W, H, NULL) || image_alloc(&now, W, H, NULL), 0);
    fill(&before, 0, 0, W, H, 250);
    draw_button(&before, 239, 120);
    memcpy(now.rgb, before.rgb, (size_t)W * H * 3);
}

static void free_both(void)
{
    image_free(&before);
    image_free(&now);
}

static void t_feedback(void **state)
{
    draw_both();
    assert_true(screen_only_feedback(&before, &now, X, Y));
    draw_button(&now, 225, 120);
    assert_true(screen_only_feedback(&before, &now, X, Y));
    draw_button(&now, 200, 40);
    assert_true(screen_only_feedback(&before, &now, X, Y));
    free_both();
}

static void t_effect(void **state)
{
    static const struct effect {
        int x, y, w, h;
    } effects[] = {
        {500, 400, 40, 20},      /* something else, far away */
        {X - 60, Y - 8, 16, 16}, /* a mark in the element */
        {X + 40, Y - 8, 1, 17},  /* a text cursor */
        {60, 60, 400, 300},      /* more than an element */
    };
    for (size_t i = 0; i < sizeof effects / sizeof *effects; i++) {
        const struct effect *f = &effects[i];
        draw_both();
        draw_button(&now, 225, 120);
        fill(&now, f->x, f->y, f->w, f->h, 20);
        if (screen_only_feedback(&before, &now, X, Y))
            fail_msg("effect %zu counts as feedback", i);
        free_both();
    }
}

static void t_other_size(void **state)
{
    draw_both();
    image_free(&now);
    assert_int_equal(image_alloc(&now, W / 2, H, NULL), 0);
    assert_false(screen_only_feedback(&before, &now, X, Y));
    free_both();
}

static const struct CMUnitTest tests[] = {
    CLAIM("another colour and border of the pressed button are its feedback", t_feedback),
    CLAIM("a change elsewhere, a mark, a text cursor or a large change is an effect", t_effect),
    CLAIM("screenshots of different sizes are not compared", t_other_size),
};

CHECK_MAIN()
