/* nearest.c - the names on the screen that are most alike to a missing one, for messages. */
#include "plain/resolve.h"

#include <string.h>

/* Returns the share of the pairs of neighbouring letters of a that occur in b, from 0 to 100. */
static int same_pairs(const char *a, const char *b)
{
    int pairs = 0, found = 0;
    for (; a[0] && a[1]; a++, pairs++) {
        const char pair[] = {a[0], a[1], 0};
        found += strstr(b, pair) != NULL;
    }
    return pairs ? 100 * found / pairs : 0;
}

/* Returns how alike two names are, from 0 to 200: words of a in b by their first letters, and pairs of
 * letters. */
static int alike(const char *a, const char *b)
{
    char x[RESOLVE_NAME], y[RESOLVE_NAME];
    int words = 0, found = 0;
    char *rest = NULL;
    resolve_normalize(a, x);
    resolve_normalize(b, y);
    int pairs = same_pairs(x, y);
    for (char *w = strtok_r(x, " ", &rest); w; w = strtok_r(NULL, " ", &rest), words++) {
        size_t n = strlen(w);
        w[n > 4 ? 4 : n] = 0;
        found += strstr(y, w) != NULL;
    }
    return pairs + (words ? 100 * found / words : 0);
}

static bool is_listed(const struct element *e, const struct element *const *list, int n)
{
    for (int i = 0; i < n; i++)
        if (list[i] == e ||
            (!strcmp(list[i]->role, e->role) && resolve_same(resolve_name(list[i]), resolve_name(e))))
            return true;
    return false;
}

void resolve_nearest(const struct snapshot *s, const struct resolve_query *q, struct buf *out)
{
    const struct element *shown[RESOLVE_NEAREST];
    for (int n = 0; n < RESOLVE_NEAREST; n++) {
        const struct element *best = NULL;
        int most = -1;
        for (int i = 0; i < s->n; i++) {
            const struct element *e = &s->e[i];
            bool use = resolve_suits(e, q->use) || (q->use == RESOLVE_PRESS && resolve_is_clickable(s, e));
            bool fits = use && e->parent >= 0 && resolve_name(e)[0] && !resolve_hidden_by(s, e) &&
                        !is_listed(e, shown, n);
            int points = fits ? alike(q->name, resolve_name(e)) : -1;
            if (points > most) {
                most = points;
                best = e;
            }
        }
        if (!best)
            return;
        shown[n] = best;
        buf_printf(out, "%s%s \"%.60s\"",
                   n      ? ", "
                   : most ? "; nearest: "
                          : "; on the screen: ",
                   best->role, resolve_name(best));
    }
}
