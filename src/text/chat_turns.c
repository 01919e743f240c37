/* chat_turns.c - finds the texts around the turns of a session by rendering probes (chat_template.h).
 *
 * Probe conversations have short contents. Their bytes in a rendering are recognized by their origin, so
 * the text between two contents is exactly what the template wrote there:
 *
 *     system[0] S system[1] user[0] U user[1] reply[0] R reply[1] user[0] V user[1] open
 *
 * If a text ends one turn and begins the next, the next turn begins at the special token that begins
 * user[0]. The result is checked: conversations assembled from it must equal the template's renderings. */
#include "text/chat_template_impl.h"

#include "base/buf.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TURNS = 8, MAX_RENDERED = 4 << 20 };

/* ---- probes ----------------------------------------------------------------------------------------- */

void chat_probe_free(struct chat_probe *p)
{
    for (int i = 0; i < p->n; i++) {
        free(p->between[i]);
        free(p->contents[i]);
    }
    free(p->between[p->n]);
    *p = (struct chat_probe){0};
}

static bool is_content(const struct jinja_string *s, size_t at)
{
    return s->origin && s->origin[at] != JINJA_TEMPLATE;
}

int chat_probe_split(struct chat_probe *p, const struct jinja_string *s, struct err *e)
{
    size_t at = 0;
    *p = (struct chat_probe){0};
    for (;;) {
        size_t from = at;
        while (at < s->len && !is_content(s, at))
            at++;
        p->between[p->n] = xasprintf("%.*s", (int)(at - from), s->data + from);
        if (at == s->len)
            return 0;
        if (p->n == CHAT_PROBE_MAX) {
            chat_probe_free(p);
            return err_set(e, ERR_MODEL, "it repeats the contents of messages");
        }
        for (from = at; at < s->len && is_content(s, at);)
            at++;
        p->contents[p->n++] = xasprintf("%.*s", (int)(at - from), s->data + from);
    }
}

/* Renders and splits a probe. roles: s, u, a for each message; texts: the contents, or NULL for one letter
 * each. Returns -1 with e. */
static int probe(const struct chat_template *c, struct chat_probe *p, const char *roles,
                 const char *const *texts, bool think, struct err *e)
{
    static const char *const letters[] = {"A", "B", "C", "D", "E", "F", "G", "H"};
    struct chat_part parts[MAX_TURNS];
    struct chat_message messages[MAX_TURNS];
    int n = (int)strlen(roles);
    for (int i = 0; i < n; i++) {
        parts[i] = (struct chat_part){.text = texts ? texts[i] : letters[i]};
        messages[i] = (struct chat_message){.role = roles[i] == 's'   ? CHAT_SYSTEM
                                                    : roles[i] == 'u' ? CHAT_USER
                                                                      : CHAT_ASSISTANT,
                                            .parts = &parts[i],
                                            .n = 1};
    }
    const struct chat_conversation v = {
        .messages = messages, .n = n, .think = think ? CHAT_THINK_ON : CHAT_THINK_OFF, .open_reply = true};
    struct jinja_arena *a = jinja_arena_new();
    struct jinja_string out;
    int rc = chat_render_text(c, &v, a, &out, e) || chat_probe_split(p, &out, e) ? -1 : 0;
    jinja_arena_free(a);
    if (rc == 0 && p->n != n) {
        chat_probe_free(p);
        return err_set(e, ERR_MODEL, "it omits or repeats the contents of messages");
    }
    return rc;
}

/* ---- extracting the texts ---------------------------------------------------------------------------- */

/* Returns the last special token in a text, which begins a turn; NULL: none. */
static const char *last_special(const struct tokenizer *t, const char *text)
{
    const char *last = NULL;
    for (const char *p = text; (p = strchr(p, '<')); p++) {
        const char *end = strchr(p, '>');
        autofree char *token = end ? xasprintf("%.*s", (int)(end - p) + 1, p) : NULL;
        if (token && tokenizer_is_special(t, tokenizer_find(t, token)))
            last = p;
    }
    return last;
}

/* Returns where the next turn begins in a text between two contents: the last occurrence of the token that
 * begins a user turn. */
static const char *turn_begin(const char *text, const char *user_open)
{
    size_t n = (size_t)(strchr(user_open, '>') - user_open) + 1;
    const char *last = NULL;
    for (const char *p = text; *p; p++)
        if (!strncmp(p, user_open, n))
            last = p;
    return last;
}

static bool cut_suffix(char *text, const char *suffix)
{
    size_t n = strlen(text), k = strlen(suffix);
    if (n < k || strcmp(text + n - k, suffix) != 0)
        return false;
    text[n - k] = 0;
    return true;
}

