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
    struct checkpoint *from;  /* where runs rewind to: start, or further on */
    struct image screen;
    int frame;
    int32_t *ids;    /* SUBJECT_IDS tokens of plain text, one sentence repeated */
    int64_t n;       /* of ids in the current measurement */
    uint64_t *known; /* ids that may be generated */
};

enum { SUBJECT_IDS = 4096, SUBJECT_MOST = 128 /* sessions of a row */ };

int subject_open(struct subject *m, const struct bench *k, struct err *e);
void subject_close(struct subject *m);
int subject_screen(struct subject *m, int w, int h, struct err *e); /* sets its size; 0: the usual one */
void subject_new_screen(struct subject *m);                         /* changes every tile */
void subject_new_corner(struct subject *m); /* changes the first tile and the thumbnail */

/* Ends the program when rc is not 0. */
void subject_need(int rc, const struct err *e);

/* Appends tokens; extends a session to `length` tokens of the text, and computes its logits. */
void subject_append(struct session *s, const int32_t *ids, int64_t n);
void subject_extend(const struct subject *m, struct session *s, int64_t length);

/* n sessions with the first `length` tokens of the text, forks of one; frees them. */
void subject_fork(const struct subject *m, struct session **s, int n, int64_t length);
void subject_free_forks(struct session **s, int n);

/* Rewinds m->s to m->from; then appends the screen; or computes m->n tokens of the text (arg: the
 * subject). */
void subject_rewind(struct subject *m);
void subject_append_screen(struct subject *m);
void subject_run_prefill(void *arg);

/* Decodes the pending token of each and samples the next greedily, on a device that can; else computes
 * their logits. */
void subject_sample(const struct subject *m, struct session *const *s, int n);

/* Bytes that decoding one token of each of n sessions moves, after `past` tokens. */
double subject_decode_bytes(const struct subject *m, int n, int64_t past);

/* Bytes that the engine has left, of its GPU or the host, and what it uses (from an arbitrary zero).  On a
 * GPU an engine has a pool of its own, which keeps what is freed: another backend does not see that. */
double subject_memory_free(const struct subject *m);
double subject_memory_used(const struct subject *m);

/* Memory of a session with so many tokens, and of a checkpoint. */
size_t subject_session_memory(const struct subject *m, int64_t tokens);
size_t subject_checkpoint_memory(const struct subject *m);

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

/* Whether there is memory for n more sessions of so many tokens and for so many checkpoints. */
bool subject_fits(const struct subject *m, int n, int64_t tokens, int checkpoints);

#endif
