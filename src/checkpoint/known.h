/* known.h - models with short names, and the location of downloaded models on this machine.
 *
 * Downloaded models are stored in the Hugging Face cache, which other programs share:
 *     CACHE/models--ORG--NAME/refs/main               the commit of branch main
 *                             snapshots/COMMIT/...    the files of a commit: links to blobs
 *                             blobs/HASH
 * CACHE is $HF_HUB_CACHE, $HUGGINGFACE_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub or
 * ~/.cache/huggingface/hub; the first variable that is set determines it. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct known_model {
    const char *name; /* short name on the command line: "holo3.1-0.8b" */
    const char *repo; /* "Hcompany/Holo-3.1-0.8B" */
    const char *purpose, *licence;
    double gb;                       /* size of the files in 1e9 bytes */
    double language, active, vision; /* 1e6 parameters: language model, active per token, vision encoder */
    int tokens, patches;             /* tokens and patches of a screenshot of 1920x1080; 0 for text models */
};

extern const struct known_model known_models[]; /* ends with {0}; within a family, smaller models come
                                                 * first */

/* Returns the model with this short name or repository, compared without case; NULL if none has it. */
const struct known_model *known_find(const char *name);

/* Returns whether the model has no vision encoder: it produces text but cannot see screenshots. */
bool known_is_text(const struct known_model *m);

/* Returns the widest storage type of weights that leaves a quarter of `budget` bytes free; NULL if none
 * fits. Sets *bits to its bits per weight. */
const char *known_fits(const struct known_model *m, double budget, double *bits);

/* Returns a model to use instead of the embedded one within `budget` bytes: the largest downloaded model
 * with a vision encoder, or the smallest of all such models if none is downloaded. Sets *pulled to whether
 * it is downloaded. NULL if none fits. */
const struct known_model *known_better(double budget, bool *pulled);

/* Returns whether a text is a repository name, ORG/NAME, as the Hugging Face hub allows it. */
bool known_is_repo(const char *text);
bool known_is_commit(const char *text); /* whether s is 40 lower-case hex digits */

/* Return the path of CACHE (NULL with e if no variable is set or its value is not absolute), and of
 * CACHE/models--ORG--NAME of a repository. The caller frees them. */
char *known_cache(struct err *e);
char *known_folder(const char *cache, const char *repo);

/* Returns whether a path is an existing directory models--ORG--NAME or the `snapshots` directory in it. */
bool known_is_folder(const char *path);

/* Returns the path of the snapshot of a branch, tag or commit in a directory models--ORG--NAME. Without a
 * ref main, returns the only snapshot for "main". The caller frees it. NULL with e if there is none. */
char *known_snapshot(const char *folder, const char *revision, struct err *e);

/* Returns the model in a snapshot, as model_in does (find.h), but sets e whenever it returns NULL. */
char *known_model_in(const char *folder, const char *snapshot, struct err *e);

/* Returns the model of a downloaded short name, repository or REPO@REVISION, which the caller frees. NULL
 * with a message that names the command to run if it is missing or incomplete. */
char *known_pulled(const char *name, struct err *e);
