/* prompt_tty.h - detects whether a terminal asks for a password: its program has switched the echo off. */
#pragma once

#include <stdbool.h>

/* Returns whether a pseudo terminal of a child of the process pid reads lines without echo, as sudo, ssh and
 * read -s do. pid: process of the terminal's window; 0: unknown. */
bool prompt_tty_hides(int pid);
