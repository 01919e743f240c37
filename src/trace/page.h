/* page.h - building blocks of HTML pages: escaped text, durations, embedded images with markers, templates
 * with {{slots}}.
 *
 * All text from the screen or the model is written with page_text(). */
#pragma once

#include "base/image.h"
#include "trace/story.h"

#include <stdio.h>

/* Writes text escaped for element content and for attributes in double quotes. */
void page_text(FILE *f, const char *s);
/* Writes page_text(s) between two pieces of markup. */
void page_between(FILE *f, const char *before, const char *s, const char *after);
void page_duration(FILE *f, double ms);
void page_base64(FILE *f, const unsigned char *s, size_t n);
void page_pair(FILE *f, const char *name,
               const char *value); /* Writes <dt> and <dd>; nothing if the value is empty. */
void page_pairf(FILE *f, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);
void page_bar(FILE *f, const double ms[PHASES]); /* Writes a bar of phase durations with its legend. */

struct page_size {
    int w, h; /* 0: not an image */
};
struct page_size page_png_size(const unsigned char *s, size_t n); /* Reads the size from the IHDR chunk. */

/* Marks the target of an action in an image of this size. scale: radius as a fraction of the longer side. */
void page_marker(FILE *f, const json_t *action, struct page_size size, double scale, bool pulse);

void page_nonce(char nonce[33]); /* Writes a random nonce for the page's script. */

/* A named part of a template. {{style}} is the same on every page. */
struct page_slot {
    const char *name;
    void (*print)(void *arg);
};
void page_print(const char *template, const struct page_slot *slots, int n, FILE *f, void *arg);
