/* check_impl.h - a single try of a check (probe); private to qa/run/check*.c. */
#pragma once

#include "qa/run/check.h"

enum {
    CHECK_OUTPUT = 64 << 10,  /* bytes of a command's output that are kept */
    CHECK_CONTENT = 4 << 20,  /* largest file that is searched for a pattern */
    CHECK_HASHED = 256 << 20, /* largest file that is hashed */
    CHECK_DETAIL = 600,       /* bytes */
};

struct probe {
    const struct check_context *s;
    const struct check *c;
    struct check_result r;         /* the check fills in detail and output */
    double seconds;                /* time limit */
    bool late;                     /* it exceeded the time limit */
    struct image expected, actual; /* images of a region check; empty: none */
};

/* Sets r.detail: one line with the expected and the actual state. */
void probe_detail(struct probe *probe, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Returns how many bytes of a text fit into r.detail, for "%.*s". */
int probe_cut(const char *text, size_t len);

bool probe_cancelled(const struct probe *probe);

/* Returns YES, NO or UNKNOWN, before `absent` is applied, or ANSWER_ERROR with e. */
typedef enum answer check_fn(struct probe *probe, struct err *e);
check_fn check_shell, check_answer, check_file, check_process, check_port; /* check_desk.c */
check_fn check_window, check_region;                                       /* check_screen.c */
check_fn check_clipboard;                                                  /* check_clipboard.c */
check_fn check_element;                                                    /* check_element.c */
check_fn check_text, check_judge;                                          /* check_llm.c */

/* Returns whether the text matches a pattern of the suite, which was compiled once when the suite was read.
 * NULL matches anything. */
enum answer probe_find(const char *pattern, const char *text, size_t len, struct err *e);

/* Writes the expected, actual and difference images of a region to out_dir, and their paths to r.pictures. */
int check_region_pictures(struct probe *probe, int number, struct err *e);
