/* scene.h - the step window without its window: layout, drawing and input.
 *
 *   struct step_view ──┐
 *                      ├─► scene_layout ─► scene_draw      pixels
 *   struct scene ──────┘        └────────► scene_key, ...   a command, or a change of the scene
 *
 * window.c has the window and the event loop.  A view and a scene go in, pixels or a command come out, so
 * that tests and pictures for the manual need no display.  Positions are in pixels of the window divided
 * by scale.
 */
#ifndef HOLORUN_STEP_SCENE_H
#define HOLORUN_STEP_SCENE_H

#include "step/paint.h"
#include "step/step.h"

enum { SCENE_THUMBS = 64, SCENE_BUTTONS = 11 };

/* The purpose of the input line. */
/* clang-format off */
enum scene_mode {
    MODE_NONE, MODE_TEXT, MODE_EDIT, MODE_VETO, MODE_REWIND, MODE_FORK, MODE_BREAK, MODE_CLEAR
};
/* clang-format on */

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

    bool drag, second; /* a target is being dragged: the first, or the end of a drag */
    double at_x, at_y; /* ... to here, in pixels of the frame */
    int selected;      /* the earlier step whose screen is shown instead; 0: none */
    double scrolled;   /* offset of the strip */

    /* cached pictures; owned */
    cairo_surface_t *frame;
    struct {
        int number; /* of the frame */
        cairo_surface_t *surface;
    } thumbs[SCENE_THUMBS];
    int next_thumb;
    struct {
        int number;
        cairo_surface_t *surface;
    } selected_picture; /* of the selected step, at full size */
};

struct scene_layout {
    struct box head, picture, panel, line, buttons, strip; /* parts of the window */
    struct box frame;                                      /* where the frame is drawn */
    double fit;                                            /* units for a pixel of the frame */
};

void scene_init(struct scene *s, int w, int h);
void scene_free(struct scene *s);

/* A new view: drops the pictures of the last one and closes the input line. */
void scene_show(struct scene *s, const struct step_view *v);

struct scene_layout scene_layout(const struct scene *s);
/* Button i from the left, and its verb's letter. */
struct box scene_button(const struct scene *s, int i, char *letter);

/* Where a target (step_target) lies in the window. */
bool scene_target(const struct scene *s, const struct step_view *v, int i, bool second, double *x, double *y);

void scene_draw(struct scene *s, const struct step_view *v, cairo_surface_t *on);

/* ---- input: true when *out is a command ------------------------------------------------------ */

/* clang-format off */
enum scene_key { /* keys that are no letters */
    KEY_ENTER = 256, KEY_ESCAPE, KEY_BACKSPACE, KEY_DELETE, KEY_LEFT, KEY_RIGHT, KEY_HOME, KEY_END,
    KEY_LARGER, KEY_SMALLER
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
void scene_draw_panel(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                      struct paint *p);
void scene_draw_strip(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                      struct paint *p);
struct box scene_thumb(const struct scene *s, const struct step_view *v, int i); /* of history[i] */
/* The earlier step of that number, or NULL. */
const struct history_step *scene_history(const struct step_view *v, int number);

#endif
