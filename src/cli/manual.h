/* manual.h - prints help, manual pages and shell completion from the command tables. */
#pragma once

#include "cli/options.h"

#include <stdio.h>

/* A table of commands ends with NULL. */
/* Prints the help of one command.  all: includes the options that are rarely needed. */
void manual_help(const struct command *c, bool all, FILE *f);
void manual_overview(const struct command *const *commands, FILE *f); /* prints the help of the program */
void manual_page(const struct command *const *commands, FILE *f);     /* prints holorun.1 in man(7) macros */
/* Prints one more section of holorun.1: name, a line about it, and lines that are not wrapped. */
void manual_page_section(const char *name, const char *about, const char *lines, FILE *f);
void manual_page_of(const struct command *c, FILE *f); /* prints holorun-NAME.1 */

/* Print completion scripts. */
void manual_bash(const struct command *const *commands, FILE *f);
void manual_zsh(const struct command *const *commands, FILE *f);
void manual_fish(const struct command *const *commands, FILE *f);
