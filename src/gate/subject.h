/* subject.h - computes the points that an action would affect, in root pixels.
 *
 * Makes no X requests; the gate fills in the windows. */
#pragma once

#include "gate/policy.h"
#include "screen/exec.h"

enum { SUBJECT_CORNERS = ACTION_MAX_PATH };

struct subject { /* owner of the corners that s borrows */
    struct policy_subject s;
    int corners[2 * SUBJECT_CORNERS];
    char typed[4 * ACTION_MAX_KEYS * 20 + 1]; /* characters of keys */
};

struct subject_root {
    int w, h;           /* size of the root window: points outside are clamped, as for events */
    const int *pointer; /* x, y: position of actions without one; NULL: unknown */
    bool button_down;   /* an earlier action has left a button pressed */
};

/* Fills in the targets: start and end of a drag, the position of a pointer action or of typing at a position.
 * Key actions have one target without a position, the focused window. */
void subject_build(struct subject *out, const struct action *a, const struct view_transform *p,
                   const struct subject_root *root);

/* ---- text that an action writes (writing.c) ---------------------------------------------------------- */

enum writing_source { WRITING_NONE, WRITING_PRIMARY = 1, WRITING_CLIPBOARD = 2 };

/* Fills in s->writing and the targets' writes from the action alone. typed: memory for characters. */
void writing_begin(struct policy_subject *s, char *typed);
/* Returns the selections that the action would paste, as bits; all possible ones if it is unclear which. */
unsigned writing_sources(const struct policy_subject *s);
/* Returns whether the action's keys press the focused element, as Enter and space do. */
enum policy_press writing_press(const struct policy_subject *s);
/* ---- effects of an action on the focused field (bar.c) ----------------------------------------------- */

enum edit {
    EDIT_NONE,
    EDIT_MOVES,   /* moves the cursor or the focus, or completes the text */
    EDIT_SELECTS, /* selects all of the field: the next text replaces it */
    EDIT_ERASES,  /* erases the selection, or an unknown part */
    EDIT_CHANGES, /* changes the text in an unknown way, or selects a part of it */
    EDIT_COMMITS  /* Enter */
};

/* Returns whether the keys move the focus to a browser's address bar. */
bool edit_enters_bar(const struct policy_subject *s);
/* Returns whether the action opens a launcher or the search of a desktop, where Enter starts a program. */
bool edit_opens_launcher(const struct policy_subject *s);
/* Returns whether the action opens a context menu. */
bool edit_opens_menu(const struct action *a);

/* Returns whether a key (policy_key()) is down during the action. */
bool subject_has_key(const struct policy_subject *s, uint32_t key);

/* Updates the keys that are down after the action. */
void subject_update_held(const struct action *a, uint32_t held[POLICY_MAX_KEYS], int *n);
