/* fuzz_suite.c - any bytes as a suite, or as a spec if they begin with its head; tests of an accepted suite
 * are selected and listed.  A reader that continues after errors also finds the error that ends parsing,
 * and finds none in a valid suite. */
#include "qa/suite/private.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void as_spec(const char *text, size_t size)
{
    static const char any[] = "tests: [{ id: a, task: t }]";
    struct suite_reader r = {.s = suite_parse(any, sizeof any - 1, "fuzz", NULL)};
    struct err e = ERR_INIT;
    struct spec p;
    r.e = &e;
    if (r.s && !spec_parse(&r, text, size, "fuzz.md", &p) && !strstr(p.task, "VERDICT: FAILED"))
        abort();
    suite_free(r.s);
}

static void all_mistakes(const char *text, size_t size)
{
    struct err first = ERR_INIT, e = ERR_INIT;
    json_t *faults = json_object();
    struct suite *s = suite_parse(text, size, "fuzz", &first),
                 *all = suite_parse_all(text, size, "fuzz", faults, &e);
    bool found = json_object_get(faults, first.text) || !strcmp(e.text, first.text);
    if (s ? !all || json_object_size(faults) || e.kind : !found)
        abort();
    for (int i = 0; all && i < all->n; i++)
        if (!all->tests[i].id || !all->tests[i].task || !all->tests[i].secrets)
            abort();
    suite_free(s);
    suite_free(all);
    json_decref(faults);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const only[] = {"a*", "tag:a", NULL};
    if (size > 3 && !memcmp(data, "---", 3)) {
        as_spec((const char *)data, size);
        return 0;
    }
    all_mistakes((const char *)data, size);
    struct suite *s = suite_parse((const char *)data, size, "fuzz", NULL);
    if (!s)
        return 0;
    int all = suite_select(s, &(struct suite_selection){.only = NULL}, NULL);
    suite_select(s, &(struct suite_selection){.shard = "1/2"}, NULL);
    suite_select(s, &(struct suite_selection){.only = only}, NULL);
    char *out = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&out, &len);
    if (f) {
        suite_print(f, s, false);
        suite_print(f, s, true);
        fclose(f);
    }
    free(out);
    if (all != s->n || !s->n)
        abort();
    suite_free(s);
    return 0;
}
