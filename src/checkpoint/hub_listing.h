/* hub_listing.h - the files of a repository at one commit, as the model hub lists them.
 *
 * Read from the response to GET api/models/ORG/NAME/revision/REV?blobs=true.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LISTING_FILES = 2000, LISTING_PATH = 255, LISTING_DEPTH = 8, LISTING_BYTES = 16 << 20 };

struct hub_file {
    char *path;    /* relative, no "..", no control characters */
    uint64_t size; /* bytes */
    char hash[65]; /* hexadecimal SHA-256 of a large file; for other files git's SHA-1 of the blob */
};

struct hub_listing {
    char commit[41];
    int n;
    struct hub_file *files; /* the files to download, see listing_parse() */
    uint64_t bytes;
};

/* Parses a listing. include: shell patterns of the files to download, NULL-terminated; empty: the files of a
 * model directory (json, jinja, txt, model, safetensors, and licences). Returns -1 with e if the text is not
 * a listing or contains a path that could leave the directory. */
int listing_parse(const char *json, size_t len, const char *const *include, struct hub_listing *out,
                  struct err *e);
void listing_free(struct hub_listing *l);
