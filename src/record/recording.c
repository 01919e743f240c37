/* recording.c - reads recordings; see recording.h.
 *
 * The file may have been edited or come from elsewhere: sizes are bounded, every member is checked, and an
 * error names line and member. Unknown members are ignored, so that users may add comments.
 */
#include "record/recording.h"

#include "actions/registry.h"
#include "base/file.h"
#include "base/secret.h"
#include "base/utf8.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FAR = 1 << 20 };
static const char magic[] = RECORDING_MAGIC;

bool recording_is(const char *text, size_t len)
{
    return len >= sizeof magic - 1 && !memcmp(text, magic, sizeof magic - 1);
}

void recording_target_free(struct recording_target *t)
{
    for (int i = 0; i < t->n_pictures; i++)
        image_free(&t->pictures[i].image);
    *t = (struct recording_target){0};
}

void recording_step_free(struct recording_step *s)
{
    action_free(&s->action);
    recording_target_free(&s->target);
    recording_target_free(&s->to);
    image_free(&s->look.image);
    *s = (struct recording_step){0};
}

void recording_free(struct recording *r)
{
    if (!r)
        return;
    for (int i = 0; i < r->n; i++)
        recording_step_free(&r->steps[i]);
    for (int i = 0; i < r->n_secrets; i++)
        free(r->secrets[i]);
    free(r->steps);
    free(r);
}

/* ---- base64 ----------------------------------------------------------------------------------------- */

/* Decodes base64 in place. Returns the length, or -1 if the text is not base64. */
static long get_base64(char *text, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t out = 0;
    if (len % 4)
        return -1;
    for (size_t i = 0; i < len; i += 4) {
        unsigned v = 0;
        int pad = i + 4 == len ? (text[i + 3] == '=') + (text[i + 2] == '=' && text[i + 3] == '=') : 0;
        for (int k = 0; k < 4; k++) {
            const char *at = k >= 4 - pad ? digits : memchr(digits, text[i + (size_t)k], 64);
            if (!at)
                return -1;
            v = v << 6 | (unsigned)(at - digits);
        }
        for (int k = 0; k < 3 - pad; k++)
            text[out++] = (char)(v >> (16 - 8 * k));
    }
    return (long)out;
}

/* ---- reading ---------------------------------------------------------------------------------------- */

struct reader {
    const char *name;
    int line;
    long pixels; /* pixels of all pictures read so far */
    struct err *e;
};

static int refuse(const struct reader *p, const char *what)
{
    return err_set(p->e, ERR_USAGE, "%s:%d: %s", p->name, p->line, what);
}

static bool get_pixel(json_t *pair, size_t i, int *out)
{
    json_t *v = json_array_get(pair, i);
    *out = json_is_integer(v) ? (int)json_integer_value(v) : 0;
    return json_is_integer(v) && llabs(json_integer_value(v)) <= FAR;
}

/* Copies a text member, truncated to RECORDING_TEXT bytes, with spaces for control characters. Returns false
 * if the member is not a string; a missing member is valid. */
static bool get_text(json_t *object, const char *key, char out[RECORDING_TEXT])
{
    json_t *v = json_object_get(object, key);
    const char *s = json_string_value(v);
    if (!v)
        return true;
    if (!s)
        return false;
    size_t n = strlen(s) < RECORDING_TEXT ? strlen(s) : RECORDING_TEXT - 1;
    n = utf8_valid_prefix(s, n);
    memcpy(out, s, n);
    out[n] = 0;
    for (char *c = out; *c; c++)
        *c = (unsigned char)*c < ' ' ? ' ' : *c;
    return true;
}

static bool get_number(json_t *v, double lo, double hi, double *out)
{
    *out = json_number_value(v);
    return !v || (json_is_number(v) && *out >= lo && *out <= hi);
}

static bool get_language(json_t *object, char out[RECORDING_LANGUAGE])
{
    char text[RECORDING_TEXT] = "";
    bool valid = get_text(object, "language", text);
    snprintf(out, RECORDING_LANGUAGE, "%.7s", text);
    return valid;
}

