/* fuzz_rpc.c - any bytes from another program: as lines for the JSON-RPC core, for `holorun mcp` and
 * `holorun acp`, which start nothing here, and as the configuration file of a host.  Byte 0 selects one;
 * with its highest bit set, the rest is the arguments of a tool, as JSON.
 */
#include "base/json.h"
#include "base/utf8.h"
#include "host/acp.h"
#include "host/install.h"
#include "host/mcp.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rpc *echoing;

static void echo(void *arg, const json_t *id, const char *method, json_t *params)
{
    if (strlen(method) % 2)
        rpc_reply(echoing, id, json_deep_copy(params));
    else if (strlen(method) % 3)
        rpc_fail(echoing, id, RPC_INTERNAL, NULL, "%s", method);
}

static void notice(void *arg, const char *method, json_t *params)
{
    if (rpc_drop(echoing, json_object_get(params, "id")))
        rpc_ask(echoing, "question", json_object());
}

static void answered(void *arg, int64_t ask, json_t *result, const char *why)
{
    if (ask < 1 || !why)
        bug("an answer to no question");
}

/* Feeds the input in pieces, as from a pipe; every output line is one object or one batch. */
static void feed(struct rpc *r, const uint8_t *data, size_t size)
{
    for (size_t at = 0, n = 1; at < size; at += n, n = n * 3 % 101 + 1)
        rpc_feed(r, (const char *)data + at, n < size - at ? n : size - at);
    rpc_end(r);
    size_t n;
    const char *out = rpc_output(r, &n);
    while (n) {
        const char *end = memchr(out, '\n', n);
        size_t len = end ? (size_t)(end - out) : n;
        json_t *line = json_loadb(out, len, JSON_ALLOW_NUL, NULL);
        if (!end || !(json_is_object(line) || json_is_array(line)))
            bug("a line that is neither an object nor a batch: %.*s", (int)len, out);
        if (memmem(out, len, "\xe2\x80\xa8", 3) || memmem(out, len, "\xc2\x85", 2))
            bug("a line separator within a line: %.*s", (int)len, out);
        json_decref(line);
        n -= len + 1;
        out = end + 1;
    }
}

static void edit(const uint8_t *data, size_t size)
{
    struct err e = ERR_INIT;
    struct buf out;
    const char *const *hosts = install_hosts();
    buf_init(&out, 16 << 20);
    const char *host = hosts[size % 7];
    if (install_edit(host, "/usr/bin/holorun", (const char *)data, size, &out, &e) < 0 && !*e.text)
        bug("a file refused without a reason");
    buf_free(&out);
}

static void call_tool(struct mcp *m, const uint8_t *data, size_t size)
{
    static const char *const tools[] = {"act", "screenshot", "run_task", "run_status", "run_stop", "windows"};
    static const char hello[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                                "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{}}}\n";
    size_t n = utf8_valid_prefix((const char *)data + 1, size - 1);
    json_t *call =
        json_pack("{s:s, s:i, s:s, s:{s:s, s:o}}", "jsonrpc", "2.0", "id", 1, "method", "tools/call",
                  "params", "name", tools[*data % 6], "arguments", json_stringn((const char *)data + 1, n));
    char *line = json_line(call, JSON_COMPACT), *both = xasprintf("%s%s\n", hello, line ? line : "");
    feed(mcp_rpc(m), (const uint8_t *)both, strlen(both));
    free(both);
    free(line);
    json_decref(call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct rpc_handlers handlers = {echo, notice, answered};
    if (!size)
        return 0;
    struct host *h = host_open(NULL, "", 0, NULL, NULL);
    if (*data & 0x80) {
        struct mcp *m = mcp_new(h, "1");
        call_tool(m, data, size);
        mcp_free(m);
    } else if (*data % 4 == 0) {
        echoing = rpc_new(&handlers, NULL);
        feed(echoing, data + 1, size - 1);
        rpc_free(echoing);
    } else if (*data % 4 == 1) {
        struct mcp *m = mcp_new(h, "1");
        feed(mcp_rpc(m), data + 1, size - 1);
        mcp_free(m);
    } else if (*data % 4 == 2) {
        struct acp *a = acp_new(h, "1");
        feed(acp_rpc(a), data + 1, size - 1);
        acp_free(a);
    } else {
        edit(data + 1, size - 1);
    }
    host_close(h);
    return 0;
}
