/* place.h - private folder of a test program; it leaves nothing outside.
 *
 *     char dir[PLACE_PATH];
 *     assert_non_null(mkdtemp(place_template(dir)));
 *
 * check_main() calls place_make(): HOME, TMPDIR and XDG_RUNTIME_DIR are set to a new folder below TMPDIR (or
 * /tmp), the other XDG folders below HOME, and DISPLAY is unset. The folder is removed when the process
 * exits; run_tests.sh removes it after a crash.
 */
#pragma once

enum { PLACE_PATH = 64 };

void place_make(void); /* call once */
/* Writes a template for mkdtemp() or mkstemp() in that folder, short enough for sockets below it; returns
 * `out`. */
char *place_template(char out[PLACE_PATH]);
int place_remove(const char *dir); /* with all that it contains; 0, or an error of nftw() */
