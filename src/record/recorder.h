/* recorder.h - watches a display and writes the user's actions into a recording.
 *
 * The file grows as FILE.part, one complete line per step, and is renamed at the end; a recorder that is
 * killed leaves FILE.part, which can be played. The recorder sends no input. It ends when the screen's stop
 * flag is set (screen_watch()).
 */
#pragma once

#include "base/secret.h"
#include "screen/screen.h"

struct recorder_options {
    struct screen *screen; /* shows the whole root window, with a watch */
    const char *path;
    const struct secrets *secrets; /* values that become {{NAME}} when typed; NULL: none */
    bool elements;                 /* request names through AT-SPI */
    bool quiet;                    /* do not print a line on stderr for each step */
};

enum { RECORDER_SECRETS = 8 };
struct recorder_result {
    int steps, named;               /* named: targets with the name of an element */
    char title[256], command[1024]; /* title of the last titled window; command of the first program used */
    char hidden[RECORDER_SECRETS][SECRET_NAME]; /* names of the values typed into password fields */
    int n_hidden;
};

int recorder_run(const struct recorder_options *o, struct recorder_result *r, struct err *e);
