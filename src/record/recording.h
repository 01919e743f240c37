/* recording.h - the file of `holorun record`: actions of a user, with the appearance of each target.
 *
 * JSON Lines, so that the file can be read, edited and appended to:
 *
 *   {"holorun_recording": 1, "screen": [1280, 720]}      the first line
 *   {"wait_until": "rest", "seconds": 12.5}
 *   {"wait_until": "window", "class": "Zenity", "title": "Save", "seconds": 8}
 *   {"action": {"kind": "click", ...}, "pause": 0.8, "target": {...}}
 *   {"action": {"kind": "type", "text": "{{PASSWORD}}", ...}, "keyboard": {"class": "XTerm", "title": "..."}}
 *   {"wait_until": "end", "opened": {"class", "title"}, "closed": {"class", "title"}, "seconds": 8}
 *
 * The last line says which window the last action opened, or gave another title, and which it closed.
 * Actions have the form of the run record (action_to_json) with root pixels. A target is
 *
 *   {"at": [x, y],                                       the pixel, on the root window
 *    "window": {"class", "title", "language", "rect": [x, y, w, h]},
 *    "pictures": [{"at": [x, y], "png": BASE64}, ...],   "at": position of the target in the picture
 *    "element": {"name", "role", "at": [0.5, 0.5],       through AT-SPI; "at": position inside it
 *                "label", "menu": "File > Export", "near": ["Cancel"], "equal": [0, 2], "path", "on": false,
 *                "size": [w, h]}}                        see struct recording_target
 *
 * in which all members but "at" are optional. An action may have a member
 *
 *   "look": {"size": [w, h], "png": BASE64}              its window before it, at an eighth of its size
 *
 * Of two pictures one shows the target under the pointer, the
 * other without the pointer. "to" is a second target, the end of a drag. An incomplete last line (the
 * recorder was killed) is dropped. Secrets appear as {{NAME}}.
 */
#pragma once

#include "actions/action.h"
#include "base/image.h"
#include "screen/screen.h"

#define RECORDING_MAGIC "{\"holorun_recording\":"

enum {
    RECORDING_VERSION = 1,
    RECORDING_MAX_BYTES = 64 << 20,
    RECORDING_MAX_LINE = 2 << 20,
    RECORDING_MAX_STEPS = 10000,
    RECORDING_MAX_SECRETS = 16,
    RECORDING_PICTURES = 2,
    RECORDING_SIDE = 640,        /* longest side of a picture */
    RECORDING_PIXELS = 64 << 20, /* pixels of all pictures together */
    RECORDING_TEXT = 256,        /* bytes of a name, class or title */
    RECORDING_NEAR = 4,          /* neighbours of an element */
    RECORDING_DEPTH = 24,        /* elements of a path */
    RECORDING_PATH = 512,        /* bytes of a path */
    RECORDING_LANGUAGE = 8,      /* bytes of a language */
    RECORDING_NO_STATE = -1,
};

struct recording_picture {
    struct image image; /* owned; no pixels: none */
    int x, y;           /* position of the target in the picture; may lie outside */
};

struct recording_look { /* a window, reduced (look.h) */
    struct image image; /* owned; no pixels: none */
    int w, h;           /* size of the window */
};

struct recording_target {
    int x, y;                                          /* root pixels */
    char class[RECORDING_TEXT], title[RECORDING_TEXT]; /* window; "": none, rect is the root's */
    char language[RECORDING_LANGUAGE];                 /* of the window's program: "de"; "": unknown */
    struct screen_rect rect;
    struct recording_picture pictures[RECORDING_PICTURES];
    int n_pictures;

    /* the element */
    char name[RECORDING_TEXT], role[RECORDING_TEXT]; /* role "": no element */
    char label[RECORDING_TEXT];                      /* text beside it, if toolkits may give it no name */
    char menu[RECORDING_TEXT];                       /* names of the menus around it: "File > Export" */
    char near[RECORDING_NEAR][RECORDING_TEXT];       /* names in its row, or before and after it */
    int n_near;
    int equal, equals;         /* its number among the elements of the same name, from 0; their number */
    char path[RECORDING_PATH]; /* roles and numbers of siblings from the window down */
    int on;                    /* state before the action: 1 on, 0 off, or RECORDING_NO_STATE */
    int w, h;                  /* size in pixels; 0: unknown */
    double fx, fy;             /* position inside the element, 0 to 1 */
};

struct recording_step {
    struct action action;               /* ACT_NONE: wait at most `seconds` until the screen is still ... */
    bool for_window;                    /* ... or a window of this class and title exists */
    double seconds, pause;              /* pause: of the user, before the action */
    struct recording_target target, to; /* only with has_target, has_to */
    bool has_target, has_to;
    struct recording_look
        look; /* the window of the target, or the one with the keyboard, before the action */
    char class[RECORDING_TEXT], title[RECORDING_TEXT]; /* window with the keyboard; "": unknown */
    char language[RECORDING_LANGUAGE];                 /* of its program */
    bool for_end; /* ACT_NONE: wait until the last action has had its effect: a window of this class and title
                   * has opened (class "": none), and the following one has closed (class "": none) */
    char closed_class[RECORDING_TEXT], closed_title[RECORDING_TEXT];
    int line; /* line in the file, from 1 */
};

struct recording {
    int w, h;                             /* size of the root window */
    char *secrets[RECORDING_MAX_SECRETS]; /* distinct names that its texts contain as {{NAME}} */
    int n_secrets;
    struct recording_step *steps;
    int n;
};

/* Returns whether a text begins as a recording does. */
bool recording_is(const char *text, size_t len);
/* Parse a recording, or read and parse a file; the second also merges steps (recording_merge). Return NULL
 * with e: ERR_USAGE for an invalid recording, with "NAME:LINE: " before the message. The caller frees the
 * result. */
struct recording *recording_parse(const char *text, size_t len, const char *name, struct err *e);
struct recording *recording_read(const char *path, struct err *e);
void recording_free(struct recording *r); /* accepts NULL */
/* Replaces each click into a text field and the text typed there by one step; with Ctrl+A in between, the
 * text overwrites the field (merge.c). */
void recording_merge(struct recording *r);

void recording_step_free(struct recording_step *s);     /* leaves *s empty */
void recording_target_free(struct recording_target *t); /* leaves *t empty */

/* Append the first line, or the line of a step. recording_put_step() returns -1 with e if a picture cannot
 * be encoded or the line is too long. */
void recording_put_head(int w, int h, struct buf *out);
int recording_put_step(const struct recording_step *s, struct buf *out, struct err *e);
