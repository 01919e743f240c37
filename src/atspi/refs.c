/* refs.c - see refs.h. */
#include "atspi/refs.h"

#include "atspi/lines.h"
#include "base/utf8.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SHOWN = 80, REF_DIGITS = 9 };

struct shown {
    char *role, *name;
    uint64_t text; /* number of the last text that had the ref */
};

struct refs {
    GHashTable *known; /* ref to struct shown */
    uint64_t texts;
};

static void shown_free(void *arg)
{
    struct shown *s = arg;
    free(s->role);
    free(s->name);
    free(s);
}

struct refs *refs_new(void)
{
    struct refs *r = xcalloc(1, sizeof *r);
    r->known = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, shown_free);
    return r;
}

void refs_free(struct refs *r)
{
    if (!r)
        return;
    g_hash_table_destroy(r->known);
    free(r);
}

int refs_count(const struct refs *r)
{
    return (int)g_hash_table_size(r->known);
}

/* Returns the text by which the compact form names an element. */
static const char *name_of(const struct element *e)
{
    return *e->name ? e->name : e->label;
}

static void note(struct refs *r, const struct element *e)
{
    struct shown *s = xcalloc(1, sizeof *s);
    *s = (struct shown){xstrdup(e->role), xstrdup(name_of(e)), r->texts};
    g_hash_table_insert(r->known, GUINT_TO_POINTER(e->ref), s);
}

struct age {
    uint64_t before;
};

static gboolean is_older(void *key, void *value, void *arg)
{
    const struct shown *s = value;
    const struct age *age = arg;
    (void)key;
    return s->text < age->before;
}

/* Drops the refs of the oldest texts until at most REFS_MAX are left. */
static void forget(struct refs *r)
{
    uint64_t kept = r->texts;
    while (g_hash_table_size(r->known) > REFS_MAX && kept) {
        kept /= 2;
        struct age age = {r->texts - kept};
        g_hash_table_foreach_remove(r->known, is_older, &age);
    }
}

void refs_note(struct refs *r, const struct snapshot *s, const char *text)
{
    GHashTable *in_text = g_hash_table_new(g_direct_hash, g_direct_equal);
    struct lines l;
    lines_split(text ? text : "", &l);
    for (int i = 0; i < l.n && g_hash_table_size(in_text) < REFS_MAX; i++)
        if (l.l[i].ref)
            g_hash_table_add(in_text, GUINT_TO_POINTER(l.l[i].ref));
    r->texts++;
    for (int i = 0; i < s->n && (text || i < REFS_MAX); i++)
        if (!text || g_hash_table_contains(in_text, GUINT_TO_POINTER(s->e[i].ref)))
            note(r, &s->e[i]);
    lines_free(&l);
    g_hash_table_destroy(in_text);
    forget(r);
}

uint32_t refs_read(const char *text)
{
    size_t n;
    char *end;
    text += strspn(text, " [");
    text += text_starts(text, "ref=") ? 4 : 0;
    text += *text == 'e' || *text == 'E';
    n = strspn(text, "0123456789");
    if (!n || n > REF_DIGITS || text[n + strspn(text + n, " ]")])
        return 0;
    return (uint32_t)strtoul(text, &end, 10);
}

const struct element *refs_element(const struct snapshot *s, uint32_t ref)
{
    for (int i = 0; i < s->n; i++)
        if (s->e[i].ref == ref)
            return &s->e[i];
    return NULL;
}

static void describe(const char *role, const char *name, struct buf *out)
{
    const char *word = element_word(role);
    size_t n = strlen(name), shown = n > NAME_SHOWN ? utf8_valid_prefix(name, NAME_SHOWN) : n;
    buf_puts(out, word ? word : role);
    if (*name)
        buf_printf(out, " \"%.*s%s\"", (int)shown, name, shown < n ? "…" : "");
}

void refs_describe(const struct element *e, struct buf *out)
{
    describe(e->role, name_of(e), out);
}

const struct element *refs_find(const struct refs *r, const struct snapshot *s, uint32_t ref, char *why,
                                size_t size)
{
    const struct shown *was = g_hash_table_lookup(r->known, GUINT_TO_POINTER(ref));
    const struct element *e = was ? refs_element(s, ref) : NULL;
    if (e && !strcmp(e->role, was->role) && !strcmp(name_of(e), was->name))
        return e;
    struct buf b;
    buf_init(&b, size);
    if (!was) {
        buf_printf(&b, "e%u was not in a snapshot; call snapshot first", ref);
    } else {
        buf_printf(&b, "e%u was ", ref);
        describe(was->role, was->name, &b);
        buf_puts(&b, e ? " and is now " : " and is gone");
        if (e)
            refs_describe(e, &b);
        buf_puts(&b, "; call snapshot again");
    }
    snprintf(why, size, "%s", b.data);
    why[utf8_valid_prefix(why, strlen(why))] = 0;
    buf_free(&b);
    return NULL;
}
