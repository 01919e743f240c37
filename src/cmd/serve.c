/* serve.c - `holorun serve`: serves the model of this process to clients: Chat Completions over HTTP.
 *
 * The address goes to stdout once the server accepts requests; everything else goes to stderr.  SIGTERM and
 * SIGINT let running requests finish first; a second signal aborts them. */
#include "cmd/commands.h"

#include "base/feature.h"
#include "base/file.h"
#include "base/flag.h"
#include "capacity/memory.h"
#include "checkpoint/find.h"
#include "serve/server.h"
#include "serve/service.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings {
    MODEL_SETTINGS;
    const char *dialect, *name, *listen, *token_file, *cert, *cert_key, *spill;
    bool insecure, trainer;
    int requests, conversations;
    size_t max_body, memory;
    double drain, idle;
};

static const struct option_spec options[] = {
    MODEL_OPTIONS(struct settings),
    {"dialect", 0, OPTION_TEXT, offsetof(struct settings, dialect), "NAME", 0, 4096, NULL,
     "determines the position of images in a turn; default: the model's own", NULL, .show = OPTION_MORE},
    {"served-name", 0, OPTION_TEXT, offsetof(struct settings, name), "NAME", 0, 256, NULL,
     "name of the model for clients; default: the name of its directory", NULL},
    {"listen", 0, OPTION_TEXT, offsetof(struct settings, listen), "ADDRESS:PORT", 0, 256, "127.0.0.1:8717",
     "address to listen on, port 0 for a free one; an address that other machines can reach needs --cert",
     NULL, .group = "network"},
    {"token-file", 0, OPTION_TEXT, offsetof(struct settings, token_file), "FILE", 0, 4096, NULL,
     "file with the token that clients must send, created if missing; default: serve.token in the user's "
     "runtime folder",
     NULL},
    {"cert", 0, OPTION_TEXT, offsetof(struct settings, cert), "FILE", 0, 4096, NULL,
     "certificate (PEM): serve HTTPS", NULL},
    {"cert-key", 0, OPTION_TEXT, offsetof(struct settings, cert_key), "FILE", 0, 4096, NULL,
     "the certificate's private key (PEM)", NULL},
    {"insecure", 0, OPTION_FLAG, offsetof(struct settings, insecure),
     .help = "allow other machines to connect without TLS: images and token can then be read on the network"},
    {"max-body", 0, OPTION_SIZE, offsetof(struct settings, max_body), "SIZE", 0, 0, "64M",
     "maximum size of a request body", NULL, .show = OPTION_MORE},
    {"request-memory", 0, OPTION_SIZE, offsetof(struct settings, memory), "SIZE", 0, 0, "1G",
     "memory for all requests: half for bodies (further requests get 503), half for decoded images (further "
     "requests wait)",
     NULL, .show = OPTION_MORE},
    {"idle", 0, OPTION_NUMBER, offsetof(struct settings, idle), "SECONDS", 1, 3600, "60",
     "time after which an idle connection is closed", NULL, .show = OPTION_MORE},
    {"requests", 0, OPTION_INT, offsetof(struct settings, requests), "N", 1, 4096, "64",
     "maximum number of concurrent requests; further ones get HTTP 429", NULL, .group = "load"},
    {"conversations", 0, OPTION_INT, offsetof(struct settings, conversations), "N", 0, 100000, "64",
     "idle conversations kept in memory; the least recently used is evicted first", NULL},
    {"spill", 0, OPTION_TEXT, offsetof(struct settings, spill), "DIR", 0, 4096, NULL,
     "write conversations that do not fit in memory to files in this folder instead of discarding them",
     NULL},
    {"drain", 0, OPTION_NUMBER, offsetof(struct settings, drain), "SECONDS", 0, 86400, "30",
     "time limit for running requests after SIGTERM", NULL, .show = OPTION_MORE},
    {"trainer", 0, OPTION_FLAG, offsetof(struct settings, trainer),
     .help = "allow POST /pause, /update_weights and /resume, with which clients can load other model "
             "directories"},
    {0},
};

const struct command serve_command = {
    "serve",
    "",
    "serve the model over HTTP, in the protocols of OpenAI and Anthropic",
    "Endpoints: GET /v1/models, /health, /metrics; POST /v1/chat/completions with images (PNG or JPEG as "
    "data URLs), streaming, json_schema, tools, top_k, min_p, penalties, log-probabilities and token ids; "
    "/v1/responses and /v1/messages with functions, images and streaming; /v1/responses/input_tokens and "
    "/v1/messages/count_tokens, which count the tokens of a prompt. Responses are not stored. The response "
    "header x-holorun-ignored lists members that had no effect, x-holorun-warning values that were replaced; "
    "an unsupported member that would change the reply is refused. A conversation continues from its cached "
    "state: a turn with a new image prefills only the tokens of that turn. Clients send the token as "
    "Authorization: Bearer TOKEN, or as x-api-key. Exit codes: 0 after SIGTERM if all requests have "
    "finished, 130 if some were aborted.",
    "holorun serve\nholorun serve -m model --listen 0.0.0.0:8443 --cert cert.pem --cert-key key.pem\n"
    "holorun run --base-url http://127.0.0.1:8717/v1 --key file:$XDG_RUNTIME_DIR/holorun/serve.token \"Press "
    "Save\"\n",
    options,
    cmd_serve};

