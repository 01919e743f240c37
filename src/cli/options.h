/* options.h - the command line as data.
 *
 * Each command is one `struct command` with one table of options.  Parsing, range checks, --help, the
 * manual page, shell completion and the settings written into run.json all come from that table, so
 * they cannot disagree.  Values land in a struct of the command's own:
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
 *     int n = options_parse(&ask_command, &s, argc, argv, &e);      // argv[0] is the command's name
 *     if (n < 0) return options_refuse(&ask_command, &e);           // one line and where to read more
 *     // argv[0] ... argv[n - 1] are now the arguments that are not options
 *
 * Spelling: --name VALUE, --name=VALUE, -n VALUE, -nVALUE; a flag is --name or --no-name; "--" ends the
 * options; every command knows -h and --help.  --@name=VALUE sets a switch (OPTION_SWITCH) that a
 * recorded run had: such words come from recorded_line(), nobody types them.
 */
#ifndef HOLORUN_CLI_OPTIONS_H
#define HOLORUN_CLI_OPTIONS_H

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
    OPTION_TEXT,   /* const char *, into argv or the environment; up to `max` bytes when max is set */
    OPTION_CHOICE, /* int: index into `unit`, the allowed words separated by "|" */
    OPTION_MAYBE,  /* const char *, as --name=VALUE; --name alone is "auto" */
    OPTION_LIST,   /* const char *[OPTION_LIST_MAX + 1], ended by NULL: one more each time it is given */
    OPTION_SIZE,   /* size_t: bytes written as "24G", "1.5T", or "24" for 24 GiB */
};

enum option_show {
    OPTION_SHOWN,
    OPTION_MORE,   /* in the manual and in "holorun help COMMAND --all" only */
    OPTION_SWITCH, /* for developers: set by its variable, not on the command line */
};

struct option_spec { /* a table ends with {0} */
    const char *name;
    char letter; /* 0: none */
    enum option_type type;
    size_t at;            /* offset of the value in the command's settings */
    const char *unit;     /* "N", "MS", "DIR" and "FILE" (which complete as paths), or the choices */
    double min, max;      /* OPTION_INT, OPTION_NUMBER */
    const char *standard; /* the default as it would be written; NULL: the settings are left alone */
    const char *help;     /* one sentence, no full stop; of a flag that is on: what it does when on */
    const char *variable; /* environment variable that stands in when the option is absent, or NULL */
    enum option_show show;
    const char *group; /* heading above this row in --help; NULL: it goes on with the group before */
};

struct command {
    const char *name;
    const char *arguments;             /* "TASK", "[RUN]" or "" */
    const char *purpose;               /* one line */
    const char *details;               /* more paragraphs for --help and the manual, or NULL */
    const char *examples;              /* command lines, each ended by a newline */
    const struct option_spec *options; /* NULL: none */
    int (*run)(int argc, char **argv);
};

enum { OPTIONS_HELP = -2 };

/* Sets the defaults of a table and what the environment says, without a command line. */
int options_defaults(const struct option_spec *table, void *settings, struct err *e);

/* Fills the defaults, then reads argv[1..argc).  Returns the number of other arguments, which are moved to
 * the front of argv, -1 with a message (also for more than the command names), or OPTIONS_HELP after
 * printing the help. */
int options_parse(const struct command *c, void *settings, int argc, char **argv, struct err *e);

/* Prints what was wrong and where the help is on stderr; returns the exit code: 0 without an error, when the
 * help has been printed.  A command line that asked for --json gets {"status": "failed", "exit": 2, "error":
 * "..."} on stdout as well. */
int options_refuse(const struct command *c, const struct err *e);

/* The same for a later failure: one line on stderr, with --json one object on stdout. */
int options_failed(const struct err *e);

/* The exit code of a command that ended with rc; told: its result is on stdout already. */
int options_end(int rc, bool told, const struct err *e);

/* The bytes of a size like "24G"; `from` is what is set. */
int options_size(size_t *bytes, const char *from, const char *text, struct err *e);

/* Prints an object as one line on stdout and releases it.  flags: of jansson; numbers have 6 digits unless
 * they say otherwise. */
void options_print_json(json_t *object, size_t flags);

/* Words joined by spaces, in quotes for a shell; the caller frees it. */
char *options_quoted(char *const *words, int n);

/* Returns the values in force as an object, in table order; the caller owns it. */
json_t *options_json(const struct option_spec *table, const void *settings);

/* Index of `word` among "a|b|c", -1 when it is none of them; and the word of a choice. */
int options_choice_index(const char *choices, const char *word);
void options_choice(const struct option_spec *o, int index, char *out, size_t size);

#endif
