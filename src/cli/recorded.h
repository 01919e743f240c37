/* recorded.h - commands about a recorded run: which run is meant, and its settings.
 *
 * Settings of a recorded run become words of the command line in front of those that were typed: typed
 * ones win, and recorded ones are checked like typed ones.  Only settings that the caller names are taken,
 * because a run directory may come from anywhere: none of its words starts a program or opens a gate.
 */
#ifndef HOLORUN_CLI_RECORDED_H
#define HOLORUN_CLI_RECORDED_H

#include "actions/dialect.h"
#include "cli/options.h"
#include "trace/read.h"

/* The folder of a run: a path as it is, else a name below `runs` (NULL: the user's state folder), or the
 * newest run without a name.  The caller frees it; NULL with what was found instead. */
char *recorded_find(const char *name, const char *runs, struct err *e);
int recorded_open(struct record *r, const char *name, const char *runs, struct err *e);

/* Loads the dialect of a recorded run by name or path; dialect_free() it. Returns NULL with the reason and
 * the option that chooses another. */
struct dialect *recorded_dialect(const struct record *r, const char *name, struct err *e);

/* First of two parses, which only learns the run's name and leaves argv as it is; the second one follows
 * with the recorded settings in front.  *name: the run, NULL when none is named.  Returns what
 * options_parse returns. */
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

/* Returns a copy of a record's settings. Records from before activations were rounded by default (without
 * "rounded_matrices") get activations bf16 for auto, which meant that. */
json_t *recorded_settings(const json_t *run);

#endif
