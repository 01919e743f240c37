/* temp_files.c - see temp_files.h. */
#include "bench/temp_files.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 16, PATH_BYTES = 512 };

static char paths[MOST][PATH_BYTES];
static volatile sig_atomic_t n_paths;

static void on_signal(int sig)
{
    for (int i = n_paths; i-- > 0;)
        if (unlink(paths[i]))
            rmdir(paths[i]);
    signal(sig, SIG_DFL);
    raise(sig); /* delivered when this handler returns */
}

void temp_files_add(const char *path)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction sa = {.sa_handler = on_signal}, old;
    if (n_paths == MOST || strlen(path) >= PATH_BYTES)
        return;
    snprintf(paths[n_paths], PATH_BYTES, "%s", path);
    n_paths++;
    for (int i = 0; i < 3; i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(signals[i], &sa, NULL); /* an ignored signal, as under nohup, stays ignored */
}
