/* spec.c - reads a test specification, a Markdown file with a YAML front matter.
 *
 *     ---
 *     id: auth-gating
 *     url: http://localhost:5173
 *     timeout_s: 240
 *     viewport: { width: 1280, height: 720 }
 *     credentials: [USER, PASSWORD]
 *     ---
 *     # The dashboard requires a login
 *     ## Setup
 *     ## Task
 *     ## Expected Result
 *     ## Verification
 *     - FAIL if ...
 *     - PASS only if ...
 *
 * The sections become one task for the agent, which also tells it to judge only by the screen and to begin
 * its answer with a verdict. */
#include "qa/suite/private.h"

#include "base/file.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static const char preamble[] =
    "You test a program and know only what its screen shows.  Follow the task step by step and do nothing "
    "else: do not change settings, do not fix anything, and do not work around anything that fails.  Decide "
    "only by the visible content of the screen.\n\n";
static const char closing[] =
    "When you are done, or cannot continue, give your answer.  Its first line is exactly one of these two:\n"
    "VERDICT: PASSED\n"
    "VERDICT: FAILED\n"
    "Below it explain in a few sentences why, and quote the words on the screen on which you based the "
    "verdict.  If in doubt, answer FAILED.\n";

/* ---- front matter -------------------------------------------------------------------------------- */

static int read_viewport(struct suite_reader *r, const struct key *k, void *member)
{
    static const struct key sides[] = {
        {"width", 1, key_int, offsetof(struct spec, width), 64, 16384},
        {"height", 1, key_int, offsetof(struct spec, height), 64, 16384},
        {0},
    };
    if (!doc_get(r->n, "width") || !doc_get(r->n, "height"))
        return fault(r, "expected { width: 1280, height: 720 }");
    return keys_read(r, r->n, sides, 1, "a viewport has", member);
}

/* Names of secrets. A message never shows any other value, because it may be the secret itself. */
#define CREDENTIALS                                                                                          \
    "names of secrets in capital letters, as [USER, PASSWORD]; their values come from environment "          \
    "variables of the same names"

