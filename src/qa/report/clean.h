/* clean.h - untrusted text made fit for reports.
 *
 * Programs, screens and models may write anything.  Cleaned text is valid UTF-8 without control
 * characters, terminal sequences, characters that XML forbids and changes of the writing direction; each
 * format then escapes its own few.
 */
#ifndef HOLORUN_QA_REPORT_CLEAN_H
#define HOLORUN_QA_REPORT_CLEAN_H

#include <stddef.h>

/* A copy, owned by the caller, of the last `most` bytes or so, after a line that counts what is left out.
 * \n and \t stay, U+0085, U+2028 and U+2029 become \n, broken bytes U+FFFD.  NULL is "". */
char *clean_text(const char *s, size_t most);
/* The beginning in one line of at most `most` bytes and "...". */
char *clean_line(const char *s, size_t most);

#endif
