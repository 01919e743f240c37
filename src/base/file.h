/* file.h - reads and writes whole files, and finds the user's directories.
 *
 * Files are created with mode 0600 and directories with 0700, because screenshots are private. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Reads a file of at most max bytes into *data, NUL-terminated; the caller frees it. Pipes, such as
 * <(...), are read to the end. Fails with ERR_ENV if the file is larger, or if a pipe other than stdin has
 * no writer for 1 s or no data for 10 s. */
int file_read(const char *path, size_t max, char **data, size_t *len, struct err *e);

/* Writes atomically: to a temporary file, which is then renamed. */
int file_write(const char *path, const void *data, size_t len, struct err *e);

/* Returns a temporary name next to `path` that others cannot guess; the caller frees it. */
char *file_temp_name(const char *path);
/* Creates a temporary file next to `path` with a random name, which another user cannot have created before.
 * The caller closes the descriptor, renames or removes the file, and frees *tmp, also on failure (-1). */
int file_temp(const char *path, char **tmp, struct err *e);

/* Opens a file for appending. Returns a descriptor, or -1 with e. */
int file_append(const char *path, struct err *e);

/* Writes all bytes; the error names `path`. */
int file_write_all(int fd, const char *path, const void *data, size_t len, struct err *e);

/* Writes a stream atomically: the file appears at `path` on a successful close. After a failed open
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
int dir_make(const char *path, struct err *e); /* creates missing parents, too; mode 0700 */

/* Returns the XDG directory with "/holorun" appended, created if missing: state (runs), cache, config,
 * runtime. The runtime directory belongs to this user only: unless XDG_RUNTIME_DIR and its directory do
 * (owner, mode 700, not a symbolic link), /tmp/holorun-UID is used, with one warning; if that is not
 * private either, returns NULL with e. The caller frees the result. */
enum file_place { PLACE_STATE, PLACE_CACHE, PLACE_CONFIG, PLACE_RUNTIME };
char *file_place(enum file_place place, struct err *e);

/* Returns the directory of the running executable without trailing slash; the caller frees it. */
char *file_exe_dir(void);
