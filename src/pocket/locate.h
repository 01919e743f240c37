/* locate.h - finds elements on an image by their labels, from the output of the screen heads
 * (patch_map.h).
 *
 *   patches --characters--> lines of text --names--> position of a label --pointer--> its field, ...
 *
 * A small language model reads an image row by row.  When it reads a label, it has not seen the rest of it
 * yet, nor the field on its right.  Attention in the vision encoder is bidirectional, so its characters
 * and pointers can correct the position that the language model gives.  These are pure functions;
 * coordinates are pixels of the encoder's input. */
#pragma once

#include "pocket/patch_map.h"

#include <stdbool.h>

enum {
    LOCATE_LETTERS = 8192, /* characters of an image; further ones are omitted */
    LOCATE_NAME = 64,      /* characters of a label that are compared */
    LOCATE_PLACES = 16,    /* matches of a label */
};

struct letter {
    float x, y, mass; /* centre; summed probability of its detections */
    char c;
};

struct text_line {
    int first, n; /* in picture_text.letters */
};

struct picture_text {
    struct letter *letters;  /* owned, line by line, from left to right */
    struct text_line *lines; /* owned */
    int n, n_lines;
};

/* Reads the text of an image, lines in no particular order; text_free() frees it. */
struct picture_text text_read(const struct patch_map *m);
void text_free(struct picture_text *t);

/* Writes n characters of a line as text of less than `size` bytes.  Puts a space where two are further
 * apart than within a word by more than the fraction `blank` of an em. */
void text_spell(const struct letter *l, int n, float blank, char *out, int size);
void letters_sort(float *gaps, int n);           /* ascending */
float text_pitch(const struct letter *l, int n); /* median distance of characters, in pixels */

struct written {     /* match of a label in the text */
    float x0, x1, y; /* centres of its first and last character, and of the line */
    float cost;      /* edit distance, plus 0.8 for each side on which the word continues */
};

/* Finds a name in the recognized text.  Writes at most LOCATE_PLACES matches to out, best first, and
 * returns their number.  At most the fraction may_differ of the characters may differ; case is ignored. */
int text_find(const struct picture_text *t, const char *name, float may_differ, struct written *out);

/* Returns the normalised edit distance between m characters and a name; text_differs() returns 0 for a
 * substring of it. */
float text_unlike(const struct letter *line, int m, const char *name);
float text_differs(const struct letter *line, int m, const char *name);

struct pointed { /* element of a label */
    float x, y;
    float p, nothing; /* probability of the element, and that the label is plain text */
};

/* Computes log-probabilities for a label on this patch: out[0] that it is plain text, out[1 + i] that patch i
 * belongs to its element. */
void pointer_read(const struct patch_map *m, int patch, float *out);

/* Finds the element of a matched label.  likely[i]: prior probability of patch i, to which `unlikely` is
 * added; NULL: uniform. */
struct pointed pointer_follow(const struct patch_map *m, const struct written *w, const float *likely,
                              float unlikely);

enum locate_for { LOCATE_CLICK, LOCATE_TYPE };
enum located {
    LOCATED_THERE,     /* the position stays */
    LOCATED_ELSEWHERE, /* it was moved to the labelled element */
    LOCATED_NOWHERE,   /* the label was not found, and the button there has another one */
};

/* Corrects the position that the model gives for the element with this label. With an empty label the
 * position moves only to a nearby element, with any other label only to the labelled element. */
enum located locate(const struct patch_map *m, const char *name, enum locate_for what, double *x, double *y);

struct thing {
    float x, y;         /* pixels */
    float p;            /* probability that the label belongs to it */
    bool field, button; /* neither: a checkbox, an option, an item, ... */
};

/* Finds the element that clearly has this label; false: none.  A quarter of the characters may be misread, or
 * (`exactly`) none. */
bool thing_of_name(const struct patch_map *m, const struct picture_text *t, const char *name, bool exactly,
                   enum locate_for what, struct thing *out);

/* Returns whether the recognized text contains exactly this text as separate words. */
bool text_is_written(const struct picture_text *t, const char *text);

/* Returns the normalised edit distance of the best match of a name or any longer word of it if that is too
 * large for a match; 0: the name may be on the image. */
float text_absent(const struct picture_text *t, const char *name);

/* Replaces a transcription by the most similar rest of a line (aloud.c), as text of less than `size`
 * bytes; false: none is similar. */
bool text_aloud(const struct picture_text *t, const char *said, char *out, int size);
