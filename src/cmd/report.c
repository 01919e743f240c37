/* report.c - `holorun report`: writes the report of a run again. */
#include "trace/report.h"
#include "cli/recorded.h"
#include "cmd/commands.h"

#include <stdlib.h>
#include <string.h>

struct report_settings {
    const char *output, *runs;
};

static const struct option_spec report_options[] = {
    {"output", 'o', OPTION_TEXT, offsetof(struct report_settings, output), "FILE", 0, 4096, NULL,
     "file to write; default: report.html in the run's folder", NULL},
    RUNS_OPTION(struct report_settings),
    {0},
};

const struct command report_command = {
    .name = "report",
    .arguments = "[RUN]",
    .purpose = "write the report of a run: every screenshot, thought, action and time in one HTML file",
    .details =
        "RUN is a run directory or its name in the folder of runs; default: the newest run. The page needs "
        "no other file, so it can be sent to others, but it shows the whole screen at every step. Its path "
        "is printed.",
    .examples = "holorun report\nholorun report 20261121T054500Z-9f3c01ab -o flight.html\n",
    .options = report_options,
    .run = cmd_report,
};

int cmd_report(int argc, char **argv)
{
    struct report_settings s = {0};
    struct err e = ERR_INIT;
    int n = options_parse(&report_command, &s, argc, argv, &e);
    if (n < 0)
        return options_refuse(&report_command, &e);
    autofree char *dir = recorded_find(n ? argv[0] : NULL, s.runs, &e);
    int rc = dir ? report_write(dir, s.output, &e) : -1;
    if (rc == 0 && s.output)
        printf("%s\n", s.output);
    else if (rc == 0)
        printf("%s%sreport.html\n", dir, dir[strlen(dir) - 1] == '/' ? "" : "/");
    return rc ? options_failed(&e) : 0;
}
