/* mcp_impl.h - what the parts of the MCP server share.  Private to host/. */
#ifndef HOLORUN_HOST_MCP_IMPL_H
#define HOLORUN_HOST_MCP_IMPL_H

#include "host/mcp.h"

#define MCP_META  "io.modelcontextprotocol/"
#define MCP_TASKS MCP_META "tasks"

enum {
    MCP_RUNS = 64,     /* that have ended and are remembered */
    MCP_PICTURES = 64, /* whose places act understands */
    MCP_POLL_MS = 1000,
    MCP_ASK_MAX = 600, /* wait_s, when it is not said */
};

enum mcp_code { MCP_NEEDS_CAPABILITY = -32021, MCP_OTHER_VERSION = -32022 };

struct mcp_client { /* who asks, as far as it matters for the answer */
    bool modern, elicits, tasks;
    json_t *progress; /* its token, or NULL */
    json_t *ignored;  /* names of arguments that the tool does not have; NULL: not a tool's call */
};

struct mcp_run {
    struct mcp_run *next;
    char id[24], created[28], updated[28];
    struct work *work; /* NULL: it is over */
    char *dir;
    bool hand, stopped;       /* stopped: by the other program */
    struct mcp_client client; /* that started it; without a token */
    int step, frame, seen;    /* seen: a frame that may not be on disk yet; -1: none */
    char *last_action, *thought;
    int question; /* 0: none is open */
    char *question_text;
    char *refused;   /* the question that nobody could be asked last; NULL: none */
    int64_t ask;     /* elicitation/create, while it is open; 0: none */
    json_t *outcome; /* of a hand's act whose call had been answered by a question */
    json_t *result;  /* the event "done" */
};

enum mcp_wait { WAIT_RUN, WAIT_END, WAIT_ACT, WAIT_ERRAND };
struct mcp_call { /* a tools/call without an answer yet */
    struct mcp_call *next;
    json_t *id;
    struct mcp_client client;
    enum mcp_wait wait;
    struct mcp_run *run;
    struct work *errand;
    int64_t until; /* clock_ns() */
    bool picture;
};

struct mcp_picture {
    int id, x, y;            /* of its top left corner in the view */
    double x_scale, y_scale; /* pixels of the view for one of the picture */
};

struct mcp {
    struct rpc *rpc;
    struct host *host;
    const char *version;
    bool initialized, elicits; /* of a session */
    json_t *tools;
    struct mcp_run *runs; /* the newest first */
    struct mcp_call *calls;
    struct mcp_picture pictures[MCP_PICTURES];
    int n_pictures; /* ever sent */
    int log_from;   /* 1 + the level from which messages are sent; 0: none are */
};

/* ---- mcp_result.c: results ---- */

json_t *mcp_server_info(const struct mcp *m);
/* Answers with a result in the form of the client's era.  object is taken over; texts in the result of a
 * tool are cut until the line has at most HOST_REPLY_BYTES. */
void mcp_reply(struct mcp *m, const json_t *id, const struct mcp_client *c, json_t *object);
/* The result of a tool; structured and picture are taken over, and picture may be NULL. */
json_t *mcp_tool_result(json_t *structured, json_t *picture, bool is_error);
void mcp_tool_error(struct mcp *m, const json_t *id, const struct mcp_client *c, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

/* ---- mcp_lists.c: lists, prompts, resources, log messages ---- */

enum mcp_level { MCP_INFO = 1, MCP_NOTICE = 2, MCP_ERROR = 4 };

/* Returns whether the method is one of these; then it has been answered. */
bool mcp_lists_request(struct mcp *m, const json_t *id, const struct mcp_client *c, const char *method,
                       const json_t *params);
/* Adds the time to live and the scope of a cache to a list, in the era that has them.  Returns object. */
json_t *mcp_cacheable(const struct mcp_client *c, json_t *object);
/* Sends a log message about a run, {key: text}, if the client has asked for its level. */
void mcp_log(struct mcp *m, enum mcp_level level, const struct mcp_run *r, const char *key, const char *text);

/* ---- mcp.c: messages ---- */

/* The request elicitation/create about an open question: its params. */
json_t *mcp_question(const struct mcp_run *r);
/* Whether an answer to it is a yes. */
bool mcp_allows(const json_t *answer);

/* ---- mcp_tools.c: tools/call ---- */

/* The tools, without run_answer unless the caller may answer. */
json_t *mcp_tools_list(bool caller_answers);
void mcp_call_tool(struct mcp *m, const json_t *id, const struct mcp_client *c, json_t *params);

/* ---- mcp_runs.c: runs, and calls that wait for them ---- */

struct mcp_run *mcp_run_new(struct mcp *m, struct work *w, const struct mcp_client *c);
struct mcp_run *mcp_run_find(struct mcp *m, const char *id);
/* The live run, which has the display; NULL. */
struct mcp_run *mcp_run_live(struct mcp *m);
void mcp_run_free(struct mcp_run *r);
json_t *mcp_run_state(const struct mcp_run *r);
/* Its result as a tool's, when it is over.  picture: one of look_picture(), or NULL; borrowed. */
json_t *mcp_run_result(struct mcp *m, const struct mcp_run *r, const json_t *picture);
void mcp_answer(struct mcp *m, struct mcp_run *r, bool allow);
/* The answers in inputResponses to the open question of a run. */
void mcp_take_responses(struct mcp *m, struct mcp_run *r, const json_t *responses);
json_t *mcp_input_requests(const struct mcp_run *r);

struct mcp_call *mcp_call_new(struct mcp *m, const json_t *id, const struct mcp_client *c, enum mcp_wait wait,
                              double seconds);
void mcp_call_free(struct mcp *m, struct mcp_call *c);
/* Answers each call that need not wait any longer. */
void mcp_settle(struct mcp *m);
/* A hand's act that ended while no call waited for it is the call's result: false: there is none. */
bool mcp_take_outcome(struct mcp *m, struct mcp_run *r, struct mcp_call *c);
/* The event of a run or an errand, borrowed. */
void mcp_event(struct mcp *m, struct work *w, const json_t *event);
void mcp_cancel(struct mcp *m, const json_t *id);

/* Remembers where a picture lies, adds its number to `told`, and makes it content. */
json_t *mcp_picture(struct mcp *m, const json_t *picture, int x, int y, json_t *told);

/* ---- mcp_tasks.c: the extension ---- */

/* Whether the method is the extension's; then it has been answered. */
bool mcp_tasks_request(struct mcp *m, const json_t *id, const struct mcp_client *c, const char *method,
                       json_t *params);
json_t *mcp_task(const struct mcp_run *r);

#endif
