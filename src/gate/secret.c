/* secret.c - see secret.h. */
#include "gate/secret.h"

#include "base/file.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEVELS = 4 }; /* 0: as it is; 2: a reply that is JSON, within an event */

struct secret {
    char name[SECRET_NAME + 1];
    char value[SECRET_MAX + 1];
};

struct secrets { /* in a block of its own pages */
    int n;
    struct secret list[SECRETS_MAX];
};

/* ---- locked memory ---------------------------------------------------------------------------- */

struct block { /* header before the memory returned */
    size_t size;
};

static void *block_new(size_t size)
{
    size_t all = size + sizeof(struct block);
    struct block *b = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED)
        die(ERR_ENV, "out of memory");
    b->size = all;
    if (mlock(b, all)) { /* above RLIMIT_MEMLOCK: it may be swapped */
    }
    madvise(b, all, MADV_DONTDUMP);
    madvise(b, all, MADV_WIPEONFORK);
    return b + 1;
}

static void block_free(void *p)
{
    struct block *b = (struct block *)p - 1;
    size_t all = b->size;
    explicit_bzero(b, all);
    munmap(b, all);
}

struct secrets *secrets_new(void)
{
    return block_new(sizeof(struct secrets));
}

void secrets_free(struct secrets *s)
{
    if (s)
        block_free(s);
}

int secrets_count(const struct secrets *s)
{
    return s ? s->n : 0;
}

const char *secrets_name(const struct secrets *s, int i)
{
    return s->list[i].name;
}

static int read_name(struct secret *one, const char *spec, struct err *e)
{
    size_t n = strcspn(spec, "=");
    bool good = n >= 1 && n <= SECRET_NAME && isalpha((unsigned char)spec[0]);
    for (size_t i = 0; good && i < n; i++)
        good = isalnum((unsigned char)spec[i]) || spec[i] == '_';
    if (!good || spec[n] != '=') /* not quoted: it may be the secret itself */
        return err_set(
            e, ERR_USAGE,
            "--secret expects NAME=env:VARIABLE or NAME=file:PATH, NAME of up to %d letters, digits and _",
            SECRET_NAME);
    for (size_t i = 0; i < n; i++)
        one->name[i] = (char)toupper((unsigned char)spec[i]);
    one->name[n] = 0;
    return 0;
}

static int read_env(struct secret *one, const char *variable, struct err *e)
{
    char *value = getenv(variable);
    size_t n = value ? strlen(value) : 0;
    if (!value)
        return err_set(e, ERR_USAGE, "secret %s: there is no environment variable '%.60s'", one->name,
                       variable);
    if (n > SECRET_MAX)
        return err_set(e, ERR_USAGE, "secret %s is longer than %d bytes", one->name, SECRET_MAX);
    memcpy(one->value, value, n + 1);
    explicit_bzero(value, n); /* also in /proc/PID/environ */
    unsetenv(variable);
    return 0;
}

static int read_secret_file(struct secret *one, const char *path, struct err *e)
{
    char *data;
    size_t len;
    struct err why = ERR_INIT;
    struct stat st;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & S_IWOTH)
        return err_set(e, ERR_USAGE, "secret %s: everybody on this machine can change '%s': chmod go= it",
                       one->name, path);
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & S_IROTH)
        warn("secret %s: everybody on this machine can read '%s': chmod go= it", one->name, path);
    if (file_read(path, SECRET_MAX + 2, &data, &len, &why))
        return err_set(e, ERR_USAGE, "secret %s: %s", one->name, why.text);
    size_t n = len;
    if (n && data[n - 1] == '\n')
        n--;
    if (n && data[n - 1] == '\r')
        n--;
    if (n <= SECRET_MAX)
        memcpy(one->value, data, n);
    bool nul = memchr(data, 0, n) != NULL;
    explicit_bzero(data, len);
    free(data);
    if (n > SECRET_MAX || nul)
        return err_set(e, ERR_USAGE, "secret %s: '%s' holds %s", one->name, path,
                       nul ? "a NUL" : "more than 1024 bytes");
    return 0;
}

