/* earlier.c - see earlier.h. */
#include "qa/suite/earlier.h"

#include "base/file.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

void earlier_free(struct earlier *p)
{
    free(p->tests);
    json_decref(p->json);
    *p = (struct earlier){0};
}

static int by_id(const void *a, const void *b)
{
    const struct earlier_test *x = a, *y = b;
    int order = strcmp(x->id, y->id);
    return order ? order : x->order - y->order;
}

const struct earlier_test *earlier_find(const struct earlier *p, const char *suite, const char *id)
{
    if (p->suite && strcmp(p->suite, suite) != 0)
        return NULL;
    int from = 0, to = p->n; /* binary search for the first id greater than this one */
    while (from < to) {
        int half = from + (to - from) / 2;
        if (strcmp(p->tests[half].id, id) <= 0)
            from = half + 1;
        else
            to = half;
    }
    return to && !strcmp(p->tests[to - 1].id, id) ? &p->tests[to - 1] : NULL;
}

static int read_test(const json_t *test, struct earlier *p)
{
    const char *id = json_string_value(json_object_get(test, "id"));
    const char *outcome = json_string_value(json_object_get(test, "outcome"));
    const json_t *seconds = json_object_get(test, "seconds");
    if (!id || !outcome || strlen(id) > EARLIER_MAX_NAME)
        return -1;
    p->tests[p->n] =
        (struct earlier_test){.id = id,
                              .passed = !strcmp(outcome, "passed"),
                              .seconds = json_is_number(seconds) ? json_number_value(seconds) : -1,
                              .order = p->n};
    p->n++;
    return 0;
}

int earlier_parse(const char *text, size_t len, const char *path, struct earlier *p, struct err *e)
{
    json_error_t why;
    *p = (struct earlier){.json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why)};
    if (!p->json)
        return err_set(e, ERR_USAGE, "%s:%d: expected the results.json of an earlier run: %s", path, why.line,
                       why.text);
    const json_t *tests = json_object_get(p->json, "tests");
    size_t n = json_array_size(tests);
    if (!json_is_array(tests) || n > EARLIER_MAX_TESTS)
        return err_set(
            e, ERR_USAGE,
            "'%s' is no results.json: expected {\"tests\": [{\"id\", \"outcome\"}]}, at most %d tests", path,
            EARLIER_MAX_TESTS);
    p->suite = json_string_value(json_object_get(p->json, "suite"));
    p->tests = xcalloc((unsigned long)n + 1, sizeof *p->tests);
    for (size_t i = 0; i < n; i++)
        if (read_test(json_array_get(tests, i), p))
            return err_set(e, ERR_USAGE, "%s: test %zu: expected an id of at most %d bytes and an outcome",
                           path, i + 1, EARLIER_MAX_NAME);
    qsort(p->tests, n, sizeof *p->tests, by_id);
    return 0;
}

int earlier_read(const char *path, struct earlier *p, struct err *e)
{
    char *text;
    size_t len;
    *p = (struct earlier){0};
    if (file_read(path, EARLIER_MAX_BYTES, &text, &len, e)) {
        if (e)
            e->kind = ERR_USAGE;
        return -1;
    }
    int rc = earlier_parse(text, len, path, p, e);
    free(text);
    return rc;
}
