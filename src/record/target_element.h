/* target_element.h - a target as an element of the accessibility tree: description while recording, search
 * while playing.
 *
 * An element is found again by its role and name; a list and a field without a name by the label beside it.
 * Of several such elements the one with the recorded neighbours is meant, or the recorded one of them if
 * their number has not changed. Menu items must be in the recorded menu. Where the program uses another
 * language than in the recording, an element is also found by its path in the tree: the fourth item of the
 * first menu.
 */
#pragma once

#include "atspi/elements.h"
#include "record/recording.h"

/* Fills the element members of *t, whose x and y are set. */
void target_describe(const struct snapshot *s, int at, struct recording_target *t);

struct target_match {
    bool mended; /* the element has another name than recorded */
    bool unfit;  /* it was found, but it is disabled or in another state than recorded */
};

/* Returns the element that *t describes, or NULL with the reason in why. translated: the program uses another
 * language now. */
const struct element *target_element(const struct snapshot *s, const struct recording_target *t,
                                     bool translated, struct target_match *how, char *why, size_t size);

/* Returns whether the element at index `focus` may be the one that *t describes; otherwise writes the reason
 * to why. focus -1: unknown. */
bool target_has_keyboard(const struct snapshot *s, const struct recording_target *t, int focus,
                         bool translated, char *why, size_t size);

/* Returns the name of an element at a point that cannot be the target, because it has the same role but
 * another name; NULL: none. */
const char *target_contradicted(const struct snapshot *s, const struct recording_target *t, int x, int y);
