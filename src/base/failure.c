/* failure.c - classifies the errors of endpoints, which differ in form from server to server. */
#include "base/failure.h"

#include "base/retry.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALWAYS = 1000, MAX_WORDS = 1024, LONGEST_S = 86400 };

static const struct {
    const char *name;
    enum err_kind exit;
    int tries;
} classes[FAILURE_CLASSES] = {
    [FAILURE_NONE] = {"none", ERR_NONE, 1},
    [FAILURE_UNREACHABLE] = {"unreachable", ERR_ENV, ALWAYS},
    [FAILURE_CUT_OFF] = {"reply cut off", ERR_ENV, 5},
    [FAILURE_TIMED_OUT] = {"timed out", ERR_ENV, ALWAYS},
    [FAILURE_CONFLICT] = {"conflict", ERR_ENV, ALWAYS},
    [FAILURE_RATE] = {"rate limited", ERR_ENV, ALWAYS},
    [FAILURE_OVERLOADED] = {"overloaded", ERR_ENV, ALWAYS},
    [FAILURE_SERVER] = {"server error", ERR_ENV, ALWAYS},
    [FAILURE_QUOTA] = {"quota used up", ERR_ENV, 1},
    [FAILURE_KEY] = {"key refused", ERR_ENV, 1},
    [FAILURE_ABSENT] = {"not found", ERR_ENV, 1},
    [FAILURE_MOVED] = {"moved", ERR_ENV, 1},
    [FAILURE_REQUEST] = {"request refused", ERR_MODEL, 1},
    [FAILURE_WITHHELD] = {"reply withheld", ERR_MODEL, 1},
    [FAILURE_REPLY] = {"unusable reply", ERR_MODEL, 3},
    [FAILURE_ALIEN] = {"not an endpoint", ERR_ENV, 1},
};

const char *failure_name(enum failure_class c)
{
    return classes[c].name;
}

enum err_kind failure_exit(enum failure_class c)
{
    return classes[c].exit;
}

int failure_tries(enum failure_class c)
{
    return classes[c].tries;
}

void failure_set(struct failure *f, enum failure_class c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    f->class = c;
    vsnprintf(f->said, sizeof f->said, fmt, ap);
    va_end(ap);
}

/* ---- words in error messages ----------------------------------------------------------------------- */

/* Words of error types, codes and messages, in lower case. The first match decides, so specific words precede
 * general ones. */
static const struct {
    enum failure_class class;
    const char *word;
} words[] = {
    {FAILURE_QUOTA, "insufficient_quota"},
    {FAILURE_QUOTA, "insufficient_user_quota"},
    {FAILURE_QUOTA, "insufficient_balance"},
    {FAILURE_QUOTA, "insufficient balance"},
    {FAILURE_QUOTA, "insufficient credit"},
    {FAILURE_QUOTA, "credit balance"},
    {FAILURE_QUOTA, "no credit"},
    {FAILURE_QUOTA, "out of credit"},
    {FAILURE_QUOTA, "billing_"},
    {FAILURE_QUOTA, "payment required"},
    {FAILURE_KEY, "authentication"},
    {FAILURE_KEY, "unauthorized"},
    {FAILURE_KEY, "unauthenticated"},
    {FAILURE_KEY, "permission"},
    {FAILURE_KEY, "forbidden"},
    {FAILURE_KEY, "invalid_api_key"},
    {FAILURE_KEY, "api_key_invalid"},
    {FAILURE_KEY, "invalid api key"},
    {FAILURE_KEY, "incorrect api key"},
    {FAILURE_KEY, "api key not valid"},
    {FAILURE_KEY, "api key not found"},
    {FAILURE_RATE, "rate_limit"},
    {FAILURE_RATE, "ratelimit"},
    {FAILURE_RATE, "rate limit"},
    {FAILURE_RATE, "rate-limit"},
    {FAILURE_RATE, "resource_exhausted"},
    {FAILURE_RATE, "too many requests"},
    {FAILURE_RATE, "too_many_requests"},
    {FAILURE_RATE, "throttl"},
    {FAILURE_OVERLOADED, "overload"},
    {FAILURE_OVERLOADED, "unavailable"},
    {FAILURE_OVERLOADED, "at capacity"},
    {FAILURE_OVERLOADED, "capacity exceeded"},
    {FAILURE_OVERLOADED, "loading model"},
    {FAILURE_OVERLOADED, "is loading"},
    {FAILURE_OVERLOADED, "busy"},
    {FAILURE_TIMED_OUT, "timeout"},
    {FAILURE_TIMED_OUT, "timed out"},
    {FAILURE_TIMED_OUT, "timed_out"},
    {FAILURE_TIMED_OUT, "deadline"},
    {FAILURE_SERVER, "api_error"},
    {FAILURE_SERVER, "server_error"},
    {FAILURE_SERVER, "internalservererror"},
    {FAILURE_SERVER, "internal server error"},
    {FAILURE_SERVER, "internal_error"},
    {FAILURE_SERVER, "internal error"},
    {FAILURE_SERVER, "bad gateway"},
    {FAILURE_SERVER, "upstream"},
    {FAILURE_SERVER, "out of memory"},
    {FAILURE_SERVER, "try again"},
    {FAILURE_ABSENT, "not_found"},
    {FAILURE_ABSENT, "notfound"},
    {FAILURE_ABSENT, "not found"},
    {FAILURE_ABSENT, "does not exist"},
    {FAILURE_REQUEST, "invalid_request"},
    {FAILURE_REQUEST, "invalidrequest"},
    {FAILURE_REQUEST, "invalid request"},
    {FAILURE_REQUEST, "invalid_argument"},
    {FAILURE_REQUEST, "invalid_prompt"},
    {FAILURE_REQUEST, "invalid_image"},
    {FAILURE_REQUEST, "badrequest"},
    {FAILURE_REQUEST, "bad_request"},
    {FAILURE_REQUEST, "bad request"},
    {FAILURE_REQUEST, "validation"},
    {FAILURE_REQUEST, "unprocessable"},
    {FAILURE_REQUEST, "failed_precondition"},
    {FAILURE_REQUEST, "context_length"},
    {FAILURE_REQUEST, "context_size"},
    {FAILURE_REQUEST, "context length"},
    {FAILURE_REQUEST, "context size"},
    {FAILURE_REQUEST, "context window"},
    {FAILURE_REQUEST, "too_large"},
    {FAILURE_REQUEST, "too large"},
    {FAILURE_REQUEST, "unsupported"},
    {FAILURE_REQUEST, "not supported"},
    {FAILURE_REQUEST, "does not support"},
    {FAILURE_REQUEST, "content_policy"},
    {FAILURE_REQUEST, "content_filter"},
    {FAILURE_REQUEST, "moderation"},
};

