/* playback_put.h - the replies of playback, in the dialect "recording". */
#pragma once

#include "record/recording.h"

struct playback_place {
    int x, y; /* image pixels */
};

/* Append the calls of a step: one, or for a text that replaces another the three that the user made: a click,
 * Ctrl+A, the text. They are performed in sequence, as one step of the run. from, to: where its targets are
 * now. playback_put_click() appends only the click. */
void playback_put_calls(struct buf *b, const struct recording_step *s, struct playback_place from,
                        struct playback_place to);
void playback_put_click(struct buf *b, const struct recording_step *s, struct playback_place at);
