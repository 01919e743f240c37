/* replies.c - prints the prompts of the built-in dialects, and the actions of replies.
 *
 *   replies prompts   prints the prompt texts of each dialect, a JSON object per line
 *                     (tests/reference/make_replies.py)
 *   replies parse     reads lines {"dialect": ..., "reply": ...}, and prints {"actions": [...]} or
 *                     {"fault": ..., "message": ...} for each (tests/scripts/real_replies.py)
 */
#include "actions/action.h"
#include "actions/dialect.h"
#include "base/err.h"
#include "llm/prompt.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 1280, HEIGHT = 800, STEPS = 30, SECONDS = 600, MAX_TEXT = 1 << 20 };

static void put(json_t *o, const char *key, const char *text)
{
    json_object_set_new(o, key, json_string(text ? text : ""));
}

static void print(json_t *o)
{
    json_dumpf(o, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(o);
}

/* Prints the prompt texts of a dialect; @TASK@ stands for the task. */
static int print_prompts(const char *name)
{
    struct err e = ERR_INIT;
    struct dialect *d = dialect_load(name, &e);
    struct prompt_vars v = {"@TASK@", STEPS, WIDTH, HEIGHT, SECONDS};
    char *system = d ? prompt_system(d, &v, &e) : NULL;
    if (!system) {
        fprintf(stderr, "%s: %s\n", name, e.text);
        dialect_free(d);
        return 1;
    }
    json_t *o = json_object();
    put(o, "name", d->name);
    put(o, "system", system);
    put(o, "task_open", d->task_open);
    put(o, "task_close", d->task_close);
    put(o, "observation_open", d->observation_open);
    put(o, "observation_close", d->observation_close);
    put(o, "tool_output", d->tool_output);
    put(o, "placeholder", d->image_placeholder);
    put(o, "schema", d->schema);
    put(o, "tools", d->tool_list);
    json_object_set_new(o, "think", json_boolean(d->think));
    print(o);
    free(system);
    dialect_free(d);
    return 0;
}

/* Prints the actions of a reply, or its fault. */
static void print_step(const char *text, size_t len, const struct dialect *d)
{
    struct err e = ERR_INIT;
    struct step s;
    json_t *o = json_object(), *actions = json_array();
    enum action_fault f = action_parse(text, len, d, WIDTH, HEIGHT, &s, &e);
    for (int i = 0; i < s.nactions; i++) {
        struct buf one;
        buf_init(&one, MAX_TEXT);
        action_to_json(&s.actions[i], &one);
        json_array_append_new(actions, json_loadb(one.data, one.len, 0, NULL));
        buf_free(&one);
    }
    if (f) {
        put(o, "fault", action_fault_name(f));
        put(o, "message", e.text);
    } else {
        json_object_set(o, "actions", actions);
        json_object_set_new(o, "cut", json_boolean(s.cut));
        json_object_set_new(o, "repairs", json_integer(s.repairs));
    }
    json_decref(actions);
    print(o);
    step_free(&s);
}

static int parse_lines(void)
{
    struct err e = ERR_INIT;
    struct dialect *d = NULL;
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) > 0) {
        json_t *o = json_loads(line, 0, NULL), *reply = json_object_get(o, "reply");
        const char *name = json_string_value(json_object_get(o, "dialect"));
        if (name && (!d || strcmp(d->name, name) != 0)) {
            dialect_free(d);
            d = dialect_load(name, &e);
        }
        if (!name || !d || !json_is_string(reply)) {
            fprintf(stderr, "bad line: %s", line);
            return 1;
        }
        print_step(json_string_value(reply), json_string_length(reply), d);
        json_decref(o);
    }
    free(line);
    dialect_free(d);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "parse"))
        return parse_lines();
    if (argc != 2 || strcmp(argv[1], "prompts") != 0) {
        fprintf(stderr, "usage: replies prompts | replies parse\n");
        return 2;
    }
    for (const char *const *name = dialect_names(); *name; name++)
        if (print_prompts(*name))
            return 1;
    return 0;
}
