/* server.c - the HTTP daemon: address, start and shutdown; see server.h. */
#include "serve/server_impl.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/flag.h"
#include "base/secret.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* NEWCOMERS: connections beyond the limit; each of them closes another one. libmicrohttpd resets further
 * ones. */
enum {
    BACKLOG = 128,
    SPARE_CONNECTIONS = 64,
    NEWCOMERS = 1024,
    HEADER_BYTES = 64 << 10,
    MAX_PEM = 1 << 20,
    DEFAULT_MEMORY = 1 << 30
};

#if MHD_VERSION >= 0x00097601
#define STRICT MHD_OPTION_CLIENT_DISCIPLINE_LVL
#else
#define STRICT MHD_OPTION_STRICT_FOR_CLIENT
#endif

/* TLS 1.2 and later */
static char tls_versions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

/* ---- the address ----------------------------------------------------------------------------------- */

/* Splits "HOST:PORT" into two texts in *copy, which the caller frees. Returns -1 with ERR_USAGE. */
static int split_address(const char *listen, char **copy, char **host, char **port, struct err *e)
{
    char *text = *copy = xstrdup(listen), *colon = strrchr(text, ':'), *end;
    if (!colon || colon == text)
        return err_set(e, ERR_USAGE, "invalid address '%s': expected ADDRESS:PORT", listen);
    if (strtol(colon + 1, NULL, 10) > UINT16_MAX)
        return err_set(e, ERR_USAGE, "invalid address '%s': the port must be at most %d", listen, UINT16_MAX);
    *colon = 0;
    *port = colon + 1;
    *host = text;
    if (*text == '[' && (end = strchr(text, ']'))) {
        *end = 0;
        *host = text + 1;
    }
    return 0;
}

static struct addrinfo *resolve(const char *listen, struct err *e)
{
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    char *copy, *host = NULL, *port = NULL;
    if (split_address(listen, &copy, &host, &port, e) == 0) {
        int rc = getaddrinfo(host, port, &hints, &list);
        if (rc)
            err_set(e, ERR_USAGE, "cannot listen on '%s': %s", listen, gai_strerror(rc));
    }
    free(copy);
    return list;
}

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* Opens a listening socket. Returns -1 with e on failure. */
static int open_socket(const struct server_options *o, struct err *e)
{
    struct addrinfo *list = resolve(o->listen, e);
    int one = 1;
    if (!list)
        return -1;
    if (!is_loopback(list->ai_addr) && !o->cert && !o->insecure) {
        freeaddrinfo(list);
        return err_set(e, ERR_USAGE,
                       "'%s' is reachable from other machines: use --cert and --cert-key, or --insecure",
                       o->listen);
    }
    int fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, list->ai_addr, list->ai_addrlen) || listen(fd, BACKLOG)) {
        err_set(e, ERR_ENV, "cannot listen on '%s': %s", o->listen, strerror(errno));
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    freeaddrinfo(list);
    return fd;
}

static int port_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a;
    socklen_t n = sizeof a;
    memset(&a, 0, sizeof a);
    if (getsockname(fd, &a.any, &n))
        return 0;
    return ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
}

/* ---- the daemon ------------------------------------------------------------------------------------ */

