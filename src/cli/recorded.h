/* recorded.h - commands about a recorded run: finds the run and applies its settings.
 *
 * Settings of a recorded run become words of the command line before those that were typed: typed words take
 * precedence, and recorded words are checked like typed ones.  Only settings that the caller names are used,
 * because a run directory may come from anywhere: none of its words may start a program or relax a rule. */
#pragma once

#include "actions/dialect.h"
#include "cli/options.h"
#include "trace/read.h"

/* Returns the directory of a run: a path unchanged, else a name below `runs` (NULL: the user's state
 * directory), or the newest run if name is NULL.  The caller frees it.  NULL with e, which names the
 * newest run. */
char *recorded_find(const char *name, const char *runs, struct err *e);
int recorded_open(struct record *r, const char *name, const char *runs, struct err *e);

/* Loads the dialect of a recorded run by name or path; free it with dialect_free().  Returns NULL with the
 * reason and the option that chooses another. */
struct dialect *recorded_dialect(const struct record *r, const char *name, struct err *e);

/* Parses argv without changing it, only to learn the run's name: the first of two parses; the second one
 * follows with the recorded settings in front.  *name: the run, NULL if none is given.  Returns the result of
 * options_parse(). */
int recorded_name(const struct command *c, void *settings, int argc, char **argv, const char **name,
                  struct err *e);

struct recorded_line { /* a command line; the parsed values point into it */
    char **argv;
    char **words; /* owned; parsing reorders those of argv */
    int argc;
};

/* Builds a command line: argv[0], then the settings `names` (NULL-terminated) that `table` contains, then
 * argv[1..]. */
void recorded_line(struct recorded_line *l, const json_t *settings, const struct option_spec *table,
                   const char *const *names, int argc, char **argv);
void recorded_line_free(struct recorded_line *l);

/* Returns a copy of a record's settings.  Records from before activations were rounded by default (without
 * "rounded_matrices") get activations bf16 instead of auto, because auto meant bf16 then. */
json_t *recorded_settings(const json_t *run);
