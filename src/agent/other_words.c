/* other_words.c - names and texts of a reply that cannot be right, and what is said in their place.
 *
 * A small model slips while it copies: the name of a field goes on as that of another, a name of two words
 * is cut, a text is typed again.  What could have been meant is known then, from the screen or from the
 * task, and the model is asked which of it: a beam search over these words alone, which is decoding
 * constrained to a trie (De Cao et al. 2021).
 */
#include "agent/coverage.h"

#include "base/err.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CANDIDATES = 16, LABELS = 32, PIECES = 128, SHORTEST_NAME = 3, BEGINNING = 2 };

static const double possible = 1e-4; /* probability of another name */
/* Logarithms of the probabilities of a label in place of a name, and of another text. */
static const double likely_name = -10, likely_text = -17;

/* What else the model could have said in a slot of the reply at hand, the likeliest first: one of n words, or
 * (NULL) anything.  How many; -1 with e. */
static int search(struct agent *a, enum slot_kind kind, const char *const *words, int n, struct slot *slot,
                  struct beam_candidate *out, struct err *e)
{
    const struct generated *said = &a->reply.raw;
    const struct beam_request x = {.goal = GOAL_STEP,
                                   .said = said,
                                   .slot = slot,
                                   .words = words,
                                   .n_words = n,
                                   .cancel = &a->run.cancel};
    if ((words && n == 0) || !dialect_word_slot(a->o->dialect, kind, said->text.data, said->text.len, slot))
        return 0;
    return context_beam_search(a->run.context, &x, out, CANDIDATES, e);
}

/* The reply at hand with other words in a slot, if the logarithm of their probability is more than this. */
static int say_in_slot(struct agent *a, const struct slot *slot, const char *words, double least,
                       struct err *e)
{
    least += logprob_of(&a->reply.raw, slot->begin);
    char *begins = xasprintf("%.*s%s%s", (int)slot->begin, a->reply.raw.text.data, words,
                             slot->kind == SLOT_NAME ? "<at>" : "\n");
    int rc = try_instead(a, begins, &least, e);
    free(begins);
    return rc;
}

/* ---- names -------------------------------------------------------------------------------------------- */

/* Whether a label could be meant by the name of a reply: what is clicked may be called by what it is ("text
 * box"), so it must begin alike; what is filled in must be empty yet. */
static bool may_be_meant(const struct review *v, const char *label)
{
    const struct action *last = reviewed_action(v->a);
    bool fits = last->kind == ACT_TYPE ? !is_filled(&v->writes, label)
                                       : !strncasecmp(label, last->element, BEGINNING);
    return fits && !strchr(label, '<');
}

/* For a name that is made of two: the likeliest name that stands there.  1: said; -1 with e. */
static int say_label(const struct review *v, enum locate_for what, struct err *e)
{
    char labels[LABELS][LOCATE_NAME];
    const char *words[LABELS];
    struct beam_candidate found[CANDIDATES];
    struct slot slot;
    int n = labels_read(&v->seen.map, &v->seen.text, what, labels, LABELS), meant = 0;
    for (int i = 0; i < n; i++)
        if (may_be_meant(v, labels[i]))
            words[meant++] = labels[i];
    n = search(v->a, SLOT_NAME, words, meant, &slot, found, e);
    if (n <= 0)
        return n;
    return say_in_slot(v->a, &slot, found[0].text, likely_name, e) ? -1 : 1;
}

/* For a name that is written nowhere, nor in the task: the likeliest other one that names something; likewise
 * of a field. */
static int say_other_name(const struct review *v, struct err *e)
{
    struct agent *a = v->a;
    const struct action *last = reviewed_action(a);
    struct beam_candidate found[CANDIDATES];
    struct thing is;
    struct slot slot;
    enum locate_for what = last->kind == ACT_TYPE ? LOCATE_TYPE : LOCATE_CLICK;
    if ((last->kind != ACT_CLICK && last->kind != ACT_TYPE) || strlen(last->element) < 2 ||
        spoken_of(a->run.task, last->element))
        return 0;
    if (is_misspelt(&v->seen.text, last->element)) {
        int said = say_label(v, what, e);
        if (said)
            return said < 0 ? -1 : 0;
    }
    if (may_be_written(&v->seen.text, last->element))
        return 0;
    int n = search(a, SLOT_NAME, NULL, 0, &slot, found, e);
    for (int i = 0; i < n; i++)
        if (found[i].p > possible &&
            thing_of_name(&v->seen.map, &v->seen.text, found[i].text, true, what, &is) &&
            (what == LOCATE_CLICK || !is_filled(&v->writes, found[i].text)))
            return say_in_slot(a, &slot, found[i].text, -INFINITY, e);
    return n < 0 ? -1 : 0;
}

