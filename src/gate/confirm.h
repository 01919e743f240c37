/* confirm.h - asks a person for confirmation; anything but yes is no.
 *
 *     auto          at the terminal when there is one, else never
 *     tty           at the terminal that this process belongs to
 *     cmd:COMMAND   a shell command gets the question as JSON on stdin; exit code 0 is yes
 *     never         nobody is asked: no
 *     yes-to-all    nobody is asked: yes
 *
 *     caller        the program that called `holorun mcp` may answer itself, with its tool run_answer
 *
 * A run that another program started asks through it (CONFIRM_HOST), also with auto.
 *
 * No answer in time is no.  The run's stop flag ends the question at once.
 */
#ifndef HOLORUN_GATE_CONFIRM_H
#define HOLORUN_GATE_CONFIRM_H

#include "base/err.h"
#include "base/image.h"

#include <stdio.h>

enum confirm_method { CONFIRM_AUTO, CONFIRM_TTY, CONFIRM_COMMAND, CONFIRM_NEVER, CONFIRM_YES, CONFIRM_HOST };

#define CONFIRM_CALLER "caller"

struct confirm_line {
    const char *name, *text;
};

struct confirm_question {
    const struct confirm_line *lines; /* for people; control characters are not shown */
    int n_lines;
    const struct image *crop; /* around the target; NULL: none */
    const char *json;         /* the whole question, for a command */
};

enum confirm_answer {
    CONFIRM_ALLOWED,
    CONFIRM_DECLINED,
    CONFIRM_TIMED_OUT, /* no answer in time */
    CONFIRM_NOBODY,    /* there is nobody to ask, or asking failed */
    CONFIRM_STOPPED    /* the stop flag was set */
};

struct confirm {
    enum confirm_method method;
    const char *command; /* borrowed */
    double seconds;
    /* CONFIRM_HOST: waits for the answer, the time or the stop flag. */
    enum confirm_answer (*ask)(void *arg, const struct confirm_question *q, double seconds,
                               const volatile int *stop);
    void *arg;
};

/* Parses one of the words above; -1 with ERR_USAGE. */
int confirm_parse(const char *text, struct confirm *out, struct err *e);

/* A picture in a terminal, two pixels per character cell, at most `columns` wide.  Nothing when the
 * terminal has fewer than 256 colours or NO_COLOR is set. */
void confirm_print_picture(FILE *f, const struct image *im, int columns);

/* who: "terminal", "command", "host", "nobody", "unattended". */
enum confirm_answer confirm_ask(const struct confirm *c, const struct confirm_question *q,
                                const volatile int *stop, const char **who);

#endif
