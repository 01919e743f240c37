/* check_impl.h - one probe: a single try of one check; private to qa/run/check*.c. */
#ifndef HOLORUN_QA_RUN_CHECK_IMPL_H
#define HOLORUN_QA_RUN_CHECK_IMPL_H

#include "qa/run/check.h"

enum {
    CHECK_OUTPUT = 64 << 10,  /* bytes kept of a command */
    CHECK_CONTENT = 4 << 20,  /* largest file that is searched for a pattern */
    CHECK_HASHED = 256 << 20, /* largest file that is hashed */
    CHECK_DETAIL = 600,       /* bytes */
};

struct probe {
    const struct check_context *s;
    const struct check *c;
    struct check_result r;         /* the check fills in detail and output */
    double seconds;                /* time limit */
    bool late;                     /* it hit the time limit */
    struct image expected, actual; /* of a region; empty: none */
};

/* Sets r.detail: one line with what was expected and what is there. */
void probe_detail(struct probe *probe, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* How many bytes of a text fit into it, for "%.*s". */
int probe_cut(const char *text, size_t len);

bool probe_cancelled(const struct probe *probe);

/* YES, NO or UNKNOWN before `absent` is applied; ANSWER_ERROR with e. */
typedef enum answer check_fn(struct probe *probe, struct err *e);
check_fn check_shell, check_answer, check_file, check_process, check_port; /* check_desk.c */
check_fn check_window, check_region;                                       /* check_screen.c */
check_fn check_clipboard;                                                  /* check_clipboard.c */
check_fn check_element;                                                    /* check_element.c */
check_fn check_text, check_judge;                                          /* check_llm.c */

/* Whether the text matches a pattern of the suite; the pattern compiled when the suite was read.  NULL
 * matches anything. */
enum answer probe_find(const char *pattern, const char *text, size_t len, struct err *e);

/* Writes the expected, actual and difference images of a region to out_dir; their paths go to r.pictures. */
int check_region_pictures(struct probe *probe, int number, struct err *e);

#endif