enum failure_class failure_of_text(const char *text)
{
    char low[MAX_WORDS];
    size_t n = 0;
    for (; n < sizeof low - 1 && text[n]; n++)
        low[n] = (char)tolower((unsigned char)text[n]);
    low[n] = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(low, words[i].word))
            return words[i].class;
    return FAILURE_NONE;
}

static enum failure_class class_of_status(int status)
{
    switch (status) {
    case 401:
    case 403:
    case 407:
        return FAILURE_KEY;
    case 402:
        return FAILURE_QUOTA;
    case 404:
    case 410:
        return FAILURE_ABSENT;
    case 408:
    case 504:
    case 522:
    case 524:
        return FAILURE_TIMED_OUT;
    case 409:
        return FAILURE_CONFLICT;
    case 429:
        return FAILURE_RATE;
    case 503:
    case 529:
        return FAILURE_OVERLOADED;
    default:
        return status >= 500 ? FAILURE_SERVER : status >= 400 ? FAILURE_REQUEST : FAILURE_MOVED;
    }
}

/* ---- error bodies ------------------------------------------------------------------------------------ */

/* The members of an error body, borrowed. */
struct report {
    const char *message;
    char names[256]; /* type, code, status: words that identify the error */
    int code;        /* an HTTP status found among them; 0: none */
};

static void add_name(struct report *r, const json_t *v)
{
    const char *text = json_string_value(v);
    char *end = NULL;
    long n = json_is_integer(v) ? (long)json_integer_value(v) : text ? strtol(text, &end, 10) : 0;
    if (n >= 400 && n <= 599 && (!end || !*end))
        r->code = r->code ? r->code : (int)n;
    else if (text)
        snprintf(r->names + strlen(r->names), sizeof r->names - strlen(r->names), "%s ", text);
}

/* Returns the text in {"detail": [{"msg"}]}, FastAPI's report of a request that fails validation. */
static const char *first_text(json_t *v)
{
    static const char *const members[] = {"message", "msg", "detail", "error", "raw"};
    const char *text = json_string_value(v);
    json_t *in = json_is_array(v) ? json_array_get(v, 0) : v;
    for (size_t i = 0; !text && i < sizeof members / sizeof *members; i++)
        text = json_string_value(json_object_get(in, members[i]));
    return text ? text : json_string_value(in);
}

static void read_report(struct report *r, json_t *v)
{
    const char *const members[] = {"type", "code", "status", "error_type", "reason"};
    json_t *inner = json_object_get(v, "error");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        add_name(r, json_object_get(v, members[i]));
    const char *message = first_text(v);
    r->message = r->message ? r->message : message;
    if (json_is_object(inner)) { /* {"detail": {"error": {...}}} */
        r->message = message ? message : first_text(inner);
        for (size_t i = 0; i < sizeof members / sizeof *members; i++)
            add_name(r, json_object_get(inner, members[i]));
    }
}

/* Reads the time to wait that some error bodies state: Google's RetryInfo, the headers that OpenRouter passes
 * on, "Please try again in 1.2s", the time until a model is loaded. */
