/* recorded.h - commands that begin with a run on disk: which run is meant, and the settings it had.
 *
 * A setting of a recorded run becomes a word of the command line, before those that were typed: so what
 * was typed counts, and everything is checked as if it had been typed.  Only the settings that are named
 * are taken: a run directory may come from anywhere, and none of its words starts a program or opens a
 * gate.
 */
#ifndef HOLORUN_CLI_RECORDED_H
#define HOLORUN_CLI_RECORDED_H

#include "cli/options.h"
#include "trace/read.h"

/* The folder of a run: a path as it is, else a name below `runs` (NULL: the user's state folder),
 * without a name the newest there.  The caller frees it; NULL with what there is in its place. */
char *recorded_find(const char *name, const char *runs, struct err *e);
int recorded_open(struct record *r, const char *name, const char *runs, struct err *e);

/* Words are read twice where a run's settings stand before them: this is the first time, which leaves
 * argv as it is. *name: the run, NULL when none is named.  Returns what options_parse does; more than
 * one run is an error. */
int recorded_name(const struct command *c, void *settings, int argc, char **argv, const char **name,
                  struct err *e);

struct recorded_line { /* a command line; what was parsed from it points into it */
    char **argv;
    char **words; /* owned; parsing moves those of argv */
    int argc;
};

/* argv[0], then those of the settings `names` (NULL-terminated) that `table` knows, then argv[1..]. */
void recorded_line(struct recorded_line *l, const json_t *settings, const struct option_spec *table,
                   const char *const *names, int argc, char **argv);
void recorded_line_free(struct recorded_line *l);

#endif
