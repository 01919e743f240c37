/* subject.h - the model under measurement: an engine, a session, a text, a screen. */
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
    bool synthetic; /* weights are synthetic, and the directory is ours */
    bool trial;     /* --random tiny: everything runs once and small, for tests */
    struct engine *g;
    const struct model_config *c;
    struct dialect *dialect;
    struct session *s;
    struct checkpoint *start; /* after a few tokens */
    struct image screen;
    int frame;
    int32_t *ids; /* SUBJECT_IDS tokens of plain text, one sentence repeated */
    int64_t n;    /* of ids in the current measurement */
};

enum { SUBJECT_IDS = 4096 };

int subject_open(struct subject *m, const struct bench *k, struct err *e);
void subject_close(struct subject *m);
int subject_screen(struct subject *m, int w, int h, struct err *e); /* sets its size; 0: the usual one */
void subject_new_screen(struct subject *m);                         /* changes every tile */
void subject_new_corner(struct subject *m); /* changes the first tile and the thumbnail */

/* Ends the program when rc is not 0. */
void subject_need(int rc, const struct err *e);

/* Sections; the last three are not part of "all". */
void bench_sessions(struct subject *m);    /* session: checkpoint, rewind, fork, files */
void bench_concurrency(struct subject *m); /* concurrency: sessions that decode in one batch */
void bench_drift(struct subject *m);       /* drift */
void bench_step(struct subject *m);        /* step: a step of the agent by its parts */
void bench_peers(struct subject *m);       /* peers: what other programs can be asked, too */
void bench_fleet(struct subject *m);       /* fleet: one card, one session and a hundred */
void bench_threads(struct subject *m);     /* threads: threads that share the engine */

/* A row for n sessions that decode in one batch after so many tokens, if they fit. */
void bench_decode(struct subject *m, const char *section, int n, int after);
bool bench_fits(const struct subject *m, int n, int64_t tokens);

#endif
