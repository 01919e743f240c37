/* scene.c - computes the layout of the step window; draws its head, buttons and input line; see scene.h.
 *
 *   +--------------------------------------------------+
 *   | head: task, step, why it stopped here            |
 *   +--------------------------------------+-----------+
 *   |                                      | panel:    |
 *   |  screenshot with the target;         | action,   |
 *   |  of an earlier step: before and      | thought,  |
 *   |  after                               | candidate |
 *   |                                      | odds, cost|
 *   +--------------------------------------+           |
 *   | input line or message                |           |
 *   +--------------------------------------+-----------+
 *   | buttons                                          |
 *   +--------------------------------------------------+
 *   | strip: the earlier steps                         |
 *   +--------------------------------------------------+
 *
 * Help replaces everything except head and buttons. */
#include "step/scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sizes {
    double gap, head, line, buttons, strip, panel_share, panel_min, panel_max;
};
static const struct sizes roomy = {12, 54, 40, 44, 118, 0.29, 320, 460},
                          compact = {6, 36, 30, 34, 48, 0.38, 230, 320};
enum { COMPACT_W = 900, COMPACT_H = 600 };
/* In a narrow window the width of a button is proportional to the length of its name plus BUTTON_EDGE. */
enum { BUTTON_EQUAL = 84, BUTTON_WIDEST = 140, BUTTON_EDGE = 3 };

static const struct button {
    int key;
    const char *name, *caption;
    enum colour ink;
} step_buttons[] = {{KEY_ENTER, "Run", "Enter", INK_ACCENT},
                    {'c', "Continue", "C", INK_TEXT},
                    {'g', "Until", "G", INK_TEXT},
                    {'t', "Text", "T", INK_TEXT},
                    {'e', "Edit", "E", INK_TEXT},
                    {'v', "Veto", "V", INK_WARN},
                    {'a', "Again", "A", INK_TEXT},
                    {'f', "Fork", "F", INK_TEXT},
                    {'r', "Rewind", "R", INK_TEXT},
                    {'b', "Break", "B", INK_TEXT},
                    {'h', "Heat", "H", INK_TEXT},
                    {KEY_HELP, "Help", "?", INK_TEXT},
                    {'s', "Stop", "S", INK_BAD}},
  past_buttons[] = {{KEY_ENTER, "Rewind here", "Enter", INK_ACCENT},
                    {KEY_LEFT, "Earlier", "\u2190", INK_TEXT},
                    {KEY_RIGHT, "Later", "\u2192", INK_TEXT},
                    {KEY_ESCAPE, "Back", "Esc", INK_TEXT},
                    {KEY_HELP, "Help", "?", INK_TEXT},
                    {'s', "Stop", "S", INK_BAD}},
  break_buttons[] = {{'b', "Add", "B", INK_ACCENT},
                     {'g', "Run until", "G", INK_TEXT},
                     {'x', "Clear", "X", INK_TEXT},
                     {'c', "Continue", "C", INK_TEXT},
                     {KEY_ESCAPE, "Back", "Esc", INK_TEXT},
                     {KEY_HELP, "Help", "?", INK_TEXT},
                     {'s', "Stop", "S", INK_BAD}},
  help_buttons[] = {{KEY_ESCAPE, "Close", "Esc", INK_ACCENT}, {'s', "Stop", "S", INK_BAD}};

static const struct button *page_buttons(const struct scene *s, int *n)
{
    static const struct {
        const struct button *list;
        int n;
    } of[] = {[PAGE_STEP] = {step_buttons, sizeof step_buttons / sizeof *step_buttons},
              [PAGE_BREAKS] = {break_buttons, sizeof break_buttons / sizeof *break_buttons},
              [PAGE_PAST] = {past_buttons, sizeof past_buttons / sizeof *past_buttons},
              [PAGE_HELP] = {help_buttons, sizeof help_buttons / sizeof *help_buttons}};
    *n = of[scene_page(s)].n;
    return of[scene_page(s)].list;
}