/* ---- texts -------------------------------------------------------------------------------------------- */

/* The likeliest of n texts in place of the one that is typed, if it is likelier than `least`. */
static int type_likeliest(struct agent *a, char (*text)[TASK_NAME], int n, double least, struct err *e)
{
    struct beam_candidate found[CANDIDATES];
    struct slot slot;
    const char *words[PIECES];
    for (int i = 0; i < n; i++)
        words[i] = text[i];
    n = search(a, SLOT_TEXT, words, n, &slot, found, e);
    return n > 0 ? say_in_slot(a, &slot, found[0].text, least, e) : n;
}

int type_one_of(const struct review *v, char (*text)[TASK_NAME], int n, struct err *e)
{
    return type_likeliest(v->a, text, n < PIECES ? n : PIECES, -INFINITY, e);
}

/* Leaves out what names a button: it is to be pressed. */
static int without_buttons(const struct review *v, char (*piece)[TASK_NAME], int n)
{
    struct thing is;
    int kept = 0;
    for (int i = 0; i < n; i++) {
        const char *last = strrchr(piece[i], ' ') ? strrchr(piece[i], ' ') + 1 : piece[i];
        if (!thing_of_name(&v->seen.map, &v->seen.text, last, false, LOCATE_CLICK, &is) || !is.button)
            memmove(piece[kept++], piece[i], sizeof *piece);
    }
    return kept;
}

/* For text that was typed before: the likeliest other piece of the task that was not. */
static int type_other_text(const struct review *v, struct err *e)
{
    struct agent *a = v->a;
    const struct action *last = reviewed_action(a);
    int standing =
        last->kind == ACT_TYPE && last->text && *last->text ? times_standing(&v->writes, last->text) : 0;
    if (!standing || times_spoken_of(a->run.task, last->text) > standing)
        return 0;
    char(*piece)[TASK_NAME] = xmalloc(PIECES, sizeof *piece);
    char *spoken = xasprintf("%s\n%s", v->before, last->element);
    int n = without_buttons(v, piece, task_pieces(a->run.task, spoken, piece, PIECES - 1));
    int rc = type_likeliest(a, piece, n, likely_text, e);
    free(spoken);
    free(piece);
    return rc;
}

/* For a text that begins as a name of the task and goes on as none: the likeliest that begins like this. */
static int type_name_as_begun(const struct review *v, struct err *e)
{
    struct agent *a = v->a;
    const struct action *last = reviewed_action(a);
    size_t first = last->text ? strcspn(last->text, " ") : 0;
    if (last->kind != ACT_TYPE || first < SHORTEST_NAME || !last->text[first] ||
        !isupper((unsigned char)*last->text) || spoken_of(a->run.task, last->text))
        return 0;
    char *near = agent_copied_text(last->text, a->run.task);
    char(*piece)[TASK_NAME] = xmalloc(PIECES, sizeof *piece);
    int n = near ? 0 : task_pieces(a->run.task, v->before, piece, PIECES - 1), kept = 0;
    for (int i = 0; i < n; i++)
        if (!strncmp(piece[i], last->text, first + 1))
            memmove(piece[kept++], piece[i], sizeof *piece);
    int rc = type_likeliest(a, piece, kept, -INFINITY, e);
    free(piece);
    free(near);
    return rc;
}

/* For one of two words of the task that look like a name: both. */
static int type_whole_name(const struct review *v, struct err *e)
{
    struct agent *a = v->a;
    const struct action *last = reviewed_action(a);
    char longer[2][TASK_NAME];
    if (last->kind != ACT_TYPE || !last->text || !*last->text)
        return 0;
    char *now = reply_words(a->reply.text), *said = xasprintf("%s\n%s", v->before, now);
    int n = task_longer_names(a->run.task, last->text, said, longer);
    free(now);
    free(said);
    return type_likeliest(a, longer, n, likely_text, e);
}

int see_to_words(const struct review *v, struct err *e)
{
    return say_other_name(v, e) || type_other_text(v, e) || type_name_as_begun(v, e) || type_whole_name(v, e)
               ? -1
               : 0;
}
