/* ollama.h - models that Ollama has pulled.
 *
 *     MODELS/manifests/HOST/NAMESPACE/NAME/TAG    JSON: layers with a media type, a digest and a size
 *     MODELS/blobs/sha256-HEX                     a layer; application/vnd.ollama.image.model is GGUF
 *     MODELS/blobs/sha256-HEX-partial*            of an unfinished pull
 *
 * MODELS is $OLLAMA_MODELS, ~/.ollama/models, or that of the system's service.
 */
#ifndef HOLORUN_CHECKPOINT_OLLAMA_H
#define HOLORUN_CHECKPOINT_OLLAMA_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Returns whether a text is for ollama_find: ollama:NAME[:TAG], sha256:HEX, sha256-HEX, the path of a blob or
 * of a manifest. */
bool ollama_is_name(const char *option);

/* Returns the place (base/gguf.h) of a model layer, with the projector that its manifest lists; the caller
 * frees it.  Returns NULL with a message that names the missing file. */
char *ollama_find(const char *option, struct err *e);

/* Returns the place that the text of a manifest stands for, with the blobs of a folder MODELS; name is for
 * messages. */
char *ollama_place(const char *models, const char *text, size_t len, const char *name, struct err *e);

#endif
