/* scene_breaks.c - draws the list of breakpoints in the panel, with examples; see scene.h.
 *
 * Each row can be clicked: its box switches it off and on, "run to" runs until it is hit, "x" deletes it. */
#include "step/scene.h"

#include <stdio.h>

static void draw_check(struct paint *p, struct box b, bool on)
{
    paint_part(p, b, "check");
    paint_frame(p, box_inset(b, 0.5), 3, 1.2, on ? INK_ACCENT : INK_FAINT, 1);
    if (on)
        paint_box(p, box_inset(b, 3.5), 2, INK_ACCENT, 1);
}

static void draw_small_button(struct scene *s, struct paint *p, struct box b, enum colour ink,
                              const char *text, enum hit_kind kind, int n)
{
    paint_part(p, b, "small button");
    paint_box(p, b, 5, INK_RAISED, 1);
    paint_text(p, b.x, b.y + 2, b.w, (struct text){FACE_BOLD, 10.5, 1, 0.5, ink}, text);
    scene_hit(s, b, kind, n, NULL);
}

/* Draws two lines: the condition; the number of hits and the buttons. */
static void draw_row(struct scene *s, struct block *b, const struct step_break *at, int n)
{
    char text[300];
    const double right = b->x + b->w;
    struct box check = {b->x, b->y + 2, 13, 13};
    draw_check(b->p, check, !at->off);
    scene_hit(s, (struct box){check.x - 2, check.y - 2, 18, 18}, HIT_TOGGLE, n, NULL);
    snprintf(text, sizeof text, "%d  %s", n, at->spec);
    double h = paint_text(b->p, b->x + 21, b->y, b->w - 21,
                          (struct text){FACE_MONO, b->type - 1, 4, 0, at->off ? INK_FAINT : INK_TEXT}, text);
    b->y += h + 3;
    snprintf(text, sizeof text,
             at->off         ? "off"
             : at->hits == 1 ? "hit once"
             : at->hits      ? "hit %d times"
                             : "not hit yet",
             at->hits);
    paint_text(b->p, b->x + 21, b->y + 2, b->w - 21 - 86, (struct text){FACE_PLAIN, 11, 1, 0, INK_DIM}, text);
    draw_small_button(s, b->p, (struct box){right - 82, b->y, 56, 18}, INK_ACCENT, "run to", HIT_UNTIL, n);
    draw_small_button(s, b->p, (struct box){right - 22, b->y, 22, 18}, INK_BAD, "x", HIT_CLEAR, n);
    b->y += 26;
}

void scene_break_blocks(struct scene *s, const struct step_view *v, struct block *b)
{
    static const struct {
        const char *spec, *means;
    } examples[] = {
        {"step 7", "before step 7"},
        {"kind click", "before an action of this kind"},
        {"window Save", "the active window's title or class"},
        {"text invoice", "thought, note, element or typed text"},
        {"window Shop and text Pay", "both; up to four conditions"},
        {"irreversible", "an action that requires confirmation"},
        {"confidence 0.8", "a token was less probable"},
        {"no-effect", "the last action changed nothing"},
    };
    block_heading(b, v->n_breaks ? "BREAKPOINTS" : "NO BREAKPOINTS YET");
    b->y += 3;
    for (int i = 0; i < v->n_breaks; i++)
        draw_row(s, b, &v->breaks[i], i + 1);
    b->y += 6;
    block_heading(b, "CONDITIONS: CLICK ONE");
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        double top = b->y;
        b->y += paint_text(b->p, b->x, b->y, b->w, (struct text){FACE_MONO, b->type - 1, 2, 0, INK_ACCENT},
                           examples[i].spec);
        block_line(b, INK_DIM, examples[i].means);
        scene_hit(s, (struct box){b->x, top, b->w, b->y - top}, HIT_EXAMPLE, 0, examples[i].spec);
        b->y += 3;
    }
    block_line(
        b, INK_FAINT,
        "Patterns are regular expressions (PCRE2); case is ignored. Put a pattern with \" and \" in double "
        "quotes.");
}
