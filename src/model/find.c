/* find.c - see find.h. */
#include "model/find.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

static bool is_model(const char *dir)
{
    char *config = xasprintf("%s/config.json", dir);
    bool found = file_exists(config);
    free(config);
    return found;
}

char *model_find(const char *option, struct err *e)
{
    if (option && *option) {
        if (is_model(option))
            return xstrdup(option);
        err_set(e, ERR_MODEL, "'%s' is not a model directory: it has no config.json", option);
        return NULL;
    }
    /* build/VARIANT/holorun lies deeper than ./holorun; an installed one in PREFIX/bin */
    static const char *const places[] = {"assets/pocket/model", "../../assets/pocket/model",
                                         "../share/holorun/pocket"};
    char *exe = file_exe_dir(), *found = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places && !found; i++) {
        char *dir = xasprintf("%s/%s", exe, places[i]);
        if (is_model(dir))
            found = dir;
        else
            free(dir);
    }
    if (!found)
        err_set(e, ERR_MODEL,
                "the embedded model is not beside '%s'; name a model directory with --model or HOLORUN_MODEL",
                exe);
    free(exe);
    return found;
}