static int add_credential(struct suite_reader *r, const struct doc_node *one)
{
    struct spec *p = r->spec;
    size_t n = strspn(one->text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (!n || n > 32 || one->text[n] || !isupper((unsigned char)*one->text))
        return fault(r, "expected " CREDENTIALS);
    p->credentials[p->n_credentials++] = arena_strndup(r->s->arena, one->text, n);
    return 0;
}

static int read_credentials(struct suite_reader *r, const struct key *k, void *member)
{
    r->spec = member;
    return value_each(r, CREDENTIALS, SUITE_MAX_SECRETS, add_credential);
}

static int read_url(struct suite_reader *r, const struct key *k, void *member)
{
    return value_text(r, r->n, VALUE_ONE_LINE, member);
}

#define AT(member) offsetof(struct spec, member)

static const struct key keys[] = {
    {"id", 1, key_line, AT(id), 0, 0},
    {"url", 1, read_url, AT(url), 0, 0},
    {"timeout_s", 1, key_number, AT(seconds), 0.1, 1e6},
    {"viewport", 1, read_viewport, 0, 0, 0},
    {"backend", 1, NULL, 0, 0, 0}, /* used by other tools to select a driver; ignored */
    {"credentials", 1, read_credentials, 0, 0, 0},
    {0},
};

/* Reads the keys between two "---" lines. The first of them is part of YAML; it stays, so that line numbers
 * are correct. */
static int read_head(struct suite_reader *r, const char *text, size_t len, const char *path, struct spec *p)
{
    struct doc *y = doc_parse(text, len, path, r->e);
    int rc = y ? 0 : -1;
    struct suite_reader own = {.s = r->s, .y = y, .e = r->e, .vars = r->vars, .faults = r->faults};
    if (y && doc_root(y)->kind != DOC_MAP)
        rc =
            fault_at(&own, doc_root(y), "expected keys between the two lines of ---: id, url, timeout_s ...");
    else if (y)
        rc = keys_read(&own, doc_root(y), keys, 1, "the front matter of a spec has", p);
    doc_free(y);
    return rc;
}

/* ---- sections ------------------------------------------------------------------------------------ */

enum section { TITLE, SETUP, TASK, EXPECTED, VERIFICATION, OTHERS, SECTIONS };
static const struct {
    const char *name, *head; /* in the file, lower case; in the task */
} sections[SECTIONS] = {
    [TITLE] = {"", ""},
    [SETUP] = {"setup", "Before you begin:\n"},
    [TASK] = {"task", "Task:\n"},
    [EXPECTED] = {"expected result", "Expected result:\n"},
    [VERIFICATION] = {"verification", "How to decide:\n"},
    [OTHERS] = {"", ""},
};

/* Returns the section that a line starts, or -1. */
static int heading(const char *line, size_t len)
{
    if (len < 3 || strncmp(line, "## ", 3) != 0)
        return -1;
    size_t skipped = 3 + strspn(line + 3, " \t");
    line += skipped;
    len -= skipped;
    while (len && strchr(" \t#:", line[len - 1]))
        len--;
    for (int s = SETUP; s <= VERIFICATION; s++) {
        size_t n = strlen(sections[s].name);
        bool plural = s == EXPECTED && len == n + 1 && (line[n] | 32) == 's';
        if ((len == n || plural) && !strncasecmp(line, sections[s].name, n))
            return s;
    }
    return OTHERS;
}

static void split_sections(const char *p, struct buf parts[SECTIONS])
{
    int now = TITLE;
    bool fenced = false; /* in a code block, where ## does not start a section */
    for (const char *next; *p; p = next) {
        size_t len = strcspn(p, "\n");
        next = p + len + (p[len] == '\n');
        fenced ^= len >= 3 && (!strncmp(p, "```", 3) || !strncmp(p, "~~~", 3));
        int section = fenced ? -1 : heading(p, len);
        if (section >= 0)
            now = section;
        if (section >= 0 && section != OTHERS)
            continue;
        buf_put(&parts[now], p, (size_t)(next - p));
    }
}

static void trim(struct buf *b)
{
    size_t n = strspn(b->data, "\n\r");
    memmove(b->data, b->data + n, b->len - n + 1);
    b->len -= n;
    while (b->len && isspace((unsigned char)b->data[b->len - 1]))
        b->data[--b->len] = 0;
}

static void put_section(struct buf *out, const char *head, const char *text)
{
    if (*text) {
        buf_puts(out, head);
        buf_puts(out, text);
        buf_puts(out, "\n\n");
    }
}

static int read_body(struct suite_reader *r, const char *text, const char *path, struct spec *p)
{
    struct buf parts[SECTIONS], out;
    for (int s = 0; s < SECTIONS; s++)
        buf_init(&parts[s], SUITE_MAX_TEXT);
    buf_init(&out, SUITE_MAX_TEXT);
    split_sections(text, parts);
    bool full = false;
    buf_puts(&out, preamble);
    for (int s = 0; s < SECTIONS; s++) {
        full |= parts[s].full;
        trim(&parts[s]);
        put_section(&out, sections[s].head, parts[s].data);
        if (s == TITLE && p->url)
            put_section(&out, "Address: ", "{url}");
    }
    buf_puts(&out, closing);
    int rc = 0;
    if (!parts[TASK].len)
        rc = err_set(r->e, ERR_USAGE, "%s: expected a section \"## Task\" that says what to do", path);
    else if (full || out.full)
        rc = err_set(r->e, ERR_USAGE, "%s: expected at most %d bytes of text", path, SUITE_MAX_TEXT);
    else
        p->task = arena_strndup(r->s->arena, out.data, out.len);
    for (int s = 0; s < SECTIONS; s++)
        buf_free(&parts[s]);
    buf_free(&out);
    return rc;
}

/* ---- the file ------------------------------------------------------------------------------------ */

/* Returns the "---" line that ends the front matter, or NULL. */
static const char *head_end(const char *text)
{
    for (const char *p = strchr(text, '\n'); p; p = strchr(p, '\n')) {
        p++;
        size_t n = strcspn(p, "\n"), m = n;
        while (m > 3 && isspace((unsigned char)p[m - 1]))
            m--;
        if (m == 3 && !strncmp(p, "---", 3))
            return p;
    }
    return NULL;
}

int spec_parse(struct suite_reader *r, const char *text, size_t len, const char *path, struct spec *p)
{
    *p = (struct spec){.path = path};
    if (len > DOC_MAX_BYTES)
        return err_set(r->e, ERR_USAGE, "%s: %zu bytes; the limit is %d", path, len, DOC_MAX_BYTES);
    if (utf8_valid_prefix(text, len) != len || memchr(text, 0, len))
        return err_set(r->e, ERR_USAGE, "%s: not valid UTF-8", path);
    autofree char *plain = xmalloc(len + 1, 1);
    size_t n = 0;
    for (size_t i = utf8_bom(text, len); i < len; i++)
        if (text[i] != '\r')
            plain[n++] = text[i];
    plain[n] = 0;
    char *body = plain;
    int rc = 0;
    if (!strncmp(plain, "---", 3) && plain[3 + strspn(plain + 3, " \t")] == '\n') {
        const char *end = head_end(plain);
        if (end) {
            rc = read_head(r, plain, (size_t)(end - plain), path, p);
            body = plain + (end - plain) + strcspn(end, "\n");
        } else {
            rc = err_set(r->e, ERR_USAGE, "%s:1: expected a second line of --- after the keys", path);
        }
    }
    if (!rc)
        rc = read_body(r, body, path, p);
    return rc;
}

int spec_read(struct suite_reader *r, const char *path, struct spec *p)
{
    struct stat st;
    autofree char *text = NULL;
    size_t len;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return err_set(r->e, ERR_USAGE, "'%s' is not a regular file", path);
    if (file_read(path, DOC_MAX_BYTES, &text, &len, r->e)) {
        if (r->e)
            r->e->kind = ERR_USAGE;
        return -1;
    }
    return spec_parse(r, text, len, path, p);
}
