/* calibrate.h - measures which dialect a model speaks, and in which coordinate space.
 *
 * Screens with labelled buttons at known places are drawn into memory.  The model is asked for each label
 * in each dialect, once as `ground` asks (for a place) and once as `run` asks (for a step).  The two
 * numbers of each answer are read in every coordinate space: the space in which most answers hit their
 * buttons is the model's.  A wrong space shows as a constant ratio, so a line said = a * true + b is fitted
 * to each axis, which also describes a space that is none of ours.
 */
#ifndef HOLORUN_EVAL_CALIBRATE_H
#define HOLORUN_EVAL_CALIBRATE_H

#include "actions/dialect.h"
#include "base/image.h"
#include "eval/eval.h"

enum {
    CALIBRATE_ON_SCREEN = 6, /* buttons of one screen */
    CALIBRATE_LABEL = 12,
    CALIBRATE_MAX_TARGETS = 300,
    CALIBRATE_GIVE_UP = 8, /* answers after which a dialect may be dropped */
    CALIBRATE_SPACES = COORD_PIXEL + 1,
    CALIBRATE_MIN_W = 320,
    CALIBRATE_MIN_H = 240,
};

/* ---- screens (calibrate_screen.c) ------------------------------------------------------------ */

struct calibration_target {
    char label[CALIBRATE_LABEL];
    double box[4]; /* x1, y1, x2, y2, of the whole button */
};

struct calibration_screen {
    struct image image;
    struct calibration_target targets[CALIBRATE_ON_SCREEN];
    int n;
};

/* n buttons with labels that occur once; the same seed gives the same pixels. */
int calibration_draw(struct calibration_screen *s, int w, int h, int n, uint64_t seed, struct err *e);

/* ---- lines (calibrate_candidate.c) ----------------------------------------------------------- */

struct line { /* y = a * x + b */
    double a, b;
    int n, near; /* points, and those within the tolerance of the line */
};

/* Theil-Sen estimator: the median of the slopes between any two points, so that a third of the points may be
 * outliers.  Fewer than 3 different x: a = b = 0, near = 0. */
struct line line_fit(const double *x, const double *y, int n, double tolerance);

/* The exact line of a space along an extent of `size` pixels. */
struct line line_of_space(enum coord_space space, int size);

/* ---- counts (calibrate_candidate.c) ---------------------------------------------------------------- */

enum question { QUESTION_PLACE, QUESTION_STEP, QUESTIONS };

struct answer_counts {
    int asked;
    int read; /* replies in the dialect's form without its grammar; for steps: replies with a place */
    int hits[CALIBRATE_SPACES];
};

/* The space that a dialect's answers are counted in: on screens that nobody resizes, pixels of a resized
 * picture are pixels. */
enum coord_space calibration_space(enum coord_space own);

struct candidate {
    char *dialect; /* as dialect_load takes it */
    enum coord_space own;
    int w, h; /* of the screens */
    struct answer_counts counts[QUESTIONS];
    double truth[2][CALIBRATE_MAX_TARGETS],
        said[2][CALIBRATE_MAX_TARGETS]; /* x, y of replies that were read */
    int n;
    bool own_dialect; /* the one that the model's directory names */
    char error[ERR_TEXT];
};

/* Counts a reply about a target: its numbers, or NULL without any.  forced: the grammar was on, after a
 * free reply that could not be read, so that it counts only in the dialect's own space and is not a new
 * question. */
void candidate_count(struct candidate *c, enum question q, const struct calibration_target *t,
                     const struct dialect_numbers *n, bool forced);
/* Hardly a hit in any space, and most replies not in the dialect's form. */
bool candidate_hopeless(const struct candidate *c, enum question q);
int candidate_hits(const struct candidate *c, enum coord_space space);
int candidate_asked(const struct candidate *c);

struct verdict {
    const struct candidate *candidate; /* NULL: nothing hit */
    enum coord_space space;
    int hits, asked;
    double low, high; /* Wilson */
    bool sure;        /* more hits than not, beyond chance */
};

/* The best rate of all dialects in all spaces; among equals a dialect's own space, then the first. */
struct verdict calibration_verdict(const struct candidate *c, int n);

/* ---- asking (calibrate_ask.c) ---------------------------------------------------------------- */

struct vqa;

struct calibration_run {
    struct vqa *l;
    int targets;
    int w, h;   /* of the screens; 0: the dialect's own size, or 1280 x 800 */
    bool steps; /* ask for steps, too */
    uint64_t seed;
    void (*progress)(void *arg, int answers); /* so far of this candidate; may be NULL */
    void *arg;
};

/* Asks all questions of one candidate, whose `dialect` is set.  Failures go into its `error`; -1 only when
 * stopped. */
int calibration_ask(const struct calibration_run *a, struct candidate *c, struct err *e);

/* ---- saving (calibrate_save.c) --------------------------------------------------------------- */

/* Writes the verdict into the model's directory, where every later start finds it: the dialect's name into
 * holorun.json, whose other keys stay, and the dialect into holorun-dialect.json when the space is not its
 * own. */
int calibration_save(const char *model_dir, const struct verdict *v, struct err *e);

#endif
