/* loading.h - progress of loading a model on stderr, when it takes longer than a second. */
#ifndef HOLORUN_CLI_LOADING_H
#define HOLORUN_CLI_LOADING_H

/* For engine_options.progress; arg is not used. */
void loading_progress(void *arg, double fraction, const char *what);

#endif
