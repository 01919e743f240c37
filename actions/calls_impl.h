/* calls_impl.h - declarations shared by the files of the reader of calls (calls.h). */
#pragma once

#include "actions/calls.h"

struct calls_reader {
    const char *text, *at, *end;
    const struct calls_hints *hints;
    struct calls *out;
};

bool calls_is_tool(const struct calls_reader *r, const char *name, size_t n);
bool calls_knows_tools(const struct calls_reader *r);
/* Returns the length of the name at s: letters, digits, "_", "-", "." and ":". */
size_t calls_name(const char *s, const char *end);
/* Returns whether text at s begins with the mark, in any case. */
bool calls_starts(const char *s, const char *end, const char *mark);
/* Returns the position after a closing tag at s (</parameter>, </function_call>, [/TOOL_CALLS], "<|end|>"),
 * also a misspelt or truncated one; s if there is none.  names: "parameter|function", or NULL for any of
 * them. */
const char *calls_closer(const char *s, const char *end, const char *names);
/* Returns the position behind an opening tag <WORD=NAME> or <WORD name="NAME"> at s, and its name; NULL:
 * there is none. *exact: spelt as in the template, <WORD=NAME>. */
const char *calls_opener(const char *s, const char *end, const char *word, const char **name, size_t *n,
                         bool *exact);

/* Appends a call, which takes ownership of arguments and copies the name.  Returns NULL if there are
 * CALLS_MAX calls. */
struct call *calls_add(struct calls_reader *r, const char *begin, const char *name, size_t n,
                       json_t *arguments);
void calls_drop_last(struct calls_reader *r);
/* Appends a call that cannot be read. */
PRINTF_LIKE(5, 6)
void calls_add_fault(struct calls_reader *r, const char *begin, enum action_fault f, bool cut,
                     const char *fmt, ...);

/* Reads calls of one form at r->at and moves past them.  Returns their number; 0: none. */
int calls_read_xml(struct calls_reader *r, const char *begin);
/* sure: the context shows that a call is intended, so unreadable text is a fault */
int calls_read_json(struct calls_reader *r, const char *begin, bool sure);
int calls_read_named_json(struct calls_reader *r, const char *begin); /* NAME{...}, NAME[ARGS]{...} */
int calls_read_python(struct calls_reader *r, const char *begin, bool sure);
