/* policy_limits.c - counters of a run ("50 steps"), and the block "limits:" of a policy file.
 *
 * limits: {errors: 5, rate: 60, corner_stop: yes} # all of them: struct policy_limits
 *
 * The run ends when it reaches any limit; 0 disables a limit. */
#include "gate/policy_impl.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_MAX = 1000000000 };

static const struct limit_key {
    const char *name;
    size_t at;
    int standard;
} keys[] = {
    {"typed", offsetof(struct policy_limits, typed), 0},
    {"rate", offsetof(struct policy_limits, rate), 0},
    {"errors", offsetof(struct policy_limits, errors), 5},
    {"repeats", offsetof(struct policy_limits, repeats), 5},
    {"no_effect", offsetof(struct policy_limits, no_effect), 12},
};
enum { KEYS = sizeof keys / sizeof *keys };

static int *limit_at(struct policy_limits *l, int i)
{
    return (int *)(void *)((char *)l + keys[i].at);
}

struct policy_limits limits_default(void)
{
    struct policy_limits l = {0};
    for (int i = 0; i < KEYS; i++)
        *limit_at(&l, i) = keys[i].standard;
    return l;
}

static int read_number(int *to, const struct doc *y, const struct doc_node *n, struct err *e)
{
    char *end = NULL;
    long v = n->text ? strtol(n->text, &end, 10) : -1;
    if (!n->text || !*n->text || *end || v < 0 || v > LIMIT_MAX)
        return doc_fault(y, n, e, "expected a whole number; 0 means no limit");
    *to = (int)v;
    return 0;
}

static int read_key(struct policy_limits *l, const struct doc *y, const struct doc_node *n, struct err *e)
{
    for (int i = 0; i < KEYS; i++)
        if (!strcmp(n->key, keys[i].name))
            return read_number(limit_at(l, i), y, n, e);
    if (strcmp(n->key, "corner_stop") != 0) {
        const char *known[KEYS + 1] = {"corner_stop"};
        char hint[NAME_HINT];
        for (int i = 0; i < KEYS; i++)
            known[i + 1] = keys[i].name;
        return doc_fault(
            y, n, e, "unknown key%s; the limits are typed, rate, errors, repeats, no_effect and corner_stop",
            name_hint(hint, n->key, known, KEYS + 1));
    }
    l->corner_stop = n->text && !strcmp(n->text, "yes");
    return l->corner_stop || (n->text && !strcmp(n->text, "no")) ? 0
                                                                 : doc_fault(y, n, e, "expected yes or no");
}

int limits_read(struct policy_limits *l, const struct doc *y, const struct doc_node *n, struct err *e)
{
    if (n->kind != DOC_MAP)
        return doc_fault(y, n, e, "expected a block of limits, for example \"errors: 5\"");
    for (const struct doc_node *k = n->child; k; k = k->next)
        if (read_key(l, y, k, e))
            return -1;
    return 0;
}

void limits_print(const struct policy_limits *l, struct buf *out)
{
    const char *before = "limits: ";
    for (int i = 0; i < KEYS; i++) {
        int v = *limit_at((struct policy_limits *)(uintptr_t)l, i);
        if (v == keys[i].standard)
            continue;
        buf_printf(out, "%s%s %d", before, keys[i].name, v);
        before = ", ";
    }
    if (l->corner_stop)
        buf_printf(out, "%scorner_stop", before);
    if (*before == ',' || l->corner_stop)
        buf_puts(out, "\n");
}

json_t *policy_limits_json(const struct policy *p)
{
    json_t *all = json_object();
    for (int i = 0; i < KEYS; i++)
        json_object_set_new(all, keys[i].name,
                            json_integer(*limit_at((struct policy_limits *)(uintptr_t)&p->limits, i)));
    json_object_set_new(all, "corner_stop", json_boolean(p->limits.corner_stop));
    return all;
}

/* ---- counters of the key "after" --------------------------------------------------------------- */

static const char *const spent_names[SPENT_COUNTERS] = {"steps",   "seconds",    "tokens",
                                                        "actions", "characters", "errors"};

const char *policy_spent_name(enum policy_counter c)
{
    return spent_names[c];
}

bool policy_spent_read(const char *text, enum policy_counter *c, double *n)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    *n = strtod(text, &end);
    if (*end != ' ' || *n > 1e12)
        return false;
    for (int i = 0; i < SPENT_COUNTERS; i++) {
        if (strcmp(spent_names[i], end + 1) != 0)
            continue;
        *c = (enum policy_counter)i;
        return true;
    }
    return false;
}
