/* suite_file.h - writes a test for `holorun qa` from a recording: its program, the recording to play, and
 * checks that the user completes.
 */
#pragma once

#include "record/recorder.h"

/* Writes the suite at path, atomically, with mode 0600. The caller checks that path does not exist: a file
 * would be replaced. recording: the file, in the same directory. Returns -1 with e. */
int suite_file_write(const char *path, const char *recording, const struct recorder_result *result,
                     struct err *e);
