/* patch_map.h - what a tower with screen heads says of each patch of a picture: letters, kinds of elements,
 * and what is named by what is written there.
 *
 * A small model's tower is trained to read: for each of eight slots of a patch, four across and two down,
 * whether the middle of a letter is there, which letter, and where in the slot.  After a block of their own,
 * further heads say what kind of element the patch belongs to and, if a name is written on it, which other
 * patch shows the thing of that name: a pointer network (Vinyals et al. 2015) with relative positions (Shaw
 * et al. 2018).  A checkpoint may hold these heads ("vision_model.heads."); towers without them have no maps.
 * Trained by assets/pocket (heads.py); the order of kinds is that of sources/store.py.
 */
#ifndef HOLORUN_MODEL_PATCH_MAP_H
#define HOLORUN_MODEL_PATCH_MAP_H

#include <stdint.h>

enum {
    PATCH_SLOTS = 8,
    PATCH_SLOTS_ACROSS = 4,
    PATCH_LETTERS = 96, /* classes: 0 unused, 1 to 94 are '!' to '~', 95 any other */
    POINTER_WIDTH = 64,
    POINTER_FAR = 63, /* patches, up or down, left or right */
    POINTER_STEPS = 2 * POINTER_FAR + 1,
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

/* Logits of what a name names that is written on this patch i: `nothing`, when it is plain text, and of
 * patch j, which is so many rows below and columns right of it,
 *   query_i . key_j / sqrt(POINTER_WIDTH) + down_i[POINTER_FAR + rows] + right_i[POINTER_FAR + columns] */
struct patch_pointer {
    float query[POINTER_WIDTH], key[POINTER_WIDTH], nothing;
    float down[POINTER_STEPS], right[POINTER_STEPS];
};

struct patch_reading {
    float present[PATCH_SLOTS];  /* probability of a letter */
    float shift[PATCH_SLOTS];    /* of its middle from the left of the slot, in widths of a slot */
    uint8_t letter[PATCH_SLOTS]; /* the likeliest class */
    float kind[ELEMENT_KINDS];   /* probabilities */
    struct patch_pointer pointer;
};

struct patch_map {
    int rows, cols, side;          /* of patches; pixels of a patch */
    double scale;                  /* pixels of what the tower saw for one of the picture */
    struct patch_reading *patches; /* [rows * cols], owned; NULL: the model has no heads */
};

void patch_map_free(struct patch_map *m);

#endif
