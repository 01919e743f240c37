/* commands.h - the commands of the program, each in a file of its own: cmd_NAME.c.
 *
 * A command is `int cmd_NAME(int argc, char **argv)` with argv[0] its name, returning the exit code, and
 * a `const struct command NAME_command` that main.c lists: the table of its options (options.h).
 * Results go to stdout, everything else to stderr.
 */
#ifndef HOLORUN_COMMANDS_H
#define HOLORUN_COMMANDS_H

#include "options.h"

int cmd_run(int argc, char **argv);
int cmd_ask(int argc, char **argv);
int cmd_ground(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_calibrate(int argc, char **argv);

extern const struct command run_command, ask_command, ground_command, report_command, doctor_command,
    bench_command, plan_command, inspect_command, eval_command, calibrate_command;

/* Rows that several commands share; T has the fields named here. */

/* clang-format off */
/* const char *model, *isa; int threads, weights; */
#define MODEL_OPTIONS(T)                                                                                     \
    {"model", 'm', OPTION_TEXT, offsetof(T, model), "DIR", 0, 4096, NULL,                                    \
     "model directory in the published layout; without it the model that comes with holorun", "HOLORUN_MODEL"}, \
    {"threads", 0, OPTION_INT, offsetof(T, threads), "N", 0, 256, "0",                                       \
     "threads for the model, 0 for one on every core", "HOLORUN_THREADS"},                                   \
    {"isa", 0, OPTION_TEXT, offsetof(T, isa), "NAME", 0, 32, NULL,                                           \
     "instruction set of the kernels, \"ref\" for the plain reference; the best one without it", NULL},         \
    {"weights", 0, OPTION_CHOICE, offsetof(T, weights), "auto|packed|mapped", 0, 0, "auto",                  \
     "packed: copied into memory at the start; mapped: read where they lie in the files; auto: packed when "   \
     "memory allows", "HOLORUN_WEIGHTS"}

/* int weights; */
#define WEIGHTS_OPTION(T)                                                                                    \
    {"weights", 0, OPTION_CHOICE, offsetof(T, weights), "auto|packed|mapped", 0, 0, "auto",                  \
     "packed copies them into memory at the start, mapped reads them where they lie in the files, auto packs " \
     "them when memory allows", "HOLORUN_WEIGHTS"}

/* The same as engine_open wants them; S is one of T. */
#define MODEL_ENGINE(S)                                                                                      \
    {.dir = (S).model, .isa = (S).isa, .threads = (S).threads, .weights = (enum weight_store)(S).weights}

/* const char *display, *view; bool cursor; */
#define SCREEN_OPTIONS(T)                                                                                    \
    {"display", 'd', OPTION_TEXT, offsetof(T, display), "NAME", 0, 256, NULL, "X display to work on", "DISPLAY"}, \
    {"view", 'v', OPTION_TEXT, offsetof(T, view), "WHAT", 0, 256, "all",                                     \
     "what of it to look at: all, a monitor's name or number, or window:ID", NULL},                          \
    {"cursor", 0, OPTION_FLAG, offsetof(T, cursor), NULL, 0, 0, NULL, "show the pointer in screenshots", NULL}
/* clang-format on */

#endif
