/* endpoint.c - opens an endpoint, and adapts to the members and limits that its server rejects. */
#include "remote/endpoint.h"

#include "actions/dialect.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/flag.h"
#include "base/lock.h"
#include "remote/protocol.h"
#include "remote/replayed.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_S = 60 }; /* limit for one request for the list of models, in seconds */

/* ---- findings about the server ------------------------------------------------------------------------- */

bool endpoint_takes(struct endpoint *p, const char *member)
{
    LOCKED(&p->lock);
    return !json_object_get(p->refused, member);
}

const char *endpoint_constraint(struct endpoint *p)
{
    static const char *const ways[] = {"response_format", "structured_outputs", "guided_json", "json_schema"};
    const char *stated = p->profile.constraint;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (endpoint_takes(p, ways[i]) && (!stated || !strcmp(stated, ways[i])))
            return ways[i];
    return "none";
}

/* Adds key to a set (refused or told). Returns whether it was not in it. */
static bool mark(struct endpoint *p, json_t *on, const char *key)
{
    LOCKED(&p->lock);
    bool fresh = !json_object_get(on, key);
    if (fresh)
        json_object_set_new(on, key, json_true());
    return fresh;
}

void endpoint_note(struct endpoint *p, const char *key, const char *text)
{
    if (mark(p, p->told, key))
        warn("%s", text);
}

int endpoint_max_images(struct endpoint *p)
{
    LOCKED(&p->lock);
    return p->max_images;
}

bool endpoint_gives_odds(struct endpoint *p)
{
    pthread_mutex_lock(&p->lock);
    bool told = json_object_get(p->told, NO_ODDS);
    pthread_mutex_unlock(&p->lock);
    return p->protocol == &protocol_chat && !told && endpoint_takes(p, "logprobs") &&
           endpoint_takes(p, "top_logprobs");
}

const char *endpoint_dialect(const struct endpoint *p)
{
    const char *named = NULL;
    if (p->provider)
        named = p->provider->dialect ? p->provider->dialect : dialect_for_name(p->model);
    return p->profile.dialect ? p->profile.dialect
           : p->dialect       ? p->dialect
           : named            ? named
                              : p->protocol->dialect;
}

/* Returns the limit of images that an error message states ("At most 1 image(s) may be provided", "image=1",
 * "2 images are the limit"): the smallest number in a message about images that is below `sent`. */
static int image_limit(const char *message, int sent)
{
    int least = 0;
    if (!strcasestr(message, "image"))
        return 0;
    for (const char *s = message; *s; s += !!*s) {
        if (*s < '0' || *s > '9')
            continue;
        bool alone =
            s == message || !(s[-1] == '.' || s[-1] == '_' || s[-1] == '-' || isalnum((unsigned char)s[-1]));
        long n = strtol(s, (char **)&s, 10);
        if (alone && n >= 1 && n < sent && (!least || n < least))
            least = (int)n;
    }
    return least;
}

static int learn_images(struct endpoint *p, const char *message, int sent)
{
    int limit = sent > 1 ? image_limit(message, sent) : 0;
    pthread_mutex_lock(&p->lock);
    bool fresh = limit && (!p->max_images || limit < p->max_images);
    if (fresh)
        p->max_images = limit;
    pthread_mutex_unlock(&p->lock);
    if (fresh)
        warn("the server accepts %d image%s in a request, not %d: leaving out older screenshots", limit,
             limit == 1 ? "" : "s", sent);
    return fresh;
}

int endpoint_learn(struct endpoint *p, const char *message, const char *const *optional, int sent)
{
    int n = 0;
    for (int i = 0; optional[i]; i++) {
        if (!strstr(message, optional[i]) || !mark(p, p->refused, optional[i]))
            continue;
        const char *next = endpoint_constraint(p);
        bool constraint = !strcmp(optional[i], "response_format") ||
                          !strcmp(optional[i], "structured_outputs") || !strcmp(optional[i], "guided_json") ||
                          !strcmp(optional[i], "json_schema");
        if (constraint && strcmp(next, "none") != 0)
            warn("the server does not accept '%s'; trying '%s'", optional[i], next);
        else
            warn("the server does not accept '%s'; continuing without it%s", optional[i],
                 constraint ? ", so replies are not constrained to the schema" : "");
        n++;
        /* the message may also list the names that the server accepts */
        if (!strncmp(optional[i], "computer_", 9))
            break;
    }
    return n + (n ? 0 : learn_images(p, message, sent));
}

