/* eval.h - grounding sets in one neutral format, and how answers are scored.
 *
 * A set is a text file with one JSON object on each line:
 *
 *     {"id": "web-17", "image": "shots/17.png", "instruction": "Search", "box": [x1, y1, x2, y2],
 *      "w": 1920, "h": 1080, "tags": {"platform": "web", "type": "icon"}}
 *
 *   image         path relative to the set's folder, PNG
 *   box, poly     where the answer must lie, exactly one of them: two corners, or the corners of a
 *                 polygon x1, y1, x2, y2, ...; a null alone says that there is nothing to be found
 *   w, h          size of the picture that box and poly speak of, 1 and 1 for fractions; without them the
 *                 picture's own size
 *   id            any text or number; the line's number without it.  No two items share one
 *   tags          groups that are counted apart
 *
 * Other fields are kept and handed on to the results.  A line that does not say this is an error with its
 * number: a set is repaired, not guessed at.
 */
#ifndef HOLORUN_EVAL_EVAL_H
#define HOLORUN_EVAL_EVAL_H

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    EVAL_MAX_FILE = 256 << 20,
    EVAL_MAX_LINE = 256 << 10,
    EVAL_MAX_ITEMS = 200000,
    EVAL_MAX_DEPTH = 8,
    EVAL_MAX_CORNERS = 1024,
    EVAL_MAX_TAGS = 16,
    EVAL_MAX_PATH = 4096,
    EVAL_MAX_INSTRUCTION = 8192,
};

enum target_kind { TARGET_NONE, TARGET_BOX, TARGET_POLY };

struct target {
    enum target_kind kind;
    double *at; /* x, y of each corner, owned; a box has two: the least and the greatest */
    int corners;
    double w, h; /* of the picture they speak of; 0: its own */
};

struct eval_item {
    json_t *fields;                       /* the line, owned */
    const char *id, *image, *instruction; /* within fields */
    struct target target;
    int line;
};

struct eval_set {
    struct eval_item *items;
    int n, cap;
    char *folder;    /* images are relative to it; "" for the current one */
    char sha256[65]; /* of the file's bytes */
    json_t *unknown; /* names of fields that mean nothing here */
};

int eval_set_read(struct eval_set *s, const char *path, struct err *e);
int eval_set_parse(struct eval_set *s, const char *data, size_t len, const char *name, struct err *e);
void eval_set_free(struct eval_set *s);
char *eval_image_path(const struct eval_set *s, const struct eval_item *item); /* the caller frees it */

/* One line of at most max bytes as a JSON object, nested no deeper than the limit above. NULL with a message. */
json_t *eval_line(const char *line, size_t len, size_t max, struct err *e);

/* ---- scoring (score.c) ------------------------------------------------------------------------- */

/* The point is in the target's own picture. Edges belong to the target; polygons by the even-odd rule. */
bool target_holds(const struct target *t, double x, double y);
/* From the point to the nearest place of the target: 0 inside. */
double target_distance(const struct target *t, double x, double y);

/* Wilson's score interval of a share, 95 %: [0, 1] when n is 0. */
void wilson(int hits, int n, double *low, double *high);

#endif
