/* hands.h - a person at a display of its own, who is recorded: hands through XTEST, the recorder, and playing.
 */
#ifndef HOLORUN_TESTS_HANDS_H
#define HOLORUN_TESTS_HANDS_H

#include "program.h"

#include <X11/Xlib.h>

enum { PATIENCE_MS = 20000 };

extern struct xvfb hands_x;
extern Display *hands_dpy;

void hands_open(const char *size); /* skips the test where there is no Xvfb */
void hands_close(void);

void hands_pause_ms(double ms);
void hands_point(int px, int py);
void hands_press(unsigned button, int times);
void hands_click(int px, int py);
void hands_key(KeySym sym, KeySym with);
void hands_words(const char *text);
void hands_escape_twice(void); /* ends a recording */

bool hands_wait_for_text(const char *path, const char *part); /* in a file */
char *hands_text_of(const char *path);                        /* the caller frees it */
bool hands_file_has(const char *path, const char *part);
/* The whole file, which is then removed. */
void hands_assert_text(const char *path, const char *want);

/* A dialog with a name, a copy and a button, which writes what was filled in to `out`.  how: "", swapped, late, ... */
pid_t hands_dialog(const char *place, const char *out, const char *how);
/* `holorun record` until it says that it records. */
pid_t hands_record(const char *file, const char *const *more);
void hands_play(const char *file, struct outcome *o, const char *const *more);
/* Somebody fills in that dialog at +100+80. */
void hands_record_letter(const char *file);

#endif
