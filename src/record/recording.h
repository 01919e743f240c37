/* recording.h - the file of `holorun record`: what a person did, with what each target looked like.
 *
 * JSON Lines, so that it can be read, edited and appended to:
 *
 *   {"holorun_recording": 1, "screen": [1280, 720]}      the first line
 *   {"wait_until": "rest", "seconds": 12.5}
 *   {"wait_until": "window", "class": "Zenity", "title": "Save", "seconds": 8}
 *   {"action": {"kind": "click", ...}, "pause": 0.8, "target": {...}}
 *   {"action": {"kind": "type", "text": "{{PASSWORD}}", ...}, "keyboard": {"class": "XTerm", "title": "..."}}
 *
 * Actions are in the form of the run record (action_to_json) with root pixels.  A target is
 *
 *   {"at": [x, y],                                       the pixel, on the root window
 *    "window": {"class", "title", "rect": [x, y, w, h]},
 *    "pictures": [{"at": [x, y], "png": BASE64}, ...],   "at": the target's place in the picture
 *    "element": {"name", "role", "at": [0.5, 0.5]}}      through AT-SPI; "at": the place inside it
 *
 * in which all but "at" may be absent.  Of two pictures one shows the target under the pointer, the other
 * as it was before.  "to" is a second target, where a drag ends.  A line that is not whole (its writer was
 * killed) is dropped when it is the last one.  Secrets stand as {{NAME}}.
 */
#ifndef HOLORUN_RECORD_RECORDING_H
#define HOLORUN_RECORD_RECORDING_H

#include "actions/action.h"
#include "base/image.h"
#include "screen/screen.h"

enum {
    RECORDING_MAX_BYTES = 64 << 20,
    RECORDING_MAX_LINE = 2 << 20,
    RECORDING_MAX_STEPS = 10000,
    RECORDING_MAX_SECRETS = 16,
    RECORDING_PICTURES = 2,
    RECORDING_SIDE = 640,        /* longest side of a picture */
    RECORDING_PIXELS = 64 << 20, /* of all pictures together */
    RECORDING_TEXT = 256,        /* bytes of a name, class or title */
};

struct recording_picture {
    struct image image; /* owned; no pixels: none */
    int x, y;           /* the target's place in it; may lie outside */
};

struct recording_target {
    int x, y;                                          /* root pixels */
    char class[RECORDING_TEXT], title[RECORDING_TEXT]; /* of its window; "": none, the rect is the root's */
    struct screen_rect rect;
    struct recording_picture pictures[RECORDING_PICTURES];
    int n_pictures;
    char name[RECORDING_TEXT], role[RECORDING_TEXT]; /* "": no element */
    double fx, fy;                                   /* the place inside the element, 0 to 1 */
};

struct recording_step {
    struct action action;  /* kind ACT_NONE: wait, at most `seconds`, until the screen rests ... */
    bool for_window;       /* ... or a window of this class and title is there */
    double seconds, pause; /* pause: of the person, before the action */
    struct recording_target target, to; /* only with has_target, has_to */
    bool has_target, has_to;
    char class[RECORDING_TEXT], title[RECORDING_TEXT]; /* of the window that has the keyboard; "": unknown */
    int line;                                          /* in the file, from 1 */
};

struct recording {
    int w, h;                             /* of the root window */
    char *secrets[RECORDING_MAX_SECRETS]; /* names that its texts refer to as {{NAME}}, each once */
    int n_secrets;
    struct recording_step *steps;
    int n;
};

/* Whether a text begins as a recording does. */
bool recording_is(const char *text, size_t len);
/* NULL with ERR_USAGE; messages begin with "NAME:LINE: ". */
struct recording *recording_parse(const char *text, size_t len, const char *name, struct err *e);
struct recording *recording_read(const char *path, struct err *e);
void recording_free(struct recording *r); /* NULL is fine */

void recording_step_free(struct recording_step *s);     /* leaves it empty */
void recording_target_free(struct recording_target *t); /* leaves it empty */

/* Appends the first line; a step's line.  -1: a picture cannot be encoded, or the line is too long. */
void recording_put_head(int w, int h, struct buf *out);
int recording_put_step(const struct recording_step *s, struct buf *out, struct err *e);

#endif
