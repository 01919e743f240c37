/* file.h - reads and writes whole files, and finds the user's folders.
 *
 * Files are 0600 and folders 0700, because screenshots are private.
 */
#ifndef HOLORUN_BASE_FILE_H
#define HOLORUN_BASE_FILE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Reads a file of at most max bytes; NUL-terminated, the caller frees *data.  A pipe is read to its end, as
 * <(...) of a shell needs it, but given up when nobody writes to it. */
int file_read(const char *path, size_t max, char **data, size_t *len, struct err *e);

/* Writes atomically: a temporary file, then rename. */
int file_write(const char *path, const void *data, size_t len, struct err *e);

/* A random number, for names that others cannot guess; and such a name beside `path`, which the caller
 * frees. */
uint64_t file_salt(void);
char *file_temp_name(const char *path);
/* Makes a temporary file beside `path`, with a random name, which nobody else can have made before.  The
 * caller closes the descriptor, renames or removes the file, and frees *tmp also when it fails (-1). */
int file_temp(const char *path, char **tmp, struct err *e);

/* Opens a file to append to it: a descriptor, or -1. */
int file_append(const char *path, struct err *e);

/* Writes everything; the error names `path`. */
int file_write_all(int fd, const char *path, const void *data, size_t len, struct err *e);

/* Writes a stream atomically: the file appears at `path` on a successful close.  After a failed open
 * nothing needs closing. */
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

/* The XDG folder with "/holorun" appended, created when absent: state (runs), cache, config, runtime.
 * The runtime folder belongs to this user alone: unless XDG_RUNTIME_DIR and its folder do (owner, mode
 * 700, no symbolic link), it is /tmp/holorun-UID, with one warning; and none when that does not either.
 * The caller frees the result. */
enum file_place { PLACE_STATE, PLACE_CACHE, PLACE_CONFIG, PLACE_RUNTIME };
char *file_place(enum file_place place, struct err *e);

/* Folder of the running executable, no trailing slash; the caller frees it. */
char *file_exe_dir(void);

#endif
