/* profile.c - reads and writes the JSON profiles of model servers. */
#include "remote/profile.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PROFILE = 1 << 20, TRIES = 12, RETRY_S = 180 };

static const char *const apis[] = {"chat", "responses", "messages", NULL};
static const char *const constraints[] = {
    "response_format", "structured_outputs", "guided_json", "json_schema", "none", NULL};
static const char *const switches[] = {"thinking", "enable_thinking", "reasoning_effort", "none", NULL};
static const char *const fields[] = {"reasoning", "reasoning_content", "none", NULL};

void profile_init(struct profile *p)
{
    *p = (struct profile){.tries = TRIES, .retry_s = RETRY_S, .backoff_s = 1, .leave_out = json_object()};
}

void profile_free(struct profile *p)
{
    free(p->api);
    free(p->constraint);
    free(p->thinking);
    free(p->reasoning);
    free(p->dialect);
    free(p->ca_file);
    json_decref(p->extra);
    json_decref(p->leave_out);
    *p = (struct profile){0};
}

/* ---- members ------------------------------------------------------------------------------------- */

static int read_word(json_t *root, const char *key, const char *const *words, char **to, const char *name,
                     struct err *e)
{
    json_t *v = json_object_get(root, key);
    const char *word = json_string_value(v);
    char list[160] = "";
    for (int i = 0; words[i]; i++) {
        if (word && !strcmp(word, words[i])) {
            free(*to);
            *to = xstrdup(word);
            return 0;
        }
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", words[i]);
    }
    return v ? err_set(e, ERR_USAGE, "%s: '%s' must be one of: %s", name, key, list) : 0;
}

static int read_number(const json_t *root, const char *key, double least, double most, double *to,
                       const char *name, struct err *e)
{
    const json_t *v = json_object_get(root, key);
    double n = json_number_value(v);
    if (v && (!json_is_number(v) || n < least || n > most))
        return err_set(e, ERR_USAGE, "%s: '%s' must be a number from %g to %g", name, key, least, most);
    *to = v ? n : *to;
    return 0;
}

static int read_numbers(struct profile *p, const json_t *root, const char *name, struct err *e)
{
    double images = p->max_images, tries = p->tries;
    if (read_number(root, "connect_s", 0.001, 600, &p->connect_s, name, e) ||
        read_number(root, "first_byte_s", 0.001, 3600, &p->first_s, name, e) ||
        read_number(root, "idle_s", 0.001, 3600, &p->idle_s, name, e) ||
        read_number(root, "retry_s", 0, 86400, &p->retry_s, name, e) ||
        read_number(root, "backoff_s", 0.001, 60, &p->backoff_s, name, e) ||
        read_number(root, "max_images", 1, 64, &images, name, e) ||
        read_number(root, "tries", 1, 20, &tries, name, e))
        return -1;
    p->max_images = (int)images;
    p->tries = (int)tries;
    return 0;
}

static int read_price(struct profile *p, json_t *price, const char *name, struct err *e)
{
    const char *currency = json_string_value(json_object_get(price, "currency"));
    if (!price)
        return 0;
    if (!json_is_object(price))
        return err_set(e, ERR_USAGE, "%s: 'price' must be an object", name);
    if (read_number(price, "prompt", 0, 1e6, &p->price_prompt, name, e))
        return -1;
    p->price_cached = p->price_prompt;
    snprintf(p->currency, sizeof p->currency, "%s", currency && *currency ? currency : "USD");
    return read_number(price, "cached", 0, 1e6, &p->price_cached, name, e) ||
                   read_number(price, "reply", 0, 1e6, &p->price_reply, name, e)
               ? -1
               : 0;
}

static int check_known(json_t *root, const char *name, struct err *e)
{
    /* base_url, model and probed occur in the file that `holorun doctor` saves. */
    static const char *const known[] = {"api",       "constraint", "thinking", "send_reasoning", "max_images",
                                        "leave_out", "tries",      "idle_s",   "first_byte_s",   "connect_s",
                                        "request",   "price",      "dialect",  "ca_file",        "base_url",
                                        "model",     "probed",     "retry_s",  "backoff_s"};
    const char *key;
    char hint[NAME_HINT];
    json_t *v;
    json_object_foreach(root, key, v)
    {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && strcmp(known[i], key) != 0)
            i++;
        if (i == sizeof known / sizeof *known)
            return err_set(e, ERR_USAGE, "%s: unknown key '%s'%s", name, key,
                           name_hint(hint, key, known, sizeof known / sizeof *known));
    }
    return 0;
}

