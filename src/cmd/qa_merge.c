/* cmd/qa_merge.c - `holorun qa merge [OPTION...] RESULTS...`: one report of several shards.
 *
 *     qa/report/read.h      reads each results.json
 *     qa/report/merge.h     merges them into one list and finds missing results
 *     qa/report/report.h    writes the reports */
#include "cmd/commands.h"

#include "base/file.h"
#include "qa/report/merge.h"
#include "qa/report/report.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MOST_DEPTH = 4 }; /* of folders of results */

struct settings {
    const char *out, *junit, *tap, *html, *notes[OPTION_LIST_MAX + 1];
    bool json, quiet;
};

static const struct option_spec options[] = {
    {"out", 'o', OPTION_TEXT, offsetof(struct settings, out), "DIR", 0, 4096, NULL,
     "folder for the reports; default: a new one in the folder qa of the user's state folder", NULL},
    {"junit", 0, OPTION_TEXT, offsetof(struct settings, junit), "FILE", 0, 4096, NULL,
     "also write JUnit XML to this file", NULL},
    {"tap", 0, OPTION_TEXT, offsetof(struct settings, tap), "FILE", 0, 4096, NULL,
     "also write TAP to this file", NULL},
    {"html", 0, OPTION_TEXT, offsetof(struct settings, html), "FILE", 0, 4096, NULL,
     "also write the HTML report to this file", NULL},
    {"note", 0, OPTION_LIST, offsetof(struct settings, notes), "TEXT", 0, 1000, NULL,
     "a sentence for the reports, such as a machine that was excluded; may be repeated", NULL},
    JSON_OPTION(struct settings),
    QUIET_OPTION(struct settings),
    {0},
};

static const struct command merge_command = {
    "qa merge",
    "RESULTS...",
    "combine the results of several shards in one report",
    "Takes result folders of `holorun qa --shard`, folders of such folders, or their results.json, and "
    "writes the reports of the whole suite. Images and runs stay in their folders; the page links to them. A "
    "shard that is missing, incomplete, duplicate, or of another version of the suite, another model or "
    "other settings is listed and makes the result undecided: exit code 5, or 1 if a test failed.",
    "holorun qa suite.yaml --shard auto --out results/$SLURM_ARRAY_TASK_ID\n"
    "holorun qa merge results --out merged\n",
    options,
    cmd_qa_merge};

struct merging {
    struct settings s;
    char **paths;
    struct results_file *files;
    int n_paths, n;
    struct merged merged;
    struct reports reports;
};

static void add_path(struct merging *g, char *path)
{
    g->paths = xrealloc(g->paths, (unsigned long)g->n_paths + 1, sizeof *g->paths);
    g->paths[g->n_paths++] = path;
}

static int is_visible(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

/* Adds the folders of results in a folder that has none itself.  Returns whether there are any. */
static bool add_folders(struct merging *g, const char *path, int depth)
{
    struct dirent **names = NULL;
    struct stat st;
    int n = depth < MOST_DEPTH ? scandir(path, &names, is_visible, versionsort) : 0;
    bool any = false;
    for (int i = 0; i < n; i++) {
        autofree char *inner = xasprintf("%s/%s", path, names[i]->d_name),
                      *file = xasprintf("%s/results.json", inner);
        bool folder = lstat(inner, &st) == 0 && S_ISDIR(st.st_mode), here = folder && file_exists(file);
        if (here)
            add_path(g, xstrdup(inner));
        any = here || (folder && add_folders(g, inner, depth + 1)) || any;
        free(names[i]);
    }
    free(names);
    return any;
}

static int find_files(struct merging *g, char **paths, int n, struct err *e)
{
    for (int i = 0; i < n; i++) {
        autofree char *file = xasprintf("%s/results.json", paths[i]);
        if (file_exists(file) || !add_folders(g, paths[i], 0))
            add_path(g, xstrdup(paths[i]));
    }
    if (g->n_paths > MERGE_MOST)
        return err_set(e, ERR_USAGE, "qa merge takes at most %d results, not %d", MERGE_MOST, g->n_paths);
    return 0;
}

/* Reads the results.  Unreadable files become faults of the merged results, because a report of the others is
 * still useful.  Returns -1 with e if none can be read. */
static int read_files(struct merging *g, struct err *e)
{
    g->files = xcalloc((unsigned long)g->n_paths, sizeof *g->files);
    for (int i = 0; i < g->n_paths; i++) {
        struct err why = ERR_INIT;
        if (results_file_read(g->paths[i], &g->files[g->n], &why) == 0) {
            g->n++;
            continue;
        }
        results_file_free(&g->files[g->n]);
        merge_fault(&g->merged, why.text);
    }
    return g->n ? 0 : err_set(e, ERR_USAGE, "%s", g->merged.faults[0]);
}

static int write_reports(struct merging *g, struct err *e)
{
    const struct report_paths copies = {
        {[REPORT_JUNIT] = g->s.junit, [REPORT_TAP] = g->s.tap, [REPORT_HTML] = g->s.html}};
    reports_discard(g->s.out, &copies);
    if (reports_open(&g->reports, g->s.out, &copies, e))
        return -1;
    struct results *r = &g->merged.results;
    r->dir = g->reports.dir;
    r->notes = g->s.notes;
    reports_save(&g->reports, r);
    struct progress *p = progress_begin(r->n, 1, g->s.quiet);
    progress_summary(p, r, g->reports.paths.of[REPORT_HTML]);
    progress_free(p);
    if (g->s.json)
        report_json(r, "-", stdout);
    return reports_print_errors(&g->reports) ? ERR_ENV : results_exit_code(r);
}

int cmd_qa_merge(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct merging g = {0};
    int n = options_parse(&merge_command, &g.s, argc, argv, &e), code;
    if (n == 0)
        n = err_set(&e, ERR_USAGE, "qa merge takes folders of results");
    if (n < 0)
        return options_refuse(&merge_command, &e);
    if (find_files(&g, argv, n, &e) || read_files(&g, &e)) {
        code = options_failed(&e);
    } else {
        merge(g.files, g.n, &g.merged);
        code = write_reports(&g, &e);
        code = code < 0 ? options_failed(&e) : code;
    }
    reports_close(&g.reports);
    merged_free(&g.merged);
    for (int i = 0; i < g.n; i++)
        results_file_free(&g.files[i]);
    for (int i = 0; i < g.n_paths; i++)
        free(g.paths[i]);
    free(g.paths);
    free(g.files);
    return code;
}
