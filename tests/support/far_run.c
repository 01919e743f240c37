/* far_run.c - see far_run.h. */
#include "far_run.h"

#include <stdlib.h>

static const char *const press_and_type[] = {CLICK(300, 300), TYPE("abc"), ANSWER("Done.")};

static char *play(void *arg, int n, const char *request)
{
    struct far_run *f = arg;
    if (f->next == 1 && f->given < f->times) {
        f->given++;
        return xstrdup(f->fault);
    }
    return far_stream(press_and_type[f->next < 2 ? f->next++ : 2]);
}

void far_run_open(struct far_run *f)
{
    *f = (struct far_run){0};
    driven_open(&f->stage);
    far_open_with(&f->server, play, f);
    f->url = far_address(&f->server);
    char *path = xvfb_put(&f->stage.x, "key", FAR_KEY "\n");
    f->key = xasprintf("file:%s", path);
    f->runs = xvfb_place(&f->stage.x, "runs");
    free(path);
}

void far_run_close(struct far_run *f)
{
    outcome_free(&f->o);
    far_close(&f->server);
    free(f->url);
    free(f->key);
    free(f->runs);
    stage_close(&f->stage);
}

void far_run(struct far_run *f, const char *profile)
{
    f->given = f->next = 0;
    stage_clear(&f->stage);
    program_run(&f->stage.x, &f->o,
                WORDS("run", "Press Save", "--quiet", "--base-url", f->url, "-m", "tiny", "--key", f->key,
                      "--runs", f->runs, "--no-report", "--settle-min", "1", "--settle-quiet", "30",
                      "--profile", profile));
}

void far_run_resume(struct far_run *f, const char *profile)
{
    program_run(&f->stage.x, &f->o,
                WORDS("resume", "--quiet", "--no-report", "--runs", f->runs, "--base-url", f->url, "-m",
                      "tiny", "--key", f->key, "--profile", profile));
}

int far_run_presses(struct far_run *f)
{
    return (int)json_array_size(stage_events(&f->stage, "button_press"));
}

int far_run_keys(struct far_run *f)
{
    return (int)json_array_size(stage_events(&f->stage, "key_press"));
}
