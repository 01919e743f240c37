/* private.h - the parts of a run for another program.  Private to host/. */
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
    int64_t order; /* of starting */
    bool ending;   /* its last event is queued */

    /* under the host's lock */
    struct screen *screen; /* while the run has one */
    volatile int stop;
    bool finish;
    int asked, answered; /* numbers of questions */
    enum confirm_answer answer;
    char *act, *next_task; /* not taken yet */

    /* of the run's thread */
    const struct job *job;
    struct image seen; /* a hand's last screenshot */
    const volatile int *screen_flag;
    json_t *outcome; /* of the act that is being done; NULL: none is */
};

struct shown { /* the last screenshot of a display that was not a run's */
    struct shown *next;
    char *display;
    struct observed *observed; /* NULL: an act was decided on it, or a later one was shown */
};

struct host {
    const struct run_settings *settings;
    const char *build;
    int argc;
    char **argv;
    struct secrets *secrets[SECRETS_MAX]; /* each alone: a variable can be read only once */
    int n_secrets;
    struct redact *covered; /* fields that hold secrets; NULL: without secrets, or --no-redact-frames */

    pthread_mutex_t model_lock;
    struct job_model model;
    bool model_open;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* something for a run's thread */
    struct work *works;
    int64_t orders;
    struct queued *first, **last;
    struct shown *shown;
    struct work *over; /* its last event has been taken */
    int wake;
};

/* Queues an event, which is taken over. */
void host_tell(struct work *w, json_t *event);
/* Waits a moment for a change, or until the work is to stop: false. */
bool work_wait(struct work *w);
bool work_stopping(const struct work *w);

void *work_main(void *arg);                          /* work.c */
struct llm *hand_open(void *arg);                    /* hand.c: decides in place of a model */
void hand_hear(struct work *w, const json_t *event); /* each event of its record */
json_t *look_done(struct work *w);                   /* look.c: the event "done" of an errand */
/* shown.c: frame was captured from s and is shown to the other program; the next act on that display is
 * compared with it; a run's own screenshot has been shown since. */
void shown_keep(struct host *h, struct screen *s, const struct image *frame);
void shown_use(struct host *h, struct screen *s);
void shown_forget(struct host *h, const struct screen *s);
void shown_free(struct host *h);
/* Encodes a picture: {"data": base64 of at most HOST_PICTURE_BYTES, "w", "h": its size, "of_w", "of_h": that
 * of im}. max_side: of its longer side, in pixels; 0: HOST_PICTURE_SIDE.  NULL: out of memory. */
json_t *look_picture(const struct image *im, int max_side);

#endif
