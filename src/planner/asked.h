/* asked.h - a task for one window, and which of its words the steps cover; private to this room. */
#pragma once

#include "planner/form.h"
#include "planner/planner_impl.h"
#include "planner/writer.h"

struct asked {
    struct frame *f;
    struct span s; /* words of the task */
    struct form form;
    struct written reply;
    char *window;     /* as the model sees it */
    uint64_t content; /* bits of the words that must be covered */
    uint64_t hard;    /* ... literally */
    uint64_t covered;
    float least; /* smallest probability of a line that differs */
    bool rules;  /* the values are by rules, not by the model */
    bool said;   /* a statement beside the task was covered */
};

/* Reads which words of the task must be covered. */
void asked_read_words(struct asked *a);
/* Writes the task as one line, without words [from, to); the caller frees it. */
char *asked_request(const struct asked *a, int from, int to);
/* Covers the words of the lines that differ, of verbs and of statements. */
void asked_cover(struct asked *a);
/* Covers each group of open words that makes the reply more probable.  later: leaves out clauses that may be
 * for another window.  Returns -1 with e. */
int asked_cover_gains(struct asked *a, bool later, struct err *e);
/* Returns the bits of the words that are not covered. */
uint64_t asked_open(const struct asked *a);
/* Returns whether the clause of word i has no covered word: it may be for a later window. */
bool asked_is_later(const struct asked *a, int i);
