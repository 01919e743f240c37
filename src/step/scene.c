/* scene.c - layout of the step window; draws its head, buttons and input line; see scene.h.
 *
 *   +--------------------------------------------------+
 *   | head: task, step, why it stopped here            |
 *   +--------------------------------------+-----------+
 *   |                                      | panel:    |
 *   |  picture: what the model saw,        | thought,  |
 *   |  the target                          | action,   |
 *   |                                      | candidates|
 *   |                                      | cost      |
 *   +--------------------------------------+           |
 *   | input line or message                |           |
 *   +--------------------------------------+-----------+
 *   | buttons                                          |
 *   +--------------------------------------------------+
 *   | strip: the earlier steps                         |
 *   +--------------------------------------------------+
 */
#include "step/scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 12, HEAD = 54, LINE = 40, BUTTONS = 44, STRIP = 118, PANEL_MIN = 320, PANEL_MAX = 460 };
/* Narrower buttons are as wide as their names require, plus an edge. */
enum { BUTTON_EQUAL = 76, BUTTON_EDGE = 4 };

static const struct {
    char letter;
    const char *name;
    enum colour ink;
} buttons[SCENE_BUTTONS] = {
    {'\n', "Run", INK_ACCENT}, {'c', "Continue", INK_TEXT}, {'t', "Text", INK_TEXT},
    {'e', "Edit", INK_TEXT},   {'v', "Veto", INK_WARN},     {'a', "Again", INK_TEXT},
    {'f', "Fork", INK_TEXT},   {'r', "Rewind", INK_TEXT},   {'b', "Break", INK_TEXT},
    {'h', "Heat", INK_TEXT},   {'s', "Stop", INK_BAD},
};

void scene_init(struct scene *s, int w, int h)
{
    *s = (struct scene){.w = w, .h = h, .scale = 1, .heat = true};
}

void scene_free(struct scene *s)
{
    cairo_surface_destroy(s->frame); /* NULL is fine */
    cairo_surface_destroy(s->selected_picture.surface);
    for (int i = 0; i < SCENE_THUMBS; i++)
        cairo_surface_destroy(s->thumbs[i].surface);
}

void scene_show(struct scene *s, const struct step_view *v)
{
    cairo_surface_destroy(s->frame);
    cairo_surface_destroy(s->selected_picture.surface);
    s->selected_picture.surface = NULL;
    s->frame = v->p->frame ? paint_image(v->p->frame) : NULL;
    s->frame_w = v->p->frame ? v->p->frame->w : 4;
    s->frame_h = v->p->frame ? v->p->frame->h : 3;
    s->mode = MODE_NONE;
    s->input[0] = 0;
    s->caret = 0;
    s->drag = false;
    s->selected = 0;
    s->scrolled = 0;
}

const struct history_step *scene_history(const struct step_view *v, int number)
{
    for (int i = 0; i < v->p->n_history; i++)
        if (v->p->history[i].number == number)
            return &v->p->history[i];
    return NULL;
}

struct scene_layout scene_layout(const struct scene *s)
{
    double w = s->w / s->scale, h = s->h / s->scale, side = fmin(fmax(w * 0.29, PANEL_MIN), PANEL_MAX);
    struct scene_layout l = {.head = {GAP, GAP, w - 2 * GAP, HEAD}};
    l.strip = (struct box){GAP, h - GAP - STRIP, w - 2 * GAP, STRIP};
    l.buttons = (struct box){GAP, l.strip.y - GAP - BUTTONS, w - 2 * GAP, BUTTONS};
    double top = 2 * GAP + HEAD, bottom = l.buttons.y - GAP;
    l.panel = (struct box){w - side - GAP, top, side, fmax(bottom - top, 1)};
    l.line = (struct box){GAP, bottom - LINE, fmax(w - side - 3 * GAP, 1), LINE};
    l.picture = (struct box){GAP, top, l.line.w, fmax(l.line.y - GAP - top, 1)};
    double fw = s->frame_w ? s->frame_w : 4, fh = s->frame_h ? s->frame_h : 3;
    l.fit = fmin(l.picture.w / fw, l.picture.h / fh);
    l.frame = (struct box){l.picture.x + (l.picture.w - fw * l.fit) / 2,
                           l.picture.y + (l.picture.h - fh * l.fit) / 2, fw * l.fit, fh * l.fit};
    return l;
}

struct box scene_button(const struct scene *s, int i, char *letter)
{
    const struct box row = scene_layout(s).buttons;
    const double gap = 8, room = row.w - gap * (SCENE_BUTTONS - 1);
    double x = row.x, w = fmin(room / SCENE_BUTTONS, 140), letters = 0;
    bool narrow = w < BUTTON_EQUAL;
    for (int k = 0; narrow && k < SCENE_BUTTONS; k++)
        letters += (double)strlen(buttons[k].name) + BUTTON_EDGE;
    for (int k = 0; k <= i; k++) {
        x += k ? w + gap : 0;
        if (narrow)
            w = room * ((double)strlen(buttons[k].name) + BUTTON_EDGE) / letters;
    }
    if (letter)
        *letter = buttons[i].letter;
    return (struct box){x, row.y, w, row.h};
}

/* Returns its width. */
static double draw_chip(struct paint *p, double right, double y, enum colour ink, const char *text)
{
    struct text how = {FACE_BOLD, 12, 1, 0.5, ink};
    double w = paint_text_width(p, how, text) + 24;
    struct box b = {right - w, y, w, 26};
    paint_box(p, b, 13, ink, 0.16);
    paint_text(p, b.x, b.y + 5, b.w, how, text);
    return w;
}