void scene_init(struct scene *s, int w, int h)
{
    *s = (struct scene){.w = w, .h = h, .scale = 1, .heat = true};
}

static void drop_pictures(struct scene *s)
{
    cairo_surface_destroy(s->frame); /* NULL is allowed */
    cairo_surface_destroy(s->before.surface);
    cairo_surface_destroy(s->after.surface);
    s->frame = s->before.surface = s->after.surface = NULL;
}

void scene_free(struct scene *s)
{
    drop_pictures(s);
    for (int i = 0; i < SCENE_THUMBS; i++)
        cairo_surface_destroy(s->thumbs[i].surface);
}

void scene_show(struct scene *s, const struct step_view *v)
{
    drop_pictures(s);
    s->frame = v->p->frame ? paint_image(v->p->frame) : NULL;
    s->frame_w = v->p->frame ? v->p->frame->w : 4;
    s->frame_h = v->p->frame ? v->p->frame->h : 3;
    s->mode = MODE_NONE;
    s->input[0] = s->said[0] = 0;
    s->caret = 0;
    s->drag = s->help = false;
    s->breaks = s->breaks && s->number == v->p->number; /* a breakpoint was changed */
    s->number = v->p->number;
    s->selected = 0;
    s->scrolled = s->down = 0;
}

const struct history_step *scene_history(const struct step_view *v, int number)
{
    for (int i = 0; i < v->p->n_history; i++)
        if (v->p->history[i].number == number)
            return &v->p->history[i];
    return NULL;
}

enum scene_page scene_page(const struct scene *s)
{
    return s->help ? PAGE_HELP : s->selected ? PAGE_PAST : s->breaks ? PAGE_BREAKS : PAGE_STEP;
}

double scene_scale(const struct scene *s)
{
    return fmin(s->scale, fmin((double)s->w / SCENE_MIN_W, (double)s->h / SCENE_MIN_H));
}

struct scene_layout scene_layout(const struct scene *s)
{
    double w = s->w / scene_scale(s), h = s->h / scene_scale(s);
    bool little = w < COMPACT_W || h < COMPACT_H;
    const struct sizes *z = little ? &compact : &roomy;
    double gap = z->gap, side = fmin(fmax(w * z->panel_share, z->panel_min), z->panel_max);
    double strip = s->help ? 0 : z->strip;
    struct scene_layout l = {.head = {gap, gap, w - 2 * gap, z->head}, .compact = little};
    l.strip = (struct box){gap, h - gap - strip, w - 2 * gap, strip};
    l.buttons = (struct box){gap, l.strip.y - (strip > 0 ? gap : 0) - z->buttons, w - 2 * gap, z->buttons};
    double top = 2 * gap + z->head, bottom = l.buttons.y - gap;
    l.panel = (struct box){w - side - gap, top, side, fmax(bottom - top, 1)};
    l.line = (struct box){gap, bottom - z->line, fmax(w - side - 3 * gap, 1), z->line};
    l.picture = (struct box){gap, top, l.line.w, fmax(l.line.y - gap - top, 1)};
    double fw = s->frame_w ? s->frame_w : 4, fh = s->frame_h ? s->frame_h : 3;
    l.fit = fmin(l.picture.w / fw, l.picture.h / fh);
    l.frame = (struct box){l.picture.x + (l.picture.w - fw * l.fit) / 2,
                           l.picture.y + (l.picture.h - fh * l.fit) / 2, fw * l.fit, fh * l.fit};
    return l;
}

