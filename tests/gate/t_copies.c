/* t_copies.c - tests of finding the text of a typed secret elsewhere on the screen: on the next line, in
 * bold, inverted, in another colour; other text must not match.
 */
#include "check.h"

#include "gate/copies.h"

#include <pango/pangocairo.h>

enum { W = 700, H = 700, LEFT = 40 };

static const char *const secrets[] = {"Kx7pw-3qZ",   "hunter2 and more", "mmMMmmMM1",  "correct horse",
                                      "Tr0ub4dor&3", "P@ssw0rd!",        "geheim Wort"};
static const char *const fonts[] = {"DejaVu Sans 10", "DejaVu Sans 12", "DejaVu Sans Mono 10",
                                    "DejaVu Serif 11", "Liberation Sans 11"};
static const char *const others[] = {"The quick brown fox jumps over the lazy dog, 0123456789.",
                                     "Name: Ana Lima, City: Rome, Date: 12 May",
                                     "KX7PW-3qz hunters and mare",
                                     "mmmm MMMM mmMM corner house",
                                     "Order 4711: 0123456789 pieces",
                                     "import os, sys; print(open(path).read())",
                                     "Administrator: Windows 95 manual, Hamburg, Mississippi",
                                     "int main(void) { return 0; } /* hunter */"};

enum weight { PLAIN, TWICE, BOLD }; /* TWICE: drawn again one pixel to the right, as some terminals do */

struct page {
    cairo_surface_t *surface;
    cairo_t *c;
};

static void page_open(struct page *p)
{
    p->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, W, H);
    p->c = cairo_create(p->surface);
    cairo_set_source_rgb(p->c, 1, 1, 1);
    cairo_paint(p->c);
}

/* Draws a line of text and returns its height. */
static int put(const struct page *p, int y, const char *font, enum weight bold, double ground, double ink,
               const char *text)
{
    PangoLayout *l = pango_cairo_create_layout(p->c);
    PangoFontDescription *d = pango_font_description_from_string(font);
    int w, h;
    if (bold == BOLD)
        pango_font_description_set_weight(d, PANGO_WEIGHT_BOLD);
    pango_layout_set_font_description(l, d);
    pango_layout_set_text(l, text, -1);
    pango_layout_get_pixel_size(l, &w, &h);
    cairo_set_source_rgb(p->c, ground, ground, ground);
    cairo_rectangle(p->c, LEFT - 4, y, w + 8, h);
    cairo_fill(p->c);
    cairo_set_source_rgb(p->c, ink, ink, ink);
    cairo_move_to(p->c, LEFT, y);
    pango_cairo_show_layout(p->c, l);
    cairo_move_to(p->c, LEFT + 1, y);
    if (bold == TWICE)
        pango_cairo_show_layout(p->c, l);
    pango_font_description_free(d);
    g_object_unref(l);
    return h;
}

static void picture(const struct page *p, struct image *im)
{
    cairo_surface_flush(p->surface);
    const uint8_t *from = cairo_image_surface_get_data(p->surface);
    int stride = cairo_image_surface_get_stride(p->surface);
    assert_int_equal(image_alloc(im, W, H, NULL), 0);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < 3; c++)
                im->rgb[3 * (y * W + x) + c] = from[y * stride + 4 * x + 2 - c];
}

static void page_close(struct page *p)
{
    cairo_destroy(p->c);
    cairo_surface_destroy(p->surface);
}

/* Extracts the glyphs of a line as redact.c does: three fifths of its width. */
static void keep(const struct image *im, int top, int h, struct image *glyphs, int *at)
{
    int x0 = W, y0 = H, x1 = 0, y1 = 0;
    for (int y = top; y < top + h; y++)
        for (int x = 0; x < W; x++)
            if (im->rgb[3 * (y * W + x)] != 255) {
                x0 = x < x0 ? x : x0;
                x1 = x > x1 ? x : x1;
                y0 = y < y0 ? y : y0;
                y1 = y > y1 ? y : y1;
            }
    assert_int_equal(image_crop(glyphs, im, x0, y0, (x1 - x0 + 1) * 3 / 5, y1 - y0 + 1, NULL), 0);
    *at = y0 - top;
}

