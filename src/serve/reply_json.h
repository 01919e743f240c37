/* reply_json.h - lists and errors in the format of OpenAI's API; replies are in api.h. */
#pragma once

#include "serve/completion.h"

/* Writes {"error": {"message", "type", "param", "code"}}. */
void reply_json_error(struct buf *out, const char *message, const char *type, const char *code);
void reply_json_model(const struct service *s, struct buf *out);
void reply_json_models(const struct service *s, struct buf *out);
