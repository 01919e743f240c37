/* export.c - exports a recorded run: selects the format and writes the files. */
#include "replay/export.h"

#include "base/file.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>

int export_line(FILE *f, json_t *object, struct err *e)
{
    autofree char *text = json_line(object, JSON_PRESERVE_ORDER | JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(object);
    if (!text)
        return err_set(e, ERR_ENV, "cannot write JSON: the recording contains invalid UTF-8");
    fprintf(f, "%s\n", text);
    return 0;
}

int export_frame(const struct export_options *o, int frame, const char *name, struct err *e)
{
    autofree char *png = NULL;
    size_t len;
    if (record_frame(o->record, frame, &png, &len, e))
        return -1;
    autofree char *path = xasprintf("%s/%s", o->to, name);
    return file_write(path, png, len, e);
}

int export_run(enum export_format f, const struct export_options *o, struct err *e)
{
    static export_fn *const formats[] = {export_osworld, export_rl, export_verl, export_atif};
    struct story s;
    if (dir_make(o->to, e))
        return -1;
    story_make(&s, o->record);
    int rc =
        s.n ? formats[f](o, &s, e) : err_set(e, ERR_USAGE, "'%s' has no steps to export", o->record->dir);
    story_free(&s);
    return rc;
}
