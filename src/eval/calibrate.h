/* calibrate.h - measures which dialect a model uses, and in which coordinate space.
 *
 * Screens with labelled buttons at known positions are drawn into memory.  For each label the model is asked
 * in each dialect, once for a position, as by `ground`, and once for a step, as by `run`.  The two numbers of
 * each answer are interpreted in every coordinate space; the model's space is the one in which most answers
 * hit their buttons.  A wrong space shows as a constant ratio, so a line said = a * true + b is fitted to
 * each axis, which also describes spaces that holorun does not have. */
#pragma once

#include "actions/dialect.h"
#include "base/image.h"
#include "eval/eval.h"

enum {
    CALIBRATE_ON_SCREEN = 6, /* buttons per screen */
    CALIBRATE_LABEL = 12,
    CALIBRATE_MAX_TARGETS = 300,
    CALIBRATE_GIVE_UP = 8, /* number of answers after which a dialect may be dropped */
    CALIBRATE_SPACES = COORD_PIXEL + 1,
    CALIBRATE_MIN_W = 320,
    CALIBRATE_MIN_H = 240,
};

/* ---- screens (calibrate_screen.c) ------------------------------------------------------------ */

struct calibration_target {
    char label[CALIBRATE_LABEL];
    double box[4]; /* x1, y1, x2, y2 of the whole button */
};

struct calibration_screen {
    struct image image;
    struct calibration_target targets[CALIBRATE_ON_SCREEN];
    int n;
};

/* Draws n buttons with labels that occur once; the same seed gives the same pixels.  Returns -1 with e. */
int calibration_draw(struct calibration_screen *s, int w, int h, int n, uint64_t seed, struct err *e);

/* ---- lines (calibrate_candidate.c) ----------------------------------------------------------- */

struct line { /* y = a * x + b */
    double a, b;
    int n, near; /* number of points, and of those within the tolerance of the line */
};

/* Fits a line with the Theil-Sen estimator, the median of the slopes between any two points, which tolerates
 * up to 29 % outliers.  Returns a = b = 0, near = 0 for fewer than 3 points or fewer than 2 pairs of
 * different x. */
struct line line_fit(const double *x, const double *y, int n, double tolerance);

/* Returns the exact line of a space along an extent of `size` pixels. */
struct line line_of_space(enum coord_space space, int size);

/* ---- counts (calibrate_candidate.c) ---------------------------------------------------------------- */

enum question { QUESTION_PLACE, QUESTION_STEP, QUESTIONS };

struct answer_counts {
    int asked;
    int read; /* replies in the dialect's form without its grammar; for steps: replies with a position */
    int hits[CALIBRATE_SPACES];
};

/* Returns the space in which a dialect's answers are counted.  The test screens are not resized, so pixels of
 * a resized image are pixels. */
enum coord_space calibration_space(enum coord_space own);

struct candidate {
    char *dialect; /* argument of dialect_load() */
    enum coord_space own;
    int w, h; /* size of the screens in pixels */
    struct answer_counts counts[QUESTIONS];
    double truth[2][CALIBRATE_MAX_TARGETS],
        said[2][CALIBRATE_MAX_TARGETS]; /* x, y of replies that were read */
    int n;
    bool own_dialect; /* the dialect that the model's directory names */
    char error[ERR_TEXT];
};

/* Counts a reply about a target.  n: its numbers, NULL: none.  forced: the grammar was applied after a free
 * reply that could not be read, so the reply counts only in the dialect's own space and is not a new
 * question. */
void candidate_count(struct candidate *c, enum question q, const struct calibration_target *t,
                     const struct dialect_numbers *n, bool forced);
/* Returns whether fewer than a quarter of CALIBRATE_GIVE_UP or more answers hit in any space and fewer than
 * half have the dialect's form. */
bool candidate_hopeless(const struct candidate *c, enum question q);
int candidate_hits(const struct candidate *c, enum coord_space space);
int candidate_asked(const struct candidate *c);

struct verdict {
    const struct candidate *candidate; /* NULL: no answer hit */
    enum coord_space space;
    int hits, asked;
    double low, high; /* Wilson interval */
    bool sure;        /* the interval is above one half: more hits than misses, beyond chance */
};

/* Returns the best rate of all dialects in all spaces; in a tie a dialect's own space wins, then the first
 * candidate. */
struct verdict calibration_verdict(const struct candidate *c, int n);

/* ---- asking (calibrate_ask.c) ---------------------------------------------------------------- */

struct vqa;

struct calibration_run {
    struct vqa *l;
    int targets;
    int w, h;   /* size of the screens in pixels; 0: the dialect's own size, else 1280 x 800 */
    bool steps; /* also ask for steps */
    uint64_t seed;
    /* receives the number of answers of this candidate so far; may be NULL */
    void (*progress)(void *arg, int answers);
    void *arg;
};

/* Asks all questions of one candidate, whose `dialect` is set.  Failures go into its `error`.  Returns -1
 * with e only if stopped. */
int calibration_ask(const struct calibration_run *a, struct candidate *c, struct err *e);

/* ---- saving (calibrate_save.c) --------------------------------------------------------------- */

/* Writes the verdict into the model's directory, where every later start finds it: the dialect's name into
 * holorun.json, whose other keys are kept, and the dialect into holorun-dialect.json if the space is not its
 * own.  Returns -1 with e. */
int calibration_save(const char *model_dir, const struct verdict *v, struct err *e);
