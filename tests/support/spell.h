/* spell.h - writes an action as a model would in any dialect, from the dialect's tool table. */
#pragma once

#include "actions/dialect.h"

#include "actions/action.h"

struct want {
    enum action_kind kind;
    const char *element, *text, *keys; /* keys: "ctrl+v" */
    int x, y, x2, y2;                  /* pixels; 0: none */
    int button;                        /* 0: left */
};

/* Returns the reply, owned by the caller, or NULL if the dialect cannot express it. */
char *spell_reply(const struct dialect *d, const struct want *w, const char *thought, int width, int height);
