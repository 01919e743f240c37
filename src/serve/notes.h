/* notes.h - members of a request that were ignored, and values that were replaced; sent to the client in two
 * response headers.
 *
 *   x-holorun-ignored: verbosity, tools: web_search
 *   x-holorun-warning: message 2: the arguments of call 1 are not a JSON object; {} is used */
#pragma once

enum { NOTES_BYTES = 1000 };

struct notes {
    char ignored[NOTES_BYTES + 8]; /* names, each once, separated by ", "; "..." if there are too many */
    char warning[NOTES_BYTES + 8]; /* sentences, separated by "; " */
};

/* Adds a name. Bytes that are not allowed in a header become '?'. n may be NULL: nothing is recorded. */
void notes_ignore(struct notes *n, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a sentence without a full stop, with the same rules. */
void notes_warn(struct notes *n, const char *format, ...) __attribute__((format(printf, 2, 3)));
