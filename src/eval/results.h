/* results.h - what came out, item by item, in a file that grows as it goes.
 *
 * The first line says what was measured with what; then one line for each item: its own fields, and
 *
 *     pred [x, y]     the place, in the picture that the target speaks of; null when there was none
 *     raw             the reply
 *     correct         the place lies in the target; with nothing to be found: none was named
 *     wrong_format    the reply could not be read, which counts as wrong
 *     dist_px         from the place to the target, 0 inside
 *     ms, tokens      of the whole question, of the reply
 *     error           in place of all these: the picture could not be shown to the model
 *
 * A run that was killed leaves whole lines and perhaps a torn one.  Opening the file again takes the whole
 * ones as done and goes on behind them, if the first line is the same as it would be now.
 */
#ifndef HOLORUN_EVAL_RESULTS_H
#define HOLORUN_EVAL_RESULTS_H

#include "actions/dialect.h"
#include "eval/eval.h"

enum { RESULTS_MAX_RAW = 4096 };

struct eval_answer {
    bool correct, wrong_format, placed;
    double x, y, distance; /* in the target's picture */
    double ms;
    int tokens;
    char raw[RESULTS_MAX_RAW];
    char error[ERR_TEXT]; /* "": the picture was shown */
};

/* What a reply about an image of w x h pixels is worth: fills all but ms, tokens and error. */
void eval_judge(const struct target *t, const struct dialect *d, const char *reply, int w, int h,
                struct eval_answer *a);

/* What the tables are made of: the small part of an answer, kept for each item of the set. */
struct eval_outcome {
    bool done, correct, wrong_format, broken;
    float ms;
    int tokens;
};

struct eval_results {
    int fd;
    char *path;
    struct eval_outcome *outcomes; /* beside the items of the set */
    int resumed;                   /* taken from the file */
};

/* head: an object that tells what is measured with what; borrowed.  Without resume an existing file is
 * refused; with it, an absent one is made. */
int results_open(struct eval_results *r, const char *path, const struct eval_set *set, const json_t *head,
                 bool resume, struct err *e);
int results_add(struct eval_results *r, const struct eval_set *set, int item, const struct eval_answer *a,
                struct err *e);
void results_close(struct eval_results *r);

/* The lines of a results file after its head, for reading and fuzzing: fills outcomes, and *whole with the
 * bytes of whole lines. */
int results_parse(struct eval_results *r, const char *data, size_t len, const struct eval_set *set,
                  const json_t *head, size_t *whole, struct err *e);

/* ---- tables (tally.c) --------------------------------------------------------------------------- */

struct tally_row {
    const char *tag, *value; /* NULL: all items */
    int n, hits, wrong_format, broken;
};

struct tally {
    struct tally_row *rows; /* all items first, then tag by tag */
    int n, cap, nothing;    /* items where nothing is to be found */
    bool cut;               /* there are more groups than rows */
    double ms, tokens;      /* mean of one item */
};

/* Items that were not done are left out. */
void tally_make(struct tally *t, const struct eval_set *set, const struct eval_results *r);
void tally_print(const struct tally *t, FILE *f);
json_t *tally_json(const struct tally *t);
void tally_free(struct tally *t);

#endif
