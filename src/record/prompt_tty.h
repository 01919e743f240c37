/* prompt_tty.h - whether a terminal asks for a password: its program has switched the echo off. */
#ifndef HOLORUN_RECORD_PROMPT_TTY_H
#define HOLORUN_RECORD_PROMPT_TTY_H

#include <stdbool.h>

/* pid: of the terminal's window; 0: unknown.  True when one of the terminals that its children run on
 * reads lines without echo, as sudo, ssh and read -s do. */
bool prompt_tty_hides(int pid);

#endif
