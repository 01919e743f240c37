/* confirm.h - a question to a person, whose answer is no unless it is yes.
 *
 *     auto          at the terminal when there is one, else never
 *     tty           at the terminal that this process belongs to
 *     cmd:COMMAND   a shell command gets the question as JSON on stdin; exit code 0 is yes
 *     never         nobody is asked: no
 *     yes-to-all    nobody is asked: yes
 *
 * An answer that does not come in time is no.  The stop flag of the run ends the question at once.
 */
#ifndef HOLORUN_GATE_CONFIRM_H
#define HOLORUN_GATE_CONFIRM_H

#include "base/err.h"
#include "base/image.h"

enum confirm_how { CONFIRM_AUTO, CONFIRM_TTY, CONFIRM_COMMAND, CONFIRM_NEVER, CONFIRM_YES };

struct confirm {
    enum confirm_how how;
    const char *command; /* borrowed */
    double seconds;
};

/* The words above; ERR_USAGE. */
int confirm_parse(const char *text, struct confirm *out, struct err *e);

struct confirm_line {
    const char *name, *text;
};

struct confirm_question {
    const struct confirm_line *lines; /* for people; control characters are not shown */
    int n_lines;
    const struct image *crop; /* around the target; NULL: none */
    const char *json;         /* all of it, for a command */
};

enum confirm_answer {
    CONFIRM_ALLOWED,
    CONFIRM_DECLINED,
    CONFIRM_LATE,   /* no answer in time */
    CONFIRM_NOBODY, /* there is nobody to ask, or the asking failed */
    CONFIRM_STOPPED /* the stop flag was set */
};

/* who: "terminal", "command", "nobody", "unattended". */
enum confirm_answer confirm_ask(const struct confirm *c, const struct confirm_question *q,
                                const volatile int *stop, const char **who);

#endif
