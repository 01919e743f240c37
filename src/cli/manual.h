/* manual.h - help, manual page and shell completion, written from the command tables. */
#ifndef HOLORUN_CLI_MANUAL_H
#define HOLORUN_CLI_MANUAL_H

#include "cli/options.h"

#include <stdio.h>

/* The table of all commands ends with NULL. */
/* One command; all: also the options that are seldom needed. */
void manual_help(const struct command *c, bool all, FILE *f);
void manual_overview(const struct command *const *commands, FILE *f); /* the program */
void manual_page(const struct command *const *commands, FILE *f);     /* holorun.1, in man(7) macros */
/* One more section of it: name, a line about it, lines that stay as they are. */
void manual_page_section(const char *name, const char *about, const char *lines, FILE *f);
void manual_page_of(const struct command *c, FILE *f); /* holorun-NAME.1 */

/* Completion scripts. */
void manual_bash(const struct command *const *commands, FILE *f);
void manual_zsh(const struct command *const *commands, FILE *f);
void manual_fish(const struct command *const *commands, FILE *f);

#endif