static void read_name(const json_t *v, char **to)
{
    if (!v)
        return;
    free(*to);
    *to = xstrdup(json_string_value(v));
}

static int read_profile(struct profile *p, json_t *root, const char *name, struct err *e)
{
    json_t *v, *leave = json_object_get(root, "leave_out"), *request = json_object_get(root, "request"),
               *dialect = json_object_get(root, "dialect"), *ca = json_object_get(root, "ca_file");
    size_t i;
    if (check_known(root, name, e) || read_word(root, "api", apis, &p->api, name, e) ||
        read_word(root, "constraint", constraints, &p->constraint, name, e) ||
        read_word(root, "thinking", switches, &p->thinking, name, e) ||
        read_word(root, "send_reasoning", fields, &p->reasoning, name, e) || read_numbers(p, root, name, e) ||
        read_price(p, json_object_get(root, "price"), name, e))
        return -1;
    if ((request && !json_is_object(request)) || (leave && !json_is_array(leave)) ||
        (dialect && !json_is_string(dialect)) || (ca && !json_is_string(ca)))
        return err_set(
            e, ERR_USAGE,
            "%s: 'request' must be an object, 'leave_out' a list of names, 'dialect' and 'ca_file' strings",
            name);
    if (request) {
        json_decref(p->extra);
        p->extra = json_incref(request);
    }
    read_name(dialect, &p->dialect);
    read_name(ca, &p->ca_file);
    json_array_foreach(leave, i, v) if (json_is_string(v))
        json_object_set_new(p->leave_out, json_string_value(v), json_true());
    return 0;
}

/* ---- files ---------------------------------------------------------------------------------------- */

int profile_parse(struct profile *p, const char *text, size_t len, const char *name, struct err *e)
{
    json_error_t je;
    json_auto_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);
    int rc = 0;
    if (json_is_object(root))
        rc = read_profile(p, root, name, e);
    else
        rc = root ? err_set(e, ERR_USAGE, "%s: not a JSON object", name)
                  : err_set(e, ERR_USAGE, "%s:%d: %s", name, je.line, je.text);
    return rc;
}

int profile_load(struct profile *p, const char *path, struct err *e)
{
    autofree char *text = NULL;
    size_t len;
    if (file_read(path, MAX_PROFILE, &text, &len, e))
        return -1;
    return profile_parse(p, text, len, path, e);
}

char *profile_kept(const char *base_url, const char *model, struct err *e)
{
    autofree char *state = file_place(PLACE_STATE, e), *dir = state ? xasprintf("%s/endpoints", state) : NULL;
    char *name = xasprintf("%s\n%s", base_url, model), *path = NULL, hex[65];
    sha256(name, strlen(name), hex);
    if (dir && dir_make(dir, e) == 0)
        path = xasprintf("%s/%.16s.json", dir, hex);
    free(name);
    return path;
}

int profile_keep(const char *path, const char *base_url, const char *model, json_t *found, struct err *e)
{
    json_t *all = file_exists(path) ? json_load_file(path, 0, NULL) : NULL;
    if (!json_is_object(all)) {
        json_decref(all);
        all = json_object();
    }
    json_object_update(all, found);
    json_object_set_new(all, "base_url", json_string(base_url));
    json_object_set_new(all, "model", json_string(model));
    autofree char *text = json_dumps(all, JSON_INDENT(1)), *lines = xasprintf("%s\n", text);
    int rc = file_write(path, lines, strlen(lines), e); /* 0600 */
    json_decref(all);
    return rc;
}

double profile_cost(const struct profile *p, double prompt, double cached, double reply)
{
    double reused = cached > 0 ? cached : 0;
    return ((prompt - reused) * p->price_prompt + reused * p->price_cached + reply * p->price_reply) / 1e6;
}
