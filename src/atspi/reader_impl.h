/* reader_impl.h - reads the accessibility tree of one program with many calls in flight. Private to atspi/.
 *
 *     reader.c   nodes: which calls each reply leads to      calls.c   calls in flight, time limits
 *     reader_ask.c   which further calls describe a node
 *     place.c    corrects rectangles                         serve.c   the child process: questions and
 *     answers
 *
 * A node whose state shows it, or which has few siblings, is asked for role, name, number of children and
 * rectangle at once; these four replies decide on its children and its text. GetChildren is never called on
 * a node with more than READ_CHILDREN children: LibreOffice Calc has 10^9 and hangs. Its rows are found by
 * hit tests on a grid. GetItems, GetMatches, GetActions and methods that change something are never called,
 * and password fields are asked for nothing but role, name, number of children and rectangle. */
#pragma once

#include "atspi/bus.h"
#include "atspi/elements.h"
#include "atspi/roles.h"
#include "atspi/xwindows.h"

#include <glib.h>

enum {
    READ_IN_FLIGHT = 64,
    READ_CALL_MS = 400, /* limit of one call, or if that is more, this part of the limit of the read: */
    READ_CALLS = 5,
    READ_SILENT = 3, /* overdue calls in a row after which the program is not asked for READ_SILENT_MS */
    READ_SILENT_MS = 5000,
    READ_NODES = 4000,
    READ_DEPTH = 40,
    READ_CHILDREN = 200,
    READ_CLOSED = 1200, /* nodes of closed menus and lists */
    READ_HITS = 100,
    READ_KNOWN = 16384, /* objects whose numbers are kept; at most READ_NODES more during a read */
    READ_TEXT = 200,    /* characters of a value */
    READ_NAME = 256,    /* bytes of a name */
    READ_FIELD = 4000,  /* ... of the focused element */
};

enum call {
    CALL_STATE,
    CALL_ROLE,
    CALL_NAME,
    CALL_COUNT,
    CALL_RECT,
    CALL_CHILDREN,
    CALL_CHILD,  /* the only child: sockets, which embed a window of another program, do not list it */
    CALL_HIT,    /* child at a point of the grid */
    CALL_LENGTH, /* of the text */
    CALL_TEXT,
    CALL_NUMBER,
    CALL_TAKEN, /* number that a spin button has taken over from its text */
    CALL_LEAST, /* least and greatest number */
    CALL_MOST,
    CALL_ACTION, /* name of the first action */
    CALL_ADDRESS,
    CALL_TOOLKIT,
    CALL_VERSION, /* of the toolkit */
    CALL_RELATIONS,
    CALL_LABEL, /* text of the object that labels it */
    CALL_POINT, /* element at the point of the question */
};

struct program { /* a connection to the bus */
    char bus[64];
    char path[128]; /* of its root */
    char toolkit[32];
    char version[16];     /* of the toolkit */
    int pid;              /* 0: unknown */
    int overdue;          /* nodes in a row */
    int64_t silent_until; /* clock_ns() */
    bool read_before;
};

struct node {
    char *bus, *path, *name, *value;
    char *label; /* path of the object that labels it; NULL: not needed */
    uint32_t ref, role;
    uint64_t states;
    double least, most;            /* of a number; equal: unknown */
    double number;                 /* NAN: unknown */
    struct screen_rect rect, told; /* told: by the program, before place.c */
    enum place_trust trust;
    int parent, depth; /* parent -1: the root of the program, which is not an element */
    int order;         /* among its siblings */
    int children;      /* as the program counts them */
    int missing;       /* replies of the first four that have not arrived */
    int top;           /* index of its window; 0: the root of the program */
    int unseen;        /* children of a window whose state has not arrived */
    bool by_visible;   /* of a window: GTK 4.8 sets SHOWING on windows only */
    bool asked, late, shown, placed, any_shown, sampled; /* sampled: its children were found by hit tests */
    bool closed;     /* does not show, but is part of a closed menu or list, or of a page behind another */
    uint32_t window; /* X window of a toplevel; 0: none */
};

struct slot {        /* a call in flight */
    uint32_t serial; /* 0: free */
    int node, x, y;
    enum call call;
    int64_t sent;
};

struct pending {
    int node, x, y;
    enum call call;
};

struct reader {
    DBusConnection *bus;
    GHashTable *known;   /* "BUS PATH" to its struct known; bounded by READ_KNOWN */
    uint32_t refs, read; /* numbers given so far */
    /* one program */
    struct program *program;
    struct node *nodes;
    int n, cap;
    struct pending *queue;
    size_t first, queued, queue_cap;
    struct slot slots[READ_IN_FLIGHT];
    int in_flight, calls;
    bool closed; /* the question is also about closed menus and lists */
    bool beyond; /* ... about elements of pages that are scrolled out of sight */
    int n_closed;
    bool cut, lost; /* a limit was reached; the bus was lost */
    int x, y;       /* point to be hit-tested, -1: none */
    int hit;        /* node there; -1: none */
};

/* reader.c */
void reader_begin(struct reader *r, struct program *p, int x, int y);
void reader_end(struct reader *r); /* frees the nodes */
/* Handles the reply to a call about a node; NULL: none in time. Only well-formed messages arrive here, but
 * their types and values are those that the program chose. */
void reader_take(struct reader *r, const struct slot *s, DBusMessage *reply);

/* reader_ask.c: Return whether the text, the number, its range, the first action, or the label of a node is
 * to be read. */
bool reader_has_text(const struct node *n);
bool reader_has_number(const struct node *n);
bool reader_has_range(const struct node *n);
bool reader_may_click(const struct reader *r, int i);
/* Returns whether a node is a page or part of one. */
bool reader_in_page(const struct reader *r, int i);
bool reader_needs_label(const struct reader *r, const struct node *n);
/* Asks for the text of the first object that labels a node.  The reply is a(ua(so)). */
void reader_take_relations(struct reader *r, int i, DBusMessage *reply);
/* Removes the memory usage from the name of a tab in Chromium, which changes it without input. */
void reader_drop_memory(const struct reader *r, struct node *n);
/* Reads the value, the least or the greatest number of a node. */
void reader_take_number(struct node *n, enum call call, DBusMessage *reply);
/* Reads a reference (so) at an iterator. */
bool reader_reference(DBusMessageIter *at, const char **bus, const char **path);

/* Returns whether a name is that of a class, which GTK 4 gives to widgets without a label. */
bool reader_class_name(const char *name);

/* calls.c */
void reader_push(struct reader *r, int node, enum call call, int x, int y);
bool reader_is_gtk4(const struct reader *r);
/* Reads until nothing is left to ask, or for ms. All messages are given to `event`. Returns SNAPSHOT_WHOLE,
 * _CUT, _SILENT or _NOTHING. */
enum snapshot_end reader_run(struct reader *r, double ms, void (*event)(void *arg, DBusMessage *m),
                             void *arg);

/* place.c: Corrects the rectangles of all nodes by the X windows of their program and marks doubtful ones. */
void place_nodes(struct node *nodes, int n, const struct program *p, const struct xwindow *windows,
                 int n_windows);
