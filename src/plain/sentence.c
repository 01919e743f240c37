/* sentence.c - splits a sentence into steps.
 *
 * "then", a semicolon, a full stop and a line break always separate steps.  A comma and "and" separate them
 * only where a step begins that some rule covers to its end, because both occur in names ("Find and
 * Replace"). */
#include "plain/private.h"

#include <stdlib.h>
#include <string.h>

/* How the words from one on can be read. */
struct reading {
    struct plain_step step;
    int next;  /* where the step after this one begins */
    bool read; /* the remaining words are steps, the first of them `step` */
    bool tried;
};

/* Returns where a step that ends before word i continues; 0: no step ends there.  hard: must end there. */
static int separator(struct span s, int i, bool *hard)
{
    char after = s.w[i - 1].after;
    int next = i;
    *hard = after && after != ',';
    if (words_is(s, next, "and"))
        next++;
    if (words_is(s, next, "then")) {
        next++;
        *hard = true;
    } else if (words_is(s, next, "finally|afterwards")) {
        next++;
    }
    return next > i || after ? next : 0;
}

/* Reads the steps from word `from` on: the shortest first step whose remainder is read, too. */
static bool read_from(struct span s, int from, struct reading *all, struct err *why)
{
    struct reading *r = &all[from];
    if (from == s.n)
        return true;
    if (r->tried)
        return r->read;
    r->tried = true;
    for (int i = from + 1; i <= s.n; i++) {
        bool hard = false;
        int next = i == s.n ? s.n : separator(s, i, &hard);
        if (!next)
            continue;
        struct err e = ERR_INIT;
        if ((next < s.n || i == s.n) && plain_parse_step(words_part(s, from, i), &r->step, &e) == 0) {
            if (read_from(s, next, all, why)) {
                r->next = next;
                return r->read = true;
            }
            plain_step_free(&r->step);
        } else if ((hard || i == s.n) && !why->text[0]) {
            *why = e;
        }
        if (hard)
            break;
    }
    return false;
}

int plain_parse(const char *sentence, struct plain_steps *out, struct err *why)
{
    struct words words;
    struct err none = ERR_INIT, reason = ERR_INIT;
    *out = (struct plain_steps){0};
    if (strlen(sentence) > PLAIN_TEXT_MAX)
        return err_set(why, ERR_USAGE, "the sentence is longer than %d bytes", PLAIN_TEXT_MAX);
    if (words_split(sentence, &words, why) < 0)
        return -1;
    struct span s = {words.w, words.n};
    struct reading *all = xcalloc((size_t)words.n + 1, sizeof *all);
    bool read = words.n && read_from(s, 0, all, &reason);
    if (read) {
        out->s = xcalloc(PLAIN_STEPS_MAX, sizeof *out->s);
        for (int i = 0; i < words.n && out->n < PLAIN_STEPS_MAX; i = all[i].next) {
            out->s[out->n++] = all[i].step;
            all[i].step = (struct plain_step){0};
            read = all[i].next == words.n || out->n < PLAIN_STEPS_MAX;
        }
    }
    for (int i = 0; i <= words.n; i++)
        plain_step_free(&all[i].step);
    free(all);
    words_free(&words);
    if (read)
        return 0;
    plain_free(out);
    if (why)
        *why = reason.text[0] ? reason : none;
    return why && why->text[0] ? -1 : err_set(why, ERR_USAGE, "the sentence has no step");
}

static char *copied(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

void plain_add(struct plain_steps *to, const struct plain_step *s)
{
    to->s = xrealloc(to->s, (unsigned long)to->n + 1, sizeof *to->s);
    struct plain_step *copy = &to->s[to->n++];
    *copy = *s;
    copy->what = copied(s->what);
    copy->role = copied(s->role);
    copy->whole = copied(s->whole);
    copy->in = copied(s->in);
    copy->row = copied(s->row);
    copy->value = copied(s->value);
    for (int i = 0; i < s->levels; i++)
        copy->path[i] = copied(s->path[i]);
}

void plain_free(struct plain_steps *p)
{
    for (int i = 0; i < p->n; i++)
        plain_step_free(&p->s[i]);
    free(p->s);
    *p = (struct plain_steps){0};
}
