/* resolve.h - finds the element that a name in a sentence means. */
#pragma once

#include "atspi/elements.h"

/* Use of the element, which decides the roles that are considered. */
enum resolve_for {
    RESOLVE_PRESS,
    RESOLVE_TICK,
    RESOLVE_OPTION,
    RESOLVE_LIST,
    RESOLVE_FIELD,
    RESOLVE_TAB,
    RESOLVE_MENU,      /* a menu of the menu bar, or a button that opens one */
    RESOLVE_MENU_ITEM, /* an item of an open menu */
    RESOLVE_ANY,       /* also text */
};

struct resolve_query {
    const char *name;
    enum resolve_for use;
    const char *row;             /* text of the row that holds it; NULL: any */
    const struct element *below; /* only elements below it in the tree; NULL: all */
    bool beyond;                 /* also elements that resolve_is_beyond() accepts */
};

enum { RESOLVE_NEAREST = 3, RESOLVE_NAME = 512 /* bytes of a normal form */ };

/* Writes the elements that fit equally well to out[max] and returns their number: 0: none, 1: found, more:
 * the name is ambiguous.  Names are compared without case, mnemonic marks, ellipsis, trailing colon and key
 * combination, and "&" equals "and".  Elements in the active window come before others, exact names before
 * labels, buttons and links before other roles, and a page before the browser's own buttons. */
int resolve(const struct snapshot *s, const struct resolve_query *q, const struct element **out, int max);

/* Appends the names of the visible elements that are most alike to a message: '; nearest: button "Save"'. */
void resolve_nearest(const struct snapshot *s, const struct resolve_query *q, struct buf *out);

/* Returns whether the role of an element suits a use. */
bool resolve_suits(const struct element *e, enum resolve_for use);

/* Returns the menu, list or button around an element that shows it in a window of its own, NULL: none. In
 * GTK 4 the content of a popover is below its button. */
const struct element *resolve_opener(const struct snapshot *s, const struct element *e);

/* Returns the innermost element around e that hides the middle of e because it is scrolled away; NULL: e is
 * in sight. */
const struct element *resolve_hidden_by(const struct snapshot *s, const struct element *e);

/* Returns whether an element is `top` or inside it. */
bool resolve_is_below(const struct snapshot *s, const struct element *e, const struct element *top);
/* Returns whether an element of a page is out of sight, but can be scrolled to (elements_scope.beyond). */
bool resolve_is_beyond(const struct snapshot *s, const struct element *e);
/* Returns the pane or page that has to be scrolled next for *e, and replaces *e with the part of it that
 * has to come into sight: a pane that is itself out of sight. NULL: none. */
const struct element *resolve_scrolled_by(const struct snapshot *s, const struct element **e);

/* Returns whether a click on a text or image of a page acts: it has a click handler, or is part of a group
 * that has one, and is not merely one of several elements there. */
bool resolve_is_clickable(const struct snapshot *s, const struct element *e);

/* Returns whether only a click handler of a group around it, which has other texts, gets a click on such a
 * text: the handler may ignore it. */
bool resolve_acts_by_group(const struct snapshot *s, const struct element *e);

/* Returns the web page that an element is part of, NULL: none. */
const struct element *resolve_page(const struct snapshot *s, const struct element *e);

/* Returns whether an element contains text that people enter. */
bool resolve_is_field(const struct element *e);

/* Returns whether an element has the role of a button, link or menu item. */
bool resolve_is_button(const struct element *e);

/* Returns whether an element is a row, cell or icon, which a click selects. */
bool resolve_is_row(const struct element *e);

/* Writes the normal form of a name: lower case, single spaces, "and" for "&", without mnemonic marks and the
 * punctuation around it. */
void resolve_normalize(const char *name, char out[RESOLVE_NAME]);
/* Returns whether two names are the same after normalizing. */
bool resolve_same(const char *a, const char *b);
/* Returns whether a name begins with another one and continues with another word. */
bool resolve_begins(const char *name, const char *with);

/* Returns the check box in the row of a table cell: the unnamed cell of the row; NULL: none. */
const struct element *resolve_box(const struct snapshot *s, const struct element *e);

/* Returns the text by which people know an element: its name, else its label, else its value. */
const char *resolve_name(const struct element *e);

/* Returns whether an element has a place and is not scrolled out of sight. */
bool resolve_visible(const struct snapshot *s, const struct element *e);

/* Returns whether an element of this name is in the row of e: its middle is as high.  The beginning of a name
 * counts only if no element has the whole name: "Ana Lima" is not the row of "Ana Lima Costa". */
bool resolve_in_row(const struct snapshot *s, const struct element *e, const char *row);

/* Returns whether an element is in the active window. */
bool resolve_in_active_window(const struct snapshot *s, const struct element *e);

/* Returns the nearest text on the left of an element or above it; "": none. */
const char *resolve_beside(const struct snapshot *s, const struct element *e);
/* Returns the label of an element: that of the snapshot, or for lists, which toolkits name by their choice,
 * the text on their left or above; "": none. */
const char *resolve_label(const struct snapshot *s, const struct element *e);
