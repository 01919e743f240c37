/* lines.h - the compact text of elements (elements_text()) by lines: limit, search and difference.
 *
 * A line that begins with a ref stands for one element; any other line (windows, texts, named groups) stands
 * for itself.  Lines are compared without indentation. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum { LINES_BYTES = 1 << 20 }; /* limit of all texts of lines */

struct line {
    const char *text; /* without indentation; in the text that was split */
    size_t n;
    int indent;   /* spaces */
    uint32_t ref; /* 0: none */
    bool taken;   /* of use to the functions below */
};

struct lines {
    struct line *l;
    int n;
};

void lines_split(const char *text, struct lines *out); /* text is borrowed */
void lines_free(struct lines *l);

/* Appends a text with at most `bytes` bytes: texts that cannot be acted on are left out first, from the last
 * one, then rows, cells and menu items, then other lines.  A last line counts those that are missing. */
void lines_within(const char *text, size_t bytes, struct buf *out);

/* Appends the lines that contain each word of `words` (in any case; "" or NULL: all) and are of this role
 * (the word of the compact form, or the role of AT-SPI; NULL: any), at most `max`, and the lines above them
 * in the tree.  Returns the number of matching lines, which may be larger than max. */
int lines_find(const char *text, const char *words, const char *role, int max, struct buf *out);

/* Appends the lines of `after` that `before` lacks, under the headings "changed:" (same ref) and "new:", and
 * the lines that are gone.  Returns their number. */
int lines_diff(const char *before, const char *after, struct buf *out);
