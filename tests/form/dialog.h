/* dialog.h - reimplements the dialogs of assets/demo/dialog.html without a browser: state, layout, and the
 * effect of clicks and keys.
 *
 * The parameters are the page's query, "seed=7&kind=buttons&title=Draft&labels=Save|Discard",
 * percent-encoded or not; assets/demo/dialog.js documents them.  Variations use the same random streams as
 * the page, and every item is in the same cells: a grid of 32 x 16 cells of 20 x 30 pixels.  This module
 * does not depend on X or on colours.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COLS = 32, ROWS = 16, CELL_W = 20, CELL_H = 30, SCREEN_W = COLS * CELL_W, SCREEN_H = ROWS * CELL_H };
enum { TEXT_MAX = 160, LIST_MAX = 16, ITEMS_MAX = 3 * LIST_MAX + 8, TITLE_MAX = 16384 };

struct text { /* Unicode scalars */
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
    struct text title, sentence, pressed; /* pressed.n 0: none */
    struct list labels, buttons, values;
    bool on[LIST_MAX];
    int focus;         /* index of the focused field; -1: none */
    int caret, anchor; /* positions in the focused field; the text between them is selected */
};

enum item_kind { ITEM_TEXT, ITEM_BAND, ITEM_FIELD, ITEM_BUTTON, ITEM_TICK, ITEM_OPTION };
enum item_look { LOOK_PLAIN, LOOK_LIGHT, LOOK_ACCENT, LOOK_MAIN };

struct item {
    enum item_kind kind;
    enum item_look look;
    int row, col, len, rows;    /* in cells */
    const struct text *text;    /* in the dialog; NULL: none */
    int first, chars, column;   /* the visible part of it, and the cell in which it begins */
    int index;                  /* of its label */
    int names;                  /* field that a click on this text focuses; -1: none */
    bool snug, pressed, report; /* report: has the prefix "Pressed " */
};

struct box {
    int x, y, w, h;
};

/* Parses the query.  Returns false with one line in `why` if a parameter is unknown, too long, or too
     * many. */
bool dialog_read(struct dialog *d, const char *query, char why[128]);

int dialog_items(const struct dialog *d,
                 struct item items[ITEMS_MAX]);             /* returns their number; later ones are on top */
struct box item_box(const struct item *it);                 /* clickable pixels */
int item_at(const struct item *items, int n, int x, int y); /* index of the item; -1: none */

/* Handle a button press, and a release on the same item; NULL: on the background. */
void dialog_down(struct dialog *d, const struct item *it);
void dialog_click(struct dialog *d, const struct item *it);

enum edit { EDIT_LEFT, EDIT_RIGHT, EDIT_HOME, EDIT_END, EDIT_BACKSPACE, EDIT_DELETE, EDIT_ALL };
void dialog_edit(struct dialog *d, enum edit how, bool select);
void dialog_insert(struct dialog *d, uint32_t c);
void dialog_tab(struct dialog *d, bool back);

/* Writes the page's title, "DIALOG pressed=Save;ticked=A,B", as UTF-8. */
void dialog_title(const struct dialog *d, char title[TITLE_MAX]);
