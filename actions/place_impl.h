/* place_impl.h - shared by place.c, place_text.c and place_json.c. */
#ifndef HOLORUN_ACTIONS_PLACE_IMPL_H
#define HOLORUN_ACTIONS_PLACE_IMPL_H

#include "actions/place.h"

/* How explicitly a notation marks its numbers as a place.  The most explicit one in a text counts. */
enum place_rank { RANK_NONE, RANK_WORDS, RANK_BRACKETS, RANK_MARKED };

enum { PLACE_MAX_NUMBERS = 5, PLACE_MAX_DEPTH = 6 };

struct place_numbers {
    int n; /* how many were read; the first PLACE_MAX_NUMBERS are stored */
    double v[PLACE_MAX_NUMBERS];
    bool real[PLACE_MAX_NUMBERS]; /* written with a decimal point */
};

struct place_finder {
    enum place_rank rank; /* of `found` */
    struct place found, other;
    bool several;      /* `other` has the same rank and differs */
    bool bad;          /* a marked place is malformed */
    struct err reason; /* why the last malformed place was refused */
    int depth;
    int tries; /* JSON values that were parsed */
};

void place_found(struct place_finder *f, enum place_rank rank, const struct place *at);
void place_refused(struct place_finder *f, enum place_rank rank, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Makes a point of two numbers or a box of four, and notes it, or notes why it is refused. */
void place_from_numbers(struct place_finder *f, enum place_rank rank, const struct place_numbers *n);

/* The same alone; returns -1 with a message when it is refused. */
int place_combine(const struct place_numbers *n, struct place *out, struct err *e);

/* Reads numbers separated by blanks, commas, semicolons, quotes and brackets.  Returns false when
 * s[0..len) has anything else. */
bool place_numbers(const char *s, size_t len, struct place_numbers *out);

/* Reads a number, with "px" behind it or not.  Returns its end, NULL when there is none or when a letter, a
 * percent sign or an operator follows. */
const char *place_number(const char *s, const char *end, struct place_numbers *out);

/* Whether the whole text says that the element is absent: "none", "[]", "not found". */
bool place_says_absent(const char *s, size_t len);

/* Whether a name (of a key, an argument or a tag) announces a place: "point_2d", "start_box",
 * "coordinate". */
bool place_is_name(const char *name, size_t len);

/* Notes the places in a text without fence and reasoning; in a JSON value. */
void place_scan(struct place_finder *f, const char *s, size_t len);
void place_scan_json(struct place_finder *f, const json_t *v);
void place_scan_member(struct place_finder *f, const char *key, const json_t *v);

#endif
