/* subject.h - the model that is measured: a session of it, a text, a screen. */
#ifndef HOLORUN_BENCH_SUBJECT_H
#define HOLORUN_BENCH_SUBJECT_H

#include "bench/bench.h"

#include "actions/dialect.h"
#include "capacity/cost.h"
#include "model/config.h"
#include "session/session.h"

struct subject {
    const struct bench *k;
    char *dir;
    bool made;  /* the directory is ours, and weights are made */
    bool trial; /* sizes that are good for nothing but to see that all runs: little of everything */
    struct engine *g;
    const struct model_config *c;
    struct dialect *dialect;
    struct session *s;
    struct checkpoint *start; /* a few tokens in */
    struct image screen;
    int frame;
    int32_t *ids; /* SUBJECT_IDS tokens of plain text, the same sentence again and again */
    int64_t n;    /* of ids, in what is being timed */
};

enum { SUBJECT_IDS = 4096 };

int subject_open(struct subject *m, const struct bench *k, struct err *e);
void subject_close(struct subject *m);
int subject_screen(struct subject *m, int w, int h, struct err *e); /* another size; 0: the usual one */
void subject_new_screen(struct subject *m);                         /* no tile is as it was before */
void subject_new_corner(struct subject *m); /* the first tile (and the thumbnail) differs */

/* A failure in the middle of a measurement ends the program. */
void subject_need(int rc, const struct err *e);

void bench_sessions(struct subject *m);    /* section session: marks, copies, files */
void bench_concurrency(struct subject *m); /* section concurrency: sessions that decode together */
void bench_peers(struct subject *m);   /* section peers: what other programs can be asked, too; not in all */
void bench_fleet(struct subject *m);   /* section fleet: one card, one session and a hundred; not in all */
void bench_threads(struct subject *m); /* section threads: threads that share the engine; not in all */

/* n sessions that decode together, with so many tokens at first, if there is room for them. */
void bench_decode(struct subject *m, const char *section, int n, int after);
bool bench_fits(const struct subject *m, int n, int64_t tokens);

void bench_drift(struct subject *m); /* section drift */
void bench_step(struct subject *m);  /* section step: one turn of the agent, taken apart */

#endif
