/* patch_map.h - per-patch outputs of the screen heads: characters, element class, and the element to which
 * a text label belongs.
 *
 * A small model's vision encoder is trained to read: for each of eight slots of a patch, four across and
 * two down, whether the centre of a character is in it, which character, and where in the slot.  After a
 * block of their own, further heads give the class of the element to which the patch belongs and, if a
 * label is on the patch, which other patch shows the labelled element: a pointer network (Vinyals et al.
 * 2015) with relative positions (Shaw et al. 2018).  The heads are optional tensors of a checkpoint
 * ("vision_model.heads.").  The order of classes is that of training
 * (assets/pocket/pocket/heads.py and pointer_training.py). */
#pragma once

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

/* Logits for a label on this patch i: `nothing`, if it is plain text, and for patch j, which is `rows`
 * below and `columns` right of it, query_i . key_j / sqrt(POINTER_WIDTH) + down_i[POINTER_FAR + rows] +
 * right_i[POINTER_FAR + columns] */
struct patch_pointer {
    float query[POINTER_WIDTH], key[POINTER_WIDTH], nothing;
    float down[POINTER_STEPS], right[POINTER_STEPS];
};

struct patch_reading {
    float present[PATCH_SLOTS];  /* probability of a character */
    float shift[PATCH_SLOTS];    /* distance of its centre from the left of the slot, in slot widths */
    uint8_t letter[PATCH_SLOTS]; /* most probable class */
    float kind[ELEMENT_KINDS];   /* probabilities */
    struct patch_pointer pointer;
};

struct patch_map {
    int rows, cols, side;          /* rows and columns of patches; pixels per side of a patch */
    double scale;                  /* pixels of the encoder's input for one pixel of the image */
    struct patch_reading *patches; /* [rows * cols], owned; NULL: the model has no heads */
};

void patch_map_free(struct patch_map *m);
