/* fuzz_tape.c - any bytes as recorded exchanges: opened, and replayed to their end with the parsers of all
 * three protocols. */
#include "remote/replayed.h"
#include "remote/reply_body.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct protocol *const protocols[] = {&protocol_chat, &protocol_responses, &protocol_messages};

static int read_piece(void *arg, const char *text, size_t n)
{
    return reply_body_feed(arg, text, n);
}

/* Replays one reply; returns false after the last one. */
static bool play(struct replayed *t, const struct protocol *protocol)
{
    struct reply_body b;
    struct http_reply reply;
    struct err e = ERR_INIT;
    reply_body_begin(&b, protocol);
    const struct http_request q = {.on_data = read_piece, .arg = &b};
    int rc = replayed_next(t, &q, &reply, &e);
    if (rc && !*e.text)
        bug("a refusal without a message");
    if (rc == 0 && reply.status == 200)
        reply_body_end(&b);
    bool further = rc == 0 || !strstr(e.text, "no more replies");
    buf_free(&reply.body);
    reply_body_free(&b);
    return further;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/fuzz-tape-XXXXXX.jsonl";
    int fd = mkstemps(path, 6);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
    struct err e = ERR_INIT;
    struct replayed *t = replayed_open(path, &e);
    unlink(path);
    if (!t && !*e.text)
        bug("a refusal without a message");
    if (t && (!replayed_path(t) || !replayed_model(t)))
        bug("a recording without its first request");
    for (int i = 0; t && play(t, protocols[i % 3]); i++)
        ;
    replayed_free(t);
    return 0;
}
