/* identity.h - everything that can change the outcome of a test, to recognise results that do not belong
 * together.
 *
 *     {"build": "0.1.0 (a1b2c3d)", "model": "8f00... 31d4...", "dialect": "holo3 77aa...",
 *      "settings": {"retries": 2, ...}, "selection": "b1c2...", "suite": {"task": "8f00...", ...}}
 *
 * Files named by options count by their contents. Shards, and parts of an interrupted shard, must have equal
 * identities. Paths of output files, numbers of
 * jobs and the like are not part of it. */
#pragma once

#include "qa/suite/suite.h"

struct job_model;
struct dialect;

/* Makes an identity without a model. settings: all options of the command (options_json()), which this
 * function releases. */
json_t *identity_new(const struct suite *s, const char *version, const char *build, json_t *settings);
/* Sets the model and the dialect, once they are open; d NULL: none. */
void identity_set_model(json_t *identity, const struct job_model *m, const struct dialect *d);
/* Copies the model and the dialect of earlier results, until the model is open. */
void identity_copy_model(json_t *identity, const json_t *earlier);

/* Returns what differs between two identities ("the suite's checks", "--retries (2 and 0)"), or NULL if they
 * are equal; the caller frees it. NULL counts as the identity of results that have none. */
char *identity_difference(const json_t *a, const json_t *b);