/* ---- opening --------------------------------------------------------------------------------------- */

static int check_list(void *arg, struct http_reply *r, struct failure *f)
{
    json_auto_t *root = json_loadb(r->body.data ? r->body.data : "", r->body.len, 0, NULL);
    bool failed = failure_read(f, root);
    return failed ? -1 : 0;
}

struct opening {
    const volatile int *stop;
    int64_t start; /* clock_ns() */
    double most_s; /* 0: no limit */
    volatile int over;
};

static bool is_late(const struct opening *o)
{
    return o->most_s > 0 && clock_ms_since(o->start) > 1000 * o->most_s;
}

static void check_opening(void *arg)
{
    struct opening *o = arg;
    if (flag_up(o->stop) || is_late(o))
        flag_set(&o->over, 1);
}

/* Reads what `holorun serve` reports of itself with its model. */
static void find_own(struct endpoint *p, const json_t *model)
{
    const char *owner = json_string_value(json_object_get(model, "owned_by")),
               *dialect = json_string_value(json_object_get(model, "dialect"));
    p->own = owner && !strcmp(owner, "holorun");
    p->dialect = p->own && dialect ? xstrdup(dialect) : NULL;
}

/* Sets the model to the only one that the server lists. Fails with the list if there are several. */
static int find_model(struct endpoint *p, double most_s, const volatile int *stop, struct err *e)
{
    struct http_client *c = http_open();
    struct opening o = {.stop = stop, .start = clock_ns(), .most_s = most_s};
    struct http_request q = {
        .stop = &o.over, .on_turn = check_opening, .arg = &o, .whole_s = LIST_S, .max_bytes = 4 << 20};
    const struct endpoint_call call = {.path = "models", .q = &q, .end = check_list};
    struct http_reply r;
    json_auto_t *root = NULL;
    int rc = endpoint_send(p, c, &call, &r, e);
    if (rc == 0) {
        root = json_loadb(r.body.data ? r.body.data : "", r.body.len, 0, NULL);
        json_t *list = json_object_get(root, "data");
        const char *first = json_string_value(json_object_get(json_array_get(list, 0), "id"));
        if (!first)
            rc = err_set(e, ERR_MODEL, "%s lists no models; name one with -m", p->base);
        else if (json_array_size(list) > 1)
            rc = err_set(e, ERR_USAGE, "%s lists %zu models, '%.80s' and others; name one with -m", p->base,
                         json_array_size(list), first);
        else
            p->model = xstrdup(first);
        if (rc == 0)
            find_own(p, json_array_get(list, 0));
    }
    if (rc && !flag_up(stop) && is_late(&o))
        rc = err_set(e, ERR_TIME, "%s: listing the models timed out after %.3g s", p->base, most_s);
    http_reply_free(&r);
    http_close(c);
    return rc;
}

/* Checks the form of the base address. It appears in messages and recordings, so a part that may be a key is
 * refused. */
static int check_address(const char *base, struct err *e)
{
    size_t scheme = !strncasecmp(base, "http://", 7) ? 7 : !strncasecmp(base, "https://", 8) ? 8 : 0;
    const char *host = base + scheme, *at = memchr(host, '@', strcspn(host, "/?#"));
    if (!scheme || !*host || strchr("/?#", *host))
        return err_set(e, ERR_USAGE,
                       "--base-url '%.100s': expected an address such as http://127.0.0.1:8000/v1",
                       strchr(base, '@') || strchr(base, '?') ? "..." : base);
    if (at)
        return err_set(e, ERR_USAGE,
                       "--base-url contains a user name or password before '@'; pass the key with "
                       "--key env:VAR or file:PATH");
    if (host[strcspn(host, "?#")])
        return err_set(e, ERR_USAGE,
                       "--base-url contains '%c', but request paths are appended to it; pass a "
                       "key with --key env:VAR or --key file:PATH",
                       host[strcspn(host, "?#")]);
    return 0;
}

static char *without_slash(const char *url)
{
    char *s = xstrdup(url);
    for (size_t n = strlen(s); n && s[n - 1] == '/'; n--)
        s[n - 1] = 0;
    return s;
}