/* ---- the service --------------------------------------------------------------------------------------- */

/* Returns the limit of idle conversations in bytes: a quarter of the machine's memory, so that they do not
 * displace running ones; 0 if --state-memory is given. */
static size_t state_bound(const struct settings *s)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return s->state_memory ? 0 : (size_t)pages * (size_t)page / 4;
}

static int open_service(struct service *v, const struct settings *s, const struct engine_options *model,
                        struct err *e)
{
    const struct service_options o = {.model = *model,
                                      .dialect = s->dialect,
                                      .name = s->name,
                                      .store = {.most = s->conversations,
                                                .bytes = state_bound(s),
                                                .spill = s->spill,
                                                .most_files = 16 * s->conversations}};
    return service_open(v, &o, e);
}

/* ---- signals ------------------------------------------------------------------------------------------- */

/* Blocks the signals; call before the first thread, so that every thread inherits the mask and sigwait()
 * receives them. */
static sigset_t block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return set;
}

struct second { /* the second signal, which aborts the running requests */
    sigset_t set;
    volatile int came;
};

static void *await_second(void *arg)
{
    struct second *s = arg;
    int number;
    sigwait(&s->set, &number);
    flag_set(&s->came, 1);
    return NULL;
}

/* Serves until a signal arrives, then drains the server.  Returns the exit code. */
static int serve_until_signal(struct server *v, const sigset_t *set, double drain)
{
    struct second second = {.set = *set};
    pthread_t waiter;
    int number;
    sigwait(set, &number);
    fprintf(stderr, "holorun: %s: no new requests are accepted; running ones may finish\n",
            strsignal(number));
    bool waits = pthread_create(&waiter, NULL, await_second, &second) == 0;
    int cut = server_drain(v, drain, &second.came);
    if (cut)
        warn("%d requests were aborted", cut);
    if (waits && !flag_up(&second.came))
        kill(getpid(), SIGTERM); /* blocked in every thread: the waiting thread receives it */
    if (waits)
        pthread_join(waiter, NULL);
    return cut ? ERR_STOPPED : 0;
}

/* ---- the command --------------------------------------------------------------------------------------- */

static char *token_path(const struct settings *s, struct err *e)
{
    if (s->token_file)
        return xstrdup(s->token_file);
    char *dir = file_place(PLACE_RUNTIME, e), *path = dir ? xasprintf("%s/serve.token", dir) : NULL;
    free(dir);
    return path;
}

static void print_address(const struct settings *s, const struct server *v, const char *token)
{
    int host = (int)(strrchr(s->listen, ':') - s->listen);
    fprintf(stderr, "holorun: the token is in %s\n", token);
    printf("%s://%.*s:%d/v1\n", s->cert ? "https" : "http", host, s->listen, server_port(v));
    fflush(stdout);
}

static int serve(struct service *service, const struct settings *s, const struct engine_options *model,
                 const sigset_t *set, struct err *e)
{
    autofree char *path = token_path(s, e), *token = path ? server_token(path, e) : NULL;
    const struct server_options o = {.listen = s->listen,
                                     .token = token,
                                     .cert = s->cert,
                                     .key = s->cert_key,
                                     .insecure = s->insecure,
                                     .max_body = s->max_body,
                                     .memory = s->memory,
                                     .max_requests = s->requests,
                                     .idle_s = s->idle,
                                     .trainer = s->trainer,
                                     .model = *model};
    struct server *v = token ? server_start(service, &o, e) : NULL;
    int code = -1;
    if (v) {
        print_address(s, v, path);
        code = serve_until_signal(v, set, s->drain);
        server_stop(v);
    }
    return code;
}

int cmd_serve(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings s = {0};
    struct service service = {0};
    int n = options_parse(&serve_command, &s, argc, argv, &e);
    if (n > 0)
        n = err_set(&e, ERR_USAGE, "serve takes options only, not '%s'", argv[0]);
    if (n >= 0 && !s.cert != !s.cert_key)
        n = err_set(&e, ERR_USAGE, "--cert and --cert-key go together");
    if (n < 0)
        return options_refuse(&serve_command, &e);
    if (feature_require(FEATURE_SERVE, &e))
        return options_failed(&e);
    memory_share_heaps();
    memory_return_large();
    sigset_t set = block_signals();
    struct engine_options model = MODEL_ENGINE(s);
    model.shared = true;
    autofree char *dir = model_find(model.dir, &e);
    model.dir = dir;
    int code = !dir || open_service(&service, &s, &model, &e) ? -1 : serve(&service, &s, &model, &set, &e);
    service_close(&service);
    return code < 0 ? options_failed(&e) : code;
}
