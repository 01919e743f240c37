/* subject.h - which points an action would touch, in the executor's root pixels.
 *
 * Pure: no X requests.  The gate fills in the windows.
 */
#ifndef HOLORUN_GATE_SUBJECT_H
#define HOLORUN_GATE_SUBJECT_H

#include "gate/policy.h"

enum { SUBJECT_CORNERS = ACTION_MAX_PATH };

struct subject { /* with the corners that s borrows */
    struct policy_subject s;
    int corners[2 * SUBJECT_CORNERS];
    char typed[4 * ACTION_MAX_KEYS * 20 + 1]; /* the characters of keys */
};

struct subject_root {
    int w, h;           /* of the root window: points outside are clamped, as events are */
    const int *pointer; /* x, y: where actions without a place act; NULL: unknown */
    bool button_down;   /* an earlier action has left one down */
};

/* Targets: start and end of a drag, the place of a pointer action or of typing into a place; key actions
 * have one without a place, the focused window. */
void subject_build(struct subject *out, const struct action *a, const struct view_transform *p,
                   const struct subject_root *root);

/* ---- what an action writes (writing.c) ------------------------------------------------------------ */

enum writing_source { WRITING_NONE, WRITING_PRIMARY = 1, WRITING_CLIPBOARD = 2 };

/* Fills in s->writing and the targets' writes as far as the action itself tells; typed: memory for
 * characters. */
void writing_begin(struct policy_subject *s, char *typed);
/* The selections that the action would paste, as bits; any of them when it is not known which. */
unsigned writing_sources(const struct policy_subject *s);
/* Whether the action's keys press the element that has the keyboard, as Enter and space do. */
enum policy_press writing_press(const struct policy_subject *s);
/* ---- effects of an action on the focused field (bar.c) ----------------------------------------------- */

enum edit {
    EDIT_NONE,
    EDIT_MOVES,   /* the cursor, or the keyboard to another field, or it completes the text */
    EDIT_SELECTS, /* all of the field: the next text replaces it */
    EDIT_ERASES,  /* the selection, else an unknown part */
    EDIT_CHANGES, /* the text, in a way that is not known, or selects a part of it */
    EDIT_COMMITS  /* Enter */
};

enum edit edit_of(const struct policy_subject *s);
/* Returns whether the keys move the focus to a browser's address bar. */
bool edit_enters_bar(const struct policy_subject *s);
/* Returns whether the action opens a launcher or the search of a desktop, where Enter starts a program. */
bool edit_opens_launcher(const struct policy_subject *s);
/* Returns whether the action opens a context menu. */
bool edit_opens_menu(const struct action *a);

/* Whether a key (policy_key()) is down during the action. */
bool subject_has_key(const struct policy_subject *s, uint32_t key);

/* Keys that are down after the action, given those before. */
void subject_update_held(const struct action *a, uint32_t held[POLICY_MAX_KEYS], int *n);

#endif
