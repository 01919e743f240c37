/* find.c - resolution of --model: directory, GGUF file, Ollama model or downloaded repository; see find.h. */
#include "checkpoint/find.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/gguf.h"
#include "checkpoint/known.h"
#include "checkpoint/ollama.h"
#include "checkpoint/safetensors.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_model(const char *dir)
{
    autofree char *config = xasprintf("%s/config.json", dir);
    return file_exists(config);
}

/* Sets the error for a directory without a model, and suggests a model directory one level below it:
 * naming the parent is a common mistake. */
static void refuse(const char *dir, struct err *e)
{
    DIR *d = opendir(dir);
    autofree char *below = NULL;
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
}

char *model_in(const char *dir, struct err *e)
{
    struct err none = ERR_INIT;
    bool config = is_model(dir), weights = false;
    if (config && safetensors_complete(dir, &weights, e))
        return NULL;
    char *place = config && weights ? NULL : gguf_find_place(dir, &none);
    if (place || none.kind) {
        if (none.kind)
            err_set(e, none.kind, "%s", none.text);
        return place;
    }
    return config ? xstrdup(dir) : NULL;
}

/* Returns the model in a repository of the Hugging Face cache. option: its directory models--ORG--NAME or
 * the `snapshots` directory in it. Takes the snapshot of branch main. NULL with e on failure. */
static char *find_repo(const char *option, struct err *e)
{
    char *folder = xstrdup(option), *found = NULL, *snapshot;
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        folder[--n] = 0;
    char *slash = strrchr(folder, '/');
    if (slash && !strcmp(slash, "/snapshots"))
        *slash = 0;
    snapshot = known_snapshot(folder, "main", e);
    if (snapshot)
        found = known_model_in(folder, snapshot, e);
    free(snapshot);
    free(folder);
    return found;
}

static char *find_named(const char *option, struct err *e)
{
    struct err none = ERR_INIT;
    if (ollama_is_name(option))
        return ollama_find(option, e);
    if (known_is_folder(option))
        return find_repo(option, e);
    if (text_ends(option, ".incomplete") || text_ends(option, "-partial")) {
        err_set(e, ERR_MODEL, "'%s' is an unfinished download; download the model again", option);
        return NULL;
    }
    char *place = model_in(option, &none);
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

char *model_find(const char *option, struct err *e)
{
    if (option && *option)
        return find_named(option, e);
    /* The first two serve a source tree: ./holorun and build/VARIANT/holorun. The third serves an
     * installed PREFIX/bin/holorun. */
    static const char *const places[] = {"assets/pocket/model", "../../assets/pocket/model",
                                         "../share/holorun/pocket"};
    char *exe = file_exe_dir(), *found = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places && !found; i++) {
        autofree char *dir = xasprintf("%s/%s", exe, places[i]);
        if (is_model(dir)) /* realpath resolves the ".." for display */
            found = realpath(dir, NULL);
    }
    if (!found)
        err_set(e, ERR_MODEL,
                "the embedded model was not found next to '%s'; select a model directory with --model or "
                "HOLORUN_MODEL",
                exe);
    free(exe);
    return found;
}
