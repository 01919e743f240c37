/* file.h - whole files in, whole files out, and where files live.
 *
 * Files are written 0600 and directories made 0700: what is on somebody's screen is private.
 */
#ifndef HOLORUN_BASE_FILE_H
#define HOLORUN_BASE_FILE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Reads a file of at most max bytes; NUL-terminated, the caller frees *data. */
int file_read(const char *path, size_t max, char **data, size_t *len, struct err *e);

/* Writes through a temporary name and rename; an old file survives any failure. */
int file_write(const char *path, const void *data, size_t len, struct err *e);

/* write(2) until all is written; the error names `path`. */
int file_write_all(int fd, const char *path, const void *data, size_t len, struct err *e);

/* The same for what is too long to be put together first: written to f, in its place when all went well.  After a
 * failed open nothing needs closing. */
struct file_stream {
    FILE *f;
    char *path, *tmp;
};
int file_stream_open(struct file_stream *s, const char *path, struct err *e);
int file_stream_close(struct file_stream *s, struct err *e);

/* A file mapped read-only. */
struct file_map {
    const uint8_t *data;
    size_t len;
};
int file_map(struct file_map *m, const char *path, struct err *e);
void file_unmap(struct file_map *m);

bool file_exists(const char *path);
int dir_make(const char *path, struct err *e); /* with parents, 0700 */

/* XDG places with "/holorun" appended, made when absent: state (runs), cache, config, runtime
 * (falls back to /tmp/holorun-UID, 0700, owner checked). The caller frees the result. */
enum file_place { PLACE_STATE, PLACE_CACHE, PLACE_CONFIG, PLACE_RUNTIME };
char *file_place(enum file_place place, struct err *e);

/* Folder of the running executable, no trailing slash; the caller frees it. */
char *file_exe_dir(void);

#endif
