/* secret.c - reads secrets into locked memory and substitutes them for their names; see secret.h. */
#include "base/secret_impl.h"

#include "base/file.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* ---- locked memory ---------------------------------------------------------------------------- */

struct block { /* header in front of the returned memory */
    size_t size;
};

static void *block_new(size_t size)
{
    size_t all = size + sizeof(struct block);
    struct block *b = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED)
        die(ERR_ENV, "out of memory");
    b->size = all;
    if (mlock(b, all)) { /* beyond RLIMIT_MEMLOCK the memory may be swapped */
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
    if (!good || spec[n] != '=') /* not quoted in the message: it may be the secret itself */
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
        return err_set(e, ERR_USAGE, "secret %s: environment variable '%.60s' is not set", one->name,
                       variable);
    if (n > SECRET_MAX)
        return err_set(e, ERR_USAGE, "secret %s is longer than %d bytes", one->name, SECRET_MAX);
    memcpy(one->value, value, n + 1);
    explicit_bzero(value, n); /* erases it in /proc/PID/environ, too */
    unsetenv(variable);
    return 0;
}

static int read_secret_file(struct secret *one, const char *path, struct err *e)
{
    autofree char *data = NULL;
    size_t len;
    struct err why = ERR_INIT;
    struct stat st;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & S_IWOTH)
        return err_set(e, ERR_USAGE, "secret %s: '%s' is writable by every user: run chmod go= on it",
                       one->name, path);
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & S_IROTH)
        warn("secret %s: '%s' is readable by every user: run chmod go= on it", one->name, path);
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
    if (n > SECRET_MAX || nul)
        return err_set(e, ERR_USAGE, "secret %s: '%s' contains %s", one->name, path,
                       nul ? "a NUL" : "more than 1024 bytes");
    return 0;
}

/* Rejects short values, which would match ordinary text, and control characters, which cannot be typed. */
static int check_value(struct secret *one, struct err *e)
{
    size_t n = strlen(one->value);
    if (n < SECRET_MIN)
        return err_set(e, ERR_USAGE,
                       "secret %s is shorter than %d bytes: it would match other text in records", one->name,
                       SECRET_MIN);
    bool control = false;
    for (size_t i = 0; i < n; i++)
        control = control || (unsigned char)one->value[i] < 0x20 || one->value[i] == 0x7f;
    if (control || utf8_valid_prefix(one->value, n) != n)
        return err_set(e, ERR_USAGE, "secret %s has %s; it cannot be typed", one->name,
                       control ? "a control character" : "bytes that are not UTF-8");
    return 0;
}

/* Returns the next free entry with the name from spec, or NULL with e. */
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
    secrets_no_core();
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
    *out = secrets_new();
    for (; *specs; specs++)
        if (secrets_add(*out, *specs, e)) {
            secrets_free(*out);
            *out = NULL;
            return -1;
        }
    return 0;
}

/* Returns the index of the secret whose {{NAME}} is at p, or -1. *len: length of {{NAME}}. */
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
