/* mcp_impl.h - state and functions shared by the parts of the MCP server.  Private to host/. */
#pragma once

#include "host/mcp.h"

#define MCP_META  "io.modelcontextprotocol/"
#define MCP_TASKS MCP_META "tasks"

enum {
    MCP_RUNS = 64,     /* number of runs that are kept, ended ones included */
    MCP_PICTURES = 64, /* number of latest images to whose pixels `act` may refer */
    MCP_POLL_MS = 1000,
    MCP_ASK_MAX = 600, /* default of wait_s, in seconds */
};

enum mcp_code { MCP_NEEDS_CAPABILITY = -32021, MCP_OTHER_VERSION = -32022 };

struct mcp_client { /* properties of the client that determine the form of an answer */
    bool modern, elicits, tasks;
    json_t *progress; /* its progress token; NULL: none */
    json_t *ignored;  /* names of arguments that the tool does not have; NULL: not a tools/call */
};

struct mcp_run {
    struct mcp_run *next;
    char id[24], created[28], updated[28];
    struct work *work; /* NULL: the run has ended */
    char *dir;
    bool hand, stopped;       /* stopped: by the client */
    struct mcp_client client; /* the client that started the run, without its token */
    int step, frame, seen;    /* seen: a frame that may not be on disk yet; -1: none */
    char *last_action, *thought;
    int question; /* number of the open question; 0: none is open */
    char *question_text;
    char *refused;   /* the last question that nobody could be asked; NULL: none */
    int64_t ask;     /* number of the open elicitation/create; 0: none */
    json_t *outcome; /* result of a call to act that was answered by a question first; NULL: none */
    json_t *result;  /* the event "done"; NULL: the run has not ended */
};

enum mcp_wait { WAIT_RUN, WAIT_END, WAIT_ACT, WAIT_ERRAND };
struct mcp_call { /* a tools/call without an answer yet */
    struct mcp_call *next;
    json_t *id;
    struct mcp_client client;
    enum mcp_wait wait;
    struct mcp_run *run;
    struct work *errand;
    int64_t until; /* time limit of the wait, as clock_ns() */
    bool picture;
};

struct mcp_picture {
    int id, x, y;            /* x, y: position of its top left corner in the view */
    double x_scale, y_scale; /* pixels of the view per pixel of the image */
};

struct mcp {
    struct rpc *rpc;
    struct host *host;
    const char *version;
    bool initialized, elicits; /* state of the session */
    json_t *tools;
    struct mcp_run *runs; /* newest first */
    struct mcp_call *calls;
    struct mcp_picture pictures[MCP_PICTURES];
    int n_pictures; /* number of images ever sent */
    int log_from;   /* 1 + the lowest level that is sent; 0: no messages are sent */
};

/* ---- mcp_result.c: results ---- */

json_t *mcp_server_info(const struct mcp *m);
/* Answers with a result in the form of the client's protocol version.  Takes ownership of object.  Texts in
 * the result of a tool are truncated until the line has at most HOST_REPLY_BYTES. */
void mcp_reply(struct mcp *m, const json_t *id, const struct mcp_client *c, json_t *object);
/* Returns the result of a tool.  Takes ownership of structured and picture, which may be NULL. */
json_t *mcp_tool_result(json_t *structured, json_t *picture, bool is_error);
/* Returns the result of a tool that is a text, without structured content: hosts show that instead of the
 * text if there is some.  Takes ownership of picture, which may be NULL. */
json_t *mcp_text_result(const char *text, json_t *picture, bool is_error);
void mcp_tool_error(struct mcp *m, const json_t *id, const struct mcp_client *c, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

/* ---- mcp_lists.c: lists, prompts, resources, log messages ---- */

enum mcp_level { MCP_INFO = 1, MCP_NOTICE = 2, MCP_ERROR = 4 };

/* Answers a request for lists, prompts, resources or the log level.  Returns false if the method is none of
 * these. */
bool mcp_lists_request(struct mcp *m, const json_t *id, const struct mcp_client *c, const char *method,
                       const json_t *params);
/* Adds the cache's time to live and scope to a list, if the client's protocol version has them.  Returns
 * object. */
json_t *mcp_cacheable(const struct mcp_client *c, json_t *object);
/* Sends a log message {key: text} about a run, if the client has requested its level.  text NULL: sends
 * nothing. */
void mcp_log(struct mcp *m, enum mcp_level level, const struct mcp_run *r, const char *key, const char *text);

/* ---- mcp.c: messages ---- */

/* Returns the parameters of elicitation/create for the open question of r. */
json_t *mcp_question(const struct mcp_run *r);
/* Returns whether an answer to elicitation/create allows the action. */
bool mcp_allows(const json_t *answer);

/* ---- mcp_tools.c: tools/call ---- */

/* Returns the list of tools, without run_answer unless the caller may answer questions. */
json_t *mcp_tools_list(bool caller_answers);
void mcp_call_tool(struct mcp *m, const json_t *id, const struct mcp_client *c, json_t *params);

/* ---- mcp_runs.c: runs, and calls that wait for them ---- */

struct mcp_run *mcp_run_new(struct mcp *m, struct work *w, const struct mcp_client *c);
struct mcp_run *mcp_run_find(struct mcp *m, const char *id);
/* Returns the live run, which holds the display; NULL: none. */
struct mcp_run *mcp_run_live(struct mcp *m);
void mcp_run_free(struct mcp_run *r);
/* Returns the result of a run as that of a tool.  picture: a result of look_picture(), borrowed, or NULL. */
json_t *mcp_run_result(struct mcp *m, const struct mcp_run *r, const json_t *picture);
void mcp_answer(struct mcp *m, struct mcp_run *r, bool allow);
/* Applies the answer in inputResponses to the open question of a run. */
void mcp_take_responses(struct mcp *m, struct mcp_run *r, const json_t *responses);
json_t *mcp_input_requests(const struct mcp_run *r);

struct mcp_call *mcp_call_new(struct mcp *m, const json_t *id, const struct mcp_client *c, enum mcp_wait wait,
                              double seconds);
void mcp_call_free(struct mcp *m, struct mcp_call *c);
/* Answers each call whose wait is over. */
void mcp_settle(struct mcp *m);
/* Answers c with the result of a call to act that ended while no request waited for it.  Returns false if
 * there is none. */
bool mcp_take_outcome(struct mcp *m, struct mcp_run *r, struct mcp_call *c);
/* Handles an event of a run or an errand; event is borrowed. */
void mcp_event(struct mcp *m, struct work *w, const json_t *event);
void mcp_cancel(struct mcp *m, const json_t *id);

/* Records the position of an image, adds its number to `told`, and returns the image as content; NULL: no
 * image. */
json_t *mcp_picture(struct mcp *m, const json_t *picture, int x, int y, json_t *told);

/* ---- mcp_tasks.c: the extension ---- */

/* Answers a request of the tasks extension.  Returns false if the method is not one of the extension's. */
bool mcp_tasks_request(struct mcp *m, const json_t *id, const struct mcp_client *c, const char *method,
                       json_t *params);
json_t *mcp_task(const struct mcp_run *r);
