/* place.c - see place.h.
 *
 * Keeps the path, because a test may change TMPDIR. A socket path has at most 108 bytes, so a long TMPDIR is
 * ignored.
 */
#include "place.h"

#include "base/err.h"
#include "base/file.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ABOVE_MAX = 24, OPEN_FOLDERS = 16, ROOT_MAX = PLACE_PATH - 8 };

static char root[PLACE_PATH];
static pid_t owner;

static const char *above(void)
{
    const char *dir = getenv("TMPDIR");
    return dir && dir[0] == '/' && strlen(dir) <= ABOVE_MAX && access(dir, W_OK) == 0 ? dir : "/tmp";
}

/* In /tmp the name contains the pid, so that run_tests.sh can find it. */
static void name_template(char out[PLACE_PATH])
{
    const char *dir = above();
    if (strcmp(dir, "/tmp") == 0)
        snprintf(out, PLACE_PATH, "/tmp/holorun.%d.XXXXXX", (int)getpid());
    else
        snprintf(out, PLACE_PATH, "%s/XXXXXX", dir);
}

/* Restores permissions that some tests take away. */
static int open_up(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    if (type == FTW_D || type == FTW_DNR)
        chmod(path, 0700);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    remove(path);
    return 0;
}

int place_remove(const char *dir)
{
    return nftw(dir, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

static void end(void)
{
    if (getpid() != owner) /* a child of the test */
        return;
    nftw(root, open_up, OPEN_FOLDERS, FTW_PHYS);
    place_remove(root);
}

static void put(const char *variable, const char *name)
{
    char *path = xasprintf("%s/%s", root, name);
    if (mkdir(path, 0700) && errno != EEXIST)
        die(ERR_ENV, "cannot make folder '%s': %s", path, strerror(errno));
    setenv(variable, path, 1);
    free(path);
}

void place_make(void)
{
    if (*root)
        return;
    name_template(root);
    if (!mkdtemp(root))
        die(ERR_ENV, "cannot make a folder in '%s': %s", above(), strerror(errno));
    owner = getpid();
    atexit(end);
    setenv("TMPDIR", root, 1);
    put("HOME", "home");
    put("XDG_RUNTIME_DIR", "run");
    static const char *const gone[] = {"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME",
                                       "DISPLAY",         "XAUTHORITY",     "WAYLAND_DISPLAY"};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        unsetenv(gone[i]);
}

char *place_template(char out[PLACE_PATH])
{
    if (*root)
        snprintf(out, PLACE_PATH, "%.*s/XXXXXX", ROOT_MAX, root);
    else
        name_template(out);
    return out;
}
