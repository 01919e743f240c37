/* check_keys.c - reads the keys of a check, which depend on its kind. */
#include "qa/suite/private.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(kind) (1u << (kind))

enum {
    ALL = BIT(CHECK_JUDGE + 1) - 1,
    INVERTIBLE = BIT(CHECK_WINDOW) | BIT(CHECK_FILE) | BIT(CHECK_PROCESS) | BIT(CHECK_PORT) |
                 BIT(CHECK_TEXT) | BIT(CHECK_CLIPBOARD) | BIT(CHECK_ELEMENT),
};

static const struct kind {
    const char *name, *needs[2]; /* needs: at least one of these keys */
    double seconds;
} kinds[] = {
    [CHECK_SHELL] = {"shell", {"run", NULL}, 0},        [CHECK_ANSWER] = {"answer", {"match", NULL}, 0},
    [CHECK_WINDOW] = {"window", {"title", "class"}, 5}, [CHECK_FILE] = {"file", {"path", NULL}, 5},
    [CHECK_PROCESS] = {"process", {"name", NULL}, 5},   [CHECK_PORT] = {"port", {"port", NULL}, 5},
    [CHECK_REGION] = {"region", {"png", NULL}, 5},      [CHECK_CLIPBOARD] = {"clipboard", {"match", NULL}, 5},
    [CHECK_ELEMENT] = {"element", {"name", "role"}, 5}, [CHECK_TEXT] = {"text", {"text", NULL}, 600},
    [CHECK_JUDGE] = {"judge", {"ask", NULL}, 600},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

const char *check_kind_name(enum check_kind k)
{
    return kinds[k].name;
}

enum evidence check_evidence(enum check_kind k)
{
    return k == CHECK_ANSWER ? BY_CLAIM : k == CHECK_TEXT || k == CHECK_JUDGE ? BY_MODEL : BY_PROOF;
}

static int read_when(struct suite_reader *r, const struct key *k, void *member)
{
    bool *always = member;
    *always = r->n->text && !strcmp(r->n->text, "always");
    if (!*always && (!r->n->text || strcmp(r->n->text, "passed") != 0))
        return fault(r, "expected passed (only if the agent finished) or always");
    return 0;
}

/* Reads one of two words. selection: clipboard or primary; by: model or reading. */
static int read_choice(struct suite_reader *r, const struct key *k, void *member)
{
    static const char *const words[2][2] = {{"clipboard", "primary"}, {"model", "reading"}};
    const char *const *known = words[*k->name == 'b'];
    for (int i = 0; r->n->kind == DOC_SCALAR && i < 2; i++)
        if (!strcmp(r->n->text, known[i])) {
            *(bool *)member = i;
            return 0;
        }
    return fault(r, "expected %s or %s", known[0], known[1]);
}

static int read_area(struct suite_reader *r, const struct key *k, void *member)
{
    int *out = member;
    const struct doc_node *area = r->n, *one = area->kind == DOC_LIST ? area->child : NULL;
    int i = 0;
    for (; one && i < 4; one = one->next, i++) {
        size_t n = one->text ? strspn(one->text, "0123456789") : 0;
        if (!n || n > 5 || one->text[n])
            break;
        out[i] = atoi(one->text);
    }
    if (i < 4 || one || !out[2] || !out[3] || out[0] + out[2] > 32767 || out[1] + out[3] > 32767)
        return fault(r, "expected [x, y, width, height] in pixels of the screen, as [0, 0, 1280, 60]");
    return 0;
}

static int read_sha256(struct suite_reader *r, const struct key *k, void *member)
{
    const char *text;
    int rc = key_line(r, k, &text);
    if (rc)
        return rc;
    char hex[64];
    if (strspn(text, "0123456789abcdefABCDEF") != sizeof hex || text[sizeof hex])
        return fault(r, "expected 64 hex digits");
    for (size_t i = 0; i < sizeof hex; i++)
        hex[i] = (char)tolower((unsigned char)text[i]);
    *(const char **)member = arena_strndup(r->s->arena, hex, sizeof hex);
    return 0;
}

#define AT(member) offsetof(struct check, member)

static const struct key keys[] = {
    {"kind", ALL, NULL, 0, 0, 0},
    {"label", ALL, key_line, AT(name), 0, 0},
    {"when", ALL, read_when, AT(always), 0, 0},
    {"seconds", ALL, key_number, AT(seconds), 0, 86400},
    {"absent", INVERTIBLE, key_bool, AT(absent), 0, 0},
    {"run", BIT(CHECK_SHELL), key_command, AT(text), 0, 0},
    {"match", BIT(CHECK_ANSWER), key_pattern, AT(text), 0, 0},
    {"title", BIT(CHECK_WINDOW), key_pattern, AT(text), 0, 0},
    {"class", BIT(CHECK_WINDOW), key_pattern, AT(text2), 0, 0},
    {"path", BIT(CHECK_FILE), key_line, AT(text), 0, 0},
    {"match", BIT(CHECK_FILE), key_pattern, AT(text2), 0, 0},
    {"sha256", BIT(CHECK_FILE), read_sha256, AT(sha256), 0, 0},
    {"name", BIT(CHECK_PROCESS), key_pattern, AT(text), 0, 0},
    {"port", BIT(CHECK_PORT), key_int, AT(port), 1, 65535},
    {"png", BIT(CHECK_REGION), key_line, AT(text), 0, 0},
    {"area", BIT(CHECK_REGION), read_area, AT(area), 0, 0},
    {"max_diff", BIT(CHECK_REGION), key_number, AT(max_diff), 0, 1},
    {"tolerance", BIT(CHECK_REGION), key_int, AT(tolerance), 0, 255},
    {"match", BIT(CHECK_CLIPBOARD), key_pattern, AT(text), 0, 0},
    {"selection", BIT(CHECK_CLIPBOARD), read_choice, AT(primary), 0, 0},
    {"name", BIT(CHECK_ELEMENT), key_pattern, AT(text), 0, 0},
    {"role", BIT(CHECK_ELEMENT), key_pattern, AT(text2), 0, 0},
    {"window", BIT(CHECK_ELEMENT), key_pattern, AT(window), 0, 0},
    {"content", BIT(CHECK_ELEMENT), key_pattern, AT(content), 0, 0},
    {"state", BIT(CHECK_ELEMENT), key_pattern, AT(state), 0, 0},
    {"by", BIT(CHECK_TEXT), read_choice, AT(reading), 0, 0},
    {"text", BIT(CHECK_TEXT), key_text, AT(text), 0, 0},
    {"ask", BIT(CHECK_JUDGE), key_text, AT(text), 0, 0},
    {"passes", BIT(CHECK_JUDGE), key_int, AT(passes), 1, 9},
    {"frames", BIT(CHECK_JUDGE), key_int, AT(frames), 1, SUITE_MAX_FRAMES},
    {0},
};

static int read_kind(struct suite_reader *r, const struct doc_node *check, struct check *c)
{
    const struct doc_node *n = check->kind == DOC_MAP ? doc_get(check, "kind") : NULL;
    static const char known[] =
        "shell, answer, window, file, process, port, region, clipboard, element, text, judge";
    if (!n)
        return fault_at(r, check,
                        "expected a check, as { kind: shell, run: \"test -f out\" }; its kind is one of %s",
                        known);
    for (int k = 0; n->kind == DOC_SCALAR && k < KINDS; k++) {
        if (!strcmp(kinds[k].name, n->text)) {
            c->kind = (enum check_kind)k;
            return 0;
        }
    }
    return fault_at(r, n, "expected one of %s, not '%.40s'", known, n->text ? n->text : "");
}

/* Sets a default label such as "window: Nimbus", one short line. */
static void set_label(struct suite_reader *r, struct check *c)
{
    char port[16];
    autobuf b = buf_of(1000);
    snprintf(port, sizeof port, "%d", c->port);
    const char *what = c->kind == CHECK_PORT ? port : c->text ? c->text : c->text2 ? c->text2 : "";
    size_t n = strlen(what), most = n > 72 ? utf8_valid_prefix(what, 69) : n;
    buf_printf(&b, "%s%s%s: ", c->absent ? "no " : "", kinds[c->kind].name,
               c->reading ? ", read by the embedded model" : "");
    for (size_t i = 0; i < most; i++)
        buf_putc(&b, (unsigned char)what[i] < ' ' ? ' ' : what[i]);
    buf_puts(&b, most < n ? "..." : "");
    c->name = arena_strndup(r->s->arena, b.data, b.len);
}

int keys_read_check(struct suite_reader *r, const struct doc_node *n, struct check *c)
{
    *c = (struct check){.line = n->line, .max_diff = 0.01, .tolerance = 16, .passes = 1, .frames = 1};
    if (read_kind(r, n, c))
        return -1;
    const struct kind *kind = &kinds[c->kind];
    c->seconds = kind->seconds;
    char what[48];
    snprintf(what, sizeof what, "a check of kind %s has", kind->name);
    if (keys_read(r, n, keys, BIT(c->kind), what, c))
        return -1;
    const char *one = kind->needs[0], *other = kind->needs[1];
    if (!doc_get(n, one) && (!other || !doc_get(n, other)))
        return fault_at(r, n, "expected the key %s%s%s in a check of kind %s", one, other ? " or " : "",
                        other ? other : "", kind->name);
    if (!c->name)
        set_label(r, c);
    return 0;
}
