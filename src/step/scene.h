/* scene.h - what the step window shows, and where: layout, drawing, and what a gesture means.
 *
 *   struct step_view ──┐
 *                      ├─► scene_layout ─► scene_draw      pixels
 *   struct scene ──────┘        └────────► scene_key, ...   a command, or a change of the scene
 *
 * No window and no event loop here (window.c has them): a view and a scene go in, pixels or a command come out, so that
 * tests and pictures for the manual need no display.  All places are in units: pixels of the window divided by scale.
 */
#ifndef HOLORUN_STEP_SCENE_H
#define HOLORUN_STEP_SCENE_H

#include "step/paint.h"
#include "step/step.h"

enum { SCENE_THUMBS = 64, SCENE_BUTTONS = 11 };

enum scene_mode { /* what the line of text below the picture is for */
                  MODE_NONE,
                  MODE_TEXT,
                  MODE_EDIT,
                  MODE_VETO,
                  MODE_REWIND,
                  MODE_FORK,
                  MODE_BREAK,
                  MODE_CLEAR,
};

struct scene {
    int w, h; /* pixels */
    int frame_w, frame_h;
    double scale;
    bool heat;          /* where else it could have aimed is shown */
    const char *status; /* beside the buttons while nothing can be asked; NULL: a command is waited for */
    const char *notice; /* what is said once for all: the window is in the captured picture; or NULL */

    enum scene_mode mode;
    char input[STEP_LINE / 2];
    size_t caret;

    bool drag, second; /* a target is held: the first, or the end of a drag */
    double at_x, at_y; /* ... here, in pixels of the frame */
    int selected;      /* a past step whose screen is shown instead; 0: none */
    double scrolled;   /* of the strip, to the left */

    /* pictures made of images; owned */
    cairo_surface_t *frame;
    struct {
        int number; /* of the frame */
        cairo_surface_t *surface;
    } thumbs[SCENE_THUMBS];
    int next_thumb;
    struct {
        int number;
        cairo_surface_t *surface;
    } looked_at; /* of the selected step, at full size */
};

struct scene_layout {
    struct box head, picture, panel, line, buttons, strip; /* parts of the window */
    struct box frame;                                      /* where the frame is drawn */
    double fit;                                            /* units for a pixel of the frame */
};

void scene_init(struct scene *s, int w, int h);
void scene_free(struct scene *s);

/* A new view: pictures of the last one are given up, and what was being typed too. */
void scene_show(struct scene *s, const struct step_view *v);

struct scene_layout scene_layout(const struct scene *s);
/* Of button i in the order of drawing, and the verb's letter. */
struct box scene_button(const struct scene *s, int i, char *letter);

/* Where a target stands in the window, and back; the executor's numbers (step_target) go in. */
bool scene_target(const struct scene *s, const struct step_view *v, int i, bool second, double *x, double *y);

void scene_draw(struct scene *s, const struct step_view *v, cairo_surface_t *on);

/* ---- gestures: true when *out is a command; else the scene has changed at most --------------- */

enum scene_key { /* those that are no letter */
                 KEY_ENTER = 256,
                 KEY_ESCAPE,
                 KEY_BACKSPACE,
                 KEY_DELETE,
                 KEY_LEFT,
                 KEY_RIGHT,
                 KEY_HOME,
                 KEY_END,
                 KEY_LARGER,
                 KEY_SMALLER,
};
bool scene_key(struct scene *s, const struct step_view *v, int key, struct step_command *out);
void scene_type(struct scene *s, const char *utf8); /* into the line; nothing where there is none */
bool scene_press(struct scene *s, const struct step_view *v, double x, double y, bool aim,
                 struct step_command *out);
void scene_move(struct scene *s, const struct step_view *v, double x, double y);
bool scene_release(struct scene *s, const struct step_view *v, double x, double y, struct step_command *out);
void scene_wheel(struct scene *s, const struct step_view *v, double x, double y, double by);

/* What the line below the picture says where nothing is typed. */
const char *scene_prompt(const struct scene *s);

/* ---- parts of drawing, each in a file of its own --------------------------------------------- */

void scene_draw_picture(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                        struct paint *p);
void scene_draw_panel(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                      struct paint *p);
void scene_draw_strip(struct scene *s, const struct step_view *v, const struct scene_layout *l,
                      struct paint *p);
struct box scene_thumb(const struct scene *s, const struct step_view *v, int i); /* of past[i] */
/* The past step of that number, NULL when there is none. */
const struct history_step *scene_history(const struct step_view *v, int number);

#endif
