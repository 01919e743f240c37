/* cmd_report.c - holorun report: the page of a run, made again. */
#include "base/file.h"
#include "commands.h"
#include "trace/report.h"
#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

struct report_settings {
    const char *output, *runs;
};

static const struct option_spec report_options[] = {
    {"output", 'o', OPTION_TEXT, offsetof(struct report_settings, output), "FILE", 0, 4096, NULL,
     "where to write the page; without it report.html in the run's folder", NULL},
    {"runs", 0, OPTION_TEXT, offsetof(struct report_settings, runs), "DIR", 0, 4096, NULL,
     "folder of runs to look in; without it the user's state folder", "HOLORUN_RUNS"},
    {0},
};

const struct command report_command = {
    .name = "report",
    .arguments = "[RUN]",
    .purpose = "make the page of a run: every screenshot, thought, action and time in one HTML file",
    .details = "RUN is a run's folder or its name in the folder of runs; without it the newest run is taken. "
               "The page "
               "needs nothing else and can be sent to somebody, but it shows the whole screen of every step. "
               "Its path "
               "is printed.",
    .examples = "holorun report\nholorun report 20261121T054500Z-9f3c01ab -o flight.html\n",
    .options = report_options,
    .run = cmd_report,
};

/* A path as it is, else a name below `runs`; what is no run is told before it is read. */
static char *find_run(const char *name, const char *runs, struct err *e)
{
    if (!name)
        return record_newest(runs, e);
    char *below = xasprintf("%s/%s", runs, name);
    bool is_path = strchr(name, '/') || file_exists(name) || !file_exists(below);
    char *dir = xstrdup(is_path ? name : below), *events = xasprintf("%s/events.jsonl", dir);
    if (!file_exists(events)) {
        struct err none = ERR_INIT;
        char *newest = record_newest(runs, &none);
        if (file_exists(dir))
            err_set(e, ERR_USAGE, "'%s' is no run: it has no events.jsonl", dir);
        else if (newest)
            err_set(e, ERR_USAGE, "there is no run '%s'; the newest is '%s'", name, newest);
        else
            err_set(e, ERR_USAGE, "there is no run '%s', and %s", name, none.text);
        free(newest);
        free(dir);
        dir = NULL;
    }
    free(events);
    free(below);
    return dir;
}

int cmd_report(int argc, char **argv)
{
    struct report_settings s = {0};
    struct err e = ERR_INIT;
    int n = options_parse(&report_command, &s, argc, argv, &e);
    if (n == OPTIONS_HELP)
        return 0;
    if (n > 1)
        n = err_set(&e, ERR_USAGE, "one run at a time, not %d", n);
    if (n < 0)
        return options_refuse(&report_command, &e);
    char *runs = s.runs ? xstrdup(s.runs) : trace_runs_dir(&e);
    char *dir = runs ? find_run(n ? argv[0] : NULL, runs, &e) : NULL;
    int rc = dir ? report_write(dir, s.output, &e) : -1;
    if (rc)
        fprintf(stderr, "holorun: %s\n", e.text);
    else if (s.output)
        printf("%s\n", s.output);
    else
        printf("%s%sreport.html\n", dir, dir[strlen(dir) - 1] == '/' ? "" : "/");
    free(dir);
    free(runs);
    return rc ? (int)e.kind : 0;
}
