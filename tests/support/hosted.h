/* hosted.h - the program as a child that exchanges lines with its client (`holorun mcp`, `holorun acp`).
 *
 *     struct hosted h;
 *     hosted_start(&h, &t, "mcp", SCRIPT);
 *     hosted_say(&h, "{\"jsonrpc\": \"2.0\", ...}");
 *     json_t *answer = hosted_answer(&h, 7);     // to that id; earlier messages stay in h.heard
 *     hosted_end(&h);                            // closes stdin, returns the exit code
 *
 * hosted_play() replays a transcript, which tests/hosts records with real clients. Each line of the client is
 * sent once the server has sent as many messages as in the transcript. The server's messages must be equal,
 * except for names, times and paths that differ between runs.
 */
#pragma once

#include "stage.h"

#include <jansson.h>

/* First request of an MCP session, and a tool call. */
#define HELLO                                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\"," \
    "\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}"
#define TOOL(id, name, arguments)                                                                            \
    "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" name             \
    "\",\"arguments\":" arguments "}}"

struct hosted {
    pid_t pid;
    int in; /* its stdin; -1: closed */
    int out;
    struct buf got; /* not parsed yet */
    json_t *heard;  /* all received messages in order */
    const struct stage *stage;
};

void hosted_start(struct hosted *h, const struct stage *t, const char *command, const char *replies);
void hosted_start_with(struct hosted *h, const struct stage *t, const char *command, const char *replies,
                       const char *const *more);     /* more options, ended by NULL */
void hosted_say(struct hosted *h, const char *line); /* adds the newline */
void hosted_bytes(struct hosted *h, const char *data, size_t n);
json_t *hosted_hear(struct hosted *h);           /* next message, borrowed; fails the test after 20 s */
json_t *hosted_answer(struct hosted *h, int id); /* borrowed */
const json_t *hosted_told(const json_t *answer); /* structured content of a tool result; borrowed */
const char *hosted_status(const json_t *answer); /* "status" in it, or "" */
bool hosted_is_error(const json_t *answer);
int hosted_end(struct hosted *h); /* exit code; -1: killed by a signal */

/* Replays a transcript. Sends a line that stops the run only after the window has got n events of this name;
 * NULL: at once. */
void hosted_play(struct hosted *h, const char *path, const char *event, int n);
