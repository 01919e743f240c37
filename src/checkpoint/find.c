/* find.c - see find.h. */
#include "checkpoint/find.h"

#include "base/file.h"
#include "base/gguf.h"
#include "checkpoint/known.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_model(const char *dir)
{
    char *config = xasprintf("%s/config.json", dir);
    bool found = file_exists(config);
    free(config);
    return found;
}

/* Names a model directory one level below `dir`, a common mistake. */
static void refuse(const char *dir, struct err *e)
{
    DIR *d = opendir(dir);
    char *below = NULL;
    if (!d) {
        err_set(e, ERR_MODEL, "'%s' is not a model directory: %s", dir, strerror(errno));
        return;
    }
    for (struct dirent *entry; !below && (entry = readdir(d));) {
        char *sub = xasprintf("%s/%s", dir, entry->d_name);
        if (entry->d_name[0] != '.' && is_model(sub))
            below = sub;
        else
            free(sub);
    }
    closedir(d);
    if (below)
        err_set(e, ERR_MODEL, "'%s' is not a model directory, but '%s' is", dir, below);
    else
        err_set(e, ERR_MODEL, "'%s' is not a model directory: it has neither config.json nor a GGUF file",
                dir);
    free(below);
}

char *model_find(const char *option, struct err *e)
{
    if (option && *option) {
        if (is_model(option))
            return xstrdup(option);
        struct err none = ERR_INIT;
        char *place = gguf_find_place(option, &none);
        if (place || none.kind) {
            if (none.kind)
                err_set(e, none.kind, "%s", none.text);
            return place;
        }
        if (!file_exists(option) && (known_find(option) || strchr(option, '@') || known_is_repo(option)))
            return known_pulled(option, e);
        refuse(option, e);
        return NULL;
    }
    /* build/VARIANT/holorun lies deeper than ./holorun; an installed one in PREFIX/bin */
    static const char *const places[] = {"assets/pocket/model", "../../assets/pocket/model",
                                         "../share/holorun/pocket"};
    char *exe = file_exe_dir(), *found = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places && !found; i++) {
        char *dir = xasprintf("%s/%s", exe, places[i]);
        if (is_model(dir)) /* resolves the ".." for display */
            found = realpath(dir, NULL);
        free(dir);
    }
    if (!found)
        err_set(e, ERR_MODEL,
                "the embedded model is not beside '%s'; name a model directory with --model or HOLORUN_MODEL",
                exe);
    free(exe);
    return found;
}