static void draw_head(const struct scene *s, const struct step_view *v, const struct box b, struct paint *p)
{
    const struct proposal *q = v->p;
    char text[512], chip[160];
    const double right = q->recorded || s->notice ? fmin(440, b.w / 2) : 0;
    if (s->status)
        snprintf(chip, sizeof chip, "%s", s->status);
    else
        snprintf(chip, sizeof chip, "waits for you: %s", v->why ? v->why : "step");
    double taken = draw_chip(p, b.x + b.w, b.y, s->status ? INK_BLUE : INK_ACCENT, chip);
    paint_text(p, b.x + 2, b.y + 4, b.w - taken - 20, (struct text){FACE_BOLD, 17, 1, 0, INK_TEXT},
               q->task ? q->task : "");
    snprintf(text, sizeof text, "step %d of %d    %.1f s    %s", q->number, q->max_steps, q->seconds,
             q->title ? q->title : "");
    paint_text(p, b.x + 2, b.y + 31, b.w - right - 4, (struct text){FACE_PLAIN, 13, 1, 0, INK_DIM}, text);
    if (q->recorded) {
        snprintf(text, sizeof text, "recorded screen of step %d%s", q->from,
                 q->moved_on > 0 ? ", the display has changed since" : "");
        paint_text(p, b.x + b.w - right, b.y + 31, right, (struct text){FACE_BOLD, 13, 1, 1, INK_WARN}, text);
    } else if (s->notice) {
        paint_text(p, b.x + b.w - right, b.y + 31, right, (struct text){FACE_PLAIN, 12, 1, 1, INK_WARN},
                   s->notice);
    }
}

static void draw_buttons(const struct scene *s, struct paint *p)
{
    for (int i = 0; i < SCENE_BUTTONS; i++) {
        struct box b = scene_button(s, i, NULL);
        bool dim = s->status && buttons[i].letter != 's', main = i == 0;
        enum colour ink = dim ? INK_FAINT : buttons[i].ink;
        char key[8] = {buttons[i].letter >= 'a' ? (char)(buttons[i].letter - 'a' + 'A') : 0, 0};
        paint_box(p, b, 8, main && !dim ? INK_ACCENT : INK_RAISED, main && !dim ? 0.22 : 1);
        if (main && !dim)
            paint_frame(p, box_inset(b, 0.5), 8, 1, INK_ACCENT, 0.8);
        paint_text(p, b.x, b.y + 6, b.w, (struct text){FACE_BOLD, 14, 1, 0.5, ink}, buttons[i].name);
        paint_text(p, b.x, b.y + 25, b.w, (struct text){FACE_PLAIN, 10, 1, 0.5, INK_FAINT},
                   main ? "Enter" : key);
    }
}

static void draw_input(const struct scene *s, const struct box b, struct paint *p)
{
    struct text how = {FACE_PLAIN, 14, 1, 0, INK_TEXT};
    const char *prompt = scene_prompt(s);
    char before[sizeof s->input];
    double x = b.x + 14 + paint_text_width(p, (struct text){FACE_BOLD, 14, 1, 0, INK_ACCENT}, prompt) + 10;
    paint_text(p, b.x + 14, b.y + 10, b.w, (struct text){FACE_BOLD, 14, 1, 0, INK_ACCENT}, prompt);
    snprintf(before, sizeof before, "%.*s", (int)s->caret, s->input);
    double caret = paint_text_width(p, how, before), room = b.x + b.w - 14 - x, shift = fmax(caret - room, 0);
    cairo_save(p->cr);
    cairo_rectangle(p->cr, x, b.y, room + 2, b.h);
    cairo_clip(p->cr);
    paint_text(p, x - shift, b.y + 10, paint_text_width(p, how, s->input) + 4, how, s->input);
    paint_box(p, (struct box){x - shift + caret, b.y + 10, 2, 19}, 1, INK_ACCENT, 1);
    cairo_restore(p->cr);
}

static void draw_line(const struct scene *s, const struct step_view *v, const struct box b, struct paint *p)
{
    const bool typing = s->mode != MODE_NONE;
    paint_box(p, b, 8, INK_PANEL, 1);
    paint_frame(p, box_inset(b, 0.5), 8, 1, typing ? INK_ACCENT : INK_LINE, 1);
    if (typing) {
        draw_input(s, b, p);
        return;
    }
    bool said = v->message && *v->message;
    paint_text(p, b.x + 14, b.y + 11, b.w - 28,
               (struct text){FACE_PLAIN, 13, 1, 0,
                             v->error ? INK_BAD
                             : said   ? INK_TEXT
                                      : INK_FAINT},
               said ? v->message : scene_prompt(s));
}

void scene_draw(struct scene *s, const struct step_view *v, cairo_surface_t *on)
{
    const struct scene_layout l = scene_layout(s);
    struct paint p;
    paint_begin(&p, on, s->scale);
    paint_ink(&p, INK_GROUND, 1);
    cairo_paint(p.cr);
    draw_head(s, v, l.head, &p);
    scene_draw_picture(s, v, &l, &p);
    scene_draw_panel(s, v, &l, &p);
    draw_line(s, v, l.line, &p);
    draw_buttons(s, &p);
    scene_draw_strip(s, v, &l, &p);
    paint_end(&p);
}
