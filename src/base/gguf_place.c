/* gguf_place.c - which GGUF files make a model; see gguf.h. */
#include "base/gguf.h"

#include "base/file.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#define END ".gguf"

static bool ends_so(const char *name, size_t n)
{
    size_t k = sizeof END - 1;
    return n > k && !memcmp(name + n - k, END, k);
}

/* The comma between the two paths; NULL: one alone. */
static const char *second_of(const char *place)
{
    const char *mark = strstr(place, END ",");
    return mark ? mark + sizeof END - 1 : NULL;
}

bool gguf_is_place(const char *place)
{
    return ends_so(place, strlen(place));
}

struct gguf_file *gguf_open_text(const char *place, struct err *e)
{
    const char *comma = second_of(place);
    char *path = comma ? xasprintf("%.*s", (int)(comma - place), place) : xstrdup(place);
    struct gguf_file *f = gguf_open(path, e);
    if (f && gguf_number_of(f, "split.count", 1) > 1) {
        err_set(e, ERR_MODEL, "%s is one of %g parts; put them together in one file first", gguf_name(f),
                gguf_number_of(f, "split.count", 1));
        gguf_close(f);
        f = NULL;
    }
    free(path);
    return f;
}

struct gguf_file *gguf_open_eyes(const char *place, struct err *e)
{
    const char *comma = second_of(place);
    return comma ? gguf_open(comma + 1, e) : NULL;
}

/* Of several towers the one in bf16, else f16, else the first by name. */
static bool better(const char *name, const char *than)
{
    static const char *const forms[] = {"bf16", "BF16", "f16", "F16", "f32", "F32"};
    for (size_t i = 0; than && i < sizeof forms / sizeof *forms; i++)
        if (!strstr(name, forms[i]) != !strstr(than, forms[i]))
            return strstr(name, forms[i]);
    return !than || strcmp(name, than) < 0;
}

/* In a folder: the tower's file, and of the others the first and how many there are. */
struct found {
    char *eyes, *text;
    int texts;
};

static struct found look(const char *dir)
{
    struct found f = {0};
    DIR *d = opendir(dir);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        const char *name = entry->d_name;
        bool eyes = strstr(name, "mmproj");
        if (*name == '.' || !ends_so(name, strlen(name)))
            continue;
        f.texts += !eyes;
        char **to = eyes ? &f.eyes : &f.text;
        if (!better(name, *to))
            continue;
        free(*to);
        *to = xstrdup(name);
    }
    if (d)
        closedir(d);
    return f;
}

char *gguf_find_place(const char *option, struct err *e)
{
    char *place = NULL;
    if (gguf_is_place(option) && second_of(option))
        return xstrdup(option);
    bool file = gguf_is_place(option);
    const char *slash = file ? strrchr(option, '/') : NULL;
    char *dir = !file   ? xstrdup(option)
                : slash ? xasprintf("%.*s", (int)(slash - option), option)
                        : xstrdup(".");
    struct found f = look(dir);
    if (file && !file_exists(option))
        err_set(e, ERR_MODEL, "'%s' is not there", option);
    else if (!file && f.texts > 1)
        err_set(e, ERR_MODEL, "'%s' has %d GGUF files; name one, as %s/%s", option, f.texts, option, f.text);
    else if (file || f.text)
        place = file ? xstrdup(option) : xasprintf("%s/%s", option, f.text);
    if (place && f.eyes && !strstr(slash ? slash : option, "mmproj")) {
        char *both = xasprintf("%s,%s/%s", place, dir, f.eyes);
        free(place);
        place = both;
    }
    free(f.eyes);
    free(f.text);
    free(dir);
    return place;
}
