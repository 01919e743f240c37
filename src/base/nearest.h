/* nearest.h - "did you mean": the word somebody is likely to have meant. */
#ifndef HOLORUN_BASE_NEAREST_H
#define HOLORUN_BASE_NEAREST_H

/* Of n candidates the one closest to `word`, if it is close enough to be meant; else NULL. */
const char *nearest_word(const char *word, const char *const *candidates, int n);

#endif
