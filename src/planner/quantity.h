/* quantity.h - numbers, times and dates in words: "one hundred and fifty", "ten to ten", "2nd of March". */
#pragma once

#include "plain/words.h"
#include "planner/match.h"

/* Reads the number that begins at word i, in words or digits, "two and a half" as "2.5".  Returns its number
 * of words, 0: none. */
int quantity_number(struct span s, int i, char out[MATCH_WORD]);
/* Reads a time, "twenty to ten" as "9:40", likewise. */
int quantity_time(struct span s, int i, char out[MATCH_WORD]);
/* Reads a date, and writes it in the form of another one, "24.02.2026", whose year it gets if it has none.
 * Returns 0 also if that form is none, or does not tell days from months. */
int quantity_date(struct span s, int i, const char *like, char out[MATCH_WORD]);
/* Returns whether word i is the year of a date before it, after a comma: "July 5, 2027". */
bool quantity_is_year(struct span s, int i);
