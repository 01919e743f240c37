/* hands.h - a user on a private display who is recorded: input through XTEST, the recorder, and playback. */
#pragma once

#include "program.h"

#include "screen/screen.h"

#include <X11/Xlib.h>

enum { PATIENCE_MS = 20000 };

extern struct xvfb hands_x;
extern Display *hands_dpy;

void hands_open(const char *size); /* skips the test without Xvfb */
/* As hands_open("800x600x24"), with a window manager and a session bus, which starts that of AT-SPI. Skips the
 * test without a zenity that zenity_fits() accepts. */
void hands_open_with_bus(void);
void hands_close(void);

struct screen_rect hands_rect_of(const char *class); /* of a window, in root pixels */

void hands_pause_ms(double ms);
void hands_point(int px, int py);
void hands_press(unsigned button, int times);
void hands_click(int px, int py);
void hands_key(KeySym sym, KeySym with);
void hands_words(const char *text);
void hands_escape_twice(void); /* ends a recording */

bool hands_wait_for_text(const char *path, const char *part); /* waits for text in a file */
char *hands_text_of(const char *path);                        /* the caller frees it */
bool hands_file_has(const char *path, const char *part);
/* Compares the whole file and removes it. */
void hands_assert_text(const char *path, const char *want);

/* Starts a dialog (name, check box, buttons) that writes its values to `out`. how: "", "unsaved", "swapped",
 * "late" or "later". */
pid_t hands_dialog(const char *place, const char *out, const char *how);
/* Starts `holorun record` and waits until it reports that it records. */
pid_t hands_record(const char *file, const char *const *more);
void hands_play(const char *file, struct outcome *o, const char *const *more);
/* Records a user who fills in that dialog at +100+80. */
void hands_record_letter(const char *file);
