/* set.c - reads a grounding set: see eval.h. */
#include "eval/eval.h"

#include "base/file.h"
#include "base/sha256.h"
#include "base/utf8.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines -------------------------------------------------------------------------------------- */

json_t *eval_line(const char *line, size_t len, size_t max, struct err *e)
{
    json_error_t je = {0};
    json_t *v = NULL;
    if (len > max)
        err_set(e, ERR_USAGE, "longer than %zu bytes", max);
    else if (!(v = json_loadb(line, len, JSON_REJECT_DUPLICATES, &je)))
        err_set(e, ERR_USAGE, "not JSON: %s", je.text);
    else if (!json_is_object(v)) {
        err_set(e, ERR_USAGE, "not a JSON object");
        json_decref(v);
        v = NULL;
    }
    return v;
}

/* ---- one item ----------------------------------------------------------------------------------- */

static int read_text(const json_t *fields, const char *key, size_t max, const char **out, struct err *e)
{
    *out = json_string_value(json_object_get(fields, key));
    if (!*out || !**out)
        return err_set(e, ERR_USAGE, "'%s' must be a non-empty string", key);
    if (strlen(*out) > max)
        return err_set(e, ERR_USAGE, "'%s' is longer than %zu bytes", key, max);
    return 0;
}

/* Reads the id and stores it as a string in the fields, also if it is a number or missing. */
static int read_id(struct eval_item *item, struct err *e)
{
    const json_t *v = json_object_get(item->fields, "id");
    if (json_is_integer(v) || !v) {
        char text[32];
        snprintf(text, sizeof text, "%lld", v ? (long long)json_integer_value(v) : item->line);
        json_object_set_new(item->fields, "id", json_string(text));
    }
    return read_text(item->fields, "id", 256, &item->id, e);
}

static int read_numbers(const json_t *list, const char *key, struct target *t, struct err *e)
{
    size_t n = json_array_size(list);
    if (n % 2 || n < 4 || n > (size_t)EVAL_MAX_CORNERS * 2)
        return err_set(e, ERR_USAGE, "'%s' has %zu numbers", key, n);
    t->corners = (int)(n / 2);
    t->at = xmalloc(n, sizeof *t->at);
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        t->at[i] = json_number_value(v);
        if (!json_is_number(v) || !isfinite(t->at[i]) || fabs(t->at[i]) > 1e6)
            return err_set(e, ERR_USAGE, "'%s' must contain numbers between -1e6 and 1e6", key);
    }
    return 0;
}

static int read_target(const json_t *fields, struct target *t, struct err *e)
{
    json_t *box = json_object_get(fields, "box"), *poly = json_object_get(fields, "poly");
    if (!box && !poly)
        return err_set(e, ERR_USAGE, "neither 'box' nor 'poly' (null: the target is absent)");
    bool has_box = box && !json_is_null(box), has_poly = poly && !json_is_null(poly);
    if (has_box && has_poly)
        return err_set(e, ERR_USAGE, "both 'box' and 'poly'");
    if (!has_box && !has_poly)
        return 0;
    const char *key = has_box ? "box" : "poly";
    if (!json_is_array(has_box ? box : poly))
        return err_set(e, ERR_USAGE, "'%s' must be a list of numbers", key);
    t->kind = has_box ? TARGET_BOX : TARGET_POLY;
    if (read_numbers(has_box ? box : poly, key, t, e))
        return -1;
    if (has_box && t->corners != 2)
        return err_set(e, ERR_USAGE, "'box' must be [x1, y1, x2, y2]");
    if (has_box && (t->at[0] > t->at[2] || t->at[1] > t->at[3]))
        return err_set(e, ERR_USAGE, "'box' ends before it begins: it must be x1, y1, x2, y2, not a width");
    if (has_poly && t->corners < 3)
        return err_set(e, ERR_USAGE, "'poly' must have at least 3 corners");
    return 0;
}

static int read_size(const json_t *fields, struct target *t, struct err *e)
{
    const json_t *w = json_object_get(fields, "w"), *h = json_object_get(fields, "h");
    if ((!w || json_is_null(w)) && (!h || json_is_null(h)))
        return 0;
    t->w = json_number_value(w);
    t->h = json_number_value(h);
    if (!(t->w > 0) || !(t->h > 0) || t->w > 1e6 || t->h > 1e6)
        return err_set(e, ERR_USAGE, "'w' and 'h' must be numbers above 0, or both absent");
    return 0;
}

