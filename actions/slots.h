/* slots.h - where in a reply the model made up its mind: the verb, and the places it points at.
 *
 * For showing what else it could have said there.  Known for the pocket dialect and for those whose replies are JSON;
 * others have none.
 */
#ifndef HOLORUN_ACTIONS_SLOTS_H
#define HOLORUN_ACTIONS_SLOTS_H

#include "actions/dialect.h"

enum slot_kind { SLOT_VERB, SLOT_PLACE };
enum { SLOTS_MAX = 16 };

struct slot {
    enum slot_kind kind;
    size_t begin, end; /* bytes of the reply; a place: from its first number to the end of its second */
};

/* In the order of the text; the number of them. */
int dialect_slots(const struct dialect *d, const char *text, size_t len, struct slot *out, int max);

/* How far the value of a slot reaches in a text that begins with it: its length; -1: the text ends inside. */
ptrdiff_t dialect_slot_end(const struct dialect *d, enum slot_kind kind, const char *text, size_t len);

/* The value of a place: pixels of a w x h image.  -1: it is none. */
int dialect_slot_place(const struct dialect *d, const char *text, size_t len, int w, int h, int32_t *x,
                       int32_t *y);

#endif
