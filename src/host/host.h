/* host.h - runs for another program, which started this one and follows them: mcp.h and acp.h.
 *
 *     the protocol's thread                              a run's own thread
 *     host_start, host_stop, host_answer, host_act ─►  │ job_work (run/job.h): gate, lock, stop and record
 *     host_next ◄── events: JSON objects ───────────────┘ as for any other run
 *
 * What happens in a run comes as events, in order: the lines of its record, which hold no secret, and
 *
 *     {"kind": "start", "dir": ..., ...}    the first of its record
 *     {"kind": "question", "n": 1, "text": "wants to: click ...", "question": {...}}   the gate asks
 *     {"kind": "question_over", "n": 1}                     answered, or nobody did in time
 *     {"kind": "act", "ok": true, "text": "...", ...}       of a hand: one act is done, or was refused
 *     {"kind": "idle", "status": "answered", "answer": "..."}    it waits for the next task
 *     {"kind": "done", "code": 0, "status": "answered", "answer": "...", "error": "...", ...}    the last one
 *
 * All of them work on one place, which the command line names: an existing display, a private desktop or a
 * machine.  Fields into which a secret was typed are covered in every picture of that place, as long as their
 * windows and this process live.
 *
 * A hand is a run that the other program decides itself, one action at a time: it stands in for the model, so
 * that everything else is as in any run.  Errands (a screenshot, the windows, a picture of a record) press
 * nothing and have a thread too, so that no call waits for a display.
 */
#ifndef HOLORUN_HOST_HOST_H
#define HOLORUN_HOST_HOST_H

#include "run/job.h"

#include <jansson.h>

enum {
    HOST_WORKS = 16,                /* at the same time, errands too */
    HOST_PICTURE_SIDE = 1280,       /* of a picture that is sent, unless asked otherwise; pixels */
    HOST_PICTURE_BYTES = 900 << 10, /* in base64 */
    HOST_REPLY_BYTES = 1040000, /* of a line with the result of a tool; some hosts refuse 1 MiB and more */
};

struct host;
struct work; /* one run or errand; valid until its event "done" has been taken */

enum work_kind {
    WORK_TASK,
    WORK_HAND,
    WORK_LOOK,    /* the screen: "done" holds a picture */
    WORK_WINDOWS, /* "done" holds a list */
    WORK_PICTURE, /* of a file */
};

struct work_order { /* texts are copied */
    enum work_kind kind;
    const char *task;
    int max_steps;             /* 0: that of the settings */
    const char *resume;        /* a run that the task goes on from; NULL: none */
    bool stays;                /* after a task it waits for the next one, for a while */
    const char *path;          /* WORK_PICTURE */
    struct screen_rect region; /* WORK_LOOK: in pixels of the view; w 0: all of it */
    int max_side;              /* of the picture; 0: HOST_PICTURE_SIDE */
};

/* Opens a host and reads its secrets.  settings, argv: borrowed; the place is settled (run/place.h).
 * settings NULL: it starts nothing, for tests of messages.  NULL with e. */
struct host *host_open(const struct run_settings *settings, const char *build, int argc, char **argv,
                       struct err *e);
/* Stops everything and waits until it has ended. */
void host_close(struct host *h);

int host_fd(const struct host *h); /* readable: there are events */
/* The next event, owned by the caller, and whose it is; NULL: none. */
json_t *host_next(struct host *h, struct work **whose);

/* The place that all runs and errands of this process work on (run/place.h). */
const char *host_display(const struct host *h);
/* Returns -1 with e, unless a display that a caller names (NULL or "": none) is that place. */
int host_check_display(const struct host *h, const char *display, struct err *e);
/* Returns whether --confirm lets the calling program answer questions itself. */
bool host_caller_answers(const struct host *h);
/* Replaces the values of secrets in a text by their names; the caller frees the result. */
char *host_mask(const struct host *h, const char *text);

struct work *host_start(struct host *h, const struct work_order *o, struct err *e);
void host_stop(struct work *w);
void host_answer(struct work *w, int question, bool allow);
void host_cannot_ask(struct work *w, int question); /* nobody can be asked: the question is refused */
/* An action in the words of the dialect "host": {"name": "click", "arguments": {...}}. */
void host_act(struct work *w, const char *call);
void host_next_task(struct work *w, const char *task); /* while it is idle */
void host_finish(struct work *w);                      /* no more acts or tasks: it ends by itself */

#endif
