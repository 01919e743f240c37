/* gguf_place.c - finds the GGUF files of a model (gguf.h). */
#include "base/gguf.h"

#include "base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define END    ".gguf"
#define DIGEST "sha256-"
#define SPLIT  "-00001-of-00002"

enum { DIGITS = 64, MAX_PARTS = 999 };

/* Returns whether n bytes end like a GGUF file name, or like a blob of Ollama: "sha256-" and 64 hex
 * digits. */
static bool is_file(const char *name, size_t n)
{
    size_t k = sizeof END - 1, digest = sizeof DIGEST - 1;
    if (n > k && !strncasecmp(name + n - k, END, k))
        return true;
    if (n < digest + DIGITS)
        return false;
    const char *base = name + n - digest - DIGITS;
    size_t hex = strspn(base + digest, "0123456789abcdef");
    bool whole = base == name || base[-1] == '/' || base[-1] == ',';
    return whole && hex >= DIGITS && !strncmp(base, DIGEST, digest);
}

/* Returns the comma between two paths; NULL: a single path. */
static const char *second_of(const char *place)
{
    for (const char *mark = strchr(place, ','); mark; mark = strchr(mark + 1, ','))
        if (is_file(place, (size_t)(mark - place)))
            return mark;
    return NULL;
}

bool gguf_is_place(const char *place)
{
    return is_file(place, strlen(place));
}

/* Returns the "-00001-of-00003" at the end of a name, and its two numbers; NULL: not a split file. */
static const char *split_of(const char *path, int *part, int *of)
{
    size_t n = strlen(path), end = sizeof END - 1, split = sizeof SPLIT - 1;
    int length = 0;
    if (n <= end + split || strcasecmp(path + n - end, END) != 0)
        return NULL;
    const char *at = path + n - end - split;
    return sscanf(at, "-%5d-of-%5d%n", part, of, &length) == 2 && length == (int)split ? at : NULL;
}

/* Returns the path of another part of a split file. */
static char *part_path(const char *path, int part)
{
    int now, of;
    const char *at = split_of(path, &now, &of);
    return at ? xasprintf("%.*s-%05d-of-%05d%s", (int)(at - path), path, part, of,
                          path + strlen(path) - sizeof END + 1)
              : xstrdup(path);
}

static char *text_path(const char *place)
{
    const char *comma = second_of(place);
    return comma ? xasprintf("%.*s", (int)(comma - place), place) : xstrdup(place);
}

int gguf_parts(const struct gguf_file *text)
{
    double n = gguf_number_of(text, "split.count", 1);
    return n >= 1 && n <= MAX_PARTS ? (int)n : 1;
}

struct gguf_file *gguf_open_part(const char *place, int part, int of, struct err *e)
{
    int now, named = 1;
    autofree char *first = text_path(place), *path = part_path(first, part);
    bool split = split_of(first, &now, &named);
    struct gguf_file *f = NULL;
    if (of > 1 && (!split || named != of))
        err_set(e, ERR_MODEL, "%s is one of %d parts; their names must end in -00001-of-%05d.gguf and so on",
                path, of, of);
    else if (part > 1 && !file_exists(path))
        err_set(e, ERR_MODEL, "part %d of %d, '%s', is missing; download it into the same directory", part,
                of, path);
    else
        f = gguf_open(path, e);
    double no = f ? gguf_number_of(f, "split.no", 0) + 1 : part;
    if (f && ((int)no != part || (of && gguf_parts(f) != of))) {
        err_set(e, ERR_MODEL, "%s is part %d of %d; expected part %d of %d; pass the first part",
                gguf_name(f), (int)no, gguf_parts(f), part, of ? of : gguf_parts(f));
        gguf_close(f);
        f = NULL;
    }
    return f;
}

struct gguf_file *gguf_open_text(const char *place, struct err *e)
{
    return gguf_open_part(place, 1, 0, e);
}

struct gguf_file *gguf_open_vision(const char *place, struct err *e)
{
    const char *comma = second_of(place);
    return comma ? gguf_open(comma + 1, e) : NULL;
}

/* Returns whether a vision encoder is preferred to another: bf16, else f16, else f32, else the first by
 * name. */
static bool better(const char *name, const char *than)
{
    static const char *const forms[] = {"bf16", "BF16", "f16", "F16", "f32", "F32"};
    for (size_t i = 0; than && i < sizeof forms / sizeof *forms; i++)
        if (!strstr(name, forms[i]) != !strstr(than, forms[i]))
            return strstr(name, forms[i]);
    return !than || strcmp(name, than) < 0;
}

/* GGUF files of a directory: the preferred vision encoder; the first of the others, and their number. */
struct found {
    char *vision, *text;
    int texts;
};

static struct found look(const char *dir)
{
    struct found f = {0};
    DIR *d = opendir(dir);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        const char *name = entry->d_name;
        bool vision = strstr(name, "mmproj");
        int part = 1, of;
        split_of(name, &part, &of);
        if (*name == '.' || part != 1 || !is_file(name, strlen(name)) ||
            !strncmp(name, DIGEST, sizeof DIGEST - 1))
            continue;
        f.texts += !vision;
        char **to = vision ? &f.vision : &f.text;
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
    autofree char *dir = !file   ? xstrdup(option)
                         : slash ? xasprintf("%.*s", (int)(slash - option), option)
                                 : xstrdup(".");
    struct found f = look(dir);
    if (file && !file_exists(option))
        err_set(e, ERR_MODEL, "'%s' not found", option);
    else if (!file && f.texts > 1)
        err_set(e, ERR_MODEL, "'%s' has %d GGUF files; name one, as %s/%s", option, f.texts, option, f.text);
    else if (file || f.text)
        place = file ? part_path(option, 1) : xasprintf("%s/%s", option, f.text);
    if (place && f.vision && !strstr(slash ? slash : option, "mmproj")) {
        char *both = xasprintf("%s,%s/%s", place, dir, f.vision);
        free(place);
        place = both;
    }
    free(f.vision);
    free(f.text);
    return place;
}
