/* t_serve_hostile.c - tests harmful clients of `holorun serve`: damaged HTTP, silent connections, compressed
 * bodies and images, schemas of huge grammars.
 */
#include "check.h"
#include "program.h"
#include "served.h"

#include "base/clock.h"
#include "serve/budget.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHAT  "POST /v1/chat/completions HTTP/1.1\r\n"
#define KEY   "Authorization: Bearer " SERVED_TOKEN "\r\n"
#define HELLO "{\"messages\": [{\"role\": \"user\", \"content\": \"hello\"}], \"max_tokens\": 2}"

/* ---- raw connections ---------------------------------------------------------------------------------- */

static int connect_raw(const struct served *v)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)server_port(v->server))};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0);
    return fd;
}

/* Sends a request and returns the status of the reply; 0: closed without one. */
static int status_of(const struct served *v, const char *request)
{
    char reply[4096] = "";
    int fd = connect_raw(v), status = 0;
    size_t n = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    (void)!write(fd, request, strlen(request));
    while (n < 12 && poll(&p, 1, 20000) == 1) {
        ssize_t got = read(fd, reply + n, sizeof reply - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    close(fd);
    return sscanf(reply, "HTTP/1.1 %d", &status) == 1 ? status : 0;
}

static void t_framing(void **state)
{
    static const struct {
        const char *head, *body;
        int status, other; /* other: of some versions of libmicrohttpd; 0: none */
    } cases[] = {
        {CHAT "Host: x\r\n" KEY "Content-Length: 69\r\n", HELLO, 200},
        {"POST /v1/chat/completions HTTP/1.0\r\n" KEY "Content-Length: 69\r\n", HELLO, 200},
        {CHAT "Host: x\r\n" KEY "Transfer-Encoding: chunked\r\n", "45\r\n" HELLO "\r\n0\r\n\r\n", 200},
        {CHAT "Host: x\r\n" KEY "Transfer-Encoding: Chunked\r\n", "45\r\n" HELLO "\r\n0\r\n\r\n", 200},
        {CHAT "Host: x\r\n" KEY "Transfer-Encoding: chunked\r\n", "45;a=b\r\n" HELLO "\r\n0\r\n\r\n", 200,
         400},
        {CHAT "Host: x\r\n" KEY "Content-Length: 69\r\nContent-Length: 69\r\n", HELLO, 400},
        {CHAT "Host: x\r\n" KEY "Content-Length: 69\r\nContent-Length: 3\r\n", HELLO, 400},
        {CHAT "Host: x\r\n" KEY "Content-Length: 69\r\nTransfer-Encoding: chunked\r\n",
         "45\r\n" HELLO "\r\n0\r\n\r\n", 400},
        {CHAT "Host: x\r\n" KEY "Content-Length: +69\r\n", HELLO, 400},
        {CHAT "Host: x\r\n" KEY "Content-Length: 69, 69\r\n", HELLO, 400},
        {CHAT "Host: x\r\n" KEY "Content-Length: -69\r\n", HELLO, 400},
        {CHAT "Host: x\r\n" KEY "Content-Length: 99999999999999999999\r\n", HELLO, 413, 400},
        {CHAT "Host: x\r\n" KEY "Content-Length : 69\r\n", HELLO, 400},
        {CHAT "Host: x\r\n" KEY "Content-Length:\r\n 69\r\n", HELLO, 400},
        {CHAT KEY "Content-Length: 69\r\n", HELLO, 400},
        {CHAT "Host: x\r\nHost: y\r\n" KEY "Content-Length: 69\r\n", HELLO, 400},
        {CHAT "Host: x\r\n" KEY "Transfer-Encoding: gzip, chunked\r\n", "45\r\n" HELLO "\r\n0\r\n\r\n", 400,
         501},
        {CHAT "Host: x\r\n" KEY "Transfer-Encoding: chunked\r\n", "0x45\r\n" HELLO "\r\n0\r\n\r\n", 400},
        {CHAT "Host: x\r\n" KEY "Transfer-Encoding: chunked\r\n", "-1\r\n" HELLO "\r\n0\r\n\r\n", 400},
        {CHAT "Host: x\r\n" KEY "Transfer-Encoding: chunked\r\n", "45\r\n" HELLO "0\r\n\r\n", 400},
    };
    struct served v;
    int wrong = 0;
    served_open(&v, NULL);
    assert_int_equal(strlen(HELLO), 69);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *request = xasprintf("%s\r\n%s", cases[i].head, cases[i].body);
        int status = status_of(&v, request);
        bool right = status == cases[i].status || (cases[i].other && status == cases[i].other);
        if (!right)
            print_error("%s: %d\n", cases[i].head, status);
        wrong += !right;
        free(request);
    }
    assert_int_equal(wrong, 0);
    served_close(&v);
}

static void few(struct service_options *o, struct server_options *s)
{
    s->max_requests = 8;
}

static void t_silent(void **state)
{
    enum { SILENT = 300 };
    struct served v;
    int fds[SILENT];
    served_open(&v, few);
    for (int i = 0; i < SILENT; i++) {
        fds[i] = connect_raw(&v);
        if (i % 3 == 0)
            (void)!write(fds[i], CHAT "Host: x\r\nX-Slow: ", strlen(CHAT) + 17);
    }
    int64_t start = clock_ns();
    struct said r = served_chat(&v, served_request("Still there?", 1, 3));
    assert_int_equal(r.status, 200);
    check_note("a request behind %d silent connections takes %.2f s", SILENT, clock_ms_since(start) / 1000);
    said_free(&r);
    int closed = 0;
    for (int i = 0; i < SILENT; i++) { /* by the deadline for a request's headers */
        struct pollfd p = {.fd = fds[i], .events = POLLIN};
        closed += poll(&p, 1, closed == i ? 30000 : 0) == 1;
        close(fds[i]);
    }
    assert_int_equal(closed, SILENT);
    check_note("the last of them is closed after %.0f s", clock_ms_since(start) / 1000);
    served_close(&v);
}

/* ---- TLS --------------------------------------------------------------------------------------------- */

static void with_tls(struct service_options *o, struct server_options *s)
{
    s->cert = "tests/cases/serve/cert.pem";
    s->key = "tests/cases/serve/key.pem";
}

static CURLcode get_with(const char *url, long version)
{
    CURL *c = curl_easy_init();
    char *address = xasprintf("%s/health", url);
    curl_easy_setopt(c, CURLOPT_URL, address);
    curl_easy_setopt(c, CURLOPT_CAINFO, "tests/cases/serve/cert.pem");
    /* otherwise the client refuses old versions */
    curl_easy_setopt(c, CURLOPT_SSL_CIPHER_LIST, "DEFAULT@SECLEVEL=0");
    curl_easy_setopt(c, CURLOPT_SSLVERSION, version);
    curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(c, CURLOPT_TIMEOUT, 20L);
    CURLcode rc = curl_easy_perform(c);
    curl_easy_cleanup(c);
    free(address);
    return rc;
}

static void t_tls(void **state)
{
    struct served v;
    served_open(&v, with_tls);
    assert_int_equal(get_with(v.url, CURL_SSLVERSION_TLSv1_0 | CURL_SSLVERSION_MAX_TLSv1_0),
                     CURLE_SSL_CONNECT_ERROR);
    assert_int_equal(get_with(v.url, CURL_SSLVERSION_TLSv1_1 | CURL_SSLVERSION_MAX_TLSv1_1),
                     CURLE_SSL_CONNECT_ERROR);
    assert_int_equal(get_with(v.url, CURL_SSLVERSION_TLSv1_2 | CURL_SSLVERSION_MAX_TLSv1_2), CURLE_OK);
    assert_int_equal(get_with(v.url, CURL_SSLVERSION_TLSv1_3 | CURL_SSLVERSION_MAX_TLSv1_3), CURLE_OK);
    served_close(&v);
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

static void narrow(struct service_options *o, struct server_options *s)
{
    s->max_body = 64 << 20;
    s->memory = 32 << 20;
}

static struct said post_repeated(const struct served *v, const char *begin, const char *part, int n,
                                 const char *end)
{
    struct buf b;
    buf_init(&b, 64 << 20);
    buf_puts(&b, begin);
    for (int i = 0; i < n; i++)
        buf_puts(&b, part);
    buf_puts(&b, end);
    struct said r = served_send(v, "/v1/chat/completions", SERVED_TOKEN, b.data, b.len, -1);
    buf_free(&b);
    return r;
}

static void refused(struct said r, int status, const char *says)
{
    if (r.status != status || !strstr(r.text, says))
        fail_msg("%d, not %d: %.300s", r.status, status, r.text);
    said_free(&r);
}

/* Begins a request of 30 MiB, which the server waits for. */
static int begin_large(const struct served *v)
{
    int fd = connect_raw(v);
    dprintf(fd, CHAT "Host: x\r\n" KEY "Content-Length: %d\r\n\r\n{", 30 << 20);
    return fd;
}

static void t_bodies(void **state)
{
    struct served v;
    served_open(&v, narrow);
    refused(post_repeated(&v, "{\"messages\": [", "[],", 1 << 20, "0]}"), 400, "more than 200000 values");
    refused(
        post_repeated(&v, "{\"messages\": [{\"role\": \"user\", \"content\": \"", "\xff", 4 << 20, "\"}]}"),
        400, "not a JSON object");
    refused(
        post_repeated(&v, "{\"messages\": [{\"role\": \"user\", \"content\": \"", "words ", 1 << 20, "\"}]}"),
        400, "does not fit the model's context");
    /* one request may exceed the memory, a second one then has to wait */
    int fd = begin_large(&v);
    struct said r = {0};
    for (int i = 0; i < 200 && r.status != 503; i++) {
        if (i) { /* its body is discarded, because the memory of the request before it was not free yet */
            close(fd);
            fd = begin_large(&v);
        }
        said_free(&r);
        clock_sleep_ms(20);
        r = served_chat(&v, served_request("Me too.", 0, 3));
        clock_sleep_ms(20);
    }
    assert_string_equal(r.retry_after, "1");
    refused(r, 503, "--request-memory");
    close(fd);
    for (int i = 0; i < 200 && (i == 0 || r.status != 200); i++) {
        if (i)
            said_free(&r);
        r = served_chat(&v, served_request("Now?", 0, 3));
        clock_sleep_ms(20);
    }
    assert_int_equal(r.status, 200);
    said_free(&r);
    served_close(&v);
}

static void *wait_for_room(void *arg)
{
    return (void *)(intptr_t)budget_wait(arg, 60, NULL);
}

static void t_budget(void **state)
{
    struct budget *b = budget_new(100);
    pthread_t t;
    void *got;
    volatile int gone = 1;
    assert_true(budget_try(b, 150)); /* alone */
    assert_false(budget_try(b, 1));
    assert_false(budget_wait(b, 1, &gone));
    pthread_create(&t, NULL, wait_for_room, b);
    clock_sleep_ms(30);
    budget_release(b, 150);
    pthread_join(t, &got);
    assert_true(got != NULL);
    assert_true(budget_try(b, 40));
    assert_false(budget_try(b, 1));
    budget_release(b, 100);
    assert_int_equal(budget_used(b), 0);
    budget_free(b);
}

/* ---- pictures -------------------------------------------------------------------------------------------- */

struct bits {
    struct buf *out;
    unsigned held, n;
};

static void put_bits(struct bits *b, unsigned value, unsigned n)
{
    b->held |= value << b->n;
    for (b->n += n; b->n >= 8; b->n -= 8, b->held >>= 8)
        buf_putc(b->out, (char)b->held);
}

static void put_number(struct buf *out, uint32_t n)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        buf_putc(out, (char)(n >> shift));
}

/* Writes 1 + 258 n zero bytes as a zlib stream: a literal, and n copies of 258 bytes with fixed codes. */
static void put_zeros(struct buf *out, unsigned n)
{
    struct bits b = {.out = out};
    buf_put(out, "\x78\x01", 2);
    put_bits(&b, 3, 3);
    put_bits(&b, 0x0c, 8); /* codes begin with their highest bit */
    for (unsigned i = 0; i < n; i++)
        put_bits(&b, 0xa3, 13);
    put_bits(&b, 0, 7 + 7);
    put_number(out, ((1 + 258 * n) % 65521) << 16 | 1);
}

static uint32_t crc_of(const char *p, size_t n)
{
    uint32_t c = ~0u;
    for (size_t i = 0; i < n; i++) {
        c ^= (unsigned char)p[i];
        for (int k = 0; k < 8; k++)
            c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
    }
    return ~c;
}

/* Adds a chunk after the header of a PNG whose profile or text unpacks to 16 MiB. */
static void add_bomb(struct buf *out, const char *png, size_t len, const char *kind)
{
    enum { AT = 33 }; /* after IHDR */
    struct buf chunk;
    buf_init(&chunk, 1 << 20);
    buf_put(&chunk, kind, 4);
    buf_put(&chunk, "x\0\0", 3);
    put_zeros(&chunk, (16 << 20) / 258);
    buf_put(out, png, AT);
    put_number(out, (uint32_t)chunk.len - 4);
    buf_put(out, chunk.data, chunk.len);
    put_number(out, crc_of(chunk.data, chunk.len));
    buf_put(out, png + AT, len - AT);
    buf_free(&chunk);
}

static void t_pictures(void **state)
{
    static const char *const kinds[] = {"iCCP", "zTXt"};
    struct image im = tiny_image(40, 30, 7);
    struct served v;
    struct err e = ERR_INIT;
    void *png;
    uint64_t len;
    served_open(&v, NULL);
    assert_int_equal(image_encode_png(&im, &png, &len, NULL), 0);
    json_t *parts = json_array();
    for (int i = 0; i < 20; i++) {
        struct buf file, url;
        struct image same = {0};
        buf_init(&file, 1 << 20);
        buf_init(&url, 1 << 20);
        if (i < 2) {
            add_bomb(&file, png, len, kinds[i]);
            assert_int_equal(image_parse_png(&same, file.data, file.len, &e), 0);
            assert_true(image_equal(&im, &same));
            image_free(&same);
            buf_puts(&url, "data:image/png;base64,");
            buf_put_base64(&url, file.data, file.len);
            json_array_append_new(
                parts, json_pack("{s:s, s:{s:s}}", "type", "image_url", "image_url", "url", url.data));
        } else {
            json_array_append(parts, json_array_get(parts, (size_t)i % 2));
        }
        buf_free(&file);
        buf_free(&url);
    }
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    struct said r = served_chat(&v, json_pack("{s:[{s:s, s:o}], s:i}", "messages", "role", "user", "content",
                                              parts, "max_tokens", 2));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    assert_int_equal(r.status, 200);
    check_note("20 pictures that carry 16 MiB each take %.1f s of CPU time",
               (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9);
    said_free(&r);
    free(png);
    image_free(&im);
    served_close(&v);
}

/* ---- schemas --------------------------------------------------------------------------------------------- */

static void t_schemas(void **state)
{
    static const struct {
        const char *schema, *says;
    } cases[] = {
        {"{\"type\": \"string\", \"pattern\": \"^(((((((()){256}){256}){256}){256}){256}){256}){256}$\"}",
         "too many repetitions"},
        {"{\"type\": \"string\", \"pattern\": \"^((a{256}){256}){256}$\"}", "the grammar is too large"},
        {"{\"type\": \"array\", \"minItems\": 256, \"items\": {\"type\": \"array\", \"minItems\": 256, \"items\": "
         "{\"type\": \"array\", \"minItems\": 256, \"items\": {}}}}",
         "the grammar is too large"},
    };
    struct served v;
    served_open(&v, NULL);
    for (int stream = 0; stream < 2; stream++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            json_t *body = served_with(served_request("x", 0, 5), stream ? "{\"stream\": true}" : "{}");
            json_t *schema = json_loads(cases[i].schema, 0, NULL);
            json_object_set_new(body, "response_format",
                                json_pack("{s:s, s:{s:s, s:o}}", "type", "json_schema", "json_schema", "name",
                                          "a", "schema", schema));
            refused(served_chat(&v, body), 400, cases[i].says);
        }
    struct said r = served_chat(&v, served_request("Still there?", 0, 3));
    assert_int_equal(r.status, 200);
    said_free(&r);
    served_close(&v);
}

/* ---- random requests ----------------------------------------------------------------------------------- */

static void t_fuzz(void **state)
{
    if (!program_exists("python3"))
        skip();
    char *line = xasprintf("python3 tests/scripts/serve_fuzz.py %s --seconds 10 --rest 3 --seed %llu",
                           program_path(), (unsigned long long)check_seed());
    int rc = system(line);
    free(line);
    assert_int_equal(rc, 0);
}

static const struct CMUnitTest tests[] = {
    CLAIM("requests with an ambiguous end or host are refused", t_framing),
    CLAIM("300 silent connections block no request, and are closed", t_silent),
    CLAIM("TLS before 1.2 is refused", t_tls),
    CLAIM("compressed bodies are refused; bodies beyond the memory get 503 and Retry-After", t_bodies),
    CLAIM("a budget admits requests that fit, and any single one", t_budget),
    CLAIM("profiles and texts in images are not unpacked", t_pictures),
    CLAIM("a small schema of a huge grammar fails its request with 400", t_schemas),
    CLAIM("the server survives 10 s of mutated requests and damaged HTTP within its memory", t_fuzz),
};

CHECK_MAIN()
