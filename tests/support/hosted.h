/* hosted.h - the program as another program starts it: lines in, lines out (`holorun mcp`, `holorun acp`).
 *
 *     struct hosted h;
 *     hosted_start(&h, &t, "mcp", SCRIPT);
 *     hosted_say(&h, "{\"jsonrpc\": \"2.0\", ...}");
 *     json_t *answer = hosted_answer(&h, 7);     // to that id; what came before it is kept in h.heard
 *     hosted_end(&h);                            // stdin is closed; its exit code
 *
 * A transcript (tests/hosts makes them with others' clients) is played by hosted_play(): the client's lines go
 * in as they did then, each when the server has said as much as then, and what comes back must be what came then,
 * but for names, times and places that differ from run to run.
 */
#ifndef HOLORUN_TESTS_HOSTED_H
#define HOLORUN_TESTS_HOSTED_H

#include "stage.h"

#include <jansson.h>

/* Requests of a session of MCP: its first one, and a call of a tool. */
#define HELLO                                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\"," \
    "\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}"
#define TOOL(id, name, arguments)                                                                            \
    "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" name             \
    "\",\"arguments\":" arguments "}}"

struct hosted {
    pid_t pid;
    int in; /* its stdin, -1: closed */
    int out;
    struct buf got; /* not looked at yet */
    json_t *heard;  /* what it has said, in order */
    const struct stage *stage;
};

void hosted_start(struct hosted *h, const struct stage *t, const char *command, const char *replies);
void hosted_start_with(struct hosted *h, const struct stage *t, const char *command, const char *replies,
                       const char *const *more);     /* more options, ended by NULL */
void hosted_say(struct hosted *h, const char *line); /* adds the end of the line */
void hosted_bytes(struct hosted *h, const char *data, size_t n);
json_t *hosted_hear(struct hosted *h);           /* the next message, borrowed; fails the test after 20 s */
json_t *hosted_answer(struct hosted *h, int id); /* borrowed */
const json_t *hosted_told(const json_t *answer); /* the structured content of a tool's result; borrowed */
const char *hosted_status(const json_t *answer); /* "status" in it, or "" */
bool hosted_is_error(const json_t *answer);
int hosted_end(struct hosted *h); /* -1: by a signal */

/* event, n: before a line that stops something, the window has seen so many of these; NULL: none. */
void hosted_play(struct hosted *h, const char *path, const char *event, int n);

#endif
