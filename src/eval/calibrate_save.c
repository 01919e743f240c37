/* calibrate_save.c - stores the verdict as a setting, in two small files in the model's directory. */
#include "eval/calibrate.h"

#include "base/file.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIALECT_FILE "holorun-dialect.json"

/* Reads holorun.json unchanged; returns an empty object if the file is missing, NULL with e if it is not an
 * object. */
static json_t *read_setting(const char *path, struct err *e)
{
    json_t *v = file_exists(path) ? json_load_file(path, JSON_REJECT_DUPLICATES, NULL) : json_object();
    if (json_is_object(v))
        return v;
    json_decref(v);
    err_set(e, ERR_MODEL, "'%s' is not a JSON object and was not changed", path);
    return NULL;
}

static int write_setting(const char *path, const char *dialect, struct err *e)
{
    json_t *v = read_setting(path, e);
    if (!v)
        return -1;
    const char *was = json_string_value(json_object_get(v, "dialect"));
    int rc = 0;
    if (!was || strcmp(was, dialect) != 0) {
        json_object_set_new(v, "dialect", json_string(dialect));
        autofree char *text = json_dumps(v, 0), *line = xasprintf("%s\n", text ? text : "{}");
        rc = file_write(path, line, strlen(line), e);
    }
    json_decref(v);
    return rc;
}

static int write_dialect(const char *dir, const struct verdict *v, struct err *e)
{
    autofree char *text = dialect_in_space(v->candidate->dialect, v->space, e);
    if (!text)
        return -1;
    autofree char *path = xasprintf("%s/" DIALECT_FILE, dir);
    return file_write(path, text, strlen(text), e);
}

/* Returns a dialect's name as written into holorun.json: that of a built-in one, or of a file in the
 * directory.  NULL with e for a file elsewhere. */
static const char *name_in(const char *dir, const char *dialect, struct err *e)
{
    size_t n = strlen(dir), len = strlen(dialect);
    if (len < 5 || strcmp(dialect + len - 5, ".json") != 0)
        return dialect;
    if (!strncmp(dialect, dir, n) && dialect[n] == '/' && !strchr(dialect + n + 1, '/'))
        return dialect + n + 1;
    err_set(e, ERR_USAGE, "'%s' is not in the model's directory; copy it there to save the calibration",
            dialect);
    return NULL;
}

int calibration_save(const char *model_dir, const struct verdict *v, struct err *e)
{
    bool other = v->space != v->candidate->own;
    const char *name = other ? DIALECT_FILE : name_in(model_dir, v->candidate->dialect, e);
    if (!name)
        return -1;
    if (access(model_dir, W_OK))
        return err_set(e, ERR_ENV, "cannot write into '%s': %s; use --dialect %s for each command instead",
                       model_dir, strerror(errno), v->candidate->dialect);
    if (other && write_dialect(model_dir, v, e))
        return -1;
    autofree char *path = xasprintf("%s/holorun.json", model_dir);
    return write_setting(path, name, e);
}
