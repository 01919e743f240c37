/* earlier.c - see earlier.h: files, JSON, looking up. */
#include "qa/suite/earlier.h"

#include "base/file.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int earlier_add(struct earlier *p, struct earlier_test t)
{
    if (p->n == EARLIER_MAX_TESTS) {
        free(t.id);
        free(t.suite);
        return -1;
    }
    if (p->n == p->room)
        p->tests =
            xrealloc(p->tests, (unsigned long)(p->room = p->room ? 2 * p->room : 64), sizeof *p->tests);
    t.order = p->n;
    p->tests[p->n++] = t;
    return 0;
}

void earlier_free(struct earlier *p)
{
    for (int i = 0; i < p->n; i++) {
        free(p->tests[i].id);
        free(p->tests[i].suite);
    }
    free(p->tests);
    *p = (struct earlier){NULL, 0, 0};
}

static int by_id(const void *a, const void *b)
{
    const struct earlier_test *x = a, *y = b;
    int order = strcmp(x->id, y->id);
    return order ? order : x->order - y->order;
}

const struct earlier_test *earlier_find(const struct earlier *p, const char *suite, const char *id)
{
    int from = 0, to = p->n; /* those before `to` come to be all whose id is not after this one */
    while (from < to) {
        int half = from + (to - from) / 2;
        if (strcmp(p->tests[half].id, id) <= 0)
            from = half + 1;
        else
            to = half;
    }
    for (int i = to - 1; i >= 0 && !strcmp(p->tests[i].id, id); i--)
        if (!*p->tests[i].suite || !strcmp(p->tests[i].suite, suite))
            return &p->tests[i];
    return NULL;
}

static int json_test(const json_t *one, const char *suite, struct earlier *p)
{
    const char *id = json_string_value(json_object_get(one, "id"));
    const char *outcome = json_string_value(json_object_get(one, "outcome"));
    const json_t *seconds = json_object_get(one, "seconds");
    if (!id || !outcome || strlen(id) > EARLIER_MAX_NAME)
        return -1;
    return earlier_add(
        p, (struct earlier_test){.id = xstrdup(id),
                                 .suite = xstrdup(suite),
                                 .passed = !strcmp(outcome, "passed"),
                                 .seconds = json_is_number(seconds) ? json_number_value(seconds) : -1});
}

static int parse_json(const char *text, size_t len, const char *path, struct earlier *p, struct err *e)
{
    json_error_t why;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        return err_set(e, ERR_USAGE, "%s:%d: not JSON: %s", path, why.line, why.text);
    const json_t *tests = json_object_get(root, "tests");
    const char *suite = json_string_value(json_object_get(root, "suite"));
    int rc =
        json_is_array(tests)
            ? 0
            : err_set(e, ERR_USAGE,
                      "'%s' has no results of tests: expected {\"tests\": [{\"id\", \"outcome\"}]}", path);
    for (size_t i = 0; !rc && i < json_array_size(tests); i++)
        if (json_test(json_array_get(tests, i), suite ? suite : "", p))
            rc = err_set(
                e, ERR_USAGE,
                "%s: test %zu: expected an id of at most %d bytes and an outcome, of at most %d tests", path,
                i + 1, EARLIER_MAX_NAME, EARLIER_MAX_TESTS);
    json_decref(root);
    return rc;
}

int earlier_parse(const char *text, size_t len, const char *path, struct earlier *p, struct err *e)
{
    *p = (struct earlier){NULL, 0, 0};
    size_t i = len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
    while (i < len && text[i] && strchr(" \t\r\n", text[i]))
        i++;
    int rc = i < len && text[i] == '{' ? parse_json(text + i, len - i, path, p, e)
                                       : earlier_xml(text, len, path, p, e);
    if (rc)
        earlier_free(p);
    else if (p->n)
        qsort(p->tests, (size_t)p->n, sizeof *p->tests, by_id);
    return rc;
}

int earlier_read(const char *path, struct earlier *p, struct err *e)
{
    char *text;
    size_t len;
    *p = (struct earlier){NULL, 0, 0};
    if (file_read(path, EARLIER_MAX_BYTES, &text, &len, e)) {
        if (e)
            e->kind = ERR_USAGE;
        return -1;
    }
    int rc = earlier_parse(text, len, path, p, e);
    free(text);
    return rc;
}