static const struct {
    const char *what;
    enum weight bold;
    double ground, ink;
} looks[] = {
    {"on the next line", PLAIN, 1, 0}, {"inverted", PLAIN, 0, 1}, {"in grey on grey", PLAIN, .85, .3},
    {"printed twice", TWICE, 1, 0},    {"in bold", BOLD, 1, 0},   {"inverted and bold", BOLD, .1, 1}};
enum { LOOKS = sizeof looks / sizeof *looks, OTHERS = sizeof others / sizeof *others };

static bool found(const struct copy *list, int n, int y)
{
    for (int i = 0; i < n; i++)
        if (abs(list[i].y - y) <= 1 && abs(list[i].x - LEFT) <= 4)
            return true;
    return false;
}

static void look_for(const char *secret, const char *font, int missed[BOLD + 1], int *wrong)
{
    struct page p;
    struct image im, glyphs;
    struct copy *list;
    int tops[LOOKS], y = 10, at;
    page_open(&p);
    int h = put(&p, y, font, PLAIN, 1, 0, secret);
    picture(&p, &im);
    keep(&im, y, h, &glyphs, &at);
    image_free(&im);
    for (int i = 0; i < LOOKS; i++) {
        y += h; /* lines are close together, so a search area overlaps its neighbours */
        tops[i] = y + at;
        put(&p, y, font, looks[i].bold, looks[i].ground, looks[i].ink, secret);
    }
    int end = y + h;
    for (int i = 0; i < 2 * OTHERS; i++)
        put(&p, end + 10 + i * (h + 3), font, i % 2 ? BOLD : PLAIN, i % 3 ? 1 : 0, i % 3 ? 0 : 1,
            others[i / 2]);
    picture(&p, &im);
    int n = copies_find(&im, &glyphs, &list);
    for (int i = 0; i < LOOKS; i++)
        if (!found(list, n, tops[i])) {
            check_note("'%s' in %s: not found %s", secret, font, looks[i].what);
            missed[looks[i].bold]++;
        }
    for (int i = 0; i < n; i++)
        if (list[i].y > end) {
            check_note("'%s' in %s: taken for it at %d, %d", secret, font, list[i].x, list[i].y);
            (*wrong)++;
        }
    free(list);
    image_free(&im);
    image_free(&glyphs);
    page_close(&p);
}

static void t_looks(void **state)
{
    int missed[BOLD + 1] = {0}, wrong = 0, n = 0;
    for (size_t s = 0; s < sizeof secrets / sizeof *secrets; s++)
        for (size_t f = 0; f < sizeof fonts / sizeof *fonts; f++, n++)
            look_for(secrets[s], fonts[f], missed, &wrong);
    check_note("missed of %d: %d, %d printed twice, %d in a bold face; %d places wrong", n * LOOKS,
               missed[PLAIN], missed[TWICE], missed[BOLD], wrong);
    assert_int_equal(missed[PLAIN] + missed[TWICE] + wrong, 0);
    assert_true(missed[BOLD] <= n / 2); /* a bold face has other shapes; a quarter is missed at most */
}

static void t_plain(void **state)
{
    struct image im, glyphs;
    struct copy *list;
    assert_int_equal(image_alloc(&im, 300, 200, NULL), 0); /* a single colour */
    assert_int_equal(image_alloc(&glyphs, 30, 12, NULL), 0);
    memset(glyphs.rgb + 3 * (5 * 30 + 7), 255, 12);
    assert_int_equal(copies_find(&im, &glyphs, &list), 0);
    assert_int_equal(copies_find(&glyphs, &im, &list), 0); /* the pattern is larger than the image */
    image_free(&im);
    image_free(&glyphs);
}

static const struct CMUnitTest tests[] = {
    CLAIM("copies on the next line, inverted, in other colours and in bold are found, other text is not",
          t_looks),
    CLAIM("an empty image has no copy", t_plain),
};

CHECK_MAIN()
