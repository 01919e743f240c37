/* passed.c - keeps the record of the last run of each test that passed, for reuse: run.
 *
 *     CACHE/passed/TEST/identity       hash of all that can change the outcome, and the run's directory
 *     CACHE/passed/TEST/0, 1, ...      records of its runs: one, or one for each part of a task in steps
 *
 * TEST is a hash of the path of the suite and the id of the test, so a changed test replaces its record. The
 * files are links to those of the results where both are on the same file system. */
#include "base/file.h"
#include "qa/run/attempt_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { FILE_MOST = 256 << 20, IDENTITY_MOST = 8192, OPEN_DIRS = 8 };

/* ---- names --------------------------------------------------------------------------------------- */

/* Writes a hash of the test, the program, its settings and the model. */
static void identity_of(const struct suite_run *run, const struct test *t, char out[SUITE_HASH])
{
    static const char *const keys[] = {"build", "settings", "model", "dialect"};
    char of_test[SUITE_HASH];
    suite_test_identity(run->suite, t, of_test);
    XXH3_state_t *h = XXH3_createState();
    XXH3_64bits_reset(h);
    XXH3_64bits_update(h, of_test, sizeof of_test);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char *text = json_dumps(json_object_get(run->identity, keys[i]), JSON_SORT_KEYS | JSON_ENCODE_ANY);
        XXH3_64bits_update(h, text ? text : "", text ? strlen(text) : 0);
        free(text);
    }
    snprintf(out, SUITE_HASH, "%016llx", (unsigned long long)XXH3_64bits_digest(h));
    XXH3_freeState(h);
}

/* Returns the directory of a test, which need not exist; owned. NULL: no cache folder. */
static char *place_of(const struct suite_run *run, const struct test *t)
{
    char *cache = file_place(PLACE_CACHE, NULL), *path = realpath(run->suite->path, NULL);
    char *name = xasprintf("%s\n%s", path ? path : run->suite->path, t->id);
    char *place =
        cache ? xasprintf("%s/passed/%016llx", cache, (unsigned long long)XXH3_64bits(name, strlen(name)))
              : NULL;
    free(name);
    free(path);
    free(cache);
    return place;
}

/* ---- files --------------------------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    return remove(path);
}

static void remove_all(const char *path)
{
    nftw(path, remove_entry, OPEN_DIRS, FTW_DEPTH | FTW_PHYS);
}

static int copy_file(const char *from, const char *to, struct err *e)
{
    char *data;
    size_t len;
    if (link(from, to) == 0)
        return 0;
    if (file_read(from, FILE_MOST, &data, &len, e))
        return -1;
    int rc = file_write(to, data, len, e);
    free(data);
    return rc;
}

/* Copies the regular files of a run, and those of its directory of screenshots. */
static int copy_run(const char *from, const char *to, bool frames, struct err *e)
{
    DIR *list = dir_make(to, e) ? NULL : opendir(from);
    int rc = list ? 0 : err_set(e, ERR_ENV, "cannot copy '%s'", from);
    for (struct dirent *d; list && rc == 0 && (d = readdir(list));) {
        char *a = xasprintf("%s/%s", from, d->d_name), *b = xasprintf("%s/%s", to, d->d_name);
        struct stat st;
        if (lstat(a, &st) == 0 && S_ISREG(st.st_mode) && strcmp(d->d_name, "report.html") != 0)
            rc = copy_file(a, b, e);
        else if (frames && !strcmp(d->d_name, "frames"))
            rc = copy_run(a, b, false, e);
        free(a);
        free(b);
    }
    if (list)
        closedir(list);
    return rc;
}

/* ---- the store ----------------------------------------------------------------------------------- */

void passed_find(struct attempt_state *s)
{
    char now[SUITE_HASH], *text = NULL;
    size_t len;
    if (!s->run->identity || !s->test->reuse || s->run->fresh || s->order->number != 1 ||
        s->order->seed_offset || s->order->freezes)
        return;
    char *place = place_of(s->run, s->test);
    char *path = place ? xasprintf("%s/identity", place) : NULL;
    if (path && file_read(path, IDENTITY_MOST, &text, &len, NULL) == 0 && len > SUITE_HASH) {
        identity_of(s->run, s->test, now);
        if (!strncmp(text, now, SUITE_HASH - 1) && text[SUITE_HASH - 1] == '\n') {
            s->passed = place;
            place = NULL;
            s->out->reused_from = xstrdup(text + SUITE_HASH);
        }
    }
    free(text);
    free(path);
    free(place);
}

/* Puts the record in place of the one before. */
static int replace(const char *made, const char *place, struct err *e)
{
    char *old = file_temp_name(place);
    bool moved = rename(place, old) == 0;
    int rc = rename(made, place) ? err_set(e, ERR_ENV, "cannot rename '%s'", made) : 0;
    if (moved)
        remove_all(old);
    free(old);
    return rc;
}

static int keep(const struct attempt_state *s, const char *made, const char *place, struct err *e)
{
    char now[SUITE_HASH];
    char *path = xasprintf("%s/identity", made);
    int rc = dir_make(made, e);
    for (int i = 0; i < s->n_jobs && rc == 0; i++) {
        char *to = xasprintf("%s/%d", made, i);
        rc = copy_run(s->job_dirs[i], to, true, e);
        free(to);
    }
    identity_of(s->run, s->test, now);
    char *text = xasprintf("%s\n%s", now, s->out->run_dir);
    rc = rc || file_write(path, text, strlen(text), e) || replace(made, place, e) ? -1 : 0;
    free(text);
    free(path);
    return rc;
}

void passed_keep(const struct attempt_state *s)
{
    const struct attempt *a = s->out;
    struct err e = ERR_INIT;
    bool all = s->n_jobs > 0;
    for (int i = 0; i < s->n_jobs; i++)
        all = all && s->job_dirs[i];
    if (!s->run->identity || !s->test->reuse || a->outcome != OUTCOME_PASSED || !all || s->order->freezes)
        return;
    if (a->reused && a->reused == a->steps) /* nothing is new */
        return;
    char *place = place_of(s->run, s->test), *made = place ? file_temp_name(place) : NULL;
    if (!place || keep(s, made, place, &e)) {
        warn("%s: this run cannot be reused: %s", s->test->id, place ? e.text : "no cache folder");
        if (made)
            remove_all(made);
    }
    free(made);
    free(place);
}
