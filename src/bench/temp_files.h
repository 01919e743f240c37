/* temp_files.h - temporary files of a benchmark, removed when SIGINT, SIGTERM or SIGHUP ends the process. */
#ifndef HOLORUN_BENCH_TEMP_FILES_H
#define HOLORUN_BENCH_TEMP_FILES_H

/* A file, or a folder, which is added before the files in it; it need not exist. */
void temp_files_add(const char *path);

#endif
