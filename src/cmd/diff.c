/* diff.c - `holorun diff A B`: compares two runs step by step. */
#include "replay/diff.h"
#include "cli/recorded.h"
#include "cmd/commands.h"

#include <stdlib.h>
#include <string.h>

struct settings {
    const char *html, *runs;
    bool json;
};

static const struct option_spec options[] = {
    {"html", 'o', OPTION_TEXT, offsetof(struct settings, html), "FILE", 0, 4096, NULL,
     "write a page with both runs and their screenshots side by side", NULL},
    JSON_OPTION(struct settings),
    RUNS_OPTION(struct settings),
    {0},
};

const struct command diff_command = {
    .name = "diff",
    .arguments = "RUN RUN",
    .purpose = "compare two runs step by step",
    .details =
        "Compares the screenshot, thought, action and effect of each step, and how the runs ended. Times "
        "are shown but not compared. Exit code 0: the runs are the same; 1: they differ.",
    .examples = "holorun diff 20261121T054500Z-9f3c01ab 20261121T060210Z-01c2aa90\nholorun diff a/ b/ "
                "--html both.html\n",
    .options = options,
    .run = cmd_diff,
};

static void print_json(const struct run_diff *d)
{
    json_t *steps = json_array();
    for (int i = 0; i < d->n; i++) {
        const struct diff_step *s = &d->steps[i];
        json_t *one =
            json_pack("{s:i, s:b, s:b, s:b, s:b, s:b, s:b}", "step", s->number, "a", s->side[0] != NULL, "b",
                      s->side[1] != NULL, "screen", !!(s->differs & DIFF_FRAME), "thought",
                      !!(s->differs & DIFF_THOUGHT), "action", !!(s->differs & DIFF_ACTION), "effect",
                      !!(s->differs & DIFF_EFFECT));
        json_object_set_new(one, "tiles", s->tiles >= 0 ? json_real(s->tiles) : json_null());
        json_array_append_new(steps, one);
    }
    json_t *all =
        json_pack("{s:s, s:i, s:s, s:s, s:i, s:b, s:o}", "status", diff_any(d) ? "differs" : "same", "exit",
                  diff_any(d) ? ERR_FAILED : 0, "a", d->record[0].dir, "b", d->record[1].dir, "differing",
                  d->differing, "end", d->end_differs, "steps", steps);
    options_print_json(all, 0);
}

static int diff(const struct settings *s, char **argv, struct run_diff *d, struct err *e)
{
    autofree char *a = recorded_find(argv[0], s->runs, e), *b = a ? recorded_find(argv[1], s->runs, e) : NULL;
    int rc = b ? diff_open(d, a, b, e) : -1;
    if (rc)
        return -1;
    if (s->html && diff_page_write(d, "Two runs compared", s->html, e))
        return -1;
    if (s->json)
        print_json(d);
    else
        diff_print(d, stdout);
    return 0;
}

int cmd_diff(int argc, char **argv)
{
    struct settings s = {0};
    struct err e = ERR_INIT;
    struct run_diff d = {0};
    int n = options_parse(&diff_command, &s, argc, argv, &e);
    if (n >= 0 && n < 2)
        n = err_set(&e, ERR_USAGE, "diff takes two runs, not %d", n);
    if (n < 0)
        return options_refuse(&diff_command, &e);
    int code = diff(&s, argv, &d, &e) ? options_failed(&e) : diff_any(&d) ? ERR_FAILED : 0;
    diff_free(&d);
    return code;
}
