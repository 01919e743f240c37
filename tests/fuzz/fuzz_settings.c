/* fuzz_settings.c - any bytes as run.json: its settings become arguments of a command line, which is
 * accepted, or rejected with a reason. */
#include "cli/recorded.h"
#include "run/job.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NAMES = 128 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct command command = {.name = "fuzz", .arguments = "[RUN]", .options = job_options};
    const char *names[NAMES + 1] = {0};
    for (int i = 0; i < NAMES && job_options[i].name; i++)
        names[i] = job_options[i].name;
    char run[] = "RUN", *argv[] = {run};
    struct run_settings s = {0};
    struct recorded_line l;
    struct err e = ERR_INIT;
    json_t *root = json_loadb((const char *)data, size, 0, NULL);
    recorded_line(&l, json_object_get(root, "settings"), job_options, names, 1, argv);
    job_unset(&s);
    int n = options_parse(&command, &s, l.argc, l.argv, &e);
    if (n < 0 ? !*e.text : n > 0 || s.max_steps < 0)
        bug("neither refused with a reason nor taken");
    recorded_line_free(&l);
    json_decref(root);
    return 0;
}
