/* hosted.c - see hosted.h. */
#include "hosted.h"

#include "driven.h"

#include "base/clock.h"

/* cmocka.h needs these headers first */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000, WORDS_MAX = 24, LINE_BYTES = 32 << 20 };

/* ---- program ----------------------------------------------------------------------------------------------
 */

static void run_program(const struct stage *t, const char *command, const char *replies,
                        const char *const *more, int in, int out)
{
    char *script = xvfb_put(&t->x, "script", replies), *runs = xvfb_place(&t->x, "runs");
    char *log = xvfb_place(&t->x, "hosted.log");
    const char *words[WORDS_MAX] = {program_path(), command,      "--quiet",      "--fake", script,
                                    "--runs",       runs,         "--settle-min", "1",      "--settle-quiet",
                                    "30",           "--no-report"};
    for (size_t n = 12; more && *more && n + 1 < WORDS_MAX; more++)
        words[n++] = *more;
    int err = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(in, 0);
    dup2(out, 1);
    dup2(err, 2);
    execv(words[0], (char *const *)(uintptr_t)words);
    _exit(127);
}

void hosted_start(struct hosted *h, const struct stage *t, const char *command, const char *replies)
{
    hosted_start_with(h, t, command, replies, NULL);
}

void hosted_start_with(struct hosted *h, const struct stage *t, const char *command, const char *replies,
                       const char *const *more)
{
    int in[2], out[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    *h = (struct hosted){.pid = fork(), .in = in[1], .heard = json_array(), .stage = t};
    if (h->pid == 0)
        run_program(t, command, replies, more, in[0], out[1]);
    assert_true(h->pid > 0);
    close(in[0]);
    close(out[1]);
    h->out = out[0];
    buf_init(&h->got, LINE_BYTES);
    signal(SIGPIPE, SIG_IGN);
}

void hosted_bytes(struct hosted *h, const char *data, size_t n)
{
    while (n) {
        ssize_t done = write(h->in, data, n);
        if (done <= 0)
            fail_msg("the program no longer reads");
        data += done;
        n -= (size_t)done;
    }
}

void hosted_say(struct hosted *h, const char *line)
{
    hosted_bytes(h, line, strlen(line));
    hosted_bytes(h, "\n", 1);
}

json_t *hosted_hear(struct hosted *h)
{
    struct pollfd p = {.fd = h->out, .events = POLLIN};
    char part[64 << 10], *end;
    while (!(end = h->got.len ? memchr(h->got.data, '\n', h->got.len) : NULL)) {
        if (poll(&p, 1, PATIENCE_MS) < 1) {
            size_t all = json_array_size(h->heard);
            fail_msg("no message after: %.300s", all ? json_dumps(json_array_get(h->heard, all - 1), 0) : "");
        }
        ssize_t n = read(h->out, part, sizeof part);
        if (n <= 0)
            fail_msg("the program has ended");
        buf_put(&h->got, part, (size_t)n);
    }
    size_t n = (size_t)(end - h->got.data) + 1;
    json_t *message = json_loadb(h->got.data, n, JSON_REJECT_DUPLICATES, NULL);
    if (!message)
        fail_msg("not JSON: %.300s", h->got.data);
    memmove(h->got.data, h->got.data + n, h->got.len - n + 1);
    h->got.len -= n;
    json_array_append_new(h->heard, message);
    return message;
}

json_t *hosted_answer(struct hosted *h, int id)
{
    for (;;) {
        json_t *message = hosted_hear(h);
        const json_t *is = json_object_get(message, "id");
        if (json_is_integer(is) && json_integer_value(is) == id && !json_object_get(message, "method"))
            return message;
    }
}

const json_t *hosted_told(const json_t *answer)
{
    return json_object_get(json_object_get(answer, "result"), "structuredContent");
}

const char *hosted_status(const json_t *answer)
{
    const char *text = json_string_value(json_object_get(hosted_told(answer), "status"));
    return text ? text : "";
}

bool hosted_is_error(const json_t *answer)
{
    return json_is_true(json_object_get(json_object_get(answer, "result"), "isError"));
}

int hosted_end(struct hosted *h)
{
    int status = 0;
    if (h->in >= 0)
        close(h->in);
    h->in = -1;
    for (int i = 0; i < PATIENCE_MS / 5; i++) {
        if (waitpid(h->pid, &status, WNOHANG) == h->pid) {
            close(h->out);
            buf_free(&h->got);
            json_decref(h->heard);
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        }
        clock_sleep_ms(5);
    }
    kill(h->pid, SIGKILL);
    waitpid(h->pid, &status, 0);
    fail_msg("it did not end");
    return -1;
}

/* ---- transcripts ------------------------------------------------------------------------------------------ */

/* Removes the image path from a question. */
static char *without_places(const char *text)
{
    char *out = xstrdup(text), *at = strstr(out, "\npicture: ");
    if (at)
        *at = 0;
    return out;
}

/* Removes members that differ between two equal runs. */
static json_t *normal(const json_t *v)
{
    static const char *const vary[] = {
        "run_id",       "taskId",    "requestState", "sessionId", "seconds", "run_dir",
        "report",       "createdAt", "data",         "display",   "version", "lastUpdatedAt",
        "instructions", "window",    "picture_id",   "requestId", "place",   NULL};
    const char *key;
    json_t *one, *out;
    size_t i;
    if (json_is_string(v)) {
        /* a tool result repeats its content as text */
        json_t *inner = json_loads(json_string_value(v), 0, NULL);
        char *text = without_places(inner ? "(JSON)" : json_string_value(v));
        out = json_string(text);
        free(text);
        json_decref(inner);
        return out;
    }
    if (json_is_array(v)) {
        out = json_array();
        json_array_foreach(v, i, one) json_array_append_new(out, normal(one));
        return out;
    }
    if (!json_is_object(v))
        return json_deep_copy(v);
    out = json_object();
    json_object_foreach((json_t *)(uintptr_t)v, key, one)
    {
        bool varies = false;
        if (!strcmp(key, "report"))
            continue;
        for (i = 0; vary[i]; i++)
            varies = varies || !strcmp(vary[i], key);
        if (!varies && !strcmp(key, "tools") && json_is_array(one)) {
            json_t *names = json_array(), *tool;
            json_array_foreach(one, i, tool)
                json_array_append(names, json_is_string(tool) ? tool : json_object_get(tool, "name"));
            json_object_set_new(out, key, names);
        } else {
            json_object_set_new(out, key, varies ? json_string("(varies)") : normal(one));
        }
    }
    return out;
}

/* Returns whether the message is the image of a step, which may arrive late. */
static bool is_picture(const json_t *message)
{
    const json_t *update = json_object_get(json_object_get(message, "params"), "update");
    const json_t *first = json_array_get(json_object_get(update, "content"), 0);
    const char *type = json_string_value(json_object_get(json_object_get(first, "content"), "type"));
    return type && !strcmp(type, "image");
}

/* Maps the ids that the server chose in the transcript to the current ones ("run_id", "sessionId"). */
static void learn_names(const json_t *then, const json_t *now, json_t *names)
{
    const char *key;
    json_t *one;
    size_t i;
    if (json_is_string(then) && json_is_string(now) && json_string_length(then) > 15)
        json_object_set(names, json_string_value(then), (json_t *)(uintptr_t)now);
    json_object_foreach((json_t *)(uintptr_t)then, key, one)
        learn_names(one, json_object_get(now, key), names);
    json_array_foreach(then, i, one) learn_names(one, json_array_get(now, i), names);
}

static json_t *renamed(const json_t *v, const json_t *names)
{
    const char *key;
    json_t *one, *out;
    size_t i;
    if (json_is_string(v)) {
        json_t *now = json_object_get(names, json_string_value(v));
        return now ? json_deep_copy(now) : json_deep_copy(v);
    }
    if (json_is_array(v)) {
        out = json_array();
        json_array_foreach(v, i, one) json_array_append_new(out, renamed(one, names));
        return out;
    }
    if (!json_is_object(v))
        return json_deep_copy(v);
    out = json_object();
    json_object_foreach((json_t *)(uintptr_t)v, key, one) json_object_set_new(out, key, renamed(one, names));
    return out;
}

static void compare(struct hosted *h, const char *path, const json_t *then, json_t *names)
{
    json_t *now = hosted_hear(h);
    while (is_picture(now))
        now = hosted_hear(h);
    json_t *a = normal(then), *b = normal(now);
    if (!json_equal(a, b))
        fail_msg("%s:\nthen: %s\nnow:  %s", path, json_dumps(a, JSON_SORT_KEYS),
                 json_dumps(b, JSON_SORT_KEYS));
    learn_names(then, now, names);
    json_decref(a);
    json_decref(b);
}

static bool stops(const json_t *line)
{
    const char *method = json_string_value(json_object_get(line, "method"));
    const char *tool = json_string_value(json_object_get(json_object_get(line, "params"), "name"));
    return (method && strstr(method, "cancel")) || (tool && !strcmp(tool, "run_stop"));
}

void hosted_play(struct hosted *h, const char *path, const char *event, int n)
{
    static char text[LINE_BYTES];
    FILE *f = fopen(path, "r");
    json_t *names = json_object();
    if (!f)
        fail_msg("%s cannot be opened", path);
    while (fgets(text, sizeof text, f)) {
        json_t *entry = json_loads(text, 0, NULL), *line = json_object_get(entry, "line");
        assert_non_null(line);
        if (!strcmp(json_string_value(json_object_get(entry, "from")), "client")) {
            json_t *now = renamed(line, names);
            char *dump = json_dumps(now, JSON_COMPACT);
            if (event && stops(line))
                driven_wait(h->stage, event, n);
            hosted_say(h, dump);
            free(dump);
            json_decref(now);
        } else if (!is_picture(line)) {
            compare(h, path, line, names);
        }
        json_decref(entry);
    }
    fclose(f);
    json_decref(names);
}
