/* replies.c - what a machine answers; see machine.h. */
#include "computer/machine.h"

#include "base/utf8.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { COMPLAINT_MAX = 200, SIDE_MAX = IMAGE_MAX_SIDE };

static json_t *read_object(const char *json, size_t n, const char *what, struct err *e)
{
    json_t *root = json_loadb(json, n, 0, NULL);
    if (json_is_object(root))
        return root;
    json_decref(root);
    err_set(e, ERR_ENV, "its answer to %s is no JSON object", what);
    return NULL;
}

/* The last line that is not empty, without control characters. */
static void last_line(const char *text, char out[COMPLAINT_MAX + 1])
{
    const char *end = text + strlen(text), *from;
    while (end > text && (unsigned char)end[-1] <= ' ')
        end--;
    for (from = end; from > text && from[-1] != '\n'; from--)
        ;
    size_t n = (size_t)(end - from) < COMPLAINT_MAX ? (size_t)(end - from) : COMPLAINT_MAX;
    memcpy(out, from, n);
    out[n] = 0;
    out[utf8_valid_prefix(out, n)] = 0;
    for (char *p = out; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' ';
}

int machine_read_execute(const char *json, size_t n, char **output, struct err *e)
{
    char why[COMPLAINT_MAX + 1] = "";
    *output = NULL;
    json_t *root = read_object(json, n, "POST /execute", e);
    if (!root)
        return -1;
    const char *status = json_string_value(json_object_get(root, "status"));
    const char *said = json_string_value(json_object_get(root, "output"));
    const char *error = json_string_value(json_object_get(root, "error"));
    const char *message = json_string_value(json_object_get(root, "message"));
    const json_t *code = json_object_get(root, "returncode");
    bool good = status && !strcmp(status, "success") && json_is_integer(code) && !json_integer_value(code);
    if (good)
        *output = xstrdup(said ? said : "");
    else
        last_line(error && *error ? error : message ? message : "", why);
    json_decref(root);
    if (good)
        return 0;
    if (strstr(why, "No module named"))
        return err_set(e, ERR_ENV, "its Python cannot act: %s", why);
    return err_set(e, ERR_FAILED, "the action failed there: %s", *why ? why : "no reason was given");
}

int machine_read_size(const char *json, size_t n, int *w, int *h, struct err *e)
{
    json_t *root = read_object(json, n, "POST /screen_size", e);
    if (!root)
        return -1;
    json_int_t width = json_integer_value(json_object_get(root, "width"));
    json_int_t height = json_integer_value(json_object_get(root, "height"));
    json_decref(root);
    if (width < 1 || height < 1 || width > SIDE_MAX || height > SIDE_MAX)
        return err_set(e, ERR_ENV, "its answer to POST /screen_size has no width and height from 1 to %d",
                       SIDE_MAX);
    *w = (int)width;
    *h = (int)height;
    return 0;
}

static void take_text(const json_t *root, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(root, key));
    snprintf(out, size, "%s", text ? text : "");
    out[utf8_valid_prefix(out, strlen(out))] = 0;
}

static int take_number(const json_t *list, size_t i)
{
    json_int_t v = json_integer_value(json_array_get(list, i));
    return v < -SIDE_MAX || v > SIDE_MAX ? 0 : (int)v;
}

int machine_read_window(const char *json, size_t n, struct screen_window *out)
{
    json_t *root = json_loadb(json, n, 0, NULL);
    *out = (struct screen_window){0};
    json_int_t id = json_integer_value(json_object_get(root, "id"));
    if (!json_is_object(root) || id < 0 || id > UINT32_MAX) {
        json_decref(root);
        return -1;
    }
    const json_t *rect = json_object_get(root, "rect");
    out->id = (unsigned long)id;
    take_text(root, "title", out->title, sizeof out->title);
    take_text(root, "class", out->class, sizeof out->class);
    take_text(root, "program", out->program, sizeof out->program);
    out->dialog = json_is_true(json_object_get(root, "dialog"));
    out->rect = (struct screen_rect){take_number(rect, 0), take_number(rect, 1), take_number(rect, 2),
                                     take_number(rect, 3)};
    json_decref(root);
    return 0;
}
