/* place_impl.h - shared by place.c, place_text.c and place_json.c. */
#pragma once

#include "actions/place.h"

/* How explicitly a notation marks its numbers as a place; the most explicit notation in a text counts. */
enum place_rank { RANK_NONE, RANK_WORDS, RANK_BRACKETS, RANK_MARKED };

enum { PLACE_MAX_NUMBERS = 5, PLACE_MAX_DEPTH = 6 };

struct place_numbers {
    int n; /* number of numbers read; the first PLACE_MAX_NUMBERS are stored */
    double v[PLACE_MAX_NUMBERS];
    bool real[PLACE_MAX_NUMBERS]; /* written with a decimal point */
};

struct place_finder {
    enum place_rank rank; /* rank of `found` */
    struct place found, other;
    bool several;      /* `other` has the same rank and differs */
    bool bad;          /* a marked place is malformed */
    struct err reason; /* reason why the last malformed place was rejected */
    int depth;
    int tries; /* number of JSON values that were parsed */
};

void place_found(struct place_finder *f, enum place_rank rank, const struct place *at);
void place_refused(struct place_finder *f, enum place_rank rank, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Makes a point of two numbers or a box of four, and records it, or the reason why it is rejected. */
void place_from_numbers(struct place_finder *f, enum place_rank rank, const struct place_numbers *n);

/* Makes a place as place_from_numbers() does.  Returns -1 with e if it is rejected. */
int place_combine(const struct place_numbers *n, struct place *out, struct err *e);

/* Reads numbers separated by blanks, commas, semicolons, quotes and brackets.  Returns false if s[0..len)
 * contains anything else. */
bool place_numbers(const char *s, size_t len, struct place_numbers *out);

/* Reads a number, optionally followed by "px".  Returns its end; NULL if there is none or if a letter, a
 * percent sign or an operator follows. */
const char *place_number(const char *s, const char *end, struct place_numbers *out);

/* Returns whether the whole text states that the element is absent: "none", "[]", "not found". */
bool place_says_absent(const char *s, size_t len);

/* Returns whether a name (of a key, an argument or a tag) announces a place: "point_2d", "start_box",
 * "coordinate". */
bool place_is_name(const char *name, size_t len);

/* Record the places in a text without fence and reasoning, or in a JSON value. */
void place_scan(struct place_finder *f, const char *s, size_t len);
void place_scan_json(struct place_finder *f, const json_t *v);
void place_scan_member(struct place_finder *f, const char *key, const json_t *v);
