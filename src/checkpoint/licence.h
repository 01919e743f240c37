/* licence.h - the licence that a file of a model directory states about itself. */
#ifndef HOLORUN_CHECKPOINT_LICENCE_H
#define HOLORUN_CHECKPOINT_LICENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { LICENCE_TEXT = 160, LICENCE_HEAD = 16 << 20 /* bytes of a file that are looked at */ };

/* By the file's name: the front matter of a README.md, `license` of a JSON file, of the metadata of a
 * safetensors file or of a GGUF file, the first line of LICENSE, COPYING and NOTICE.  False: it states none.
 * The text is the file's own, without control characters. */
bool licence_stated(const char *name, const void *head, size_t n, char out[LICENCE_TEXT]);

#endif
