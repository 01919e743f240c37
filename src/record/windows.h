/* windows.h - the titled windows of a display before and after an action, and the language of their programs.
 */
#pragma once

#include "record/recording.h"

enum { WINDOWS_MOST = 64 };

struct windows { /* visible windows with a title, topmost first */
    struct {
        char class[RECORDING_TEXT], title[RECORDING_TEXT];
    } w[WINDOWS_MOST];
    int n;
};

/* Lists the windows. Leaves *out unchanged if the display is lost. */
void windows_read(struct screen *s, struct windows *out);

/* Fills *step, a wait for the end, with what changed between two lists: a window that opened or has another
 * title now, and one that closed. Returns false if nothing changed. */
bool windows_changed(const struct windows *before, const struct windows *after, struct recording_step *step);

/* Returns whether the windows are as at the end of the recording: there are more with the class and title of
 * the opened one than before; if none opened, the closed one was there before and is not now. Otherwise
 * writes the reason to why. Numbers and directories in titles may differ; translated: a new title of the
 * class counts. */
bool windows_agree(const struct windows *before, const struct windows *now, const struct recording_step *step,
                   bool translated, char *why, size_t size);

/* Returns whether the window of a step is open. */
bool windows_there(struct screen *s, const struct recording_step *step);
/* Returns whether the recorded window has the keyboard; otherwise writes the reason to why. Among several
 * windows of its class the title decides: an equal one, or if no window has that, one that differs only in
 * numbers and directories. If only one window of the class remains, or its program uses another language than
 * in the recording, a changed title does not matter. */
bool windows_keyboard(struct screen *s, const struct recording_step *step, char *why, size_t size);

/* Writes the language of a process's messages, from its environment: "de"; "en" for none; "": unknown. */
void window_language(int pid, char out[RECORDING_LANGUAGE]);
/* Returns whether the language of a process is known and differs from the recorded one. */
bool window_translated(int pid, const char *recorded);
