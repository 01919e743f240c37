/* fake_tree.h - a program on the accessibility bus whose tree is hostile or broken, in a process of its own.
 *
 * The session bus of the environment must have an accessibility bus (bus.h). The program answers from a
 * table and counts calls that a reader must not make. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

enum { FAKE_CELLS = 1000000000, FAKE_HIDDEN = -1 };

struct fake_node {
    int id, parent; /* id: 1 and larger; parent 0: the program */
    uint32_t role;
    const char *name;
    const char *text; /* of the interface Text; NULL: none */
    uint64_t states;  /* bits of atspi/roles.h */
    int x, y, w, h;
    int children;    /* told instead of their number, if not 0 */
    int also;        /* id of a further child, for a cycle */
    int silent;      /* answers nothing about this node */
    int labelled_by; /* id of its label; 0: none */
};

struct fake_tree {
    pid_t pid;
    int calls; /* descriptor: a line for each call that must not be made */
};

/* Starts the program and waits until it is registered; nodes[n]. Returns -1 if the bus refuses it. */
int fake_tree_start(struct fake_tree *t, const char *toolkit, const struct fake_node *nodes, int n);
/* Ends it. Returns the number of calls that must not be made, and writes the first to `what`. */
int fake_tree_stop(struct fake_tree *t, char *what, size_t size);
