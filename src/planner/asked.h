/* asked.h - a task for one window: the values that its lines get, and which words of the task they cover;
 * private to this room. */
#pragma once

#include "planner/form.h"
#include "planner/planner_impl.h"
#include "planner/writer.h"

enum { TASK_WORDS = 64 };

struct asked {
    struct frame *f;
    struct span s;                    /* words of the task */
    struct match_words w[TASK_WORDS]; /* ... in parts, to be compared */
    struct match_words all;           /* ... of all words */
    struct form form;
    struct written reply;
    const struct clause *k; /* clauses of the words */
    int clauses, file;      /* word that is the name of a file for the next window; -1: none */
    uint64_t content;       /* bits of the words that must be covered */
    uint64_t hard;          /* ... literally */
    uint64_t covered;
    uint64_t joined;            /* words of a number after its first one */
    uint64_t typed;             /* words that are values of fields */
    uint64_t named[FORM_LINES]; /* words that name the value of a line, by rules; also the value now */
    float least;                /* smallest probability of a line that differs */
    bool rules;                 /* the values are by rules, not by the model */
    bool said;                  /* a statement beside the task was covered, which may matter */
    bool aside;                 /* ... of the user about himself */
    const char *doubt;          /* why a user must confirm the values; NULL: nothing */

    /* of the lines that differ: */
    int values, ticks, presses;
    bool rows, entered, called, ticked, unticked;
    const char *button; /* "": none */
};

/* Returns the value that a line gets; NULL: it does not differ. */
static inline const struct form_value *asked_new(const struct asked *a, int line)
{
    return a->reply.value[line] ? &a->form.l[line].v[a->reply.value[line]] : NULL;
}

/* ---- cover.c ---- */

/* Reads which words of the task must be covered. */
void asked_read_words(struct asked *a);
/* Writes the task as one line; the caller frees it. */
char *asked_request(const struct asked *a);
/* Returns the clause that has word i; NULL: none. */
const struct clause *asked_clause(const struct asked *a, int i);
/* Returns the bits of the task's words that are at least so much like words of a name. */
uint64_t asked_among(const struct asked *a, const struct match_words *name, float least);
/* Covers the words of the lines that differ, of verbs and of statements. */
void asked_cover(struct asked *a);
/* Returns the bits of the words that are not covered. */
uint64_t asked_open(const struct asked *a);
/* Returns whether the clause of word i has no covered word: it may be for a later window. */
bool asked_is_later(const struct asked *a, int i);
/* Returns whether the name of a button has a word that means the same deed as word i: "book", "reserve". */
bool asked_commits(const struct asked *a, int i, const char *name);

/* ---- use.c ---- */

/* Appends the steps of the lines that differ, after checks for faults that neither words nor probabilities
 * show. */
enum framed asked_use(struct asked *a);
/* Returns whether a value turns a tick off. */
bool asked_is_off(const struct form_line *l, const struct form_value *v);

/* ---- parts.c ---- */

/* Returns the end of the part that begins at word i: at a comma, "because" or "but". */
int asked_part_end(const struct asked *a, int i);
/* Returns the bits of words [from, to). */
uint64_t asked_bits(int from, int to);
/* Covers parts of the task that change nothing, and takes what others negate: before its values are read. */
void asked_read_parts(struct asked *a);

/* ---- fill.c, fill_fields.c ---- */

/* Sets the value of each line by rules.  Returns false if none differs. */
bool asked_fill(struct asked *a);
/* Returns the words of a text that name things, or its only word. */
struct match_words fill_words(const char *text);
/* Returns how well word i of the task is one of these; 0 if it is a value of a field. */
float fill_alike(const struct asked *a, int i, const struct match_words *w);
/* Returns whether word i is what its clause leaves: the order of "cancel the order". */
bool fill_is_left(const struct asked *a, int i);
/* Returns whether a text has one of the words "a|b". */
bool fill_has(const char *text, const char *any);
/* Assigns the words that follow the names of fields, or a number before them. */
void fill_by_name(struct asked *a);
/* Assigns the values that stand without the name of a field. */
void fill_unnamed(struct asked *a);
