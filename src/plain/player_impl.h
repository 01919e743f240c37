/* player_impl.h - shared by the files of the player. */
#pragma once

#include "llm/llm_counted.h"
#include "plain/player.h"
#include "plain/resolve.h"

enum {
    PLAYER_REPLY_MAX = 1 << 20,
    PLAYER_READ_MS = 5000,     /* of one snapshot: a busy machine or program takes seconds */
    PLAYER_PATIENCE_MS = 4000, /* for a name to appear; longer for the first step: programs start */
    PLAYER_START_MS = 10000,
    PLAYER_CUT_MS = 20000,  /* the same while the program's elements cannot be read completely */
    PLAYER_WAIT_MS = 30000, /* of a step that waits */
    PLAYER_EFFECT_MS = 1500,
    PLAYER_STEADY_MS = 1000, /* without a change: the window is filled */
    PLAYER_SCROLLS = 30,
    PLAYER_SEARCH_MS = 2000, /* for a name to appear before the page is scrolled for it */
    PLAYER_TURN_MS = 700,    /* for a page to move after the wheel was turned */
    PLAYER_TURN = 3,         /* notches of a turn when the place of a name is not known */
    PLAYER_TURN_MAX = 10,
    PLAYER_EDGES = 3,
    PLAYER_TURN_PX = 120, /* most pixels that a notch moves */
};

/* Progress through the steps. */
struct player_state {
    int64_t length; /* of the conversation */
    int at;         /* index of the current step */
    int phase;      /* actions of the step that were performed */
    int64_t since;  /* start of waiting in this phase; 0: not started */
    bool acted;     /* a step has been performed */
    bool unsure;    /* the action of this phase may have failed: the elements decide */
    bool dismiss;   /* suggestions for p->field take the next click: the field is clicked */
    bool absent;    /* no element has the name that was looked for last */
    bool search;    /* the wheel is turned at x, y by `amount`, because the name is not in sight */
    bool upwards;   /* ... up, not down */
    int amount;
    bool all;        /* elements that are scrolled out of sight are read, too */
    int edge;        /* place of the wheel on the pane: at its middle, or near an edge */
    int turns;       /* of the wheel in this search */
    uint64_t place;  /* sum over the places of the elements that the wheel moves, before the last turn */
    uint64_t still;  /* ref and place of the element at the last look, after the wheel was turned */
    bool in_page;    /* the name of a button of the browser is also that of an element of its page */
    bool compared;   /* ... that is known */
    uint64_t seen;   /* digest of the elements while a key waits for a window that is still being filled */
    int64_t seen_at; /* since when it is the same; 0: not yet */
    bool aside;      /* a tool tip may cover the element: the pointer moves away */
    double was;      /* value of a slider before the last keys */
    double unit;     /* by which a key changes it; 0: not yet known */
    int times;       /* of the last keys, negative: those that lower it */
    bool home;       /* Home was pressed: the value is the least */
    int writing;     /* the number is typed, because the keys do not reach it, see player_adjust.c */
    bool counts;     /* the number that a spin button reports is the one that it shows */
    int ticked;      /* state of the box before the last click */
    bool verified;   /* the element that was pressed reports the state that the press leads to */
    bool focuses;    /* the press may only move the keyboard focus: to a field, or a row */
    bool by_group; /* only a group around the text that was pressed handles clicks, and may ignore this one */
    bool opened;   /* the current step has opened a closed list at x, y */
    uint32_t list; /* ref of that list */
    int keys;      /* actions of the step that were keys on the way to the element */
    bool keyed;    /* the last action was such a key */
    bool up;       /* the keys go up, or are ctrl+Tab after Tab had no effect */
    bool typing;   /* the name of a file, or of an option, was typed */
    bool main_menu; /* F10 was pressed */
    bool left;      /* Tab was pressed in a number that was typed */
    uint32_t mark;  /* the selection before that key */
    int x, y;
};

