/* results.c - see eval.h. */
#include "eval/eval.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A line has the item's fields and a reply; each byte of a reply may take six. */
enum { MAX_RESULTS = 512 << 20, MAX_LINE = EVAL_MAX_LINE + 8 * RESULTS_MAX_RAW };

/* ---- writing ------------------------------------------------------------------------------------ */

static int write_line(const struct eval_results *r, const json_t *v, struct err *e)
{
    autofree char *text = json_line(v, JSON_COMPACT | JSON_REAL_PRECISION(12)), *line = NULL;
    if (!text)
        bug("a result is not JSON");
    line = xasprintf("%s\n", text);
    /* One write per line: only the last line can be partial. */
    return file_write_all(r->fd, r->path, line, strlen(line), e);
}

static json_t *answer_json(const struct eval_answer *a)
{
    json_t *v = json_object();
    if (*a->error) {
        json_object_set_new(v, "error", json_clean_string(a->error));
        return v;
    }
    json_object_set_new(v, "pred", a->placed ? json_pack("[f, f]", a->x, a->y) : json_null());
    json_object_set_new(v, "raw", json_clean_string(a->raw));
    json_object_set_new(v, "correct", json_boolean(a->correct));
    json_object_set_new(v, "wrong_format", json_boolean(a->wrong_format));
    json_object_set_new(v, "dist_px", a->placed && a->distance < 1e9 ? json_real(a->distance) : json_null());
    json_object_set_new(v, "ms", json_real(a->ms));
    json_object_set_new(v, "tokens", json_integer(a->tokens));
    json_object_set_new(v, "p", a->p >= 0 ? json_real(a->p) : json_null());
    return v;
}

int results_add(struct eval_results *r, const struct eval_set *set, int item, const struct eval_answer *a,
                struct err *e)
{
    json_auto_t *line = json_copy(set->items[item].fields), *answer = answer_json(a);
    json_object_update(line, answer);
    int rc = write_line(r, line, e);
    r->outcomes[item] =
        (struct eval_outcome){true, a->correct, a->wrong_format, *a->error != 0, (float)a->ms, a->tokens};
    return rc;
}

/* ---- resuming ------------------------------------------------------------------------------ */

/* Returns -1 with e, which names the first key whose value differs from that in the file. */
static int same_head(const json_t *then, const json_t *now, struct err *e)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)now, key, v)
    {
        const json_t *was = json_object_get(then, key);
        if (json_equal(was, v))
            continue;
        if (!was)
            return err_set(e, ERR_USAGE, "it is not a results file of 'holorun eval'");
        autofree char *a = json_dumps(was, JSON_ENCODE_ANY), *b = json_dumps(v, JSON_ENCODE_ANY);
        err_set(e, ERR_USAGE, "it was started with a different %s: %.100s, now %.100s", key, a ? a : "?",
                b ? b : "?");
        return -1;
    }
    return 0;
}

static int read_result(struct eval_results *r, const json_t *line, const json_t *ids, struct err *e)
{
    const char *id = json_string_value(json_object_get(line, "id"));
    const json_t *at = id ? json_object_get(ids, id) : NULL;
    if (!id)
        return err_set(e, ERR_USAGE, "a result without an id");
    if (!at)
        return 0; /* an item that is not in this run */
    struct eval_outcome *o = &r->outcomes[json_integer_value(at)];
    if (o->done)
        return err_set(e, ERR_USAGE, "a second result of '%s'", id);
    *o = (struct eval_outcome){
        .done = true,
        .correct = json_is_true(json_object_get(line, "correct")),
        .wrong_format = json_is_true(json_object_get(line, "wrong_format")),
        .broken = json_object_get(line, "error") != NULL,
        .ms = (float)json_number_value(json_object_get(line, "ms")),
        .tokens = (int)json_integer_value(json_object_get(line, "tokens")),
    };
    return 0;
}

int results_parse(struct eval_results *r, const char *data, size_t len, const struct eval_set *set,
                  const json_t *head, size_t *whole, struct err *e)
{
    json_auto_t *ids = json_object();
    int rc = 0, number = 0;
    *whole = 0;
    for (int i = 0; i < set->n; i++)
        json_object_set_new(ids, set->items[i].id, json_integer(i));
    const char *stop;
    while (rc == 0 && (stop = memchr(data + *whole, '\n', len - *whole))) {
        const char *line = data + *whole;
        json_auto_t *v = eval_line(line, (size_t)(stop - line), MAX_LINE, e);
        rc = v ? 0 : -1;
        if (rc == 0)
            rc = number ? read_result(r, v, ids, e) : same_head(v, head, e);
        if (rc)
            err_prefix(e, "line %d", number + 1);
        number++;
        *whole = (size_t)(stop + 1 - data);
    }
    return rc;
}

static int resume_file(struct eval_results *r, const struct eval_set *set, const json_t *head, struct err *e)
{
    autofree char *data = NULL;
    size_t len, whole;
    if (file_read(r->path, MAX_RESULTS, &data, &len, e))
        return -1;
    int rc = results_parse(r, data, len, set, head, &whole, e);
    if (rc)
        return err_prefix(e, "cannot resume '%s'", r->path);
    if (ftruncate(r->fd, (off_t)whole) || lseek(r->fd, 0, SEEK_END) < 0)
        return err_set(e, ERR_ENV, "cannot resume '%s': %s", r->path, strerror(errno));
    return whole ? 0 : write_line(r, head, e);
}

int results_open(struct eval_results *r, const char *path, const struct eval_set *set, const json_t *head,
                 bool resume, struct err *e)
{
    *r = (struct eval_results){.path = xstrdup(path)};
    r->outcomes = xcalloc((unsigned long)set->n, sizeof *r->outcomes);
    r->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | (resume ? 0 : O_EXCL), 0600);
    if (r->fd < 0 && errno == EEXIST)
        return err_set(e, ERR_USAGE,
                       "'%s' exists: continue it with --resume, or choose another file with --results", path);
    if (r->fd < 0)
        return err_set(e, ERR_ENV, "cannot write '%s': %s", path, strerror(errno));
    struct stat st;
    if (fstat(r->fd, &st) || !S_ISREG(st.st_mode))
        return err_set(e, ERR_USAGE, "'%s' is not a regular file", path);
    return resume ? resume_file(r, set, head, e) : write_line(r, head, e);
}

void results_close(struct eval_results *r)
{
    if (r->path && r->fd >= 0)
        close(r->fd);
    free(r->path);
    free(r->outcomes);
    *r = (struct eval_results){.fd = -1};
}
