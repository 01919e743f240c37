/* hub.h - fetches model directories from the model hub into the folder that others' tools share
 * (checkpoint/known.h).
 *
 * Beside `remote` only these files open a connection; `holorun pull` alone uses them.  Requests go to
 * $HF_ENDPOINT or the hub's address; a token goes to that host and to no other.  What was fetched before
 * an error stays, and the next call goes on behind it.  Routes: GET
 * api/models/REPO/revision/REV?blobs=true, GET REPO/resolve/COMMIT/PATH.
 */
#ifndef HOLORUN_CHECKPOINT_HUB_H
#define HOLORUN_CHECKPOINT_HUB_H

#include "base/err.h"
#include "checkpoint/hub_listing.h"

struct pull_options {
    const char *repo;     /* "ORG/NAME" */
    const char *revision; /* branch, tag or commit; NULL: main */
    const char *key;      /* "env:VAR" or "file:PATH"; NULL: the file that other tools keep, if it is there */
    const char *const *include; /* see listing_parse */
    bool quiet;
};

struct hub; /* one repository at one commit */

/* Asks for the list of files.  NULL with the reason. */
struct hub *hub_open(const struct pull_options *o, struct err *e);
void hub_close(struct hub *h); /* NULL is fine */

const struct hub_listing *hub_listing(const struct hub *h);
const char *hub_endpoint(const struct hub *h);
const char *hub_before(
    const struct hub *h); /* commit that the revision stood for here until now; NULL: none, or the same */
uint64_t hub_missing(const struct hub *h); /* bytes that are not here yet */

/* Fetches what is missing, checks sizes and hashes, links the files into a snapshot.  The snapshot's
 * folder, which the caller frees, or NULL. */
char *hub_pull(struct hub *h, struct err *e);

#endif
