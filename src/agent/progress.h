/* progress.h - the progress of a run on stderr.
 *
 * Texts of the model and the screen may hold anything: control characters never reach the terminal.  Colours
 * only on a terminal and without NO_COLOR.
 */
#ifndef HOLORUN_AGENT_PROGRESS_H
#define HOLORUN_AGENT_PROGRESS_H

#include "trace/status.h"
#include "trace/story.h"

#include <stdio.h>

struct secrets;
struct progress {
    FILE *f; /* NULL: silent */
    bool color, verbose;
    const struct secrets *secrets; /* shown by their names; NULL: none */
    struct progress_line *line;    /* being written; NULL: f is no terminal */
};

struct progress_tokens {
    int64_t reused, prefilled;
    int generated, forced, images;
    int proposed, accepted; /* guesses of speculation */
};

/* Printable text in one line, whatever s holds. */
void progress_text(FILE *f, const char *s);

void progress_open(struct progress *p, FILE *f, bool quiet, bool verbose);
void progress_close(struct progress *p);
void progress_head(const struct progress *p, const char *name, const char *text); /* "task  Book the ..." */
void progress_thought(const struct progress *p, int step, const char *thought);
void progress_action(const struct progress *p, const char *what);
void progress_trouble(const struct progress *p, const char *text); /* an error that the model reads */
void progress_times(const struct progress *p, const double ms[PHASES], const struct progress_tokens *t);
struct agent_server;
/* "server: 5120 tokens, 80 % of them cached, 0.0021 USD" */
void progress_server(const struct progress *p, const struct agent_server *s);
/* The text that the model is writing, on one line of a terminal; the next output replaces it. */
void progress_writing(const struct progress *p, const char *text, size_t len);
void progress_tail(const struct progress *p, enum status_colour colour, const char *name, const char *text);

#endif