bool scene_button(const struct scene *s, int i, struct box *at, int *key)
{
    const struct box row = scene_layout(s).buttons;
    int n;
    const struct button *list = page_buttons(s, &n);
    if (i < 0 || i >= n)
        return false;
    double gap = row.w < COMPACT_W ? 4 : 8, room = row.w - gap * (n - 1), letters = 0;
    double x = row.x, w = fmin(room / n, BUTTON_WIDEST);
    bool narrow = w < BUTTON_EQUAL;
    for (int k = 0; narrow && k < n; k++)
        letters += (double)strlen(list[k].name) + BUTTON_EDGE;
    for (int k = 0; k <= i; k++) {
        x += k ? w + gap : 0;
        if (narrow)
            w = room * ((double)strlen(list[k].name) + BUTTON_EDGE) / letters;
    }
    *at = (struct box){x, row.y, w, row.h};
    *key = list[i].key;
    return true;
}

void scene_hit(struct scene *s, struct box at, enum hit_kind kind, int n, const char *text)
{
    if (s->n_hits < SCENE_HITS)
        s->hits[s->n_hits++] = (struct scene_hit){at, kind, n, text};
}

/* Draws a rounded label. Returns its width. */
static double draw_chip(struct paint *p, struct box head, bool little, enum colour ink, const char *text)
{
    struct text how = {FACE_BOLD, little ? 11 : 12, 1, 0.5, ink};
    double w = fmin(paint_text_width(p, how, text) + 24, head.w * 0.55), h = little ? 18 : 26;
    struct box b = {head.x + head.w - w, head.y, w, h};
    paint_box(p, b, h / 2, ink, 0.16);
    paint_text(p, b.x + 10, b.y + (little ? 2 : 5), b.w - 20, how, text);
    return w;
}

static void draw_head(const struct scene *s, const struct step_view *v, const struct scene_layout *l,
                      struct paint *p)
{
    const struct proposal *q = v->p;
    const struct box b = l->head;
    const bool little = l->compact;
    char text[512], chip[160];
    const double right = q->recorded || s->notice ? fmin(440, b.w / 2) : 0, y = b.y + (little ? 20 : 31);
    const struct text small = {FACE_PLAIN, little ? 11 : 13, 1, 0, INK_DIM},
                      note = {FACE_PLAIN, little ? 11 : 12, 1, 1, INK_WARN};
    snprintf(chip, sizeof chip, "%s%s", s->status ? "" : "waiting for you: ",
             s->status ? s->status
             : v->why  ? v->why
                       : "step");
    double taken = draw_chip(p, b, little, s->status ? INK_BLUE : INK_ACCENT, chip);
    paint_text(p, b.x + 2, b.y + (little ? 0 : 4), b.w - taken - 20,
               (struct text){FACE_BOLD, little ? 14 : 17, 1, 0, INK_TEXT}, q->task ? q->task : "");
    snprintf(text, sizeof text, "step %d of %d    %.1f s    %s", q->number, q->max_steps, q->seconds,
             q->title ? q->title : "");
    paint_text(p, b.x + 2, y, b.w - right - 14, small, text);
    if (q->recorded)
        snprintf(text, sizeof text, "recorded screen of step %d%s", q->from,
                 q->moved_on > 0 ? ", the display has changed since" : "");
    if (q->recorded || s->notice)
        paint_text(p, b.x + b.w - right, y, right, note, q->recorded ? text : s->notice);
}

static void draw_buttons(const struct scene *s, const struct scene_layout *l, struct paint *p)
{
    struct box b;
    int key, n;
    const struct button *list = page_buttons(s, &n);
    for (int i = 0; scene_button(s, i, &b, &key); i++) {
        bool dim = s->status && key != 's', main = i == 0 && !dim;
        enum colour ink = dim ? INK_FAINT : list[i].ink;
        paint_part(p, b, "button");
        paint_box(p, b, 8, main ? INK_ACCENT : INK_RAISED, main ? 0.22 : 1);
        if (main)
            paint_frame(p, box_inset(b, 0.5), 8, 1, INK_ACCENT, 0.8);
        paint_text(p, b.x, b.y + (l->compact ? 1 : 4), b.w,
                   (struct text){FACE_BOLD, l->compact ? 11.5 : 14, 1, 0.5, ink}, list[i].name);
        paint_text(p, b.x, b.y + (l->compact ? 19 : 25), b.w,
                   (struct text){FACE_PLAIN, l->compact ? 9 : 10, 1, 0.5, INK_FAINT}, list[i].caption);
    }
}

