/* grammar_values.h - the grammar of arguments, in JSON and in call syntax. Private to actions/. */
#ifndef HOLORUN_ACTIONS_GRAMMAR_VALUES_H
#define HOLORUN_ACTIONS_GRAMMAR_VALUES_H

#include "actions/tools.h"

struct language { /* what a grammar is built with */
    struct gx *x;
    const struct dialect *d;
    int w, h; /* bounds of coordinates in pixels */
};

gx_node value_coord(const struct language *l, bool vertical);

/* {"tag": "NAME", "arg": value, ...}; tag NULL: arguments only. Optional arguments may be left out. */
gx_node value_json_call(const struct language *l, const struct tool *t, const char *tag);

/* NAME(arg='value', ...): the form of UI-TARS, or of Python. */
gx_node value_call(const struct language *l, const struct tool *t);

#endif
