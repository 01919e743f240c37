/* driven.h - the program on a stage of its own, with replies from a script in place of a model. */
#ifndef HOLORUN_TESTS_DRIVEN_H
#define HOLORUN_TESTS_DRIVEN_H

#include "program.h"
#include "stage.h"
#include "trace/read.h"

/* Replies; in text between letters on no key stand letters that are on one. */
#define STEP(call)    "{\"note\": null, \"thought\": \"as planned\", \"tool_call\": {\"tool_name\": " call "}}\n"
#define CLICK(x, y)   STEP("\"click_desktop\", \"element\": \"it\", \"x\": " #x ", \"y\": " #y)
#define WAIT(seconds) STEP("\"wait_desktop\", \"seconds\": " #seconds)
#define ANSWER        STEP("\"answer\", \"content\": \"Done.\"")
#define SHIFT_DOWN    STEP("\"key_down_desktop\", \"key\": \"shift\"")
#define DRAG                                                                                                 \
    STEP("\"drag_and_drop\", \"description\": \"it\", \"x1\": 200, \"y1\": 200, \"x2\": 600, \"y2\": 600, "  \
         "\"hold_keys\": [\"ctrl\"]")
#define TEN     "ab\xc5\x91 cd\xce\xa9 ef"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define TYPE    STEP("\"write_desktop\", \"content\": \"" HUNDRED HUNDRED HUNDRED HUNDRED "\"")

/* A display for the program alone, with a window that writes down what reaches it. */
void driven_open(struct stage *t);

/* `holorun run` with these replies; with more options. */
pid_t driven_start(const struct stage *t, const char *replies);
pid_t driven_start_with(const struct stage *t, const char *replies, const char *const *more);

/* Waits until the window has seen n events of this name. */
void driven_wait(const struct stage *t, const char *name, int n);

/* The newest run as it is on disk; the caller frees it. */
void driven_read(const struct stage *t, struct record *r);

/* The last event of this kind, NULL when there is none. */
const json_t *driven_last(const struct record *r, const char *kind);

#endif
