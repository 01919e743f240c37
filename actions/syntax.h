/* syntax.h - the reply formats of models, one row each (syntax.c).
 *
 * A dialect names its row with the key "syntax".  NULL members select the form that most formats share: JSON
 * objects with the tool's name under `tag`, or calls NAME(arg='value').
 */
#pragma once

#include "actions/action.h"
#include "actions/place.h"
#include "actions/slots.h"

struct grammar_builder;
struct parse;
struct tool;

struct syntax {
    const char *name; /* value of the key "syntax" */
    enum action_fault (*parse)(struct parse *p, const char *text, size_t len);

    /* ---- grammar (dialect_grammar.c) ---- */
    gx_node (*call)(const struct grammar_builder *l, const struct tool *t);
    gx_node (*step)(const struct grammar_builder *l, gx_node call); /* NULL: the call alone */
    gx_node (*ground)(const struct grammar_builder *l);             /* NULL: {"x": x, "y": y} */
    const char *tag;    /* JSON key of a call's tool name; NULL: not such a call */
    const char *action; /* JSON key of the call in a step; NULL: none */
    bool single_quotes; /* calls are NAME(arg='value') */
    bool script;        /* such calls are Python code in a fence: backticks are escaped, keys have no name */

    /* ---- the tool table in the prompt (schema.c) ---- */
    void (*schema)(const struct dialect *d, struct buf *out); /* NULL: the slot {schema} is empty */
    bool list_as_json;                                        /* {tools} shows JSON objects with `tag` */

    /* ---- decisions in a reply (slots.c); NULL: as in JSON ---- */
    int (*slots)(const struct dialect *d, const char *text, size_t len, struct slot *out, int max);
    ptrdiff_t (*slot_end)(enum slot_kind kind, const char *text, size_t len);
    bool (*point)(const char *text, size_t len, double v[2]); /* reads a slot's value */

    /* ---- only of formats that name the element before its place; NULL: not supported ---- */
    bool (*word_slot)(enum slot_kind kind, const char *text, size_t len, struct slot *out);
    const char *word_end[SLOT_KINDS]; /* text after a word slot; for a name one token */
    char *(*step_begin)(const struct dialect *d, int kind, const char *element);
    int (*read_place)(const struct dialect *d, const char *text, size_t len, struct place *out,
                      struct err *e); /* a localizer's answer; NULL: place_read() */

    /* ---- properties ---- */
    bool one_line;       /* a reply is one line, read verbatim; its line end is part of it */
    bool question_first; /* a question precedes its image */
    bool says_absent;    /* a localizer's answer can say that the element is absent */
    bool spread_points;  /* the model spreads probability over neighbouring points */
    bool native_points;  /* a point in quotes is the usual notation, not a repaired one */
};

extern const struct syntax *const syntaxes[]; /* NULL-terminated; the first is the default */

/* Finds the next number from `at` on that is not part of a word; false: none, or the text ends inside it. */
struct slot_number {
    size_t begin, end;
};
bool slots_next_number(const char *text, size_t len, size_t at, struct slot_number *n);

bool syntax_is(const struct dialect *d, const char *name);
