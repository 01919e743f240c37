/* nearest.h - "did you mean": the candidate closest to a misspelt word. */
#ifndef HOLORUN_BASE_NEAREST_H
#define HOLORUN_BASE_NEAREST_H

/* By edit distance; NULL: none of the n is close. */
const char *nearest_word(const char *word, const char *const *candidates, int n);

#endif
