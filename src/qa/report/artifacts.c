/* artifacts.c - links to the files of a test (screenshots, recordings) and the last screenshots of its
 * run. */
#include "qa/report/summary.h"

#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *absolute(const char *path)
{
    char here[4096];
    while (!strncmp(path, "./", 2))
        path += 2;
    if (*path == '/' || !getcwd(here, sizeof here))
        return xstrdup(path);
    return *path && strcmp(path, ".") != 0 ? xasprintf("%s/%s", here, path) : xstrdup(here);
}

char *artifact_link(const char *from, const char *path)
{
    autofree char *base = absolute(from), *whole = absolute(path);
    size_t n = strlen(base);
    while (n > 1 && base[n - 1] == '/')
        n--;
    bool below = n > 1 && !strncmp(whole, base, n) && whole[n] == '/' && !strstr(whole + n, "/../");
    return xstrdup(below ? whole + n + 1 : whole);
}

char *artifact_folder(const char *path)
{
    char *copy = xstrdup(path), *folder = xstrdup(dirname(copy));
    free(copy);
    return folder;
}

int artifact_last_steps(const struct story *s, int *steps, int most)
{
    int n = 0;
    for (int i = s->n - 1; i >= 0 && n < most; i--) {
        bool seen = s->steps[i].frame < 0;
        for (int k = 0; k < n; k++)
            seen = seen || s->steps[steps[k]].frame == s->steps[i].frame;
        if (!seen)
            steps[n++] = i;
    }
    for (int i = 0; i < n / 2; i++) {
        int other = steps[i];
        steps[i] = steps[n - 1 - i];
        steps[n - 1 - i] = other;
    }
    return n;
}

int artifact_last_frames(const char *run_dir, int *numbers, int most)
{
    struct record r;
    struct story s;
    if (!run_dir || record_open(&r, run_dir, NULL))
        return 0;
    story_make(&s, &r);
    int n = artifact_last_steps(&s, numbers, most);
    for (int i = 0; i < n; i++)
        numbers[i] = s.steps[numbers[i]].frame;
    story_free(&s);
    record_free(&r);
    return n;
}

char *artifact_frame(const char *run_dir, int number)
{
    return xasprintf("%s/frames/%06d.png", run_dir, number);
}
