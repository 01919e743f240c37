/* dialog.h - the dialogs of assets/demo/dialog.html once more, without a browser: state, layout, what
 * clicks and keys do.
 *
 * The parameters are the page's own query, "seed=7&kind=buttons&title=Draft&labels=Save|Discard",
 * percent-encoded or not; assets/demo/dialog.js has their meaning.  What varies between dialogs is drawn
 * from the same streams of the seed as there, and every item stands in the cells in which the page puts
 * it: a grid of 32 x 16 cells of 20 x 30 pixels.  Nothing here knows of X or of pixels' colours.
 */
#ifndef HOLORUN_TESTS_FORM_DIALOG_H
#define HOLORUN_TESTS_FORM_DIALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COLS = 32, ROWS = 16, CELL_W = 20, CELL_H = 30, SCREEN_W = COLS * CELL_W, SCREEN_H = ROWS * CELL_H };
enum { TEXT_MAX = 160, LIST_MAX = 16, ITEMS_MAX = 3 * LIST_MAX + 8, TITLE_MAX = 16384 };

struct text { /* scalars of Unicode */
    uint32_t c[TEXT_MAX];
    int n;
};

struct list {
    struct text t[LIST_MAX];
    int n;
};

enum dialog_kind { DIALOG_BUTTONS, DIALOG_TICKS, DIALOG_OPTIONS, DIALOG_FIELDS };

struct dialog {
    enum dialog_kind kind;
    uint32_t seed;
    struct text title, sentence, pressed; /* pressed.n 0: nothing yet */
    struct list labels, buttons, values;
    bool on[LIST_MAX];
    int focus;         /* of the field with the keyboard; -1: none */
    int caret, anchor; /* in it; what lies between them is selected */
};

enum item_kind { ITEM_TEXT, ITEM_BAND, ITEM_FIELD, ITEM_BUTTON, ITEM_TICK, ITEM_OPTION };
enum item_look { LOOK_PLAIN, LOOK_LIGHT, LOOK_ACCENT, LOOK_MAIN };

struct item {
    enum item_kind kind;
    enum item_look look;
    int row, col, len, rows;    /* in cells */
    const struct text *text;    /* of the dialog; NULL: none */
    int first, chars, column;   /* the part of it that is shown, and the cell it begins in */
    int index;                  /* of its label */
    int names;                  /* field that a click on this text enters; -1: none */
    bool snug, pressed, report; /* report: "Pressed " stands before the text */
};

struct box {
    int x, y, w, h;
};

/* False with one line in `why`: a parameter is not known, or too long, or too many. */
bool dialog_read(struct dialog *d, const char *query, char why[128]);

int dialog_items(const struct dialog *d,
                 struct item items[ITEMS_MAX]);             /* their number; later ones lie on top */
struct box item_box(const struct item *it);                 /* pixels that a click may hit */
int item_at(const struct item *items, int n, int x, int y); /* -1: none */

/* What the page does when the button goes down and when it has gone up on the same item; -1: beside all
 * of them. */
void dialog_down(struct dialog *d, const struct item *it);
void dialog_click(struct dialog *d, const struct item *it);

enum edit { EDIT_LEFT, EDIT_RIGHT, EDIT_HOME, EDIT_END, EDIT_BACKSPACE, EDIT_DELETE, EDIT_ALL };
void dialog_edit(struct dialog *d, enum edit how, bool select);
void dialog_insert(struct dialog *d, uint32_t c);
void dialog_tab(struct dialog *d, bool back);

/* "DIALOG pressed=Save;ticked=A,B", UTF-8: what the page's title says. */
void dialog_title(const struct dialog *d, char title[TITLE_MAX]);

#endif
