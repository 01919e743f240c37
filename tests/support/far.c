/* far.c - see far.h. */
#include "far.h"

#include "base/clock.h"
#include "base/file.h"
#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- server -------------------------------------------------------------------------------------- */

static char *read_request(int fd)
{
    char *text = xcalloc(FAR_REQUEST, 1);
    size_t len = 0;
    for (;;) {
        ssize_t n = read(fd, text + len, FAR_REQUEST - 1 - len);
        if (n <= 0)
            break;
        len += (size_t)n;
        const char *body = strstr(text, "\r\n\r\n"), *size = strcasestr(text, "content-length:");
        if (body &&
            len >= (size_t)(body + 4 - text) + (size > body || !size ? 0 : strtoul(size + 15, NULL, 10)))
            break;
    }
    return text;
}

static bool send_all(int fd, const char *data, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t sent = send(fd, data + at, n - at, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += (size_t)sent;
    }
    return true;
}

static void send_file(int fd, const char *path)
{
    char *data;
    size_t n;
    if (file_read(path, 64 << 20, &data, &n, NULL) == 0) {
        send_all(fd, data, n);
        free(data);
    }
}

static size_t send_endlessly(int fd, const char *text)
{
    struct buf block;
    size_t sent = 0;
    buf_init(&block, 1 << 20);
    while (block.len < 1 << 16)
        buf_puts(&block, text);
    while (sent < (size_t)1 << 30 && send_all(fd, block.data, block.len))
        sent += block.len;
    buf_free(&block);
    return sent;
}

static void answer(struct far_server *s, int fd, const struct far_turn *t)
{
    const char *cut = strstr(t->reply, "CUT"), *stall = strstr(t->reply, "STALL"),
               *file = strstr(t->reply, "FILE "), *endless = strstr(t->reply, "ENDLESS");
    cut = stall ? stall : file ? file : endless ? endless : cut;
    size_t n = !strcmp(t->reply, "SILENCE") ? 0 : cut ? (size_t)(cut - t->reply) : strlen(t->reply);
    char c;
    for (size_t at = 0; at < n;) {
        size_t piece = t->piece && (size_t)t->piece < n - at ? (size_t)t->piece : n - at;
        if (!send_all(fd, t->reply + at, piece))
            return;
        at += piece;
        if (t->piece)
            clock_sleep_ms(1);
    }
    if (file)
        send_file(fd, file + strlen("FILE "));
    else if (endless)
        s->endless = send_endlessly(fd, endless + strlen("ENDLESS"));
    else if (stall || !strcmp(t->reply, "SILENCE"))
        (void)!read(fd, &c, 1); /* until the client closes */
}

/* Answers one request. Returns whether the connection stays open. */
static bool answer_with(struct far_server *s, int fd)
{
    int slot = s->served % FAR_TURNS;
    free(s->requests[slot]);
    s->requests[slot] = read_request(fd);
    if (!*s->requests[slot])
        return false;
    char *said = s->say(s->arg, s->served++, s->requests[slot]);
    answer(s, fd, &(struct far_turn){said, 0});
    bool stays = strstr(said, "Connection: keep-alive") != NULL;
    free(said);
    return stays;
}

static void *serve(void *arg)
{
    struct far_server *s = arg;
    while (s->say || s->served < s->n) {
        int fd = accept(s->fd, NULL, NULL);
        if (fd < 0 && (errno == ECONNABORTED || errno == EINTR))
            continue;
        if (fd < 0)
            break; /* EINVAL: far_close() */
        if (s->say) {
            while (answer_with(s, fd))
                ;
        } else {
            s->requests[s->served] = read_request(fd);
            answer(s, fd, &s->turns[s->served++]);
        }
        close(fd);
    }
    shutdown(s->fd, SHUT_RDWR); /* refuses a further request instead of letting it wait */
    return NULL;
}

