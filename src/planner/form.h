/* form.h - the state of a window as lines "name = value", with the values that each may get.
 *
 * Fields may get words of the task, lists their options, ticks yes or no; the lines "Row", "Tab", "Menu"
 * and "Button" name the element to be pressed, first "none".  A text-only model writes the lines that the
 * task asks for; those that differ are the steps. */
#pragma once

#include "plain/words.h"
#include "planner/candidates.h"

enum { FORM_LINES = 32, FORM_VALUES = 160, FORM_SHOWN = 15 /* menu items, buttons or rows */ };

enum line_kind { LINE_FIELD, LINE_LIST, LINE_TICK, LINE_ROW, LINE_TAB, LINE_MENU, LINE_BUTTON };

struct form_value {
    char *text;                /* as in the line */
    const struct candidate *c; /* option, row, tab, item or button; NULL: none */
    bool twin;                 /* another element has the same text */
};

struct form_line {
    enum line_kind kind;
    char name[CANDIDATE_NAME];
    const struct candidate *of; /* field or tick */
    struct form_value *v;       /* v[0]: the value now */
    int n;
    bool twin; /* another line has the same name */
    bool cut;  /* rows were left out */
};

struct form {
    struct form_line l[FORM_LINES];
    int n;
};

/* Reads the lines of a window.  task: its words are the values of fields.  done: printed steps, a line each,
 * that are not offered again; NULL: none. */
void form_read(const struct candidates *all, struct span task, const char *done, struct form *out);
void form_free(struct form *p);
/* Adds words [i, to) of the task as a value of a field: in one for numbers only numbers, also as words.
 * Returns its index, -1: it cannot be one. */
int form_part(struct form_line *l, struct span s, int i, int to);
/* Appends the title, the texts and the lines with their values now and the others of lists. */
void form_print(const struct form *p, const struct candidates *all, struct buf *out);