/* Registers connections. The kernel drops peers that do not acknowledge data for 60 s. */
static void on_connection(void *arg, struct MHD_Connection *c, void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct server *v = arg;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD),
                                   *from = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    int one = 1, patience = 60000;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED && *socket_context)
        connection_close(v->connections, *socket_context);
    if (what != MHD_CONNECTION_NOTIFY_STARTED || !info)
        return;
    *socket_context = connection_open(v->connections, info->connect_fd, from ? from->client_addr : NULL);
    setsockopt(info->connect_fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(info->connect_fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(info->connect_fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof patience);
}

/* Receives libmicrohttpd's messages, mostly about clients that disconnect early. */
static void on_complaint(void *arg, const char *format, va_list list)
{
    char line[256];
    vsnprintf(line, sizeof line, format, list);
    line[strcspn(line, "\r\n")] = 0;
    if (getenv("HOLORUN_HTTP_VERBOSE"))
        warn("http: %s", line);
}

static int read_pem(const char *path, char **out, struct err *e)
{
    size_t n;
    *out = NULL;
    return path ? file_read(path, MAX_PEM, out, &n, e) : 0;
}

/* Replaces libmicrohttpd's abort(), called for example when a write to its own pipe fails. */
static void on_panic(void *arg, const char *file, unsigned line, const char *why)
{
    die(ERR_ENV, "libmicrohttpd failed: %s", why ? why : "unknown reason");
}

static int start_daemon(struct server *v, struct err *e)
{
    char *cert, *key = NULL;
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL |
                     MHD_USE_ERROR_LOG | MHD_USE_ITC;
    if (read_pem(v->o.cert, &cert, e) || read_pem(v->o.key, &key, e)) {
        free(cert);
        return -1;
    }
    struct MHD_OptionItem items[12] = {
        {MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)on_complaint, v},
        {MHD_OPTION_LISTEN_SOCKET, v->fd, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, v->o.max_requests + SPARE_CONNECTIONS + NEWCOMERS, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, (intptr_t)v->o.idle_s, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, HEADER_BYTES, NULL},
        {STRICT, 1, NULL},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)exchange_end, v},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, v}};
    int n = 8;
    if (cert) {
        flags |= MHD_USE_TLS;
        items[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0, tls_versions};
        items[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, cert};
        items[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, key};
    }
    items[n] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    MHD_set_panic_func(on_panic, NULL);
    v->daemon =
        MHD_start_daemon(flags, 0, NULL, NULL, exchange_step, v, MHD_OPTION_ARRAY, items, MHD_OPTION_END);
    if (key)
        explicit_bzero(key, strlen(key));
    free(key);
    free(cert);
    if (v->daemon)
        return 0;
    return err_set(e, v->o.cert ? ERR_USAGE : ERR_ENV, "cannot start the HTTP server%s",
                   v->o.cert ? ": check that certificate and key are matching PEM files" : "");
}

static void server_free(struct server *v)
{
    in_flight_free(v->in_flight);
    connections_free(v->connections);
    budget_free(v->bodies);
    budget_free(v->service->pictures);
    v->service->pictures = NULL;
    pthread_mutex_destroy(&v->trainer);
    free(v);
}

struct server *server_start(struct service *s, const struct server_options *o, struct err *e)
{
    secrets_no_core(); /* protects the token and the key of the certificate */
    int fd = open_socket(o, e);
    if (fd < 0)
        return NULL;
    struct server *v = xcalloc(1, sizeof *v);
    v->service = s;
    v->o = *o;
    v->fd = fd;
    v->port = port_of(fd);
    v->in_flight = in_flight_new(o->max_requests);
    v->connections = connections_new(o->max_requests + SPARE_CONNECTIONS);
    size_t memory = o->memory ? o->memory : DEFAULT_MEMORY;
    v->bodies = budget_new(memory / 2);
    s->pictures = budget_new(memory / 2);
    pthread_mutex_init(&v->trainer, NULL);
    if (start_daemon(v, e) == 0)
        return v;
    close(fd);
    server_free(v);
    return NULL;
}

int server_port(const struct server *v)
{
    return v->port;
}

static int wait_for_end(struct server *v, double seconds, const volatile int *hurry)
{
    int64_t start = clock_ns();
    int n;
    while ((n = in_flight_count(v->in_flight)) && clock_ms_since(start) < seconds * 1000 && !flag_up(hurry))
        clock_sleep_ms(20);
    return n;
}

int server_drain(struct server *v, double seconds, const volatile int *hurry)
{
    in_flight_close(v->in_flight);
    if (!v->drained)
        close(MHD_quiesce_daemon(v->daemon));
    v->drained = true;
    int cut = wait_for_end(v, seconds, hurry);
    if (cut) {
        in_flight_end(v->in_flight, IN_FLIGHT_CANCEL);
        wait_for_end(v, 60, NULL);
    }
    return cut;
}

void server_stop(struct server *v)
{
    MHD_stop_daemon(v->daemon);
    if (!v->drained)
        close(v->fd);
    server_free(v);
}