/* Reads the profile given with --profile, else the one saved by `holorun doctor`. The saved one was not
 * requested by the user, so it is ignored with a warning if it cannot be read. */
static int open_profile(struct endpoint *p, const char *path, struct err *e)
{
    struct err ignored = ERR_INIT;
    if (path)
        return profile_load(&p->profile, path, e);
    autofree char *kept = p->model ? profile_kept(p->base, p->model, &ignored) : NULL;
    if (kept && file_exists(kept) && profile_load(&p->profile, kept, &ignored))
        warn("%s; 'holorun doctor --base-url' writes it again", ignored.text);
    return 0;
}

static int open_key(struct endpoint *p, const char *key, struct err *e)
{
    if (!key)
        return 0;
    static const char front[] = "secret KEY";
    autofree char *spec = xasprintf("KEY=%s", key);
    struct err why = ERR_INIT;
    int rc = secrets_open(&p->key, (const char *const[]){spec, NULL}, &why);
    size_t skip = strncmp(why.text, front, strlen(front)) ? 0 : strlen(front);
    return rc ? err_set(e, why.kind, "%s%s", skip ? "--key" : "", why.text + skip) : 0;
}

/* Reads the key given with --key, else the one in the provider's environment variable. */
static int open_named_key(struct endpoint *p, const char *key, struct err *e)
{
    const char *variable = p->provider ? p->provider->variable : NULL, *value;
    if (key || !variable || p->replayed)
        return open_key(p, key, e);
    value = getenv(variable);
    if (!value || !*value)
        return err_set(
            e, ERR_USAGE,
            "--provider %s: the environment variable %s, which holds the key, is not set; set it, or "
            "give --key env:VAR or file:PATH",
            p->provider->name, variable);
    autofree char *spec = xasprintf("env:%s", variable);
    return open_key(p, spec, e);
}

/* Returns the base address. If it comes from the environment, the provider is ignored, so that its key is not
 * sent to another server. */
static const char *address_of(const struct endpoint_options *o)
{
    bool own = o->base_url && o->base_url != getenv("HOLORUN_BASE_URL");
    return o->provider && !own ? o->provider->base_url : o->base_url;
}

/* Opens a recording. Model and protocol are those of its first request. */
static int open_replayed(struct endpoint *p, const char *dir, struct err *e)
{
    if (!(p->replayed = replayed_open(dir, e)))
        return -1;
    free(p->model);
    p->model = xstrdup(replayed_model(p->replayed));
    p->protocol = protocol_of_path(replayed_path(p->replayed));
    return 0;
}

struct endpoint *endpoint_open(const struct endpoint_options *o, const volatile int *stop, struct err *e)
{
    struct endpoint *p = xcalloc(1, sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    profile_init(&p->profile);
    const char *model = o->model && *o->model ? o->model : o->provider ? o->provider->model : NULL;
    p->base = without_slash(address_of(o));
    p->provider = o->provider;
    p->protocol = protocol_named(o->api ? o->api : o->provider ? o->provider->api : NULL);
    p->model = model ? xstrdup(model) : NULL;
    int rc = 0;
    size_t scheme = strlen(REPLAYED_SCHEME);
    if (!strncmp(p->base, REPLAYED_SCHEME, scheme))
        rc = open_replayed(p, p->base + scheme, e);
    else
        rc = check_address(p->base, e);
    rc = rc ? rc : open_named_key(p, o->key, e);
    if (rc == 0 && o->profile)
        rc = open_profile(p, o->profile, e);
    if (rc == 0 && !p->model)
        rc = find_model(p, o->open_s, stop, e);
    if (rc == 0 && !o->profile && !p->replayed)
        rc = open_profile(p, NULL, e);
    p->refused = json_incref(p->profile.leave_out);
    p->told = json_object();
    p->max_images = p->profile.max_images;
    if (!o->api && !p->replayed && p->profile.api)
        p->protocol = protocol_named(p->profile.api);
    if (rc == 0)
        return p;
    endpoint_free(p);
    return NULL;
}

void endpoint_free(struct endpoint *p)
{
    if (!p)
        return;
    secrets_free(p->key);
    replayed_free(p->replayed);
    json_decref(p->refused);
    json_decref(p->told);
    profile_free(&p->profile);
    pthread_mutex_destroy(&p->lock);
    free(p->dialect);
    free(p->model);
    free(p->base);
    free(p);
}
