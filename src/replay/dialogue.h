/* dialogue.h - a conversation kept as texts and images, to be told to a model only when it is needed. */
#pragma once

#include "llm/llm.h"

enum { DIALOGUE_PARTS = 4 };

struct dialogue_turn {
    struct chat_part parts[DIALOGUE_PARTS]; /* of the user; texts and images are owned */
    int n;
    enum chat_place place;
    char *reply; /* NULL: the user's turn */
};

struct dialogue {
    char *system;
    struct dialogue_turn *turns;
    int n;
};

void dialogue_begin(struct dialogue *d, const char *system); /* also drops all turns */
int dialogue_user(struct dialogue *d, const struct chat_part *parts, int n, enum chat_place place,
                  struct err *e);
void dialogue_reply(struct dialogue *d, const char *text);
void dialogue_cut(struct dialogue *d, int n); /* keeps the first n turns */
void dialogue_free(struct dialogue *d);
/* Returns an estimate in tokens: a byte counts as one, an image as 256. */
int64_t dialogue_length(const struct dialogue *d);
/* Starts a conversation of a model with the first n turns. */
int dialogue_tell(const struct dialogue *d, int n, struct llm *m, struct err *e);
