/* results.h - the results file, which grows item by item, and tables of it.
 *
 * The first line describes the run; then one line for each item: its own fields, and
 *
 *     pred [x, y]     the answered place, in the target's units; null without one
 *     raw             the reply
 *     correct         the place is in the target; with nothing to find: no place was answered
 *     wrong_format    the reply could not be read, which counts as wrong
 *     dist_px         from the place to the target, 0 inside
 *     ms, tokens      of the whole question, of the reply
 *     error           instead of all these: the picture could not be shown to the model
 *
 * A run that was killed leaves whole lines and perhaps a partial one.  With resume the whole ones count as
 * done and the file is continued after them, if its first line is the one that this run would write.
 */
#ifndef HOLORUN_EVAL_RESULTS_H
#define HOLORUN_EVAL_RESULTS_H

#include "actions/dialect.h"
#include "eval/eval.h"

enum { RESULTS_MAX_RAW = 4096 };

struct eval_answer {
    bool correct, wrong_format, placed;
    double x, y, distance; /* in the target's units */
    double ms;
    int tokens;
    char raw[RESULTS_MAX_RAW];
    char error[ERR_TEXT]; /* "": the picture was shown */
};

/* Scores a reply about an image of w x h pixels: fills all but ms, tokens and error. */
void eval_score(const struct target *t, const struct dialect *d, const char *reply, int w, int h,
                struct eval_answer *a);

/* The part of an answer that the tables need, for each item of the set. */
struct eval_outcome {
    bool done, correct, wrong_format, broken;
    float ms;
    int tokens;
};

struct eval_results {
    int fd;
    char *path;
    struct eval_outcome *outcomes; /* [set->n] */
    int resumed;                   /* items done in an earlier run */
};

/* head: the first line, borrowed.  Without resume an existing file is refused; with it, a missing one is
 * created. */
int results_open(struct eval_results *r, const char *path, const struct eval_set *set, const json_t *head,
                 bool resume, struct err *e);
int results_add(struct eval_results *r, const struct eval_set *set, int item, const struct eval_answer *a,
                struct err *e);
void results_close(struct eval_results *r);

/* Reads the lines of a results file into outcomes; *whole: bytes of its whole lines. */
int results_parse(struct eval_results *r, const char *data, size_t len, const struct eval_set *set,
                  const json_t *head, size_t *whole, struct err *e);

/* ---- tables (tally.c) --------------------------------------------------------------------------- */

struct tally_row {
    const char *tag, *value; /* NULL: all items */
    int n, hits, wrong_format, broken;
};

struct tally {
    struct tally_row *rows; /* all items first, then tag by tag */
    int n, cap, nothing;    /* nothing: items with nothing to find */
    bool cut;               /* more groups than rows */
    double ms, tokens;      /* mean over items */
};

/* Leaves out items that are not done. */
void tally_make(struct tally *t, const struct eval_set *set, const struct eval_results *r);
void tally_print(const struct tally *t, FILE *f);
json_t *tally_json(const struct tally *t);
void tally_free(struct tally *t);

#endif