/* Short values would match ordinary text; control characters could not be typed. */
static int check_value(struct secret *one, struct err *e)
{
    size_t n = strlen(one->value);
    if (n < SECRET_MIN)
        return err_set(e, ERR_USAGE,
                       "secret %s is shorter than %d bytes: it could not be kept out of records", one->name,
                       SECRET_MIN);
    bool control = false;
    for (size_t i = 0; i < n; i++)
        control = control || (unsigned char)one->value[i] < 0x20 || one->value[i] == 0x7f;
    if (control || utf8_valid_prefix(one->value, n) != n)
        return err_set(e, ERR_USAGE, "secret %s has %s; it cannot be typed", one->name,
                       control ? "a control character" : "bytes that are not UTF-8");
    return 0;
}

/* The next free entry, with the name from spec; NULL with e. */
static struct secret *new_secret(struct secrets *s, const char *spec, struct err *e)
{
    if (s->n == SECRETS_MAX) {
        err_set(e, ERR_USAGE, "more than %d secrets", SECRETS_MAX);
        return NULL;
    }
    struct secret *one = &s->list[s->n];
    if (read_name(one, spec, e))
        return NULL;
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->list[i].name, one->name)) {
            err_set(e, ERR_USAGE, "secret %s is given twice", one->name);
            return NULL;
        }
    return one;
}

int secrets_add_copy(struct secrets *s, const char *spec, const struct secrets *from, struct err *e)
{
    struct secret *one = new_secret(s, spec, e);
    if (!one)
        return -1;
    memcpy(one->value, from->list[0].value, sizeof one->value);
    s->n++;
    return 0;
}

int secrets_add(struct secrets *s, const char *spec, struct err *e)
{
    struct secret *one = new_secret(s, spec, e);
    if (!one)
        return -1;
    const char *from = spec + strlen(one->name) + 1;
    int rc = !strncmp(from, "env:", 4) ? read_env(one, from + 4, e)
             : !strncmp(from, "file:", 5)
                 ? read_secret_file(one, from + 5, e)
                 : err_set(e, ERR_USAGE,
                           "secret %s expects env:VARIABLE or file:PATH: a value on the command line can "
                           "be seen by others",
                           one->name);
    if (rc || check_value(one, e)) {
        explicit_bzero(one, sizeof *one);
        return -1;
    }
    s->n++;
    return 0;
}

void secrets_no_core(void)
{
    static const struct rlimit none = {0, 0};
    prctl(PR_SET_DUMPABLE, 0);
    setrlimit(RLIMIT_CORE, &none);
}

int secrets_open(struct secrets **out, const char *const *specs, struct err *e)
{
    *out = NULL;
    if (!*specs)
        return 0;
    secrets_no_core();
    *out = secrets_new();
    for (; *specs; specs++)
        if (secrets_add(*out, *specs, e)) {
            secrets_free(*out);
            *out = NULL;
            return -1;
        }
    return 0;
}

/* Index of the secret whose {{NAME}} is at p, or -1.  *len: length of {{NAME}}. */
static int name_at(const struct secrets *s, const char *p, size_t *len)
{
    for (int i = 0; p[0] == '{' && p[1] == '{' && i < s->n; i++) {
        size_t n = strlen(s->list[i].name);
        if (!strncasecmp(p + 2, s->list[i].name, n) && p[2 + n] == '}' && p[3 + n] == '}') {
            *len = n + 4;
            return i;
        }
    }
    return -1;
}

int secrets_find_names(const struct secrets *s, const char *text, const char *names[SECRETS_MAX])
{
    bool seen[SECRETS_MAX] = {false};
    int n = 0;
    for (const char *p = text; secrets_count(s) && *p; p++) {
        size_t len;
        int i = name_at(s, p, &len);
        if (i >= 0 && !seen[i]) {
            seen[i] = true;
            names[n++] = s->list[i].name;
        }
    }
    return n;
}

char *secrets_fill(const struct secrets *s, const char *text)
{
    size_t size = 1;
    for (const char *p = text; *p;) {
        size_t len = 1;
        int i = name_at(s, p, &len);
        size += i >= 0 ? strlen(s->list[i].value) : 1;
        p += i >= 0 ? len : 1;
    }
    char *out = block_new(size), *q = out;
    for (const char *p = text; *p;) {
        size_t len = 1;
        int i = name_at(s, p, &len);
        if (i >= 0)
            q = stpcpy(q, s->list[i].value);
        else
            *q++ = *p;
        p += i >= 0 ? len : 1;
    }
    *q = 0;
    return out;
}

