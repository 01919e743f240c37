/* commands.h - the commands of the program, each in a file of its own: cmd/NAME.c.
 *
 * A command is `int cmd_NAME(int argc, char **argv)` with argv[0] its name, returning the exit code, and
 * a `const struct command NAME_command` that main.c lists: the table of its options (options.h).
 * Results go to stdout, everything else to stderr.
 */
#ifndef HOLORUN_CMD_COMMANDS_H
#define HOLORUN_CMD_COMMANDS_H

#include "cli/options.h"
#include "cli/shared_options.h"

int cmd_run(int argc, char **argv);
int cmd_step(int argc, char **argv);
int cmd_qa(int argc, char **argv);
int cmd_ask(int argc, char **argv);
int cmd_ground(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_resume(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_calibrate(int argc, char **argv);
int cmd_policy(int argc, char **argv);
int cmd_version(int argc, char **argv);

extern const struct command run_command, step_command, qa_command, resume_command, stop_command, ask_command,
    ground_command, report_command, replay_command, diff_command, export_command, doctor_command,
    bench_command, plan_command, inspect_command, eval_command, calibrate_command, policy_command,
    version_command;

#endif
