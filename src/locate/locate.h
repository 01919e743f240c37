/* locate.h - where on a picture a thing with this name is, from what a small model's tower reads
 * (patch_map.h).
 *
 *   patches --letters--> lines of text --names--> where a name is written --pointer--> its field, tick, or it
 *
 * A small language model reads a picture row by row.  When it reads a name, it has not seen yet what
 * follows: the end of the name, or the field on its right.  Attention in the tower is bidirectional, so the
 * letters that it reads, and what it says is named by them, can correct the place at which the language model
 * points.  These are pure functions; coordinates are pixels of what the tower saw.
 */
#ifndef HOLORUN_LOCATE_LOCATE_H
#define HOLORUN_LOCATE_LOCATE_H

#include "model/patch_map.h"

#include <stdbool.h>

enum {
    LOCATE_LETTERS = 8192, /* of a picture; more are left out */
    LOCATE_NAME = 64,      /* letters of a name that are compared */
    LOCATE_PLACES = 16,    /* where a name is written */
};

struct letter {
    float x, y, mass; /* middle; summed probability */
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

/* The text of a picture, lines in no order.  text_free frees it. */
struct picture_text text_read(const struct patch_map *m);
void text_free(struct picture_text *t);

/* n letters of a line as text of less than `size` bytes, with blanks where they are further apart than in a
 * word by more than such a part of an em. */
void text_spell(const struct letter *l, int n, float blank, char *out, int size);
float text_pitch(const struct letter *l, int n); /* pixels from most letters to the next */

struct written {     /* where a name is written */
    float x0, x1, y; /* middles of its first and last letter, and of the line */
    float cost;      /* letters that differ, and .8 for each side on which it goes on as a longer word */
};

/* Where a name is written, the best readings first: at most LOCATE_PLACES.  Such a share of its letters may
 * differ; upper and lower case are one. */
int text_find(const struct picture_text *t, const char *name, float may_differ, struct written *out);

/* The share of letters in which m of them in a row differ from a name; of text_differs 0 when they are a part
 * of it. */
float text_unlike(const struct letter *line, int m, const char *name);
float text_differs(const struct letter *line, int m, const char *name);
/* The same of two names. */
float names_differ(const char *a, const char *b);

struct pointed { /* the thing that a name names */
    float x, y;
    float p, nothing; /* probabilities of the thing, and that the name is plain text */
};

/* Logarithms of the probabilities of what the name on this patch names: out[0] of nothing, out[1 + i] of
 * patch i. */
void pointer_read(const struct patch_map *m, int patch, float *out);

/* What a name that is written here names.  likely[i]: the probability that patch i is of the kind that is
 * looked for, to which `unlikely` is added; NULL: any kind is. */
struct pointed pointer_follow(const struct patch_map *m, const struct written *w, const float *likely,
                              float unlikely);

enum locate_for { LOCATE_CLICK, LOCATE_TYPE };
enum located {
    LOCATED_THERE,     /* the place is good as it is, as far as can be told */
    LOCATED_ELSEWHERE, /* it was moved onto what the name names */
    LOCATED_NOWHERE,   /* the name is not written, and the button there says something else */
};

/* Puts right the place at which the thing with this name is said to be.  The name may be empty; then the
 * place is only moved onto an element that is near.  A place with a name only moves onto the named thing. */
enum located locate(const struct patch_map *m, const char *name, enum locate_for what, double *x, double *y);

/* Whether anything of this name, or nearly, is written there: so that it could be meant. */
bool may_be_written(const struct picture_text *t, const char *name);

/* Whether what is written there names a field more than anything else. */
bool names_field(const struct patch_map *m, const struct written *w);

struct thing {
    float x, y;         /* pixels */
    float p;            /* that the name names it */
    bool field, button; /* neither: a tick, an option, an item, ... */
};

/* What on a picture surely has this name; false: nothing.  A quarter of the letters may be read wrongly, or
 * (`exactly`) none. */
bool thing_of_name(const struct patch_map *m, const struct picture_text *t, const char *name, bool exactly,
                   enum locate_for what, struct thing *out);

/* Whether a text is written, letter by letter and as words of its own. */
bool text_is_written(const struct picture_text *t, const char *text);

/* Whether neither a name nor any longer word of it is written, even nearly: the share of the letters that
 * differ in the best reading; 0: it may be there. */
float text_absent(const struct picture_text *t, const char *name);

/* The end of a line that is nearest to what was said of it (aloud.c), as text of less than `size` bytes;
 * false: none is near. */
bool text_aloud(const struct picture_text *t, const char *said, char *out, int size);

/* The names of fields, or of what can be clicked, whose letters are surely read (labels.c), at most max;
 * where blanks are hard to tell, with and without them.  Returns how many. */
int labels_read(const struct patch_map *m, const struct picture_text *t, enum locate_for what,
                char (*out)[LOCATE_NAME], int max);

/* Whether a name is written nowhere as it is said, and where it nearly is, other letters are surely read. */
bool is_misspelt(const struct picture_text *t, const char *name);

#endif