static int check_tags(const json_t *fields, struct err *e)
{
    json_t *tags = json_object_get(fields, "tags"), *v;
    const char *key;
    if (!tags || json_is_null(tags))
        return 0;
    if (!json_is_object(tags) || json_object_size(tags) > EVAL_MAX_TAGS)
        return err_set(e, ERR_USAGE, "'tags' must be an object of at most %d strings", EVAL_MAX_TAGS);
    json_object_foreach(tags, key, v)
    {
        if (!json_is_string(v) || strlen(key) > 64 || json_string_length(v) > 256)
            return err_set(e, ERR_USAGE, "tag '%.64s' must be a string of at most 256 bytes", key);
    }
    return 0;
}

static int read_item(struct eval_item *item, struct err *e)
{
    if (read_id(item, e) || read_text(item->fields, "image", EVAL_MAX_PATH, &item->image, e) ||
        read_text(item->fields, "instruction", EVAL_MAX_INSTRUCTION, &item->instruction, e))
        return -1;
    if (read_target(item->fields, &item->target, e) || read_size(item->fields, &item->target, e))
        return -1;
    return check_tags(item->fields, e);
}

/* ---- the file ----------------------------------------------------------------------------------- */

static void note_unknown(struct eval_set *s, const json_t *fields)
{
    static const char *const known[] = {"id", "image", "instruction", "box", "poly", "w", "h", "tags", NULL};
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)fields, key, v)
    {
        const char *const *k = known;
        while (*k && strcmp(*k, key) != 0)
            k++;
        if (!*k && json_object_size(s->unknown) < 64)
            json_object_set_new(s->unknown, key, json_null());
    }
}

static int add_line(struct eval_set *s, const char *line, size_t len, int number, json_t *ids, struct err *e)
{
    if (s->n >= EVAL_MAX_ITEMS)
        return err_set(e, ERR_USAGE, "more than %d items", EVAL_MAX_ITEMS);
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 256;
        s->items = xrealloc(s->items, (unsigned long)s->cap, sizeof *s->items);
    }
    struct eval_item *item = &s->items[s->n];
    *item = (struct eval_item){.line = number};
    if (!(item->fields = eval_line(line, len, EVAL_MAX_LINE, e)))
        return -1;
    s->n++;
    note_unknown(s, item->fields);
    if (read_item(item, e))
        return -1;
    const json_t *other = json_object_get(ids, item->id);
    if (other)
        return err_set(e, ERR_USAGE, "duplicate id '%s', also on line %lld", item->id,
                       (long long)json_integer_value(other));
    json_object_set_new(ids, item->id, json_integer(number));
    return 0;
}

int eval_set_parse(struct eval_set *s, const char *data, size_t len, const char *name, struct err *e)
{
    json_auto_t *ids = json_object();
    int rc = 0, number = 0;
    *s = (struct eval_set){.unknown = json_object(), .folder = xstrdup("")};
    sha256(data, len, s->sha256);
    for (const char *p = data + utf8_bom(data, len), *end = data + len; p < end && rc == 0;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((stop ? stop : end) - p);
        number++;
        size_t blank = 0;
        while (blank < n && isspace((unsigned char)p[blank]))
            blank++;
        if (blank < n)
            rc = add_line(s, p, n, number, ids, e);
        p = stop ? stop + 1 : end;
    }
    if (rc)
        return err_prefix(e, "'%s' line %d", name, number);
    return s->n ? 0 : err_set(e, ERR_USAGE, "'%s' contains no items", name);
}

int eval_set_read(struct eval_set *s, const char *path, struct err *e)
{
    autofree char *data = NULL;
    size_t len;
    *s = (struct eval_set){0};
    if (file_read(path, EVAL_MAX_FILE, &data, &len, e)) {
        if (e)
            e->kind = ERR_USAGE;
        return -1;
    }
    int rc = eval_set_parse(s, data, len, path, e);
    const char *slash = strrchr(path, '/');
    if (slash) {
        free(s->folder);
        s->folder = xasprintf("%.*s", (int)(slash + 1 - path), path);
    }
    return rc;
}

void eval_set_free(struct eval_set *s)
{
    for (int i = 0; i < s->n; i++) {
        json_decref(s->items[i].fields);
        free(s->items[i].target.at);
    }
    free(s->items);
    free(s->folder);
    json_decref(s->unknown);
    *s = (struct eval_set){0};
}

char *eval_image_path(const struct eval_set *s, const struct eval_item *item)
{
    return xasprintf("%s%s", *item->image == '/' ? "" : s->folder, item->image);
}
