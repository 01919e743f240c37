/* inject.h - memory shared by the test and inject.c. */
#pragma once

enum injection_kind {
    INJECT_MEMORY,
    INJECT_FILES,
    INJECT_CONNECTIONS,
    INJECT_PROCESSES,
    INJECT_DISPLAY, /* an Xlib call that returns NULL or 0 */
    INJECTION_KINDS
};

enum { INJECT_NAMES = 64 };

struct injection {
    unsigned long counts[INJECTION_KINDS]; /* calls so far */
    enum injection_kind kind;
    unsigned long at;       /* the call of that kind that fails, from 1; 0: none */
    char only[32];          /* counts only calls of this function; "": of all functions of the kind */
    char failed[32];        /* name of the function that failed; "": none */
    struct injection_name { /* functions called so far, with their numbers of calls */
        char name[32];
        unsigned long calls;
    } names[INJECT_NAMES];
};
