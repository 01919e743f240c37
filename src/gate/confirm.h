/* confirm.h - asks the user for confirmation; any answer except yes counts as no.
 *
 *   auto          at the terminal if there is one, otherwise never
 *   tty           at the terminal of this process
 *   cmd:COMMAND   a shell command reads the question as JSON on stdin; exit code 0 means yes
 *   never         nobody is asked; the answer is no
 *   yes-to-all    nobody is asked; the answer is yes
 *   caller        the program that called `holorun mcp` may answer itself, with its tool run_answer
 *
 * A run that was started by another program asks through that program (CONFIRM_HOST), also with auto.
 *
 * Without an answer in time the answer is no. The stop flag of the run ends the question at once. */
#pragma once

#include "base/err.h"
#include "base/image.h"

#include <stdio.h>

enum confirm_method { CONFIRM_AUTO, CONFIRM_TTY, CONFIRM_COMMAND, CONFIRM_NEVER, CONFIRM_YES, CONFIRM_HOST };

#define CONFIRM_CALLER "caller"

struct confirm_line {
    const char *name, *text;
};

struct confirm_question {
    const struct confirm_line *lines; /* shown to the user; control characters are not printed */
    int n_lines;
    const struct image *crop; /* area around the target; NULL: none */
    const char *json;         /* the complete question, for a command */
};

enum confirm_answer {
    CONFIRM_ALLOWED,
    CONFIRM_DECLINED,
    CONFIRM_TIMED_OUT, /* no answer in time */
    CONFIRM_NOBODY,    /* nobody could be asked */
    CONFIRM_STOPPED    /* the stop flag was set */
};

struct confirm {
    enum confirm_method method;
    const char *command; /* borrowed */
    double seconds;
    /* CONFIRM_HOST: waits for the answer, the time limit or the stop flag. */
    enum confirm_answer (*ask)(void *arg, const struct confirm_question *q, double seconds,
                               const volatile int *stop);
    void *arg;
};

/* Parses one of the words above. Returns -1 with ERR_USAGE for others. */
int confirm_parse(const char *text, struct confirm *out, struct err *e);

/* Prints an image to a terminal, two pixels per character cell, at most `columns` wide. Prints nothing if the
 * terminal has fewer than 256 colours or NO_COLOR is set. */
void confirm_print_picture(FILE *f, const struct image *im, int columns);

/* Asks the question. *who: "terminal", "command", "host", "nobody" or "unattended". */
enum confirm_answer confirm_ask(const struct confirm *c, const struct confirm_question *q,
                                const volatile int *stop, const char **who);
