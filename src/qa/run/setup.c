/* setup.c - runs the suite's own setup and teardown, whose programs have no display and run on. */
#include "qa/run/workers.h"

#include "base/buf.h"
#include "base/flag.h"
#include "desk/desk.h"
#include "qa/report/clean.h"
#include "screen/stop.h"

#include <stdio.h>
#include <stdlib.h>

enum { SUITE_SECONDS = 600, OUTPUT_BYTES = 16 << 10 };

/* Prints the output of the setup, and masks secrets in the output and in the error. */
static void setup_failed(const struct suite_run *run, const struct buf *output, struct err *e)
{
    autofree char *why = secret_store_mask(run->secret_store, e->text);
    autofree char *masked = secret_store_mask(run->secret_store, output->data);
    autofree char *clean = clean_text(masked, OUTPUT_BYTES);
    if (!run->settings->quiet)
        fputs(clean, stderr);
    snprintf(e->text, sizeof e->text, "%s", why);
}

int suite_setup(const struct suite_run *run, struct desk **desk, struct err *e)
{
    const struct suite *s = run->suite;
    const struct desk_options no_display = {.dir = s->dir, .env = s->env};
    struct buf output;
    int rc = 0;
    *desk = NULL;
    if (!*s->setup && !*s->teardown)
        return 0;
    buf_init(&output, OUTPUT_BYTES);
    *desk = desk_open(&no_display, e);
    rc = *desk ? desk_run_all(*desk, s->setup, "the suite's setup", SUITE_SECONDS, screen_stop_flag(NULL),
                              &output, e)
               : -1;
    if (rc)
        setup_failed(run, &output, e);
    buf_free(&output);
    return rc;
}

void suite_teardown(const struct suite_run *run, struct desk *desk)
{
    struct err late = ERR_INIT;
    if (desk &&
        desk_run_all(desk, run->suite->teardown, "the suite's teardown", SUITE_SECONDS, NULL, NULL, &late))
        warn("%s", late.text);
    desk_close(desk);
}
