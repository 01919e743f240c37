/* hub.h - downloads models from the Hugging Face hub into the cache that other tools share
 * (checkpoint/known.h).
 *
 * Only these files and `remote` open network connections to other machines, and only `holorun pull` uses
 * them. Requests go to $HF_ENDPOINT or the hub's address; the token is sent to that host only. After an error
 * the downloaded part of a file is kept, and the next call continues it. Routes: GET
 * api/models/REPO/revision/REV?blobs=true, GET REPO/resolve/COMMIT/PATH.
 */
#pragma once

#include "base/err.h"
#include "checkpoint/hub_listing.h"

struct pull_options {
    const char *repo;     /* "ORG/NAME" */
    const char *revision; /* branch, tag or commit; NULL: main */
    const char *key;      /* "env:VAR" or "file:PATH"; NULL: the token file of other tools, if it exists */
    const char *const *include; /* see listing_parse */
    bool quiet;
};

struct hub; /* one repository at one commit */

/* Requests the list of files. Returns NULL with e. */
struct hub *hub_open(const struct pull_options *o, struct err *e);
void hub_close(struct hub *h); /* h may be NULL */

const struct hub_listing *hub_listing(const struct hub *h);
const char *hub_endpoint(const struct hub *h);
const char *hub_before(
    const struct hub *h); /* Returns the commit to which the revision referred at the last download; NULL:
                           * none, or the same commit. */
uint64_t hub_missing(const struct hub *h); /* Returns the bytes that must still be downloaded. */

/* Downloads the missing files, verifies sizes and hashes, and links the files into a snapshot. Returns the
 * path of the snapshot, which the caller frees, or NULL with e. */
char *hub_pull(struct hub *h, struct err *e);
