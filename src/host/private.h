/* private.h - the members of a run for another program, shared by the parts of host/.  Private to host/. */
#pragma once

#include "host/host.h"

#include "atspi/refs.h"
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
    bool marks;
    struct elements_order elements; /* its texts are the next three */
    char *window, *words, *role;
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
    struct tree *tree;

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
/* deed.c: a deed on an element that a client names by its ref, as one or more replies of a client-driven
 * run. */
struct deed;
/* Reads a call (host_act()).  Returns NULL if it is not a deed. */
struct deed *deed_new(struct work *w, const char *call);
void deed_free(struct deed *d); /* NULL is allowed */
/* Writes the next reply to out and returns true; or returns false when the deed is over, after reporting its
 * effect or the reason why it was not done.  The result of the last reply is in the work's outcome. */
bool deed_next(struct deed *d, struct buf *out);
/* Ends a deed whose reply cannot be performed. */
void deed_refuse(struct deed *d, const char *why);

/* tree.c: the elements of the host's display.  One reader serves all errands and runs, so that refs stay the
 * same.  It has a thread of its own: its child process ends with the thread that started it. */
struct tree *tree_new(struct host *h);
void tree_free(struct tree *t); /* NULL is allowed */
/* Reads the elements of a scope, NULL: that which the client saw last, and locks the tree until tree_done().
 * Secrets are replaced by their names, and elements in hidden zones are empty.  Returns NULL with e,
 * unlocked. */
const struct snapshot *tree_read(struct tree *t, const struct elements_scope *s, struct screen *screen,
                                 struct err *e);
void tree_done(struct tree *t);
/* Only while the tree is locked: returns the refs that the client was shown. */
struct refs *tree_refs(struct tree *t);
/* Keeps a text as what the client has seen last, of a scope or, NULL, of the scope as before.  tree_seen()
 * returns it; NULL: none. */
void tree_see(struct tree *t, const char *text, const struct elements_scope *s);
const char *tree_seen(const struct tree *t);

/* Returns the event "done" of a request for elements.  (look_elements.c) */
json_t *look_at_elements(const struct work *w, struct err *e);
/* Draws the refs of the elements on an image of the screen's view and returns their number, -1 with e.
 * scale: pixels of the image for one of the view; x, y: origin of the image in the view.  (marks.c) */
int look_draw_marks(const struct work *w, struct screen *s, struct image *im, double scale, int x, int y,
                    struct err *e);

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
