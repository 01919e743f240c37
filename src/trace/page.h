/* page.h - what pages are made of: escaped text, times, pictures inside the page with markers in their own pixels, and a
 * template with {{slots}}.
 *
 * Everything that came from the screen or the model goes through page_text.
 */
#ifndef HOLORUN_TRACE_PAGE_H
#define HOLORUN_TRACE_PAGE_H

#include "base/image.h"
#include "trace/story.h"

#include <stdio.h>

void page_text(FILE *f, const char *s); /* for element content and for attributes in double quotes alike */
void page_duration(FILE *f, double ms);
void page_base64(FILE *f, const unsigned char *s, size_t n);
void page_pair(FILE *f, const char *name, const char *value); /* of a <dl>; nothing when the value is empty */
void page_bar(FILE *f, const double ms[PHASES]);              /* with its key */

struct page_size {
    int w, h; /* 0: no picture */
};
struct page_size page_png_size(const unsigned char *s, size_t n); /* from its first chunk */

/* Where an action aimed, in pixels of a picture of this size; scale: of the ring, as a part of its longer side. */
void page_marker(FILE *f, const json_t *action, struct page_size size, double scale, bool pulse);

void page_nonce(char nonce[33]); /* random, for the page's own script */

/* {{style}} is the same on every page. */
struct page_slot {
    const char *name;
    void (*print)(void *arg);
};
void page_print(const char *template, const struct page_slot *slots, int n, FILE *f, void *arg);

#endif