static bool get_window(json_t *w, struct recording_target *t)
{
    json_t *rect = json_object_get(w, "rect");
    return !w || (get_text(w, "class", t->class) && get_text(w, "title", t->title) &&
                  get_language(w, t->language) && get_pixel(rect, 0, &t->rect.x) &&
                  get_pixel(rect, 1, &t->rect.y) && get_pixel(rect, 2, &t->rect.w) &&
                  get_pixel(rect, 3, &t->rect.h));
}

/* Reads the member "png" of an image. */
static int get_png(struct reader *p, json_t *from, struct image *out)
{
    const char *png = json_string_value(json_object_get(from, "png"));
    if (!png)
        return refuse(p, "an image needs 'png'");
    char *bytes = xstrdup(png);
    long n = get_base64(bytes, strlen(bytes));
    struct err why = ERR_INIT;
    int rc = n < 0 ? err_set(&why, ERR_USAGE, "not base64") : image_parse_png(out, bytes, (uint64_t)n, &why);
    free(bytes);
    if (rc)
        return err_set(p->e, ERR_USAGE, "%s:%d: cannot read an image: %s", p->name, p->line, why.text);
    p->pixels += (long)out->w * out->h;
    if (out->w <= RECORDING_SIDE && out->h <= RECORDING_SIDE && p->pixels <= RECORDING_PIXELS)
        return 0;
    image_free(out);
    return refuse(p, "an image is too large, or all images together");
}

static int get_picture(struct reader *p, json_t *from, struct recording_picture *out)
{
    json_t *at = json_object_get(from, "at");
    if (!get_pixel(at, 0, &out->x) || !get_pixel(at, 1, &out->y))
        return refuse(p, "an image needs 'at' [x, y]");
    return get_png(p, from, &out->image);
}

static int get_look(struct reader *p, json_t *from, struct recording_look *out)
{
    json_t *size = json_object_get(from, "size");
    if (!from)
        return 0;
    if (!get_pixel(size, 0, &out->w) || !get_pixel(size, 1, &out->h))
        return refuse(p, "'look' needs 'size' [w, h]");
    return get_png(p, from, &out->image);
}

static bool get_names(json_t *element, struct recording_target *t)
{
    json_t *near = json_object_get(element, "near"), *path = json_object_get(element, "path");
    const char *text = json_string_value(path);
    size_t i;
    json_t *one;
    json_array_foreach(near, i, one)
    {
        json_t *wrapped = i < RECORDING_NEAR ? json_pack("{s:O}", "name", one) : NULL;
        bool valid = wrapped && get_text(wrapped, "name", t->near[t->n_near]);
        json_decref(wrapped);
        if (!valid)
            return false;
        t->n_near++;
    }
    if (path && (!text || strlen(text) >= RECORDING_PATH))
        return false;
    snprintf(t->path, sizeof t->path, "%s", text ? text : "");
    return get_text(element, "name", t->name) && get_text(element, "role", t->role) &&
           get_text(element, "label", t->label) && get_text(element, "menu", t->menu);
}

/* Reads the element of a target. */
static bool get_element(json_t *element, struct recording_target *t)
{
    json_t *inside = json_object_get(element, "at"), *size = json_object_get(element, "size");
    json_t *equal = json_object_get(element, "equal"), *on = json_object_get(element, "on");
    t->fx = t->fy = 0.5;
    t->on = json_is_boolean(on) ? json_is_true(on) : RECORDING_NO_STATE;
    t->equals = 1;
    return get_names(element, t) &&
           (!inside || (get_number(json_array_get(inside, 0), 0, 1, &t->fx) &&
                        get_number(json_array_get(inside, 1), 0, 1, &t->fy))) &&
           (!size || (get_pixel(size, 0, &t->w) && get_pixel(size, 1, &t->h) && t->w >= 0 && t->h >= 0)) &&
           (!equal || (get_pixel(equal, 0, &t->equal) && get_pixel(equal, 1, &t->equals) && t->equal >= 0));
}