void secrets_free_filled(char *filled)
{
    if (filled)
        block_free(filled);
}

/* ---- values in texts -------------------------------------------------------------------------- */

/* The four digits of "\\uXXXX" at p, after `slashes` backslashes; -1: there are none. */
static int escaped_unit(const char *p, const char *end, int slashes)
{
    char digits[5] = "";
    if (end - p < slashes + 5 || strspn(p, "\\") < (size_t)slashes || p[slashes] != 'u')
        return -1;
    memcpy(digits, p + slashes + 1, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? (int)strtol(digits, NULL, 16) : -1;
}

/* Length of the spelling at p of the character `want`, n bytes of UTF-8 at value; 0: it is another.
 * level: how many times the text was quoted as JSON, each of which doubles backslashes. */
static size_t spelling(uint32_t want, const char *value, size_t n, const char *p, const char *end, int level)
{
    int slashes = level ? 1 << (level - 1) : 0;
    size_t left = (size_t)(end - p), quote = (size_t)(1 << level) - 1;
    int unit = level ? escaped_unit(p, end, slashes) : -1;
    if (unit >= 0xd800 && unit < 0xdc00) { /* the first of a pair */
        int low = escaped_unit(p + slashes + 5, end, slashes);
        if (low >= 0xdc00 && want == 0x10000u + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(low - 0xdc00))
            return 2 * ((size_t)slashes + 5);
    } else if (unit >= 0 && (uint32_t)unit == want) {
        return (size_t)slashes + 5;
    }
    if (want == '\\')
        return left > quote && strspn(p, "\\") > quote ? quote + 1 : 0;
    if (want == '"' || (want == '/' && level && *p == '\\')) {
        size_t before = want == '"' ? quote : (size_t)slashes;
        return left > before && strspn(p, "\\") == before && p[before] == (char)want ? before + 1 : 0;
    }
    return left >= n && !memcmp(p, value, n) ? n : 0;
}

/* Length of the value at p in one of its spellings, 0: it is not there.  Any text may quote JSON. */
static size_t value_length(const char *value, const char *p, const char *end)
{
    for (int level = 0; level < LEVELS; level++) {
        const char *at = p, *v = value;
        uint32_t want;
        int n;
        while ((n = utf8_decode(v, strlen(v), &want)) > 0) {
            size_t len = at < end ? spelling(want, v, (size_t)n, at, end, level) : 0;
            if (!len)
                break;
            v += n;
            at += len;
        }
        if (!n)
            return (size_t)(at - p);
    }
    return 0;
}

/* Index of the secret with the longest value at p, or -1.  *len: its length. */
static int value_at(const struct secrets *s, const char *p, const char *end, size_t *len)
{
    int found = -1;
    *len = 0;
    for (int i = 0; i < secrets_count(s); i++) {
        size_t n = value_length(s->list[i].value, p, end);
        if (n > *len) {
            found = i;
            *len = n;
        }
    }
    return found;
}

/* Length of the character or JSON escape at p. */
static size_t escape_length(const char *p, const char *end, bool json)
{
    size_t n = !json || *p != '\\' ? 1 : p + 1 < end && p[1] == 'u' ? 6 : 2;
    return n < (size_t)(end - p) ? n : (size_t)(end - p);
}

static void put_masked(const struct secrets *s, const char *p, const char *end, bool json, struct buf *out)
{
    while (p < end) {
        size_t len;
        int i = value_at(s, p, end, &len);
        if (i >= 0) {
            buf_printf(out, "{{%s}}", s->list[i].name);
        } else {
            len = escape_length(p, end, json);
            buf_put(out, p, len);
        }
        p += len;
    }
}

char *secrets_mask(const struct secrets *s, const char *text)
{
    struct buf out;
    buf_init(&out, 64 << 20);
    put_masked(s, text, text + strlen(text), false, &out);
    char *result = buf_take(&out);
    buf_free(&out);
    return result;
}

bool secrets_contained_in(const struct secrets *s, const char *text)
{
    const char *end = text + strlen(text);
    size_t len;
    for (const char *p = text; p < end; p++)
        if (value_at(s, p, end, &len) >= 0)
            return true;
    return false;
}

/* ---- what looks like a key or password --------------------------------------------------------- */

/* A fixed head followed by the characters of the secret.  No backtracking: time is linear in the text. */
static const struct pattern {
    const char *head; /* compared without regard to case */
    size_t least;     /* minimum length of the secret, so that ordinary words do not match */
    bool word;        /* the head must start a word */
    bool exact;       /* the head is case-sensitive */
} patterns[] = {
    {"bearer ", 8, true, false},
    {"hk-", 12, true, true},
    {"sk-", 12, true, true},
    {"AKIA", 16, true, true},
    {"ASIA", 16, true, true},
    {"password=", 1, false, false},
    {"passwd=", 1, false, false},
    {"pwd=", 1, true, false},
    {"api_key=", 1, false, false},
    {"apikey=", 1, false, false},
    {"access_token=", 1, false, false},
    {"aws_secret_access_key=", 1, false, false},
    {"hai_api_key=", 1, false, false},
};

/* Bytes of the secret's character at p: 1, 2 for a quote or backslash escaped in JSON, 0 at the end. */
static size_t in_secret(const char *p, const char *end)
{
    if (p < end && *p == '\\')
        return p + 1 < end && (p[1] == '"' || p[1] == '\\') ? 2 : 0;
    bool part = p < end && (isalnum((unsigned char)*p) || (*p && strchr("-_.~+/=%!?@#$^*:{}", *p)) ||
                            (unsigned char)*p >= 0x80);
    return part;
}

/* Length of head and secret at p; 0: no match.  *head: length of the head, which stays. */
static size_t match_pattern(const struct pattern *q, const char *text, const char *p, const char *end,
                            size_t *head)
{
    size_t n = strlen(q->head), m = 0;
    if ((size_t)(end - p) < n || (q->exact ? strncmp : strncasecmp)(p, q->head, n) != 0)
        return 0;
    if (q->word && p > text && (isalnum((unsigned char)p[-1]) || p[-1] == '-' || p[-1] == '_'))
        return 0;
    for (size_t k = 1; (k = in_secret(p + n + m, end)); m += k)
        ;
    *head = n;
    return m >= q->least ? n + m : 0;
}

/* Appends text[0..len), the inside of a JSON string, with "[redacted]" for what looks like a key or
 * password; no match crosses a quote or splits an escape. */
static void scrub_patterns(const char *text, size_t len, struct buf *out)
{
    const char *end = text + len;
    for (const char *p = text; p < end;) {
        size_t head = 0, n = 0;
        for (size_t i = 0; !n && i < sizeof patterns / sizeof *patterns; i++)
            n = match_pattern(&patterns[i], text, p, end, &head);
        if (n) {
            buf_put(out, p, head);
            buf_puts(out, "[redacted]");
            p += n;
        } else {
            buf_putc(out, *p++);
        }
    }
}

/* ---- JSON --------------------------------------------------------------------------------------- */

/* The closing quote of the JSON string whose content begins at p, or end. */
static const char *string_end(const char *p, const char *end)
{
    while (p < end && *p != '"')
        p += *p == '\\' && p + 1 < end ? 2 : 1;
    return p;
}

void secrets_scrub_json(const struct secrets *s, struct buf *json)
{
    struct buf out, one;
    buf_init(&out, json->max + (64 << 10));
    buf_init(&one, json->max + (64 << 10));
    const char *end = json->data + json->len;
    for (const char *p = json->data; p < end;) {
        const char *quote = memchr(p, '"', (size_t)(end - p));
        buf_put(&out, p, (size_t)((quote ? quote + 1 : end) - p));
        if (!quote)
            break;
        const char *close = string_end(quote + 1, end);
        buf_clear(&one);
        put_masked(s, quote + 1, close, true, &one);
        scrub_patterns(one.data, one.len, &out);
        p = close < end ? close + 1 : end;
        buf_puts(&out, close < end ? "\"" : "");
    }
    buf_clear(json); /* nothing rather than a leak */
    if (!out.full && !one.full)
        buf_put(json, out.data, out.len);
    explicit_bzero(out.data, out.len);
    buf_free(&out);
    buf_free(&one);
}
