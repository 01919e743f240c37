/* earlier.c - reads results.json of an earlier run, to select tests by their outcome or duration. */
#include "qa/suite/private.h"

#include "base/file.h"
#include "base/utf8.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

void earlier_free(struct earlier *p)
{
    json_decref(p->tests);
    json_decref(p->json);
    *p = (struct earlier){0};
}

struct earlier_test earlier_find(const struct earlier *p, const char *suite, const char *id)
{
    const json_t *test = p->suite && strcmp(p->suite, suite) != 0 ? NULL : json_object_get(p->tests, id);
    const json_t *seconds = json_object_get(test, "seconds");
    return (struct earlier_test){
        .known = test != NULL,
        .passed = test && !strcmp(json_string_value(json_object_get(test, "outcome")), "passed"),
        .seconds = json_is_number(seconds) ? json_number_value(seconds) : -1};
}

int earlier_parse(const char *text, size_t len, const char *path, struct earlier *p, struct err *e)
{
    json_error_t why;
    size_t i, bom = utf8_bom(text, len);
    json_t *test;
    *p = (struct earlier){.json = json_loadb(text + bom, len - bom, JSON_REJECT_DUPLICATES, &why),
                          .tests = json_object()};
    if (!p->json)
        return err_set(e, ERR_USAGE, "%s:%d: expected the results.json of an earlier run: %s", path, why.line,
                       why.text);
    const json_t *tests = json_object_get(p->json, "tests");
    if (!json_is_array(tests) || json_array_size(tests) > EARLIER_MAX_TESTS)
        return err_set(
            e, ERR_USAGE,
            "'%s' is not a results.json: expected {\"tests\": [{\"id\", \"outcome\"}]}, at most %d tests",
            path, EARLIER_MAX_TESTS);
    p->suite = json_string_value(json_object_get(p->json, "suite"));
    json_array_foreach(tests, i, test)
    {
        const char *id = json_string_value(json_object_get(test, "id"));
        if (!id || strlen(id) > EARLIER_MAX_NAME || !json_is_string(json_object_get(test, "outcome")))
            return err_set(e, ERR_USAGE, "%s: test %zu: expected an id of at most %d bytes and an outcome",
                           path, i + 1, EARLIER_MAX_NAME);
        json_object_set(p->tests, id, test);
    }
    return 0;
}

int earlier_read(const char *path, struct earlier *p, struct err *e)
{
    autofree char *text = NULL;
    size_t len;
    *p = (struct earlier){0};
    if (file_read(path, EARLIER_MAX_BYTES, &text, &len, e)) {
        if (e)
            e->kind = ERR_USAGE;
        return -1;
    }
    return earlier_parse(text, len, path, p, e);
}
