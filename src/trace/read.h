/* read.h - reads a run directory.
 *
 * Its content is not trusted: sizes, numbers of lines and types are checked, unknown keys and kinds are kept
 * and ignored, an incomplete last line is dropped, other invalid lines are skipped and counted. */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RECORD_MAX_BYTES = 256 << 20,
    RECORD_MAX_LINE = 2 << 20,
    RECORD_MAX_EVENTS = 200000,
    RECORD_MAX_RUN = 4 << 20,
    RECORD_MAX_FRAME = 64 << 20,
};

struct event {
    json_t *fields; /* an object; owned */
    const char *kind;
    int step;
    int64_t ns; /* monotonic */
};

struct record {
    char *dir;
    json_t *run; /* run.json, an object; empty if the file is missing or invalid */
    struct event *events;
    int n, cap;
    int skipped; /* number of invalid lines */
    bool torn;   /* the last line had no newline */
};

int record_open(struct record *r, const char *dir, struct err *e);
void record_free(struct record *r);

/* Parses the lines of events.jsonl; for tests and fuzzing. Returns -1 with e. */
int record_parse(struct record *r, const char *data, size_t len, struct err *e);

/* Return a member by name; "", 0 or false if it is missing or has another type. */
const char *field_text(const json_t *object, const char *key);
double field_number(const json_t *object, const char *key);
int64_t field_int(const json_t *object, const char *key);
bool field_bool(const json_t *object, const char *key);

/* Reads frames/NUMBER.png; the caller frees *png. Returns -1 with e. */
int record_frame(const struct record *r, int number, char **png, size_t *len, struct err *e);

/* Returns the newest run directory in `runs`; the caller frees it. Returns NULL with e if there is none. */
char *record_newest(const char *runs, struct err *e);
