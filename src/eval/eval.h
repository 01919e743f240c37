/* eval.h - grounding sets in one format, and scoring of answers.
 *
 * A set is a text file with one JSON object per line:
 *
 *     {"id": "web-17", "image": "shots/17.png", "instruction": "Search", "box": [x1, y1, x2, y2],
 *      "w": 1920, "h": 1080, "tags": {"platform": "web", "type": "icon"}}
 *
 *     image        path of a PNG, relative to the set's directory
 *     box, poly    the target, exactly one of them: two corners, or the corners of a polygon x1, y1, x2, y2,
 *                  ...; null: the target is not on the image
 *     w, h         size of the image in the units of box and poly, 1 and 1 for fractions; default: the size
 *                  of the image in pixels
 *     id           any text or number, unique; default: the line's number
 *     tags         groups that are counted separately
 *
 * Other fields are copied to the results.  Any other line is an error, reported with its number. */
#pragma once

#include "actions/dialect.h"
#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    EVAL_MAX_FILE = 256 << 20,
    EVAL_MAX_LINE = 256 << 10,
    EVAL_MAX_ITEMS = 200000,
    EVAL_MAX_CORNERS = 1024,
    EVAL_MAX_TAGS = 16,
    EVAL_MAX_PATH = 4096,
    EVAL_MAX_INSTRUCTION = 8192,
};

enum target_kind { TARGET_NONE, TARGET_BOX, TARGET_POLY };

struct target {
    enum target_kind kind;
    double *at; /* x, y of each corner, owned; a box has two corners: minimum and maximum */
    int corners;
    double w, h; /* size of the image in these units; 0: its size in pixels */
};

struct eval_item {
    json_t *fields;                       /* the line, owned */
    const char *id, *image, *instruction; /* borrowed from fields */
    struct target target;
    int line;
};

struct eval_set {
    struct eval_item *items;
    int n, cap;
    char *folder;    /* images are relative to this directory; "" for the current one */
    char sha256[65]; /* hash of the file's bytes */
    json_t *unknown; /* names of unknown fields */
};

int eval_set_read(struct eval_set *s, const char *path, struct err *e);
int eval_set_parse(struct eval_set *s, const char *data, size_t len, const char *name, struct err *e);
void eval_set_free(struct eval_set *s);
/* returns the path of the image; the caller frees it */
char *eval_image_path(const struct eval_set *s, const struct eval_item *item);

/* Parses a line of at most max bytes as a JSON object, owned by the caller.  Returns NULL with e. */
json_t *eval_line(const char *line, size_t len, size_t max, struct err *e);

/* ---- scoring (score.c) --------------------------------------------------------------------------------- */

/* Returns whether the target contains the point, in the target's units.  Edges belong to the target; polygons
 * use the even-odd rule. */
bool target_holds(const struct target *t, double x, double y);
/* Returns the distance from the point to the target, 0 inside; infinite without a target. */
double target_distance(const struct target *t, double x, double y);

/* Computes the 95 % Wilson score interval of hits / n; [0, 1] if n is 0. */
void wilson(int hits, int n, double *low, double *high);

/* ---- results (results.c) ------------------------------------------------------------------------------- */

/* The first line of the file describes the run; then each item has one line with its own fields and
 *
 *     pred          [x, y]: the answered position, in the target's units; null without one
 *     raw           the reply
 *     correct       the position is in the target; without a target: no position was answered
 *     wrong_format  the reply could not be read, which counts as wrong
 *     dist_px       distance from the position to the target, 0 inside
 *     ms, tokens    time of the whole question, tokens of the reply
 *     p             probability of the reply (vqa_confidence); null if unknown
 *     error         instead of all these: the image could not be processed
 *
 * An interrupted run leaves complete lines and possibly a partial one.  With resume, the complete lines count
 * as done and the file is continued after them, if its first line is the one that this run would write. */
enum { RESULTS_MAX_RAW = 4096 };

struct eval_answer {
    bool correct, wrong_format, placed;
    double x, y, distance; /* in the target's units */
    double ms;
    double p; /* probability of the reply; negative: unknown */
    int tokens;
    char raw[RESULTS_MAX_RAW];
    char error[ERR_TEXT]; /* "": the image was processed */
};

/* Scores a reply about an image of w x h pixels: fills all members but ms, p, tokens and error. */
void eval_score(const struct target *t, const struct dialect *d, const char *reply, int w, int h,
                struct eval_answer *a);

/* Score a corrected answer: a position in the image of w x h pixels, or the answer that the target is
 * absent. */
void eval_place(const struct target *t, double x, double y, int w, int h, struct eval_answer *a);
void eval_missing(const struct target *t, struct eval_answer *a);

/* the part of an answer that the tables need, for each item of the set */
struct eval_outcome {
    bool done, correct, wrong_format, broken;
    float ms;
    int tokens;
};

struct eval_results {
    int fd;
    char *path;
    struct eval_outcome *outcomes; /* [set->n] */
};

/* Opens a results file.  head: the first line, borrowed.  Without resume an existing file is an error; with
 * resume a missing file is created.  Returns -1 with e. */
int results_open(struct eval_results *r, const char *path, const struct eval_set *set, const json_t *head,
                 bool resume, struct err *e);
int results_add(struct eval_results *r, const struct eval_set *set, int item, const struct eval_answer *a,
                struct err *e);
void results_close(struct eval_results *r);

/* Reads the lines of a results file into outcomes; *whole: bytes of its complete lines.  Returns -1 with
 * e. */
int results_parse(struct eval_results *r, const char *data, size_t len, const struct eval_set *set,
                  const json_t *head, size_t *whole, struct err *e);

/* ---- tables (tally.c) ---------------------------------------------------------------------------------- */

struct tally_row {
    const char *tag, *value; /* NULL: all items */
    int n, hits, wrong_format, broken;
};

struct tally {
    struct tally_row *rows; /* all items first, then tag by tag */
    int n, nothing;         /* nothing: number of items without a target */
    bool cut;               /* there are more groups than rows */
    double ms, tokens;      /* means over items */
};

/* Computes the table; items that are not done are omitted. */
void tally_make(struct tally *t, const struct eval_set *set, const struct eval_results *r);
void tally_print(const struct tally *t, FILE *f);
json_t *tally_json(const struct tally *t);
void tally_free(struct tally *t);