static void read_waits(struct failure *f, json_t *root, json_t *error)
{
    struct retry_hint hint = {0};
    const char *key;
    json_t *v;
    size_t i;
    json_array_foreach(json_object_get(error, "details"), i, v)
    {
        const char *delay = json_string_value(json_object_get(v, "retryDelay"));
        if (delay)
            retry_header(&hint, "retry-after", delay, 0);
    }
    json_object_foreach(json_object_get(json_object_get(error, "metadata"), "headers"), key, v)
    {
        if (json_is_string(v))
            retry_header(&hint, key, json_string_value(v), retry_now());
    }
    f->after = hint.after > 0 ? hint.after : retry_in_text(f->said);
    double loading = json_number_value(json_object_get(root, "estimated_time"));
    f->reset = loading > 0 && loading < LONGEST_S ? loading : hint.reset;
}

static bool present(const json_t *v)
{
    return v && !json_is_null(v) && !json_is_false(v) && !(json_is_string(v) && !json_string_length(v)) &&
           !(json_is_integer(v) && !json_integer_value(v)) && !(json_is_object(v) && !json_object_size(v)) &&
           !(json_is_array(v) && !json_array_size(v));
}

/* Returns the member that reports an error; NULL: none does. */
static json_t *error_in(json_t *root)
{
    static const char *const replies[] = {"choices", "content", "output", "candidates", "data", "response"};
    json_t *error = json_object_get(root, "error"), *errors = json_object_get(root, "errors");
    const char *object = json_string_value(json_object_get(root, "object")),
               *type = json_string_value(json_object_get(root, "type"));
    if (present(error))
        return error;
    if ((object && !strcmp(object, "error")) || (type && !strcmp(type, "error")))
        return root;
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++)
        if (json_object_get(root, replies[i]))
            return NULL;
    if (present(errors))
        return json_is_array(errors) ? json_array_get(errors, 0) : errors;
    if (present(json_object_get(root, "detail")))
        return json_object_get(root, "detail");
    return json_is_string(json_object_get(root, "message")) || json_is_string(json_object_get(root, "msg"))
               ? root
               : NULL;
}

static void describe(struct failure *f, json_t *root, json_t *error, const struct report *r)
{
    const char *raw = first_text(json_object_get(json_object_get(error, "metadata"), "raw"));
    const char *message = r->message ? r->message : first_text(root);
    const char *text = message ? message : *r->names ? r->names : "an error without a message";
    snprintf(f->said, sizeof f->said, "%s", text);
    if (raw)
        snprintf(f->said, sizeof f->said, "%.120s: %.120s", text, raw);
}

bool failure_read(struct failure *f, json_t *root)
{
    root = json_is_array(root) ? json_array_get(root, 0) : root;
    json_t *error = json_is_object(root) ? error_in(root) : NULL;
    struct report r = {0};
    if (!error)
        return false;
    read_report(&r, error);
    if (error != root) { /* {"error": "text", "code": 503} */
        add_name(&r, json_object_get(root, "code"));
        add_name(&r, json_object_get(root, "status"));
        add_name(&r, json_object_get(root, "error_type"));
    }
    *f = (struct failure){.status = r.code};
    describe(f, root, error, &r);
    enum failure_class by_name = failure_of_text(r.names), by_code = FAILURE_NONE;
    if (r.code)
        by_code = class_of_status(r.code);
    if (json_is_array(json_object_get(root, "detail")))
        by_code = by_code ? by_code : FAILURE_REQUEST;
    f->class = by_name == FAILURE_QUOTA || !by_code ? by_name : by_code;
    if (!f->class || f->class == FAILURE_RATE || f->class == FAILURE_REQUEST) {
        enum failure_class by_text = failure_of_text(f->said);
        bool sharper =
            !f->class || by_text == FAILURE_QUOTA || (f->class == FAILURE_REQUEST && by_text == FAILURE_KEY);
        f->class = sharper && by_text ? by_text : f->class;
    }
    f->class = f->class ? f->class : FAILURE_SERVER;
    read_waits(f, root, error);
    return true;
}

void failure_of_status(struct failure *f, int status, const char *body, size_t len)
{
    struct failure in = {0};
    json_auto_t *root = len ? json_loadb(body, len, JSON_ALLOW_NUL, NULL) : NULL;
    enum failure_class class = class_of_status(status);
    bool read = failure_read(&in, root);
    if (!read)
        snprintf(in.said, sizeof in.said, "%.*s", len ? (int)(len < 255 ? len : 255) : 255,
                 len ? body : "no reason given");
    if (in.class == FAILURE_QUOTA && (status == 429 || status == 403 || class == FAILURE_REQUEST))
        class = FAILURE_QUOTA;
    else if (class == FAILURE_REQUEST && (in.class == FAILURE_KEY || in.class == FAILURE_ABSENT) && read)
        class = in.class;
    in.class = class;
    in.status = status;
    *f = in;
}
