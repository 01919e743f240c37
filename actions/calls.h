/* calls.h - reads the tool calls in a reply, in any of the forms that models write.
 *
 *     XML     <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>
 *             <invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke>
 *     JSON    <tool_call>{"name": NAME, "arguments": {...}}</tool_call>, <TOOLCALL>[{...}]</TOOLCALL>,
 *             [TOOL_CALLS][{...}], [TOOL_CALLS]NAME{...}, the same in a code fence or between sentences
 *     Python  [NAME(KEY=VALUE, ...)], NAME(KEY=VALUE, ...) on its own line
 *
 * Tolerated, and recorded as repairs: missing, doubled, swapped and misspelt closers, a missing wrapper,
 * values without line breaks, CRLF, code fences, "parameters", "input" or "args" instead of "arguments",
 * arguments as a JSON string, and the deviations of json_in.h.
 *
 * A value of the XML form ends at its closer, at the next <parameter=KEY> on its own line, at </function>, at
 * </tool_call> or at the end of the text.  At the end of the text only a single complete line counts: without
 * a following line break a value may be cut off, and further lines may be sentences after the call; the call
 * then gets a fault.  Markup in the middle of a line stays part of the value if its closer follows.
 *
 * Pure: no dialect, no X11, no global state.  Calls and their values are copies; the text may be freed. */
#pragma once

#include "actions/action.h"

#include <jansson.h>

enum { CALLS_MAX = 64, CALLS_MAX_NAME = 128 };

/* The tools that the reader may expect.  Each function may be NULL: then any name is accepted, and calls in
 * Python must fill the whole text or be in brackets. */
struct calls_hints {
    bool (*tool)(const void *arg, const char *name);
    bool (*parameter)(const void *arg, const char *tool, const char *name);
    /* returns the name of parameter i, for positional arguments of Python; NULL: there are fewer */
    const char *(*nth)(const void *arg, const char *tool, int i);
    const void *arg;
};

struct call {
    char *name;
    json_t *arguments; /* an object, in the order of the text; NULL: a fault */
    bool texts;        /* XML: each argument is the text as written; see calls_convert() */
    bool cut;          /* the text ended before the closer of the call: further arguments may be missing */
    unsigned repairs;  /* REPAIR_ bits; 0: well formed */
    size_t begin,
        end; /* bytes of the text that belong to the call, including tags, fences and stray closers */
    enum action_fault fault; /* FAULT_NONE, or the call cannot be read; name may then be NULL */
    char *why;               /* one line about the fault */
};

struct calls {
    struct call *list;
    int n;
    char *said; /* texts next to the calls in a list of content parts; NULL: none */
};

/* Reads all calls of text[0..n) in their order.  The text outside of their ranges is content.  At most
 * CALLS_MAX calls are read; further calls stay content.  hints may be NULL.  calls_free() releases the
 * result. */
void calls_read(const char *text, size_t n, const struct calls_hints *hints, struct calls *out);
void calls_free(struct calls *c);

/* Appends the content: the text without the ranges of the calls that were read.  Calls with a fault count as
 * content. */
void calls_content(const char *text, size_t n, const struct calls *c, struct buf *out);

/* Converts the texts of the XML form to the types of a JSON schema's "properties" (may be NULL): numbers,
 * booleans, objects, lists and null if the text is such a value and the type allows it.  Without a type,
 * objects and lists are converted.  Does nothing unless c->texts. */
void calls_convert(struct call *c, const json_t *properties);

/* Returns the first call markup in text[0..n), or NULL: a tag of a call, or a special token such as
 * <|im_end|>.  Text with markup comes from a call that was misread, so it must not be typed.  *len: its
 * length. */
const char *calls_markup(const char *text, size_t n, size_t *len);

/* ---- streams ------------------------------------------------------------------------------------------- */

/* Returns the number of bytes of text[0..n) that are certainly content while the text is still being
 * generated: those before the first position at which a call begins or may begin. */
size_t calls_safe_prefix(const char *text, size_t n, const struct calls_hints *hints);
