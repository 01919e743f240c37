/* ollama.h - models in the local store of Ollama.
 *
 *     MODELS/manifests/HOST/NAMESPACE/NAME/TAG    JSON: layers with media type, digest and size
 *     MODELS/blobs/sha256-HEX                     a layer; application/vnd.ollama.image.model is GGUF
 *     MODELS/blobs/sha256-HEX-partial*            part of an unfinished download
 *
 * MODELS is $OLLAMA_MODELS, ~/.ollama/models, or the directory of the system service. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Returns whether ollama_find accepts a text: ollama:NAME[:TAG], sha256:HEX, sha256-HEX, or the path of a
 * blob or manifest. */
bool ollama_is_name(const char *option);

/* Returns the GGUF place (base/gguf.h) of a model, with the vision projector that its manifest lists. The
 * caller frees it. NULL with a message that names the missing file. */
char *ollama_find(const char *option, struct err *e);

/* Returns the GGUF place (base/gguf.h) of the model that a manifest describes. text[len]: the manifest;
 * models: directory with its blobs; name: for messages. The caller frees the result. NULL with e on
 * failure. */
char *ollama_place(const char *models, const char *text, size_t len, const char *name, struct err *e);