static void listen_here(struct far_server *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    getsockname(s->fd, (struct sockaddr *)&a, &len);
    s->port = ntohs(a.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

void far_open(struct far_server *s, const struct far_turn *turns, int n)
{
    *s = (struct far_server){.turns = turns, .n = n};
    listen_here(s);
}

void far_open_with(struct far_server *s, char *(*say)(void *arg, int n, const char *request), void *arg)
{
    *s = (struct far_server){.say = say, .arg = arg};
    listen_here(s);
}

void far_close(struct far_server *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
    for (int i = 0; i < FAR_TURNS; i++)
        free(s->requests[i]);
}

char *far_address(const struct far_server *s)
{
    return xasprintf("http://127.0.0.1:%d/v1", s->port);
}

char *far_stream(const char *text)
{
    json_t *event = json_pack("{s:[{s:{s:s}}]}", "choices", "delta", "content", text);
    char *json = json_dumps(event, JSON_COMPACT),
         *all = xasprintf(FAR_OK "data: %s\n\n" FAR_STOP FAR_USAGE FAR_DONE, json);
    free(json);
    json_decref(event);
    return all;
}

/* ---- conversation ----------------------------------------------------------------------------------- */

static void load_profile(struct talk *t, const char *profile)
{
    t->endpoint->profile.backoff_s = 0.002;
    if (profile && profile_parse(&t->endpoint->profile, profile, strlen(profile), "profile", &t->e))
        fail_msg("%s", t->e.text);
    t->endpoint->max_images = t->endpoint->profile.max_images;
}

void talk_open(struct talk *t, const struct far_turn *turns, int n, const char *api, const char *dialect,
               const char *profile)
{
    *t = (struct talk){.e = ERR_INIT};
    far_open(&t->server, turns, n);
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/v1/", t->server.port);
    setenv("REMOTE_KEY", "sesame-open", 1);
    const struct endpoint_options o = {.base_url = url, .model = "tiny", .key = "env:REMOTE_KEY", .api = api};
    t->endpoint = endpoint_open(&o, NULL, &t->e);
    if (!t->endpoint)
        fail_msg("%s", t->e.text);
    assert_null(getenv("REMOTE_KEY"));
    load_profile(t, profile);
    t->dialect = dialect_load(dialect ? dialect : "holo3", &t->e);
    if (!t->dialect)
        fail_msg("%s", t->e.text);
    t->llm = llm_remote(t->endpoint, t->dialect, 7, "abc");
    llm_set_cancel(t->llm, &t->stop);
    assert_int_equal(t->llm->ops->begin(t->llm, "You are a test.", &t->e), 0);
}

void talk_close(struct talk *t)
{
    generated_free(&t->g);
    llm_free(t->llm);
    dialect_free(t->dialect);
    endpoint_free(t->endpoint);
    far_close(&t->server);
}

static int speak(struct talk *t)
{
    const struct llm_request r = {.goal = GOAL_STEP,
                                  .think = t->dialect->think,
                                  .alternatives = t->alternatives,
                                  .sampling = {.temperature = 0.5f, .top_p = 1, .max_tokens = 90}};
    generated_free(&t->g);
    return t->llm->ops->speak(t->llm, &r, &t->g, &t->e);
}

int talk_ask(struct talk *t, const char *text)
{
    const struct chat_part part = {.text = text};
    if (text)
        assert_int_equal(t->llm->ops->user(t->llm, &part, 1, CHAT_PLACE_INLINE, &t->e), 0);
    return speak(t);
}

int talk_show(struct talk *t, const char *lead, int w, int h)
{
    struct image im = {0};
    enum chat_place place = t->dialect->image_inline ? CHAT_PLACE_INLINE : CHAT_PLACE_TEMPLATE;
    char *open = xasprintf("%s%s", lead, t->dialect->observation_open);
    assert_int_equal(image_alloc(&im, w, h, &t->e), 0);
    const struct chat_part parts[3] = {
        {.text = open}, {.image = &im}, {.text = t->dialect->observation_close}};
    assert_int_equal(t->llm->ops->user(t->llm, parts, 3, place, &t->e), 0);
    image_free(&im);
    free(open);
    return speak(t);
}

json_t *talk_body(const struct talk *t, int i)
{
    json_t *root = json_loads(strstr(t->server.requests[i], "\r\n\r\n") + 4, 0, NULL);
    assert_non_null(root);
    return root;
}

char *talk_at(const struct talk *t, int i, const char *path)
{
    json_t *root = talk_body(t, i), *at = root;
    char *steps = xstrdup(path), *rest = NULL;
    for (char *s = strtok_r(steps, ".", &rest); s && at; s = strtok_r(NULL, ".", &rest))
        at = json_is_array(at) ? json_array_get(at, strtoul(s, NULL, 10)) : json_object_get(at, s);
    char *text = at ? json_dumps(at, JSON_COMPACT | JSON_ENCODE_ANY) : xstrdup("(nothing)");
    free(steps);
    json_decref(root);
    return text;
}

void talk_expect(const struct talk *t, int i, const char *path, const char *json)
{
    char *text = talk_at(t, i, path);
    if (strcmp(text, json) != 0)
        fail_msg("request %d, %s: %.300s", i, path, text);
    free(text);
}

void talk_ok(const struct talk *t, int rc)
{
    if (rc)
        fail_msg("%s", t->e.text);
}
