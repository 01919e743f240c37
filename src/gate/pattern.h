/* pattern.h - what looks like somebody's key or password in a text, replaced by "[redacted]".
 *
 * Works on the inside of a JSON string, so that no match goes beyond a quote or into an escape.
 */
#ifndef HOLORUN_GATE_PATTERN_H
#define HOLORUN_GATE_PATTERN_H

#include "base/buf.h"

/* Appends text[0..len) to out. */
void pattern_scrub(const char *text, size_t len, struct buf *out);

#endif
