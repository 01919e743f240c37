/* machine.h - OSWorld's machine as a screen (screen/computer.h), by the routes of the server inside it.
 *
 *     GET  /screenshot     a PNG, with the pointer
 *     POST /screen_size    {"width", "height"}: what actions count in
 *     POST /execute        {"command": [...], "shell": false} -> {"status", "output", "error", "returncode"}
 *
 * Actions are pyautogui calls in one Python process a list; the names of windows come from Xlib, which
 * pyautogui needs there itself.  Nothing is connected before the first picture is asked for.  All answers
 * have limits, and what is wrong with one is said in one line with the address.
 */
#ifndef HOLORUN_COMPUTER_MACHINE_H
#define HOLORUN_COMPUTER_MACHINE_H

#include "screen/computer.h"

#include "base/buf.h"

struct machine;

/* url: "http://127.0.0.1:5000"; anything but a plain address is ERR_USAGE. */
struct machine *machine_open(const char *url, struct err *e);
void machine_close(struct machine *m);                            /* after its screen; NULL is fine */
const struct computer *machine_computer(const struct machine *m); /* valid until it is closed */

/* ---- python.c: events as a Python program --------------------------------------------------------- */

/* -1 with ERR_FAILED: a key or character that pyautogui does not know; no message has the text. */
int machine_program(const struct computer_event *v, int n, struct buf *out, struct err *e);

/* ---- replies.c: what a machine answers, which may be anything --------------------------------------- */

/* Of /execute: 0 when the command ended well, its output in *output (the caller frees it); -1 with the last
 * line of what it complained about. */
int machine_read_execute(const char *json, size_t n, char **output, struct err *e);
int machine_read_size(const char *json, size_t n, int *w, int *h, struct err *e);
/* The line of the window script; what is missing or wrong stays empty.  -1: it is no such line. */
int machine_read_window(const char *json, size_t n, struct screen_window *out);

#endif
