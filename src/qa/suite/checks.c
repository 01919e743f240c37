/* checks.c - see private.h: one check of a suite, read.
 *
 * A check's kind says which keys it has; one table has them all.
 */
#include "qa/suite/private.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define BIT(kind) (1u << (kind))

enum {
    ALL = BIT(CHECK_JUDGE + 1) - 1,
    OF_ABSENCE = BIT(CHECK_WINDOW) | BIT(CHECK_FILE) | BIT(CHECK_PROCESS) | BIT(CHECK_PORT) | BIT(CHECK_TEXT),
};

static const struct kind {
    const char *name, *needs[2]; /* one of these keys */
    double seconds;
} kinds[] = {
    [CHECK_SHELL] = {"shell", {"run", NULL}, 0},        [CHECK_ANSWER] = {"answer", {"match", NULL}, 0},
    [CHECK_WINDOW] = {"window", {"title", "class"}, 5}, [CHECK_FILE] = {"file", {"path", NULL}, 5},
    [CHECK_PROCESS] = {"process", {"name", NULL}, 5},   [CHECK_PORT] = {"port", {"port", NULL}, 5},
    [CHECK_REGION] = {"region", {"png", NULL}, 5},      [CHECK_TEXT] = {"text", {"text", NULL}, 600},
    [CHECK_JUDGE] = {"judge", {"ask", NULL}, 600},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

const char *check_kind_name(enum check_kind k)
{
    return kinds[k].name;
}

bool check_by_model(enum check_kind k)
{
    return k == CHECK_TEXT || k == CHECK_JUDGE;
}

struct key {
    const char *name;
    unsigned kinds;
    int (*read)(struct suite_reading *g, const struct key *k, struct check *c);
    size_t at;
    double min, max;
};

static void *place(struct check *c, const struct key *k)
{
    return (char *)c + k->at;
}

static int read_command(struct suite_reading *g, const struct key *k, struct check *c)
{
    return value_text(g, g->n, VALUE_SHELL, place(c, k));
}

static int read_pattern(struct suite_reading *g, const struct key *k, struct check *c)
{
    return value_pattern(g, place(c, k));
}

static int read_words(struct suite_reading *g, const struct key *k, struct check *c)
{
    return value_text(g, g->n, VALUE_STRICT, place(c, k));
}

static int read_line(struct suite_reading *g, const struct key *k, struct check *c)
{
    return value_text(g, g->n, VALUE_STRICT | VALUE_LINE, place(c, k));
}

static int read_yes(struct suite_reading *g, const struct key *k, struct check *c)
{
    return value_yes(g, place(c, k));
}

static int read_int(struct suite_reading *g, const struct key *k, struct check *c)
{
    double v;
    int rc = value_number(g, k->min, k->max, true, &v);
    if (!rc)
        *(int *)place(c, k) = (int)v;
    return rc;
}

static int read_number(struct suite_reading *g, const struct key *k, struct check *c)
{
    return value_number(g, k->min, k->max, false, place(c, k));
}

static int read_when(struct suite_reading *g, const struct key *k, struct check *c)
{
    (void)k;
    c->always = g->n->text && !strcmp(g->n->text, "always");
    if (!c->always && (!g->n->text || strcmp(g->n->text, "passed") != 0))
        return doc_fault(g->y, g->n, g->e, "expected passed (the agent came to an end of its own) or always");
    return 0;
}

static int read_area(struct suite_reading *g, const struct key *k, struct check *c)
{
    (void)k;
    const struct doc_node *area = g->n, *one = area->kind == DOC_LIST ? area->child : NULL;
    int i = 0;
    for (; one && i < 4; one = one->next, i++) {
        size_t n = one->text ? strspn(one->text, "0123456789") : 0;
        if (!n || n > 5 || one->text[n])
            break;
        c->area[i] = 0;
        for (size_t d = 0; d < n; d++)
            c->area[i] = 10 * c->area[i] + one->text[d] - '0';
    }
    bool good = i == 4 && !one && c->area[2] > 0 && c->area[3] > 0 && c->area[0] + c->area[2] <= 32767 &&
                c->area[1] + c->area[3] <= 32767;
    return good ? 0
                : doc_fault(g->y, area, g->e,
                            "expected [x, y, width, height] in pixels of the screen, as [0, 0, 1280, 60]");
}

static int read_sha256(struct suite_reading *g, const struct key *k, struct check *c)
{
    const char *text;
    int rc = value_text(g, g->n, VALUE_STRICT | VALUE_LINE, &text);
    if (rc)
        return rc;
    char small[65] = "";
    size_t n = 0;
    for (; n < 64 && isxdigit((unsigned char)text[n]); n++)
        small[n] = (char)tolower((unsigned char)text[n]);
    if (n != 64 || text[n])
        return doc_fault(g->y, g->n, g->e, "expected 64 hex digits");
    *(const char **)place(c, k) = texts_keep(g->s->texts, small, n);
    return 0;
}

#define AT(member) offsetof(struct check, member)

static const struct key keys[] = {
    {"kind", ALL, NULL, 0, 0, 0},
    {"label", ALL, read_line, AT(name), 0, 0},
    {"when", ALL, read_when, 0, 0, 0},
    {"seconds", ALL, read_number, AT(seconds), 0, 86400},
    {"absent", OF_ABSENCE, read_yes, AT(absent), 0, 0},
    {"run", BIT(CHECK_SHELL), read_command, AT(text), 0, 0},
    {"match", BIT(CHECK_ANSWER), read_pattern, AT(text), 0, 0},
    {"title", BIT(CHECK_WINDOW), read_pattern, AT(text), 0, 0},
    {"class", BIT(CHECK_WINDOW), read_pattern, AT(text2), 0, 0},
    {"path", BIT(CHECK_FILE), read_line, AT(text), 0, 0},
    {"match", BIT(CHECK_FILE), read_pattern, AT(text2), 0, 0},
    {"sha256", BIT(CHECK_FILE), read_sha256, AT(sha256), 0, 0},
    {"name", BIT(CHECK_PROCESS), read_pattern, AT(text), 0, 0},
    {"port", BIT(CHECK_PORT), read_int, AT(port), 1, 65535},
    {"png", BIT(CHECK_REGION), read_line, AT(text), 0, 0},
    {"area", BIT(CHECK_REGION), read_area, 0, 0, 0},
    {"max_diff", BIT(CHECK_REGION), read_number, AT(max_diff), 0, 1},
    {"tolerance", BIT(CHECK_REGION), read_int, AT(tolerance), 0, 255},
    {"text", BIT(CHECK_TEXT), read_words, AT(text), 0, 0},
    {"ask", BIT(CHECK_JUDGE), read_words, AT(text), 0, 0},
    {"passes", BIT(CHECK_JUDGE), read_int, AT(passes), 1, 9},
    {"frames", BIT(CHECK_JUDGE), read_int, AT(frames), 1, 8},
};
enum { N_KEYS = sizeof keys / sizeof *keys };

static int read_kind(struct suite_reading *g, const struct doc_node *check, struct check *c)
{
    const struct doc_node *n = check->kind == DOC_MAP ? doc_get(check, "kind") : NULL;
    static const char known[] = "shell, answer, window, file, process, port, region, text, judge";
    if (!n)
        return doc_fault(g->y, check, g->e,
                         "expected a check, as { kind: shell, run: \"test -f out\" }; its kind is one of %s",
                         known);
    for (int k = 0; n->kind == DOC_SCALAR && k < KINDS; k++) {
        if (!strcmp(kinds[k].name, n->text)) {
            c->kind = (enum check_kind)k;
            return 0;
        }
    }
    return doc_fault(g->y, n, g->e, "expected one of %s, not '%.40s'", known, n->text ? n->text : "");
}

static int read_member(struct suite_reading *g, struct check *c)
{
    const char *names[N_KEYS];
    int n = 0;
    for (int i = 0; i < N_KEYS; i++) {
        if (!(keys[i].kinds & BIT(c->kind)))
            continue;
        names[n++] = keys[i].name;
        if (!strcmp(keys[i].name, g->n->key)) {
            return keys[i].read ? keys[i].read(g, &keys[i], c) : 0;
        }
    }
    char what[48];
    snprintf(what, sizeof what, "a check of kind %s has", kinds[c->kind].name);
    return value_unknown(g, what, names, n);
}

/* What people call a check that nobody gave a name: "window: Nimbus", in one line, not too long. */
static void give_name(struct suite_reading *g, struct check *c)
{
    char port[16];
    struct buf b;
    buf_init(&b, 1000);
    snprintf(port, sizeof port, "%d", c->port);
    const char *what = c->kind == CHECK_PORT ? port : c->text ? c->text : c->text2 ? c->text2 : "";
    size_t n = strlen(what), most = n > 72 ? 69 : n;
    while (most && most < n && ((unsigned char)what[most] & 0xc0) == 0x80)
        most--;
    buf_printf(&b, "%s%s: ", c->absent ? "no " : "", kinds[c->kind].name);
    for (size_t i = 0; i < most; i++)
        buf_putc(&b, (unsigned char)what[i] < ' ' ? ' ' : what[i]);
    buf_puts(&b, most < n ? "..." : "");
    c->name = texts_keep(g->s->texts, b.data, b.len);
    buf_free(&b);
}

int check_read(struct suite_reading *g, const struct doc_node *n, struct check *c)
{
    *c = (struct check){.line = n->line, .max_diff = 0.01, .tolerance = 16, .passes = 1, .frames = 1};
    if (read_kind(g, n, c))
        return -1;
    const struct kind *kind = &kinds[c->kind];
    c->seconds = kind->seconds;
    for (g->n = n->child; g->n; g->n = g->n->next)
        if (read_member(g, c) < 0)
            return -1;
    const char *one = kind->needs[0], *other = kind->needs[1];
    if (!doc_get(n, one) && (!other || !doc_get(n, other)))
        return doc_fault(g->y, n, g->e, "expected the key %s%s%s in a check of kind %s", one,
                         other ? " or " : "", other ? other : "", kind->name);
    if (!c->name)
        give_name(g, c);
    return 0;
}