static int get_target(struct reader *p, json_t *from, struct recording_target *t)
{
    json_t *at = json_object_get(from, "at"), *pictures = json_object_get(from, "pictures"), *one;
    size_t i;
    if (!get_pixel(at, 0, &t->x) || !get_pixel(at, 1, &t->y))
        return refuse(p, "a target needs 'at' [x, y]");
    if (!get_window(json_object_get(from, "window"), t))
        return refuse(p, "a window needs 'class', 'title' and 'rect' [x, y, w, h]");
    if (!get_element(json_object_get(from, "element"), t))
        return refuse(
            p, "an element needs 'name' and 'role', 'at' from 0 to 1, 'size' and 'equal' of two numbers, "
               "and at most four names in 'near'");
    if (pictures && (!json_is_array(pictures) || json_array_size(pictures) > RECORDING_PICTURES))
        return refuse(p, "'pictures' must be a list of at most two images");
    json_array_foreach(pictures, i, one)
    {
        if (get_picture(p, one, &t->pictures[t->n_pictures]))
            return -1;
        t->n_pictures++;
    }
    return 0;
}

static int get_action(const struct reader *p, json_t *from, struct action *a)
{
    struct err why = ERR_INIT;
    char *json = json_dumps(from, 0);
    int rc = json ? action_from_json(json, strlen(json), a, &why) : err_set(&why, ERR_USAGE, "too deep");
    free(json);
    if (rc)
        return err_set(p->e, ERR_USAGE, "%s:%d: %s", p->name, p->line, why.text);
    if (!action_is(a->kind, ACTION_RECORDED))
        return refuse(p, "a recorded action must be move, click, drag, scroll, type or key");
    if ((action_is(a->kind, ACTION_TYPES) && !a->text) ||
        (action_is(a->kind, ACTION_NAMED_KEYS) && !a->nkeys))
        return refuse(p, "the text to type is empty");
    if (action_takes(a->kind, P_DIRECTION) && !a->dx == !a->dy)
        return refuse(p, "a scroll needs either 'dx' or 'dy'");
    if (action_is(a->kind, ACTION_CLICKS) && a->count > 3)
        return refuse(p, "the 'count' of a click must be at most 3");
    return 0;
}

/* Copies the positions of the targets into the action. Fails if a required target is missing. */
static int place_action(const struct reader *p, struct recording_step *s)
{
    struct action *a = &s->action;
    bool pointed = action_is(a->kind, ACTION_POINTER), drag = action_is(a->kind, ACTION_DRAGS);
    pointed = pointed || (action_is(a->kind, ACTION_TYPES) && s->has_target);
    if (pointed && !s->has_target)
        return refuse(p, "this action needs a 'target'");
    if (drag && !s->has_to)
        return refuse(p, "a drag needs 'to'");
    a->x = pointed ? s->target.x : ACTION_ABSENT;
    a->y = pointed ? s->target.y : ACTION_ABSENT;
    a->x2 = drag ? s->to.x : ACTION_ABSENT;
    a->y2 = drag ? s->to.y : ACTION_ABSENT;
    return 0;
}

static int get_end(const struct reader *p, json_t *line, struct recording_step *s)
{
    json_t *opened = json_object_get(line, "opened"), *closed = json_object_get(line, "closed");
    bool valid = get_text(opened, "class", s->class) && get_text(opened, "title", s->title) &&
                 get_text(closed, "class", s->closed_class) && get_text(closed, "title", s->closed_title);
    return valid && (*s->class || *s->closed_class)
               ? 0
               : refuse(p, "waiting for the end needs 'opened' or 'closed' with 'class' and 'title'");
}

static int get_step(struct reader *p, json_t *line, struct recording_step *s)
{
    json_t *action = json_object_get(line, "action"), *target = json_object_get(line, "target");
    json_t *to = json_object_get(line, "to"), *keyboard = json_object_get(line, "keyboard");
    const char *wait = json_string_value(json_object_get(line, "wait_until"));
    s->line = p->line;
    if (!get_number(json_object_get(line, "pause"), 0, 1e6, &s->pause) ||
        !get_number(json_object_get(line, "seconds"), 0, 3600, &s->seconds))
        return refuse(p, "'pause' and 'seconds' must be numbers");
    s->for_window = wait && !strcmp(wait, "window");
    s->for_end = wait && !strcmp(wait, "end");
    if (s->for_end)
        return get_end(p, line, s);
    if (s->for_window && (!get_text(line, "class", s->class) || !get_text(line, "title", s->title) ||
                          !get_language(line, s->language) || !*s->class))
        return refuse(p, "waiting for a window needs its 'class' and 'title'");
    if (wait)
        return s->for_window || !strcmp(wait, "rest")
                   ? 0
                   : refuse(p, "'wait_until' must be \"rest\", \"window\" or \"end\"");
    if (!action)
        return refuse(p, "a line needs 'action' or 'wait_until'");
    if (get_action(p, action, &s->action))
        return -1;
    s->has_target = target != NULL;
    s->has_to = to != NULL;
    if ((target && get_target(p, target, &s->target)) || (to && get_target(p, to, &s->to)) ||
        get_look(p, json_object_get(line, "look"), &s->look))
        return -1;
    if (!get_text(keyboard, "class", s->class) || !get_text(keyboard, "title", s->title) ||
        !get_language(keyboard, s->language) ||
        (!target && !get_element(json_object_get(keyboard, "element"), &s->target)))
        return refuse(p, "'keyboard' needs 'class' and 'title'");
    return place_action(p, s);
}

