/* suite_file.h - a test for `holorun qa` from a recording: its program, the recording to play, and the
 * checks that a person is to fill in.
 */
#ifndef HOLORUN_RECORD_SUITE_FILE_H
#define HOLORUN_RECORD_SUITE_FILE_H

#include "record/recorder.h"

/* path: of the suite, which must not exist; recording: the file, in the same folder.  0600, atomic. */
int suite_file_write(const char *path, const char *recording, const struct recorder_result *result,
                     struct err *e);

#endif
