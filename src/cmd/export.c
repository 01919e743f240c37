/* export.c - `holorun export RUN --format F`: writes a run in the layout of other tools. */
#include "replay/export.h"
#include "cli/recorded.h"
#include "cmd/commands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct settings {
    int format;
    const char *output, *runs;
    double reward;
};

static const char *const layouts[] = {"osworld", "rl", "verl", "atif"};

static const struct option_spec options[] = {
    {"format", 'f', OPTION_CHOICE, offsetof(struct settings, format), "osworld|rl|verl|atif", 0, 0, "osworld",
     "format to write", NULL},
    {"output", 'o', OPTION_TEXT, offsetof(struct settings, output), "FILE", 0, 4096, NULL,
     "folder to write; default: export-FORMAT in the run's folder", NULL},
    {"reward", 0, OPTION_NUMBER, offsetof(struct settings, reward), "X", -1e6, 1e6, NULL,
     "reward of the run, for formats that have one", NULL},
    RUNS_OPTION(struct settings),
    {0},
};

const struct command export_command = {
    .name = "export",
    .arguments = "[RUN]",
    .purpose = "export a run in the format of other tools or for training",
    .details =
        "osworld: traj.jsonl with pyautogui calls and a screenshot after each. rl: for each step the token "
        "ids of prompt and completion, log-probabilities before and after the grammar's mask, the "
        "screenshots, and the positions of their rows among the ids. verl: the fields of its "
        "AgentLoopOutput, one object for each stretch of the conversation in which no screenshot was "
        "dropped (assets/fleet/verl_outputs.py loads them). atif: a trajectory in the interchange format of "
        "Harbor.\n\n"
        "The screenshots are those of the run and show the whole screen. The path is printed.",
    .examples = "holorun export\nholorun export --format rl\n"
                "holorun export 20261121T054500Z-9f3c01ab -f osworld -o traj --reward 1\n",
    .options = options,
    .run = cmd_export,
};

int cmd_export(int argc, char **argv)
{
    struct settings s = {.reward = NAN};
    struct err e = ERR_INIT;
    struct record r = {0};
    int n = options_parse(&export_command, &s, argc, argv, &e);
    if (n < 0)
        return options_refuse(&export_command, &e);
    autofree char *to = NULL;
    int rc = recorded_open(&r, n ? argv[0] : NULL, s.runs, &e);
    if (rc == 0) {
        to = s.output ? xstrdup(s.output) : xasprintf("%s/export-%s", r.dir, layouts[s.format]);
        struct export_options o = {
            .record = &r, .to = to, .has_reward = !isnan(s.reward), .reward = isnan(s.reward) ? 0 : s.reward};
        rc = export_run((enum export_format)s.format, &o, &e);
    }
    if (rc == 0)
        puts(to);
    int code = rc ? options_failed(&e) : 0;
    record_free(&r);
    return code;
}
