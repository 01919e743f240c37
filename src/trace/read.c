/* read.c - reads a run directory; see read.h. */
#include "trace/read.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *field_text(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}

double field_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

int64_t field_int(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

bool field_bool(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

/* Renames members that have another name in older records. */
static void rename_members(json_t *fields)
{
    static const char *const names[][2] = {{"reroll", "resample"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *value = json_object_get(fields, names[i][0]);
        if (!value || json_object_get(fields, names[i][1]))
            continue;
        json_object_set(fields, names[i][1], value);
        json_object_del(fields, names[i][0]);
    }
}

static int add_event(struct record *r, json_t *fields)
{
    rename_members(fields);
    const char *kind = field_text(fields, "kind");
    int64_t step = field_int(fields, "step");
    if (!json_is_object(fields) || !*kind || step < 0 || step > RECORD_MAX_EVENTS) {
        json_decref(fields);
        return -1;
    }
    if (r->n == r->cap) {
        r->cap = r->cap ? r->cap * 2 : 256;
        r->events = xrealloc(r->events, (unsigned long)r->cap, sizeof *r->events);
    }
    r->events[r->n++] = (struct event){fields, kind, (int)step, field_int(fields, "t_mono_ns")};
    return 0;
}

int record_parse(struct record *r, const char *data, size_t len, struct err *e)
{
    for (const char *p = data, *end = data + len; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop) {
            r->torn = true;
            break;
        }
        size_t n = (size_t)(stop - p);
        if (r->n >= RECORD_MAX_EVENTS)
            return err_set(e, ERR_ENV, "more than %d events", RECORD_MAX_EVENTS);
        json_t *fields = n && n <= RECORD_MAX_LINE ? json_loadb(p, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
        if (n && (!fields || add_event(r, fields)))
            r->skipped++;
        p = stop + 1;
    }
    return 0;
}

static int read_events(struct record *r, struct err *e)
{
    char *path = xasprintf("%s/events.jsonl", r->dir), *data;
    size_t len;
    int rc = file_read(path, RECORD_MAX_BYTES, &data, &len, e);
    if (!rc) {
        rc = record_parse(r, data, len, e);
        if (rc)
            err_prefix(e, "'%s'", path);
        free(data);
    }
    free(path);
    return rc;
}

/* Reads run.json. A run that was killed early may lack it or have an incomplete one; an unreadable file is an
 * error. */
static int read_run(struct record *r, struct err *e)
{
    autofree char *path = xasprintf("%s/run.json", r->dir), *data = NULL;
    size_t len = 0;
    int rc = file_exists(path) ? file_read(path, RECORD_MAX_RUN, &data, &len, e) : 0;
    r->run = data ? json_loadb(data, len, 0, NULL) : NULL;
    if (!json_is_object(r->run)) {
        json_decref(r->run);
        r->run = json_object();
    }
    return rc;
}

int record_open(struct record *r, const char *dir, struct err *e)
{
    *r = (struct record){.dir = xstrdup(dir)};
    size_t n = strlen(dir);
    while (n > 1 && r->dir[n - 1] == '/')
        r->dir[--n] = 0;
    if (read_events(r, e) == 0 && read_run(r, e) == 0)
        return 0;
    record_free(r);
    return -1;
}

void record_free(struct record *r)
{
    for (int i = 0; i < r->n; i++)
        json_decref(r->events[i].fields);
    free(r->events);
    json_decref(r->run);
    free(r->dir);
    *r = (struct record){0};
}

int record_frame(const struct record *r, int number, char **png, size_t *len, struct err *e)
{
    autofree char *path = xasprintf("%s/frames/%06d.png", r->dir, number);
    return file_read(path, RECORD_MAX_FRAME, png, len, e);
}

static bool is_run_name(const char *name)
{
    return strlen(name) == 25 && strspn(name, "0123456789") == 8 && name[8] == 'T' && name[15] == 'Z' &&
           name[16] == '-';
}

static struct timespec written(int dir, const char *name)
{
    struct stat st = {0};
    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW);
    return st.st_mtim;
}

/* Returns whether a run is newer. Names of runs begin with their UTC time; within one second the last
 * modified run is newer. */
static bool is_newer(int dir, const char *name, const char *than)
{
    enum { TIME = 16 };
    if (strncmp(name, than, TIME) != 0)
        return strcmp(name, than) > 0;
    struct timespec a = written(dir, name), b = written(dir, than);
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

char *record_newest(const char *runs, struct err *e)
{
    DIR *d = opendir(runs);
    if (!d && errno == ENOENT)
        return err_set(e, ERR_USAGE, "no runs in '%s'; use --runs for another directory", runs), NULL;
    if (!d)
        return err_set(e, ERR_USAGE, "cannot list runs in '%s': %s", runs, strerror(errno)), NULL;
    char newest[32] = "";
    for (struct dirent *entry; (entry = readdir(d));)
        if (is_run_name(entry->d_name) && is_newer(dirfd(d), entry->d_name, newest))
            memcpy(newest, entry->d_name, 26);
    closedir(d);
    if (!*newest)
        return err_set(e, ERR_USAGE, "no run in '%s'", runs), NULL;
    return xasprintf("%s/%s", runs, newest);
}
