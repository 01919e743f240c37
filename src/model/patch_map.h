/* patch_map.h - what a tower with screen heads says of each patch of a picture: letters, kinds of elements.
 *
 * A small model's tower is trained to read: for each of eight slots of a patch, four across and two down,
 * whether the middle of a letter is there, which letter, and where in the slot; and what kind of element the
 * patch belongs to.  A checkpoint may hold these heads ("vision_model.heads."); towers without them have no
 * maps.  Trained by assets/pocket/train (reading.py, elements.py), whose order of kinds this is.
 */
#ifndef HOLORUN_MODEL_PATCH_MAP_H
#define HOLORUN_MODEL_PATCH_MAP_H

#include <stdint.h>

enum {
    PATCH_SLOTS = 8,
    PATCH_SLOTS_ACROSS = 4,
    PATCH_LETTERS = 96, /* classes: 0 unused, 1 to 94 are '!' to '~', 95 any other */
};

enum element_kind {
    ELEMENT_NONE,
    ELEMENT_BUTTON,
    ELEMENT_LINK,
    ELEMENT_CHECK,
    ELEMENT_RADIO,
    ELEMENT_FIELD,
    ELEMENT_AREA,
    ELEMENT_SELECT,
    ELEMENT_LIST,
    ELEMENT_ITEM,
    ELEMENT_TAB,
    ELEMENT_SLIDER,
    ELEMENT_HEADER,
    ELEMENT_SHAPE,
    ELEMENT_PICTURE,
    ELEMENT_KINDS
};

struct patch_reading {
    float present[PATCH_SLOTS];  /* probability of a letter */
    float shift[PATCH_SLOTS];    /* of its middle from the left of the slot, in widths of a slot */
    uint8_t letter[PATCH_SLOTS]; /* the likeliest class */
    float kind[ELEMENT_KINDS];   /* probabilities */
};

struct patch_map {
    int rows, cols, side;          /* of patches; pixels of a patch */
    double scale;                  /* pixels of what the tower saw for one of the picture */
    struct patch_reading *patches; /* [rows * cols], owned; NULL: the model has no heads */
};

void patch_map_free(struct patch_map *m);

#endif
