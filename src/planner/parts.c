/* parts.c - parts of a sentence that change nothing: statements beside the task ("my boss likes it, so ..."),
 * and negations of one thing ("without the newsletter", "leave the sound as it is").
 *
 * A negation is never a word that other rules may cover: its part must name one tick or one empty field and
 * say nothing else, or be a statement without a word of the window. */
#include "planner/asked.h"
#include "planner/lexicon.h"

#include <string.h>

static bool begins(const struct asked *a, int i)
{
    return words_is(a->s, i, "because|since|so|but|without|-") ||
           (words_is(a->s, i, "and") && words_is(a->s, i + 1, "i|we|it|it's|my|they|i'd|we'd|i'm|we're"));
}

int asked_part_end(const struct asked *a, int i)
{
    int to = i + 1;
    while (to < a->s.n && !a->s.w[to - 1].after && !begins(a, to))
        to++;
    return to;
}

uint64_t asked_bits(int from, int to)
{
    return (to < 64 ? BIT(to) - 1 : ~0ULL) & ~(BIT(from) - 1);
}

/* Returns the bits of these words in [from, to). */
static uint64_t among(const struct asked *a, int from, int to, const char *any)
{
    uint64_t found = 0;
    for (int i = from; i < to; i++)
        found |= words_is(a->s, i, any) ? BIT(i) : 0;
    return found;
}

static uint64_t negations(const struct asked *a, int from, int to)
{
    uint64_t found = 0;
    for (int i = from; i < to; i++)
        found |= clause_is_negation(a->s, i) || words_is(a->s, i, "no") ? BIT(i) : 0;
    return found;
}

/* Returns the line whose name is just these words of the task; -1: none, or two. */
static int named_line(const struct asked *a, uint64_t words)
{
    int found = -1;
    for (int l = 0; l < a->form.n; l++) {
        const struct form_line *line = &a->form.l[l];
        struct match_words name = fill_words(line->name);
        uint64_t have = asked_among(a, &name, 0.9F), all = 0;
        for (int k = 0; k < name.n; k++) {
            struct match_words one = {.w = {name.w[k]}, .n = 1};
            all += (asked_among(a, &one, 0.9F) & words) != 0;
        }
        if (line->kind > LINE_TICK || line->twin || (words & ~have) || !all ||
            (line->kind == LINE_TICK && all < (uint64_t)name.n))
            continue;
        if (found >= 0)
            return -1;
        found = l;
    }
    return found;
}

/* Reads "leave X as it is", and negations of one tick or empty field.  Returns whether it is one. */
static bool read_scope(struct asked *a, int from, int to)
{
    int head = from;
    while (words_is(a->s, head, "but|and|so|please|just|-"))
        head++;
    bool same = words_is(a->s, head, "leave|keep") &&
                ((words_is(a->s, to - 3, "as") && words_is(a->s, to - 1, "is|are|was")) ||
                 words_is(a->s, to - 1, "alone|unchanged|untouched"));
    bool keeps = words_is(a->s, head, "keep") && !same; /* ... a tick that is on */
    same = same || keeps;
    uint64_t nots = negations(a, head, to), part = asked_bits(from, to);
    bool denies = nots && !(nots & (nots - 1));
    uint64_t no_names = nots | asked_bits(from, head) | among(a, from, to, SCOPE_WORDS);
    if (same) /* "as it is" */
        no_names |= BIT(head) | among(a, from, to, "as|it|they|is|are|was|alone|unchanged|untouched");
    int line = denies != same ? named_line(a, a->content & part & ~no_names) : -1;
    if (line < 0 || !(a->content & part & ~no_names) ||
        (keeps && (a->form.l[line].kind != LINE_TICK || strcmp(a->form.l[line].v[0].text, "yes") != 0)) ||
        (denies && a->form.l[line].kind == LINE_LIST) ||
        (denies && a->form.l[line].kind == LINE_FIELD && strcmp(a->form.l[line].v[0].text, "\"\"") != 0))
        return false;
    if (denies && a->form.l[line].kind == LINE_TICK && !strcmp(a->form.l[line].v[0].text, "yes"))
        a->reply.value[line] = 1;
    a->named[line] = a->content & part;
    a->typed |= part;
    a->covered |= part;
    return true;
}

/* Returns the bits of the task's words that some name of the window has. */
static uint64_t in_window(const struct asked *a)
{
    uint64_t found = 0;
    for (int i = 0; i < a->f->all->n; i++) {
        const struct candidate *c = &a->f->all->c[i];
        found |= asked_among(a, &c->words, 0.7F);
        for (int w = 0; w < a->s.n; w++)
            found |= asked_commits(a, w, c->name) ? BIT(w) : 0;
    }
    return found;
}

/* Drops statements of people about themselves, and reasons, that have no word of the window, no value and no
 * wish.  What others say needs a user. */
static void drop_statement(struct asked *a, int from, int to, uint64_t window)
{
    int head = from;
    while (words_is(a->s, head, "and|but|so|well|yes|ok|okay|as|since|because|-") && head < to)
        head++;
    bool reason = among(a, from, head, "since|because") || words_is(a->s, to, "so");
    bool self =
        words_is(a->s, head, SELF) &&
        (words_is(a->s, head, "i|i'm|im|i've|i'll|we|we're|we've|we'll|nobody|today|tomorrow|there") ||
         !among(a, head, to, "is|are|was|be|has|it's|that's"));
    bool said = words_is(a->s, head, "they|he|she");
    uint64_t part = asked_bits(from, to), nots = negations(a, from, to);
    uint64_t hard = a->hard & ~nots & ~among(a, from, to, "but|while|when|until|yesterday|tomorrow");
    if ((!reason && !self && !said) || head == to || (part & (hard | a->covered | a->typed)) ||
        (part & window & a->content) || among(a, from, to, WISHES "|if|unless") ||
        (nots && (!(part & a->content & ~nots) || among(a, from, to, PRONOUNS "|anything|so|do|done"))))
        return;
    a->said = a->said || (said && (part & a->content));
    a->aside = a->aside || (part & a->content);
    a->covered |= part;
    a->typed |= part;
}

void asked_read_parts(struct asked *a)
{
    uint64_t window = in_window(a);
    for (int from = 0, to; from < a->s.n; from = to) {
        to = asked_part_end(a, from);
        if (!read_scope(a, from, to))
            drop_statement(a, from, to, window);
        if (words_is(a->s, from, "but")) /* a joint, as "and" */
            a->covered |= BIT(from);
    }
}
