/* trace.h - records a run while it is in progress.
 *
 *   RUNS/20261121T054500Z-9f3c01ab/
 *     run.json        task, settings and model; rewritten at the end with the outcome
 *     events.jsonl    one JSON object per line, append-only
 *     frames/, frames.idx    the screenshots (frames.h)
 *     tokens.bin      32-bit token ids; events contain offsets
 *     logprobs.bin    two 32-bit floats per generated token: log-probability before and after the logit
 *                     mask of the grammar; NaN for a forced token
 *     exchanges.jsonl requests to an endpoint and its responses, for a remote model
 *     report.html     made from the above (report.h)
 *
 * Each event is one write(2): a killed run leaves at most an incomplete last line, which readers drop.
 * trace_sync() returns when the screenshots are written and the events are on the disk; the agent loop calls
 * it before each action and at the end of a step. Files have mode 0600, directories 0700. After the first
 * failure (such as a full disk) every call reports it and nothing more is written.
 *
 *   trace_begin(t, step, "observe");
 *   trace_int(t, "frame", number);
 *   if (trace_end(t, e)) ... */
#pragma once

#include "base/err.h"
#include "base/image.h"

#include <stddef.h>
#include <stdint.h>

struct trace;

/* Creates a new directory in `runs` (NULL: in the user's state directory). Returns NULL with e. */
struct trace *trace_open(const char *runs, struct err *e);
const char *trace_dir(const struct trace *t);
/* Waits for the screenshots and frees t; NULL is allowed. Returns -1 with e for a failure that no earlier
 * call has reported. */
int trace_close(struct trace *t, struct err *e);

/* Sets a function that removes secrets from each JSON text before it is written. */
struct buf;
void trace_scrub(struct trace *t, void (*scrub)(const void *arg, struct buf *json), const void *arg);

/* Sets a function that is called with each event after it was written, without secrets, in the recording
 * thread. */
void trace_listen(struct trace *t, void (*listen)(void *arg, const char *json, size_t len), void *arg);

int trace_run_json(struct trace *t, const char *json, size_t len, struct err *e);

void trace_begin(struct trace *t, int step, const char *kind);
void trace_text(struct trace *t, const char *key, const char *value); /* NULL: null */
void trace_int(struct trace *t, const char *key, int64_t value);
void trace_number(struct trace *t, const char *key, double value);
void trace_bool(struct trace *t, const char *key, bool value);
/* Adds 16 hexadecimal digits in quotes. */
void trace_hash(struct trace *t, const char *key, uint64_t hash);
void trace_json(struct trace *t, const char *key, const char *json); /* Adds a value that is already JSON. */
int trace_end(struct trace *t, struct err *e);

/* Keeps the events that follow in memory. trace_release() writes them; trace_drop() forgets them, as if they
 * had not been recorded. Both do nothing if no events are held. */
void trace_hold(struct trace *t);
int trace_release(struct trace *t, struct err *e);
void trace_drop(struct trace *t);

/* Writes a screenshot. *number: equal images have equal numbers. */
int trace_frame(struct trace *t, const struct image *im, uint64_t hash, int *number, struct err *e);
/* Appends to tokens.bin. *at: offset of the first id, in tokens. */
int trace_tokens(struct trace *t, const int32_t *ids, int64_t n, int64_t *at, struct err *e);
/* Appends n pairs to logprobs.bin. */
int trace_logprobs(struct trace *t, const float *pairs, int64_t n, int64_t *at, struct err *e);
/* Appends a line of JSON to exchanges.jsonl: a request to an endpoint and its response
 * (remote/exchanges.h). */
int trace_exchange(struct trace *t, const char *json, size_t len, struct err *e);
int trace_sync(struct trace *t, struct err *e);

/* Returns the default directory of runs; the caller frees it. */
char *trace_runs_dir(struct err *e);