static int get_head(const struct reader *p, json_t *line, struct recording *r)
{
    json_t *size = json_object_get(line, "screen");
    if (json_integer_value(json_object_get(line, "holorun_recording")) != RECORDING_VERSION)
        return refuse(p, "not a recording, or of a version that this program does not support");
    bool sized = get_pixel(size, 0, &r->w) && get_pixel(size, 1, &r->h) && r->w > 0 && r->h > 0;
    return sized ? 0 : refuse(p, "'screen' must be [width, height]");
}

/* Collects the names in {{NAME}} of a typed text. */
static int note_secrets(const struct reader *p, const char *text, struct recording *r)
{
    for (const char *at = text; at && (at = strstr(at, "{{"));) {
        size_t n = strspn(at += 2, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
        int i = 0;
        if (!n || n > SECRET_NAME || strncmp(at + n, "}}", 2) != 0)
            continue;
        while (i < r->n_secrets && (strncmp(r->secrets[i], at, n) != 0 || r->secrets[i][n]))
            i++;
        if (i == RECORDING_MAX_SECRETS)
            return refuse(p, "too many secrets");
        if (i == r->n_secrets)
            r->secrets[r->n_secrets++] = xasprintf("%.*s", (int)n, at);
    }
    return 0;
}

static int get_line(struct reader *p, const char *text, size_t len, struct recording *r)
{
    json_error_t why;
    if (len > RECORDING_MAX_LINE)
        return refuse(p, "the line is too long");
    json_t *line = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(line)) {
        json_decref(line);
        return err_set(p->e, ERR_USAGE, "%s:%d: %s", p->name, p->line, line ? "not a JSON object" : why.text);
    }
    int rc;
    if (p->line == 1) {
        rc = get_head(p, line, r);
    } else if (r->n == RECORDING_MAX_STEPS) {
        rc = refuse(p, "too many steps");
    } else {
        r->steps = xrealloc(r->steps, (unsigned long)r->n + 1, sizeof *r->steps);
        struct recording_step *s = &r->steps[r->n++];
        *s = (struct recording_step){0};
        rc = get_step(p, line, s) || note_secrets(p, s->action.text, r) ? -1 : 0;
    }
    json_decref(line);
    return rc;
}

struct recording *recording_parse(const char *text, size_t len, const char *name, struct err *e)
{
    struct recording *r = xcalloc(1, sizeof *r);
    struct reader p = {.name = name, .e = e};
    int rc = len <= RECORDING_MAX_BYTES
                 ? 0
                 : err_set(e, ERR_USAGE, "%s: more than %d MiB", name, RECORDING_MAX_BYTES >> 20);
    if (rc == 0 && !recording_is(text, len))
        rc = err_set(e, ERR_USAGE, "%s: not a recording", name);
    for (const char *at = text, *end = text + len; rc == 0 && at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        p.line++;
        if (!stop && p.line > 1) /* the recorder was killed */
            break;
        stop = stop ? stop : end;
        if (stop > at)
            rc = get_line(&p, at, (size_t)(stop - at), r);
        at = stop + 1;
    }
    if (rc == 0)
        return r;
    recording_free(r);
    return NULL;
}

struct recording *recording_read(const char *path, struct err *e)
{
    char *text;
    size_t len;
    if (file_read(path, RECORDING_MAX_BYTES, &text, &len, e))
        return NULL;
    struct recording *r = recording_parse(text, len, path, e);
    free(text);
    if (r)
        recording_merge(r);
    return r;
}
