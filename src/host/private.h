/* private.h - the members of a run for another program, shared by the parts of host/.  Private to host/. */
#ifndef HOLORUN_HOST_PRIVATE_H
#define HOLORUN_HOST_PRIVATE_H

#include "host/host.h"

#include "base/buf.h"
#include "gate/redact.h"

#include <pthread.h>

#define HAND_DIALECT "host"
enum { HOST_TEXT_MAX = 4 << 20, HOST_LOOK_MS = 10, HOST_IDLE_S = 60 };

struct work {
    struct host *host;
    struct work *next;
    enum work_kind kind;
    char *task, *resume, *path;
    int max_steps, max_side;
    bool stays;
    struct screen_rect region;
    pthread_t thread;
    int64_t order; /* number of this work, counting from 1 in order of starting */
    bool ending;   /* its last event is queued */

    /* guarded by the host's lock */
    struct screen *screen; /* the run's screen; NULL while the run has none */
    volatile int stop;
    bool finish;
    int asked, answered; /* numbers of the last question asked and the last one answered */
    enum confirm_answer answer;
    char *act, *next_task; /* call and task that the run's thread has not taken yet; NULL: none */

    /* used by the run's thread only */
    const struct job *job;
    struct image seen; /* last screenshot of a client-driven run */
    const volatile int *screen_flag;
    json_t *outcome; /* result of the call in progress; NULL: none is in progress */
};

struct shown { /* the last screenshot of a display that an errand, not a run, has captured */
    struct shown *next;
    char *display;
    struct observed *observed; /* NULL: a call was decided on it, or a run has shown a later screenshot */
};

struct host {
    const struct run_settings *settings;
    const char *build;
    int argc;
    char **argv;
    struct secrets *secrets[SECRETS_MAX]; /* one per secret: a variable can be read only once */
    int n_secrets;
    struct redact *covered; /* fields that hold secrets; NULL: without secrets, or with --no-redact-frames */

    pthread_mutex_t model_lock;
    struct job_model model;
    bool model_open;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* signals a change to the runs' threads */
    struct work *works;
    int64_t orders;
    struct queued *first, **last;
    struct shown *shown;
    struct work *over; /* work whose last event has been taken; freed by the next host_next() */
    int wake;
};

/* Queues an event and wakes the protocol's thread.  Takes ownership of event. */
void host_tell(struct work *w, json_t *event);
/* Waits at most HOST_LOOK_MS for a change.  Returns false if the work must stop.  The caller holds the
 * lock. */
bool work_wait(struct work *w);
bool work_stopping(const struct work *w);

/* Runs one work in its thread and queues its event "done"; arg is the struct work.  (work.c) */
void *work_main(void *arg);
/* Opens a model whose replies are the client's calls; arg is the struct work.  (hand.c) */
struct llm *hand_open(void *arg);
/* Adds an event of the record to the result of the current call. */
void hand_hear(struct work *w, const json_t *event);
/* Performs an errand and returns its event "done", owned by the caller.  (look.c) */
json_t *look_done(struct work *w);
/* shown.c: shown_keep() keeps frame, captured from s, as shown to the client.  shown_use() has the next call
 * on that display compared with it.  shown_forget() drops it, because a run's own screenshot has been shown
 * since. */
void shown_keep(struct host *h, struct screen *s, const struct image *frame);
void shown_use(struct host *h, struct screen *s);
void shown_forget(struct host *h, const struct screen *s);
void shown_free(struct host *h);
/* Encodes an image as {"data": base64 of at most HOST_PICTURE_BYTES, "w", "h": its size, "of_w", "of_h": size
 * of im}.  max_side: limit of the longer side in pixels; 0: HOST_PICTURE_SIDE.  Returns NULL if out of
 * memory. */
json_t *look_picture(const struct image *im, int max_side);

#endif
