/* pattern.h - replaces what looks like a key or password in a text by "[redacted]".
 *
 * Works on the inside of a JSON string: no match crosses a quote or splits an escape.
 */
#ifndef HOLORUN_GATE_PATTERN_H
#define HOLORUN_GATE_PATTERN_H

#include "base/buf.h"

/* Appends text[0..len) to out with the replacements. */
void pattern_scrub(const char *text, size_t len, struct buf *out);

#endif