struct player {
    struct llm_counted c;
    struct plain_steps steps;
    struct screen *screen;
    struct elements *elements;
    struct player_source *source; /* NULL: none */
    const struct snapshot *now;   /* borrowed from elements, of this reply; NULL: nothing could be read */
    char unread[200];             /* why */
    struct player_state s;
    struct player_state asked; /* before the last reply */
    int turns;
    uint32_t ref;                /* element of the only step, instead of its name; 0: found by name */
    struct resolve_query sought; /* the last name that was not found; without `below` */
    uint32_t below;              /* ref of the element below which it was sought; 0: any */
    bool secret;                 /* a step types a secret: values are neither compared nor printed */
    char *before;                /* text of the elements before the last action; NULL: none */
    uint32_t *refs;              /* of the elements then */
    int n_refs;
    uint64_t digest;          /* of the elements then, apart from the focus */
    struct screen_rect field; /* last field that a step wrote to, until its suggestions are closed */
    char *typed_over;         /* value of the focused field before text was typed; NULL: not readable */
    uint32_t typed_into;      /* ref of that field */
    bool ended;               /* the source has no further steps */
    bool idle;             /* a press or choice has changed no element, and no condition has confirmed it */
    int *weights;          /* of the conditions in later steps before that press, see player_condition.c */
    int n_weights;         /* the conditions of further steps were not weighed */
    bool seen;             /* a screenshot has arrived */
    char failed[ERR_TEXT]; /* why the last action was not performed; "": it was */
    char done[256];        /* the last performed step, and its effect, for the answer */
    unsigned long window;  /* X window that was active before the last action; 0: unknown */
    struct player_outcome *outcomes; /* of each step */
    enum player_end blame;           /* kind of the reason that the last look at the step gave */
    int64_t begun;                   /* when the current step began; 0: not yet */
};

/* Result of looking at the current step. */
enum player_next {
    NEXT_ACTION, /* b has a reply with an action */
    NEXT_STEP,   /* the step is complete */
    NEXT_WAIT,   /* why has the reason */
    NEXT_FAILED, /* why has the reason */
};

/* Performs the current step: looks at the snapshot and appends the reply to b. */
enum player_next player_step(struct player *p, struct buf *b, char *why, size_t size);

/* Returns whether the current step's first element is on the screen, or it needs none. */
bool player_finds(struct player *p);

/* Returns a sum over the elements that the step can affect, which differs if any of them changed, apart from
 * the keyboard focus. */
uint64_t player_digest(const struct player *p);

/* Reads the elements for the current step. */
void player_look(struct player *p);
/* Returns whether a web page still loads. */
bool player_is_loading(const struct snapshot *s);

/* player_find.c: Return the only element that fits, or NULL with the reason; *several: the name is ambiguous.
 * player_find_target() looks for the current step's name without and then with the words around it. */
const struct element *player_find(struct player *p, const struct resolve_query *q, bool *several, char *why,
                                  size_t size);
const struct element *player_find_target(struct player *p, enum resolve_for use, bool *several, char *why,
                                         size_t size);
/* Returns the only element that the name which was not found last means among those that are scrolled out of
 * sight, NULL: none.  p->now then has those, too. */
const struct element *player_find_away(struct player *p);
/* Returns the element if it can be used; otherwise NULL with what happens next. */
const struct element *player_usable(struct player *p, const struct element *e, enum player_next *next,
                                    char *why, size_t size);
/* Return NEXT_WAIT until this phase of the step has lasted ms, then NEXT_FAILED. */
enum player_next player_wait_or_fail(struct player *p, double ms);
/* Searches the page for the name that was not found, then waits for it. */
enum player_next player_missing(struct player *p, char *why, size_t size);
/* Returns whether a step that waits has time left, which keys typed in between do not extend. */
bool player_still_waits(struct player *p);
bool player_is_off(const struct element *e);
/* Returns whether an element is a combo box, which shows only the chosen item. */
bool player_is_closed_list(const struct element *e);
/* Returns the chosen item of such a list, which is called `name`; "": not reported. */
/* Returns the closed list of the active window that has this option, if no other one has it and nothing on
 * the screen has its name; else NULL. */
const struct element *player_list_with(struct player *p, const char *option);
const char *player_shown_choice(const struct element *list, const char *name);
bool player_is_on(const struct element *e);
/* Returns the text field of a combo box, which reports the text; otherwise the element itself. */
const struct element *player_text_of(const struct snapshot *s, const struct element *e);

/* player_condition.c: Waits for the condition of the current step, or checks it. */
enum player_next player_condition(struct player *p, struct buf *b, char *why, size_t size);
bool player_asks(const struct plain_step *s); /* ... which is one */
/* Returns whether the step clicks an element that may ignore this. */
bool player_may_be_idle(const struct plain_step *s);
/* Notes whether the conditions of later steps hold now, before a press. */
void player_weigh_conditions(struct player *p);
/* Reads the elements as later conditions will, if there are any, and notes that. */
void player_look_ahead(struct player *p);
/* Returns whether the current step is a condition that holds and did not before the press, or fewer elements
 * had its name: then the press has probably led to it. */
