/* recorder.h - watches a display and writes what a person does there into a recording.
 *
 * The file grows as FILE.part, one whole line for each step, and gets its name at the end; a recorder that
 * is killed leaves the part, which can be played.  Sends no input.  It ends when the screen's stop flag is
 * set (screen_watch()).
 */
#ifndef HOLORUN_RECORD_RECORDER_H
#define HOLORUN_RECORD_RECORDER_H

#include "base/secret.h"
#include "screen/screen.h"

struct recorder_options {
    struct screen *screen; /* of the whole root window, with a watch */
    const char *path;
    const struct secrets *secrets; /* typed values that become {{NAME}}; NULL: none */
    bool elements;                 /* ask for names through AT-SPI */
    bool quiet;                    /* no line on stderr for each step */
};

enum { RECORDER_SECRETS = 8 };
struct recorder_result {
    int steps, named;               /* named: targets with the name of an element */
    char title[256], command[1024]; /* of the last window with a title; of the first program that was used */
    char hidden[RECORDER_SECRETS][SECRET_NAME]; /* names of what was typed into password fields */
    int n_hidden;
};

int recorder_run(const struct recorder_options *o, struct recorder_result *r, struct err *e);

#endif
