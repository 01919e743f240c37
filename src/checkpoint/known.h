/* known.h - models that are known by name, and where a pulled one lies on this machine.
 *
 * Pulled models lie in the folder that other programs for such models share:
 *     CACHE/models--ORG--NAME/refs/main               the commit that the name stands for
 *                             snapshots/COMMIT/...    the files of a commit, links into blobs
 *                             blobs/HASH
 * CACHE is $HF_HUB_CACHE, $HUGGINGFACE_HUB_CACHE, $HF_HOME/hub, or huggingface/hub below $XDG_CACHE_HOME
 * (~/.cache).
 */
#ifndef HOLORUN_CHECKPOINT_KNOWN_H
#define HOLORUN_CHECKPOINT_KNOWN_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct known_model {
    const char *name; /* what is typed: "holo3.1-0.8b" */
    const char *repo; /* "Hcompany/Holo-3.1-0.8B" */
    const char *purpose, *licence;
    double gb;                       /* 1e9 bytes of the files */
    double language, active, vision; /* 1e6 parameters: of the language model, of one token, of the tower */
    int tokens, patches;             /* of a screenshot of 1920x1080; 0: a text model */
};

extern const struct known_model known_models[]; /* ends with {0}; the smallest of a family first */

/* By name or repository, capitals or not; NULL: not known. */
const struct known_model *known_find(const char *name);

/* Returns whether the model has no vision tower: it answers in text and cannot see a screen. */
bool known_is_text(const struct known_model *m);

/* The widest storage type of weights that leaves a quarter of `room` bytes free; NULL: none.  bits: of a
 * weight. */
const char *known_fits(const struct known_model *m, double room, double *bits);

/* A model to use instead of the embedded one in `room` bytes: the largest one with a tower that was pulled,
 * else the smallest of all.  NULL: none. */
const struct known_model *known_better(double room, bool *pulled);

/* Whether a text is a repository, ORG/NAME as the hub allows it. */
bool known_is_repo(const char *text);
bool known_is_commit(const char *text); /* 40 hex digits */

/* The folders above; the caller frees them. */
char *known_cache(struct err *e);
char *known_folder(const char *cache, const char *repo);

/* Returns whether a path is an existing folder models--ORG--NAME, or snapshots in it. */
bool known_is_folder(const char *path);

/* Returns the snapshot of a branch, tag or commit in such a folder, without a ref the only one; the caller
 * frees it. */
char *known_snapshot(const char *folder, const char *revision, struct err *e);

/* Returns the model in a snapshot of a folder as model_in does (find.h); NULL always with a message. */
char *known_model_in(const char *folder, const char *snapshot, struct err *e);

/* The snapshot of a name, a repository or REPO@REVISION that was pulled whole; NULL with what to do. */
char *known_pulled(const char *name, struct err *e);

#endif