static void draw_input(const struct scene *s, const struct box b, double size, struct paint *p)
{
    struct text how = {FACE_PLAIN, size, 1, 0, INK_TEXT}, label = {FACE_BOLD, size, 1, 0, INK_ACCENT};
    const char *prompt = scene_prompt(s);
    char before[sizeof s->input];
    double x = b.x + 12 + paint_text_width(p, label, prompt) + 8, y = b.y + (b.h - size * 1.4) / 2;
    paint_text(p, b.x + 12, y, b.w, label, prompt);
    snprintf(before, sizeof before, "%.*s", (int)s->caret, s->input);
    double caret = paint_text_width(p, how, before), room = b.x + b.w - 12 - x, shift = fmax(caret - room, 0);
    paint_clip(p, (struct box){x, b.y, room + 2, b.h});
    paint_text(p, x - shift, y, paint_text_width(p, how, s->input) + 4, how, s->input);
    paint_box(p, (struct box){x - shift + caret, y, 2, size * 1.4}, 1, INK_ACCENT, 1);
    cairo_restore(p->cr);
}

/* Draws the input line or the message. A message that does not fit in one line is drawn in two lines of small
 * type. */
static void draw_line(const struct scene *s, const struct step_view *v, const struct scene_layout *l,
                      struct paint *p)
{
    const struct box b = l->line;
    const bool typing = s->mode != MODE_NONE;
    paint_box(p, b, 8, INK_PANEL, 1);
    paint_frame(p, box_inset(b, 0.5), 8, 1, typing ? INK_ACCENT : INK_LINE, 1);
    if (typing) {
        draw_input(s, b, l->compact ? 12 : 14, p);
        return;
    }
    const char *said = *s->said ? s->said : v->message && *v->message ? v->message : NULL;
    const char *text = said ? said : scene_prompt(s);
    struct text how = {FACE_PLAIN, l->compact ? 11.5 : 13, 1, 0,
                       !said      ? INK_FAINT
                       : v->error ? INK_BAD
                                  : INK_TEXT};
    if (paint_text_width(p, how, text) > b.w - 24) {
        how.size = l->compact ? 10 : 12;
        how.lines = paint_text_width(p, how, text) > b.w - 24 ? 2 : 1;
    }
    double h = how.lines * how.size * 1.36;
    paint_text(p, b.x + 12, b.y + (b.h - h) / 2, b.w - 24, how, text);
}

void scene_draw(struct scene *s, const struct step_view *v, cairo_surface_t *on)
{
    const struct scene_layout l = scene_layout(s);
    const double bottom = l.buttons.y - l.head.x;
    const struct box middle = {l.head.x, l.picture.y, l.head.w, bottom - l.picture.y};
    struct paint p;
    s->n_hits = 0;
    paint_begin(&p, on, scene_scale(s), s->log);
    paint_ink(&p, INK_GROUND, 1);
    cairo_paint(p.cr);
    paint_part(&p, l.head, "head");
    paint_clip(&p, l.head);
    draw_head(s, v, &l, &p);
    cairo_restore(p.cr);
    draw_buttons(s, &l, &p);
    if (s->help) {
        paint_part(&p, middle, "help");
        scene_draw_help(s, middle, &p);
    } else {
        paint_part(&p, l.picture, "picture");
        paint_part(&p, l.panel, "panel");
        paint_part(&p, l.line, "line");
        (s->selected ? scene_draw_past_pictures : scene_draw_picture)(s, v, &l, &p);
        scene_draw_panel(s, v, &l, &p);
        draw_line(s, v, &l, &p);
        scene_draw_strip(s, v, &l, &p);
    }
    paint_end(&p);
}
