/* grammar_values.h - grammars of arguments, in JSON and in call syntax.  Private to actions/. */
#ifndef HOLORUN_ACTIONS_GRAMMAR_VALUES_H
#define HOLORUN_ACTIONS_GRAMMAR_VALUES_H

#include "actions/tools.h"

struct grammar_builder {
    struct gx *x;
    const struct dialect *d;
};

gx_node value_coord(const struct grammar_builder *l, bool vertical);

/* {"tag": "NAME", "arg": value, ...}; tag NULL: arguments only. Optional arguments may be left out. */
gx_node value_json_call(const struct grammar_builder *l, const struct tool *t, const char *tag);

/* NAME(arg='value', ...): the form of UI-TARS, or of Python. */
gx_node value_call(const struct grammar_builder *l, const struct tool *t);

#endif
