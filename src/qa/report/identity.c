/* identity.c - compares the identities of results. */
#include "qa/report/identity.h"

#include "actions/dialect.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "remote/endpoint.h"
#include "run/job.h"
#include "session/session.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 2000, SHOWN = 60, MOST_FILE = 1 << 20 };

/* Options that cannot change an outcome, or that may differ between the machines of a fleet. The model
 * counts by its contents. */
static const char *const no_settings[] = {
    "jobs",         "only",   "shard",      "shard-times", "resume-shard", "feed",
    "rerun-failed", "list",   "check",      "fail-fast",   "max-time",     "out",
    "junit",        "tap",    "html",       "json",        "quiet",        "fresh",
    "model",        "device", "threads",    "weights-in",  "state-memory", "base-url",
    "key",          "step",   "ui-display", "break",       "dialect"};

static const char *const file_settings[] = {"policy", "profile"};

/* Replaces the path of a file by the hash of its contents, since the path may differ between machines. */
static void hash_contents(json_t *settings, const char *key)
{
    const char *path = json_string_value(json_object_get(settings, key));
    char *data = NULL, hex[65], text[32];
    size_t n = 0;
    if (!path || file_read(path, MOST_FILE, &data, &n, NULL))
        return;
    sha256(data, n, hex);
    snprintf(text, sizeof text, "contents %.16s", hex);
    json_object_set_new(settings, key, json_string(text));
    free(data);
}

json_t *identity_new(const struct suite *s, const char *version, const char *build, json_t *settings)
{
    json_t *all = json_object();
    autofree char *text = xasprintf("%s%s%s%s", version, *build ? " (" : "", build, *build ? ")" : "");
    for (size_t i = 0; i < sizeof no_settings / sizeof *no_settings; i++)
        json_object_del(settings, no_settings[i]);
    for (size_t i = 0; i < sizeof file_settings / sizeof *file_settings; i++)
        hash_contents(settings, file_settings[i]);
    json_set_text(all, "build", text);
    json_object_set_new(all, "settings", settings);
    json_set_text(all, "selection", s->selection);
    json_object_set_new(all, "suite", suite_identity(s));
    return all;
}

void identity_set_model(json_t *identity, const struct job_model *m, const struct dialect *d)
{
    autofree char *model = m->endpoint ? xstrdup(m->endpoint->model)
                           : m->engine
                               ? xasprintf("%016llx %016llx", (unsigned long long)engine_hash(m->engine),
                                           m->hashed ? (unsigned long long)m->hash : 0)
                               : xstrdup("script");
    autofree char *dialect = d ? xasprintf("%s %s", d->name, d->sha256) : NULL;
    json_set_text(identity, "model", model);
    json_set_text(identity, "dialect", dialect);
}

void identity_copy_model(json_t *identity, const json_t *earlier)
{
    json_object_set(identity, "model", json_object_get(earlier, "model"));
    json_object_set(identity, "dialect", json_object_get(earlier, "dialect"));
}

/* Returns a value as a short text, owned. */
static char *shown(const json_t *v)
{
    autofree char *text = v ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    return xasprintf("%.*s", SHOWN, json_is_string(v) ? json_string_value(v) : text ? text : "none");
}

/* Appends the keys of the suite that differ in any test. Other tests have other values of all keys. */
static void put_suite(struct buf *out, const json_t *a, const json_t *b)
{
    const char *key;
    json_t *v;
    int n = 0;
    if (!json_equal(json_object_get(a, "id"), json_object_get(b, "id"))) {
        buf_printf(out, "the tests of the suite (id)");
        return;
    }
    json_object_foreach((json_t *)a, key, v) if (!json_equal(v, json_object_get(b, key)))
        buf_printf(out, "%s%s", n++ ? "; " : "the suite's ", key);
    if (!n)
        buf_printf(out, "the suite");
}

/* Appends the first setting that differs, as an option. */
static void put_setting(struct buf *out, const json_t *a, const json_t *b)
{
    const char *key;
    json_t *v, *all = json_object();
    json_object_update(all, (json_t *)a);
    json_object_update_missing(all, (json_t *)b);
    json_object_foreach(all, key, v)
    {
        const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);
        if (x && y && json_equal(x, y))
            continue;
        autofree char *p = shown(x), *q = shown(y);
        buf_printf(out, "--%s (%s and %s)", key, p, q);
        break;
    }
    json_decref(all);
}

char *identity_difference(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"suite", "selection", "build", "model", "dialect", "settings"};
    if (!a || !b)
        return xstrdup("their version: one was written by an older holorun");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *x = json_object_get(a, keys[i]), *y = json_object_get(b, keys[i]);
        if ((!x && !y) || (x && y && json_equal(x, y)))
            continue;
        autobuf out = buf_of(MOST_TEXT);
        autofree char *p = shown(x), *q = shown(y);
        if (!strcmp(keys[i], "suite"))
            put_suite(&out, x, y);
        else if (!strcmp(keys[i], "settings"))
            put_setting(&out, x, y);
        else if (!strcmp(keys[i], "selection"))
            buf_printf(&out, "the selected tests (--only, --rerun-failed)");
        else
            buf_printf(&out, "the %s (%s and %s)", keys[i], p, q);
        char *text = xstrdup(out.data ? out.data : keys[i]);
        return text;
    }
    return NULL;
}
