/* options.h - the command line as data.
 *
 * Each command is one `struct command` with one table of options.  Parsing, range checks, --help, the manual
 * page, shell completion and the settings in run.json are all derived from that table, so they cannot
 * disagree.  Values are stored in a struct of the command:
 *
 *     struct settings { const char *display; int max_steps; bool json; };
 *     static const struct option_spec options[] = {
 *         {"display", 'd', OPTION_TEXT, offsetof(struct settings, display), "NAME", .help = "X display"},
 *         {"max-steps", 'n', OPTION_INT, offsetof(struct settings, max_steps), "N", 1, 1000, "100", "..."},
 *         {"json", 'j', OPTION_FLAG, offsetof(struct settings, json), .help = "one JSON object on stdout"},
 *         {0},
 *     };
 *     const struct command ask_command = {"ask", "QUESTION", "...", .options = options, .run = cmd_ask};
 *
 *     struct settings s = {0};
 *     int n = options_parse(&ask_command, &s, argc, argv, &e);   // argv[0] is the command's name
 *     if (n < 0) return options_refuse(&ask_command, &e);        // one line and where to read more
 *     // argv[0] ... argv[n - 1] are now the arguments that are not options
 *
 * Spelling: --name VALUE, --name=VALUE, -n VALUE, -nVALUE; a flag is --name or --no-name; "--" ends the
 * options; every command has -h and --help.  --@name=VALUE sets a switch (OPTION_SWITCH) of a recorded run:
 * recorded_line() writes such words, users do not. */
#pragma once

#include "base/err.h"
#include "base/json.h"

#include <stddef.h>
#include <stdio.h>

enum { OPTION_LIST_MAX = 32 };

enum option_type {
    OPTION_FLAG,   /* bool */
    OPTION_INT,    /* int, min..max */
    OPTION_NUMBER, /* double, min..max */
    OPTION_SEED,   /* uint64_t */
    /* const char *, points into argv or the environment; at most `max` bytes if max is not 0 */
    OPTION_TEXT,
    OPTION_CHOICE, /* int: index into `unit`, the allowed words separated by "|" */
    OPTION_MAYBE,  /* const char *, as --name=VALUE; --name alone is "auto" */
    OPTION_LIST,   /* const char *[OPTION_LIST_MAX + 1], terminated by NULL: each occurrence appends one */
    OPTION_SIZE,   /* size_t: bytes written as "24G", "1.5T", or "24" for 24 GiB */
};

enum option_show {
    OPTION_SHOWN,
    OPTION_MORE,   /* shown only in the manual and by "holorun help COMMAND --all" */
    OPTION_SWITCH, /* for developers: set by its environment variable, not on the command line */
};

struct option_spec { /* a table ends with {0} */
    const char *name;
    char letter; /* 0: none */
    enum option_type type;
    size_t at;            /* offset of the value in the command's settings */
    const char *unit;     /* "N", "MS", "DIR" and "FILE" (completed as paths), or the choices */
    double min, max;      /* OPTION_INT, OPTION_NUMBER */
    const char *standard; /* the default as a user would write it; NULL: the settings are left unchanged */
    /* one sentence without a full stop; for a flag that is on by default, the effect of the flag */
    const char *help;
    const char *variable; /* environment variable that is used if the option is absent, or NULL */
    enum option_show show;
    const char *group; /* heading above this row in --help; NULL: the row belongs to the previous group */
};

struct command {
    const char *name;
    const char *arguments;             /* "TASK", "[RUN]" or "" */
    const char *purpose;               /* one line */
    const char *details;               /* additional paragraphs for --help and the manual, or NULL */
    const char *examples;              /* command lines, each terminated by a newline */
    const struct option_spec *options; /* NULL: none */
    int (*run)(int argc, char **argv);
};

enum { OPTIONS_HELP = -2 };

/* Sets the defaults of a table and the values of environment variables, without a command line.  Returns -1
 * with e. */
int options_defaults(const struct option_spec *table, void *settings, struct err *e);

/* Sets the defaults, then parses argv[1..argc).  Returns the number of other arguments, which are moved to
 * the front of argv, -1 with e (also if there are more than the command accepts), or OPTIONS_HELP after
 * printing the help. */
int options_parse(const struct command *c, void *settings, int argc, char **argv, struct err *e);

/* Prints the error and a reference to the help on stderr.  Returns the exit code, 0 if the help was printed
 * instead (no error).  With --json, it also prints {"status": "failed", "exit": 2, "error": "..."} on
 * stdout. */
int options_refuse(const struct command *c, const struct err *e);

/* Reports a later failure: one line on stderr, with --json one object on stdout.  Returns the exit code. */
int options_failed(const struct err *e);

/* Returns the exit code of a command that ended with rc and reports the error.  told: the result is on stdout
 * already. */
int options_end(int rc, bool told, const struct err *e);

/* Parses a size like "24G" into bytes; `from` names the setting in messages.  Returns -1 with e. */
int options_size(size_t *bytes, const char *from, const char *text, struct err *e);

/* Prints an object as one line on stdout and releases it.  flags: of jansson; numbers have 6 digits unless
 * the flags say otherwise. */
void options_print_json(json_t *object, size_t flags);

/* Returns the words joined by spaces and quoted for a shell; the caller frees the result. */
char *options_quoted(char *const *words, int n);

/* Returns the values of all settings as an object, in table order; the caller owns it. */
json_t *options_json(const struct option_spec *table, const void *settings);