static int take_apart(const struct chat_template *c, struct chat_turns *t, struct chat_probe *with,
                      struct chat_probe *without, struct err *e)
{
    const char *user = last_special(c->tokenizer, with->between[1]), *reply;
    if (!user)
        return err_set(e, ERR_MODEL, "user turns do not begin with a special token");
    t->user[0] = xstrdup(user);
    t->system[0] = xstrdup(with->between[0]);
    t->system[1] = xasprintf("%.*s", (int)(user - with->between[1]), with->between[1]);
    if (!(reply = turn_begin(with->between[2], t->user[0])))
        return err_set(e, ERR_MODEL, "replies and user turns begin with different tokens");
    t->user[1] = xasprintf("%.*s", (int)(reply - with->between[2]), with->between[2]);
    t->reply[0] = xstrdup(reply);
    t->reply[1] = xstrdup(with->between[3]);
    t->preamble = xstrdup(without->between[0]);
    size_t close = strlen(t->user[1]);
    if (!cut_suffix(t->reply[1], t->user[0]) || !cut_suffix(t->preamble, t->user[0]) ||
        strncmp(with->between[4], t->user[1], close) != 0)
        return err_set(e, ERR_MODEL, "its turns differ by their position");
    t->open = xstrdup(with->between[4] + close);
    if (!last_special(c->tokenizer, t->reply[1]))
        return err_set(e, ERR_MODEL, "replies do not end with a special token");
    return 0;
}

/* ---- properties --------------------------------------------------------------------------------------- */

/* Returns the LAYOUT_TRIM_ bits of a rendered content that had whitespace, with a space outermost, at both
 * ends. */
static unsigned trimmed(const char *text)
{
    size_t n = strlen(text);
    return (n && text[0] != ' ' ? LAYOUT_TRIM_BEGIN : 0u) | (n && text[n - 1] != ' ' ? LAYOUT_TRIM_END : 0u);
}

static int find_trims(const struct chat_template *c, struct chat_turns *t, bool think, struct err *e)
{
    static const char *const texts[] = {" \n A\t ", " \n B\t ", " \n C\t ", " \n D\t "};
    struct chat_probe p;
    if (probe(c, &p, "suau", texts, think, e))
        return -1;
    t->trim_system = trimmed(p.contents[0]);
    t->trim_user = trimmed(p.contents[1]);
    t->trim_reply = trimmed(p.contents[2]);
    chat_probe_free(&p);
    return 0;
}

/* Renders one user message of two texts with an image between them. Returns the rendered text, or NULL
 * with e. */
static char *render_parts(const struct chat_template *c, struct err *e)
{
    static const struct image image = {0};
    const struct chat_part parts[3] = {{.text = "A"}, {.image = &image}, {.text = "B"}};
    const struct chat_message m = {.role = CHAT_USER, .parts = parts, .n = 3, .listed = true};
    const struct chat_conversation v = {.messages = &m, .n = 1};
    struct jinja_arena *a = jinja_arena_new();
    struct jinja_string out;
    char *text = chat_render_text(c, &v, a, &out, e) ? NULL : xasprintf("%.*s", (int)out.len, out.data);
    jinja_arena_free(a);
    return text;
}

/* Returns whether a list of texts renders as those texts, i.e. whether the template supports lists. */
static bool knows_lists(struct chat_template *c)
{
    const struct chat_part parts[2] = {{.text = "A"}, {.text = "B"}};
    struct chat_message m = {.role = CHAT_USER, .parts = parts, .n = 2, .listed = true};
    const struct chat_conversation v = {.messages = &m, .n = 1};
    struct jinja_arena *a = jinja_arena_new();
    struct jinja_string out[2];
    struct err e = ERR_INIT;
    c->lists = true;
    bool same = chat_render_text(c, &v, a, &out[0], &e) == 0;
    m.listed = false;
    same = same && chat_render_text(c, &v, a, &out[1], &e) == 0 && out[0].len == out[1].len &&
           !memcmp(out[0].data, out[1].data, out[0].len);
    jinja_arena_free(a);
    return same;
}

/* Finds whether contents may be lists, and the order of images in them. */
static void find_lists(struct chat_template *c)
{
    struct err e = ERR_INIT;
    c->in_order = true;
    c->lists = knows_lists(c);
    char *text = c->lists ? render_parts(c, &e) : NULL,
         *image = text ? strstr(text, chat_placeholder(c)) : NULL;
    if (image)
        c->in_order = image > text && image[-1] == 'A';
    free(text);
}

/* ---- checking ----------------------------------------------------------------------------------------- */

static void put_turn(struct layout *l, char *const around[2], const char *text, unsigned trim)
{
    layout_template(l, around[0]);
    int from = l->n;
    layout_text(l, text, strlen(text));
    layout_trim(l, from, trim);
    layout_template(l, around[1]);
}

static void put_reply(struct layout *l, const struct chat_turns *t, const char *text)
{
    layout_template(l, t->reply[0]);
    int from = l->n;
    layout_reply(l, text, strlen(text));
    layout_trim(l, from, t->trim_reply);
    layout_template(l, t->reply[1]);
}

/* Returns all texts of a layout, concatenated. */
static char *flatten(const struct layout *l)
{
    autobuf out = buf_of(MAX_RENDERED);
    for (int i = 0; i < l->n; i++)
        buf_put(&out, l->texts.data + l->segments[i].at, l->segments[i].len);
    char *text = buf_take(&out);
    return text ? text : xstrdup("");
}

