/* clean.h - cleans untrusted text for reports.
 *
 * The output of programs, screens and models can contain anything. Cleaned text is valid UTF-8 without
 * control characters, terminal sequences, characters that XML forbids, and changes of the writing direction.
 * Each report format then escapes its own special characters. */
#pragma once

#include <stddef.h>

/* Returns a cleaned copy of about the last `most` bytes, after a line that states how many bytes were
 * omitted. Keeps \n and \t; U+0085, U+2028 and U+2029 become \n, invalid bytes U+FFFD. NULL counts as "". The
 * caller frees it. */
char *clean_text(const char *s, size_t most);
/* Returns the beginning as one line of at most `most` bytes, plus "..." if it was cut. The caller frees
 * it. */
char *clean_line(const char *s, size_t most);
