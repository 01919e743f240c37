/* acp_impl.h - what the parts of the ACP agent share.  Private to host/. */
#ifndef HOLORUN_HOST_ACP_IMPL_H
#define HOLORUN_HOST_ACP_IMPL_H

#include "host/acp.h"

struct acp_session {
    struct acp_session *next;
    char id[40];
    char *dir;         /* of its newest record; NULL: none yet */
    struct work *work; /* live: at work, or idle between two prompts; NULL: none */
    bool idle;
    json_t *prompt;    /* the id of the request that waits for the end of the turn; NULL: none */
    char *task;        /* handed to a run that was idle and has not begun it yet */
    bool cancelled;    /* by the client, in this turn */
    int calls;         /* tool calls so far, of which the last is at hand */
    bool called;       /* it is open */
    int seen;          /* the frame on which it was decided; -1: none */
    int question;      /* 0: none is open */
    int64_t ask;       /* the request for permission */
    int pictures;      /* that are still being fetched */
    char *stop_reason; /* the turn has ended, and its answer waits for them */

    const struct status_row *ended; /* how the run of the last turn ended; NULL: none has */
};

struct acp_picture { /* a picture for a tool call that is being fetched */
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

void acp_update(struct acp *a, const struct acp_session *s, const char *kind,
                json_t *update); /* taken over */
/* Text as a chunk: "agent_message_chunk", ... */
void acp_say(struct acp *a, const struct acp_session *s, const char *kind, const char *text);
/* Begins the task with a run of its own, from the session's record if there is one. */
int acp_begin(struct acp *a, struct acp_session *s, const char *task, struct err *e);
/* The turn is over. */
void acp_end_turn(struct acp *a, struct acp_session *s, const char *reason);
void acp_fail_turn(struct acp *a, struct acp_session *s, const char *why);

/* ---- acp_updates.c: what happens in a run, as updates ---- */

void acp_event(struct acp *a, struct work *w, const json_t *event);
/* The updates for one line of a record, live or loaded. */
void acp_show(struct acp *a, struct acp_session *s, const char *kind, const json_t *event);

/* ---- acp_sessions.c: which records belong to a session ---- */

/* Adds the run to the session's file, which is not lost with the process. */
void acp_remember(const struct acp_session *s, const char *dir);
/* Sends the conversation of a session's records and finds its newest one.  -1: there is no such session. */
int acp_recall(struct acp *a, struct acp_session *s, struct err *e);

#endif
