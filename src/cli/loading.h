/* loading.h - how far a model has been loaded, on stderr: nothing when it takes no second. */
#ifndef HOLORUN_CLI_LOADING_H
#define HOLORUN_CLI_LOADING_H

/* As engine_options wants it; arg is not used. */
void loading_progress(void *arg, double fraction, const char *what);

#endif
