/* report.c - writes the reports of a suite in all formats. */
#include "qa/report/report.h"

#include "base/clock.h"
#include "base/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SAVE_MS = 2000,
    SAVE_PAUSE = 50, /* the pause between two saves, as a multiple of the time a save takes */
};

static const struct {
    const char *name; /* file name in the results directory */
    report_printer *print;
} formats[REPORT_GITHUB] = {
    [REPORT_JUNIT] = {"junit.xml", report_junit},
    [REPORT_TAP] = {"results.tap", report_tap},
    [REPORT_JSON] = {"results.json", report_json},
    [REPORT_HTML] = {"report.html", report_html},
};

int report_save(enum report which, const struct results *r, const char *path, struct err *e)
{
    struct file_stream out;
    if (which == REPORT_GITHUB)
        return report_github(r, path, e);
    if (file_stream_open(&out, path, e))
        return -1;
    formats[which].print(r, path, out.f);
    return file_stream_close(&out, e);
}

int reports_write(const struct results *r, struct report_paths *p, struct err *e)
{
    struct err first = ERR_INIT, later = ERR_INIT;
    int failed = 0;
    for (int i = 0; i < REPORTS; i++) {
        if (!p->of[i] || !report_save((enum report)i, r, p->of[i], failed ? &later : &first))
            continue;
        p->of[i] = NULL;
        failed++;
    }
    if (failed > 1)
        err_set(e, first.kind, "%s, and %d more report%s not written", first.text, failed - 1,
                failed == 2 ? " was" : "s were");
    else if (failed)
        *(e ? e : &later) = first;
    return failed ? -1 : 0;
}

static char *default_folder(struct err *e)
{
    char stamp[20], *state = file_place(PLACE_STATE, e);
    if (!state)
        return NULL;
    clock_utc(stamp);
    char *dir = xasprintf("%s/qa/%s-%d", state, stamp, (int)getpid());
    free(state);
    return dir;
}

void reports_discard(const char *dir, const struct report_paths *copies)
{
    struct stat st;
    for (int i = 0; i < REPORT_GITHUB; i++) {
        autofree char *path = dir ? xasprintf("%s/%s", dir, formats[i].name) : NULL;
        if (path && lstat(path, &st) == 0 && S_ISREG(st.st_mode))
            unlink(path);
        if (copies->of[i] && lstat(copies->of[i], &st) == 0 && S_ISREG(st.st_mode))
            unlink(copies->of[i]);
    }
}

int reports_open(struct reports *f, const char *dir, const struct report_paths *copies, struct err *e)
{
    autofree char *made = dir ? xstrdup(dir) : default_folder(e);
    if (!made)
        return -1;
    autofree char *pictures = xasprintf("%s/pictures", made), *runs = xasprintf("%s/runs", made);
    int rc = dir_make(pictures, e) || dir_make(runs, e) ? -1 : 0;
    f->dir = rc ? NULL : realpath(made, NULL);
    if (!f->dir)
        return -1;
    for (int i = 0; i < REPORT_GITHUB; i++)
        f->paths.of[i] = f->files[i] = xasprintf("%s/%s", f->dir, formats[i].name);
    const char *github = getenv("GITHUB_STEP_SUMMARY");
    f->paths.of[REPORT_GITHUB] = github && *github ? github : NULL;
    f->copies = *copies;
    return 0;
}

void reports_save_progress(struct reports *f, const struct results *r)
{
    int64_t start = clock_ns();
    if (f->saved && clock_ms_since(f->saved) < SAVE_MS + SAVE_PAUSE * f->save_ms)
        return;
    report_save(REPORT_JSON, r, f->paths.of[REPORT_JSON], NULL);
    report_save(REPORT_JUNIT, r, f->paths.of[REPORT_JUNIT], NULL);
    if (f->copies.of[REPORT_JUNIT])
        report_save(REPORT_JUNIT, r, f->copies.of[REPORT_JUNIT], NULL);
    f->saved = clock_ns();
    f->save_ms = clock_ms_since(start);
}

bool reports_save(struct reports *f, const struct results *r)
{
    struct err e[2] = {ERR_INIT, ERR_INIT};
    reports_write(r, &f->paths, &e[0]);
    reports_write(r, &f->copies, &e[1]);
    for (int i = 0; i < 2; i++)
        if (e[i].kind)
            f->errors[i] = xstrdup(e[i].text);
    return !f->errors[0] && !f->errors[1];
}

bool reports_print_errors(const struct reports *f)
{
    for (int i = 0; i < 2; i++)
        if (f->errors[i])
            fprintf(stderr, "holorun: %s\n", f->errors[i]);
    return f->errors[0] || f->errors[1];
}

void reports_close(struct reports *f)
{
    for (int i = 0; i < REPORT_GITHUB; i++)
        free(f->files[i]);
    for (int i = 0; i < 2; i++)
        free(f->errors[i]);
    free(f->dir);
    *f = (struct reports){0};
}
