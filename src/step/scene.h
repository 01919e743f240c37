/* scene.h - the step window without its window: layout, drawing and input.
 *
 *   struct step_view ──┐
 *                      ├─► scene_layout ─► scene_draw      pixels, and the places that can be clicked
 *   struct scene ──────┘        └────────► scene_key, ...   a command, or a change of the scene
 *
 * window.c has the window and the event loop.  A view and a scene go in, pixels or a command come out,
 * so that tests and pictures for the manual need no display.  Positions are in pixels of the window
 * divided by scene_scale().  No part is drawn over another at any size from 640 x 400; a smaller window
 * is drawn smaller.
 */
#ifndef HOLORUN_STEP_SCENE_H
#define HOLORUN_STEP_SCENE_H

#include "step/paint.h"
#include "step/step.h"

enum { SCENE_THUMBS = 64, SCENE_BUTTONS = 13, SCENE_HITS = 128, SCENE_MIN_W = 640, SCENE_MIN_H = 400 };

/* The purpose of the input line. */
/* clang-format off */
enum scene_mode {
    MODE_NONE, MODE_TEXT, MODE_EDIT, MODE_VETO, MODE_REWIND, MODE_FORK, MODE_BREAK, MODE_UNTIL, MODE_TOGGLE,
    MODE_CLEAR
};
/* clang-format on */

/* The contents of the window: the step at hand, the list of breakpoints beside it, an earlier step, or
 * help. */
enum scene_page { PAGE_STEP, PAGE_BREAKS, PAGE_PAST, PAGE_HELP };

/* A place that can be clicked, as it was drawn last. */
enum hit_kind { HIT_TAKE, HIT_TOGGLE, HIT_UNTIL, HIT_CLEAR, HIT_EXAMPLE };
struct scene_hit {
    struct box at;
    enum hit_kind kind;
    int n;            /* the reply, or the breakpoint from 1 */
    const char *text; /* HIT_EXAMPLE: a condition; static */
};

struct scene {
    int w, h; /* pixels */
    int frame_w, frame_h;
    double scale;
    bool heat;          /* show the candidates of the target as a heat map */
    const char *status; /* shown while no command is expected; NULL: one is */
    const char *notice; /* a permanent notice, or NULL */

    enum scene_mode mode;
    char input[STEP_LINE / 2];
    size_t caret;
    char said[128]; /* an answer to the last key, until the next */

    bool help, breaks; /* these pages are open */
    int selected;      /* the earlier step that is shown; 0: none */
    bool drag, second; /* a target is being dragged: the first, or the end of a drag */
    double at_x, at_y; /* ... to here, in pixels of the frame */
    double scrolled;   /* offset of the strip */
    double down;       /* offset of the panel, or of help */
    double length;     /* of what was drawn there last */
    int number;        /* of the step that was shown last */

    struct scene_hit hits[SCENE_HITS];
    int n_hits;
    struct paint_log *log; /* what is drawn is written down here; NULL: nowhere */

    /* cached pictures; owned */
    cairo_surface_t *frame;
    struct scene_picture {
        int number; /* of the frame */
        cairo_surface_t *surface;
    } thumbs[SCENE_THUMBS], before, after; /* before, after: of the selected step, at full size */
    int next_thumb;
};

struct scene_layout {
    struct box head, picture, panel, line, buttons, strip; /* parts of the window */
    struct box frame;                                      /* where the frame is drawn */
    double fit;                                            /* units for a pixel of the frame */
    bool compact;                                          /* little room: smaller parts and type */
};

void scene_init(struct scene *s, int w, int h);
void scene_free(struct scene *s);

/* A new view: drops the pictures of the last one and closes the input line. */
void scene_show(struct scene *s, const struct step_view *v);

double scene_scale(const struct scene *s); /* pixels for a unit */
struct scene_layout scene_layout(const struct scene *s);
enum scene_page scene_page(const struct scene *s);
/* Button i of the page from the left, and its key; false: there are fewer. */
bool scene_button(const struct scene *s, int i, struct box *at, int *key);

/* Where a target (step_target) lies in the window. */
bool scene_target(const struct scene *s, const struct step_view *v, int i, bool second, double *x, double *y);

void scene_draw(struct scene *s, const struct step_view *v, cairo_surface_t *on);

/* ---- input: true when *out is a command ------------------------------------------------------ */

/* clang-format off */
enum scene_key { /* keys that are no letters */
    KEY_ENTER = 256, KEY_ESCAPE, KEY_BACKSPACE, KEY_DELETE, KEY_LEFT, KEY_RIGHT, KEY_HOME, KEY_END,
    KEY_UP, KEY_DOWN, KEY_PAGE_UP, KEY_PAGE_DOWN, KEY_HELP, KEY_LARGER, KEY_SMALLER, KEY_LAST
};
/* clang-format on */
bool scene_key(struct scene *s, const struct step_view *v, int key, struct step_command *out);
void scene_type(struct scene *s, const char *utf8); /* into the input line, if it is open */
bool scene_press(struct scene *s, const struct step_view *v, double x, double y, bool aim,
                 struct step_command *out);
void scene_move(struct scene *s, double x, double y);
bool scene_release(struct scene *s, double x, double y, struct step_command *out);
void scene_wheel(struct scene *s, const struct step_view *v, double x, double y, double by);

/* The prompt of the input line, or a hint when it is closed. */
const char *scene_prompt(const struct scene *s);

/* ---- drawing, a file each -------------------------------------------------------------------- */

void scene_draw_picture(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                        struct paint *p);
/* The target enlarged, and where that lies beside the screenshot; false: no room, it goes into the panel. */
void scene_draw_lens(const struct scene *s, const struct step_view *v, struct paint *p, struct box at);
bool scene_lens_beside(const struct scene_layout *l, struct box *at);
void scene_draw_panel(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                      struct paint *p);
void scene_draw_past_pictures(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                              struct paint *p);
void scene_draw_help(struct scene *s, const struct box b, struct paint *p);
void scene_draw_strip(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                      struct paint *p);
struct box scene_thumb(const struct scene *s, const struct step_view *v, int i); /* of history[i] */
/* The recorded screen of that number, kept for the next time; NULL: it cannot be read. */
cairo_surface_t *scene_picture(struct scene_picture *kept, const struct step_view *v, int number);
/* The earlier step of that number, or NULL. */
const struct history_step *scene_history(const struct step_view *v, int number);
/* Remembers a place that can be clicked. */
void scene_hit(struct scene *s, struct box at, enum hit_kind kind, int n, const char *text);

/* ---- blocks of the panel, from top to bottom (scene_block.c) ---------------------------------- */

struct block {
    struct paint *p;
    double x, y, w; /* y: where the next one begins */
    double type;    /* size of plain type */
};
void block_heading(struct block *b, const char *text);
void block_text(struct block *b, const char *title, enum face face, int lines, const char *text);
void block_line(struct block *b, enum colour ink,
                const char *text); /* small type, as many lines as it takes */
struct entry {
    const char *name;
    double value;
    enum colour ink;
};
void block_bar(struct block *b, const char *title, const struct entry *e, int n);
void block_odds(struct block *b, const struct alternative *a, int n, enum colour ink);
void block_confidence(struct block *b, double p);

void scene_past_blocks(const struct scene *s, const struct step_view *v, struct block *b);
void scene_break_blocks(struct scene *s, const struct step_view *v, struct block *b);

#endif
