/* passed.c - keeps the record of the last run of each test that passed, for reuse: run.
 *
 *     CACHE/passed/TEST-IDENTITY/run           the run's directory
 *     CACHE/passed/TEST-IDENTITY/0, 1, ...     records of its runs: one, or one for each part of a task in
 *                                              steps
 *
 * TEST is a hash of the path of the suite and the id of the test, IDENTITY one of all that can change the
 * outcome. So whoever finds a folder needs no look into it to know that it fits. All files of a record are
 * read from the folder that was opened first, even if another process replaces it meanwhile. A test has one
 * record: a new one removes those with other identities. The files are links to those of the results where
 * both are on the same file system. */
#include "base/file.h"
#include "qa/run/attempt_impl.h"
#include "remote/endpoint.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

enum { FILE_MOST = 256 << 20, NAME_MOST = 8192, OPEN_DIRS = 8, TEST_DIGITS = 17, DAY = 24 * 60 * 60 };
enum { RECORD_DAYS = 60, TEMP_DAYS = 1 }; /* folders that were not used for so long are removed */

/* ---- names --------------------------------------------------------------------------------------- */

/* Writes a hash of the test, the program, its settings, the model and where it is served. */
static void identity_of(const struct suite_run *run, const struct test *t, char out[SUITE_HASH])
{
    static const char *const keys[] = {"build", "settings", "model", "dialect"};
    char of_test[SUITE_HASH];
    suite_test_identity(run->suite, t, of_test);
    XXH3_state_t *h = XXH3_createState();
    XXH3_64bits_reset(h);
    XXH3_64bits_update(h, of_test, sizeof of_test);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        autofree char *text =
            json_dumps(json_object_get(run->identity, keys[i]), JSON_SORT_KEYS | JSON_ENCODE_ANY);
        XXH3_64bits_update(h, text ? text : "", text ? strlen(text) : 0);
    }
    const struct endpoint *p = run->model->endpoint; /* it names its model, which another may name too */
    if (p && p->base)
        XXH3_64bits_update(h, p->base, strlen(p->base));
    snprintf(out, SUITE_HASH, "%016llx", (unsigned long long)XXH3_64bits_digest(h));
    XXH3_freeState(h);
}

/* Returns the directory of all records; owned. NULL: no cache folder. */
static char *store_of(void)
{
    autofree char *cache = file_place(PLACE_CACHE, NULL);
    return cache ? xasprintf("%s/passed", cache) : NULL;
}

/* Returns the directory of a test, which need not exist; owned. NULL: no cache folder. */
static char *place_of(const struct suite_run *run, const struct test *t)
{
    char identity[SUITE_HASH];
    char *store = store_of(), *path = realpath(run->suite->path, NULL), *place = NULL;
    if (!path) /* a suite from stdin has no file, only a directory */
        path = xasprintf("%s/%s", run->suite->dir, run->suite->path);
    autofree char *name = xasprintf("%s\n%s", path, t->id);
    identity_of(run, t, identity);
    if (store)
        place =
            xasprintf("%s/%016llx-%s", store, (unsigned long long)XXH3_64bits(name, strlen(name)), identity);
    free(path);
    free(store);
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
    autofree char *data = NULL;
    size_t len;
    if (link(from, to) == 0)
        return 0;
    if (file_read(from, FILE_MOST, &data, &len, e))
        return -1;
    return file_write(to, data, len, e);
}

static int copy_frames(const char *from, const char *to, struct err *e)
{
    DIR *list = dir_make(to, e) ? NULL : opendir(from);
    int rc = list ? 0 : err_set(e, ERR_ENV, "cannot copy '%s'", from);
    for (struct dirent *d; list && rc == 0 && (d = readdir(list));) {
        autofree char *a = xasprintf("%s/%s", from, d->d_name), *b = xasprintf("%s/%s", to, d->d_name);
        struct stat st;
        if (lstat(a, &st) == 0 && S_ISREG(st.st_mode))
            rc = copy_file(a, b, e);
    }
    if (list)
        closedir(list);
    return rc;
}

/* Copies the files of a run that reuse.c reads. */
static int copy_run(const char *from, const char *to, struct err *e)
{
    static const char *const names[] = {"events.jsonl", "run.json", "frames.idx", "tokens.bin",
                                        "logprobs.bin"};
    int rc = dir_make(to, e);
    for (size_t i = 0; i < sizeof names / sizeof *names && rc == 0; i++) {
        autofree char *a = xasprintf("%s/%s", from, names[i]), *b = xasprintf("%s/%s", to, names[i]);
        rc = file_exists(a) ? copy_file(a, b, e) : 0;
    }
    autofree char *a = xasprintf("%s/frames", from), *b = xasprintf("%s/frames", to);
    rc = rc || copy_frames(a, b, e) ? -1 : 0;
    return rc;
}

/* ---- the store ----------------------------------------------------------------------------------- */