/* Returns whether a conversation assembled from the turns equals the rendered one. */
static bool assembles(const struct chat_template *c, const struct chat_turns *t, const char *roles,
                      const char *const *texts, bool think)
{
    struct err e = ERR_INIT;
    struct chat_probe p;
    struct layout l = layout_new();
    struct buf want;
    if (probe(c, &p, roles, texts, think, &e)) {
        layout_free(&l);
        return false;
    }
    if (*roles != 's')
        layout_template(&l, t->preamble);
    for (int i = 0; roles[i]; i++)
        if (roles[i] == 'a')
            put_reply(&l, t, texts[i]);
        else
            put_turn(&l, roles[i] == 's' ? t->system : t->user, texts[i],
                     roles[i] == 's' ? t->trim_system : t->trim_user);
    layout_template(&l, t->open);
    buf_init(&want, MAX_RENDERED);
    for (int i = 0; i < p.n; i++)
        buf_printf(&want, "%s%s", p.between[i], p.contents[i]);
    buf_puts(&want, p.between[p.n]);
    autofree char *got = flatten(&l);
    bool same = !strcmp(got, want.data);
    buf_free(&want);
    chat_probe_free(&p);
    layout_free(&l);
    return same;
}

static int check_turns(const struct chat_template *c, const struct chat_turns *t, bool think, struct err *e)
{
    static const char *const texts[] = {" Be brief.\n",
                                        "One.\n\nTwo ",
                                        (" \xc2\xa0"
                                         "click(1)\n"),
                                        "{\"x\": [1]}",
                                        "done",
                                        "\tMore\xe3\x80\x80"};
    if (assembles(c, t, "suauau", texts, think) && assembles(c, t, "uauau", texts + 1, think) &&
        assembles(c, t, "su", texts, think) && assembles(c, t, "u", texts + 3, think))
        return 0;
    return err_set(e, ERR_MODEL, "a turn changes when the next one follows");
}

static int find_turns(const struct chat_template *c, struct chat_turns *t, bool think, struct err *e)
{
    struct chat_probe with, without;
    if (probe(c, &with, "suau", NULL, think, e))
        return -1;
    if (probe(c, &without, "u", NULL, think, e)) {
        chat_probe_free(&with);
        return -1;
    }
    int rc = take_apart(c, t, &with, &without, e);
    chat_probe_free(&with);
    chat_probe_free(&without);
    t->in_order = c->in_order;
    t->keeps_reply = rc == 0 && !strcmp(t->reply[0], t->open);
    if (rc == 0)
        rc = find_trims(c, t, think, e) || check_turns(c, t, think, e) ? -1 : 0;
    return rc;
}

void chat_find_turns(struct chat_template *c)
{
    struct err e = ERR_INIT;
    find_lists(c);
    if (!c->tokenizer)
        err_set(&c->turns_why, ERR_MODEL, "no tokenizer");
    for (int think = 0; think < 2 && !c->turns_why.kind; think++)
        if (find_turns(c, &c->turns[think], think, &e))
            c->turns_why = e;
}

const struct chat_turns *chat_template_turns(const struct chat_template *c, bool think, struct err *e)
{
    const struct err *why = !c->jinja ? &c->why : &c->turns_why;
    if (!why->kind)
        return &c->turns[think];
    err_set(e, ERR_MODEL, "the model's chat template cannot be used for runs: %s", why->text);
    return NULL;
}

/* ---- tools ------------------------------------------------------------------------------------------- */

int chat_template_system(const struct chat_template *c, const char *text, const char *const *tools, int n,
                         bool think, struct layout *l, struct err *e)
{
    const struct chat_turns *t = chat_template_turns(c, think, e);
    const struct chat_part parts[2] = {{.text = text}, {.text = "A"}};
    const struct chat_message messages[2] = {{.role = CHAT_SYSTEM, .parts = &parts[0], .n = 1},
                                             {.role = CHAT_USER, .parts = &parts[1], .n = 1}};
    const struct chat_conversation v = {.messages = messages,
                                        .n = 2,
                                        .tools = tools,
                                        .n_tools = n,
                                        .think = think ? CHAT_THINK_ON : CHAT_THINK_OFF};
    if (n && !c->calls.form)
        return err_set(e, ERR_USAGE,
                       "this dialect needs tools listed by the model's chat template, which has none; "
                       "use another --dialect");
    if (!t || chat_template_render(c, &v, l, e))
        return -1;
    /* removes the user turn: its content is the last external text */
    int user = l->n - 1;
    while (user > 0 && (l->segments[user].special || l->segments[user].image))
        user--;
    struct layout_segment *before = user > 0 ? &l->segments[user - 1] : NULL;
    size_t open = strlen(t->user[0]);
    if (!before || before->len < open ||
        memcmp(l->texts.data + before->at + before->len - open, t->user[0], open) != 0)
        return err_set(e, ERR_MODEL, "the model's chat template does not put its tools into the system turn");
    before->len -= open;
    l->n = user;
    return 0;
}
