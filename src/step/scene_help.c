/* scene_help.c - draws the help page: keys, mouse, and the terms of the panel; see scene.h. */
#include "step/scene.h"

#include <math.h>

struct row {
    const char *name; /* a key or a term; NULL: `text` is a heading */
    const char *text;
};

static const struct row keys[] = {
    {NULL, "KEYS"},
    {"Enter", "run the step; while an earlier one is shown, rewind to it"},
    {"C", "run until the next breakpoint"},
    {"G", "run until a condition that you enter is true"},
    {"T", "type or answer another text"},
    {"E", "edit the action as JSON"},
    {"U", "undo these changes"},
    {"V", "veto: reject the step and give the model a reason"},
    {"A", "again: sample another reply to the same screen"},
    {"F", "fork: sample several replies to choose from"},
    {"0 - 9", "choose one of these replies"},
    {"R", "rewind: continue from an earlier step"},
    {"B", "breakpoints: list and add them"},
    {"D", "switch a breakpoint off or on"},
    {"X", "delete a breakpoint"},
    {"H", "show or hide the heat map of the candidates"},
    {"L", "show the step again"},
    {"S", "stop the run"},
    {"Q", "quit: the same"},
    {"? F1", "this page"},
    {"Esc", "close the line or the page"},
    {"\u2190 \u2192", "show an earlier or later step"},
    {"\u2191 \u2193", "scroll the panel; Page Up and Page Down as well"},
    {"Ctrl +", "larger; with - smaller"},
    {NULL, "MOUSE"},
    {"drag", "move a target"},
    {"right", "set the target's new position in the screenshot"},
    {"click", "show an earlier step; choose a reply"},
    {"wheel", "scrolls the panel and the earlier steps"},
};

static const struct row meanings[] = {
    {NULL, "TOKENS OF A STEP"},
    {"reused", "kept from the previous step without prefill"},
    {"prefilled", "processed in this step: the new screenshot and the result of the last action"},
    {"forced", "not sampled: the grammar allowed only this token"},
    {"sampled", "sampled from the tokens that the grammar allowed"},
    {NULL, "TIME"},
    {"settle", "waiting until the screen stopped changing"},
    {"see", "taking the screenshot"},
    {"read", "prefilling the prompt"},
    {"decide", "generating the reply"},
    {NULL, "ODDS"},
    {"candidates", "verbs and coordinates that the model could have chosen, with their probabilities"},
    {"least", "the lowest probability of a sampled token of verb or coordinates; amber below 50 %"},
    {"heat map", "the candidates of the target; density shows probability"},
    {NULL, "EARLIER STEPS"},
    {"green", "the run can be rewound to it"},
    {"amber", "the action had no effect"},
    {"red", "the action failed"},
    {"dimmed", "discarded by a rewind, or not run"},
};

static double draw_rows(struct paint *p, double x, double y, double w, double type, double name_w,
                        const struct row *r, int n)
{
    name_w *= type / 12;
    double from = y;
    for (int i = 0; i < n; i++) {
        if (!r[i].name) {
            y += i ? 10 : 0;
            y +=
                paint_text(p, x, y, w, (struct text){FACE_BOLD, type - 1.5, 1, 0, INK_ACCENT}, r[i].text) + 5;
            continue;
        }
        double a = paint_text(p, x, y, name_w, (struct text){FACE_BOLD, type, 1, 0, INK_TEXT}, r[i].name);
        double b = paint_text(p, x + name_w + 8, y, w - name_w - 8,
                              (struct text){FACE_PLAIN, type, 4, 0, INK_DIM}, r[i].text);
        y += fmax(a, b) + 3;
    }
    return y - from;
}

void scene_draw_help(struct scene *s, const struct box at, struct paint *p)
{
    const double pad = 14, column = fmin((at.w - 3 * pad) / 2, 760);
    const double type = at.w > 1100 && at.h > 640 ? 14.5 : 12;
    struct paint measure = *p;
    measure.log = NULL;
    paint_box(p, at, 8, INK_PANEL, 1);
    for (int pass = 0; pass < 2; pass++) { /* the first pass measures the length */
        paint_clip(p, pass ? at : (struct box){0, 0, 0, 0});
        struct paint *on = pass ? p : &measure;
        double y = at.y + pad - s->down;
        double left = draw_rows(on, at.x + pad, y, column, type, 48, keys, sizeof keys / sizeof *keys);
        double right = draw_rows(on, at.x + 2 * pad + column, y, column, type, 76, meanings,
                                 sizeof meanings / sizeof *meanings);
        cairo_restore(p->cr);
        s->length = fmax(left, right) + 2 * pad;
        s->down = fmin(fmax(s->down, 0), fmax(s->length - at.h, 0));
    }
    if (s->length > at.h)
        paint_scrollbar(p, at, s->down, s->length);
}
