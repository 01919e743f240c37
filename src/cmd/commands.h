/* commands.h - the commands of the program, each in its own file: cmd/NAME.c.
 *
 * A command consists of a word of the list below, of `int cmd_NAME(int argc, char **argv)`, which gets its
 * name as argv[0] and returns the exit code, and of a `const struct command NAME_command` with the table of
 * its options (options.h).  Results go to stdout, everything else to stderr. */
#pragma once

#include "cli/options.h"
#include "cli/shared_options.h"

/* in the order of the overview */
/* clang-format off */
#define COMMANDS(X)                                                                                         \
    X(run) X(step) X(resume) X(qa) X(record) X(stop) X(ask) X(ground) X(serve) X(desk) X(mcp)      \
    X(acp) X(models) X(pull) X(report) X(replay) X(diff) X(export) X(doctor) X(bench) X(plan) X(inspect)    \
    X(eval) X(calibrate) X(policy) X(elements) X(wait) X(help) X(version) X(completion) X(license)
/* clang-format on */

#define DECLARE_COMMAND(name)                                                                                \
    int cmd_##name(int argc, char **argv);                                                                   \
    extern const struct command name##_command;
COMMANDS(DECLARE_COMMAND)
#undef DECLARE_COMMAND

/* Runs `holorun qa merge`; argv[0] is "merge". */
int cmd_qa_merge(int argc, char **argv);

struct results;
/* Writes the steps that `holorun qa --freeze` planned into the suite, or prints the difference.  Returns the
 * number of sentences whose steps are new, or -1 with e. */
int qa_freeze(const struct results *r, const char *path, bool only_diff, bool quiet, struct err *e);