bool player_confirms(const struct player *p);
/* Returns whether two texts are the same apart from white space, which programs and the bus may change. */
bool player_same_text(const char *a, const char *b);

/* player_keys.c: Select an item of an open menu, or an entry of an open list, with the arrow keys, and press
 * Return. */
enum player_next player_press_by_keys(struct player *p, const struct element *e, struct buf *b, char *why,
                                      size_t size);
/* Opens a menu of the menu bar, or of a button, in GTK 4.18; then returns NEXT_STEP. */
enum player_next player_open_menu_by_keys(struct player *p, const struct element *e, struct buf *b, char *why,
                                          size_t size);
enum player_next player_choose_by_keys(struct player *p, const struct element *list, struct buf *b, char *why,
                                       size_t size);
/* Returns whether an open list reports its choice, but for some time none of its entries. */
bool player_chooses_by_keys(struct player *p, const struct element *list, const char *name);

/* Returns whether an element without a reliable place, as in GTK 4.18, is reached by the Tab key. */
bool player_goes_by_keys(const struct player *p, const struct element *e);
/* Presses Tab until the element has the keyboard; then returns NEXT_STEP. */
enum player_next player_focus_by_keys(struct player *p, const struct element *e, struct buf *b, char *why,
                                      size_t size);
/* Selects a row, or the row of a cell, with Tab and the arrow keys; then returns NEXT_STEP. */
enum player_next player_select_by_keys(struct player *p, const struct element *e, struct buf *b, char *why,
                                       size_t size);
/* Press the element with the keyboard, or replace its text. */
enum player_next player_press_focused(struct player *p, struct buf *b);
enum player_next player_write_focused(struct player *p, const char *text, struct buf *b);

/* Selects a file in an icon view whose files are not described, by typing its name, and opens it or its menu
 * if the step asks for that. */
enum player_next player_select_by_typing(struct player *p, struct buf *b, char *why, size_t size);
/* Returns whether the name of the step has been missing for some time while such a view has the keyboard. */
bool player_selects_by_typing(struct player *p);
/* Returns whether the step is about a file in such a view, in which it may be without being described. */
bool player_shows_directory(const struct player *p, const struct plain_step *s);

/* player_date.c: Return whether an element is a date or time whose parts are spin buttons, and whether it
 * shows that date. */
bool player_is_date(const struct snapshot *s, const struct element *e);
bool player_date_is(const struct snapshot *s, const struct element *e, const char *text);
/* Types the date of the step into such an element, and verifies it. */
enum player_next player_enter_date(struct player *p, const struct element *e, struct buf *b, char *why,
                                   size_t size);

/* player_adjust.c: Returns whether the number and the range that a program reports are those that it shows:
 * some count in other units, as in hundredths. */
bool player_counts(const struct element *e);
/* Returns whether a program has taken over this number. */
bool player_has_taken(const struct element *e, const char *number);
/* Returns whether the arrow keys set the value of an element. */
bool player_is_adjusted(const struct element *e);
/* Sets it to the number of the step, and verifies it. */
enum player_next player_adjust(struct player *p, const struct element *e, struct buf *b, char *why,
                               size_t size);

/* Returns whether an element was not on the screen before the first action of the step. */
bool player_is_new(const struct player *p, const struct element *e);

/* player_choose.c: Chooses an option, in a list that is opened if it is closed. */
enum player_next player_choose(struct player *p, struct buf *b, char *why, size_t size);
/* Returns how many readings of "choose A in B in C" have a list on the screen; the first is in out, which the
 * caller frees. */
int player_choice(const struct player *p, const struct plain_step *s, struct plain_step *out);
/* Finds an option whose name is the whole text, as "Made in Italy" is not the option Made in a list Italy. */
const struct element *player_whole_option(struct player *p);
/* Verifies that an option or tab that was clicked is the chosen one, if it still shows; e may be NULL. */
enum player_next player_verify_selected(struct player *p, const struct element *e, char *why, size_t size);

/* Append replies. */
void player_click(struct player *p, const struct element *e, const char *button, int count, struct buf *b);
void player_write(struct player *p, const struct element *e, const char *text, struct buf *b);
void player_keys(const char *keys, int times, struct buf *b);
/* Appends the action of a step that waits: a pause, or one that removes an obstacle. */
void player_wait(struct player *p, const char *why, struct buf *b);
/* Replaces the characters that could begin a call in a reply: names and texts come from other programs. */
void player_make_safe(char *text);
void player_call(struct buf *b, const char *tool, const char *key, const char *text);
