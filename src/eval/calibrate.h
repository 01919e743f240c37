/* calibrate.h - which dialect a model speaks, and in which space its numbers are: measured, not believed.
 *
 * Screens with labelled buttons at known places are drawn into memory; the model is asked for each label, in
 * the words of each dialect, once as `ground` asks (a place) and once as `run` asks (a step).  Each answer's
 * two numbers are then read in every coordinate space there is: the space that makes most answers fall on
 * their buttons is the one the model speaks.  A wrong space shows as a constant ratio, so a line
 * said = a * true + b is fitted to each axis, which also describes a space that is none of ours.
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
    CALIBRATE_GIVE_UP = 8, /* answers after which a dialect may be given up */
    CALIBRATE_SPACES = COORD_BIN64 + 1,
    CALIBRATE_MIN_W = 320,
    CALIBRATE_MIN_H = 240,
};

/* ---- screens (screen.c) ------------------------------------------------------------------------ */

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

/* ---- lines (fit.c) ------------------------------------------------------------------------------ */

struct line { /* y = a * x + b */
    double a, b;
    int n, near; /* points, and those within the tolerance of the line */
};

/* Theil and Sen: the median of the slopes between any two points, so that a third of the points may be
 * anywhere.  Fewer than 3 different x: a = b = 0, near = 0. */
struct line line_fit(const double *x, const double *y, int n, double tolerance);

/* What a space says of a place: the ideal line along an extent of `size` pixels. */
struct line line_of_space(enum coord_space space, int size);

/* ---- what was heard (candidate.c) ---------------------------------------------------------------- */

enum ask { ASK_PLACE, ASK_STEP, ASKS };

struct heard {
    int asked;
    int read; /* replies in the dialect's form without being held to it; for steps: replies with a place */
    int hits[CALIBRATE_SPACES];
};

struct candidate {
    char *dialect; /* as dialect_load takes it */
    enum coord_space own;
    int w, h; /* of the screens */
    struct heard heard[ASKS];
    double truth[2][CALIBRATE_MAX_TARGETS],
        said[2][CALIBRATE_MAX_TARGETS]; /* x, y of replies that were read */
    int n;
    bool own_dialect; /* the one that the model's directory asks for */
    char trouble[ERR_TEXT];
};

/* A reply about a target: its numbers, or NULL when there were none.  forced: it was held to the dialect's
 * grammar after a free reply could not be read, so it counts in the dialect's own space alone and is no new
 * question. */
void candidate_hear(struct candidate *c, enum ask ask, const struct calibration_target *t,
                    const struct dialect_numbers *n, bool forced);
/* Hardly a hit in any space, and most replies not in the dialect's form. */
bool candidate_hopeless(const struct candidate *c, enum ask ask);
int candidate_hits(const struct candidate *c, enum coord_space space);
int candidate_asked(const struct candidate *c);

struct verdict {
    const struct candidate *candidate; /* NULL: nothing hit */
    enum coord_space space;
    int hits, asked;
    double low, high; /* Wilson */
    bool sure;        /* more hits than not, beyond chance */
};

/* The best rate of all dialects in all spaces; of equals a dialect's own space, then the earlier one. */
struct verdict calibration_verdict(const struct candidate *c, int n);

/* ---- asking (ask.c) ------------------------------------------------------------------------------- */

struct vqa;

struct asking {
    struct vqa *l;
    int targets;
    int w, h;   /* of the screens; 0: the dialect's own size, or 1280 x 800 */
    bool steps; /* also as a step of a run */
    uint64_t seed;
    void (*progress)(void *arg, int answers); /* of this candidate, of targets or twice as many */
    void *arg;
};

/* Everything of one candidate, whose dialect is named.  What does not work with this model is its trouble;
 * -1 only when somebody asked to stop. */
int calibration_ask(const struct asking *a, struct candidate *c, struct err *e);

/* ---- keeping it (keep.c) -------------------------------------------------------------------------- */

/* Writes it into the model's directory, where every later start finds it: the name into holorun.json, whose
 * other keys stay; beside it the dialect itself, holorun-dialect.json, when the space is not its own. */
int calibration_keep(const char *model_dir, const struct verdict *v, struct err *e);

#endif
