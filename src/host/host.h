/* host.h - runs on behalf of another program, which started this process and follows them: mcp.h and acp.h.
 *
 *     the protocol's thread                              a run's own thread
 *     host_start, host_stop, host_answer, host_act ─►  │ job_work (run/job.h): gate, lock, stop and record
 *     host_next ◄── events: JSON objects ───────────────┘ as for any other run
 *
 * A run reports its progress as events, in order: the events of its record, which hold no secret, and
 *
 *     {"kind": "start", "dir": ..., ...}    the first event of its record
 *     {"kind": "question", "n": 1, "text": "wants to: click ...", "question": {...}}   the gate asks
 *     {"kind": "question_over", "n": 1}                     answered, or timed out
 *     {"kind": "act", "ok": true, "text": "...", ...}       client-driven run: a call is done or was rejected
 *     {"kind": "act", "ok": true, "report": "..."}          ... a call on a ref: its effect, in lines
 *     {"kind": "idle", "status": "answered", "answer": "..."}    the run waits for the next task
 *     {"kind": "done", "code": 0, "status": "answered", "answer": "...", "error": "...", ...}    the last one
 *
 * All runs and errands share the place that the command line names: an existing display, a private desktop or
 * a remote machine.  Fields into which a secret was typed are covered in every screenshot of that place, as
 * long as their windows and this process exist.
 *
 * In a client-driven run (WORK_HAND) the client chooses each action instead of a model; everything else is as
 * in any other run.  Errands are read-only requests (a screenshot, elements, the window list, an image from a
 * record); they send no input and also have a thread, so that no call waits for a display.
 */
#pragma once

#include "run/job.h"

#include <jansson.h>

enum {
    HOST_WORKS = 16,                /* maximum number of concurrent runs and errands */
    HOST_PICTURE_SIDE = 1280,       /* default limit of the longer side of an image that is sent, in pixels */
    HOST_PICTURE_BYTES = 900 << 10, /* limit of an image in base64 */
    /* limit of the line that holds a tool's result; some hosts reject 1 MiB and more */
    HOST_REPLY_BYTES = 1040000,
    HOST_TOKENS = 1500, /* default limit of a text of elements; a token counts as HOST_TOKEN_BYTES */
    HOST_TOKEN_BYTES = 3,
    HOST_MATCHES = 20,        /* default limit of matching elements */
    HOST_VALUE_BYTES = 16384, /* limit of a text that is filled in */
};

struct host;
struct work; /* one run or errand; valid until its event "done" has been taken */

enum work_kind {
    WORK_TASK,
    WORK_HAND,
    WORK_LOOK,     /* screenshot: "done" holds an image */
    WORK_WINDOWS,  /* window list: "done" holds the list */
    WORK_PICTURE,  /* image from a file */
    WORK_ELEMENTS, /* elements of windows: "done" holds a text */
};

struct elements_order { /* a request for elements; its texts are copied */
    const char *window; /* title of a window of the program; NULL: the program of the active window */
    bool all;           /* all programs */
    bool boxes, json;   /* with the middle of each element; as JSON */
    bool find;          /* only matching elements */
    const char *words;  /* find: words of their lines; NULL: any */
    const char *role;   /* find: NULL: any */
    int limit;          /* tokens, or for find matches; 0: the default */
};

struct work_order { /* a request for a run or an errand; its texts are copied */
    enum work_kind kind;
    const char *task;
    int max_steps;                  /* 0: the limit of the settings */
    const char *resume;             /* directory of a run that the task continues; NULL: none */
    bool stays;                     /* after a task the run waits HOST_IDLE_S seconds for the next one */
    const char *path;               /* file of the image (WORK_PICTURE) */
    struct screen_rect region;      /* area of the view in pixels (WORK_LOOK); w 0: the whole view */
    int max_side;                   /* limit of the image's longer side in pixels; 0: HOST_PICTURE_SIDE */
    bool marks;                     /* draw the refs of elements (WORK_LOOK) */
    struct elements_order elements; /* WORK_ELEMENTS */
};

/* Opens a host and reads its secrets.  settings and argv are borrowed; the settings name the place
 * (run/place.h).  settings NULL: nothing can be started, for tests of messages.  Returns NULL with e. */
struct host *host_open(const struct run_settings *settings, const char *build, int argc, char **argv,
                       struct err *e);
/* Stops all runs and errands, waits until they have ended, and frees h.  NULL is allowed. */
void host_close(struct host *h);

int host_fd(const struct host *h); /* descriptor that is readable while events are queued */
/* Returns the next event, owned by the caller, and sets *whose to its work; NULL: no event is queued.  Frees
 * the work whose "done" was returned last. */
json_t *host_next(struct host *h, struct work **whose);

/* Returns the name of the display of all runs and errands of this process (run/place.h); "" without
 * settings. */
const char *host_display(const struct host *h);
/* Returns -1 with e if a caller names a display (not NULL or "") other than that of this host. */
int host_check_display(const struct host *h, const char *display, struct err *e);
/* Returns whether --confirm lets the calling program answer questions itself. */
bool host_caller_answers(const struct host *h);
/* Returns a copy of text in which the values of secrets are replaced by their names; the caller frees it. */
char *host_mask(const struct host *h, const char *text);

struct work *host_start(struct host *h, const struct work_order *o, struct err *e);
void host_stop(struct work *w);
void host_answer(struct work *w, int question, bool allow);
/* reports that nobody can be asked: the gate denies the action */
void host_cannot_ask(struct work *w, int question);
/* Passes an action in the dialect "host" to the run: {"name": "click", "arguments": {...}}, or a deed on an
 * element, {"deed": "fill", "ref": 12, "value": "Ana", "picture": false} (deed.c).  Replaces one that was not
 * taken yet. */
void host_act(struct work *w, const char *call);
void host_next_task(struct work *w, const char *task); /* passes the next task to an idle run */
/* announces that no more calls or tasks follow: the run then ends */
void host_finish(struct work *w);
