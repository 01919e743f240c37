/* check_impl.h - one look of one check; private to qa/check*.c. */
#ifndef HOLORUN_QA_RUN_CHECK_IMPL_H
#define HOLORUN_QA_RUN_CHECK_IMPL_H

#include "qa/run/check.h"

enum {
    CHECK_OUTPUT = 64 << 10,  /* bytes kept of a command */
    CHECK_CONTENT = 4 << 20,  /* most bytes of a file in which a pattern is looked for */
    CHECK_HASHED = 256 << 20, /* ... and whose sha256 is made */
    CHECK_DETAIL = 600,       /* bytes */
};

struct look {
    const struct check_scene *s;
    const struct check *c;
    struct check_result r;         /* of this look: detail and output are there to be filled */
    double seconds;                /* that it may take */
    bool late;                     /* it was broken off because it took longer */
    struct image expected, actual; /* of a region; empty: none */
};

/* One line of what was expected and what is there; the last one counts. */
void look_says(struct look *l, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* How many bytes of a text go into such a line, for "%.*s". */
int look_cut(const char *text, size_t len);

bool look_cancelled(const struct look *l);

/* YES, NO or UNKNOWN of what the check asks for, whether or not it is to be absent; ANSWER_ERROR with e. */
typedef enum answer check_fn(struct look *l, struct err *e);
check_fn check_shell, check_answer, check_file, check_process, check_port; /* check_desk.c */
check_fn check_window, check_region;                                       /* check_screen.c */
check_fn check_text, check_judge;                                          /* check_llm.c */

/* Writes what a region was compared with, into the scene's folder; r.pictures has the paths. */
int check_region_pictures(struct look *l, int number, struct err *e);

#endif
