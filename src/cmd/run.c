/* run.c - `holorun run TASK` and `holorun step TASK`; the work is done by run/job.h. */
#include "cmd/commands.h"

#include "cli/version.h"
#include "run/job.h"

#include <stdlib.h>

const struct command run_command = {
    .name = "run",
    .arguments = "TASK|-",
    .purpose = "work on a task until it is done",
    .details =
        "Takes a screenshot, decides on one action, performs it, and repeats this until the model answers "
        "or a budget is used up. The answer of the model goes to stdout, progress to stderr, and everything "
        "to a run directory with a report. With - the task is read from stdin.\n\n"
        "Every action is checked against the rules (holorun policy prints them). They deny some keys, and "
        "require confirmation for sending, paying, deleting, granting access, typing passwords, terminals "
        "and new addresses. They match the model's description of its target, keys, positions and windows, "
        "but do not understand the page: use an account and a desktop where a mistake is cheap.\n\n"
        "Escape twice on the display, Ctrl-C in the terminal, or holorun stop from elsewhere ends the run "
        "at once, even in the middle of a word, and releases all keys and buttons. A second process, "
        "holorun-guard, releases them if the run is killed, suspended, or hangs in an action.",
    .examples = "holorun run \"Book the 9:40 flight from Paris to Rome on 12 May for Ana Lima\"\n"
                "holorun run --display :1 --max-steps 20 --json \"Press Save\"\n",
    .options = job_options,
    .run = cmd_run,
};

const struct command step_command = {
    .name = "step",
    .arguments = "TASK|-",
    .purpose = "work on a task step by step, like a debugger",
    .details =
        "The same as run --step: shows each step before it is performed, with the screenshot, the thought "
        "and the action of the model, its confidence and the most likely alternatives. You can run the "
        "step, change it, veto it with a reason that the model reads, sample another reply, or rewind to an "
        "earlier step, which is decided again from its recorded state and screen. With breakpoints the run "
        "continues until something happens.\n\n"
        "In a terminal, 'help' lists the commands, and quit (or Ctrl-D) ends the run; --step=script:FILE "
        "reads the commands from a file or a pipe, one per line, and stops at its end. The record and the "
        "report mark the decisions of the user. The clock of --max-time is stopped while a step is shown.",
    .examples = "holorun step \"Press Save\"\n"
                "holorun step --break \"kind type\" --break irreversible \"Fill in the form and send it\"\n"
                "holorun run --step=script:commands.txt \"Press Save\"\n",
    .options = job_options,
    .run = cmd_step,
};

/* Runs a task.  step: display of steps unless the command line sets another, or NULL.  Returns the exit
 * code. */
static int run_or_step(const struct command *command, const char *step, int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct job j;
    job_begin(&j, version_build(), argc, argv);
    j.s.step = step;
    int n = options_parse(command, &j.s, argc, argv, &e), code = 0;
    if (n > 1) {
        autofree char *quoted = options_quoted(argv, n);
        n = err_set(&e, ERR_USAGE, "a task is one argument; put it in quotes: holorun %s %s", command->name,
                    quoted);
    } else if (n == 0) {
        n = err_set(&e, ERR_USAGE, "%s takes a task in quotes, or - to read it from stdin", command->name);
    }
    if (n == 1 && job_read_task(&j, argv[0], &e))
        n = -1;
    if (n == 1)
        code = job_run(&j);
    else if (n != OPTIONS_HELP)
        code = options_refuse(command, &e);
    job_close(&j);
    screen_guard_end();
    return code;
}

int cmd_run(int argc, char **argv)
{
    return run_or_step(&run_command, NULL, argc, argv);
}

int cmd_step(int argc, char **argv)
{
    return run_or_step(&step_command, "auto", argc, argv);
}
