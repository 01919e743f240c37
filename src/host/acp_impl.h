/* acp_impl.h - state and functions shared by the parts of the ACP agent.  Private to host/. */
#pragma once

#include "host/acp.h"

struct acp_session {
    struct acp_session *next;
    char id[40];
    char *dir;         /* directory of the newest record; NULL: none yet */
    struct work *work; /* the live run, working or idle between two prompts; NULL: none */
    bool idle;
    json_t *prompt;    /* id of the request that waits for the end of the turn; NULL: none */
    char *task;        /* a task passed to a run that has not begun it yet; NULL: none */
    bool cancelled;    /* the client has cancelled this turn */
    int calls;         /* number of tool calls so far; the last one is the current call */
    bool called;       /* the current call has not been completed */
    int seen;          /* frame on which the current step was decided; -1: none */
    int question;      /* number of the open question; 0: none is open */
    int64_t ask;       /* number of the request for permission; 0: none */
    int pictures;      /* number of images that are still being fetched */
    char *stop_reason; /* the turn has ended and its answer waits for the images; NULL: it has not */

    const struct status_row *ended; /* status of the run of the last turn; NULL: none has ended */
};

struct acp_picture { /* an image for a tool call that is being fetched */
    struct acp_picture *next;
    struct work *errand;
    struct acp_session *session;
    int call;
};

struct acp {
    struct rpc *rpc;
    struct host *host;
    const char *version;
    struct acp_session *sessions;
    struct acp_picture *pictures;
};

/* ---- acp.c: messages ---- */

/* Sends session/update of this kind.  Takes ownership of update. */
void acp_update(struct acp *a, const struct acp_session *s, const char *kind, json_t *update);
/* Sends a text as a chunk of this kind, such as "agent_message_chunk".  Does nothing if the text is NULL or
 * empty. */
void acp_say(struct acp *a, const struct acp_session *s, const char *kind, const char *text);
/* Begins the task with a new run, which continues the session's record if the session has one.  Returns -1
 * with e. */
int acp_begin(struct acp *a, struct acp_session *s, const char *task, struct err *e);
/* Ends the turn with a stop reason; the answer is sent after its last image.  reason NULL: only sends an
 * answer that waited for images. */
void acp_end_turn(struct acp *a, struct acp_session *s, const char *reason);
void acp_fail_turn(struct acp *a, struct acp_session *s, const char *why);

/* ---- acp_updates.c: events of a run as updates ---- */

void acp_event(struct acp *a, struct work *w, const json_t *event);
/* Sends the updates for one event of a record, live or loaded. */
void acp_show(struct acp *a, struct acp_session *s, const char *kind, const json_t *event);

/* ---- acp_sessions.c: the records that belong to a session ---- */

/* Appends the run's directory to the session's file, so that another process can load the session.  Warns on
 * failure. */
void acp_remember(const struct acp_session *s, const char *dir);
/* Sends the conversation from a session's records and sets s->dir to the newest one.  Returns -1 with e if
 * the session or all its records are missing. */
int acp_recall(struct acp *a, struct acp_session *s, struct err *e);
