/* exported.c - see exported.h. */
#include "exported.h"

#include "check.h"

#include "base/file.h"

#include <dirent.h>
#include <sys/stat.h>

static struct xvfb x;
static char run[200]; /* folder of a run of the embedded model; "" until recorded */

static void forget(void)
{
    if (*run)
        xvfb_stop(&x);
}

static void record_once(void)
{
    struct outcome o = {0};
    if (*run)
        return;
    if (xvfb_start(&x, "640x480x24", NULL))
        skip();
    atexit(forget);
    char *runs = xvfb_place(&x, "runs");
    char seed[8] =
        "10"; /* the screen is nearly empty: most seeds run four steps, some report the task as impossible */
    for (int k = 7; k < 17; k++) {
        snprintf(seed, sizeof seed, "%d", k);
        outcome_free(&o);
        program_run(&x, &o,
                    WORDS("run", "Book the 9:40 flight from Paris to Rome on 12 May for Ana Lima", "--model",
                          "assets/pocket/model", "--runs", runs, "-q", "-n", "4", "--temperature", "0.9",
                          "--seed", seed, "--settle-min", "1", "--settle-quiet", "30", "--no-report",
                          "--max-images", "2", "--dry-run"));
        if (!o.code)
            break;
    }
    if (o.code)
        fail_msg("exit %d: %s", o.code, o.err);
    char *dir = record_newest(runs, NULL);
    assert_non_null(dir);
    snprintf(run, sizeof run, "%s", dir);
    outcome_free(&o);
    free(dir);
    free(runs);
}

char *exported_as(const char *format, const char *reward)
{
    struct outcome o = {0};
    record_once();
    program_run(&x, &o, WORDS("export", run, "--format", format, reward));
    if (o.code)
        fail_msg("%s", o.err);
    char *to = xasprintf("%.*s", (int)strcspn(o.out, "\n"), o.out);
    outcome_free(&o);
    return to;
}

json_t *exported_lines(const char *dir, const char *name)
{
    char *path = xasprintf("%s/%s", dir, name), *text;
    size_t len;
    assert_int_equal(file_read(path, 256 << 20, &text, &len, NULL), 0);
    assert_true(len && text[len - 1] == '\n');
    json_t *list = json_array();
    for (char *p = text, *end; (end = strchr(p, '\n')); p = end + 1) {
        json_t *one = json_loadb(p, (size_t)(end - p), JSON_REJECT_DUPLICATES, NULL);
        assert_true(json_is_object(one));
        json_array_append_new(list, one);
    }
    free(text);
    free(path);
    return list;
}

void exported_has(const json_t *object, const char *members)
{
    char copy[400], *save = NULL;
    snprintf(copy, sizeof copy, "%s", members);
    for (char *m = strtok_r(copy, " ", &save); m; m = strtok_r(NULL, " ", &save)) {
        const json_t *v = json_object_get(object, m + 2);
        char t = m[0];
        bool fits = v && ((t <= 'Z' && json_is_null(v)) || ((t | 32) == 's' && json_is_string(v)) ||
                          ((t | 32) == 'i' && json_is_integer(v)) || ((t | 32) == 'f' && json_is_number(v)) ||
                          ((t | 32) == 'b' && json_is_boolean(v)) || ((t | 32) == 'a' && json_is_array(v)) ||
                          ((t | 32) == 'o' && json_is_object(v)));
        if (!fits) {
            char *text = json_dumps(object, 0);
            fail_msg("no '%s' in %.300s", m, text);
        }
    }
}

void exported_private(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 077, 0);
    assert_null(strstr(path, ".tmp"));
    if (!S_ISDIR(st.st_mode))
        return;
    DIR *d = opendir(path);
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') {
            char *below = xasprintf("%s/%s", path, e->d_name);
            exported_private(below);
            free(below);
        }
    closedir(d);
}

const char *exported_run(void)
{
    record_once();
    return run;
}

struct xvfb *exported_display(void)
{
    return &x;
}
