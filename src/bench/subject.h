/* subject.h - the model under measurement: an engine, a session, a text, a screen. */
#pragma once

#include "bench/bench.h"

#include "actions/dialect.h"
#include "capacity/cost.h"
#include "model/config.h"
#include "session/session.h"

struct subject {
    const struct bench *k;
    char *dir;
    bool synthetic; /* the weights are synthetic, and the directory is temporary */
    bool trial;     /* --random tiny: everything runs once and with small sizes, for tests */
    struct engine *g;
    const struct model_config *c;
    struct dialect *dialect;
    struct session *s;
    struct checkpoint *start; /* after 4 tokens */
    struct checkpoint *from;  /* the checkpoint to which runs rewind: start, or a later one */
    struct image screen;
    int frame;
    int32_t *ids;    /* SUBJECT_IDS tokens of plain text, one sentence repeated */
    int64_t n;       /* number of tokens of the current measurement */
    uint64_t *known; /* set of the ids that may be generated */
};

enum { SUBJECT_IDS = 4096, SUBJECT_MOST = 128 /* maximum sessions of a row */ };

int subject_open(struct subject *m, const struct bench *k, struct err *e);
void subject_close(struct subject *m);
/* sets its size in pixels; 0: the usual one; returns -1 with e */
int subject_screen(struct subject *m, int w, int h, struct err *e);
void subject_new_screen(struct subject *m); /* changes every tile */
void subject_new_corner(struct subject *m); /* changes the first tile and the thumbnail */

/* Ends the program with the error if rc is not 0. */
void subject_need(int rc, const struct err *e);

/* subject_append() appends tokens; subject_extend() extends a session to `length` tokens of the text and
 * computes its logits. */
void subject_append(struct session *s, const int32_t *ids, int64_t n);
void subject_extend(const struct subject *m, struct session *s, int64_t length);

/* subject_fork() creates n sessions with the first `length` tokens of the text, forks of one;
 * subject_free_forks() frees them. */
void subject_fork(const struct subject *m, struct session **s, int n, int64_t length);
void subject_free_forks(struct session **s, int n);

/* All rewind m->s to m->from; subject_append_screen() then appends the screen, subject_run_prefill() computes
 * m->n tokens of the text (arg: the subject). */
void subject_rewind(struct subject *m);
void subject_append_screen(struct subject *m);
void subject_run_prefill(void *arg);

/* Decodes the pending token of each session and samples the next one greedily if the device can sample, else
 * computes the logits. */
void subject_sample(const struct subject *m, struct session *const *s, int n);

/* Returns the bytes of memory traffic to decode one token of each of n sessions after `past` tokens. */
double subject_decode_bytes(const struct subject *m, int n, int64_t past);

/* Return the bytes that the engine has left, of its GPU or the host, and the bytes that it uses (relative to
 * an arbitrary zero).  On a GPU an engine has its own pool, which keeps freed memory: other backends do not
 * see it as free. */
double subject_memory_free(const struct subject *m);
double subject_memory_used(const struct subject *m);

/* Return the bytes of a session with `tokens` tokens, and of a checkpoint. */
size_t subject_session_memory(const struct subject *m, int64_t tokens);
size_t subject_checkpoint_memory(const struct subject *m);

/* Sections; peers, fleet and threads are not part of "all". */
void bench_sessions(struct subject *m);    /* session: checkpoint, rewind, fork, files */
void bench_concurrency(struct subject *m); /* concurrency: sessions that decode in one batch */
void bench_drift(struct subject *m);       /* drift */
void bench_step(struct subject *m);        /* step: a step of the agent by its parts */
void bench_peers(struct subject *m);       /* peers: workloads that other programs can run, too */
void bench_fleet(struct subject *m);       /* fleet: one GPU, one session and a hundred */
void bench_threads(struct subject *m);     /* threads: threads that share the engine */

/* Prints a row for n sessions that decode in one batch after `after` tokens, if they fit in memory. */
void bench_decode(struct subject *m, const char *section, int n, int after);

/* Returns whether n more sessions of `tokens` tokens and `checkpoints` checkpoints fit in memory. */
bool subject_fits(const struct subject *m, int n, int64_t tokens, int checkpoints);
