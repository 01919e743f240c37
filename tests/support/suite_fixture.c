/* suite_fixture.c - see suite_fixture.h. */
#include "suite_fixture.h"

#include "base/file.h"
#include "check.h"
#include "place.h"

#include <dirent.h>
#include <unistd.h>

struct suite *suite_of(const char *text)
{
    struct err e = ERR_INIT;
    struct suite *s = suite_parse(text, strlen(text), "s.yaml", &e);
    if (!s)
        fail_msg("%s\nin:\n%s", e.text, text);
    return s;
}

const struct test *test_of(const struct suite *s, const char *id)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->tests[i].id, id))
            return &s->tests[i];
    fail_msg("test '%s' not found", id);
    return NULL;
}

static char folder[PLACE_PATH];

void suite_fixture_open(void)
{
    if (!mkdtemp(place_template(folder)))
        exit(1);
}

void suite_fixture_close(void)
{
    DIR *d = opendir(folder);
    for (struct dirent *one; d && (one = readdir(d));)
        unlinkat(dirfd(d), one->d_name, 0);
    if (d)
        closedir(d);
    rmdir(folder);
}

const char *suite_fixture_file(const char *name, const char *text)
{
    static char path[200];
    struct err e = ERR_INIT;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (file_write(path, text, strlen(text), &e))
        fail_msg("%s", e.text);
    return path;
}

char *repeat(const char *head, const char *text, int n, const char *tail)
{
    size_t h = strlen(head), len = strlen(text), t = strlen(tail);
    char *out = malloc(h + len * (size_t)n + t + 1), *p = out + h;
    memcpy(out, head, h);
    for (int i = 0; i < n; i++, p += len)
        memcpy(p, text, len);
    memcpy(p, tail, t + 1);
    return out;
}

void same_list(const char *const *list, const char *const *want)
{
    int i = 0;
    for (; want[i]; i++) {
        assert_non_null(list[i]);
        assert_string_equal(list[i], want[i]);
    }
    assert_null(list[i]);
}
bool has(const char *const *list, const char *word)
{
    for (; *list; list++)
        if (!strcmp(*list, word))
            return true;
    return false;
}

const char *after(const char *text, const char *word)
{
    const char *p = strstr(text, word);
    if (!p)
        fail_msg("'%s' is not in:\n%s", word, text);
    return p + strlen(word);
}
