/* temp_files.h - files that a benchmark makes on its way are gone as well when it is interrupted.
 *
 * SIGINT, SIGTERM and SIGHUP end the process where it is; what was named here is removed first.
 */
#ifndef HOLORUN_BENCH_LEFTOVER_H
#define HOLORUN_BENCH_LEFTOVER_H

/* A file, or a folder, which is named before the files in it; whether it is there (yet, or still) does not matter. */
void temp_files_add(const char *path);

#endif
