/* hub_listing.h - the files of a repository at one commit, as the model hub lists them.
 *
 * Source: the answer to GET api/models/ORG/NAME/revision/REV?blobs=true.
 */
#ifndef HOLORUN_CHECKPOINT_HUB_LISTING_H
#define HOLORUN_CHECKPOINT_HUB_LISTING_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LISTING_FILES = 2000, LISTING_PATH = 255, LISTING_DEPTH = 8, LISTING_BYTES = 16 << 20 };

struct hub_file {
    char *path;    /* relative, no "..", no control characters */
    uint64_t size; /* bytes */
    char hash[65]; /* hex: SHA-256 of the file where it is large, else git's SHA-1 of it as a blob */
};

struct hub_listing {
    char commit[41];
    int n;
    struct hub_file *files; /* those that a model is made of: see listing_wants */
    uint64_t bytes;
};

/* include: patterns as of the shell, NULL-terminated; empty: what a model directory needs (json, jinja,
 * txt, model, safetensors, and licences).  -1 when the text is no such list, or holds names that could
 * leave a folder. */
int listing_parse(const char *json, size_t len, const char *const *include, struct hub_listing *out,
                  struct err *e);
void listing_free(struct hub_listing *l);

#endif
