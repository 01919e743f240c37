/* licence.h - the licence that a file of a model directory states. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { LICENCE_TEXT = 160, LICENCE_HEAD = 16 << 20 /* LICENCE_HEAD: bytes of a file that are examined */ };

/* Reads the licence statement of a file into out. The file name selects where to look: front matter of
 * *.md, `license` of a JSON file, the metadata of a safetensors or GGUF file, or the first non-empty line
 * of LICENSE, COPYING and NOTICE. head[n] are the first bytes of the file. out gets valid UTF-8, with
 * control characters replaced by spaces. Returns false if the file states no licence. */
bool licence_stated(const char *name, const void *head, size_t n, char out[LICENCE_TEXT]);
