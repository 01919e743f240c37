/* replayed.c - replays the recorded replies of a run instead of using the network. */
#include "remote/replayed.h"

#include "base/file.h"

#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RECORDING = 1 << 30, PIECE = 4096 };

struct replayed {
    pthread_mutex_t lock;
    json_t *exchanges;
    size_t next;
    char *name;
};

static int read_lines(struct replayed *t, const char *text, size_t len, struct err *e)
{
    int line = 0;
    for (size_t at = 0; at < len; line++) {
        const char *end = memchr(text + at, '\n', len - at);
        if (!end) /* a run that was killed leaves a partial line */
            break;
        json_t *one = json_loadb(text + at, (size_t)(end - text) - at, 0, NULL);
        if (!json_is_object(one) || !json_is_string(json_object_get(one, "reply"))) {
            json_decref(one);
            return err_set(e, ERR_USAGE, "'%s': line %d is not a recorded request", t->name, line + 1);
        }
        json_array_append_new(t->exchanges, one);
        at = (size_t)(end - text) + 1;
    }
    return json_array_size(t->exchanges)
               ? 0
               : err_set(e, ERR_USAGE, "'%s' contains no recorded requests", t->name);
}

struct replayed *replayed_open(const char *dir, struct err *e)
{
    struct replayed *t = xcalloc(1, sizeof *t);
    autofree char *text = NULL;
    size_t len = 0, n = strlen(dir);
    pthread_mutex_init(&t->lock, NULL);
    t->exchanges = json_array();
    t->name = n > 6 && !strcmp(dir + n - 6, ".jsonl") ? xstrdup(dir) : xasprintf("%s/exchanges.jsonl", dir);
    int rc = file_read(t->name, MAX_RECORDING, &text, &len, e);
    rc = rc ? rc : read_lines(t, text, len, e);
    if (rc == 0)
        return t;
    replayed_free(t);
    return NULL;
}

void replayed_free(struct replayed *t)
{
    if (!t)
        return;
    json_decref(t->exchanges);
    pthread_mutex_destroy(&t->lock);
    free(t->name);
    free(t);
}

const char *replayed_path(const struct replayed *t)
{
    const char *path = json_string_value(json_object_get(json_array_get(t->exchanges, 0), "path"));
    return path ? path : "";
}

const char *replayed_model(const struct replayed *t)
{
    const json_t *request = json_object_get(json_array_get(t->exchanges, 0), "request");
    const char *model = json_string_value(json_object_get(request, "model"));
    return model ? model : "?";
}

/* Passes a body to the reader in pieces, as it would arrive from a network. */
static void give(const struct http_request *q, const char *text, size_t len, struct http_reply *out)
{
    out->received = len > 0;
    for (size_t at = 0, n; at < len; at += n) {
        n = len - at < PIECE ? len - at : PIECE;
        if (q->on_data(q->arg, text + at, n))
            return;
    }
}

int replayed_next(struct replayed *t, const struct http_request *q, struct http_reply *out, struct err *e)
{
    *out = (struct http_reply){0};
    buf_init(&out->body, q->max_bytes ? q->max_bytes : 64 << 20);
    pthread_mutex_lock(&t->lock);
    const json_t *x = json_array_get(t->exchanges, t->next);
    t->next += x != NULL;
    pthread_mutex_unlock(&t->lock);
    if (!x)
        return err_set(e, ERR_ENV, "'%s' contains no more replies after %zu", t->name, t->next);
    const json_t *reply = json_object_get(x, "reply");
    const char *error = json_string_value(json_object_get(x, "error"));
    out->status = (int)json_integer_value(json_object_get(x, "status"));
    if (!out->status)
        return err_set(e, ERR_ENV, "recorded: %s", error ? error : "no reply");
    if (out->status == 200 && q->on_data)
        give(q, json_string_value(reply), json_string_length(reply), out);
    else
        buf_put(&out->body, json_string_value(reply), json_string_length(reply));
    return 0;
}
