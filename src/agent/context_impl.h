/* context_impl.h - struct context; private to context.c. */
#pragma once

#include "agent/context.h"

struct shared_mark { /* reference counted */
    struct llm_mark *mark;
    int users;
};

struct rewind_point { /* restores the state in which a turn had no reply yet */
    struct shared_mark *before_reply;
    struct shared_mark **before; /* [n] marks for evictions: before each turn in view, up to this one */
    int n;
};

struct turn {
    char *lead;                 /* text before the screenshot */
    struct image image;         /* strict only: an eviction prefills it again */
    bool shown;                 /* the screenshot is in view */
    struct shared_mark *mark;   /* before this turn, or NULL */
    char *reply;                /* NULL until accepted */
    int first;                  /* first turn in view when this one was observed */
    uint64_t rng;               /* random number state at that time */
    struct rewind_point *point; /* or NULL */
};

struct context {
    struct llm *llm;
    const struct llm_ops *ops;
    const struct dialect *dialect;
    enum window_policy window;
    int max_images;
    struct turn *turns;
    int n, cap;
    char *system;
    int max_points; /* number of last turns with rewind points */
    struct shared_mark *before_reply;
    bool imageless;  /* turns have no screenshots */
    bool replied;    /* a reply follows before_reply and is not accepted yet */
    int64_t carried; /* tokens prefilled since the last observe (system text, a reply): part of the next */
    struct {
        const volatile int *cancel; /* NULL: turns cannot be undone */
        struct llm_mark *mark;      /* before the last turn; NULL: none */
        int n;                      /* turns at that time */
        int64_t carried, reused;
        bool evicted; /* screenshots were evicted for it; they stay so */
    } undo;
};
