/* scene.h - the content of the step window: layout, drawing and input.
 *
 *   struct step_view ──┐
 *                      ├─► scene_layout ─► scene_draw      pixels, and the boxes that can be clicked
 *   struct scene ──────┘        └────────► scene_key, ...   a command, or a change of the scene
 *
 * window.c has the SDL window and the event loop. Input is a view and a scene, output is pixels or a command,
 * so that tests and images for the manual need no display. Positions are in pixels of the window divided by
 * scene_scale(). Parts do not overlap at any size from 640 x 400; a smaller window is scaled down. */
#pragma once

#include "step/paint.h"
#include "step/step.h"

enum { SCENE_THUMBS = 64, SCENE_BUTTONS = 13, SCENE_HITS = 128, SCENE_MIN_W = 640, SCENE_MIN_H = 400 };

/* purpose of the input line */
/* clang-format off */
enum scene_mode {
    MODE_NONE, MODE_TEXT, MODE_EDIT, MODE_VETO, MODE_REWIND, MODE_FORK, MODE_BREAK, MODE_UNTIL, MODE_TOGGLE,
    MODE_CLEAR
};
/* clang-format on */

/* content of the window: the pending step, the same with the list of breakpoints, an earlier step, or help */
enum scene_page { PAGE_STEP, PAGE_BREAKS, PAGE_PAST, PAGE_HELP };

/* a box that can be clicked, as drawn last */
enum hit_kind { HIT_TAKE, HIT_TOGGLE, HIT_UNTIL, HIT_CLEAR, HIT_EXAMPLE };
struct scene_hit {
    struct box at;
    enum hit_kind kind;
    int n;            /* index of the reply, or number of the breakpoint from 1 */
    const char *text; /* HIT_EXAMPLE: a condition; static */
};

struct scene {
    int w, h; /* pixels */
    int frame_w, frame_h;
    double scale;
    bool heat;          /* show the candidates of the target as a heat map */
    const char *status; /* shown while no command is expected; NULL: a command is expected */
    const char *notice; /* permanent notice, or NULL */

    enum scene_mode mode;
    char input[STEP_LINE / 2];
    size_t caret;
    char said[128]; /* response to the last key, until the next */

    bool help, breaks; /* whether these pages are open */
    int selected;      /* number of the earlier step shown; 0: none */
    bool drag, second; /* a target is being dragged; second: the end of a drag action */
    double at_x, at_y; /* its position in pixels of the frame */
    double scrolled;   /* offset of the strip */
    double down;       /* offset of the panel or help */
    double length;     /* total length of the panel or help, as drawn last */
    int number;        /* number of the last step shown */

    struct scene_hit hits[SCENE_HITS];
    int n_hits;
    struct paint_log *log; /* receives a log of the drawing; NULL: none */

    /* cached images; owned */
    cairo_surface_t *frame;
    struct scene_picture {
        int number; /* number of the frame */
        cairo_surface_t *surface;
    } thumbs[SCENE_THUMBS], before, after; /* before, after: screens of the selected step at full size */
    int next_thumb;
};

struct scene_layout {
    struct box head, picture, panel, line, buttons, strip; /* parts of the window */
    struct box frame;                                      /* position of the frame in the window */
    double fit;                                            /* units per pixel of the frame */
    bool compact;                                          /* small window: smaller parts and type */
};

void scene_init(struct scene *s, int w, int h);
void scene_free(struct scene *s);

/* Shows a new view: drops the cached images of the last one and closes the input line. */
void scene_show(struct scene *s, const struct step_view *v);

double scene_scale(const struct scene *s); /* Returns the pixels per unit. */
struct scene_layout scene_layout(const struct scene *s);
enum scene_page scene_page(const struct scene *s);
/* Returns box and key of button i of the page, counted from the left. Returns false if there are fewer
 * buttons. */
bool scene_button(const struct scene *s, int i, struct box *at, int *key);

/* Computes the position of a target (step_target) in the window. Returns false if there is none. */
bool scene_target(const struct scene *s, const struct step_view *v, int i, bool second, double *x, double *y);

void scene_draw(struct scene *s, const struct step_view *v, cairo_surface_t *on);

/* ---- input: returns true if *out is a command --------------------------------------------------- */

/* clang-format off */
enum scene_key { /* keys other than letters */
    KEY_ENTER = 256, KEY_ESCAPE, KEY_BACKSPACE, KEY_DELETE, KEY_LEFT, KEY_RIGHT, KEY_HOME, KEY_END,
    KEY_UP, KEY_DOWN, KEY_PAGE_UP, KEY_PAGE_DOWN, KEY_HELP, KEY_LARGER, KEY_SMALLER, KEY_LAST
};
/* clang-format on */
bool scene_key(struct scene *s, const struct step_view *v, int key, struct step_command *out);
void scene_type(struct scene *s, const char *utf8); /* Inserts text into the input line if it is open. */
bool scene_press(struct scene *s, const struct step_view *v, double x, double y, bool aim,
                 struct step_command *out);
void scene_move(struct scene *s, double x, double y);
bool scene_release(struct scene *s, double x, double y, struct step_command *out);
void scene_wheel(struct scene *s, const struct step_view *v, double x, double y, double by);

/* Returns the prompt of the input line, or a hint if it is closed. */
const char *scene_prompt(const struct scene *s);

/* ---- drawing, one file each -------------------------------------------------------------------- */

void scene_draw_picture(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                        struct paint *p);
/* Draws the enlarged target. scene_lens_beside() computes a box for it next to the screenshot; if there is no
 * space it returns false, and the lens is drawn in the panel. */
void scene_draw_lens(const struct scene *s, const struct step_view *v, struct paint *p, struct box at);
bool scene_lens_beside(const struct scene_layout *l, struct box *at);
void scene_draw_panel(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                      struct paint *p);
void scene_draw_past_pictures(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                              struct paint *p);
void scene_draw_help(struct scene *s, const struct box b, struct paint *p);
void scene_draw_strip(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                      struct paint *p);
/* Returns the box of history[i]. */
struct box scene_thumb(const struct scene *s, const struct step_view *v, int i);
/* Returns the recorded screen with this number, cached in *kept; NULL if it cannot be read. */
cairo_surface_t *scene_picture(struct scene_picture *kept, const struct step_view *v, int number);
/* Returns the earlier step with this number, or NULL. */
const struct history_step *scene_history(const struct step_view *v, int number);
/* Registers a box that can be clicked. */
void scene_hit(struct scene *s, struct box at, enum hit_kind kind, int n, const char *text);

/* ---- blocks of the panel, from top to bottom (scene_block.c) ----------------------------------- */

struct block {
    struct paint *p;
    double x, y, w; /* y: top of the next block */
    double type;    /* font size of plain text */
};
void block_heading(struct block *b, const char *text);
void block_text(struct block *b, const char *title, enum face face, int lines, const char *text);
void block_line(struct block *b, enum colour ink,
                const char *text); /* Draws small text with as many lines as needed (at most 8). */
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
