/* candidates.h - the elements of the active window that a sentence may mean, with their context.
 *
 * A candidate is an element that can be used: a button, a tick, an option, a field, a row, a tab, a
 * menu item.  Items of closed menus and options of closed lists are candidates if the snapshot has them
 * (elements_scope.closed).  The context of a candidate are the words by which people distinguish it from
 * others: the path of its menu, the name of its list, the text of its row, the tab and the groups that hold
 * it. */
#pragma once

#include "atspi/elements.h"
#include "plain/plain.h"
#include "planner/match.h"

enum { CANDIDATES_MAX = 1000, CANDIDATE_NAME = 120 };

enum candidate_kind {
    CANDIDATE_PRESS = 1,
    CANDIDATE_TICK = 2,
    CANDIDATE_OPTION = 4, /* of a list, or a radio button */
    CANDIDATE_FIELD = 8,
    CANDIDATE_ROW = 16,
    CANDIDATE_TAB = 32,
    CANDIDATE_MENU = 64, /* a menu or an item of one */
    CANDIDATE_ANY = 127,
};

struct candidate {
    const struct element *e;
    const struct element *list_of; /* closed list of an option; NULL: none */
    enum candidate_kind kind;
    char name[CANDIDATE_NAME];
    char list[CANDIDATE_NAME];  /* its name */
    char row[CANDIDATE_NAME];   /* text at the start of its row, of elements with a namesake */
    char group[CANDIDATE_NAME]; /* names of the groups and headings around it */
    char tab[CANDIDATE_NAME];   /* page behind the front one that holds it */
    char *path[PLAIN_PATH_MAX];
    int levels; /* of a menu item: names of path */
    bool on, closed, off;
    struct match_words words, context;
};

struct candidates {
    struct candidate *c;
    int n;
    bool cut;                   /* there are more than CANDIDATES_MAX */
    const struct element *root; /* the active window; NULL: none is active */
    const char *title;          /* its title */
    struct match_words topic;   /* words of the title */
    const struct snapshot *s;
};

/* Reads the candidates of the active window, or of all windows if none is active.  Borrows the snapshot. */
void candidates_read(const struct snapshot *s, struct candidates *out);
void candidates_free(struct candidates *p);

/* Scores a candidate: 0.6 * share of the words that were found + 0.4 * share of the name that was used; a
 * word that only the context has counts 0.75. */
float candidate_score(const struct candidate *c, const struct match_words *q);

/* Returns whether two candidates are one command in a menu and a tool bar. */
bool candidate_same_command(const struct candidate *a, const struct candidate *b);
