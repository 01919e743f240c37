/* player_impl.h - shared by the files of the player. */
#ifndef HOLORUN_PLAIN_PLAYER_IMPL_H
#define HOLORUN_PLAIN_PLAYER_IMPL_H

#include "llm/llm_counted.h"
#include "plain/player.h"
#include "plain/resolve.h"

enum {
    PLAYER_REPLY_MAX = 1 << 20,
    PLAYER_READ_MS = 1000,     /* of one snapshot */
    PLAYER_PATIENCE_MS = 4000, /* for a name to appear; longer for the first step: programs start */
    PLAYER_START_MS = 10000,
    PLAYER_WAIT_MS = 30000, /* of a step that waits */
    PLAYER_EFFECT_MS = 1500,
    PLAYER_SCROLLS = 30,
};

/* Progress through the steps. */
struct player_state {
    int64_t length; /* of the conversation */
    int at;         /* index of the current step */
    int phase;      /* actions of the step that were performed */
    int64_t since;  /* start of waiting in this phase; 0: not started */
    bool acted;     /* a step has been performed */
    bool opened;    /* the current step has opened a closed list at x, y */
    int x, y;
};

struct player {
    struct llm_counted c;
    struct plain_steps steps;
    struct screen *screen;
    struct elements *elements;
    struct player_source *source; /* NULL: none */
    const struct snapshot *now;   /* borrowed from elements, of this reply; NULL: nothing could be read */
    char unread[200];             /* why */
    struct player_state s;
    struct player_state asked; /* before the last reply */
    int turns;
    bool secret;           /* a step types a secret: values are neither compared nor printed */
    char *before;          /* text of the elements before the last action; NULL: none */
    bool seen;             /* a screenshot has arrived */
    bool ended;            /* the source has no further steps */
    char failed[ERR_TEXT]; /* why the last action was not performed; "": it was */
    char done[256];        /* the last performed step, and its effect, for the answer */
};

/* Result of looking at the current step. */
enum player_next {
    NEXT_ACTION, /* b has a reply with an action */
    NEXT_STEP,   /* the step is complete */
    NEXT_WAIT,   /* why has the reason */
    NEXT_FAILED, /* why has the reason */
};

/* Performs the current step: looks at the snapshot and appends the reply to b. */
enum player_next player_step(struct player *p, struct buf *b, char *why, size_t size);

/* Returns whether the current step's first element is on the screen, or it needs none. */
bool player_finds(struct player *p);

/* Append replies. */
void player_click(struct player *p, const struct element *e, const char *button, int count, struct buf *b);
void player_write(struct player *p, const struct element *e, const char *text, struct buf *b);
void player_keys(const char *keys, int times, struct buf *b);
/* Replaces the characters that could begin a call in a reply: names and texts come from other programs. */
void player_make_safe(char *text);
void player_call(struct buf *b, const char *tool, const char *key, const char *text);

#endif
