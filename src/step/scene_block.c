/* scene_block.c - draws the blocks of the panel: headings, texts, bars, probabilities; see scene.h. */
#include "step/scene.h"

#include <math.h>
#include <stdio.h>

void block_heading(struct block *b, const char *text)
{
    b->y += paint_text(b->p, b->x, b->y, b->w, (struct text){FACE_BOLD, 10.5, 1, 0, INK_FAINT}, text) + 3;
}

void block_text(struct block *b, const char *title, enum face face, int lines, const char *text)
{
    if (!text || !*text)
        return;
    block_heading(b, title);
    b->y += paint_text(b->p, b->x, b->y, b->w, (struct text){face, b->type, lines, 0, INK_TEXT}, text) + 10;
}

void block_line(struct block *b, enum colour ink, const char *text)
{
    b->y += paint_text(b->p, b->x, b->y, b->w, (struct text){FACE_PLAIN, b->type - 1.5, 8, 0, ink}, text) + 3;
}

static void draw_legend(struct block *b, const struct entry *e, int n)
{
    double x = b->x, high = 0;
    for (int i = 0; i < n; i++) {
        char text[64];
        struct text how = {FACE_PLAIN, 11, 1, 0, INK_DIM};
        snprintf(text, sizeof text, "%s %.0f", e[i].name, e[i].value);
        double w = paint_text_width(b->p, how, text) + 24;
        if (x > b->x && x + w - 10 > b->x + b->w) {
            x = b->x;
            b->y += high + 2;
        }
        paint_box(b->p, (struct box){x, b->y + 4, 8, 8}, 2, e[i].ink, 1);
        high = paint_text(b->p, x + 13, b->y, w - 10, how, text);
        x += w;
    }
    b->y += high + 10;
}

void block_bar(struct block *b, const char *title, const struct entry *e, int n)
{
    struct share s[8];
    block_heading(b, title);
    for (int i = 0; i < n; i++)
        s[i] = (struct share){e[i].value, e[i].ink};
    paint_part(b->p, (struct box){b->x, b->y, b->w, 10}, "bar");
    paint_shares(b->p, (struct box){b->x, b->y, b->w, 10}, s, n);
    b->y += 14;
    draw_legend(b, e, n);
}

void block_odds(struct block *b, const struct alternative *a, int n, enum colour ink)
{
    const double percent_w = 44, bar_w = fmin(100, b->w * 0.28), text_w = b->w - percent_w - bar_w - 10;
    for (int i = 0; i < n && (i == 0 || a[i].p >= 0.0005); i++) {
        char percent[24];
        struct box bar = {b->x + text_w + 6, b->y + 4, bar_w, 8};
        snprintf(percent, sizeof percent, a[i].p >= 0.0995 ? "%.0f %%" : "%.1f %%", 100 * a[i].p);
        paint_text(b->p, b->x, b->y, text_w, (struct text){FACE_MONO, 11.5, 1, 0, i ? INK_DIM : INK_TEXT},
                   a[i].text);
        paint_part(b->p, bar, "bar");
        paint_box(b->p, bar, 4, INK_RAISED, 1);
        bar.w = fmax(bar.w * fmin(a[i].p, 1), 2);
        paint_box(b->p, bar, 4, ink, i ? 0.55 : 1);
        paint_text(b->p, b->x + b->w - percent_w, b->y, percent_w,
                   (struct text){FACE_PLAIN, 11.5, 1, 1, INK_DIM}, percent);
        b->y += 18;
    }
    b->y += n ? 6 : 0;
}

void block_confidence(struct block *b, double p)
{
    char text[80];
    snprintf(text, sizeof text, "least probable token of verb and places: %.0f %%", 100 * p);
    block_line(b, p < 0.5 ? INK_WARN : INK_DIM, text);
    b->y += 8;
}
