/* progress.h - the progress of a run on stderr.
 *
 * Texts of the model and the screen may contain any bytes: control characters never reach the terminal.
 * Colours are used only on a terminal and without NO_COLOR.
 */
#pragma once

#include "trace/status.h"
#include "trace/story.h"

#include <stdio.h>

struct secrets;
struct progress {
    FILE *f; /* NULL: silent */
    bool color, verbose;
    const struct secrets *secrets; /* printed as their names; NULL: none */
    struct progress_line *line;    /* text being generated; NULL: f is not a terminal */
};

struct progress_tokens {
    int64_t reused, prefilled;
    int generated, forced, images;
    int proposed, accepted; /* speculated tokens */
};

/* Prints s as printable text in one line, whatever bytes it contains; at most 600 bytes. */
void progress_text(FILE *f, const char *s);

void progress_open(struct progress *p, FILE *f, bool quiet, bool verbose);
void progress_close(struct progress *p);
void progress_head(const struct progress *p, const char *name, const char *text); /* "task  Book the ..." */
void progress_thought(const struct progress *p, int step, const char *thought);
void progress_action(const struct progress *p, const char *what);
void progress_trouble(const struct progress *p, const char *text); /* an error that the model reads */
void progress_times(const struct progress *p, const double ms[PHASES], const struct progress_tokens *t);
struct agent_server;
/* Prints "server: 5120 tokens, 80 % of them cached, 0.0021 USD". */
void progress_server(const struct progress *p, const struct agent_server *s);
/* Shows the text that the model is generating on one line of a terminal; the next output replaces the
 * line. */
void progress_writing(const struct progress *p, const char *text, size_t len);
void progress_tail(const struct progress *p, enum status_colour colour, const char *name, const char *text);
