/* stand_ins.c - words that stand for secrets in the texts that the embedded model reads and writes.
 *
 * That model copies words of its task and was not trained on {{NAME}}.  Its task contains the name of a
 * town in place of "{{PASSWORD}}" or "the password", and where it types that town, the action gets
 * {{PASSWORD}}, which other models write themselves. */
#include "pocket/private.h"

#include "base/buf.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const towns[] = {
    "Melbourne", "Florence",  "Auckland",  "Salzburg", "Helsinki", "Valencia",  "Stuttgart",
    "Edinburgh", "Marseille", "Budapest",  "Montreal", "Santiago", "Brisbane",  "Winnipeg",
    "Toulouse",  "Rotterdam", "Innsbruck", "Hannover", "Dortmund", "Nashville",
};
enum { TOWNS = sizeof towns / sizeof *towns, TEXT_MAX = 4 << 20 };

static bool is_one_of(const char *word, size_t n, const char *const *list)
{
    for (; *list; list++)
        if (strlen(*list) == n && !strncasecmp(*list, word, n))
            return true;
    return false;
}

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Finds the word before `at`, skipping spaces, and its length. */
static const char *word_before(const char *text, const char *at, size_t *n)
{
    while (at > text && at[-1] == ' ')
        at--;
    const char *end = at;
    while (at > text && is_letter(at[-1]))
        at--;
    *n = (size_t)(end - at);
    return at;
}

/* Returns whether the words before `at` contain an instruction to type. */
static bool is_typed(const char *text, const char *at)
{
    static const char *const verbs[] = {"type", "enter", "write", "put",  "insert", "fill", "paste",
                                        "use",  "set",   "with",  "sign", "log",    "give", NULL};
    size_t n;
    for (const char *word = at; word > text;) {
        const char *before = word_before(text, word, &n);
        if (n && is_one_of(before, n, verbs))
            return true;
        word = n || before == text ? before : before - 1;
    }
    return false;
}

/* Returns whether the name of a secret at `at` (n bytes) means its value, as "the password" does and "the
 * password field" does not.  *from: the beginning of the phrase. */
static bool means_value(const char *text, const char *at, size_t n, const char **from)
{
    static const char *const determiners[] = {"the", "my", "our", "your", "his", "her", "their", "its", NULL};
    static const char *const verbs[] = {"type", "enter", "write", "put", "insert", "paste", "use", NULL};
    static const char *const things[] = {"field",  "box",  "input", "entry",  "area",   "line", "label",
                                         "button", "link", "page",  "dialog", "window", NULL};
    size_t before_n, after_n = 0;
    const char *before = word_before(text, at, &before_n), *after = at + n + strspn(at + n, " ");
    while (is_letter(after[after_n]))
        after_n++;
    if (is_letter(at[n]) || (at > text && is_letter(at[-1])) || is_one_of(after, after_n, things))
        return false;
    bool determined = is_one_of(before, before_n, determiners);
    *from = determined ? before : at;
    return determined ? is_typed(text, before) : is_one_of(before, before_n, verbs);
}

/* Returns the length of "{{API_TOKEN}}" at p, or 0. */
static size_t braced(const char *p, const char *name)
{
    size_t n = strlen(name);
    return p[0] == '{' && p[1] == '{' && !strncasecmp(p + 2, name, n) && p[2 + n] == '}' && p[3 + n] == '}'
               ? n + 4
               : 0;
}

/* Returns the length of "api token", "API_TOKEN" or "api-token" at p, or 0. */
static size_t named(const char *p, const char *name)
{
    size_t n = 0;
    for (; name[n]; n++)
        if (tolower((unsigned char)p[n]) != tolower((unsigned char)name[n]) &&
            !(name[n] == '_' && (p[n] == ' ' || p[n] == '-')))
            return 0;
    return n;
}

/* Replaces a secret in a task by `town`; *found: the task mentions it. */
static char *with_town(const char *task, const char *name, const char *town, bool *found)
{
    autobuf out = buf_of(TEXT_MAX);
    bool in_braces = false;
    for (const char *p = task; *p; p++)
        in_braces = in_braces || braced(p, name);
    for (const char *p = task; *p;) {
        const char *from = p;
        size_t n = in_braces ? braced(p, name) : named(p, name);
        if (n && (in_braces || means_value(task, p, n, &from))) {
            out.len -= (size_t)(p - from); /* the determiner */
            buf_puts(&out, town);
            *found = true;
        } else {
            buf_put(&out, p, n = 1);
        }
        p += n;
    }
    return buf_take(&out);
}

char *stand_ins_task(struct stand_ins *x, const char *task, const struct secrets *s, const char **unused)
{
    char *text = xstrdup(task);
    int next = 0;
    *x = (struct stand_ins){.secrets = s};
    for (int i = 0; i < secrets_count(s) && next < TOWNS; i++) {
        bool found = false;
        while (next < TOWNS - 1 && strcasestr(task, towns[next]))
            next++;
        char *with = with_town(text, secrets_name(s, i), towns[next], &found);
        x->town[i] = found ? towns[next++] : NULL;
        *unused = found ? *unused : secrets_name(s, i);
        free(text);
        text = with;
    }
    return text;
}

/* Replaces the towns in a text by {{NAME}}; NULL: it contains none. */
static char *with_names(const struct stand_ins *x, const char *text)
{
    autobuf out = buf_of(TEXT_MAX);
    bool any = false;
    for (const char *p = text; *p;) {
        size_t n = 0;
        for (int i = 0; i < secrets_count(x->secrets) && !n; i++) {
            const char *town = x->town[i];
            n = town && !strncasecmp(p, town, strlen(town)) ? strlen(town) : 0;
            if (n)
                buf_printf(&out, "{{%s}}", secrets_name(x->secrets, i));
        }
        any = any || n;
        if (!n)
            buf_put(&out, p, n = 1);
        p += n;
    }
    return any ? buf_take(&out) : NULL;
}

void stand_ins_resolve(const struct stand_ins *x, struct step *step)
{
    for (int i = 0; i < step->nactions; i++) {
        struct action *a = &step->actions[i];
        char *made = a->kind == ACT_TYPE && a->text ? with_names(x, a->text) : NULL;
        if (made) {
            free(a->text);
            a->text = made;
        }
    }
}