/* Locks the store, so that only one process moves folders at a time. Returns a file to close; -1: none. */
static int lock_store(void)
{
    autofree char *store = store_of(), *path = store ? xasprintf("%s/lock", store) : NULL;
    int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0)
        flock(fd, LOCK_EX);
    return fd;
}

static void unlock_store(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* Removes a folder at once for those who look for it. */
static void discard(const char *place)
{
    autofree char *gone = file_temp_name(place);
    if (rename(place, gone) == 0)
        remove_all(gone);
}

/* Removes the other records of a test, and folders that nobody has used for long. */
static void tidy(const char *place)
{
    autofree char *store = store_of();
    const char *kept = strrchr(place, '/') + 1;
    DIR *list = store ? opendir(store) : NULL;
    for (struct dirent *d; list && (d = readdir(list));) {
        char *path = xasprintf("%s/%s", store, d->d_name);
        size_t n = strlen(d->d_name);
        bool temp = n > 4 && !strcmp(d->d_name + n - 4, ".tmp");
        struct stat st;
        if (*d->d_name == '.' || !strcmp(d->d_name, kept) || lstat(path, &st) || !S_ISDIR(st.st_mode)) {
            free(path);
            continue;
        }
        time_t age = time(NULL) - st.st_mtime;
        if (temp && age > TEMP_DAYS * DAY)
            remove_all(path);
        else if (!temp && (age > RECORD_DAYS * DAY || !strncmp(d->d_name, kept, TEST_DIGITS)))
            discard(path);
        free(path);
    }
    if (list)
        closedir(list);
}

void passed_find(struct attempt_state *s)
{
    size_t len;
    if (!s->run->identity || s->test->reuse != REUSE_RUN || s->run->fresh || s->order->number != 1 ||
        s->order->seed_offset || s->order->freezes)
        return;
    autofree char *place = place_of(s->run, s->test);
    int dir = place ? open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (dir < 0)
        return;
    s->passed_dir = dir;
    s->passed = xasprintf("/proc/self/fd/%d", dir); /* this folder, even if another one replaces it */
    autofree char *path = xasprintf("%s/run", s->passed);
    if (file_read(path, NAME_MOST, &s->passed_from, &len, NULL) == 0)
        futimens(dir, NULL); /* it is in use */
    else
        passed_forget(s);
}

void passed_forget(struct attempt_state *s)
{
    if (s->passed)
        close(s->passed_dir);
    free(s->passed);
    free(s->passed_from);
    s->passed = s->passed_from = NULL;
}

/* Puts the record in place of the one before, which stays if that fails. */
static int replace(const char *made, const char *place, struct err *e)
{
    autofree char *old = file_temp_name(place);
    int lock = lock_store();
    bool moved = rename(place, old) == 0;
    int rc = rename(made, place) ? err_set(e, ERR_ENV, "cannot rename '%s'", made) : 0;
    if (moved && (rc == 0 || rename(old, place)))
        remove_all(old);
    if (rc == 0)
        tidy(place);
    unlock_store(lock);
    return rc;
}

static int keep(const struct attempt_state *s, const char *made, const char *place, struct err *e)
{
    autofree char *path = xasprintf("%s/run", made);
    int rc = dir_make(made, e);
    for (int i = 0; i < s->n_jobs && rc == 0; i++) {
        autofree char *to = xasprintf("%s/%d", made, i);
        rc = copy_run(s->job_dirs[i], to, e);
    }
    rc = rc || file_write(path, s->out->run_dir, strlen(s->out->run_dir), e) || replace(made, place, e) ? -1
                                                                                                        : 0;
    return rc;
}

/* Removes a record whose replies did not pass again, so that the model decides next time; unless another one
 * has replaced it. */
static void drop(const struct attempt_state *s)
{
    autofree char *place = place_of(s->run, s->test);
    struct stat mine, now;
    int lock = lock_store();
    if (place && fstat(s->passed_dir, &mine) == 0 && stat(place, &now) == 0 && mine.st_dev == now.st_dev &&
        mine.st_ino == now.st_ino)
        discard(place);
    unlock_store(lock);
}

void passed_keep(const struct attempt_state *s)
{
    const struct attempt *a = s->out;
    struct err e = ERR_INIT;
    bool all = s->n_jobs > 0;
    for (int i = 0; i < s->n_jobs; i++)
        all = all && s->job_dirs[i];
    if (a->reused && a->outcome != OUTCOME_PASSED && a->outcome != OUTCOME_STOPPED)
        drop(s);
    if (!s->run->identity || s->test->reuse != REUSE_RUN || a->outcome != OUTCOME_PASSED || !all ||
        s->order->freezes)
        return;
    if (!s->news)
        return;
    autofree char *place = place_of(s->run, s->test), *made = place ? file_temp_name(place) : NULL;
    if (!place || keep(s, made, place, &e)) {
        warn("%s: this run cannot be reused: %s", s->test->id, place ? e.text : "no cache folder");
        if (made)
            remove_all(made);
    }
}
